"""Combinations that nobody in the file has: drawn from the base, never listed.

A sum of h(g_k) over them is the mean of h(g) / g over draws from the base that miss the occupied
combinations, so its cost goes with the draws and not with the number of combinations.
"""

import numpy as np

from bayes_sdc.microdata.latent_classes.conditionals import extend_products
from bayes_sdc.microdata.latent_classes.draws import compiled

EMPTY = -1


@compiled
def hash_row(row: np.ndarray) -> int:
    """Mix the levels of a combination into one number, 0 or more."""
    mixed = np.uint64(1469598103934665603)
    for j in range(len(row)):
        mixed ^= np.uint64(row[j] + 1)
        mixed *= np.uint64(1099511628211)
        mixed ^= mixed >> np.uint64(29)
    return int(mixed >> np.uint64(1))


@compiled
def index_rows(rows: np.ndarray) -> np.ndarray:
    """Return an open hash table of combinations: their places, or :data:`EMPTY`."""
    size = 16
    while size < 2 * len(rows):
        size *= 2
    table = np.full(size, EMPTY, dtype=np.int64)
    for k in range(len(rows)):
        slot = hash_row(rows[k]) & (size - 1)
        while table[slot] != EMPTY:
            slot = (slot + 1) & (size - 1)
        table[slot] = k
    return table


@compiled
def is_occupied(row: np.ndarray, rows: np.ndarray, table: np.ndarray) -> bool:
    """Tell whether somebody in the file has exactly this combination."""
    size = len(table)
    slot = hash_row(row) & (size - 1)
    while table[slot] != EMPTY:
        k = table[slot]
        equal = True
        for j in range(len(row)):
            if rows[k, j] != row[j]:
                equal = False
                break
        if equal:
            return True
        slot = (slot + 1) & (size - 1)
    return False


@compiled
def place_in(cumulative: np.ndarray, u: float) -> int:
    """Find the first place whose cumulative share exceeds u, by halving; the last at the most."""
    low, high = 0, len(cumulative) - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def draw_unseen(
    rng: np.random.Generator, number: int, start: np.ndarray, rows: np.ndarray,
    table: np.ndarray, eta: np.ndarray, phi: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Draw combinations from the base; return g of those that nobody in the file has.

    Classes are drawn in strata, one draw from each of ``number`` equal parts of their weights.
    """
    keys = len(start) - 1
    cumulative = np.empty((len(eta), phi.shape[0]))
    for h in range(len(eta)):
        for j in range(keys):
            total = 0.0
            for row in range(start[j], start[j + 1]):
                total += phi[row, h]
                cumulative[h, row] = total
    of_class = np.cumsum(eta)
    products = np.empty((keys + 1, len(eta)))
    products[0] = eta
    drawn = np.empty(keys, dtype=np.int32)
    g = np.empty(number)
    missed = 0
    for i in range(number):
        h = place_in(of_class, (i + rng.random()) / number * of_class[-1])
        for j in range(keys):
            levels = cumulative[h, start[j] : start[j + 1]]
            drawn[j] = start[j] + place_in(levels, rng.random() * levels[-1])
        if not is_occupied(drawn, rows, table):
            g[missed] = extend_products(drawn, 0, phi, products)
            missed += 1
    return g[:missed]
