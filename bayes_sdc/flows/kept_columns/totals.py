"""Columns that hold totals: the same in all rows that they are the sum of.

An area has totals, and so has a pair of areas over groups, an area in one group, a group. What is
published about an area can also be the sum of a part of its flows: those to one state, those of one
sex, those that stay in a group or leave it.
"""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.flows.audit.inside.rows import bits_of, choices
from bayes_sdc.flows.kept_columns.agreement import Alike
from bayes_sdc.flows.kept_columns.functions import codes_of, depends_on
from bayes_sdc.flows.kept_columns.numbers import last_digit, numbers_in
from bayes_sdc.flows.kept_columns.weighted import Cells
from bayes_sdc.flows.table.families import Family, keyed
from bayes_sdc.flows.table.read import FlowTable

Codes = npt.NDArray[np.intp]
Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

NEARLY_ALL = 0.8  # of the areas have the sum
FEW_RIGHT = 0.2  # share of the areas below which a column only resembles totals
FEWEST = 3  # different sums, so that equality is not chance
DIGITS = 1e-3  # relative distance that rounding may leave
LEVELS = 64  # values of a column up to which each is a part of the flows
BITS = 30.0  # of equal sums, so that those of a part are not chance
CROSSED = 6  # columns of codes up to which all combinations have totals


class Total(NamedTuple):
    """A sum of counts found in a column, and how wide rounding left it."""

    words: str
    key: Codes  # (row,) whose sum a row is in
    labels: list[str]  # of the keys
    by: str  # what is added up, in words
    rows: Mask  # that are added up
    error: float


class Ends(NamedTuple):
    """Areas of every row, numbered alike on both sides; and what was worked out of them."""

    origin: Codes
    destination: Codes
    labels: list[str]
    statistics: dict[str, list[tuple[str, Numbers]]]  # by side, in words and by area
    alike: dict[tuple[str, str], list[Alike]]  # the same, of the areas of a side
    cells: dict[str, Cells]  # by side


class Part(NamedTuple):
    """Some of the rows, which a total may be the sum of, added up by key."""

    words: str
    sums: Numbers  # (key,)
    number: Numbers  # (key,) of rows
    usual: bool  # so that a few equal sums are enough
    rows: Callable[[], Mask]


class Crossed(NamedTuple):
    """Combinations of codes: their columns, the place of each row, and labels."""

    by: str
    key: Codes
    labels: list[str]


def ends_of(table: FlowTable) -> Ends:
    """Number the areas of a table."""
    sides = [table.frame[name].astype(str) for name in (table.origin, table.destination)]
    codes, labels = pd.factorize(np.concatenate([side.to_numpy(object) for side in sides]))
    n = len(table.frame)
    return Ends(codes[:n], codes[n:], [str(label) for label in labels], {}, {}, {})


def total_in(table: FlowTable, column: pd.Series, side: str, ends: Ends) -> Total | None:
    """Return which sum of counts a column holds that is a function of one side, or None.

    Parameters
    ----------
    table : FlowTable
        Counts as they are.
    column : Series
        In the order of the rows.
    side : {"origin", "destination"}
        The side that fixes the column.
    ends : Ends
        From :func:`ends_of`.

    Returns
    -------
    Total or None
        Sums over all rows, without own areas, of small counts alone, of one value of a column,
        inside groups or between them; means, and their multiples (shares, thousands); of the area
        as origin or as destination.
    """
    own: Codes = getattr(ends, side)
    at, first = np.unique(own, return_index=True)
    values = numbers_in(column.iloc[first])
    if np.isnan(values).mean() > 0.5:
        return None
    for by in (side, "destination" if side == "origin" else "origin"):
        key = getattr(ends, by)
        cost = 0.0
        for part in _parts(table, ends, key, len(ends.labels)):
            cost += not part.usual
            found = _sum_in(values, part, at, float(np.log2(max(cost, 1.0))))
            if found is not None:
                words = f"{found[0]} of the {part.words} of each {by}"
                return Total(words, key, ends.labels, by, part.rows(), found[1])
    return None


