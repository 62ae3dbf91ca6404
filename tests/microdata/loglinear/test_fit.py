"""Fits against closed forms and proportional fitting."""

import numpy as np
import pytest

from bayes_sdc.microdata.loglinear.fit import fit
from bayes_sdc.microdata.loglinear.table import Table

LEVELS = (2, 3, 4)
CODES = np.indices(LEVELS).reshape(3, -1).T


def table(f: np.ndarray) -> Table:
    return Table(CODES, f.ravel(), np.ones(f.size), LEVELS, True, np.arange(f.size))


FREQUENCIES = np.random.default_rng(1).poisson(400.0, LEVELS)


def test_main_effects_are_independence() -> None:
    margins = [FREQUENCIES.sum(axis=tuple({0, 1, 2} - {j})) for j in range(3)]
    exact = np.einsum("a,b,c->abc", *margins) / FREQUENCIES.sum() ** 2.0
    np.testing.assert_allclose(fit(table(FREQUENCIES), []).mean, exact.ravel(), rtol=1e-3)


def test_all_pairs_are_those_of_proportional_fitting() -> None:
    """Iterative proportional fitting is another way to the same maximum."""
    mean = np.ones(LEVELS)
    for _ in range(200):
        for other in range(3):
            mean *= FREQUENCIES.sum(axis=other, keepdims=True) / mean.sum(axis=other, keepdims=True)
    found = fit(table(FREQUENCIES), [(0, 1), (0, 2), (1, 2)])
    np.testing.assert_allclose(found.mean, mean.ravel(), rtol=2e-3)
    assert found.converged


def test_a_start_changes_nothing_but_the_time() -> None:
    whole = fit(table(FREQUENCIES), [(0, 1), (1, 2)])
    warm = fit(table(FREQUENCIES), [(0, 1), (1, 2)], start=fit(table(FREQUENCIES), [(0, 1)]))
    np.testing.assert_allclose(whole.mean, warm.mean, rtol=1e-4)


def test_pairs_that_do_not_occur_have_finite_effects() -> None:
    f = FREQUENCIES.copy()
    f[0, 0] = 0
    found = fit(table(f), [(0, 1)])
    assert all(np.isfinite(effects).all() for effects in found.effects)
    assert found.mean.reshape(LEVELS)[0, 0].sum() < 2.0
    assert found.mean.sum() == pytest.approx(f.sum(), rel=1e-3)
