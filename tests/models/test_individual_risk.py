"""Superpopulation models of the individual risk against closed forms and simulated populations."""

import mpmath
import numpy as np
import pymc as pm
import pytest
from scipy import integrate, special, stats

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.individual import superpopulation
from bayes_sdc.microdata.individual.closed_form import individual_risk
from bayes_sdc.microdata.individual.inclusion import uncertain_risk, weight_spread
from bayes_sdc.microdata.individual.shared_rates import group_rates, rates_density
from bayes_sdc.microdata.individual.shared_rates import shared_risk as risk_over_draws
from bayes_sdc.microdata.individual.superpopulation import superpopulation_risk
from bayes_sdc.models import individual_risk as models

F = np.array([1, 1, 1, 2, 2, 5, 40])
P = np.array([0.01, 0.3, 1.0, 0.05, 0.9, 0.1, 0.02])
DRAWS = 20_000


def draws_of(model: pm.Model, name: str, seed: int = 3) -> np.ndarray:
    with model:
        tree = pm.sample_prior_predictive(DRAWS, var_names=[name], random_seed=seed)
    return tree["prior"][name].to_numpy()[0]


def test_model_with_known_probability_gives_the_closed_form():
    """Mean of 1 / F per combination within four standard errors, and F itself negative binomial."""
    risk = draws_of(models.build(F, P), "risk")
    error = risk.std(axis=0) / np.sqrt(DRAWS)
    assert np.all(np.abs(risk.mean(axis=0) - individual_risk(F, P)) <= 4 * error + 1e-12)
    population = draws_of(models.build(F, P), "population", seed=4)
    mean, sd = F / P, np.sqrt(F * (1 - P)) / P
    assert np.all(np.abs(population.mean(axis=0) - mean) <= 4 * sd / np.sqrt(DRAWS) + 1e-6)


def test_negative_binomial_of_the_model_is_the_one_of_the_derivation():
    """Not the closed form again: prior 1/rate on a fine grid times the Poisson of f, summed."""
    f, p, values = 3, 0.2, np.arange(3, 60)
    rates = np.exp(np.linspace(-9, 9, 20_001))
    weight = stats.poisson.pmf(f, p * rates)  # flat in the log of the rate
    weight /= weight.sum()
    expected = weight @ stats.poisson.pmf(values[None] - f, (1 - p) * rates[:, None])
    logp = pm.logp(models.build([f], [p])["unsampled"], (values - f)[:, None]).eval().ravel()
    np.testing.assert_allclose(np.exp(logp), expected, rtol=1e-6)


def test_uncertain_probability_mixes_the_closed_form():
    spread = np.array([0.5, 0.5, 0.5, 0.2, 0.0, 1.5, 0.3])
    model = models.build(F, P, spread=spread)
    inclusion, risk = draws_of(model, "inclusion"), draws_of(model, "risk")
    moderate = [0, 3, 5, 6]
    np.testing.assert_allclose(inclusion[:, moderate].mean(axis=0), P[moderate], rtol=0.05)
    np.testing.assert_allclose(
        inclusion[:, [0, 3, 6]].std(axis=0) / P[[0, 3, 6]], spread[[0, 3, 6]], rtol=0.05
    )
    result = superpopulation_risk(F, P, model="uncertain", spread=spread, seed=2)
    error = risk.std(axis=0) / np.sqrt(DRAWS)
    assert np.all(np.abs(risk.mean(axis=0) - result.risk) <= 4 * error + 1e-12)


