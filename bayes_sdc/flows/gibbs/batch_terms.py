r"""Log-probabilities and slopes of all cells of a group at once: most of the work of the engine.

The cells of an array share :math:`\kappa`. Normaliser and moments of the ladders of
:mod:`bayes_sdc.flows.model.truncated` are then polynomials in the step s,

.. math:: \sum_{y = 0}^{K} y^m \, s^y \, c_0 \cdots c_{y-1},

whose coefficients are the same for all cells of the group: they are evaluated by Horner's rule, one
power after the other for all cells, four cells at a time in the processor. From s = 1 on the
polynomials in 1 / s count from the top: nothing overflows, and counts at the bound lose no digits.

With the canonical link s is the rate itself, and kappa acts by the coefficients alone.

A base measure of the counts multiplies the coefficients; its logarithm stands in a row of theirs.

Where the coefficients hold a bound of the steps, :mod:`bayes_sdc.flows.gibbs.bounded_terms` is used
instead.
"""

import math

import numba
import numpy as np

from bayes_sdc.flows.gibbs.bounded_terms import BOUNDED_ROWS, CENTRE, bounded_terms, fill_bound

UP, DOWN = 0, 6  # first of six rows of polynomial coefficients each, highest power first
LOG_PRODUCT, SLOPE_KAPPA = 12, 13  # rows: log of c_0 ... c_(y-1), and its derivative by kappa
BASE = BOUNDED_ROWS  # row after those of the bound: log of the base measure, 0 without one
LINK = BASE + 1  # row of 1 where the rate is the step itself (the canonical link), else of 0
ROWS = LINK + 1  # of the coefficients of a group
LARGEST_RATE = 700.0  # a log rate whose exponential is a number
STEP, RISING, SHRINK, SHARE, LOG_STEP, POLYNOMIALS = 0, 1, 2, 3, 4, 5
WORK_ROWS = POLYNOMIALS + 6  # of the scratch array
TERMS = 6  # log_p, slope, information, slope_cv, information_cv, information_both

# a product and a sum may become one instruction; no other fast mathematics
compiled = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


@compiled
def fill_coefficients(log_cv: float, coefficients: np.ndarray) -> None:
    """Write the coefficients of a group, shape (ROWS, K + 1), which hold bound, base and link.

    Where kappa s is below 1, that is with the log of the mean as link, and kappa is above 1, the
    polynomials that rise are in kappa s, and none falls.
    """
    upper = coefficients.shape[1] - 1
    kappa = math.exp(2.0 * log_cv)
    capped = kappa > 1.0 and coefficients[LINK, 0] == 0.0
    unit = kappa if capped else 1.0
    coefficients[LOG_PRODUCT, 0], coefficients[SLOPE_KAPPA, 0] = 0.0, 0.0
    for y in range(upper):
        factor = (1.0 + kappa * y) / (y + 1.0)
        climb = coefficients[BASE, y + 1] - coefficients[BASE, y]
        coefficients[LOG_PRODUCT, y + 1] = coefficients[LOG_PRODUCT, y] + math.log(factor) + climb
        coefficients[SLOPE_KAPPA, y + 1] = coefficients[SLOPE_KAPPA, y] + y / (1.0 + kappa * y)
    top = coefficients[SLOPE_KAPPA, upper]
    rising, falling = 1.0, 1.0
    for k in range(1, upper + 1):
        rising *= (1.0 + kappa * (k - 1.0)) / (k * unit)
        weight = math.exp(coefficients[BASE, k] - coefficients[BASE, 0])
        _fill_power(rising * weight, k, coefficients[SLOPE_KAPPA, k], UP, coefficients)
        if not capped:
            falling *= (upper - k + 1.0) / (1.0 + kappa * (upper - k))
            below = top - coefficients[SLOPE_KAPPA, upper - k]
            weight = math.exp(coefficients[BASE, upper - k] - coefficients[BASE, upper])
            _fill_power(falling * weight, k, below, DOWN, coefficients)
        else:
            _fill_power(0.0, k, 0.0, DOWN, coefficients)
    if coefficients[CENTRE, upper] > 0.0:
        fill_bound(kappa, coefficients)


