"""Poisson-gamma and Zayatz' uniques against integration, simulation and Bayes' rule."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, hypergeom, nbinom

from bayes_sdc.microdata.size_models.ewens_pitman import ewens
from bayes_sdc.microdata.size_models.poisson_gamma import poisson_gamma, stays_unique, zayatz

PAPER = [2249, 521, 275, 132, 104, 60, 59, 34, 46, 19, 124]
FILE = {"n": 9_809, "N": 4_867_000}


@pytest.mark.parametrize("alpha", [0.05, 0.8, 6.0])
def test_poisson_gamma_probability_by_integration(alpha):
    """The rate given one record, and no further record in the rest of the population."""
    n, population, cells = 300, 5000, 400
    file = poisson_gamma([30, 10, 5, 5], 85, 1000, cells=200)
    assert file.probability is not None
    rate = gamma(alpha + 1, scale=1.0 / (cells * alpha + n))
    expected, _ = quad(
        lambda pi: rate.pdf(pi) * math.exp(-(population - n) * pi),
        0,
        rate.ppf(1 - 1e-12),
        limit=200,
    )
    assert stays_unique(alpha, n, population, cells) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("estimator", ["moments", "maximum-likelihood", "quick"])
def test_poisson_gamma_finds_alpha_and_its_error(estimator):
    rng = np.random.default_rng(6)
    values, errors = [], []
    for _ in range(60):
        rates = rng.gamma(0.5, 1.0, 3000)
        f = rng.multinomial(4000, rates / rates.sum())
        counts = Counter(f[f > 0].tolist())
        found = poisson_gamma(counts, 4000, 40_000, cells=3000, estimator=estimator)
        values.append(found.parameters["alpha"])
        errors.append(found.standard_errors["alpha"])
    assert abs(np.mean(values) - 0.5) < 4 * np.std(values) / math.sqrt(60) + 0.005
    assert 0.7 < np.mean(errors) / np.std(values) < 1.4


def test_poisson_gamma_with_very_many_cells_is_ewens():
    many = poisson_gamma(PAPER, **FILE, cells=10**12)
    assert many.expected == pytest.approx(ewens(PAPER, **FILE).expected, rel=1e-3)


def test_zayatz_by_bayes_rule():
    n, population = 53, 900
    counts = {1: 12, 2: 5, 3: 1, 28: 1}
    alone = {i: hypergeom(population, i, n).pmf(1) for i in counts}
    share = counts[1] * alone[1] / sum(counts[i] * alone[i] for i in counts)
    found = zayatz(counts, n, population)
    assert found.probability == pytest.approx(share, rel=1e-10)
    assert found.expected == pytest.approx(12 * share, rel=1e-10)


@pytest.mark.parametrize("cells", [1000, 10**7, 10**12])
@pytest.mark.parametrize("estimator", ["moments", "maximum-likelihood", "quick"])
def test_a_file_of_uniques_tells_nothing_of_possible_combinations_either(cells, estimator):
    found = poisson_gamma([300], 300, 30_000, cells=cells, estimator=estimator)
    assert found.expected is None
    assert "every record is unique" in found.notes[-1]


def test_an_alpha_that_gains_nothing_over_equal_cells_is_infinite_and_has_no_error():
    # 20 cells, 20 records spread more evenly than by chance
    found = poisson_gamma([18, 1], 20, 2000, cells=20)
    assert found.parameters["alpha"] == np.inf
    assert found.expected_error is None
    assert any("equally likely" in note for note in found.notes)


def test_poisson_gamma_expects_the_uniques_of_its_negative_binomial():
    """The formula of scipy is written out in the package; a slip in it would move every fit."""
    found = poisson_gamma([30, 10, 5, 5], 85, 1000, cells=200)
    alpha = found.parameters["alpha"]
    alone = nbinom.pmf(1, alpha, alpha / (alpha + 1000 / 200))
    assert found.population_uniques == pytest.approx(200 * alone, rel=1e-12)
