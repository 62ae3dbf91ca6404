"""Intervals of the risk of single combinations, against distribution functions and draws."""

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

from bayes_sdc.microdata.individual.closed_form import individual_risk
from bayes_sdc.microdata.individual.interpolation import nodes_of
from bayes_sdc.microdata.individual.intervals import (
    known_interval,
    shared_interval,
    uncertain_interval,
    uncertain_risk_interval,
)
from bayes_sdc.microdata.individual.shared_rates import shared_risk
from bayes_sdc.microdata.individual.superpopulation import superpopulation_risk
from bayes_sdc.models import individual_risk as models

F = np.array([1, 1, 1, 2, 5, 40, 300, 10**6, 1])
P = np.array([0.01, 0.3, 1.0, 0.05, 0.1, 0.02, 0.3, 0.5, 1e-9])


def assert_central(interval: np.ndarray, f: np.ndarray, cdf, slack: float) -> None:
    """The smallest F at which the distribution function reaches each level, within slack."""
    for level, end in ((0.975, 0), (0.025, 1)):
        extra = np.rint(1 / interval[:, end] - f)
        assert np.all(cdf(extra) >= level - slack)
        assert np.all(cdf(extra - 1) <= level + slack)


def test_known_interval_holds_the_middle_of_the_negative_binomial():
    interval = known_interval(F, P)
    assert_central(interval, F, lambda extra: stats.nbinom.cdf(extra, F, P), 1e-9)
    assert np.all((interval > 0) & (interval[:, ::-1] <= 1 / F[:, None]))
    np.testing.assert_array_equal(interval[P == 1], [[1, 1]])


@pytest.mark.parametrize("shape", [-0.9, 0.0, 2.5])
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_shared_interval_of_one_draw_is_that_of_its_negative_binomial(shape, rate):
    """Not by the grid of F: a wrong size or probability would move the level by per cents."""
    success = (rate + P) / (rate + 1)
    interval = shared_interval(F, P, np.array([shape]), np.array([rate]))
    few = F <= 64
    assert_central(
        interval[few],
        F[few],
        lambda extra: (
            special.betainc(F[few] + shape, extra + 1e-300 + 1, success[few]) * (extra >= 0)
        ),
        1e-6,
    )
    many = interval[~few]
    expected = stats.nbinom.ppf([[0.975, 0.025]], F[~few, None] + shape, success[~few, None])
    width = np.diff(expected, axis=1)
    assert np.all(np.abs(1 / many - F[~few, None] - expected) <= np.abs(width) * 0.01 + 1)


def test_intervals_of_mixtures_hold_95_per_cent_of_draws():
    """Drawn in another way: rates or probabilities first, then F."""
    rng = np.random.default_rng(4)
    f, p, draws = np.array([1, 2, 6, 30]), np.array([0.02, 0.1, 0.3, 0.05]), 200_000
    shape, rate = rng.normal(0.4, 0.1, 32), rng.uniform(0.01, 0.2, 32)
    which = rng.integers(32, size=draws)[:, None]
    rates = rng.gamma(f + shape[which]) / (rate[which] + p)
    inverse = 1 / (f + rng.poisson((1 - p) * rates))
    assert_covers(shared_interval(f, p, shape, rate), inverse)
    spread = np.array([0.5, 0.3, 0.2, 0.1])
    concentration = (1 - p) / (p * spread**2) - 1
    chance = rng.beta(p * concentration, (1 - p) * concentration, (draws, 4))
    inverse = 1 / (f + rng.negative_binomial(f, chance))
    assert_covers(uncertain_interval(f, p, spread), inverse)
    risk = individual_risk(f, chance)
    ends = np.quantile(risk, [0.025, 0.975], axis=0).T
    np.testing.assert_allclose(uncertain_risk_interval(f, p, spread), ends, rtol=0.02)


def assert_covers(interval: np.ndarray, draws: np.ndarray, slack: float = 0.003) -> None:
    """At most 2.5 % of the draws on each side, and more than that without the end itself."""
    for beyond, at in (
        (draws < interval[:, 0], draws <= interval[:, 0]),
        (draws > interval[:, 1], draws >= interval[:, 1]),
    ):
        assert np.all(beyond.mean(axis=0) <= 0.025 + slack)
        assert np.all(at.mean(axis=0) >= 0.025 - slack)


def test_without_spread_nothing_is_uncertain_but_the_frequency():
    none = np.zeros(len(F))
    np.testing.assert_array_equal(uncertain_interval(F, P, none), known_interval(F, P))
    risk = individual_risk(F, P)
    np.testing.assert_array_equal(uncertain_risk_interval(F, P, none), np.column_stack([risk] * 2))


