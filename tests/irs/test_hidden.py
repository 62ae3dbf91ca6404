"""Bounds on flows that are not shown: against every table that fits, and against the truth."""

import itertools

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import read_irs_flows
from bayes_sdc.errors import InputError
from bayes_sdc.io.tables import Dialect, encode
from bayes_sdc.irs.hidden import hidden_flows, tighten
from bayes_sdc.irs.simulate import (
    EXAMPLE_SEED,
    example_irs_path,
    publish_irs,
    simulate_irs_flows,
)

NAMES = "statefips countyfips"


def files_of(tmp_path, table, shown_in, shown_out, totals=None):
    """Write a state's table (origin by destination) as an inflow and an outflow file; read them."""
    table = np.asarray(table)
    read = []
    for direction, shown in (("inflow", shown_in), ("outflow", shown_out)):
        matrix = table.T if direction == "inflow" else table
        seen = np.asarray(shown).T if direction == "inflow" else np.asarray(shown)
        sides = ("y2", "y1") if direction == "inflow" else ("y1", "y2")
        lines = [
            ",".join(f"{s}_{what}" for s in sides for what in NAMES.split())
            + f",{sides[1]}_state,{sides[1]}_countyname,n1,n2,agi"
        ]
        for i, row in enumerate(matrix):
            county = f"05,{2 * i + 1:03d}"
            total = int(row.sum()) if totals is None else totals[direction][i]
            lines.append(f"{county},97,000,QQ,US,{total},0,0")
            lines.append(f"{county},97,001,QQ,same,{total},0,0")
            lines += [
                f"{county},05,{2 * j + 1:03d},QQ,x,{count},0,0"
                for j, count in enumerate(row)
                if j != i and seen[i, j]
            ]
        path = tmp_path / f"county{direction}1011.csv"
        path.write_text("\n".join(lines) + "\n")
        read.append(read_irs_flows(path))
    return read


def all_fits(table, hidden, sums):
    """Return the least and the most of every hidden place, over all tables that fit the sums."""
    places = list(zip(*np.nonzero(hidden), strict=True))
    most = [int(min(sums[0][i], sums[1][j])) for i, j in places]
    found = []
    for values in itertools.product(*(range(m + 1) for m in most)):
        filled = np.where(hidden, 0, table)
        for place, value in zip(places, values, strict=True):
            filled[place] = value
        if (filled.sum(1) == sums[0]).all() and (filled.sum(0) == sums[1]).all():
            found.append(values)
    return np.min(found, axis=0), np.max(found, axis=0)


@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_for_every_table_that_fits_the_published_sums(tmp_path, seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 3, size=(4, 4))
    np.fill_diagonal(table, 0)
    hidden = rng.random((4, 4)) < 0.5
    np.fill_diagonal(hidden, False)
    bounds = hidden_flows(*files_of(tmp_path, table, ~hidden, ~hidden))
    left = np.where(hidden, table, 0)
    least, most = all_fits(left, hidden, (left.sum(1), left.sum(0)))
    assert len(bounds) == hidden.sum()
    assert (bounds["lower"].to_numpy() <= least).all()
    assert (bounds["upper"].to_numpy() >= most).all()
    wide = (bounds["upper"] - bounds["lower"]).sum() - (most - least).sum()
    assert wide <= 0.25 * (most - least).sum() + 1  # close to what can be known


def test_one_file_alone_gives_the_sharp_bounds_of_its_own_sums(tmp_path):
    table = [[0, 5, 0, 2], [1, 0, 30, 0], [0, 0, 0, 0], [12, 40, 0, 0]]
    hidden = np.asarray(table) < 10
    _, outflow = files_of(tmp_path, table, ~hidden, ~hidden)
    bounds = hidden_flows(outflow).set_index(["origin", "destination"])
    assert bounds.loc[("05001", "05003"), ["lower", "upper"]].tolist() == [0, 7]
    assert bounds.loc[("05003", "05001"), ["lower", "upper"]].tolist() == [0, 1]
    assert bounds.loc["05005", "determined"].all()  # nobody left
    assert bounds.loc[("05007", "05005"), ["lower", "upper", "determined"]].tolist() == [0, 0, True]
    capped = hidden_flows(outflow, largest=5).set_index(["origin", "destination"])
    assert capped.loc[("05001", "05003"), ["lower", "upper"]].tolist() == [0, 5]
    assert capped["largest"].all()


def test_a_flow_that_the_other_file_shows_is_known(tmp_path):
    table = np.array([[0, 289, 40], [50, 0, 60], [70, 80, 0]])
    shown_in = np.ones((3, 3), dtype=bool)
    shown_out = shown_in.copy()
    shown_out[0, 1] = False  # smallest of its row, say
    both = files_of(tmp_path, table, shown_in, shown_out)
    assert not len(hidden_flows(*both))
    alone = hidden_flows(both[1])
    assert alone[["lower", "upper"]].to_numpy().tolist() == [[289, 289]]


