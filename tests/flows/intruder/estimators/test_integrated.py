"""Integrated release probabilities: against closed forms, plain quadrature, and exact refits."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.integrate import quad_vec
from scipy.special import gammaln
from scipy.stats import norm

from bayes_sdc import FlowTable, fit_flows, read_flows, synthesize
from bayes_sdc.flows.intruder.estimators import importance, integrated
from bayes_sdc.flows.intruder.estimators.refit import refit
from bayes_sdc.flows.intruder.probabilities.bayes import unreliable_cells
from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.table.cells import CANONICAL, fitted_cells, small_cells

NAMES = {"origin": "o", "destination": "d", "count": "n"}
COUNTS = np.arange(9)


def probabilities(log_rate: np.ndarray, kappa: float, canonical: bool = False) -> np.ndarray:
    """Table of the counts 0..8 at each log rate: (..., count)."""
    log_rate = np.asarray(log_rate, dtype=float)[..., None]
    step = log_rate - (0.0 if canonical else np.log1p(kappa * np.exp(log_rate)))
    product = np.concatenate([[0.0], np.cumsum(np.log1p(kappa * COUNTS[:-1]))])
    log_p = COUNTS * step + product - gammaln(COUNTS + 1.0)
    p = np.exp(log_p - log_p.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def posterior_of(table: FlowTable, family: str = "default", **values: np.ndarray) -> xr.DataTree:
    """A posterior of one group with the given draws in one chain; the rest like a fit's."""
    draws = len(values["alpha"])
    posterior = fit_flows(table, family=family, draws=draws, tune=1, chains=1, seed=1)
    for name, array in values.items():
        posterior["posterior"][name].values[0] = np.asarray(array).reshape(
            posterior["posterior"][name].values[0].shape
        )
    return posterior


def estimate(table: FlowTable, posterior: xr.DataTree) -> integrated.ReleaseProbabilities:
    cells = small_cells(table, canonical=posterior.attrs["family"] in CANONICAL)
    return integrated.release_probabilities(posterior, cells, np.zeros((1, len(cells.y)), int))


@pytest.mark.parametrize("kappa", [1e-12, 0.7, 5.0])
@pytest.mark.parametrize(("mean", "sd_b", "sd_g"), [(0.3, 0.5, 0.8), (-2.0, 0.05, 2.0), (3, 1, 1)])
@pytest.mark.parametrize("family", ["negative-binomial", "canonical"])
def test_one_cell_with_known_hyperparameters_is_a_normal_integral(family, kappa, mean, sd_b, sd_g):
    """With one origin and one destination, eta is normal and M a ratio of two integrals."""
    table = read_flows(pd.DataFrame({"o": ["a"], "d": ["b"], "n": [4]}), **NAMES)
    posterior = posterior_of(
        table,
        family,
        alpha=[mean] * 4,
        mu_beta=[mean / 2] * 4,
        mu_gamma=[mean / 2] * 4,
        phi_beta=[sd_b**-2] * 4,
        phi_gamma=[sd_g**-2] * 4,
        r=[1 / kappa] * 4,
        beta=[mean / 2 + sd_b] * 4,
        gamma=[mean / 2 - sd_g] * 4,
    )
    found = estimate(table, posterior)
    eta = norm(mean, np.hypot(sd_b, sd_g))
    ends = eta.ppf([1e-12, 1 - 1e-12])

    def integrand(e: float) -> np.ndarray:
        p = probabilities(e, kappa, family == "canonical")
        return eta.pdf(e) * np.vstack([p, np.outer(p, p)])

    z, *both = quad_vec(integrand, *ends, epsabs=1e-12, limit=200)[0]
    exact = np.array(both) / z[:, None]
    # the grid cuts off a millionth of the density's height; by the canonical link P(y) has poles
    # at 0.55 beside the real axis where kappa is 5, and the trapezoidal rule misses more
    atol = 1e-4 if family == "canonical" and kappa > 1.0 else 2e-5
    np.testing.assert_allclose(found.m[0], exact, atol=atol)
    np.testing.assert_allclose(found.prediction[0], z, atol=atol)
    np.testing.assert_allclose(found.ess, 4.0, rtol=1e-9)


