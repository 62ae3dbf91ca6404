"""Models of shared rates say where frequencies alone cannot tell."""

import numpy as np
import pytest

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


@pytest.mark.parametrize("model", ["known", "gamma"])
def test_large_fractions_and_plain_models_are_not_doubted_for_it(model: str) -> None:
    f, _ = frequencies(0.3, 2)
    found = superpopulation_risk(f, np.full(len(f), 0.3), model=model, seed=1)
    assert found.trusted == found.converged
    assert not any("1 / log n" in note for note in found.notes)
