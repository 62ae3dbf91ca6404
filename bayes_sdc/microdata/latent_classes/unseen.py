"""Combinations that nobody in the file has: drawn from the base, never listed.

A sum of h(g_k) over them is the mean of h(g) / g over draws from the base that miss the occupied
combinations, so its cost goes with the draws and not with the number of combinations.
"""

import numpy as np

from bayes_sdc.microdata.latent_classes.conditionals import extend_products
from bayes_sdc.microdata.latent_classes.draws import compiled
from bayes_sdc.microdata.latent_classes.weights import weight_of

EMPTY = -1
NO_RULES = np.empty((0, 0), dtype=np.bool_)
EQUAL_WEIGHTS = np.empty(0)


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
    table = np.empty(size, dtype=np.int64)
    # a copy into a slice may fail with a text, which takes seconds to compile
    for slot in range(size):
        table[slot] = EMPTY
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
def cumulate(start: np.ndarray, eta: np.ndarray, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum up the weights of the classes, and the levels of each key in each class."""
    keys = len(start) - 1
    cumulative = np.empty((len(eta), phi.shape[0]))
    for h in range(len(eta)):
        for j in range(keys):
            total = 0.0
            for row in range(start[j], start[j + 1]):
                total += phi[row, h]
                cumulative[h, row] = total
    of_class = np.empty(len(eta))
    before = 0.0
    for h in range(len(eta)):
        before += eta[h]
        of_class[h] = before
    return of_class, cumulative


@compiled
def draw_row(
    rng: np.random.Generator, place: float, start: np.ndarray, of_class: np.ndarray,
    cumulative: np.ndarray, drawn: np.ndarray,
) -> int:  # fmt: skip
    """Draw the levels of a combination; return its class, that at a place of the weights."""
    h: int = place_in(of_class, place)
    for j in range(len(start) - 1):
        levels = cumulative[h, start[j] : start[j + 1]]
        drawn[j] = start[j] + place_in(levels, rng.random() * levels[-1])
    return h


@compiled
def forbidden(row: np.ndarray, rules: np.ndarray) -> bool:
    """Tell whether some rule holds for all levels of a combination."""
    for rule in range(len(rules)):
        holds = True
        for j in range(len(row)):
            if not rules[rule, row[j]]:
                holds = False
                break
        if holds:
            return True
    return False


@compiled
def draw_unseen(
    rng: np.random.Generator, number: int, start: np.ndarray, rows: np.ndarray,
    table: np.ndarray, eta: np.ndarray, phi: np.ndarray, rules: np.ndarray,
    effects: np.ndarray = EQUAL_WEIGHTS,
) -> tuple[np.ndarray, np.ndarray, int]:  # fmt: skip
    """Draw combinations from the base; return g of those that can occur and that nobody has.

    Classes are drawn in strata, one draw from each of ``number`` equal parts of their weights. Also
    returned are what a record with each stands for, by the effects of
    `bayes_sdc.microdata.latent_classes.weights.log_weights` where weights differ, and how many of
    all draws can occur, see `bayes_sdc.microdata.latent_classes.zeros`.
    """
    keys = len(start) - 1
    of_class, cumulative = cumulate(start, eta, phi)
    products = np.empty((keys + 1, len(eta)))
    for h in range(len(eta)):
        products[0, h] = eta[h]
    drawn = np.empty(keys, dtype=np.int32)
    g = np.empty(number)
    times = np.empty(number if len(effects) > 0 else 0)
    missed, possible = 0, 0
    none_shared = np.int64(0)  # a constant would be a type of its own
    for i in range(number):
        place = (i + rng.random()) / number * of_class[-1]
        draw_row(rng, place, start, of_class, cumulative, drawn)
        if forbidden(drawn, rules):
            continue
        possible += 1
        if not is_occupied(drawn, rows, table):
            g[missed] = extend_products(drawn, none_shared, phi, products)
            if len(effects) > 0:
                times[missed] = weight_of(drawn, effects)
            missed += 1
    return g[:missed], times[:missed], possible