@pytest.mark.parametrize("kappa", [1e-12, 1.5])
def test_each_draw_integrates_both_effects_given_the_other_cells(kappa):
    """Plain two-dimensional quadrature of every draw, weighted as the identity says."""
    frame = pd.DataFrame(
        {"o": ["a", "a", "a", "b", "b"], "d": ["x", "y", "z", "x", "y"], "n": [1, 4, 9, 2, 3]}
    )
    table = read_flows(frame, **NAMES)
    cells, rng = small_cells(table), np.random.default_rng(4)
    values = {
        "mu_beta": rng.normal(0.0, 0.3, 3),
        "mu_gamma": rng.normal(0.3, 0.3, 3),
        "phi_beta": rng.gamma(5.0, 0.3, 3),
        "phi_gamma": rng.gamma(5.0, 0.3, 3),
        "beta": rng.normal(0.0, 0.7, (3, 2)),
        "gamma": rng.normal(0.3, 0.7, (3, 3)),
        "r": np.full(3, 1 / kappa),
    }
    values["alpha"] = values["mu_beta"] + values["mu_gamma"]
    found = estimate(table, posterior_of(table, **values))
    top, bottom = np.zeros((9, 9)), np.zeros(9)
    t = 0  # a > x
    for s in range(3):
        beta, gamma = values["beta"][s], values["gamma"][s]

        def density(u, side, s=s, beta=beta, gamma=gamma):
            mean, phi = values[f"mu_{side}"][s], values[f"phi_{side}"][s]
            result = norm.pdf(u, mean, phi**-0.5)
            mine, other = (cells.origin, gamma[cells.destination])
            if side == "gamma":
                mine, other = (cells.destination, beta[cells.origin])
            for c in np.flatnonzero(mine == mine[t]):
                if c != t:
                    result = result * probabilities(u + other[c], kappa)[..., cells.y[c]]
            return result

        grid = np.linspace(-7.0, 7.0, 561)
        weights = np.outer(density(grid, "beta"), density(grid, "gamma"))
        weights /= weights.sum()
        p = probabilities(grid[:, None] + grid[None, :], kappa)
        z = np.einsum("ab,aby->y", weights, p)
        a = np.einsum("ab,aby,abk->yk", weights, p, p)
        top += a / z[cells.y[t]]
        bottom += z / z[cells.y[t]]
    np.testing.assert_allclose(found.m[t], top / bottom[:, None], atol=2e-5)
    np.testing.assert_allclose(found.prediction[t], bottom / bottom.sum(), atol=2e-5)


def test_negative_binomial_with_two_modes_is_integrated_over_both():
    """A count at the upper bound with large kappa is flat to the right: the prior ends it."""
    frame = pd.DataFrame({"o": ["a", "a"], "d": ["x", "y"], "n": [2, 9]})
    table, kappa = read_flows(frame, **NAMES), 20.0
    posterior = posterior_of(
        table,
        alpha=[-1.0, -1.0], mu_beta=[-1.0, -1.0], mu_gamma=[0.0, 0.0],
        phi_beta=[1 / 9, 1 / 9], phi_gamma=[4.0, 4.0],
        r=[1 / kappa, 1 / kappa], beta=[-1.0, 2.0], gamma=[[0.0, 0.3], [0.0, 0.3]],
    )  # fmt: skip
    found = estimate(table, posterior)

    nodes, weights = np.polynomial.legendre.leggauss(400)
    g = 3.0 * nodes  # six standard deviations

    def along(b: float) -> np.ndarray:
        p = probabilities(b + g, kappa)
        density = 3.0 * weights * norm.pdf(g, 0.0, 0.5) * norm.pdf(b, -1.0, 3.0)
        of_target = density * probabilities(b + 0.3, kappa)[8] * p[:, 5]
        return np.array([of_target.sum(), *(of_target @ p)])

    z, *both = quad_vec(along, -18.0, 16.0, epsabs=1e-10)[0]
    np.testing.assert_allclose(found.m[0, 5], np.array(both) / z, atol=3e-5)


