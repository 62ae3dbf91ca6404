"""Samplers of the model with bounded steps: the joint distribution that they leave alone."""

import numpy as np
import pytest
from scipy.stats import halfnorm, ks_2samp, kstest, norm

from bayes_sdc.flows.gibbs import bounded_terms, engine, newton, reference
from bayes_sdc.flows.gibbs.state import refresh
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.hyperpriors import CV, LEVEL, SD_DESTINATION, SD_ORIGIN, priors
from bayes_sdc.flows.table.bound import Bound
from bayes_sdc.flows.table.cells import SmallCells

UPPER, ORIGINS, DESTINATIONS = 4, 3, 4
BOUND = Bound(0.8, (-0.7, -0.2, 0.1, -0.4))
PRIOR = {"mu_sd": 0.8, "sd_scale": 0.7, "cv_scale": 0.9}
Parameters = tuple[np.ndarray, np.ndarray, np.ndarray]


def many_groups(n_groups: int, bound: Bound | None = BOUND) -> SmallCells:
    """Groups of one shape, every pair of areas a cell."""
    group = np.repeat(np.arange(n_groups), ORIGINS * DESTINATIONS)
    i = np.tile(np.repeat(np.arange(ORIGINS), DESTINATIONS), n_groups)
    j = np.tile(np.tile(np.arange(DESTINATIONS), ORIGINS), n_groups)
    return SmallCells(
        y=np.zeros(len(group), np.int64),
        group=group,
        origin=group * ORIGINS + i,
        destination=group * DESTINATIONS + j,
        group_of_origin=np.repeat(np.arange(n_groups), ORIGINS),
        group_of_destination=np.repeat(np.arange(n_groups), DESTINATIONS),
        x=np.empty((len(group), 0)),
        z=np.empty((n_groups, 0)),
        upper=UPPER,
        covariates=[],
        group_covariates=[],
        cells=[],
        groups=[str(g) for g in range(n_groups)],
        origin_effects=[],
        destination_effects=[],
        bound=bound,
    )


def draw_prior(rng: np.random.Generator, cells: SmallCells) -> Parameters:
    """Theta and deviations of every group, written from the definition of the prior."""
    n = len(cells.groups)
    theta = np.empty((n, CV + 1))
    theta[:, LEVEL] = rng.normal(0.0, np.sqrt(2.0) * PRIOR["mu_sd"], n)
    for column in (SD_ORIGIN, SD_DESTINATION):
        theta[:, column] = np.log(np.abs(rng.normal(0.0, PRIOR["sd_scale"], n)))
    theta[:, CV] = np.log(np.abs(rng.normal(0.0, PRIOR["cv_scale"], n)))
    b = rng.normal(0.0, np.exp(theta[cells.group_of_origin, SD_ORIGIN]))
    g = rng.normal(0.0, np.exp(theta[cells.group_of_destination, SD_DESTINATION]))
    return theta, b, g


def draw_counts(rng: np.random.Generator, cells: SmallCells, at: Parameters) -> np.ndarray:
    theta, b, g = at
    log_rate = theta[cells.group, LEVEL] + b[cells.origin] + g[cells.destination]
    rungs = counts.ladder(np.exp(2.0 * theta[:, CV]), UPPER, BOUND)
    return counts.draw(log_rate, cells.group, rungs, rng.random(len(log_rate)))


def surprise(cells: SmallCells, at: Parameters) -> np.ndarray:
    """Sum of each group's counts less its expectation given the parameters."""
    theta, b, g = at
    log_rate = theta[cells.group, LEVEL] + b[cells.origin] + g[cells.destination]
    rungs = counts.ladder(np.exp(2.0 * theta[:, CV]), UPPER, BOUND)
    mean = counts.probabilities(log_rate, cells.group, rungs) @ np.arange(UPPER + 1.0)
    return np.bincount(cells.group, cells.y - mean)


def judged(rng: np.random.Generator, cells: SmallCells, at: Parameters) -> list[float]:
    """P-values of the marginals against the prior, and of counts and parameters together."""
    theta, b, g = at
    forward = draw_prior(rng, cells)
    again = cells._replace(y=draw_counts(rng, cells, forward))
    scale = halfnorm(scale=PRIOR["sd_scale"]).cdf
    level = norm(0.0, np.sqrt(2.0) * PRIOR["mu_sd"]).cdf
    return [
        ks_2samp(surprise(cells, at), surprise(again, forward)).pvalue,
        kstest(theta[:, LEVEL], level).pvalue,
        kstest(np.exp(theta[:, SD_ORIGIN]), scale).pvalue,
        kstest(np.exp(theta[:, SD_DESTINATION]), scale).pvalue,
        kstest(np.exp(theta[:, CV]), halfnorm(scale=PRIOR["cv_scale"]).cdf).pvalue,
        kstest(b[::ORIGINS] / np.exp(theta[:, SD_ORIGIN]), "norm").pvalue,
        kstest(g[::DESTINATIONS] / np.exp(theta[:, SD_DESTINATION]), "norm").pvalue,
    ]


