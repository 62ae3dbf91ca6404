"""The national distribution: both samplers leave its joint distribution with groups and counts."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import kstest, norm

from bayes_sdc.flows.fit.chains import start_chain
from bayes_sdc.flows.gibbs import engine, newton, reference
from bayes_sdc.flows.gibbs.national import draw_nation, linear, move_nation
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.gibbs.state import refresh
from bayes_sdc.flows.model.hyperpriors import CV, LEVEL, Priors, nation, priors, slope_prior


def by_engine(
    rng: np.random.Generator, start, sweeps: int, broken: str
) -> tuple[Priors, np.ndarray]:
    """Alternate engine and new counts from a draw of the prior."""
    cells, prior = start.cells, start.prior
    now, theta, b, g = start.draw(rng)
    columns, hyper, of_slope = np.arange(5), nation(prior, 1), slope_prior(prior)
    if broken == "prior":
        of_slope = of_slope * 3.0
    state, accepted = None, np.zeros((len(cells.groups), 3))
    for _ in range(sweeps):
        data = engine.prepare(cells._replace(y=start.draw_counts(rng, theta, b, g)))
        if broken == "sign":
            data = data._replace(z=-data.z)
        if state is None:
            state = engine.init(rng, data, "negative-binomial")
            state.theta[:], state.b[:], state.g[:] = theta, b, g
        refresh(data, state)
        newton.sweep(rng, columns, data, state, now, 0.0, accepted)
        if broken != "centred":
            now = draw_nation(rng, columns, state.theta, data.z, now, hyper, of_slope)
        move_nation(rng, columns, data, state, now, hyper, of_slope, True)
        means = linear(columns)
        move_nation(rng, means, data, state, now, hyper, of_slope, False)
        theta, b, g = state.theta, state.b, state.g
    return now, theta


def by_reference(
    rng: np.random.Generator, start, sweeps: int, broken: str
) -> tuple[Priors, np.ndarray]:
    """The same with the paper's steps."""
    cells, prior = start.cells, start.prior
    now, theta, b, g = start.draw(rng)
    data = reference.prepare(cells)
    state = reference.init(rng, data, "negative-binomial", prior)
    delta = rng.normal(0.0, np.sqrt(2.0) * prior["mu_sd"], len(cells.groups))
    mu_b, mu_g = (theta[:, LEVEL] + delta) / 2.0, (theta[:, LEVEL] - delta) / 2.0
    state = state._replace(
        beta=b + mu_b[cells.group_of_origin], gamma=g + mu_g[cells.group_of_destination],
        mu_beta=mu_b, mu_gamma=mu_g, log_phi_beta=-2.0 * theta[:, 1],
        log_phi_gamma=-2.0 * theta[:, 2], log_cv=theta[:, CV], coefficient=theta[:, CV + 1 :],
        national_mean=now.first, national_sd=now.second, national_slope=now.slope,
    )  # fmt: skip
    scales = reference.first_scales(data)
    seen = data._replace(z=-data.z) if broken == "sign" else data
    for _ in range(sweeps):
        theta = theta_of(state)
        b = state.beta - state.mu_beta[cells.group_of_origin]
        g = state.gamma - state.mu_gamma[cells.group_of_destination]
        y = start.draw_counts(rng, theta, b, g).astype(float)
        seen = seen._replace(y=y)
        state, _ = reference.step(rng, reference.refresh(state, seen), seen, scales, prior)
    now = Priors(now.kind, state.national_mean, state.national_sd, state.national_slope)
    return now, theta_of(state)


def theta_of(state: reference.State) -> np.ndarray:
    return np.column_stack(
        [
            state.mu_beta + state.mu_gamma, -state.log_phi_beta / 2.0, -state.log_phi_gamma / 2.0,
            state.log_cv, state.coefficient,
        ]
    )  # fmt: skip


