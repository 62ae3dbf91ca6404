"""Weighted sums of numbers of small counts: any weights are found, what is public is not blamed."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import read_flows
from bayes_sdc.flows.kept_columns.selection import select_columns

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


@settings(max_examples=10)
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


@settings(max_examples=10)
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
@settings(max_examples=5)
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
