"""Ways around the model: what in the table itself tells small counts that are to be protected."""

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from bayes_sdc.checks import Check, Verdict
from bayes_sdc.flows.release.released import released_counts
from bayes_sdc.flows.table.read import FlowTable

ORDER_LOOK, ORDER_FAIL = 0.2, 0.5
COLUMN_LOOK, COLUMN_FAIL = 0.5, 0.9


def leaks(table: FlowTable) -> list[Check]:
    """Check rows and columns that are released as they are.

    Parameters
    ----------
    table : FlowTable
        The table that is to be released.

    Returns
    -------
    list of Check
        Order of rows, other columns, small counts that stay.
    """
    return [_order(table), _columns(table), _left(table)]


def unchanged(table: FlowTable, release: pd.DataFrame) -> Check:
    """Check that the release is not the table itself, as when every count is at one bound.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    release : DataFrame
        What :func:`bayes_sdc.synthesize` returned.
    """
    kept = (released_counts(table, release) == table.cells["y"].to_numpy()).all(axis=0)
    return Check(
        "release differs",
        "fail" if kept.all() else "pass",
        f"{int((~kept).sum())} of {len(kept)} small counts differ from the true ones in a data set",
        key="release_differs",
    )


def _order(table: FlowTable) -> Check:
    """A file sorted by count gives the rank of every small count, even when the count is gone."""
    cells = table.cells.sort_values("row")
    found = {"all rows": (_rank_correlation(np.arange(len(cells)), cells["y"]), len(cells))}
    for side in ("origin", "destination"):
        within = [
            (len(part), _rank_correlation(part["row"], part["y"]))
            for _, part in cells.groupby(side)
            if len(part) > 2
        ]
        if within:
            sizes, correlations = np.array(within).T
            mean = float(np.average(correlations, weights=sizes))
            found[f"rows of one {side}"] = (mean, int(sizes.sum()))
    found = {name: (r if _beyond_chance(r, n) else 0.0, n) for name, (r, n) in found.items()}
    where = max(found, key=lambda name: abs(found[name][0]))
    value = found[where][0]
    return Check(
        "order of rows",
        _verdict(abs(value), ORDER_LOOK, ORDER_FAIL),
        f"rank correlation of the true small counts with their place among {where}: {value:+.2f}"
        + ("; sort the table by its codes before the release" if abs(value) > ORDER_LOOK else ""),
        key="row_order",
    )


def _columns(table: FlowTable) -> Check:
    """A copy, a share or a rate of the count in another column gives it away."""
    protected = {table.origin, table.destination, table.count}
    rows = table.cells["row"].to_numpy()
    count = table.cells["y"].reset_index(drop=True)
    worst, name = 0.0, ""
    for column in table.frame.columns:
        if column in protected or not len(rows):
            continue
        value = _strength(table.frame[column].iloc[rows].reset_index(drop=True), count)
        if not _beyond_chance(value, len(rows)):
            continue
        if value > worst:
            worst, name = value, str(column)
    verdict = _verdict(worst, COLUMN_LOOK, COLUMN_FAIL)
    reason = "no other column goes with the small counts"
    if verdict != "pass":
        reason = (
            f"column {name!r} is released as it is and goes with the true small counts "
            f"(strength {worst:.2f} of 1): drop it, or make it anew from the synthetic counts"
        )
    return Check("other columns", verdict, reason, key="other_columns")


def _strength(column: pd.Series, count: pd.Series) -> float:
    """1 when values that occur again and again fix the count, else the rank correlation."""
    text = column.astype(str)
    repeated = text.duplicated(keep=False)
    if repeated.mean() > 0.5 and count.nunique() > 1:
        variants = count[repeated].groupby(text[repeated]).nunique()
        if (variants == 1).all() and len(variants) > 1:
            return 1.0
    numbers = pd.to_numeric(text, errors="coerce")
    known = numbers.notna().to_numpy()
    if known.mean() < 0.25:
        return 0.0
    return abs(_rank_correlation(numbers[known], count[known]))


def _left(table: FlowTable) -> Check:
    """Small counts that the rules leave as they are."""
    count = table.frame[table.count].to_numpy(dtype=np.float64)
    protected = np.zeros(len(count), dtype=bool)
    protected[table.cells["row"].to_numpy()] = True
    left = (count >= 1) & (count <= table.high) & ~protected
    below = left & (count < table.low)
    return Check(
        "small counts left",
        "fail" if below.any() else "look" if left.any() else "pass",
        f"{int(left.sum())} counts from 1 to {table.high} are released as they are: "
        f"{int(below.sum())} below the smallest one protected, {table.low}, and "
        f"{int((left & ~below).sum())} of people who stayed in their area",
        key="small_counts_left",
    )


def _rank_correlation(x: pd.Series | np.ndarray, y: pd.Series | np.ndarray) -> float:
    """Spearman's; 0 when one of the two does not vary."""
    if len(x) < 3:
        return 0.0
    x_ranks, y_ranks = rankdata(x), rankdata(y)
    if np.ptp(x_ranks) == 0 or np.ptp(y_ranks) == 0:
        return 0.0
    return float(np.corrcoef(x_ranks, y_ranks)[0, 1])


def _beyond_chance(correlation: float, n: int) -> bool:
    """Four standard errors; in a table too small for that, an order that is all but perfect."""
    return correlation**2 * n > 16.0 or (n >= 6 and abs(correlation) > 0.95)


def _verdict(value: float, look: float, fail: float) -> Verdict:
    return "fail" if value > fail else "look" if value > look else "pass"
