"""Columns of areas that give totals together, as a rate beside the population does."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from bayes_sdc.flows.kept_columns.totals import Ends
from bayes_sdc.flows.table.read import FlowTable

Numbers = npt.NDArray[np.float64]

NEARLY_ALL = 0.95  # of the areas have the total
FEWEST_AREAS = 6  # with equal multiples, none of which is an accident
DIGITS = 1e-3  # relative distance that rounding may leave


def totals_together(
    one: Numbers, other: Numbers, totals: Sequence[tuple[str, Numbers]]
) -> str | None:
    """Return how two columns of areas give totals together, or None.

    Parameters
    ----------
    one, other : array of float, shape (area,)
        What the columns hold of each area; nan where they do not. They may describe different
        sides.
    totals : sequence of pairs of str and array, shape (area,)
        From :func:`totals_of_areas`.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ways = {
            "product": one * other,
            "ratio": one / other,
            "inverse ratio": other / one,
            "sum": one + other,
            "difference": one - other,
        }
    for what, sums in totals:
        for words, values in ways.items():
            if _multiples(values, sums):
                return f"their {words} gives {what}"
    return None


def totals_of_areas(table: FlowTable, ends: Ends) -> Iterator[tuple[str, Numbers]]:
    """Yield who left each area, who came, both together, and how many more came than left."""
    count = table.frame[table.count].to_numpy(np.float64)
    number = len(ends.labels)
    away = ends.origin != ends.destination
    for rows in (np.ones(len(count), dtype=bool), away)[: 1 if away.all() else 2]:
        left, came = (
            np.bincount(end[rows], count[rows], minlength=number)
            for end in (ends.origin, ends.destination)
        )
        yield "the sum of the counts of each origin", left
        yield "the sum of the counts of each destination", came
        yield "the flows in and out of each area together", left + came
        yield "inflow less outflow of each area", came - left


def _multiples(values: Numbers, sums: Numbers) -> bool:
    """Whether values are one multiple of sums, rounded, in nearly all areas and not by accident."""
    known = np.isfinite(values) & (values != 0) & (sums != 0)
    if known.sum() < FEWEST_AREAS:
        return False
    ratio = values[known] / sums[known]
    middle = float(np.median(ratio))
    return middle != 0.0 and bool((np.abs(ratio / middle - 1.0) <= DIGITS).mean() >= NEARLY_ALL)
