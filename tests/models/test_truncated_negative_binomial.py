"""The truncated negative binomial against scipy, against 50 digits, and against Poisson."""

from collections.abc import Callable

import mpmath
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.models.migration import TruncatedNegativeBinomial, TruncatedPoisson
from bayes_sdc.models.truncated import truncated_logp

K = 8
RATES = ["1e-12", "1e-3", "1", "7", "1e4", "1e12"]
KAPPAS = ["1e-9", "0.1", "2", "50"]


@pytest.fixture(scope="module")
def derivatives() -> Callable[..., list[np.ndarray]]:
    """Log-probabilities of 0..K and their derivatives by log rate and by kappa."""
    log_rate, kappa = pt.dscalar(), pt.dscalar()
    logp = truncated_logp(np.arange(K + 1), log_rate, K, kappa)
    slopes = [pytensor.gradient.jacobian(logp, x) for x in (log_rate, kappa)]
    return pytensor.function([log_rate, kappa], [logp, *slopes])


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("kappa", KAPPAS)
def test_value_and_derivatives_are_exact(derivatives, rate, kappa):
    # else NUTS drifts where the counts are at a bound or the overdispersion is tiny or huge
    log_rate, size = float(mpmath.log(mpmath.mpf(rate))), float(kappa)
    logp, by_log_rate, by_kappa = derivatives(log_rate, size)

    def exact(y: int, x: mpmath.mpf, k: mpmath.mpf) -> mpmath.mpf:
        r, lam = 1 / k, mpmath.e**x
        terms = [
            mpmath.gamma(j + r) / mpmath.factorial(j) / mpmath.gamma(r) * (lam / (lam + r)) ** j
            for j in range(K + 1)
        ]
        return mpmath.log(terms[y] / mpmath.fsum(terms))

    with mpmath.workdps(60):
        x, k = mpmath.mpf(log_rate), mpmath.mpf(size)
        for y in range(K + 1):
            assert logp[y] == pytest.approx(float(exact(y, x, k)), rel=1e-12, abs=1e-12)
            slope = mpmath.diff(lambda v, y=y: exact(y, v, k), x, h=mpmath.mpf(10) ** -20)
            assert by_log_rate[y] == pytest.approx(float(slope), rel=1e-9, abs=1e-18)
            slope = mpmath.diff(lambda v, y=y: exact(y, x, v), k, h=mpmath.mpf(10) ** -20)
            assert by_kappa[y] == pytest.approx(float(slope), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("rate", [0.01, 1.0, 6.0, 300.0])
@pytest.mark.parametrize("kappa", [0.05, 1.0, 4.0])
def test_pmf_is_scipys_cut_and_scaled(rate, kappa):
    # else mean and size are not the ones that users know
    size = 1.0 / kappa
    pmf = stats.nbinom.pmf(np.arange(K + 1), size, size / (size + rate))
    pmf /= pmf.sum()
    dist = TruncatedNegativeBinomial.dist(log_rate=np.log(rate), kappa=kappa, upper=K)
    np.testing.assert_allclose(np.exp(pm.logp(dist, np.arange(K + 1)).eval()), pmf, rtol=1e-11)
    table = counts.probabilities(
        np.log([rate]), np.zeros(1, np.int64), counts.ladder(np.array([kappa]), K)
    )
    np.testing.assert_allclose(table[0], pmf, rtol=1e-11)


def test_small_kappa_is_poisson():
    # else the family does not contain the paper's model
    log_rate, y = np.array([-2.0, 0.5, 3.0]), np.array([0, 4, 8])
    poisson = pm.logp(TruncatedPoisson.dist(log_rate=log_rate, upper=K), y).eval()
    near = TruncatedNegativeBinomial.dist(log_rate=log_rate, kappa=1e-13, upper=K)
    np.testing.assert_allclose(pm.logp(near, y).eval(), poisson, rtol=1e-10)


def test_draws_follow_the_table():
    # else prior and posterior predictive checks judge another model
    dist = TruncatedNegativeBinomial.dist(log_rate=np.log(4.0), kappa=1.5, upper=K)
    observed = np.bincount(pm.draw(dist, draws=20_000, random_seed=3), minlength=K + 1)
    expected = 20_000 * np.exp(pm.logp(dist, np.arange(K + 1)).eval())
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_values_between_counts_are_impossible():
    # else a count of 2.5, read from a careless file, is given a probability
    assert truncated_logp(2.5, 0.0, K, 1.0).eval() == -np.inf


def test_second_derivatives_are_refused():
    # else a Hessian of zeros would be taken for the curvature
    log_rate = pt.dvector()
    logp = truncated_logp(np.array([1, 2]), log_rate, K, 1.0).sum()
    slope = pytensor.grad(logp, log_rate)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        pytensor.grad(slope.sum(), log_rate)
