"""The reference sampler: each step against its definition, and the whole against its prior."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import gamma as gamma_distribution
from scipy.stats import halfnorm, ks_2samp, kstest, norm

from bayes_sdc.flows.gibbs import conditionals
from bayes_sdc.flows.gibbs import reference as gibbs
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.hyperpriors import priors
from bayes_sdc.flows.table.cells import SmallCells

UPPER = 4
GAMMA_PRIOR = {"mu_sd": 0.8, "phi_shape": 3.0, "phi_rate": 2.0}
HALF_NORMAL_PRIOR = {"mu_sd": 0.8, "sd_scale": 0.7}
NEGATIVE_BINOMIAL_PRIOR = {"mu_sd": 0.8, "sd_scale": 0.7, "cv_scale": 0.9}


def many_groups(n_groups: int, n_origins: int = 3, n_destinations: int = 4) -> gibbs.Data:
    """Groups of one shape, every pair of areas a cell."""
    group = np.repeat(np.arange(n_groups), n_origins * n_destinations)
    i = np.tile(np.repeat(np.arange(n_origins), n_destinations), n_groups)
    j = np.tile(np.tile(np.arange(n_destinations), n_origins), n_groups)
    return gibbs.prepare(
        SmallCells(
            y=np.zeros(len(group), np.int64),
            group=group,
            origin=group * n_origins + i,
            destination=group * n_destinations + j,
            group_of_origin=np.repeat(np.arange(n_groups), n_origins),
            group_of_destination=np.repeat(np.arange(n_groups), n_destinations),
            x=np.empty((len(group), 0)),
            z=np.empty((n_groups, 0)),
            upper=UPPER,
            covariates=[],
            group_covariates=[],
            cells=[],
            groups=[str(g) for g in range(n_groups)],
            origin_effects=[],
            destination_effects=[],
        )
    )


def draw_prior(rng: np.random.Generator, data: gibbs.Data, prior: dict[str, float]) -> gibbs.State:
    """State of every group from the prior, written from the paper and not from the sampler."""
    n = len(data.origins.size)
    if "sd_scale" in prior:
        log_phi = -2.0 * np.log(np.abs(rng.normal(0.0, prior["sd_scale"], (2, n))))
    else:
        log_phi = np.log(rng.gamma(prior["phi_shape"], 1.0 / prior["phi_rate"], (2, n)))
    mu = rng.normal(0.0, prior["mu_sd"], (2, n))
    sd = np.exp(-log_phi / 2.0)
    group_b, group_g = data.origins.group, data.destinations.group
    beta = rng.normal(mu[0][group_b], sd[0][group_b])
    gamma = rng.normal(mu[1][group_g], sd[1][group_g])
    log_cv = np.full(n, -np.inf)
    if "cv_scale" in prior:
        log_cv = np.log(np.abs(rng.normal(0.0, prior["cv_scale"], n)))
    given = priors(prior, 0)
    state = gibbs.State(
        beta=beta,
        gamma=gamma,
        mu_beta=mu[0],
        mu_gamma=mu[1],
        log_phi_beta=log_phi[0],
        log_phi_gamma=log_phi[1],
        log_cv=log_cv,
        coefficient=np.empty((n, 0)),
        national_mean=given.first,
        national_sd=given.second,
        national_slope=given.slope,
        base_z=np.empty(0),
        base_log_sd=np.zeros(1),
        log_p=np.empty(0),
    )
    return gibbs.refresh(state, data)


def draw_counts(rng: np.random.Generator, data: gibbs.Data, state: gibbs.State) -> gibbs.Data:
    log_rate = state.beta[data.origin] + state.gamma[data.destination]
    rungs = counts.ladder(np.exp(2.0 * state.log_cv), data.upper)
    y = counts.draw(log_rate, data.group, rungs, rng.random(len(log_rate)))
    return data._replace(y=y.astype(np.float64))


def surprise(state: gibbs.State, data: gibbs.Data) -> np.ndarray:
    """Sum of each group's counts less its expectation given the parameters."""
    log_rate = state.beta[data.origin] + state.gamma[data.destination]
    rungs = counts.ladder(np.exp(2.0 * state.log_cv), data.upper)
    mean = counts.probabilities(log_rate, data.group, rungs) @ np.arange(data.upper + 1.0)
    return np.bincount(data.group, data.y - mean)


