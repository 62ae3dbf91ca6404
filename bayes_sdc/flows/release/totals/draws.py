"""Synthetic counts with given totals: draws from the posterior predictive given the totals.

Each data set starts at its unconditional draw, which one maximum flow changes until all totals are
met, never at the true counts: a chain that starts there and stops early releases them, and every
check of totals and utility looks perfect. The draws depend on the true counts through the totals
and the posterior alone.

The totals of areas join the cells of a whole nation. So large a part is mixed in pieces at a time,
each with the cells of some left nodes, chosen at random without a look at the counts. A cycle
within a piece leaves all totals as they are, so pieces can be mixed side by side, each given the
counts of the others; the next pieces are others, and every cycle lies in one of them some time.
"""

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bayes_sdc.cores import threads
from bayes_sdc.flows.release.totals.alternating_cycles import Graph, graph_of, mix
from bayes_sdc.flows.release.totals.bands import Band, mix_within
from bayes_sdc.flows.release.totals.margins import Margins, repaired
from bayes_sdc.seeds import seed_sequence

# cycles for each cell: of 70,000 cells counts by number are at their plateau after about 16; of
# 500,000 that areas join, chains from a draw and from the truth come closer by e every 14
SWEEPS = 40
LEAST = 50  # cells: a smaller part takes as many cycles, because few of its walks find one
BATCH = 20_000  # cells, roughly, of the connected parts that one thread mixes
PIECE = 100_000  # cells, roughly, of a piece; a connected part of fewer than two is not split
TOGETHER = 4  # sweeps before a large part is split anew


class Mixing(NamedTuple):
    """What all data sets with these totals share."""

    margins: Margins
    graph: Graph
    batches: list[list[np.ndarray]]  # connected parts of the graph, those of a batch on one thread
    band: Band | None = None  # where totals are kept within bounds only

    def sweep(self, rng: np.random.Generator, log_weight: np.ndarray, y: np.ndarray) -> None:
        """Take a step for each cell, in place: cycles, and open paths where totals may move."""
        if self.band is not None:
            mix_within(rng, *self.band, log_weight, y, len(y))
        if len(self.graph.edges):
            mix(rng, self.graph, self.graph.edges, log_weight, y, len(self.graph.edges))


def mixing(margins: Margins, band: Band | None = None) -> Mixing:
    """Prepare the graph of the totals."""
    graph = graph_of(margins.left, margins.right)
    return Mixing(margins, graph, _batches(connected_parts(graph)), band)


def with_totals(
    prepared: Mixing,
    free: np.ndarray,
    log_weight: np.ndarray,
    *,
    seed: int,
    dataset: int,
    cores: int | None = None,
    sweeps: int = SWEEPS,
) -> np.ndarray:
    """Draw counts with the totals kept, given the rates of one posterior draw.

    Parameters
    ----------
    prepared : Mixing
        From :func:`mixing`.
    free : array of int, shape (cell,)
        An unconditional draw of the counts, from 0.
    log_weight : array of float, shape (cell, upper + 1)
        Log-probability of each count.
    seed, dataset : int
        Equal ones give equal counts, whatever the cores.
    cores : int, optional
        Threads; by default all.
    sweeps : int
        Cycles for each cell; 0 leaves the repaired draw.

    Returns
    -------
    array of int, shape (cell,)
        From 0 to upper, with all totals.

    Raises
    ------
    InputError
        If no table of such counts has these totals.
    """
    y = repaired(prepared.margins, free, log_weight.shape[1] - 1)
    if prepared.band is not None:
        rng = np.random.default_rng(seed_sequence(seed, "synthesis within bands", f"{dataset}"))
        for _ in range(sweeps):
            prepared.sweep(rng, log_weight, y)
        return y

    def mixed(batch: int) -> None:
        stream = seed_sequence(seed, "synthesis given totals", f"{dataset}", f"{batch}")
        rng = np.random.default_rng(stream)
        for part in prepared.batches[batch]:
            if len(part) < 2 * PIECE:
                steps = sweeps * max(len(part), LEAST)
                mix(rng, prepared.graph, part, log_weight, y, steps)

    with ThreadPoolExecutor(threads(cores)) as pool:
        list(pool.map(mixed, range(len(prepared.batches))))
        for part in itertools.chain.from_iterable(prepared.batches):
            if len(part) >= 2 * PIECE:
                _mix_in_pieces(
                    pool, prepared.graph, part, log_weight, y, sweeps,
                    ("pieces given totals", f"{dataset}", f"{part[0]}"), seed,
                )  # fmt: skip
    return y


def _mix_in_pieces(
    pool: ThreadPoolExecutor,
    graph: Graph,
    part: np.ndarray,
    log_weight: np.ndarray,
    y: np.ndarray,
    sweeps: int,
    labels: tuple[str, ...],
    seed: int,
) -> None:
    """Mix a large connected part in pieces side by side, in place."""
    pieces, n_left = len(part) // PIECE, len(graph.left_start) - 1
    for first in range(0, sweeps, TOGETHER):
        own, *streams = seed_sequence(seed, *labels, f"{first}").spawn(pieces + 1)
        # each by itself, so that any nodes come together some time, and with them any cycle
        among = np.random.default_rng(own).integers(0, pieces, n_left)
        piece_of = among[graph.left[part]]
        again = min(TOGETHER, sweeps - first)

        cells = [part[piece_of == number] for number in range(pieces)]
        list(pool.map(partial(_mix_piece, graph, log_weight, y, again), cells, streams))


def _mix_piece(
    graph: Graph,
    log_weight: np.ndarray,
    y: np.ndarray,
    sweeps: int,
    cells: np.ndarray,
    stream: np.random.SeedSequence,
) -> None:
    """Mix some cells among themselves, in place."""
    if len(cells) == 0:
        return
    inside, counts = graph_of(graph.left[cells], graph.right[cells]), y[cells]
    if len(inside.edges):
        rng, steps = np.random.default_rng(stream), sweeps * len(inside.edges)
        mix(rng, inside, inside.edges, log_weight[cells], counts, steps)
    y[cells] = counts  # no other piece has them


def connected_parts(graph: Graph) -> list[np.ndarray]:
    """Edges of each connected part of the graph, in order of their first edge.

    Examples
    --------
    >>> cells = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 2, 2])
    >>> [part.tolist() for part in connected_parts(graph_of(*cells))]
    [[0, 1, 2, 3], [4, 5]]
    """
    if len(graph.edges) == 0:
        return []
    n_left, n_right = len(graph.left_start) - 1, len(graph.right_start) - 1
    left, right = graph.left[graph.edges], graph.right[graph.edges] + n_left
    joined = coo_array((np.ones(len(left), np.int8), (left, right)), shape=(n_left + n_right,) * 2)
    part = connected_components(joined, directed=False)[1][left]
    order = np.argsort(part, kind="stable")
    pieces = np.split(graph.edges[order], np.flatnonzero(np.diff(part[order])) + 1)
    return sorted(pieces, key=lambda piece: int(piece[0]))


def _batches(parts: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """Put connected parts together, about :data:`BATCH` cells; by the data, not by the cores."""
    batches: list[list[np.ndarray]] = []
    taken = BATCH
    for part in parts:
        if taken + len(part) > BATCH:
            batches.append([])
            taken = 0
        batches[-1].append(part)
        taken += len(part)
    return batches
