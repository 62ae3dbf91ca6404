r"""Synthesis from prior samples that are large enough for a promise: multinomial and Poisson.

Both mechanisms draw a synthetic count from the cell's own count and a *prior sample*: fictitious
people, so many that one real person more matters little. The larger it is, the smaller epsilon, and
the less remains of the table.

*Dirichlet-multinomial*, as in OnTheMap, which draws homes of workers by workplace: the cells of a
block share a number of synthetic people, whose cells have probabilities drawn from a Dirichlet
distribution with parameters count plus :math:`\alpha`. One person more in cell i multiplies the
probability of a release with :math:`x_i` of m people there by

.. math:: \frac{n_i + \alpha + x_i}{n_i + \alpha} \cdot \frac{N + A}{N + A + m},

which is at most :math:`1 + m / \alpha`, and less with fewer others. Where the bound may fail with
probability :math:`\delta`, a smaller prior sample suffices.

*Poisson-gamma*: given the count n a rate is drawn from a gamma distribution with shape n plus a,
and a Poisson count from the rate. Untruncated, some release would reveal everything, so here it is
truncated to the small counts. Given its sum and with equal exposures it is the first mechanism.

Counts are taken from the smallest one on; what exceeds the largest one is released as the largest.

References
----------
A. Machanavajjhala, D. Kifer, J. Abowd, J. Gehrke, L. Vilhuber, "Privacy: theory meets practice on
the map", ICDE 2008, doi:10.1109/ICDE.2008.4497436. H. Quick, "Generating Poisson-distributed
differentially private synthetic data", Journal of the Royal Statistical Society A 184, 2021,
doi:10.1111/rssa.12711.
"""

import math

import numpy as np
import xarray as xr
from scipy.optimize import brentq
from scipy.special import gammaln

from bayes_sdc.errors import InputError
from bayes_sdc.flows.release.protections.alternatives import matrix_of

ROUNDING = 1e-12  # of a log ratio
WITHIN = 1.01  # prior samples are found up to this factor, and rounded up


def dirichlet_sample(cells: int, draws: int, upper: int, *, epsilon: float, delta: float) -> float:
    """Smallest prior sample of a cell that keeps a promise for every table.

    Parameters
    ----------
    cells : int
        Of the block, 1 or more.
    draws : int
        Synthetic people in the block.
    upper : int
        Largest count of a cell, from 0.
    epsilon : float
        Above 0.
    delta : float
        Probability with which the log ratio of what is released may exceed epsilon; 0 for never.

    Returns
    -------
    float
        The prior sample, in people, at most a hundredth more than is needed.

    Examples
    --------
    >>> round(dirichlet_sample(5, 15, 8, epsilon=1.0, delta=0.0), 3)
    6.401
    >>> round(dirichlet_sample(5, 15, 8, epsilon=1.0, delta=1e-4), 1)
    3.4
    """
    check_promise(epsilon, delta)
    if draws == 0 or cells == 1:  # nothing is drawn, or the draw is known beforehand
        return 1.0

    def broken(sample: float) -> bool:
        if delta == 0.0:
            return dirichlet_epsilon(cells, draws, upper, prior_sample=sample) > epsilon
        of_tables = dirichlet_delta(cells, draws, upper, prior_sample=sample, epsilon=epsilon)
        return of_tables > delta

    high = draws / math.expm1(epsilon)  # enough, however many others there are
    low = 1e-3 * high
    while high > WITHIN * low:
        middle = math.sqrt(low * high)
        if broken(middle):
            low = middle
        else:
            high = middle
    return high


def dirichlet_epsilon(cells: int, draws: int, upper: int, *, prior_sample: float) -> float:
    """Largest log ratio of a release over all tables and neighbours.

    A cell without people that gets all of the synthetic ones tells most where the others are full;
    one that gets none, where they are empty.

    Examples
    --------
    >>> round(dirichlet_epsilon(3, 5, 3, prior_sample=2.0), 3)
    0.904
    """
    others = (cells - 1) * prior_sample
    most = math.log1p(draws / prior_sample)
    most -= math.log1p(draws / (prior_sample + others + (cells - 1) * upper))
    return max(most, math.log1p(draws / (prior_sample + others)))


def dirichlet_delta(
    cells: int, draws: int, upper: int, *, prior_sample: float, epsilon: float
) -> float:
    """Largest probability, over all tables and neighbours, of a release beyond epsilon.

    Only the synthetic count of the cell of the person matters, which is beta-binomial, and of the
    true counts only that cell's and the sum of the others.

    Examples
    --------
    >>> dirichlet_delta(5, 15, 8, prior_sample=15.0, epsilon=1.0)
    0.0
    >>> round(dirichlet_delta(5, 15, 8, prior_sample=0.5, epsilon=1.0), 2)
    0.65
    """
    if cells == 1:
        return 0.0
    x = np.arange(draws + 1)
    own = prior_sample + np.arange(upper)[:, None, None]
    others = (cells - 1) * prior_sample + np.arange((cells - 1) * upper + 1)[None, :, None]
    ratio = np.log1p(x / own) - np.log1p(draws / (own + others))
    log_p = _log_beta_binomial(x, draws, own, others)
    beyond = np.exp(log_p) * (np.abs(ratio) > epsilon + ROUNDING)
    with_one_more = np.exp(log_p + ratio) * (np.abs(ratio) > epsilon + ROUNDING)
    return float(np.maximum(beyond.sum(axis=-1), with_one_more.sum(axis=-1)).max())


