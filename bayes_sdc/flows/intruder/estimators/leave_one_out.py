r"""One effect given everything else, without one of its cells: densities on a grid.

Given the other side's effects and the parameters of the group, an effect :math:`u` has the density

.. math:: p_{-t}(u) \propto N(u; \mu, \sigma) \prod_{c \ne t} P(y_c \mid u + o_c),

with :math:`o_c` the rest of the log rate of its cell :math:`c`. All cells of an effect share the
density with all of them, and a cell is left out by dividing by its own factor. Densities are
evaluated on grids of equal steps, where the sum is an integral that converges faster than any power
of the step. A step is a power of two times another's, so that the grids of two effects add up to
one grid; and the rates on a grid are powers of one factor.

With :math:`s = v \lambda / (1 + \kappa \lambda)` the probability of a count is
:math:`c_y s^y / N(s)`, where :math:`N(s) = \sum_k c_k s^k` and the unit :math:`v` makes
:math:`c_0 = c_K = 1`. Above 1 both are taken as polynomials of :math:`1 / s`: nothing overflows,
however many counts there are.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from bayes_sdc.flows.model.hyperpriors import compiled

NODES = 512  # most nodes of a grid
LANES = 16  # a loop over a multiple of so many nodes leaves no remainder to the scalar processor
# in units of the smallest standard deviation; in log rate, for P(y) of a complex log rate has poles
# about 0.6 beside the real axis
STEP, LONGEST_STEP = 1.1, 0.28
REACH = 5.4  # standard deviations on either side, to begin with
WIDENINGS = 6  # of a grid at whose end a density has not vanished
# of the largest value: what is cut off where the density, and its product with the probability of
# either end of the counts, have vanished: far candidates weigh the density's tail
LOG_VANISHED, TOLERATED = math.log(1e-7), math.log(100.0)  # and how much more at either end
FINEST = 40  # halvings of the longest step: a density that is narrower is a point
SMALLEST = 1e-280  # a probability whose logarithm is a number
LARGEST_RATE = 1e12  # of a log rate's exp: far beyond it every count is at the bound
FEW_COUNTS = 12  # up to so many, no power of the largest rate overflows
LARGEST_LOG = 300.0  # of an effect whose exp is taken
CENTRES, ODDS, RATIOS = 0, 1, 2  # rows of the bound of the steps
FARTHEST_ODDS = 150.0  # of the log of a B_k
MOST_FACTORS = 64  # of a whole power of s that is a product
FARTHEST = 60.0  # of the log of what one cell says

# sums may be added in another order, which lets the processor take four at a time
vectorized = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"}
)


class Family(NamedTuple):
    """Distribution of the counts of one group in one draw."""

    kappa: float
    unit: float  # v
    terms: np.ndarray  # (2, K + 1) c_0 ... c_K, and the same from the end
    bound: np.ndarray  # (3, K + 1) from `fill_bound`; 0 without a bound


class Room(NamedTuple):
    """Room for one effect; written in place."""

    rate: np.ndarray  # (NODES,) exp of the effect at each node
    density: np.ndarray  # (NODES,) with all cells, relative to its largest value
    product: np.ndarray  # (NODES,) of the probabilities of some cells
    s: np.ndarray  # (NODES,) of one cell
    powers: np.ndarray  # (NODES,)
    sums: np.ndarray  # (NODES,)


class Placed(NamedTuple):
    """Where the density of an effect stands in its room."""

    first: int  # node that matters
    after: int  # the last one that does
    level: int  # the step is `longest_step` halved so many times
    good: bool  # whether it is resolved, and has vanished at both ends


@compiled
def make_room() -> Room:
    """Room for one effect."""
    return Room(
        np.empty(NODES), np.empty(NODES), np.empty(NODES), np.empty(NODES), np.empty(NODES),
        np.empty(NODES),
    )  # fmt: skip


@compiled
def family(log_cv: float, base: np.ndarray, terms: np.ndarray, bound: np.ndarray) -> Family:
    """Prepare the distribution of a group; ``terms`` and ``bound`` are written.

    ``base`` is the log of a base measure, 0 without one: it changes the c_y, and nothing else.

    Examples
    --------
    >>> poisson = family(-np.inf, np.zeros(3), np.empty((2, 3)), np.zeros((3, 3)))
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
    return Family(kappa, math.exp(log_unit), terms, bound)


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


