"""Suppression done honestly: further cells are hidden, so that totals do not tell the small ones.

If only the small cells are hidden, those that are the only hidden cell of a total follow from it,
and others follow from these. So agencies hide further cells until each small one lies on a cycle of
hidden cells. The result is measured like any other release: the intruder knows everything that is
shown, all totals, and all hidden cells but those of one cycle through the target.
"""

from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.intruder.totals.search import widest_cycles
from bayes_sdc.flows.release.protections.suppression import proportional_fit, secondary_cells
from bayes_sdc.flows.release.totals.alternating_cycles import graph_of
from bayes_sdc.flows.release.totals.kept import KeptTotals
from bayes_sdc.flows.release.totals.margins import COLUMNS, MARGINS, not_following
from bayes_sdc.flows.table.labels import group_places
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.io.columns import own_area, read_codes

MOST = 20_000  # small cells; the search for further cells is a search for each


class Suppressed(NamedTuple):
    """What remains after small cells and further ones are hidden. Confidential."""

    further: int  # cells hidden besides the small ones
    movers: int  # in them
    filled: np.ndarray  # (cell,) small cells by proportional fitting of all hidden cells
    prior: np.ndarray  # (cell, count) what totals and all but a cycle leave of each; rows sum to 1


def suppressed(
    table: FlowTable, kept: KeptTotals, *, rng: np.random.Generator
) -> Suppressed | None:
    """Hide the small cells and further ones, and measure what the totals still tell.

    Parameters
    ----------
    table : FlowTable
        The true table.
    kept : KeptTotals
        Totals that are published, none of them merged.
    rng : Generator
        Source of the cycles.

    Returns
    -------
    Suppressed or None
        None where the totals are more than a two-way table of all cells, so that not all of them
        can be kept.
    """
    cells = table.cells
    y, small_rows = cells["y"].to_numpy(np.int64), cells["row"].to_numpy()
    rows = np.concatenate([small_rows, _safe_rows(table)])
    blocks = _blocks(table, kept, rows)
    if blocks is None:
        return None
    left, right = blocks
    counts = table.frame[table.count].to_numpy(np.int64)[rows]
    small = np.arange(len(rows)) < len(y)
    more = secondary_cells(left, right, counts, small)
    hidden = np.flatnonzero(small | more)
    ends = [np.unique(of[hidden], return_inverse=True)[1] for of in (left, right)]
    # a hidden cell that is not small can be anything from 0 on
    value = np.where(small, counts - table.low, counts)[hidden]
    upper = np.where(small[hidden], table.k, value + table.k)
    cycles = widest_cycles(rng, graph_of(ends[0], ends[1]), value, upper)
    candidate = np.arange(table.k + 1)
    low, high = (y + room[: len(y)] for room in (cycles.low, cycles.high))
    possible = (candidate >= low[:, None]) & (candidate <= high[:, None])
    sums = [np.bincount(of, counts[hidden]).astype(float) for of in ends]
    return Suppressed(
        int(more.sum()),
        int(counts[more].sum()),
        proportional_fit(ends[0], ends[1], *sums)[: len(y)],
        possible / possible.sum(axis=1, keepdims=True),
    )


def _safe_rows(table: FlowTable) -> np.ndarray:
    """Rows of counts above the small ones, between two areas."""
    frame = table.frame
    shown = ~own_area(*(read_codes(frame[c], c) for c in (table.origin, table.destination)))
    shown[list(table.totals)] = False
    shown &= frame[table.count].to_numpy() > table.high
    return np.flatnonzero(shown)


def _blocks(table: FlowTable, kept: KeptTotals, rows: np.ndarray) -> list[np.ndarray] | None:
    """Total of each row, of both kinds; of one kind twice, and None for more than two kinds.

    Which totals follow from others depends on the cells: among the small ones a group may be that
    of the origin, and not among all. So it is asked of all rows, and more than two kinds that do
    not follow from each other cannot all be kept.
    """
    frame = table.frame
    columns = {
        name: read_codes(frame[column], column).places
        for name, column in (("origin", table.origin), ("destination", table.destination))
    }
    groups = [read_codes(frame[name], name) for name in table.groups]
    columns["group"] = group_places(groups, len(frame))[0]
    found: dict[str, np.ndarray] = {}
    for name in MARGINS:  # in this order, whatever that of the names
        if name in kept.names:
            of = np.column_stack([columns[column][rows] for column in COLUMNS[name]])
            number = np.unique(of, axis=0, return_inverse=True)[1].ravel()
            found[name] = number.astype(np.int64)
    finest = list(not_following(found).values())
    if len(finest) > 2:
        return None
    return [*finest, finest[0]][:2]
