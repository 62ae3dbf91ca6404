"""Chances are those of all ways to shuffle the rows, or above them."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from bayes_sdc.flows.kept_columns.evidence import (
    beside_levels,
    function_of_count,
    in_order,
    in_perfect_order,
    information,
    narrowed,
)

ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=2, max_size=6)


def shuffles(codes: np.ndarray) -> np.ndarray:
    return np.array(list(permutations(codes)))


@given(ROWS)
def test_function_of_the_count_has_the_chance_of_enumeration(rows):
    codes, y = np.array(rows).T
    found = function_of_count(codes, y)

    def is_function(values: np.ndarray) -> bool:
        return len(set(values)) > 1 and all(len(set(values[y == k])) == 1 for k in set(y))

    if not is_function(codes):
        assert found == 0.0
        return
    share = np.mean([is_function(values) for values in shuffles(codes)])
    assert np.exp(found) == pytest.approx(share), "not the share of shuffles"


@given(ROWS)
def test_a_narrow_value_is_not_more_surprising_than_it_is(rows):
    """The chance stated bounds that of a value as surprising, over all shuffles."""
    codes, y = np.array(rows).T
    found = narrowed(codes, y).log_chance
    assert found <= 0.0
    as_low = np.mean([narrowed(values, y).log_chance <= found + 1e-9 for values in shuffles(codes)])
    assert as_low <= np.exp(found) + 1e-9


@given(ROWS)
def test_perfect_order_has_the_chance_of_enumeration(rows):
    _, y = np.array(rows).T
    x = np.sort(y) + np.linspace(0, 0.5, len(y))  # different numbers
    found = in_perfect_order(x, np.sort(y))
    if len(y) > 2:
        both = [(np.diff(v) >= 0).all() or (np.diff(v) <= 0).all() for v in shuffles(y)]
        assert np.exp(found) >= np.mean(both) - 1e-9, "understates chance"
        assert np.exp(found) <= 2 * np.mean(both) + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_order_is_spearmans_and_its_chance_that_of_shuffles(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 9, 60)
    x = y + rng.normal(0, 9, 60)
    r, log_chance = in_order(x, y)
    assert r == pytest.approx(spearmanr(x, y).statistic)
    others = np.abs([in_order(rng.permutation(x), y)[0] for _ in range(2000)])
    assert np.exp(log_chance) == pytest.approx((others >= abs(r)).mean(), abs=0.03)


def test_order_inside_areas_sees_only_the_order_inside():
    rng = np.random.default_rng(3)
    area = np.repeat(np.arange(20), 6)
    y = rng.integers(0, 9, 120)
    x = y + 1000.0 * rng.permutation(20)[area]
    assert in_order(x, y, area)[0] == pytest.approx(1.0)
    assert in_order(1000.0 * area, y, area) == (0.0, 0.0)


def test_information_is_that_of_the_table_and_its_chance_that_of_shuffles():
    rng = np.random.default_rng(4)
    for values in (3, 40):  # common values, and values too rare for the chi-squared
        y = rng.integers(0, 9, 300)
        chances = [information(rng.integers(0, values, 300), y, rng).log_chance for _ in range(400)]
        for level in (0.5, 0.1, 0.02):
            below = float((np.exp(chances) <= level).mean())
            assert below == pytest.approx(level, abs=4 * np.sqrt(level / 400) + 0.01)
    joint = np.array([[30, 10], [5, 55]])
    codes = np.repeat([0, 0, 1, 1], joint.ravel())
    y = np.repeat([0, 1, 0, 1], joint.ravel())
    p = joint / 100
    exact = (p * np.log(p / np.outer(p.sum(1), p.sum(0)))).sum()
    entropy = -(p.sum(0) * np.log(p.sum(0))).sum()
    found = information(codes, y, rng)
    assert found.share == pytest.approx((exact - 1 / 200) / entropy), "less half a degree a row"


def test_single_rows_far_out_in_both_are_no_relation():
    """Populations have long tails, and small counts are skewed: one row then made a correlation."""
    rng, alarms = np.random.default_rng(3), 0
    for _ in range(2_000):
        x, y = rng.lognormal(0.0, 2.0, 100), np.minimum(rng.geometric(0.54, 100), 9.0)
        alarms += beside_levels(x - x.mean(), y - y.mean(), 99)[1] < np.log(1e-3)
    assert alarms <= 6  # two are expected; 97 of 100 times at most four
