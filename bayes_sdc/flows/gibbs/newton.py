r"""Gibbs engine: Metropolis within Gibbs with Newton proposals, for a whole table at once.

The model is that of :mod:`bayes_sdc.models.migration` in its identified form, with log rate
:math:`\alpha + b_i + g_j + x' \omega`. Every move that touches the counts proposes from the
distribution that one Newton step gives: mean :math:`x + H^{-1} \nabla`, variance :math:`H^{-1}`,
with the expected information as :math:`H`, corrected by Metropolis and Hastings. It is normal for
the joint move and Student's t, with 6 degrees of freedom, for effects: counts at the upper bound
say little of how large a rate is, the posterior of an effect has a longer tail than a normal
proposal, and a chain that got there would stay for hundreds of sweeps. Of 230,000 effects of a
nation about ten had an effective size below a quarter of the usual one. A sweep of a group is

1. the level against the mean of each side's effects, which moves no rate: exact normal draws;
2. each scale given the effects, and the coefficients of areas' covariates given what they and the
   effects add up to (the centred moves);
3. every origin effect, then every destination effect: they are independent given the other side;
4. level, both scales, overdispersion and coefficients together, the effects keeping their ratio to
   the scale (the move that is not centred; alternating with 2 is the interweaving of Yu and Meng).
   The coefficients move, here and in 2, once per kept draw, because they cost most.

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

from bayes_sdc.flows.gibbs.area_terms import move_coefficients
from bayes_sdc.flows.gibbs.batch_terms import TERMS, batch_terms
from bayes_sdc.flows.gibbs.joint_move import LARGEST, move_jointly
from bayes_sdc.flows.gibbs.newton_step import adapted
from bayes_sdc.flows.gibbs.state import OF_DESTINATION, OF_ORIGIN, Data, State, Work, make_work
from bayes_sdc.flows.model.hyperpriors import (
    CV,
    GAMMA,
    LEVEL,
    SD_DESTINATION,
    SD_ORIGIN,
    Priors,
    compiled,
    inlined,
    log_prior,
)

JOINT_MOVES = 1  # per sweep; level, scales and overdispersion mix most slowly (measured)
SD_STEPS = 3  # random-walk steps of a scale given its effects: they cost nothing beside the counts


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
    """Log-density of a draw over the root of a precision, up to a constant.

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
        data.y[start:stop], data.weight[start:stop], work.log_rate[: stop - start],
        state.theta[g, CV], state.coefficients[g], work.terms, work.polynomials,
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


@inlined
def sweep_group(
    rng: np.random.Generator, g: int, columns: np.ndarray, data: Data, state: State,
    priors: Priors, work: Work,
) -> tuple[float, float, float]:  # fmt: skip
    """Steps 1 to 4 for one group; returns the shares accepted of effects and joint move."""
    origins = data.origins_of_group[g], data.origins_of_group[g + 1]
    destinations = data.destinations_of_group[g], data.destinations_of_group[g + 1]
    # loops over the two sides, so that one call of each step is compiled, not two
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