#: f, p, spread and the mean of 1 / F over the beta negative binomial distribution of F - f, by
#: mpmath with 30 digits: beta(a + f, b) / beta(a, b) hyp3f2(f, f, b, f + 1, a + b + f, 1) / f.
BETA_NEGATIVE_BINOMIAL = [
    (1, 1e-3, 100.0, 0.001644174970810708),
    (1, 0.01, 10.0, 0.01637350662921507),
    (1, 1e-3, 3.0, 0.005157486022918131),
    (1, 1e-4, 10.0, 0.0005204100924282979),
    (1, 0.05, 0.5, 0.15275458596297428),
    (1, 0.5, 1.0, 0.6449340668482264),
    (1, 1.0, 0.1, 0.999999999999001),
    (2, 1e-3, 3.0, 0.0009664954167630075),
    (2, 0.05, 0.5, 0.04367387316499455),
    (2, 1e-6, 300.0, 8.579274499137255e-07),
]


@pytest.mark.parametrize(("f", "p", "spread", "expected"), BETA_NEGATIVE_BINOMIAL)
def test_uncertain_risk_has_the_upper_tail_of_the_probability(f, p, spread, expected):
    """With a large spread nearly all risk is in rare large p: equal parts of the Beta miss it."""
    result = uncertain_risk(np.array([f]), np.array([p]), np.array([spread]))
    assert result[0] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("f", [1, 2, 7, 45])
@pytest.mark.parametrize(("p", "spread"), [(0.3, 0.2), (0.9, 0.05), (0.02, 1e-4), (0.02, 0.6)])
def test_uncertain_risk_of_a_moderate_spread(f, p, spread):
    """By an adaptive integral over p, where the density has no end that is infinite."""
    concentration = (1 - p) / (p * spread**2) - 1
    beta = stats.beta(p * concentration, (1 - p) * concentration)
    low, high = max(0.0, p * (1 - 12 * spread)), min(1.0, p * (1 + 30 * spread))

    def integral(of):
        return integrate.quad(
            lambda x: beta.pdf(x) * of(x), low, high, epsabs=0, epsrel=1e-10, limit=200, points=[p]
        )[0]

    # older SciPy's density of a narrow Beta is off by a factor of 1 + 7e-9
    whole = integral(lambda x: 1.0)
    expected = integral(lambda x: x / f * special.hyp2f1(1, 1, f + 1, 1 - x)) / whole
    result = uncertain_risk(np.array([f]), np.array([p]), np.array([spread]))
    assert result[0] == pytest.approx(expected, rel=1e-9)


def test_expected_matches_of_a_large_spread_lie_in_their_interval():
    """Integrated and drawn values are of one distribution: 2,000 of the first above, not 1e-294."""
    result = superpopulation_risk(
        np.ones(2000, np.int64), 1e-3, model="uncertain", spread=np.full(2000, 100.0), seed=1
    )
    assert result.expected.value == pytest.approx(3.28834994, rel=1e-4)
    assert result.expected.interval[0] <= result.expected.value <= result.expected.interval[1]


def test_no_spread_is_the_model_with_known_probability():
    known = superpopulation_risk(F, P, seed=5)
    still = superpopulation_risk(F, P, model="uncertain", spread=np.zeros(len(F)), seed=5)
    np.testing.assert_array_equal(known.risk, still.risk)
    np.testing.assert_allclose(known.risk, individual_risk(F, P), rtol=1e-15)


@pytest.mark.parametrize("shape", [-0.9, -0.4, 0.0, 0.02, 0.7, 1.0, 3.5])
@pytest.mark.parametrize("rate", [0.0, 1e-3, 0.4, 20.0])
def test_shared_risk_is_the_mean_over_the_negative_binomial(shape, rate):
    """By adding up 1 / F over its distribution, or by an adaptive integral where F is large."""
    for f in (1, 2, 7, 45):
        for p in (1e-3, 0.05, 0.6, 1.0):
            rho = (rate + p) / (rate + 1)
            if rho == 1:
                expected = 1 / f
            elif rho > 0.02:
                extra = np.arange(20_000)
                pmf = stats.nbinom.pmf(extra, f + shape, rho)
                expected = float(pmf @ (1 / (f + extra)))
            else:
                z = 1 - rho
                expected = integrate.quad(
                    lambda y, f=f, z=z, rho=rho: rho * y ** (f - 1) * (rho + z * y) ** (shape - 1),
                    0,
                    1,
                    epsabs=0,
                    epsrel=1e-11,
                    points=[rho, 10 * rho],
                )[0]
            assert shared_risk(f, p, shape, rate) == pytest.approx(expected, rel=1e-8)


