"""Totals that a release keeps, and totals that are kept together with others only.

A total is a *block* of small cells. Blocks of one kind can be merged: those of an area and several
partner groups into one total of the area, or those of several areas into one total of all of them.
Merged totals must not be published by themselves, because the release does not keep them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.flows.release.totals.bands import Band, band_of, rounding_bounds
from bayes_sdc.flows.release.totals.draws import Mixing, mixing
from bayes_sdc.flows.release.totals.margins import COLUMNS, Margins, check_margins, finest_of
from bayes_sdc.flows.table.labels import group_places
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.io.columns import own_area, read_codes
from bayes_sdc.results import Fact, Result

BY_ITSELF, WITH_AREA, WITH_ALL = 0, 1, 2  # how far a total is merged
MERGED = {WITH_AREA: "other partner groups of the area", WITH_ALL: "all totals that are merged"}
PINS, TELLS, BESIDE = 1, 2, 3  # why a total is merged
REASONS = {
    PINS: "a small count would follow from it",
    TELLS: "a small count would be nearly certain",
    BESIDE: "another total of this list would follow from it",
}
COARSER = "totals of this list"  # what a total that sums some of them is merged with


class KeptSide(NamedTuple):
    """Totals of one kind, and how far each is merged. Confidential.

    Made by :func:`bayes_sdc.keep_totals`, in ``sides``.

    Parameters
    ----------
    name : str
        Of the margin.
    of : array of int, shape (cell,)
        Total of each cell.
    labels : DataFrame
        Area and group of each total, those that the margin has.
    level : array of int, shape (total,)
        Whether it is kept by itself, merged with its area, or with all.
    rest : array of int, shape (total,)
        Content of the total besides the small counts, from 0.
    why : array of int, shape (total,)
        Reason for which it is merged; 0 where it is not.
    farthest : array of int, shape (total,), optional
        How far it is of any use to merge it: not at all where it is published anyway, with its area
        where the area's total is. Everything by default.
    """

    name: str  # of the margin
    of: np.ndarray  # (cell,) total of each cell
    labels: pd.DataFrame  # (total,) area and group, those that the margin has
    level: np.ndarray  # (total,) BY_ITSELF, WITH_AREA or WITH_ALL
    rest: np.ndarray  # (total,) content of the total besides the small counts, from 0
    why: np.ndarray  # (total,) 0, PINS, TELLS or BESIDE
    farthest: np.ndarray | None = None  # (total,) level; beyond, what is published tells it anyway

    @property
    def ends(self) -> np.ndarray:
        """How far it is of any use to merge each total: (total,)."""
        return np.full(len(self.level), WITH_ALL) if self.farthest is None else self.farthest

    @property
    def area(self) -> str | None:
        """Column of the area, where a total is of an area and a partner group."""
        columns = [name for name in self.labels.columns if name != "group"]
        return columns[0] if "group" in self.labels.columns and columns else None

    @property
    def block(self) -> np.ndarray:
        """Number of the block that each total is in, once what is merged is merged: (total,)."""
        area = np.zeros(len(self.labels), np.int64)
        if self.area is not None:
            area = pd.factorize(self.labels[self.area])[0].astype(np.int64)
        member = np.choose(self.level, [np.arange(len(self.level)), area, 0])
        both = np.stack([self.level, member])
        return np.asarray(np.unique(both, axis=1, return_inverse=True)[1].ravel(), np.int64)

    @property
    def whole_groups(self) -> set[str]:
        """Groups whose total follows from what is kept here, no total being merged with others."""
        groups = self.labels["group"].astype(str)
        crossing = groups.groupby(self.block).transform("nunique") > 1
        return {*groups} - {*groups[crossing]}

    @property
    def cells(self) -> np.ndarray:
        """Block of each cell: (cell,)."""
        return np.asarray(self.block[self.of])


@dataclass(frozen=True, eq=False, repr=False)
class KeptTotals(Result):
    """Totals that every data set of a release has exactly as the table. Confidential.

    Made by :func:`bayes_sdc.keep_totals`.

    Parameters
    ----------
    names : tuple of str
        Kinds of totals.
    sides : tuple of KeptSide
        One or two kinds that all others follow from; none if no total is kept.
    base : int
        Each data set's totals round to the same multiple of it as the true ones; 1 where they are
        exact.
    why : int
        Reason for which no totals are kept although some were asked for; 0 otherwise.
    groups_published : tuple of str
        Groups whose total is published anyway.
    """

    names: tuple[str, ...]
    sides: tuple[KeptSide, ...]
    base: int = 1
    why: int = 0
    groups_published: tuple[str, ...] = ()

    def mixing(self, y: np.ndarray) -> Mixing:
        """What draws tables with these totals; ``y`` are counts from 0 that have them."""
        return mixing(self.margins(y), self.band(y))

    def band(self, y: np.ndarray) -> Band | None:
        """Bounds of the totals that are kept to a base; None where they are exact."""
        if self.base == 1 or not self.sides:
            return None
        margins = self.margins(y)
        both = [*self.sides, self.sides[0]][:2]
        bounds = [
            rounding_bounds(np.bincount(side.block, side.rest).astype(np.int64) + sums, sums,
                            self.base)
            for side, sums in zip(both, margins[2:], strict=True)
        ]  # fmt: skip
        return band_of(margins.left, margins.right, *bounds)

    def bounds(self, y: np.ndarray) -> list[np.ndarray]:
        """Least and largest sum from 0 of each block, on both sides: (block, 2)."""
        band = self.band(y)
        if band is not None:
            return [band.left, band.right]
        return [np.stack([sums, sums], axis=1) for sums in self.margins(y)[2:]]

    def margins(self, y: np.ndarray) -> Margins:
        """The graph of the totals, with the sums of these counts, from 0."""
        left, right = [*(side.cells for side in self.sides), self.sides[0].cells][:2]
        return Margins(left, right, *(np.bincount(b, y).astype(np.int64) for b in (left, right)))

    @property
    def merged(self) -> pd.DataFrame:
        """Totals that are kept together with others only, and must not be published.

        One row per total: ``margin``, ``area``, ``group`` (missing where the margin has none),
        ``with``, what it is merged with, and ``why`` it must not be published.
        """
        rows = []
        for side in self.sides:
            at = np.flatnonzero(side.level > BY_ITSELF)
            labels = side.labels.iloc[at]
            area = [name for name in labels.columns if name != "group"]
            rows.append(
                pd.DataFrame(
                    {
                        "margin": side.name,
                        "area": labels[area[0]] if area else pd.NA,
                        "group": labels["group"] if "group" in labels.columns else pd.NA,
                        "with": [MERGED[int(level)] for level in side.level[at]],
                        "why": [REASONS[int(why)] for why in side.why[at]],
                    }
                ).astype("string")
            )
        columns = ["margin", "area", "group", "with", "why"]
        return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=columns)

    @property
    def not_to_publish(self) -> pd.DataFrame:
        """Totals that must not be published: ``merged``, and coarser ones that tell them apart.

        Without the totals of the other partner groups, the total of an area tells what it has in
        the sum of several areas; and that of a group what it has in the sum of an area.
        """
        found = [self.merged]
        for side in self.sides:
            if side.area is not None:
                apart = (side.level == WITH_ALL) & (side.ends == WITH_ALL)
                areas = side.labels[side.area][apart].drop_duplicates()
                found.append(_coarser(str(side.area), "area", areas))
        if all("group" in side.labels.columns for side in self.sides):
            told = [side.whole_groups for side in self.sides] + [{*self.groups_published}]
            every = pd.Series(
                sorted({group for side in self.sides for group in side.labels["group"]}), dtype=str
            )
            found.append(_coarser("group", "group", every[~every.isin(set().union(*told))]))
        return pd.concat([each for each in found if len(each)] or found[:1], ignore_index=True)

    @property
    def number(self) -> int:
        """How many totals are kept by themselves."""
        return sum(int((side.level == BY_ITSELF).sum()) for side in self.sides)

    def __str__(self) -> str:
        """Return the totals in words."""
        if not self.sides:
            return "no totals are kept"
        to = "" if self.base == 1 else f" to multiples of {self.base}"
        text = f"{self.number:,} totals by {' and '.join(self.names)} are kept{to}"
        merged = len(self.merged)
        return text + (f"; {merged:,} are kept in sum only" if merged else "")

    def _title(self) -> str:
        return "Totals that a release keeps: confidential"

    def _facts(self) -> list[Fact]:
        return [
            ("kinds", ", ".join(self.names) or "none", ""),
            ("kept", f"{self.number:,}", "totals of small counts, by themselves"),
            ("in sum only", f"{len(self.merged):,}", "totals that are not the true ones each"),
            ("not to publish", f"{len(self.not_to_publish):,}", "these, and what tells them apart"),
        ]


def _coarser(margin: str, column: str, of: pd.Series) -> pd.DataFrame:
    """Rows of the list for totals that sum some of those that are merged."""
    columns = ["margin", "area", "group", "with", "why"]
    rows = pd.DataFrame(index=range(len(of)), columns=columns, dtype="string")
    rows["margin"], rows["with"], rows["why"] = margin, COARSER, REASONS[BESIDE]
    rows[column] = of.to_numpy()
    return rows.astype("string")


def kept_by_name(table: FlowTable, totals: str | Sequence[str], *, base: int = 1) -> KeptTotals:
    """All totals of some margins of a table, none of them merged.

    Parameters
    ----------
    table : FlowTable
        With at least one small cell.
    totals : str or sequence of str
        As for :func:`bayes_sdc.synthesize`.
    base : int
        What the totals are kept to a multiple of.

    Raises
    ------
    InputError
        If the base is below 1, a margin is unknown, they are more than a two-way table, or with a
        base one is coarser than another.
    """
    names = check_margins(totals)
    if base < 1:
        raise InputError(f"the base of totals must be 1 or more; it is {base}")
    sides, finest = [], finest_of(table, names) if names else {}
    if base > 1 and (coarse := [name for name in names if name not in finest]):
        raise InputError(
            f"totals by {', '.join(coarse)} follow from those by {', '.join(finest)} only where "
            f"these are exact, not to a base of {base}; ask for one of them, or leave out the base"
        )
    for name, blocks in finest.items():
        columns = table.cells[COLUMNS[name]]
        first = np.unique(blocks, return_index=True)[1]
        labels = columns.iloc[first].reset_index(drop=True)
        rest = _rest(table, name, labels, np.bincount(blocks))
        level, why = np.zeros((2, len(labels)), np.int64)
        sides.append(KeptSide(name, blocks, labels, level, rest, why))
    return KeptTotals(names, tuple(sides), base)


def _rest(table: FlowTable, name: str, labels: pd.DataFrame, cells: np.ndarray) -> np.ndarray:
    """What each total holds besides its small counts from 0: counts above, and low for each.

    Without what is withheld: a total is what a reader of the release can add up.
    """
    frame = table.frame
    ends = [read_codes(frame[column], column) for column in (table.origin, table.destination)]
    flow = ~own_area(*ends)
    flow[[*table.totals, *table.withheld]] = False
    flow[table.cells["row"].to_numpy()] = False
    texts = dict(zip(("origin", "destination"), (end.texts() for end in ends), strict=True))
    groups = [read_codes(frame[column], column) for column in table.groups]
    places, names = group_places(groups, len(frame))
    texts["group"] = np.array(names, dtype=object)[places]
    count = frame[table.count].to_numpy(np.int64)
    safe = pd.DataFrame({column: texts[column] for column in COLUMNS[name]}).assign(count=count)
    sums = safe[flow].groupby(COLUMNS[name])["count"].sum()
    wanted = labels[COLUMNS[name]]
    index = pd.MultiIndex.from_frame(wanted) if wanted.shape[1] > 1 else wanted.iloc[:, 0]
    above = sums.reindex(index).fillna(0).to_numpy(np.int64)
    return np.asarray(above + table.low * cells)


def kept_of(table: FlowTable, totals: str | Sequence[str] | KeptTotals) -> KeptTotals:
    """Return totals given by name, or those chosen for this table."""
    if not isinstance(totals, KeptTotals):
        return kept_by_name(table, totals)
    if any(len(side.of) != table.n_small for side in totals.sides):
        raise InputError("the totals to keep are of another table; choose them for this one")
    return totals