def engine_p_values(groups: int, sweeps: int, fitted: Bound | None = BOUND) -> list[float]:
    """Alternate the engine and new counts, from the joint prior: the prior must come back."""
    rng, cells = np.random.default_rng(11), many_groups(groups, fitted)
    at = draw_prior(rng, cells)
    accepted, given, columns = np.zeros((groups, 3)), priors(PRIOR, 0), np.arange(CV + 1)
    state = None
    for _ in range(sweeps):
        cells = cells._replace(y=draw_counts(rng, cells, at))
        data = engine.prepare(cells)
        if state is None:
            state = engine.init(rng, data, "negative-binomial")
            state.theta[:], state.b[:], state.g[:] = at
        refresh(data, state)
        newton.sweep(rng, columns, data, state, given, 0.0, accepted)
        at = state.theta.copy(), state.b.copy(), state.g.copy()
    return judged(rng, cells, at)


def reference_p_values(groups: int, sweeps: int) -> list[float]:
    """The same with the reference sampler."""
    rng, cells = np.random.default_rng(12), many_groups(groups)
    data, (theta, b, g) = reference.prepare(cells), draw_prior(rng, cells)
    delta = rng.normal(0.0, np.sqrt(2.0) * PRIOR["mu_sd"], groups)
    mu = (theta[:, LEVEL] + delta) / 2.0, (theta[:, LEVEL] - delta) / 2.0
    given = priors(PRIOR, 0)
    state = reference.State(
        beta=b + mu[0][cells.group_of_origin], gamma=g + mu[1][cells.group_of_destination],
        mu_beta=mu[0], mu_gamma=mu[1], log_phi_beta=-2.0 * theta[:, SD_ORIGIN],
        log_phi_gamma=-2.0 * theta[:, SD_DESTINATION], log_cv=theta[:, CV],
        coefficient=np.empty((groups, 0)), national_mean=given.first, national_sd=given.second,
        national_slope=given.slope, base_z=np.empty(0), base_log_sd=np.zeros(1),
        log_p=np.empty(0),
    )  # fmt: skip
    scales = reference.Scales(
        *(np.full(x.shape, 0.9) for x in (state.beta, state.gamma, state.mu_beta)),
        coefficient=state.coefficient,
        base=np.empty(0),
    )
    at = theta, b, g
    for _ in range(sweeps):
        cells = cells._replace(y=draw_counts(rng, cells, at))
        data = data._replace(y=cells.y.astype(np.float64))
        state, _ = reference.step(rng, reference.refresh(state, data), data, scales, PRIOR)
        theta = np.column_stack([
            state.mu_beta + state.mu_gamma, -state.log_phi_beta / 2.0, -state.log_phi_gamma / 2.0,
            state.log_cv,
        ])  # fmt: skip
        at = (
            theta, state.beta - state.mu_beta[cells.group_of_origin],
            state.gamma - state.mu_gamma[cells.group_of_destination],
        )  # fmt: skip
    return judged(rng, cells, at)


def test_engine_leaves_the_joint_distribution_alone() -> None:
    """A wrong slope or proposal density of the bounded steps moves a marginal off its prior."""
    p_values = engine_p_values(1500, 12)
    assert min(p_values) > 0.01 / len(p_values)


def test_reference_leaves_the_joint_distribution_alone() -> None:
    p_values = reference_p_values(1500, 12)
    assert min(p_values) > 0.01 / len(p_values)


@pytest.mark.slow
def test_both_leave_it_alone_for_long() -> None:
    for p_values in (engine_p_values(6000, 60), reference_p_values(6000, 60)):
        assert min(p_values) > 0.01 / len(p_values)


def test_sampler_of_another_bound_fails_the_same_test() -> None:
    """The counts come from one bound, the sampler believes in none, or in one twice as wide."""
    assert min(engine_p_values(1500, 12, None)) < 1e-6
    wide = BOUND._replace(epsilon=2.0 * BOUND.epsilon)
    assert min(engine_p_values(3000, 25, wide)) < 1e-4


@pytest.mark.slow
def test_terms_do_not_depend_on_the_other_cells_of_a_block() -> None:
    """Cells are worked on in blocks, and steps in pairs."""
    rng = np.random.default_rng(1)
    for upper in (1, 2, 3, 8):
        rows = np.zeros((bounded_terms.BOUNDED_ROWS, upper + 1))
        rows[bounded_terms.CENTRE] = [*[-0.4] * upper, 0.4]
        bounded_terms.fill_bound(0.5, rows)
        y = rng.integers(0, upper + 1, 71).astype(float)
        log_rate, log_cv = rng.normal(0.0, 3.0, 71), 0.5 * np.log(0.5)
        together, alone = np.empty((6, 71)), np.empty((6, 71))
        bounded_terms.bounded_terms(y, log_rate, log_cv, rows, together)
        for c in range(71):
            one = np.empty((6, 1))
            bounded_terms.bounded_terms(y[c : c + 1], log_rate[c : c + 1], log_cv, rows, one)
            alone[:, c] = one[:, 0]
        np.testing.assert_allclose(together, alone, rtol=1e-10, atol=1e-12)
