"""Ways around the model: order of rows, other columns, small counts that stay."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import read_flows
from bayes_sdc.checks import Check
from bayes_sdc.flows.kept_columns.selection import select_columns
from bayes_sdc.flows.leaks import leaks, unchanged
from bayes_sdc.flows.release.synthetic.own_areas import OwnArea
from bayes_sdc.flows.table.simulate import simulate_flows


def checks(frame: pd.DataFrame, own_area: OwnArea = "protect", **bounds: int) -> dict[str, Check]:
    table = read_flows(frame, origin="origin", destination="destination", count="count", **bounds)
    rest = set(frame.columns) - {"origin", "destination", "count"}
    return {
        check.name: check
        for check in leaks(table, table.frame, select_columns(table, sorted(rest)), own_area)
    }


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return simulate_flows(areas=30, states=2, seed=4)


def test_table_sorted_by_codes_passes(frame):
    # else every release is held up
    assert {check.verdict for check in checks(frame).values()} == {"pass"}


@pytest.mark.parametrize("by", [["count"], ["origin", "count"], ["destination", "count"]])
def test_table_sorted_by_count_must_not_leave(frame, by):
    # else the rank of a row gives back the count that was replaced
    check = checks(frame.sort_values(by, ascending=[True] * (len(by) - 1) + [False]))
    assert check["order of rows"].verdict == "fail"
    assert "sort the table by its codes" in check["order of rows"].reason


@settings(max_examples=15)
@given(st.permutations(range(9)), st.sampled_from([[], ["origin"], ["origin_state"]]))
def test_table_sorted_by_any_function_of_the_count_must_not_leave(frame, place, by):
    """Sorted by a name of the size class, or a hash: equal counts stand beside each other."""
    where = frame["count"].map(lambda n: place[n - 1] if 1 <= n <= 9 else 9)
    table = read_flows(
        frame.assign(where=where).sort_values([*by, "where"]).drop(columns="where"),
        origin="origin", destination="destination", count="count",
    )  # fmt: skip
    found = leaks(table, table.frame, select_columns(table), "protect")[0]
    assert found.verdict == "fail", found.reason


def test_table_sorted_by_size_class_inside_groups_does_not_pass(frame):
    kind = pd.cut(frame["count"], [0, 2, 4, 9, np.inf], labels=["few", "a", "some", "many"])
    table = read_flows(
        frame.assign(kind=kind.astype(str)).sort_values(["origin_state", "kind"]),
        origin="origin", destination="destination", count="count", groups=["origin_state"],
    )  # fmt: skip
    found = leaks(table, table.frame, select_columns(table), "protect")[0]
    assert found.verdict != "pass", found.reason


def test_three_rows_in_order_are_chance():
    frame = pd.DataFrame({"origin": list("abc"), "destination": list("xyz"), "count": [1, 2, 3]})
    assert checks(frame)["order of rows"].verdict == "pass"


def test_columns_made_from_the_count_must_not_leave(frame):
    copies = {
        "copy": frame["count"],
        "rate": frame["count"] / 1000.0,
        "text": frame["count"].map(lambda n: f"<{n}>"),
    }
    for name, column in copies.items():
        check = checks(frame.assign(**{name: column}))["other columns"]
        assert check.verdict == "fail", name
        assert repr(name) in check.reason


def test_small_counts_that_stay_are_said(frame):
    own = frame["origin"] == frame["destination"]
    stayed = frame.assign(count=frame["count"].where(~own, 2))
    assert checks(stayed, "publish")["small counts left"].verdict == "look"
    assert "left blank" in checks(stayed, "withhold")["small counts left"].reason
    protected = checks(stayed)["small counts left"]
    assert protected.verdict == "pass"
    assert "by guessing" in protected.reason
    below = checks(frame, low=3)["small counts left"]
    assert below.verdict == "fail"
    assert str(int((frame["count"].between(1, 2) & ~own).sum())) in below.reason


def test_small_counts_that_kept_totals_pin_are_counted_among_those_that_stay(frame):
    """Else the check says that none is released as it is, and passes."""
    table = read_flows(frame, origin="origin", destination="destination", count="count")
    found = leaks(table, table.frame, select_columns(table), "protect", pinned=3)[-1]
    assert found.verdict == "look"
    assert found.reason.startswith("3 counts from 1 to 9 are released as they are")


def tiny() -> pd.DataFrame:
    """Sixteen small cells, in an order that says nothing."""
    rng = np.random.default_rng(2)
    pairs = [(o, d) for o in "abcd" for d in "wxyz"]
    return pd.DataFrame(
        {
            "origin": [o for o, _ in pairs],
            "destination": [d for _, d in pairs],
            "count": rng.permutation(np.resize(np.arange(1, 10), 16)),
        }
    )


def test_small_tables_are_checked_too():
    # else a table of sixteen cells may be sorted by count, or carry a copy of it
    assert checks(tiny())["order of rows"].verdict == "pass"
    assert checks(tiny().sort_values("count"))["order of rows"].verdict == "fail"


def test_copy_with_gaps_must_not_leave(frame):
    gaps = frame["count"].where(np.arange(len(frame)) % 5 > 0)
    assert checks(frame.assign(x=gaps))["other columns"].verdict == "fail"


def test_release_that_is_the_table_must_not_leave(frame):
    # else a table of ones alone comes back as it is, and nothing says so
    table = read_flows(frame, origin="origin", destination="destination", count="count")
    assert unchanged(table, table.frame).verdict == "fail"
    other = table.frame.copy()
    row = table.cells["row"].iloc[0]
    other.loc[other.index[row], "count"] = 10 - other["count"].iloc[row]
    other.loc[other.index[row], "count"] += int(other["count"].iloc[row] == 5)
    assert unchanged(table, other).verdict == "pass"
    both = pd.concat([table.frame.assign(dataset=1), other.assign(dataset=2)])
    # one of them alone has no other count
    assert unchanged(table, both).reason.endswith("in at least one of 2 data sets")
