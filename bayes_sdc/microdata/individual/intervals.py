r"""Central 95 % intervals of the inverse population frequency 1 / F of each combination.

Two things are uncertain about a record's risk, and they have intervals of their own.

of 1 / F
    F itself: the posterior distribution of 1 / F, parameters included. Its mean is the risk.
of the risk
    the parameters alone: the risk is E[1 / F] given them, and the interval is over what is known
    of them. Where the parameters are given it has no width.

F - f is negative binomial, or a mixture of such distributions over the parameters, and the end of
an interval of F is the smallest number at which the cumulative distribution reaches 2.5 or 97.5 %.
For one distribution it is computed as it is. A mixture is solved as if F were continuous, by the
incomplete beta function, on a grid of p and with f above 64 and the spread to 2 %. The levels are
then met within half a per cent, the more closely the less p varies beside F.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize.elementwise import find_root
from scipy.special import betainc, betaincinv

from bayes_sdc.microdata.individual.closed_form import individual_risk
from bayes_sdc.microdata.individual.interpolation import nodes_of
from bayes_sdc.models.priors import MOST_CERTAIN, beta_concentration

LEVELS = (0.025, 0.975)
STEP = 0.2  # in log(p / (1 - p))
COARSE = 0.02  # in the log of f and of the spread
EXACT_TO = 64  # f
AT_ONCE = 1 << 14
MOST = 1e18  # a larger F counts as this
LEAST = 1e-6  # F - f + 1 as a continuous number; from 1 down F - f is 0
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(128)  # of the distribution function of p

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Parameters = Callable[[slice], tuple[Floats, Floats]]


def known_interval(f: Integers, p: Floats) -> Floats:
    """Interval of 1 / F where F - f is negative binomial of size f and probability p.

    Parameters
    ----------
    f : array of int, shape (combination,)
        1 or more.
    p : array of float, shape (combination,)
        Above 0 and at most 1.

    Returns
    -------
    array of float, shape (combination, 2)
        Lower and upper end, in (0, 1 / f].

    Examples
    --------
    >>> known_interval(np.array([1, 1, 3]), np.array([0.1, 1.0, 0.1])).round(4).tolist()
    [[0.0278, 1.0], [1.0, 1.0], [0.0143, 0.1429]]
    """
    found = nodes_of(f, p, None)
    frequency = f[found.first]
    chance = np.maximum(found.p, 1.0 / MOST)
    ends = [frequency + _smallest(level, frequency, chance) for level in LEVELS]
    return _inverse(ends)[found.place[:, 0]]


def _smallest(level: float, size: Integers, chance: Floats) -> Floats:
    """Smallest number at which the negative binomial distribution function reaches the level."""
    high = np.ceil(_beyond(size, (1.0 - chance) / chance))
    low = np.full(high.shape, -1.0)
    while True:
        middle = np.floor(0.5 * (low + high))
        between = (low < middle) & (middle < high)
        if not between.any():
            return high
        reached = betainc(size, middle + 1.0, chance) >= level
        high = np.where(between & reached, middle, high)
        low = np.where(between & ~reached, middle, low)


def _beyond(size: npt.NDArray[np.float64 | np.int64], odds: Floats) -> Floats:
    """Return what the largest of the Gamma variables, and of the Poisson variables, is below."""
    mean = (size + 12.0 * np.sqrt(size) + 40.0) * odds
    return np.asarray(mean + 12.0 * np.sqrt(mean) + 40.0)


def uncertain_interval(f: Integers, p: Floats, spread: Floats) -> Floats:
    """Interval of 1 / F where p has a Beta distribution.

    Parameters
    ----------
    f, p
        As for `known_interval`.
    spread : array of float, shape (combination,)
        Relative standard deviation of p, 0 or more.

    Returns
    -------
    array of float, shape (combination, 2)
        Lower and upper end, in (0, 1 / f].
    """
    interval = known_interval(f, p)
    uncertain = np.flatnonzero(spread > 0)
    if not len(uncertain):
        return interval
    about, relative = _coarse(f[uncertain]), _coarse(spread[uncertain], 0.0)
    _, family = np.unique(about + 1j * relative, return_inverse=True)
    found = nodes_of(family, np.minimum(p[uncertain], MOST_CERTAIN), STEP)
    size = about[found.first]
    concentration = beta_concentration(found.p, relative[found.first])

    def parameters(part: slice) -> tuple[Floats, Floats]:
        a = (found.p * concentration)[part, None]
        b = ((1.0 - found.p) * concentration)[part, None]
        chance = np.clip(betaincinv(a, b, (1.0 + NODES) / 2.0), 1e-300, MOST_CERTAIN)
        return np.broadcast_to(size[part, None], chance.shape), chance

    ends = [
        found.interpolate(_log_end(level, len(found.p), parameters, NODE_WEIGHTS / 2.0))
        for level in LEVELS
    ]
    interval[uncertain] = _rescaled(f[uncertain], about, ends)
    return interval


def uncertain_risk_interval(f: Integers, p: Floats, spread: Floats) -> Floats:
    """Interval of E[1 / F | p] where p has a Beta distribution: the risk at its quantiles.

    Parameters
    ----------
    f, p, spread
        As for `uncertain_interval`.

    Returns
    -------
    array of float, shape (combination, 2)
        Lower and upper end, in [0, 1 / f].
    """
    uncertain = np.flatnonzero(spread > 0)
    interval = np.repeat(individual_risk(f, p)[:, None], 2, axis=1)
    mean = np.minimum(p[uncertain], MOST_CERTAIN)
    concentration = beta_concentration(mean, spread[uncertain])
    for end, level in enumerate(LEVELS):
        chance = betaincinv(mean * concentration, (1.0 - mean) * concentration, level)
        interval[uncertain, end] = individual_risk(f[uncertain], np.clip(chance, 1e-300, 1.0))
    return interval


def shared_interval(f: Integers, p: Floats, shape: Floats, rate: Floats) -> Floats:
    """Interval of 1 / F where the rates share a Gamma distribution.

    Parameters
    ----------
    f, p
        As for `known_interval`.
    shape, rate : array of float, shape (draw,)
        Draws of alpha, above -1, and beta, 0 or more, of equal weight.

    Returns
    -------
    array of float, shape (combination, 2)
        Lower and upper end, in (0, 1 / f].
    """
    about = _coarse(f)
    found = nodes_of(np.unique(about, return_inverse=True)[1], p, STEP)
    size = about[found.first]

    def parameters(part: slice) -> tuple[Floats, Floats]:
        return size[part, None] + shape, (rate + found.p[part, None]) / (rate + 1.0)

    weight = np.full(len(shape), 1.0 / len(shape))
    ends = [
        found.interpolate(_log_end(level, len(found.p), parameters, weight)) for level in LEVELS
    ]
    return _rescaled(f, about, ends)


def _coarse(values: npt.NDArray[np.float64 | np.int64], exact_to: float = EXACT_TO) -> Floats:
    rounded = np.exp(np.round(np.log(values) / COARSE) * COARSE)
    return np.where(values <= exact_to, values, rounded)


def _log_end(level: float, length: int, parameters: Parameters, weight: Floats) -> Floats:
    """Log of x + 1 where the mixed distribution function at x reaches the level."""
    return np.concatenate(
        [
            _solve(level, *parameters(slice(start, start + AT_ONCE)), weight)
            for start in range(0, length, AT_ONCE)
        ]
    )


def _solve(level: float, size: Floats, success: Floats, weight: Floats) -> Floats:
    odds = (1.0 - success) / success

    def surplus(log_end: Floats, node: Integers) -> Floats:
        return betainc(size[node], np.exp(log_end)[:, None], success[node]) @ weight - level

    high = np.log(np.minimum(_beyond(size, odds).max(axis=1), MOST))
    node = np.arange(len(size))
    result = np.full(len(size), np.log(LEAST))
    above = surplus(result, node) < 0
    beyond = surplus(high, node) < 0
    result[beyond] = high[beyond]
    chosen = node[above & ~beyond]
    if len(chosen):
        solution = find_root(
            surplus, (result[chosen], high[chosen]), args=(chosen,), tolerances={"xatol": 1e-7}
        )
        result[chosen] = solution.x
    return result


def _rescaled(f: Integers, about: Floats, log_ends: list[Floats]) -> Floats:
    """Interval from ends of a neighbouring f: F is proportional to it."""
    ends = []
    for log_end in log_ends:
        beyond = f / about * (about + np.exp(log_end) - 1.0)
        ends.append(np.maximum(np.ceil(beyond - 1e-6), f))
    return _inverse(ends)


def _inverse(ends: list[npt.NDArray[Any]]) -> Floats:
    return np.column_stack([1.0 / ends[1], 1.0 / ends[0]])
