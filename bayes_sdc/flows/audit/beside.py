"""What is published beside the totals that a release keeps, and what both pin together.

Kept totals that pin nothing, and published ones that pin nothing, can pin small counts together.
Published are totals by name, tables of totals, totals inside the table and in columns that stay,
and those that an earlier release kept: margins of ten changed totals or more that it has exactly,
all of them. Those kept to a base, or partly in sum only, are not seen in an earlier release.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.audit import HiddenCounts, audit_families, hidden_counts
from bayes_sdc.flows.audit.network import Network, complete, make_network, two_trees, unpinned
from bayes_sdc.flows.audit.programs import extremes_by_program, refined
from bayes_sdc.flows.audit.propagation import System, make_system, propagate
from bayes_sdc.flows.audit.result import Audit
from bayes_sdc.flows.release.synthetic.earlier import earlier_counts
from bayes_sdc.flows.release.totals.kept import (
    BY_ITSELF,
    WITH_ALL,
    WITH_AREA,
    KeptSide,
    KeptTotals,
    kept_by_name,
)
from bayes_sdc.flows.release.totals.margins import COLUMNS, MARGINS, totals_kept
from bayes_sdc.flows.table.families import Family, Ints, none_hidden
from bayes_sdc.flows.table.read import FlowTable

KEPT, EARLIER = "kept", "kept by an earlier release"


class Beside(NamedTuple):
    """Totals that are published whatever a release keeps. Confidential."""

    table: FlowTable
    families: tuple[Family, ...]
    hidden: HiddenCounts
    alone: npt.NDArray[np.bool_]  # (cell,) small counts that follow from these totals alone

    def pinned(self, kept: KeptTotals, *, quick: bool = False) -> npt.NDArray[np.bool_]:
        """Small cells that follow from kept and published totals, not from these alone: (cell,).

        Parameters
        ----------
        kept : KeptTotals
            What a release keeps.
        quick : bool
            Whether cells may be called pinned that are not, where totals of three kinds cross.
        """
        both = [*self.families, *kept_families(self.table, kept)]
        found = pinned_given(both, self.hidden, quick=quick)[: self.table.n_small]
        return np.asarray(found & ~self.alone)

    def audit(self, kept: KeptTotals | None) -> Audit | None:
        """Audit all of them together; None where nothing is published or nothing is hidden."""
        if not self.families or not len(self.hidden.rows):
            return None
        told = [] if kept is None else kept_families(self.table, kept)
        audit = audit_families(
            self.table, [*self.families, *told], own_area_hidden=bool(len(self.hidden.stayed))
        )
        return replace(audit, published=tuple(dict.fromkeys(audit.published)))


def beside(
    table: FlowTable,
    families: Sequence[Family],
    *,
    already_released: Sequence[Any] = (),
    own_area_hidden: bool = True,
) -> Beside:
    """Put together what is published, with the totals that each earlier release kept.

    Parameters
    ----------
    table : FlowTable
        The true table, with the totals inside it settled.
    families : sequence of Family
        What is published beside it.
    already_released : sequence of path or DataFrame
        As for :func:`bayes_sdc.intruder_risk`.
    own_area_hidden : bool
        Whether small own-area counts are hidden too.
    """
    names = [
        name
        for one in (already_released if table.n_small else ())
        for name in totals_kept(table, earlier_counts(table, [one]))
    ]
    y = table.cells["y"].to_numpy(np.int64)
    kept: list[Family] = []
    for name in dict.fromkeys(names):
        for side in kept_by_name(table, name).sides:
            family = _family(table, side, y, EARLIER)
            if not any(np.array_equal(family.of, other.of) for other in kept):
                kept.append(family)
    every, hidden = (*families, *kept), hidden_counts(table, own_area_hidden)
    alone = pinned_given(every, hidden)[: table.n_small]
    return Beside(table, every, hidden, alone)


def kept_families(table: FlowTable, kept: KeptTotals) -> list[Family]:
    """Totals that a release keeps, of its small counts alone, as published ones."""
    y = table.cells["y"].to_numpy(np.int64)
    families = [_family(table, side, y, KEPT) for side in kept.sides]
    band = kept.band(y)
    if band is None:
        return families
    result = []
    for side, family, bounds in zip(kept.sides, families, (band.left, band.right), strict=False):
        least = table.low * np.bincount(side.cells)
        result.append(family._replace(low=bounds[:, 0] + least, high=bounds[:, 1] + least))
    return result


def _family(table: FlowTable, side: KeptSide, y: Ints, who: str) -> Family:
    """Sums of the small counts in each block."""
    block = side.block
    of = np.full(len(table.frame), -1, dtype=np.int64)
    of[table.cells["row"].to_numpy()] = side.cells
    sums = np.bincount(side.cells, y + table.low).astype(np.int64)
    columns = [name for name in (side.area, "group") if name in side.labels.columns]
    names = side.labels[columns or list(side.labels.columns)].astype(str).agg(", ".join, axis=1)
    one = names.groupby(block).first()
    many = pd.Series(block).value_counts().sort_index() > 1
    labels = [f"{name} and others" if more else name for name, more in zip(one, many, strict=True)]
    name = f"{side.name.replace('-', ' ')} ({who})"
    return Family(name, labels, of, sums, sums)


def pinned_given(
    families: Sequence[Family], hidden: HiddenCounts, *, quick: bool = False
) -> npt.NDArray[np.bool_]:
    """Find the hidden rows with one count in all tables with these totals: (hidden,).

    In time that grows with the number of rows, but for programs where totals of three kinds cross;
    what these cannot settle, or with ``quick`` all of it, counts as pinned.
    """
    order = np.argsort(hidden.rows, kind="stable")
    mask = none_hidden(len(hidden.counts)).mask
    mask[hidden.rows] = True
    system = make_system(
        hidden.counts, mask, hidden.lower[order], hidden.upper[order], list(families)
    )
    result = np.zeros(len(order), dtype=bool)
    if len(system.low):
        result[order] = _pinned(system, hidden.counts[hidden.rows][order], quick)
    return result


def _pinned(system: System, truth: Ints, quick: bool) -> npt.NDArray[np.bool_]:
    found, n = propagate(system), len(truth)
    chains, left_over = two_trees(system)
    network = make_network(system, found.lower, found.upper, chains)
    sure = ~unpinned(network, complete(system, network, truth))[:n]
    if not left_over:
        return np.asarray(sure)
    # changes within the parts of all totals leave these as they are: such cells are not pinned
    ends = refined(
        (network.tail[:n], network.head[:n]), [system.of[family] for family in left_over]
    )
    tail, head = (np.asarray(end) for end in ends)
    first = int(tail.max(initial=-1)) + 1
    nodes = first + int(head.max(initial=-1)) + 1
    none = np.full(n, -1)
    inside = Network(tail, head + first, found.lower, found.upper, nodes, none, none[:0])
    doubtful = ~unpinned(inside, truth) & ~sure
    if quick or not doubtful.any():
        return np.asarray(sure | doubtful)
    reached = [np.where(doubtful, truth, bound) for bound in (found.lower, found.upper)]
    lower, upper, exact = extremes_by_program(
        system, (reached[0], reached[1]), (found.lower, found.upper)
    )
    return np.asarray(sure | (doubtful & ((lower == upper) | ~exact)))


def marked(kept: KeptTotals, known: Beside) -> KeptTotals:
    """Mark the totals that are published anyway, so that none is merged for nothing."""
    sides = []
    for side in kept.sides:
        farthest = np.full(len(side.labels), WITH_ALL)
        if side.area is not None:
            area = pd.factorize(side.labels[side.area])[0].astype(np.int64)
            farthest[_told(area[side.of], known)[area]] = WITH_AREA
        farthest[_told(side.of, known)] = BY_ITSELF
        sides.append(side._replace(farthest=farthest))
    groups, labels = pd.factorize(known.table.cells["group"].astype(str))
    told = _told(groups, known)
    return replace(kept, sides=tuple(sides), groups_published=tuple(labels[told]))


def _told(block: np.ndarray, known: Beside) -> npt.NDArray[np.bool_]:
    """Whether a published total is that of just the small cells of a block: (block,)."""
    told = np.zeros(int(block.max(initial=-1)) + 1, dtype=bool)
    rows, size = known.hidden.rows, np.bincount(block)
    cells = rows[: len(block)]
    for family in known.families:
        of = family.of[cells]
        least, most = np.full(len(told), len(family.low)), np.full(len(told), -1)
        np.minimum.at(least, block, of)
        np.maximum.at(most, block, of)
        inside = family.of[rows]
        number = np.bincount(inside[inside >= 0], minlength=len(family.low))
        one = np.flatnonzero((least == most) & (least >= 0))
        total = least[one]
        exact = family.low[total] == family.high[total]
        told[one[exact & (number[total] == size[one])]] = True
    return told


def with_published(kept: KeptTotals, known: Beside) -> KeptTotals:
    """Add the margins that are published exactly, as far as they and the kept ones are two-way.

    For the probabilities of the true counts given all of them.
    """
    if kept.base > 1 or len(kept.merged) or not known.families:
        return kept
    more = []
    for name in MARGINS:
        block = known.table.cells.groupby(COLUMNS[name], sort=True).ngroup().to_numpy(np.int64)
        if _told(block, known).all():
            more.append(name)
    for names in ([*kept.names, *more], *([*kept.names, name] for name in more)):
        try:
            return kept_by_name(known.table, names)
        except InputError:  # more than a two-way table
            continue
    return kept
