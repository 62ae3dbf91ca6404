"""Tables with holes, as they are published: sums that give the hidden counts away."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import InputError
from bayes_sdc.flows.audit.holes import audit_holes


def row(total, *parts, code="Total"):
    """One origin with its destinations, and its total; None is a hole."""
    rows = [("A", f"d{k}", part) for k, part in enumerate(parts)] + [("A", code, total)]
    return pd.DataFrame(rows, columns=["o", "d", "n"]).astype({"n": object})


def audit(*frames, **options):
    frame = pd.concat(frames, ignore_index=True)
    frame["n"] = frame["n"].map(lambda n: "" if pd.isna(n) else str(int(n)) if n != str(n) else n)
    return audit_holes(frame, origin="o", destination="d", count="n", **options)


@pytest.mark.parametrize(
    ("frame", "values"),
    [
        (row(15, 10, 3, None, None), [1, 1]),
        (row(23, 20, None), [3]),  # a single hole
        (row(0, None, None), [0, 0]),
        (row(40, 30, None), [10]),  # a single hole that is larger than hidden counts should be
        (row(48, 30, None, None), [9, 9]),
    ],
)
def test_sums_that_leave_no_choice(frame, values):
    found = audit(frame)
    assert found.bounds["lower"].tolist() == found.bounds["upper"].tolist() == values
    assert found.pinned == len(values)
    assert (found.bounds["why"] != "").all()


def test_holes_that_are_larger_than_they_should_be_are_bounded_without_limit():
    found = audit(row(100, 40, None, None))
    assert found.bounds[["lower", "upper"]].to_numpy().tolist() == [[0, 60], [0, 60]]
    assert "2 holes cannot all be 1 to 9: bounded as any number" in found.notes[-1]


def test_marks_of_counts_of_any_size():
    found = audit(row(30, 15, "x", "c"), marks=["x"], secondary=["c"])
    assert found.bounds["lower"].tolist() == [1, 6]
    assert found.bounds["upper"].tolist() == [9, 14]


def test_a_hole_in_no_total_can_be_any_number():
    frame = pd.DataFrame([("A", "x", None), ("A", "y", 5)], columns=["o", "d", "n"]).astype(object)
    found = audit(frame)
    assert found.bounds[["lower", "upper"]].to_numpy().tolist() == [[1, 9]]
    assert found.pinned == 0


def test_totals_in_a_table_of_their_own():
    frame = pd.DataFrame([("A", "x", None), ("A", "y", 5)], columns=["o", "d", "n"]).astype(object)
    totals = pd.DataFrame({"o": ["A"], "total": [8]})
    assert audit(frame, published=[totals]).bounds["lower"].tolist() == [3]


def test_totals_that_nothing_adds_up_to_are_an_error():
    with pytest.raises(InputError, match="no counts fit the totals that the hole A>d1 is in"):
        audit(row(15, 20, None).iloc[:2], published=[pd.DataFrame({"o": ["A"], "total": [15]})])


def test_a_table_without_holes_is_an_error():
    with pytest.raises(InputError, match="no count is blank or a mark"):
        audit(row(15, 10, 5))


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_holes_are_those_of_all_tables(seed):
    """Totals of rows and columns, holes from 1 to 4, every table one by one."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 5, (3, 3))
    hole = rng.random((3, 3)) < 0.6
    hole[0, 0] = True
    rows = [(o, d, None if hole[o, d] else n[o, d]) for o in range(3) for d in range(3)]
    rows += [(o, "Total", n[o].sum()) for o in range(3)]
    rows += [("Total", d, n[:, d].sum()) for d in range(3)]
    frame = pd.DataFrame(rows, columns=["o", "d", "n"])
    frame[["o", "d"]] = frame[["o", "d"]].astype(str).replace({"0": "a", "1": "b", "2": "c"})
    frame.loc[:8, "d"] = frame.loc[:8, "d"].replace({"a": "x", "b": "y", "c": "z"})
    frame.loc[12:, "d"] = ["x", "y", "z"]
    found = audit(frame, high=4).bounds
    values = np.array(list(itertools.product(range(1, 5), repeat=int(hole.sum()))))
    tables = np.broadcast_to(n, (len(values), 3, 3)).copy()
    tables[:, hole] = values
    fits = (tables.sum(1) == n.sum(0)).all(1) & (tables.sum(2) == n.sum(1)).all(1)
    np.testing.assert_array_equal(found["lower"], values[fits].min(0))
    np.testing.assert_array_equal(found["upper"], values[fits].max(0))


def test_a_total_that_is_hidden_itself_follows_from_the_others():
    """The total of A is 40 less that of B, and then A>x is what it leaves."""
    frame = pd.DataFrame(
        [
            ("A", "x", None), ("A", "y", 10), ("A", "Total", None),
            ("B", "x", 7), ("B", "y", 19), ("B", "Total", 26),
            ("Total", "x", None), ("Total", "y", 29), ("Total", "Total", 40),
        ],
        columns=["o", "d", "n"],
    ).astype({"n": object})  # fmt: skip
    found = audit(frame)
    assert found.bounds["lower"].to_dict() == {
        "A>x": 4, "A>Total (total)": 14, "Total>x (total)": 11
    }  # fmt: skip
    assert found.bounds["pinned"].all()
    assert "40 minus 26" in found.bounds.loc["A>Total (total)", "why"]


def test_a_hidden_total_lies_between_what_its_parts_can_be():
    frame = pd.concat([row(None, 10, None, None), row(52, 20, 32).assign(o="B")])
    found = audit(frame)
    assert found.bounds.loc["A>Total (total)", ["lower", "upper"]].tolist() == [12, 28]
    assert found.pinned == 0


