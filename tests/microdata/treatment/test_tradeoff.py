"""Treatments side by side: rows are what each treatment alone gives."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import (
    InputError,
    compare_treatments,
    plot_treatments,
    read_microdata,
    treat,
    treated_utility,
)


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


@pytest.mark.parametrize("strengths", [{"best": [1]}, {"pram": [2.0]}, {"suppression": [1]}])
def test_what_cannot_be_asked_for_is_refused(data, strengths) -> None:
    with pytest.raises(InputError):
        compare_treatments(data, strengths=strengths, seed=1)


def test_with_one_key_the_picture_shows_what_was_treated(data) -> None:
    """There is no table of two keys, and None stood in its place."""
    frame = compare_treatments(
        data.select(["a"]), strengths={"suppression": [3]}, population_size=3000, seed=2
    )
    assert frame[["two_way", "three_way"]].isna().all(axis=None)
    axes = plot_treatments(frame)
    axes.figure.canvas.draw()
    assert axes.get_xlabel() == "records treated"
