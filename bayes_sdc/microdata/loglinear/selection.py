r"""Which pairs of keys interact: by the smallest estimated error of the risk.

Let w(mu) = mu exp(-mu) be the probability that a cell has one record, and h(mu) the risk of that
record. The expected error of the sum of risks is the sum over all cells of
G(mu) = w(mu) (h(fitted) - h(mu)). About the fitted mean, to second order, with
f - fitted and (f - fitted)^2 - f in place of the difference and its square, whose expectations they
have,

.. math:: B = \sum_k -w h' (f_k - \mu_k) - (w' h' + w h'' / 2) ((f_k - \mu_k)^2 - f_k).

Too few interactions leave frequencies over-dispersed and the risk too high, too many do the
opposite. So pairs enter one by one, that with the largest gain first, as long as it pays, and the
model on the way with the smallest error of the sum of 1 / F is chosen. The error of the number of
population uniques is shown beside it and decides nothing: exp(-c mu) is curved too much for a
series of second order.

References
----------
C. J. Skinner and N. Shlomo, "Assessing identification risk in survey microdata using log-linear
models", JASA 2008, doi:10.1198/016214507000001328.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.microdata.loglinear.fit import Fitted, Pair, fit, pair_block
from bayes_sdc.microdata.loglinear.table import Table

MOST_PAIRS = 12  # each costs a fit, and those that matter come first

Floats = npt.NDArray[np.float64]


class Risk(NamedTuple):
    """Risk of a record alone in its cell, and its first two derivatives by the mean."""

    value: Floats
    first: Floats
    second: Floats


def alone(mean: Floats, times: float) -> Risk:
    """P(F = 1): exp(-c mu), with c = times - 1 and times = N / n."""
    c = times - 1.0
    value = np.exp(-c * mean)
    return Risk(value, -c * value, c * c * value)


def matched(mean: Floats, times: float) -> Risk:
    """Mean of 1 / F: (1 - exp(-x)) / x with x = (times - 1) mu."""
    c = times - 1.0
    x = c * mean
    small = x < 1e-3
    safe = np.where(small, 1.0, x)
    e = np.exp(-safe)
    value = np.where(small, 1.0 - x / 2.0 + x * x / 6.0, -np.expm1(-safe) / safe)
    first = np.where(small, -0.5 + x / 3.0, (e * (1.0 + safe) - 1.0) / safe**2)
    second = np.where(
        small, 1.0 / 3.0 - x / 4.0, (2.0 - e * (2.0 + 2.0 * safe + safe**2)) / safe**3
    )
    return Risk(value, c * first, c * c * second)


def estimated_error(table: Table, mean: Floats, risk: Risk) -> float:
    """Estimate the error of the sum of risks over the sample uniques; see the head.

    Examples
    --------
    >>> f = np.array([2, 0, 0, 0])
    >>> table = Table(np.zeros((4, 1), int), f, np.ones(4), (4,), True, np.arange(4))
    >>> flat = np.full(4, 0.5)  # over-dispersed: the risk is too high
    >>> estimated_error(table, flat, alone(flat, 1.5)) > 0.0
    True
    """
    w = mean * np.exp(-mean)
    slope = (1.0 - mean) * np.exp(-mean)
    difference = table.f - mean
    square = difference**2 - table.f
    terms = -w * risk.first * difference - (slope * risk.first + w * risk.second / 2.0) * square
    return float(table.weight @ terms)


def gain(table: Table, mean: Floats, pair: Pair) -> float:
    """Gain of the penalised log likelihood by a pair, less one for each effect that is free.

    To second order; an effect that the penalty holds at 0 is not free, one it does not touch is.
    """
    block = pair_block(table, pair)
    difference = table.f - table.weight * mean
    slope = np.bincount(block.place, weights=difference, minlength=block.size)
    curve = np.bincount(block.place, weights=table.weight * mean, minlength=block.size)
    whole = curve + block.sd**-2.0
    return float((0.5 * slope**2 / whole - curve / whole).sum())


class Step(NamedTuple):
    """A model on the way, and the estimated errors of tau1 and tau2 by it."""

    fitted: Fitted
    error1: float
    error2: float


def choose(table: Table, times: float) -> tuple[Step, list[Step]]:
    """Let pairs enter as long as it pays; return the model of the smallest error of tau2, and all.

    Parameters
    ----------
    table : Table
        Cells and frequencies.
    times : float
        N / n.
    """
    left = list(combinations(range(len(table.levels)), 2))
    steps: list[Step] = []
    fitted = fit(table, [])
    while True:
        errors = (
            estimated_error(table, fitted.mean, h(fitted.mean, times)) for h in (alone, matched)
        )
        steps.append(Step(fitted, *errors))
        gains = [gain(table, fitted.mean, pair) for pair in left]
        if len(steps) > MOST_PAIRS or max(gains, default=0.0) <= 0.0:
            break
        best = left.pop(int(np.argmax(gains)))
        fitted = fit(table, [*fitted.pairs, best], start=fitted)
    return min(steps, key=lambda step: abs(step.error2)), steps
