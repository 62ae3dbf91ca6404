"""The test of shape holds its level where the model holds, and finds other shapes."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import nbinom

from bayes_sdc.microdata.individual.goodness import EDGES, expected_classes, shape_test

P = np.full(3000, 0.1)


@pytest.mark.parametrize(("alpha", "beta"), [(0.4, 0.02), (3.0, 0.5), (1e-12, 0.1)])
def test_expected_classes_are_those_of_scipy(alpha: float, beta: float) -> None:
    f = np.arange(1, 4000)
    chances = nbinom.pmf(f, alpha, beta / (beta + 0.1))
    chances /= chances.sum()
    exact = np.add.reduceat(chances, np.array(EDGES) - 1) * len(P)
    np.testing.assert_allclose(expected_classes(P, alpha, beta), exact, rtol=2e-2, atol=1e-3)


def test_a_negative_shape_has_a_distribution_too() -> None:
    found = expected_classes(P, -0.6, 0.001)
    assert (found > 0.0).all()
    assert found.sum() == pytest.approx(len(P), rel=1e-9)
    assert found[0] / len(P) > 0.6


def fitted(f: np.ndarray) -> tuple[float, float]:
    """Maximum likelihood of frequencies above 0, by SciPy."""
    value, count = np.unique(f, return_counts=True)

    def loss(logs: np.ndarray) -> float:
        alpha, q = np.exp(logs[0]), 1.0 / (1.0 + 0.1 * np.exp(-logs[1]))
        rate = nbinom.logpmf(value, alpha, q) - np.log1p(-(q**alpha))
        return -float(count @ rate)

    found = minimize(loss, [0.0, -3.0], method="Nelder-Mead").x
    return float(np.exp(found[0])), float(np.exp(found[1]))


def test_the_level_is_held_and_another_shape_found() -> None:
    rng = np.random.default_rng(1)
    low = 0
    for _ in range(100):
        f = rng.negative_binomial(0.8, 0.02 / 0.12, 3000)
        f = f[f > 0]
        low += shape_test(f, np.full(len(f), 0.1), *fitted(f)) < 0.05
    assert low <= 12  # 5 expected; more than 12 have probability 0.0015
    mixed = np.concatenate([rng.poisson(0.05, 40_000), rng.poisson(30.0, 600)])
    mixed = mixed[mixed > 0]
    assert shape_test(mixed, np.full(len(mixed), 0.1), *fitted(mixed)) < 1e-6


def test_few_combinations_tell_nothing() -> None:
    assert shape_test(np.array([1, 2, 1]), np.full(3, 0.1), 1.0, 0.1) == 1.0
