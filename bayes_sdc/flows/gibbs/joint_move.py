"""Joint move of a group: level, scales, overdispersion and coefficients at once.

The effects keep their ratio to the scale (the move that is not centred), so every rate changes with
every parameter. The proposal is one Newton step in :func:`coordinates`.
"""

import math

import numpy as np

from bayes_sdc.flows.gibbs.area_terms import area_information
from bayes_sdc.flows.gibbs.batch_terms import ROWS, batch_terms, fill_coefficients
from bayes_sdc.flows.gibbs.newton_step import log_newton_step, newton_step
from bayes_sdc.flows.gibbs.state import OF_CELL, Data, State, Work, put_terms, rates_at
from bayes_sdc.flows.model.hyperpriors import (
    CV,
    GAMMA,
    HALF_NORMAL,
    SD_DESTINATION,
    SD_ORIGIN,
    Priors,
    compiled,
    inlined,
)

TINY = 1e-150  # a scale that is 0 for every purpose, whose logarithm and square are numbers
LARGEST = 300.0  # of the log of a scale under the gamma prior: beyond it squares are no numbers


@compiled
def joint_information(
    g: int, columns: np.ndarray, data: Data, state: State, terms: np.ndarray, at: int,
    b_scale: float, g_scale: float, slope: np.ndarray, metric: np.ndarray, work: Work,
) -> float:  # fmt: skip
    """Log-likelihood of a group by the parameters of the move; slope and information are written.

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
    to travel. As a number that may be negative it has a normal prior: a negative scale with all
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
    scale, its curvature is nearly 0 and a Newton step would have no bound: the curvature at the
    mode serves everywhere.
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
    """Level, scales, overdispersion and coefficients, effects in units of their scale."""
    d = len(columns)
    start, stop = data.cells_of_group[g], data.cells_of_group[g + 1]
    slope, metric = np.empty(d), np.empty((d, d))
    now, one = state.theta[g], math.exp(0.0)  # a constant would have a type of its own
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
        data.y[start:stop], data.weight[start:stop], work.log_rate[: stop - start], theta[CV],
        work.coefficients, work.terms, work.polynomials,
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
    # loops: for the copy of a slice numba also compiles the text of every error
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
