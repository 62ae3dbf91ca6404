r"""Tables with given totals, drawn by a heat bath along alternating cycles.

Cells are edges of a bipartite graph of totals (:mod:`bayes_sdc.flows.release.totals.margins`).
Adding t to every other edge of a closed path and taking t from the edges between leaves all totals
as they are. A step chooses a simple cycle, then t from all values that keep the counts within their
bounds, with probability proportional to the product of the cells' probabilities.

The choice of the cycle does not look at the counts, so each step is reversible. A random walk over
edges finds it: it never returns along the edge it arrived by, and ends when it meets a node again.
Every simple cycle can be found so, and the difference of two tables with equal totals splits into
simple cycles along which all partial steps are within the bounds: every table can be reached. Most
walks are closed sooner, where an edge leads back to their first node, or given up after some edges,
and most cycles are squares: short cycles move more easily. Edges on no cycle (the leaves of the
graph, again and again) are left out.

References
----------
P. Diaconis, B. Sturmfels, "Algebraic algorithms for sampling from conditional distributions",
Annals of Statistics 1998, doi:10.1214/aos/1030563990.
"""

from typing import NamedTuple

import numba
import numpy as np

SQUARE, SHORT = 0.7, 0.28  # shares of cycles of four edges, and of walks that may give up
LONGEST = 12  # edges of a short walk after which it gives up


class Graph(NamedTuple):
    """Edges by node, those on no cycle left out; a node's edges are sorted by their other end."""

    edges: np.ndarray  # (edge,) cells that lie on a cycle or between cycles
    left: np.ndarray  # (cell,)
    right: np.ndarray  # (cell,)
    left_start: np.ndarray  # (left node + 1,)
    left_edges: np.ndarray  # (edge,) by left node
    left_to: np.ndarray  # (edge,) right node of each of these
    right_start: np.ndarray  # (right node + 1,)
    right_edges: np.ndarray  # (edge,) by right node


def graph_of(left: np.ndarray, right: np.ndarray) -> Graph:
    """Sort the cells by node, and leave out leaves, again and again.

    Examples
    --------
    >>> graph_of(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 1])).edges
    array([0, 1, 2, 3])
    """
    n_left, n_right = int(left.max()) + 1, int(right.max()) + 1
    alive = np.ones(len(left), bool)
    while True:
        ends = np.bincount(left[alive], minlength=n_left)[left] < 2
        ends |= np.bincount(right[alive], minlength=n_right)[right] < 2
        ends &= alive
        if not ends.any():
            break
        alive[ends] = False
    edges = np.flatnonzero(alive)
    by_left = edges[np.lexsort((right[edges], left[edges]))]
    by_right = edges[np.lexsort((left[edges], right[edges]))]
    return Graph(
        edges,
        left.astype(np.int64),
        right.astype(np.int64),
        np.concatenate([[0], np.cumsum(np.bincount(left[edges], minlength=n_left))]),
        by_left,
        right[by_left].astype(np.int64),
        np.concatenate([[0], np.cumsum(np.bincount(right[edges], minlength=n_right))]),
        by_right,
    )


@numba.njit(cache=True, nogil=True)
def mix(
    rng: np.random.Generator,
    graph: Graph,
    edges: np.ndarray,
    log_weight: np.ndarray,
    y: np.ndarray,
    steps: int,
) -> int:
    """Take steps along cycles that start at some edges, and change the counts in place.

    Parameters
    ----------
    rng : Generator
        Source of all randomness.
    graph : Graph
        From :func:`graph_of`.
    edges : array of int
        Cells at which a cycle may start: all of a connected part of the graph.
    log_weight : array of float, shape (cell, upper + 1)
        Log-probability of each count.
    y : array of int, shape (cell,)
        Counts, changed in place.
    steps : int
        Number of cycles.

    Returns
    -------
    int
        Number of cycles that changed a count.
    """
    upper = log_weight.shape[1] - 1
    left_place = np.full(len(graph.left_start) - 1, -1, np.int64)
    right_place = np.full(len(graph.right_start) - 1, -1, np.int64)
    path = np.empty(len(left_place) + len(right_place) + 4, np.int64)
    weight = np.empty(2 * upper + 1)
    moved = 0
    for _ in range(steps):
        edge = edges[int(rng.random() * len(edges))]
        first, length = random_cycle(rng, graph, edge, path, left_place, right_place)
        if length > first:
            moved += _heat_bath(rng, path[first:length], log_weight, y, weight)
    return moved


@numba.njit(cache=True, nogil=True)
def random_cycle(
    rng: np.random.Generator,
    graph: Graph,
    edge: int,
    path: np.ndarray,
    left_place: np.ndarray,
    right_place: np.ndarray,
) -> tuple[int, int]:
    """Write a walk from an edge into ``path``; return where its cycle begins and ends.

    Where the end is not beyond the beginning there is none. ``path`` has room for all nodes;
    ``left_place`` and ``right_place``, by node, are -1 before and after.
    """
    kind = rng.random()
    if kind < SQUARE:
        return 0, random_square(rng, graph, edge, path)
    first, length = random_walk(
        rng, graph, edge, kind < SQUARE + SHORT, path, left_place, right_place
    )
    return first, length


