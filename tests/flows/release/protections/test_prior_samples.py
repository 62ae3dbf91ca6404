"""Prior samples of two kinds of synthesis: what they promise, by enumeration of whole tables."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import nbinom

from bayes_sdc import InputError
from bayes_sdc.flows.release.protections.prior_samples import (
    dirichlet_delta,
    dirichlet_rows,
    dirichlet_sample,
    draw_dirichlet,
    poisson_gamma,
)

TINY = 1e-9


def releases(cells: int, draws: int) -> np.ndarray:
    """All ways to put so many people into so many cells."""
    return np.array([x for x in itertools.product(range(draws + 1), repeat=cells)
                     if sum(x) == draws])  # fmt: skip


def log_dirichlet_multinomial(n: np.ndarray, x: np.ndarray, alpha: float) -> np.ndarray:
    """Log-probability of every whole release x from counts n, by the textbook's formula."""
    a, m = n + alpha, x.sum(axis=1)
    log_p = gammaln(a.sum()) - gammaln(a.sum() + m) + gammaln(m + 1)
    return log_p + (gammaln(a + x) - gammaln(a) - gammaln(x + 1)).sum(axis=1)


def neighbours(cells: int, upper: int):
    """Every table and each cell that can take one person more."""
    for n in itertools.product(range(upper + 1), repeat=cells):
        for cell in range(cells):
            if n[cell] < upper:
                more = list(n)
                more[cell] += 1
                yield np.array(n), np.array(more)


@pytest.mark.parametrize("epsilon", [2.0, 1.0, 0.5, 0.25])
@pytest.mark.parametrize(("cells", "draws", "upper"), [(2, 4, 4), (3, 5, 3), (4, 3, 2)])
def test_no_whole_release_tells_more_than_epsilon(cells, draws, upper, epsilon) -> None:
    """The prior sample holds, and 0.98 of it does not: nothing is given away for nothing."""
    alpha = dirichlet_sample(cells, draws, upper, epsilon=epsilon, delta=0.0)
    x = releases(cells, draws)

    def worst(alpha: float) -> float:
        return max(
            float(np.abs(log_dirichlet_multinomial(one, x, alpha)
                         - log_dirichlet_multinomial(more, x, alpha)).max())
            for one, more in neighbours(cells, upper)
        )  # fmt: skip

    assert worst(alpha) <= epsilon + TINY
    assert worst(0.98 * alpha) > epsilon


@pytest.mark.parametrize(("cells", "draws", "upper"), [(2, 6, 3), (3, 5, 2)])
@pytest.mark.parametrize("epsilon", [1.0, 0.5])
def test_delta_is_the_probability_of_the_releases_beyond_epsilon(
    cells, draws, upper, epsilon
) -> None:
    x = releases(cells, draws)
    for alpha in (0.3, 1.0, 3.0):
        worst = 0.0
        for one, more in neighbours(cells, upper):
            log_p, log_q = (log_dirichlet_multinomial(n, x, alpha) for n in (one, more))
            beyond = np.abs(log_p - log_q) > epsilon + 1e-12
            worst = max(worst, np.exp(log_p)[beyond].sum(), np.exp(log_q)[beyond].sum())
        found = dirichlet_delta(cells, draws, upper, prior_sample=alpha, epsilon=epsilon)
        assert found == pytest.approx(worst, abs=1e-12)
        # what differential privacy asks of every set of releases follows from it
        for one, more in neighbours(cells, upper):
            p, q = (np.exp(log_dirichlet_multinomial(n, x, alpha)) for n in (one, more))
            assert np.maximum(p - np.exp(epsilon) * q, 0.0).sum() <= found + TINY
            assert np.maximum(q - np.exp(epsilon) * p, 0.0).sum() <= found + TINY


@settings(deadline=None, max_examples=15)
@given(st.integers(2, 8), st.integers(1, 20), st.sampled_from([1e-2, 1e-4, 1e-6]),
       st.floats(0.2, 2.0))  # fmt: skip
