"""Ways around the model: parts of the table itself that reveal protected small counts."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.checks import Check, Verdict
from bayes_sdc.flows.kept_columns.check import check_columns
from bayes_sdc.flows.kept_columns.evidence import information
from bayes_sdc.flows.kept_columns.selection import Selection
from bayes_sdc.flows.release.synthetic.own_areas import (
    OWN_AREA,
    OwnArea,
    own_area_risk,
    own_area_rows,
)
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.seeds import generator

Codes = npt.NDArray[np.intp]

ORDER_LOOK, ORDER_FAIL = 0.2, 0.5
FEWEST_PAIRS = 6  # consecutive rows, below which their order tells nothing
LOG_CHANCE = -10.0  # of as much in shuffled rows


def leaks(
    table: FlowTable,
    release: pd.DataFrame,
    columns: Selection,
    own_area: OwnArea,
    *,
    pinned: int = 0,
) -> list[Check]:
    """Check rows and columns that are released as they are.

    Parameters
    ----------
    table : FlowTable
        With the true counts.
    release : DataFrame
        What is to be released.
    columns : Selection
        The columns that are released with it.
    own_area : {"protect", "withhold", "publish"}
        How the small counts of own areas were treated.
    pinned : int
        Small cells with one possible count given the totals that the release keeps.

    Returns
    -------
    list of Check
        Order of rows, other columns, small counts that stay.
    """
    return [_order(table), check_columns(table, columns), _left(table, release, own_area, pinned)]


def unchanged(table: FlowTable, release: pd.DataFrame) -> Check:
    """Check that the release is not the table itself, as when every count is at one bound.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    release : DataFrame
        What :func:`bayes_sdc.synthesize` returned.
    """
    counts = released_counts(table, release)
    kept = (counts == table.cells["y"].to_numpy()).all(axis=0)
    changed = f"{int((~kept).sum()):,} of {len(kept):,}"
    return Check(
        "release differs",
        "fail" if kept.all() else "pass",
        f"{changed} small counts differ from the true ones"
        + (f" in at least one of {len(counts)} data sets" if len(counts) > 1 else ""),
        key="release_differs",
    )


def _order(table: FlowTable) -> Check:
    """A file sorted by count gives the rank of every small count, even without the counts.

    A file sorted by another function of it, such as its size class in words, has equal counts in
    neighbouring rows.
    """
    cells = table.cells.sort_values("row")
    y = cells["y"].to_numpy(np.intp)
    found = {"all rows": (_rank_correlation(np.arange(len(cells)), y), len(cells))}
    beside = {"": _told_by_the_row_before(y, np.zeros(len(y), dtype=np.intp))}
    for side in ("origin", "destination", "group"):
        within = [
            (len(part), _rank_correlation(part["row"], part["y"]))
            for _, part in cells.groupby(side)
            if len(part) > 2
        ]
        if within:
            sizes, correlations = np.array(within).T
            mean = float(np.average(correlations, weights=sizes))
            found[f"rows of one {side}"] = (mean, int(sizes.sum()))
        beside[f" of one {side}"] = _told_by_the_row_before(y, pd.factorize(cells[side])[0])
    found = {name: (r if _beyond_chance(r, n) else 0.0, n) for name, (r, n) in found.items()}
    where = max(found, key=lambda name: abs(found[name][0]))
    value = found[where][0]
    near = max(beside, key=lambda name: beside[name])
    worst = max(abs(value), beside[near])
    return Check(
        "order of rows",
        _verdict(worst, ORDER_LOOK, ORDER_FAIL),
        f"rank correlation of the true small counts with their place among {where}: {value:+.2f}; "
        f"the row before{near} tells {beside[near]:.0%} of what there is to know about them"
        + ("; sort the table by its codes before the release" if worst > ORDER_LOOK else ""),
        key="row_order",
    )


def _told_by_the_row_before(y: Codes, of: Codes) -> float:
    """Share of the information about a small count that the one before it holds."""
    order = np.argsort(of, kind="stable")
    pairs = np.flatnonzero(np.diff(of[order]) == 0)
    if len(pairs) < FEWEST_PAIRS:
        return 0.0
    found = information(y[order][pairs], y[order][pairs + 1], generator(0, "order of rows"))
    return found.share if found.log_chance < LOG_CHANCE else 0.0


def _left(table: FlowTable, release: pd.DataFrame, own_area: OwnArea, pinned: int) -> Check:
    """Small counts that the rules leave as they are, and those of own areas."""
    count = table.frame[table.count].to_numpy(dtype=np.float64)
    left = int(((count >= 1) & (count < table.low)).sum())
    own = len(own_area_rows(table))
    published = own if own_area == "publish" else 0
    why = {
        f"because they are below {table.low}, the smallest count that is protected": left,
        "of people who stayed in their area": published,
        "that the kept totals pin": pinned,
    }
    reasons = ", ".join(f"{number} {reason}" for reason, number in why.items() if number)
    total = left + published + pinned
    many = total != 1
    words = [
        f"{total} count{'s' * many} from 1 to {table.high} {'are' if many else 'is'} released as "
        f"{'they are' if many else 'it is'}{': ' * bool(reasons)}{reasons}"
    ]
    if own:
        words.append(f"the {own} small counts of own areas are {OWN_AREA[own_area]}")
    risk = own_area_risk(table, release) if own_area == "protect" else None
    if risk is not None:
        words.append(
            f"an intruder who knows all others but one finds {risk.found:.0%} of these and gives "
            f"the true count {risk.at_true:.0%}, after {1 / (table.k + 1):.0%} by guessing"
        )
    if table.withheld:
        words.append(f"{len(table.withheld)} counts of too few people are left blank")
    verdict: Verdict = "fail" if left else "look" if published or pinned else "pass"
    return Check("small counts left", verdict, "; ".join(words), key="small_counts_left")


def _rank_correlation(x: pd.Series | np.ndarray, y: pd.Series | np.ndarray) -> float:
    """Spearman's; 0 when one of the two does not vary."""
    if len(x) < 3:
        return 0.0
    x_ranks, y_ranks = (pd.Series(np.asarray(one)).rank().to_numpy() for one in (x, y))
    if np.ptp(x_ranks) == 0 or np.ptp(y_ranks) == 0:
        return 0.0
    return float(np.corrcoef(x_ranks, y_ranks)[0, 1])


def _beyond_chance(correlation: float, n: int) -> bool:
    """Whether it exceeds four standard errors, or in a very small table is almost perfect."""
    return correlation**2 * n > 16.0 or (n >= 6 and abs(correlation) > 0.95)


def _verdict(value: float, look: float, fail: float) -> Verdict:
    return "fail" if value > fail else "look" if value > look else "pass"
