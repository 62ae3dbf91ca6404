"""Importance sampling: M, eq. (5) and Pareto's k-hat against brute force."""

import math
from typing import Any

import numpy as np
import pytest
from arviz_stats.base import array_stats
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp
from scipy.stats import nbinom

from bayes_sdc.flows.intruder.estimators import importance
from bayes_sdc.flows.intruder.probabilities import bayes as target
from bayes_sdc.flows.intruder.probabilities import pareto
from bayes_sdc.flows.model.rates import Rates
from bayes_sdc.flows.table.cells import SmallCells

K = 8
LOG_FACTORIAL = gammaln(np.arange(K + 1) + 1.0)


def cells_of(y: np.ndarray) -> SmallCells:
    """Each cell with an origin and a destination of its own."""
    n = len(y)
    names = [str(i) for i in range(n)]
    return SmallCells(
        y=np.asarray(y, np.int64),
        group=np.zeros(n, np.int64),
        origin=np.arange(n),
        destination=np.arange(n),
        group_of_origin=np.zeros(n, np.int64),
        group_of_destination=np.zeros(n, np.int64),
        x=np.empty((n, 0)),
        z=np.empty((1, 0)),
        upper=K,
        covariates=[],
        group_covariates=[],
        cells=names,
        groups=["all"],
        origin_effects=names,
        destination_effects=names,
    )


def smoothed(log_w: np.ndarray, y_true: int) -> np.ndarray:
    """Pareto-smoothed log weights by arviz, normalised; the true count's are all equal."""
    log_w = log_w - logsumexp(log_w, axis=0)
    for candidate in range(log_w.shape[1]):
        if candidate != y_true:
            log_w[:, candidate], _ = array_stats.psislw(-log_w[:, candidate])
    return log_w


def brute_log_m(log_rate: np.ndarray, y_true: int) -> np.ndarray:
    """Eq. (4) as a weighted mean over the draws of one cell, by candidate and released count."""
    counts = np.arange(K + 1)
    log_terms = counts * log_rate[:, None] - LOG_FACTORIAL
    log_tp = log_terms - logsumexp(log_terms, axis=1, keepdims=True)  # (draw, released)
    log_w = smoothed((counts - y_true) * log_rate[:, None], y_true)  # (draw, candidate)
    return logsumexp(log_w[:, :, None] + log_tp[:, None, :], axis=0)


