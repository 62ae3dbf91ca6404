"""Totals inside a table that are hidden themselves, bounded by all the sums they belong to."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from bayes_sdc.flows.audit.equations import Equation, bound_by_equations
from bayes_sdc.flows.audit.inside.rows import InsideTotal
from bayes_sdc.flows.audit.propagation import FREE
from bayes_sdc.flows.table.families import Ints

TERMS = 4  # known numbers that are listed


def with_hidden_totals(
    bounds: pd.DataFrame,
    rows: Ints,
    totals: Ints,
    names: Sequence[str],
    counts: Ints,
    mask: np.ndarray,
    found: Sequence[InsideTotal],
) -> pd.DataFrame:
    """Bound hidden totals, and tighten the bounds of the cells by the sums these are in.

    Parameters
    ----------
    bounds : DataFrame
        Of the hidden cells, as from :func:`bayes_sdc.flows.audit.audit.bounds_of`.
    rows, totals : array of int
        Rows of the hidden cells, and of the hidden totals.
    names : sequence of str
        Of all rows.
    counts : array of int, shape (row,)
        Not looked at where hidden.
    mask : array of bool, shape (row,)
        Rows that are hidden.
    found : sequence of InsideTotal
        What is a total of what.

    Returns
    -------
    DataFrame
        ``bounds`` with the hidden totals below.
    """
    every = np.concatenate([rows, totals])
    position = np.full(len(counts), -1, dtype=np.int64)
    position[every] = np.arange(len(every))
    top = bounds["upper"].astype("Int64").fillna(FREE).to_numpy(np.int64)
    lower = np.concatenate([bounds["lower"].to_numpy(np.int64), np.zeros(len(totals), np.int64)])
    upper = np.concatenate([top, np.full(len(totals), FREE, dtype=np.int64)])
    solved = bound_by_equations(
        lower, upper, list(_equations(found, position, names, counts, mask))
    )
    known = [str(each) for each in bounds["why"]] + [""] * len(totals)
    limit = pd.array(solved.upper, dtype="Int64")
    limit[solved.upper >= FREE] = pd.NA
    labels = [*map(str, bounds.index), *(f"{names[int(row)]} (total)" for row in totals)]
    same = (solved.lower == lower) & (solved.upper == upper)
    exact = np.append(bounds["exact"].to_numpy(bool), np.ones(len(totals), dtype=bool))
    return pd.DataFrame(
        {
            "lower": solved.lower,
            "upper": limit,
            "pinned": solved.lower == solved.upper,
            "exact": np.where(same, exact & solved.exact, solved.exact),
            "why": [old or new for old, new in zip(known, solved.why, strict=True)],
        },
        index=pd.Index(labels, name="cell", dtype=str),
    )


def _equations(
    found: Sequence[InsideTotal],
    position: Ints,
    names: Sequence[str],
    counts: Ints,
    mask: np.ndarray,
) -> list[Equation]:
    """One for each total that is hidden or has hidden parts."""
    total = np.zeros(len(counts), dtype=bool)
    for each in found:
        total[each.rows] = True
    equations = []
    for each in found:
        if each.whole is None:
            continue
        for row in map(int, np.unique(each.whole[each.whole >= 0])):
            members = np.flatnonzero(each.whole == row)
            cells = members[~total[members]]
            members = cells if len(cells) else members  # totals are parts of totals only
            hidden = members[mask[members]]
            if not len(hidden) and not mask[row]:
                continue
            shown = [int(n) for n in counts[members[~mask[members]]]]
            given = 0 if mask[row] else int(counts[row])
            rest = given - sum(shown)
            listed = [f"{n:,}" for n in shown] if len(shown) <= TERMS else [f"{sum(shown):,}"]
            more = f" in {len(shown):,} known counts" if len(shown) > TERMS else ""
            words = f"{names[row]}: " + (
                f"hidden, of {' plus '.join(listed) or 'hidden counts'}{more}"
                if mask[row]
                else f"{' minus '.join([f'{given:,}', *listed])}{more}"
            )
            whole = int(position[row]) if mask[row] else -1
            equations.append(Equation(position[hidden], whole, rest, rest, words))
    return equations
