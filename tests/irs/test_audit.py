"""IRS files: what their sums give away of rows that are replaced by -1, against the truth."""

import itertools

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bayes_sdc import read_irs_flows
from bayes_sdc.cli import app
from bayes_sdc.errors import InputError
from bayes_sdc.io.tables import Dialect, encode
from bayes_sdc.irs.audit import audit_irs
from bayes_sdc.irs.simulate import (
    EXAMPLE_SEED,
    example_irs_path,
    publish_irs,
    simulate_irs_flows,
)

HEAD = "y2_statefips,y2_countyfips,y1_statefips,y1_countyfips,y1_state,y1_countyname,n1,n2,agi"
CODES = {
    "US and foreign": "96,000", "US": "97,000", "same": "97,001", "different": "97,003",
    "foreign": "98,000", "other same": "58,000", "other different": "59,000",
}  # fmt: skip


def write(tmp_path, *counties, name="countyinflow1011.csv"):
    """Write a file of the counties of one state; codes as in CODES or of a partner."""
    lines = [HEAD]
    for place, rows in enumerate(counties):
        for what, count in rows.items():
            code = CODES.get(what, what)
            lines.append(f"05,{2 * place + 1:03d},{code},QQ,x,{count},{count},{count}")
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return path


def audited(tmp_path, *counties):
    return audit_irs(read_irs_flows(write(tmp_path, *counties)))


@pytest.mark.parametrize(
    ("rows", "cell", "value"),
    [
        # -1 = 40 - 30
        ({"US and foreign": 40, "US": 30, "foreign": -1}, "05001 foreign total", 10),
        # a single hole among the parts
        ({"US": 40, "same": -1, "different": 33}, "05001 same state total", 7),
        # 0 = x + x
        ({"US": 0, "same": -1, "different": -1}, "05001 different state total", 0),
        # a total of shown parts is their sum
        (
            {"US": -1, "same": 25, "different": 33},
            "05001 US total",
            58,
        ),
        # a row of other flows that is suppressed
        (
            {"US": 90, "same": 50, "different": 40, "other same": -1, "05,003": 44,
             "other different": 40},
            "05001 same state other flows",
            6,
        ),
        # one that is not there at all, and holds too few returns
        (
            {"US": 90, "same": 50, "different": 40, "05,003": 44, "other different": 40},
            "05001 same state other flows (no row)",
            6,
        ),
        # a chain: 100 = 60 + foreign, and what is left of the foreign flows
        (
            {"US and foreign": 100, "US": 60, "foreign": -1, "57,001": 35},
            "05001 foreign other flows (no row)",
            5,
        ),
    ],
)  # fmt: skip
def test_rows_that_follow_from_others(tmp_path, rows, cell, value):
    found = audited(tmp_path, rows)
    row = found.bounds.loc[cell]
    assert (row["lower"], row["upper"], row["pinned"]) == (value, value, True)
    assert row["why"]


def test_rows_that_do_not_follow_are_bounded(tmp_path):
    found = audited(tmp_path, {"US": 40, "same": -1, "different": -1, "05,003": 12})
    assert found.pinned == 0
    assert found.bounds.loc["05001 same state total", ["lower", "upper"]].tolist() == [12, 40]
    assert found.bounds.loc["05001 different state total", ["lower", "upper"]].tolist() == [0, 28]


def test_a_total_that_leaves_nothing_pins_nothing(tmp_path):
    """30 = 30 + x: the IRS leaves suppressed foreign flows out of the total."""
    found = audited(tmp_path, {"US and foreign": 30, "US": 30, "foreign": -1})
    assert found.pinned == 0
    assert "left out of the total" in found.notes[0]


def test_the_only_pair_that_other_flows_can_hold(tmp_path):
    found = audited(
        tmp_path,
        {"US": 62, "same": 62, "other same": 12, "05,003": 50},
        {"US": 0, "same": 0, "other same": 0},
        {"US": 0, "same": 0, "other same": 0},
    )
    pair = found.bounds.loc["05005>05001"]
    assert (pair["lower"], pair["upper"], pair["pinned"]) == (12, 12, True)


@pytest.mark.parametrize("direction", ["inflow", "outflow"])
@pytest.mark.parametrize("seed", [EXAMPLE_SEED, 3])
def test_true_numbers_lie_within_the_bounds(tmp_path, direction, seed):
    """Bounds that leave the truth out would be wrong whatever they pin."""
    flows = simulate_irs_flows(areas=20, states=3, seed=seed)
    path = tmp_path / f"county{direction}1011.csv"
    path.write_bytes(encode(publish_irs(flows, direction), Dialect()))
    found = audit_irs(read_irs_flows(path))
    truth = true_numbers(flows, direction)
    inside = 0
    for cell, row in found.bounds.iterrows():
        value = truth.get(str(cell))
        if value is not None:
            inside += 1
            assert row["lower"] <= value, cell
            assert pd.isna(row["upper"]) or value <= row["upper"], cell
    assert inside > 20


def true_numbers(flows, direction):
    """Totals by county and scope, and flows within states, as the audit names them."""
    mine, partner = (
        ("destination", "origin") if direction == "inflow" else ("origin", "destination")
    )
    flows = flows[(flows["origin"] != flows["destination"]) & ~flows[mine].str.startswith("57")]
    truth = {}
    scopes = np.where(
        flows[partner].str.startswith("57"),
        "foreign",
        np.where(flows[partner].str[:2] == flows[mine].str[:2], "same state", "different state"),
    )
    counties = flows[mine].unique()
    sums = flows.groupby([mine, scopes])["n1"].sum()
    for county, scope in itertools.product(counties, ["foreign", "same state", "different state"]):
        truth[f"{county} {scope} total"] = int(sums.get((county, scope), 0))
    for origin, destination in itertools.permutations(counties, 2):
        if origin[:2] == destination[:2]:
            truth[f"{origin}>{destination}"] = 0
    inside = flows[scopes == "same state"]
    truth |= dict(zip(inside["origin"] + ">" + inside["destination"], inside["n1"], strict=True))
    return truth


def test_the_command_reads_irs_files_and_ends_with_1(tmp_path):
    out = tmp_path / "bounds.csv"
    path = write(tmp_path, {"US and foreign": 40, "US": 30, "foreign": -1})
    done = CliRunner().invoke(app, ["audit", str(path), "--out", str(out)])
    assert done.exit_code == 1, done.output
    assert "05001 foreign total is 10: US and foreign of 05001: 40 minus 30" in done.output
    assert pd.read_csv(out)["lower"].tolist() == [10]
    path = write(tmp_path, {"US": 30, "same": 20, "different": 10}, name="countyinflow1112.csv")
    assert CliRunner().invoke(app, ["audit", str(path)]).exit_code == 0


def test_the_example_with_both_directions():
    both = [str(example_irs_path(way)) for way in ("inflow", "outflow")]
    done = CliRunner().invoke(
        app, ["audit", both[0], "--years", "2010-2011", "--published", both[1]]
    )
    assert done.exit_code == 1
    assert "04007 same state total is 10" in done.output
    done = CliRunner().invoke(app, ["audit", both[0], "--origin", "x"])
    assert isinstance(done.exception, InputError)
