"""The table models of population uniques against closed forms and a plain NUTS of the whole."""

import math
import time

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.posterior import sampling as posterior
from bayes_sdc.microdata.uniques.learned import concentration_density, learn_uniques
from bayes_sdc.microdata.uniques.unstructured import expected_uniques, uniques_deviation
from bayes_sdc.models import uniques as models

DRAWS = 4000


def uniques_drawn(f: np.ndarray, N: int, c: float) -> np.ndarray:
    with models.build(f, N, concentration=c):
        tree = pm.sample_prior_predictive(DRAWS, var_names=["uniques"], random_seed=5)
    return tree["prior"]["uniques"].to_numpy()[0]


def paper_table() -> np.ndarray:
    """A table of the sizes of the paper's example: 1108 cells, 108 of size 1, 8399 members."""
    f = np.zeros(1108, dtype=np.int64)
    f[:108] = 1
    f[108:1008] = 9
    f[1008] = 8399 - 108 - 900 * 9
    return f


@pytest.mark.parametrize("c", [0.1, 0.5, 1.0, 2.0])
def test_the_example_of_the_paper(c):
    """4.3553 under the uniform prior, and the closed forms under others, mean and spread."""
    f = paper_table()
    drawn = uniques_drawn(f, 46_228, c)
    mean = expected_uniques(108, 8399, 46_228, 1108, concentration=c)
    sd = uniques_deviation(108, 8399, 46_228, 1108, concentration=c)
    if c == 1:
        assert mean == pytest.approx(4.3553, abs=5e-5)
    assert abs(drawn.mean() - mean) < 4 * sd / math.sqrt(DRAWS)
    assert drawn.std() == pytest.approx(sd, rel=0.06)


@pytest.mark.parametrize("c", [0.3, 1.0, math.inf])
def test_a_small_table_where_uniques_are_likely(c):
    f, N = np.array([1, 1, 0, 0, 2, 1, 0, 3]), 14
    drawn = uniques_drawn(f, N, c)
    mean = expected_uniques(3, 8, N, 8, concentration=c)
    sd = uniques_deviation(3, 8, N, 8, concentration=c)
    assert abs(drawn.mean() - mean) < 4 * sd / math.sqrt(DRAWS)


def uniques_by_nuts(f: np.ndarray, N: int, c: float, seed: int) -> np.ndarray:
    model = models.build_joint(f, concentration=c)
    with model:
        trace = pm.sample(
            1000,
            tune=1000,
            chains=4,
            cores=1,
            random_seed=seed,
            nuts_sampler="nutpie",
            progressbar=False,
        )
    with models.add_unsampled(model, f, N):
        more = pm.sample_posterior_predictive(
            trace, var_names=["uniques"], random_seed=2, progressbar=False
        )
    return more["posterior_predictive"]["uniques"].to_numpy().ravel()


@pytest.mark.slow  # 1,108 cells, 8,000 draws
def test_the_example_of_the_paper_from_prior_and_likelihood():
    alone = uniques_by_nuts(paper_table(), 46_228, 1.0, seed=3)
    assert abs(alone.mean() - 4.3553) < 4 * 2.043 / math.sqrt(len(alone) / 2)


@pytest.mark.parametrize("c", [0.2, 1.0])
def test_prior_times_likelihood_is_the_drawn_posterior_for_the_example_of_the_paper(c):
    """The multinomial f as written and the Dirichlet(c + f) of `build` differ by a constant."""
    f, rng = paper_table(), np.random.default_rng(1)
    joint = models.build_joint(f, concentration=c)
    logp = joint.compile_logp(jacobian=False)
    gaps = []
    for spread in (0.1, 0.5, 1.0):
        free = spread * rng.normal(size=len(f) - 1)
        theta = np.exp(np.append(free, -free.sum()))  # the sum of the logarithms is left out
        theta /= theta.sum()
        posterior_density = stats.dirichlet.logpdf(theta, f + c)
        gaps.append(float(logp({"theta_simplex__": free})) - posterior_density)
    assert np.ptp(gaps) < 1e-6


def test_equal_cells_leave_nothing_but_the_unsampled():
    """c = infinity: each unsampled member misses a cell with probability (K - 1) / K."""
    f, N, draws = np.array([1, 1, 0, 0, 2, 1, 0, 3]), 14, 20_000
    model = models.add_unsampled(models.build_joint(f, concentration=math.inf), f, N)
    with model:
        tree = pm.sample_prior_predictive(draws, var_names=["uniques"], random_seed=5)
    alone = tree["prior"]["uniques"].to_numpy()[0]
    mean = 3 * (7 / 8) ** 6
    assert mean == pytest.approx(expected_uniques(3, 8, N, 8, concentration=math.inf))
    assert abs(alone.mean() - mean) < 4 * alone.std() / math.sqrt(draws)