def test_a_delta_never_needs_a_larger_prior_sample(cells, draws, delta, epsilon) -> None:
    found = dirichlet_sample(cells, draws, 5, epsilon=epsilon, delta=delta)
    assert found <= dirichlet_sample(cells, draws, 5, epsilon=epsilon, delta=0.0)
    assert dirichlet_delta(cells, draws, 5, prior_sample=found, epsilon=epsilon) <= delta


def test_rows_are_the_sums_over_whole_releases() -> None:
    """Of two blocks, one of them with a single cell, whose count is known beforehand."""
    y, block = np.array([2, 0, 1, 3]), np.array([0, 0, 0, 1])
    draws, alpha, upper = np.array([4, 2]), np.array([0.7, 1.0]), 3
    m = dirichlet_rows(y, block, draws, alpha, upper)
    x = releases(3, 4)
    for cell in range(3):
        for count in range(upper + 1):
            n = y[:3].copy()
            n[cell] = count
            p = np.exp(log_dirichlet_multinomial(n, x, 0.7))
            expected = [p[np.minimum(x[:, cell], upper) == k].sum() for k in range(upper + 1)]
            np.testing.assert_allclose(m[cell, count], expected, atol=1e-12)
    np.testing.assert_array_equal(m[3], np.eye(4)[[2, 2, 2, 2]])


def test_draws_have_the_probabilities_of_the_rows() -> None:
    y, block = np.array([2, 0, 3]), np.zeros(3, int)
    draws, alpha = np.array([6]), np.array([1.5])
    rng = np.random.default_rng(3)
    found = np.array([draw_dirichlet(y, block, draws, alpha, 3, rng) for _ in range(20_000)])
    m = dirichlet_rows(y, block, draws, alpha, 3)
    for cell in range(3):
        share = np.bincount(found[:, cell], minlength=4) / len(found)
        np.testing.assert_allclose(share, m[cell, y[cell]], atol=0.016)  # 4.5 standard errors


@settings(deadline=None)
@given(st.integers(0, 2), st.integers(1, 9), st.floats(0.05, 3.0), st.floats(0.2, 6.0))
def test_poisson_gamma_keeps_its_epsilon(low, width, epsilon, mean) -> None:
    """Cells are released one by one, so neighbouring rows of M are all neighbours there are."""
    m = poisson_gamma(low, low + width, epsilon=epsilon, mean=mean).to_numpy()
    np.testing.assert_allclose(m.sum(axis=1), 1.0)
    worst = np.abs(np.diff(np.log(m), axis=0)).max()
    assert worst <= epsilon + 1e-6
    if epsilon < 0.5:
        assert worst == pytest.approx(epsilon, abs=1e-6), "the prior sample is too large"


def test_poisson_gamma_is_a_negative_binomial_and_given_its_sum_the_other_mechanism() -> None:
    """Rows are those of SciPy, truncated; equal exposures given the sum are multinomial."""
    sample, mean, upper = 1.3, 2.0, 5
    success = 1.0 - 1.0 / (2.0 + sample / mean)
    counts = np.arange(upper + 1)
    rows = nbinom.pmf(counts, counts[:, None] + sample, success)
    rows /= rows.sum(axis=1, keepdims=True)
    epsilon = float(np.abs(np.diff(np.log(rows), axis=0)).max())
    m = poisson_gamma(0, upper, epsilon=epsilon, mean=mean).to_numpy()
    np.testing.assert_allclose(m, rows, rtol=1e-6)
    n, x = np.array([2, 0, 1]), releases(3, 4)
    log_p = nbinom.logpmf(x, n + sample, success).sum(axis=1)
    log_p -= np.logaddexp.reduce(log_p)
    np.testing.assert_allclose(log_p, log_dirichlet_multinomial(n, x, sample), atol=1e-10)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.inf, np.nan])
def test_what_promises_nothing_is_refused(epsilon) -> None:
    with pytest.raises(InputError, match="epsilon must be above 0"):
        poisson_gamma(1, 9, epsilon=epsilon, mean=2.0)
    with pytest.raises(InputError, match="epsilon must be above 0"):
        dirichlet_sample(3, 4, 5, epsilon=epsilon, delta=0.0)
    with pytest.raises(InputError, match="delta must be"):
        dirichlet_sample(3, 4, 5, epsilon=1.0, delta=1.0)
