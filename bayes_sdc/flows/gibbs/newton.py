r"""Gibbs engine: Metropolis within Gibbs with Newton proposals, for a whole table at once.

The model is that of :mod:`bayes_sdc.models.migration` in its identified form, with log rate
:math:`\alpha + b_i + g_j + x' \omega`. Every move that touches the counts proposes from the
distribution that one Newton step gives: mean :math:`x + H^{-1} \nabla`, variance
:math:`H^{-1}`, with the expected information as :math:`H`, corrected by Metropolis and Hastings.
It is normal for the joint move and Student's t, with 6 degrees of freedom, for effects: counts at
the upper bound say little of how large a rate is, the posterior of an effect has a longer tail than
a normal proposal, and a chain that got there would stay for hundreds of sweeps (of 230,000
effects of a nation some ten had an effective size below a quarter of the usual).
A sweep of a group is

1. the level against the mean of each side's effects, which moves no rate: exact normal draws;
2. each scale given the effects, and the coefficients of areas' covariates given what they and the
   effects add up to (the centred moves);
3. every origin effect, then every destination effect: they are independent given the other side;
4. level, both scales, overdispersion and coefficients together, the effects keeping their ratio to
   the scale (the move that is not centred; alternating with 2 is the interweaving of Yu and Meng).
   The coefficients move, here and in 2, once a kept draw, because they cost most.

With the pooled prior, :mod:`bayes_sdc.flows.gibbs.national` follows once all groups are done.
The reference sampler :mod:`bayes_sdc.flows.gibbs.reference` draws from the same posterior by the
paper's steps; the two are compared in the tests.

References
----------
D. Gamerman, "Sampling from the posterior distribution in generalized linear mixed models",
Statistics and Computing 1997, doi:10.1023/A:1018509429360.
Y. Yu, X.-L. Meng, "To center or not to center", Journal of Computational and Graphical Statistics
2011, doi:10.1198/jcgs.2011.203main.
"""

import math

import numpy as np

from bayes_sdc.flows.gibbs.area_terms import area_information, move_coefficients
from bayes_sdc.flows.gibbs.batch_terms import ROWS, TERMS, batch_terms, fill_coefficients
from bayes_sdc.flows.gibbs.newton_step import adapted, log_newton_step, newton_step
from bayes_sdc.flows.gibbs.state import (
    OF_CELL,
    OF_DESTINATION,
    OF_ORIGIN,
    Data,
    State,
    Work,
    make_work,
    put_terms,
    rates_at,
)
from bayes_sdc.flows.model.hyperpriors import (
    CV,
    GAMMA,
    HALF_NORMAL,
    LEVEL,
    SD_DESTINATION,
    SD_ORIGIN,
    Priors,
    compiled,
    inlined,
    log_prior,
)

JOINT_MOVES = 1  # a sweep; level, scales and overdispersion are what mixes last (measured)
TINY = 1e-150  # a scale that is 0 for every purpose, whose logarithm and square are numbers
LARGEST = 300.0  # of the log of a scale under the gamma prior: beyond it squares are no numbers
SD_STEPS = 3  # random-chain steps of a scale given its effects: they cost nothing beside the counts


@compiled
def priors_of_group(g: int, data: Data, priors: Priors) -> Priors:
    """The priors with the mean of this group's level."""
    first = priors.first.copy()
    for j in range(data.z.shape[1]):
        first[LEVEL] += data.z[g, j] * priors.slope[j]
    return Priors(priors.kind, first, priors.second, priors.slope)


@inlined
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
    for e in range(first, after):
        effects[e] += level - new
    state.theta[g, LEVEL] = new


@inlined
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


@inlined
def student(rng: np.random.Generator) -> float:
    """Draw from Student's t distribution with 6 degrees of freedom."""
    # a gamma variable of shape 3 is the sum of three exponential ones
    gamma = rng.standard_exponential() + rng.standard_exponential() + rng.standard_exponential()
    return rng.standard_normal() * math.sqrt(3.0 / gamma)