@compiled
def _fill_power(product: float, k: int, h: float, first: int, coefficients: np.ndarray) -> None:
    """Write the coefficients of the k-th power: of 1, y, y^2, h, h^2 and h y."""
    column = coefficients.shape[1] - 1 - k
    coefficients[first, column] = product
    coefficients[first + 1, column] = product * k
    coefficients[first + 2, column] = product * k * k
    coefficients[first + 3, column] = product * h
    coefficients[first + 4, column] = product * h * h
    coefficients[first + 5, column] = product * h * k


@compiled
def batch_terms(
    y: np.ndarray, weight: np.ndarray, log_rate: np.ndarray, log_cv: float,
    coefficients: np.ndarray, terms: np.ndarray, work: np.ndarray,
) -> None:  # fmt: skip
    """Write the terms of cells that share their coefficients.

    Parameters
    ----------
    y : array of float, shape (cell,)
        Counts, 0 to K.
    weight : array of float, shape (cell,)
        Of the log-likelihoods; empty where all are 1.
    log_rate : array of float, shape (cell,)
        Logs of the untruncated means.
    log_cv : float
        Half the log of kappa; minus infinity for the Poisson family.
    coefficients : array of float, shape (ROWS, K + 1)
        From :func:`fill_coefficients` with the same ``log_cv``.
    terms : array of float, shape (TERMS, cell)
        Written: the log-probability of the count; its derivative by the log rate, and the variance
        of that, which is the expected information; its derivative by log cv, the variance of that,
        and their covariance (the last three are 0 for Poisson).
    work : array of float, shape (WORK_ROWS, at least cell)
        Scratch.

    Examples
    --------
    >>> rows, terms, work = np.zeros((ROWS, 3)), np.empty((TERMS, 1)), np.empty((WORK_ROWS, 1))
    >>> fill_coefficients(-np.inf, rows)
    >>> batch_terms(np.ones(1), np.empty(0), np.zeros(1), -np.inf, rows, terms, work)
    >>> terms[:3, 0].round(3)
    array([-0.916,  0.2  ,  0.56 ])
    """
    if coefficients[CENTRE, coefficients.shape[1] - 1] > 0.0:
        bounded_terms(y, log_rate, log_cv, coefficients, terms)
    else:
        _prepare_steps(log_rate, log_cv, coefficients[LINK, 0] != 0.0, work)
        poisson = log_cv == -np.inf
        for first in range(0, 1 if poisson else 4, 3):
            _polynomials(len(y), coefficients, first, work)
        if poisson:
            _finish_poisson(y, coefficients, terms, work)
        else:
            _finish(y, math.exp(2.0 * log_cv), coefficients, terms, work)
    for k in range(TERMS):
        for c in range(len(weight)):
            terms[k, c] *= weight[c]


@compiled
def _prepare_steps(log_rate: np.ndarray, log_cv: float, canonical: bool, work: np.ndarray) -> None:
    """Write the argument of the polynomials, whether they rise, and what the log rate gives."""
    kappa = 0.0 if canonical else math.exp(2.0 * log_cv)  # of the link
    unit = max(kappa, 1.0)
    for c in range(len(log_rate)):
        if kappa == 0.0:
            shrink, log_step = 1.0, log_rate[c]
            step = math.exp(min(log_step, LARGEST_RATE))
            work[SHARE, c] = 0.0
        else:
            # s = lambda / (1 + kappa lambda); shrink is its elasticity by lambda
            excess = log_rate[c] + 2.0 * log_cv
            odds = math.exp(min(excess, LARGEST_RATE))
            shrink = 1.0 / (1.0 + odds)
            share = odds * shrink
            step = share / kappa * unit
            log_step = log_rate[c] + math.log(shrink)
            if excess >= LARGEST_RATE:
                log_step = -2.0 * log_cv
            work[SHARE, c] = share
        work[SHRINK, c] = shrink
        work[LOG_STEP, c] = log_step
        rising = step < 1.0 or kappa > 1.0
        work[RISING, c] = 1.0 if rising else 0.0
        work[STEP, c] = step if rising else 1.0 / step


