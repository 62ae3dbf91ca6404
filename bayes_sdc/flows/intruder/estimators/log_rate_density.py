"""Density of the log rate of a cell, and what one draw adds to its release probabilities.

The log rate is the sum of two independent effects, so its density is the product of theirs, summed
along each diagonal of their grids. Without bounded steps :math:`A(y, k)` is
:math:`c_y c_k E s^{y + k} / N(s)^2`, so 2K + 1 moments give all of it.
"""

from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.intruder.estimators.count_probabilities import (
    CENTRES,
    SMALLEST,
    Family,
    fill_factor,
    fill_factors,
    fill_odds,
    fill_steps,
    fill_sums,
    vectorized,
)
from bayes_sdc.flows.intruder.estimators.effect_densities import Density
from bayes_sdc.flows.intruder.estimators.leave_one_out import padded
from bayes_sdc.flows.model.hyperpriors import compiled


class Sum(NamedTuple):
    """Room for the density of a log rate, the sum of two effects."""

    q: np.ndarray  # (NODES**2,) density
    s: np.ndarray  # (NODES**2,) rate, and its step of the ladder
    n: np.ndarray  # (NODES**2,) N(s)


@vectorized
def add_effects(fine: Density, coarse: Density, finer: int, scale: float, total: Sum) -> int:
    """Write the density of the sum of two independent effects; return its number of nodes, padded.

    A coarse step is ``2 ** finer`` fine ones. Nodes of the sum that no pair of nodes gives, between
    the images of the fine grid, are left out.
    """
    width, stride = len(fine.rate), min(fine.nodes, 1 << min(finer, 30))
    last = stride * (coarse.nodes - 1)
    for a in range(padded(last + width)):
        total.q[a] = 0.0
    for b in range(coarse.nodes):
        q, weight = total.q[stride * b :], coarse.density[b]
        for a in range(width):
            q[a] += fine.density[a] * weight
        # images overlap, and only the last has no other above it
        s, factor = total.s[stride * b :], coarse.rate[b] * scale
        for a in range(stride if b < coarse.nodes - 1 else width):
            s[a] = fine.rate[a] * factor
    for a in range(last + width, padded(last + width)):
        total.s[a] = total.s[a - 1]
    nodes: int = padded(last + fine.nodes)
    return nodes


@compiled
def moments(nodes: int, now: Family, total: Sum, two: np.ndarray) -> None:
    """Write E s^r / N^2 for r = 0..2K: by powers of s where it is below 1, of 1 / s above."""
    q, s, n = total
    below = fill_steps(s[:nodes], 1.0, now, s)
    two[:] = 0.0
    fill_sums(now.terms[0], s[:below], n)
    add_moments(q[:below], s, n, two, 0, 1)
    if below < nodes:
        fill_sums(now.terms[1], s[below:nodes], n[below:])
        add_moments(q[below:nodes], s[below:], n[below:], two, len(two) - 1, -1)


@vectorized
def add_moments(
    q: np.ndarray, s: np.ndarray, n: np.ndarray, two: np.ndarray, first: int, step: int
) -> None:
    """Add the sums of q s^r / N^2, from the ``first`` moment on; ``q`` is lost."""
    nodes = len(q)
    for a in range(nodes):
        q[a] /= n[a] * n[a]
    for r in range(len(two)):
        total = 0.0
        for a in range(nodes):
            total += q[a]
            q[a] *= s[a]
        two[first + step * r] += total


@compiled
def products(nodes: int, weight: float, now: Family, total: Sum, both: np.ndarray) -> None:
    """Write E P(y)^weight P(k), shape (K + 2, K + 1): the last row is E P(k).

    For bounded steps, whose probabilities are no powers of anything, and for weighted targets.
    """
    width = both.shape[1]
    q, rate, odds = total.q[:nodes], total.s[:nodes], total.n[:nodes]
    p, sums = np.ones((width, nodes)), np.ones(nodes)
    if now.bound[CENTRES, width - 1] > 0.0:
        fill_odds(rate, 1.0, now, odds)
        for k in range(width - 1):
            for a in range(nodes):
                p[k + 1, a] = p[k, a]
            fill_factor(k, now, odds, p[k + 1])
            for a in range(nodes):
                sums[a] += p[k + 1, a]
    else:
        for k in range(width):
            fill_factors(k, rate, 1.0, now, odds, p[k], sums)
    if weight == 1.0:
        for a in range(nodes):
            q[a] /= sums[a] * sums[a]
        for y in range(width):
            for k in range(y + 1):
                both[y, k] = weighted(q, p[y], p[k])
                both[k, y] = both[y, k]
        return
    for k in range(width):
        for a in range(nodes):
            p[k, a] /= sums[a]
    for y in range(width + 1):
        for a in range(nodes):  # the sums are no longer needed
            sums[a] = max(p[y, a], SMALLEST) ** weight if y < width else 1.0
        for k in range(width):
            both[y, k] = weighted(q, sums, p[k])


@vectorized
def weighted(q: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
    """Sum of q times two columns."""
    total = 0.0
    for a in range(len(q)):
        total += q[a] * one[a] * other[a]
    return total


@vectorized
def add_products(y: int, both: np.ndarray, sums: np.ndarray, weights: np.ndarray) -> bool:
    """As :func:`add_draw`, from the products of probabilities themselves."""
    width, z = len(weights), 0.0
    for k in range(width):
        z += both[y, k]
    inverse = 1.0 / z
    if not inverse < 1e150:
        return False
    for candidate in range(width):
        weight = 0.0
        for k in range(width):
            a = both[candidate, k] * inverse
            sums[candidate, k] += a
            weight += a
        weights[candidate] = weight
    return True


@vectorized
def add_draw(
    y: int, terms: np.ndarray, two: np.ndarray, sums: np.ndarray, weights: np.ndarray
) -> bool:
    """Add A / Z(y) of a draw to the sums and write its weights; tell whether that is possible."""
    width, z = len(weights), 0.0
    for k in range(width):
        z += terms[0, k] * two[y + k]
    inverse = 1.0 / (z * terms[0, y])
    if not inverse < 1e150:  # its square, in the effective size, is still a number
        return False
    for candidate in range(width):
        factor, weight = terms[0, candidate] * inverse, 0.0
        for k in range(width):
            a = factor * terms[0, k] * two[candidate + k]
            sums[candidate, k] += a
            weight += a
        weights[candidate] = weight
    return True
