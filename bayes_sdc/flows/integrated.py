r"""Release probabilities with both effects of the target integrated out of every posterior draw.

For a draw :math:`s` of all parameters but the two effects of cell t, these are independent given
the other cells, so the log rate :math:`\eta_t` of the target has the density :math:`q_s` of their
sum. With :math:`Z_s(y) = E_{q_s} P(y \mid \eta)` and
:math:`A_s(y, k) = E_{q_s} P(y \mid \eta) P(k \mid \eta)`,

.. math:: M_t[y, k] = \frac{\sum_s A_s(y, k) / Z_s(y_t)}{\sum_s Z_s(y) / Z_s(y_t)}.

The weights :math:`Z_s(y) / Z_s(y_t)` hold only what the target says about the other parameters,
which is little, so they are nearly equal; the weights of :mod:`bayes_sdc.flows.importance` hold all
it says about its own two effects.

With :math:`\sigma = \lambda / (1 + \kappa \lambda)` and :math:`P(y) = c_y \sigma^y / N` a draw
needs the moments :math:`E \sigma^r / N^2` for r = 0..2K and :math:`E \sigma^y / N` only.

References
----------
S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality", eq. (4)-(6).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np
import xarray as xr

from bayes_sdc.flows import engine
from bayes_sdc.flows.counts import fill_ladder
from bayes_sdc.flows.hyperpriors import compiled
from bayes_sdc.flows.layout import Layout
from bayes_sdc.flows.leave_one_out import LARGEST_RATE, NODES, Grid, leave_one_out, make_grid
from bayes_sdc.flows.newton import Data
from bayes_sdc.flows.pareto import khat_of_weights, khat_threshold
from bayes_sdc.flows.refit import SMALLEST_PRECISION
from bayes_sdc.flows.target import Estimate, likelihood_of_release

DRAWS = 500  # posterior draws used; with nearly equal weights more change nothing (measured)
CELLS_AT_A_TIME = 4096  # of nine counts; bounds the memory, and is the unit of progress
PARTS = 4  # pieces of a chain; what is added up does not depend on the number of threads


class Draws(NamedTuple):
    """Thinned posterior draws, the chains one after another: (draw, ...)."""

    beta: np.ndarray  # (draw, origin_effect)
    gamma: np.ndarray  # (draw, destination_effect)
    mean_beta: np.ndarray  # (draw, group)
    mean_gamma: np.ndarray  # (draw, group)
    sd_beta: np.ndarray  # (draw, group)
    sd_gamma: np.ndarray  # (draw, group)
    log_cv: np.ndarray  # (draw, group) minus infinity for the Poisson family
    coefficient: np.ndarray  # (draw, group, covariate)


def thinned(posterior: xr.DataTree, cells: Layout) -> Draws:
    """Take :data:`DRAWS` equally spaced draws, as many from each chain."""
    draws = posterior["posterior"].to_dataset()
    chains, length = draws.sizes["chain"], draws.sizes["draw"]
    each = min(max(DRAWS // chains, 1), length)
    kept = draws.isel(draw=np.arange(each) * length // each)

    def flat(name: str) -> np.ndarray:
        values = kept[name].to_numpy()
        return np.ascontiguousarray(values.reshape(-1, *values.shape[2:]))

    alpha = flat("alpha")
    poisson = np.full_like(alpha, -np.inf)
    none = np.empty((*alpha.shape, 0))
    return Draws(
        beta=flat("beta"),
        gamma=flat("gamma"),
        mean_beta=flat("mu_beta"),
        mean_gamma=flat("mu_gamma"),
        # a precision of the paper's prior may underflow
        sd_beta=np.maximum(flat("phi_beta"), SMALLEST_PRECISION) ** -0.5,
        sd_gamma=np.maximum(flat("phi_gamma"), SMALLEST_PRECISION) ** -0.5,
        log_cv=-0.5 * np.log(flat("r")) if "r" in kept else poisson,
        coefficient=flat("coefficient") if cells.covariates else none,
    )


def release_probabilities(
    posterior: xr.DataTree,
    cells: Layout,
    released: np.ndarray,
    *,
    advance: Callable[[float], None] = lambda units: None,
) -> Estimate:
    """Probability of each released count for each candidate true count.

    Parameters
    ----------
    posterior : DataTree
        From any sampler; :data:`DRAWS` draws of it are used.
    cells : Layout
        The counts that were fitted, and the effects of each cell.
    released : array of int, shape (dataset, cell)
        Released counts, from 0.
    advance : callable
        Told how many cells are done.

    Returns
    -------
    Estimate
        With the weights' k-hat and effective size for each candidate; k-hat is infinite where a
        density is too wide to be integrated.
    """
    draws, data = thinned(posterior, cells), engine.prepare(cells)
    chains = posterior["posterior"].sizes["chain"]
    n, width, n_draws = len(cells.y), cells.upper + 1, len(draws.beta)
    # pieces of the chains in order, none of them empty
    parts = chains * min(PARTS, n_draws // chains)
    edges = np.arange(parts + 1) * n_draws // parts
    result = Estimate(
        m=np.empty((n, width, width)),
        prediction=np.empty((n, width)),
        by_chain=np.empty((chains, n, width)),
        khat=np.empty((n, width)),
        ess=np.empty((n, width)),
        threshold=khat_threshold(n_draws),
    )
    for first, after in _blocks(cells):
        size = after - first
        sums = np.zeros((parts, size, width, width))
        weights = np.empty((size, width, n_draws))
        resolved = np.zeros((parts, size))
        chosen = np.unique(cells.destination[first:after])
        _block(
            draws, data, cells.group_of_origin, cells.group_of_destination, first,
            after, chosen, edges, sums, weights, resolved,
        )  # fmt: skip
        part = slice(first, after)
        by_part = np.add.reduceat(weights, edges[:-1], axis=2)
        total = by_part.sum(axis=2)
        result.m[part] = sums.sum(axis=0) / total[:, :, None]
        result.prediction[part] = total / total.sum(axis=1, keepdims=True)
        of_chain = sums.reshape(chains, -1, size, width, width).sum(axis=1)
        of_chain /= (
            by_part.reshape(size, width, chains, -1).sum(axis=3).transpose(2, 0, 1)[..., None]
        )
        result.by_chain[:, part] = [
            likelihood_of_release(one, released[:, part]) for one in of_chain
        ]
        result.ess[part] = total**2 / (weights**2).sum(axis=2)
        khat_of_weights(weights, result.khat[part])
        lost = (resolved.sum(axis=0) < 0.99 * n_draws) | ~np.isfinite(result.m[part]).all((1, 2))
        result.khat[part][lost] = np.inf
        advance(size)
    return result


def _blocks(cells: Layout) -> list[tuple[int, int]]:
    """Ranges of cells that hold whole origin effects; fewer cells where there are more counts."""
    room = max(CELLS_AT_A_TIME * (8 + 1) ** 2 // (cells.upper + 1) ** 2, 1)
    ends = np.flatnonzero(np.diff(cells.origin, append=-1)) + 1
    block = (ends - 1) // room
    after = ends[np.flatnonzero(np.diff(block, append=-1))].tolist()
    return list(zip([0, *after[:-1]], after, strict=True))


@numba.njit(cache=True, parallel=True, error_model="numpy")
def _block(
    draws: Draws, data: Data, group_of_origin: np.ndarray,
    group_of_destination: np.ndarray, first: int, after: int, chosen: np.ndarray,
    edges: np.ndarray, sums: np.ndarray, weights: np.ndarray, resolved: np.ndarray,
) -> None:  # fmt: skip
    """Add up A / Z and write the weights of the cells ``first`` to ``after``."""
    size, width = after - first, data.upper + 1
    longest = max(np.diff(data.cells_of_origin).max(), np.diff(data.cells_of_destination).max())
    for part in numba.prange(len(edges) - 1):
        origins, destinations = make_grid(longest), make_grid(longest)
        rest, rate, covariates = np.empty(len(data.y)), np.empty(len(data.y)), np.ones(size)
        # of the destination side, kept until the origins come
        node_rate = np.empty((len(chosen), NODES))
        density, ends = np.empty((size, NODES)), np.empty((size, 3), np.int64)
        ladder = np.empty((4, width))
        one, two = np.empty(width), np.empty(2 * width - 1)
        fine = np.empty(size)
        for s in range(edges[part], edges[part + 1]):
            present = -1
            for number in range(len(chosen)):
                j = chosen[number]
                g = group_of_destination[j]
                if g != present:
                    fill_ladder(draws.log_cv[s, g], ladder)
                    present = g
                run = data.by_destination[
                    data.cells_of_destination[j] : data.cells_of_destination[j + 1]
                ]
                for c in run:
                    offset = 0.0
                    for p in range(data.x.shape[1]):
                        offset += data.x[c, p] * draws.coefficient[s, g, p]
                    if first <= c < after:
                        covariates[c - first] = math.exp(offset)
                    rest[c] = draws.beta[s, data.origin[c]] + offset
                    rate[c] = math.exp(min(rest[c], 300.0))
                good = leave_one_out(
                    run, data.y, rest, rate, draws.gamma[s, j], draws.mean_gamma[s, g],
                    draws.sd_gamma[s, g], draws.log_cv[s, g], ladder, destinations,
                )  # fmt: skip
                node_rate[number] = destinations.rate
                for k in range(len(run)):
                    c = run[k] - first
                    if 0 <= c < size:
                        fine[c] = 1.0 if good else 0.0
                        density[c] = destinations.weights[k]
                        ends[c, 0], ends[c, 1] = destinations.first[k], destinations.after[k]
                        ends[c, 2] = number
            present = -1
            i = data.origin[first]
            while i < len(group_of_origin) and data.cells_of_origin[i] < after:
                g = group_of_origin[i]
                if g != present:
                    fill_ladder(draws.log_cv[s, g], ladder)
                    present = g
                run = data.by_origin[data.cells_of_origin[i] : data.cells_of_origin[i + 1]]
                for c in run:
                    rest[c] = draws.gamma[s, data.destination[c]]
                    rest[c] += math.log(covariates[c - first])
                    rate[c] = math.exp(min(rest[c], 300.0))
                good = leave_one_out(
                    run, data.y, rest, rate, draws.beta[s, i], draws.mean_beta[s, g],
                    draws.sd_beta[s, g], draws.log_cv[s, g], ladder, origins,
                )  # fmt: skip
                kappa = math.exp(2.0 * draws.log_cv[s, g])
                for k in range(len(run)):
                    c = run[k] - first
                    moments(
                        origins, k, node_rate[ends[c, 2]], density[c], ends[c], covariates[c],
                        kappa, ladder, one, two,
                    )  # fmt: skip
                    resolved[part, c] += fine[c] if good else 0.0
                    add_draw(int(data.y[run[k]]), ladder, one, two, sums[part, c], weights[c], s)
                i += 1


@compiled
def unit_of_steps(ladder: np.ndarray) -> float:
    """Unit in which the steps of the ladder have a product of one: c_K ** (1 / K)."""
    unit: float = math.exp(ladder[0, -1] / (ladder.shape[1] - 1))
    return unit


@compiled
def moments(
    origins: Grid, k: int, node_rate: np.ndarray, density: np.ndarray, ends: np.ndarray,
    covariates: float, kappa: float, ladder: np.ndarray, one: np.ndarray, two: np.ndarray,
) -> None:  # fmt: skip
    """Write E sigma^y / N into ``one`` and E sigma^r / N^2 into ``two``.

    Powers are those of sigma times :func:`unit_of_steps`, and above 1 their inverses fill both from
    the ends: nothing overflows, however many counts there are.
    """
    upper = len(one) - 1
    unit = unit_of_steps(ladder)
    one[:], two[:] = 0.0, 0.0
    for a in range(origins.first[k], origins.after[k]):
        outer, scale = origins.weights[k, a], origins.rate[a] * covariates
        for b in range(ends[0], ends[1]):
            rate = min(scale * node_rate[b], LARGEST_RATE)
            sigma = rate / (1.0 + kappa * rate)
            scaled = sigma * unit
            weight = outer * density[b]
            n = 1.0
            if scaled < 1.0:
                for y in range(upper - 1, -1, -1):
                    n = 1.0 + sigma * ladder[1, y] * n
                power = weight / n
                for y in range(upper + 1):
                    one[y] += power
                    power *= scaled
                power = weight / (n * n)
                for r in range(2 * upper + 1):
                    two[r] += power
                    power *= scaled
            else:
                inverse = 1.0 / scaled
                for y in range(upper):
                    n = 1.0 + ladder[3, y] / sigma * n
                power = weight / n
                for y in range(upper, -1, -1):
                    one[y] += power
                    power *= inverse
                power = weight / (n * n)
                for r in range(2 * upper, -1, -1):
                    two[r] += power
                    power *= inverse


@compiled
def add_draw(
    true: int, ladder: np.ndarray, one: np.ndarray, two: np.ndarray, sums: np.ndarray,
    weights: np.ndarray, s: int,
) -> None:  # fmt: skip
    """Add A / Z(y_t) of a draw to the sums, and write its weights."""
    width = len(one)
    log_unit = math.log(unit_of_steps(ladder))
    c = np.empty(width)
    for y in range(width):
        c[y] = math.exp(ladder[0, y] - y * log_unit)
    inverse = 1.0 / (c[true] * one[true])
    for y in range(width):
        weights[y, s] = c[y] * one[y] * inverse
        factor = c[y] * inverse
        for k in range(width):
            sums[y, k] += factor * c[k] * two[y + k]
