r"""R-hat and effective sample sizes of many parameters at once.

The rank-normalised split R-hat and the bulk and tail effective sample sizes of Vehtari et al., as
ArviZ computes them one by one, and equal to those (tested). Here they are computed for many
parameters at a time, on threads, because a nation has hundreds of thousands of effects and each
takes ArviZ milliseconds. Sorting and Fourier transforms of numpy and scipy release the interpreter,
so nothing needs to be compiled.

References
----------
A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Buerkner, "Rank-normalization, folding, and
localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 2021,
doi:10.1214/20-BA1221.
"""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

from bayes_sdc.cores import threads

RHAT_LIMIT = 1.01  # Vehtari, Gelman, Simpson, Carpenter and Buerkner 2021
ESS_LIMIT = 400.0  # 100 per chain for four chains, same source
RHAT_FAIL, ESS_FAIL = 1.05, 100.0
TAILS = (0.05, 0.95)  # quantiles whose effective sample sizes give that of the tail

AT_ONCE = 1 << 18  # draws in a chunk of parameters: a few arrays of them stay in the cache

Floats = npt.NDArray[np.float64]


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
    step = max(1, AT_ONCE // total)

    def judge(start: int) -> None:
        part = slice(start, start + step)
        result[:, part] = _judged(draws[:, :, part], scores)

    with ThreadPoolExecutor(threads(None)) as pool:
        list(pool.map(judge, range(0, parameters, step)))
    return result[0], result[1], result[2]


def _judged(draws: np.ndarray, scores: Floats) -> Floats:
    """R-hat, bulk and tail size of some parameters, shape (3, parameter)."""
    chains, length, parameters = draws.shape
    half = length // 2
    whole = np.ascontiguousarray(draws.transpose(2, 0, 1), dtype=np.float64)
    split = np.stack([whole[:, :, :half], whole[:, :, length - half :]], axis=2)
    split = split.reshape(parameters, 2 * chains, half)
    result = np.empty((3, parameters))
    result[0], result[1:] = np.inf, 0.0
    flat = split.reshape(parameters, -1)
    with np.errstate(invalid="ignore"):
        low, high = flat.min(axis=1), flat.max(axis=1)
        good = np.flatnonzero(np.isfinite(low) & np.isfinite(high) & (low < high))
    if not len(good):
        return result
    split, whole = split[good], np.sort(whole[good].reshape(len(good), -1), axis=1)
    z = normal_scores(split, scores)
    folded = np.abs(split - np.median(split, axis=(1, 2), keepdims=True))
    result[0, good] = np.maximum(split_rhat(z), split_rhat(normal_scores(folded, scores)))
    result[1, good] = effective_size(z)
    result[2, good] = np.minimum(
        *(effective_size((split <= _quantile(whole, tail)).astype(np.float64)) for tail in TAILS)
    )
    return result


def _quantile(ordered: Floats, probability: float) -> Floats:
    """Quantile of each row of sorted values, by linear interpolation."""
    position = probability * (ordered.shape[1] - 1)
    below = min(int(position), ordered.shape[1] - 2)
    part = position - below
    value = ordered[:, below] + part * (ordered[:, below + 1] - ordered[:, below])
    return np.asarray(value[:, None, None], dtype=np.float64)


def normal_scores(values: Floats, scores: Floats) -> Floats:
    """Replace the values of each parameter by the normal scores of their average ranks.

    Parameters
    ----------
    values : array of float, shape (parameter, chain, draw)
        Of each parameter all are ranked together.
    scores : array of float
        By twice the rank.

    Examples
    --------
    >>> normal_scores(np.array([[[5.0, 3.0, 5.0]]]), np.arange(8.0))
    array([[[5., 2., 5.]]])
    """
    flat = values.reshape(len(values), -1)
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    place = np.arange(flat.shape[1])
    new = np.ones(flat.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    if new.all():
        twice = np.broadcast_to(2 * place + 2, flat.shape)
    else:
        # ranks first + 1 to after of equal values
        first = np.maximum.accumulate(np.where(new, place, 0), axis=1)
        last = np.ones(flat.shape, dtype=bool)
        last[:, :-1] = new[:, 1:]
        after = np.where(last, place + 1, flat.shape[1])
        after = np.minimum.accumulate(after[:, ::-1], axis=1)[:, ::-1]
        twice = first + after + 1
    z = np.empty_like(flat)
    np.put_along_axis(z, order, scores[twice], axis=1)
    return z.reshape(values.shape)


def split_rhat(z: Floats) -> Floats:
    """R-hat of chains: the spread between them against that within; infinite without the latter.

    Parameters
    ----------
    z : array of float, shape (parameter, chain, draw)
    """
    _, chains, n = z.shape
    means = z.mean(axis=2)
    moved = z.min(axis=2) < z.max(axis=2)  # otherwise rounding would pass as a spread
    squares = ((z - means[:, :, None]) ** 2).sum(axis=2)
    within = np.where(moved, squares, 0.0).sum(axis=1) / ((n - 1) * chains)
    between = n * ((means - means.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / (chains - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rhat = np.sqrt((between / within + n - 1.0) / n)
    return np.where(within == 0.0, np.inf, rhat)


def effective_size(x: Floats) -> Floats:
    """Effective sample size of the mean, by Geyer's initial monotone sequence.

    Parameters
    ----------
    x : array of float, shape (parameter, chain, draw)

    Examples
    --------
    >>> effective_size(np.zeros((1, 2, 4)))
    array([8.])
    """
    parameters, chains, n = x.shape
    still = x.max(axis=(1, 2)) - x.min(axis=(1, 2)) < 1e-15
    means = x.mean(axis=2)
    lags = _autocovariance(x - means[:, :, None])
    mean_variance = lags[:, 0] * n / (n - 1.0)
    total = lags[:, 0] + ((means - means.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) / (
        chains - 1
    )
    total[still] = 1.0
    rho = 1.0 - (mean_variance[:, None] - lags) / total[:, None]
    rho[:, 0] = 1.0
    # autocorrelations are added in pairs, for as long as the sum of a pair is above 0
    pairs = rho[:, : 2 * (n // 2)].reshape(parameters, -1, 2).sum(axis=2)
    start = 2 * np.arange(pairs.shape[1]) + 1
    stop = (pairs <= 0.0) | (start >= n - 3)
    number = stop.argmax(axis=1)
    rows = np.arange(parameters)
    # and no pair counts for more than the one before
    sums = np.minimum.accumulate(pairs, axis=1)
    summed = np.where(start < 2 * number[:, None], sums, 0.0).sum(axis=1)
    # the first of the pair that ended it counts once, where it is above 0 or the pair not below 0
    end = rho[rows, 2 * number]
    end = np.where((end > 0.0) | (pairs[rows, number] >= 0.0), end, 0.0)
    time = -1.0 + 2.0 * summed + end
    size = chains * n / np.maximum(time, 1.0 / math.log10(chains * n))
    return np.where(still, float(chains * n), size)


def _autocovariance(centred: Floats) -> Floats:
    """Mean over chains of the autocovariance, divided by the length of the chain, by lag."""
    _, chains, n = centred.shape
    padded = next_fast_len(2 * n, real=True)
    spectrum = rfft(centred, padded, axis=2)
    power = (spectrum.real**2 + spectrum.imag**2).sum(axis=1)
    return np.asarray(irfft(power, padded, axis=1)[:, :n] / (chains * n), dtype=np.float64)
