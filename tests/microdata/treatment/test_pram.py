"""Post-randomisation: what stays on average, and what an intruder can undo."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import InputError, read_microdata
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


def made_up(data, seed: int) -> States:
    rng, layout = np.random.default_rng(seed), layout_of(data)
    phi = np.concatenate([rng.dirichlet(np.ones(size), 2).T for size in np.diff(layout.start)])
    return States(layout, rng.dirichlet(np.ones(2))[None], phi[None].copy(), {}, {})


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


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("known", [(1, 1, 1), (1, 0, 1)])
def test_matches_equal_the_enumeration(seed, known) -> None:
    """P(record j is the target's) by Bayes over the true values of each record."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 2, (12, 3)), columns=list("abc")).astype(str)
    data = read_microdata(frame, keys=list("abc"))
    states, known = made_up(data, seed), np.array(known, dtype=bool)
    matrices = matrices_of(data, np.ones(3, dtype=bool), 0.3)
    (released,) = randomise(data, matrices, datasets=1, seed=seed)
    found = match_changed(data, known, states, released, matrices)
    eta, phi, start = states.eta[0], states.phi[0], states.layout.start
    keys = np.flatnonzero(known)
    for t in range(12):
        joint = np.zeros(12)
        for j in range(12):
            every = {
                x: sum(
                    eta[h] * np.prod([phi[start[c] + v, h] for c, v in zip(keys, x, strict=True)])
                    for h in range(2)
                )
                * np.prod([matrices[c][v, released[j, c]] for c, v in zip(keys, x, strict=True)])
                for x in itertools.product(range(2), repeat=len(keys))
            }
            joint[j] = every[tuple(data.codes[t, keys])] / sum(every.values())
        posterior = joint / joint.sum()
        best = posterior >= posterior.max() * (1 - 1e-9)
        assert found.believed[t] == pytest.approx(posterior[t])
        assert found.right[t] == pytest.approx(best[t] / best.sum())


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
    (released,) = randomise(own, changed, datasets=1, seed=seed)
    known = np.array([True, True])
    found = match_changed(own, known, states._replace(layout=layout_of(own)), released, changed)
    shown = released + np.array([1, 0], dtype=np.int32)
    expected = match_changed(explicit, known, states, shown, [stays, changed[1]])
    for mine, other in zip(found, expected, strict=True):
        assert mine == pytest.approx(other)