@compiled
def padded(nodes: int) -> int:
    """Next multiple of :data:`LANES`."""
    return (nodes + LANES - 1) // LANES * LANES


@compiled
def longest_step(upper: int) -> float:
    """Step that resolves the squares of all probabilities: a count K has a log rate to K**-0.5."""
    return min(LONGEST_STEP, STEP / math.sqrt(2.0 * upper))


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
    >>> poisson = family(-np.inf, np.zeros(3), np.empty((2, 3)), np.zeros((3, 3)))
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
    >>> poisson = family(-np.inf, np.zeros(3), np.empty((2, 3)), np.zeros((3, 3)))
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


@compiled
def fill_density(
    y: np.ndarray, rate: np.ndarray, start: float, mean: float, sd: float, now: Family,
    reach: np.ndarray, room: Room,
) -> Placed:  # fmt: skip
    """Write the density of an effect given all its cells, wide enough to leave any one out.

    Parameters
    ----------
    y, rate : array, by cell of the effect
        Counts, and the rates without the effect.
    start : float
        A value of the effect near its mode, such as a posterior draw.
    mean, sd : float
        Of its prior.
    now : Family
        Of the counts.
    reach : array of float, shape (2,)
        How far the grid of a similar draw reached below and above the mode, in standard deviations;
        0 if there was none. Changed to those of this one.
    room : Room
        Written.

    Returns
    -------
    Placed
        Not good when the density is too wide for :data:`NODES` nodes.
    """
    upper, precision = now.terms.shape[1] - 1, sd**-2.0
    slope, information, most = precision * (mean - start), precision, 0.0
    lowered, raised, least, greatest = 0, 0, -1.0, -1.0  # cells, and how much they are
    start_rate = math.exp(min(max(start, -LARGEST_LOG), LARGEST_LOG))
    for k in range(len(y)):
        of_cell = score(y[k], start_rate * rate[k], now)
        slope += of_cell[0]
        information += of_cell[1]
        most = max(most, of_cell[1])
        shrink = 1.0 / (1.0 + now.kappa * min(start_rate * rate[k], LARGEST_RATE))
        if y[k] * shrink > least:
            lowered, least = k, y[k] * shrink
        if (upper - y[k]) * shrink > greatest:
            raised, greatest = k, (upper - y[k]) * shrink
    mode = start - mean + min(max(slope / information, -1.0), 1.0)
    wide = 1.0 / math.sqrt(max(information - most, precision))
    if reach[0] == 0.0:
        # candidates move the density by what they say more, or less, than the counts there are
        reach[0] = REACH + least / (information * wide)
        reach[1] = REACH + greatest / (information * wide)
    low, high = mode - reach[0] * wide, mode + reach[1] * wide
    if not max(-low, high) < 1e6:  # far out of range: nothing to integrate, no index would hold it
        room.rate[0], room.density[0] = start_rate, 1.0
        reach[:] = 0.0
        return Placed(0, 1, 0, False)
    half = now.bound[CENTRES, upper]
    longest, spread = longest_step(upper), 0.0
    if half > 0.0:  # the poles of a bounded step are nearer; what a cell says has a limit
        longest, spread = min(longest, 0.6 * half), min(2.0 * half * upper, FARTHEST)
        lowered, raised = -1, -1
    wanted = math.ceil(math.log2(longest * math.sqrt(information) / STEP))
    wanted = min(max(wanted, 0), FINEST)
    level, step, lowest, nodes = wanted, longest, 0, 0
    first, after, below, above = 0, 0, 0.0, 0.0
    for _ in range(WIDENINGS):
        while (high - low) / (longest * 0.5**level) > NODES - LANES - 3:
            level -= 1
        step = longest * 0.5**level
        # multiples of the step from the mean of the prior
        lowest = math.floor(low / step)
        nodes = padded(int(math.ceil(high / step) - lowest) + 1)
        fill_nodes(y, rate, lowest, nodes, step, mean, sd, now, room)
        power_down, rate_down = (0, 1.0) if lowered < 0 else (y[lowered], rate[lowered])
        power_up, rate_up = (0, 1.0) if raised < 0 else (upper - y[raised], rate[raised])
        first, after, below, above = ends(
            room.density[:nodes], room.rate, step, now.kappa, (power_down, rate_down),
            (power_up, rate_up), spread, room.s,
        )  # fmt: skip
        if below == 0.0 and above == 0.0:
            break
        low, high = low - below * step, high + above * step
    # as far for the next one, and a little
    reach[0] = max(mode - (lowest + first - 1) * step, step) / wide
    reach[1] = max((lowest + after) * step - mode, step) / wide
    highest = room.density[first]
    for a in range(first + 1, after):
        highest = max(highest, room.density[a])
    for a in range(first, after):
        room.density[a] = math.exp(room.density[a] - highest)
    return Placed(first, after, level, below == 0.0 and above == 0.0 and level == wanted)