@numba.njit(cache=True, nogil=True)
def random_square(rng: np.random.Generator, graph: Graph, edge: int, path: np.ndarray) -> int:
    """Write a cycle of four edges into ``path``, if there is one; return its length, or 0."""
    node = graph.right[edge]
    start, stop = graph.right_start[node], graph.right_start[node + 1]
    beside = graph.right_edges[start + int(rng.random() * (stop - start))]
    here, there = graph.left[edge], graph.left[beside]
    if here == there:
        return 0
    start, stop = graph.left_start[here], graph.left_start[here + 1]
    k = start + int(rng.random() * (stop - start))
    for _ in range(stop - start):
        if graph.left_to[k] != node:
            across = _edge_between(rng, graph, there, graph.left_to[k])
            if across >= 0:
                path[0], path[1], path[2], path[3] = edge, beside, across, graph.left_edges[k]
                return 4
        k = k + 1 if k + 1 < stop else start
    return 0


@numba.njit(cache=True, nogil=True)
def random_walk(
    rng: np.random.Generator,
    graph: Graph,
    edge: int,
    short: bool,
    path: np.ndarray,
    left_place: np.ndarray,
    right_place: np.ndarray,
) -> tuple[int, int]:
    """Write a walk into ``path``, as :func:`random_cycle`; a short one may find no cycle."""
    origin = graph.left[edge]
    # place of a node: number of the edge by which the walk leaves it
    left_place[origin], path[0], length = 0, edge, 1
    while True:
        node = graph.right[edge]
        if right_place[node] >= 0:
            first = right_place[node]
            break
        if short and length > LONGEST:
            first = length  # no cycle
            break
        if short and length > 1:
            back = _edge_between(rng, graph, origin, node)
            if back >= 0:
                path[length], first = back, 0
                length += 1
                break
        right_place[node] = length
        edge = _another(
            rng, graph.right_edges, graph.right_start[node], graph.right_start[node + 1], edge
        )
        path[length] = edge
        length += 1
        node = graph.left[edge]
        if left_place[node] >= 0:
            first = left_place[node]
            break
        left_place[node] = length
        edge = _another(
            rng, graph.left_edges, graph.left_start[node], graph.left_start[node + 1], edge
        )
        path[length] = edge
        length += 1
    for k in range(length):
        left_place[graph.left[path[k]]] = -1
        right_place[graph.right[path[k]]] = -1
    return first, length


@numba.njit(cache=True, nogil=True)
def _another(
    rng: np.random.Generator, of_node: np.ndarray, start: int, stop: int, edge: int
) -> int:
    """Choose an edge of a node with at least two, other than the one that the walk arrived by."""
    while True:
        chosen: int = of_node[start + int(rng.random() * (stop - start))]
        if chosen != edge:
            return chosen


@numba.njit(cache=True, nogil=True)
def _edge_between(rng: np.random.Generator, graph: Graph, origin: int, node: int) -> int:
    """Choose an edge from a left to a right node; -1 for none."""
    low, stop = graph.left_start[origin], graph.left_start[origin + 1]
    high = stop
    while low < high:
        middle = (low + high) // 2
        if graph.left_to[middle] < node:
            low = middle + 1
        else:
            high = middle
    found = 0
    while low + found < stop and graph.left_to[low + found] == node:
        found += 1
    if found == 0:
        return -1
    chosen: int = graph.left_edges[low + int(rng.random() * found)]
    return chosen


@numba.njit(cache=True, nogil=True)
def _heat_bath(
    rng: np.random.Generator,
    cycle: np.ndarray,
    log_weight: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
) -> int:
    """Draw how much is moved around a cycle; return 1 if that is not 0."""
    upper = log_weight.shape[1] - 1
    low, high = -upper, upper
    for k in range(0, len(cycle), 2):
        more, less = y[cycle[k]], y[cycle[k + 1]]
        low = max(low, -more, less - upper)
        high = min(high, upper - more, less)
        if low == high:
            return 0
    largest = -np.inf
    for t in range(low, high + 1):
        total = 0.0
        for k in range(0, len(cycle), 2):
            total += log_weight[cycle[k], y[cycle[k]] + t]
            total += log_weight[cycle[k + 1], y[cycle[k + 1]] - t]
        weight[t - low] = total
        largest = max(largest, total)
    total = 0.0
    for k in range(high - low + 1):
        weight[k] = np.exp(weight[k] - largest)
        total += weight[k]
    left, t = rng.random() * total, low
    while t < high and left >= weight[t - low]:
        left -= weight[t - low]
        t += 1
    if t == 0:
        return 0
    for k in range(0, len(cycle), 2):
        y[cycle[k]] += t
        y[cycle[k + 1]] -= t
    return 1
