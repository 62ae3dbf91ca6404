"""Estimating the parameters of Ewens' and Pitman's sampling formulas from size indices."""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln, polygamma

from bayes_sdc.microdata.size_models.partitions import (
    covariance_of_counts,
    digamma_rise,
    expected_combinations,
    first_alone,
)
from bayes_sdc.microdata.size_models.size_table import SizeTable

Estimator = Literal["moments", "maximum-likelihood", "quick"]
ESTIMATORS = ("moments", "maximum-likelihood", "quick")


def ewens_theta(table: SizeTable, estimator: Estimator) -> tuple[float, float | None]:
    """Theta and its standard error."""
    n, s1, k = table.n, table.uniques, table.combinations
    if estimator == "maximum-likelihood":
        if k == n:
            return math.inf, None
        if k == 1:
            return 0.0, None
        log_theta = brentq(
            lambda t: expected_combinations(0.0, math.exp(t), n) - k,
            -40.0,
            2.0 * math.log(n) + 1.0,
            xtol=1e-13,
        )
        theta = math.exp(log_theta)
        variance = covariance_of_counts(0.0, theta, n)[1, 1]
        return theta, theta / math.sqrt(variance)
    if estimator == "quick":
        return float(s1), math.sqrt(s1)
    if s1 == n:
        return math.inf, None
    theta = s1 * (n - 1) / (n - s1)
    if theta == 0.0:
        return theta, None
    variance = covariance_of_counts(0.0, theta, n)[0, 0]
    return theta, math.sqrt(variance) * n * (n - 1) / (n - s1) ** 2


def theta_of(alpha: float, excess: Callable[[float], float]) -> float | None:
    """Theta above minus alpha where an increasing function is 0; None where there is none."""

    def shifted(log_distance: float) -> float:
        return excess(math.exp(log_distance) - alpha)

    low, high = -30.0, 35.0
    if shifted(low) > 0 or shifted(high) < 0:
        return None
    return math.exp(brentq(shifted, low, high, xtol=1e-12)) - alpha


def pitman_moments(table: SizeTable) -> tuple[float, float] | None:
    """Alpha and theta that give the uniques and the combinations."""
    n = table.n

    def theta(alpha: float) -> float | None:
        return theta_of(alpha, lambda t: n * first_alone(alpha, t, n) - table.uniques)

    def excess(alpha: float) -> float:
        t = theta(alpha)
        return math.nan if t is None else expected_combinations(alpha, t, n) - table.combinations

    grid = np.append(np.linspace(0.0, 0.99, 100), 1.0 - np.geomspace(5e-3, 1e-6, 20))
    values = np.array([excess(alpha) for alpha in grid])
    for i in np.flatnonzero(values[:-1] * values[1:] <= 0):
        alpha = float(brentq(excess, grid[i], grid[i + 1], xtol=1e-13))
        t = theta(alpha)
        if t is not None:
            return alpha, t
    return None


def profile_theta(alpha: float, n: int, k: int) -> float:
    """Theta that maximises the likelihood given alpha; it depends on n and K alone."""
    members = alpha * np.arange(1, k)

    def minus_slope(t: float) -> float:
        return float(digamma_rise(t + 1, n - 1) - (1.0 / (t + members)).sum())

    theta = theta_of(alpha, minus_slope)
    assert theta is not None  # noqa: S101 with 1 < K < n the slope changes sign once
    return theta


def _log_likelihood(alpha: float, theta: float, table: SizeTable) -> float:
    """Pitman's formula, without terms that hold no parameter."""
    joins = (gammaln(table.size - alpha) - gammaln(1.0 - alpha)) @ table.cells
    opens = np.log(theta + alpha * np.arange(1, table.combinations)).sum()
    return float(opens + joins - (gammaln(theta + table.n) - gammaln(theta + 1)))


def pitman_likelihood(table: SizeTable) -> tuple[float, float]:
    """Alpha and theta of the largest likelihood."""
    n, k = table.n, table.combinations

    def loss(alpha: float) -> float:
        return -_log_likelihood(alpha, profile_theta(alpha, n, k), table)

    grid = np.linspace(0.0, 0.995, 40)
    best = int(np.argmin([loss(alpha) for alpha in grid]))
    low, high = grid[max(best - 1, 0)], min(grid[min(best + 1, 39)], 1.0 - 1e-9)
    if best == 39:
        high = 1.0 - 1e-9
    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
    alpha = 0.0 if loss(0.0) <= found.fun else float(found.x)
    return alpha, profile_theta(alpha, n, k)


def likelihood_covariance(alpha: float, theta: float, table: SizeTable) -> np.ndarray | None:
    """Inverse of the observed information on alpha and theta."""
    if alpha == 0.0:
        return None
    members = np.arange(1, table.combinations)
    squares = 1.0 / (theta + alpha * members) ** 2
    by_alpha = (polygamma(1, table.size - alpha) - polygamma(1, 1.0 - alpha)) @ table.cells
    by_theta = polygamma(1, theta + 1) - polygamma(1, theta + table.n)
    information = np.array(
        [
            [(members**2 * squares).sum() - by_alpha, (members * squares).sum()],
            [(members * squares).sum(), squares.sum() - by_theta],
        ]
    )
    if np.linalg.det(information) <= 0 or information[0, 0] <= 0:
        return None
    return np.asarray(np.linalg.inv(information))


def moment_covariance(alpha: float, theta: float, n: int) -> np.ndarray | None:
    """Covariance of alpha and theta from that of the two counts."""
    if alpha == 0.0:
        return None

    def counts(a: float, t: float) -> np.ndarray:
        return np.array([n * first_alone(a, t, n), expected_combinations(a, t, n)])

    step_a, step_t = 1e-5 * min(alpha, 1 - alpha), 1e-5 * (theta + alpha)
    jacobian = np.stack(
        [
            (counts(alpha + step_a, theta) - counts(alpha - step_a, theta)) / (2 * step_a),
            (counts(alpha, theta + step_t) - counts(alpha, theta - step_t)) / (2 * step_t),
        ],
        axis=1,
    )
    inverse = np.linalg.inv(jacobian)
    return np.asarray(inverse @ covariance_of_counts(alpha, theta, n) @ inverse.T)
