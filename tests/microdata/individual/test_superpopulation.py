"""Models of shared rates say where frequencies alone cannot tell."""

import numpy as np
import pytest
from scipy.stats import nbinom

from bayes_sdc.microdata.individual import population_models
from bayes_sdc.microdata.individual.population_models import draw_unsampled
from bayes_sdc.microdata.individual.superpopulation import superpopulation_risk


def frequencies(fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A sample from combinations whose sizes are far from a Gamma: many ones, and some crowds."""
    rng = np.random.default_rng(seed)
    F = np.concatenate([np.ones(4000), rng.integers(2, 5, 1500), rng.integers(100, 900, 12)])
    f = rng.binomial(F.astype(int), fraction)
    return f[f > 0], F[f > 0]


def test_small_samples_are_not_trusted() -> None:
    """At 1 % shared rates find a part of the population uniques, with chains that agree."""
    f, F = frequencies(0.01, 1)
    found = superpopulation_risk(f, np.full(len(f), 0.01), model="gamma", seed=1)
    truth = ((f == 1) & (F == 1)).sum()
    assert found.tau1.value < 0.8 * truth
    assert found.converged
    assert not found.trusted
    assert any("below 1 / log n" in note for note in found.notes)


def test_another_shape_than_the_models_is_not_trusted() -> None:
    """At 30 % a Gamma finds 0.59 of these population uniques, and chains agree about it."""
    f, F = frequencies(0.3, 2)
    found = superpopulation_risk(f, np.full(len(f), 0.3), model="gamma", seed=1)
    assert found.tau1.value < 0.65 * ((f == 1) & (F == 1)).sum()
    assert found.converged
    assert not found.trusted
    assert any("do not have the shape" in note for note in found.notes)
    assert not any("1 / log n" in note for note in found.notes)


def test_the_closed_form_is_not_trusted_where_it_is_far_too_low() -> None:
    """At 1 % it finds a hundredth of the sample uniques, at 30 % three tenths, whoever they are."""
    for fraction, said in ((0.01, "below 1 / log n"), (0.3, "do not have the shape")):
        f, F = frequencies(fraction, 2)
        found = superpopulation_risk(f, np.full(len(f), fraction), model="known", seed=1)
        assert found.tau1.value < 0.5 * ((f == 1) & (F == 1)).sum()
        assert found.converged
        assert not found.trusted
        assert any(said in note for note in found.notes)


def test_the_closed_form_is_trusted_where_its_prior_holds() -> None:
    rng = np.random.default_rng(4)
    sizes = np.arange(1, 100_000)
    F = rng.choice(sizes, 40_000, p=1.0 / sizes / (1.0 / sizes).sum())
    f = rng.binomial(F, 0.3)
    F, f = F[f > 0], f[f > 0]
    found = superpopulation_risk(f, np.full(len(f), 0.3), model="known", seed=1)
    assert found.trusted
    assert found.tau1.value == pytest.approx(((f == 1) & (F == 1)).sum(), rel=0.15)


def test_large_fractions_are_not_doubted() -> None:
    rng = np.random.default_rng(3)
    F = rng.negative_binomial(0.5, 0.1, 20_000)
    f = rng.binomial(F, 0.3)
    F, f = F[f > 0], f[f > 0]
    found = superpopulation_risk(f, np.full(len(f), 0.3), model="gamma", seed=1)
    assert found.trusted
    low, high = found.tau1.interval
    assert low <= ((f == 1) & (F == 1)).sum() <= high


def test_the_unsampled_are_negative_binomial_whatever_the_size() -> None:
    """Sizes of 1 are drawn another way: shares of 0, 1, 2 and the mean are those of the law."""
    size, success = np.array([1.0, 1.0, 1.7, 4.0, 0.3]), np.array([0.05, 0.9, 0.3, 0.3, 0.2])
    drawn = draw_unsampled(size, np.tile(success, (200_000, 1)), np.random.default_rng(1))
    for k in range(3):
        share = (drawn == k).mean(axis=0)
        right = nbinom.pmf(k, size, success)
        assert np.all(np.abs(share - right) < 5 * np.sqrt(right / 200_000))
    error = np.sqrt(nbinom.var(size, success) / 200_000)
    assert np.all(np.abs(drawn.mean(axis=0) - nbinom.mean(size, success)) < 5 * error)
    certain = draw_unsampled(np.array([1.0, 2.0]), np.ones(2), np.random.default_rng(1))
    assert certain.tolist() == [0.0, 0.0]


def test_totals_are_the_same_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part of the draws has random numbers of its own."""
    monkeypatch.setattr(population_models, "AT_ONCE", 5000)
    f, _ = frequencies(0.1, 3)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(population_models, "threads", lambda _, cores=cores: cores)
        found.append(superpopulation_risk(f, np.full(len(f), 0.1), model="known", seed=1))
    assert found[0].tau1 == found[1].tau1
    assert found[0].tau2 == found[1].tau2
