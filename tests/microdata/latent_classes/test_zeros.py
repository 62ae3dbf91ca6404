"""Structural zeros: by sums over prior draws, and by enumeration of small tables."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, latent_class_risk, read_microdata
from bayes_sdc.microdata.latent_classes import conditionals as c
from bayes_sdc.microdata.latent_classes import resolutions as r
from bayes_sdc.microdata.latent_classes.state import State
from bayes_sdc.microdata.latent_classes.unseen import NO_RULES, draw_unseen, forbidden, index_rows
from bayes_sdc.microdata.latent_classes.zeros import add_impossible, rules_for, sweep_with_zeros
from bayes_sdc.models.latent_classes import bands_of

START = np.array([0, 2, 5])
ROWS = np.array([[a, b] for a in (0, 1) for b in (2, 3, 4)], dtype=np.int32)
ALLOWED = np.array([True, True, True, False, True, False])  # not (1, 2), not (1, 4)
RULES = np.array([[False, True, True, False, True]])
H = 3
F = np.array([5, 1, 2, 0, 4, 0])


def empty_state() -> State:
    return State(
        alpha=np.ones(1),
        eta=np.full(H, 1.0 / H),
        strength=np.full(2, 5.0),
        base=np.array([0.5, 0.5, 1 / 3, 1 / 3, 1 / 3]),
        phi=np.concatenate([np.full((2, H), 0.5), np.full((3, H), 1 / 3)]),
        resolution=np.array([[1] * H, [2] * H]),
        shares=np.full((2, 3), 1 / 3),
        size=np.zeros(H, dtype=np.int64),
        counts=np.zeros((5, H), dtype=np.int64),
        g=np.empty(4),
    )


def test_rules_forbid_what_they_name() -> None:
    assert [not forbidden(row, RULES) for row in ROWS] == ALLOWED.tolist()
    assert not any(forbidden(row, NO_RULES) for row in ROWS)


def by_prior(draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean of the cells by draws from the prior, weighted with the likelihood.

    The likelihood of n records that are known to be possible has no augmented records in it.
    """
    rng = np.random.default_rng(seed)
    alpha = np.maximum(rng.gamma(c.ALPHA_SHAPE, 1.0 / c.ALPHA_RATE, draws), 1e-12)
    gamma = np.log(rng.gamma(alpha[:, None] / H + 1.0, 1.0, (draws, H)))
    gamma += np.log(rng.random((draws, H))) / (alpha[:, None] / H)
    eta = np.exp(gamma - gamma.max(axis=1, keepdims=True))
    eta /= eta.sum(axis=1, keepdims=True)
    table = np.ones((draws, H, 1))
    for size in (2, 3):
        strength = np.exp(rng.normal(c.STRENGTH_MEAN, c.STRENGTH_SD, draws))
        base = rng.dirichlet(np.full(size, r.BASE), draws)
        shape = np.maximum(strength[:, None] * base, 1e-12)[:, None, :]
        logs = np.log(rng.gamma(shape + 1.0, 1.0, (draws, H, size)))
        logs += np.log(rng.random((draws, H, size))) / shape
        phi = np.exp(logs - logs.max(axis=2, keepdims=True))
        phi /= phi.sum(axis=2, keepdims=True)
        kinds = bands_of(size)
        shares = rng.dirichlet(np.ones(len(kinds)), draws)
        chosen = (rng.random((draws, H, 1)) > np.cumsum(shares, axis=1)[:, None, :-1]).sum(axis=2)
        for number, same in enumerate(kinds):
            divided = (phi @ same) * (base / (base @ same))[:, None, :]
            phi = np.where((chosen == number)[:, :, None], divided, phi)
        table = (table[:, :, :, None] * phi[:, :, None, :]).reshape(draws, H, -1)
    g = np.einsum("dh,dhk->dk", eta, table)
    g = np.where(ALLOWED, g, 0.0)
    g /= np.maximum(g.sum(axis=1, keepdims=True), 1e-300)
    weight = np.prod(np.where(F > 0, g, 1.0) ** F, axis=1)
    weight /= weight.sum()
    mean = weight @ g
    return mean, np.sqrt((weight**2) @ (g - mean) ** 2)


