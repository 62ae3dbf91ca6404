"""Importance sampling from the fitted posterior: what replacing one true count would change.

With the true count y_t of one cell replaced by y, the posterior changes by the factor
``w_s(y) = P(y | s) / P(y_t | s)`` of draw s, where P is the truncated distribution of the cell; for
the Poisson family that is ``lambda^(y - y_t)`` up to a constant. So for draws s of the fitted
posterior, with normalised weights,

    M[y, k] = sum_s w_s(y) P(k | s) / sum_s w_s(y),

a product of two matrices a cell, which serves every candidate and every released value. The weights
span hundreds of decades and are formed from logarithms, shifted by the largest of each candidate.

References
----------
S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality", eq. (4)-(8).
The factor 1/L printed in (7) goes away once the weights are normalised, and its inner sum runs
over draws of lambda_t.
"""

import itertools
import math
from collections.abc import Callable

import numba
import numpy as np

from bayes_sdc.flows.counts import Ladder, fill_probabilities, ladder
from bayes_sdc.flows.layout import Layout
from bayes_sdc.flows.synthesis import Rates

CELLS_AT_A_TIME = 4096  # between two updates of the progress
TINY = 2.2250738585072014e-308  # smallest normal number
SMALLEST, LOWEST = 1e-270, -600.0  # a probability and a log weight that leave room on both sides


def release_probabilities(
    rates: Rates,
    cells: Layout,
    chains: int,
    released: np.ndarray,
    *,
    advance: Callable[[float], None] = lambda units: None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probability of each released count for each candidate true count.

    Parameters
    ----------
    rates : Rates
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
    m : array of float, shape (cell, K + 1, K + 1)
        M by candidate and released value; rows over released values sum to one.
    by_chain : array of float, shape (chain, cell, K + 1)
        Log-likelihood of the released counts by candidate, from each chain alone.
    khat : array of float, shape (cell, K + 1)
        Pareto k-hat of each candidate's weights.
    """
    n, width = len(cells.y), cells.upper + 1
    m = np.empty((n, width, width))
    by_chain = np.empty((chains, n, width))
    khat = np.empty((n, width))
    released = np.ascontiguousarray(released)
    # cells are sorted by group, and the draws of a group share their ladders
    edges = np.flatnonzero(np.diff(cells.group, prepend=-1, append=-1)).tolist()
    for first, after in itertools.pairwise(edges):
        rungs = ladder(rates.kappa[cells.group[first]], cells.upper)
        for start in range(first, after, CELLS_AT_A_TIME):
            part = slice(start, min(start + CELLS_AT_A_TIME, after))
            _cells(
                rates.beta,
                rates.gamma,
                rates.coefficient[cells.group[first]],
                rungs,
                cells.origin[part],
                cells.destination[part],
                cells.x[part],
                cells.y[part],
                released[:, part],
                m[part],
                by_chain[:, part],
                khat[part],
            )
            advance(part.stop - part.start)
    return m, by_chain, khat


@numba.njit(cache=True, parallel=True)
def _cells(
    beta: np.ndarray,
    gamma: np.ndarray,
    coefficient: np.ndarray,
    rungs: Ladder,
    origin: np.ndarray,
    destination: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    released: np.ndarray,
    m: np.ndarray,
    by_chain: np.ndarray,
    khat: np.ndarray,
) -> None:
    n_draws, width, chains = beta.shape[1], khat.shape[1], by_chain.shape[0]
    length = n_draws // chains
    tail = tail_length(n_draws)
    for t in numba.prange(len(y)):
        true = y[t]
        p, log_weights = np.empty((n_draws, width)), np.empty((width, n_draws))
        least = 1.0
        for s in range(n_draws):
            log_rate = beta[origin[t], s] + gamma[destination[t], s]
            for covariate in range(x.shape[1]):
                log_rate += x[t, covariate] * coefficient[covariate, s]
            step = fill_probabilities(log_rate, s, rungs, p[s])
            least = min(least, p[s, true])
            for candidate in range(width):
                log_weights[candidate, s] = (candidate - true) * step + (
                    rungs.log_product[s, candidate] - rungs.log_product[s, true]
                )
        # each chain has its own shift, for the chains are also judged alone
        largest, share = np.empty((chains, width)), np.empty((chains, width))
        for candidate in range(width):
            for chain in range(chains):
                part = log_weights[candidate, chain * length : (chain + 1) * length]
                largest[chain, candidate] = part.max()
            for chain in range(chains):
                below = largest[chain, candidate] - largest[:, candidate].max()
                share[chain, candidate] = math.exp(below)
        # a weight is a ratio of two probabilities, unless these or their ratio leave the range of
        # double precision; then it is formed from its logarithm
        plain = least > SMALLEST and largest.min() > LOWEST
        scale = np.exp(-largest) if plain else largest
        # plain loops: a library's dot product may add in another order from one run to the next
        total, sums = np.zeros((chains, width)), np.zeros((width, width))
        found = np.zeros((chains, width, released.shape[0]))
        for s in range(n_draws):
            chain = s // length
            row = p[s]
            inverse = 1.0 / row[true] if plain else 0.0
            for candidate in range(width):
                if plain:
                    weight = row[candidate] * inverse * scale[chain, candidate]
                else:
                    weight = math.exp(log_weights[candidate, s] - largest[chain, candidate])
                total[chain, candidate] += weight
                pooled = weight * share[chain, candidate]
                for k in range(width):
                    sums[candidate, k] += pooled * row[k]
                for dataset in range(released.shape[0]):
                    found[chain, candidate, dataset] += weight * row[released[dataset, t]]
        for candidate in range(width):
            all_chains = (total[:, candidate] * share[:, candidate]).sum()
            for k in range(width):
                m[t, candidate, k] = sums[candidate, k] / all_chains
            for chain in range(chains):
                likelihood = 0.0
                for dataset in range(released.shape[0]):
                    mean = found[chain, candidate, dataset] / total[chain, candidate]
                    likelihood += math.log(max(mean, TINY))
                by_chain[chain, t, candidate] = likelihood
            if candidate == true:  # nothing is replaced, and all weights are one
                khat[t, candidate] = -np.inf
                continue
            khat[t, candidate] = pareto_khat(_largest(log_weights[candidate], tail + 1))


@numba.njit(cache=True)
def _largest(values: np.ndarray, n: int) -> np.ndarray:
    """The n largest values in ascending order.

    A quarter more than n exceed a bound guessed from a sample, as a rule; only they are sorted.
    """
    sample = np.sort(values[:: max(len(values) // 400, 1)].copy())
    above = min(len(sample) * (n + n // 4) // len(values) + 8, len(sample))
    bound = sample[len(sample) - above]
    few = values[values >= bound]
    if len(few) < n:
        few = values.copy()
    few.sort()
    largest: np.ndarray = few[len(few) - n :]
    return largest


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
    if quartile < TINY:
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


def likelihood_of_release(m: np.ndarray, released: np.ndarray) -> np.ndarray:
    """Log-likelihood of all released counts by candidate, eq. (5): (cell, K + 1)."""
    cells = np.arange(m.shape[0])
    return np.sum([np.log(np.maximum(m[cells, :, k], TINY)) for k in released], axis=0)


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