@inlined
def log_student(square: float, precision: float) -> float:
    """Log-density of a draw over the root of a precision, less what does not depend on the state.

    ``square`` is the squared distance from the centre times the precision.
    """
    tail = 1.0 + square / 6.0
    return 0.5 * math.log(precision / (tail**4 * tail**2 * tail))


@inlined
def move_effects(
    rng: np.random.Generator, g: int, first: int, after: int, column: int, effects: np.ndarray,
    index: np.ndarray, data: Data, state: State, work: Work,
) -> float:  # fmt: skip
    """Step 3: a Newton proposal for every effect of one side; returns the share accepted."""
    start, stop = data.cells_of_group[g], data.cells_of_group[g + 1]
    precision = math.exp(min(-2.0 * state.theta[g, column], 600.0))
    sums, shift, log_ratio = work.sums, work.shift, work.log_ratio
    for e in range(after - first):
        shift[e] = 0.0
    cells = index[start:stop]
    gather_effects(first, after, precision, effects, shift, cells, state.terms, start, sums)
    for e in range(after - first):
        noise = student(rng)
        shift[e] = sums[1, e] / sums[2, e] + noise / math.sqrt(sums[2, e])
        log_ratio[e] = -log_student(noise**2, sums[2, e]) - sums[0, e]
    for c in range(start, stop):
        work.log_rate[c - start] = state.log_rate[c] + shift[index[c] - first]
    batch_terms(
        data.y[start:stop], work.log_rate[: stop - start], state.theta[g, CV],
        state.coefficients[g], work.terms, work.polynomials,
    )  # fmt: skip
    gather_effects(first, after, precision, effects, shift, cells, work.terms, 0, sums)
    accepted = 0
    for e in range(after - first):
        back = -shift[e] - sums[1, e] / sums[2, e]
        log_ratio[e] += sums[0, e] + log_student(sums[2, e] * back**2, sums[2, e])
        moved = -rng.standard_exponential() < log_ratio[e]
        if moved:
            accepted += 1
            effects[first + e] += shift[e]
        log_ratio[e] = 1.0 if moved else 0.0
    for c in range(start, stop):
        if log_ratio[index[c] - first] == 1.0:
            state.log_rate[c] = work.log_rate[c - start]
            for k in range(TERMS):
                state.terms[k, c] = work.terms[k, c - start]
    return accepted / max(after - first, 1)


@inlined
def gather_effects(
    first: int, after: int, precision: float, effects: np.ndarray, shift: np.ndarray,
    index: np.ndarray, terms: np.ndarray, start: int, sums: np.ndarray,
) -> None:  # fmt: skip
    """Write log-density, slope and information of every effect of one side, moved by its shift.

    The terms of the cells of ``index`` begin at the column ``start``.
    """
    for e in range(after - first):
        value = effects[first + e] + shift[e]
        sums[0, e], sums[1, e], sums[2, e] = (
            -0.5 * precision * value**2, -precision * value, precision
        )  # fmt: skip
    for c in range(len(index)):
        e = index[c] - first
        sums[0, e] += terms[0, start + c]
        sums[1, e] += terms[1, start + c]
        sums[2, e] += terms[2, start + c]


