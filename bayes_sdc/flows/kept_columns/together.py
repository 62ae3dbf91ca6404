"""Columns of areas that give totals together, as a rate beside the population does."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from bayes_sdc.flows.kept_columns.totals import Ends
from bayes_sdc.flows.table.read import FlowTable

Numbers = npt.NDArray[np.float64]

NEARLY_ALL = 0.95  # of the areas have the total
FEWEST_AREAS = 6  # with equal multiples, none of which is an accident
DIGITS = 1e-3  # relative distance that rounding may leave
ADDED, MULTIPLIED = "added and subtracted", "multiplied and divided"


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


def totals_by_several(
    one: Numbers, others: Sequence[Numbers], totals: Sequence[tuple[str, Numbers]]
) -> tuple[str, list[int]] | None:
    """Return how columns of areas with weights give totals together, and which are needed.

    Parameters
    ----------
    one : array of float, shape (area,)
        What a column holds of each area.
    others : sequence of array, shape (area,)
        What other columns hold.
    totals : sequence of pairs of str and array, shape (area,)
        From :func:`totals_of_areas`.

    Returns
    -------
    tuple of str and list of int, or None
        In words, and the places of the other columns.
    """
    for what, sums in totals:
        for words in (ADDED, MULTIPLIED):
            for places in _sets(words, one, others):
                if not _explained(words, [one, *(others[k] for k in places)], sums):
                    continue
                for k in tuple(places):
                    fewer = [other for other in places if other != k]
                    if _explained(words, [one, *(others[m] for m in fewer)], sums):
                        places = fewer
                if not _explained(words, [others[k] for k in places], sums):
                    return f"{words}, they give {what}", places
    return None


def _sets(words: str, one: Numbers, others: Sequence[Numbers]) -> Iterator[list[int]]:
    """Yield which columns to try beside one: all, or one and two of them where areas are few."""
    there = np.isfinite(one) & ((one != 0) | (words == ADDED))
    places = [
        k
        for k, x in enumerate(others)
        if (np.isfinite(x) & ((x != 0) | (words == ADDED)))[there].mean() >= NEARLY_ALL
    ] if there.any() else []  # fmt: skip
    if int(NEARLY_ALL * there.sum()) >= len(places) + 2 + FEWEST_AREAS:
        yield places
        return
    for size in (1, 2):
        yield from map(list, combinations(places, size))


def _explained(words: str, columns: Sequence[Numbers], sums: Numbers) -> bool:
    """Whether weights of columns, or powers of them, give the sums of nearly all areas."""
    x, y = np.column_stack([np.ones(len(sums)), *columns]), sums
    known = np.isfinite(x).all(axis=1) & (y != 0)
    if words == MULTIPLIED:
        with np.errstate(divide="ignore", invalid="ignore"):
            x, y = np.log(np.abs(x)), np.log(np.abs(y))
        x[:, 0] = 1.0
        known &= np.isfinite(x).all(axis=1)
    x, y, n = x[known], y[known], int(known.sum())
    if n < x.shape[1] + FEWEST_AREAS:
        return False
    x = x / np.where((size := np.abs(x).max(axis=0)) > 0, size, 1.0)
    off = np.zeros(n)
    for _ in range(2):  # once more without the areas that are furthest off
        kept = off <= np.quantile(off, NEARLY_ALL)
        off = np.abs(y - x @ np.linalg.lstsq(x[kept], y[kept], rcond=1e-12)[0])
    near = DIGITS if words == MULTIPLIED else DIGITS * np.abs(y)
    return bool((off <= near).mean() >= NEARLY_ALL)


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
