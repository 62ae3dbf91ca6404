"""Coefficients of area covariates: a move for them, and their information at little cost per cell.

A covariate of an area is the same for all cells of its effect. So its row of the information needs
the cells only through sums by area, and pairs of a covariate of origins with one of destinations
through sums by origin of the latter: the work by cell grows with the number of covariates, not with
its square.
"""

import math

import numpy as np

from bayes_sdc.flows.gibbs.newton_step import root_of, solve_lower, solve_upper
from bayes_sdc.flows.gibbs.state import OF_CELL, OF_DESTINATION, OF_ORIGIN, Data, State
from bayes_sdc.flows.model.hyperpriors import (
    CV,
    LEVEL,
    SD_DESTINATION,
    SD_ORIGIN,
    Priors,
    compiled,
)

SLOPE, OWN, WITH_CV = 0, 1, 2  # rows of the sums by area: of terms 1, 2 and 5
EFFECT = 0  # row of the sums across: of the other side's effect; those of covariates follow


@compiled
def move_coefficients(
    rng: np.random.Generator, g: int, first: int, after: int, column: int, kind: int,
    effects: np.ndarray, x: np.ndarray, of: np.ndarray, state: State, priors: Priors,
) -> None:  # fmt: skip
    """Draw the coefficients of one side given what they and the effects add up to.

    No rate changes: an effect plus its covariates times the coefficients is a value with a normal
    distribution about the latter, so this is a normal regression (the centred move).
    """
    which = np.flatnonzero(of == kind)
    d = len(which)
    precision = math.exp(min(-2.0 * state.theta[g, column], 600.0))
    theta, right, metric = state.theta[g, CV + 1 :], np.zeros(d), np.zeros((d, d))
    for k in range(d):
        for e in range(first, after):
            effects[e] += x[which[k], e] * theta[which[k]]
    for k in range(d):
        one, two = priors.first[CV + 1 + which[k]], priors.second[CV + 1 + which[k]]
        along = x[which[k], first:after]
        right[k] = precision * _dot(along, effects[first:after]) + one / two**2
        for other in range(k + 1):
            metric[k, other] = precision * _dot(along, x[which[other], first:after])
        metric[k, k] += 1.0 / two**2
    root = root_of(metric)
    new = solve_upper(root, solve_lower(root, right) + rng.standard_normal(d))
    for k in range(d):
        theta[which[k]] = new[k]
        for e in range(first, after):
            effects[e] -= x[which[k], e] * new[k]


@compiled
def area_information(
    g: int, columns: np.ndarray, data: Data, state: State, terms: np.ndarray, at: int,
    b_scale: float, g_scale: float, slope: np.ndarray, metric: np.ndarray,
) -> None:  # fmt: skip
    """Write the rows of slope and information that belong to covariates of areas.

    The terms of the group's cells begin at the column ``at``.
    """
    origins = slice(data.origins_of_group[g], data.origins_of_group[g + 1])
    destinations = slice(data.destinations_of_group[g], data.destinations_of_group[g + 1])
    b, effect = state.b[origins], state.g[destinations]
    x_origin, x_destination = data.x_origin[:, origins], data.x_destination[:, destinations]
    by_origin, by_destination, across, cell_across = _sums(
        g, data, effect, x_destination, terms, at
    )
    for k in range(len(columns)):
        p = columns[k] - CV - 1
        if p < 0 or data.of[p] == OF_CELL:
            continue
        is_origin = data.of[p] == OF_ORIGIN
        by = by_origin if is_origin else by_destination
        x = x_origin[p] if is_origin else x_destination[p]
        weighted = x * by[OWN]
        slope[k] = _dot(x, by[SLOPE])
        for other in range(len(columns)):
            column = columns[other]
            q = column - CV - 1
            if column == LEVEL:
                total = weighted.sum()
            elif column == CV:
                total = _dot(x, by[WITH_CV])
            elif column == SD_ORIGIN:
                total = b_scale * _dot(b, weighted if is_origin else across[1 + p])
            elif column == SD_DESTINATION:
                along = _dot(x, across[EFFECT]) if is_origin else _dot(weighted, effect)
                total = g_scale * along
            elif data.of[q] != OF_CELL and other > k:
                continue  # written with the row of the other
            elif data.of[q] == data.of[p]:
                total = _dot(weighted, x_origin[q] if is_origin else x_destination[q])
            elif is_origin:
                total = _dot(x, across[1 + q])
            elif data.of[q] == OF_CELL:
                total = _dot(x, cell_across[q])
            else:
                total = _dot(x_origin[q], across[1 + p])
            metric[k, other] = total
            metric[other, k] = total


@compiled
def _dot(one: np.ndarray, other: np.ndarray) -> float:
    """Inner product in four sums, so that no addition waits for the one before."""
    n, first, second, third, fourth = len(one), 0.0, 0.0, 0.0, 0.0
    for e in range(0, n - 3, 4):
        first += one[e] * other[e]
        second += one[e + 1] * other[e + 1]
        third += one[e + 2] * other[e + 2]
        fourth += one[e + 3] * other[e + 3]
    for e in range(n - n % 4, n):
        first += one[e] * other[e]
    return (first + second) + (third + fourth)


@compiled
def _sums(
    g: int,
    data: Data,
    effect: np.ndarray,
    x_destination: np.ndarray,
    terms: np.ndarray,
    at: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sums of the cells by area.

    Of terms 1, 2 and 5 by origin and by destination; by origin, of term 2 times the destination's
    effect and every covariate that is not one of origins; by destination, of term 2 times every
    covariate of cells.
    """
    # the terms may be scratch that is longer than the group
    covariates, start = len(data.of), data.cells_of_group[g]
    n = data.cells_of_group[g + 1] - start
    origin = data.origin[start : start + n] - data.origins_of_group[g]
    destination = data.destination[start : start + n] - data.destinations_of_group[g]
    n_origins = data.origins_of_group[g + 1] - data.origins_of_group[g]
    by_origin, across = np.zeros((3, n_origins)), np.zeros((1 + covariates, n_origins))
    by_destination = np.zeros((3, len(effect)))
    cell_across = np.zeros((covariates, len(effect)))
    for c in range(n):
        i, j, two = origin[c], destination[c], terms[2, at + c]
        by_origin[SLOPE, i] += terms[1, at + c]
        by_origin[OWN, i] += two
        by_origin[WITH_CV, i] += terms[5, at + c]
        by_destination[SLOPE, j] += terms[1, at + c]
        by_destination[OWN, j] += two
        by_destination[WITH_CV, j] += terms[5, at + c]
        across[EFFECT, i] += two * effect[j]
    for p in range(covariates):
        if data.of[p] == OF_DESTINATION:
            for c in range(n):
                across[1 + p, origin[c]] += terms[2, at + c] * x_destination[p, destination[c]]
        elif data.of[p] == OF_CELL:
            for c in range(n):
                weighted = terms[2, at + c] * data.x[start + c, p]
                across[1 + p, origin[c]] += weighted
                cell_across[p, destination[c]] += weighted
    return by_origin, by_destination, across, cell_across
