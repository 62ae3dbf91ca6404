"""Random draws that the sampler of latent classes needs, exact and compiled."""

import math

import numba
import numpy as np

compiled = numba.njit(cache=True, nogil=True, error_model="numpy")
# of one caller: part of its code, and not compiled once more by itself
inlined = numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")

FACTORS = 8  # multiplied at most, where a log Gamma takes longer


@compiled
def log_gamma_draw(rng: np.random.Generator, shape: float) -> float:
    """Draw the log of a Gamma(shape, 1) variable, which itself may be too small for a float."""
    if shape >= 1.0:
        return math.log(rng.standard_gamma(shape))
    # Gamma(a) is Gamma(a + 1) times U^(1/a)
    boost = math.log(1.0 - rng.random()) / shape
    return math.log(rng.standard_gamma(shape + 1.0)) + boost


@compiled
def sum_of(values: np.ndarray) -> float:
    """Sum, in order; numba's own takes much longer to compile than this whole module."""
    total = 0.0
    for k in range(len(values)):
        total += values[k]
    return total


@compiled
def normalise(logs: np.ndarray) -> None:
    """Turn logs into shares, in place: a Dirichlet draw where they are of Gamma variables."""
    highest = logs[0]
    for k in range(1, len(logs)):
        highest = max(highest, logs[k])
    total = 0.0
    for k in range(len(logs)):
        logs[k] = math.exp(logs[k] - highest)
        total += logs[k]
    for k in range(len(logs)):
        logs[k] /= total


@compiled
def log_rising_factorial(shape: float, number: int) -> float:
    """Log of Gamma(shape + number) / Gamma(shape), of one record or more."""
    if number > FACTORS:
        # Gamma(shape) by that of shape + 1, near 0
        return math.lgamma(shape + number) - math.lgamma(shape + 1.0) + math.log(shape)
    product = shape
    for i in range(1, number):
        product *= shape + i
    return math.log(product)


@compiled
def draw_tables(rng: np.random.Generator, customers: int, strength: float) -> int:
    """Draw how many tables a Chinese restaurant has: CRT(customers, strength), exactly.

    Customer i (from 0) opens a table with probability strength / (strength + i), which falls with
    i. So the next candidate is found by a geometric step at the present probability, and kept with
    the ratio of its own probability to that: time goes with the tables, not with the customers.
    """
    if customers <= 0:
        return 0
    tables, i = 1, 1
    while i < customers:
        step = math.log(1.0 - rng.random()) / math.log1p(-strength / (strength + i))
        if step >= customers - i:
            break
        candidate = i + int(step)
        if rng.random() * (strength + candidate) < strength + i:
            tables += 1
        i = candidate + 1
    return tables


@compiled
def pick(rng: np.random.Generator, weights: np.ndarray, total: float) -> int:
    """Draw a place with probability in proportion to weights that add up to ``total``.

    Weights before the place are passed by in fours: each alone would wait for the one before.
    """
    left = rng.random() * total
    k = 0
    while k + 4 <= len(weights):
        four = (weights[k] + weights[k + 1]) + (weights[k + 2] + weights[k + 3])
        if left < four:
            break
        left -= four
        k += 4
    while k < len(weights):
        left -= weights[k]
        if left < 0.0:
            return k
        k += 1
    # ``total`` was rounded up: the last one that can be
    while k > 1 and weights[k - 1] <= 0.0:
        k -= 1
    return k - 1