def dirichlet_rows(
    y: np.ndarray, block: np.ndarray, draws: np.ndarray, prior_sample: np.ndarray, upper: int
) -> np.ndarray:
    """Release probabilities of each cell, all other counts being what they are.

    Parameters
    ----------
    y : array of int, shape (cell,)
        True counts, from 0.
    block : array of int, shape (cell,)
        Of each cell.
    draws, prior_sample : array, shape (block,)
        Synthetic people, and the prior sample of each cell.
    upper : int
        Largest count; more is released as this.

    Returns
    -------
    array of float, shape (cell, true, released)
        Rows sum to one.

    Examples
    --------
    >>> rows = dirichlet_rows(np.array([1, 0]), np.zeros(2, int), np.array([1]), np.ones(1), 1)
    >>> rows.round(3).tolist()
    [[[0.5, 0.5], [0.333, 0.667]], [[0.667, 0.333], [0.5, 0.5]]]
    """
    cells = np.bincount(block)
    rest = np.bincount(block, y)[block] - y
    m = np.zeros((len(y), upper + 1, upper + 1))
    candidates = np.arange(upper + 1)[:, None]
    for t, b in enumerate(block.tolist()):
        number, alpha = int(draws[b]), float(prior_sample[b])
        x = np.arange(number + 1)
        if cells[b] == 1 or number == 0:
            m[t, :, min(number, upper)] = 1.0
            continue
        others = rest[t] + (cells[b] - 1) * alpha
        p = np.exp(_log_beta_binomial(x, number, alpha + candidates, others))
        for k in range(upper + 1):
            m[t, :, k] = p[:, k:].sum(axis=1) if k == upper else (p[:, k] if k <= number else 0.0)
    return np.asarray(m / m.sum(axis=2, keepdims=True))


def draw_dirichlet(
    y: np.ndarray, block: np.ndarray, draws: np.ndarray, prior_sample: np.ndarray, upper: int,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Draw a release: (cell,) counts from 0; arguments as for :func:`dirichlet_rows`."""
    released = np.zeros(len(y), np.int64)
    for b in range(len(draws)):
        mine = np.flatnonzero(block == b)
        if draws[b] > 0:
            share = rng.dirichlet(y[mine] + prior_sample[b])
            released[mine] = rng.multinomial(draws[b], share)
    return np.minimum(released, upper)


def poisson_gamma(low: int, high: int, *, epsilon: float, mean: float) -> xr.DataArray:
    """Poisson-gamma synthesis, truncated to the small counts, with a given epsilon.

    Parameters
    ----------
    low, high : int
        Small counts, both included.
    epsilon : float
        Above 0: the log probability of every released count changes by at most this for a person
        more or less in the cell.
    mean : float
        Expected count less the smallest one, from outside the table; above 0.

    Returns
    -------
    DataArray (true, released)
        M; rows sum to one.

    Raises
    ------
    InputError
        If epsilon or the mean is not above 0.

    Examples
    --------
    >>> m = poisson_gamma(1, 3, epsilon=0.5, mean=0.8)
    >>> round(float(np.abs(np.diff(np.log(m.to_numpy()), axis=0)).max()), 6)
    0.5
    >>> bool(m.sel(true=3, released=3) > m.sel(true=1, released=3))
    True
    """
    check_promise(epsilon, 0.0)
    if not (mean > 0.0 and math.isfinite(mean)):
        raise InputError(f"mean must be above 0; it is {mean}")
    upper = high - low

    def excess(log_sample: float) -> float:
        log_m = _log_poisson_gamma(upper, math.exp(log_sample), mean)
        return float(np.abs(np.diff(log_m, axis=0)).max(initial=0.0)) - epsilon

    least, most = math.log(1e-6), math.log(1e9)
    # even a very small prior sample reveals no more than this, so there is nothing to find where
    # more is allowed
    found = least if excess(least) <= 0.0 else float(brentq(excess, least, most, xtol=1e-12))
    counts = np.arange(low, high + 1)
    return matrix_of(np.exp(_log_poisson_gamma(upper, math.exp(found), mean)), counts, counts)


def _log_poisson_gamma(upper: int, sample: float, mean: float) -> np.ndarray:
    """Log of M: negative binomial with shape y plus the prior sample, up to the largest count.

    The exposure is such that the prior expects the mean.
    """
    counts = np.arange(upper + 1)
    shape = counts[:, None] + sample
    log_m = gammaln(counts + shape) - gammaln(shape) - gammaln(counts + 1.0)
    log_m = log_m - counts * math.log(2.0 + sample / mean)
    return np.asarray(log_m - np.logaddexp.reduce(log_m, axis=1, keepdims=True))


def _log_beta_binomial(
    x: np.ndarray, draws: int, own: np.ndarray, others: np.ndarray | float
) -> np.ndarray:
    """Log-probability of x of so many, on the last axis, by parameters on the others."""
    log_ways = gammaln(draws + 1.0) - gammaln(x + 1.0) - gammaln(draws - x + 1.0)
    rising = gammaln(x + own) - gammaln(own)
    rising = rising + gammaln(draws - x + others) - gammaln(others)
    return np.asarray(log_ways + rising - gammaln(draws + own + others) + gammaln(own + others))


def check_promise(epsilon: float, delta: float) -> None:
    """Refuse an epsilon or a delta that promises nothing."""
    if not (epsilon > 0.0 and math.isfinite(epsilon)):
        raise InputError(f"epsilon must be above 0, or there is nothing but noise; it is {epsilon}")
    if not 0.0 <= delta < 1.0:
        raise InputError(f"delta must be 0 or more, and below 1; it is {delta}")
