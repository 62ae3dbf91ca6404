r"""Release probabilities with both effects of the target integrated out of every posterior draw.

For a draw :math:`s` of all parameters but the two effects of cell t, these are independent given
the other cells, so the log rate :math:`\eta_t` of the target has the density :math:`q_s` of their
sum. With :math:`Z_s(y) = E_{q_s} P(y \mid \eta)` and
:math:`A_s(y, k) = E_{q_s} P(y \mid \eta) P(k \mid \eta)`,

.. math:: M_t[y, k] = \frac{\sum_s A_s(y, k) / Z_s(y_t)}{\sum_s Z_s(y) / Z_s(y_t)}.

The weights :math:`Z_s(y) / Z_s(y_t)` hold only what the target says about the other parameters,
which is little, so they are nearly equal; the weights of
:mod:`bayes_sdc.flows.intruder.estimators.importance` hold all it says about its own two effects.

With bounded steps (:mod:`bayes_sdc.flows.model.bounded`) the A are summed as they stand. Without,
with :math:`P(y) = c_y s^y / N` (:mod:`bayes_sdc.flows.intruder.estimators.leave_one_out`) a draw
needs the moments :math:`E s^r / N^2` for r = 0..2K only, since :math:`Z_s(y) = \sum_k A_s(y, k)`.

References
----------
S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality", eq. (4)-(6).
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import xarray as xr

from bayes_sdc.cores import threads
from bayes_sdc.flows.intruder.estimators.leave_one_out import (
    CENTRES,
    LANES,
    LARGEST_LOG,
    NODES,
    Family,
    Room,
    family,
    fill_density,
    fill_factor,
    fill_factors,
    fill_odds,
    fill_steps,
    fill_sums,
    make_room,
    padded,
    vectorized,
)
from bayes_sdc.flows.intruder.estimators.neighbours import (
    Draws,
    Neighbours,
    Side,
    Targets,
    block_of,
    blocks,
    neighbours,
)
from bayes_sdc.flows.intruder.probabilities.bayes import (
    ReleaseProbabilities,
    error_of_batches,
    likelihood_of_release,
    unreliable_cells,
)
from bayes_sdc.flows.intruder.probabilities.pareto import TINY, khat_of_weights, khat_threshold
from bayes_sdc.flows.model.hyperpriors import compiled
from bayes_sdc.flows.table.cells import SmallCells

# Posterior draws of a cell, and cells times draws of a table. In six simulated tables of a dozen
# cells 25 to 69 % of the cells have a Monte Carlo error of M above 0.01 with 500 of 4,000 draws,
# and 8 to 25 % with all of them, but for one table. Of 73,535 British cells 500 draws leave none,
# by the spread of four chains. So tables of up to 500 cells take 4,000 draws, in seconds.
LEAST, BUDGET = 500, 2_000_000
# Batches of the draws, whose spread gives the Monte Carlo error: against other fits of the same six
# tables, with six times the draws, the median ratio of the difference to it is 0.4 to 1.4. The
# weights' effective size alone does not see that the draws of a small group are dependent.
BATCHES = 20
ROOM = 1 << 26  # bytes of a block, of which each thread has one


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


class Sum(NamedTuple):
    """Room for the density of a log rate, the sum of two effects."""

    q: np.ndarray  # (NODES**2,) density
    s: np.ndarray  # (NODES**2,) rate, and its step of the ladder
    n: np.ndarray  # (NODES**2,) N(s)


def draws_used(cells: int, available: int) -> int:
    """Number of posterior draws that a table of so many cells is first estimated from.

    Examples
    --------
    >>> [draws_used(cells, 4000) for cells in (20, 1000, 73_535)]
    [4000, 2000, 500]
    """
    return min(max(LEAST, BUDGET // max(cells, 1)), available)


def release_probabilities(
    posterior: xr.DataTree,
    cells: SmallCells,
    released: np.ndarray,
    *,
    targets: np.ndarray | None = None,
    cores: int | None = None,
    advance: Callable[[float], None] = lambda units: None,
) -> ReleaseProbabilities:
    """Probability of each released count for each candidate true count.

    Parameters
    ----------
    posterior : DataTree
        From any sampler. So many draws of it are used that cells times draws stay within
        :data:`BUDGET`, but :data:`LEAST` at least; what these leave uncertain is computed again
        with all draws.
    cells : SmallCells
        The counts that were fitted, and the effects of each cell.
    released : array of int, shape (dataset, cell)
        Released counts of all cells, from 0.
    targets : array of int, optional
        Positions of the cells to estimate, ascending; by default all. The numbers of a cell do not
        depend on which others are estimated.
    cores : int, optional
        Threads; by default all. The numbers do not depend on it.
    advance : callable
        Told how many targets are done.

    Returns
    -------
    ReleaseProbabilities
        By target, with the weights' k-hat and effective size for each candidate. Where a density
        is too wide to be integrated k-hat is infinite, and where no draw can be, M is uniform.
    """
    targets = np.arange(len(cells.y)) if targets is None else targets
    chains, length = posterior["posterior"].sizes["chain"], posterior["posterior"].sizes["draw"]
    each = max(draws_used(len(cells.y), chains * length) // chains, 1)
    near = neighbours(cells)
    again: list[np.ndarray] = []
    result = _with_draws(posterior, cells, near, released, targets, each, cores, advance, again)
    if again:
        worse = np.sort(np.concatenate(again))
        better = _with_draws(
            posterior, cells, near, released, targets[worse], length, cores, advance, []
        )
        for name in ("m", "prediction", "khat", "ess", "error"):
            getattr(result, name)[worse] = getattr(better, name)
        result.by_chain[:, worse] = better.by_chain
    # what was not computed again has kept a lower threshold
    return result._replace(threshold=khat_threshold(chains * length))


def _with_draws(
    posterior: xr.DataTree, cells: SmallCells, near: Neighbours, released: np.ndarray,
    targets: np.ndarray, each: int, cores: int | None, advance: Callable[[float], None],
    again: list[np.ndarray],
) -> ReleaseProbabilities:  # fmt: skip
    """Estimate from so many draws of each chain; with fewer than all, collect what they miss."""
    chains, length = posterior["posterior"].sizes["chain"], posterior["posterior"].sizes["draw"]
    kept = np.arange(each) * length // each
    n, width, n_draws = len(targets), cells.upper + 1, chains * each
    of_chain = min(max(BATCHES // chains, 1), each)  # batches
    batches = chains * of_chain
    result = ReleaseProbabilities(
        m=np.empty((n, width, width)),
        prediction=np.empty((n, width)),
        by_chain=np.empty((chains, n, width)),
        khat=np.empty((n, width)),
        ess=np.empty((n, width)),
        threshold=khat_threshold(n_draws),
        error=np.empty((n, width)),
        refitted=np.zeros(n, dtype=bool),
    )

    def estimate(block: np.ndarray) -> None:
        chosen = targets[block]
        sums = np.zeros((batches, len(block), width, width))
        weights = np.zeros((len(block), width, n_draws))
        resolved = np.zeros(len(block))
        add_draws(*block_of(posterior, kept, cells, near, chosen), sums, weights, resolved)
        totals = sums.sum(axis=3)
        total = totals.sum(axis=0)
        undefined = ~(total > 0.0).all(axis=1)
        # what no draw tells: any count is released with equal probability, and nothing is known
        sums[:, undefined], totals[:, undefined], total[undefined] = 1.0 / width, 1.0, batches
        result.m[block] = sums.sum(axis=0) / total[..., None]
        result.prediction[block] = total / total.sum(axis=1, keepdims=True)
        error = error_of_batches(sums, totals).max(axis=2)
        error[undefined] = np.inf
        result.error[block] = error
        by_chain = sums.reshape(chains, of_chain, *sums.shape[1:]).sum(axis=1)
        by_chain /= np.maximum(by_chain.sum(axis=3, keepdims=True), TINY)
        result.by_chain[:, block] = [
            likelihood_of_release(m, released[:, chosen]) for m in by_chain
        ]
        khat = khat_of_weights(weights)
        khat[undefined | (resolved < 0.99 * n_draws)] = np.inf
        result.khat[block] = khat
        np.square(weights, out=weights)
        squares = np.maximum(weights.sum(axis=2), TINY)
        squares[undefined] = np.inf
        result.ess[block] = total**2 / squares
        worse = unreliable_cells(khat, result.threshold, error) & (each < length)
        if worse.any():
            again.append(block[worse])
        advance(len(block) - int(worse.sum()))

    cores = threads(cores)
    per_target = 8 * width * (n_draws + batches * width)
    room = min(ROOM, n * per_target // (2 * cores))  # so that no thread waits long for another
    parts = blocks(cells, targets, target=per_target, effect=8 * n_draws, room=room)
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(estimate, parts))
    return result


@compiled
def add_draws(
    draws: Draws, origins: Side, destinations: Side, targets: Targets, sums: np.ndarray,
    weights: np.ndarray, resolved: np.ndarray,
) -> None:  # fmt: skip
    """Add up A / Z of the targets by batch, write the weights, and count the draws resolved."""
    n_draws, groups = draws.log_cv.shape
    batches, width = sums.shape[0], sums.shape[2]
    kappa, unit, terms = np.empty(groups), np.empty(groups), np.empty((groups, 2, width))
    bound = np.zeros((groups, 3, width))
    for g in range(groups):
        for k in range(width):
            bound[g, CENTRES, k] = draws.bound[k]
    from_origin, from_destination = make_densities(origins), make_densities(destinations)
    room, two, both = make_room(), np.empty(2 * width - 1), np.empty((width, width))
    length = NODES**2 + LANES
    total = Sum(np.empty(length), np.empty(length), np.empty(length))
    for s in range(n_draws):
        for g in range(groups):
            now = family(draws.log_cv[s, g], draws.base[s], terms[g], bound[g])
            kappa[g], unit[g] = now.kappa, now.unit
        rate_beta, rate_gamma = rates(draws.beta[s]), rates(draws.gamma[s])
        coefficient, of_batch = draws.coefficient[s], sums[s * batches // n_draws]
        from_origin = densities(
            origins, draws.beta[s], draws.mean_beta[s], draws.sd_beta[s], rate_gamma,
            coefficient, kappa, unit, terms, bound, room, from_origin,
        )  # fmt: skip
        from_destination = densities(
            destinations, draws.gamma[s], draws.mean_gamma[s], draws.sd_gamma[s], rate_beta,
            coefficient, kappa, unit, terms, bound, room, from_destination,
        )  # fmt: skip
        for t in range(len(targets.y)):
            i, j, g = targets.origin[t], targets.destination[t], targets.group[t]
            now, y = Family(kappa[g], unit[g], terms[g], bound[g]), targets.y[t]
            scale = offset(targets.x, t, coefficient, g)
            of_origin = without(
                y, from_origin, i, rate_gamma[destinations.effect[j]] * scale, now, room,
                room.product,
            )  # fmt: skip
            of_destination = without(
                y, from_destination, j, rate_beta[origins.effect[i]] * scale, now, room,
                room.density,
            )  # fmt: skip
            finer = from_origin.level[i] - from_destination.level[j]
            if finer >= 0:
                nodes = add_effects(of_origin, of_destination, finer, scale, total)
            else:
                nodes = add_effects(of_destination, of_origin, -finer, scale, total)
            if now.bound[CENTRES, width - 1] > 0.0:
                products(nodes, now, total, both)
                added = add_products(y, both, of_batch[t], weights[t, :, s])
            else:
                moments(nodes, now, total, two)
                added = add_draw(y, now.terms, two, of_batch[t], weights[t, :, s])
            if added:
                resolved[t] += from_origin.good[i] & from_destination.good[j]


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
            side.y[first:after], rate[first:after], start[side.effect[e]], mean[g], sd[g],
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
    y: int, given: Densities, e: int, scale: float, now: Family, room: Room, weights: np.ndarray
) -> Density:
    """Density of an effect without a cell, summing to one, in ``weights``."""
    first, after = given.runs[e], given.runs[e + 1]
    rate, result = given.nodes[0, first:after], weights[: after - first]
    fill_factors(y, rate, scale, now, room.s, room.powers, room.sums)
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
def products(nodes: int, now: Family, total: Sum, both: np.ndarray) -> None:
    """Write E P(y) P(k) for bounded steps, whose probabilities are no powers of anything."""
    width = len(both)
    q, rate, odds = total.q[:nodes], total.s[:nodes], total.n[:nodes]
    fill_odds(rate, 1.0, now, odds)
    p, sums = np.ones((width, nodes)), np.ones(nodes)
    for k in range(width - 1):
        for a in range(nodes):
            p[k + 1, a] = p[k, a]
        fill_factor(k, now, odds, p[k + 1])
        for a in range(nodes):
            sums[a] += p[k + 1, a]
    for a in range(nodes):
        q[a] /= sums[a] * sums[a]
    for y in range(width):
        for k in range(y + 1):
            both[y, k] = weighted(q, p[y], p[k])
            both[k, y] = both[y, k]


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
    """Add A / Z(y) of a draw to the sums and write its weights; tell whether it can be."""
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
