"""Treatments side by side: rows are what each treatment alone gives."""

import re

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import (
    InputError,
    Intruder,
    compare_treatments,
    plot_treatments,
    read_microdata,
    treat,
    treated_utility,
)
from bayes_sdc.microdata.treatment import tradeoff
from bayes_sdc.report.microdata.treatment import tell_treatments


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({n: np.minimum(rng.geometric(0.4, 300), 6).astype(str) for n in "abc"})
    return read_microdata(frame, keys=list("abc"))


@pytest.mark.slow
def test_rows_are_those_of_single_treatments_for_any_number_of_cores(data) -> None:
    strengths = {"synthesis": [0.1], "suppression": [3], "pram": [0.1], "full-synthesis": [1]}
    one, two = (
        compare_treatments(data, strengths=strengths, population_size=3000, seed=2, cores=cores)
        for cores in (1, 2)
    )
    pd.testing.assert_frame_equal(one, two)
    rows = one.set_index("method")
    assert rows.loc["untreated", "two_way"] == 0
    assert (rows["expected"] <= rows.loc["untreated", "expected"] + 1e-9).all()
    alone = treat(data, method="suppression", k=3, population_size=3000, seed=2)
    assert rows.loc["suppression", "expected"] == alone.after.expected.value
    assert rows.loc["suppression", "two_way"] == treated_utility(alone).distance(2)


def test_the_picture_has_a_line_a_method(data) -> None:
    frame = compare_treatments(
        data, strengths={"suppression": [2, 3]}, population_size=3000, seed=2
    )
    axes = plot_treatments(frame)
    assert [line.get_label() for line in axes.lines] == ["untreated", "suppression"]
    assert axes.lines[1].get_xdata() == pytest.approx(frame["two_way"][1:].to_numpy())


@pytest.mark.parametrize(
    ("strengths", "words"),
    [
        ({"best": [1]}, "unknown"),
        ({"pram": [2.0]}, "below 1"),
        ({"suppression": [1]}, "from 2"),
        ({"pram": [0.1], "suppression": [2.5]}, "whole number; it is 2"),
        ({"pram": [0.1], "suppression": 3}, "list of numbers"),
        ({"pram": "0.1"}, "list of numbers"),
        ({"pram": ["0.1"]}, "must be a number"),
        ({"suppression": [True]}, "must be a number"),
        ({}, "no treatment"),
        ({"pram": []}, "no treatment"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(data, strengths, words) -> None:
    """k = 2.5 ran k = 2 under its name, and nothing named ran everything."""
    with pytest.raises(InputError, match=words):
        compare_treatments(data, strengths=strengths, seed=1)


@pytest.mark.parametrize(
    ("rows", "keys", "rule", "lost", "why"),
    [
        (40, 3, "own", [2, 3, 5], "no category|not a category"),
        (4, 3, "wildcard", [5], "to the 4 records"),
        (40, 17, "wildcard", [2, 3, 5], "at most 16 keys"),
    ],
)
def test_defaults_that_a_file_cannot_have_are_left_out_and_named(
    rows, keys, rule, lost, why, monkeypatch
) -> None:
    """One of them refused the whole comparison, after the measurement."""
    monkeypatch.setitem(tradeoff.STRENGTHS, "synthesis", (0.2,))
    monkeypatch.setitem(tradeoff.STRENGTHS, "pram", (0.3,))
    rng = np.random.default_rng(1)
    names = [f"k{i}" for i in range(keys)]
    frame = pd.DataFrame(rng.integers(0, 2, (rows, keys)), columns=names)
    data = read_microdata(frame, keys=names, missing=rule)
    wanted, left_out = tradeoff._wanted(data, None, 1, Intruder())
    tried = [int(number) for method, number, _ in wanted if method == "suppression"]
    assert sorted(tried + lost) == [2, 3, 5]
    assert len(left_out) == len(lost)
    assert all(re.search(why, one) for one in left_out)
    if rows == 4:
        found = compare_treatments(data, population_size=400, seed=1)
        assert found.attrs["left_out"] == left_out
        assert tell_treatments(found)["left_out"] == left_out
        assert len(found) == 1 + len(wanted)
        with pytest.raises(InputError, match=why):
            compare_treatments(data, strengths={"suppression": [5]}, seed=1)


def test_with_one_key_the_picture_shows_what_was_treated(data) -> None:
    """There is no table of two keys, and None stood in its place."""
    frame = compare_treatments(
        data.select(["a"]), strengths={"suppression": [3]}, population_size=3000, seed=2
    )
    assert frame[["two_way", "three_way"]].isna().all(axis=None)
    axes = plot_treatments(frame)
    axes.figure.canvas.draw()
    assert axes.get_xlabel() == "records treated"
