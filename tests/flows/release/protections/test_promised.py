"""Mechanisms with a promise on a table: blocks, streams, and what each needs to know beforehand."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import read_flows
from bayes_sdc.flows.release.protections.promised import (
    DIRICHLET,
    PLAIN,
    blocks_of,
    promised,
    public_shares,
)
from bayes_sdc.flows.table.read import FlowTable

COLUMNS = {"origin": "o", "destination": "d", "count": "n"}


def table_of(seed: int = 1, **ends: int) -> FlowTable:
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in "abcdef" for j in "uvw"]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    frame["n"] = rng.integers(1, 10, len(frame))
    return read_flows(frame, **COLUMNS, **ends)


@pytest.mark.parametrize("epsilon", [2.0, 0.5])
def test_every_mechanism_keeps_its_epsilon_in_every_cell(epsilon) -> None:
    """Delta 0, so no release at all may be beyond; and each tells something."""
    table = table_of()
    shares = public_shares(table)
    found = list(promised(table, epsilon=epsilon, shares=shares, delta=0.0, seed=1))
    assert len(found) == 4
    for one in found:
        np.testing.assert_allclose(one.m.sum(axis=2), 1.0)
        assert 0.1 * epsilon < one.log_ratio <= epsilon + 1e-6, one.method
        assert one.log_likelihood.shape == (table.n_small, table.k + 1)
        if one.method != PLAIN:
            assert table.low <= one.counts.min() <= one.counts.max() <= table.high


def test_with_delta_the_synthesis_may_be_beyond_and_keeps_more_of_the_table() -> None:
    table = table_of()
    of_delta = {
        delta: {one.method: one for one in promised(
            table, epsilon=0.5, shares=public_shares(table), delta=delta, seed=1)}[DIRICHLET]
        for delta in (0.0, 1e-3)
    }  # fmt: skip
    assert of_delta[1e-3].log_ratio > of_delta[0.0].log_ratio
    assert of_delta[1e-3].delta == 1e-3


def test_what_is_drawn_for_a_block_does_not_follow_its_counts() -> None:
    """Two tables with the same cells: else the number of people drawn tells their sum."""
    shares = public_shares(table_of())
    one, other = (blocks_of(table_of(seed), shares) for seed in (1, 2))
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])
    assert set(np.bincount(one[0])) == {6}


def test_same_seed_same_release_and_other_counts_have_equal_shares() -> None:
    table = table_of()
    shares = public_shares(table)
    first, again = (
        [one.counts for one in promised(table, epsilon=1.0, shares=shares, seed=4)]
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(public_shares(table_of(high=12)), np.full(12, 1 / 12))
