"""Columns that describe an area by its small counts: how many ones it has, or its smallest count.

Such a column is a function of the area alone, like a name, and still made from what is hidden.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.flows.kept_columns.agreement import Alike, alike, log_chances
from bayes_sdc.flows.kept_columns.evidence import function_of_count
from bayes_sdc.flows.kept_columns.functions import codes_of
from bayes_sdc.flows.kept_columns.numbers import numbers_in
from bayes_sdc.flows.kept_columns.totals import Ends
from bayes_sdc.flows.kept_columns.weighted import cells_of, is_public, weighted_numbers
from bayes_sdc.flows.table.read import FlowTable

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

CHANCE = 0.01  # with which any statistic may agree with a column of areas by accident


class Statistic(NamedTuple):
    """A statistic of small counts that a column holds, or a class of it."""

    words: str
    log_chance: float  # of as much agreement in shuffled areas


def statistic_in(table: FlowTable, column: pd.Series, side: str, ends: Ends) -> Statistic | None:
    """Return which statistic of small counts a column of areas holds, or None.

    Parameters
    ----------
    table : FlowTable
        Counts as they are.
    column : Series
        In the order of the rows; a function of one side.
    side : {"origin", "destination"}
        The side that fixes the column.
    ends : Ends
        From :func:`bayes_sdc.flows.kept_columns.totals.ends_of`.

    Returns
    -------
    Statistic or None
        Functions of totals; extremes, means, medians and deviations of counts; numbers and shares
        of cells with a count or up to it, and whether there are any: of the area as origin or as
        destination. The column may hold a class of the statistic instead.
    """
    at, first = np.unique(getattr(ends, side), return_index=True)
    shown, numbers = codes_of(column.iloc[first]), numbers_in(column.iloc[first])
    count = table.frame[table.count].to_numpy(np.float64)
    sides = side, "destination" if side == "origin" else "origin"
    for by in sides:
        if by not in ends.cells:
            ends.cells[by] = cells_of(table, getattr(ends, by), len(ends.labels))
    if any(is_public(ends.cells[by], at, numbers) for by in sides):
        return None
    found = []
    for by in sides:
        if by not in ends.statistics:
            ends.statistics[by] = list(_statistics(count, ends, by, table))
        if (by, side) not in ends.alike:
            ends.alike[by, side] = alike(values[at] for _, values in ends.statistics[by])
        words = [f"{words} of each {by}" for words, _ in ends.statistics[by]]
        log_chance = np.full(len(words), np.nan)
        for group in ends.alike[by, side]:
            log_chance[group.places] = _of_group(shown, numbers, group)
        every = zip(words, log_chance.tolist(), strict=True)
        found += [Statistic(*one) for one in every if not math.isnan(one[1])]
        of_weights = weighted_numbers(ends.cells[by], at, numbers)
        found.append(Statistic(f"how many small counts of each size has each {by}", of_weights))
    best = min(found, key=lambda one: one.log_chance)
    return best if best.log_chance < np.log(CHANCE / len(found)) else None


def _of_group(shown: npt.NDArray[np.intp], numbers: Numbers, group: Alike) -> Numbers:
    """Log chances of statistics that are known of the same areas; nan where these are too few."""
    known = group.known
    classes = shown[known]
    if len(classes) < 3 or len(np.unique(classes)) < 2:
        return np.full(len(group.places), np.nan)
    log_chance = log_chances(numbers[known], group.values)
    for place, y in enumerate(group.ranks):
        if y.max() < len(classes) / 2:  # else any column is a function of it
            log_chance[place] = min(log_chance[place], function_of_count(classes, y))
    return log_chance


def _statistics(
    count: Numbers, ends: Ends, by: str, table: FlowTable
) -> Iterator[tuple[str, Numbers]]:
    """Statistics by area, nan for an area without small counts."""
    key, number = getattr(ends, by), len(ends.labels)
    small = (count >= table.low) & (count <= table.high)
    of_small = pd.Series(count[small]).groupby(key[small])
    whole = pd.Series(count).groupby(key)

    def by_area(values: pd.Series) -> Numbers:
        return values.reindex(of_small.size().index).reindex(range(number)).to_numpy(np.float64)

    cells = by_area(of_small.size())
    if (whole.max() <= table.high).any():  # else it is a safe count
        yield "the largest count", by_area(whole.max())
    yield "the smallest count", by_area(whole.min())
    yield "the median of the counts", by_area(whole.median())
    yield "the largest small count", by_area(of_small.max())
    yield "the mean of the small counts", by_area(of_small.mean())
    yield "the median of the small counts", by_area(of_small.median())
    yield "the deviation of the small counts", by_area(of_small.std())
    yield "the number of different small counts", by_area(of_small.nunique())
    yield from _of_sums(count, ends, number, key)
    away = ends.origin != ends.destination
    sets: dict[str, Mask] = {"counts": np.ones(len(count), bool), "small counts": small}
    if not away.all():
        sets["counts without own areas"] = away
        sets["small counts without own areas"] = small & away
    yield from _of_ranks(count, sets, key, number)
    yield from _of_spread(count, sets, key, number)
    yield from _of_parts(table, count, small, key, number)
    for k in range(table.low, table.high + 1):
        for words, chosen in ((f"of {k}", count == k), (f"up to {k}", small & (count <= k))):
            if k == table.high and "up to" in words:  # which cells are small is public
                continue
            found = np.bincount(key[chosen], minlength=number).astype(np.float64)
            found = np.where(np.isfinite(cells), found, np.nan)
            yield f"the number of counts {words}", found
            yield f"the share of counts {words}", found / cells


def _of_parts(
    table: FlowTable, count: Numbers, small: Mask, key: npt.NDArray[np.intp], number: int
) -> Iterator[tuple[str, Numbers]]:
    """Sums and numbers of a part of the small counts, and some other sums that they enter."""
    empty = np.where(np.bincount(key[small], minlength=number) > 0, 0.0, np.nan)

    def added(rows: Mask, weight: Numbers) -> Numbers:
        return np.bincount(key[rows], weight[rows], minlength=number) + empty

    ones = np.ones(len(count))
    place = pd.Series(key).groupby(key).cumcount().to_numpy(np.float64) + 1.0
    yield "the sum of the small counts", added(small, count)
    yield "the sum of the cubes of the small counts", added(small, count**3)
    yield "the sum of the counts times their place", added(count >= 0, count * place)
    yield "the sum of the small counts times their place", added(small, count * place)
    yield "the number of odd small counts", added(small, count % 2)
    yield "the number of even small counts", added(small, 1.0 - count % 2)
    rows_of = np.maximum(np.bincount(key, minlength=number), 1)
    yield "the sum of the small counts over all rows", added(small, count) / rows_of
    yield "the number of odd counts", added(count >= 0, count % 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = added(count > 0, 1.0 / np.maximum(count, 1.0))
        cells = np.bincount(key, minlength=number).astype(np.float64)
        yield "the harmonic mean of the counts", cells / inverse
        shares = added(count == 1, ones) / added(small, count)
        yield "the share of ones in the small counts", shares
    of_small = pd.Series(count[small]).groupby(key[small])
    ends = (of_small.min() + of_small.max()).reindex(range(number))
    yield "the smallest and the largest small count together", np.asarray(ends, np.float64)
    for first in range(table.low, table.high + 1):
        for last in range(first + 1, table.high + 1):
            if (first, last) != (table.low, table.high):
                rows = small & (count >= first) & (count <= last)
                yield f"the sum of the counts from {first} to {last}", added(rows, count)
                if first > table.low:
                    yield f"the number of counts from {first} to {last}", added(rows, ones)


def _of_ranks(
    count: Numbers, sets: dict[str, Mask], key: npt.NDArray[np.intp], number: int
) -> Iterator[tuple[str, Numbers]]:
    """The second and third counts from either end, and quartiles."""
    for words, rows in sets.items():
        of = pd.Series(count[rows]).groupby(key[rows])
        ordered = pd.Series(count[rows]).sort_values(kind="stable")
        by = ordered.groupby(key[rows][ordered.index])
        for place, called in ((1, "second smallest"), (2, "third smallest"),
                              (-2, "second largest"), (-3, "third largest")):  # fmt: skip
            found = by.nth(place)
            values = np.full(number, np.nan)
            values[key[rows][found.index]] = found.to_numpy(np.float64)
            yield f"the {called} of the {words}", values
        for share, called in ((0.25, "lower"), (0.75, "upper")):
            quartile = of.quantile(share).reindex(range(number))
            yield f"the {called} quartile of the {words}", np.asarray(quartile, np.float64)


def _of_spread(
    count: Numbers, sets: dict[str, Mask], key: npt.NDArray[np.intp], number: int
) -> Iterator[tuple[str, Numbers]]:
    """Sums of functions of the counts: squares, products, entropy, shares."""
    whole = np.bincount(key, count, minlength=number)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.maximum(count, 1e-300))
        for words, rows in sets.items():
            k, n = key[rows], count[rows]
            cells = np.bincount(k, minlength=number).astype(np.float64)
            cells[cells == 0] = np.nan
            sums = np.bincount(k, n, minlength=number)
            squares = np.bincount(k, n**2, minlength=number)
            products = np.bincount(k, logs[rows], minlength=number)
            plain = np.bincount(k, n * logs[rows], minlength=number)
            yield f"the sum of the squares of the {words}", squares + 0.0 * cells
            yield f"the variance of the {words}", (squares - sums**2 / cells) / (cells - 1.0)
            yield f"the product of the {words}", np.exp(np.minimum(products, 700.0)) + 0.0 * cells
            yield f"the logarithm of the product of the {words}", products + 0.0 * cells
            yield f"the geometric mean of the {words}", np.exp(products / cells)
            yield f"the mean logarithm of the {words}", products / cells
            yield f"the concentration of the {words}", squares / sums**2
            yield f"the entropy of the {words}", np.log(sums) - plain / sums
            largest = pd.Series(n).groupby(k).max().reindex(range(number)).to_numpy(np.float64)
            yield f"the largest share of the {words}", largest / sums
            yield f"the share of the {words} in the sum", sums / whole
            for called, values in (("sum", sums + 0.0 * cells), ("mean", sums / cells)):
                for method in ("first", "average"):
                    rank = pd.Series(values).rank(method=method)
                    yield f"the rank of the {called} of the {words}", np.asarray(rank, np.float64)
                    last = rank.max() + 1.0 - rank
                    yield f"the rank of the {called} of the {words}", np.asarray(last, np.float64)


def _of_sums(
    count: Numbers, ends: Ends, number: int, key: npt.NDArray[np.intp]
) -> Iterator[tuple[str, Numbers]]:
    """Functions of totals, which publish them as well as the totals themselves."""
    away = ends.origin != ends.destination
    if not away.all():
        every = np.bincount(key, count, minlength=number)
        every = np.where(every > 0, every, np.nan)
        leaving = np.bincount(key[away], count[away], minlength=number) / every
        yield "the share that leaves", leaving
        yield "the share that stays", 1.0 - leaving
    for without, rows in (
        ("", np.ones(len(count), dtype=bool)),
        (" without own areas", ends.origin != ends.destination),
    ):
        sums, out, into = (
            np.bincount(of[rows], count[rows], minlength=number)
            for of in (key, ends.origin, ends.destination)
        )
        yield f"the sum of counts{without}", np.where(sums > 0, sums, np.nan)
        yield f"the square of the sum of counts{without}", np.where(sums > 0, sums**2, np.nan)
        yield f"the flows in and out together{without}", out + into
        with np.errstate(divide="ignore", invalid="ignore"):
            yield f"one over the sum of counts{without}", 1.0 / sums
            yield f"the ratio of inflow and outflow{without}", into / out
            yield f"the ratio of outflow and inflow{without}", out / into
        yield f"inflow less outflow{without}", into - out
        yield f"outflow less inflow{without}", out - into
        with np.errstate(divide="ignore"):
            for words, values in (
                ("logarithm", np.log(sums)),
                ("logarithm to base 10", np.log10(sums)),
                ("logarithm to base 2", np.log2(sums)),
                ("logarithm of one more than the sum", np.log1p(sums)),
                ("root", np.sqrt(sums)),
            ):
                finite = np.where(np.isfinite(values), values, np.nan)
                yield f"the {words} of the sum of counts{without}", finite
