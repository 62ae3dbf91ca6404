"""Codes that a spreadsheet spoilt, or that are unique only within a larger area."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bayes_sdc import FlowTable, InputError, read_flows


def read(frame: pd.DataFrame, **options: object) -> FlowTable:
    return read_flows(frame, origin="o", destination="d", count="n", **options)


@pytest.mark.parametrize("code", ["1.00102E+13", "1E+05", "1,00102e+13", " 2.5e-3 "])
@pytest.mark.parametrize("column", ["o", "d", "g"])
def test_codes_in_scientific_notation_are_refused(code, column):
    """Two blocks become one, and their flow one of people who stayed."""
    frame = pd.DataFrame({"o": ["a", "b"], "d": ["b", "c"], "n": [1, 20], "g": ["x", "y"]})
    frame.loc[1, column] = code
    with pytest.raises(InputError, match="digits are gone") as caught:
        read(frame, groups="g")
    assert "row 2" in str(caught.value)
    assert repr(code) in str(caught.value)


@pytest.mark.parametrize("code", ["1E05", "E+1", "UKE1", "12E", "1e"])
def test_codes_with_the_letter_e_are_codes(code):
    assert read(pd.DataFrame({"o": [code], "d": ["b"], "n": [1]})).n_small == 1


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("3-Jan", "dates"),
        ("Mar-03", "dates"),
        ("2001-01-03", "dates"),
        ('="01001"', "formulas"),
        ("#N/A", "errors of a spreadsheet"),
        ("#REF!", "errors of a spreadsheet"),
    ],
)
def test_marks_of_spreadsheets_are_noted_with_the_first_five(code, said):
    codes = [f"{i:03}" for i in range(20)]
    frame = pd.DataFrame({"o": codes, "d": codes[::-1], "n": 12})
    assert not any(said in note for note in read(frame).notes)
    frame.loc[7, "o"] = code
    notes = [note for note in read(frame).notes if said in note]
    assert len(notes) == 1
    assert repr(code) in notes[0]


def test_dates_that_are_groups_are_no_defect():
    frame = pd.DataFrame({"o": ["a", "b"], "d": ["b", "a"], "n": 5, "day": "2001-01-03"})
    assert not any("dates" in note for note in read(frame, groups="day").notes)


def square() -> pd.DataFrame:
    codes = [f"{i:02}" for i in range(8)]
    return pd.DataFrame([(o, d) for o in codes for d in codes], columns=["o", "d"]).assign(n=12)


def test_codes_on_one_side_or_in_one_year_are_noted():
    frame = square()
    assert not any("only" in note for note in read(frame).notes)
    typo = pd.concat([frame, pd.DataFrame({"o": ["O1"], "d": ["01"], "n": [4]})])
    notes = read(
        typo,
    ).notes
    assert any("occur in column 'o' only: 'O1'" in note for note in notes)
    years = pd.concat([frame.assign(year="2010"), typo.assign(year="2011")])
    notes = read(years, groups="year").notes
    assert any("one value of column 'year' only: 'O1'" in note for note in notes)
    states = frame.assign(s=frame["o"].str[0] + frame["o"].str[1].isin(list("0123")).astype(str))
    assert not any("one value" in note for note in read(states, groups="s").notes)


def counties(labels: list[str], names: tuple[str, str], seed: int = 1) -> pd.DataFrame:
    """Counties 001, 003, ... of two states, some pairs of them, no pair of codes twice."""
    rng = np.random.default_rng(seed)
    areas = [(s, f"{c:03}") for s in labels for c in range(1, 12, 2)]
    rows = [(*a, *b) for a in areas for b in areas if a != b]
    frame = pd.DataFrame(rows, columns=[names[0], "o", names[1], "d"])
    frame = frame.iloc[rng.permutation(len(frame))].drop_duplicates(["o", "d"])
    return frame.assign(n=rng.integers(1, 30, len(frame)))


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["01", "02"], ("o_state", "d_state")),
        (["1", "2"], ("state_from", "state_to")),
        (["1", "2"], ("y1_statefips", "y2_statefips")),
        (["Bavaria", "Hesse"], ("living in", "where the job is")),
        (["01", "02", "04"], ("a", "b")),
        (["AL", "GA"], ("HomeState", "WorkState")),
        (["1", "2"], ("state1", "state2")),
    ],
)
def test_codes_that_are_unique_only_within_a_larger_area_stop_the_run(labels, names):
    """County 001 of two states would be one area, and its flow released as that of stayers."""
    frame = counties(labels, names)
    with pytest.raises(InputError, match="unique only within") as caught:
        read(frame)
    for name in names:
        assert repr(name) in str(caught.value)
    whole = frame.assign(o=frame[names[0]] + frame["o"], d=frame[names[1]] + frame["d"])
    assert read(whole).n_set_aside == 0


def test_other_columns_do_not_stop_the_run():
    """Counts by age, flags and names differ between rows without a meaning for the codes."""
    rng = np.random.default_rng(1)
    frame = square()
    n = len(frame)
    frame = frame.assign(
        SA01=rng.integers(0, 4, n), SA02=rng.integers(0, 4, n), SA1=rng.integers(0, 3, n),
        SA2=0, flag=rng.choice(["Y", "N"], n), other=rng.choice(["Y", "N"], n),
        o_name="Area " + frame["o"], d_name="Area " + frame["d"],
        o_state=frame["o"].str[1] > "3", d_state=frame["d"].str[1] > "3",
    )  # fmt: skip
    assert read(frame).n_set_aside == 8


@pytest.mark.parametrize(
    "names", [("r1", "r2"), ("x_o", "x_d"), ("age_from", "age_to"), ("from_score", "to_score")]
)
@given(st.integers(0, 2**31), st.integers(2, 60), st.sampled_from(["int", "flag", "float"]))
def test_numbers_that_go_with_no_area_do_not_stop_the_run(names, seed, levels, kind):
    """Two columns of numbers, equal as often as chance has it, are no larger areas."""
    rng = np.random.default_rng(seed)
    frame = square()
    one, two = rng.integers(0, levels if kind != "flag" else 2, (2, len(frame)))
    scale = 0.5 if kind == "float" else 1
    # by chance, they may be equal much more or less often: then the run asks
    expected = sum((one == v).sum() * (two == v).sum() for v in set(one)) / len(frame)
    assume(levels > 12 or (((one == two).sum() - expected) ** 2) < 9 * expected)
    frame = frame.assign(**{names[0]: one * scale, names[1]: two * scale})
    assert read(frame).n_set_aside == 8


@pytest.mark.parametrize("away_only", [True, False])
@pytest.mark.parametrize("names", [("r1", "r2"), ("g_o", "g_d")])
def test_numbers_of_larger_areas_stop_the_run_whatever_their_name(names, away_only):
    """Most flows stay in their larger area, or none does: chance makes neither."""
    rng = np.random.default_rng(4)
    areas = [(s, f"{c:03}") for s in range(1, 4) for c in range(12)]
    pairs = [(*a, *b) for a in areas for b in areas if a != b and (a[0] != b[0] or not away_only)]
    frame = pd.DataFrame(pairs, columns=[names[0], "o", names[1], "d"])
    likely = np.where(frame[names[0]] == frame[names[1]], 6.0, 1.0)
    frame = frame.sample(400, weights=likely, random_state=1).drop_duplicates(["o", "d"])
    with pytest.raises(InputError, match="unique only within"):
        read(frame.assign(n=rng.integers(1, 30, len(frame))))


@given(
    st.permutations(["one", "two"]),
    st.lists(st.sampled_from(["1", "2", "3", "low", "high", "y"]), min_size=2, unique=True),
    st.lists(st.sampled_from(["1", "2", "3", "low", "high", "y"]), min_size=2, unique=True),
    st.sampled_from([("sex", "age"), ("status_before", "status_after"), ("r1", "r2")]),
)
def test_groups_that_share_their_values_are_no_larger_areas(order, left, right, names):
    """Sex 1 and 2 beside age 1 to 3: the run must not ask for a change of the area codes."""
    frame = square().merge(pd.DataFrame({"one": left}), how="cross")
    frame = frame.merge(pd.DataFrame({"two": right}), how="cross")
    new = dict(zip(("one", "two"), names, strict=True))
    table = read(frame.rename(columns=new), groups=[new[name] for name in order])
    assert table.n_set_aside == 8 * len(left) * len(right)


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_groups_that_tell_of_one_end_each_are_larger_areas(order):
    """Each origin has one value, and each destination: a row of one code crosses two areas."""
    frame = square()
    frame["a"], frame["b"] = "x", "y"
    frame.loc[frame["o"] > "03", "a"] = "y"
    frame.loc[frame["d"] > "05", "b"] = "x"
    with pytest.raises(InputError, match="same code but lie in different groups"):
        read(frame, groups=list(order))
    frame["a"] = "y"  # and one value for all tells of no end
    assert read(frame, groups=list(order)).n_set_aside == 8


def test_a_weighted_count_of_few_people_is_not_safe():
    frame = pd.DataFrame({"o": list("aaab"), "d": list("bcdc"), "n": [11, 5, 40, 50]})
    table = read(frame.assign(people=[1, 40, 9, 10]), threshold_column="people")
    assert (table.withheld, table.n_small) == ((0, 2), 1)
    assert any("2 counts above 9 of at most 9 in 'people'" in note for note in table.notes)
    with pytest.raises(InputError, match="column 'people': missing count"):
        read(frame.assign(people=[1, None, 9, 10]), threshold_column="people")