def geweke_p_values(prior: dict[str, float], n_groups: int = 4000, sweeps: int = 40) -> list[float]:
    """Alternate the sampler and new counts, from the joint prior: the prior must come back.

    Every group is an independent replicate, so Kolmogorov-Smirnov tests apply as they stand.
    """
    rng = np.random.default_rng(7)
    data = many_groups(n_groups)
    state = draw_prior(rng, data, prior)
    scales = gibbs.Scales(
        *(np.full(x.shape, 0.9) for x in (state.beta, state.gamma, state.mu_beta)),
        coefficient=state.coefficient,
        base=np.empty(0),
    )
    for _ in range(sweeps):
        data = draw_counts(rng, data, state)
        state, _ = gibbs.step(rng, gibbs.refresh(state, data), data, scales, prior)
    mu = norm(0.0, prior["mu_sd"]).cdf
    alpha = norm(0.0, np.sqrt(2.0) * prior["mu_sd"]).cdf
    if "sd_scale" in prior:

        def log_phi(x: np.ndarray) -> np.ndarray:
            return halfnorm(scale=prior["sd_scale"]).sf(np.exp(-x / 2.0))
    else:

        def log_phi(x: np.ndarray) -> np.ndarray:
            return gamma_distribution(prior["phi_shape"], scale=1 / prior["phi_rate"]).cdf(
                np.exp(x)
            )

    residual = (state.beta - state.mu_beta[data.origins.group])[::3] * np.exp(
        state.log_phi_beta / 2.0
    )
    forward = draw_prior(rng, data, prior)
    return [
        # the counts and the parameters together, against a pair drawn forwards
        ks_2samp(surprise(state, data), surprise(forward, draw_counts(rng, data, forward))).pvalue,
        kstest(state.mu_beta, mu).pvalue,
        kstest(state.mu_gamma, mu).pvalue,
        kstest(state.mu_beta + state.mu_gamma, alpha).pvalue,
        kstest(state.mu_beta - state.mu_gamma, alpha).pvalue,
        kstest(state.log_phi_beta, log_phi).pvalue,
        kstest(state.log_phi_gamma, log_phi).pvalue,
        kstest(residual, "norm").pvalue,
        *(
            [kstest(np.exp(state.log_cv), halfnorm(scale=prior["cv_scale"]).cdf).pvalue]
            if "cv_scale" in prior
            else []
        ),
    ]


@pytest.mark.parametrize(
    "prior",
    [GAMMA_PRIOR, HALF_NORMAL_PRIOR, NEGATIVE_BINOMIAL_PRIOR],
    ids=["gamma", "half-normal", "negative-binomial"],
)
def test_joint_distribution_is_left_invariant(prior: dict[str, float]) -> None:
    """A wrong full conditional or acceptance ratio moves at least one marginal off its prior."""
    p_values = geweke_p_values(prior)
    assert min(p_values) > 0.01 / len(p_values)


def test_sampler_that_ignores_the_counts_fails_the_same_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Draws from the prior alone have the right marginals: the joint with the counts tells."""
    original = conditionals.log_likelihood_ratio

    def no_data(*args: object) -> tuple[np.ndarray, np.ndarray]:
        ratio, log_p = original(*args)
        return np.zeros_like(ratio), log_p

    monkeypatch.setattr(conditionals, "log_likelihood_ratio", no_data)
    assert min(geweke_p_values(GAMMA_PRIOR)) < 1e-8


@pytest.mark.parametrize("prior", [GAMMA_PRIOR, HALF_NORMAL_PRIOR], ids=["gamma", "half-normal"])
def test_printed_steps_five_and_six_fail_the_same_test(
    prior: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sum of squares about the mean, as printed, does not leave the posterior invariant."""

    def about_the_mean(effect: np.ndarray, mu: np.ndarray, side: gibbs.Side) -> np.ndarray:
        mean = np.bincount(side.group, effect) / side.size
        return np.bincount(side.group, (effect - mean[side.group]) ** 2)

    monkeypatch.setattr(gibbs, "sum_of_squares", about_the_mean)
    assert min(geweke_p_values(prior)) < 1e-8


