"""Margins that a release keeps: which cells each total sums, as a bipartite graph of totals.

A set of totals splits the small cells into blocks with known sums, one partition for each kind of
total. Where two partitions remain after dropping those implied by finer ones, every cell is an edge
between a block of the first and a block of the second, and tables with equal totals differ by flows
around closed paths of that graph. With one partition the second is a copy of the first.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_flow

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.read import FlowTable

Margin = Literal["origin", "destination", "group", "origin-by-group", "destination-by-group"]
MARGINS: tuple[str, ...] = get_args(Margin)
COLUMNS = {
    "origin": ["origin"],
    "destination": ["destination"],
    "group": ["group"],
    "origin-by-group": ["group", "origin"],
    "destination-by-group": ["group", "destination"],
}


class Margins(NamedTuple):
    """Totals as a bipartite graph: cells are edges between blocks of two partitions."""

    left: np.ndarray  # (cell,) block in the first partition
    right: np.ndarray  # (cell,) block in the second partition
    left_sums: np.ndarray  # (left block,) sum of the small counts, from 0
    right_sums: np.ndarray  # (right block,)


def check_margins(totals: str | Sequence[str]) -> tuple[str, ...]:
    """Names of margins, from a sequence or from text with commas; "none" and "" are no margins.

    They come in one order, whatever that of the names, so that no result depends on it.

    Examples
    --------
    >>> check_margins("destination, origin")
    ('origin', 'destination')
    >>> check_margins("none")
    ()
    """
    if isinstance(totals, str):
        totals = [] if totals.strip() in ("", "none") else totals.split(",")
    try:
        names = tuple(dict.fromkeys(str(name).strip() for name in totals))
    except TypeError:
        raise InputError(f"totals {totals!r} are not names of margins: {list(MARGINS)}") from None
    for name in names:
        if name not in MARGINS:
            raise InputError(f"totals {name!r} is unknown; choose from {list(MARGINS)}")
    return tuple(name for name in MARGINS if name in names)


def finest_of(table: FlowTable, totals: Sequence[str]) -> dict[str, np.ndarray]:
    """Margins that all others follow from, at most two, with the block of each cell.

    Raises
    ------
    InputError
        If they are more than a two-way table.
    """
    cells = table.cells
    finest = not_following({name: _blocks(cells, COLUMNS[name]) for name in totals})
    if len(finest) > 2:
        raise InputError(
            f"totals by {', '.join(finest)} are more than a two-way table and cannot be kept "
            "together; ask for origin-by-group or destination-by-group instead of group, or drop "
            "one of them"
        )
    return finest


def not_following(partitions: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Partitions of cells into blocks whose sums do not follow from those of another one.

    Examples
    --------
    >>> state, area = np.array([0, 0, 1]), np.array([0, 1, 2])
    >>> list(not_following({"state": state, "area": area}))
    ['area']
    """
    finest: dict[str, np.ndarray] = {}
    for name, blocks in partitions.items():
        others = [other for kept, other in partitions.items() if kept != name]
        finer = [other for other in others if _refines(other, blocks)]
        # of two equal partitions the first stays
        equal_later = [o for o in finer if _refines(blocks, o) and not _is_in(o, finest)]
        if len(finer) == len(equal_later):
            finest[name] = blocks
    return finest


LEAST_BLOCKS = 10  # totals that must all agree to rule out chance


def totals_kept(table: FlowTable, released: np.ndarray) -> list[str]:
    """Names of the margins that every data set of a release has exactly as the table.

    Only totals with a small count that changed are compared, and there must be :data:`LEAST_BLOCKS`
    of them: fewer may agree by chance.

    Parameters
    ----------
    table : FlowTable
        The true table.
    released : array of int, shape (dataset, cell)
        Released counts, from 0.
    """
    y = table.cells["y"].to_numpy(np.int64)
    kept = []
    for name, columns in COLUMNS.items():
        blocks = _blocks(table.cells, columns)
        told = np.bincount(blocks, (released != y).any(axis=0)) > 0
        equal = [(_sums(blocks, data) == _sums(blocks, y))[told].all() for data in released]
        if told.sum() >= LEAST_BLOCKS and all(equal):
            kept.append(name)
    return kept