def shared_risk(f, p, shape, rate):
    one = np.array([f])
    return risk_over_draws(one, np.array([p]), np.array([shape]), np.array([rate]), one).mean[0]


@pytest.mark.parametrize("shape", [-0.9, -1e-9, 0.5, 5.0, 30.0, 200.0])
@pytest.mark.parametrize("rate", [0.0, 2e-5, 1e-2, 1.0])
def test_shared_risk_has_the_digits_of_the_hypergeometric_function(shape, rate):
    """Where the integrand is narrow beside its interval, too few nodes lost per cents of it."""
    for f in (1, 2, 7, 39, 44, 230):
        for p in (1e-12, 1e-6, 1e-3, 0.3, 0.99):
            with mpmath.workdps(30):
                rho = (mpmath.mpf(rate) + p) / (mpmath.mpf(rate) + 1)
                expected = rho / f * mpmath.hyp2f1(1, 1 - mpmath.mpf(shape), f + 1, 1 - rho)
            assert shared_risk(f, p, shape, rate) == pytest.approx(float(expected), rel=1e-10)


@pytest.fixture(scope="module")
def population() -> tuple[np.ndarray, np.ndarray]:
    """Cells whose rates share a Gamma distribution, and a sample of a tenth."""
    rng = np.random.default_rng(8)
    rates = rng.gamma(0.4, 1 / 0.05, 6000)
    full = rng.poisson(rates)
    return full, rng.binomial(full, 0.1)


def test_shared_model_finds_the_distribution_it_was_drawn_from(population):
    """And its intervals hold the truth of the population that was drawn."""
    full, sample = population
    seen = sample > 0
    truth = 1 / full[seen] @ sample[seen]
    uniques = int(np.sum((sample == 1) & (full == 1)))
    p = np.full(seen.sum(), 0.1)
    for empty in (None, int(np.sum(~seen))):
        result = superpopulation_risk(sample[seen], p, model="gamma", empty=empty, seed=1)
        assert result.converged
        assert not result.trusted  # a tenth is below 1 / log n, whatever the population is
        draws = result.posterior["posterior"].to_dataset()
        for name, true in (("alpha", 0.4), ("beta", 0.05)):
            low, high = np.quantile(draws[name], [0.005, 0.995])
            assert low < true < high
        assert result.expected.interval[0] < truth < result.expected.interval[1]
        assert result.tau1.interval[0] < uniques < result.tau1.interval[1]
        assert np.all((result.risk > 0) & (result.risk <= 1 / sample[seen]))
        matches = float(np.sum(1 / full[sample == 1]))
        assert result.tau2.interval[0] < matches < result.tau2.interval[1]


def log_likelihood(f, p, shape, rate, truncated):
    """Negative binomial of scipy; below 0 its recurrence, which scipy does not know."""
    rho = rate / (rate + p)
    if shape > 0:
        logp = stats.nbinom.logpmf(f, shape, rho)
        return logp - np.log1p(-(rho**shape)) if truncated else logp
    # P(f + 1) / P(f) = (f + shape) / (f + 1) p / (rate + p), normalised over f = 1, 2, ...
    ratios = [(j + shape) / (j + 1) * p / (rate + p) for j in range(1, 20_000)]
    terms = np.concatenate([[1.0], np.cumprod(ratios)])
    return np.log(terms[f - 1] / terms.sum())