@pytest.mark.parametrize("family", ["poisson", "negative-binomial", "canonical"])
def test_wide_range_of_counts_gives_probabilities(family):
    """Powers of the rate times factorials leave double precision long before 150 counts."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame([(i, j) for i in "abcd" for j in "wxyz"], columns=["o", "d"])
    frame["n"] = rng.poisson(60.0, 16)
    table = read_flows(frame, **NAMES, low=0, high=150)
    found = estimate(table, fit_flows(table, family=family, draws=30, tune=60, chains=2, seed=1))
    np.testing.assert_allclose(found.m.sum(axis=2), 1.0, rtol=1e-6)
    assert np.isfinite(found.prediction).all()
    assert (found.m >= 0.0).all()


@pytest.mark.parametrize(("mean", "sd_b", "sd_g"), [(-5.0, 0.8, 0.01), (-6.0, 1.0, 0.01)])
def test_tail_that_a_far_candidate_needs_is_not_cut(mean, sd_b, sd_g):
    """A count of 9 at a rate near 0 is in the tail of the density, many deviations away."""
    table = read_flows(pd.DataFrame({"o": ["a"], "d": ["b"], "n": [1]}), **NAMES)
    posterior = posterior_of(
        table, alpha=[mean] * 4, mu_beta=[mean] * 4, mu_gamma=[0.0] * 4,
        phi_beta=[sd_b**-2] * 4, phi_gamma=[sd_g**-2] * 4, r=[1e12] * 4,
        beta=[mean] * 4, gamma=[0.0] * 4,
    )  # fmt: skip
    eta = np.linspace(mean - 9.0, mean + 14.0, 40001)
    p = probabilities(eta, 1e-12)
    weight = norm.pdf(eta, mean, np.hypot(sd_b, sd_g))
    z, a = weight @ p, p.T @ (weight[:, None] * p)
    np.testing.assert_allclose(estimate(table, posterior).m[0], a / z[:, None], atol=1e-4)


def test_precision_that_underflowed_is_flagged_not_believed():
    """The paper's prior draws precisions of 0; such a draw must not spoil the others unseen."""
    table = read_flows(pd.DataFrame({"o": ["a"], "d": ["b"], "n": [4]}), **NAMES)
    posterior = posterior_of(
        table, alpha=[0.0] * 4, mu_beta=[0.0] * 4, mu_gamma=[0.0] * 4,
        phi_beta=[1.0, 1.0, 0.0, 1.0], phi_gamma=[1.0] * 4, r=[1.0] * 4,
        beta=[0.0] * 4, gamma=[0.0] * 4,
    )  # fmt: skip
    assert np.isposinf(estimate(table, posterior).khat).all()


@pytest.fixture(scope="module")
def table() -> FlowTable:
    rng = np.random.default_rng(3)
    names = "abcde"
    frame = pd.DataFrame([(i, j) for i in names for j in names if i != j], columns=["o", "d"])
    frame["n"] = rng.choice(np.arange(1, 10), len(frame), p=np.arange(9, 0, -1) / 45)
    return read_flows(frame, **NAMES)