def p_values(start, sampler: str, *, nations: int, sweeps: int, broken: str = "") -> list[float]:
    """The prior of the nation, and its relation to the levels, must come back."""
    z = start.cells.z[:, 0]
    chain = {"engine": by_engine, "reference": by_reference}[sampler]

    def ends() -> Iterator[np.ndarray]:
        for number in range(nations):
            rng = np.random.default_rng([17, number])
            now, theta = chain(rng, start, sweeps, broken)
            rest = theta[:, LEVEL] - now.first[LEVEL] - z * now.slope[0]
            along = z @ rest / (now.second[LEVEL] * np.linalg.norm(z))
            yield np.concatenate([now.first, np.log(now.second), now.slope, [along]])

    found = np.array(list(ends())).T
    hyper, of_slope = nation(start.prior, 1), slope_prior(start.prior)
    expected = [norm(*row[:2]) for row in hyper] + [norm(*row[2:]) for row in hyper]
    expected += [norm(*of_slope), norm()]
    pairs = zip(found, expected, strict=True)
    return [kstest(values, prior.cdf).pvalue for values, prior in pairs]


@pytest.mark.parametrize(
    ("sampler", "nations", "sweeps"), [("engine", 300, 25), ("reference", 100, 20)]
)
def test_joint_distribution_of_nation_and_counts_is_left_invariant(
    one_nation, sampler: str, nations: int, sweeps: int
) -> None:
    found = p_values(one_nation, sampler, nations=nations, sweeps=sweeps)
    assert min(found) > 0.01 / len(found)


@pytest.mark.parametrize("sampler", ["engine", "reference"])
def test_slopes_of_the_wrong_sign_fail_the_same_test(one_nation, sampler: str) -> None:
    found = p_values(one_nation, sampler, nations=120, sweeps=5, broken="sign")
    assert min(found) < 1e-5


@pytest.mark.slow
def test_another_prior_of_the_slopes_fails_the_same_test(one_nation) -> None:
    assert min(p_values(one_nation, "engine", nations=150, sweeps=40, broken="prior")) < 1e-5


def test_the_move_that_is_not_centred_is_right_alone(one_nation) -> None:
    """Beside an exact move a wrong one would be half hidden."""
    found = p_values(one_nation, "engine", nations=250, sweeps=25, broken="centred")
    assert min(found) > 0.01 / len(found)


def test_slopes_of_a_large_nation_are_found(one_nation) -> None:
    """Levels that follow a property of their groups: the slope is that of a regression."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=(3000, 1))
    theta = np.column_stack([0.4 + 0.7 * z[:, 0] + 0.5 * rng.normal(size=3000)])
    prior = one_nation.prior
    now, hyper = priors(prior, 0, 1), nation(prior, 0)
    draws = []
    for _ in range(200):
        now = draw_nation(rng, np.array([LEVEL]), theta, z, now, hyper, slope_prior(prior))
        draws.append([now.first[LEVEL], now.slope[0], now.second[LEVEL]])
    design = np.column_stack([np.ones(3000), z[:, 0]])
    least_squares = np.linalg.lstsq(design, theta[:, 0], rcond=None)[0]
    means = np.mean(draws[50:], axis=0)
    np.testing.assert_allclose(means[:2], least_squares, atol=0.005)
    np.testing.assert_allclose(means[2], 0.5, atol=0.02)


def test_chain_keeps_the_slopes_when_it_is_restored(one_nation) -> None:
    cells = one_nation.cells
    cells = cells._replace(y=np.arange(len(cells.y)) % (cells.upper + 1))
    for sampler in ("gibbs", "reference"):
        sampling = Sampling("negative-binomial", one_nation.prior, 5, 5, 1, 3, 1, sampler)
        one, other = (start_chain(cells, sampling, 0) for _ in range(2))
        for _ in range(3):
            one.draw()
        other.restore({name: values.copy() for name, values in one.arrays().items()})
        one.draw()
        other.draw()
        assert one.record()["national_slope"] == other.record()["national_slope"] != 0.0