@pytest.mark.slow
def test_prior_and_likelihood_give_the_distribution_that_is_drawn():
    """`build` takes theta given f from conjugacy; here NUTS gets prior and data separately."""
    f, N, c = np.array([1, 1, 0, 2, 4]), 20, 0.7
    alone = uniques_by_nuts(f, N, c, seed=1)
    mean = expected_uniques(2, 8, N, 5, concentration=c)
    sd = uniques_deviation(2, 8, N, 5, concentration=c)
    assert abs(alone.mean() - mean) < 4 * sd / math.sqrt(len(alone) / 2)


def test_likelihood_of_the_concentration_is_the_dirichlet_multinomial():
    f = np.array([1, 1, 0, 3, 2, 0, 1])
    sizes, cells = np.unique(f[f > 0], return_counts=True)
    model = models.build_concentration(sizes, cells, len(f))
    logp = model.compile_logp(vars=model.observed_RVs)
    at = [0.05, 0.8, 7.0]
    ours = [float(logp({"log_concentration": math.log(c)})) for c in at]
    whole = [
        pm.logp(pm.DirichletMultinomial.dist(n=f.sum(), a=np.full(len(f), c)), f).eval() for c in at
    ]
    np.testing.assert_allclose(np.diff(ours), np.diff(whole), rtol=1e-9)


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    """A population drawn from the model with c = 0.2 and 5,000 cells, and a sample of a tenth."""
    rng = np.random.default_rng(21)
    full = rng.multinomial(40_000, rng.dirichlet(np.full(5000, 0.2)))
    return full, rng.multivariate_hypergeometric(full, 4000)