@pytest.mark.parametrize("family", ["poisson", "negative-binomial", "canonical"])
@pytest.mark.parametrize("prior", ["paper", "weak", "pooled"])
@pytest.mark.parametrize("count", [1, 9])
def test_effects_that_run_away_are_no_place_in_memory(family, prior, count):
    # all counts at a bound: under the paper's prior the two sides go to infinity and cancel, and
    # the grid of one of them began where no index reaches, and wrote there
    rows = [(f"o{i}", f"d{j}", count) for i in range(4) for j in range(4)]
    table = read_flows(
        pd.DataFrame(rows, columns=list("odn")), origin="o", destination="d", count="n"
    )
    call = {"family": family, "prior": prior, "draws": 150, "tune": 150, "chains": 2, "seed": 1}
    posterior = fit_flows(table, **call)
    cells = fitted_cells(table, posterior)
    released = released_counts(table, synthesize(table, posterior, seed=1))
    m = integrated.release_probabilities(posterior, cells, released).m
    assert np.isfinite(m).all()
    assert ((m >= 0) & (m <= 1)).all()
    np.testing.assert_allclose(m.sum(axis=-1), 1.0, atol=1e-9)


def test_order_of_cells_and_threads_do_not_matter(table):
    """Else an index is applied to the wrong cell, or a sum depends on the schedule."""
    posterior = fit_flows(table, draws=40, tune=40, chains=2, seed=1)
    one, two = estimate(table, posterior), estimate(table, posterior)
    np.testing.assert_array_equal(one.m, two.m)
    rows = table.frame.sample(frac=1.0, random_state=2)
    shuffled = read_flows(rows, **NAMES)
    again = estimate(shuffled, fit_flows(shuffled, draws=40, tune=40, chains=2, seed=1))
    np.testing.assert_array_equal(one.m, again.m)


