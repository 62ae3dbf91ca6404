r"""Log-probabilities and slopes of all cells of a group whose steps are bounded.

What :mod:`bayes_sdc.flows.gibbs.batch_terms` gives for the ladders as they are, here for those of
:mod:`bayes_sdc.flows.model.bounded`. The steps of a cell differ by known numbers, so all their
hyperbolic tangents come from one power of the step s of the ladder,

.. math:: \tanh x_k = 1 - \frac{2}{1 + e^{2 x_k}}, \qquad e^{2 x_k} = E \, B_k,
    \quad E \propto s^{4 / \varepsilon},

with :math:`B_k` the same for the cells of a group. With :math:`w_k = 1 - \tanh^2 x_k` a count has
the derivatives :math:`\sum_{k<y} w_k \, ds_k` by any parameter: its moments give score and expected
information exactly.

The work is done block by block, two steps at a time. A block is one array of rows of fixed length,
so the compiler knows that rows do not overlap and takes several cells at once.
"""

import math

import numba
import numpy as np

# rows of a group's coefficients, after those of `batch_terms`
CENTRE = 14  # c_k, and half the width of the steps in the last column: 0 without a bound
ODDS = 15  # B_k, and in the last column the log of s at which E is 1
RATIO = 16  # exp(c_k)
GROWTH = 17  # kappa k / (1 + kappa k): half the derivative of a step by log cv at a fixed rate
SUM = 18  # c_0 + ... + c_(y-1)
TURN = 19  # log of s at which a step is at its centre; last column: 1 for `fill_slowly`
BOUNDED_ROWS = 20

LANES = 32  # cells of a block
# rows of a block; V and F twice, for two steps
Y, E, LOG_STEP, P, Z, ZA, ZAA, ZH, ZHH, ZAH, A, H, U, A_AT, H_AT, U_AT, V, F, V2, F2 = range(20)
FIRST_SUM, LAST_SUM = ZA, U_AT  # rows that begin at 0
FARTHEST_E, FARTHEST_B = 500.0, 150.0  # logs of the two factors; beyond the first tanh is 1
WIDEST = 1.0  # half a width up to which the polynomial serves
QUARTER = 0.25

# a product and a sum may become one instruction; no other fast mathematics
compiled = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz", "arcp"}
)


@compiled
def fill_bound(kappa: float, coefficients: np.ndarray) -> None:
    """Write the rows of a group that has a bound; its row of centres is there."""
    upper = coefficients.shape[1] - 1
    half = coefficients[CENTRE, upper]
    lowest, highest = np.inf, -np.inf
    for k in range(upper):
        turn = coefficients[CENTRE, k] - math.log((1.0 + kappa * k) / (k + 1.0))
        coefficients[TURN, k] = turn
        lowest, highest = min(lowest, turn), max(highest, turn)
        coefficients[RATIO, k] = math.exp(coefficients[CENTRE, k])
        coefficients[GROWTH, k] = kappa * k / (1.0 + kappa * k)
        coefficients[SUM, k + 1] = coefficients[SUM, k] + coefficients[CENTRE, k]
    middle = 0.5 * (lowest + highest)
    far = 2.0 * (highest - middle) / half > FARTHEST_B  # the factors B_k overflow
    coefficients[ODDS, upper] = middle
    coefficients[TURN, upper] = 1.0 if far or half > WIDEST else 0.0
    for k in range(upper):
        away = 2.0 * (middle - coefficients[TURN, k]) / half
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
    half, slow = coefficients[CENTRE, upper], coefficients[TURN, upper] == 1.0
    block = np.ones((F2 + 1) * LANES)
    shrink, share = np.ones(LANES), np.zeros(LANES)
    for start in range(0, len(y), LANES):
        cells = min(LANES, len(y) - start)
        fill_block(start, cells, y, log_rate, log_cv, slow, coefficients, block, shrink, share)
        for k in range(0, upper, 2):
            for second in range(2):
                if slow:
                    fill_slowly(min(k + second, upper - 1), second, coefficients, block)
                else:
                    fill_step(min(k + second, upper - 1), second, coefficients, block)
            add_counts(k, coefficients, block)
        for c in range(cells):
            finish(c, start + c, half, shrink[c], share[c], coefficients, block, terms)


@compiled
def fill_block(
    start: int, cells: int, y: np.ndarray, log_rate: np.ndarray, log_cv: float, slow: bool,
    coefficients: np.ndarray, block: np.ndarray, shrink: np.ndarray, share: np.ndarray,
) -> None:  # fmt: skip
    """Write counts, E or log steps, and where the sums begin."""
    upper = coefficients.shape[1] - 1
    sharpness, middle = 2.0 / coefficients[CENTRE, upper], coefficients[ODDS, upper]
    kappa, unit = math.exp(2.0 * log_cv), math.exp(-middle)
    whole = int(sharpness)
    power = 1.0 if sharpness == whole and whole <= 64 else sharpness  # of what stands for E first
    most = math.exp(FARTHEST_E / (sharpness / power))
    least = 1.0 / most
    for c in range(cells):
        block[Y * LANES + c] = y[start + c]
        s = (
            math.exp(min(max(log_rate[start + c] + 2.0 * log_cv, -700.0), 700.0))
            if kappa > 0.0
            else math.exp(min(log_rate[start + c], 700.0))
        )
        if kappa > 0.0:
            shrink[c] = 1.0 / (1.0 + s)
            share[c] = s * shrink[c]
            s = share[c] / kappa
        block[E * LANES + c] = min(max(s * unit, least), most)
        if slow or power != 1.0:
            log_step = log_rate[start + c] + math.log(shrink[c])
            if share[c] == 1.0:
                log_step = -2.0 * log_cv
            block[LOG_STEP * LANES + c] = log_step
            if not slow:
                away = sharpness * (log_step - middle)
                block[E * LANES + c] = math.exp(min(max(away, -FARTHEST_E), FARTHEST_E))
    if not slow and power == 1.0:
        raise_to(whole, block)
    for row in range(FIRST_SUM, LAST_SUM + 1):
        for c in range(LANES):
            block[row * LANES + c] = 0.0
    for c in range(LANES):
        block[P * LANES + c], block[Z * LANES + c] = 1.0, 1.0


