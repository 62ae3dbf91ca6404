"""Only what the table needs and what describes one area leaves unless it is named."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, read_flows
from bayes_sdc.flows.kept_columns.selection import Selection, select_columns
from bayes_sdc.flows.table.simulate import simulate_flows


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return simulate_flows(areas=30, states=2, seed=4)


def select(frame: pd.DataFrame, keep=(), **options) -> Selection:
    table = read_flows(frame, origin="origin", destination="destination", count="count", **options)
    return select_columns(table, keep)


def test_columns_of_areas_are_released_and_others_are_not(frame):
    more = frame.assign(
        latitude=frame["destination"].astype("category").cat.codes * 0.25,
        year="2011",
        band=np.where(frame["count"] < 4, "S", "M"),
        pair=frame["origin"] + frame["destination"],
    )
    selection = select(more)
    assert {"origin_name", "latitude", "year"} <= {*selection.released}
    assert [one.name for one in selection.left_out] == ["band", "pair"]
    assert "no function of the origin" in selection.left_out[0].why
    assert list(selection.of(more).columns) == list(selection.released)
    assert "2 columns 'band', 'pair'" in next(selection.notes())


def test_groups_are_released(frame):
    year = np.arange(len(frame)) % 2
    selection = select(frame.assign(year=year), groups="year")
    assert "year" in selection.released


def test_where_each_area_has_one_row_nothing_is_known_of_a_column(frame):
    """Else every column is a function of the origin, the count itself among them."""
    one = frame[frame["origin"] != frame["destination"]].drop_duplicates("origin")
    one = one.drop_duplicates("destination")
    selection = select(one.assign(copy=one["count"]))
    assert "copy" in {one.name for one in selection.left_out}
    assert "too few rows" in {one.name: one.why for one in selection.left_out}["copy"]


@pytest.mark.parametrize("side", ["origin", "destination"])
@pytest.mark.parametrize("own", [True, False])
def test_totals_of_areas_are_not_taken_for_names(frame, side, own):
    part = frame if own else frame[frame["origin"] != frame["destination"]]
    for total in (
        part.groupby(side)["count"].sum(),
        part.groupby(side)["count"].sum() / 1000,
        part[part["count"] < 10].groupby(side)["count"].sum(),
        part.groupby(side)["count"].mean(),
        part.groupby(side)["count"].sum().map(lambda n: f"{n:,}"),
        (part.groupby(side)["count"].sum() / part["count"].sum()).round(7),
    ):
        for end in ("origin", "destination"):
            more = frame.assign(total=frame[end].map(total))
            left = {one.name: one.why for one in select(more).left_out}
            assert "publishes totals" in left["total"]


def test_other_numbers_of_areas_are_released(frame):
    total = frame.groupby("origin")["count"].sum()
    rng = np.random.default_rng(1)
    population = (total * rng.uniform(5, 50, len(total))).round()
    selection = select(frame.assign(population=frame["origin"].map(population)))
    assert "population" in selection.released


@pytest.mark.parametrize("between", [3, 14])
def test_a_rate_far_from_its_population_is_found(frame, between):
    """Only the last twelve columns were looked at beside it."""
    total = frame.groupby("origin")["count"].sum()
    rng = np.random.default_rng(1)
    population = (total * rng.uniform(5, 50, len(total))).round()
    frame = frame.assign(population=frame["origin"].map(population))
    for k in range(between):
        frame[f"x{k}"] = frame["origin"].map(pd.Series(rng.normal(size=len(total)), total.index))
    frame["rate"] = frame["origin"].map((total / population).round(7))
    left = {one.name: one.why for one in select(frame).left_out}
    assert list(left) == ["rate"]
    assert "with 'population'" in left["rate"]


def test_more_columns_than_can_be_compared_do_not_leave(frame, monkeypatch):
    monkeypatch.setattr("bayes_sdc.flows.kept_columns.selection.MOST_TOGETHER", 5)
    rng = np.random.default_rng(2)
    areas = frame["origin"].unique()
    many = {
        f"x{k}": frame["origin"].map(dict(zip(areas, rng.normal(size=len(areas)), strict=True)))
        for k in range(6)
    }
    selection = select(pd.concat([frame, pd.DataFrame(many)], axis=1))
    assert "x5" in [one.name for one in selection.left_out]
    assert "too many" in selection.left_out[-1].why


def test_a_column_that_is_to_be_kept_must_be_there(frame):
    with pytest.raises(InputError, match="no column 'bands'"):
        select(frame, ["bands"])
    with pytest.raises(InputError, match="list of columns"):
        select(frame, "origin_name")


@pytest.mark.parametrize("wrong", [0.3, 0.6])
@pytest.mark.parametrize("factor", [1, 1000])
def test_totals_that_are_wrong_for_many_areas_are_no_facts_of_an_area(frame, wrong, factor):
    """They give the small counts of the other areas away."""
    sums = frame.groupby("origin")["count"].sum() / factor
    off = np.random.default_rng(3).random(len(sums)) < wrong
    sums = sums.where(~off, sums * np.random.default_rng(4).uniform(1.1, 3, len(sums)))
    if factor == 1:
        sums = sums.round()
    elif wrong > 0.5:
        return  # the factor itself is that of most areas
    selection = select(frame.assign(total=frame["origin"].map(sums)))
    assert "publishes totals" in {one.name: one.why for one in selection.left_out}["total"]