def test_blocks_of_cells_join_without_a_seam(table, monkeypatch):
    """Else a cell at the edge of a block misses a part of its destination."""
    posterior = fit_flows(table, draws=40, tune=40, chains=2, seed=1)
    whole = estimate(table, posterior)
    monkeypatch.setattr(integrated, "ROOM", 1)
    made, blocks = [], integrated.blocks

    def counted(*args: object, **kwargs: object) -> list[np.ndarray]:
        made.extend(blocks(*args, **kwargs))
        return made

    monkeypatch.setattr(integrated, "blocks", counted)
    parts = estimate(table, posterior)
    assert len(made) == table.n_small  # a block for each cell
    for name in ("m", "prediction", "by_chain", "khat", "ess"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


@pytest.mark.slow
def test_monte_carlo_error_is_the_spread_of_independent_fits(table):
    """Else cells that the draws leave open pass, or good ones are computed again for nothing."""
    found = [
        estimate(table, fit_flows(table, draws=250, tune=250, chains=2, seed=seed))
        for seed in range(10)
    ]
    spread = np.std([one.m for one in found], axis=0, ddof=1)
    said = np.sqrt(np.mean([np.square(one.error) for one in found], axis=0))
    # what is said is the largest of a row
    assert 0.7 < np.median(said / spread.max(axis=2)) < 1.4


def test_single_draw_has_an_unknown_error_not_none(table):
    posterior = fit_flows(table, draws=1, tune=5, chains=1, seed=1)
    found = estimate(table, posterior)
    assert np.isposinf(found.error).all()
    assert unreliable_cells(found.khat, found.threshold, found.error).all()


def test_cells_that_miss_are_computed_again_with_all_draws(table, monkeypatch):
    """Else a small table is judged by few draws while the rest of them lie idle."""
    posterior = fit_flows(table, draws=600, tune=100, chains=2, seed=1)
    whole = estimate(table, posterior)
    monkeypatch.setattr(integrated, "BUDGET", 0)
    monkeypatch.setattr(integrated, "LEAST", 200)
    again: list[np.ndarray] = []
    cells = small_cells(table)
    few = integrated.with_draws(
        posterior, cells, integrated.neighbours(cells), np.zeros((1, 20), int), np.arange(20), 100,
        1, lambda cells: None, again,
    )  # fmt: skip
    mixed, worse = estimate(table, posterior), np.concatenate(again)
    assert len(worse) > 0
    np.testing.assert_array_equal(
        np.sort(worse), np.flatnonzero(unreliable_cells(few.khat, few.threshold, few.error))
    )
    for name in ("m", "prediction", "khat", "ess", "error"):
        expected = getattr(few, name).copy()
        expected[worse] = getattr(whole, name)[worse]
        np.testing.assert_array_equal(getattr(mixed, name), expected, err_msg=name)
    np.testing.assert_array_equal(mixed.by_chain[:, worse], whole.by_chain[:, worse])
    assert mixed.threshold == whole.threshold


def test_what_no_draw_tells_has_no_effective_draws():
    """The weights are 0, and their effective number came out above any number of draws."""
    table = read_flows(pd.DataFrame({"o": ["a"], "d": ["b"], "n": [4]}), **NAMES)
    posterior = posterior_of(
        table, alpha=[0.0] * 4, mu_beta=[-5e4] * 4, mu_gamma=[0.0] * 4,
        phi_beta=[1e8] * 4, phi_gamma=[1e8] * 4, r=[1.0] * 4,
        beta=[-5e4] * 4, gamma=[0.0] * 4,
    )  # fmt: skip
    found = estimate(table, posterior)
    assert (found.ess == 0.0).all()
    assert np.isposinf(found.error).all()
    np.testing.assert_allclose(found.m, 1 / 9)


def check_against_refits(table: FlowTable, family: str, prior: str, targets: np.ndarray) -> None:
    """Every candidate and released count of the targets; the paper's estimator is no nearer.

    Neither can be told to be nearer than the refits' own error, which a small table is good to.
    """
    posterior = fit_flows(table, family=family, prior=prior, draws=1500, tune=500, chains=4, seed=1)
    cells = fitted_cells(table, posterior)
    released = released_counts(table, synthesize(table, posterior, seed=2))
    found = integrated.release_probabilities(posterior, cells, released)
    exact = refit(posterior, cells, targets, seed=5)
    error = np.abs(found.m[targets] - exact.m)
    assert (error - 4.0 * exact.error).max() < 0.01
    assert error.mean() < 0.005
    assert not (found.khat > found.threshold).any()
    paper = importance.release_probabilities(rates_by_draw(posterior), cells, 4, released)
    assert np.abs(paper.m[targets] - exact.m).mean() + exact.error.mean() > error.mean()


@pytest.mark.slow
def test_entries_are_those_of_exact_refits(table, monkeypatch):
    monkeypatch.setattr(
        "bayes_sdc.flows.intruder.estimators.refit.LONGEST", 2
    )  # within the errors it says
    check_against_refits(table, "negative-binomial", "pooled", np.array([7]))


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["pooled", "weak"])
@pytest.mark.parametrize("family", ["negative-binomial", "canonical", "poisson"])
def test_every_entry_is_that_of_an_exact_refit(table, family, prior):
    check_against_refits(table, family, prior, np.arange(20))


@pytest.mark.slow
def test_refit_is_a_fit_with_the_count_replaced(table):
    """Else the yardstick would be bent: a fresh fit of the changed table gives the same M."""
    posterior = fit_flows(table, draws=1000, tune=500, chains=4, seed=1)
    cells = small_cells(table)
    t, candidate = 3, 8 - int(cells.y[3])
    exact = refit(posterior, cells, np.array([t]), seed=5)
    frame = table.frame.copy()
    frame.loc[table.cells["row"].iloc[t], "n"] = candidate + 1
    changed = fit_flows(read_flows(frame, **NAMES), draws=3000, tune=1000, chains=4, seed=7)
    draws = changed["posterior"].to_dataset().stack(s=["chain", "draw"])
    rate = draws["beta"].values[cells.origin[t]] + draws["gamma"].values[cells.destination[t]]
    fresh = np.mean(
        [probabilities(e, 1 / r) for e, r in zip(rate, draws["r"].values[0], strict=True)], axis=0
    )
    z = (exact.m[0, candidate] - fresh) / np.hypot(exact.error[0, candidate], 0.003)
    assert np.abs(z).max() < 4.0
