"""Index arrays of the small cells: they must lead back to the pairs they came from."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import FlowTable, read_flows
from bayes_sdc.flows.table.cells import SmallCells, small_cells, subset

PAIRS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("wxyz"), st.sampled_from(["g", "h", "g|h"])),
    min_size=1,
    max_size=25,
    unique=True,
)


def read(pairs: list[tuple[str, str, str]], counts: list[int] | None = None) -> FlowTable:
    frame = pd.DataFrame(pairs, columns=["from", "to", "year"])
    frame["n"] = counts or [1 + i % 9 for i in range(len(pairs))]
    return read_flows(frame, origin="from", destination="to", count="n", groups=["year"])


def pairs_of(cells: SmallCells) -> list[tuple[str, str, str]]:
    """(group, origin, destination) of each cell, from the index arrays and the labels alone."""
    groups = [cells.groups[g] for g in cells.group]
    origins = [cells.origin_effects[i] for i in cells.origin]
    destinations = [cells.destination_effects[j] for j in cells.destination]
    return [
        (g, o.removeprefix(f"{g}|"), d.removeprefix(f"{g}|"))
        for g, o, d in zip(groups, origins, destinations, strict=True)
    ]


def assert_same(one: SmallCells, other: SmallCells) -> None:
    for name in SmallCells._fields:
        left, right = getattr(one, name), getattr(other, name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype, name
            np.testing.assert_array_equal(left, right, err_msg=name)
        else:
            assert left == right, name


@given(PAIRS)
def test_labels_and_indices_rebuild_the_pairs(pairs):
    # else a cell gets the effect of another area, or of the same area in another group
    table = read(pairs)
    cells = small_cells(table)
    true = table.cells[["group", "origin", "destination"]].itertuples(index=False, name=None)
    assert pairs_of(cells) == list(true)
    assert cells.cells == table.cells.index.tolist()
    np.testing.assert_array_equal(cells.y, table.cells["y"])
    assert cells.upper == 8


@given(PAIRS)
def test_each_area_has_one_effect_in_each_group_where_it_occurs(pairs):
    # else effects are shared between groups, or left without a cell
    table = read(pairs)
    cells = small_cells(table)
    for side, effects, index, group_of_effect in (
        ("origin", cells.origin_effects, cells.origin, cells.group_of_origin),
        ("destination", cells.destination_effects, cells.destination, cells.group_of_destination),
    ):
        assert len(effects) == len(table.cells[["group", side]].drop_duplicates())
        assert len(set(effects)) == len(effects)
        assert set(index.tolist()) == set(range(len(effects)))
        np.testing.assert_array_equal(group_of_effect[index], cells.group)
        assert (np.diff(group_of_effect) >= 0).all()
    assert (np.diff(cells.origin) >= 0).all()  # what the Gibbs sampler counts on
    assert (np.diff(cells.group) >= 0).all()


@given(PAIRS, st.sets(st.sampled_from(["g", "h", "g|h"]), min_size=1))
def test_subset_is_the_layout_of_the_filtered_table(pairs, wanted):
    # else a batch of groups is fitted with the effects or the counts of others
    kept = [pair for pair in pairs if pair[2] in wanted]
    counts = [1 + i % 9 for i in range(len(pairs))]
    whole = small_cells(read(pairs, counts))
    positions = np.array([i for i, name in enumerate(whole.groups) if name in wanted], np.int64)
    if not kept:
        assert len(positions) == 0
        return
    filtered = small_cells(
        read(kept, [c for c, pair in zip(counts, pairs, strict=True) if pair[2] in wanted])
    )
    part = subset(whole, positions)
    # labels of cells name the group only where a pair occurs in more than one
    assert [c.rpartition("|")[2] for c in part.cells] == [
        c.rpartition("|")[2] for c in filtered.cells
    ]
    assert_same(part._replace(cells=[]), filtered._replace(cells=[]))


def test_all_groups_are_the_whole():
    whole = small_cells(read([("a", "w", "g"), ("a", "w", "h"), ("b", "x", "h")]))
    assert_same(subset(whole, np.arange(2)), whole)


def test_cells_that_are_not_small_have_no_effect():
    # else areas with safe counts alone would be sampled from the prior
    table = read([("a", "w", "g"), ("b", "x", "g"), ("c", "y", "h")], counts=[3, 10, 0])
    cells = small_cells(table)
    assert (cells.origin_effects, cells.destination_effects) == (["g|a"], ["g|w"])
    assert cells.groups == ["g"]
    assert cells.y.tolist() == [2]


def test_table_without_small_cells_is_empty():
    cells = small_cells(read([("a", "w", "g")], counts=[50]))
    assert cells.cells == cells.groups == cells.origin_effects == []
    assert cells.y.dtype == cells.origin.dtype == np.int64
    assert len(cells.y) == len(cells.origin) == len(cells.group_of_destination) == 0


@pytest.mark.parametrize("bounds", [(0, 4), (1, 9), (3, 5)])
def test_counts_are_counted_from_the_lower_bound(bounds):
    low, high = bounds
    frame = pd.DataFrame({"from": list("abc"), "to": list("xyz"), "n": [low, high, high + 1]})
    table = read_flows(frame, origin="from", destination="to", count="n", low=low, high=high)
    cells = small_cells(table)
    assert cells.y.tolist() == [0, high - low]
    assert cells.upper == high - low
    assert cells.groups == ["all"]
