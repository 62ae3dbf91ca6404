"""The Gibbs engine: its derivatives, the joint distribution it leaves alone, its labels."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import gamma as gamma_distribution
from scipy.stats import halfnorm, ks_2samp, kstest, multivariate_normal, norm

from bayes_sdc.flows.fit.chains import sample_chain
from bayes_sdc.flows.gibbs import engine, newton
from bayes_sdc.flows.gibbs.batch_terms import (
    LINK,
    ROWS,
    TERMS,
    WORK_ROWS,
    batch_terms,
    fill_coefficients,
)
from bayes_sdc.flows.gibbs.newton_step import log_newton_step, newton_step
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.gibbs.state import Data, make_work, refresh
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.hyperpriors import CV, LEVEL, SD_DESTINATION, SD_ORIGIN, priors
from bayes_sdc.flows.table.cells import SmallCells, thin

UPPER = 4
PRIORS = {
    "gamma": {"mu_sd": 0.8, "phi_shape": 3.0, "phi_rate": 2.0},
    "half-normal": {"mu_sd": 0.8, "sd_scale": 0.7},
    "negative-binomial": {"mu_sd": 0.8, "sd_scale": 0.7, "cv_scale": 0.9},
    "covariates": {"mu_sd": 0.8, "sd_scale": 0.7, "cv_scale": 0.9, "coefficient_sd": 0.6},
}


def many_groups(
    n_groups: int, n_origins: int = 3, n_destinations: int = 4, p: int = 0, of_areas: bool = False
) -> SmallCells:
    """Groups of one shape, every pair of areas a cell.

    With ``of_areas`` two thirds of the covariates are properties of origins or of destinations.
    """
    group = np.repeat(np.arange(n_groups), n_origins * n_destinations)
    i = np.tile(np.repeat(np.arange(n_origins), n_destinations), n_groups)
    j = np.tile(np.tile(np.arange(n_destinations), n_origins), n_groups)
    x = np.random.default_rng(1).normal(size=(len(group), p))
    if of_areas:
        x[:, ::3] = x[group * n_origins * n_destinations + i][:, ::3]
        x[:, 1::3] = x[group * n_origins * n_destinations + j][:, 1::3]
    return SmallCells(
        y=np.zeros(len(group), np.int64),
        group=group,
        origin=group * n_origins + i,
        destination=group * n_destinations + j,
        group_of_origin=np.repeat(np.arange(n_groups), n_origins),
        group_of_destination=np.repeat(np.arange(n_groups), n_destinations),
        x=x,
        z=np.empty((n_groups, 0)),
        upper=UPPER,
        covariates=[f"x{k}" for k in range(p)],
        group_covariates=[],
        cells=[],
        groups=[str(g) for g in range(n_groups)],
        origin_effects=[],
        destination_effects=[],
    )


def draw_prior(
    rng: np.random.Generator, cells: SmallCells, prior: dict[str, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Theta and deviations of every group from the prior, written from its definition."""
    n = len(cells.groups)
    theta = np.full((n, CV + 1 + cells.x.shape[1]), -np.inf)
    theta[:, LEVEL] = rng.normal(0.0, np.sqrt(2.0) * prior["mu_sd"], n)
    for column in (SD_ORIGIN, SD_DESTINATION):
        if "sd_scale" in prior:
            theta[:, column] = np.log(np.abs(rng.normal(0.0, prior["sd_scale"], n)))
        else:
            phi = rng.gamma(prior["phi_shape"], 1.0 / prior["phi_rate"], n)
            theta[:, column] = -0.5 * np.log(phi)
    if "cv_scale" in prior:
        theta[:, CV] = np.log(np.abs(rng.normal(0.0, prior["cv_scale"], n)))
    theta[:, CV + 1 :] = rng.normal(0.0, prior.get("coefficient_sd", 1.0), (n, cells.x.shape[1]))
    b = rng.normal(0.0, np.exp(theta[cells.group_of_origin, SD_ORIGIN]))
    g = rng.normal(0.0, np.exp(theta[cells.group_of_destination, SD_DESTINATION]))
    return theta, b, g


def draw_counts(
    rng: np.random.Generator, cells: SmallCells, theta: np.ndarray, b: np.ndarray, g: np.ndarray
) -> np.ndarray:
    log_rate = theta[cells.group, LEVEL] + b[cells.origin] + g[cells.destination]
    log_rate += (cells.x * theta[cells.group, CV + 1 :]).sum(axis=1)
    kappa = np.exp(2.0 * theta[:, CV])
    rungs = counts.ladder(kappa, UPPER, canonical=cells.canonical)
    return counts.draw(log_rate, cells.group, rungs, rng.random(len(log_rate)))


