"""Weighted sums of numbers of small counts: any weights are found, what is public is not blamed."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import read_flows
from bayes_sdc.flows.kept_columns.selection import select_columns
from bayes_sdc.flows.kept_columns.weighted import cells_of, weighted_numbers

AREAS = 40


def flows(seed):
    """A table, and the number of its small counts of each size by area: (size, area)."""
    rng = np.random.default_rng(seed)
    o, d = np.divmod(np.arange(AREAS**2), AREAS)
    there = (o != d) & (rng.random(len(o)) < 0.6)
    o, d = o[there], d[there]
    small, safe = np.minimum(rng.geometric(0.35, len(o)), 9), rng.integers(10, 300, len(o))
    n = np.where(rng.random(len(o)) < 0.6, small, safe)
    codes = np.array([f"A{k:02d}" for k in range(AREAS)])
    frame = pd.DataFrame({"o": codes[o], "d": codes[d], "n": n})
    numbers = np.stack([np.bincount(o[n == size], minlength=AREAS) for size in range(1, 10)])
    return frame, numbers, (o, d, n), rng


def chosen(frame):
    return select_columns(read_flows(frame, origin="o", destination="d", count="n"))


def why(frame):
    return {one.name: one.why for one in chosen(frame).left_out}


@settings(max_examples=5)
@given(
    st.integers(0, 10_000),
    st.lists(st.integers(-20, 20), min_size=9, max_size=9).filter(lambda w: len(set(w)) > 1),
    st.integers(-100, 100),
)
def test_any_weights_are_found(seed, weights, more):
    """A column that is 10 times the ones and the twos went out as a fact of an area."""
    frame, numbers, (o, _, _), _ = flows(seed)
    assert "x" in why(frame.assign(x=(weights @ numbers + more)[o]))


@settings(max_examples=5)
@given(st.integers(0, 10_000), st.sampled_from([2, 4]))
def test_rounded_sums_are_found(seed, places):
    frame, numbers, (o, _, _), _ = flows(seed)
    roots = np.sqrt(np.arange(1, 10)) @ numbers
    assert "x" in why(frame.assign(x=roots.round(places)[o]))


@settings(max_examples=4)
@given(st.integers(0, 10_000))
def test_what_everybody_sees_and_what_is_no_sum_is_released(seed):
    frame, _, (o, d, n), rng = flows(seed)
    public = {
        "safe": np.bincount(o[n > 9], n[n > 9], AREAS)[o],
        "cells": 3 * np.bincount(o[n < 10], minlength=AREAS)[o] - np.bincount(o)[o],
        "flag": rng.integers(0, 2, AREAS)[o],
        "class": rng.integers(0, 9, AREAS)[d],
        "north": rng.normal(50, 3, AREAS).round(1)[d],
        "people": rng.integers(10_000, 1_000_000, AREAS)[o],
    }
    assert why(frame.assign(**public)) == {}


@pytest.mark.parametrize("how", ["rate", "balance"])
@settings(max_examples=3)
@given(st.integers(0, 10_000))
def test_three_columns_that_give_totals_together_are_not_all_released(how, seed):
    """Population, births, and births times movers over population: no two give the movers."""
    frame, _, (o, _, n), rng = flows(seed)
    people, births = rng.integers(10_000, 1_000_000, AREAS), rng.integers(100, 9_000, AREAS)
    movers = np.bincount(o, n, AREAS)
    x = movers / people * births if how == "rate" else movers - people / 4 + 2 * births
    frame = frame.assign(people=people[o], births=births[o], other=rng.normal(size=AREAS)[o])
    left = why(frame.assign(x=x[o]))
    assert list(left) == ["x"]
    assert "'people' and 'births' it publishes totals" in left["x"]


def test_a_flag_is_no_sum_because_one_area_has_the_only_count_of_a_size():
    """A capital was left out: in it was the only 9 of the table."""
    rng = np.random.default_rng(7)
    o, d = np.divmod(np.arange(30 * 30), 30)
    there = (o != d) & (rng.random(len(o)) < 0.15)
    o, d = o[there], d[there]
    n = np.minimum(rng.geometric(0.5, len(o)), 8)
    n[np.flatnonzero(o == 3)[0]] = 9
    frame = pd.DataFrame({"o": [f"A{k:02d}" for k in o], "d": [f"A{k:02d}" for k in d], "n": n})
    table = read_flows(frame, origin="o", destination="d", count="n")
    areas = np.arange(30)
    cells = cells_of(table, o, 30)
    assert weighted_numbers(cells, areas, (areas == 3).astype(float)) == 0.0
    ones = np.bincount(o[n == 1], minlength=30)
    assert weighted_numbers(cells, areas, 10.0 * ones + 1.0) < -5.0


@settings(max_examples=4)
@given(st.integers(0, 10_000))
def test_which_cells_are_small_is_public_even_where_large_ones_are_rare(seed):
    """The number of small counts of an area was taken for that of the counts up to 8."""
    rng = np.random.default_rng(seed)
    o, d = np.divmod(np.arange(30 * 30), 30)
    there = (o != d) & (rng.random(len(o)) < 0.3)
    o, d = o[there], d[there]
    n = np.where(rng.random(len(o)) < 0.5, np.minimum(rng.geometric(0.6, len(o)), 9), 50)
    codes = np.array([f"A{k:02d}" for k in range(30)])
    small = np.bincount(o[n < 10], minlength=30)
    share = small / np.maximum(np.bincount(o, minlength=30), 1)
    frame = pd.DataFrame({"o": codes[o], "d": codes[d], "n": n, "small": small[o]})
    assert why(frame.assign(share=share[o])) == {}


@pytest.mark.parametrize("beside", ["nothing", "a flag", "many columns"])
def test_what_stands_beside_does_not_hide_columns_that_give_totals(beside):
    """Logarithms of a flag are none, and of 30 areas no 25 columns can be tried at once."""
    rng = np.random.default_rng(5)
    o, d = np.divmod(np.arange(900), 30)
    there = (o != d) & (rng.random(900) < 0.6)
    o, d = o[there], d[there]
    n = rng.geometric(0.1, len(o))
    codes = np.array([f"A{k:02d}" for k in range(30)])
    frame = pd.DataFrame({"o": codes[o], "d": codes[d], "n": n})
    if beside == "a flag":
        frame["flag"] = np.isin(o, [3, 8, 20]).astype(int)
    elif beside == "many columns":
        for k in range(22):
            frame[f"x{k}"] = rng.normal(size=30)[o]
    movers = np.bincount(o, n, 30)
    a, b = rng.uniform(2, 9, (2, 30))
    frame["a"] = a[o]
    if beside != "nothing":
        frame["b"] = b[o]
        frame["c"] = (movers / a / b)[o]
    else:
        frame["c"] = (movers - 2 * a)[o]
    assert list(why(frame)) == ["c"]
