r"""Probabilities of small counts at many rates at once, the inner loops of the integrals.

With :math:`s = v \lambda / (1 + \kappa \lambda)` the probability of a count is
:math:`c_y s^y / N(s)`, where :math:`N(s) = \sum_k c_k s^k` and the unit :math:`v` makes
:math:`c_0 = c_K = 1`. Above 1 both are taken as polynomials of :math:`1 / s`: nothing overflows,
however many counts there are. With bounded steps (:mod:`bayes_sdc.flows.model.bounded`) the
probabilities are no powers of :math:`s`, and are multiplied up step by step.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from bayes_sdc.flows.model.hyperpriors import compiled

SMALLEST = 1e-280  # a probability whose logarithm is a number
LARGEST_RATE = 1e12  # of a log rate's exp: far beyond it every count is at the bound
FEW_COUNTS = 12  # up to so many, no power of the largest rate overflows
CENTRES, ODDS, RATIOS = 0, 1, 2  # rows of the bound of the steps
FARTHEST_ODDS = 150.0  # of the log of a B_k
MOST_FACTORS = 64  # of a whole power of s that is a product

# sums may be added in another order, which lets the processor take four at a time
vectorized = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"}
)


class Family(NamedTuple):
    """Distribution of the counts of one group in one draw."""

    kappa: float  # of the link
    unit: float  # v
    terms: np.ndarray  # (2, K + 1) c_0 ... c_K, and the same from the end
    bound: np.ndarray  # (3, K + 1) from `fill_bound`; 0 without a bound


@compiled
def family(
    log_cv: float, base: np.ndarray, canonical: bool, terms: np.ndarray, bound: np.ndarray
) -> Family:
    """Prepare the distribution of a group; ``terms`` and ``bound`` are written.

    ``base`` is the log of a base measure, 0 without one: it changes the c_y, and nothing else.
    ``canonical``: whether the rate is s; the kappa of the link is 0 then.

    Examples
    --------
    >>> poisson = family(-np.inf, np.zeros(3), False, np.empty((2, 3)), np.zeros((3, 3)))
    >>> poisson.terms[0].round(3).tolist(), round(poisson.unit**2, 3)
    ([1.0, 1.414, 1.0], 0.5)
    """
    kappa, upper = math.exp(2.0 * log_cv), terms.shape[1] - 1
    if bound[CENTRES, upper] > 0.0:
        fill_bound(kappa, bound)
    terms[0, 0] = 0.0
    for y in range(upper):
        climb = base[y + 1] - base[y]
        terms[0, y + 1] = terms[0, y] + math.log((1.0 + kappa * y) / (y + 1.0)) + climb
    log_unit = terms[0, upper] / upper
    for y in range(upper + 1):
        terms[0, y] = math.exp(terms[0, y] - y * log_unit)
        terms[1, upper - y] = terms[0, y]
    return Family(0.0 if canonical else kappa, math.exp(log_unit), terms, bound)


@compiled
def fill_bound(kappa: float, bound: np.ndarray) -> None:
    """Write what the bounded steps of a group need beside their centres.

    Step k has tanh x_k = 1 - 2 / (1 + E B_k), with E from the rate alone: the second row becomes
    B_k, and the log step at which E is 1 in its last column; the third the exponentials of the
    centres.
    """
    upper = bound.shape[1] - 1
    lowest, highest = np.inf, -np.inf
    for k in range(upper):
        turn = bound[CENTRES, k] - math.log((1.0 + kappa * k) / (k + 1.0))
        bound[ODDS, k], bound[RATIOS, k] = turn, math.exp(bound[CENTRES, k])
        lowest, highest = min(lowest, turn), max(highest, turn)
    middle = 0.5 * (lowest + highest)
    bound[ODDS, upper] = middle
    for k in range(upper):
        away = 2.0 * (middle - bound[ODDS, k]) / bound[CENTRES, upper]
        bound[ODDS, k] = math.exp(min(max(away, -FARTHEST_ODDS), FARTHEST_ODDS))


@vectorized
def fill_odds(rate: np.ndarray, scale: float, now: Family, odds: np.ndarray) -> None:
    """Write E at each node: a power of s."""
    upper, nodes = now.terms.shape[1] - 1, len(rate)
    kappa, unit = now.kappa, math.exp(-now.bound[ODDS, upper])
    sharpness = 2.0 / now.bound[CENTRES, upper]
    whole = int(sharpness)
    for a in range(nodes):
        r = min(rate[a] * scale, LARGEST_RATE)
        odds[a] = unit * r / (1.0 + kappa * r)
    if sharpness == whole and whole <= MOST_FACTORS:
        base = odds[:nodes].copy()
        for _ in range(whole - 1):
            for a in range(nodes):
                odds[a] *= base[a]
    else:
        for a in range(nodes):
            away = sharpness * math.log(max(odds[a], SMALLEST))
            odds[a] = math.exp(min(max(away, -500.0), 500.0))


@vectorized
def fill_factor(k: int, now: Family, odds: np.ndarray, product: np.ndarray) -> None:
    """Multiply by the exponential of the bounded step k at each node.

    That of a quarter of a narrow step is Taylor's polynomial, to 1e-12 of its value, squared twice.
    """
    half, turn = now.bound[CENTRES, now.bound.shape[1] - 1], now.bound[ODDS, k]
    ratio, reach = now.bound[RATIOS, k], 0.25 * half
    if half > 1.0:
        for a in range(len(odds)):
            product[a] *= ratio * math.exp(half * (1.0 - 2.0 / (1.0 + odds[a] * turn)))
        return
    for a in range(len(odds)):
        z = reach * (1.0 - 2.0 / (1.0 + odds[a] * turn))
        f = 1.0 + z * (1.0 / 9.0)
        f = 1.0 + z * (1.0 / 8.0) * f
        f = 1.0 + z * (1.0 / 7.0) * f
        f = 1.0 + z * (1.0 / 6.0) * f
        f = 1.0 + z * (1.0 / 5.0) * f
        f = 1.0 + z * (1.0 / 4.0) * f
        f = 1.0 + z * (1.0 / 3.0) * f
        f = 1.0 + z * (1.0 / 2.0) * f
        f = 1.0 + z * f
        f = f * f
        product[a] *= ratio * (f * f)


@vectorized
def add_and_keep(keep: bool, product: np.ndarray, sums: np.ndarray, powers: np.ndarray) -> None:
    """Add the terms of one more count, and keep them if they are those of the count wanted."""
    for a in range(len(product)):
        sums[a] += product[a]
    if keep:
        for a in range(len(product)):
            powers[a] = max(product[a], SMALLEST)


@compiled
def fill_bounded(
    y: int, now: Family, odds: np.ndarray, powers: np.ndarray, sums: np.ndarray
) -> None:
    """Write numerator and denominator of P(y) with bounded steps at nodes with these E."""
    nodes = len(odds)
    product = np.ones(nodes)
    for a in range(nodes):
        powers[a], sums[a] = 1.0, 1.0
    for k in range(now.terms.shape[1] - 1):
        fill_factor(k, now, odds, product)
        add_and_keep(y == k + 1, product, sums[:nodes], powers[:nodes])


@compiled
def bounded_score(y: int, rate: float, now: Family) -> tuple[float, float]:
    """Derivative of log P(y) by the log rate with bounded steps, and its expected square."""
    upper = now.terms.shape[1] - 1
    half = now.bound[CENTRES, upper]
    rate = max(rate, SMALLEST)
    shrink = 1.0 / (1.0 + now.kappa * rate)
    step = math.log(rate * shrink)
    term, slope, at_y = 1.0, 0.0, 0.0
    n, first, second = 1.0, 0.0, 0.0
    for k in range(upper):
        own = step + math.log((1.0 + now.kappa * k) / (k + 1.0)) - now.bound[CENTRES, k]
        tangent = math.tanh(own / half)
        slope += 1.0 - tangent * tangent
        term *= now.bound[RATIOS, k] * math.exp(half * tangent)
        n += term
        first += term * slope
        second += term * slope * slope
        if k + 1 == y:
            at_y = slope
    mean = first / n
    return (at_y - mean) * shrink, max(second / n - mean * mean, 0.0) * shrink * shrink


@vectorized
def fill_steps(rate: np.ndarray, scale: float, now: Family, s: np.ndarray) -> int:
    """Write s at ascending rates; invert those from 1 on, and return how many are not.

    With few counts none need be inverted, because no power overflows.
    """
    kappa, unit, nodes, below = now.kappa, now.unit, len(rate), 0
    for a in range(nodes):
        r = min(rate[a] * scale, LARGEST_RATE)
        step = unit * r / (1.0 + kappa * r)
        below += step < 1.0
        s[a] = step
    if now.terms.shape[1] <= FEW_COUNTS:
        return nodes
    for a in range(below, nodes):
        s[a] = 1.0 / s[a]
    return below


@vectorized
def fill_sums(terms: np.ndarray, s: np.ndarray, sums: np.ndarray) -> None:
    """Write N(s)."""
    nodes, upper = len(s), len(terms) - 1
    for a in range(nodes):
        sums[a] = terms[upper]
    for k in range(upper - 1, -1, -1):
        term = terms[k]
        for a in range(nodes):
            sums[a] = sums[a] * s[a] + term


@vectorized
def fill_powers(y: int, term: float, s: np.ndarray, powers: np.ndarray) -> None:
    """Write c_y s^y, no less than :data:`SMALLEST`."""
    nodes = len(s)
    for a in range(nodes):
        powers[a] = term
    for _ in range(y):
        for a in range(nodes):
            powers[a] *= s[a]
    for a in range(nodes):
        powers[a] = max(powers[a], SMALLEST)


@compiled
def fill_factors(
    y: int, rate: np.ndarray, scale: float, now: Family, s: np.ndarray, powers: np.ndarray,
    sums: np.ndarray,
) -> None:  # fmt: skip
    """Write numerator and denominator of P(y) at ascending rates times ``scale``.

    Examples
    --------
    >>> poisson = family(-np.inf, np.zeros(3), False, np.empty((2, 3)), np.zeros((3, 3)))
    >>> s, powers, sums = np.empty(1), np.empty(1), np.empty(1)
    >>> fill_factors(1, np.ones(1), 1.0, poisson, s, powers, sums)
    >>> powers / sums
    array([0.4])
    """
    nodes, upper = len(rate), now.terms.shape[1] - 1
    if now.bound[CENTRES, upper] > 0.0:
        fill_odds(rate, scale, now, s)
        fill_bounded(y, now, s[:nodes], powers, sums)
        return
    below = fill_steps(rate, scale, now, s)
    fill_sums(now.terms[0], s[:below], sums)
    fill_powers(y, now.terms[0, y], s[:below], powers)
    if below < nodes:
        fill_sums(now.terms[1], s[below:nodes], sums[below:])
        fill_powers(upper - y, now.terms[0, y], s[below:nodes], powers[below:])


@compiled
def score(y: int, rate: float, now: Family) -> tuple[float, float]:
    """Derivative of log P(y) by the log rate, and its variance.

    Examples
    --------
    >>> poisson = family(-np.inf, np.zeros(3), False, np.empty((2, 3)), np.zeros((3, 3)))
    >>> [round(value, 3) for value in score(1, 1.0, poisson)]
    [0.2, 0.56]
    """
    upper = now.terms.shape[1] - 1
    rate = min(rate, LARGEST_RATE)
    if now.bound[CENTRES, upper] > 0.0:
        found: tuple[float, float] = bounded_score(y, rate, now)
        return found
    shrink = 1.0 / (1.0 + now.kappa * rate)
    s = now.unit * rate * shrink
    terms, step = now.terms[0], s
    if s >= 1.0:
        terms, step = now.terms[1], 1.0 / s
    n, first, second = 0.0, 0.0, 0.0
    for k in range(upper, -1, -1):
        n = n * step + terms[k]
        first = first * step + k * terms[k]
        second = second * step + k * k * terms[k]
    mean = first / n
    residual = y - mean
    if s >= 1.0:  # counted from the top: counts at the bound lose no digits
        residual = mean - (upper - y)
    return residual * shrink, max(second / n - mean * mean, 0.0) * shrink * shrink
