r"""Release probabilities with both effects of the target integrated out of every posterior draw.

For a draw :math:`s` of all parameters but the two effects of cell t, these are independent given
the other cells, so the log rate :math:`\eta_t` of the target has the density :math:`q_s` of their
sum. With :math:`Z_s(y) = E_{q_s} P(y \mid \eta)` and
:math:`A_s(y, k) = E_{q_s} P(y \mid \eta) P(k \mid \eta)`,

.. math:: M_t[y, k] = \frac{\sum_s A_s(y, k) / Z_s(y_t)}{\sum_s Z_s(y) / Z_s(y_t)}.

The weights :math:`Z_s(y) / Z_s(y_t)` hold only what the target says about the other parameters,
which is little, so they are nearly equal; the weights of
:mod:`bayes_sdc.flows.intruder.estimators.importance` hold all it says about its own two effects.

In a pseudo-posterior every P(y) of a likelihood is raised to the weight of its cell, and P(k) of
the release is not; what the other cells predict of the target is then a sum of its own.

With bounded steps (:mod:`bayes_sdc.flows.model.bounded`) the A are summed as they stand. Without,
a draw needs a few moments only (:mod:`bayes_sdc.flows.intruder.estimators.log_rate_density`), since
:math:`Z_s(y) = \sum_k A_s(y, k)`.

References
----------
S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality", eq. (4)-(6).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import xarray as xr

from bayes_sdc.cores import threads
from bayes_sdc.flows.intruder.estimators.count_probabilities import CENTRES, Family, family
from bayes_sdc.flows.intruder.estimators.effect_densities import (
    densities,
    make_densities,
    offset,
    rates,
    without,
)
from bayes_sdc.flows.intruder.estimators.leave_one_out import LANES, NODES, make_room
from bayes_sdc.flows.intruder.estimators.log_rate_density import (
    Sum,
    add_draw,
    add_effects,
    add_products,
    moments,
    products,
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
        From any sampler. Cells times draws stay within :data:`BUDGET`, but at least :data:`LEAST`
        draws are used; cells that these leave uncertain are computed again with all draws.
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
        By target, with the weights' k-hat and effective size for each candidate. Where a density is
        too wide to be integrated, k-hat is infinite; where no draw can be used, M is uniform.
    """
    targets = np.arange(len(cells.y)) if targets is None else targets
    chains, length = posterior["posterior"].sizes["chain"], posterior["posterior"].sizes["draw"]
    each = max(draws_used(len(cells.y), chains * length) // chains, 1)
    near = neighbours(cells)
    again: list[np.ndarray] = []
    result = with_draws(posterior, cells, near, released, targets, each, cores, advance, again)
    if again:
        worse = np.sort(np.concatenate(again))
        better = with_draws(
            posterior, cells, near, released, targets[worse], length, cores, advance, []
        )
        for name in ("m", "prediction", "khat", "ess", "error"):
            getattr(result, name)[worse] = getattr(better, name)
        result.by_chain[:, worse] = better.by_chain
    # cells that were not computed again were judged by a lower threshold
    return result._replace(threshold=khat_threshold(chains * length))


def with_draws(
    posterior: xr.DataTree, cells: SmallCells, near: Neighbours, released: np.ndarray,
    targets: np.ndarray, each: int, cores: int | None, advance: Callable[[float], None],
    again: list[np.ndarray],
) -> ReleaseProbabilities:  # fmt: skip
    """Estimate from some draws of each chain; with fewer than all, collect the cells that miss."""
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
        resolved, predicted = np.zeros(len(block)), np.zeros((len(block), width))
        inputs = block_of(posterior, kept, cells, near, chosen)
        add_draws(*inputs, sums, weights, resolved, predicted)
        totals = sums.sum(axis=3)
        total = totals.sum(axis=0)
        undefined = ~(total > 0.0).all(axis=1)
        # no draw tells anything: every count is released with equal probability
        sums[:, undefined], totals[:, undefined], total[undefined] = 1.0 / width, 1.0, batches
        result.m[block] = sums.sum(axis=0) / total[..., None]
        expected = total.copy()
        below = (inputs[-1].weight != 1.0) & ~undefined
        expected[below] = predicted[below]
        result.prediction[block] = expected / expected.sum(axis=1, keepdims=True)
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
    weights: np.ndarray, resolved: np.ndarray, predicted: np.ndarray,
) -> None:  # fmt: skip
    """Add up A / Z of the targets by batch, write the weights, and count the draws resolved.

    For weighted targets what the other cells predict is added up besides.
    """
    n_draws, groups = draws.log_cv.shape
    batches, width = sums.shape[0], sums.shape[2]
    kappa, unit, terms = np.empty(groups), np.empty(groups), np.empty((groups, 2, width))
    bound = np.zeros((groups, 3, width))
    for g in range(groups):
        for k in range(width):
            bound[g, CENTRES, k] = draws.bound[k]
    from_origin, from_destination = make_densities(origins), make_densities(destinations)
    room, two, both = make_room(), np.empty(2 * width - 1), np.empty((width + 1, width))
    length = NODES**2 + LANES
    total = Sum(np.empty(length), np.empty(length), np.empty(length))
    for s in range(n_draws):
        for g in range(groups):
            now = family(draws.log_cv[s, g], draws.base[s], draws.canonical, terms[g], bound[g])
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
            scale, weight = offset(targets.x, t, coefficient, g), targets.weight[t]
            of_origin = without(
                y, weight, from_origin, i, rate_gamma[destinations.effect[j]] * scale, now, room,
                room.product,
            )  # fmt: skip
            of_destination = without(
                y, weight, from_destination, j, rate_beta[origins.effect[i]] * scale, now, room,
                room.density,
            )  # fmt: skip
            finer = from_origin.level[i] - from_destination.level[j]
            if finer >= 0:
                nodes = add_effects(of_origin, of_destination, finer, scale, total)
            else:
                nodes = add_effects(of_destination, of_origin, -finer, scale, total)
            if now.bound[CENTRES, width - 1] > 0.0 or weight != 1.0:
                products(nodes, weight, now, total, both)
                added = add_products(y, both, of_batch[t], weights[t, :, s])
            else:
                moments(nodes, now, total, two)
                added = add_draw(y, now.terms, two, of_batch[t], weights[t, :, s])
            if added:
                resolved[t] += from_origin.good[i] & from_destination.good[j]
            if added and weight != 1.0:
                z = 0.0
                for k in range(width):
                    z += both[y, k]
                for k in range(width):
                    predicted[t, k] += both[width, k] / z
