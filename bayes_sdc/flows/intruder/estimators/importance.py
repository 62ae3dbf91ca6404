"""Importance sampling from the fitted posterior: what replacing one true count would change.

With the true count y_t of one cell replaced by y, the posterior changes by the factor
``w_s(y) = P(y | s) / P(y_t | s)`` of draw s, where P is the truncated distribution of the cell; for
the Poisson family that is ``lambda^(y - y_t)`` up to a constant. So for draws s of the fitted
posterior, with normalised weights,

    M[y, k] = sum_s w_s(y) P(k | s) / sum_s w_s(y),

a product of two matrices per cell, which serves every candidate and every released value. The
weights span hundreds of decades and are formed from logarithms, shifted by the largest of each
candidate. The largest weights are smoothed (:mod:`bayes_sdc.flows.intruder.probabilities.pareto`).

References
----------
S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality", eq. (4)-(8).
The factor 1/L printed in (7) cancels once the weights are normalised, and its inner sum runs over
draws of lambda_t.
"""

import itertools
import math
from collections.abc import Callable

import numba
import numpy as np

from bayes_sdc.flows.intruder.probabilities.bayes import ReleaseProbabilities, likelihood_of_release
from bayes_sdc.flows.intruder.probabilities.pareto import TINY, khat_threshold, smooth
from bayes_sdc.flows.model.rates import Rates
from bayes_sdc.flows.model.truncated import Ladder, fill_probabilities, ladder
from bayes_sdc.flows.table.cells import SmallCells

CELLS_AT_A_TIME = 4096  # between two updates of the progress


def release_probabilities(
    rates: Rates,
    cells: SmallCells,
    chains: int,
    released: np.ndarray,
    *,
    advance: Callable[[float], None] = lambda units: None,
) -> ReleaseProbabilities:
    """Probability of each released count for each candidate true count.

    Parameters
    ----------
    rates : Rates
        Posterior draws, the chains one after another.
    cells : SmallCells
        The counts that were fitted, and the effects of each cell.
    chains : int
        Number of chains of equal length.
    released : array of int, shape (dataset, cell)
        Released counts, from 0.
    advance : callable
        Told how many cells are done.

    Returns
    -------
    ReleaseProbabilities
        With the k-hat and the effective size of each candidate's weights. Where k-hat can be
        computed the largest weights are smoothed: replaced by quantiles of the Pareto distribution
        fitted to them.
    """
    n, width = len(cells.y), cells.upper + 1
    result = ReleaseProbabilities(
        m=np.empty((n, width, width)),
        prediction=np.empty((n, width)),
        by_chain=np.empty((chains, n, width)),
        khat=np.empty((n, width)),
        ess=np.empty((n, width)),
        threshold=khat_threshold(rates.n_draws),
        error=np.full((n, width), np.inf),  # unknown from one chain
        refitted=np.zeros(n, dtype=bool),
    )
    # cells are sorted by group, and the draws of a group share their ladders
    edges = np.flatnonzero(np.diff(cells.group, prepend=-1, append=-1)).tolist()
    # a cell needs all draws of its two effects
    beta, gamma = (
        np.ascontiguousarray(effects.T, dtype=np.float64) for effects in (rates.beta, rates.gamma)
    )
    for first, after in itertools.pairwise(edges):
        group = cells.group[first]
        rungs = ladder(
            rates.kappa[:, group], cells.upper, cells.bound, rates.base, canonical=cells.canonical
        )
        for start in range(first, after, CELLS_AT_A_TIME):
            part = slice(start, min(start + CELLS_AT_A_TIME, after))
            by_chain = np.empty((chains, part.stop - start, width, width))
            _cells(
                beta,
                gamma,
                np.ascontiguousarray(rates.coefficient[:, group].T),
                rungs,
                cells.origin[part],
                cells.destination[part],
                cells.x[part],
                cells.y[part],
                np.ones(part.stop - part.start) if cells.weight is None else cells.weight[part],
                result.m[part],
                by_chain,
                result.prediction[part],
                result.khat[part],
                result.ess[part],
            )
            result.by_chain[:, part] = [
                likelihood_of_release(one, released[:, part]) for one in by_chain
            ]
            if chains > 1:
                spread = by_chain.std(axis=0, ddof=1).max(axis=2)
                result.error[part] = spread / math.sqrt(chains)
            advance(part.stop - part.start)
    return result


@numba.njit(cache=True, parallel=True)
def _cells(
    beta: np.ndarray,
    gamma: np.ndarray,
    coefficient: np.ndarray,
    rungs: Ladder,
    origin: np.ndarray,
    destination: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    m: np.ndarray,
    by_chain: np.ndarray,
    prediction: np.ndarray,
    khat: np.ndarray,
    ess: np.ndarray,
) -> None:
    n_draws, width, chains = beta.shape[1], khat.shape[1], len(by_chain)
    length = n_draws // chains
    for t in numba.prange(len(y)):
        true = y[t]
        p, log_weights = np.empty((n_draws, width)), np.empty((width, n_draws))
        for s in range(n_draws):
            log_rate = beta[origin[t], s] + gamma[destination[t], s]
            for covariate in range(x.shape[1]):
                log_rate += x[t, covariate] * coefficient[covariate, s]
            step = fill_probabilities(log_rate, s, rungs, p[s])
            for candidate in range(width):
                log_weights[candidate, s] = (candidate - true) * step + (
                    rungs.log_product[s, candidate] - rungs.log_product[s, true]
                )
                if rungs.bound[width - 1] > 0.0:  # no probability is too small for a logarithm
                    log_weights[candidate, s] = math.log(p[s, candidate] / p[s, true])
                log_weights[candidate, s] *= weight[t]
        log_mean = np.empty(width)
        weights = np.empty(n_draws)
        for candidate in range(width):
            one = log_weights[candidate]
            # nothing is replaced at the true count, and all its weights are one
            khat[t, candidate] = -np.inf if candidate == true else smooth(one)
            highest = one.max()
            total, squares = 0.0, 0.0
            for s in range(n_draws):
                weights[s] = math.exp(one[s] - highest)
                total += weights[s]
                squares += weights[s] ** 2
            log_mean[candidate] = highest + math.log(total)
            ess[t, candidate] = total**2 / squares
            m[t, candidate] = 0.0
            # plain loops: a library's dot product may add in a different order from one run to the
            # next
            for chain in range(chains):
                part_total = 0.0
                sums = by_chain[chain, t, candidate]
                sums[:] = 0.0
                for s in range(chain * length, (chain + 1) * length):
                    part_total += weights[s]
                    for k in range(width):
                        sums[k] += weights[s] * p[s, k]
                for k in range(width):
                    m[t, candidate, k] += sums[k] / total
                # a chain whose weights all vanish beside another's says nothing
                sums /= max(part_total, TINY)
        if weight[t] != 1.0:  # what the others predict is no weighted probability
            lowest = p[0, true]
            for s in range(1, n_draws):
                lowest = min(lowest, p[s, true])
            for candidate in range(width):
                total = 0.0
                for s in range(n_draws):
                    total += (lowest / p[s, true]) ** weight[t] * p[s, candidate]
                log_mean[candidate] = math.log(total)
        log_mean -= log_mean.max()
        for candidate in range(width):
            prediction[t, candidate] = math.exp(log_mean[candidate])
        prediction[t] /= prediction[t].sum()