def _blocks(cells: pd.DataFrame, columns: list[str]) -> np.ndarray:
    """Number the blocks of cells that agree in all columns, in sorted order."""
    number: np.ndarray = cells.groupby(columns, sort=True).ngroup().to_numpy(np.int64)
    return number


def _refines(finer: np.ndarray, coarser: np.ndarray) -> bool:
    """Whether every block of one partition lies in one block of the other."""
    pairs = np.unique(np.stack([finer, coarser]), axis=1)
    return bool(pairs.shape[1] == len(np.unique(finer)))


def _is_in(blocks: np.ndarray, chosen: dict[str, np.ndarray]) -> bool:
    return any(blocks is other for other in chosen.values())


def _sums(blocks: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.bincount(blocks, y).astype(np.int64)


def repaired(margins: Margins, y: np.ndarray, upper: int) -> np.ndarray:
    """Change counts so that all totals are met, by one maximum flow.

    The result depends on the totals and on the counts that are given, never on the true counts: a
    chain that starts here and stops early adds noise, not disclosure.

    Parameters
    ----------
    margins : Margins
        Totals that some table of counts from 0 to ``upper`` has.
    y : array of int, shape (cell,)
        Counts from 0 to ``upper``.
    upper : int
        Largest count.

    Returns
    -------
    array of int, shape (cell,)
        Counts from 0 to ``upper`` with these totals.

    Raises
    ------
    InputError
        If no table of such counts has these totals.

    References
    ----------
    R. Ahuja, T. Magnanti, J. Orlin, "Network Flows", 1993, section 6.2.

    Examples
    --------
    >>> cells = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> margins = Margins(*cells, np.array([3, 1]), np.array([2, 2]))
    >>> y = repaired(margins, np.zeros(4, np.int64), 8)
    >>> int(y[0] + y[1]), int(y[2] + y[3]), int(y[0] + y[2])
    (3, 1, 2)
    """
    n_left, n_right = len(margins.left_sums), len(margins.right_sums)
    to_send = margins.left_sums - _sums_of(margins.left, y, n_left)
    to_return = _sums_of(margins.right, y, n_right) - margins.right_sums
    excess = np.concatenate([to_send, to_return])
    source, sink = n_left + n_right, n_left + n_right + 1
    gives, takes = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
    tail, head = margins.left, margins.right + n_left
    graph = coo_array(
        (
            np.concatenate([upper - y, y, excess[gives], -excess[takes]]).astype(np.int32),
            (
                np.concatenate([tail, head, np.full(len(gives), source), takes]),
                np.concatenate([head, tail, gives, np.full(len(takes), sink)]),
            ),
        ),
        shape=(sink + 1, sink + 1),
    ).tocsr()
    graph.sum_duplicates()
    result = maximum_flow(graph, source, sink)
    wanted = int(excess[gives].sum())
    if result.flow_value != wanted or wanted != -int(excess[takes].sum()):
        raise InputError(
            f"no table of counts from 0 to {upper} above the lower bound has these totals; they "
            "do not belong to these cells"
        )
    return _spread(margins, y, upper, result.flow.tocsr())


def _sums_of(blocks: np.ndarray, y: np.ndarray, length: int) -> np.ndarray:
    return np.bincount(blocks, y, length).astype(np.int64)


def _spread(margins: Margins, y: np.ndarray, upper: int, flow: csr_array) -> np.ndarray:
    """Add the flow between two blocks to the cells that join them, one after another."""
    n_left, n_right = len(margins.left_sums), len(margins.right_sums)
    between = np.asarray(flow[margins.left, margins.right + n_left]).ravel().astype(np.int64)
    pair = margins.left * n_right + margins.right
    order = np.argsort(pair, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(pair[order]) != 0])
    result = y.copy()
    room = np.where(between > 0, upper - y, y)[order]
    filled = np.cumsum(room) - room
    filled -= np.repeat(filled[starts], np.diff(np.r_[starts, len(order)]))
    step = np.clip(np.abs(between[order]) - filled, 0, room)
    result[order] += np.sign(between[order]) * step
    return result
