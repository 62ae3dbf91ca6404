"""Counts with a base measure: the PyMC distribution against the formula as it is printed."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare, nbinom

from bayes_sdc.models.base_counts import BaseCounts
from bayes_sdc.models.base_measure import log_measure
from bayes_sdc.models.migration import build

UPPER = 5
MEASURE = log_measure(np.array([0.7, -0.4, 0.9]), UPPER, [1])


def written_out(log_rate: float, kappa: float) -> np.ndarray:
    """Every probability, from SciPy's negative binomial whose success probability is 1/2."""
    y = np.arange(UPPER + 1)
    log_p = MEASURE + y * (log_rate + np.log(2.0 * kappa)) + nbinom.logpmf(y, 1.0 / kappa, 0.5)
    return np.asarray(np.exp(log_p - logsumexp(log_p)))


@pytest.mark.parametrize("log_rate", [-3.0, 0.4, 4.0])
@pytest.mark.parametrize("kappa", [1e-4, 0.3, 5.0])
def test_probabilities_are_those_of_the_formula(log_rate: float, kappa: float) -> None:
    dist = BaseCounts.dist(log_rate=log_rate, kappa=kappa, log_measure=MEASURE, upper=UPPER)
    found = np.exp(pm.logp(dist, np.arange(UPPER + 1)).eval())
    np.testing.assert_allclose(found, written_out(log_rate, kappa), rtol=1e-7)
    assert found[1] < 1e-24
    assert np.isneginf(pm.logp(dist, np.array([-1, UPPER + 1])).eval()).all()


def test_forward_draws_have_these_probabilities() -> None:
    dist = BaseCounts.dist(
        log_rate=np.full(20_000, 0.4), kappa=0.3, log_measure=MEASURE, upper=UPPER
    )
    seen = np.bincount(pm.draw(dist, random_seed=1), minlength=UPPER + 1)
    assert seen[1] == 0
    expected = 20_000 * np.delete(written_out(0.4, 0.3), 1)
    assert chisquare(np.delete(seen, 1), expected / expected.sum() * 20_000).pvalue > 0.001


def test_gradient_by_the_measure_is_the_difference_from_the_mean() -> None:
    """One count more of y: the gradient is 1 there, less its probability everywhere."""
    measure = pt.dvector()
    dist = BaseCounts.dist(log_rate=0.4, kappa=0.3, log_measure=measure, upper=UPPER)
    slope = pytensor.function([measure], pt.grad(pm.logp(dist, 2), measure), mode="FAST_COMPILE")
    expected = -written_out(0.4, 0.3)
    expected[2] += 1.0
    np.testing.assert_allclose(slope(MEASURE), expected, atol=1e-10)


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"prior": "weak"}, "pooled"),
        ({"epsilon": 1.0, "centres": [0.0] * UPPER}, "bounded"),
        ({"impossible": [0, 1, 2, 3]}, "three possible"),
    ],
)
def test_model_refuses_what_a_measure_cannot_have(changed: dict[str, object], word: str) -> None:
    given = {"prior": "pooled", "family": "base", "upper": UPPER}
    index = np.zeros(2, np.int64)
    with pytest.raises(ValueError, match=word):
        build(index, index, index, origins=["a"], destinations=["x"], **given | changed)