def surprise(cells: SmallCells, theta: np.ndarray, b: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Sum of each group's counts less its expectation given the parameters."""
    log_rate = theta[cells.group, LEVEL] + b[cells.origin] + g[cells.destination]
    log_rate += (cells.x * theta[cells.group, CV + 1 :]).sum(axis=1)
    kappa = np.exp(2.0 * theta[:, CV])
    rungs = counts.ladder(kappa, UPPER, canonical=cells.canonical)
    mean = counts.probabilities(log_rate, cells.group, rungs) @ np.arange(UPPER + 1.0)
    return np.bincount(cells.group, cells.y - mean)


def shuffled(data: Data) -> np.ndarray:
    """Destinations of other cells, of the same group: an index beyond it would corrupt memory."""
    rng, destination = np.random.default_rng(2), data.destination.copy()
    for start, stop in itertools.pairwise(data.cells_of_group):
        destination[start:stop] = rng.permutation(destination[start:stop])
    return destination


def geweke_p_values(
    prior: dict[str, float],
    *,
    p: int = 0,
    n_groups: int = 3000,
    sweeps: int = 25,
    of_areas: bool = False,
    canonical: bool = False,
    broken: str = "",
) -> list[float]:
    """Alternate the engine and new counts, from the joint prior: the prior must come back."""
    rng = np.random.default_rng(11)
    cells = many_groups(n_groups, p=p, of_areas=of_areas)._replace(canonical=canonical)
    theta, b, g = draw_prior(rng, cells, prior)
    columns = np.array([k for k in range(theta.shape[1]) if k != CV or "cv_scale" in prior])
    accepted = np.zeros((n_groups, 3))
    given = priors(prior, p)
    state = None
    for _ in range(sweeps):
        cells = cells._replace(y=draw_counts(rng, cells, theta, b, g))
        data = engine.prepare(cells)
        if broken == "destinations":  # effects that look at the cells of other destinations
            data = data._replace(destination=shuffled(data))
        if broken == "link":
            data = data._replace(canonical=not canonical)
        if broken == "covariates":  # of the area that comes next
            data = data._replace(x_origin=np.roll(data.x_origin, 1, axis=1))
        if state is None:
            state = engine.init(rng, data, "poisson" if "cv_scale" not in prior else "nb")
            state.theta[:], state.b[:], state.g[:] = theta, b, g
        refresh(data, state)
        newton.sweep(rng, columns, data, state, given, 0.0, accepted)
        theta, b, g = state.theta.copy(), state.b.copy(), state.g.copy()
    forward = draw_prior(rng, cells, prior)
    again = cells._replace(y=draw_counts(rng, cells, *forward))
    p_values = [
        # the counts and the parameters together, against a pair drawn forwards
        ks_2samp(surprise(cells, theta, b, g), surprise(again, *forward)).pvalue,
        kstest(theta[:, LEVEL], norm(0.0, np.sqrt(2.0) * prior["mu_sd"]).cdf).pvalue,
        kstest(b[::3] / np.exp(theta[:, SD_ORIGIN]), "norm").pvalue,
        kstest(g[::4] / np.exp(theta[:, SD_DESTINATION]), "norm").pvalue,
    ]
    for column in (SD_ORIGIN, SD_DESTINATION):
        if "sd_scale" in prior:
            cdf = halfnorm(scale=prior["sd_scale"]).cdf
            p_values.append(kstest(np.exp(theta[:, column]), cdf).pvalue)
        else:
            cdf = gamma_distribution(prior["phi_shape"], scale=1.0 / prior["phi_rate"]).cdf
            p_values.append(kstest(np.exp(-2.0 * theta[:, column]), cdf).pvalue)
    if "cv_scale" in prior:
        p_values.append(kstest(np.exp(theta[:, CV]), halfnorm(scale=prior["cv_scale"]).cdf).pvalue)
    for k in range(p):
        cdf = norm(0.0, prior["coefficient_sd"]).cdf
        p_values.append(kstest(theta[:, CV + 1 + k], cdf).pvalue)
    return p_values


@pytest.mark.parametrize("name", list(PRIORS))
def test_joint_distribution_is_left_invariant(name: str) -> None:
    """A wrong proposal density or Jacobian moves at least one marginal off its prior."""
    p_values = geweke_p_values(PRIORS[name], p=2 if name == "covariates" else 0)
    assert min(p_values) > 0.01 / len(p_values)


def test_joint_distribution_is_left_invariant_with_covariates_of_areas() -> None:
    p_values = geweke_p_values(PRIORS["covariates"], p=3, of_areas=True)
    assert min(p_values) > 0.01 / len(p_values)


def test_joint_distribution_is_left_invariant_with_the_canonical_link() -> None:
    p_values = geweke_p_values(PRIORS["covariates"], p=3, of_areas=True, canonical=True)
    assert min(p_values) > 0.01 / len(p_values)


@pytest.mark.parametrize("canonical", [True, False])
def test_engine_with_the_other_link_fails_the_same_test(canonical: bool) -> None:
    p_values = geweke_p_values(PRIORS["covariates"], p=2, canonical=canonical, broken="link")
    assert min(p_values) < 1e-6


@pytest.mark.parametrize(
    ("name", "p", "broken"), [("half-normal", 0, "destinations"), ("covariates", 3, "covariates")]
)
def test_engine_that_looks_at_the_wrong_cells_fails_the_same_test(
    name: str, p: int, broken: str
) -> None:
    assert min(geweke_p_values(PRIORS[name], p=p, of_areas=True, broken=broken)) < 1e-6


def log_pmf(
    log_rate: float, log_cv: float, upper: int = UPPER, canonical: bool = False
) -> np.ndarray:
    """Of 0..K, from the definition of the truncated negative binomial."""
    y = np.arange(upper + 1.0)
    if log_cv == -np.inf:
        terms = y * log_rate - gammaln(y + 1)
    else:
        r = np.exp(-2.0 * log_cv)
        terms = gammaln(y + r) - gammaln(y + 1) - gammaln(r)
        link = np.log(r) if canonical else np.logaddexp(log_rate, np.log(r))
        terms += y * (log_rate - link)
    return terms - logsumexp(terms)


def terms_of(
    y: np.ndarray, log_rate: np.ndarray, log_cv: float, upper: int = UPPER, canonical: bool = False
) -> np.ndarray:
    """What the engine carries of each cell, (cell, term)."""
    coefficients = np.zeros((ROWS, upper + 1))
    coefficients[LINK] = canonical
    terms, work = np.empty((TERMS, len(y))), np.empty((WORK_ROWS, len(y)))
    fill_coefficients(log_cv, coefficients)
    batch_terms(y, np.empty(0), log_rate, log_cv, coefficients, terms, work)
    return terms.T


@pytest.mark.parametrize("upper", [1, UPPER, 150])
@pytest.mark.parametrize("log_cv", [-np.inf, -1.5, 0.0, 1.0])
@pytest.mark.parametrize("log_rate", [-6.0, -0.3, 0.4, 2.0, 7.0])
@pytest.mark.parametrize("canonical", [False, True])
def test_terms_are_the_derivatives_and_their_variance(
    log_rate: float, log_cv: float, upper: int, canonical: bool
) -> None:
    """A wrong slope only slows the sampler down, so no posterior would show it."""
    y = np.arange(upper + 1.0)
    terms = terms_of(y, np.full(len(y), log_rate), log_cv, upper, canonical)
    h, size = 1e-5, float(upper) ** 2

    def log_p(rate: float, cv: float) -> np.ndarray:
        return log_pmf(rate, cv, upper, canonical)

    by_rate = (log_p(log_rate + h, log_cv) - log_p(log_rate - h, log_cv)) / (2 * h)
    pmf = np.exp(log_p(log_rate, log_cv))
    np.testing.assert_allclose(terms[:, 0], log_p(log_rate, log_cv), rtol=1e-10, atol=1e-12 * size)
    np.testing.assert_allclose(terms[:, 1], by_rate, rtol=1e-6, atol=1e-8 * size)
    np.testing.assert_allclose(terms[:, 2], pmf @ by_rate**2, rtol=1e-6, atol=1e-9 * size)
    if log_cv == -np.inf:
        assert (terms[:, 3:] == 0.0).all()
        return
    by_cv = (log_p(log_rate, log_cv + h) - log_p(log_rate, log_cv - h)) / (2 * h)
    np.testing.assert_allclose(terms[:, 3], by_cv, rtol=1e-5, atol=1e-7 * size)
    np.testing.assert_allclose(terms[:, 4], pmf @ by_cv**2, rtol=1e-5, atol=1e-8 * size)
    np.testing.assert_allclose(terms[:, 5], pmf @ (by_cv * by_rate), rtol=1e-5, atol=1e-8 * size)


@pytest.mark.parametrize("log_cv", [-2.0, -0.5, 0.5, 2.0])
def test_infinite_rate_has_the_probability_of_the_limit(log_cv: float) -> None:
    """Else a far-off rate is ever more probable, and a chain that gets there never returns."""
    y, r = np.arange(UPPER + 1.0), np.exp(-2.0 * log_cv)
    limit = gammaln(y + r) - gammaln(y + 1)
    limit -= logsumexp(limit)
    for log_rate in (100.0, 650.0, 705.0, 1e4, 1e300):
        terms = terms_of(y, np.full(len(y), log_rate), log_cv)
        np.testing.assert_allclose(terms[:, 0], limit, rtol=1e-9, atol=1e-9)
        assert np.isfinite(terms).all()


@pytest.mark.parametrize("canonical", [False, True])
@pytest.mark.parametrize("log_cv", [-np.inf, -0.3, 5.0])
def test_terms_of_a_cell_do_not_depend_on_its_neighbours(log_cv: float, canonical: bool) -> None:
    """Four cells are worked on at a time, and the last of a group with fewer."""
    rng = np.random.default_rng(1)
    y, log_rate = rng.integers(0, 9, 203).astype(float), rng.normal(0.0, 3.0, 203)
    log_rate[:8] = [-800.0, -50.0, -20.0, 0.0, 20.0, 100.0, 690.0, 710.0]
    terms = terms_of(y, log_rate, log_cv, 8, canonical)
    assert np.isfinite(terms).all()
    for c in range(203):
        alone = terms_of(y[c : c + 1], log_rate[c : c + 1], log_cv, 8, canonical)[0]
        np.testing.assert_allclose(terms[c], alone, rtol=1e-9, atol=1e-12)


def test_carried_terms_never_go_stale() -> None:
    """After many sweeps what is carried of each cell is what its parameters give."""
    rng, prior = np.random.default_rng(3), PRIORS["covariates"]
    cells = many_groups(6, p=2)
    cells = cells._replace(y=draw_counts(rng, cells, *draw_prior(rng, cells, prior)))
    data = engine.prepare(cells)
    state = engine.init(rng, data, "negative-binomial")
    accepted, columns = np.zeros((6, 3)), np.arange(CV + 3)
    for _ in range(100):
        newton.sweep(rng, columns, data, state, priors(prior, 2), 0.0, accepted)
    carried = state.log_rate.copy(), state.terms.copy()
    refresh(data, state)
    np.testing.assert_allclose(carried[0], state.log_rate, rtol=0, atol=1e-10)
    np.testing.assert_allclose(carried[1], state.terms, rtol=1e-8, atol=1e-9)


def test_newton_step_is_that_of_linear_algebra() -> None:
    """Substitution written out by hand must draw from the normal distribution it claims."""
    rng = np.random.default_rng(2)
    square = rng.normal(size=(5, 5))
    metric, slope = square @ square.T + np.eye(5), rng.normal(size=5)
    noise = np.random.default_rng(3).standard_normal(5)
    for size in (1.0, 0.3):
        move, log_q = newton_step(np.random.default_rng(3), slope, metric, size)
        root = np.linalg.cholesky(metric)
        pull = 1.0 - np.sqrt(1.0 - size**2)
        mean = pull * np.linalg.solve(metric, slope)
        np.testing.assert_allclose(move, mean + size * np.linalg.solve(root.T, noise), rtol=1e-6)
        density = multivariate_normal(mean, size**2 * np.linalg.inv(metric)).logpdf(move)
        constant = -2.5 * np.log(2 * np.pi) - 5 * np.log(size)
        np.testing.assert_allclose(log_q, density - constant, rtol=1e-6)
        np.testing.assert_allclose(log_newton_step(move, slope, metric, size), log_q, rtol=1e-6)


def test_empty_groups_and_effects_follow_the_prior() -> None:
    """Held-out cells leave groups without data: they must be drawn from the prior, not crash."""
    cells = many_groups(400)
    nothing = np.zeros(len(cells.y), dtype=bool)
    data = engine.prepare(thin(cells._replace(cells=[""] * len(cells.y)), nothing))
    sampling = Sampling("poisson", PRIORS["half-normal"], 30, 10, 1, 1, 1)
    chain = engine.MarkovChain(data, sampling, np.random.SeedSequence(1))
    alpha = sample_chain(chain, sampling).values["alpha"][-1]
    assert kstest(alpha, norm(0.0, np.sqrt(2.0) * 0.8).cdf).pvalue > 1e-3


def test_chain_leaves_the_upper_tail_of_an_effect() -> None:
    """Else an effect that got there stays for hundreds of sweeps, and R-hat says so at random."""
    groups = 500
    cells = many_groups(groups, 1, 4)._replace(y=np.full(4 * groups, 3))
    data, rng = engine.prepare(cells), np.random.default_rng(1)
    state = engine.init(rng, data, "negative-binomial")
    state.theta[:, [LEVEL, SD_ORIGIN, CV]] = 0.0, 0.0, np.log(0.3)
    state.g[:] = 0.0
    state.b[:] = 5.0  # below it lies more than 99 % of the distribution
    refresh(data, state)
    work = make_work(data, state)
    for _ in range(20):
        for g in range(groups):
            newton.move_effects(
                rng, g, g, g + 1, SD_ORIGIN, state.b, data.origin, data, state, work
            )
    assert np.mean(state.b > 3.0) < 0.05  # 0.92 with normal proposals
