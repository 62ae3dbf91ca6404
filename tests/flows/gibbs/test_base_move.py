"""The base measure in both Gibbs samplers: what they leave alone, and a copy that does not."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import kstest, norm

from bayes_sdc.flows.fit.chains import start_chain
from bayes_sdc.flows.gibbs import engine, newton, reference
from bayes_sdc.flows.gibbs.base_move import (
    Base,
    base_at,
    base_information,
    move_base,
    put_base,
    start_base,
)
from bayes_sdc.flows.gibbs.national import draw_nation, linear, move_nation
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.gibbs.state import Data, State, refresh
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.hyperpriors import (
    CV,
    LEVEL,
    BasePrior,
    Priors,
    base_prior,
    nation,
    slope_prior,
)
from bayes_sdc.flows.table.cells import SmallCells

UPPER, IMPOSSIBLE = 4, (1,)
WIDE = {"base_spread": 0.5, "base_log_sd_sd": 0.4}
OF_BASE = base_prior(WIDE)


@pytest.fixture
def start(one_nation):
    """The nation with a count that cannot occur."""
    cells = one_nation.cells._replace(impossible=IMPOSSIBLE, canonical=True)
    return one_nation._replace(cells=cells, prior=one_nation.prior | WIDE)


def draw_base(rng: np.random.Generator) -> Base:
    """A measure from its prior, written from the definition."""
    base = start_base(rng, UPPER, IMPOSSIBLE, OF_BASE)
    base.z[:] = rng.standard_normal(len(base.z))
    base.log_sd[0] = rng.normal(OF_BASE.mean, OF_BASE.sd)
    return base


def by_engine(
    rng: np.random.Generator, start, sweeps: int, prior: BasePrior
) -> tuple[Base, Priors]:
    """Alternate engine and new counts from a draw of the prior."""
    cells = start.cells
    now, theta, b, g = start.draw(rng)
    base, columns = draw_base(rng), np.arange(5)
    hyper, of_slope = nation(start.prior, 1), slope_prior(start.prior)
    state, accepted = None, np.zeros((len(cells.groups), 3))
    for _ in range(sweeps):
        y = start.draw_counts(rng, theta, b, g, base.log_measure())
        data = engine.prepare(cells._replace(y=y))
        if state is None:
            state = engine.init(rng, data, "base")
            state.theta[:], state.b[:], state.g[:] = theta, b, g
        refresh(data, state)
        put_base(base, data, state)
        newton.sweep(rng, columns, data, state, now, 0.0, accepted)
        now = draw_nation(rng, columns, state.theta, data.z, now, hyper, of_slope)
        move_nation(rng, columns, data, state, now, hyper, of_slope, True)
        means = linear(columns)
        move_nation(rng, means, data, state, now, hyper, of_slope, False)
        move_base(rng, base, data, state, now, hyper, prior, 0.0)
        theta, b, g = state.theta, state.b, state.g
    return base, now


def by_reference(
    rng: np.random.Generator, start, sweeps: int, prior: BasePrior
) -> tuple[Base, Priors]:
    """The same with the paper's steps."""
    cells = start.cells
    now, theta, b, g = start.draw(rng)
    base, data = draw_base(rng), reference.prepare(cells, "base")
    settings = start.prior | {"base_spread": float(np.exp(prior.mean)), "base_log_sd_sd": prior.sd}
    state = reference.init(rng, data, "base", settings)
    half = theta[:, LEVEL] / 2.0
    state = state._replace(
        beta=b + half[cells.group_of_origin], gamma=g + half[cells.group_of_destination],
        mu_beta=half, mu_gamma=half, log_phi_beta=-2.0 * theta[:, 1],
        log_phi_gamma=-2.0 * theta[:, 2], log_cv=theta[:, CV], coefficient=theta[:, CV + 1 :],
        national_mean=now.first, national_sd=now.second, national_slope=now.slope,
        base_z=base.z, base_log_sd=base.log_sd,
    )  # fmt: skip
    scales = reference.first_scales(data)._replace(base=np.full(len(base.z) + 1, 1.0))
    for _ in range(sweeps):
        at = np.column_stack([state.mu_beta + state.mu_gamma, state.log_cv, state.coefficient])
        theta = np.zeros((len(cells.groups), 5))
        theta[:, [LEVEL, CV, CV + 1]] = at
        b = state.beta - state.mu_beta[cells.group_of_origin]
        g = state.gamma - state.mu_gamma[cells.group_of_destination]
        measure = base._replace(z=state.base_z, log_sd=state.base_log_sd).log_measure()
        y = start.draw_counts(rng, theta, b, g, measure).astype(float)
        seen = data._replace(y=y)
        state, _ = reference.step(rng, reference.refresh(state, seen), seen, scales, settings)
    now = Priors(now.kind, state.national_mean, state.national_sd, state.national_slope)
    return base._replace(z=state.base_z, log_sd=state.base_log_sd), now