def test_the_learned_concentration_and_uniques_hold_the_truth_in_seconds(table):
    full, f = table
    sizes = pd.Series(f[f > 0]).value_counts().sort_index()
    learn_uniques(sizes, 40_000, 5000, seed=1)  # compiled
    start = time.perf_counter()
    result = learn_uniques(sizes, 40_000, 5000, seed=1)
    assert time.perf_counter() - start < 20
    assert result.trusted
    assert result.concentration.interval[0] < 0.2 < result.concentration.interval[1]
    truth = int(np.sum((f == 1) & (full == 1)))
    uniform = expected_uniques(int(sizes[1]), 4000, 40_000, 5000)
    assert abs(result.uniques.value - truth) < abs(uniform - truth)


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Of 24 populations an interval of 95 per cent misses 1.2, and 5 or more in 1 of 170 tests."""
    rng, held = np.random.default_rng(22), 0
    for seed in range(24):
        full = rng.multinomial(10_000, rng.dirichlet(np.full(1500, 0.2)))
        f = rng.multivariate_hypergeometric(full, 1000)
        sizes = pd.Series(f[f > 0]).value_counts().sort_index()
        low, high = learn_uniques(sizes, 10_000, 1500, draws=400, seed=seed).uniques.interval
        held += low <= np.sum((f == 1) & (full == 1)) <= high
    assert held > 19


def test_same_seed_same_answer():
    sizes = pd.Series({1: 7, 2: 5, 10: 6, 23: 1})
    one, two = (learn_uniques(sizes, 1000, 50, seed=4) for _ in range(2))
    assert (one.concentration, one.uniques) == (two.concentration, two.uniques)


@pytest.mark.slow
def test_monte_carlo_error_is_how_much_seeds_differ():
    """The mean of the uniques is over draws of c: its error is not 0, nor that of free draws."""
    sizes = pd.Series({1: 7, 2: 5, 10: 6, 23: 1})
    results = [learn_uniques(sizes, 1000, 50, sampler="nuts", seed=seed) for seed in range(12)]
    for name in ("concentration", "probability", "uniques"):
        found = [getattr(result, name) for result in results]
        errors = np.array([estimate.monte_carlo_error for estimate in found])
        spread = np.std([estimate.value for estimate in found], ddof=1)
        assert np.all(errors > 0)
        assert 0.5 < spread / np.sqrt(np.mean(errors**2)) < 1.6


def test_means_by_quadrature_do_not_depend_on_the_seed():
    """They are known without draws: only the ends of the intervals are simulated."""
    sizes = pd.Series({1: 7, 2: 5, 10: 6, 23: 1})
    one, two = (learn_uniques(sizes, 1000, 50, seed=seed) for seed in (1, 2))
    for name in ("concentration", "probability", "uniques"):
        first, second = getattr(one, name), getattr(two, name)
        assert first.value == second.value
        assert first.monte_carlo_error == second.monte_carlo_error == 0.0
        assert first.interval == pytest.approx(second.interval, rel=0.25)
    by_nuts = learn_uniques(sizes, 1000, 50, sampler="nuts", seed=1)
    for name in ("concentration", "probability", "uniques"):
        sampled = getattr(by_nuts, name)
        assert abs(getattr(one, name).value - sampled.value) < 4.5 * sampled.monte_carlo_error


def test_density_is_that_of_the_model():
    """Prior and likelihood up to a constant, at small, usual and very large c."""
    sizes, cells, K = np.array([1.0, 2.0, 10.0, 23.0]), np.array([7.0, 5.0, 6.0, 1.0]), 50
    at = np.linspace(-12.0, 14.0, 40)
    logp = models.build_concentration(sizes, cells, K).compile_logp()
    expected = np.array([float(logp({"log_concentration": x})) for x in at])
    ours = concentration_density(sizes, cells, K)(at[:, None])
    np.testing.assert_allclose(np.diff(ours), np.diff(expected), rtol=1e-8, atol=1e-8)


def test_a_sampler_that_there_is_not_is_refused():
    with pytest.raises(InputError, match="sampler 'gibbs' is unknown"):
        learn_uniques(pd.Series({1: 7}), 1000, 50, sampler="gibbs", seed=1)


def test_error_of_draws_that_hang_together_is_larger():
    """Autoregression of 0.9: the error of the mean is about sqrt(19) times that of free draws."""
    rng = np.random.default_rng(3)
    draws = np.empty((4, 1000))
    draws[:, 0] = rng.normal(size=4) / math.sqrt(1 - 0.9**2)
    for j in range(1, 1000):
        draws[:, j] = 0.9 * draws[:, j - 1] + rng.normal(size=4)
    free = draws.std() / math.sqrt(draws.size)
    assert posterior.mean_error(draws.ravel()) / free == pytest.approx(math.sqrt(19), rel=0.25)
    opposed = np.tile([1.0, -1.0], 500) + rng.normal(size=1000) / 10
    assert posterior.mean_error(opposed) >= opposed.std() / math.sqrt(1000)
    assert posterior.mean_error(np.zeros(1000)) == 0.0


@pytest.mark.parametrize(
    "changed", [{"draws": float("nan")}, {"N": 99}, {"K": 18}, {"draws": 1}, {"seed": -1}]
)
def test_arguments_that_cannot_be_used(changed):
    arguments = {"N": 1000, "K": 50, "seed": 1, **changed}
    with pytest.raises(InputError):
        learn_uniques(
            pd.Series({1: 7, 2: 5, 10: 6, 23: 1}),
            arguments.pop("N"),
            arguments.pop("K"),
            **arguments,
        )


def test_chains_that_disagree_are_sampled_another_way_and_said(monkeypatch):
    """No R-hat is 0 or below, so both ways are gone through."""
    monkeypatch.setattr(posterior, "RHAT_LIMIT", 0.0)
    sizes = pd.Series({1: 7, 2: 5, 10: 6, 23: 1})
    result = learn_uniques(sizes, 1000, 50, sampler="nuts", seed=4)
    assert not result.trusted
    assert result.posterior["posterior"].sizes["draw"] == posterior.WAYS[-1]["draws"]
    assert len(result.notes) == 1
    assert "12,000 draws with other settings" in result.notes[0]


@pytest.mark.parametrize(
    ("sizes", "N", "K"),
    [({1: 231, 2: 33, 3: 1}, 8414, 1000), ({1: 400, 2: 60, 3: 9}, 50_000, 2000)],
)
def test_nearly_equal_cells_have_the_concentration_of_the_grid(sizes, N, K):
    """Differences of log Gamma at a large c once made a mode at c = 1e23 that held the chains."""
    result = learn_uniques(sizes, N, K, draws=1000, seed=5)
    grid = np.linspace(-8, 30, 6601)  # the mean of c has a share of 6e-5 beyond e^15
    prior = models.PRIORS["log_concentration"]
    log_density = -0.5 * ((grid - prior["mean"]) / prior["sd"]) ** 2
    n = sum(size * cells for size, cells in sizes.items())
    for size, cells in sizes.items():  # in 1 / c, as no model here is written
        log_density += cells * np.log1p(np.arange(size)[:, None] * np.exp(-grid)).sum(0)
    log_density -= np.log(K + np.arange(n)[:, None] * np.exp(-grid)).sum(0)
    weight = np.exp(log_density - log_density.max())
    cumulated = np.cumsum(weight) / weight.sum()
    assert result.concentration.value == pytest.approx(
        weight @ np.exp(grid) / weight.sum(), rel=1e-8
    )
    log_c = np.log(result.posterior["posterior"]["concentration"].to_numpy().ravel())
    assert result.trusted
    for level in (0.1, 0.5, 0.9):
        exact = grid[np.searchsorted(cumulated, level)]
        assert abs(np.mean(log_c <= exact) - level) < 0.05
