"""Swapping: pairs of movers exchange their destinations, so all totals by area stay.

A swap takes one mover of each of two cells to the two cells across, a square of the table. Only
small cells take part and stay small, so that it is the same cells that are protected. Swapping
starts at the truth and ends when the rate is reached: unswapped counts are true, and totals by area
are exact.

References
----------
T. Dalenius, S. P. Reiss, "Data-swapping: a technique for disclosure control", Journal of
Statistical Planning and Inference 6, 1982, doi:10.1016/0378-3758(82)90058-1.
"""

import numba
import numpy as np

from bayes_sdc.errors import InputError
from bayes_sdc.flows.release.totals.alternating_cycles import Graph, random_square

TRIES = 50  # squares tried for each mover to swap, before swapping stops


def swapped(
    graph: Graph, y: np.ndarray, upper: int, *, rate: float, rng: np.random.Generator
) -> np.ndarray:
    """Swap movers until a share of them, or as many as can be found, was taken from its cell.

    Parameters
    ----------
    graph : Graph
        Cells as edges between areas.
    y : array of int, shape (cell,)
        True counts, from 0; movers that can be taken.
    upper : int
        Largest count.
    rate : float
        Movers taken from a cell, as a share of all that can be.
    rng : Generator
        Source of the swaps.

    Returns
    -------
    array of int, shape (cell,)
        From 0 to upper, with the totals of both kinds.

    Raises
    ------
    InputError
        If the rate is not above 0 and at most 1.
    """
    if not 0.0 < rate <= 1.0:
        raise InputError(f"rate must be above 0 and at most 1; it is {rate}")
    result = y.astype(np.int64).copy()
    if len(graph.edges):
        _swap(rng, graph, result, upper, int(np.ceil(rate * y.sum())))
    return result


@numba.njit(cache=True, nogil=True)
def _swap(rng: np.random.Generator, graph: Graph, y: np.ndarray, upper: int, wanted: int) -> None:
    path = np.empty(4, np.int64)
    taken, tries = 0, TRIES * wanted
    while taken < wanted and tries > 0:
        tries -= 1
        edge = graph.edges[int(rng.random() * len(graph.edges))]
        # a mover, not a cell, is chosen at random
        if rng.random() * upper >= y[edge]:
            continue
        if random_square(rng, graph, edge, path) == 0:
            continue
        if y[path[2]] > 0 and y[path[1]] < upper and y[path[3]] < upper:
            y[path[0]] -= 1
            y[path[2]] -= 1
            y[path[1]] += 1
            y[path[3]] += 1
            taken += 2


def swapping_likelihood(
    graph: Graph,
    y: np.ndarray,
    released: np.ndarray,
    upper: int,
    *,
    rate: float,
    repetitions: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Log-probability of what is released of each cell for each true count, by repetition.

    Whether a cell keeps its count depends on its place: one on no square always does, one on many
    seldom does. So that is counted cell by cell; the new values of changed counts are counted over
    all cells.

    Parameters
    ----------
    graph, y, upper, rate
        As for :func:`swapped`.
    released : array of int, shape (cell,)
        Counts after swapping, from 0.
    repetitions : int
        Swapped tables that are counted.
    rng : Generator
        Source of the swaps.

    Returns
    -------
    array of float, shape (cell, candidate)
    """
    width = upper + 1
    # half a count each, so that nothing that may happen is ruled out
    moved, same = np.full((width, width), 0.5), np.full(len(y), 0.5)
    for _ in range(repetitions):
        found = swapped(graph, y, upper, rate=rate, rng=rng)
        np.add.at(moved, (y, found), 1.0)
        same += found == y
    np.fill_diagonal(moved, 0.0)
    moved /= moved.sum(axis=1, keepdims=True)
    kept = same / (repetitions + 1.0)
    fixed = np.ones(len(y), dtype=bool)
    fixed[graph.edges] = False
    kept[fixed] = 1.0
    likelihood = (1.0 - kept)[:, None] * moved.T[released]
    likelihood[np.arange(len(y)), released] = kept
    return np.asarray(np.log(np.maximum(likelihood, np.finfo(float).tiny)))
