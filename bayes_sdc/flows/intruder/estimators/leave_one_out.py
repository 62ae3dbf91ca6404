r"""One effect given everything else, without one of its cells: densities on a grid.

Given the other side's effects and the parameters of the group, an effect :math:`u` has the density

.. math:: p_{-t}(u) \propto N(u; \mu, \sigma) \prod_{c \ne t} P(y_c \mid u + o_c),

with :math:`o_c` the rest of the log rate of its cell :math:`c`. The cells of an effect share one
density given all of them; a cell is left out by dividing by its own factor. Densities are evaluated
on grids of equal steps, where the sum is an integral that converges faster than any power of the
step. A step is a power of two times another's, so that the grids of two effects add up to one grid;
and the rates on a grid are powers of one factor.
"""

import math
from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.intruder.estimators.count_probabilities import (
    CENTRES,
    LARGEST_RATE,
    SMALLEST,
    Family,
    fill_factors,
    score,
    vectorized,
)
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
LARGEST_LOG = 300.0  # of an effect whose exp is taken
FARTHEST = 60.0  # of the log of what one cell says


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
def padded(nodes: int) -> int:
    """Next multiple of :data:`LANES`."""
    return (nodes + LANES - 1) // LANES * LANES


@compiled
def longest_step(upper: int) -> float:
    """Step that resolves the squares of all probabilities: count K tells a log rate to K**-0.5."""
    return min(LONGEST_STEP, STEP / math.sqrt(2.0 * upper))


@compiled
def fill_density(
    y: np.ndarray, rate: np.ndarray, weight: np.ndarray, start: float, mean: float, sd: float,
    now: Family, reach: np.ndarray, room: Room,
) -> Placed:  # fmt: skip
    """Write the density of an effect given all its cells, wide enough to leave any one out.

    Parameters
    ----------
    y, rate, weight : array, by cell of the effect
        Counts, the rates without the effect, and the weights of the log-likelihoods.
    start : float
        A value of the effect near its mode, such as a posterior draw.
    mean, sd : float
        Of its prior.
    now : Family
        Of the counts.
    reach : array of float, shape (2,)
        Reach of the grid of a similar draw below and above the mode, in standard deviations; 0 if
        there was none. Replaced by the reach of this one.
    room : Room
        Written.

    Returns
    -------
    Placed
        Not good when the density is too wide for :data:`NODES` nodes.
    """
    upper, precision = now.terms.shape[1] - 1, sd**-2.0
    slope, information, most = precision * (mean - start), precision, 0.0
    lowered, raised, least, greatest = 0, 0, -1.0, -1.0  # cells, and by how much
    start_rate = math.exp(min(max(start, -LARGEST_LOG), LARGEST_LOG))
    for k in range(len(y)):
        of_cell = score(y[k], start_rate * rate[k], now)
        slope += weight[k] * of_cell[0]
        information += weight[k] * of_cell[1]
        most = max(most, weight[k] * of_cell[1])
        shrink = 1.0 / (1.0 + now.kappa * min(start_rate * rate[k], LARGEST_RATE))
        if y[k] * shrink > least:
            lowered, least = k, y[k] * shrink
        if (upper - y[k]) * shrink > greatest:
            raised, greatest = k, (upper - y[k]) * shrink
    mode = start - mean + min(max(slope / information, -1.0), 1.0)
    wide = 1.0 / math.sqrt(max(information - most, precision))
    if reach[0] == 0.0:
        # a candidate moves the density by what it says more, or less, than the true count
        reach[0] = REACH + least / (information * wide)
        reach[1] = REACH + greatest / (information * wide)
    low, high = mode - reach[0] * wide, mode + reach[1] * wide
    if not max(-low, high) < 1e6:  # far out of range: no index could hold the grid
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
        fill_nodes(y, rate, weight, lowest, nodes, step, mean, sd, now, room)
        power_down, rate_down = (0, 1.0) if lowered < 0 else (y[lowered], rate[lowered])
        power_up, rate_up = (0, 1.0) if raised < 0 else (upper - y[raised], rate[raised])
        first, after, below, above = ends(
            room.density[:nodes], room.rate, step, now.kappa, (power_down, rate_down),
            (power_up, rate_up), spread, room.s,
        )  # fmt: skip
        if below == 0.0 and above == 0.0:
            break
        low, high = low - below * step, high + above * step
    # the same reach for the next one, and a little more
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
    y: np.ndarray, rate: np.ndarray, weight: np.ndarray, lowest: float, nodes: int, step: float,
    mean: float, sd: float, now: Family, room: Room,
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
        multiply(room.powers, room.sums, weight[k], product)
        # the product of this and one more is still a number, at the ends, where it is smallest
        if min(product[0], product[nodes - 1]) < 1e-20 or k == len(y) - 1:
            for a in range(nodes):
                room.density[a] += math.log(max(product[a], SMALLEST))
                product[a] = 1.0


@vectorized
def multiply(powers: np.ndarray, sums: np.ndarray, weight: float, product: np.ndarray) -> None:
    """Multiply by the probabilities of one more cell, raised to its weight."""
    if weight == 1.0:
        for a in range(len(product)):
            product[a] *= max(powers[a] / sums[a], SMALLEST)
    else:
        for a in range(len(product)):
            product[a] *= max(powers[a] / sums[a], SMALLEST) ** weight


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

    It usually falls ever faster; at most 40 steps are asked for at a time.
    """
    if end < vanished + TOLERATED:
        return 0.0
    return min(max((end - vanished) / max(inner - end, 0.1), 3.0), 40.0)
