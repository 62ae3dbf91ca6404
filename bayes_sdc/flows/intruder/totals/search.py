"""Alternating cycles through each small cell: random ones, and a search that misses none.

Most cells lie on many short cycles, and of some random ones the widest is taken, along which most
tables lie. Where none of them can move, a search breadth first finds a short one: from both ends of
the cell through cells that can move that way, up and down in turn, until they meet. It is a simple
cycle, of any length, along which a step is possible. There is none for pinned cells alone, which
are found beforehand in linear time (:mod:`bayes_sdc.flows.audit.network`), so that no search is in
vain. A cycle that is found serves all its cells that lack one.
"""

from typing import NamedTuple

import numba
import numpy as np

from bayes_sdc.flows.audit.network import Network, unpinned
from bayes_sdc.flows.release.totals.alternating_cycles import (
    LONGEST,
    SQUARE,
    Graph,
    random_square,
    random_walk,
)

MOST = LONGEST + 4  # cells of a random cycle: walks that do not close give up
TRIES, IN_VAIN = 40, 10  # cycles from which the widest is taken, and tries if none can move


class Cycles(NamedTuple):
    """Cycles one after another, and the one of each cell; every second cell moves with a cell."""

    path: np.ndarray  # (step,) cells of the cycles
    start: np.ndarray  # (cycle + 1,) where each begins in the path
    of: np.ndarray  # (cell,) cycle; -1: there is none, the totals and all other counts tell it
    sign: np.ndarray  # (cell,) 1: it moves with the first cell of its cycle; -1: against it
    low: np.ndarray  # (cell,) least change of the cell within the bounds of all, 0 or less
    high: np.ndarray  # (cell,) largest one
    order: np.ndarray  # (cell,) cells by cycle, those on none first

    def through(self, cell: int) -> np.ndarray:
        """Cells of the cycle of a cell; those that move with it are at even places."""
        cycle = self.of[cell]
        if cycle < 0:
            return np.zeros(0, np.int64)
        path = self.path[self.start[cycle] : self.start[cycle + 1]]
        return path if self.sign[cell] > 0 else np.roll(path, -1)


def lone_cells(low: np.ndarray, high: np.ndarray) -> Cycles:
    """Each cell by itself, where no other moves with it.

    Parameters
    ----------
    low, high : array of int, shape (cell,)
        Least and largest change.
    """
    each = np.arange(len(low))
    one = np.ones(len(low), np.int64)
    return Cycles(
        each, np.arange(len(low) + 1), each, one, low.astype(np.int64), high.astype(np.int64), each
    )


def widest_cycles(
    rng: np.random.Generator, graph: Graph, y: np.ndarray, upper: int | np.ndarray
) -> Cycles:
    """Find for each cell that is not pinned a cycle along which several tables lie.

    It is the widest of some random ones, and where these cannot move, a short one that can.

    Parameters
    ----------
    rng : Generator
        Source of the random cycles.
    graph : Graph
        Of the totals.
    y : array of int, shape (cell,)
        True counts, from 0.
    upper : int or array of int, shape (cell,)
        Largest count.
    """
    n = len(y)
    largest = np.broadcast_to(np.asarray(upper, np.int64), n).copy()
    best, length = np.zeros((n, MOST), np.int32), np.zeros(n, np.int64)
    low, high, of = np.zeros(n, np.int64), np.zeros(n, np.int64), np.full(n, -1)
    sign = np.ones(n, np.int64)
    free = _free(graph, y, largest)
    if not free.any():
        none = np.zeros(0, np.int64)
        return Cycles(none, np.zeros(1, np.int64), of, sign, low, high, np.arange(n))
    _widest(rng, graph, y, largest, free, best, length, low, high)
    has = low < high
    of[has] = np.arange(int(has.sum()))
    walked = best[has][np.arange(MOST) < length[has, np.newaxis]].astype(np.int64)
    searched, lengths = _search_all(graph, y, largest, free, of, sign, low, high)
    start = np.concatenate([[0], np.cumsum(np.concatenate([length[has], lengths]))])
    path = np.concatenate([walked, searched])
    return Cycles(path, start, of, sign, low, high, np.argsort(of, kind="stable"))