@pytest.mark.parametrize(("extended", "unseen"), [(False, None), (False, 300.0), (True, None)])
def test_likelihood_of_shape_and_rate(extended, unseen):
    """A wrong normalisation would bias alpha, worst near 0."""
    f, p, copies = np.array([1, 2, 9]), np.array([0.1, 0.1, 0.3]), np.array([50, 20, 3])
    none = None if unseen is None else unseen * copies / copies.sum()
    model = models.build_shared(f, p, copies, unseen=none, extended=extended)
    logp = model.compile_logp(vars=model.observed_RVs)
    shapes = [-0.8, -0.3, -1e-7, 1e-7, 0.01, 0.5, 4.0] if extended else [1e-7, 0.01, 0.5, 4.0]
    for shape in shapes:
        for rate in (0.01, 0.2, 5.0):
            point = {
                "log_shape": np.log1p(shape) if extended else np.log(shape),
                "log_scale": -np.log(rate),
            }
            expected = sum(
                m * log_likelihood(i, q, shape, rate, unseen is None)
                for i, q, m in zip(f, p, copies, strict=True)
            )
            if none is not None:
                expected += sum(
                    m * stats.nbinom.logpmf(0, shape, rate / (rate + q))
                    for m, q in zip(none, p, strict=True)
                )
            assert float(logp(point)) == pytest.approx(expected, rel=1e-6)


def test_extended_model_holds_the_truth_of_a_heavy_tail():
    """A population with far more rare cells than a Gamma gives: the two-parameter Chinese
    restaurant process, whose cell sizes have a power law; sample of a tenth."""
    rng = np.random.default_rng(12)
    labels, sizes, discount, strength = [], [], 0.6, 50.0
    for member in range(30_000):
        if rng.random() < (strength + discount * len(sizes)) / (strength + member):
            labels.append(len(sizes))
            sizes.append(1)
        else:
            label = labels[rng.integers(member)]
            while rng.random() < discount / sizes[label]:  # cells are chosen by size - discount
                label = labels[rng.integers(member)]
            labels.append(label)
            sizes[label] += 1
    full = np.array(sizes)
    sample = np.bincount(rng.permutation(labels)[:3000], minlength=len(full))
    seen = sample > 0
    truth = float(1 / full[seen] @ sample[seen])
    uniques = int(np.sum((sample == 1) & (full == 1)))
    p = np.full(seen.sum(), 0.1)
    result = superpopulation_risk(sample[seen], p, model="extended", seed=1)
    assert result.converged
    assert not result.trusted  # a tenth is below 1 / log n, whatever the population is
    assert result.tau1.interval[0] <= uniques <= result.tau1.interval[1]
    assert result.expected.interval[0] <= truth <= result.expected.interval[1]
    gamma = superpopulation_risk(sample[seen], p, model="gamma", seed=1)
    assert gamma.tau1.interval[1] < uniques


def test_totals_agree_with_the_models_own_draws():
    """The totals are drawn outside PyMC, for speed; both ways must have one distribution."""
    f, p = np.repeat(F, 20), np.repeat(np.minimum(P, 0.95), 20)
    result = superpopulation_risk(f, p, draws=4000, seed=6)
    population = draws_of(models.build(f, p), "population")
    for estimate, drawn in (
        (result.expected, (f / population).sum(axis=1)),
        (result.tau1, ((f == 1) & (population == 1)).sum(axis=1)),
        (result.tau2, (1 / population)[:, f == 1].sum(axis=1)),
    ):
        error = drawn.std() / np.sqrt(DRAWS)
        assert abs(estimate.value - drawn.mean()) < 4 * error
        expected = np.quantile(drawn, [0.025, 0.975])
        np.testing.assert_allclose(estimate.interval, expected, rtol=0.05)


