"""Bounds of small counts given published totals, against every table that has these totals."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import InputError, audit_totals, read_flows
from bayes_sdc.flows.table.families import WORDS

BY = {
    "origin": ["o"],
    "destination": ["d"],
    "group": ["g"],
    "origin-by-group": ["o", "g"],
    "destination-by-group": ["d", "g"],
    "national": [],
}


def small_table(seed, *, most=6):
    """Draw a table of a few areas and groups, its small counts from 1 to 2, 3 or 4."""
    rng = np.random.default_rng(seed)
    high = int(rng.integers(2, 5))
    pairs = [(o, d, g) for o in "ABC" for d in "xyz" for g in "12"]
    chosen = rng.choice(len(pairs), int(rng.integers(3, most + 3)), replace=False)
    frame = pd.DataFrame([pairs[i] for i in chosen], columns=["o", "d", "g"])
    frame["n"] = rng.integers(1, high + 1, len(frame))
    safe = rng.random(len(frame)) < 0.25
    safe[most:] = True
    frame.loc[safe, "n"] += 20
    return frame, high


def read(frame, high):
    """Read the table. Three of its counts often add up by chance, which no audit believes."""
    return read_flows(frame, origin="o", destination="d", count="n", groups="g", high=high)


def brute_force(table, words, base=1):
    """Least and most of every small cell over all tables with the totals, one by one."""
    frame, cells = table.frame, table.cells
    values = np.array(
        list(itertools.product(range(table.low, table.high + 1), repeat=len(cells)))
    ).reshape(-1, len(cells))
    fits = np.ones(len(values), dtype=bool)
    for word in words:
        key = frame[BY[word]].agg("|".join, axis=1) if BY[word] else "all"
        for rows in frame.assign(key=key).groupby("key").groups.values():
            inside = cells["row"].isin(rows).to_numpy()
            total = int(frame.loc[rows, "n"].sum())
            shown = int(np.floor(total / base + 0.5)) * base
            sums = (
                values[:, inside].sum(axis=1)
                + total
                - int(frame["n"].to_numpy()[cells["row"][inside]].sum())
            )
            fits &= np.abs(sums - shown) <= base // 2
    return values[fits].min(axis=0), values[fits].max(axis=0)


@pytest.mark.parametrize(
    "seed", [*range(150), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(150, 500))]
)
def test_bounds_are_those_of_all_tables_with_these_totals(seed):
    frame, high = small_table(seed)
    table = read(frame, high)
    if table.n_small == 0:
        return
    rng = np.random.default_rng(1000 + seed)
    words = [word for word in WORDS if rng.random() < 0.5] or ["origin"]
    base = int(rng.choice([1, 1, 2, 3]))
    found = audit_totals(table, published=words, base=base).bounds
    lower, upper = brute_force(table, words, base)
    assert found["exact"].all()
    np.testing.assert_array_equal(found["lower"], lower)
    np.testing.assert_array_equal(found["upper"], upper)
    np.testing.assert_array_equal(found["pinned"], lower == upper)
    assert ((found["why"] != "") == found["pinned"]).all()


@given(st.integers(0, 2**31), st.lists(st.sampled_from(WORDS), min_size=1), st.sampled_from(WORDS))
def test_further_totals_never_widen_a_bound(seed, words, more):
    frame, high = small_table(seed, most=9)
    table = read(frame, high)
    few = audit_totals(table, published=words).bounds
    many = audit_totals(table, published=[*words, more]).bounds
    assert (many["lower"] >= few["lower"]).all()
    assert (many["upper"] <= few["upper"]).all()
    truth = table.cells["y"] + table.low
    assert (many["lower"] <= truth).all()
    assert (many["upper"] >= truth).all()


@given(st.integers(0, 2**31))
def test_the_order_of_rows_changes_nothing(seed):
    frame, high = small_table(seed, most=9)
    words = ("origin", "destination")
    one = audit_totals(read(frame, high), published=words).bounds
    mixed = frame.sample(frac=1, random_state=1)
    other = audit_totals(read(mixed, high), published=words).bounds
    columns = ["lower", "upper", "pinned", "exact"]
    pd.testing.assert_frame_equal(one[columns], other.loc[one.index, columns])


def flows(*rows):
    return pd.DataFrame(rows, columns=["o", "d", "n"])


def audit(frame, **options):
    return audit_totals(read_flows(frame, origin="o", destination="d", count="n"), **options)


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (flows(("A", "x", 10), ("A", "y", 3), ("A", "z", 40)), None),
        (flows(("A", "x", 3), ("A", "y", 20)), "total of origin A: 23 minus 20"),
        (
            flows(("A", "w", 10), ("A", "x", 13), ("A", "y", 1), ("A", "z", 1)),
            "total of origin A: 25 minus 10 minus 13 leaves 2, the least that 2 cells can be",
        ),
        (
            flows(("A", "x", 20), ("A", "y", 9), ("A", "z", 9)),
            "total of origin A: 38 minus 20 leaves 18, the most that 2 cells can be",
        ),
    ],
)
def test_one_total_says_what_pins_a_cell(frame, why):
    found = audit(frame, published="origin").bounds
    assert found["pinned"].all()
    if why is not None:
        assert set(found["why"]) == {why}


def test_a_chain_of_totals_is_told_link_by_link():
    free = [("D", "y", 5), ("D", "w", 4), ("E", "y", 3), ("E", "w", 5)]
    frame = flows(("A", "x", 3), ("A", "y", 4), ("B", "x", 20), *free)
    found = audit(frame, published=("origin", "destination")).bounds
    assert found.loc["A>y", "why"] == (
        "total of origin A: 7 minus 3 (A>x); A>x: total of destination x: 23 minus 20"
    )


def test_totals_that_only_together_pin_a_cell_are_told_together():
    """Two squares whose counts can change, and one cell between them, a bridge of the network."""
    square = [("A", "x", 3), ("A", "y", 4), ("B", "x", 5), ("B", "y", 2)]
    other = [("C", "z", 6), ("C", "w", 4), ("D", "z", 3), ("D", "w", 5)]
    frame = flows(*square, *other, ("A", "z", 4))
    found = audit(frame, published=("origin", "destination")).bounds
    assert found.index[found["pinned"]].tolist() == ["A>z"]
    assert found.loc["A>z", "why"] == (
        "total of origin A: 11 plus total of origin B: 7 minus total of destination x: 8 "
        "minus total of destination y: 6, less what is known: leave only this cell"
    )


def test_words_check_and_summary_say_how_many_are_pinned():
    found = audit(
        flows(("A", "x", 3), ("A", "y", 20), ("B", "x", 4), ("B", "y", 5)), published="origin"
    )
    assert (found.cells, found.pinned, found.narrowed, found.inexact) == (3, 1, 2, 0)
    assert found.share_pinned == pytest.approx(1 / 3)
    assert found.check().verdict == "fail"
    assert "1 of 3 (33.3%)" in found.summary()
    assert found.summary().count("confidential") == 1, "it prints true counts"
    assert "A>x is 3: total of origin A: 23 minus 20" in found.summary()
    assert "1 of 3" in found._repr_html_()
    assert found.by("origin").loc["A"].tolist() == [1, 1, 1.0]


def test_two_values_left_are_to_be_looked_at():
    found = audit(flows(("A", "x", 1), ("A", "y", 2)), published="origin")
    assert found.check().verdict == "look"
    assert "2 more can only have one of two values" in found.check().reason


def test_a_table_without_small_cells_has_nothing_to_pin():
    found = audit(flows(("A", "x", 30), ("A", "y", 20)))
    assert (found.cells, found.share_pinned, found.check().verdict) == (0, None, "pass")


def test_nothing_published_leaves_every_value():
    found = audit(flows(("A", "x", 3), ("A", "y", 20)), published=())
    assert found.bounds[["lower", "upper"]].to_numpy().tolist() == [[1, 9]]
    assert found.check().verdict == "pass"


def test_group_totals_need_groups():
    with pytest.raises(InputError, match="the table has no groups"):
        audit(flows(("A", "x", 3)), published="origin-by-group")


FILES = {
    "gb_lad_migration_2011": (0, 120),
    "norway_municipality_commuting_2017": (0, 7934),
    "us_county_commuting_acs2009_2013": (223, 20467),
    "us_county_migration_within_state_acs2009_2013": (258, 258),
}


@pytest.mark.shared_data
@pytest.mark.parametrize("name", FILES)
def test_pinned_cells_of_real_tables(name, shared_data):
    """Numbers found by an independent residual-graph computation: 0, 0, 0.6, 1.0 % and so on."""
    table = read_flows(
        shared_data / "flows" / f"{name}.csv.gz",
        origin="origin",
        destination="destination",
        count="count",
        groups=["origin_state", "destination_state"],
    )
    by_area = audit_totals(table)
    by_state = audit_totals(table, published=("origin-by-group", "destination-by-group"))
    assert (by_area.pinned, by_state.pinned) == FILES[name]
    assert by_area.inexact == by_state.inexact == 0


def test_own_area_counts_in_totals_are_hidden_unless_they_are_published():
    frame = flows(("A", "A", 4), ("A", "x", 3), ("A", "y", 20))
    table = read_flows(frame, origin="o", destination="d", count="n")
    totals = pd.DataFrame({"o": ["A"], "total": [27]})
    assert audit_totals(table, published=[totals]).pinned == 0
    assert audit_totals(table, published=[totals], own_area_hidden=False).pinned == 1


def test_hidden_rows_that_are_no_cells_are_told_too():
    """A small own-area count and one of too few people, each alone in a total."""
    frame = pd.DataFrame(
        [("A", "A", 4, 9), ("A", "B", 30, 20), ("B", "C", 50, 2), ("B", "A", 40, 20)],
        columns=["o", "d", "n", "people"],
    )
    flows = read_flows(
        frame, origin="o", destination="d", count="n", high=5, threshold_column="people"
    )
    found = audit_totals(flows, published="origin", own_area=True)
    assert found.cells == 0
    assert found.besides is not None
    assert found.besides["lower"].tolist() == [4, 50]
    assert found.pinned_besides == 2
    assert found.check().verdict == "fail"
    assert "A>A (own area, row 1)" in found.check().reason
    assert "B>C (withheld, row 3) is 50: total of origin B: 90 minus 40" in found.summary()
    hidden_alone = audit_totals(flows, published="origin", own_area=True, own_area_hidden=False)
    assert hidden_alone.pinned_besides == 1
    unpublished = audit_totals(flows, published="national", own_area=True)
    assert unpublished.pinned_besides == 0
    assert re.search(r"pinned own areas, withheld rows +0 of 2", unpublished.summary())
    assert unpublished.check().verdict != "fail"