@compiled
def joint_information(
    g: int, columns: np.ndarray, data: Data, state: State, terms: np.ndarray, at: int,
    b_scale: float, g_scale: float, slope: np.ndarray, metric: np.ndarray, work: Work,
) -> float:  # fmt: skip
    """Log-likelihood of a group by the parameters of step 4; slope and information are written.

    The terms of the group's cells begin at the column ``at``.
    """
    start, n = data.cells_of_group[g], data.cells_of_group[g + 1] - data.cells_of_group[g]
    height = 0.0
    for c in range(n):
        height += terms[0, at + c]
    of_areas = False
    for k in range(len(columns)):
        column, along = columns[k], work.direction[k]
        if column > CV and data.of[column - CV - 1] != OF_CELL:
            of_areas = True
            continue
        # by the log of cv the terms are derivatives already
        by, own, both = (3, 4, 5) if column == CV else (1, 2, 2)
        for c in range(n):
            if column == SD_ORIGIN:
                along[c] = b_scale * state.b[data.origin[start + c]]
            elif column == SD_DESTINATION:
                along[c] = g_scale * state.g[data.destination[start + c]]
            elif column > CV:
                along[c] = data.x[start + c, column - CV - 1]
            else:
                along[c] = 1.0
        total = 0.0
        for c in range(n):
            total += terms[by, at + c] * along[c]
        slope[k] = total
        for other in range(k + 1):
            if columns[other] > CV and data.of[columns[other] - CV - 1] != OF_CELL:
                continue
            row = own if other == k else (5 if columns[other] == CV else both)
            beside, total = work.direction[other], 0.0
            for c in range(n):
                total += terms[row, at + c] * along[c] * beside[c]
            metric[k, other] = total
            metric[other, k] = total
    if of_areas:
        area_information(g, columns, data, state, terms, at, b_scale, g_scale, slope, metric)
    return height


