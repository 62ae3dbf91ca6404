r"""How much combinations scatter about the base: the second stage.

Given the base g, with N people in the population and n in the sample,

.. math::

    F_k \sim \mathrm{Poisson}(N g_k e_k), \quad e_k \sim \mathrm{Gamma}(r_k, r_k), \quad
    r_k = R \, (n g_k)^\kappa.

kappa = 0 is the usual negative binomial and kappa = 1 a Dirichlet process about g; which of them
holds is learned. The likelihood is that of all combinations, seen or not. With x = n g / r it is,
up to the factorials,

.. math::

    \sum_{f_k > 0} \Big( f_k \log n g_k + \sum_{i=1}^{f_k - 1} \log(1 + i / r_k)
        - (r_k + f_k) \log(1 + x_k) \Big) - \sum_{f_k = 0} r_k \log(1 + x_k).

All of it but the few large f depends on a combination through log(n g) alone and smoothly, so
combinations are first spread over nodes of log(n g), by interpolation of fifth degree: from then on
a point (R, kappa) costs the same for a thousand combinations and for a million.
"""

import math
from typing import NamedTuple

import numpy as np

from bayes_sdc.microdata.latent_classes.draws import compiled, inlined, pick, sum_of

NODE = 0.25  # between nodes of log(n g); an error of about 1e-6 of each term
TABULATED = 32  # larger f are taken one by one
LOG_R = (-3.0, 5.0)  # of the prior; kappa has 0 to 1
POINTS = 12  # a side of the grid on which the mass is looked for
FINEST = 128
NEGLIGIBLE = 14.0  # below the highest log density
CLOSER = 0.5  # a box is looked at again while it shrinks to less than this
STEP = 1.2  # of the grid at most, in conditional standard deviations


class Terms(NamedTuple):
    """The likelihood of (R, kappa) given the base, summed up.

    Parameters
    ----------
    node : array, shape (node,)
        log(n g) of each node.
    seen : array, shape (node,)
        Combinations with f > 0 by node.
    members : array, shape (node,)
        Their records.
    steps : array, shape (i, node)
        Combinations with f > i, up to :data:`TABULATED`.
    deepest : array of int, shape (node,)
        Last i in use.
    unseen : array, shape (node,)
        Records that the base expects in combinations that nobody in the sample has.
    constant : float
        Sum of f log(n g) over all.
    t : array, shape (large combination,)
        log(n g) of those with larger f.
    f : array, shape (large combination,)
        Their f.
    """

    node: np.ndarray
    seen: np.ndarray
    members: np.ndarray
    steps: np.ndarray
    deepest: np.ndarray
    unseen: np.ndarray
    constant: float
    t: np.ndarray
    f: np.ndarray


@compiled
def spread(values: np.ndarray, t: float, lowest: float, weight: float) -> None:
    """Spread a weight at t over the six nodes about it, exactly for polynomials of degree five."""
    position = (t - lowest) / NODE
    k = int(position)
    s = position - k
    # Lagrange's weights at the places -2 to 3
    for i in range(-2, 4):
        share = weight
        for j in range(-2, 4):
            if j != i:
                share *= (s - j) / (i - j)
        values[k + i] += share


@compiled
def collect(f: np.ndarray, log_ng: np.ndarray, unseen: np.ndarray, weight: float) -> Terms:
    """Sum up the likelihood; ``unseen`` has log(n g) of drawn combinations, each for ``weight``."""
    lowest, highest, many = np.inf, -np.inf, 0
    for k in range(len(log_ng)):
        lowest, highest = min(lowest, log_ng[k]), max(highest, log_ng[k])
        if f[k] > TABULATED:
            many += 1
    for k in range(len(unseen)):
        lowest, highest = min(lowest, unseen[k]), max(highest, unseen[k])
    lowest -= 2.0 * NODE
    nodes = int((highest - lowest) / NODE) + 5
    node = np.empty(nodes)
    for k in range(nodes):
        node[k] = lowest + NODE * k
    seen, members, missing = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
    steps = np.zeros((TABULATED, nodes))
    deepest = np.zeros(nodes, dtype=np.int64)
    constant = 0.0
    large_t, large_f = np.empty(many), np.empty(many)
    large = 0
    for k in range(len(f)):
        t = log_ng[k]
        constant += f[k] * t
        if f[k] > TABULATED:
            large_t[large], large_f[large] = t, f[k]
            large += 1
            continue
        spread(seen, t, lowest, 1.0)
        spread(members, t, lowest, float(f[k]))
        near = int((t - lowest) / NODE)
        for i in range(1, f[k]):
            spread(steps[i], t, lowest, 1.0)
        for place in range(near - 2, near + 4):
            deepest[place] = max(deepest[place], f[k] - 1)
    for k in range(len(unseen)):
        spread(missing, unseen[k], lowest, weight)
    return Terms(node, seen, members, steps, deepest, missing, constant, large_t, large_f)


