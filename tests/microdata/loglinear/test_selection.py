"""Risks and their estimated error against sums over Poisson frequencies."""

import numpy as np
import pytest
from scipy.stats import poisson

from bayes_sdc.microdata.loglinear.fit import fit
from bayes_sdc.microdata.loglinear.selection import Risk, alone, choose, estimated_error, matched
from bayes_sdc.microdata.loglinear.table import Table

MEANS = np.array([1e-9, 1e-4, 0.03, 0.4, 2.0])
REST = np.arange(300)


@pytest.mark.parametrize("times", [1.0, 2.0, 50.0])
def test_risks_are_those_of_a_poisson_rest(times: float) -> None:
    chances = poisson.pmf(REST[:, None], (times - 1.0) * MEANS)
    np.testing.assert_allclose(alone(MEANS, times).value, chances[0], rtol=1e-12)
    np.testing.assert_allclose(
        matched(MEANS, times).value, (chances / (1.0 + REST[:, None])).sum(axis=0), rtol=1e-7
    )


@pytest.mark.parametrize("risk", [alone, matched])
def test_derivatives(risk: object) -> None:
    """By differences, on both sides of the place where the series takes over."""
    for mean in (5e-5, 1.1e-4, 0.2, 1.0):
        step = 1e-4 * mean
        low, at, high = (risk(np.array([mean + k * step]), 11.0) for k in (-1, 0, 1))  # type: ignore[operator]
        assert at.first[0] == pytest.approx((high.value[0] - low.value[0]) / (2 * step), rel=1e-3)
        assert at.second[0] == pytest.approx((high.first[0] - low.first[0]) / (2 * step), rel=2e-2)


@pytest.mark.parametrize("risk", [alone, matched])
@pytest.mark.parametrize("times", [1.5, 4.0])
def test_the_estimated_error_is_right_near_the_fit(risk: object, times: float) -> None:
    """Its expectation over f, summed up, against the true error: equal to the second order."""
    fitted, f = 0.7, np.arange(60)
    for difference in (-0.04, 0.02, 0.05):
        true = fitted + difference
        cells = Table(f[:, None], f, poisson.pmf(f, true), (60,), True, f)
        mean = np.full(60, fitted)
        here: Risk = risk(mean, times)  # type: ignore[operator]
        there: Risk = risk(np.array([true]), times)  # type: ignore[operator]
        exact = true * np.exp(-true) * (here.value[0] - there.value[0])
        assert estimated_error(cells, mean, here) == pytest.approx(
            exact, abs=3.0 * (times * abs(difference)) ** 3
        )


def test_a_pair_that_interacts_enters_first() -> None:
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 12, 600)
    codes = np.indices((12, 12, 5)).reshape(3, -1).T
    f = np.zeros((12, 12, 5), np.int64)
    np.add.at(f, (kind, (kind + rng.integers(0, 2, 600)) % 12, rng.integers(0, 5, 600)), 1)
    table = Table(codes, f.ravel(), np.ones(f.size), (12, 12, 5), True, np.arange(f.size))
    best, steps = choose(table, 10.0)
    assert steps[1].fitted.pairs == ((0, 1),)
    assert abs(best.error2) == min(abs(step.error2) for step in steps)
    lone = fit(table, [])
    assert steps[1].fitted.log_likelihood > lone.log_likelihood + 100.0
