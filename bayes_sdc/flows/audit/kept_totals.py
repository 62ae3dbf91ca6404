"""Small counts that a release cannot change, because the totals it keeps pin them, and the remedy.

A pinned cell has one count in all tables with these totals, so its released count is the truth.
They are found in time that grows with the number of cells (:mod:`bayes_sdc.flows.audit.network`).
The remedy is to merge totals until no cell is pinned: one of an area and a partner group with the
area's other ones, then one of an area with those of other areas.
"""

import numpy as np

from bayes_sdc.flows.audit.network import Network, unpinned
from bayes_sdc.flows.release.totals.bands import Band
from bayes_sdc.flows.release.totals.kept import BY_ITSELF, WITH_ALL, WITH_AREA, KeptSide, KeptTotals
from bayes_sdc.flows.release.totals.margins import Margins


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


def without_pinned(kept: KeptTotals, y: np.ndarray, upper: int) -> KeptTotals:
    """Merge totals until no cell is pinned; where that is impossible, keep no total.

    Parameters
    ----------
    kept : KeptTotals
        What is wanted.
    y : array of int, shape (cell,)
        True counts, from 0.
    upper : int
        Largest count.

    Notes
    -----
    Which totals are merged depends on the true counts, like any choice of what to suppress.
    """
    while kept.sides:
        pinned = pinned_cells(kept.margins(y), y, upper, kept.band(y))
        if not pinned.any():
            break
        kept = merge_around(kept, pinned)
    return kept


def merge_around(kept: KeptTotals, cells: np.ndarray) -> KeptTotals:
    """Merge further the smaller of the two totals of each of these cells.

    Parameters
    ----------
    kept : KeptTotals
        With at least one side.
    cells : array of bool, shape (cell,)
        At least one.

    Returns
    -------
    KeptTotals
        No side where nothing is left to be merged.
    """
    blocks = [side.cells for side in kept.sides]
    sizes = [np.bincount(block)[block] for block in blocks]
    smallest = np.argmin(sizes, axis=0)
    sides = []
    for number, (side, block) in enumerate(zip(kept.sides, blocks, strict=True)):
        marked = np.unique(block[cells & (smallest == number)])
        sides.append(_merged(side, marked) if len(marked) else side)
    if all(np.array_equal(a.level, b.level) for a, b in zip(sides, kept.sides, strict=True)):
        # the smaller totals are all in one already: then the others
        sides = [_merged(side, np.unique(side.cells[cells])) for side in kept.sides]
        if all(np.array_equal(a.level, b.level) for a, b in zip(sides, kept.sides, strict=True)):
            return KeptTotals((), ())
    return KeptTotals(kept.names, tuple(sides), kept.base)


def _merged(side: KeptSide, marked: np.ndarray) -> KeptSide:
    """Merge some blocks one step further."""
    level, block = side.level.copy(), side.block
    inside = np.isin(block, marked)
    last = level == WITH_ALL
    level[inside & (level < WITH_ALL)] += 1 if side.area is not None else 2
    size = np.bincount(side.of, minlength=len(level))
    if side.area is not None:
        _join_of_area(level, size, np.unique(side.labels[side.area], return_inverse=True)[1])
    # a single total is merged with nothing, and one that still pins cells needs another
    grow = bool((inside & last).any()) or (level == WITH_ALL).sum() == 1
    rest = np.flatnonzero(level < WITH_ALL)
    if grow and len(rest):
        now = side._replace(level=level).block
        members = np.bincount(now, size)
        level[now == now[rest[np.argmin(members[now[rest]])]]] = WITH_ALL
    return side._replace(level=level)


def _join_of_area(level: np.ndarray, size: np.ndarray, area: np.ndarray) -> None:
    """Give a lone merged total of an area the smallest other one; without any it goes further."""
    merged = np.bincount(area[level == WITH_AREA], minlength=int(area.max()) + 1)
    for one in np.flatnonzero(merged == 1):
        others = np.flatnonzero((area == one) & (level == BY_ITSELF))
        if len(others):
            level[others[np.argmin(size[others])]] = WITH_AREA
        else:
            level[(area == one) & (level == WITH_AREA)] = WITH_ALL