def _free(graph: Graph, y: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Cells that have several counts in the tables with these totals: (cell,) of bool."""
    edges, n_left, n_right = graph.edges, len(graph.left_start) - 1, len(graph.right_start) - 1
    free = np.zeros(len(y), dtype=bool)
    network = Network(
        tail=graph.left[edges],
        head=graph.right[edges] + n_left,
        lower=np.zeros(len(edges), np.int64),
        upper=upper[edges],
        nodes=n_left + n_right,
        total_of_arc=np.full(len(edges), -1),
        total_of_node=np.full(n_left + n_right, -1),
    )
    if len(edges):
        free[edges] = unpinned(network, y[edges])
    return free


@numba.njit(cache=True, nogil=True)
def _range(cycle: np.ndarray, y: np.ndarray, upper: np.ndarray) -> tuple[int, int]:
    """Least and largest change of the first cell of a cycle within the bounds of all."""
    least, most = -y[cycle[0]], upper[cycle[0]] - y[cycle[0]]
    for k in range(0, len(cycle), 2):
        more, less = cycle[k], cycle[k + 1]
        least = max(least, -y[more], y[less] - upper[less])
        most = min(most, upper[more] - y[more], y[less])
    return least, most


@numba.njit(cache=True, nogil=True)
def _widest(
    rng: np.random.Generator,
    graph: Graph,
    y: np.ndarray,
    upper: np.ndarray,
    free: np.ndarray,
    best: np.ndarray,
    length: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> None:
    """Take the widest of some random cycles of each cell that is free, in place."""
    left_place = np.full(len(graph.left_start) - 1, -1, np.int64)
    right_place = np.full(len(graph.right_start) - 1, -1, np.int64)
    path = np.empty(len(left_place) + len(right_place) + 4, np.int64)
    for edge in graph.edges:
        if not free[edge]:
            continue
        for tried in range(TRIES):
            if tried == IN_VAIN and low[edge] == high[edge]:
                break
            if rng.random() < SQUARE:
                first, n = 0, random_square(rng, graph, edge, path)
            else:
                first, n = random_walk(rng, graph, edge, True, path, left_place, right_place)
            if first > 0 or n == 0:
                continue
            least, most = _range(path[:n], y, upper)
            if most - least > high[edge] - low[edge]:
                length[edge], low[edge], high[edge] = n, least, most
                for k in range(n):
                    best[edge, k] = path[k]
            if high[edge] - low[edge] == upper[edge]:
                break


@numba.njit(cache=True, nogil=True)
def _longer(values: np.ndarray, used: int) -> np.ndarray:
    """Give twice the room to the values that are used."""
    longer = np.empty(2 * len(values), np.int64)
    for k in range(used):
        longer[k] = values[k]
    return longer


@numba.njit(cache=True, nogil=True)
def _search_all(
    graph: Graph,
    y: np.ndarray,
    upper: np.ndarray,
    free: np.ndarray,
    of: np.ndarray,
    sign: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Search a cycle for each free cell that has none, in place; return them and their lengths."""
    n_left = len(graph.left_start) - 1
    nodes = n_left + len(graph.right_start) - 1
    by, queue = np.empty((2, nodes), np.int64), np.empty((2, nodes), np.int64)
    seen = np.full((2, nodes), -1)
    scratch = np.empty(nodes + 1, np.int64)
    found, lengths = np.empty(1024, np.int64), np.empty(64, np.int64)
    used, number, first = 0, 0, of.max() + 1
    for edge in graph.edges:
        if not free[edge] or of[edge] >= 0:
            continue
        n = _short(graph, y, upper, free, edge, True, by, seen, queue, scratch)
        if n == 0:
            n = _short(graph, y, upper, free, edge, False, by, seen, queue, scratch)
        if n == 0:  # none: a cell that is not pinned always has one
            continue
        cycle = scratch[:n]
        least, most = _range(cycle, y, upper)
        while used + len(cycle) > len(found):
            found = _longer(found, used)
        if number == len(lengths):
            lengths = _longer(lengths, number)
        lengths[number] = len(cycle)
        for k in range(len(cycle)):
            cell = cycle[k]
            found[used + k] = cell
            if of[cell] < 0:
                of[cell] = first + number
                sign[cell] = 1 if k % 2 == 0 else -1
                low[cell], high[cell] = (least, most) if k % 2 == 0 else (-most, -least)
        used += len(cycle)
        number += 1
    return found[:used], lengths[:number]


@numba.njit(cache=True, nogil=True)
def _short(
    graph: Graph,
    y: np.ndarray,
    upper: np.ndarray,
    free: np.ndarray,
    edge: int,
    up: bool,
    by: np.ndarray,
    seen: np.ndarray,
    queue: np.ndarray,
    cycle: np.ndarray,
) -> int:
    """Write a short cycle along which a cell can go up, or down; return its length, or 0.

    Two searches, from its right node on (0) and from its left node back (1), until they meet:
    where each node leads to several, both see few nodes. ``seen`` holds the last search that met a
    node, as twice its cell, plus one for up.
    """
    if (up and y[edge] == upper[edge]) or (not up and y[edge] == 0):
        return 0
    n_left, mark = len(graph.left_start) - 1, 2 * edge + int(up)
    goal, begin, meet = graph.left[edge], n_left + graph.right[edge], -1
    queue[0, 0], queue[1, 0] = begin, goal
    seen[0, begin] = seen[1, goal] = mark
    head, tail = np.zeros(2, np.int64), np.ones(2, np.int64)
    while meet < 0 and head[0] < tail[0] and head[1] < tail[1]:
        side = 0 if tail[0] - head[0] <= tail[1] - head[1] else 1
        node = queue[side, head[side]]
        head[side] += 1
        left = node < n_left
        if left:
            start, stop = graph.left_start[node], graph.left_start[node + 1]
        else:
            start, stop = graph.right_start[node - n_left], graph.right_start[node - n_left + 1]
        # cells that are passed from left to right move with the cell, others against it
        more = (left == (side == 0)) == up
        for k in range(start, stop):
            cell = graph.left_edges[k] if left else graph.right_edges[k]
            room = upper[cell] - y[cell] if more else y[cell]
            if cell == edge or room == 0 or not free[cell]:
                continue
            other = n_left + graph.right[cell] if left else graph.left[cell]
            if seen[side, other] != mark:
                seen[side, other], by[side, other] = mark, cell
                queue[side, tail[side]] = other
                tail[side] += 1
                if seen[1 - side, other] == mark:  # the only node that both have met
                    meet = other
                    break
    if meet < 0:
        return 0
    cycle[0], length, node = edge, 1, meet
    for side in range(2):
        first = length
        while node != (begin if side == 0 else goal):
            cell = by[side, node]
            cycle[length] = cell
            length += 1
            node = n_left + graph.right[cell] if node < n_left else graph.left[cell]
        if side == 0:
            for k in range((length - first) // 2):  # from the cell on, not back to it
                one, other = first + k, length - 1 - k
                cycle[one], cycle[other] = cycle[other], cycle[one]
            node = meet
    return length
