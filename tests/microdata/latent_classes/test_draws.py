"""Draws against their exact distributions, and logs of Gamma functions against 40 digits."""

import mpmath
import numba
import numpy as np
import pytest

from bayes_sdc.microdata.latent_classes.draws import (
    FACTORS,
    draw_tables,
    log_gamma_draw,
    log_rising_factorial,
    pick,
)


@numba.njit
def many_tables(rng: np.random.Generator, customers: int, strength: float, draws: int) -> list[int]:
    return [draw_tables(rng, customers, strength) for _ in range(draws)]


@pytest.mark.parametrize(("customers", "strength"), [(1, 0.3), (5, 0.05), (40, 2.0), (900, 30.0)])
def test_tables_have_their_exact_distribution(customers: int, strength: float) -> None:
    """Sums of independent trials, convolved; a normal approximation would fail for few tables."""
    chances = strength / (strength + np.arange(customers))
    exact = np.array([1.0])
    for p in chances:
        exact = np.convolve(exact, [1.0 - p, p])
    draws = 40_000
    found = np.bincount(
        many_tables(np.random.default_rng(4), customers, strength, draws), minlength=len(exact)
    )
    error = np.sqrt(draws * exact * (1.0 - exact)) + 1.0
    assert np.abs((found - draws * exact) / error).max() < 4.5


def test_logs_of_small_gamma_variables() -> None:
    """Below 1e-308 a variable would be 0, and its share undefined."""
    rng = np.random.default_rng(5)
    shape = 1e-3
    draws = np.array([log_gamma_draw(rng, shape) for _ in range(4000)])
    # -log X is nearly exponential with mean 1 / shape
    assert np.isfinite(draws).all()
    assert -draws.mean() * shape == pytest.approx(1.0, abs=0.08)


@pytest.mark.parametrize("number", [1, 2, FACTORS, FACTORS + 1, 5000])
@pytest.mark.parametrize("shape", [1e-300, 1e-9, 0.3, 7.0, 1e6])
def test_rising_factorials(shape: float, number: int) -> None:
    with mpmath.workdps(40):
        exact = mpmath.loggamma(mpmath.mpf(shape) + number) - mpmath.loggamma(shape)
    # of large shapes and many records two large numbers are subtracted
    assert log_rising_factorial(shape, number) == pytest.approx(float(exact), rel=1e-12, abs=1e-8)


@pytest.mark.parametrize(
    "weights",
    [[0, 1, 0, 3, 0], [1], [0, 0, 0, 0, 0, 2], [1, 2, 3, 4], [3, 0, 0, 0, 1, 0, 0, 0, 0],
     [0.5, 0, 2, 1, 0, 0, 0, 0, 1, 4, 0, 0, 0]],
)  # fmt: skip
def test_places_are_picked_by_their_weights(weights: list[float]) -> None:
    """Also what comes first or last in a group of four, and never what has no weight."""
    rng = np.random.default_rng(6)
    shares = np.array(weights) / np.sum(weights)
    draws = 20_000
    picked = [pick(rng, np.array(weights, dtype=float), float(sum(weights))) for _ in range(draws)]
    found = np.bincount(picked, minlength=len(weights))
    assert found[shares == 0].sum() == 0
    error = np.sqrt(draws * shares * (1.0 - shares)) + 1.0
    assert np.abs((found - draws * shares) / error).max() < 4.5


@pytest.mark.parametrize("size", [1, 3, 4, 5, 8, 11])
def test_a_total_rounded_up_picks_the_last_that_can_be(size: int) -> None:
    weights = np.zeros(size + 3)
    weights[:size] = 0.1
    rng = np.random.default_rng(7)
    assert {pick(rng, weights, 100.0) for _ in range(200)} <= set(range(size))
