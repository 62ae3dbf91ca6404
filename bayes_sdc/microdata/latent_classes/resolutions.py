r"""How finely a class has levels of its own in a key: bands of neighbouring levels.

In most classes most keys say little, and then the class should have the levels of everybody; a
Dirichlet draw about them takes every rare value that a class happens to have for a mark of it, so
that rare people look common. And what a class says of age is rarely said year by year. So each
class has a resolution s in each key. At 0 it has the levels of everybody, m. At the finest each
level is by itself. Between, levels are in bands, B, halved from one resolution to the next: what
the class gives to a band is its own, and it is divided among the levels of the band as m is.

.. math::

    s_{jh} \sim w_j, \quad w_j \sim \mathrm{Dirichlet}(1, ..., 1).

A Dirichlet draw of levels is one of bands too, with the sums of its parameters, so that s and the
bands do not change what b means. The prior of m is a product over the splits of the tree of bands,
and each class informs the splits above its resolution by tables of a Chinese restaurant, and those
below by its records.

References
----------
J. Zhou, A. Bhattacharya, A. H. Herring and D. B. Dunson, "Bayesian factorizations of big sparse
tensors", JASA 2015, doi:10.1080/01621459.2014.983233, for classes that share the levels of
everybody in some keys.
"""

import math

import numpy as np

from bayes_sdc.microdata.latent_classes.draws import (
    compiled,
    draw_tables,
    inlined,
    log_gamma_draw,
    log_rising_factorial,
    normalise,
    pick,
)
from bayes_sdc.microdata.latent_classes.state import State

BASE = 0.5
SHARE = 1.0  # of the Dirichlet prior of a key's resolutions
SMALLEST = 1e-300


@compiled
def depth_of(levels: int) -> int:
    """Return the finest resolution: after so many halvings each level is by itself."""
    depth = 0
    while (1 << depth) < levels:
        depth += 1
    return depth


@compiled
def means_of_bands(base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum up m in the bands of each resolution, and take the logs; shape (resolution, band)."""
    levels, depth = len(base), depth_of(len(base))
    mean, logs = np.zeros((depth + 1, levels)), np.empty((depth + 1, levels))
    for s in range(depth + 1):
        for k in range(levels):
            mean[s, k >> (depth - s)] += base[k]
        for band in range(((levels - 1) >> (depth - s)) + 1):
            logs[s, band] = math.log(mean[s, band])
    return mean, logs


@compiled
def log_of_resolutions(
    strength: float, mean: np.ndarray, logs: np.ndarray, counts: np.ndarray, into: np.ndarray
) -> None:
    """Log probability of the levels of a class by resolution, less that at resolution 0.

    ``mean`` and ``logs`` are those of :func:`means_of_bands`.
    """
    bands = len(counts)
    number = np.empty(bands, dtype=np.int64)
    known = np.int64(0)  # a constant would be a type of its own
    for k in range(bands):
        number[k] = counts[k]
        known += counts[k]
    part = -log_rising_factorial(strength, known) if known > 0 else 0.0
    into[0] = 0.0
    for s in range(len(mean) - 1, 0, -1):
        total = part
        for k in range(bands):
            if number[k] > 0:
                total += log_rising_factorial(strength * mean[s, k], number[k])
                total -= number[k] * logs[s, k]
        into[s] = total
        half = (bands + 1) // 2
        for k in range(half):
            number[k] = number[2 * k]
            if 2 * k + 1 < bands:
                number[k] += number[2 * k + 1]
        bands = half


@inlined
def draw_resolution(rng: np.random.Generator, start: np.ndarray, state: State) -> None:
    """Draw the resolution of every class, phi summed out, and how frequent each is in a key.

    Empty classes say nothing of that, so they are left out of it, and drawn afterwards.
    """
    for j in range(len(start) - 1):
        base = state.base[start[j] : start[j + 1]]
        counts = state.counts[start[j] : start[j + 1]]
        depth = depth_of(len(base))
        shares = state.shares[j, : depth + 1]
        mean, logs = means_of_bands(base)
        chance, found = np.empty(depth + 1), np.full(depth + 1, SHARE)
        for h in range(len(state.size)):
            if state.size[h] > 0:
                log_of_resolutions(state.strength[j], mean, logs, counts[:, h], chance)
                for s in range(depth + 1):
                    chance[s] += math.log(shares[s])
                normalise(chance)
                state.resolution[j, h] = pick(rng, chance, 1.0)
                found[state.resolution[j, h]] += 1.0
        for s in range(depth + 1):
            shares[s] = log_gamma_draw(rng, found[s])
        normalise(shares)
        for s in range(depth + 1):
            shares[s] = max(shares[s], SMALLEST)
        for h in range(len(state.size)):
            if state.size[h] == 0:
                state.resolution[j, h] = pick(rng, shares, 1.0)


@inlined
def draw_base(rng: np.random.Generator, start: np.ndarray, state: State) -> None:
    """Draw each m, split by split of its tree."""
    for j in range(len(start) - 1):
        base = state.base[start[j] : start[j + 1]]
        splits = np.zeros((depth_of(len(base)) + 1, len(base)))
        for h in range(len(state.size)):
            add_to_splits(
                rng, state.strength[j], base, state.counts[start[j] : start[j + 1], h],
                state.resolution[j, h], splits,
            )  # fmt: skip
        draw_splits(rng, splits, base)


@compiled
def add_to_splits(
    rng: np.random.Generator, strength: float, base: np.ndarray, counts: np.ndarray,
    resolution: int, splits: np.ndarray,
) -> None:  # fmt: skip
    """Add what a class says of each node of the tree: tables down to its resolution, then records.

    ``splits[d, node]`` is of the node after d halvings.
    """
    levels, depth = len(base), splits.shape[0] - 1
    up = depth - resolution
    number, shape = 0, 0.0
    for k in range(levels):
        for d in range(resolution + 1, depth + 1):
            splits[d, k >> (depth - d)] += counts[k]
        number += counts[k]
        shape += strength * base[k]
        if k == levels - 1 or (k + 1) >> up != k >> up:
            tables = draw_tables(rng, number, shape) if resolution > 0 else 0
            for d in range(1, resolution + 1):
                splits[d, k >> (depth - d)] += tables
            number, shape = 0, 0.0


@compiled
def levels_under(node: int, up: int, levels: int) -> int:
    """Count the levels in a band, 0 where it is beyond the last one."""
    first: int = node << up
    return max(min(first + (1 << up), levels) - first, 0)


@compiled
def draw_splits(rng: np.random.Generator, splits: np.ndarray, base: np.ndarray) -> None:
    """Draw m from the root of the tree to its leaves; each split is a Dirichlet draw by itself."""
    levels, depth = len(base), splits.shape[0] - 1
    logs, pair = np.zeros(levels), np.empty(2)
    for d in range(1, depth + 1):
        up = depth - d
        # from the last one: a node's halves stand where other nodes stood before
        for node in range((levels - 1) >> (up + 1), -1, -1):
            if levels_under(2 * node + 1, up, levels) == 0:
                logs[2 * node] = logs[node]
                continue
            for side in range(2):
                child = 2 * node + side
                prior = BASE * levels_under(child, up, levels)
                pair[side] = log_gamma_draw(rng, prior + splits[d, child])
            top = max(pair[0], pair[1])
            both = top + math.log(math.exp(pair[0] - top) + math.exp(pair[1] - top))
            before = logs[node]
            for side in range(2):
                logs[2 * node + side] = before + pair[side] - both
    for k in range(levels):
        base[k] = max(math.exp(logs[k]), SMALLEST)
