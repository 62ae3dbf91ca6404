"""Small counts that a release cannot change, because the totals it keeps pin them, and the remedy.

A pinned cell has one count in all tables with these totals, so its released count is the truth.
They are found in time that grows with the number of cells (:mod:`bayes_sdc.flows.audit.network`).
The remedy is to merge totals until no cell is pinned: one of an area and a partner group with the
area's other ones, then one of an area with those of other areas. What was merged without need is
taken out again.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from bayes_sdc.flows.audit.network import Network, unpinned
from bayes_sdc.flows.release.totals.bands import Band
from bayes_sdc.flows.release.totals.kept import (
    BESIDE,
    BY_ITSELF,
    PINS,
    WITH_ALL,
    WITH_AREA,
    KeptSide,
    KeptTotals,
)
from bayes_sdc.flows.release.totals.margins import Margins

WORK = 4_000_000  # cells that are looked at while merged totals are tried by themselves


def pinned_cells(
    margins: Margins, y: np.ndarray, upper: int, band: Band | None = None
) -> np.ndarray:
    """Find the cells that have one count in all tables with these totals.

    Parameters
    ----------
    margins : Margins
        The totals.
    y : array of int, shape (cell,)
        Counts from 0 with these totals; any such table gives the same answer.
    upper : int
        Largest count.
    band : Band, optional
        Bounds of the totals, where they are not exact.

    Returns
    -------
    array of bool, shape (cell,)

    References
    ----------
    D. Gusfield, "A graph theoretic approach to statistical data security", SIAM Journal on
    Computing 17, 1988, doi:10.1137/0217034.

    Examples
    --------
    >>> square = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 1])
    >>> margins = Margins(*square, np.array([3, 1, 2]), np.array([2, 4]))
    >>> pinned_cells(margins, np.array([2, 1, 0, 1, 2]), 8).tolist()
    [False, False, False, False, True]
    """
    n_left, n_right = len(margins.left_sums), len(margins.right_sums)
    cells, outside = len(y), n_left + n_right
    tail, head = [margins.left], [margins.right + n_left]
    bounds = [np.tile([0, upper], (cells, 1))]
    flow = [y]
    if band is not None:  # the surplus or shortfall of a total comes from outside
        tail += [np.full(n_left, outside), n_left + np.arange(n_right)]
        head += [np.arange(n_left), np.full(n_right, outside)]
        bounds += [band.left, band.right]
        flow += [margins.left_sums, margins.right_sums]
    both = np.concatenate(bounds).astype(np.int64)
    network = Network(
        tail=np.concatenate(tail).astype(np.int64),
        head=np.concatenate(head).astype(np.int64),
        lower=both[:, 0],
        upper=both[:, 1],
        nodes=outside + 1,
        total_of_arc=np.full(len(both), -1),
        total_of_node=np.full(outside + 1, -1),
    )
    return np.asarray(~unpinned(network, np.concatenate(flow).astype(np.int64)))[:cells]


def without_pinned(
    kept: KeptTotals,
    y: np.ndarray,
    upper: int,
    *,
    pinned: Callable[[KeptTotals], np.ndarray] | None = None,
    fits: Callable[[KeptTotals], bool] | None = None,
) -> KeptTotals:
    """Merge totals until no cell is pinned; where that is impossible, keep no total.

    Parameters
    ----------
    kept : KeptTotals
        What is wanted.
    y : array of int, shape (cell,)
        True counts, from 0.
    upper : int
        Largest count.
    pinned : callable, optional
        Cells that follow from some totals; by default from these alone, with nothing published.
    fits : callable, optional
        Whether some totals can be kept; by default those that pin no cell.

    Notes
    -----
    Which totals are merged depends on the true counts, like any choice of what to suppress. All
    cells that are pinned are seen to at once. In the end what was merged is tried by itself again,
    in halves (:func:`taken_out`).
    """

    def alone(kept: KeptTotals) -> np.ndarray:
        return pinned_cells(kept.margins(y), y, upper, kept.band(y))

    pinned = pinned or alone
    wanted = kept
    while kept.sides:
        found = pinned(kept)
        if not found.any():
            break
        kept = merged_near(kept, found, PINS)
    return taken_out(
        kept, wanted, fits or (lambda kept: not pinned(kept).any()), trials=WORK // len(y)
    )


def merged_near(kept: KeptTotals, cells: np.ndarray, why: int, *, more: int = 1) -> KeptTotals:
    """Merge around these cells, or around more and more of those that share a total with them.

    Parameters
    ----------
    kept, cells, why, more
        As for :func:`merge_around`. Where all that is of use is merged around some cells, because
        their other totals are published, those of their neighbours tell them.
    """
    merged = merge_around(kept, cells, why, more=more)
    while not merged.sides and not cells.all():
        near = cells.copy()
        for side in kept.sides:
            near |= np.isin(side.cells, side.cells[cells])
        cells = np.ones_like(cells) if (near == cells).all() else near
        merged = merge_around(kept, cells, why, more=more)
    return merged


def merge_around(kept: KeptTotals, cells: np.ndarray, why: int, *, more: int = 1) -> KeptTotals:
    """Merge further one of the two totals of each of these cells.

    It is the smaller one, or the other one if that is merged as far as is of any use already.

    Parameters
    ----------
    kept : KeptTotals
        With at least one side.
    cells : array of bool, shape (cell,)
        At least one.
    why : int
        What is wrong with these cells.
    more : int
        Totals to add to those that are all in one already, where one of the cells is among them.

    Returns
    -------
    KeptTotals
        No side where nothing is left to be merged.
    """
    blocks = [side.cells for side in kept.sides]
    sizes = [np.bincount(block)[block] for block in blocks]
    merged = [(side.level >= side.ends)[side.of] for side in kept.sides]
    first = np.argmin(np.where(merged, len(cells) + np.array(sizes), sizes), axis=0)
    sides = [
        _merged(side, cells & (first == number), why, more)
        for number, side in enumerate(kept.sides)
    ]
    if _same_levels(sides, kept.sides):
        # all of these are in one already: then the others
        sides = [_merged(side, cells, why, more) for side in kept.sides]
        if _same_levels(sides, kept.sides):
            return KeptTotals((), (), why=why)
    return replace(kept, sides=tuple(sides))


def _same_levels(some: Sequence[KeptSide], others: Sequence[KeptSide]) -> bool:
    return all(np.array_equal(a.level, b.level) for a, b in zip(some, others, strict=True))


def _merged(side: KeptSide, cells: np.ndarray, why: int, more: int) -> KeptSide:
    """Merge the blocks of some cells one step further."""
    if not cells.any():
        return side
    level, block, ends = side.level.copy(), side.block, side.ends
    inside = np.isin(block, block[side.of[cells]])
    last = level == WITH_ALL
    level[inside] = np.minimum(level[inside] + (1 if side.area is not None else 2), ends[inside])
    size = np.bincount(side.of, minlength=len(level))
    if side.area is not None:
        area = np.unique(side.labels[side.area], return_inverse=True)[1]
        full = inside & (side.level == WITH_AREA) & (ends == WITH_AREA)
        _join_of_area(level, size, area, ends, np.unique(area[full]))
    # a single total is merged with nothing, and one that still pins cells needs others
    lacks = more if (inside & last).any() else int((level == WITH_ALL).sum() == 1)
    while lacks > 0 and (free := (level < WITH_ALL) & (ends == WITH_ALL)).any():
        now = side._replace(level=level).block
        rest = np.flatnonzero(free)
        members = np.bincount(now, size)
        joined = now == now[rest[np.argmin(members[now[rest]])]]
        level[joined] = WITH_ALL
        lacks -= int(joined.sum())
    if (ends < WITH_ALL).any() and (level == WITH_ALL).sum() == 1:
        level[level == WITH_ALL] = BY_ITSELF  # all others are published, and so it follows
    own = np.bincount(side.of, cells, minlength=len(level)) > 0
    beside = np.where(side.why == 0, BESIDE, side.why)
    reason = np.where(level == side.level, side.why, np.where(own, why, beside))
    return side._replace(level=level, why=reason)


def _join_of_area(
    level: np.ndarray, size: np.ndarray, area: np.ndarray, ends: np.ndarray, full: np.ndarray
) -> None:
    """Give a lone merged total of an area the smallest other one; without any it goes further.

    So does each area of ``full``, whose total is published: merging further would be of no use.
    """
    merged = np.bincount(area[level == WITH_AREA], minlength=int(area.max()) + 1)
    for one in np.union1d(np.flatnonzero(merged == 1), full):
        others = np.flatnonzero((area == one) & (level == BY_ITSELF) & (ends > BY_ITSELF))
        if len(others):
            level[others[np.argmin(size[others])]] = WITH_AREA
        elif merged[one] == 1:
            lone = (area == one) & (level == WITH_AREA)
            # where the area's total is published, one that is left follows from it
            level[lone] = np.where(ends[lone] == WITH_ALL, WITH_ALL, BY_ITSELF)


def taken_out(
    kept: KeptTotals, wanted: KeptTotals, fits: Callable[[KeptTotals], bool], *, trials: int
) -> KeptTotals:
    """Keep merged totals as they were wanted again, as many as can be.

    Halves are tried at once, the large totals first, then halves of what does not fit, down to
    single ones as far as the trials go. When all were tried one by one, none that is merged could
    be kept beside all that are.

    Parameters
    ----------
    kept, wanted : KeptTotals
        What fits, and what is less merged.
    fits : callable
        Whether some totals can be kept.
    trials : int
        Most calls of ``fits``.
    """
    if not kept.sides:
        return kept
    start = np.cumsum([0, *(len(side.level) for side in kept.sides)])
    size = np.concatenate([np.bincount(side.of, minlength=len(side.level)) for side in kept.sides])
    merged = np.concatenate(
        [now.level > then.level for now, then in zip(kept.sides, wanted.sides, strict=True)]
    )
    order = np.flatnonzero(merged)
    halves = np.array_split(order[np.argsort(-size[order], kind="stable")], 2)
    waiting = [half for half in halves if len(half)]
    while waiting and trials > 0:
        some, trials = waiting.pop(0), trials - 1
        sides = [
            _as_wanted(now, then, some[(some >= first) & (some < first + len(now.level))] - first)
            for now, then, first in zip(kept.sides, wanted.sides, start[:-1], strict=True)
        ]
        tried = replace(kept, sides=tuple(sides))
        if fits(tried):
            kept = tried
        elif len(some) > 1:
            waiting += np.array_split(some, 2)
    return kept


def _as_wanted(side: KeptSide, wanted: KeptSide, totals: np.ndarray) -> KeptSide:
    """Take some totals out of what they are merged with; one that is left alone is out too."""
    level, why = side.level.copy(), side.why.copy()
    level[totals], why[totals] = wanted.level[totals], wanted.why[totals]
    block = side._replace(level=level).block
    alone = (np.bincount(block)[block] == 1) & (level > BY_ITSELF)
    level[alone] = BY_ITSELF
    why[level == BY_ITSELF] = 0
    return side._replace(level=level, why=why)
