"""Poisson log-linear models by penalised maximum likelihood.

The frequencies of the cells are independent Poisson variables, the log of their mean a sum of an
effect of each level of each key, and of each pair of levels of the pairs of keys that interact.
Effects are drawn towards 0 as by a normal prior, of which only pairs of levels that hardly occur
feel anything; without it a pair that does not occur would have an effect of minus infinity.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import splu

from bayes_sdc.microdata.loglinear.table import Table

MAIN_SD, PAIR_SD = 5.0, 2.0  # of the effects
MOST_STEPS = 100
LONGEST = 2.0  # change of the log of a mean in a step
TOLERANCE = 1e-8  # of twice the log likelihood that is still to be gained

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]


class Fitted(NamedTuple):
    """A fitted model.

    Parameters
    ----------
    pairs : tuple of pairs of int
        Keys that interact.
    mean : array, shape (cell,)
        Expected frequencies in the sample.
    log_likelihood : float
        Without the penalty and the factorials.
    converged : bool
        Whether nothing more can be gained.
    effects : list of arrays
        The constant, and those of each key and pair.
    """

    pairs: tuple[Pair, ...]
    mean: Floats
    log_likelihood: float
    converged: bool
    effects: list[Floats]


class Block(NamedTuple):
    """Effects of a key or of a pair of keys: which of them belongs to each cell."""

    place: npt.NDArray[np.int64]
    size: int
    sd: float


def blocks_of(table: Table, pairs: Sequence[Pair]) -> list[Block]:
    """List the effects of all keys and of some pairs of keys."""
    blocks = [Block(table.codes[:, j], size, MAIN_SD) for j, size in enumerate(table.levels)]
    return blocks + [pair_block(table, pair) for pair in pairs]


def pair_block(table: Table, pair: Pair) -> Block:
    """Effects of the pairs of levels of two keys."""
    a, b = pair
    size = table.levels[a] * table.levels[b]
    return Block(table.codes[:, a] * table.levels[b] + table.codes[:, b], size, PAIR_SD)


def fit(table: Table, pairs: Sequence[Pair], start: Fitted | None = None) -> Fitted:
    """Fit main effects and some pairs.

    Parameters
    ----------
    table : Table
        Cells and frequencies.
    pairs : sequence of pairs of int
        Keys that interact.
    start : Fitted, optional
        A fit with the first of these pairs, to begin from.

    Examples
    --------
    >>> table = Table(
    ...     np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([30, 10, 10, 50]), np.ones(4),
    ...     (2, 2), True, np.arange(4),
    ... )
    >>> fit(table, []).mean.round(1).tolist(), fit(table, [(0, 1)]).mean.round(0).tolist()
    ([16.0, 24.0, 24.0, 36.0], [30.0, 10.0, 10.0, 50.0])
    """
    blocks = blocks_of(table, pairs)
    ends = np.cumsum([1, *(block.size for block in blocks)])
    cells = len(table.f)
    columns = np.stack(
        [np.zeros(cells, np.int64)]
        + [block.place + first for block, first in zip(blocks, ends[:-1], strict=True)],
        axis=1,
    )
    design = sparse.csr_array(
        (
            np.ones(columns.size),
            columns.ravel(),
            np.arange(0, columns.size + 1, columns.shape[1]),
        ),
        shape=(cells, int(ends[-1])),
    )
    transposed = design.T.tocsr()
    precision = np.concatenate([[0.0], *(np.full(block.size, block.sd**-2.0) for block in blocks)])
    observed = transposed @ table.f.astype(np.float64)
    effects = np.zeros(int(ends[-1]))
    effects[0] = np.log(table.f.sum() / table.weight.sum())
    if start is not None:
        known = np.concatenate(start.effects)
        effects[: len(known)] = known
    penalty = sparse.diags_array(precision)
    converged = False
    for _ in range(MOST_STEPS):
        mean = table.weight * np.exp(design @ effects)
        slope = observed - transposed @ mean - precision * effects
        curve = transposed @ (mean[:, None] * design) + penalty
        step = splu(curve.tocsc()).solve(slope)
        # the log likelihood is concave, but far from its maximum a whole step overshoots
        effects += step * min(1.0, LONGEST / np.abs(design @ step).max(initial=1e-300))
        converged = float(slope @ step) < TOLERANCE
        if converged:
            break
    log_mean = design @ effects
    mean = np.exp(log_mean)
    likelihood = float(table.f @ log_mean - table.weight @ mean)
    return Fitted(tuple(pairs), mean, likelihood, converged, np.split(effects, ends[:-1]))
