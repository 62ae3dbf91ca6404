"""Columns that describe an area by its small counts: how many ones it has, or its smallest count.

Such a column is a function of the area alone, like a name, and still made from what is hidden.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import gammaln

from bayes_sdc.flows.kept_columns.evidence import function_of_count
from bayes_sdc.flows.kept_columns.functions import codes_of
from bayes_sdc.flows.kept_columns.numbers import last_digit, numbers_in
from bayes_sdc.flows.kept_columns.totals import Ends
from bayes_sdc.flows.table.read import FlowTable

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

NEARLY_ALL = 0.95  # of the areas have the statistic
FEWEST_AREAS = 6  # with equal multiples, none of which is an accident
DIGITS = 1e-3  # relative distance that rounding may leave
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
    found = []
    for by in (side, "destination" if side == "origin" else "origin"):
        if by not in ends.statistics:
            ends.statistics[by] = list(_statistics(count, ends, by, table))
        for words, values in ends.statistics[by]:
            here = values[at]
            known = np.isfinite(here)
            if known.sum() < 3 or len(np.unique(shown[known])) < 2:
                continue
            y = np.unique(here[known], return_inverse=True)[1]
            log_chance = _equal(numbers[known], here[known])
            if y.max() < known.sum() / 2:  # else any column is a function of it
                log_chance = min(log_chance, function_of_count(shown[known], y))
            found.append(Statistic(f"{words} of each {by}", log_chance))
    best = min(found, key=lambda one: one.log_chance, default=None)
    return best if best is not None and best.log_chance < np.log(CHANCE / len(found)) else None


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
    for k in range(table.low, table.high + 1):
        for words, chosen in ((f"of {k}", count == k), (f"up to {k}", small & (count <= k))):
            if k == table.high and "up to" in words:  # which cells are small is public
                continue
            found = np.bincount(key[chosen], minlength=number).astype(np.float64)
            found = np.where(np.isfinite(cells), found, np.nan)
            yield f"the number of counts {words}", found
            yield f"the share of counts {words}", found / cells


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


def totals_together(
    table: FlowTable, one: pd.Series, other: pd.Series, side: str, ends: Ends
) -> str | None:
    """Return how two columns of areas give totals together, as a rate beside the population does.

    Parameters
    ----------
    table : FlowTable
        Counts as they are.
    one, other : Series
        In the order of the rows; functions of one side.
    side, ends
        As for :func:`statistic_in`.
    """
    at, first = np.unique(getattr(ends, side), return_index=True)
    x, y = (numbers_in(column.iloc[first]) for column in (one, other))
    count = table.frame[table.count].to_numpy(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ways = {
            "product": x * y,
            "ratio": x / y,
            "inverse ratio": y / x,
            "sum": x + y,
            "difference": np.abs(x - y),
        }
    for rows in (np.ones(len(count), dtype=bool), ends.origin != ends.destination):
        for by in ("origin", "destination"):
            key = getattr(ends, by)[rows]
            sums = np.bincount(key, count[rows], minlength=len(ends.labels))[at]
            for words, values in ways.items():
                if _multiples(values, sums):
                    return f"their {words} gives the sum of the counts of each {by}"
    return None


def _multiples(values: Numbers, sums: Numbers) -> bool:
    """Whether values are one multiple of sums, rounded, in nearly all areas and not by accident."""
    known = np.isfinite(values) & (values > 0) & (sums > 0)
    if known.sum() < FEWEST_AREAS:
        return False
    ratio = values[known] / sums[known]
    return bool((np.abs(ratio / np.median(ratio) - 1.0) <= DIGITS).mean() >= NEARLY_ALL)


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
        yield f"the flows in and out together{without}", out + into
        with np.errstate(divide="ignore", invalid="ignore"):
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


def _equal(values: Numbers, statistic: Numbers) -> float:
    """Log chance that shuffled numbers are the statistic, rounded, in nearly all areas; else 0."""
    known = np.isfinite(values)
    if known.sum() < 3:
        return 0.0
    values, statistic = values[known], statistic[known]
    half = 0.5 * last_digit(values) * (1 + 1e-9) + 1e-9
    right = [(np.abs(values - scale * statistic) <= half).mean() for scale in (1.0, 100.0, 1000.0)]
    if max(right) < NEARLY_ALL:
        return 0.0
    kinds = np.unique(values, return_counts=True)[1]
    return float(gammaln(kinds + 1).sum() - gammaln(len(values) + 1))
