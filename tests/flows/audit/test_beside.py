"""Kept and published totals together, against the enumeration of all tables with both."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import read_flows
from bayes_sdc.flows.audit.audit import published_families
from bayes_sdc.flows.audit.beside import beside, kept_families, marked, with_published
from bayes_sdc.flows.audit.kept_totals import without_pinned
from bayes_sdc.flows.intruder.totals.keeping import ChanceOfTruth
from bayes_sdc.flows.intruder.totals.kept_checks import check_kept, check_none_kept
from bayes_sdc.flows.release.totals.kept import PINS, WITH_ALL, KeptTotals, kept_by_name
from bayes_sdc.flows.table.families import Family
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.flows.table.simulate import simulate_flows


def ring(blocks: int = 6) -> FlowTable:
    """A table of which totals of one end pin nothing, and those of both ends everything."""
    rows = []
    for k in range(blocks):
        a, b, x, y = (f"{name}{k}" for name in "abxy")
        rows += [(a, x, 1), (a, y, 5), (b, x, 5), (b, y, 9)]
    frame = pd.DataFrame(rows, columns=["o", "d", "n"])
    return read_flows(frame, origin="o", destination="d", count="n")


def small(seed: int, groups: bool) -> FlowTable:
    rng = np.random.default_rng(seed)
    pairs = list(itertools.product("abc", "xyz"))
    taken = np.sort(rng.permutation(9)[: rng.integers(4, 9)])
    frame = pd.DataFrame([pairs[k] for k in taken], columns=["o", "d"])
    frame["so"], frame["sd"] = frame["o"].isin(["a", "b"]), frame["d"] == "z"
    frame["n"] = rng.integers(1, 5, len(frame))  # a count of 4 is safe
    frame = frame.astype({"so": str, "sd": str})
    frame.loc[0, "n"] = 1  # one small count at least
    return read_flows(
        frame, origin="o", destination="d", count="n", high=3,
        groups=["so", "sd"] if groups else None,
    )  # fmt: skip


def one_count(table: FlowTable, families: list[Family]) -> np.ndarray:
    """Cells with one count in all tables with these totals, by enumeration."""
    rows, y = table.cells["row"].to_numpy(), table.cells["y"].to_numpy()
    every = np.array(list(itertools.product(range(3), repeat=len(y))))
    for family in families:
        of = family.of[rows]
        for total in np.unique(of[of >= 0]):
            inside = of == total
            every = every[every[:, inside].sum(axis=1) == y[inside].sum()]
    return (every == y).all(axis=0)


WORDS = ["origin", "destination", "group", "origin-by-group"]


@settings(max_examples=12)
@given(st.integers(0, 10_000), st.sets(st.sampled_from(WORDS), min_size=1), st.sampled_from(WORDS))
def test_pinned_together_are_the_cells_that_all_tables_agree_on(seed, published, name) -> None:
    """Neither kept nor published totals alone need tell them."""
    table = small(seed, groups=True)
    known = beside(table, published_families(table, sorted(published)))
    kept = kept_by_name(table, name)
    both = one_count(table, [*known.families, *kept_families(table, kept)])
    alone = one_count(table, list(known.families))
    assert (known.alone == alone).all()
    assert (known.pinned(kept) == (both & ~alone)).all()
    assert not (known.pinned(kept) & ~known.pinned(kept, quick=True)).any()
    audit = known.audit(kept)
    assert audit is not None
    assert (audit.bounds["pinned"].to_numpy() == both).all()


@settings(max_examples=12)
@given(st.integers(0, 10_000), st.booleans(), st.sets(st.sampled_from(["origin", "destination"])))
def test_totals_chosen_beside_published_ones_pin_nothing_with_them(seed, groups, words) -> None:
    table = small(seed, groups)
    known = beside(table, published_families(table, sorted(words)))
    names = "origin-by-group,destination-by-group" if groups else "origin,destination"
    y = table.cells["y"].to_numpy()
    start = marked(kept_by_name(table, names), known)
    kept = without_pinned(start, y, table.k, pinned=known.pinned)
    both = one_count(table, [*known.families, *kept_families(table, kept)])
    assert (both == known.alone).all()
    for side in kept.sides:  # what is published anyway is not called confidential
        assert (side.level <= side.ends).all()


def grouped(seed: int, areas: int = 16) -> FlowTable:
    frame = simulate_flows(areas=areas, states=4, seed=seed)
    return read_flows(
        frame, origin="origin", destination="destination", count="count",
        groups=["origin_state", "destination_state"],
    )  # fmt: skip


def coarser_families(table: FlowTable, kept: KeptTotals) -> list[Family]:
    """Totals by area and by group but for those of the list."""
    listed = kept.not_to_publish
    families = []
    for margin in ("origin", "destination", "group"):
        (family,) = published_families(table, margin)
        rows = listed[listed["margin"] == margin]
        names = rows["group" if margin == "group" else "area"]
        labels = [
            label.replace(", ", ">") if margin == "group" else label for label in family.labels
        ]
        gone = np.append(np.isin(labels, names.astype(str)), False)
        families.append(family._replace(of=np.where(gone[family.of], -1, family.of)))
    return families


@pytest.mark.parametrize("seed", [2, 6])
def test_coarser_totals_that_tell_merged_ones_apart_are_on_the_list(seed: int) -> None:
    """An area's total less its other kept totals is what it has in a sum over areas."""
    table = grouped(seed)
    y = table.cells["y"].to_numpy(np.int64)
    kept = without_pinned(kept_by_name(table, "origin-by-group,destination-by-group"), y, table.k)
    assert any((side.level == WITH_ALL).any() for side in kept.sides)
    every = beside(table, published_families(table, ["origin", "destination"]))
    assert every.pinned(kept).any(), "all area totals do pin small counts"
    assert {"origin", "destination"} & {*kept.not_to_publish["margin"]}
    known = beside(table, coarser_families(table, kept))
    assert not known.pinned(kept).any()
    assert not known.alone.any()