def release(
    beta: np.ndarray,
    gamma: np.ndarray,
    cells: SmallCells,
    chains: int,
    released: np.ndarray,
    kappa: np.ndarray | None = None,
    **kwargs: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The function under test, for Poisson unless kappa is given."""
    if kappa is None:
        kappa = np.zeros((1, beta.shape[1]))
    rates = Rates(
        beta.T,
        gamma.T,
        kappa.T,
        coefficient=np.empty((kappa.shape[1], len(kappa), 0)),
    )
    found = importance.release_probabilities(rates, cells, chains, released, **kwargs)
    return found.m, found.by_chain, found.khat


@pytest.fixture
def posterior() -> tuple[np.ndarray, np.ndarray, SmallCells]:
    """Draws of nine cells, one per true count, with scattered rates; 4 chains of 25."""
    rng = np.random.default_rng(11)
    beta = rng.normal(np.linspace(-3, 3, 9)[:, None], 1.0, (9, 100))
    gamma = rng.normal(0, 0.7, (9, 100))
    return beta, gamma, cells_of(np.arange(9))


# ---- M ---------------------------------------------------------------------------------------


def test_m_is_exact_for_a_discrete_posterior(posterior):
    # with few distinct rates the importance formula is the exact expectation, so M must equal it;
    # twenty weights are too few to be smoothed
    rng = np.random.default_rng(5)
    _, _, cells = posterior
    beta = np.log([0.2, 1.0, 6.0])[rng.integers(3, size=(9, 20))]
    gamma = np.log([0.5, 2.0])[rng.integers(2, size=(9, 20))]
    released = np.zeros((1, 9), np.int64)
    m, _, _ = release(beta, gamma, cells, 2, released)
    for cell in range(9):
        values, counts = np.unique(
            np.round(np.exp(beta[cell] + gamma[cell]), 12), return_counts=True
        )
        assert len(values) <= 6
        for y in range(K + 1):
            weight = counts * values ** (y - float(cells.y[cell]))
            pmf = values[:, None] ** np.arange(K + 1) / np.exp(LOG_FACTORIAL)
            pmf /= pmf.sum(axis=1, keepdims=True)
            exact = weight @ pmf / weight.sum()
            np.testing.assert_allclose(m[cell, y], exact, rtol=1e-10)


def test_m_of_the_negative_binomial_weighs_by_its_own_ratio(posterior):
    # with the Poisson power of lambda as weight, candidates of a negative binomial are misjudged
    beta, gamma, cells = posterior
    kappa = np.random.default_rng(8).gamma(2.0, 0.5, (1, 100))
    m, _, _ = release(beta, gamma, cells, 4, np.zeros((1, 9), np.int64), kappa)
    size, counts = 1.0 / kappa[0][:, None], np.arange(K + 1)
    for cell in range(9):
        rate = np.exp(beta[cell] + gamma[cell])[:, None]
        pmf = nbinom.pmf(counts, size, size / (size + rate))
        pmf /= pmf.sum(axis=1, keepdims=True)
        log_w = smoothed(np.log(pmf / pmf[:, [cells.y[cell]]]), int(cells.y[cell]))
        np.testing.assert_allclose(m[cell], np.exp(log_w).T @ pmf, rtol=1e-9)


def test_rows_of_m_sum_to_one(posterior):
    # else M is no distribution of the released count
    beta, gamma, cells = posterior
    m, _, _ = release(beta * 40.0, gamma, cells, 4, np.zeros((1, 9), np.int64))
    np.testing.assert_allclose(m.sum(axis=2), 1.0, rtol=1e-11)
    assert np.isfinite(m).all()


def test_order_of_cells_and_of_draws_does_not_matter(posterior):
    # else an index is applied to the wrong cell, or the sort loses the pairing of draws
    beta, gamma, cells = posterior
    released = np.arange(9)[None, ::-1].copy()
    m, by_chain, khat = release(beta, gamma, cells, 4, released)
    rng = np.random.default_rng(6)

    order = rng.permutation(9)
    moved = cells._replace(
        y=cells.y[order], origin=cells.origin[order], destination=cells.destination[order]
    )
    other = release(beta, gamma, moved, 4, released[:, order])
    np.testing.assert_array_equal(other[0], m[order])
    np.testing.assert_array_equal(other[1], by_chain[:, order])
    np.testing.assert_array_equal(other[2], khat[order])

    draws = np.concatenate([25 * chain + rng.permutation(25) for chain in range(4)])
    other = release(
        np.ascontiguousarray(beta[:, draws]),
        np.ascontiguousarray(gamma[:, draws]),
        cells,
        4,
        released,
    )
    for ours, theirs in zip((m, by_chain, khat), other, strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-12)


def test_each_chain_alone_gives_the_likelihood_of_its_draws(posterior):
    # else the Monte Carlo error compares something else than the chains
    beta, gamma, cells = posterior
    released = np.stack([np.arange(9)[::-1], np.full(9, 4)])
    _, by_chain, _ = release(beta, gamma, cells, 4, released)
    counts = np.arange(K + 1)
    for cell in range(9):
        log_rate = (beta[cell] + gamma[cell])[:, None]
        weights = np.exp(smoothed((counts - cells.y[cell]) * log_rate, int(cells.y[cell])))
        pmf = np.exp(counts * log_rate - LOG_FACTORIAL)
        pmf /= pmf.sum(axis=1, keepdims=True)
        for chain in range(4):
            part = slice(25 * chain, 25 * (chain + 1))
            m = weights[part].T @ pmf[part] / weights[part].sum(axis=0)[:, None]
            log_m = np.log(m)[:, released[:, cell]].sum(axis=1)
            np.testing.assert_allclose(by_chain[chain, cell], log_m, rtol=1e-9)


def test_one_chain_is_the_pooled_likelihood_and_data_sets_multiply(posterior):
    # eq. (5): independent data sets multiply; a sum or a mean would misjudge several releases
    beta, gamma, cells = posterior
    released = np.stack([np.arange(9)[::-1], np.full(9, 4), np.full(9, 0)])
    m, by_chain, _ = release(beta, gamma, cells, 1, released)
    likelihood = target.likelihood_of_release(m, released)
    product = np.ones((9, 9))
    for k in released:
        product *= m[np.arange(9), :, k]
    np.testing.assert_allclose(np.exp(likelihood), product, rtol=1e-10)
    np.testing.assert_allclose(by_chain[0], likelihood, rtol=1e-10)


def test_pooled_m_is_that_of_all_draws(posterior):
    # else pooling averages the chains' M instead of pooling their weights
    beta, gamma, cells = posterior
    m, _, _ = release(beta, gamma, cells, 4, np.zeros((1, 9), np.int64))
    for cell in range(9):
        np.testing.assert_allclose(
            m[cell], np.exp(brute_log_m(beta[cell] + gamma[cell], cells.y[cell])), rtol=1e-9
        )


def test_more_cells_than_one_batch_are_all_filled(posterior):
    # else cells beyond the first batch keep uninitialised memory
    beta, gamma, cells = posterior
    n = importance.CELLS_AT_A_TIME + 5
    place = np.arange(n) % 9
    many = cells._replace(
        y=cells.y[place], group=np.zeros(n, np.int64), origin=place, destination=place
    )
    beta, gamma = beta[:, :20].copy(), gamma[:, :20].copy()
    done = []
    few = release(beta, gamma, cells, 2, np.full((1, 9), 3))
    all_of_them = release(beta, gamma, many, 2, np.full((1, n), 3), advance=done.append)
    np.testing.assert_array_equal(all_of_them[0], few[0][place])
    np.testing.assert_array_equal(all_of_them[1], few[1][:, place])
    np.testing.assert_array_equal(all_of_them[2], few[2][place])
    assert sum(done) == n


# ---- rho -------------------------------------------------------------------------------------


def test_rho_is_bayes_rule_and_sums_to_one():
    rng = np.random.default_rng(7)
    likelihood, prior = rng.uniform(0.01, 1, (5, 4)), np.array([0.1, 0.0, 0.4, 0.5])
    rho = target.posterior_of_counts(np.log(likelihood), prior)
    exact = likelihood * prior / (likelihood * prior).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rho, exact, rtol=1e-12)
    assert (rho[:, 1] == 0).all()


def test_rho_survives_likelihoods_below_the_smallest_double():
    # else many data sets together give 0 / 0
    rho = target.posterior_of_counts(np.array([[-2000.0, -2001.0]]), np.array([0.5, 0.5]))
    np.testing.assert_allclose(rho, [[1 / (1 + np.exp(-1)), 1 / (1 + np.e)]], rtol=1e-12)


def test_tied_counts_are_no_guess():
    # else a tie counts as found, and a release that tells nothing looks risky
    third = 1 / 3
    rho = np.array([[third, third, third], [0.1, 0.45, 0.45], [0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
    rho[1, 2] *= 1 + 1e-15  # equal up to rounding
    assert target.best_guess(rho).tolist() == [-1, -1, 2, 1]
    assert target.best_guess(np.array([[0.5, 0.5 + 1e-9]])).tolist() == [1]


# ---- Pareto k-hat ----------------------------------------------------------------------------


def largest(log_weights: np.ndarray, tail: int) -> np.ndarray:
    return np.sort(log_weights)[-(tail + 1) :]


@pytest.mark.parametrize("n_draws", [200, 225, 400, 1600, 2500])
@pytest.mark.parametrize("shape", [0.1, 0.5, 0.7, 1.2])
def test_khat_equals_arviz(shape, n_draws):
    # else the verdict on the weights is not the published diagnostic; at these numbers of draws
    # the tail length is whole (3 sqrt(S) or S / 5), so rounding up as here or down as arviz does
    # makes no difference
    rng = np.random.default_rng(n_draws)
    log_weights = np.log(rng.pareto(1 / shape, n_draws) + 1)
    tail = pareto.tail_length(n_draws)
    # psislw takes log-likelihoods: it smooths their negative
    _, khat = array_stats.psislw(-log_weights)
    assert pareto.pareto_khat(largest(log_weights, tail)) == pytest.approx(float(khat), abs=1e-10)


def test_khat_of_any_tail_length_equals_arviz():
    # with arviz's own length passed in (it rounds down), the fit must agree for any S
    rng = np.random.default_rng(9)
    for n_draws in (137, 501, 999, 4000):
        log_weights = 2.0 * rng.standard_t(3, n_draws)
        tail = math.floor(3 * n_draws**0.5 if n_draws > 225 else n_draws / 5)
        _, khat = array_stats.psislw(-log_weights)
        ours = pareto.pareto_khat(largest(log_weights, tail))
        assert ours == pytest.approx(float(khat), abs=1e-10), n_draws


@pytest.mark.parametrize(("power", "end"), [(5, "largest"), (-3, "smallest")])
def test_khat_of_a_candidate_is_of_the_end_that_weighs_most(power, end):
    # candidates below the true count weigh small rates: the wrong end would look harmless
    rng = np.random.default_rng(10)
    y = 0 if power > 0 else 3
    log_rate = rng.normal(0, 0.4, (1, 400))
    _, _, khat = release(
        log_rate, np.zeros((1, 400)), cells_of(np.array([y])), 2, np.zeros((1, 1), np.int64)
    )
    _, expected = array_stats.psislw(-power * log_rate[0])
    assert khat[0, y + power] == pytest.approx(float(expected), abs=1e-10), end
    assert khat[0, y] == -np.inf  # the true count's weights are all equal


def test_tail_length_is_that_of_vehtari_and_others():
    assert [pareto.tail_length(s) for s in (4000, 400, 100, 7, 2)] == [190, 60, 20, 2, 1]
    for s in range(2, 2000):
        assert 1 <= pareto.tail_length(s) <= s - 1


def test_threshold_falls_with_few_draws():
    # else short runs are trusted too far
    assert pareto.khat_threshold(10_000) == 0.7
    assert pareto.khat_threshold(1000) == pytest.approx(2 / 3, rel=1e-12)
    assert pareto.khat_threshold(10) == 0.0
    assert pareto.khat_threshold(2) == 0.0


LOG_WEIGHTS = st.lists(
    st.floats(-2500, 2500, allow_nan=False, allow_subnormal=False), min_size=1, max_size=60
)


@given(LOG_WEIGHTS)
def test_khat_is_never_nan(weights):
    # nan is not above the threshold, so an unreliable cell would pass
    assert not math.isnan(pareto.pareto_khat(np.sort(np.array(weights))))


@given(st.lists(st.sampled_from([-800.0, -745.0, -709.0, -1.0, 0.0]), min_size=6, max_size=40))
def test_khat_is_never_nan_for_ties_and_underflow(weights):
    # weights between 1e-308 and 5e-324 of the largest have lost their digits
    assert not math.isnan(pareto.pareto_khat(np.sort(np.array(weights))))


@given(st.floats(-1e4, 1e4), st.integers(2, 50))
def test_equal_weights_are_perfect(value, n):
    assert pareto.pareto_khat(np.full(n, value)) == -np.inf


@given(st.integers(10, 200), st.floats(50.0, 700.0), st.integers(0, 10**6))
def test_one_weight_above_all_others_is_unreliable(n, above, seed):
    # one draw then decides the cell
    log_weights = np.sort(np.random.default_rng(seed).normal(size=n))
    log_weights[-1] += above
    assert pareto.pareto_khat(log_weights) > 0.7


@given(st.integers(6, 200), st.floats(-500.0, 500.0), st.integers(0, 10**6))
def test_khat_does_not_depend_on_the_scale_of_the_weights(n, constant, seed):
    log_weights = np.sort(np.random.default_rng(seed).standard_t(3, n))
    assert pareto.pareto_khat(log_weights + constant) == pytest.approx(
        pareto.pareto_khat(log_weights), abs=1e-8
    )


def test_rates_that_differ_by_hundreds_of_decades_are_judged():
    # the paper's prior lets the rates of a tiny group run that far; no cell may stop the others
    rng = np.random.default_rng(0)
    log_rate = rng.normal(0, 50, (20, 4000))
    _, _, khat = release(
        log_rate,
        np.zeros((20, 4000)),
        cells_of(np.zeros(20)),
        4,
        np.zeros((1, 20), np.int64),
    )
    assert not np.isnan(khat).any()
    assert (khat[:, 0] == -np.inf).all()
    assert (khat[:, 8] > 0.7).all()


LOG_WEIGHT = st.one_of(
    st.sampled_from([-np.inf, -2500.0, -745.0, -708.4, 0.0, 1e-13, 709.0, 2500.0, np.inf]),
    st.floats(-700.0, 700.0),
)


@given(st.lists(LOG_WEIGHT, max_size=120))
def test_any_weights_give_a_khat_and_stay_weights(weights):
    # a candidate that no draw reaches stopped the whole table with a division by zero
    log_weights = np.array(weights)
    assert not math.isnan(pareto.pareto_khat(np.sort(log_weights)))
    smoothed = log_weights.copy()
    assert not math.isnan(pareto.smooth(smoothed))
    assert not np.isnan(smoothed).any()
    assert (smoothed <= log_weights.max(initial=-np.inf)).all()
    with np.errstate(over="ignore"):
        khat = pareto.khat_of_weights(np.exp(log_weights)[None, None])
    assert not np.isnan(khat).any()


@given(st.integers(0, 300))
def test_weights_of_zero_are_undefined_not_perfect(n):
    # they are all equal too, and would count as the best there are
    log_weights = np.full(n, -np.inf)
    assert pareto.pareto_khat(log_weights) == np.inf
    assert pareto.smooth(log_weights) == np.inf
    assert pareto.khat_of_weights(np.zeros((1, 1, n))).item() == np.inf


@example(n=2, position=0, weight=5e-324)
@given(st.integers(1, 300), st.integers(0, 299), st.floats(0.0, 1e150))
def test_one_draw_that_has_all_the_weight_cannot_be_relied_on(n, position, weight):
    weights = np.zeros((1, 1, n))
    weights[0, 0, position % n] = weight
    assert pareto.khat_of_weights(weights).item() == np.inf


@given(st.integers(1, 300), st.integers(0, 299), st.sampled_from([np.nan, np.inf]))
def test_weight_that_is_no_number_is_not_dropped_from_sight(n, position, wrong):
    weights = np.ones((1, 1, n))
    weights[0, 0, position % n] = wrong
    assert pareto.khat_of_weights(weights).item() == np.inf
    assert pareto.smooth(np.log(weights[0, 0])) == np.inf


def test_excesses_of_hundreds_of_decades_are_judged():
    # their product left double precision, and its logarithm was no number
    log_weights = np.concatenate([np.linspace(-2500.0, -650.0, 14), np.linspace(-600.0, 770.0, 10)])
    assert pareto.pareto_khat(log_weights) > 0.7


def test_too_few_weights_cannot_be_judged():
    # else a handful of draws would be called reliable
    assert pareto.pareto_khat(np.array([0.0, 1.0, 2.0, 3.0, 4.0])) == np.inf
    assert np.isfinite(pareto.pareto_khat(np.array([0.0, 1.0, 2.0, 3.0, 4.0, 4.5])))


@given(
    st.lists(st.sampled_from([-3.0, 0.0, 1.0, 2.5]) | st.floats(-50, 50), min_size=2, max_size=900),
    st.integers(1, 300),
)
def test_largest_values_are_those_of_a_full_sort(values, n):
    # the guessed bound may miss: ties, values in order, a sample that is not typical
    values, n = np.array(values), min(n, len(values))
    np.testing.assert_array_equal(pareto.largest_values(values, n), np.sort(values)[-n:])
    ordered = np.sort(values)
    np.testing.assert_array_equal(pareto.largest_values(ordered, n), ordered[-n:])
