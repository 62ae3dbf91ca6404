r"""One effect given everything else, without one of its cells: densities on a grid.

Given the other side's effects and the parameters of the group, an effect :math:`u` has the density

.. math:: p_{-t}(u) \propto N(u; \mu, \sigma) \prod_{c \ne t} P(y_c \mid u + o_c),

with :math:`o_c` the rest of the log rate of its cell :math:`c`. The densities of all cells of an
effect are evaluated on one grid of equal steps, where the sum over the grid is an integral that
converges faster than any power of the step. The grid reaches where all of them have vanished,
also when a negative binomial likelihood gives one two modes or a long shoulder.
"""

import math
from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.counts import cell_terms
from bayes_sdc.flows.hyperpriors import compiled

NODES = 96  # most nodes of a grid
# in units of the smallest standard deviation; in log rate, for P(y) of a complex log rate has poles
# about 0.6 beside the real axis
STEP, LONGEST_STEP = 1.1, 0.28
REACH = 5.4  # standard deviations on either side, to begin with
WIDENINGS = 6  # of a grid at whose end a density has not vanished
# of the largest value: what is cut off where the density, and its product with the probability of
# either end of the counts, have vanished: far candidates weigh the density's tail
VANISHED = 1e-7
COARSE = 1.5  # times the step wanted: a grid that cannot be relied on
SMALLEST = 1e-280  # a probability whose logarithm is a number
LARGEST_RATE = 1e12  # of a log rate's exp: far beyond it every count is at the bound


class Grid(NamedTuple):
    """Room for the densities of the cells of one effect; written in place."""

    rate: np.ndarray  # (NODES,) exp of the effect at each node
    density: np.ndarray  # (NODES,) with all cells, relative to its largest value
    own: np.ndarray  # (cell of the effect, NODES) probability of each cell's count
    weights: np.ndarray  # (cell of the effect, NODES) without that cell, summing to one
    first: np.ndarray  # (cell of the effect,) first node that matters
    after: np.ndarray  # (cell of the effect,) the one after the last


@compiled
def make_grid(cells: int) -> Grid:
    """Room for an effect with at most that many cells."""
    return Grid(
        np.empty(NODES), np.empty(NODES), np.empty((cells, NODES)), np.empty((cells, NODES)),
        np.empty(cells, np.int64), np.empty(cells, np.int64),
    )  # fmt: skip


@compiled
def probability(y: int, rate: float, kappa: float, ladder: np.ndarray) -> float:
    """P(y) at a rate; ``ladder`` is that of :func:`bayes_sdc.flows.counts.fill_ladder`.

    Examples
    --------
    >>> from bayes_sdc.flows.counts import fill_ladder
    >>> rungs = np.zeros((4, 3))
    >>> fill_ladder(-np.inf, rungs)
    >>> probability(1, 1.0, 0.0, rungs)
    0.4
    """
    upper = ladder.shape[1] - 1
    step = rate / (1.0 + kappa * rate)
    term, total, mine = 1.0, 1.0, 1.0
    if step < 1.0:
        for k in range(upper):
            term *= step * ladder[1, k]
            total += term
            if k + 1 == y:
                mine = term
    else:
        for k in range(upper - 1, -1, -1):
            term *= ladder[3, k] / step
            total += term
            if k == y:
                mine = term
    return max(mine / total, SMALLEST)


@compiled
def place_grid(
    run: np.ndarray, y: np.ndarray, rest: np.ndarray, start: float, mean: float, sd: float,
    log_cv: float, ladder: np.ndarray,
) -> tuple[float, float, float]:  # fmt: skip
    """Where the densities without each cell lie, by a Newton step from the mode with all cells.

    Returns the ends of the interval and the step that resolves the narrowest density.
    """
    precision = sd**-2.0
    mode = start
    for attempt in range(4):
        slope, information = precision * (mean - mode), precision
        for c in run:
            term = cell_terms(y[c], mode + rest[c], log_cv, ladder)
            slope += term[1]
            information += term[2]
        if attempt < 3:
            mode += min(max(slope / information, -2.0), 2.0)
    low, high = np.inf, -np.inf
    for c in run:
        term = cell_terms(y[c], mode + rest[c], log_cv, ladder)
        without = max(information - term[2], precision)
        moved = mode + min(max((slope - term[1]) / without, -2.0), 2.0)
        low = min(low, moved - REACH / math.sqrt(without))
        high = max(high, moved + REACH / math.sqrt(without))
    return low, high, min(STEP / math.sqrt(information), LONGEST_STEP)


