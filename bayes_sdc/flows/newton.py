r"""Gibbs engine: Metropolis within Gibbs with Newton proposals, for a whole table at once.

The model is that of :mod:`bayes_sdc.models.migration` in its identified form, with log rate
:math:`\alpha + b_i + g_j + x' \omega`. Every move that touches the counts proposes from the
normal distribution that one Newton step gives: mean :math:`x + H^{-1} \nabla`, variance
:math:`H^{-1}`, with the expected information as :math:`H`, corrected by Metropolis and Hastings.
A sweep of a group is

1. the level against the mean of each side's effects, which moves no rate: exact normal draws;
2. each scale given the effects (the centred move);
3. every origin effect, then every destination effect: they are independent given the other side;
4. level, both scales, overdispersion and coefficients together, the effects keeping their ratio to
   the scale (the move that is not centred; alternating with 2 is the interweaving of Yu and Meng).

With the pooled prior, :mod:`bayes_sdc.flows.national` follows once all groups are done.
The reference sampler :mod:`bayes_sdc.flows.gibbs` draws from the same posterior by the paper's
steps; the two are compared in the tests.

References
----------
D. Gamerman, "Sampling from the posterior distribution in generalized linear mixed models",
Statistics and Computing 1997, doi:10.1023/A:1018509429360.
Y. Yu, X.-L. Meng, "To center or not to center", Journal of Computational and Graphical Statistics
2011, doi:10.1198/jcgs.2011.203main.
"""

import math
from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.counts import cell_terms, fill_ladder
from bayes_sdc.flows.hyperpriors import (
    CV,
    GAMMA,
    HALF_NORMAL,
    LEVEL,
    SD_DESTINATION,
    SD_ORIGIN,
    Priors,
    compiled,
    log_prior,
)

TARGET_ACCEPTANCE = 0.7  # of the joint moves; a full Newton step is their upper limit
SMALLEST_STEP = 0.01
RIDGE = 1e-8
JOINT_MOVES = 3  # a sweep; level, scales and overdispersion are what mixes last (measured)
TINY = 1e-150  # a scale that is 0 for every purpose, whose logarithm and square are numbers
LARGEST = 300.0  # of the log of a scale under the gamma prior: beyond it squares are no numbers
SD_STEPS = 3  # random-walk steps of a scale given its effects: they cost nothing beside the counts


class Data(NamedTuple):
    """Counts and index arrays; cells sorted by group and origin, effects by group."""

    y: np.ndarray  # (cell,) float
    origin: np.ndarray  # (cell,)
    destination: np.ndarray  # (cell,)
    x: np.ndarray  # (cell, covariate)
    cells_of_group: np.ndarray  # (group + 1,) runs
    origins_of_group: np.ndarray  # (group + 1,) runs
    destinations_of_group: np.ndarray  # (group + 1,) runs
    by_origin: np.ndarray  # (cell,) cells sorted by origin effect
    cells_of_origin: np.ndarray  # (origin_effect + 1,) runs of by_origin
    by_destination: np.ndarray  # (cell,) cells sorted by destination effect
    cells_of_destination: np.ndarray  # (destination_effect + 1,) runs of by_destination
    upper: int


class State(NamedTuple):
    """Where a chain is; the arrays are changed in place."""

    theta: np.ndarray  # (group, parameter) level, log sd, log sd, log cv, coefficients
    b: np.ndarray  # (origin_effect,) deviations from the level
    g: np.ndarray  # (destination_effect,)
    log_rate: np.ndarray  # (cell,)
    terms: np.ndarray  # (cell, 6) what `cell_terms` returns at the present parameters
    ladders: np.ndarray  # (group, 4, K + 1) what `fill_ladder` writes
    step_size: np.ndarray  # (group + 1,) of the joint moves, in (0, 1]; the last is the nation's


