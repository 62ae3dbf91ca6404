"""The truncated Poisson distribution on arrays, compiled with numba.

The same distribution as :class:`bayes_sdc.models.migration.TruncatedPoisson`, for the loops over
all cells: normaliser for the sampler and the intruder, table of probabilities for the synthesis.
"""

import math

import numba
import numpy as np

_INVERSE = 1.0 / np.maximum(np.arange(151), 1)  # a division costs more than the rest of the step


@numba.njit(cache=True)
def log_normalizer(log_rate: float, upper: int) -> float:
    """Log of sum over r = 0..upper of exp(r log_rate) / r!, from the dominant end.

    Examples
    --------
    >>> round(log_normalizer(0.0, 2), 12) == round(math.log(2.5), 12)
    True
    """
    if log_rate < 0.0:
        step = math.exp(log_rate)
        rest = 0.0
        for r in range(upper, 0, -1):
            rest = step * _INVERSE[r] * (1.0 + rest)
        return math.log1p(rest)
    step = math.exp(-log_rate)
    rest = 0.0
    for r in range(1, upper + 1):
        rest = r * step * (1.0 + rest)
    return upper * log_rate - math.lgamma(upper + 1.0) + math.log1p(rest)


@numba.njit(cache=True, nogil=True)
def log_normalizers(log_rate: np.ndarray, upper: int) -> np.ndarray:
    """Apply :func:`log_normalizer` to each log rate."""
    result = np.empty(len(log_rate))
    for cell in range(len(log_rate)):
        result[cell] = log_normalizer(log_rate[cell], upper)
    return result


@numba.njit(cache=True)
def fill_probabilities(log_rate: float, table: np.ndarray) -> None:
    """Write P(Y = 0), ..., P(Y = upper) into ``table``, of length upper + 1."""
    upper = len(table) - 1
    log_z = log_normalizer(log_rate, upper)
    log_factorial = 0.0
    for y in range(upper + 1):
        if y > 1:
            log_factorial += math.log(y)
        table[y] = math.exp(y * log_rate - log_factorial - log_z)


@numba.njit(cache=True)
def probabilities(log_rate: np.ndarray, upper: int) -> np.ndarray:
    """Table of probabilities for each log rate.

    Parameters
    ----------
    log_rate : array of float, shape (cell,)
    upper : int
        Largest value of the support.

    Returns
    -------
    array of float, shape (cell, upper + 1)
        Rows sum to one.

    References
    ----------
    Hawala, Reiter and Wang, eq. (1).

    Examples
    --------
    >>> probabilities(np.array([0.0]), 2)
    array([[0.4, 0.4, 0.2]])
    """
    table = np.empty((len(log_rate), upper + 1))
    for cell in range(len(log_rate)):
        fill_probabilities(log_rate[cell], table[cell])
    return table


@numba.njit(cache=True)
def draw(log_rate: np.ndarray, uniform: np.ndarray, upper: int) -> np.ndarray:
    """Draw a count for each cell by inverting its table; ``uniform`` in [0, 1).

    Examples
    --------
    >>> draw(np.array([0.0, 0.0]), np.array([0.39, 0.95]), 2)
    array([0, 2])
    """
    y = np.empty(len(log_rate), np.int64)
    table = np.empty(upper + 1)
    for cell in range(len(log_rate)):
        fill_probabilities(log_rate[cell], table)
        value, cumulated = 0, table[0]
        while uniform[cell] >= cumulated and value < upper:
            value += 1
            cumulated += table[value]
        y[cell] = value
    return y
