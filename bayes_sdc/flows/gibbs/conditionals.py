"""Full conditionals of the reference sampler, for all groups at once.

Given the other side, effects are independent, so one vectorised proposal serves every origin of
every group; :mod:`bayes_sdc.flows.gibbs.reference` puts the steps in order.

References
----------
S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality", section 2.1.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numba
import numpy as np

from bayes_sdc.flows.model.hyperpriors import (
    CV,
    GAMMA,
    LEVEL,
    BasePrior,
    Priors,
    log_priors,
)
from bayes_sdc.flows.model.truncated import (
    Ladder,
    fill_bounded,
    ladder,
    log_normalizer,
    log_probabilities,
    log_step,
)
from bayes_sdc.flows.table.bound import Bound
from bayes_sdc.models.base_measure import IMPOSSIBLE

SD_STEPS = 3  # random-walk steps for a standard deviation without a conjugate draw


class State(NamedTuple):
    """State of the chain. Effects as in the paper; log-precisions, because phi may underflow."""

    beta: np.ndarray  # (origin_effect,)
    gamma: np.ndarray  # (destination_effect,)
    mu_beta: np.ndarray  # (group,)
    mu_gamma: np.ndarray  # (group,)
    log_phi_beta: np.ndarray  # (group,)
    log_phi_gamma: np.ndarray  # (group,)
    log_cv: np.ndarray  # (group,) cv = sqrt(1 / r) of the negative binomial; -inf for Poisson
    coefficient: np.ndarray  # (group, covariate)
    national_mean: np.ndarray  # (parameter,) of alpha, log sd, log sd, log cv, coefficients
    national_sd: np.ndarray  # (parameter,) both as the prior has them unless it is pooled
    national_slope: np.ndarray  # (group covariate,) of the mean of alpha
    base_z: np.ndarray  # (degree,) coordinates of the base measure over their scale; or none
    base_log_sd: np.ndarray  # (1,) log of that scale
    log_p: np.ndarray  # (cell,) log-probability of the counts, computed once per step


class Side(NamedTuple):
    """The cells of each effect of one side, as consecutive runs of ``order``."""

    order: np.ndarray  # (cell,) cells sorted by effect
    start: np.ndarray  # (effect + 1,) runs in order
    group: np.ndarray  # (effect,)
    size: np.ndarray  # (group,) number of effects


class Data(NamedTuple):
    """Counts and index arrays of all groups."""

    y: np.ndarray  # (cell,)
    group: np.ndarray  # (cell,)
    origin: np.ndarray  # (cell,)
    destination: np.ndarray  # (cell,)
    x: np.ndarray  # (cell, covariate)
    z: np.ndarray  # (group, group covariate)
    origins: Side
    destinations: Side
    upper: int
    bound: Bound | None  # of the steps from a count to the next
    base: np.ndarray  # (K + 1, degree) columns of the base measure; no degree without one
    impossible: np.ndarray  # counts that a rule excludes
    weight: np.ndarray  # (cell,) of the log-likelihoods; empty where all are 1
    canonical: bool  # whether the rate is the argument of the power series


def measure(state: State, data: Data) -> np.ndarray | None:
    """Log of the base measure; None without one."""
    if not len(state.base_z):
        return None
    of_counts = data.base @ (np.exp(state.base_log_sd[0]) * state.base_z)
    of_counts[data.impossible] = IMPOSSIBLE
    return np.asarray(of_counts)


def ladders(state: State, data: Data) -> Ladder:
    """Ladders of all groups at the present parameters."""
    kappa = np.exp(2.0 * state.log_cv)
    base = measure(state, data)
    return ladder(kappa, data.upper, data.bound, base, canonical=data.canonical)


def offset(coefficient: np.ndarray, data: Data) -> np.ndarray:
    """What the covariates add to the log rate of each cell."""
    return np.asarray((data.x * coefficient[data.group]).sum(axis=1))


def refresh(state: State, data: Data) -> State:
    """Compute the stored log-probabilities again, as after a change of the counts."""
    log_rate = state.beta[data.origin] + state.gamma[data.destination]
    log_rate += offset(state.coefficient, data)
    log_p = log_probabilities(data.y, log_rate, data.group, ladders(state, data))
    return state._replace(log_p=log_p * data.weight if len(data.weight) else log_p)


def metropolis(
    rng: np.random.Generator,
    effect: np.ndarray,
    other: np.ndarray,
    scale: np.ndarray,
    mu: np.ndarray,
    log_phi: np.ndarray,
    side: Side,
    state: State,
    data: Data,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Propose and accept the effects of one side; ``other`` is the other side's, per cell."""
    proposal = effect + scale * rng.standard_normal(len(effect))
    rungs = ladders(state, data)
    log_ratio, log_p_then = log_likelihood_ratio(
        proposal, other, state.log_p, data.y, side.order, side.start, side.group, rungs,
        data.weight,
    )  # fmt: skip
    mean, phi = mu[side.group], np.exp(log_phi[side.group])
    log_ratio -= phi * ((proposal - mean) ** 2 - (effect - mean) ** 2) / 2.0
    accepted = -rng.standard_exponential(len(effect)) < log_ratio
    moved = side.order[np.repeat(accepted, np.diff(side.start))]
    log_p = state.log_p.copy()
    log_p[moved] = log_p_then[moved]
    return np.where(accepted, proposal, effect), log_p, accepted