def test_spread_of_weights():
    """Equal weights within combinations: p is known. Else the pooled variance, by hand."""
    assert weight_spread([3, 3, 8, 8, 5], [0, 0, 1, 1, 2], [2, 2, 1]).tolist() == [0, 0, 0]
    weights, place = [1, 3, 10, 10, 10, 7], [0, 0, 1, 1, 1, 2]
    pooled = (2 * 0.5**2 + 0) / (1 + 2)
    expected = np.sqrt(pooled / np.array([2, 3, 1]))
    np.testing.assert_allclose(weight_spread(weights, place, [2, 3, 1]), expected)
    # the mean of f weights varies less, whichever records match
    np.testing.assert_allclose(
        weight_spread(weights, place, [2, 3, 1], f=[8, 12, 4]), np.array(expected) / 2
    )
    alone = weight_spread([1, 3], [0, 1], [1, 1])
    np.testing.assert_allclose(alone, np.std([1, 3], ddof=1) / 2)


@pytest.mark.parametrize(
    ("weights", "combination", "records"),
    [
        ([1, 0], [0, 1], [1, 1]),
        ([1, np.nan], [0, 1], [1, 1]),
        ([1, 2], [0, 2], [1, 1]),
        ([1, 2], [0, 0], [1, 1]),
        ([1, 2, 3], [0, 1], [1, 1]),
        (["a", "b"], [0, 1], [1, 1]),
    ],
)
def test_weights_that_do_not_belong_to_the_combinations_are_refused(weights, combination, records):
    with pytest.raises(InputError):
        weight_spread(weights, combination, records)


def test_same_seed_same_answer_and_other_seed_other_draws_of_the_same_means():
    """Means are by quadrature: they have no Monte Carlo error and do not depend on the seed."""
    runs = [superpopulation_risk(F, P, model="gamma", seed=seed) for seed in (1, 1, 2)]
    assert runs[0].expected == runs[1].expected
    assert runs[0].risk.tolist() == runs[1].risk.tolist() == runs[2].risk.tolist()
    for name in ("expected", "tau1", "tau2"):
        first, second = getattr(runs[0], name), getattr(runs[2], name)
        assert first.value == second.value
        # ends of whole numbers among three sample uniques are often the same by chance
        assert name == "tau1" or first.interval != second.interval
        assert first.monte_carlo_error == second.monte_carlo_error == 0.0
    known = superpopulation_risk(F, P, seed=1)
    assert known.expected.monte_carlo_error == known.tau1.monte_carlo_error == 0.0


@pytest.mark.parametrize("model", ["gamma", "extended"])
@pytest.mark.slow
def test_quadrature_and_nuts_agree_but_for_monte_carlo_noise(model):
    """NUTS samples the PyMC model, which is the definition."""
    f, p = np.repeat([1, 1, 2, 3, 8], [60, 5, 20, 9, 4]), np.tile([0.05, 0.2], 49)
    exact = superpopulation_risk(f, p, model=model, seed=1)
    sampled = superpopulation_risk(f, p, model=model, sampler="nuts", seed=1)
    assert exact.converged
    assert sampled.converged
    assert not exact.trusted  # a tenth of the population is below 1 / log n
    assert not sampled.trusted
    for name in ("expected", "tau1", "tau2"):
        one, other = getattr(exact, name), getattr(sampled, name)
        assert other.monte_carlo_error > 0.0
        assert abs(one.value - other.value) < 4.5 * other.monte_carlo_error
        width = other.interval[1] - other.interval[0]
        np.testing.assert_allclose(one.interval, other.interval, atol=0.15 * width)
    width = np.diff(sampled.risk_interval, axis=1)
    assert np.all(np.abs(exact.risk_interval - sampled.risk_interval) < 0.3 * width)