@compiled
def refresh_group(g: int, data: Data, state: State) -> None:
    """Compute what is carried of a group's cells anew."""
    log_cv = state.theta[g, CV]
    fill_ladder(log_cv, state.ladders[g])
    for c in range(data.cells_of_group[g], data.cells_of_group[g + 1]):
        rate = state.theta[g, LEVEL] + state.b[data.origin[c]] + state.g[data.destination[c]]
        for p in range(data.x.shape[1]):
            rate += data.x[c, p] * state.theta[g, CV + 1 + p]
        state.log_rate[c] = rate
        state.terms[c] = cell_terms(data.y[c], rate, log_cv, state.ladders[g])


@compiled
def move_level(
    rng: np.random.Generator, g: int, first: int, after: int, column: int,
    effects: np.ndarray, state: State, priors: Priors,
) -> None:  # fmt: skip
    """Step 1: the level given level + effects of one side; no rate changes."""
    n = after - first
    level, mean, sd = state.theta[g, LEVEL], priors.first[LEVEL], priors.second[LEVEL]
    average = level + effects[first:after].mean()
    # in variances: a precision may overflow
    noise = math.exp(min(2.0 * state.theta[g, column], 600.0)) / (n * sd**2)
    weight = 1.0 / (1.0 + noise)
    new = mean + weight * (average - mean)
    new += sd * math.sqrt(noise * weight) * rng.standard_normal()
    effects[first:after] += level - new
    state.theta[g, LEVEL] = new


@compiled
def move_scale(
    rng: np.random.Generator, g: int, first: int, after: int, column: int,
    effects: np.ndarray, state: State, priors: Priors,
) -> None:  # fmt: skip
    """Step 2: the scale of one side given its effects."""
    n, squares = after - first, (effects[first:after] ** 2).sum()
    kind, one, two = priors.kind[column], priors.first[column], priors.second[column]
    if kind == GAMMA:
        draw = math.log(rng.standard_gamma(one + n / 2.0)) - math.log(two + squares / 2.0)
        state.theta[g, column] = min(-0.5 * draw, LARGEST)
        return
    now = state.theta[g, column]
    height = -n * now - 0.5 * squares * math.exp(-2.0 * now) + log_prior(now, kind, one, two)
    for _ in range(SD_STEPS):
        then = now + 2.4 / math.sqrt(1.0 + 2.0 * n) * rng.standard_normal()
        new = -n * then - 0.5 * squares * math.exp(-2.0 * then) + log_prior(then, kind, one, two)
        if -rng.standard_exponential() < new - height:
            now, height = then, new
    state.theta[g, column] = now


@compiled
def move_effects(
    rng: np.random.Generator, g: int, first: int, after: int, column: int, effects: np.ndarray,
    cells: np.ndarray, runs: np.ndarray, data: Data, state: State, scratch: np.ndarray,
) -> float:  # fmt: skip
    """Step 3: a Newton proposal for every effect of one side; returns the share accepted."""
    log_cv, ladder = state.theta[g, CV], state.ladders[g]
    precision = math.exp(min(-2.0 * state.theta[g, column], 600.0))
    accepted = 0
    for e in range(first, after):
        now = effects[e]
        slope, information, log_p = -precision * now, precision, -0.5 * precision * now**2
        for position in range(runs[e], runs[e + 1]):
            term = state.terms[cells[position]]
            log_p += term[0]
            slope += term[1]
            information += term[2]
        noise = rng.standard_normal()
        then = now + slope / information + noise / math.sqrt(information)
        log_ratio = 0.5 * noise**2 - 0.5 * math.log(information) - log_p
        slope, information, log_p = -precision * then, precision, -0.5 * precision * then**2
        for position in range(runs[e], runs[e + 1]):
            c = cells[position]
            term = cell_terms(data.y[c], state.log_rate[c] + then - now, log_cv, ladder)
            scratch[position - runs[e]] = term
            log_p += term[0]
            slope += term[1]
            information += term[2]
        back = now - then - slope / information
        log_ratio += log_p + 0.5 * math.log(information) - 0.5 * information * back**2
        if -rng.standard_exponential() < log_ratio:
            accepted += 1
            effects[e] = then
            for position in range(runs[e], runs[e + 1]):
                state.log_rate[cells[position]] += then - now
                state.terms[cells[position]] = scratch[position - runs[e]]
    return accepted / max(after - first, 1)