def _parts(table: FlowTable, ends: Ends, key: Codes, number: int) -> Iterator[Part]:
    """Rows that totals of areas are often the sums of."""
    count = table.frame[table.count].to_numpy(np.float64)
    away = ends.origin != ends.destination
    small = (count >= table.low) & (count <= table.high)
    for words, rows in (
        ("counts", np.ones(len(count), dtype=bool)),
        ("counts without own areas", away),
        ("small counts", small & away),
    ):
        yield _part(words, rows, count, key, number, usual=True)
    for words, rows in _groups_crossed(table, away):
        yield _part(words, rows, count, key, number)
    for name in table.frame.columns:
        if name in (table.origin, table.destination, table.count):
            continue
        values, levels = pd.factorize(table.frame[name].astype(str))
        if not 2 <= len(levels) <= LEVELS:
            continue
        for without, inside in (("", np.ones(len(count), dtype=bool)), ("without own areas", away)):
            place, size = (key * len(levels) + values)[inside], number * len(levels)
            sums = np.bincount(place, count[inside], size).reshape(-1, len(levels))
            counted = np.bincount(place, minlength=size).reshape(-1, len(levels))
            for level, called in enumerate(levels):
                yield Part(
                    f"counts of {str(name)!r} {called} {without}".rstrip(),
                    sums[:, level],
                    counted[:, level].astype(np.float64),
                    usual=False,
                    rows=partial(_rows_of, values, level, inside),
                )


def _rows_of(values: Codes, level: int, inside: Mask) -> Mask:
    return np.asarray((values == level) & inside)


def _part(
    words: str, rows: Mask, count: Numbers, key: Codes, number: int, *, usual: bool = False
) -> Part:
    sums = np.bincount(key[rows], count[rows], minlength=number)
    counted = np.bincount(key[rows], minlength=number).astype(np.float64)
    return Part(words, sums, counted, usual, lambda: rows)


def _groups_crossed(table: FlowTable, away: Mask) -> Iterator[tuple[str, Mask]]:
    """Flows that stay in a group, and flows that leave it, where groups have two ends."""
    texts = {name: table.frame[name].astype(str).to_numpy(object) for name in table.groups}
    for one, other in combinations(texts, 2):
        alike = texts[one] == texts[other]
        if alike.any() and not alike.all():
            pair = f"{one!r} and {other!r}"
            yield f"counts of different {pair}", ~alike
            yield f"counts of equal {pair}", alike
            yield f"counts of equal {pair} without own areas", alike & away


def _sum_in(values: Numbers, part: Part, at: Codes, cost: float) -> tuple[str, float] | None:
    """Compare what a column holds for some keys with the sums of a part; what, and the error."""
    sums = part.sums[at]
    if not part.usual and _bits(values, sums) < BITS + cost:
        return None
    for kind, per in (("sums", np.ones(len(at))), ("means", np.maximum(part.number[at], 1.0))):
        error = _equal(values, sums / per)
        if error is not None:
            return kind, error * float(per.max())  # of the sum
    return None


def _bits(values: Numbers, sums: Numbers) -> float:
    """Bound, in bits, how far from chance it is that all these values are these sums."""
    known = np.isfinite(values) & (sums > 0)
    return float(np.log2(np.unique(sums[known]) + 1.0).sum())


def _equal(values: Numbers, sums: Numbers) -> float | None:
    """Width that rounding left when values are the sums or a multiple of them, else None.

    In nearly all areas; or in fewer, if so many are beyond chance.
    """
    known = np.isfinite(values) & (sums > 0)
    if len(np.unique(sums[known])) < FEWEST:
        return None
    values, sums = values[known], sums[known]
    whole = bool((values % 1 == 0).all() and (np.abs(values) < 2**53).all())
    base = float(np.gcd.reduce(np.abs(values).astype(np.int64))) if whole else 0.0
    if base and base < np.median(sums) / 4:
        near = np.abs(values - sums) <= base
        if near.mean() > NEARLY_ALL:
            return base if (values != sums).any() else 0.0
        if _often(values == sums, values, sums, 1.0):
            return 0.0
    factor = float(np.median(values / sums))
    if factor <= 0.0:
        return None
    # half of the last written digit, if that is little beside the sums
    half = 0.5 * last_digit(values) / factor
    half = half if half < np.median(sums) / 20 else 0.0
    about = np.abs(values / factor - sums) <= np.maximum(0.01 * sums, 2.0 * half)
    if about.any():
        factor = float(values[about].sum() / sums[about].sum())  # rounding averages out
        if factor <= 0.0:  # those near the sums are rounded to 0
            return None
    error = np.abs(values / factor - sums)
    off = np.maximum(DIGITS * sums, max(1.05 * half, 1e-9))
    near = error <= off
    if near.mean() > NEARLY_ALL or _often(near, values / factor, sums, 2.0 * off):
        return float(error[near].max())
    return None


