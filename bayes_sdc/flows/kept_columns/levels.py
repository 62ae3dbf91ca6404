"""Counts that a column gives once the level of each area is read off the safe counts.

A share of the total of an area hides the count only from those who do not know the total, and the
safe counts beside their shares give it. The same holds of counts over what their areas lead one to
expect, and of distances from the mean of an area.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsmr
from scipy.special import betainc

from bayes_sdc.flows.kept_columns.evidence import log_or_none
from bayes_sdc.flows.kept_columns.numbers import last_digit

Codes = npt.NDArray[np.intp]
Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

ROUNDS = 12  # of adjusting the levels of both sides to each other
STEPS, PRECISE = 2_000, 1e-13  # of least squares
NEARLY_EXACT = 1e-9  # relative error of the computer
FINEST, FINE = 5e-8, 1e-3  # absolute and relative error of numbers whose last digit is not seen


class Followed(NamedTuple):
    """How many small counts follow from a column and from levels that everybody can read."""

    words: str
    log_chance: float  # of as much in shuffled counts
    share: float  # of the small counts


def from_shares(
    x: Numbers, count: Numbers, small: Mask, safe: Mask, keys: Mapping[str, Codes]
) -> Iterator[Followed]:
    """Bound small counts by a column that is a rounded share of one total, or its inverse.

    Parameters
    ----------
    x : ndarray
        Numbers of the column, nan where there is none: (row,).
    count : ndarray
        True counts: (row,).
    small, safe : ndarray of bool
        Rows whose counts are hidden, and rows whose counts everybody reads.
    keys : mapping from words to array of int
        Totals that each row may be a share of, such as "the total of the origin": the number of
        that total, from 0: (row,).

    Yields
    ------
    Followed
        Of each key and way for which every true count lies inside its bounds.

    Examples
    --------
    >>> count = np.array([1.0, 4.0, 50.0, 2.0, 98.0])
    >>> origin, small = np.array([0, 0, 0, 1, 1]), count < 10
    >>> x = np.round(count / np.array([55, 55, 55, 100, 100]), 3)
    >>> keys = {"the total of the origin": origin}
    >>> [(found.words, found.share) for found in from_shares(x, count, small, ~small, keys)]
    [('it may be a share of the total of the origin', 1.0)]
    """
    known = np.isfinite(x)
    if not known.any():
        return
    unit = last_digit(x[known])
    unseen = np.minimum(FINEST, FINE * np.abs(x))  # more digits than are looked for
    half = np.full(len(x), 0.5 * unit * (1.0 + NEARLY_EXACT)) if unit else unseen
    low, high = np.maximum(x - half, 0.0), x + half
    truth = count[small]
    with np.errstate(divide="ignore"):
        ways = {"a share of {}": (low, high), "{} over the count": (1.0 / high, 1.0 / low)}
    for (words, key), (way, (least, most)) in product(keys.items(), ways.items()):
        lower, upper = _scaled(least, most, count, safe & known & (high > 0), key)
        lower, upper = lower[small], upper[small]
        told = np.isfinite(lower)
        if not told.any() or not ((lower <= truth) & (truth <= upper))[told].all():
            continue
        place = np.sort(truth)
        left = np.searchsorted(place, upper[told], "right") - np.searchsorted(place, lower[told])
        narrower = float((left < len(place)).sum() / len(truth))
        log_chance = float(np.log(np.maximum(left, 1) / len(place)).sum())
        yield Followed(f"it may be {way.format(words)}", log_chance, narrower)


def _scaled(
    least: Numbers, most: Numbers, count: Numbers, safe: Mask, key: Codes
) -> tuple[Numbers, Numbers]:
    """Bounds of all counts, if each is what lies between two numbers, times the level of its key.

    Where safe counts contradict each other, or say nothing, there are none.
    """
    number = int(key.max(initial=0)) + 1
    floor, ceiling = np.zeros(number), np.full(number, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.maximum.at(floor, key[safe], (count / most)[safe])
        np.minimum.at(ceiling, key[safe], (count / least)[safe])
        none = (floor == 0.0) | (floor > ceiling * (1.0 + NEARLY_EXACT))
        floor[none] = ceiling[none] = np.nan
        lower = np.ceil(floor[key] * least - NEARLY_EXACT * np.maximum(count, 1.0))
        upper = np.floor(ceiling[key] * most + NEARLY_EXACT * np.maximum(count, 1.0))
    known = np.isfinite(floor[key]) & np.isfinite(least)
    return np.where(known, lower, np.nan), np.where(known & ~np.isnan(upper), upper, np.inf)


def from_levels(
    x: Numbers, count: Numbers, small: Mask, safe: Mask, ends: Sequence[Codes]
) -> Followed | None:
    """Predict small counts by a column times, or plus, levels of both areas read off safe counts.

    Parameters
    ----------
    x, count, small, safe
        As for :func:`from_shares`.
    ends : sequence of ndarray of int
        Areas of the rows.

    Returns
    -------
    Followed or None
        The way that gives most small counts beyond those that the levels alone give.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> o, d = np.divmod(np.arange(400), 20)
    >>> expected = np.outer(rng.uniform(1, 6, 20), rng.uniform(1, 6, 20)).ravel()
    >>> count = 1.0 + rng.poisson(expected)
    >>> small = count < 10
    >>> from_levels(count / expected, count, small, ~small, [o, d]).share > 0.8
    True
    """
    best: Followed | None = None
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(x != 0, 1.0 / x, np.nan)
    ones = np.ones(len(x))
    for how, values, times in (
        ("times the levels of its areas", x, True),
        ("the levels of its areas over it", inverse, True),
        ("plus the levels of its areas", x, False),
        ("the levels of its areas without it", -x, False),
    ):
        right = _right(values, count, safe, ends, times)[small]
        alone = _right(ones, count, safe, ends, times)[small]
        more, fewer = int((right & ~alone).sum()), int((alone & ~right).sum())
        share = (more - fewer) / len(right)
        if best is None or share > best.share:
            # of so many or more heads in more + fewer tosses
            log_chance = log_or_none(float(betainc(more, fewer + 1, 0.5))) if more else 0.0
            best = Followed(how, log_chance, share)
    return best


def left_over(x: Numbers, ends: Sequence[Codes]) -> tuple[Numbers, int]:
    """Return what is left of numbers beside the best levels of their areas, and how much is free.

    Parameters
    ----------
    x : ndarray
        Finite numbers: (row,).
    ends : sequence of ndarray of int
        Areas of the rows, one or two sides.

    Returns
    -------
    ndarray
        Residuals of least squares; 0 where rounding of the computer is all that is left: (row,).
    int
        Rows less the levels that they fix.

    Examples
    --------
    >>> o, d = np.divmod(np.arange(6), 3)
    >>> left_over(10.0 * o + d, [o, d])
    (array([0., 0., 0., 0., 0., 0.]), 2)
    """
    used = [np.unique(end, return_inverse=True)[1] for end in ends]
    sizes = [int(end.max(initial=-1)) + 1 for end in used]
    centred = x - x.mean() if len(x) else x
    rest = _said(centred, [-level for level in _fitted(centred, used, sizes)], used, times=False)
    rest[np.abs(rest) <= NEARLY_EXACT * max(1.0, float(np.abs(x).max(initial=0.0)))] = 0.0
    return rest, len(x) - sum(sizes) + (_apart(used, sizes) if len(used) > 1 else 0)


def _fitted(y: Numbers, ends: Sequence[Codes], sizes: Sequence[int]) -> list[Numbers]:
    """Levels of the areas of each side whose sums are nearest to numbers; 0 where none is."""
    first = np.cumsum([0, *sizes])
    columns = np.concatenate([end + start for end, start in zip(ends, first[:-1], strict=True)])
    rows = np.tile(np.arange(len(y)), len(ends))
    design = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(y), int(first[-1])))
    found = lsmr(design, y, atol=PRECISE, btol=PRECISE, conlim=0.0, maxiter=STEPS)[0]
    return np.split(np.asarray(found, np.float64), first[1:-1])


def _apart(ends: Sequence[Codes], sizes: Sequence[int]) -> int:
    """Number of sets of rows that share no area: each leaves one level open."""
    one, other = ends
    links = csr_array((np.ones(len(one)), (one, other + sizes[0])), shape=(sum(sizes),) * 2)
    return int(connected_components(links, directed=False)[0])


def _right(x: Numbers, count: Numbers, safe: Mask, ends: Sequence[Codes], times: bool) -> Mask:
    """Which counts are right when they are x times, or plus, a level of each of their areas."""
    usable = safe & np.isfinite(x) & ((x > 0) if times else True)
    rows = [end[usable] for end in ends]
    sizes = [int(end.max(initial=0)) + 1 for end in ends]
    own, target = x[usable], count[usable]
    # exact levels first: rounds alone come near them slowly where few counts are safe
    levels = _fitted(np.log(target / own) if times else target - own, rows, sizes)
    levels = [np.exp(level) for level in levels] if times else levels
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(ROUNDS):
            for side, key in enumerate(rows):
                said = _said(own, levels, rows, times)
                sums = np.bincount(key, target, sizes[side]), np.bincount(key, said, sizes[side])
                cells = np.bincount(key, minlength=sizes[side])
                step = sums[0] / sums[1] if times else (sums[0] - sums[1]) / cells
                step[cells == 0] = np.nan
                levels[side] = levels[side] * step if times else levels[side] + step
        said = _said(x, levels, ends, times)
        return np.asarray((np.abs(said - count) < 0.5) & (np.isfinite(x) & ((x > 0) | (not times))))


def _said(x: Numbers, levels: Sequence[Numbers], keys: Sequence[Codes], times: bool) -> Numbers:
    for level, key in zip(levels, keys, strict=True):
        x = x * level[key] if times else x + level[key]
    return x