@compiled
def propose_cells(
    g: int, theta: np.ndarray, b_scale: float, g_scale: float, data: Data, state: State,
    ladder: np.ndarray, rates: np.ndarray, terms: np.ndarray,
) -> None:  # fmt: skip
    """Write log rates and terms of a group's cells at other parameters, from index 0."""
    start = data.cells_of_group[g]
    for c in range(start, data.cells_of_group[g + 1]):
        rate = theta[LEVEL] + b_scale * state.b[data.origin[c]]
        rate += g_scale * state.g[data.destination[c]]
        for p in range(data.x.shape[1]):
            rate += data.x[c, p] * theta[CV + 1 + p]
        rates[c - start] = rate
        terms[c - start] = cell_terms(data.y[c], rate, theta[CV], ladder)


@compiled
def joint_information(
    g: int, columns: np.ndarray, data: Data, state: State, terms: np.ndarray,
    b_scale: float, g_scale: float, slope: np.ndarray, metric: np.ndarray,
) -> float:  # fmt: skip
    """Log-likelihood of a group by the parameters of step 4; slope and information are written."""
    d = len(columns)
    direction = np.empty(d)
    slope[:] = 0.0
    metric[:] = 0.0
    height = 0.0
    start = data.cells_of_group[g]
    for c in range(start, data.cells_of_group[g + 1]):
        term = terms[c - start]
        height += term[0]
        for k in range(d):
            column = columns[k]
            if column == LEVEL:
                direction[k] = 1.0
            elif column == SD_ORIGIN:
                direction[k] = b_scale * state.b[data.origin[c]]
            elif column == SD_DESTINATION:
                direction[k] = g_scale * state.g[data.destination[c]]
            elif column > CV:
                direction[k] = data.x[c, column - CV - 1]
        for k in range(d):
            if columns[k] == CV:
                slope[k] += term[3]
                for other in range(d):
                    if other != k:
                        metric[k, other] += term[5] * direction[other]
                        metric[other, k] += term[5] * direction[other]
                metric[k, k] += term[4]
            else:
                slope[k] += term[1] * direction[k]
                for other in range(d):
                    if columns[other] != CV:
                        metric[k, other] += term[2] * direction[k] * direction[other]
    return height


@compiled
def coordinates(theta: np.ndarray, columns: np.ndarray, priors: Priors) -> np.ndarray:
    """Coordinates of the joint move: theta, but a scale with a half-normal prior as it is.

    Near 0 a half-normal scale has a long tail in its logarithm, through which a sampler would have
    to walk. As a number that may be negative it has a normal prior: a negative scale with all
    effects reversed is the same point.
    """
    u = np.empty(len(columns))
    for k in range(len(columns)):
        u[k] = theta[columns[k]]
        if priors.kind[columns[k]] == HALF_NORMAL:
            u[k] = math.exp(u[k])
    return u


@compiled
def from_coordinates(
    u: np.ndarray, theta: np.ndarray, columns: np.ndarray, priors: Priors
) -> np.ndarray:
    """Theta at other coordinates."""
    new = theta.copy()
    for k in range(len(columns)):
        new[columns[k]] = u[k]
        if priors.kind[columns[k]] == HALF_NORMAL:
            new[columns[k]] = math.log(max(abs(u[k]), TINY))
    return new


@compiled
def scale_of_effects(now: float, then: float, u: float, priors: Priors, column: int) -> float:
    """Factor of the effects of one side when the log of its scale moves."""
    factor = math.exp(min(then - now, 300.0))
    return -factor if priors.kind[column] == HALF_NORMAL and u < 0.0 else factor


