"""How far importance weights can be relied on: the shape k-hat of the largest ones, and smoothing.

References
----------
A. Vehtari, D. Simpson, A. Gelman, Y. Yao, J. Gabry, "Pareto Smoothed Importance Sampling", Journal
of Machine Learning Research 2024, https://jmlr.org/papers/v25/19-556.html.
"""

import math

import numba
import numpy as np

EQUAL = 1e-12  # log weights that differ by rounding only
TINY = 2.2250738585072014e-308  # smallest normal number


@numba.njit(cache=True)
def largest_values(values: np.ndarray, n: int) -> np.ndarray:
    """The n largest values in ascending order.

    Usually a quarter more than n exceed a bound guessed from a sample; only those are sorted.
    """
    step = max(len(values) // 100, 1)
    few, size = np.empty(len(values)), 0
    for i in range(0, len(values), step):
        few[size] = values[i]
        size += 1
    sort(few, size)
    bound = few[size - min(size * (n + n // 4) // len(values) + 8, size)]
    size = 0
    for value in values:
        if value >= bound:
            few[size] = value
            size += 1
    if size < n:
        size = len(values)
        for i in range(size):
            few[i] = values[i]
    sort(few, size)
    largest: np.ndarray = few[size - n : size]
    return largest


@numba.njit(cache=True)
def sort(values: np.ndarray, size: int) -> None:
    """Sort the first values in place, by Shell's method; numba's own sort takes seconds to compile.

    Examples
    --------
    >>> values = np.array([2.0, 3.0, 1.0, 0.0])
    >>> sort(values, 3)
    >>> values
    array([1., 2., 3., 0.])
    """
    gap = size
    while gap > 1:
        gap = max(int(gap / 2.25), 1)
        for i in range(gap, size):
            value, place = values[i], i
            while place >= gap and values[place - gap] > value:
                values[place] = values[place - gap]
                place -= gap
            values[place] = value


@numba.njit(cache=True)
def tail_length(n_draws: int) -> int:
    """Number of largest weights that the Pareto fit uses: min(S / 5, 3 sqrt(S))."""
    return min(math.ceil(min(0.2 * n_draws, 3.0 * math.sqrt(n_draws))), n_draws - 1)


@numba.njit(cache=True)
def pareto_khat(log_weights: np.ndarray) -> float:
    """Shape of the generalised Pareto distribution fitted to the largest weights.

    Parameters
    ----------
    log_weights : array of float
        The largest log weights in ascending order, preceded by the one that serves as threshold.
        Minus infinity is a weight of 0.

    Returns
    -------
    float
        k-hat, never missing; minus infinity when the weights are all equal, plus infinity when they
        cannot be judged (fewer than five above the threshold, mostly ties, all of them 0, or one
        that is not a number).

    References
    ----------
    Zhang and Stephens 2009, doi:10.1198/tech.2009.08017, with the prior of Vehtari et al. 2024,
    appendix C.

    Examples
    --------
    >>> pareto_khat(np.zeros(20))
    -inf
    """
    khat: float = _fit(log_weights)[0]
    return khat


@numba.njit(cache=True)
def _fit(log_weights: np.ndarray) -> tuple[float, float]:
    """k-hat, and the scale in units of the largest weight (0 where nothing is fitted)."""
    n = len(log_weights) - 1
    if n < 0 or not math.isfinite(log_weights[n]):  # missing values are sorted last
        return np.inf, 0.0
    largest = log_weights[n]
    if n > 0 and largest - log_weights[0] < EQUAL:
        return -np.inf, 0.0
    if n < 5:
        return np.inf, 0.0
    threshold = math.exp(log_weights[0] - largest)
    excess = np.empty(n)
    for i in range(n):
        excess[i] = math.exp(log_weights[i + 1] - largest) - threshold
    quartile = excess[int(n / 4.0 + 0.5) - 1]
    if quartile < TINY:
        return np.inf, 0.0
    n_grid = 30 + int(math.sqrt(n))
    b, profile = np.empty(n_grid), np.empty(n_grid)
    for j in range(n_grid):
        b[j] = (1.0 - math.sqrt(n_grid / (j + 0.5))) / (3.0 * quartile) + 1.0 / excess[n - 1]
        shape = _mean_log1p(-b[j], excess)
        # at a shape of exactly 0 the grid point is left out
        profile[j] = n * (math.log(-b[j] / shape) - shape - 1.0) if shape != 0.0 else -np.inf
    highest, total, mean = -np.inf, 0.0, 0.0
    for j in range(n_grid):
        highest = max(highest, profile[j])
    for j in range(n_grid):
        weight = math.exp(profile[j] - highest)
        if weight >= 10.0 * 2.220446049250313e-16:
            total += weight
            mean += weight * b[j]
    if not total > 0.0:
        return np.inf, 0.0
    mean /= total
    shape = _mean_log1p(-mean, excess)
    khat = (n * shape + 10.0 * 0.5) / (n + 10.0)
    if mean == 0.0 or not math.isfinite(khat):
        return np.inf, 0.0
    return khat, -shape / mean


@numba.njit(cache=True)
def smooth(log_weights: np.ndarray) -> float:
    """Replace the largest weights by quantiles of the Pareto distribution fitted to them.

    Parameters
    ----------
    log_weights : array of float, shape (draw,)
        Log weights, minus infinity for a weight of 0; changed in place. No weight exceeds the
        largest there was, and where no distribution can be fitted nothing changes.

    Returns
    -------
    float
        k-hat, as :func:`pareto_khat` gives it.

    Examples
    --------
    >>> weights = np.array([0.0, 0.0, 0.0])
    >>> smooth(weights), weights
    (-inf, array([0., 0., 0.]))
    """
    if len(log_weights) == 0 or np.isnan(log_weights).any():
        return np.inf
    tail = tail_length(len(log_weights))
    largest = largest_values(log_weights, tail + 1)
    fitted: tuple[float, float] = _fit(largest)
    khat, scale = fitted
    if not (math.isfinite(khat) and scale > 0.0):
        return khat
    top, threshold = largest[tail], math.exp(largest[0] - largest[tail])
    above = np.flatnonzero(log_weights > largest[0])
    above = above[np.argsort(log_weights[above])]
    for i in range(len(above)):
        # the i-th of the tail; ties with the threshold come before the first of them
        log_beyond = math.log1p(-(tail - len(above) + i + 0.5) / tail)
        excess = -log_beyond if khat == 0.0 else math.expm1(-khat * log_beyond) / khat
        log_weights[above[i]] = top + min(math.log(threshold + scale * excess), 0.0)
    return khat


@numba.njit(cache=True)
def _mean_log1p(factor: float, values: np.ndarray) -> float:
    """Mean of log(1 + factor * value), with one logarithm for many values."""
    total, product = 0.0, 1.0
    for value in values:
        term = 1.0 + factor * value
        if term > 1e100:  # times the product it may overflow
            total += math.log(term)
            continue
        product *= term
        if product < 1e-100 or product > 1e100:
            total += math.log(product)
            product = 1.0
    return (total + math.log(product)) / len(values)


def khat_threshold(n_draws: int) -> float:
    """Largest k-hat at which S draws can be relied on: min(1 - 1 / log10 S, 0.7).

    Examples
    --------
    >>> khat_threshold(100), khat_threshold(4000)
    (0.5, 0.7)
    """
    return min(1.0 - 1.0 / math.log10(n_draws), 0.7) if n_draws > 10 else 0.0


@numba.njit(cache=True, nogil=True)
def khat_of_weights(weights: np.ndarray) -> np.ndarray:
    """k-hat of each candidate's weights.

    Parameters
    ----------
    weights : array of float, shape (cell, candidate, draw)
        Importance weights up to a factor.

    Returns
    -------
    array of float, shape (cell, candidate)
        As :func:`pareto_khat` gives it.

    Examples
    --------
    >>> khat_of_weights(np.array([[[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]]]))
    array([[ inf, -inf]])
    """
    cells, candidates, n_draws = weights.shape
    khat, tail = np.empty((cells, candidates)), tail_length(n_draws)
    for t in range(cells):
        for candidate in range(candidates):
            total, khat[t, candidate] = 0.0, np.inf
            for weight in weights[t, candidate]:
                total += weight
            if not (total >= TINY and math.isfinite(total)):  # below it digits are lost
                continue
            largest = largest_values(weights[t, candidate], tail + 1)
            for i in range(tail + 1):
                largest[i] = math.log(largest[i]) if largest[i] > 0.0 else -np.inf
            khat[t, candidate] = pareto_khat(largest)
    return khat
