r"""The conditional distributions of the latent-class model, one a function.

With H classes, keys j and levels l,

.. math::

    \alpha \sim \mathrm{Gamma}(1/4, 1/4), \quad
    \eta \sim \mathrm{Dirichlet}(\alpha/H, ..., \alpha/H), \quad
    z_i \sim \eta, \quad x_{ij} \mid z_i = h \sim \varphi_{jh},

.. math::

    \varphi_{jh} \sim \mathrm{Dirichlet}(b_j m_j), \quad
    m_j \sim \mathrm{Dirichlet}(1/2, ..., 1/2), \quad
    \log b_j \sim \mathrm{N}(\log 5, 1.5^2).

A finite symmetric Dirichlet takes the place of stick-breaking: its classes are exchangeable, so no
move has to sort them. A class is a guess at which values go together; nothing is concluded of one
class, whose number is arbitrary.

References
----------
D. B. Dunson and C. Xing, "Nonparametric Bayes modeling of multivariate categorical data", JASA
2009, doi:10.1198/jasa.2009.tm08439.
D. Manrique-Vallier and J. P. Reiter, "Estimating identification disclosure risk using mixed
membership models", JASA 2012, doi:10.1080/01621459.2012.710508.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from bayes_sdc.microdata.latent_classes.draws import (
    compiled,
    draw_tables,
    inlined,
    log_gamma_draw,
    normalise,
    pick,
)

ALPHA_SHAPE = ALPHA_RATE = 0.25
BASE = 0.5
STRENGTH_MEAN, STRENGTH_SD = math.log(5.0), 1.5
ALPHA_STEP, STRENGTH_STEP = 1.0, 0.6  # of the random walks, on the log scale

vectorised = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"}
)


class State(NamedTuple):
    """Where a chain is; every array is changed in place.

    Parameters
    ----------
    alpha : array, shape (1,)
        Concentration of the class weights.
    eta : array, shape (class,)
        Weight of each class.
    strength : array, shape (key,)
        b, how alike the classes are in a key.
    base : array, shape (row,)
        m, the levels of a key in the mean of the classes.
    phi : array, shape (row, class)
        Levels of a key in each class.
    size : array of int, shape (class,)
        Records in each class.
    counts : array of int, shape (row, class)
        Records of a class with each level.
    g : array, shape (combination,)
        Probability of each combination under eta and phi; with a missing value that of all
        combinations that it may be.
    """

    alpha: np.ndarray
    eta: np.ndarray
    strength: np.ndarray
    base: np.ndarray
    phi: np.ndarray
    size: np.ndarray
    counts: np.ndarray
    g: np.ndarray


@compiled
def log_alpha_density(log_alpha: float, size: np.ndarray) -> float:
    """Log density of log alpha given the sizes of the classes, eta summed out."""
    alpha, classes = math.exp(log_alpha), len(size)
    total = ALPHA_SHAPE * log_alpha - ALPHA_RATE * alpha
    part = alpha / classes
    records = 0
    for h in range(classes):
        records += size[h]
        if size[h] > 0:
            # Gamma(part + n) / Gamma(part), by Gamma(part + 1) = part Gamma(part) near 0
            total += math.log(part) + math.lgamma(part + size[h]) - math.lgamma(part + 1.0)
    if records > 0:
        total -= math.log(alpha) + math.lgamma(alpha + records) - math.lgamma(alpha + 1.0)
    return total


@inlined
def draw_alpha(rng: np.random.Generator, state: State) -> None:
    """Move alpha by a random walk on its log, eta summed out."""
    now = math.log(state.alpha[0])
    proposed = now + ALPHA_STEP * rng.standard_normal()
    ratio = log_alpha_density(proposed, state.size) - log_alpha_density(now, state.size)
    if math.log(1.0 - rng.random()) < ratio:
        state.alpha[0] = math.exp(proposed)


@compiled
def draw_eta(rng: np.random.Generator, state: State) -> None:
    """Draw the weights of the classes: Dirichlet(alpha / H + size)."""
    classes = len(state.eta)
    for h in range(classes):
        state.eta[h] = log_gamma_draw(rng, state.alpha[0] / classes + state.size[h])
    normalise(state.eta)


@compiled
def log_strength_density(log_strength: float, base: np.ndarray, counts: np.ndarray) -> float:
    """Log density of log b of one key given its counts, phi summed out."""
    strength = math.exp(log_strength)
    total = -0.5 * ((log_strength - STRENGTH_MEAN) / STRENGTH_SD) ** 2
    for h in range(counts.shape[1]):
        known = 0  # fewer than the class has, where values are missing
        for row in range(len(base)):
            known += counts[row, h]
        if known > 0:
            total += math.lgamma(strength) - math.lgamma(strength + known)
    for row in range(len(base)):
        shape = strength * base[row]
        one = math.log(shape)
        zero = math.lgamma(shape + 1.0) - one
        for h in range(counts.shape[1]):
            number = counts[row, h]
            if number == 1:
                total += one
            elif number > 1:
                total += math.lgamma(shape + number) - zero
    return total


@inlined
def draw_strength(rng: np.random.Generator, start: np.ndarray, state: State) -> None:
    """Move each b by a random walk on its log, phi summed out."""
    for j in range(len(start) - 1):
        base = state.base[start[j] : start[j + 1]]
        counts = state.counts[start[j] : start[j + 1]]
        now = math.log(state.strength[j])
        proposed = now + STRENGTH_STEP * rng.standard_normal()
        ratio = log_strength_density(proposed, base, counts)
        ratio -= log_strength_density(now, base, counts)
        if math.log(1.0 - rng.random()) < ratio:
            state.strength[j] = math.exp(proposed)


@inlined
def draw_base(rng: np.random.Generator, start: np.ndarray, state: State) -> None:
    """Draw each m by the numbers of tables that the counts of the classes sit at."""
    for j in range(len(start) - 1):
        for row in range(start[j], start[j + 1]):
            shape = state.strength[j] * state.base[row]
            tables = 0
            for h in range(len(state.size)):
                tables += draw_tables(rng, state.counts[row, h], shape)
            state.base[row] = log_gamma_draw(rng, BASE + tables)
        normalise(state.base[start[j] : start[j + 1]])


@compiled
def draw_phi(rng: np.random.Generator, start: np.ndarray, state: State) -> None:
    """Draw the levels of every class: Dirichlet(b m + counts)."""
    longest = 0
    for j in range(len(start) - 1):
        longest = max(longest, start[j + 1] - start[j])
    column = np.empty(longest)
    for j in range(len(start) - 1):
        levels = start[j + 1] - start[j]
        for h in range(len(state.size)):
            for k in range(levels):
                row = start[j] + k
                shape = state.strength[j] * state.base[row] + state.counts[row, h]
                column[k] = log_gamma_draw(rng, shape)
            normalise(column[:levels])
            for k in range(levels):
                state.phi[start[j] + k, h] = column[k]


@vectorised
def extend_products(row: np.ndarray, shared: int, phi: np.ndarray, products: np.ndarray) -> float:
    """Bring the products of one combination up to date, and return its probability.

    ``products[j]`` holds, for each class, eta times phi of the first j keys; the first ``shared``
    keys are those of the combination before. A missing key has factor 1: it is summed over.
    """
    keys, classes = len(row), products.shape[1]
    for j in range(shared, keys):
        level = row[j]
        if level < 0:
            for h in range(classes):
                products[j + 1, h] = products[j, h]
        else:
            for h in range(classes):
                products[j + 1, h] = products[j, h] * phi[level, h]
    total = 0.0
    for h in range(classes):
        total += products[keys, h]
    return total


@compiled
def draw_classes(
    rng: np.random.Generator, rows: np.ndarray, shared: np.ndarray, records: np.ndarray,
    state: State,
) -> None:  # fmt: skip
    """Draw the class of every record, and count the classes anew; g comes with it."""
    keys = rows.shape[1]
    products = np.empty((keys + 1, len(state.eta)))
    # a loop: numba compiles the copy of an array with a text for every way in which it can fail
    for h in range(len(state.eta)):
        products[0, h] = state.eta[h]
    state.size[:] = 0
    state.counts[:] = 0
    for k in range(len(rows)):
        total = extend_products(rows[k], shared[k], state.phi, products)
        state.g[k] = total
        for _ in range(records[k]):
            h = pick(rng, products[keys], total)
            state.size[h] += 1
            for j in range(keys):
                if rows[k, j] >= 0:
                    state.counts[rows[k, j], h] += 1


@compiled
def sweep(
    rng: np.random.Generator, start: np.ndarray, rows: np.ndarray, shared: np.ndarray,
    records: np.ndarray, state: State,
) -> None:  # fmt: skip
    """Draw everything once; afterwards g is that of the present eta and phi."""
    draw_alpha(rng, state)
    draw_eta(rng, state)
    draw_strength(rng, start, state)
    draw_base(rng, start, state)
    draw_phi(rng, start, state)
    draw_classes(rng, rows, shared, records, state)
