"""Tables whose totals lie within bands, such as all that are rounded to the same multiple.

Cycles leave totals as they are (:mod:`bayes_sdc.flows.release.totals.alternating_cycles`); open
paths change the totals at their two ends. A step draws a path that visits no node twice, without a
look at the counts, and then how much is added to every other edge and taken from the edges between,
from all values that keep counts and both totals within their bounds. The difference of two tables
splits into simple cycles and open paths along which all partial steps are within the bounds, so
every table can be reached.
"""

from typing import NamedTuple

import numba
import numpy as np

from bayes_sdc.flows.release.totals.alternating_cycles import Graph

STOP = 0.5  # probability with which a path ends at each node


class Band(NamedTuple):
    """Bounds of the sums of small counts, from 0, and the graph with all its edges."""

    graph: Graph
    left: np.ndarray  # (left block, 2) least and largest sum
    right: np.ndarray  # (right block, 2)


def band_of(
    left: np.ndarray, right: np.ndarray, left_bounds: np.ndarray, right_bounds: np.ndarray
) -> Band:
    """Sort all cells by node, those on no cycle too."""
    n_left, n_right = len(left_bounds), len(right_bounds)
    by_left, by_right = np.lexsort((right, left)), np.lexsort((left, right))
    graph = Graph(
        np.arange(len(left)),
        left.astype(np.int64),
        right.astype(np.int64),
        np.concatenate([[0], np.cumsum(np.bincount(left, minlength=n_left))]),
        by_left,
        right[by_left].astype(np.int64),
        np.concatenate([[0], np.cumsum(np.bincount(right, minlength=n_right))]),
        by_right,
    )
    return Band(graph, left_bounds.astype(np.int64), right_bounds.astype(np.int64))


def rounding_bounds(whole: np.ndarray, small: np.ndarray, base: int) -> np.ndarray:
    """Bounds of sums of small counts, so that the whole totals round as the true ones do.

    Parameters
    ----------
    whole : array of int, shape (block,)
        True totals, safe counts included.
    small : array of int, shape (block,)
        Sums of the small counts in them, from 0.
    base : int
        Totals are rounded to the nearest multiple of it, halves up.

    Returns
    -------
    array of int, shape (block, 2)
        Least and largest sum.

    Examples
    --------
    >>> rounding_bounds(np.array([23, 27]), np.array([4, 4]), 5).tolist()
    [[4, 8], [0, 4]]
    """
    # halves go up: 2.5 is 3, as in the audit
    shown = (whole + base // 2) // base * base
    least = shown - base // 2 - whole + small
    return np.stack([least, least + base - 1], axis=1)


@numba.njit(cache=True, nogil=True)
def mix_within(
    rng: np.random.Generator,
    graph: Graph,
    left_bounds: np.ndarray,
    right_bounds: np.ndarray,
    log_weight: np.ndarray,
    y: np.ndarray,
    steps: int,
) -> int:
    """Take steps along open paths, and change the counts in place; return how many changed one.

    Parameters
    ----------
    rng : Generator
        Source of all randomness.
    graph : Graph
        With all edges.
    left_bounds, right_bounds : array of int, shape (block, 2)
        Least and largest sum of each block; the sums of ``y`` are within.
    log_weight : array of float, shape (cell, upper + 1)
        Log-probability of each count.
    y : array of int, shape (cell,)
        Counts, changed in place.
    steps : int
        Number of paths.
    """
    upper, moved = log_weight.shape[1] - 1, 0
    n_left, n_right = len(left_bounds), len(right_bounds)
    sums, bounds = np.zeros(n_left + n_right, np.int64), np.empty((n_left + n_right, 2), np.int64)
    bounds[:n_left], bounds[n_left:] = left_bounds, right_bounds
    for cell in range(len(y)):
        sums[graph.left[cell]] += y[cell]
        sums[n_left + graph.right[cell]] += y[cell]
    path, seen = np.empty(n_left + n_right, np.int64), np.full(n_left + n_right, -1)
    weight = np.empty(2 * upper + 1)
    for step in range(steps):
        edge = graph.edges[int(rng.random() * len(graph.edges))]
        ends = graph.left[edge], n_left + graph.right[edge]
        turn = int(rng.random() * 2)
        first, node = ends[turn], ends[1 - turn]
        seen[first] = seen[node] = step
        path[0], length = edge, 1
        while rng.random() >= STOP:
            if node < n_left:
                start, stop = graph.left_start[node], graph.left_start[node + 1]
                edge = graph.left_edges[start + int(rng.random() * (stop - start))]
                following = n_left + graph.right[edge]
            else:
                start, stop = graph.right_start[node - n_left], graph.right_start[node - n_left + 1]
                edge = graph.right_edges[start + int(rng.random() * (stop - start))]
                following = graph.left[edge]
            if seen[following] == step:
                length = 0
                break
            seen[following], node = step, following
            path[length] = edge
            length += 1
        if length == 0:
            continue
        sign = 1 if length % 2 == 1 else -1
        low, high = bounds[first, 0] - sums[first], bounds[first, 1] - sums[first]
        if sign > 0:
            low, high = (
                max(low, bounds[node, 0] - sums[node]),
                min(high, bounds[node, 1] - sums[node]),
            )
        else:
            low, high = (
                max(low, sums[node] - bounds[node, 1]),
                min(high, sums[node] - bounds[node, 0]),
            )
        for k in range(length):
            count = y[path[k]]
            if k % 2 == 0:
                low, high = max(low, -count), min(high, upper - count)
            else:
                low, high = max(low, count - upper), min(high, count)
        t = _amount(rng, path[:length], log_weight, y, low, high, weight)
        if t != 0:
            moved += 1
            sums[first] += t
            sums[node] += sign * t
            for k in range(length):
                y[path[k]] += t if k % 2 == 0 else -t
    return moved


@numba.njit(cache=True, nogil=True)
def _amount(
    rng: np.random.Generator,
    path: np.ndarray,
    log_weight: np.ndarray,
    y: np.ndarray,
    low: int,
    high: int,
    weight: np.ndarray,
) -> int:
    """Draw how much is added to every other edge of a path."""
    if low >= high:
        return 0
    largest = -np.inf
    for t in range(low, high + 1):
        total = 0.0
        for k in range(len(path)):
            total += log_weight[path[k], y[path[k]] + (t if k % 2 == 0 else -t)]
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
    return t
