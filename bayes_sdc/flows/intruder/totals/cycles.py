"""The intruder who knows the totals and all small counts but those of one cycle through the target.

An intruder who knows all cells but the target subtracts them from a total and needs no release. So
the strongest intruder with something to learn lacks the counts along one alternating cycle: the
totals tie these to the target's count, one table for each of its values. For the true count
replaced by y the counts along the cycle are y_c + d and y_c - d in turn, d = y - y_t, and draw s of
the posterior gets the weight

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
from bayes_sdc.flows.release.totals.alternating_cycles import Graph, random_cycle

LONGEST = 64  # largest number of cells of a cycle; longer ones are skipped
TRIES = 40  # cycles from which the widest is taken


class Cycles(NamedTuple):
    """One cycle for each cell; the target first, and every second cell moves with it."""

    path: np.ndarray  # (cell, place) cells of the cycle
    length: np.ndarray  # (cell,) 0: no cycle was found, the totals and all other counts tell it
    low: np.ndarray  # (cell,) least change of the target within the bounds of all, 0 or less
    high: np.ndarray  # (cell,) largest one


def widest_cycles(
    rng: np.random.Generator, graph: Graph, y: np.ndarray, upper: int | np.ndarray
) -> Cycles:
    """Find for each cell, among some random cycles, the one along which most tables lie.

    Parameters
    ----------
    rng : Generator
        Source of the cycles.
    graph : Graph
        Of the totals.
    y : array of int, shape (cell,)
        True counts, from 0.
    upper : int or array of int, shape (cell,)
        Largest count.
    """
    n = len(y)
    found = Cycles(
        np.zeros((n, LONGEST), np.int32), np.zeros(n, np.int64), np.zeros(n, np.int64),
        np.zeros(n, np.int64),
    )  # fmt: skip
    if len(graph.edges):
        largest = np.broadcast_to(np.asarray(upper, np.int64), n).copy()
        _widest(rng, graph, y, largest, *found)
    return found


@numba.njit(cache=True, nogil=True)
def _widest(
    rng: np.random.Generator,
    graph: Graph,
    y: np.ndarray,
    upper: np.ndarray,
    best: np.ndarray,
    length: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> None:
    left_place = np.full(len(graph.left_start) - 1, -1, np.int64)
    right_place = np.full(len(graph.right_start) - 1, -1, np.int64)
    path = np.empty(len(left_place) + len(right_place) + 4, np.int64)
    for edge in graph.edges:
        for _ in range(TRIES):
            first, n = random_cycle(rng, graph, edge, path, left_place, right_place)
            if first > 0 or n == 0 or n > LONGEST:
                continue
            least, most = -y[edge], upper[edge] - y[edge]
            for k in range(0, n, 2):
                more, less = y[path[k]], y[path[k + 1]]
                least = max(least, -more, less - upper[path[k + 1]])
                most = min(most, upper[path[k]] - more, less)
            if length[edge] == 0 or most - least > high[edge] - low[edge]:
                length[edge], low[edge], high[edge] = n, least, most
                for k in range(n):
                    best[edge, k] = path[k]
            if high[edge] - low[edge] == upper[edge]:
                break


@numba.njit(cache=True, nogil=True)
def log_weights(log_table: np.ndarray, y: np.ndarray, cycles: Cycles) -> np.ndarray:
    """Log of w_s(y) in one draw: (cell, count); minus infinity for counts that no table has.

    Parameters
    ----------
    log_table : array of float, shape (cell, count)
        Log-probability of each count given the draw.
    y : array of int, shape (cell,)
        True counts, from 0.
    cycles : Cycles
        From :func:`widest_cycles`.
    """
    result = np.full(log_table.shape, -np.inf)
    for t in range(len(y)):
        for d in range(cycles.low[t], cycles.high[t] + 1):
            total = 0.0
            for k in range(cycles.length[t]):
                cell = cycles.path[t, k]
                to = y[cell] + (d if k % 2 == 0 else -d)
                total += log_table[cell, to] - log_table[cell, y[cell]]
            result[t, y[t] + d] = total
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
        From :func:`widest_cycles`.

    Returns
    -------
    array of float, shape (cell, count)
        Rows sum to one.
    """
    table = np.tile(np.log(np.maximum(weight, TINY)), (len(y), 1))
    log_p = log_weights(table, y, cycles)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))
