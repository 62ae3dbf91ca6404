"""Cells that kept totals pin, against the enumeration of all tables, and merging until none is."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import read_flows
from bayes_sdc.flows.audit.kept_totals import merge_around, pinned_cells, without_pinned
from bayes_sdc.flows.release.totals.kept import WITH_ALL, WITH_AREA, kept_by_name
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
    once = merge_around(start, pinned)
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
