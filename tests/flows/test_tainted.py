"""Covariates made from small counts are found, and those made from what is public are not."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import read_flows, with_covariates
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.flows.tainted import tainted_covariates

AREAS = [f"{number:02d}" for number in range(8)]


@pytest.fixture(scope="module")
def table() -> FlowTable:
    """Small and safe counts between eight areas."""
    rng = np.random.default_rng(1)
    pairs = [(a, b) for a in AREAS for b in AREAS if a != b]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    frame["n"] = rng.integers(1, 30, len(frame))
    return read_flows(frame, origin="o", destination="d", count="n")


@pytest.mark.parametrize("form", [lambda x: x, np.log, np.sqrt, lambda x: -(x**2)])
def test_totals_with_small_counts_are_found_among_covariates(table: FlowTable, form) -> None:
    """In any form that keeps their order."""
    totals = table.frame.groupby("o")["n"].sum()
    at_cell = totals.loc[table.cells["origin"]].to_numpy(float)
    leaky = pd.DataFrame({"size": form(at_cell)}, index=table.cells.index)
    assert tainted_covariates(with_covariates(table, leaky)) == ["size"]


def test_covariates_from_what_is_public_are_not(table: FlowTable) -> None:
    """Else every covariate would end it, and nobody would read the reasons."""
    safe = table.frame[table.frame["n"] > table.high].groupby("o")["n"].sum()
    at_cell = safe.reindex(table.cells["origin"]).fillna(0.0).to_numpy(float)
    noise = np.random.default_rng(1).normal(size=len(at_cell))
    fine = pd.DataFrame({"safe": np.log1p(at_cell), "distance": noise}, index=table.cells.index)
    assert tainted_covariates(with_covariates(table, fine)) == []


@pytest.mark.parametrize(
    "form",
    [lambda y: y > 3, lambda y: np.digitize(y, [2, 6]), lambda y: -((y - 4.0) ** 2)],
    ids=["two classes", "three classes", "folded"],
)
def test_classes_of_the_counts_are_found_among_covariates(table: FlowTable, form) -> None:
    """A step function is neither linear nor in one order with the counts."""
    y = table.cells["y"].to_numpy()
    leaky = pd.DataFrame({"class": form(y).astype(float)}, index=table.cells.index)
    assert tainted_covariates(with_covariates(table, leaky)) == ["class"]


def test_counts_with_a_little_noise_are_found_and_an_earlier_year_is_not() -> None:
    """The same rate a year before goes with the counts, but not so closely."""
    rng = np.random.default_rng(3)
    pairs = [(a, b) for a in AREAS for b in AREAS if a != b]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    rate = rng.gamma(1.0, 4.0, len(frame))
    frame["n"] = 1 + np.minimum(rng.poisson(rate), 8)
    table = read_flows(frame, origin="o", destination="d", count="n")
    y = table.cells["y"].to_numpy()
    noisy = y + rng.normal(0.0, 0.2, len(y))
    earlier = np.log1p(rng.poisson(rate[table.cells["row"]]))
    both = pd.DataFrame({"noisy": noisy, "earlier": earlier}, index=table.cells.index)
    assert tainted_covariates(with_covariates(table, both)) == ["noisy"]


@pytest.mark.parametrize("form", [np.asarray, np.log1p, np.log, np.sqrt])
@pytest.mark.parametrize("stayers", [True, False])
@pytest.mark.parametrize("of", ["left", "came", "both", "difference", "by_group"])
def test_every_usual_total_is_found_with_and_without_people_who_stayed(form, stayers, of) -> None:
    """The usual totals are without them; in a file with such rows they were not recognised."""
    rng = np.random.default_rng(8)
    areas = [f"{k:02d}" for k in range(14)]
    frame = pd.DataFrame([(a, b) for a in areas for b in areas], columns=["o", "d"])
    frame["n"] = rng.geometric(0.12, len(frame))
    frame.loc[frame["o"] == frame["d"], "n"] += rng.integers(50, 900, 14)
    frame["s"], frame["t"] = frame["o"].str[0], frame["d"].str[0]
    counted = frame if stayers else frame[frame["o"] != frame["d"]]
    left, came = counted.groupby("o")["n"].sum(), counted.groupby("d")["n"].sum()
    totals = {"left": left, "came": came, "both": left + came, "difference": left - came}
    table = read_flows(frame, origin="o", destination="d", count="n", groups=["s", "t"])
    if of == "by_group":
        sums = counted.groupby(["o", "t"])["n"].sum()
        at = pd.MultiIndex.from_arrays([table.cells["origin"], table.cells["destination"].str[0]])
        values = sums.reindex(at).to_numpy(float)
    else:
        values = table.cells["destination"].map(totals[of]).to_numpy(float)
    if values.min() <= 0:
        values = values - values.min() + 1.0
    covariate = pd.DataFrame({"x": form(values)}, index=table.cells.index)
    assert tainted_covariates(with_covariates(table, covariate)) == ["x"]
    other = pd.DataFrame({"x": rng.permutation(form(values))}, index=table.cells.index)
    assert tainted_covariates(with_covariates(table, other)) == []


def flows_of(seed: int) -> FlowTable:
    rng = np.random.default_rng(seed)
    areas = [f"{k:02d}" for k in range(24)]
    pairs = [(a, b) for a in areas for b in areas if a != b]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    frame["n"] = rng.geometric(0.12, len(frame))
    return read_flows(frame, origin="o", destination="d", count="n")


OF_AREAS = {
    "mean of small": lambda f: f[f["n"] < 10].groupby("o")["n"].mean(),
    "number of ones": lambda f: f["n"].eq(1).groupby(f["o"]).sum(),
    "share of small": lambda f: (
        f["n"].where(f["n"] < 10, 0).groupby(f["o"]).sum() / f.groupby("o")["n"].sum()
    ),
    "median of small": lambda f: f[f["n"] < 10].groupby("o")["n"].median(),
    "squares": lambda f: (f["n"] ** 2).groupby(f["o"]).sum(),
    "rounded total": lambda f: (f.groupby("o")["n"].sum() / 5).round() * 5,
}


@pytest.mark.parametrize("of", list(OF_AREAS))
@pytest.mark.parametrize("side", ["o", "d"])
def test_what_describes_an_area_by_its_small_counts_is_found(of: str, side: str) -> None:
    """A promise went out beside the mean of the small counts of each origin."""
    table = flows_of(3)
    turned = table.frame.rename(columns={"o": "d", "d": "o"}) if side == "d" else table.frame
    end = table.cells["origin" if side == "o" else "destination"]
    values = end.map(OF_AREAS[of](turned)).fillna(0.0).to_numpy(float)
    covariate = pd.DataFrame({"x": values}, index=table.cells.index)
    assert tainted_covariates(with_covariates(table, covariate)) == ["x"]


@pytest.mark.parametrize("form", [np.asarray, np.log1p, np.sqrt])
def test_the_way_back_and_totals_of_both_ends_are_found(form) -> None:
    """Both are usual in gravity models, and made from small counts."""
    table = flows_of(4)
    n = table.frame.set_index(["o", "d"])["n"]
    o, d = table.cells["origin"], table.cells["destination"]
    back = n.reindex(pd.MultiIndex.from_arrays([d, o])).to_numpy(float)
    left, came = n.groupby("o").sum(), n.groupby("d").sum()
    both = 0.7 * form(o.map(left).to_numpy(float)) + 0.4 * form(d.map(came).to_numpy(float))
    given = pd.DataFrame({"back": form(back), "both": both}, index=table.cells.index)
    assert tainted_covariates(with_covariates(table, given)) == ["back", "both"]


def test_sizes_and_distances_of_areas_are_not_found() -> None:
    """Population, number of partners, safe totals, distances, an earlier year."""
    table, rng = flows_of(5), np.random.default_rng(6)
    o, d = table.cells["origin"], table.cells["destination"]
    people = pd.Series(rng.lognormal(9, 1, 24).round(), sorted(set(table.frame["o"])))
    safe = table.frame[table.frame["n"] > 9].groupby("o")["n"].sum()
    partners = table.frame["n"].lt(10).groupby(table.frame["o"]).sum()
    fine = pd.DataFrame(
        {
            "people": np.log(o.map(people).to_numpy(float)),
            "product": np.log(o.map(people).to_numpy(float) * d.map(people).to_numpy(float)),
            "safe": np.log1p(o.map(safe).fillna(0.0).to_numpy(float)),
            "partners": o.map(partners).to_numpy(float),
            "north": d.map(people.rank() > 7).to_numpy(float),
            "apart": rng.gamma(2.0, 30.0, len(o)),
            "year before": rng.geometric(0.12, len(o)).astype(float),
        },
        index=table.cells.index,
    )
    assert tainted_covariates(with_covariates(table, fine)) == []
