"""What Ewens' and Pitman's sampling formulas say about the size indices of a file.

Each function takes alpha in [0, 1) and theta above minus alpha; alpha = 0 is Ewens' formula, and an
infinite theta means that every record is unique.

References
----------
J. Pitman, "Exchangeable and partially exchangeable random partitions", Probability Theory and
Related Fields 102 (1995) 145-158, https://doi.org/10.1007/BF01213386.
"""

import math

import numpy as np
from scipy.special import digamma, gammaln, polygamma


def digamma_rise(x: float, a: float) -> float:
    """Return digamma(x + a) - digamma(x) without cancellation for large x."""
    if x < 1e4:
        return float(digamma(x + a) - digamma(x))
    y = x + a
    return math.log1p(a / x) - (1 / y - 1 / x) / 2 - (1 / y**2 - 1 / x**2) / 12


def rise(x: float, a: float) -> float:
    """Return log Gamma(x + a) - log Gamma(x) without cancellation for large x."""
    if x < 1e4:
        return float(gammaln(x + a) - gammaln(x))
    y = x + a
    stirling = (1.0 / y - 1.0 / x) / 12.0 - (1.0 / y**3 - 1.0 / x**3) / 360.0
    return (y - 0.5) * math.log1p(a / x) + a * math.log(x) - a + stirling


def stays_unique(alpha: float, theta: float, n: int, N: int) -> float:
    """Probability that a combination unique among n records is so among N."""
    if math.isinf(theta) or n == N:
        return 1.0
    if alpha == 0.0:
        return (theta + n - 1) / (theta + N - 1)
    x = theta + alpha - 1.0
    return math.exp(rise(x + n, 1.0 - alpha) - rise(x + N, 1.0 - alpha))


def first_alone(alpha: float, theta: float, n: int) -> float:
    """Probability that a given record is unique among n."""
    if math.isinf(theta) or n == 1:
        return 1.0
    if theta + alpha <= 0.0:
        return 0.0
    rest = 1.0 - alpha
    return math.exp(rise(theta + alpha, rest) - rise(theta + alpha + n - 1, rest))


def expected_sizes(alpha: float, theta: float, n: int, size: np.ndarray) -> np.ndarray:
    """Expected number of combinations of each size."""
    if math.isinf(theta):
        return np.where(size == 1, float(n), 0.0)
    if theta + alpha <= 0.0:
        return np.where(size == n, 1.0, 0.0)
    inside = np.minimum(size, n)
    logs = (
        (gammaln(n + 1) - gammaln(inside + 1) - gammaln(n - inside + 1))
        + (gammaln(inside - alpha) - gammaln(1 - alpha))
        + (gammaln(theta + alpha + n - inside) - gammaln(theta + alpha))
        - (gammaln(theta + n) - gammaln(theta + 1))
    )
    return np.where(size <= n, np.exp(logs), 0.0)


def expected_combinations(alpha: float, theta: float, n: int) -> float:
    """Expected number of combinations among n records."""
    if math.isinf(theta):
        return float(n)
    if theta + alpha <= 0.0:
        return 1.0
    if alpha == 0.0:
        return theta * digamma_rise(theta, n)
    growth = rise(theta + n, alpha) - rise(theta, alpha) if theta > 0 else 0.0
    if theta > 0:
        return theta / alpha * math.expm1(growth)
    growth = rise(theta + n, alpha) + float(gammaln(theta + 1) - gammaln(theta + alpha))
    return (math.exp(growth) - theta) / alpha


def covariance_of_counts(alpha: float, theta: float, n: int) -> np.ndarray:
    """Covariance matrix of the numbers of uniques and of combinations."""
    alone = first_alone(alpha, theta, n)
    mean = np.array([n * alone, expected_combinations(alpha, theta, n)])
    # two given records are both unique: the second opens a combination, the rest avoid both
    both = (
        (theta + alpha)
        / (theta + 1)
        * math.exp(
            rise(theta + 2 * alpha, 2 - 2 * alpha) - rise(theta + 2 * alpha + n - 2, 2 - 2 * alpha)
        )
    )
    var_uniques = n * (n - 1) * both + mean[0] - mean[0] ** 2
    # given that one record is unique, the others follow the formula with theta + alpha
    rest = expected_combinations(alpha, theta + alpha, n - 1)
    cov = mean[0] * (1.0 + rest - mean[1])
    if alpha == 0.0:
        var_combinations = mean[1] + theta**2 * (polygamma(1, theta + n) - polygamma(1, theta))
    else:
        a = theta / alpha
        ratio = math.exp(rise(theta + n, 2 * alpha) - rise(theta + 1, 2 * alpha))
        # a (a + 1) Gamma(theta) / Gamma(theta + 2 alpha), written so that theta may be negative
        square = (a + 1) * (theta + 2 * alpha) / alpha * ratio
        var_combinations = square - (2 * a + 1) * mean[1] - a * (a + 1) - mean[1] ** 2
    return np.array([[var_uniques, cov], [cov, float(var_combinations)]])
