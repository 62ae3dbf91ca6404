"""The national distribution of the pooled prior: two moves for its means and spreads.

Each column of theta is normal over the groups. ``draw_nation`` draws mean and sd given theta: it
serves the reference sampler and the engine. Where the groups say little one by one, mean and spread
hardly move that way; ``move_nation`` then changes them with every group keeping its standardised
distance from the mean, by a Newton proposal like those of :mod:`bayes_sdc.flows.gibbs.newton`.
"""

import math

import numpy as np

from bayes_sdc.flows.gibbs.batch_terms import batch_terms, fill_coefficients
from bayes_sdc.flows.gibbs.newton import Data, State, joint_information, make_work, rates_at
from bayes_sdc.flows.gibbs.newton_step import log_newton_step, newton_step
from bayes_sdc.flows.model.hyperpriors import (
    CV,
    SD_DESTINATION,
    SD_ORIGIN,
    Priors,
    compiled,
)

SD_STEPS = 3  # random-chain steps of the national sds given theta


def draw_nation(
    rng: np.random.Generator, theta: np.ndarray, priors: Priors, hyper: np.ndarray
) -> Priors:
    """Draw national means and sds given the parameters of the groups.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of all randomness.
    theta : array of float, shape (group, parameter)
        Parameters of the groups, without columns that are not sampled.
    priors : Priors
        Present national means and sds.
    hyper : array of float, shape (parameter, 4)
        From :func:`bayes_sdc.flows.model.hyperpriors.nation`.

    Returns
    -------
    Priors
        The new ones.
    """
    n = len(theta)
    precision = n / priors.second**2 + 1.0 / hyper[:, 1] ** 2
    total = theta.sum(axis=0) / priors.second**2 + hyper[:, 0] / hyper[:, 1] ** 2
    mean = total / precision + rng.standard_normal(len(hyper)) / np.sqrt(precision)
    squares = ((theta - mean) ** 2).sum(axis=0)

    def log_density(log_sd: np.ndarray) -> np.ndarray:
        deviation = (log_sd - hyper[:, 2]) / hyper[:, 3]
        return np.asarray(-n * log_sd - 0.5 * squares * np.exp(-2.0 * log_sd) - 0.5 * deviation**2)

    log_sd = np.log(priors.second)
    scale = 2.4 / np.sqrt(2.0 * n + 1.0 / hyper[:, 3] ** 2)
    for _ in range(SD_STEPS):
        proposal = log_sd + scale * rng.standard_normal(len(log_sd))
        log_ratio = log_density(proposal) - log_density(log_sd)
        accepted = -rng.standard_exponential(len(log_sd)) < log_ratio
        log_sd = np.where(accepted, proposal, log_sd)
    return Priors(priors.kind, mean, np.exp(log_sd))