@compiled
def complete(
    u: np.ndarray, columns: np.ndarray, priors: Priors, slope: np.ndarray, metric: np.ndarray
) -> float:
    """Turn slope and information by theta into those by the coordinates, and add the priors.

    Returns the log-density of the priors. Where a gamma prior falls off exponentially in the log
    scale, its curvature is nearly nothing and a Newton step would know no bounds: the curvature at
    the mode serves everywhere.
    """
    height = 0.0
    for k in range(len(columns)):
        kind, one = priors.kind[columns[k]], priors.first[columns[k]]
        two = priors.second[columns[k]]
        if kind == HALF_NORMAL:
            slope[k] /= u[k]
            metric[k, :] /= u[k]
            metric[:, k] /= u[k]
            one, two = 0.0, one
        if kind == GAMMA:
            if u[k] > LARGEST:
                return -np.inf
            falling = two * math.exp(-2.0 * u[k])
            height -= 2.0 * one * u[k] + falling
            slope[k] += 2.0 * (falling - one)
            metric[k, k] += 4.0 * one
        else:
            height -= 0.5 * ((u[k] - one) / two) ** 2
            slope[k] += (one - u[k]) / two**2
            metric[k, k] += 1.0 / two**2
    return height


@compiled
def newton_step(
    rng: np.random.Generator, slope: np.ndarray, metric: np.ndarray, size: float
) -> tuple[np.ndarray, float]:
    """Draw a move and give its log-density.

    With size 1 it is a Newton step with the inverse metric as variance. Below 1 both step and
    variance shrink such that a normal posterior is still met exactly, with smaller moves.
    """
    root = root_of(metric)
    noise = rng.standard_normal(len(slope))
    pull = 1.0 - math.sqrt(1.0 - size**2)
    newton = np.linalg.solve(root.T, np.linalg.solve(root, slope))
    move = pull * newton + size * np.linalg.solve(root.T, noise)
    return move, np.log(np.diag(root)).sum() - 0.5 * (noise**2).sum()


@compiled
def log_newton_step(move: np.ndarray, slope: np.ndarray, metric: np.ndarray, size: float) -> float:
    """Log-density of a move of :func:`newton_step`; minus infinity where that is not defined."""
    if not (np.isfinite(metric).all() and np.isfinite(slope).all()):
        return -np.inf
    root = root_of(metric)
    pull = 1.0 - math.sqrt(1.0 - size**2)
    newton = np.linalg.solve(root.T, np.linalg.solve(root, slope))
    noise = root.T @ (move - pull * newton) / size
    log_q: float = np.log(np.diag(root)).sum()
    log_q -= 0.5 * (noise**2).sum()
    return log_q


@compiled
def root_of(metric: np.ndarray) -> np.ndarray:
    """Cholesky factor, with a diagonal that is larger by a hair: rounding must not make it fail.

    Where one parameter carries nearly all information, the others' share is lost in its digits.
    Any metric gives a valid proposal as long as it is the same one there and back.
    """
    raised = metric.copy()
    for k in range(len(metric)):
        raised[k, k] *= 1.0 + RIDGE
    root: np.ndarray = np.linalg.cholesky(raised)
    return root


@compiled
def adapted(size: float, accepted: float, rate: float) -> float:
    """Move a step size towards the target acceptance; for the warm-up only."""
    new = size * math.exp(rate * (accepted - TARGET_ACCEPTANCE))
    return min(max(new, SMALLEST_STEP), 1.0)