@compiled
def fill_grid(
    run: np.ndarray, y: np.ndarray, rate: np.ndarray, low: float, step: float, nodes: int,
    mean: float, sd: float, kappa: float, ladder: np.ndarray, grid: Grid,
) -> None:  # fmt: skip
    """Evaluate the density with all cells, and each cell's own factor; ``rate`` is exp(rest)."""
    highest = -np.inf
    for a in range(nodes):
        u = low + a * step
        node_rate = math.exp(min(max(u, -300.0), 300.0))
        log_density = -0.5 * ((u - mean) / sd) ** 2
        product = 1.0
        for k in range(len(run)):
            c = run[k]
            p = probability(int(y[c]), min(node_rate * rate[c], LARGEST_RATE), kappa, ladder)
            grid.own[k, a] = p
            product *= p
            if product < 1e-20:  # the product of this and one more is still a number
                log_density += math.log(product)
                product = 1.0
        log_density += math.log(product)
        grid.rate[a], grid.density[a] = node_rate, log_density
        highest = max(highest, log_density)
    for a in range(nodes):
        grid.density[a] = math.exp(grid.density[a] - highest)


@compiled
def leave_one_out(
    run: np.ndarray, y: np.ndarray, rest: np.ndarray, rate: np.ndarray, start: float, mean: float,
    sd: float, log_cv: float, ladder: np.ndarray, grid: Grid,
) -> bool:  # fmt: skip
    """Write the densities of an effect without each of its cells into ``grid``.

    Parameters
    ----------
    run : array of int
        The cells of the effect.
    y, rest, rate : array, by cell
        Counts, the log rates without the effect, and the exp of these.
    start : float
        A value of the effect near its mode, such as a posterior draw.
    mean, sd : float
        Of its prior.
    log_cv, ladder
        As for :func:`bayes_sdc.flows.counts.cell_terms`.
    grid : Grid
        Written.

    Returns
    -------
    bool
        False when the densities are too wide for a grid of :data:`NODES` nodes.
    """
    kappa, upper = math.exp(2.0 * log_cv), ladder.shape[1] - 1
    none, every, share = np.empty(NODES), np.empty(NODES), np.empty(NODES)
    low, high, wanted = place_grid(run, y, rest, start, mean, sd, log_cv, ladder)
    if not (np.isfinite(low) and np.isfinite(high)):  # far out of range: nothing to integrate
        grid.weights[: len(run)], grid.rate[0] = 0.0, 1.0
        grid.weights[: len(run), 0] = 1.0
        grid.first[: len(run)], grid.after[: len(run)] = 0, 1
        return False
    step, nodes, vanished = wanted, 0, False
    for _ in range(WIDENINGS):
        step = max(wanted, (high - low) / (NODES - 1))
        nodes = min(int((high - low) / step) + 2, NODES)
        fill_grid(run, y, rate, low, step, nodes, mean, sd, kappa, ladder, grid)
        below, above = 0.0, 0.0
        for k in range(len(run)):
            weights, own, total = grid.weights[k], grid.own[k], 0.0
            largest, largest_none, largest_all = 0.0, 0.0, 0.0
            for a in range(nodes):
                weights[a] = grid.density[a] / own[a]
                total += weights[a]
                cell_rate = min(grid.rate[a] * rate[run[k]], LARGEST_RATE)
                none[a] = weights[a] * probability(0, cell_rate, kappa, ladder)
                every[a] = weights[a] * probability(upper, cell_rate, kappa, ladder)
                largest = max(largest, weights[a])
                largest_none = max(largest_none, none[a])
                largest_all = max(largest_all, every[a])
            for a in range(nodes):
                share[a] = max(weights[a] / largest, none[a] / largest_none, every[a] / largest_all)
            below, above = max(below, share[0]), max(above, share[nodes - 1])
            first, after = 0, nodes
            while share[first] < VANISHED:
                first += 1
            while share[after - 1] < VANISHED:
                after -= 1
            grid.first[k], grid.after[k] = first, after
            for a in range(nodes):
                weights[a] /= total
        vanished = below < 10.0 * VANISHED and above < 10.0 * VANISHED
        if vanished:
            break
        wider = 0.3 * (high - low)
        if below >= 10.0 * VANISHED:
            low -= wider
        if above >= 10.0 * VANISHED:
            high += wider
    fine: bool = vanished and step <= COARSE * wanted
    return fine