@compiled
def _polynomials(n: int, coefficients: np.ndarray, first: int, work: np.ndarray) -> None:
    """Evaluate three polynomials at all cells, without the constant and divided by the step."""
    step, rising = work[STEP], work[RISING]
    one, two, three = (
        work[POLYNOMIALS + first], work[POLYNOMIALS + first + 1], work[POLYNOMIALS + first + 2]
    )  # fmt: skip
    for c in range(n):
        one[c], two[c], three[c] = 0.0, 0.0, 0.0
    for k in range(coefficients.shape[1] - 1):
        down1, down2, down3 = (
            coefficients[DOWN + first, k], coefficients[DOWN + first + 1, k],
            coefficients[DOWN + first + 2, k],
        )  # fmt: skip
        up1, up2, up3 = (
            coefficients[UP + first, k], coefficients[UP + first + 1, k],
            coefficients[UP + first + 2, k],
        )  # fmt: skip
        for c in range(n):
            up = rising[c] != 0.0
            one[c] = one[c] * step[c] + (up1 if up else down1)
            two[c] = two[c] * step[c] + (up2 if up else down2)
            three[c] = three[c] * step[c] + (up3 if up else down3)


@compiled
def _finish_poisson(
    y: np.ndarray, coefficients: np.ndarray, terms: np.ndarray, work: np.ndarray
) -> None:
    """Turn normalisers and moments into terms; those by cv are 0."""
    upper = coefficients.shape[1] - 1
    for c in range(len(y)):
        step = work[STEP, c]
        rest = work[POLYNOMIALS, c] * step
        per_z = step / (1.0 + rest)
        mean = work[POLYNOMIALS + 1, c] * per_z
        rungs = y[c]
        log_p = coefficients[LOG_PRODUCT, int(y[c])] - math.log(1.0 + rest)
        residual = y[c] - mean
        if work[RISING, c] == 0.0:
            rungs -= upper
            log_p -= coefficients[LOG_PRODUCT, upper]
            residual = mean + rungs
        terms[0, c] = log_p + (rungs * work[LOG_STEP, c] if rungs != 0.0 else 0.0)
        terms[1, c] = residual
        terms[2, c] = max(work[POLYNOMIALS + 2, c] * per_z - mean * mean, 0.0)
        terms[3, c], terms[4, c], terms[5, c] = 0.0, 0.0, 0.0


@compiled
def _finish(
    y: np.ndarray, kappa: float, coefficients: np.ndarray, terms: np.ndarray, work: np.ndarray
) -> None:
    """Turn normalisers and moments into terms.

    By kappa the log-probability changes like h_y - s y, and d kappa = 2 kappa d log cv.
    """
    upper = coefficients.shape[1] - 1
    top = coefficients[SLOPE_KAPPA, upper]
    for c in range(len(y)):
        step, shrink, share = work[STEP, c], work[SHRINK, c], work[SHARE, c]
        rest = work[POLYNOMIALS, c] * step
        per_z = step / (1.0 + rest)
        mean, h_mean = work[POLYNOMIALS + 1, c] * per_z, work[POLYNOMIALS + 3, c] * per_z
        count = int(y[c])
        rungs = y[c]
        log_p = coefficients[LOG_PRODUCT, count] - math.log(1.0 + rest)
        residual, h_residual = y[c] - mean, coefficients[SLOPE_KAPPA, count] - h_mean
        if work[RISING, c] == 0.0:
            rungs -= upper
            log_p -= coefficients[LOG_PRODUCT, upper]
            residual, h_residual = mean + rungs, h_mean - (top - coefficients[SLOPE_KAPPA, count])
        variance = max(work[POLYNOMIALS + 2, c] * per_z - mean * mean, 0.0)
        h_variance = work[POLYNOMIALS + 4, c] * per_z - h_mean * h_mean
        covariance = work[POLYNOMIALS + 5, c] * per_z - mean * h_mean
        information_cv = kappa * (kappa * h_variance - 2.0 * share * covariance)
        information_cv += share * share * variance
        terms[0, c] = log_p + rungs * work[LOG_STEP, c]
        terms[1, c] = residual * shrink
        terms[2, c] = variance * shrink * shrink
        terms[3, c] = 2.0 * (kappa * h_residual - share * residual)
        terms[4, c] = max(4.0 * information_cv, 0.0)
        terms[5, c] = 2.0 * shrink * (kappa * covariance - share * variance)