@compiled
def log_likelihood(terms: Terms, log_r: float, kappa: float) -> float:
    """Log likelihood of R and kappa, see the head of this module."""
    total = terms.constant
    for k in range(len(terms.node)):
        t = terms.node[k]
        if terms.members[k] == 0.0 and terms.unseen[k] == 0.0:
            continue
        shape = math.exp(log_r + kappa * t)
        x = math.exp(t) / shape
        lost = math.log1p(x)
        total -= (shape * terms.seen[k] + terms.members[k]) * lost
        total -= terms.unseen[k] * (lost / x if x > 0.0 else 1.0)
        for i in range(1, terms.deepest[k] + 1):
            total += terms.steps[i, k] * math.log1p(i / shape)
    for k in range(len(terms.t)):
        shape = math.exp(log_r + kappa * terms.t[k])
        f = terms.f[k]
        total += log_rising(shape, f)
        total -= (shape + f) * math.log1p(math.exp(terms.t[k]) / shape)
    return total


@inlined
def log_rising(shape: float, f: float) -> float:
    """Log of Gamma(shape + f) / (Gamma(shape) shape^f): the sum of log(1 + i / shape), i < f.

    By Stirling's series for large shapes, where the difference of two log Gammas loses its digits.
    """
    if shape < 1e4:
        return math.lgamma(shape + f) - math.lgamma(shape) - f * math.log(shape)
    end = shape + f
    main = (end - 0.5) * math.log1p(f / shape) - f
    return main + (1.0 / end - 1.0 / shape) / 12.0


@inlined
def log_likelihood_without(terms: Terms) -> float:
    """Return the limit for large R: combinations do not scatter about the base at all."""
    total = terms.constant
    for k in range(len(terms.node)):
        total -= math.exp(terms.node[k]) * terms.seen[k] + terms.unseen[k]
    for k in range(len(terms.t)):
        total -= math.exp(terms.t[k])
    return total


@inlined
def log_prior(log_r: float, kappa: float, typical: float, pull: float) -> float:
    """Log prior of log R and kappa, up to a constant; minus infinity outside its box.

    Flat but for a pull towards no scatter, by the standard deviation of e of a ``typical`` sample
    unique: log density minus ``pull`` times that, so that a file that tells nothing about the
    scatter is not taken for one that scatters a lot.
    """
    if log_r < LOG_R[0] or log_r > LOG_R[1] or kappa < 0.0 or kappa > 1.0:
        return -np.inf
    return -pull * math.exp(-0.5 * (log_r + kappa * typical))


@compiled
def evaluate(
    terms: Terms, box: np.ndarray, slope: float, points: int, typical: float, pull: float
) -> np.ndarray:
    """Log posterior at the middles of a grid over a box of kappa and log R + slope kappa."""
    values = np.empty((points, points))
    for a in range(points):
        kappa = box[0] + (box[1] - box[0]) * (a + 0.5) / points
        for b in range(points):
            log_r = box[2] + (box[3] - box[2]) * (b + 0.5) / points - slope * kappa
            prior = log_prior(log_r, kappa, typical, pull)
            values[a, b] = -np.inf
            if prior > -np.inf:
                values[a, b] = prior + log_likelihood(terms, log_r, kappa)
    return values


@compiled
def highest_of(values: np.ndarray) -> float:
    """Return the largest value of a grid."""
    highest = -np.inf
    for a in range(values.shape[0]):
        for b in range(values.shape[1]):
            highest = max(highest, values[a, b])
    return highest


@compiled
def weights_of(values: np.ndarray) -> np.ndarray:
    """Turn log densities of a grid into weights, the largest 1."""
    highest = highest_of(values)
    weights = np.empty(values.shape)
    for a in range(values.shape[0]):
        for b in range(values.shape[1]):
            weights[a, b] = math.exp(values[a, b] - highest)
    return weights


