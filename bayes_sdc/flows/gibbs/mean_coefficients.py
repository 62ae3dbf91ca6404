"""National means of the coefficients of areas' covariates, drawn together with the coefficients.

Given what effects and covariates add up to, the coefficients of all groups and their national means
are normal together. The means are drawn with the coefficients integrated out, then the coefficients
given the means. Nothing else moves both at once with the effects free: draws of the means given the
coefficients creep, as the coefficients of many groups tell nearly the same.
"""

import math

import numpy as np

from bayes_sdc.flows.gibbs.area_terms import move_coefficients
from bayes_sdc.flows.gibbs.newton_step import root_of, solve_lower, solve_upper
from bayes_sdc.flows.gibbs.state import OF_DESTINATION, OF_ORIGIN, Data, State
from bayes_sdc.flows.model.hyperpriors import (
    CV,
    SD_DESTINATION,
    SD_ORIGIN,
    Priors,
    compiled,
)


@compiled
def move_mean_coefficients(
    rng: np.random.Generator, data: Data, state: State, priors: Priors, hyper: np.ndarray
) -> None:
    """Draw national means and coefficients of areas' covariates; no rate changes.

    ``priors`` is changed in place like the state; ``hyper`` is that of
    :func:`bayes_sdc.flows.gibbs.national.draw_nation`.
    """
    # loops over the two sides: one call of each step is compiled, not two
    for kind in range(OF_ORIGIN, OF_DESTINATION + 1):
        origin = kind == OF_ORIGIN
        which = np.flatnonzero(data.of == kind)
        if len(which) == 0:
            continue
        column = SD_ORIGIN if origin else SD_DESTINATION
        runs = data.origins_of_group if origin else data.destinations_of_group
        effects = state.b if origin else state.g
        x = data.x_origin if origin else data.x_destination
        _draw_means(rng, which, runs, column, effects, x, state, priors, hyper)
        for g in range(len(state.theta)):
            move_coefficients(
                rng, g, runs[g], runs[g + 1], column, kind, effects, x, data.of, state, priors
            )


@compiled
def _draw_means(
    rng: np.random.Generator, which: np.ndarray, runs: np.ndarray, column: int,
    effects: np.ndarray, x: np.ndarray, state: State, priors: Priors, hyper: np.ndarray,
) -> None:  # fmt: skip
    """Draw the means given effects plus covariates times coefficients, these integrated out."""
    d = len(which)
    right, metric, own = np.zeros(d), np.zeros((d, d)), np.empty(d)
    for k in range(d):
        mean, sd = hyper[CV + 1 + which[k], 0], hyper[CV + 1 + which[k], 1]
        right[k], metric[k, k] = mean / sd**2, 1.0 / sd**2
        own[k] = 1.0 / priors.second[CV + 1 + which[k]] ** 2
    for g in range(len(state.theta)):
        precision = math.exp(min(-2.0 * state.theta[g, column], 600.0))
        seen, along = np.zeros((d, d)), np.zeros(d)
        for e in range(runs[g], runs[g + 1]):
            value = effects[e]
            for k in range(d):
                value += x[which[k], e] * state.theta[g, CV + 1 + which[k]]
            for k in range(d):
                along[k] += precision * x[which[k], e] * value
                for other in range(d):
                    seen[k, other] += precision * x[which[k], e] * x[which[other], e]
        both = seen.copy()
        for k in range(d):
            both[k, k] += own[k]
        root = root_of(both)
        share = solve_upper(root, solve_lower(root, along))
        for k in range(d):
            right[k] += own[k] * share[k]
        for other in range(d):
            share = solve_upper(root, solve_lower(root, seen[other]))
            for k in range(d):
                metric[k, other] += own[k] * share[k]
    root = root_of(metric)
    new = solve_upper(root, solve_lower(root, right) + rng.standard_normal(d))
    for k in range(d):
        priors.first[CV + 1 + which[k]] = new[k]