def p_values(
    start, sampler: str, *, nations: int, sweeps: int, prior: BasePrior = OF_BASE
) -> list[float]:
    """The priors of the measure, its scale, and the means of level and log cv must come back."""
    chain = {"engine": by_engine, "reference": by_reference}[sampler]

    def ends() -> Iterator[np.ndarray]:
        for number in range(nations):
            base, now = chain(np.random.default_rng([23, number]), start, sweeps, prior)
            yield np.concatenate([base.z, base.log_sd, now.first[[LEVEL, CV]]])

    found = np.array(list(ends())).T
    hyper = nation(start.prior, 1)
    expected = [norm()] * (len(found) - 3) + [norm(*OF_BASE)]
    expected += [norm(*hyper[k, :2]) for k in (LEVEL, CV)]
    return [kstest(values, one.cdf).pvalue for values, one in zip(found, expected, strict=True)]


@pytest.mark.parametrize(
    ("sampler", "nations", "sweeps"), [("engine", 150, 20), ("reference", 80, 15)]
)
def test_joint_distribution_of_measure_and_counts_is_left_invariant(
    start, sampler: str, nations: int, sweeps: int
) -> None:
    found = p_values(start, sampler, nations=nations, sweeps=sweeps)
    assert min(found) > 0.01 / len(found)


@pytest.mark.parametrize("sampler", ["engine", "reference"])
def test_another_prior_of_the_scale_fails_the_same_test(start, sampler: str) -> None:
    other = BasePrior(OF_BASE.mean + 1.0, OF_BASE.sd)
    assert min(p_values(start, sampler, nations=80, sweeps=15, prior=other)) < 1e-5


def place(start, seed: int) -> tuple[SmallCells, Data, State, Base]:
    """A state with a measure."""
    rng = np.random.default_rng(seed)
    cells = start.cells
    _, theta, b, g = start.draw(rng)
    base = draw_base(rng)
    y = start.draw_counts(rng, theta, b, g, base.log_measure())
    data = engine.prepare(cells._replace(y=y))
    state = engine.init(rng, data, "base")
    state.theta[:], state.b[:], state.g[:] = theta, b, g
    refresh(data, state)
    put_base(base, data, state)
    return cells._replace(y=y), data, state, base


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_engine_has_the_probabilities_of_the_ladders(start, seed: int) -> None:
    """Two codes for one distribution."""
    cells, _, state, base = place(start, seed)
    kappa = np.exp(2.0 * state.theta[:, CV])
    rungs = counts.ladder(kappa, UPPER, base=base.log_measure(), canonical=True)
    log_p = counts.log_probabilities(cells.y.astype(float), state.log_rate, cells.group, rungs)
    np.testing.assert_allclose(state.terms[0], log_p, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_slope_and_information_are_those_of_differences(start, seed: int) -> None:
    """Slope: of the log-likelihood; information: minus the mean over counts of its curvature."""
    cells, data, state, base = place(start, seed)
    slope, metric = np.zeros(len(base.z) + 1), np.zeros((len(base.z) + 1, len(base.z) + 1))
    base_information(base.columns, data, state, slope, metric)
    u0 = np.exp(base.log_sd[0]) * base.z

    def table(at: np.ndarray) -> np.ndarray:
        """Log-probabilities of every count of every cell."""
        measure = base.columns @ (u0 + at[:-1])
        measure[list(IMPOSSIBLE)] = -60.0
        kappa = np.exp(2.0 * state.theta[:, CV])
        rungs = counts.ladder(kappa, UPPER, base=measure, canonical=True)
        return counts.log_table(state.log_rate + at[-1], cells.group, rungs)

    d, p = len(slope), np.exp(table(np.zeros(len(slope))))
    score = np.stack([(table(h) - table(-h)) / 2e-5 for h in 1e-5 * np.eye(d)])
    np.testing.assert_allclose(
        slope, score[:, np.arange(len(cells.y)), cells.y].sum(axis=1), rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        metric, np.einsum("icy,jcy,cy->ij", score, score, p), rtol=1e-4, atol=1e-4
    )


def test_measure_of_a_posterior_is_found_again() -> None:
    base = draw_base(np.random.default_rng(4))
    kept = np.delete(base.log_measure(), IMPOSSIBLE)
    again = base_at(kept, float(np.exp(base.log_sd[0])), UPPER, IMPOSSIBLE)
    np.testing.assert_allclose(again.z, base.z, rtol=1e-9)


@pytest.mark.parametrize("sampler", ["gibbs", "reference"])
def test_chain_keeps_its_measure_when_it_is_restored(start, sampler: str) -> None:
    cells = start.cells
    y = np.random.default_rng(1).choice([0, 2, 3, 4], len(cells.group))
    sampling = Sampling("base", start.prior, 5, 5, 1, 3, 1, sampler, impossible=IMPOSSIBLE)
    one, other = (start_chain(cells._replace(y=y), sampling, 0) for _ in range(2))
    for _ in range(3):
        one.draw()
    other.restore({name: values.copy() for name, values in one.arrays().items()})
    one.draw()
    other.draw()
    np.testing.assert_array_equal(one.record()["base"], other.record()["base"])
    assert (one.record()["base"][list(IMPOSSIBLE)] < -50.0).all()
