"""Which columns are released: the table's own, and those that only describe an area.

A column that is a function of the origin or of the destination alone (a name, a state, a
coordinate) says nothing about the count of a pair. Whether it is one is tested: the same area has
the same value in every row, and there are enough rows to rule out chance. A column with totals of
an area is a function of the area too, but publishes the total; so is one with the smallest of its
counts, or the number of its ones. Both are recognised by arithmetic.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.flows.kept_columns.functions import codes_of, depends_on
from bayes_sdc.flows.kept_columns.numbers import numbers_in
from bayes_sdc.flows.kept_columns.partners import count_of_partner, readings
from bayes_sdc.flows.kept_columns.statistics import statistic_in
from bayes_sdc.flows.kept_columns.together import (
    totals_by_several,
    totals_of_areas,
    totals_together,
)
from bayes_sdc.flows.kept_columns.totals import Ends, ends_of, total_in
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.io.text import find_columns

END_NAMES = ("origin", "destination")
MOST_TOGETHER = 30  # columns of numbers of areas that are looked at two by two


class LeftOut(NamedTuple):
    """A column of the input that is not released, and why.

    Made by :func:`bayes_sdc.protect_flows`, in ``columns.left_out``.

    Parameters
    ----------
    name : str
        Of the column.
    why : str
        The reason, and what the column would disclose.
    """

    name: str
    why: str


@dataclass(frozen=True)
class Selection:
    """The columns of a release.

    Made by :func:`bayes_sdc.protect_flows`, as ``columns``.

    Parameters
    ----------
    released : tuple of str
        Every released column, in the order of the input.
    areas : tuple of str
        Those that are functions of one area, or the same in every row.
    kept : tuple of str
        Those released because they were named.
    left_out : tuple of LeftOut
        The others.
    """

    released: tuple[str, ...]
    areas: tuple[str, ...]
    kept: tuple[str, ...]
    left_out: tuple[LeftOut, ...]

    def of(self, release: pd.DataFrame) -> pd.DataFrame:
        """Return the released columns of a frame; a column that numbers data sets stays."""
        gone = [one.name for one in self.left_out]
        return release.drop(columns=gone) if gone else release

    def notes(self) -> Iterator[str]:
        """Say what was left out, one line per reason."""
        for why in dict.fromkeys(one.why for one in self.left_out):
            names = [one.name for one in self.left_out if one.why == why]
            shown = ", ".join(map(repr, names[:5]))
            more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
            what = "column" if len(names) == 1 else f"{len(names):,} columns"
            yield f"left out of the release: {what} {shown}{more}: {why}"


def select_columns(table: FlowTable, keep: Collection[str] = ()) -> Selection:
    """Choose the columns of the release.

    Parameters
    ----------
    table : FlowTable
        The table that is to be released.
    keep : collection of str
        Columns to release besides. Columns of totals that :func:`bayes_sdc.settle_totals` was told
        to publish are kept as well.

    Returns
    -------
    Selection
        Origin, destination, count and groups; columns that depend on one area alone and hold no
        totals of it; the columns named.

    Raises
    ------
    InputError
        If a column that is to be kept does not exist.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import read_flows
    >>> pairs = [(o, d) for o in "abcdef" for d in "uvwxyz"]
    >>> frame = pd.DataFrame(pairs, columns=["o", "d"]).assign(n=range(1, 37))
    >>> frame["name"] = "Area " + frame["o"].str.upper()
    >>> frame["band"] = frame["n"].gt(4).map({True: "M", False: "S"})
    >>> selection = select_columns(read_flows(frame, origin="o", destination="d", count="n"))
    >>> selection.released, [one.name for one in selection.left_out]
    (('o', 'd', 'n', 'name'), ['band'])
    """
    if isinstance(keep, str):
        raise InputError(f"keep must be a list of columns, as in keep=[{keep!r}]")
    names = [str(name) for name in table.frame.columns]
    find_columns(table.source, names, list(keep))
    own = {table.origin, table.destination, table.count, *table.groups}
    ends = ends_of(table)
    released: list[str] = []
    areas: list[str] = []
    kept: list[str] = []
    left_out: list[LeftOut] = []
    for place, name in enumerate(names):
        if name in own:
            released.append(name)
            continue
        column = table.frame.iloc[:, place]
        why = _why_not(table, column, ends)
        if (name in keep or name in table.total_columns) and why:
            kept.append(name)  # totals to be published count as named, too
        elif why:
            left_out.append(LeftOut(name, why))
            continue
        else:
            together = with_another(table, name, areas, ends)
            if together and name in keep:
                kept.append(name)
            elif together:
                left_out.append(LeftOut(name, together))
                continue
            else:
                areas.append(name)
        released.append(name)
    return Selection(tuple(released), tuple(areas), tuple(kept), tuple(left_out))


def with_another(table: FlowTable, name: str, areas: Sequence[str], ends: Ends) -> str:
    """Return why a column of areas is not released beside others; nothing where it may be.

    Parameters
    ----------
    table : FlowTable
        Counts as they are.
    name : str
        Of the column.
    areas : sequence of str
        Other columns of areas that are released.
    ends : Ends
        From :func:`bayes_sdc.flows.kept_columns.totals.ends_of`.
    """
    mine = list(_by_area(table, name, ends))
    if not mine:
        return ""
    others = [(other, list(_by_area(table, other, ends))) for other in areas]
    others = [(other, held) for other, held in others if held]
    if len(others) > MOST_TOGETHER:
        return f"{len(others)} columns of numbers before it describe areas: too many to compare"
    totals = list(totals_of_areas(table, ends)) if others else []
    for other, held in others:
        for one in mine:
            for two in held:
                how = totals_together(one, two, totals)
                if how is not None:
                    return f"with {other!r} it publishes totals: {how}"
    flat = [(other, two) for other, held in others for two in held]
    for one in mine if others else []:
        found = totals_by_several(one, [two for _, two in flat], totals)
        if found is not None:
            named = " and ".join(dict.fromkeys(repr(flat[place][0]) for place in found[1]))
            beside = f"with {named} " * bool(named)
            return f"{beside}it publishes totals: {found[0]}"
    return ""


def _by_area(table: FlowTable, name: str, ends: Ends) -> Iterator[npt.NDArray[np.float64]]:
    """Yield what a column holds of every area, for each side that it is a function of."""
    column = table.frame[name]
    numbers = numbers_in(column)
    if np.isnan(numbers).all():
        return
    codes = codes_of(column)
    for side in END_NAMES:
        end = getattr(ends, side)
        if depends_on(codes, end):
            held = np.full(len(ends.labels), np.nan)
            held[end] = numbers
            yield held


def _why_not(table: FlowTable, column: pd.Series, ends: Ends) -> str:
    """Why a column is not released unless named; empty where it describes an area."""
    values = codes_of(column)
    if len(values) and values.max() == 0:
        return ""
    is_function = [depends_on(values, end) for end in (ends.origin, ends.destination)]
    if True not in is_function:
        if None in is_function:
            return "each area has too few rows to tell whether it only describes areas"
        return "no function of the origin or of the destination alone"
    for side in (side for side, found in zip(END_NAMES, is_function, strict=True) if found):
        partner = count_of_partner(table, column, side, ends)
        if partner is not None:
            return f"it holds {partner}"
        for reading in readings(column):
            total = total_in(table, reading, side, ends)
            if total is not None:
                return f"it holds {total.words}, so it publishes totals"
            statistic = statistic_in(table, reading, side, ends)
            if statistic is not None:
                return f"it goes by {statistic.words}, which is hidden"
    return ""
