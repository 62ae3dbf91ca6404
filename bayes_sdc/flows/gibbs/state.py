"""Arrays of a chain of the Gibbs engine: counts, state and scratch."""

from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.gibbs.batch_terms import (
    BASE,
    LINK,
    ROWS,
    TERMS,
    WORK_ROWS,
    batch_terms,
    fill_coefficients,
)
from bayes_sdc.flows.gibbs.bounded_terms import CENTRE
from bayes_sdc.flows.model.hyperpriors import CV, LEVEL, compiled

OF_CELL, OF_ORIGIN, OF_DESTINATION = 0, 1, 2  # what a covariate is a property of


class Data(NamedTuple):
    """Counts and index arrays; cells sorted by group and origin, effects by group."""

    y: np.ndarray  # (cell,) float
    origin: np.ndarray  # (cell,)
    destination: np.ndarray  # (cell,)
    x: np.ndarray  # (cell, covariate) 0 where a covariate is one of areas
    of: np.ndarray  # (covariate,) OF_CELL, OF_ORIGIN or OF_DESTINATION
    x_origin: np.ndarray  # (covariate, origin_effect) 0 where it is not one of origins
    x_destination: np.ndarray  # (covariate, destination_effect)
    z: np.ndarray  # (group, group covariate)
    cells_of_group: np.ndarray  # (group + 1,) runs
    origins_of_group: np.ndarray  # (group + 1,) runs
    destinations_of_group: np.ndarray  # (group + 1,) runs
    upper: int
    bound: np.ndarray  # (K + 1,) centres of the steps, then half their width; 0 without a bound
    weight: np.ndarray  # (cell,) of the log-likelihoods; empty where all are 1
    canonical: bool  # whether the rate is the step of the ladder itself


class State(NamedTuple):
    """State of a chain; the arrays are changed in place."""

    theta: np.ndarray  # (group, parameter) level, log sd, log sd, log cv, coefficients
    b: np.ndarray  # (origin_effect,) deviations from the level
    g: np.ndarray  # (destination_effect,)
    log_rate: np.ndarray  # (cell,)
    terms: np.ndarray  # (TERMS, cell) what `batch_terms` gives at the present parameters
    coefficients: np.ndarray  # (group, ROWS, K + 1) what `fill_coefficients` writes
    step_size: np.ndarray  # (group + 2,) of the joint moves, in (0, 1]; the last are the nation's


class Work(NamedTuple):
    """Scratch arrays of a sweep, long enough for the largest group."""

    log_rate: np.ndarray  # (cell,) at proposed parameters
    terms: np.ndarray  # (TERMS, cell)
    coefficients: np.ndarray  # (ROWS, K + 1)
    polynomials: np.ndarray  # (WORK_ROWS, cell)
    direction: np.ndarray  # (parameter, cell) derivative of the log rate by each parameter
    shift: np.ndarray  # (effect,) proposed change
    sums: np.ndarray  # (3, effect) log-density, slope, information
    log_ratio: np.ndarray  # (effect,)


def empty_coefficients(groups: int, data: Data) -> np.ndarray:
    """Empty coefficients of so many groups, with the bound of their steps and the link."""
    coefficients = np.zeros((groups, ROWS, data.upper + 1))
    coefficients[:, CENTRE] = data.bound
    coefficients[:, LINK] = data.canonical
    return coefficients


@compiled
def make_work(data: Data, state: State) -> Work:
    """Allocate what a sweep needs."""
    coefficients = np.zeros((ROWS, data.upper + 1))
    for y in range(data.upper + 1):
        coefficients[CENTRE, y] = data.bound[y]
        coefficients[LINK, y] = 1.0 if data.canonical else 0.0
        if len(state.coefficients) > 0:  # one for all groups
            coefficients[BASE, y] = state.coefficients[0, BASE, y]
    cells = effects = 0
    for g in range(len(data.cells_of_group) - 1):
        cells = max(cells, data.cells_of_group[g + 1] - data.cells_of_group[g])
        effects = max(effects, data.origins_of_group[g + 1] - data.origins_of_group[g])
        effects = max(effects, data.destinations_of_group[g + 1] - data.destinations_of_group[g])
    return Work(
        np.empty(cells),
        np.empty((TERMS, cells)),
        coefficients,
        np.empty((WORK_ROWS, cells)),
        np.empty((CV + 1 + data.x.shape[1], cells)),
        np.empty(effects),
        np.empty((3, effects)),
        np.empty(effects),
    )


@compiled
def rates_at(
    g: int, theta: np.ndarray, b_scale: float, g_scale: float, data: Data, state: State,
    log_rate: np.ndarray,
) -> None:  # fmt: skip
    """Write the log rates of a group's cells at other parameters, from index 0."""
    start = data.cells_of_group[g]
    for c in range(start, data.cells_of_group[g + 1]):
        rate = theta[LEVEL] + b_scale * state.b[data.origin[c]]
        rate += g_scale * state.g[data.destination[c]]
        for p in range(data.x.shape[1]):
            if data.of[p] == OF_CELL:
                rate += data.x[c, p] * theta[CV + 1 + p]
        log_rate[c - start] = rate
    of_areas = False
    for p in range(len(data.of)):
        of_areas = of_areas or data.of[p] != OF_CELL
    if of_areas:
        _add_areas(g, theta, data, log_rate)


@compiled
def _add_areas(g: int, theta: np.ndarray, data: Data, log_rate: np.ndarray) -> None:
    """Add the contribution of area covariates, computed once per area."""
    start = data.cells_of_group[g]
    origins, destinations = data.origins_of_group[g], data.destinations_of_group[g]
    from_origin = np.zeros(data.origins_of_group[g + 1] - origins)
    from_destination = np.zeros(data.destinations_of_group[g + 1] - destinations)
    for p in range(len(data.of)):
        coefficient = theta[CV + 1 + p]
        if data.of[p] == OF_ORIGIN:
            for e in range(len(from_origin)):
                from_origin[e] += data.x_origin[p, origins + e] * coefficient
        elif data.of[p] == OF_DESTINATION:
            for e in range(len(from_destination)):
                from_destination[e] += data.x_destination[p, destinations + e] * coefficient
    for c in range(start, data.cells_of_group[g + 1]):
        log_rate[c - start] += (
            from_origin[data.origin[c] - origins]
            + from_destination[data.destination[c] - destinations]
        )


@compiled
def refresh(data: Data, state: State) -> None:
    """Compute the stored values of the cells again."""
    for g in range(len(state.theta)):
        start, stop = data.cells_of_group[g], data.cells_of_group[g + 1]
        rates_at(g, state.theta[g], 1.0, 1.0, data, state, state.log_rate[start:stop])
    refresh_terms(data, state)


@compiled
def refresh_terms(data: Data, state: State) -> None:
    """Compute the stored values of the cells again from their log rates."""
    work = make_work(data, state)
    for g in range(len(state.theta)):
        start, stop = data.cells_of_group[g], data.cells_of_group[g + 1]
        fill_coefficients(state.theta[g, CV], state.coefficients[g])
        batch_terms(
            data.y[start:stop], data.weight[start:stop], state.log_rate[start:stop],
            state.theta[g, CV], state.coefficients[g], work.terms, work.polynomials,
        )  # fmt: skip
        put_terms(work.terms, stop - start, start, state.terms)


@compiled
def put_terms(terms: np.ndarray, number: int, start: int, into: np.ndarray) -> None:
    """Copy the terms of so many cells to where the group's cells start."""
    for k in range(TERMS):
        for c in range(number):
            into[k, start + c] = terms[k, c]