@inlined
def coordinates(theta: np.ndarray, columns: np.ndarray, priors: Priors) -> np.ndarray:
    """Coordinates of the joint move: theta, but a scale with a half-normal prior as it is.

    Near 0 a half-normal scale has a long tail in its logarithm, through which a sampler would have
    to chain. As a number that may be negative it has a normal prior: a negative scale with all
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


@inlined
def scale_of_effects(now: float, then: float, u: float, kind: int) -> float:
    """Factor of the effects of one side when the log of its scale, with a prior, moves."""
    factor = math.exp(min(then - now, 300.0))
    return -factor if kind == HALF_NORMAL and u < 0.0 else factor


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
            for other in range(len(columns)):
                metric[k, other] /= u[k]
            for other in range(len(columns)):
                metric[other, k] /= u[k]
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


@inlined
def move_jointly(
    rng: np.random.Generator, g: int, columns: np.ndarray, data: Data, state: State,
    priors: Priors, work: Work,
) -> bool:  # fmt: skip
    """Step 4: level, scales, overdispersion and coefficients, effects in units of their scale."""
    d = len(columns)
    start, stop = data.cells_of_group[g], data.cells_of_group[g + 1]
    slope, metric = np.empty(d), np.empty((d, d))
    now, one = state.theta[g], math.exp(0.0)  # a constant would be a type of its own
    height = joint_information(
        g, columns, data, state, state.terms, start, one, one, slope, metric, work
    )
    u = coordinates(now, columns, priors)
    height += complete(u, columns, priors, slope, metric)
    move, log_q = newton_step(rng, slope, metric, state.step_size[g])
    log_ratio = -height - log_q
    u += move
    theta = from_coordinates(u, now, columns, priors)
    # the first columns are level and scales, and these are always sampled
    b_scale = scale_of_effects(
        now[SD_ORIGIN], theta[SD_ORIGIN], u[SD_ORIGIN], priors.kind[SD_ORIGIN]
    )
    g_scale = scale_of_effects(
        now[SD_DESTINATION], theta[SD_DESTINATION], u[SD_DESTINATION], priors.kind[SD_DESTINATION]
    )
    fill_coefficients(theta[CV], work.coefficients)
    rates_at(g, theta, b_scale, g_scale, data, state, work.log_rate)
    batch_terms(
        data.y[start:stop], work.log_rate[: stop - start], theta[CV], work.coefficients,
        work.terms, work.polynomials,
    )  # fmt: skip
    height = joint_information(
        g, columns, data, state, work.terms, data.cells_of_group[0], b_scale, g_scale, slope,
        metric, work,
    )  # fmt: skip
    height += complete(u, columns, priors, slope, metric)
    if not np.isfinite(height):  # out of range: its metric is not complete
        return False
    log_ratio += height + log_newton_step(-move, slope, metric, state.step_size[g])
    if not -rng.standard_exponential() < log_ratio:
        return False
    # loops: numba compiles the copy of a slice with a text for every way in which it can fail
    for p in range(len(theta)):
        state.theta[g, p] = theta[p]
    for e in range(data.origins_of_group[g], data.origins_of_group[g + 1]):
        state.b[e] *= b_scale
    for e in range(data.destinations_of_group[g], data.destinations_of_group[g + 1]):
        state.g[e] *= g_scale
    for k in range(ROWS):
        for y in range(data.upper + 1):
            state.coefficients[g, k, y] = work.coefficients[k, y]
    for c in range(start, stop):
        state.log_rate[c] = work.log_rate[c - start]
    put_terms(work.terms, stop - start, start, state.terms)
    return True


@inlined
def sweep_group(
    rng: np.random.Generator, g: int, columns: np.ndarray, data: Data, state: State,
    priors: Priors, work: Work,
) -> tuple[float, float, float]:  # fmt: skip
    """Steps 1 to 4 for one group; returns what was accepted of effects and joint move."""
    origins = data.origins_of_group[g], data.origins_of_group[g + 1]
    destinations = data.destinations_of_group[g], data.destinations_of_group[g + 1]
    # loops over the two sides: one call of each step is compiled, not two
    for column in range(SD_ORIGIN, SD_DESTINATION + 1):
        origin = column == SD_ORIGIN
        runs = data.origins_of_group if origin else data.destinations_of_group
        effects = state.b if origin else state.g
        move_level(rng, g, runs[g], runs[g + 1], column, effects, state, priors)
    for column in range(SD_ORIGIN, SD_DESTINATION + 1):
        origin = column == SD_ORIGIN
        runs = data.origins_of_group if origin else data.destinations_of_group
        effects = state.b if origin else state.g
        move_scale(rng, g, runs[g], runs[g + 1], column, effects, state, priors)
    of_coefficients = columns[-1] > CV
    if of_coefficients and (data.of == OF_ORIGIN).any():
        move_coefficients(
            rng, g, origins[0], origins[1], SD_ORIGIN, OF_ORIGIN, state.b, data.x_origin, data.of,
            state, priors,
        )  # fmt: skip
    if of_coefficients and (data.of == OF_DESTINATION).any():
        move_coefficients(
            rng, g, destinations[0], destinations[1], SD_DESTINATION, OF_DESTINATION, state.g,
            data.x_destination, data.of, state, priors,
        )  # fmt: skip
    accepted = np.empty(2)
    for column in range(SD_ORIGIN, SD_DESTINATION + 1):
        origin = column == SD_ORIGIN
        runs = data.origins_of_group if origin else data.destinations_of_group
        effects = state.b if origin else state.g
        index = data.origin if origin else data.destination
        accepted[column - SD_ORIGIN] = move_effects(
            rng, g, runs[g], runs[g + 1], column, effects, index, data, state, work
        )
    jointly = 0.0
    for _ in range(JOINT_MOVES):
        jointly += move_jointly(rng, g, columns, data, state, priors, work)
    return accepted[0], accepted[1], jointly / JOINT_MOVES


@compiled
def sweep(
    rng: np.random.Generator, columns: np.ndarray, data: Data, state: State, priors: Priors,
    adapt: float, accepted: np.ndarray,
) -> None:  # fmt: skip
    """Advance every group by one sweep; ``adapt`` above 0 tunes the joint move's size."""
    work = make_work(data, state)
    for g in range(len(data.cells_of_group) - 1):
        own = priors_of_group(g, data, priors)
        result = sweep_group(rng, g, columns, data, state, own, work)
        accepted[g, 0], accepted[g, 1], accepted[g, 2] = result[0], result[1], result[2]
        if adapt > 0.0:
            state.step_size[g] = adapted(state.step_size[g], accepted[g, 2], adapt)