def _often(right: Mask, values: Numbers, sums: Numbers, width: npt.ArrayLike) -> bool:
    """Whether sums are right so often that it is no chance, whatever the other areas hold.

    The first one that is right may have set the factor.
    """
    if right.sum() < FEWEST or right.mean() < FEW_RIGHT:
        return False
    bits = bits_of(values, sums[right], np.broadcast_to(width, sums.shape)[right])
    return bool(bits.sum() - bits.max() - choices(len(right), (~right).sum()) >= BITS)


def family_of(table: FlowTable, name: str, total: Total) -> Family:
    """Turn the totals in a column into published totals for an audit.

    Parameters
    ----------
    table : FlowTable
        Counts as they are.
    name : str
        Of the column.
    total : Total
        From :func:`total_in`.
    """
    counts = table.frame[table.count].to_numpy(np.int64)
    shown, place = np.unique(total.key, return_inverse=True)
    of = np.where(total.rows, place, -1).astype(np.int64)
    sums = np.bincount(place[total.rows], counts[total.rows], minlength=len(shown))
    off = np.floor(total.error + 1e-9)
    return Family(
        f"{total.by} in column {name!r}",
        [total.labels[code] for code in shown],
        of,
        (sums - off).clip(0).astype(np.int64),
        (sums + off).astype(np.int64),
    )


def kept_totals(table: FlowTable, kept: Collection[str]) -> Iterator[tuple[str, Total, Family]]:
    """Find the columns among some that hold totals: name, what they hold, and for an audit."""
    ends = ends_of(table)
    crossed = list(_crossed(table)) if kept else []
    for name in kept:
        total = _total_of_any(table, table.frame[name], ends, crossed)
        if total is not None:
            yield name, total, family_of(table, name, total)


def _total_of_any(
    table: FlowTable, column: pd.Series, ends: Ends, crossed: Collection[Crossed]
) -> Total | None:
    """Find totals of areas, and then of other combinations of codes."""
    values = codes_of(column)
    for side in ("origin", "destination"):
        if depends_on(values, getattr(ends, side)) is not False:
            total = total_in(table, column, side, ends)
            if total is not None:
                return total
    count = table.frame[table.count].to_numpy(np.float64)
    away = ends.origin != ends.destination
    for by, key, labels in crossed:
        if depends_on(values, key) is False:
            continue
        number = len(labels)
        at, first = np.unique(key, return_index=True)
        several = np.bincount(key)[at] > 1  # the sum of one row is its count
        shown = np.where(several, numbers_in(column.iloc[first]), np.nan)
        if np.isnan(shown[several]).mean() > 0.5:
            continue
        for words, rows in (("counts", away | ~away), ("counts without own areas", away)):
            found = _sum_in(shown, _part(words, rows, count, key, number), at, 0.0)
            if found is not None:
                return Total(
                    f"{found[0]} of the {words} of each {by}", key, labels, by, rows, found[1]
                )
    return None


def _crossed(table: FlowTable) -> Iterator[Crossed]:
    """Number the combinations of codes that some rows share, but for those of areas alone."""
    names = [table.origin, table.destination, *table.groups]
    if len(names) > CROSSED:
        return
    texts = {name: table.frame[name].astype(str).to_numpy(object) for name in names}
    seen = {keyed([texts[name]], len(table.frame))[0].tobytes() for name in names[:2]}
    for size in range(1, len(names)):
        for some in combinations(names, size):
            place, labels = keyed([texts[name] for name in some], len(table.frame))
            if place.tobytes() not in seen and len(labels) < len(place):
                seen.add(place.tobytes())
                yield Crossed(" and ".join(some), np.asarray(place, np.intp), labels)
