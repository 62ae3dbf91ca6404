"""Cells that kept totals pin, against the enumeration of all tables, and merging until none is."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import read_flows
from bayes_sdc.flows.audit.kept_totals import (
    merge_around,
    pinned_cells,
    taken_out,
    without_pinned,
)
from bayes_sdc.flows.release.totals.kept import (
    BESIDE,
    BY_ITSELF,
    PINS,
    WITH_ALL,
    WITH_AREA,
    KeptTotals,
    kept_by_name,
)
from bayes_sdc.flows.release.totals.margins import Margins

edges = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=7)


@given(edges, st.integers(1, 2), st.integers(0, 2**32 - 1))
def test_pinned_cells_are_those_with_one_count_in_all_tables(shape, upper, seed) -> None:
    rng = np.random.default_rng(seed)
    left, right = (np.unique(side, return_inverse=True)[1] for side in np.array(shape).T)
    y = rng.integers(0, upper + 1, len(shape))
    margins = Margins(left, right, *(np.bincount(b, y).astype(np.int64) for b in (left, right)))
    every = np.array(
        [
            table
            for table in itertools.product(range(upper + 1), repeat=len(y))
            if (np.bincount(left, table) == margins.left_sums).all()
            and (np.bincount(right, table) == margins.right_sums).all()
        ]
    )
    assert (pinned_cells(margins, y, upper) == (every == every[0]).all(axis=0)).all()


def table_of(seed: int, groups: bool = True, areas: int = 12):
    """A sparse table, so that totals pin some cells."""
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(areas) for j in range(areas) if i != j and rng.random() < 0.35]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    frame["so"], frame["sd"] = frame["o"] // 4, frame["d"] // 4
    frame["n"] = rng.geometric(0.35, len(frame))
    return read_flows(
        frame.astype(dict.fromkeys(("o", "d", "so", "sd"), str)), origin="o", destination="d",
        count="n", groups=["so", "sd"] if groups else None,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("names", ["origin,destination", "origin-by-group,destination-by-group"])
def test_merging_leaves_no_pinned_cell_and_keeps_what_it_can(seed: int, names: str) -> None:
    table = table_of(seed)
    y = table.cells["y"].to_numpy()
    kept = without_pinned(kept_by_name(table, names), y, table.k)
    assert kept.sides  # a table of so many cells has totals that pin nothing
    assert not pinned_cells(kept.margins(y), y, table.k).any()
    for side in kept.sides:
        # what is merged is merged with something
        blocks, sizes = np.unique(side.block, return_counts=True)
        level = np.array([side.level[side.block == block][0] for block in blocks])
        assert (sizes[level > 0] > 1).all()
        assert (sizes[level == 0] == 1).all()
    assert len(kept.merged) + kept.number == sum(len(side.labels) for side in kept.sides)


def test_partner_groups_are_merged_before_areas() -> None:
    table = table_of(1)
    y = table.cells["y"].to_numpy()
    start = kept_by_name(table, "origin-by-group,destination-by-group")
    pinned = pinned_cells(start.margins(y), y, table.k)
    assert pinned.any()
    once = merge_around(start, pinned, PINS)
    levels = np.concatenate([side.level for side in once.sides])
    assert (levels == WITH_AREA).any()
    lone = [  # areas of one partner group have nothing to be merged with but other areas
        side.labels.groupby(side.area)["group"].transform("size").to_numpy() for side in once.sides
    ]
    assert (np.concatenate(lone)[levels == WITH_ALL] <= 2).all()


def test_where_nothing_can_be_kept_nothing_is() -> None:
    frame = pd.DataFrame({"o": ["a", "b"], "d": ["x", "y"], "n": [3, 40]})
    table = read_flows(frame, origin="o", destination="d", count="n")
    kept = without_pinned(kept_by_name(table, "origin,destination"), table.cells["y"].to_numpy(), 8)
    assert kept.sides == ()
    assert str(kept) == "no totals are kept"
    assert kept.merged.empty


def pins_one(kept: KeptTotals, y: np.ndarray, every: np.ndarray, alone=()) -> np.ndarray:
    """Cells with one count in all tables with these totals, and with some by themselves."""
    fits = np.ones(len(every), bool)
    for number, side in enumerate(kept.sides):
        blocks = [side.cells == block for block in np.unique(side.cells)]
        blocks += [side.of == total for other, total in alone if other == number]
        for block in blocks:
            fits &= every[:, block].sum(axis=1) == y[block].sum()
    return (every[fits] == y).all(axis=0)


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_no_cell_is_pinned_and_no_total_is_merged_without_need(seed: int, groups: bool) -> None:
    """By enumeration: any total of the list, by itself beside what is kept, pins a cell."""
    rng = np.random.default_rng(seed)
    pairs = list(itertools.product("abc", "xyz"))
    taken = rng.permutation(9)[: rng.integers(4, 9)]
    frame = pd.DataFrame([pairs[k] for k in np.sort(taken)], columns=["o", "d"])
    frame["so"], frame["sd"] = frame["o"] == "a", frame["d"] == "z"
    frame["n"] = rng.integers(1, 4, len(frame))
    table = read_flows(
        frame.astype({"so": str, "sd": str}), origin="o", destination="d", count="n", high=3,
        groups=["so", "sd"] if groups else None,
    )  # fmt: skip
    names = "origin-by-group,destination-by-group" if groups else "origin,destination"
    y, wanted = table.cells["y"].to_numpy(), kept_by_name(table, names)
    kept = without_pinned(wanted, y, table.k)
    every = np.array(list(itertools.product(range(3), repeat=len(y))))
    at_first = pins_one(wanted, y, every)
    if kept.sides:
        assert not pins_one(kept, y, every).any()
    for number, side in enumerate(kept.sides):
        for total in np.flatnonzero(side.level > BY_ITSELF):
            assert pins_one(kept, y, every, [(number, total)]).any()
            assert side.why[total] in (PINS, BESIDE)
            if side.why[total] == PINS:
                assert at_first[side.of == total].any()
        assert (side.why[side.level == BY_ITSELF] == 0).all()


def test_halves_are_tried_until_the_trials_are_used_up() -> None:
    table = table_of(2)
    y = table.cells["y"].to_numpy()
    wanted = kept_by_name(table, "origin,destination")
    merged = merge_around(wanted, np.ones(len(y), bool), PINS)
    calls = []

    def never(kept: KeptTotals) -> bool:
        calls.append(kept)
        return False

    assert taken_out(merged, wanted, never, trials=5) is merged
    assert len(calls) == 5
    every = taken_out(merged, wanted, lambda kept: True, trials=5)
    assert every.merged.empty
