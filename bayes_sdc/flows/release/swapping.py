"""Swapping: pairs of movers exchange their destinations, so all totals by area stay.

A swap takes one mover of each of two cells to the two cells across, a square of the table. Only
small cells take part and stay small, so that it is the same cells that are protected. Swapping
starts at the truth and ends when the rate is reached: what is left unswapped is true, and totals by
area are exact.

References
----------
T. Dalenius, S. P. Reiss, "Data-swapping: a technique for disclosure control", Journal of
Statistical Planning and Inference 6, 1982, doi:10.1016/0378-3758(82)90058-1.
"""

import numba
import numpy as np
import xarray as xr

from bayes_sdc.errors import InputError
from bayes_sdc.flows.release.alternating_cycles import Graph, random_square
from bayes_sdc.flows.release.alternatives import matrix_of

TRIES = 50  # squares looked at for each mover to swap, before swapping is given up


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


def swapping_matrix(
    graph: Graph,
    y: np.ndarray,
    low: int,
    high: int,
    *,
    rate: float,
    repetitions: int,
    rng: np.random.Generator,
) -> xr.DataArray:
    """Probability of each released count for each true one, over all cells, by repetition.

    Parameters
    ----------
    graph, y, rate
        As for :func:`swapped`.
    low, high : int
        Small counts.
    repetitions : int
        Swapped tables that are counted.
    rng : Generator
        Source of the swaps.

    Returns
    -------
    DataArray (true, released)
        Rows sum to one; that of a count that no cell has is even.
    """
    width = high - low + 1
    number = np.zeros((width, width))
    for _ in range(repetitions):
        np.add.at(number, (y, swapped(graph, y, width - 1, rate=rate, rng=rng)), 1.0)
    number[number.sum(axis=1) == 0] = 1.0
    counts = np.arange(low, high + 1)
    return matrix_of(number / number.sum(axis=1, keepdims=True), counts, counts)
