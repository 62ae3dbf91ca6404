"""A column of areas that was made from small counts is no description of areas."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import read_flows
from bayes_sdc.flows.kept_columns.check import check_columns
from bayes_sdc.flows.kept_columns.selection import select_columns
from bayes_sdc.flows.table.simulate import simulate_flows

FLOWS = simulate_flows(areas=45, states=3, seed=4).drop(columns="origin_name")
SMALL = FLOWS["count"].where(FLOWS["count"].between(1, 9))
BY = {side: FLOWS.groupby(side)["count"] for side in ("origin", "destination")}


def of(values: pd.Series, side: str, how: str) -> pd.Series:
    return values.groupby(FLOWS[side]).transform(how)


MADE = {
    "ones": of(FLOWS["count"] == 1, "origin", "sum"),
    "ones of the other side": FLOWS["origin"].map(
        (FLOWS["count"] == 1).groupby(FLOWS["destination"]).sum()
    ),
    "share below 4": (
        of(SMALL < 4, "destination", "sum") / of(SMALL, "destination", "count")
    ).round(2),
    "per cent of ones": (
        100 * of(SMALL == 1, "origin", "sum") / of(SMALL, "origin", "count")
    ).round(1),
    "median": of(SMALL, "origin", "median"),
    "deviation": of(SMALL, "destination", "std").round(2),
    "class of the number of ones": pd.cut(
        of(FLOWS["count"] == 1, "origin", "sum"), [-1, 2, 5, 99], labels=["few", "some", "many"]
    ).astype(str),
    "log of the total": np.log(of(FLOWS["count"], "origin", "sum")).round(3),
    "net migration": FLOWS["origin"].map(
        BY["destination"].sum().sub(BY["origin"].sum(), fill_value=0)
    ),
    "turnover": FLOWS["destination"].map(
        BY["destination"].sum().add(BY["origin"].sum(), fill_value=0)
    ),
    "inverse": -of(FLOWS["count"] <= 2, "origin", "sum"),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_statistics_of_small_counts_are_left_out_and_fail_when_kept(name):
    frame = FLOWS.assign(x=MADE[name])
    table = read_flows(frame, origin="origin", destination="destination", count="count")
    default = select_columns(table)
    assert "x" not in default.released
    assert any(word in next(default.notes()) for word in ("hidden", "publishes totals"))
    assert check_columns(table, select_columns(table, ["x"])).verdict == "fail"


@pytest.mark.parametrize("seed", range(2))
def test_what_describes_areas_is_released(seed):
    """Names, regions, flags, measures of areas, and what everybody sees: which cells are small."""
    rng = np.random.default_rng(seed)
    areas = sorted({*FLOWS["origin"], *FLOWS["destination"]})
    of_area = {
        "name": dict(zip(areas, [f"N{i}" for i in rng.permutation(len(areas))], strict=True)),
        "region": dict(zip(areas, rng.integers(0, 5, len(areas)), strict=True)),
        "flag": dict(zip(areas, rng.random(len(areas)) < 0.3, strict=True)),
        "people": dict(zip(areas, rng.lognormal(9, 1, len(areas)).round(), strict=True)),
    }
    frame = FLOWS.assign(**{name: FLOWS["origin"].map(values) for name, values in of_area.items()})
    frame["cells"] = of(SMALL, "destination", "count")
    table = read_flows(frame, origin="origin", destination="destination", count="count")
    assert {*of_area, "cells"} <= {*select_columns(table).areas}


@pytest.mark.parametrize("how", ["rate", "excess", "share"])
def test_a_rate_beside_the_population_publishes_the_total(how):
    rng = np.random.default_rng(5)
    people = {area: int(rng.lognormal(9, 1)) for area in BY["origin"].groups}
    frame = FLOWS.assign(people=FLOWS["origin"].map(people))
    total = of(FLOWS["count"], "origin", "sum")
    frame["made"] = {
        "rate": (1000 * total / frame["people"]).round(4),
        "excess": total + frame["people"],
        "share": (frame["people"] / total).round(6),
    }[how]
    table = read_flows(frame, origin="origin", destination="destination", count="count")
    selection = select_columns(table)
    assert "people" in selection.released
    assert "made" not in selection.released
    assert "with 'people' it publishes totals" in next(selection.notes())
    assert check_columns(table, select_columns(table, ["made"])).verdict == "fail"
