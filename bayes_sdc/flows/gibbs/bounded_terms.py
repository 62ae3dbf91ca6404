r"""Log-probabilities and slopes of all cells of a group whose steps are bounded.

What :mod:`bayes_sdc.flows.gibbs.batch_terms` gives for the ladders as they are, here for those of
:mod:`bayes_sdc.flows.model.bounded`. The steps of a cell differ by known numbers, so all their
hyperbolic tangents come from one exponential,

.. math:: \tanh x_k = 1 - \frac{2}{1 + e^{2 x_k}}, \qquad e^{2 x_k} = E \, B_k,

with :math:`B_k` the same for the cells of a group. With :math:`w_k = 1 - \tanh^2 x_k` a count has
the derivatives :math:`\sum_{k<y} w_k \, ds_k` by any parameter: its moments give score and expected
information, as they are, without an approximation.

The work is done a block of cells at a time. A block stands in one array, row after row of fixed
length, so that the compiler knows that rows do not overlap and takes several cells at once.
"""

import math

import numba
import numpy as np

# rows of a group's coefficients, after those of `batch_terms`
CENTRE = 14  # c_k, and half the width of the steps in the last column: 0 without a bound
ODDS = 15  # B_k, and in the last column the log step at which E is 1
RATIO = 16  # exp(c_k)
GROWTH = 17  # kappa k / (1 + kappa k): half the derivative of a step by log cv at a fixed rate
SUM = 18  # c_0 + ... + c_(y-1)
TURN = 19  # the log step at which a step is at its centre; in the last column 1 if B_k is no use
BOUNDED_ROWS = 20

LANES = 32  # cells of a block
# rows of a block
Y, STEP, E, V, F, A, H, U, P, Z, ZA, ZAA, ZH, ZHH, ZAH, U_AT, A_AT, H_AT = range(18)
FARTHEST_E, FARTHEST_B = 500.0, 150.0  # logs of the two factors; beyond the first tanh is 1

# sums may be added in another order, which lets the processor take several cells at a time
compiled = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz", "arcp"}
)


@compiled
def fill_bound(kappa: float, coefficients: np.ndarray) -> None:
    """Write the rows of a group that has a bound; its row of centres is there."""
    upper = coefficients.shape[1] - 1
    sharpness = 2.0 / coefficients[CENTRE, upper]
    lowest, highest = np.inf, -np.inf
    for k in range(upper):
        turn = coefficients[CENTRE, k] - math.log((1.0 + kappa * k) / (k + 1.0))
        coefficients[TURN, k] = turn
        lowest, highest = min(lowest, turn), max(highest, turn)
        coefficients[RATIO, k] = math.exp(coefficients[CENTRE, k])
        coefficients[GROWTH, k] = kappa * k / (1.0 + kappa * k)
        coefficients[SUM, k + 1] = coefficients[SUM, k] + coefficients[CENTRE, k]
    middle = 0.5 * (lowest + highest)
    coefficients[ODDS, upper] = middle
    coefficients[TURN, upper] = 1.0 if sharpness * (highest - middle) > FARTHEST_B else 0.0
    for k in range(upper):
        away = sharpness * (middle - coefficients[TURN, k])
        coefficients[ODDS, k] = math.exp(min(max(away, -FARTHEST_B), FARTHEST_B))


@compiled
def bounded_terms(
    y: np.ndarray, log_rate: np.ndarray, log_cv: float, coefficients: np.ndarray,
    terms: np.ndarray,
) -> None:  # fmt: skip
    """Write the terms of cells that share their coefficients and have bounded steps.

    Parameters
    ----------
    y, log_rate, log_cv, coefficients, terms
        As for :func:`bayes_sdc.flows.gibbs.batch_terms.batch_terms`.
    """
    upper = coefficients.shape[1] - 1
    half, middle = coefficients[CENTRE, upper], coefficients[ODDS, upper]
    sharpness = 2.0 / half
    halvings, reach = 0, half
    while reach > 0.5:  # as far as the polynomial is exact to the last digits
        halvings, reach = halvings + 1, 0.5 * reach
    kappa = math.exp(2.0 * log_cv)
    block = np.zeros((H_AT + 1) * LANES)
    shrink, share = np.empty(LANES), np.empty(LANES)
    for start in range(0, len(y), LANES):
        cells = min(LANES, len(y) - start)
        for c in range(cells):
            log_step, shrink[c], share[c] = log_rate[start + c], 1.0, 0.0
            if kappa > 0.0:
                excess = log_step + 2.0 * log_cv
                small = math.exp(-abs(excess))
                inverse = 1.0 / (1.0 + small)
                if excess < 0.0:
                    log_step += math.log(inverse)
                    shrink[c], share[c] = inverse, small * inverse
                else:
                    log_step = -2.0 * log_cv + math.log(inverse)
                    shrink[c], share[c] = small * inverse, inverse
            away = sharpness * (log_step - middle)
            block[STEP * LANES + c] = log_step
            block[E * LANES + c] = math.exp(min(max(away, -FARTHEST_E), FARTHEST_E))
            block[Y * LANES + c] = y[start + c]
        for row in range(A, H_AT + 1):
            for c in range(LANES):
                block[row * LANES + c] = 0.0
        for c in range(LANES):
            block[P * LANES + c], block[Z * LANES + c] = 1.0, 1.0
        for k in range(upper):
            if coefficients[TURN, upper] == 1.0:
                fill_odds(k, sharpness, coefficients, block)
            fill_steps(k, reach, halvings, coefficients, block)
            add_count(k, coefficients, block)
        for c in range(cells):
            finish(c, start + c, half, shrink[c], share[c], coefficients, block, terms)


