"""Matches against an enumeration of every file that could have been treated."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.microdata.treatment.matching import match_records
from bayes_sdc.microdata.treatment.states import Layout, States

SIZES = (2, 3, 2)
START = np.array([0, 2, 5, 7])


def model(seed: int, classes: int = 2) -> States:
    """A model with made-up parameters."""
    rng = np.random.default_rng(seed)
    eta = rng.dirichlet(np.ones(classes))
    phi = np.concatenate([rng.dirichlet(np.ones(size), classes).T for size in SIZES])
    layout = Layout(START, np.zeros(len(SIZES), dtype=bool))
    return States(layout, eta[None], np.ascontiguousarray(phi[None]), {}, {})


def probability(states: States, values: tuple[int, ...]) -> float:
    """Of a combination, by the definition of the model."""
    eta, phi = states.eta[0], states.phi[0]
    return float(
        sum(
            eta[h] * np.prod([phi[START[j] + v, h] for j, v in enumerate(values)])
            for h in range(len(eta))
        )
    )


def given_shown(states: States, shown: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """Distribution of the true values of a record that hides those that are -1."""
    every = [
        values
        for values in itertools.product(*map(range, SIZES))
        if all(s < 0 or s == v for s, v in zip(shown, values, strict=True))
    ]
    weights = np.array([probability(states, values) for values in every])
    return dict(zip(every, weights / weights.sum(), strict=True))


def enumerated(
    states: States, shown: list[list[tuple[tuple[int, ...], float]]], target: tuple[int, ...],
    known: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """P(record j is the target's | its known values are these), by Bayes over J and true values.

    ``shown`` has, for each record, what it may hide with probabilities: a mixture.
    """
    joint = np.zeros(len(shown))
    for j, options in enumerate(shown):
        for pattern, weight in options:
            for values, p in given_shown(states, pattern).items():
                if all(values[k] == target[k] for k in np.flatnonzero(known)):
                    joint[j] += weight * p / len(shown)
    return joint / joint.sum()


def tied_and_right(posterior: np.ndarray, own: int) -> tuple[int, float]:
    best = posterior >= posterior.max() * (1 - 1e-9)
    return int(best.sum()), float(best[own] / best.sum())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("known", [(1, 1, 1), (1, 0, 1), (0, 1, 0)])
def test_an_intruder_who_knows_what_is_hidden_equals_the_enumeration(seed, known) -> None:
    """Groups, masks and classes are ways to count faster; what they count is Bayes' rule."""
    rng = np.random.default_rng(seed)
    states, known = model(seed), np.array(known, dtype=bool)
    truth = np.stack([rng.integers(0, size, 12) for size in SIZES], axis=1).astype(np.int32)
    hidden = rng.random(truth.shape) < 0.3
    found = match_records(truth, hidden, known, states)
    shown = [
        [(tuple(-1 if h else int(v) for v, h in zip(row, hides, strict=True)), 1.0)]
        for row, hides in zip(truth, hidden, strict=True)
    ]
    for t, row in enumerate(truth):
        posterior = enumerated(states, shown, tuple(map(int, row)), known)
        tied, right = tied_and_right(posterior, t)
        assert found.believed[t] == pytest.approx(posterior[t], rel=1e-9)
        assert (found.tied[t], found.right[t]) == (tied, pytest.approx(right))


def perhaps_treated(released: np.ndarray, treated: np.ndarray, share: float) -> list[list[tuple]]:
    """What each record shows: all its values if it was not treated, else those of other keys."""
    return [
        [
            (tuple(map(int, row)), 1.0 - share),
            (tuple(-1 if t else int(v) for v, t in zip(row, treated, strict=True)), share),
        ]
        for row in released
    ]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("keys", [(1, 0, 0), (1, 1, 0), (1, 1, 1)])
def test_an_intruder_who_knows_the_share_equals_the_enumeration(seed, keys) -> None:
    """Each record hides the keys with a probability, and shows what it shows otherwise."""
    rng = np.random.default_rng(seed)
    states, share = model(seed), 0.35
    known = np.ones(3, dtype=bool)
    truth = np.stack([rng.integers(0, size, 12) for size in SIZES], axis=1).astype(np.int32)
    treated = np.array(keys, dtype=bool)
    released = truth.copy()
    for j in np.flatnonzero(rng.random(12) < share):
        drawn = [rng.integers(0, size) for size in SIZES]
        released[j] = np.where(treated, drawn, truth[j])
    hidden = np.broadcast_to(treated, truth.shape)
    found = match_records(truth, hidden, known, states, released=released, share=share)
    shown = perhaps_treated(released, treated, share)
    for t, row in enumerate(truth):
        posterior = enumerated(states, shown, tuple(map(int, row)), known)
        tied, right = tied_and_right(posterior, t)
        assert found.believed[t] == pytest.approx(posterior[t], rel=1e-9)
        assert (found.tied[t], found.right[t]) == (tied, pytest.approx(right))


@pytest.mark.parametrize("keys", [(1, 0, 0), (1, 1, 0), (1, 1, 1)])
@pytest.mark.parametrize("known", [(1, 1, 1), (1, 0, 1)])
@given(seed=st.integers(0, 10_000))
def test_a_record_that_lacks_a_value_may_show_true_ones(keys, known, seed: int) -> None:
    """It counted as treated, though untreated it has the target's values with a chance, too:
    other records had too little weight, and the target's own too much.
    """
    rng = np.random.default_rng(seed)
    states, share = model(seed), 0.35
    treated, known = np.array(keys, dtype=bool), np.array(known, dtype=bool)
    truth = np.stack([rng.integers(0, size, 12) for size in SIZES], axis=1).astype(np.int32)
    truth[rng.random(truth.shape) < 0.25] = -1
    drawn = np.stack([rng.integers(0, size, 12) for size in SIZES], axis=1).astype(np.int32)
    changed = (rng.random(12) < share)[:, None] & treated & (truth >= 0)
    released = np.where(changed, drawn, truth)
    hidden = np.broadcast_to(treated, truth.shape)
    found = match_records(truth, hidden, known, states, released=released, share=share)
    shown = perhaps_treated(released, treated, share)
    for t, row in enumerate(truth):
        posterior = enumerated(states, shown, tuple(map(int, row)), known & (row >= 0))
        tied, right = tied_and_right(posterior, t)
        assert found.believed[t] == pytest.approx(posterior[t], rel=1e-9)
        assert (found.tied[t], found.right[t]) == (tied, pytest.approx(right))


@given(st.integers(0, 10_000))
def test_nothing_hidden_is_one_over_f(seed: int) -> None:
    """Without a treatment the best matches are the records with the same values."""
    rng = np.random.default_rng(seed)
    truth = np.stack([rng.integers(0, size, 10) for size in SIZES], axis=1).astype(np.int32)
    found = match_records(
        truth, np.zeros(truth.shape, dtype=bool), np.ones(3, dtype=bool), model(1)
    )
    f = np.array([(truth == row).all(axis=1).sum() for row in truth])
    assert (found.right == 1 / f).all()
    assert (found.believed == 1 / f).all()


@given(st.integers(0, 10_000))
def test_the_order_of_records_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.stack([rng.integers(0, size, 10) for size in SIZES], axis=1).astype(np.int32)
    hidden, order = rng.random(truth.shape) < 0.4, rng.permutation(10)
    known, states = np.ones(3, dtype=bool), model(seed)
    a = match_records(truth, hidden, known, states)
    b = match_records(truth[order], hidden[order], known, states)
    assert np.array_equal(a.right[order], b.right)