@numba.njit(cache=True, nogil=True)
def log_likelihood_ratio(
    proposal: np.ndarray,
    other: np.ndarray,
    log_p: np.ndarray,
    y: np.ndarray,
    order: np.ndarray,
    start: np.ndarray,
    group: np.ndarray,
    rungs: Ladder,
    weight: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihood of each proposal minus that of the present value, over its own cells."""
    ratio, log_p_then = np.zeros(len(proposal)), np.empty(len(log_p))
    upper = len(rungs.bound) - 1
    table = np.empty(upper + 1)
    for e in range(len(proposal)):
        g = group[e]
        factor, inverse = rungs.factor[g], rungs.inverse[g]
        log_product, log_kappa = rungs.log_product[g], rungs.log_kappa[g]
        for position in range(start[e], start[e + 1]):
            cell = order[position]
            rung = log_step(proposal[e] + other[cell], log_kappa)
            if rungs.bound[upper] > 0.0:
                fill_bounded(rung, g, rungs, table)
                log_p_then[cell] = table[int(y[cell])]
            else:
                log_z = log_normalizer(rung, factor, inverse, log_product)
                log_p_then[cell] = y[cell] * rung + log_product[int(y[cell])] - log_z
            if len(weight):
                log_p_then[cell] *= weight[cell]
            ratio[e] += log_p_then[cell] - log_p[cell]
    return ratio, log_p_then


def metropolis_cv(
    rng: np.random.Generator, state: State, data: Data, scale: np.ndarray, now: Priors
) -> tuple[State, np.ndarray]:
    """A random-walk step for the log of cv of every group."""
    if np.isneginf(state.log_cv).all():
        return state, np.zeros(len(state.log_cv), dtype=bool)
    proposal = state.log_cv + scale * rng.standard_normal(len(scale))
    then = refresh(state._replace(log_cv=proposal), data)
    log_ratio = np.bincount(data.group, then.log_p - state.log_p, len(scale))
    log_ratio += log_priors(proposal, now, CV) - log_priors(state.log_cv, now, CV)
    accepted = -rng.standard_exponential(len(scale)) < log_ratio
    return (
        state._replace(
            log_cv=np.where(accepted, proposal, state.log_cv),
            log_p=np.where(accepted[data.group], then.log_p, state.log_p),
        ),
        accepted,
    )


def metropolis_coefficients(
    rng: np.random.Generator, state: State, data: Data, scale: np.ndarray, now: Priors
) -> tuple[State, np.ndarray]:
    """A random-walk step for each coefficient in turn, in every group."""
    accepted = np.zeros(scale.shape, dtype=bool)
    for p in range(scale.shape[1]):
        proposal = state.coefficient.copy()
        proposal[:, p] += scale[:, p] * rng.standard_normal(len(scale))
        then = refresh(state._replace(coefficient=proposal), data)
        log_ratio = np.bincount(data.group, then.log_p - state.log_p, len(scale))
        log_ratio += log_priors(proposal[:, p], now, CV + 1 + p)
        log_ratio -= log_priors(state.coefficient[:, p], now, CV + 1 + p)
        accepted[:, p] = -rng.standard_exponential(len(scale)) < log_ratio
        chosen = accepted[:, p]
        state = state._replace(
            coefficient=np.where(chosen[:, None], proposal, state.coefficient),
            log_p=np.where(chosen[data.group], then.log_p, state.log_p),
        )
    return state, accepted


def metropolis_base(
    rng: np.random.Generator, state: State, data: Data, scale: np.ndarray, prior: BasePrior
) -> tuple[State, np.ndarray]:
    """A random-walk step for each coordinate of the base measure in turn, then for its scale."""
    accepted = np.zeros(len(scale), dtype=bool)
    for k in range(len(scale)):
        z, log_sd = state.base_z.copy(), state.base_log_sd.copy()
        moving = z if k < len(z) else log_sd
        moving[k % len(z)] += scale[k] * rng.standard_normal()
        proposal = state._replace(base_z=z, base_log_sd=log_sd)
        of_counts = measure(proposal, data) if abs(log_sd[0]) < 20.0 else None
        if of_counts is None or np.abs(of_counts).max() > -IMPOSSIBLE:
            continue  # out of range, as for the engine: ratios of such probabilities overflow
        then = refresh(proposal, data)
        log_ratio = then.log_p.sum() - state.log_p.sum()
        log_ratio -= 0.5 * (z @ z - state.base_z @ state.base_z)
        away, now = (log_sd - prior.mean) / prior.sd, (state.base_log_sd - prior.mean) / prior.sd
        log_ratio -= 0.5 * float(away @ away - now @ now)
        accepted[k] = -rng.standard_exponential() < log_ratio
        state = then if accepted[k] else state
    return state, accepted


def draw_mean(
    rng: np.random.Generator,
    effect: np.ndarray,
    side: Side,
    log_phi: np.ndarray,
    other_mean: np.ndarray,
    level: np.ndarray,
    now: Priors,
    prior: Mapping[str, float],
) -> np.ndarray:
    """Steps 3 and 4: the mean of one side given its effects and the other side's mean.

    The prior is that of the sum of the two means, about ``level``, and of their difference. With
    the paper's mean 0 and variance 50 for both, the other mean drops out and 1/25 is left.
    """
    phi = np.exp(log_phi)
    of_sum, of_difference = now.second[LEVEL] ** -2.0, 0.5 * prior["mu_sd"] ** -2.0
    precision = side.size * phi + of_sum + of_difference
    total = phi * np.bincount(side.group, effect, len(side.size))
    total += of_sum * (level - other_mean) + of_difference * other_mean
    return np.asarray(total / precision + rng.standard_normal(len(phi)) / np.sqrt(precision))


def sum_of_squares(effect: np.ndarray, mu: np.ndarray, side: Side) -> np.ndarray:
    """Squares of the effects of each group about mu, not about their mean as the paper prints."""
    return np.bincount(side.group, (effect - mu[side.group]) ** 2, len(side.size))


def draw_log_precision(
    rng: np.random.Generator,
    log_phi: np.ndarray,
    squares: np.ndarray,
    size: np.ndarray,
    now: Priors,
    column: int,
) -> np.ndarray:
    """Steps 5 and 6: gamma draw under the gamma prior, a random walk under the others."""
    if now.kind[column] == GAMMA:
        log_gamma = np.log(rng.standard_gamma(now.first[column] + size / 2.0))
        return np.asarray(log_gamma - np.log(now.second[column] + squares / 2.0))

    def log_density(log_sd: np.ndarray) -> np.ndarray:
        of_effects = -size * log_sd - squares / (2.0 * np.exp(2.0 * log_sd))
        return np.asarray(of_effects + log_priors(log_sd, now, column))

    log_sd = -log_phi / 2.0
    scale = 2.4 / np.sqrt(1.0 + 2.0 * size)  # the curvature at the mode is about 2 n
    for _ in range(SD_STEPS):
        proposal = log_sd + scale * rng.standard_normal(len(log_sd))
        log_ratio = log_density(proposal) - log_density(log_sd)
        accepted = -rng.standard_exponential(len(log_sd)) < log_ratio
        log_sd = np.where(accepted, proposal, log_sd)
    return -2.0 * log_sd
