"""The intruder who knows the totals and all small counts but those of one cycle through the target.

An intruder who knows all cells but the target subtracts them from a total and needs no release. So
the strongest intruder with something to learn lacks the counts along one alternating cycle: the
totals tie these to the target's count, one table for each of its values. A cell on no such cycle is
pinned, and known. For the true count replaced by y the counts along the cycle are y_c + d and
y_c - d in turn, d = y - y_t, and draw s of the posterior gets the weight

    w_s(y) = prod_c P(y_c +- d | s) / P(y_c | s).

The release is drawn given the totals, so with p_s(k) the probability of count k in the target given
draw s and the totals,

    M[y, k] = sum_s w_s(y) p_s(k) / sum_s w_s(y),

and before any release the table of y has a probability in proportion to the mean of w_s(y).

References
----------
S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality", eq. (3)-(8),
for cells that are drawn one by one.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from bayes_sdc.flows.intruder.probabilities.pareto import TINY, smooth
from bayes_sdc.flows.intruder.totals.search import Cycles


@numba.njit(cache=True, nogil=True)
def log_weights(log_table: np.ndarray, y: np.ndarray, cycles: Cycles) -> np.ndarray:
    """Log of w_s(y) in one draw: (cell, count); minus infinity for counts that no table has.

    Cells of one cycle share the work.

    Parameters
    ----------
    log_table : array of float, shape (cell, count)
        Log-probability of each count given the draw.
    y : array of int, shape (cell,)
        True counts, from 0.
    cycles : Cycles
        From :func:`bayes_sdc.flows.intruder.totals.search.widest_cycles`.
    """
    width = log_table.shape[1]
    result = np.full(log_table.shape, -np.inf)
    done, last = np.zeros(2 * width - 1), -1  # of the cycle that was last, by change of its first
    for t in cycles.order:
        cycle, sign = cycles.of[t], cycles.sign[t]
        if cycle < 0:
            result[t, y[t]] = 0.0
            continue
        least, most = cycles.low[t], cycles.high[t]
        if cycle != last:
            start, stop = cycles.start[cycle], cycles.start[cycle + 1]
            for d in range(least, most + 1):
                total = 0.0
                for k in range(start, stop):
                    cell = cycles.path[k]
                    to = y[cell] + (sign * d if (k - start) % 2 == 0 else -sign * d)
                    total += log_table[cell, to] - log_table[cell, y[cell]]
                done[width - 1 + sign * d] = total
            last = cycle
        for d in range(least, most + 1):
            result[t, y[t] + d] = done[width - 1 + sign * d]
    return result


class AlongCycles(NamedTuple):
    """Results of all draws for each cell; counts that no table has get the rows of the truth."""

    m: np.ndarray  # (cell, candidate, released)
    before: np.ndarray  # (cell, candidate) before any release, given the totals and all others
    by_chain: np.ndarray  # (chain, cell, candidate, released)
    khat: np.ndarray  # (cell, candidate)
    ess: np.ndarray  # (cell, candidate)
    error: np.ndarray  # (cell, candidate) Monte Carlo standard error, the largest of a row of M


@numba.njit(cache=True, nogil=True)
def release_given_cycles(
    log_weight: np.ndarray, chance: np.ndarray, y: np.ndarray, chains: int
) -> AlongCycles:
    """Combine the draws: M, and the probabilities before any release.

    Parameters
    ----------
    log_weight : array of float, shape (draw, cell, count)
        From :func:`log_weights`, the draws of a chain after one another.
    chance : array of float, shape (draw, cell, count)
        Probability of each count given the draw and the totals.
    y : array of int, shape (cell,)
        True counts, from 0.
    chains : int
        Number of chains; draws beyond the same number of each count in the last.
    """
    n_draws, n, width = log_weight.shape
    m, before = np.zeros((n, width, width)), np.zeros((n, width))
    by_chain = np.zeros((chains, n, width, width))
    khat, ess = np.full((n, width), -np.inf), np.full((n, width), float(n_draws))
    error = np.zeros((n, width))
    each = n_draws // chains
    weight, one = np.empty(n_draws), np.empty(n_draws)
    for t in range(n):
        log_mean = np.full(width, -np.inf)
        for c in range(width):
            if log_weight[0, t, c] == -np.inf:
                continue
            for s in range(n_draws):
                one[s] = log_weight[s, t, c]
            if c != y[t]:
                khat[t, c] = smooth(one)
            largest = one.max()
            for s in range(n_draws):
                weight[s] = math.exp(one[s] - largest)
            total = weight.sum()
            log_mean[c] = largest + math.log(total)
            ess[t, c] = total**2 / (weight**2).sum()
            for chain in range(chains):
                first = chain * each
                last = n_draws if chain == chains - 1 else first + each
                part = max(weight[first:last].sum(), TINY)
                for k in range(width):
                    found = 0.0
                    for s in range(first, last):
                        found += weight[s] * chance[s, t, k]
                    m[t, c, k] += found / total
                    by_chain[chain, t, c, k] = found / part
            for k in range(width):
                spread = 0.0
                for s in range(n_draws):
                    spread += (weight[s] * (chance[s, t, k] - m[t, c, k])) ** 2
                error[t, c] = max(error[t, c], math.sqrt(spread) / total)
        for c in range(width):
            if log_weight[0, t, c] == -np.inf:
                m[t, c] = m[t, y[t]]
                by_chain[:, t, c] = by_chain[:, t, y[t]]
                error[t, c] = error[t, y[t]]
        before[t] = np.exp(log_mean - log_mean.max())
        before[t] /= before[t].sum()
    return AlongCycles(m, before, by_chain, khat, ess, error)


@numba.njit(cache=True, nogil=True)
def leave_out(log_own: np.ndarray, chance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Average probabilities over draws as if a count that they were fitted to had not been used.

    Parameters
    ----------
    log_own : array of float, shape (draw, cell)
        Log-probability of that count given the draw.
    chance : array of float, shape (draw, cell, count)
        Of each count given the draw.

    Returns
    -------
    before : array of float, shape (cell, count)
        Rows sum to one.
    khat : array of float, shape (cell,)
        Of the weights.
    """
    n_draws, n, width = chance.shape
    before, khat = np.zeros((n, width)), np.empty(n)
    weight = np.empty(n_draws)
    for t in range(n):
        for s in range(n_draws):
            weight[s] = -log_own[s, t]
        khat[t] = smooth(weight)
        largest, total = weight.max(), 0.0
        for s in range(n_draws):
            one = math.exp(weight[s] - largest)
            total += one
            for k in range(width):
                before[t, k] += one * chance[s, t, k]
        before[t] /= total
    return before, khat


def tables_along(weight: np.ndarray, y: np.ndarray, cycles: Cycles) -> np.ndarray:
    """Probability of each candidate of the target if counts are independent with these weights.

    Parameters
    ----------
    weight : array of float, shape (count,)
        The same for all cells.
    y : array of int, shape (cell,)
        True counts, from 0.
    cycles : Cycles
        From :func:`bayes_sdc.flows.intruder.totals.search.widest_cycles`.

    Returns
    -------
    array of float, shape (cell, count)
        Rows sum to one.
    """
    table = np.tile(np.log(np.maximum(weight, TINY)), (len(y), 1))
    log_p = log_weights(table, y, cycles)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))
