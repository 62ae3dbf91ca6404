"""The cycles of the intruder: exactly the cells that totals and all other counts tell have none."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc.flows.audit.kept_totals import pinned_cells
from bayes_sdc.flows.intruder.totals.cycles import log_weights, tables_along
from bayes_sdc.flows.intruder.totals.search import Cycles, widest_cycles
from bayes_sdc.flows.release.totals.alternating_cycles import graph_of
from bayes_sdc.flows.release.totals.margins import Margins


def margins_of(left: np.ndarray, right: np.ndarray, y: np.ndarray) -> Margins:
    return Margins(left, right, *(np.bincount(of, y).astype(np.int64) for of in (left, right)))


def ring(k: int) -> tuple[np.ndarray, np.ndarray]:
    """2 k cells on one cycle."""
    return np.repeat(np.arange(k), 2), np.array([(i + j) % k for i in range(k) for j in (0, 1)])


def check_cycles(cycles: Cycles, left, right, y, upper: int) -> None:
    """Every table along a cycle has the totals, and counts within the bounds."""
    for t in range(len(y)):
        cells = cycles.through(t)
        assert len(set(cells.tolist())) == len(cells)
        assert cycles.low[t] <= 0 <= cycles.high[t]
        if len(cells) == 0:
            assert cycles.low[t] == cycles.high[t] == 0
            continue
        assert t in cells[::2]
        assert cycles.low[t] < cycles.high[t]
        for d in range(cycles.low[t], cycles.high[t] + 1):
            other = y.copy()
            other[cells[::2]] += d
            other[cells[1::2]] -= d
            assert ((other >= 0) & (other <= upper)).all()
            for of in (left, right):
                assert (np.bincount(of, other) == np.bincount(of, y)).all()


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_cells_without_a_cycle_are_those_that_are_pinned(shape, upper: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = (np.unique(side, return_inverse=True)[1] for side in np.array(shape).T)
    # most counts at a bound, so that most cycles cannot move
    y = rng.choice([0, upper, upper // 2], len(shape), p=[0.45, 0.45, 0.1])
    cycles = widest_cycles(rng, graph_of(left, right), y, upper)
    pinned = pinned_cells(margins_of(left, right, y), y, upper)
    assert ((cycles.low == 0) & (cycles.high == 0)).tolist() == pinned.tolist()
    check_cycles(cycles, left, right, y, upper)


@pytest.mark.parametrize("k", [2, 3, 6, 7, 10, 33, 400])
def test_a_ring_of_any_length_leaves_its_tables(k: int) -> None:
    """Of more than 12 edges few cycles were found, and of more than 64 none: all was known."""
    rng = np.random.default_rng(1)
    left, right = ring(k)
    y = rng.integers(2, 7, 2 * k)
    cycles = widest_cycles(rng, graph_of(left, right), y, 8)
    before = tables_along(np.ones(9), y, cycles)
    one = cycles.through(0)
    sign = np.zeros(2 * k, np.int64)
    sign[one[::2]], sign[one[1::2]] = 1, -1
    assert (sign != 0).all()
    # by enumeration: every table with these totals is the true one and a multiple of the signs
    tables = [y + d * sign for d in range(-8, 9)]
    tables = [table for table in tables if ((table >= 0) & (table <= 8)).all()]
    exact = np.zeros((2 * k, 9))
    for table in tables:
        exact[np.arange(2 * k), table] += 1.0 / len(tables)
    np.testing.assert_allclose(before, exact)


def test_weights_of_cells_that_share_a_cycle_are_those_of_each() -> None:
    rng = np.random.default_rng(4)
    left, right = ring(20)
    y = rng.integers(1, 4, 40)
    cycles = widest_cycles(rng, graph_of(left, right), y, 4)
    log_p = np.log(rng.dirichlet(np.ones(5), 40))
    found = log_weights(log_p, y, cycles)
    for t in range(40):
        cells = cycles.through(t)
        for d in range(-4, 5):
            to = y[cells] + d * np.resize([1, -1], 40)
            if ((to < 0) | (to > 4)).any():
                assert not 0 <= y[t] + d <= 4 or found[t, y[t] + d] == -np.inf
            else:
                exact = (log_p[cells, to] - log_p[cells, y[cells]]).sum()
                assert found[t, y[t] + d] == pytest.approx(exact)


def test_the_same_seed_gives_the_same_cycles() -> None:
    rng = np.random.default_rng(2)
    left, right = rng.integers(0, 40, (2, 90))
    y = rng.choice([0, 3], 90)
    graph = graph_of(left, right)
    one, other = (widest_cycles(np.random.default_rng(3), graph, y, 3) for _ in range(2))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_large_sparse_table_takes_seconds() -> None:
    """Two of three counts at a bound: a search through all of the table for each took minutes."""
    rng = np.random.default_rng(6)
    pairs = np.unique(rng.integers(0, 10_000, (50_000, 2)), axis=0)
    left, right = (np.unique(side, return_inverse=True)[1] for side in pairs.T)
    y = rng.choice([0, 8, 3], len(left))
    widest_cycles(rng, graph_of(*ring(3)), np.full(6, 2), 8)  # compiled
    start = time.process_time()
    cycles = widest_cycles(rng, graph_of(left, right), y, 8)
    assert time.process_time() - start < 20
    pinned = pinned_cells(margins_of(left, right, y), y, 8)
    assert ((cycles.low == cycles.high) == pinned).all()


def test_enumeration_of_tables_says_which_cells_have_no_cycle() -> None:
    left, right = np.array([(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 0)]).T
    y = np.array([0, 1, 0, 1, 0, 1, 0, 0])
    cycles = widest_cycles(np.random.default_rng(1), graph_of(left, right), y, 1)
    every = np.array(list(itertools.product(range(2), repeat=8)))
    for of in (left, right):
        sums = np.stack([np.bincount(of, table, 4) for table in every])
        every = every[(sums == np.bincount(of, y)).all(axis=1)]
    assert ((cycles.low == cycles.high) == (every == every[0]).all(axis=0)).all()
