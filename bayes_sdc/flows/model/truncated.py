r"""Truncated Poisson and negative binomial distributions on arrays, compiled with numba.

Both are ladders: from one count to the next the probability changes by a factor

.. math:: P(y + 1) / P(y) = s \, c_y, \qquad y = 0, \dots, K - 1,

with :math:`s = \lambda / (1 + \kappa \lambda)` and :math:`c_y = (1 + \kappa y) / (y + 1)`, where
:math:`\kappa = 1 / r` is the inverse of the negative binomial's size; :math:`\kappa = 0` is the
Poisson distribution. So one set of loops serves sampler, synthesis and intruder for both families.
The same distributions as :class:`bayes_sdc.models.migration.TruncatedPoisson` and
:class:`bayes_sdc.models.migration.TruncatedNegativeBinomial`.

With the canonical link (:mod:`bayes_sdc.models.canonical`) the rate is s, whatever kappa is.

With a base measure :math:`h` (:mod:`bayes_sdc.models.base_measure`) the factor :math:`c_y` is
multiplied by :math:`h(y + 1) / h(y)`: still a ladder.

With a bound the logarithm of each factor is kept near its centre; see
:mod:`bayes_sdc.flows.model.bounded`. The ladder is then climbed in logarithms, which are small.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from bayes_sdc.flows.model.bounded import row_of
from bayes_sdc.flows.table.bound import Bound


class Ladder(NamedTuple):
    """What the distribution of a group needs besides the rate; arrays by group."""

    log_kappa: np.ndarray  # (group,) of the link; minus infinity where s is the rate itself
    factor: np.ndarray  # (group, K) c_y
    inverse: np.ndarray  # (group, K) 1 / c_y
    log_product: np.ndarray  # (group, K + 1) log of c_0 ... c_(y - 1)
    bound: np.ndarray  # (K + 1,) centres of the steps, then half their width; 0 without a bound


NOTHING = 1e-20  # a probability smaller than any uniform number of double precision


def ladder(
    kappa: np.ndarray, upper: int, bound: Bound | None = None, base: np.ndarray | None = None,
    *, canonical: bool = False,
) -> Ladder:  # fmt: skip
    """Prepare the factors of each group.

    Parameters
    ----------
    kappa : array of float, shape (group,)
        Inverse size of the negative binomial, 0 or more; 0 is Poisson.
    upper : int
        Largest count K.
    bound : Bound, optional
        Of the steps; none by default.
    base : array of float, shape (K + 1,) or (group, K + 1), optional
        Log of the base measure; none by default.
    canonical : bool
        Whether the rate is s itself; by default s follows from the mean.

    Examples
    --------
    >>> ladder(np.array([0.0]), 2).factor
    array([[1. , 0.5]])
    >>> ladder(np.array([0.0]), 2, base=np.log([1.0, 3.0, 3.0])).factor
    array([[3. , 0.5]])
    """
    y = np.arange(upper, dtype=np.float64)
    factor = (1.0 + kappa[:, None] * y) / (y + 1.0)
    if base is not None:
        factor = factor * np.exp(np.diff(base))
    zero = np.zeros((len(kappa), 1))
    with np.errstate(divide="ignore"):
        log_kappa = np.log(kappa)
    return Ladder(
        log_kappa=np.full(len(kappa), -np.inf) if canonical else log_kappa,
        factor=factor,
        inverse=1.0 / factor,
        log_product=np.concatenate([zero, np.cumsum(np.log(factor), axis=1)], axis=1),
        bound=row_of(bound, upper),
    )


@numba.njit(cache=True, nogil=True)
def log_step(log_rate: float, log_kappa: float) -> float:
    """Log of lambda / (1 + kappa lambda).

    Examples
    --------
    >>> abs(log_step(math.log(2.0), math.log(0.5))) < 1e-12
    True
    """
    if log_kappa == -np.inf:
        return log_rate
    excess = log_rate + log_kappa
    if excess < 0.0:
        return log_rate - math.log1p(math.exp(excess))
    limit: float = -log_kappa - math.log1p(math.exp(-excess))
    return limit


@numba.njit(cache=True, nogil=True)
def log_normalizer(
    step: float, factor: np.ndarray, inverse: np.ndarray, log_product: np.ndarray
) -> float:
    """Log of the sum of P(y) / P(0), from the end of the ladder that dominates.

    Examples
    --------
    >>> poisson = ladder(np.array([0.0]), 2)
    >>> z = log_normalizer(0.0, poisson.factor[0], poisson.inverse[0], poisson.log_product[0])
    >>> abs(z - math.log(2.5)) < 1e-12
    True
    """
    upper = len(factor)
    rest = 0.0
    if step < 0.0:
        ratio = math.exp(step)
        for y in range(upper - 1, -1, -1):
            rest = ratio * factor[y] * (1.0 + rest)
        return math.log1p(rest)
    ratio = math.exp(-step)
    for y in range(upper):
        rest = ratio * inverse[y] * (1.0 + rest)
    log_z: float = upper * step + log_product[upper] + math.log1p(rest)
    return log_z


@numba.njit(cache=True, nogil=True)
def fill_bounded(step: float, g: int, rungs: Ladder, table: np.ndarray) -> None:
    """Write log P(0), ..., log P(K) of group ``g`` with bounded steps into ``table``.

    Examples
    --------
    >>> rungs, table = ladder(np.array([0.0]), 2, Bound(1e3, (0.0, 0.0))), np.empty(3)
    >>> fill_bounded(0.0, 0, rungs, table)
    >>> np.exp(table).round(4)
    array([0.4, 0.4, 0.2])
    """
    upper = len(table) - 1
    half = rungs.bound[upper]
    table[0], highest = 0.0, 0.0
    for y in range(upper):
        away = step + (rungs.log_product[g, y + 1] - rungs.log_product[g, y]) - rungs.bound[y]
        table[y + 1] = table[y] + rungs.bound[y] + half * math.tanh(away / half)
        highest = max(highest, table[y + 1])
    total = 0.0
    for y in range(upper + 1):
        total += math.exp(table[y] - highest)
    log_z = highest + math.log(total)
    for y in range(upper + 1):
        table[y] -= log_z


@numba.njit(cache=True, nogil=True)
def log_probabilities(
    y: np.ndarray, log_rate: np.ndarray, group: np.ndarray, rungs: Ladder
) -> np.ndarray:
    """Log-probability of each cell's count.

    Parameters
    ----------
    y : array of float, shape (cell,)
        Counts, 0 to K.
    log_rate : array of float, shape (cell,)
        Log of the untruncated mean.
    group : array of int, shape (cell,)
        Row of each cell in ``rungs``.
    rungs : Ladder
        From :func:`ladder`.

    Returns
    -------
    array of float, shape (cell,)

    Examples
    --------
    >>> zero = np.zeros(1, dtype=np.int64)
    >>> np.exp(log_probabilities(np.zeros(1), np.zeros(1), zero, ladder(np.zeros(1), 2)))
    array([0.4])
    """
    result, upper = np.empty(len(y)), len(rungs.bound) - 1
    table = np.empty(upper + 1)
    for cell in range(len(y)):
        g = group[cell]
        step = log_step(log_rate[cell], rungs.log_kappa[g])
        if rungs.bound[upper] > 0.0:
            fill_bounded(step, g, rungs, table)
            result[cell] = table[int(y[cell])]
            continue
        log_z = log_normalizer(step, rungs.factor[g], rungs.inverse[g], rungs.log_product[g])
        result[cell] = y[cell] * step + rungs.log_product[g, int(y[cell])] - log_z
    return result


@numba.njit(cache=True, nogil=True)
def fill_probabilities(log_rate: float, g: int, rungs: Ladder, table: np.ndarray) -> float:
    """Write P(0), ..., P(K) of group ``g`` into ``table``; return the log of the step s.

    The ladder is climbed from the end that dominates: one exponential, no logarithm.
    """
    upper = len(table) - 1
    step: float = log_step(log_rate, rungs.log_kappa[g])
    if rungs.bound[upper] > 0.0:
        fill_bounded(step, g, rungs, table)
        for y in range(upper + 1):
            table[y] = math.exp(table[y])
        return step
    term, total = 1.0, 1.0
    if step < 0.0:
        ratio = math.exp(step)
        table[0] = 1.0
        for y in range(upper):
            term *= ratio * rungs.factor[g, y]
            table[y + 1] = term
            total += term
    else:
        ratio = math.exp(-step)
        table[upper] = 1.0
        for y in range(upper - 1, -1, -1):
            term *= ratio * rungs.inverse[g, y]
            table[y] = term
            total += term
    inverse_total = 1.0 / total
    for y in range(upper + 1):
        table[y] *= inverse_total
    return step


@numba.njit(cache=True, nogil=True)
def probabilities(log_rate: np.ndarray, group: np.ndarray, rungs: Ladder) -> np.ndarray:
    """Table of probabilities for each cell.

    Parameters
    ----------
    log_rate : array of float, shape (cell,)
        Log of the untruncated mean.
    group : array of int, shape (cell,)
        Row of each cell in ``rungs``.
    rungs : Ladder
        From :func:`ladder`.

    Returns
    -------
    array of float, shape (cell, K + 1)
        Rows sum to one.

    References
    ----------
    Hawala, Reiter and Wang, eq. (1).

    Examples
    --------
    >>> probabilities(np.array([0.0]), np.zeros(1, dtype=np.int64), ladder(np.zeros(1), 2))
    array([[0.4, 0.4, 0.2]])
    """
    table = np.empty((len(log_rate), rungs.log_product.shape[1]))
    for cell in range(len(log_rate)):
        fill_probabilities(log_rate[cell], group[cell], rungs, table[cell])
    return table


@numba.njit(cache=True, nogil=True)
def log_table(log_rate: np.ndarray, group: np.ndarray, rungs: Ladder) -> np.ndarray:
    """Log-probability of every count of each cell; see :func:`probabilities`.

    Examples
    --------
    >>> np.exp(log_table(np.array([0.0]), np.zeros(1, dtype=np.int64), ladder(np.zeros(1), 2)))
    array([[0.4, 0.4, 0.2]])
    """
    table = np.empty((len(log_rate), rungs.log_product.shape[1]))
    for cell in range(len(log_rate)):
        g = group[cell]
        step = log_step(log_rate[cell], rungs.log_kappa[g])
        if rungs.bound[table.shape[1] - 1] > 0.0:
            fill_bounded(step, g, rungs, table[cell])
            continue
        log_z = log_normalizer(step, rungs.factor[g], rungs.inverse[g], rungs.log_product[g])
        for y in range(table.shape[1]):
            table[cell, y] = y * step + rungs.log_product[g, y] - log_z
    return table


def draw(log_rate: np.ndarray, group: np.ndarray, rungs: Ladder, uniform: np.ndarray) -> np.ndarray:
    """Draw a count for each cell by inverting its table; ``uniform`` in [0, 1).

    Examples
    --------
    >>> cells = np.zeros(2, dtype=np.int64)
    >>> draw(np.zeros(2), cells, ladder(np.zeros(1), 2), np.array([0.39, 0.95]))
    array([0, 2])
    """
    table = probabilities(log_rate, group, rungs)
    cumulated = np.cumsum(np.where(table < NOTHING, 0.0, table), axis=1)
    # the last rung takes the rest, so rounding cannot lead beyond the support
    return np.asarray((uniform[:, None] >= cumulated[:, :-1]).sum(axis=1))
