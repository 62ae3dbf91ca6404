r"""The conditional distributions of the latent-class model, one a function.

With H classes, keys j and levels l,

.. math::

    \alpha \sim \mathrm{Gamma}(1/4, 1/4), \quad
    \eta \sim \mathrm{Dirichlet}(\alpha/H, ..., \alpha/H), \quad
    z_i \sim \eta, \quad x_{ij} \mid z_i = h \sim \varphi_{jh},

.. math::

    \varphi_{jh}(l) = \psi_{jh}(B) \, m_j(l) / m_j(B), \quad
    \psi_{jh} \sim \mathrm{Dirichlet}(b_j m_j(B)), \quad
    m_j \sim \mathrm{Dirichlet}(1/2, ..., 1/2), \quad
    \log b_j \sim \mathrm{N}(\log 5, 1.5^2),

where B is the band of level l by the resolution of class h in key j; resolutions and bands are
those of :mod:`bayes_sdc.microdata.latent_classes.resolutions`, and so are their conditionals.

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

import numba
import numpy as np

from bayes_sdc.microdata.latent_classes.draws import (
    compiled,
    inlined,
    log_gamma_draw,
    log_rising_factorial,
    normalise,
    pick,
)
from bayes_sdc.microdata.latent_classes.resolutions import depth_of, draw_base, draw_resolution
from bayes_sdc.microdata.latent_classes.state import State

ALPHA_SHAPE = ALPHA_RATE = 0.25
STRENGTH_MEAN, STRENGTH_SD = math.log(5.0), 1.5
ALPHA_STEP, STRENGTH_STEP = 1.0, 0.6  # of the random walks, on the log scale
LONGER = 4.0  # times the step, half of the time

vectorised = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"}
)


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
            total += log_rising_factorial(part, size[h])
    if records > 0:
        total -= log_rising_factorial(alpha, records)
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
def log_strength_density(
    log_strength: float, base: np.ndarray, counts: np.ndarray, resolution: np.ndarray
) -> float:
    """Log density of log b of one key given its counts and resolutions, phi summed out."""
    strength = math.exp(log_strength)
    total = -0.5 * ((log_strength - STRENGTH_MEAN) / STRENGTH_SD) ** 2
    levels = len(base)
    depth = depth_of(levels)
    whole = math.lgamma(strength)
    for h in range(counts.shape[1]):
        if resolution[h] == 0:
            continue
        up = depth - resolution[h]
        known, number, shape = 0, 0, 0.0  # fewer than the class has, where values are missing
        for k in range(levels):
            number += counts[k, h]
            shape += strength * base[k]
            if k == levels - 1 or (k + 1) >> up != k >> up:
                if number > 0:
                    total += log_rising_factorial(shape, number)
                known += number
                number, shape = 0, 0.0
        if known > 0:
            total += whole - math.lgamma(strength + known)
    return total


@inlined
def draw_strength(rng: np.random.Generator, start: np.ndarray, state: State) -> None:
    """Move each b by a random walk on its log, of short steps and long ones, phi summed out."""
    for j in range(len(start) - 1):
        base = state.base[start[j] : start[j + 1]]
        counts = state.counts[start[j] : start[j + 1]]
        step = STRENGTH_STEP * (1.0 if rng.random() < 0.5 else LONGER)
        now = math.log(state.strength[j])
        proposed = now + step * rng.standard_normal()
        ratio = log_strength_density(proposed, base, counts, state.resolution[j])
        ratio -= log_strength_density(now, base, counts, state.resolution[j])
        if math.log(1.0 - rng.random()) < ratio:
            state.strength[j] = math.exp(proposed)


@compiled
def draw_phi(rng: np.random.Generator, start: np.ndarray, state: State) -> None:
    """Draw the levels of every class: bands by Dirichlet(b m + counts), inside them as m."""
    longest = 0
    for j in range(len(start) - 1):
        longest = max(longest, start[j + 1] - start[j])
    shape, mean = np.empty(longest), np.empty(longest)
    for j in range(len(start) - 1):
        levels = start[j + 1] - start[j]
        depth = depth_of(levels)
        for h in range(len(state.size)):
            up = depth - state.resolution[j, h]
            bands = ((levels - 1) >> up) + 1
            for band in range(bands):
                shape[band], mean[band] = 0.0, 0.0
            for k in range(levels):
                row = start[j] + k
                mean[k >> up] += state.base[row]
                shape[k >> up] += state.strength[j] * state.base[row] + state.counts[row, h]
            for band in range(bands):
                shape[band] = log_gamma_draw(rng, shape[band])
            normalise(shape[:bands])
            for k in range(levels):
                row = start[j] + k
                state.phi[row, h] = shape[k >> up] * (state.base[row] / mean[k >> up])


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
    draw_resolution(rng, start, state)
    draw_base(rng, start, state)
    draw_phi(rng, start, state)
    draw_classes(rng, rows, shared, records, state)