@compiled
def fill_odds(k: int, sharpness: float, coefficients: np.ndarray, block: np.ndarray) -> None:
    """Write E B_k in the place of E, where the steps turn too far from each other for factors."""
    for c in range(LANES):
        away = sharpness * (block[STEP * LANES + c] - coefficients[TURN, k])
        block[E * LANES + c] = math.exp(min(max(away, -FARTHEST_E), FARTHEST_E))


@compiled
def fill_steps(
    k: int, reach: float, halvings: int, coefficients: np.ndarray, block: np.ndarray
) -> None:
    """Write 1 / (1 + E B_k) of the cells of a block, and the exponential of what tanh adds.

    The exponential is Taylor's polynomial, whose error within 1/2 is below 3e-14, and squares.
    """
    odds = coefficients[ODDS, k] if coefficients[TURN, coefficients.shape[1] - 1] == 0.0 else 1.0
    for c in range(LANES):
        v = 1.0 / (1.0 + block[E * LANES + c] * odds)
        z = reach * (1.0 - 2.0 * v)
        block[V * LANES + c] = v
        f = 1.0 + z / 12.0
        f = 1.0 + z / 11.0 * f
        f = 1.0 + z / 10.0 * f
        f = 1.0 + z / 9.0 * f
        f = 1.0 + z / 8.0 * f
        f = 1.0 + z / 7.0 * f
        f = 1.0 + z / 6.0 * f
        f = 1.0 + z / 5.0 * f
        f = 1.0 + z / 4.0 * f
        f = 1.0 + z / 3.0 * f
        f = 1.0 + z / 2.0 * f
        block[F * LANES + c] = 1.0 + z * f
    for _ in range(halvings):
        for c in range(LANES):
            block[F * LANES + c] *= block[F * LANES + c]


@compiled
def add_count(k: int, coefficients: np.ndarray, block: np.ndarray) -> None:
    """Climb from count k to k + 1, and add it to the sums and moments."""
    ratio, growth, count = coefficients[RATIO, k], coefficients[GROWTH, k], k + 1.0
    for c in range(LANES):
        v = block[V * LANES + c]
        weight = 4.0 * v * (1.0 - v)
        a = block[A * LANES + c] + weight
        h = block[H * LANES + c] + weight * growth
        u = block[U * LANES + c] + (1.0 - 2.0 * v)
        p = block[P * LANES + c] * (block[F * LANES + c] * ratio)
        block[A * LANES + c] = a
        block[H * LANES + c] = h
        block[U * LANES + c] = u
        block[P * LANES + c] = p
        block[Z * LANES + c] += p
        block[ZA * LANES + c] += p * a
        block[ZAA * LANES + c] += p * a * a
        block[ZH * LANES + c] += p * h
        block[ZHH * LANES + c] += p * h * h
        block[ZAH * LANES + c] += p * a * h
        here = block[Y * LANES + c] == count
        block[U_AT * LANES + c] = u if here else block[U_AT * LANES + c]
        block[A_AT * LANES + c] = a if here else block[A_AT * LANES + c]
        block[H_AT * LANES + c] = h if here else block[H_AT * LANES + c]


@compiled
def finish(
    c: int, cell: int, half: float, shrink: float, share: float, coefficients: np.ndarray,
    block: np.ndarray, terms: np.ndarray,
) -> None:  # fmt: skip
    """Turn sums and moments of one cell of the block into its terms."""
    per_z = 1.0 / block[Z * LANES + c]
    a, h = block[ZA * LANES + c] * per_z, block[ZH * LANES + c] * per_z
    variance = max(block[ZAA * LANES + c] * per_z - a * a, 0.0)
    h_variance = block[ZHH * LANES + c] * per_z - h * h
    covariance = block[ZAH * LANES + c] * per_z - a * h
    residual, h_residual = block[A_AT * LANES + c] - a, block[H_AT * LANES + c] - h
    count = int(block[Y * LANES + c])
    log_p = coefficients[SUM, count] + half * block[U_AT * LANES + c] + math.log(per_z)
    terms[0, cell] = log_p
    terms[1, cell] = residual * shrink
    terms[2, cell] = variance * shrink * shrink
    information_cv = h_variance - 2.0 * share * covariance + share * share * variance
    terms[3, cell] = 2.0 * (h_residual - share * residual)
    terms[4, cell] = max(4.0 * information_cv, 0.0)
    terms[5, cell] = 2.0 * shrink * (covariance - share * variance)
