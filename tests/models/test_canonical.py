"""The canonical negative binomial: the PyMC distribution against SciPy's, and what it can reach."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare, nbinom

from bayes_sdc.models.canonical import CanonicalNegativeBinomial
from bayes_sdc.models.migration import build
from bayes_sdc.models.truncated import TruncatedNegativeBinomial

UPPER = 8


def probabilities(log_rate: float, kappa: float) -> np.ndarray:
    dist = CanonicalNegativeBinomial.dist(log_rate=log_rate, kappa=kappa, upper=UPPER)
    return np.asarray(np.exp(pm.logp(dist, np.arange(UPPER + 1)).eval()))


@pytest.mark.parametrize("p", [0.01, 0.5, 0.97])
@pytest.mark.parametrize("kappa", [1e-4, 0.3, 5.0])
def test_within_its_reach_it_is_the_truncated_negative_binomial(p: float, kappa: float) -> None:
    """SciPy counts failures: its probability is that of a success, here 1 - p."""
    log_p = nbinom.logpmf(np.arange(UPPER + 1), 1.0 / kappa, 1.0 - p)
    expected = np.exp(log_p - logsumexp(log_p))
    np.testing.assert_allclose(probabilities(np.log(p / kappa), kappa), expected, rtol=1e-7)


@pytest.mark.parametrize("kappa", [0.3, 1.0, 5.0])
def test_large_rates_lead_to_the_largest_count(kappa: float) -> None:
    """By the log of the mean the largest mean is that of the limit, far below the largest count."""
    mean = probabilities(12.0, kappa) @ np.arange(UPPER + 1)
    assert mean > UPPER - 0.01
    limit = TruncatedNegativeBinomial.mean(log_rate=50.0, kappa=kappa, upper=UPPER)
    assert limit.eval() < 6.2


@pytest.mark.parametrize("log_rate", [-800.0, -60.0, 60.0, 800.0])
def test_no_rate_leaves_double_precision(log_rate: float) -> None:
    found = probabilities(log_rate, 0.7)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(), 1.0)


def test_forward_draws_have_these_probabilities() -> None:
    dist = CanonicalNegativeBinomial.dist(log_rate=0.4, kappa=0.6, upper=UPPER)
    seen = np.bincount(pm.draw(dist, draws=20_000, random_seed=1), minlength=UPPER + 1)
    assert chisquare(seen, 20_000 * probabilities(0.4, 0.6), sum_check=False).pvalue > 0.001


def test_slope_by_the_rate_is_the_count_less_its_mean() -> None:
    """What the canonical link is for: sums of counts times covariates are fitted as they are."""
    rate = pt.dscalar()
    dist = CanonicalNegativeBinomial.dist(log_rate=rate, kappa=0.6, upper=UPPER)
    slope = pytensor.function([rate], pt.grad(pm.logp(dist, 3), rate), mode="FAST_COMPILE")
    mean = probabilities(0.4, 0.6) @ np.arange(UPPER + 1)
    np.testing.assert_allclose(slope(0.4), 3.0 - mean, rtol=1e-10)


def test_bounded_steps_are_refused() -> None:
    index = np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="bounded"):
        build(
            index, index, index, origins=["a"], destinations=["x"], family="canonical",
            prior="pooled", upper=UPPER, epsilon=1.0, centres=[0.0] * UPPER,
        )  # fmt: skip
