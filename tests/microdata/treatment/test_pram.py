"""Post-randomisation: what stays on average, and what an intruder can undo."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import InputError, Intruder, read_microdata, treat
from bayes_sdc.microdata.treatment.matching import match_records
from bayes_sdc.microdata.treatment.pram import (
    invariant_matrix,
    match_changed,
    matrices_of,
    randomise,
)
from bayes_sdc.microdata.treatment.states import States, layout_of

share = st.lists(st.floats(0.01, 1.0), min_size=2, max_size=8)


@given(share, st.floats(0.0, 1.0))
def test_expected_margins_stay_and_the_change_is_that_asked_for(weights, part) -> None:
    shares = np.array(weights) / sum(weights)
    change = part * (1.0 - shares @ shares)
    matrix = invariant_matrix(shares, change)
    assert matrix.sum(axis=1) == pytest.approx(1.0)
    assert (matrix >= 0).all()
    assert shares @ matrix == pytest.approx(shares)
    assert 1.0 - shares @ np.diag(matrix) == pytest.approx(change, abs=1e-9)


def test_more_than_a_draw_from_the_shares_is_refused() -> None:
    with pytest.raises(InputError, match=r"at most a share of 0\.500"):
        invariant_matrix([0.5, 0.5], 0.6)


def made_up(data, seed: int, draws: int = 1) -> States:
    rng, layout = np.random.default_rng(seed), layout_of(data)
    phi = [
        np.concatenate([rng.dirichlet(np.ones(size), 2).T for size in np.diff(layout.start)])
        for _ in range(draws)
    ]
    return States(layout, rng.dirichlet(np.ones(2), draws), np.stack(phi), {}, {})


def test_drawn_margins_are_those_of_the_file() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.choice(list("xyz"), 40_000, p=[0.7, 0.25, 0.05]), "b": "0"})
    frame.loc[:99, "a"] = None
    data = read_microdata(frame, keys=["a", "b"])
    matrices = matrices_of(data, np.array([True, True]), 0.2)
    (released,) = randomise(data, matrices, datasets=1, seed=2)
    before, after = (np.bincount(codes[:, 0] + 1) for codes in (data.codes, released))
    assert after[0] == 100
    assert np.abs(after - before).max() < 5 * np.sqrt(40_000 * 0.2)
    assert (released[:, 0] != data.codes[:, 0]).mean() == pytest.approx(0.2, abs=0.01)


def enumerated(data, known, states: States, released, matrices) -> np.ndarray:
    """P(record j is the target's) by Bayes over the true values of each record; (target, record).

    A value that a record lacks says nothing, and one that a target lacks may be any. By the rule
    "own" missing is a level that stays.
    """
    layout = states.layout
    sizes, lacks = np.diff(layout.start), layout.lacking.astype(int)
    grid = np.array(list(itertools.product(*map(range, sizes))))
    targets = np.where(known, data.codes + lacks, -1)
    fits = ((targets[:, None] < 0) | (targets[:, None] == grid)).all(axis=2)
    like = np.ones((data.n, len(grid)))
    for c, matrix in enumerate(matrices):
        whole = np.eye(sizes[c])
        whole[lacks[c] :, lacks[c] :] = matrix
        for one in released[:, :, c] + lacks[c]:
            like *= np.where(one[:, None] < 0, 1.0, whole[grid[:, c]][:, one].T)
    weights = np.zeros((data.n, data.n))
    for eta, phi in zip(states.eta, states.phi, strict=True):
        g = sum(eta[h] * np.prod(phi[layout.start[:-1] + grid, h], axis=1) for h in range(len(eta)))
        weights += fits @ (like * g).T / (like * g).sum(axis=1)
    return weights / weights.sum(axis=1, keepdims=True)


def in_threes(seed: int, rule: str, missing: float = 0.25):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 3, (12, 3)), columns=list("abc")).astype(str)
    frame = frame.mask(rng.random(frame.shape) < missing)
    return read_microdata(frame, keys=list("abc"), missing=rule)


@pytest.mark.parametrize("rule", ["own", "wildcard", "conservative"])
@pytest.mark.parametrize("missing", [0.0, 0.25])
@given(
    seed=st.integers(0, 10_000),
    known=st.sampled_from([(1, 1, 1), (1, 0, 1)]),
    treated=st.sampled_from([(1, 1, 1), (1, 1, 0)]),
    datasets=st.sampled_from([1, 3]),
)
def test_matches_equal_the_enumeration(rule, missing, seed, known, treated, datasets) -> None:
    """With missing values the risk was little more than half of it: w was no probability.

    Other keys inform, and so do all data sets together, which counted one by one.
    """
    data, known = in_threes(seed, rule, missing), np.array(known, dtype=bool)
    states = made_up(data, seed, draws=2)
    matrices = matrices_of(data, np.array(treated, dtype=bool), 0.3)
    released = randomise(data, matrices, datasets=datasets, seed=seed)
    found = match_changed(data, known, states, released, matrices)
    posterior = enumerated(data, known, states, released, matrices)
    best = posterior >= posterior.max(axis=1, keepdims=True) * (1 - 1e-9)
    assert found.believed == pytest.approx(posterior.diagonal())
    assert found.right == pytest.approx(best.diagonal() / best.sum(axis=1))
    assert found.tied.tolist() == best.sum(axis=1).tolist()


@pytest.mark.parametrize("rule", ["own", "wildcard", "conservative"])
@given(seed=st.integers(0, 10_000), known=st.sampled_from([(1, 1, 1), (1, 0, 1)]))
def test_nothing_changed_is_the_risk_before(rule, seed: int, known) -> None:
    """Missing values alone lowered the risk of a file that was left as it is."""
    data, known = in_threes(seed, rule), np.array(known, dtype=bool)
    states = made_up(data, seed, draws=2)
    matrices = matrices_of(data, np.zeros(3, dtype=bool), 0.3)
    after = match_changed(data, known, states, data.codes[None], matrices)
    before = match_records(data.codes, np.zeros(data.codes.shape, dtype=bool), known, states)
    for mine, other in zip(after, before, strict=True):
        assert mine == pytest.approx(other)


def test_many_data_sets_give_the_file_back() -> None:
    """By a vote over 20 data sets most values return; the risk said was that of a single one."""
    data = in_threes(1, "wildcard", 0.0)
    one, many = (
        treat(
            data, method="pram", change=0.3, datasets=m, seed=1,
            intruder=Intruder(knowledge="sample"),
        )
        for m in (1, 100)
    )  # fmt: skip
    assert one.after.expected.value < one.before.expected.value
    assert many.after.expected.value == pytest.approx(many.before.expected.value)
    assert many.after.records["believed"].tolist() == pytest.approx(
        many.before.records["believed"].tolist()
    )
    assert any("combines what all of them show" in note for note in many.notes)
    assert not any("data sets" in note for note in one.notes)


@pytest.mark.parametrize("treated", [(False, True), (True, True)])
@given(seed=st.integers(0, 10_000))
def test_missing_as_a_category_is_one_that_is_left_alone(treated, seed: int) -> None:
    """It matched every value, so that the risk was too low by a third and more."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 4, (20, 2)), columns=list("ab")).astype(str)
    frame.loc[:3, "a"] = list("0123")
    explicit = read_microdata(frame, keys=list("ab"))
    own = read_microdata(frame.assign(a=frame["a"].mask(frame["a"] == "0")), keys=list("ab"),
                         missing="own")  # fmt: skip
    states = made_up(explicit, seed)
    changed = matrices_of(own, np.array(treated), 0.3)
    stays = np.eye(4)
    stays[1:, 1:] = changed[0]
    released = randomise(own, changed, datasets=1, seed=seed)
    known = np.array([True, True])
    found = match_changed(own, known, states._replace(layout=layout_of(own)), released, changed)
    shown = released + np.array([1, 0], dtype=np.int32)
    expected = match_changed(explicit, known, states, shown, [stays, changed[1]])
    for mine, other in zip(found, expected, strict=True):
        assert mine == pytest.approx(other)