@pytest.mark.parametrize("seed", [6])
def test_a_choice_that_knows_the_area_totals_keeps_more_than_none(seed: int) -> None:
    table = grouped(seed, areas=12)
    y = table.cells["y"].to_numpy(np.int64)
    known = beside(table, published_families(table, ["origin", "destination"]))
    start = marked(kept_by_name(table, "origin-by-group,destination-by-group"), known)
    kept = without_pinned(
        start, y, table.k, pinned=known.pinned,
        fits=lambda kept: not known.pinned(kept, quick=True).any(),
    )  # fmt: skip
    assert kept.number > 0
    assert not known.pinned(kept).any()
    assert not {"origin", "destination"} & {*kept.not_to_publish["margin"]}, "they are published"


def test_named_totals_fail_by_what_they_pin_with_published_ones() -> None:
    table = ring()
    kept = kept_by_name(table, "origin")
    known = beside(table, published_families(table, "destination"))
    n = table.n_small
    chance = ChanceOfTruth(np.full(n, 0.2), np.full(n, 0.2), 400)
    check = check_kept(table, kept, chance, known, pinned_allowed=True)
    assert check.verdict == "fail"
    assert f"with published totals by destination they pin {n} more" in check.reason
    audit = known.audit(kept)
    assert audit is not None
    assert audit.pinned == n
    assert "origin (kept)" in audit.check().reason
    assert [side.name for side in with_published(kept, known).sides] == ["origin", "destination"]
    alone = check_kept(table, kept, chance, beside(table, []))
    assert alone.verdict == "pass"


def test_totals_that_an_earlier_release_kept_count_as_published() -> None:
    """Two releases that keep one end each tell every count."""
    table = ring()
    earlier = table.frame.assign(n=0)
    for k in range(6):  # equal totals by origin, other counts
        earlier.loc[4 * k : 4 * k + 3, "n"] = [2, 4, 8, 6]
    known = beside(table, [], already_released=[earlier])
    assert [family.name for family in known.families] == ["origin (kept by an earlier release)"]
    assert not known.alone.any()
    assert known.pinned(kept_by_name(table, "destination")).all()
    other = earlier.assign(n=[3, 9, 2, 7] * 6)
    assert beside(table, [], already_released=[other]).families == ()


def test_that_no_totals_could_be_kept_is_a_verdict_of_its_own() -> None:
    check = check_none_kept(KeptTotals((), (), why=PINS), 0.9)
    assert (check.verdict, check.key) == ("look", "totals_kept")
    assert "no totals are kept: however they are merged, they make small counts follow" in (
        check.reason
    )
    frame = pd.DataFrame({"o": ["a", "b"], "d": ["x", "y"], "n": [3, 40]})
    table = read_flows(frame, origin="o", destination="d", count="n")
    none = without_pinned(kept_by_name(table, "origin,destination"), table.cells["y"].to_numpy(), 8)
    assert none.why == PINS
