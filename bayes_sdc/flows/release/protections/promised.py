"""Releases of other mechanisms with a promise, at one epsilon: each with its exact probabilities.

Their prior knowledge comes from public shares of the counts, as the centres of the model do, and
never from the table.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.release.protections.alternatives import draw_release
from bayes_sdc.flows.release.protections.noise import geometric_noise
from bayes_sdc.flows.release.protections.prior_samples import (
    dirichlet_rows,
    dirichlet_sample,
    draw_dirichlet,
    poisson_gamma,
)
from bayes_sdc.flows.table.centres import HIGHEST, LOWEST, bundled_shares
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.seeds import generator

DELTA = 1e-6  # of the synthesis whose promise may fail this often
CLAMPED, PLAIN = "geometric noise", "geometric noise, not clamped"
GAMMA, DIRICHLET = "Poisson-gamma synthesis", "Dirichlet-multinomial synthesis"


class Promised(NamedTuple):
    """One release of the small cells."""

    method: str
    delta: float
    counts: np.ndarray  # (cell,) as published
    m: np.ndarray  # (cell, true, released); all cells alike where the first length is 1
    at: np.ndarray  # (cell,) position of what is released

    @property
    def log_likelihood(self) -> np.ndarray:
        """Of what is released, by cell and candidate."""
        chosen = np.take_along_axis(
            np.broadcast_to(self.m, (len(self.at), *self.m.shape[1:])), self.at[:, None, None], 2
        )
        return np.asarray(np.log(np.maximum(chosen[..., 0], np.finfo(float).tiny)))

    @property
    def log_ratio(self) -> float:
        """Largest log ratio of one cell's release between neighbouring counts."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.abs(np.diff(np.log(self.m), axis=1))
        return float(np.nanmax(ratios, initial=0.0))  # counts that are never released have no ratio


def public_shares(table: FlowTable) -> np.ndarray:
    """Bundled shares of the small counts, or equal ones where there are none of these counts."""
    if table.low >= LOWEST and table.high <= HIGHEST:
        return bundled_shares(table.low, table.high)
    return np.full(table.k + 1, 1.0 / (table.k + 1))


def blocks_of(table: FlowTable, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Block of each cell, its group and destination, and the synthetic people of each block.

    The number follows from the cells of the block and the public shares alone.
    """
    cells = table.cells
    keys = cells["group"].astype(str) + "\x1f" + cells["destination"].astype(str)
    block = np.unique(keys.to_numpy(), return_inverse=True)[1]
    mean = float(np.asarray(shares) @ np.arange(table.k + 1))
    return block, np.rint(np.bincount(block) * mean).astype(np.int64)


def promised(
    table: FlowTable, *, epsilon: float, shares: np.ndarray, seed: int, delta: float = DELTA
) -> Iterator[Promised]:
    """Release the small cells by each mechanism whose epsilon is a number chosen beforehand.

    Parameters
    ----------
    table : FlowTable
        The table to protect.
    epsilon : float
        Above 0, for a person more or less in a small cell.
    shares : array of float, shape (count,)
        Of the small counts, from outside the table.
    seed : int
        Each mechanism has a stream of its own.
    delta : float
        Probability with which the Dirichlet-multinomial synthesis may exceed epsilon.

    Yields
    ------
    Promised
        Geometric noise with and without an end, Poisson-gamma and Dirichlet-multinomial synthesis.
    """
    low, high = table.low, table.high
    y = table.cells["y"].to_numpy(np.int64)
    mean = float(np.asarray(shares) @ np.arange(table.k + 1))
    mechanisms = {
        CLAMPED: geometric_noise(low, high, epsilon=epsilon),
        PLAIN: geometric_noise(low, high, epsilon=epsilon, clamped=False),
        GAMMA: poisson_gamma(low, high, epsilon=epsilon, mean=mean),
    }
    for method, m in mechanisms.items():
        at = draw_release(m, y + low, generator(seed, "promised", method, f"{epsilon:g}"))
        counts = m["released"].to_numpy()[at].astype(float)
        yield Promised(method, 0.0, counts, m.to_numpy()[np.newaxis], at)
    block, draws = blocks_of(table, shares)
    sizes = list(zip(np.bincount(block).tolist(), draws.tolist(), strict=True))
    samples = {
        size: dirichlet_sample(*size, table.k, epsilon=epsilon, delta=delta) for size in set(sizes)
    }
    sample = np.array([samples[size] for size in sizes])
    rng = generator(seed, "promised", DIRICHLET, f"{epsilon:g}")
    at = draw_dirichlet(y, block, draws, sample, table.k, rng)
    rows = dirichlet_rows(y, block, draws, sample, table.k)
    yield Promised(DIRICHLET, delta, at + float(low), rows, at)


def name_of(method: str, epsilon: float, delta: float) -> str:
    """Name of a mechanism with its promise.

    Examples
    --------
    >>> name_of(GAMMA, 0.5, 0.0)
    'Poisson-gamma synthesis, epsilon 0.5'
    >>> name_of(DIRICHLET, 1.0, 1e-6)
    'Dirichlet-multinomial synthesis, epsilon 1, delta 1e-06'
    """
    return f"{method}, epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else "")