def test_log_likelihood_ratio_is_that_of_the_truncated_poisson() -> None:
    """The kernel sums, over the cells of each effect alone, the change of the log-probability."""
    rng = np.random.default_rng(1)
    data = draw_counts(rng, many_groups(2), draw_prior(rng, many_groups(2), GAMMA_PRIOR))
    state = draw_prior(rng, data, GAMMA_PRIOR)
    rungs = counts.ladder(np.zeros(2), UPPER)
    proposal = state.gamma + rng.normal(size=len(state.gamma))
    other = state.beta[data.origin]
    ratio, log_p_then = conditionals.log_likelihood_ratio(
        proposal,
        other,
        state.log_p,
        data.y,
        data.destinations.order,
        data.destinations.start,
        data.destinations.group,
        rungs,
        data.weight,
    )

    def log_pmf(log_rate: np.ndarray) -> np.ndarray:
        r = np.arange(UPPER + 1)
        terms = r * log_rate[:, None] - gammaln(r + 1)
        return terms[np.arange(len(data.y)), data.y.astype(int)] - logsumexp(terms, axis=1)

    change = log_pmf(other + proposal[data.destination]) - log_pmf(
        other + state.gamma[data.destination]
    )
    expected = np.bincount(data.destination, change)
    np.testing.assert_allclose(ratio, expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(
        log_p_then, log_pmf(other + proposal[data.destination]), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("family", ["poisson", "negative-binomial"])
def test_the_carried_log_probabilities_never_go_stale(family: str) -> None:
    """After many sweeps log_p still is the log-probability at the current parameters."""
    rng, prior = np.random.default_rng(2), NEGATIVE_BINOMIAL_PRIOR
    data = draw_counts(rng, many_groups(5), draw_prior(rng, many_groups(5), prior))
    state, scales = gibbs.init(rng, data, family, prior), gibbs.first_scales(data)
    for _ in range(200):
        state, _ = gibbs.step(rng, state, data, scales, prior)
    np.testing.assert_allclose(state.log_p, gibbs.refresh(state, data).log_p, rtol=0, atol=1e-10)


def test_step_does_not_change_what_it_is_given() -> None:
    """``step`` is pure: the old state can be kept, and the same generator gives the same step."""
    data = many_groups(3)
    state = draw_prior(np.random.default_rng(3), data, GAMMA_PRIOR)
    before = gibbs.State(*(field.copy() for field in state))
    scales = gibbs.first_scales(data)
    one, _ = gibbs.step(np.random.default_rng(4), state, data, scales, GAMMA_PRIOR)
    two, _ = gibbs.step(np.random.default_rng(4), state, data, scales, GAMMA_PRIOR)
    for old, kept, first, second in zip(before, state, one, two, strict=True):
        np.testing.assert_array_equal(old, kept)
        np.testing.assert_array_equal(first, second)


def test_warm_up_brings_the_acceptance_near_its_target() -> None:
    """Scales that start a hundredfold too large are found again within a warm-up."""
    rng = np.random.default_rng(5)
    data = draw_counts(rng, many_groups(20), draw_prior(rng, many_groups(20), GAMMA_PRIOR))
    state = gibbs.init(rng, data, "poisson", GAMMA_PRIOR)
    scales = gibbs.Scales(*(100.0 * scale for scale in gibbs.first_scales(data)))
    for sweep in range(1500):
        state, info = gibbs.step(rng, state, data, scales, GAMMA_PRIOR)
        scales = gibbs.tune(scales, info, sweep)
    accepted = np.mean(
        [gibbs.step(rng, state, data, scales, GAMMA_PRIOR)[1].accepted_beta for _ in range(400)]
    )
    assert abs(accepted - gibbs.TARGET_ACCEPTANCE) < 0.05