@compiled
def move_jointly(
    rng: np.random.Generator, g: int, columns: np.ndarray, data: Data, state: State,
    priors: Priors, scratch: np.ndarray, scratch_rate: np.ndarray, scratch_ladder: np.ndarray,
) -> bool:  # fmt: skip
    """Step 4: level, scales, overdispersion and coefficients, effects in units of their scale."""
    d = len(columns)
    start, stop = data.cells_of_group[g], data.cells_of_group[g + 1]
    slope, metric = np.empty(d), np.empty((d, d))
    now = state.theta[g]
    height = joint_information(
        g, columns, data, state, state.terms[start:stop], 1.0, 1.0, slope, metric
    )
    u = coordinates(now, columns, priors)
    height += complete(u, columns, priors, slope, metric)
    move, log_q = newton_step(rng, slope, metric, state.step_size[g])
    log_ratio = -height - log_q
    u += move
    theta = from_coordinates(u, now, columns, priors)
    # the first columns are level and scales, and these are always sampled
    b_scale = scale_of_effects(now[SD_ORIGIN], theta[SD_ORIGIN], u[SD_ORIGIN], priors, SD_ORIGIN)
    g_scale = scale_of_effects(
        now[SD_DESTINATION], theta[SD_DESTINATION], u[SD_DESTINATION], priors, SD_DESTINATION
    )
    fill_ladder(theta[CV], scratch_ladder)
    propose_cells(g, theta, b_scale, g_scale, data, state, scratch_ladder, scratch_rate, scratch)
    height = joint_information(g, columns, data, state, scratch, b_scale, g_scale, slope, metric)
    height += complete(u, columns, priors, slope, metric)
    if not np.isfinite(height):  # out of range: its metric is not complete
        return False
    log_ratio += height + log_newton_step(-move, slope, metric, state.step_size[g])
    if not -rng.standard_exponential() < log_ratio:
        return False
    state.theta[g] = theta
    state.b[data.origins_of_group[g] : data.origins_of_group[g + 1]] *= b_scale
    state.g[data.destinations_of_group[g] : data.destinations_of_group[g + 1]] *= g_scale
    state.ladders[g] = scratch_ladder
    state.log_rate[start:stop] = scratch_rate[: stop - start]
    state.terms[start:stop] = scratch[: stop - start]
    return True


@compiled
def sweep_group(
    rng: np.random.Generator, g: int, columns: np.ndarray, data: Data, state: State,
    priors: Priors, scratch: np.ndarray, scratch_rate: np.ndarray, scratch_ladder: np.ndarray,
) -> tuple[float, float, float]:  # fmt: skip
    """Steps 1 to 4 for one group; returns what was accepted of effects and joint move."""
    origins = data.origins_of_group[g], data.origins_of_group[g + 1]
    destinations = data.destinations_of_group[g], data.destinations_of_group[g + 1]
    move_level(rng, g, origins[0], origins[1], SD_ORIGIN, state.b, state, priors)
    move_level(rng, g, destinations[0], destinations[1], SD_DESTINATION, state.g, state, priors)
    move_scale(rng, g, origins[0], origins[1], SD_ORIGIN, state.b, state, priors)
    move_scale(rng, g, destinations[0], destinations[1], SD_DESTINATION, state.g, state, priors)
    accepted_b = move_effects(
        rng, g, origins[0], origins[1], SD_ORIGIN, state.b, data.by_origin, data.cells_of_origin,
        data, state, scratch,
    )  # fmt: skip
    accepted_g = move_effects(
        rng, g, destinations[0], destinations[1], SD_DESTINATION, state.g, data.by_destination,
        data.cells_of_destination, data, state, scratch,
    )  # fmt: skip
    jointly = 0.0
    for _ in range(JOINT_MOVES):
        jointly += move_jointly(
            rng, g, columns, data, state, priors, scratch, scratch_rate, scratch_ladder
        )
    return accepted_b, accepted_g, jointly / JOINT_MOVES


@compiled
def sweep(
    rng: np.random.Generator, columns: np.ndarray, data: Data, state: State, priors: Priors,
    adapt: float, accepted: np.ndarray,
) -> None:  # fmt: skip
    """Advance every group by one sweep; ``adapt`` above 0 tunes the joint move's size."""
    longest = np.diff(data.cells_of_group).max()
    scratch, scratch_rate = np.empty((longest, 6)), np.empty(longest)
    scratch_ladder = np.empty((4, data.upper + 1))
    for g in range(len(data.cells_of_group) - 1):
        result = sweep_group(
            rng, g, columns, data, state, priors, scratch, scratch_rate, scratch_ladder
        )
        accepted[g, 0], accepted[g, 1], accepted[g, 2] = result[0], result[1], result[2]
        if adapt > 0.0:
            state.step_size[g] = adapted(state.step_size[g], accepted[g, 2], adapt)
