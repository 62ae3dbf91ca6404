"""Whether numbers of areas go by a statistic: all statistics that are known of the same areas.

A table has hundreds of statistics, and every column of areas is held against each, so they are
compared as rows of one array.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from bayes_sdc.flows.kept_columns.numbers import last_digit

Codes = npt.NDArray[np.intp]
Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

NEARLY_ALL = 0.95  # of the areas have the statistic
MULTIPLES = (1.0, 100.0, 1000.0)  # of it: per cent and per mille
WIDE = 40.0  # halves of a last digit that a line rises, else any column of sizes lies near one
FEWEST_ON_A_LINE = 6  # different values of a statistic, else many lines meet them


class Alike(NamedTuple):
    """Statistics that are known of the same areas.

    Parameters
    ----------
    places : array of int, shape (statistic,)
        Among all statistics.
    known : array of bool, shape (area,)
        The areas, among all that a column speaks of.
    values : array of float, shape (statistic, known area)
        The statistics, all finite.
    ranks : array of int, shape (statistic, known area)
        Of these values, equal ones alike, from 0.
    """

    places: Codes
    known: Mask
    values: Numbers
    ranks: Codes


def alike(statistics: Iterable[Numbers]) -> list[Alike]:
    """Put statistics together that are known of the same areas.

    Examples
    --------
    >>> found = alike([np.array([5.0, np.nan]), np.array([1.0, 2.0]), np.array([3.0, np.nan])])
    >>> [one.places.tolist() for one in found]
    [[0, 2], [1]]
    """
    rows = np.array(list(statistics))
    masks, of = np.unique(np.isfinite(rows), axis=0, return_inverse=True)
    groups = []
    for group in dict.fromkeys(of.ravel().tolist()):
        places = np.flatnonzero(of.ravel() == group)
        values = rows[np.ix_(places, masks[group])]
        ranks = [np.unique(one, return_inverse=True)[1] for one in values]
        groups.append(Alike(places, masks[group], values, np.array(ranks, dtype=np.intp)))
    return groups


def log_chances(values: Numbers, statistics: Numbers) -> Numbers:
    """Log chance that shuffled numbers go by each statistic, in nearly all areas; 0 if they do not.

    They are the statistic, rounded, or a multiple of it, or that and a number: a total and 7, or
    1,000 less it, tells as much as the total.

    Parameters
    ----------
    values : array of float, shape (area,)
        What a column holds; nan where there is no number.
    statistics : array of float, shape (statistic, area)
        Finite.

    Returns
    -------
    array of float, shape (statistic,)
        0 or less.

    Examples
    --------
    >>> totals = np.array([[30.0, 82.0, 11.0, 64.0, 45.0, 97.0], [1.0, 1.0, 2.0, 2.0, 1.0, 1.0]])
    >>> log_chances(1000.0 - totals[0], totals).round(1).tolist()
    [-3.0, 0.0]
    """
    known = np.isfinite(values)
    none = np.zeros(len(statistics))
    if known.sum() < 3:
        return none
    values, statistics = values[known], statistics[:, known]
    half = 0.5 * last_digit(values) * (1 + 1e-9) + 1e-9
    with np.errstate(over="ignore", invalid="ignore"):  # a product of counts can be huge
        met = [_nearly_all(np.abs(values - scale * statistics) <= half) for scale in MULTIPLES]
        equal = np.any(met, axis=0)
        line = ~equal
        line[line] = _on_a_line(values, statistics[line], half)
    kinds = np.unique(values, return_counts=True)[1]
    log_chance = float(gammaln(kinds + 1).sum() - gammaln(len(values) + 1))
    of_line = min(log_chance + 2.0 * float(np.log(len(values))), 0.0)  # two areas set the line
    return np.where(equal, log_chance, np.where(line, of_line, none))


def _nearly_all(met: Mask) -> Mask:
    return np.asarray(met.mean(axis=1) >= NEARLY_ALL)


def _on_a_line(values: Numbers, statistics: Numbers, half: float) -> Mask:
    """Whether nearly all values lie on one line over each statistic, up to half a last digit."""
    order = np.argsort(statistics, axis=1, kind="stable")
    ordered = np.take_along_axis(statistics, order, axis=1)
    different = 1 + (np.diff(ordered, axis=1) > 0).sum(axis=1)
    apart = len(values) // 2  # areas far from each other, so that rounding hardly turns the line
    low, high = order[:, : len(values) - apart], order[:, apart:]
    run = ordered[:, apart:] - ordered[:, : len(values) - apart]
    usable = (different >= FEWEST_ON_A_LINE) & (run > 0).any(axis=1)
    slope, length = np.zeros(len(statistics)), np.ones(len(statistics))
    rise = (values[high] - values[low])[usable]
    steps = run[usable]
    with np.errstate(divide="ignore"):
        slope[usable] = _median(np.where(steps > 0, rise / steps, np.nan))
    length[usable] = _median(np.where(steps > 0, steps, np.nan))
    width = ordered[:, -1] - ordered[:, 0]
    usable &= (slope != 0.0) & ~(np.abs(slope) * width < WIDE * half)
    at = slope[:, np.newaxis] * statistics
    start = np.median(values - at, axis=1)[:, np.newaxis]
    size = 1e-9 * float(np.abs(values).max())
    away = np.abs(statistics - np.median(statistics, axis=1)[:, np.newaxis])
    turned = half * away / length[:, np.newaxis]
    return usable & _nearly_all(np.abs(values - start - at) <= half + turned + size)


def _median(rows: Numbers) -> Numbers:
    """Median of the numbers of each row, which has one; missing ones are left aside."""
    ordered, number = np.sort(rows, axis=1), np.isfinite(rows).sum(axis=1)
    middle = np.stack([(number - 1) // 2, number // 2], axis=1)
    return np.asarray(np.take_along_axis(ordered, middle, axis=1).mean(axis=1))
