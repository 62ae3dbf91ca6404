"""Importance sampling from the fitted posterior: what replacing one true count would change.

With the true count y_t of one cell replaced by y, the posterior changes by the factor
``lambda_t^(y - y_t)``; the factorials cancel. So for draws s of the fitted posterior

    M[y, k] = h_{y+k} / (k! g_y),  h_r = sum_s lambda_s^(r - y_t) / Z(lambda_s),
                                   g_y = sum_s lambda_s^(y - y_t),

and 3 K + 2 sums a cell serve every candidate and every released value. The powers span hundreds
of decades, so the draws are sorted and summed in stretches short enough for double precision,
and the stretches are added as logarithms.

References
----------
S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality", eq. (4)-(8).
The factor 1/L printed in (7) goes away once the weights are normalised, and its inner sum runs
over draws of lambda_t.
"""

import math
from collections.abc import Callable

import numba
import numpy as np

from bayes_sdc.flows.counts import log_normalizer
from bayes_sdc.flows.layout import Layout

CELLS_AT_A_TIME = 4096  # between two updates of the progress


def release_log_probabilities(
    beta: np.ndarray,
    gamma: np.ndarray,
    cells: Layout,
    chains: int,
    released: np.ndarray,
    *,
    advance: Callable[[float], None] = lambda units: None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probability of each released count for each candidate true count.

    Parameters
    ----------
    beta, gamma : array of float, shape (effect, draw)
        Posterior draws, the chains one after another.
    cells : Layout
        True counts and effects of each cell.
    chains : int
        Number of chains of equal length.
    released : array of int, shape (dataset, cell)
        Released counts, from 0.
    advance : callable
        Told how many cells are done.

    Returns
    -------
    log_m : array of float, shape (cell, K + 1, K + 1)
        Log M by candidate and released value.
    by_chain : array of float, shape (chain, cell, K + 1)
        Log-likelihood of the released counts by candidate, from each chain alone.
    khat : array of float, shape (cell, K + 1)
        Pareto k-hat of each candidate's weights.
    """
    n, width = len(cells.y), cells.upper + 1
    log_m = np.empty((n, width, width))
    by_chain = np.empty((chains, n, width))
    khat = np.empty((n, width))
    released = np.ascontiguousarray(released)
    for start in range(0, n, CELLS_AT_A_TIME):
        part = slice(start, min(start + CELLS_AT_A_TIME, n))
        _cells(
            beta,
            gamma,
            cells.origin[part],
            cells.destination[part],
            cells.y[part],
            released[:, part],
            chains,
            log_m[part],
            by_chain[:, part],
            khat[part],
        )
        advance(part.stop - part.start)
    return log_m, by_chain, khat


@numba.njit(cache=True, parallel=True)
def _cells(
    beta: np.ndarray,
    gamma: np.ndarray,
    origin: np.ndarray,
    destination: np.ndarray,
    y: np.ndarray,
    released: np.ndarray,
    chains: int,
    log_m: np.ndarray,
    by_chain: np.ndarray,
    khat: np.ndarray,
) -> None:
    n_draws = beta.shape[1]
    length = n_draws // chains
    upper = khat.shape[1] - 1
    tail = tail_length(n_draws)
    for t in numba.prange(len(y)):
        log_rate = beta[origin[t]] + gamma[destination[t]]
        log_h, log_g = np.full(2 * upper + 1, -np.inf), np.full(upper + 1, -np.inf)
        chain_h, chain_g = np.empty(2 * upper + 1), np.empty(upper + 1)
        for c in range(chains):
            chain = np.sort(log_rate[c * length : (c + 1) * length])
            log_power_sums(chain, y[t], chain_h, chain_g)
            for candidate in range(upper + 1):
                total = 0.0
                for dataset in range(released.shape[0]):
                    k = released[dataset, t]
                    total += chain_h[candidate + k] - math.lgamma(k + 1.0) - chain_g[candidate]
                by_chain[c, t, candidate] = total
            for r in range(2 * upper + 1):
                log_h[r] = np.logaddexp(log_h[r], chain_h[r])
            for r in range(upper + 1):
                log_g[r] = np.logaddexp(log_g[r], chain_g[r])
        for candidate in range(upper + 1):
            for k in range(upper + 1):
                log_m[t, candidate, k] = (
                    log_h[candidate + k] - math.lgamma(k + 1.0) - log_g[candidate]
                )
        log_rate.sort()
        for candidate in range(upper + 1):
            power = candidate - y[t]
            log_weights = np.empty(tail + 1)
            for i in range(tail + 1):
                at = n_draws - 1 - tail + i if power >= 0 else tail - i
                log_weights[i] = power * log_rate[at]
            khat[t, candidate] = pareto_khat(log_weights)


@numba.njit(cache=True)
def log_power_sums(log_rate: np.ndarray, y_true: int, log_h: np.ndarray, log_g: np.ndarray) -> None:
    """Fill log h_r, r = 0..2K, and log g_y, y = 0..K, from sorted log rates.

    Within a stretch the log rates differ by at most 300 / K, so that no power overflows.
    """
    upper = len(log_g) - 1
    log_h[:] = -np.inf
    log_g[:] = -np.inf
    h, g = np.empty(2 * upper + 1), np.empty(upper + 1)
    first = 0
    while first < len(log_rate):
        last = np.searchsorted(log_rate, log_rate[first] + 300.0 / upper, side="right")
        centre = (log_rate[first] + log_rate[last - 1]) / 2.0
        z_centre = log_normalizer(centre, upper)
        h[:] = 0.0
        g[:] = 0.0
        for s in range(first, last):
            deviation = log_rate[s] - centre
            factor = math.exp(deviation)
            power = math.exp(-y_true * deviation)
            inverse_z = math.exp(z_centre - log_normalizer(log_rate[s], upper))
            for r in range(2 * upper + 1):
                h[r] += power * inverse_z
                if r <= upper:
                    g[r] += power
                power *= factor
        for r in range(2 * upper + 1):
            stretch = (r - y_true) * centre
            log_h[r] = np.logaddexp(log_h[r], math.log(h[r]) + stretch - z_centre)
            if r <= upper:
                log_g[r] = np.logaddexp(log_g[r], math.log(g[r]) + stretch)
        first = last


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

    Returns
    -------
    float
        k-hat; minus infinity when the weights are all equal, plus infinity when they cannot be
        judged (fewer than five above the threshold, or mostly ties).

    References
    ----------
    Zhang and Stephens 2009, doi:10.1198/tech.2009.08017, with the prior of Vehtari et al. 2024,
    appendix C.

    Examples
    --------
    >>> pareto_khat(np.zeros(20))
    -inf
    """
    n = len(log_weights) - 1
    largest = log_weights[n]
    if log_weights[0] == largest:
        return -np.inf
    if n < 5:
        return np.inf
    threshold = math.exp(log_weights[0] - largest)
    excess = np.empty(n)
    for i in range(n):
        excess[i] = math.exp(log_weights[i + 1] - largest) - threshold
    quartile = excess[int(n / 4.0 + 0.5) - 1]
    if quartile <= 0.0:
        return np.inf
    n_grid = 30 + int(math.sqrt(n))
    b, profile = np.empty(n_grid), np.empty(n_grid)
    for j in range(n_grid):
        b[j] = (1.0 - math.sqrt(n_grid / (j + 0.5))) / (3.0 * quartile) + 1.0 / excess[n - 1]
        shape = _mean_log1p(-b[j], excess)
        profile[j] = n * (math.log(-b[j] / shape) - shape - 1.0)
    highest = profile.max()
    total, mean = 0.0, 0.0
    for j in range(n_grid):
        weight = math.exp(profile[j] - highest)
        if weight >= 10.0 * 2.220446049250313e-16:
            total += weight
            mean += weight * b[j]
    shape = _mean_log1p(-mean / total, excess)
    khat: float = (n * shape + 10.0 * 0.5) / (n + 10.0)
    return khat


@numba.njit(cache=True)
def _mean_log1p(factor: float, values: np.ndarray) -> float:
    """Mean of log(1 + factor * value), with one logarithm for many values."""
    total, product = 0.0, 1.0
    for value in values:
        product *= 1.0 + factor * value
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


def likelihood_of_release(log_m: np.ndarray, released: np.ndarray) -> np.ndarray:
    """Log-likelihood of all released counts by candidate, eq. (5): (cell, K + 1)."""
    cells = np.arange(log_m.shape[0])
    return np.sum([log_m[cells, :, dataset] for dataset in released], axis=0)


def posterior_of_counts(log_likelihood: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Eq. (3): rho by cell and candidate from likelihood and prior; rows sum to one.

    Examples
    --------
    >>> posterior_of_counts(np.log([[0.2, 0.6]]), np.array([0.5, 0.5]))
    array([[0.25, 0.75]])
    """
    with np.errstate(divide="ignore"):
        log_rho = log_likelihood + np.log(prior)
    log_rho -= log_rho.max(axis=1, keepdims=True)
    rho = np.exp(log_rho)
    return np.asarray(rho / rho.sum(axis=1, keepdims=True))


def best_guess(rho: np.ndarray) -> np.ndarray:
    """Most probable count of each cell, or -1 where two are equally probable.

    Examples
    --------
    >>> best_guess(np.array([[0.2, 0.8], [0.5, 0.5]]))
    array([ 1, -1])
    """
    guess = np.argmax(rho, axis=1)
    # equal up to rounding counts as a tie: the intruder cannot tell them apart
    tied = (rho >= rho.max(axis=1, keepdims=True) * (1.0 - 1e-12)).sum(axis=1) > 1
    return np.where(tied, -1, guess)
