"""Densities of all effects of one side in one draw, and of each without one of its cells."""

import math
from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.intruder.estimators.count_probabilities import (
    SMALLEST,
    Family,
    fill_factors,
    vectorized,
)
from bayes_sdc.flows.intruder.estimators.leave_one_out import (
    LARGEST_LOG,
    NODES,
    Room,
    fill_density,
    padded,
)
from bayes_sdc.flows.intruder.estimators.neighbours import Side
from bayes_sdc.flows.model.hyperpriors import compiled


class Densities(NamedTuple):
    """Of the effects of one side in one draw."""

    nodes: np.ndarray  # (2, ...) rate and density at the nodes, one effect after another
    runs: np.ndarray  # (effect + 1,) of the nodes, each padded by nodes of density 0
    size: np.ndarray  # (effect,) number of nodes without these
    level: np.ndarray  # (effect,) halvings of the longest step
    good: np.ndarray  # (effect,)
    reach: np.ndarray  # (effect, 2) of the grid below and above the mode


class Density(NamedTuple):
    """Of one effect, padded by nodes of density 0."""

    rate: np.ndarray  # (padded node,)
    density: np.ndarray  # (padded node,)
    nodes: int


@compiled
def make_densities(side: Side) -> Densities:
    """Room for the densities of one side."""
    effects = len(side.effect)
    return Densities(
        np.empty((2, 32 * effects + NODES)), np.zeros(effects + 1, np.int64),
        np.empty(effects, np.int64), np.empty(effects, np.int64), np.empty(effects, np.bool_),
        np.zeros((effects, 2)),
    )  # fmt: skip


@compiled
def rates(effects: np.ndarray) -> np.ndarray:
    """Exp of effects, none of them infinite or 0."""
    result = np.empty(len(effects))
    for i in range(len(effects)):
        result[i] = math.exp(min(max(effects[i], -LARGEST_LOG), LARGEST_LOG))
    return result


@compiled
def offset(x: np.ndarray, cell: int, coefficient: np.ndarray, group: int) -> float:
    """What the covariates multiply the rate of a cell by."""
    if x.shape[1] == 0:
        return 1.0
    total = 0.0
    for p in range(x.shape[1]):
        total += x[cell, p] * coefficient[group, p]
    return math.exp(min(max(total, -LARGEST_LOG), LARGEST_LOG))


@compiled
def densities(
    side: Side, start: np.ndarray, mean: np.ndarray, sd: np.ndarray, other: np.ndarray,
    coefficient: np.ndarray, kappa: np.ndarray, unit: np.ndarray, terms: np.ndarray,
    bound: np.ndarray, room: Room, found: Densities,
) -> Densities:  # fmt: skip
    """Write the densities of the effects of one side given all their cells."""
    nodes = found.nodes
    rate, position = np.empty(len(side.y)), 0
    for e in range(len(side.effect)):
        g, first, after = side.group[e], side.runs[e], side.runs[e + 1]
        for k in range(first, after):
            rate[k] = other[side.other[k]] * offset(side.x, k, coefficient, g)
        placed = fill_density(
            side.y[first:after], rate[first:after], side.weight[first:after],
            start[side.effect[e]], mean[g], sd[g],
            Family(kappa[g], unit[g], terms[g], bound[g]), found.reach[e], room,
        )  # fmt: skip
        if position + NODES > nodes.shape[1]:
            more = np.empty((2, 2 * nodes.shape[1]))
            for a in range(position):
                more[0, a], more[1, a] = nodes[0, a], nodes[1, a]
            nodes = more
        size = placed.after - placed.first
        for a in range(size):
            nodes[0, position + a] = room.rate[placed.first + a]
            nodes[1, position + a] = room.density[placed.first + a]
        for a in range(position + size, position + padded(size)):
            nodes[0, a], nodes[1, a] = nodes[0, a - 1], 0.0
        position += padded(size)
        found.runs[e + 1] = position
        found.size[e], found.level[e], found.good[e] = size, placed.level, placed.good
    return Densities(nodes, found.runs, found.size, found.level, found.good, found.reach)


@compiled
def without(
    y: int, weight: float, given: Densities, e: int, scale: float, now: Family, room: Room,
    weights: np.ndarray,
) -> Density:  # fmt: skip
    """Density of an effect without a cell, summing to one, in ``weights``."""
    first, after = given.runs[e], given.runs[e + 1]
    rate, result = given.nodes[0, first:after], weights[: after - first]
    fill_factors(y, rate, scale, now, room.s, room.powers, room.sums)
    if weight != 1.0:
        for a in range(len(rate)):
            room.powers[a] = max(room.powers[a] / room.sums[a], SMALLEST) ** weight
            room.sums[a] = 1.0
    divide(given.nodes[1, first:after], room.powers, room.sums, result)
    return Density(rate, result, given.size[e])


@vectorized
def divide(density: np.ndarray, powers: np.ndarray, sums: np.ndarray, weights: np.ndarray) -> None:
    """Write density / P(y), summing to one."""
    nodes, total = len(density), 0.0
    for a in range(nodes):
        weights[a] = density[a] * sums[a] / powers[a]
        total += weights[a]
    inverse = 1.0 / total
    for a in range(nodes):
        weights[a] *= inverse