@compiled
def fill_nodes(
    y: np.ndarray, rate: np.ndarray, lowest: float, nodes: int, step: float, mean: float,
    sd: float, now: Family, room: Room,
) -> None:  # fmt: skip
    """Write the nodes from ``lowest`` steps on, and the logarithm of the density there."""
    factor = math.exp(step)
    node_rate = math.exp(min(max(mean + lowest * step, -LARGEST_LOG), LARGEST_LOG))
    for a in range(nodes):
        room.rate[a] = node_rate
        node_rate *= factor
        room.density[a] = -0.5 * ((lowest + a) * step / sd) ** 2
    at, product = room.rate[:nodes], room.product[:nodes]
    product[:] = 1.0
    for k in range(len(y)):
        fill_factors(y[k], at, rate[k], now, room.s, room.powers, room.sums)
        multiply(room.powers, room.sums, product)
        # the product of this and one more is still a number, at the ends, where it is smallest
        if min(product[0], product[nodes - 1]) < 1e-20 or k == len(y) - 1:
            for a in range(nodes):
                room.density[a] += math.log(max(product[a], SMALLEST))
                product[a] = 1.0


@vectorized
def multiply(powers: np.ndarray, sums: np.ndarray, product: np.ndarray) -> None:
    """Multiply by the probabilities of one more cell."""
    for a in range(len(product)):
        product[a] *= max(powers[a] / sums[a], SMALLEST)


@compiled
def ends(
    log_density: np.ndarray, node_rate: np.ndarray, step: float, kappa: float,
    lowered: tuple[int, float], raised: tuple[int, float], spread: float, tilted: np.ndarray,
) -> tuple[int, int, float, float]:  # fmt: skip
    """Nodes that matter to some candidate of some cell, and how many steps more do at each end.

    Without its own factor and with that of a candidate, the density of a cell changes by a power of
    s, from minus its count to K minus its count. What matters most below and above are the cells
    that are ``lowered`` and ``raised`` most: power and rate of each. With bounded steps it changes
    by no more than a factor whose logarithm is ``spread``.
    """
    nodes, peak = len(log_density), 0
    for a in range(nodes):
        if log_density[a] > log_density[peak]:
            peak = a
    low_most, high_most = -np.inf, -np.inf
    for a in range(peak + 1):
        odds = kappa * min(node_rate[a] * lowered[1], LARGEST_RATE)
        tilted[a] = log_density[a] - lowered[0] * (a * step - math.log(1.0 + odds))
        low_most = max(low_most, tilted[a])
    first, low_most = 0, low_most + LOG_VANISHED - spread
    while tilted[first] < low_most:
        first += 1
    below = missing(tilted[0], tilted[1], low_most)
    for a in range(peak, nodes):
        odds = kappa * min(node_rate[a] * raised[1], LARGEST_RATE)
        tilted[a] = log_density[a] + raised[0] * (a * step - math.log(1.0 + odds))
        high_most = max(high_most, tilted[a])
    after, high_most = nodes, high_most + LOG_VANISHED - spread
    while tilted[after - 1] < high_most:
        after -= 1
    return first, after, below, missing(tilted[nodes - 1], tilted[nodes - 2], high_most)


@compiled
def missing(end: float, inner: float, vanished: float) -> float:
    """Steps until a logarithm has fallen to ``vanished``, beyond the last node and the one before.

    It falls ever faster, as a rule; no more than 40 steps are asked for at a time.
    """
    if end < vanished + TOLERATED:
        return 0.0
    return min(max((end - vanished) / max(inner - end, 0.1), 3.0), 40.0)