@pytest.mark.slow
def test_the_posterior_is_that_of_enumeration() -> None:
    """Without augmented records the cells beside the forbidden ones would be too probable."""
    exact, error = by_prior(1_000_000, 1)
    seen = F > 0
    rows, records = np.ascontiguousarray(ROWS[seen]), F[seen]
    shared = np.array([0, 1, 1, 0])
    rng, state, found = np.random.default_rng(2), empty_state(), []
    for i in range(30_000):
        sweep_with_zeros(rng, START, rows, shared, records, RULES, state)
        if i >= 500:
            whole = np.einsum("h,ah,bh->ab", state.eta, state.phi[:2], state.phi[2:]).ravel()
            whole[~ALLOWED] = 0.0
            found.append(whole / whole.sum())
    draws = np.array(found)
    blocks = draws[: len(draws) // 50 * 50].reshape(50, -1, 6).mean(axis=1)
    both = np.sqrt(blocks.var(axis=0, ddof=1) / 50 + error**2) + 1e-12
    z = (draws.mean(axis=0) - exact)[ALLOWED] / both[ALLOWED]
    assert np.abs(z).max() < 4.5, z.round(1)


def test_impossible_records_are_negative_binomial() -> None:
    """Their number before n possible ones, and their cells in the right shares."""
    state = empty_state()
    state.phi[:2] = np.array([[0.3], [0.7]])
    pi0 = 0.7 * 2 / 3
    rng, n = np.random.default_rng(3), 12
    number = [add_impossible(rng, n, START, RULES, state) for _ in range(4000)]
    assert np.mean(number) == pytest.approx(n * pi0 / (1 - pi0), rel=0.03)
    assert np.var(number) == pytest.approx(n * pi0 / (1 - pi0) ** 2, rel=0.1)
    assert state.counts[0].sum() == state.counts[3].sum() == 0
    assert state.counts[2].sum() == pytest.approx(state.counts[4].sum(), rel=0.05)
    assert state.size.sum() == state.counts[1].sum() == sum(number)


def test_unseen_combinations_are_possible_ones() -> None:
    state = empty_state()
    seen = np.ascontiguousarray(ROWS[:2])
    drawn, _, possible = draw_unseen(
        np.random.default_rng(4), 60_000, START, seen, index_rows(seen), state.eta, state.phi, RULES
    )
    assert possible / 60_000 == pytest.approx(4 / 6, rel=0.02)
    assert len(drawn) / possible == pytest.approx(2 / 4, rel=0.02)


PEOPLE = pd.DataFrame({
    "age": np.random.default_rng(5).integers(0, 40, 400).astype(str),
    "job": np.random.default_rng(6).integers(0, 12, 400).astype(str),
})  # fmt: skip
PEOPLE.loc[PEOPLE["age"].astype(int) < 15, "job"] = "0"
RULE = [{"age": [str(a) for a in range(15)], "job": [str(j) for j in range(1, 12)]}]


def test_rows_of_the_rules_are_those_of_the_sampler() -> None:
    data = read_microdata(PEOPLE, keys=["age", "job"])
    rules = rules_for(data, RULE)
    # job has fewer levels, so it comes first
    assert rules[:, :12].sum() == 11
    assert rules[:, 12:].sum() == 15


def test_children_without_jobs_are_at_less_risk() -> None:
    """A child of some age cannot be one of few with a job: the others of that age have none too."""
    data = read_microdata(PEOPLE, keys=["age", "job"])
    risk = latent_class_risk(data, population_size=8000, structural_zeros=RULE, seed=1)
    assert ((risk.records >= 0.0) & (risk.records <= 1.0)).all(axis=None)
    assert any("structural zeros" in note for note in risk.notes)
    with pytest.raises(InputError, match="holds for"):
        latent_class_risk(data, population_size=8000, structural_zeros=[{"job": "3"}])


def test_a_record_that_may_be_possible_in_part_is_refused() -> None:
    holes = PEOPLE.copy()
    holes.loc[3, "job"] = None
    data = read_microdata(holes, keys=["age", "job"], missing="wildcard")
    with pytest.raises(InputError, match="missing='own'"):
        latent_class_risk(data, population_size=8000, structural_zeros=RULE)
