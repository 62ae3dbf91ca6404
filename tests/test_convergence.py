"""R-hat and effective sample sizes of many parameters: those of ArviZ, one by one."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from bayes_sdc.convergence import convergence


def chains(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    noise = rng.normal(size=shape)
    if kind == "independent":
        return noise
    if kind == "apart":
        return noise + 0.3 * np.arange(shape[0])[:, None]
    if kind == "counts":  # ties
        return rng.poisson(0.7, shape).astype(float)
    if kind == "alternating":
        return noise * 0.3 + (-1.0) ** np.arange(shape[1])
    if kind == "heavy":
        return rng.standard_cauchy(shape)
    walk = np.zeros(shape)
    for t in range(1, shape[1]):
        walk[:, t] = 0.97 * walk[:, t - 1] + noise[:, t]
    return walk


@pytest.mark.parametrize("shape", [(4, 250), (2, 401), (3, 8), (4, 5)])
@pytest.mark.parametrize("kind", ["independent", "apart", "counts", "alternating", "heavy", "slow"])
def test_every_parameter_is_judged_as_by_arviz(kind: str, shape: tuple[int, int]) -> None:
    """Another number would make verdicts that nobody can reproduce."""
    rng = np.random.default_rng(7)
    draws = np.stack([chains(kind, shape, rng) for _ in range(20)], axis=-1)
    rhat, bulk, tail = convergence(draws)
    axes = {"chain_axis": 0, "draw_axis": 1}
    for k in range(20):
        one = draws[:, :, k]
        expected = [
            float(array_stats.rhat(one, **axes)),
            float(array_stats.ess(one, method="bulk", **axes)),
            float(array_stats.ess(one, method="tail", prob=(0.05, 0.95), **axes)),
        ]
        if not np.isfinite(expected).all():  # split halves without a spread
            assert not np.isfinite(rhat[k]) or rhat[k] >= 1.0
            continue
        np.testing.assert_allclose([rhat[k], bulk[k], tail[k]], expected, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_parameter_that_says_nothing_is_the_worst(value: float) -> None:
    """Else a chain that never moved, or broke, would pass in silence."""
    draws = np.random.default_rng(1).normal(size=(4, 100, 2))
    draws[:, :, 0] = 3.0 if value == 0.0 else draws[:, :, 0]
    draws[1, 7, 0] = 3.0 if value == 0.0 else value
    rhat, bulk, tail = convergence(draws)
    assert (rhat[0], bulk[0], tail[0]) == (np.inf, 0.0, 0.0)
    assert rhat[1] < 1.1


def test_too_few_draws_are_no_evidence() -> None:
    for shape in [(1, 100, 1), (4, 3, 1)]:
        rhat, bulk, _ = convergence(np.random.default_rng(1).normal(size=shape))
        assert (rhat[0], bulk[0]) == (np.inf, 0.0)


def test_single_precision_is_enough() -> None:
    """Effects are kept in single precision, and the verdict must not depend on it."""
    draws = np.random.default_rng(2).normal(size=(4, 200, 5))
    for one, two in zip(convergence(draws), convergence(draws.astype(np.float32)), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5)


def test_a_parameter_is_judged_the_same_among_few_and_among_many() -> None:
    """Parameters are judged in chunks: where one stands must not matter."""
    draws = np.random.default_rng(3).normal(size=(2, 600, 700)).cumsum(axis=1)
    many = np.array(convergence(draws))
    for k in (0, 1, 217, 218, 699):
        np.testing.assert_array_equal(many[:, k], np.ravel(convergence(draws[:, :, k : k + 1])))