def test_many_probabilities_get_the_numbers_that_each_gets_alone():
    """They are interpolated from a grid: a shift by one node would be per cents."""
    rng = np.random.default_rng(5)
    p = np.concatenate([1 / rng.uniform(1, 60, 4000), [1.0, 1 - 1e-12]])
    f = rng.integers(1, 3, len(p))
    shape, rate = np.array([0.3, 0.5, -0.2]), np.array([0.02, 0.1, 0.0])
    many, one = shared_risk(f, p, shape, rate, f), slice(0, 4002, 400)
    assert len(nodes_of(f, p, 0.05).p) < 800
    f1, p1 = np.append(f[one], f[-2:]), np.append(p[one], p[-2:])
    few = shared_risk(f1, p1, shape, rate, f1)
    np.testing.assert_allclose(np.append(many.mean[one], many.mean[-2:]), few.mean, rtol=1e-6)
    # a quantile has a kink where two draws change places
    np.testing.assert_allclose(
        np.vstack([many.interval[one], many.interval[-2:]]), few.interval, rtol=1e-3
    )
    np.testing.assert_allclose(many.totals.mean(axis=1)[0], many.mean @ f, rtol=1e-12)
    spread = 0.4 / np.sqrt(f)
    for found, alone in (
        (shared_interval(f, p, shape, rate)[one], shared_interval(f1, p1, shape, rate)[:-2]),
        (
            uncertain_interval(f, p, spread)[one],
            uncertain_interval(f1, p1, 0.4 / np.sqrt(f1))[:-2],
        ),
    ):
        assert np.all(np.abs(1 / found - 1 / alone) <= 1e-3 / alone + 1)


@pytest.mark.parametrize("model", ["known", "uncertain", "gamma", "extended"])
def test_every_combination_has_both_intervals(model):
    f, p = np.repeat([1, 1, 2, 5], [30, 4, 9, 3]), np.tile([0.05, 0.2], 23)
    spread = 0.3 if model == "uncertain" else None
    result = superpopulation_risk(f, p, model=model, spread=spread, draws=200, seed=1)
    low, high = result.risk_interval.T
    assert np.all((low >= 0) & (low <= result.risk) & (result.risk <= high) & (high <= 1 / f))
    assert np.all((low < high) == (model != "known"))
    lower, upper = result.inverse_interval.T
    assert np.all((lower > 0) & (lower < result.risk) & (result.risk < upper))
    assert np.all(upper <= 1 / f)


def test_population_of_given_rates_is_the_negative_binomial():
    """F - f from a rate and a Poisson variable; by hand its mean, variance and chance of 0."""
    f, p, alpha, beta, draws = np.array([1, 1, 4]), np.array([0.1, 0.5, 0.05]), -0.3, 0.02, 40_000
    with models.build_population(f, p, alpha=alpha, beta=beta):
        tree = pm.sample_prior_predictive(draws, var_names=["unsampled", "risk"], random_seed=2)
    unsampled = tree["prior"]["unsampled"].to_numpy()[0]
    exact = stats.nbinom(f + alpha, (beta + p) / (beta + 1))
    for value in (0, 1, 5, 40):
        chance = exact.cdf(value)
        error = np.sqrt(chance * (1 - chance) / draws)
        assert np.all(np.abs((unsampled <= value).mean(axis=0) - chance) <= 4.5 * error + 1e-9)
    risk = tree["prior"]["risk"].to_numpy()[0]
    expected = shared_risk(f, p, np.array([alpha]), np.array([beta]), f).mean
    assert np.all(np.abs(risk.mean(axis=0) - expected) <= 4.5 * risk.std(axis=0) / draws**0.5)


def test_population_of_a_fit_has_its_risk_and_interval():
    """Drawn forward from the posterior of alpha and beta."""
    f, p = np.repeat([1, 2, 5], [30, 9, 3]), np.full(42, 0.1)
    result = superpopulation_risk(f, p, model="gamma", seed=1)
    with models.build_population(f, p):
        drawn = pm.sample_posterior_predictive(
            result.posterior, var_names=["population"], random_seed=1, progressbar=False
        )
    inverse = 1 / drawn["posterior_predictive"]["population"].to_numpy().reshape(-1, 42)
    for first in (0, 30, 39):
        np.testing.assert_allclose(inverse[:, first].mean(), result.risk[first], rtol=0.08)
    assert_covers(result.inverse_interval, inverse, slack=0.012)
