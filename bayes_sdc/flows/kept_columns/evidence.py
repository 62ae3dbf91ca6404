"""Whether a column reveals small counts: the chance that shuffled rows would look the same.

Everything here takes arrays with one entry per small count: ``y`` from 0, ``codes`` (values of a
column, numbered from 0) or ``x`` (numbers). Chances are exact where they can be, and upper bounds
otherwise; a caller multiplies them by the number of questions it asks.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, gammaincc, gammaln, log_ndtr, pdtrc

Codes = npt.NDArray[np.intp]
Numbers = npt.NDArray[np.float64]

SHUFFLES = 30
DECIMALS = 6  # to which two numbers count as equal
COMMON = 5  # expected rows of a value and a count
LEAST_VARIANCE = 0.25  # that of half a chi-squared is half its degrees of freedom
LEAST_KINDS = 3  # values of a count that is small; with two a flag says all
MOST_ASSIGNMENTS = 20_000  # up to which they are counted, beyond they are bounded


class Narrowed(NamedTuple):
    """The value of a column that leaves the fewest counts for what chance would leave."""

    log_chance: float
    value: int
    cells: int
    counts: npt.NDArray[np.intp]  # that are left, from 0


class Information(NamedTuple):
    """Mutual information beyond that of shuffled rows."""

    share: float  # of the entropy of the counts
    log_chance: float  # of as much in shuffled rows


def narrowed(codes: Codes, y: Codes) -> Narrowed:
    """Find the value whose rows hold the fewest different counts, by chance.

    The chance that a random set of m rows holds only counts of a set S is hypergeometric; it is
    multiplied by the number of sets as large as S, the number of sizes, and that of values.

    Examples
    --------
    >>> y = np.tile(np.arange(9), 20)
    >>> flag = narrowed((y < 3).astype(np.intp), y)
    >>> flag.counts.tolist(), flag.log_chance < -40
    ([0, 1, 2], True)
    """
    _, y = np.unique(y, return_inverse=True)
    table = crossed(codes, y)
    cells, left = table.sum(axis=1), table > 0
    within = left @ table.sum(axis=0)  # rows whose count is one of those left
    n, kinds, size = len(y), table.shape[1], left.sum(axis=1)
    log_chance = (
        _log_choose(within, cells) - _log_choose(n, cells) + _log_choose(kinds, size)
        + np.log(kinds) + np.log(max(int((cells > 0).sum()), 1))
    )  # fmt: skip
    log_chance[cells == 0] = 0.0
    best = int(np.argmin(log_chance))
    return Narrowed(
        min(float(log_chance[best]), 0.0), best, int(cells[best]), np.flatnonzero(left[best])
    )


def function_of_count(codes: Codes, y: Codes) -> float:
    """Log chance that shuffled values are the same in all rows with equal counts; 0 if they differ.

    Exact while the ways to spread the values over the counts are few, else an upper bound.

    Examples
    --------
    >>> y = np.array([0, 0, 0, 1, 1, 2])
    >>> bool(np.isclose(np.exp(function_of_count((y == 0).astype(np.intp), y)), 2 / 20))
    True
    """
    _, codes = np.unique(codes, return_inverse=True)
    _, y = np.unique(y, return_inverse=True)
    table = crossed(codes, y)
    if len(table) < 2 or ((table > 0).sum(axis=0) > 1).any():
        return 0.0
    values, kinds = table.sum(axis=1), np.bincount(y)
    arrangements = gammaln(len(y) + 1) - gammaln(values + 1).sum()
    ways = _ways(tuple(values.tolist()), kinds.tolist())
    log_ways = len(kinds) * np.log(len(values)) if ways is None else math.log(ways)
    return min(float(log_ways - arrangements), 0.0)


def _ways(values: tuple[int, ...], kinds: list[int]) -> int | None:
    """Number of ways to give every kind one value so that each value has its rows, or None."""
    states = {values: 1}
    for kind in sorted(kinds, reverse=True):
        following: dict[tuple[int, ...], int] = {}
        for left, ways in states.items():
            for place, rows in enumerate(left):
                if rows >= kind:
                    rest = (*left[:place], rows - kind, *left[place + 1 :])
                    following[rest] = following.get(rest, 0) + ways
        if len(following) > MOST_ASSIGNMENTS:
            return None
        states = following
    return sum(states.values())


def information(codes: Codes, y: Codes, rng: np.random.Generator) -> Information:
    """Mutual information of values and counts, against that of shuffled rows.

    In shuffled rows n times the information is half a chi-squared where every value and count are
    common. Elsewhere its distribution is taken as the gamma with the mean and variance of shuffles.

    Examples
    --------
    >>> y = np.tile(np.arange(9), 40)
    >>> found = information(y // 2, y, np.random.default_rng(1))
    >>> 0.6 < found.share < 0.75, found.log_chance < -100
    (True, True)
    """
    _, codes = np.unique(codes, return_inverse=True)
    n, kinds = len(y), int(y.max(initial=0)) + 1
    terms = np.arange(n + 1) * np.log(np.maximum(np.arange(n + 1), 1))
    shift = codes * kinds
    alone = terms[n] - terms[np.bincount(codes)].sum() - terms[np.bincount(y)].sum()
    entropy = float(terms[n] - terms[np.bincount(y)].sum())
    if entropy <= 0.0:
        return Information(0.0, 0.0)

    def shared(counts: Codes) -> float:
        return float(alone + terms[np.bincount(shift + counts)].sum())

    values, counts = np.bincount(codes), np.bincount(y)
    counts = counts[counts > 0]
    if values.min() * counts.min() >= COMMON * n:
        mean = variance = (len(values) - 1) * (len(counts) - 1) / 2
    else:
        shuffled = np.array([shared(y[rng.permutation(n)]) for _ in range(SHUFFLES)])
        mean, variance = float(shuffled.mean()), float(shuffled.var(ddof=1))
    beyond = shared(y) - mean
    if mean <= 0.0 or beyond <= 0.0:
        return Information(0.0, 0.0)
    variance = max(variance, LEAST_VARIANCE)
    chance = float(gammaincc(mean**2 / variance, (mean + beyond) * mean / variance))
    return Information(beyond / entropy, log_or_none(chance))


def log_or_none(chance: float) -> float:
    """Log of a chance; minus infinity where it is too small for a number.

    Examples
    --------
    >>> log_or_none(1.0), log_or_none(0.0)
    (0.0, -inf)
    """
    return math.log(chance) if chance > 0.0 else -math.inf


def equal_but_for_a_constant(x: Numbers, y: Codes) -> Information:
    """Share of rows in which numbers are the counts plus one constant, beyond shuffled rows.

    A copy with errors in every other row is not a function of the count, leaves no gap and is in no
    perfect order. The rows that agree in shuffled rows are about Poisson; the chance is multiplied
    by the number of constants.

    Examples
    --------
    >>> y = np.tile(np.arange(9), 10)
    >>> half = np.where(np.arange(90) % 2, y + 1.0, 100.0)
    >>> found = equal_but_for_a_constant(half, y)
    >>> 0.4 < found.share < 0.5, found.log_chance < -40
    (True, True)
    """
    x = np.round(x, DECIMALS)  # or a number and its own shift would not agree
    shifts, of = np.unique(np.round(x - y, DECIMALS)[np.isfinite(x)], return_inverse=True)
    if len(shifts) < 2:
        return Information(0.0, 0.0)
    agree = np.bincount(of)
    best = int(np.argmax(agree))
    if agree[best] < 2:  # one row always agrees with itself
        return Information(0.0, 0.0)
    values, kinds = (dict(zip(*np.unique(z, return_counts=True), strict=True)) for z in (x, y))
    shifted = {kind: np.round(kind + shifts[best], DECIMALS) for kind in kinds}
    expected = sum(n * values.get(shifted[kind], 0) for kind, n in kinds.items()) / len(y)
    log_chance = log_or_none(pdtrc(agree[best] - 1, expected)) + math.log(len(shifts))
    return Information(float((agree[best] - expected) / len(y)), min(log_chance, 0.0))


def in_order(x: Numbers, y: Codes | Numbers, strata: Codes | None = None) -> tuple[float, float]:
    """Rank correlation inside strata, and the log chance of one this far from 0 in shuffled rows.

    Examples
    --------
    >>> y = np.tile(np.arange(9), 10)
    >>> r, log_chance = in_order(np.exp(y), y)
    >>> round(r, 6), log_chance < -40
    (1.0, True)
    """
    known = np.isfinite(x)
    if known.sum() < 3:
        return 0.0, 0.0
    groups = np.zeros(len(x), np.intp) if strata is None else strata
    groups = np.unique(groups[known], return_inverse=True)[1]
    cells = np.bincount(groups)
    a, b = (_centred_ranks(values[known], groups, cells) for values in (x, y))
    xy, xx, yy = (np.bincount(groups, product) for product in (a * b, a * a, b * b))
    alive = (xx > 0) & (yy > 0)
    if not alive.any():
        return 0.0, 0.0
    r = float(xy[alive].sum() / np.sqrt(xx[alive].sum() * yy[alive].sum()))
    z = abs(float(xy.sum())) / np.sqrt((xx[alive] * yy[alive] / (cells[alive] - 1)).sum())
    return r, min(float(np.log(2) + log_ndtr(-z)), 0.0)


def _centred_ranks(
    values: npt.NDArray[np.generic], groups: Codes, cells: npt.NDArray[np.intp]
) -> Numbers:
    """Ranks inside groups, ties at their mean, less the mean rank."""
    order = np.lexsort((values, groups))
    inside = np.arange(len(values)) - np.repeat(np.cumsum(cells) - cells, cells)
    sorted_values, sorted_groups = values[order], groups[order]
    new = np.r_[True, (np.diff(sorted_groups) != 0) | (sorted_values[1:] != sorted_values[:-1])]
    tie = np.cumsum(new) - 1
    rank = np.bincount(tie, inside) / np.bincount(tie)
    ranks = np.empty(len(values))
    ranks[order] = rank[tie] - (cells[sorted_groups] - 1) / 2
    return ranks


def beside_levels(x: Numbers, y: Numbers, free: int) -> tuple[float, float]:
    """Correlation of what levels of areas leave of both, and the log chance of one this far from 0.

    Parameters
    ----------
    x, y : ndarray
        Residuals: (row,).
    free : int
        Rows less the levels that were taken out.

    Examples
    --------
    >>> y = np.tile([-1.0, 0.0, 1.0], 20)
    >>> r, log_chance = beside_levels(2.0 * y, y, 40)
    >>> round(r, 6), log_chance < -25
    (1.0, True)
    """
    norms = float(np.linalg.norm(x)), float(np.linalg.norm(y))
    if free < 3 or min(norms) == 0.0:
        return 0.0, 0.0
    r = float(np.clip(x @ y / (norms[0] * norms[1]), -1.0, 1.0))
    log_chance = log_or_none(float(betainc((free - 1) / 2, 0.5, 1.0 - r * r)))
    # few whole numbers agree by chance more often than measured ones, and single rows far out more
    # often than ranks
    by_rank = in_order(x, y.round(DECIMALS))[1]
    return r, max(log_chance, by_rank, -free * math.log(LEAST_KINDS))


def in_perfect_order(x: Numbers, y: Codes) -> float:
    """Log chance that shuffled counts rise or fall with x without exception; 0 if they do not."""
    known = np.isfinite(x)
    if not known.all() or len(x) < 3:
        return 0.0
    for sign in (1, -1):
        order = np.lexsort((y, sign * x))
        same_x = np.diff(x[order]) == 0
        step = np.diff(y[order])
        if (step >= 0).all() and (step[same_x] == 0).all():
            arrangements = gammaln(len(y) + 1) - gammaln(np.bincount(y) + 1).sum()
            return min(float(np.log(2) - arrangements), 0.0)
    return 0.0


def crossed(codes: Codes, y: Codes) -> npt.NDArray[np.intp]:
    """Rows by value and count: (value, count)."""
    kinds = int(y.max(initial=0)) + 1
    flat = np.bincount(codes * kinds + y, minlength=(int(codes.max(initial=0)) + 1) * kinds)
    return flat.reshape(-1, kinds)


def _log_choose(n: npt.ArrayLike, m: npt.ArrayLike) -> Numbers:
    n, m = np.asarray(n, np.float64), np.asarray(m, np.float64)
    return np.asarray(gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1))