@compiled
def moments(weights: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Means, variances and covariance of kappa and the other coordinate on a grid."""
    points = weights.shape[0]
    found = np.zeros(5)
    wide, high = (box[1] - box[0]) / points, (box[3] - box[2]) / points
    total = sum_of(weights.ravel())
    for order in range(2):
        for a in range(points):
            for b in range(points):
                w = weights[a, b] / total
                u = box[0] + wide * (a + 0.5)
                v = box[2] + high * (b + 0.5)
                if order == 0:
                    found[0] += w * u
                    found[1] += w * v
                else:
                    found[2] += w * (u - found[0]) ** 2
                    found[3] += w * (v - found[1]) ** 2
                    found[4] += w * (u - found[0]) * (v - found[1])
    return found


@inlined
def closer_box(values: np.ndarray, box: np.ndarray, turn: float) -> np.ndarray:
    """Return a box about what is not negligible, with a margin of one cell.

    In new coordinates: ``turn`` times kappa is added to the second one.
    """
    points = values.shape[0]
    highest = highest_of(values)
    wide, high = (box[1] - box[0]) / points, (box[3] - box[2]) / points
    near = np.empty(4)
    near[0], near[1], near[2], near[3] = np.inf, -np.inf, np.inf, -np.inf
    for a in range(points):
        for b in range(points):
            if values[a, b] > highest - NEGLIGIBLE:
                for side in range(-1, 3, 3):
                    u = min(max(box[0] + wide * (a + side), 0.0), 1.0)
                    near[0], near[1] = min(near[0], u), max(near[1], u)
                    for other in range(-1, 3, 3):
                        v = box[2] + high * (b + other) + turn * u
                        near[2], near[3] = min(near[2], v), max(near[3], v)
    return near


@inlined
def corners(slope: float) -> np.ndarray:
    """Bound kappa and log R + slope kappa over the whole prior."""
    box = np.empty(4)
    box[0], box[1] = 0.0, 1.0
    box[2], box[3] = LOG_R[0] + min(slope, 0.0), LOG_R[1] + max(slope, 0.0)
    return box


@compiled
def posterior_grid(
    terms: Terms, typical: float, pull: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Find where the posterior of log R and kappa is, and evaluate it there finely enough.

    The second coordinate is log R + slope kappa, with the slope that leaves it uncorrelated with
    kappa. The grid is made finer until its steps are below the standard deviations.

    Returns
    -------
    weights : array, shape (point, point)
        Largest 1.
    box : array, shape (4,)
        Bounds of kappa, and of the second coordinate.
    slope : float
        See above.
    """
    slope = typical
    box = corners(slope)
    points = np.int64(POINTS)  # a constant would be a type of its own
    for _ in range(8):
        values = evaluate(terms, box, slope, points, typical, pull)
        found = moments(weights_of(values), box)
        turn = -found[4] / max(found[2], 1e-12)
        near = closer_box(values, box, turn)
        part = (near[1] - near[0]) * (near[3] - near[2])
        part /= (box[1] - box[0]) * (box[3] - box[2])
        box, slope = near, slope + turn
        if part > CLOSER:
            break
    points *= 2
    while True:
        values = evaluate(terms, box, slope, points, typical, pull)
        weights = weights_of(values)
        found = moments(weights, box)
        # steps in units of the standard deviation given the other coordinate
        left = 1.0 - min(found[4] ** 2 / max(found[2] * found[3], 1e-300), 0.999)
        wide = (box[1] - box[0]) / points / math.sqrt(max(found[2] * left, 1e-300))
        high = (box[3] - box[2]) / points / math.sqrt(max(found[3] * left, 1e-300))
        if max(wide, high) < STEP or points >= FINEST:
            return weights, box, slope
        points *= 2


@compiled
def draw_within(rng: np.random.Generator, before: float, after: float, cells: float) -> float:
    """Draw a place in a cell, from 0 to 1, where the log density goes up by a straight line.

    ``before`` and ``after`` are the densities ``cells`` cells apart; 0 where there is none.
    """
    u: float = rng.random()
    if before <= 0.0 or after <= 0.0 or cells == 0.0:
        return u
    slope = math.log(after / before) / cells
    if abs(slope) < 1e-6:
        return u
    return math.log1p(u * math.expm1(slope)) / slope


@compiled
def draw_scatter(
    rng: np.random.Generator, weights: np.ndarray, box: np.ndarray, slope: float
) -> tuple[float, float]:
    """Draw log R and kappa: a cell of the grid by its weight, a point of it by the slopes there."""
    points = weights.shape[0]
    flat = weights.ravel()
    cell = pick(rng, flat, sum_of(flat))
    a, b = cell // points, cell % points
    left, right = max(a - 1, 0), min(a + 1, points - 1)
    below, above = max(b - 1, 0), min(b + 1, points - 1)
    along = draw_within(rng, weights[left, b], weights[right, b], float(right - left))
    up = draw_within(rng, weights[a, below], weights[a, above], float(above - below))
    kappa = box[0] + (box[1] - box[0]) * (a + along) / points
    log_r = box[2] + (box[3] - box[2]) * (b + up) / points - slope * kappa
    return min(max(log_r, LOG_R[0]), LOG_R[1]), kappa