def test_a_larger_flow_than_assumed_contradicts_the_limit_and_lifts_it(tmp_path):
    table = np.array([[0, 25, 40], [50, 0, 60], [70, 80, 0]])
    shown = table != 25
    bounds = hidden_flows(*files_of(tmp_path, table, shown, shown), largest=9)
    assert bounds[["lower", "upper"]].to_numpy().tolist() == [[25, 25]]
    assert not bounds["largest"].any()


def test_sums_that_contradict_each_other_give_no_bounds(tmp_path):
    table = np.array([[0, 3, 40], [50, 0, 60], [70, 80, 0]])
    shown = table != 3
    wrong = {"inflow": [120, 83, 100], "outflow": [49, 110, 150]}
    bounds = hidden_flows(*files_of(tmp_path, table, shown, shown, wrong))
    assert bounds["lower"].tolist() == [0]
    assert bounds["upper"].isna().all()
    assert not bounds["determined"].any()


def test_unknown_sums_bound_nothing(tmp_path):
    table = np.array([[0, 3, 40], [50, 0, 60], [70, 80, 0]])
    shown = table != 3
    marks = {"inflow": [120, "d", 100], "outflow": ["-1", 110, 150]}
    files = files_of(tmp_path, table, shown, shown, marks)
    assert hidden_flows(*files)["upper"].isna().all()
    assert hidden_flows(*files, largest=9)["upper"].tolist() == [9]
    one = files_of(tmp_path, table, shown, shown, {**marks, "inflow": [120, 83, 100]})
    assert hidden_flows(*one)[["lower", "upper"]].to_numpy().tolist() == [[3, 3]]


def test_files_that_do_not_belong_together_are_refused():
    inflow = read_irs_flows(example_irs_path("inflow"), years="2010-2011")
    later = read_irs_flows(example_irs_path("outflow"), years="2011-2012")
    with pytest.raises(InputError, match="both files hold inflows"):
        hidden_flows(inflow, inflow)
    with pytest.raises(InputError, match="different years: 2010-2011 and 2011-2012"):
        hidden_flows(inflow, later)
    with pytest.raises(InputError, match="largest must be 0 or more"):
        hidden_flows(inflow, largest=-1)


@pytest.mark.parametrize("seed", [EXAMPLE_SEED, 1, 2])
def test_bounds_of_a_simulated_country_hold_the_truth(tmp_path, seed):
    flows = simulate_irs_flows(areas=30, states=4, seed=seed)
    files = []
    for direction in ("inflow", "outflow"):
        path = tmp_path / f"county{direction}1011.csv"
        path.write_bytes(encode(publish_irs(flows, direction), Dialect()))
        files.append(read_irs_flows(path))
    bounds = hidden_flows(*files)
    pairs = pd.MultiIndex.from_frame(bounds[["origin", "destination"]])
    truth = flows.set_index(["origin", "destination"])["n1"].reindex(pairs, fill_value=0)
    assert (bounds["lower"].to_numpy() <= truth.to_numpy()).all()
    upper = bounds["upper"].astype(float).fillna(np.inf).to_numpy()
    assert (truth.to_numpy() <= upper).all()
    known = bounds["determined"].to_numpy()
    assert (bounds["lower"].to_numpy()[known] == truth.to_numpy()[known]).all()
    alone = hidden_flows(files[0])
    assert alone["determined"].sum() <= known.sum()


def test_tighten_leaves_places_alone_that_take_no_part():
    lower, upper = np.zeros((1, 3)), np.full((1, 3), np.inf)
    tighten(lower, upper, np.array([[True, True, False]]), np.array([4.0]), np.array([6.0]))
    assert lower.tolist() == [[0, 0, 0]]
    assert upper.tolist() == [[6, 6, np.inf]]


@pytest.mark.shared_data
def test_real_margins_of_2010_2011_determine_some_flows(shared_data):
    files = [
        read_irs_flows(shared_data / "irs" / f"county{d}1011_from_state_xls.csv.gz")
        for d in ("inflow", "outflow")
    ]
    bounds = hidden_flows(*files)
    counties = pd.concat([f.rows["county"] for f in files])
    counties = counties[~counties.str.endswith("000")].drop_duplicates()
    pairs = sum(n * (n - 1) for n in counties.str[:2].value_counts())
    frame = pd.concat([f.flow_frame() for f in files]).drop_duplicates(["origin", "destination"])
    assert len(bounds) == pairs - (frame["origin_state"] == frame["destination_state"]).sum()
    assert bounds["determined"].sum() == 43
    assert (bounds["lower"] <= bounds["upper"].fillna(10**9)).all()
    # Delaware: each county's smallest flow is hidden in one file, and total less detail tells it
    delaware = bounds[bounds["state"] == "10"]
    assert delaware["determined"].all()
    assert (delaware["lower"] > files[0].threshold.returns).all()
