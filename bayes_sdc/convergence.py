r"""R-hat and effective sample sizes of many parameters at once.

The rank-normalised split R-hat and the bulk and tail effective sample sizes of Vehtari et al., as
ArviZ computes them one by one, and equal to those (tested). Compiled because a nation has hundreds
of thousands of effects, and each takes ArviZ milliseconds.

References
----------
A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Buerkner, "Rank-normalization, folding, and
localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 2021,
doi:10.1214/20-BA1221.
"""

import math

import numba
import numpy as np
from scipy.special import ndtri

RHAT_LIMIT = 1.01  # Vehtari, Gelman, Simpson, Carpenter and Buerkner 2021
ESS_LIMIT = 400.0  # 100 a chain for four chains, same source
RHAT_FAIL, ESS_FAIL = 1.05, 100.0
TAILS = (0.05, 0.95)  # quantiles whose effective sample sizes make that of the tail

compiled = numba.njit(cache=True, nogil=True, error_model="numpy")


def convergence(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Judge each parameter by its draws.

    Parameters
    ----------
    draws : array of float, shape (chain, draw, parameter)
        At least two chains of four draws for an R-hat.

    Returns
    -------
    rhat : array of float, shape (parameter,)
        Rank-normalised split R-hat, the larger of bulk and folded; infinite for a parameter that
        never moved, or with too few draws to tell.
    bulk, tail : array of float, shape (parameter,)
        Effective sample sizes; 0 where R-hat is infinite, the tail's the smaller of both tails.

    Examples
    --------
    >>> draws = np.random.default_rng(1).normal(size=(4, 250, 2))
    >>> rhat, bulk, tail = convergence(draws)
    >>> bool((rhat < 1.02).all() and (bulk > 600).all())
    True
    """
    chains, length, parameters = draws.shape
    if chains < 2 or length < 4:
        worst = np.full(parameters, np.inf)
        return worst, np.zeros(parameters), np.zeros(parameters)
    # of average ranks, which come in halves
    total = 2 * chains * (length // 2)
    scores = ndtri((np.arange(2 * total + 2) / 2.0 - 0.375) / (total + 0.25))
    result = np.empty((3, parameters))
    _judge(draws, scores, result)
    return result[0], result[1], result[2]


@numba.njit(cache=True, nogil=True, parallel=True, error_model="numpy")
def _judge(draws: np.ndarray, scores: np.ndarray, result: np.ndarray) -> None:
    for k in numba.prange(draws.shape[2]):
        result[0, k], result[1, k], result[2, k] = judge_one(draws[:, :, k], scores)


@compiled
def judge_one(draws: np.ndarray, scores: np.ndarray) -> tuple[float, float, float]:
    """R-hat, bulk and tail effective sample size of one parameter, shape (chain, draw).

    Examples
    --------
    >>> judge_one(np.ones((2, 4)), np.zeros(18))
    (inf, 0.0, 0.0)
    """
    chains, length = draws.shape
    half = length // 2
    split = np.empty((2 * chains, half))
    for chain in range(chains):
        for draw in range(half):
            split[2 * chain, draw] = draws[chain, draw]
            split[2 * chain + 1, draw] = draws[chain, length - half + draw]
    flat = np.sort(split.ravel())
    if not np.isfinite(flat).all() or flat[0] == flat[-1]:
        return np.inf, 0.0, 0.0
    z = normal_scores(split, scores)
    rhat = split_rhat(z)
    bulk = effective_size(z)
    middle = len(flat) // 2
    median = 0.5 * (flat[middle - 1] + flat[middle])
    folded = normal_scores(np.abs(split - median), scores)
    rhat = max(rhat, split_rhat(folded))
    tail = np.inf
    whole = np.sort(np.ascontiguousarray(draws).ravel()).astype(np.float64)
    for probability in TAILS:
        limit = quantile(whole, probability)
        inside = np.empty_like(split)
        for row in range(2 * chains):
            for draw in range(half):
                inside[row, draw] = 1.0 if split[row, draw] <= limit else 0.0
        tail = min(tail, effective_size(inside))
    return rhat, bulk, tail


@compiled
def quantile(ordered: np.ndarray, probability: float) -> float:
    """Quantile of sorted values, between two of them by straight line.

    Examples
    --------
    >>> quantile(np.array([0.0, 1.0, 2.0]), 0.25)
    0.5
    """
    position = probability * (len(ordered) - 1)
    below = min(int(position), len(ordered) - 2)
    part = position - below
    value: float = ordered[below] + part * (ordered[below + 1] - ordered[below])
    return value


@compiled
def normal_scores(values: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Replace values by the normal scores of their average ranks; ``scores`` by twice the rank."""
    flat = values.ravel()
    order = np.argsort(flat)
    z = np.empty(len(flat))
    first = 0
    while first < len(flat):
        after = first + 1
        while after < len(flat) and flat[order[after]] == flat[order[first]]:
            after += 1
        for position in range(first, after):
            z[order[position]] = scores[first + after + 1]  # ranks first + 1 to after
        first = after
    return z.reshape(values.shape)


@compiled
def split_rhat(z: np.ndarray) -> float:
    """R-hat of chains: the spread between them against that within; infinite without the latter."""
    chains, n = z.shape
    means, within = np.empty(chains), 0.0
    for chain in range(chains):
        means[chain] = z[chain].mean()
        if z[chain].min() < z[chain].max():  # else rounding would pass for a spread
            within += ((z[chain] - means[chain]) ** 2).sum() / (n - 1) / chains
    between = n * ((means - means.mean()) ** 2).sum() / (chains - 1)
    if within == 0.0:
        return np.inf
    return math.sqrt((between / within + n - 1.0) / n)


@compiled
def effective_size(x: np.ndarray) -> float:
    """Effective sample size of the mean, by Geyer's initial monotone sequence; shape (chain, draw).

    Autocovariances are formed one lag after the other, as far as the sequence goes.

    Examples
    --------
    >>> effective_size(np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    8.0
    """
    chains, n = x.shape
    if x.max() - x.min() < 1e-15:
        return float(x.size)
    centred, means = np.empty_like(x), np.empty(chains)
    for chain in range(chains):
        means[chain] = x[chain].mean()
        centred[chain] = x[chain] - means[chain]
    biased = autocovariance(centred, 0)
    mean_variance = biased * n / (n - 1.0)
    total = biased + ((means - means.mean()) ** 2).sum() / (chains - 1)
    rho = np.zeros(n)
    even, odd = 1.0, 1.0 - (mean_variance - autocovariance(centred, 1)) / total
    rho[0], rho[1] = even, odd
    t = 1
    while t < n - 3 and even + odd > 0.0:
        even = 1.0 - (mean_variance - autocovariance(centred, t + 1)) / total
        odd = 1.0 - (mean_variance - autocovariance(centred, t + 2)) / total
        if even + odd >= 0.0:
            rho[t + 1], rho[t + 2] = even, odd
        t += 2
    last = t - 2
    if even > 0.0:
        rho[last + 1] = even
    for t in range(1, last - 1, 2):
        before = rho[t - 1] + rho[t]
        if rho[t + 1] + rho[t + 2] > before:
            rho[t + 1], rho[t + 2] = before / 2.0, before / 2.0
    time = -1.0 + 2.0 * rho[: last + 1].sum() + rho[last + 1]
    size: float = x.size / max(time, 1.0 / math.log10(x.size))
    return size


@compiled
def autocovariance(centred: np.ndarray, lag: int) -> float:
    """Mean over chains of the autocovariance at a lag, divided by the length of the chain.

    Examples
    --------
    >>> autocovariance(np.array([[1.0, -1.0]]), 1)
    -0.5
    """
    chains, n = centred.shape
    total: float = 0.0
    for chain in range(chains):
        for draw in range(n - lag):
            total += centred[chain, draw] * centred[chain, draw + lag]
    mean: float = total / (chains * n)
    return mean
