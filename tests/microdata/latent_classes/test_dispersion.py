"""The second stage against sums over whole tables, which only small ones allow."""

import numpy as np
import pytest
from scipy.stats import nbinom

from bayes_sdc.microdata.latent_classes import dispersion as d
from bayes_sdc.microdata.latent_classes.prediction import (
    expected_unequal_uniques,
    expected_unseen_uniques,
    mean_inverse,
)
from bayes_sdc.microdata.latent_classes.unseen import NO_RULES, draw_unseen, index_rows

N = 300


def table(seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw phi and eta of a table of 6 x 8 cells, g of all cells, and a sample."""
    rng = np.random.default_rng(seed)
    eta = rng.dirichlet(np.ones(3))
    phi = np.concatenate([rng.dirichlet(np.full(k, 0.7), 3).T for k in (6, 8)])
    g = np.einsum("h,ah,bh->ab", eta, phi[:6], phi[6:]).ravel()
    mean = g * rng.gamma(0.8, 1 / 0.8, g.shape)
    return eta, phi, g, rng.poisson(N * mean)


def by_hand(f: np.ndarray, g: np.ndarray, log_r: float, kappa: float) -> float:
    """Log-probability of all cells, seen or not; without the factorials."""
    from scipy.special import gammaln

    mean = N * g
    shape = np.exp(log_r) * mean**kappa
    return float((nbinom.logpmf(f, shape, shape / (shape + mean)) + gammaln(f + 1)).sum())


def unseen_exactly(f: np.ndarray, g: np.ndarray, cells: int = 3_000_000) -> np.ndarray:
    """Log(n g) of what the base draws of unseen cells, in the right shares but for rounding."""
    empty = g[f == 0]
    return np.repeat(np.log(N * empty), np.round(cells * empty).astype(int))


POINTS = [(-2.5, 0.0), (0.0, 0.3), (1.0, 1.0), (4.9, 0.5)]


@pytest.mark.parametrize(("log_r", "kappa"), POINTS)
def test_the_sum_over_unseen_cells_is_the_full_sum(log_r: float, kappa: float) -> None:
    """The unseen part comes from draws, the rest through nodes: both must be the plain sum."""
    _, _, g, f = table()
    seen = f > 0
    unseen = unseen_exactly(f, g)
    terms = d.collect(f[seen], np.log(N * g[seen]), unseen, N * g[~seen].sum() / len(unseen))
    found = d.log_likelihood(terms, log_r, kappa)
    assert found == pytest.approx(by_hand(f, g, log_r, kappa), abs=1e-3)


def test_without_scatter_is_the_limit() -> None:
    _, _, g, f = table()
    seen = f > 0
    terms = d.collect(f[seen], np.log(N * g[seen]), np.log(N * g[~seen]), 0.1)
    assert d.log_likelihood_without(terms) == pytest.approx(
        d.log_likelihood(terms, 25.0, 0.0), abs=1e-5
    )


def test_drawn_unseen_cells_have_the_right_mean() -> None:
    """Draws that miss the occupied cells, each for n / S records: any sum over unseen cells."""
    eta, phi, g, f = table()
    start = np.array([0, 6, 14])
    every = np.array([[a, 6 + b] for a in range(6) for b in range(8)], dtype=np.int32)
    rows = np.ascontiguousarray(every[f > 0])
    rng = np.random.default_rng(2)
    drawn, _, possible = draw_unseen(
        rng, 400_000, start, rows, index_rows(rows), eta, phi, NO_RULES
    )
    assert possible == 400_000
    empty = g[f == 0]
    assert len(drawn) / 400_000 == pytest.approx(empty.sum(), rel=0.02)
    assert np.isin(drawn.round(14), empty.round(14)).all()
    for h in (np.sqrt, np.square):
        assert (h(drawn) / drawn).mean() * len(drawn) / 400_000 == pytest.approx(
            h(empty).sum(), rel=0.02
        )


def test_large_frequencies_are_taken_one_by_one_and_exactly() -> None:
    g = np.array([0.6, 0.3, 0.1])
    f = np.array([180, 95, 33])
    terms = d.collect(f, np.log(N * g), np.empty(0), 1.0)
    for log_r, kappa in POINTS:
        assert d.log_likelihood(terms, log_r, kappa) == pytest.approx(by_hand(f, g, log_r, kappa))


@pytest.mark.parametrize("shape", [0.3, 5.0, 9.99e3, 1.01e4, 1e9])
def test_rising_factorials(shape: float) -> None:
    from mpmath import log, mpf

    exact = sum(log(1 + mpf(i) / mpf(shape)) for i in range(120))
    assert d.log_rising(shape, 120.0) == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("members", [0.2, 1.0, 300.0])
@pytest.mark.parametrize("pull", [0.0, 2.0])
def test_the_grid_has_the_moments_of_a_much_finer_one(members: float, pull: float) -> None:
    """A coarse grid would miss a narrow ridge, or widen it; ``members`` makes it narrow."""
    _, _, g, f = table()
    seen = f > 0
    terms = d.collect(f[seen], np.log(N * g[seen]), np.log(N * g[~seen]), 0.5)
    terms = terms._replace(
        seen=terms.seen * members,
        members=terms.members * members,
        steps=terms.steps * members,
        unseen=terms.unseen * members,
        t=np.empty(0),
        f=np.empty(0),
    )
    weights, box, slope = d.posterior_grid(terms, -1.0, pull)
    rng = np.random.default_rng(3)
    drawn = np.array([d.draw_scatter(rng, weights, box, slope) for _ in range(20_000)])
    fine = d.evaluate(terms, np.array([0.0, 1.0, -3.0, 5.0]), 0.0, 600, -1.0, pull)
    fine = np.exp(fine - fine.max())
    fine /= fine.sum()
    kappa = (np.arange(600) + 0.5) / 600
    log_r = -3.0 + 8.0 * kappa
    for column, marginal, place in ((1, fine.sum(axis=1), kappa), (0, fine.sum(axis=0), log_r)):
        mean = marginal @ place
        sd = np.sqrt(marginal @ (place - mean) ** 2)
        assert drawn[:, column].mean() == pytest.approx(mean, abs=0.04 * sd)
        assert drawn[:, column].std() == pytest.approx(sd, rel=0.05)


@pytest.mark.parametrize(("shape", "ng", "times"), [(0.2, 0.1, 50), (3.0, 2.0, 5), (50, 1, 100)])
def test_predictions_are_those_of_the_negative_binomial(
    shape: float, ng: float, times: float
) -> None:
    q = (shape + ng) / (shape + ng * times)
    rest = np.arange(400_000)
    exact = (nbinom.pmf(rest, shape + 1.0, q) / (1.0 + rest)).sum()
    assert mean_inverse(q, shape) == pytest.approx(exact, rel=1e-6)
    assert q ** (shape + 1.0) == pytest.approx(nbinom.pmf(0, shape + 1.0, q))
    assert mean_inverse(1.0, shape) == 1.0


def test_unseen_population_uniques_are_the_full_sum() -> None:
    _, _, g, f = table()
    empty = g[f == 0]
    unseen = unseen_exactly(f, g)
    terms = d.collect(f[f > 0], np.log(N * g[f > 0]), unseen, N * empty.sum() / len(unseen))
    times, log_r, kappa = 20.0, 0.5, 0.4
    mean = N * empty
    shape = np.exp(log_r) * mean**kappa
    exact = nbinom.pmf(1, shape, (shape + mean) / (shape + times * mean)).sum()
    assert expected_unseen_uniques(terms, times, log_r, kappa) == pytest.approx(exact, rel=1e-4)


def test_unseen_population_uniques_count_with_their_own_weights() -> None:
    """Strata by one key: a cell that is sampled at a tenth of the rate stands for more people."""
    _, _, g, f = table()
    empty = g[f == 0]
    times = np.where(np.arange(len(empty)) % 2 == 0, 5.0, 50.0)
    copies = np.round(3_000_000 * empty).astype(int)
    unseen, theirs = np.repeat(np.log(N * empty), copies), np.repeat(times, copies)
    log_r, kappa = 0.5, 0.4
    mean = N * empty
    shape = np.exp(log_r) * mean**kappa
    exact = nbinom.pmf(1, shape, (shape + mean) / (shape + times * mean)).sum()
    weight = N * empty.sum() / len(unseen)
    found = expected_unequal_uniques(unseen, theirs, weight, log_r, kappa)
    assert found == pytest.approx(exact, rel=1e-4)
