"""Totals inside a table, of every kind and by any name, and none where there are none."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import InputError, audit_totals, read_flows, settle_totals
from bayes_sdc.flows.audit.inside import search as inside
from bayes_sdc.flows.audit.inside.search import totals_inside
from bayes_sdc.flows.table.simulate import example_flows_path, simulate_flows

AREAS = "ABCDEFGH"
REGION = {**dict.fromkeys("ABC", "R1"), **dict.fromkeys("DEF", "R2"), **dict.fromkeys("GH", "R3")}


def flows(seed=5, *, own=False):
    rng = np.random.default_rng(seed)
    rows = [
        (o, d, int(rng.integers(1, 40) if o != d else rng.integers(50, 900)))
        for o in AREAS
        for d in AREAS
        if (own if o == d else rng.random() < 0.8)
    ]
    return pd.DataFrame(rows, columns=["o", "d", "n"])


def total(frame, by, **codes):
    """Totals as rows, with a code where the columns are that were summed over."""
    return frame.groupby(by, as_index=False)["n"].sum().assign(**codes)


def find(*frames, **options):
    frame = pd.concat(frames, ignore_index=True)
    table = read_flows(frame, origin="o", destination="d", count="n", **options)
    return table, [(each.column, each.code) for each in totals_inside(table)]


@given(st.integers(0, 2**31), st.booleans())
def test_no_alarm_without_totals(seed, own):
    assert find(flows(seed, own=own))[1] == []


@pytest.mark.parametrize("code", ["Total", "_T", "99", "W92000004", "Z"])
def test_a_code_is_found_whatever_it_is_called(code):
    frame = flows()
    assert find(frame, total(frame, "o", d=code))[1] == [("d", code)]
    assert find(frame, total(frame, "d", o=code))[1] == [("o", code)]
    assert find(
        pd.DataFrame([("A", "B", 3), ("A", "C", 20), ("A", code, 23)], columns=["o", "d", "n"])
    )[1] == [("d", code)]


def test_totals_of_both_sides_with_the_grand_total():
    frame = flows()
    both = [total(frame, "o", d="99"), total(frame, "d", o="98")]
    grand = pd.DataFrame({"o": ["98"], "d": ["99"], "n": [frame["n"].sum()]})
    _, found = find(frame, *both, grand)
    assert found == [("o", "98"), ("d", "99")]
    assert find(frame, grand)[1] == [("d", "98>99")]


@pytest.mark.parametrize("inside", [False, True])
def test_totals_with_and_without_own_area_rows(inside):
    frame = flows(own=True)
    summed = frame if inside else frame[frame["o"] != frame["d"]]
    table, found = find(frame, total(summed, "o", d="99"))
    assert found == [("d", "99")]
    [each] = totals_inside(table)
    own = (table.frame["o"] == table.frame["d"]).to_numpy()
    assert (each.family.of[own] >= 0).all() == inside


def test_several_codes_for_totals():
    frame = flows(own=True)
    moved = frame[frame["o"] != frame["d"]]
    assert find(frame, total(frame, "o", d="T2"), total(moved, "o", d="T1"))[1] == [
        ("d", "T1"),
        ("d", "T2"),
    ]
    assert find(moved, total(moved, "o", d="T2"), total(moved, "o", d="T1"))[1] == [
        ("d", "T1"),
        ("d", "T2"),
    ]


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize("column", [False, True])
def test_subtotals_by_region(above, column):
    """By regions that a column names, and by regions that only the sums show."""
    frame = flows()
    regions = total(frame.assign(d=frame["d"].map(REGION)), ["o", "d"])
    frames = [frame, regions, *([total(frame, "o", d="99")] if above else [])]
    if column:
        frames = [each.assign(region=each["d"].replace(REGION)) for each in frames]
    table, found = find(*frames)
    assert set(found) == {("d", r) for r in ("R1", "R2", "R3")} | (
        {("d", "99")} if above else set()
    )
    for each in totals_inside(table):
        if each.code == "R3":
            members = table.frame["d"][each.family.of >= 0]
            assert set(members) == {"G", "H"}


def test_subtotals_of_states_that_the_codes_show():
    frame = simulate_flows(seed=3).rename(columns={"origin": "o", "destination": "d", "count": "n"})
    moved = frame[frame["o"] != frame["d"]]
    states = total(moved, ["o", "destination_state"])
    states = states.assign(
        d=states["destination_state"] + "000", origin_state=states["o"].str[:2],
        destination_state="97",
    )  # fmt: skip
    found = find(frame, states, groups=["origin_state", "destination_state"])[1]
    assert set(found) == {("d", f"0{k}000") for k in range(1, 5)}


def test_rounded_totals():
    frame = flows()
    rounded = total(frame, "o", d="99")
    rounded["n"] = (rounded["n"] / 5).round().astype(int) * 5
    table, found = find(frame, rounded)
    assert found == [("d", "99")]
    family = totals_inside(table)[0].family
    assert (family.low < family.high).all()


def test_a_total_that_is_wrong_for_one_partner_is_found_and_not_believed_there():
    frame = flows()
    wrong = total(frame, "o", d="99")
    wrong.loc[wrong["o"] == "A", "n"] += 1
    table, found = find(frame, wrong)
    assert found == [("d", "99")]
    family = totals_inside(table)[0].family
    assert (family.of[(table.frame["o"] == "A").to_numpy()] == -1).all()


def test_a_value_of_a_group_that_is_the_sum_of_the_others():
    men = flows().assign(sex="m")
    women = men.assign(sex="f", n=np.random.default_rng(1).integers(1, 40, len(men)))
    both = total(pd.concat([men, women]), ["o", "d"], sex="_T")
    assert find(men, women, both, groups="sex")[1] == [("sex", "_T")]
    rows = pd.concat([men, women, both])
    assert find(rows, total(rows, ["o", "sex"], d="999"), groups="sex")[1] == [
        ("d", "999"),
        ("sex", "_T"),
    ]


@pytest.mark.parametrize("by", [["o"], ["d"], ["region"], []])
def test_a_column_of_totals(by):
    frame = flows().assign(region=lambda f: f["o"].map(REGION), year=2011, row=range(44))
    sums = frame.groupby(by)["n"].transform("sum") if by else frame["n"].sum()
    assert find(frame.assign(x=sums), groups="region")[1] == [("x", None)]


def test_no_alarm_in_the_example():
    assert (
        totals_inside(
            read_flows(
                example_flows_path(), origin="origin", destination="destination", count="count",
                groups=["origin_state", "destination_state"],
            )
        )
        == []
    )  # fmt: skip


@pytest.mark.shared_data
@pytest.mark.parametrize(
    "name",
    [
        "gb_lad_migration_2011",
        "norway_municipality_commuting_2017",
        "us_county_commuting_acs2009_2013",
        "us_county_migration_within_state_acs2009_2013",
    ],
)
def test_no_alarm_in_real_tables(name, shared_data):
    table = read_flows(
        shared_data / "flows" / f"{name}.csv.gz",
        origin="origin", destination="destination", count="count",
        groups=["origin_state", "destination_state"],
    )  # fmt: skip
    assert totals_inside(table) == []


def test_the_search_runs_once(monkeypatch):
    """Searching, settling and the audit share what was found."""
    calls = []

    def counted(table, hidden=None):
        calls.append(table)
        return totals_inside(table, hidden)

    monkeypatch.setattr(inside, "totals_inside", counted)
    frame = pd.DataFrame(
        [("A", "B", 3), ("A", "C", 20), ("A", "Total", 23)], columns=["o", "d", "n"]
    )
    table = settle_totals(read_flows(frame, origin="o", destination="d", count="n"), "publish")
    settle_totals(table)
    assert audit_totals(table).pinned == 1
    assert len(calls) == 1


@pytest.mark.slow
def test_small_tables_without_totals_raise_no_alarm():
    """Of 500 random tables of 3 to 12 rows at most 1 % may be taken to hold a total."""
    alarms = 0
    for seed in range(500):
        rng = np.random.default_rng([1, seed])
        rows, areas = int(rng.integers(3, 13)), int(rng.integers(3, 8))
        pairs = [
            (f"A{a}", f"A{b}")
            for a in range(areas)
            for b in range(areas)
            if a != b or rng.random() < 0.2
        ]
        chosen = [pairs[k] for k in rng.permutation(len(pairs))[:rows]]
        counts = rng.geometric(1 / rng.choice([3, 8, 20, 60]), len(chosen))
        frame = pd.DataFrame(chosen, columns=["o", "d"]).assign(n=counts)
        alarms += bool(totals_inside(read_flows(frame, origin="o", destination="d", count="n")))
    assert alarms <= 5


def by_sex_and_age(seed):
    rng = np.random.default_rng(seed)
    rows = [
        (o, d, s, a, int(rng.geometric(0.08)))
        for o in AREAS[:5] for d in AREAS[:5] if o != d
        for s in "MF" for a in ("young", "old")
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=["o", "d", "s", "a", "n"])


@pytest.mark.parametrize("code", ["Total", "_T", "99", "Z"])
@pytest.mark.parametrize("number", [3, 4])
def test_totals_of_a_few_areas_are_found(code, number):
    """Most origins have none: what adds up for three or four is no accident all the same."""
    frame = flows()
    assert find(frame, total(frame, "o", d=code).head(number))[1] == [("d", code)]


@pytest.mark.parametrize("code", ["Total", "_T", "Gesamt"])
def test_one_total_is_found_by_its_name(code):
    frame = flows()
    assert find(frame, total(frame, "o", d=code).head(1))[1] == [("d", code)]


@settings(max_examples=8)
@given(
    st.integers(0, 2**31),
    st.sampled_from(["_T", "9", "both"]),
    st.sampled_from([["o"], ["d"], ["o", "d"], ["o", "a"]]),
)
def test_totals_over_several_columns_at_once_are_found(seed, code, by):
    """A row A, Total, Total, Total, where no total of one column alone stands in the table."""
    frame = by_sex_and_age(seed)
    over = [name for name in ("o", "d", "s", "a") if name not in by]
    whole = total(frame, by, **dict.fromkeys(over, code))
    table, found = find(frame, whole, groups=["s", "a"])
    assert {each for _, each in found} == {">".join([code] * len(over))}
    assert len(settle_totals(table, "drop").frame) == len(frame)


@settings(max_examples=4)
@given(st.integers(0, 2**31))
def test_no_alarm_without_totals_in_groups_that_cross(seed):
    assert find(by_sex_and_age(seed), groups=["s", "a"])[1] == []


@pytest.mark.parametrize(
    "by", [["o", "d"], ["o", "s"], ["d", "a"], ["s"], ["o", "d", "s"]], ids=" ".join
)
def test_a_column_of_totals_by_any_codes_is_found(by):
    frame = by_sex_and_age(1)
    column = frame.assign(t=frame.groupby(by)["n"].transform("sum"))
    assert find(column, groups=["s", "a"])[1] == [("t", None)]


@settings(max_examples=6)
@given(st.integers(0, 2**31), st.integers(1, 5), st.sampled_from(["Total", "99"]))
def test_totals_that_are_wrong_for_many_partners_are_found(seed, wrong, code):
    """Those of the other partners give their small counts away all the same."""
    wrong = min(wrong, 4) if code == "99" else wrong  # three of eight sums may be chance
    rng = np.random.default_rng(seed)
    frame = flows(seed)
    sums = total(frame, "o", d=code)
    off = rng.permutation(len(AREAS))[:wrong]
    sums.loc[off, "n"] += rng.integers(1, 9, wrong)
    table, found = find(frame, sums)
    assert found == [("d", code)]
    [each] = totals_inside(table)
    assert each.matches >= len(AREAS) - wrong
    right = np.setdiff1d(np.arange(len(AREAS)), off)
    inside = table.frame["o"].isin([AREAS[k] for k in right]) & (table.frame["d"] != code)
    assert (each.family.of[inside] >= 0).all()  # and the audit uses them
    if wrong <= 3:  # of eight areas; half of them may be chance
        repeated = frame.assign(sum=frame["o"].map(sums.set_index("o")["n"]))
        assert find(repeated)[1] == [("sum", None)]


@pytest.mark.parametrize("code", ["Total", "_T", "Grand total", "Insgesamt"])
def test_a_code_that_is_only_called_a_total_is_asked_about(code):
    """Totals of a table from which rows were left out add up nowhere, and are no flows."""
    frame = flows()
    sums = total(frame, "o", d=code)
    sums["n"] += 1 + np.arange(len(sums))
    table, found = find(frame, sums)
    assert found == [("d", code)]
    with pytest.raises(InputError, match=f"{code!r}.*called a total, but no sum.*--totals flows"):
        settle_totals(table)
    assert len(settle_totals(table, "drop").frame) == len(frame)
    assert len(settle_totals(table, "publish").totals) == len(sums)
    assert settle_totals(table, "flows").frame.equals(table.frame)


@settings(max_examples=8)
@given(st.integers(0, 2**31), st.floats(0.2, 0.9))
def test_many_small_counts_that_are_equal_make_no_total(seed, steep):
    """Where every other count is 1, three of them that are 1 + 1 = 2 are no surprise."""
    rng = np.random.default_rng(seed)
    pairs = [(o, d) for o in range(12) for d in range(12) if rng.random() < 0.3]
    frame = pd.DataFrame(pairs, columns=["o", "d"]).assign(n=rng.geometric(steep, len(pairs)))
    table = read_flows(frame.astype({"o": str, "d": str}), origin="o", destination="d", count="n")
    assert not [each for each in totals_inside(table) if each.beyond_chance]


def test_one_right_total_beside_a_wrong_one_is_used():
    """23 less 20 is 3, whatever the other total says."""
    rows = [("A", "B", 3), ("A", "C", 20), ("A", "Total", 23)]
    rows += [("B", "A", 4), ("B", "C", 30), ("B", "Total", 40)]
    table, found = find(pd.DataFrame(rows, columns=["o", "d", "n"]))
    assert found == [("d", "Total")]
    audit = audit_totals(settle_totals(table, "publish"), published=())
    assert audit.bounds.loc["A>B", ["lower", "upper"]].tolist() == [3, 3]