@pytest.mark.parametrize(("extended", "empty"), [(False, None), (False, 300), (True, None)])
def test_density_without_pymc_is_that_of_the_model(extended, empty):
    """Prior and likelihood up to a constant, near the borders of alpha and far out too."""
    rng = np.random.default_rng(4)
    f, p = rng.negative_binomial(0.5, 0.1, 200) + 1, rng.choice([0.01, 0.2, 0.9], 200)
    groups = group_rates(f, p, empty)
    model = models.build_shared(
        groups.f, groups.p, groups.copies, unseen=groups.unseen, extended=extended
    )
    logp = model.compile_logp()
    points = np.column_stack([rng.uniform(-14, 9, 60), rng.uniform(-6, 14, 60)])
    expected = [float(logp({"log_shape": a, "log_scale": b})) for a, b in points]
    ours = rates_density(groups, extended)(points)
    np.testing.assert_allclose(np.diff(ours), np.diff(expected), rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "other"},
        {"model": "uncertain"},
        {"spread": 0.1},
        {"empty": 3},
        {"model": "gamma", "empty": -1},
        {"model": "extended", "empty": 3},
        {"model": "uncertain", "spread": -1},
        {"draws": 10},
        {"draws": float("nan")},
        {"draws": 1000.5},
        {"records": [1]},
        {"records": [1.7, 1, 1, 2, 2, 5, 40]},
        {"records": [-1, 1, 1, 2, 2, 5, 40]},
        {"records": list("abcdefg")},
        {"p": [0.1, 0.2]},
        {"p": "a"},
        {"model": "uncertain", "spread": [0.1, 0.2]},
        {"model": "uncertain", "spread": "a"},
        {"model": "gamma", "empty": float("nan")},
        {"seed": -1},
        {"sampler": "gibbs"},
    ],
)
def test_arguments_that_cannot_be_used(changed):
    """Records of -1 would give fewer than no correct matches; the rest ended in numpy's words."""
    with pytest.raises(InputError):
        superpopulation_risk(F, **{"p": P, "seed": 1, **changed})


def test_fewer_draws_than_asked_for_are_said(monkeypatch):
    """Draws of a large table fell from 1,000 to 200 without a word."""
    assert not any("draws" in note for note in superpopulation_risk(F, P, seed=1).notes)
    monkeypatch.setattr(superpopulation, "SIMULATED", 300 * len(F))
    result = superpopulation_risk(F, P, seed=1)
    assert result.draws == 300
    assert any("from 300 draws, not 1,000" in note for note in result.notes)


@pytest.mark.slow  # 24 chains
def test_monte_carlo_error_is_how_much_seeds_differ():
    """A mean over posterior draws has an error: it was called 0, and seeds differed by 3 per cent.

    Errors are root mean squares over the seeds; the deviation of 24 seeds is known to a seventh.
    """
    f, seeds = np.repeat([1, 1, 2, 3, 8], [60, 5, 20, 9, 4]), range(24)
    results = [
        superpopulation_risk(f, 0.05, model="extended", sampler="nuts", seed=seed) for seed in seeds
    ]
    for name in ("expected", "tau1", "tau2"):
        found = [getattr(result, name) for result in results]
        errors = np.array([estimate.monte_carlo_error for estimate in found])
        spread = np.std([estimate.value for estimate in found], ddof=1)
        assert np.all(errors > 0)
        assert 0.5 < spread / np.sqrt(np.mean(errors**2)) < 1.6


def test_totals_of_each_draw_add_up_to_the_mean_risk():
    f, p, records = np.array([1, 2, 1, 5, 2]), np.full(5, 0.1), np.array([1, 1, 1, 4, 2])
    shape, rate = np.array([0.2, 0.5]), np.array([0.01, 0.3])
    risk, _, totals = risk_over_draws(f, p, shape, rate, records)
    assert totals.mean(axis=1) == pytest.approx([risk @ records, risk[f == 1].sum()])
    first = risk_over_draws(f, p, shape[:1], rate[:1], records).mean
    assert totals[0, 0] == pytest.approx(first @ records)


def test_tiny_probabilities_do_not_overflow():
    result = superpopulation_risk([1, 10**6], [1e-12, 1e-12], seed=1)
    assert np.all(np.isfinite(result.expected.interval))