@pytest.mark.parametrize("seed", range(30))
def test_bounds_with_hidden_totals_are_those_of_all_tables(seed):
    """Two rows and two columns with totals of both, holes anywhere; counts 1 to 4 one by one."""
    rng = np.random.default_rng(seed)
    body = rng.integers(1, 5, (2, 2))
    whole = np.block([[body, body.sum(1)[:, None]], [body.sum(0)[None], body.sum()]])
    hole = rng.random((3, 3)) < 0.45
    hole[2, 2] = False
    if not hole[:2, :2].any():
        hole[0, 0] = True
    fitting = []
    for values in itertools.product(range(1, 5), repeat=4):
        other = np.reshape(values, (2, 2))
        every = np.block([[other, other.sum(1)[:, None]], [other.sum(0)[None], other.sum()]])
        if (every == whole)[~hole].all():
            fitting.append(every)
    ends = [["A", "B", "Total"], ["x", "y", "Total"]]
    places = list(itertools.product(range(3), range(3)))
    frame = pd.DataFrame(
        [(ends[0][i], ends[1][j], None if hole[i, j] else int(whole[i, j])) for i, j in places],
        columns=["o", "d", "n"],
    ).astype({"n": object})
    found = audit(frame, high=4)
    least, most = np.min(fitting, axis=0), np.max(fitting, axis=0)
    for i, j in zip(*np.nonzero(hole), strict=True):
        name = f"{ends[0][i]}>{ends[1][j]}" + (" (total)" if 2 in (i, j) else "")
        if name not in found.bounds.index:
            pytest.skip("with so many holes nothing shows that it is a total")
        bounds = found.bounds.loc[name, ["lower", "upper"]].tolist()
        assert bounds == [least[i, j], most[i, j]], name


@st.composite
def tables_with_holes(draw: st.DrawFn) -> tuple[pd.DataFrame, list[int], bool]:
    """Pairs of areas with their counts, which of them are hidden, and what totals count."""
    areas = [f"a{k}" for k in range(draw(st.integers(2, 4)))]
    pairs = [(a, b) for a in areas for b in areas if draw(st.booleans()) or a != b]
    numbers = st.one_of(st.integers(1, 9), st.integers(10, 60))
    frame = pd.DataFrame([(a, b, draw(numbers)) for a, b in pairs], columns=["o", "d", "n"])
    hidden = [row for row in frame.index if draw(st.integers(0, 2)) == 0]
    return frame, hidden or [0], draw(st.booleans())


@given(tables_with_holes(), st.sampled_from([1, 5, 10]))
@settings(max_examples=150, deadline=None)
def test_no_bound_misses_the_truth_whatever_the_totals_count(
    drawn: tuple[pd.DataFrame, list[int], bool], base: int
) -> None:
    """Else a hidden count is said to be another number for certain."""
    frame, hidden, with_own = drawn
    counted = frame if with_own else frame[frame["o"] != frame["d"]]
    totals = counted.groupby("o")["n"].sum().reset_index()
    totals["n"] = (totals["n"] + base // 2) // base * base
    holes = frame.assign(n=frame["n"].astype(str))
    marks = ["x" if frame["n"][row] < 10 else "c" for row in hidden]
    holes.loc[hidden, "n"] = marks
    truth = {f"{frame['o'][row]}>{frame['d'][row]}": frame["n"][row] for row in hidden}
    for own_area in (with_own, None):
        try:
            found = audit_holes(
                holes, origin="o", destination="d", count="n", marks=["x"], secondary=["c"],
                published=[totals], base=base, own_area=own_area,
            )  # fmt: skip
        except InputError:
            continue
        if any("totals inside" in note for note in found.notes):
            continue  # sums that the small table has by chance
        for name, row in found.bounds.iterrows():
            upper = np.inf if pd.isna(row["upper"]) else row["upper"]
            assert row["lower"] <= truth[str(name)] <= upper, (name, own_area)


def test_what_totals_count_is_asked_where_holes_hide_it() -> None:
    """A total of 66 is 40 who stayed and 26, or 66 who moved."""
    frame = pd.DataFrame(
        [("A", "A", "40"), ("A", "B", "c"), ("A", "C", "x"), ("B", "A", "12")], columns=list("odn")
    )
    how = {"origin": "o", "destination": "d", "count": "n", "marks": ["x"], "secondary": ["c"]}
    totals = pd.DataFrame({"o": ["A"], "n": [66]})
    with pytest.raises(InputError, match="--with-own-area"):
        audit_holes(frame, **how, published=[totals])
    for own_area, bounds in ((True, [17, 25]), (False, [57, 65])):
        found = audit_holes(frame, **how, published=[totals], own_area=own_area).bounds
        assert found.loc["A>B", ["lower", "upper"]].tolist() == bounds


def test_a_total_without_hidden_rows_that_is_wrong_is_named() -> None:
    """It ended in a traceback: 29 = 11 + 18 was taken for a total, and nothing was left of 30."""
    frame = pd.DataFrame(
        [("a1", "a1", "11"), ("a2", "a1", "29"), ("a2", "a2", "x"), ("a3", "a1", "18")],
        columns=list("odn"),
    )
    totals = pd.DataFrame({"o": ["a2"], "n": [30]})
    with pytest.raises(InputError, match=r"total of o a2|no counts fit"):
        audit_holes(
            frame, origin="o", destination="d", count="n", marks=["x"], published=[totals], base=10,
            own_area=True,
        )  # fmt: skip