@compiled
def move_nation(
    rng: np.random.Generator, columns: np.ndarray, data: Data, state: State, priors: Priors,
    hyper: np.ndarray,
) -> bool:  # fmt: skip
    """Change means and sds, every group keeping its standardised distance; tell if accepted.

    ``priors`` holds the present means and sds and is changed in place like the state; ``hyper`` is
    that of :func:`draw_nation`.
    """
    d, groups = len(columns), len(data.cells_of_group) - 1
    mean, sd = priors.first, priors.second
    slope, metric = np.zeros(2 * d), np.zeros((2 * d, 2 * d))
    height = nation_priors(columns, mean, sd, hyper, slope, metric)
    one_slope, one_metric, work = np.empty(d), np.empty((d, d)), make_work(data)
    for g in range(groups):
        part = state.terms[:, data.cells_of_group[g] : data.cells_of_group[g + 1]]
        height += joint_information(
            g, columns, data, state, part, 1.0, 1.0, one_slope, one_metric, work
        )
        gather(columns, state.theta[g] - mean, one_slope, one_metric, slope, metric)
    move, log_q = newton_step(rng, slope, metric, state.step_size[groups])
    log_ratio = -height - log_q
    new_mean, new_sd = mean.copy(), sd.copy()
    for k in range(d):
        new_mean[columns[k]] += move[k]
        new_sd[columns[k]] *= math.exp(min(move[d + k], 50.0))
    theta = new_mean + (state.theta - mean) * (new_sd / sd)
    if not (columns == CV).any():
        theta[:, CV] = state.theta[:, CV]
    b_scale = np.exp(np.minimum(theta[:, SD_ORIGIN] - state.theta[:, SD_ORIGIN], 300.0))
    g_scale = np.exp(np.minimum(theta[:, SD_DESTINATION] - state.theta[:, SD_DESTINATION], 300.0))
    rates, terms = np.empty_like(state.log_rate), np.empty_like(state.terms)
    coefficients = np.zeros_like(state.coefficients)
    slope[:], metric[:] = 0.0, 0.0
    height = nation_priors(columns, new_mean, new_sd, hyper, slope, metric)
    for g in range(groups):
        start, stop = data.cells_of_group[g], data.cells_of_group[g + 1]
        fill_coefficients(theta[g, CV], coefficients[g])
        rates_at(g, theta[g], b_scale[g], g_scale[g], data, state, rates[start:stop])
        batch_terms(
            data.y[start:stop], rates[start:stop], theta[g, CV], coefficients[g], work.terms,
            work.polynomials,
        )  # fmt: skip
        terms[:, start:stop] = work.terms[:, : stop - start]
        height += joint_information(
            g, columns, data, state, work.terms, b_scale[g], g_scale[g], one_slope, one_metric, work
        )
        gather(columns, theta[g] - new_mean, one_slope, one_metric, slope, metric)
    if not np.isfinite(height):  # out of range: its metric is not complete
        return False
    log_ratio += height + log_newton_step(-move, slope, metric, state.step_size[groups])
    if not -rng.standard_exponential() < log_ratio:
        return False
    mean[:], sd[:] = new_mean, new_sd
    state.theta[:] = theta
    for g in range(groups):
        state.b[data.origins_of_group[g] : data.origins_of_group[g + 1]] *= b_scale[g]
        state.g[data.destinations_of_group[g] : data.destinations_of_group[g + 1]] *= g_scale[g]
    state.coefficients[:] = coefficients
    state.log_rate[:] = rates
    state.terms[:] = terms
    return True


@compiled
def gather(
    columns: np.ndarray, distance: np.ndarray, one_slope: np.ndarray, one_metric: np.ndarray,
    slope: np.ndarray, metric: np.ndarray,
) -> None:  # fmt: skip
    """Add a group's slope and information by theta to those by national mean and log sd."""
    d = len(columns)
    for k in range(d):
        r = distance[columns[k]]
        slope[k] += one_slope[k]
        slope[d + k] += r * one_slope[k]
        for other in range(d):
            q = distance[columns[other]]
            metric[k, other] += one_metric[k, other]
            metric[k, d + other] += q * one_metric[k, other]
            metric[d + k, other] += r * one_metric[k, other]
            metric[d + k, d + other] += r * q * one_metric[k, other]


@compiled
def nation_priors(
    columns: np.ndarray, mean: np.ndarray, sd: np.ndarray, hyper: np.ndarray, slope: np.ndarray,
    metric: np.ndarray,
) -> float:  # fmt: skip
    """Add the priors of national means and log sds; returns their log-density."""
    d, height = len(columns), 0.0
    for k in range(d):
        for half, value in ((0, mean[columns[k]]), (1, math.log(sd[columns[k]]))):
            one, two = hyper[columns[k], 2 * half], hyper[columns[k], 2 * half + 1]
            height -= 0.5 * ((value - one) / two) ** 2
            slope[half * d + k] += (one - value) / two**2
            metric[half * d + k, half * d + k] += 1.0 / two**2
    return height