@compiled
def raise_to(power: int, block: np.ndarray) -> None:
    """Raise the row E to a whole power, by squares."""
    for c in range(LANES):
        block[V * LANES + c], block[F * LANES + c] = block[E * LANES + c], 1.0
    while power > 0:
        if power % 2 == 1:
            for c in range(LANES):
                block[F * LANES + c] *= block[V * LANES + c]
        power //= 2
        if power > 0:
            for c in range(LANES):
                block[V * LANES + c] *= block[V * LANES + c]
    for c in range(LANES):
        block[E * LANES + c] = block[F * LANES + c]


@compiled
def fill_slowly(k: int, second: int, coefficients: np.ndarray, block: np.ndarray) -> None:
    """As :func:`fill_step`, by exponentials: for any width and any distance between steps."""
    half = coefficients[CENTRE, coefficients.shape[1] - 1]
    v, f = (V + 2 * second) * LANES, (F + 2 * second) * LANES
    for c in range(LANES):
        away = 2.0 * (block[LOG_STEP * LANES + c] - coefficients[TURN, k]) / half
        block[v + c] = 1.0 / (1.0 + math.exp(min(max(away, -FARTHEST_E), FARTHEST_E)))
        block[f + c] = math.exp(half * (1.0 - 2.0 * block[v + c]))


@compiled
def fill_step(k: int, second: int, coefficients: np.ndarray, block: np.ndarray) -> None:
    """Write 1 / (1 + E B_k) of the cells of a block, and the exponential of what tanh adds.

    The exponential of a quarter is Taylor's polynomial, whose error is below 1e-14, squared twice.
    """
    odds, reach = coefficients[ODDS, k], QUARTER * coefficients[CENTRE, coefficients.shape[1] - 1]
    v_row, f_row = (V + 2 * second) * LANES, (F + 2 * second) * LANES
    for c in range(LANES):
        v = 1.0 / (1.0 + block[E * LANES + c] * odds)
        z = reach * (1.0 - 2.0 * v)
        block[v_row + c] = v
        f = 1.0 + z * (1.0 / 10.0)
        f = 1.0 + z * (1.0 / 9.0) * f
        f = 1.0 + z * (1.0 / 8.0) * f
        f = 1.0 + z * (1.0 / 7.0) * f
        f = 1.0 + z * (1.0 / 6.0) * f
        f = 1.0 + z * (1.0 / 5.0) * f
        f = 1.0 + z * (1.0 / 4.0) * f
        f = 1.0 + z * (1.0 / 3.0) * f
        f = 1.0 + z * (1.0 / 2.0) * f
        f = 1.0 + z * f
        f = f * f
        block[f_row + c] = f * f


@compiled
def add_counts(k: int, coefficients: np.ndarray, block: np.ndarray) -> None:
    """Climb from count k to k + 1 and k + 2, and add both to the sums and moments."""
    upper = coefficients.shape[1] - 1
    ratio, growth, count = coefficients[RATIO, k], coefficients[GROWTH, k], k + 1.0
    # beyond the last count there is nothing to add
    ratio2, growth2 = 0.0, 0.0
    if k + 1 < upper:
        ratio2, growth2 = coefficients[RATIO, k + 1], coefficients[GROWTH, k + 1]
    for c in range(LANES):
        v, v2 = block[V * LANES + c], block[V2 * LANES + c]
        weight, weight2 = 4.0 * v * (1.0 - v), 4.0 * v2 * (1.0 - v2)
        a = block[A * LANES + c] + weight
        a2 = a + weight2
        h = block[H * LANES + c] + weight * growth
        h2 = h + weight2 * growth2
        u = block[U * LANES + c] + (1.0 - 2.0 * v)
        u2 = u + (1.0 - 2.0 * v2)
        p = block[P * LANES + c] * (block[F * LANES + c] * ratio)
        p2 = p * (block[F2 * LANES + c] * ratio2)
        block[A * LANES + c], block[H * LANES + c] = a2, h2
        block[U * LANES + c], block[P * LANES + c] = u2, p2
        block[Z * LANES + c] += p + p2
        block[ZA * LANES + c] += p * a + p2 * a2
        block[ZAA * LANES + c] += p * a * a + p2 * a2 * a2
        block[ZH * LANES + c] += p * h + p2 * h2
        block[ZHH * LANES + c] += p * h * h + p2 * h2 * h2
        block[ZAH * LANES + c] += p * a * h + p2 * a2 * h2
        here, there = block[Y * LANES + c] == count, block[Y * LANES + c] == count + 1.0
        at_a, at_h, at_u = (
            block[A_AT * LANES + c], block[H_AT * LANES + c], block[U_AT * LANES + c]
        )  # fmt: skip
        block[A_AT * LANES + c] = a2 if there else (a if here else at_a)
        block[H_AT * LANES + c] = h2 if there else (h if here else at_h)
        block[U_AT * LANES + c] = u2 if there else (u if here else at_u)


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
