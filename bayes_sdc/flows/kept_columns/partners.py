"""Columns that describe an area by its flow to one partner: the movers to the capital.

Such a column is a function of the area alone, like its population, and each of its values is a
count of the table. Which partner it is, is tried: every area, and the first or last rows of each
area, as they stand in the file. Also found are columns that name the partner of an extreme count.
"""

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import bdtrc

from bayes_sdc.flows.kept_columns.numbers import numbers_in
from bayes_sdc.flows.kept_columns.spelled import spells_counts
from bayes_sdc.flows.kept_columns.texts import LONGEST, numbers_inside
from bayes_sdc.flows.kept_columns.totals import Ends
from bayes_sdc.flows.table.read import FlowTable

Codes = npt.NDArray[np.intp]
Numbers = npt.NDArray[np.float64]

CHANCE = 1e-4  # with which a column of areas may agree with the counts of a partner by accident
ROWS = 5  # of each area, from the first and from the last, that are tried
MOST_OF = 0.8  # of the counts with a partner are the values of the column
NEARLY_ALL = 0.95  # of the areas name the partner, or list their counts
NUMBER = re.compile(r"\d+")


def readings(column: pd.Series) -> Iterator[pd.Series]:
    """Yield a column as it stands and, where it holds no numbers, those inside its texts."""
    yield column
    if not np.isnan(numbers_in(column)).all():
        return
    for _, values in numbers_inside(column.fillna("").astype(str)):
        yield pd.Series(values, index=column.index)


def count_of_partner(table: FlowTable, column: pd.Series, side: str, ends: Ends) -> str | None:
    """Return whose counts a column of areas holds, in words, or None.

    Parameters
    ----------
    table : FlowTable
        Counts as they are.
    column : Series
        In the order of the rows; a function of one side.
    side : {"origin", "destination"}
        The side that fixes the column.
    ends : Ends
        From :func:`bayes_sdc.flows.kept_columns.totals.ends_of`.
    """
    count = table.frame[table.count].to_numpy(np.float64)
    small = (count >= table.low) & (count <= table.high)
    own: Codes = getattr(ends, side)
    at, first = np.unique(own, return_index=True)
    named = _extreme_partner(column.iloc[first], at, count, small, ends)
    if named is not None:
        return named
    texts = column.iloc[first].fillna("").astype(str)  # "1 4 2" may be read as a number, too
    for by in ("origin", "destination"):
        if _lists_counts(texts, at, getattr(ends, by), count, ends):
            return f"a list of counts of each {by}"
        if spells_counts(texts, at, getattr(ends, by), count, small, ends):
            return f"a character for each count of each {by}"
    for by in ("origin", "destination"):
        key: Codes = getattr(ends, by)
        other = ends.destination if by == "origin" else ends.origin
        value = np.full(len(ends.labels), np.nan)
        for reading in readings(column.iloc[first]):
            value[at] = numbers_in(reading)
            for words, partner in _partners(key, other):
                if _agrees(value[key][small], count[small], partner[small]):
                    return f"the count {words} of each {by}"
    return None


def _partners(key: Codes, other: Codes) -> Iterator[tuple[str, Codes]]:
    """Number the partners: the areas, and the place of a row among those of its area."""
    yield "to or from one area", other
    away = key != other
    for rows in (np.ones(len(key), bool), away)[: 1 if away.all() else 2]:
        of = pd.Series(key[rows]).groupby(key[rows])
        for words, ascending in (("in a row", True), ("in a row from the last", False)):
            number = np.full(len(key), -1, dtype=np.intp)
            number[rows] = of.cumcount(ascending=ascending)
            yield words, np.where(number < ROWS, number, -1)


def _agrees(values: Numbers, counts: Numbers, partner: Codes) -> bool:
    """Whether values are most counts with some partner, more than by chance."""
    known = np.isfinite(values) & (partner >= 0)
    if not known.any():
        return False
    values, counts, partner = values[known], counts[known], partner[known]
    number = np.bincount(partner)
    equal = np.bincount(partner, values == counts, minlength=len(number))
    # by chance as often as counts of these sizes meet values of these sizes anywhere
    kinds, place = np.unique(np.r_[values, counts], return_inverse=True)
    of_values, of_counts = (
        np.bincount(part, minlength=len(kinds)) / len(part) for part in np.split(place, 2)
    )
    chance = float(of_values @ of_counts)
    if chance >= 1.0:
        return False
    # only partners with other counts than one tell whether they are met
    tail = bdtrc(np.maximum(equal - 1.0, 0.0), number, chance)
    different = pd.Series(counts).groupby(partner).nunique().reindex(range(len(number)))
    # a class of size goes with the counts of a large partner, and is not them
    tried = (equal >= MOST_OF * number) & (different.to_numpy(np.float64) > 2)
    return bool((tail[tried] * max(int((number > 0).sum()), 1) < CHANCE).any())


def _extreme_partner(
    column: pd.Series, at: Codes, count: Numbers, small: npt.NDArray[np.bool_], ends: Ends
) -> str | None:
    """Whether a column names, for nearly all areas, a partner with an extreme small count."""
    place = pd.Series(range(len(ends.labels)), index=ends.labels)
    partner = place.reindex(column.astype(str)).to_numpy(np.float64)
    if np.isfinite(partner).mean() < NEARLY_ALL:
        return None
    named = np.full(len(ends.labels), -1, dtype=np.intp)
    named[at] = np.where(np.isfinite(partner), partner, -1)
    for by, key, other in (("origin", ends.origin, ends.destination),
                           ("destination", ends.destination, ends.origin)):  # fmt: skip
        rows = pd.DataFrame({"key": key, "n": count, "named": named[key] == other})[small]
        of = rows.groupby("key")
        for words, extreme in (("smallest", of["n"].transform("min")),
                               ("largest small", of["n"].transform("max"))):  # fmt: skip
            hit = (rows["n"] == extreme) & rows["named"]
            share = (rows["n"] == extreme).groupby(rows["key"]).mean()
            met = hit.groupby(rows["key"]).any()
            if len(met) and met.mean() >= NEARLY_ALL and np.log(share).sum() < np.log(CHANCE):
                return f"the partner with the {words} count of each {by}"
    return None


def _lists_counts(texts: pd.Series, at: Codes, key: Codes, count: Numbers, ends: Ends) -> bool:
    """Whether the numbers in the texts of nearly all areas are counts of these areas.

    All of them, in any order; or some, if so many are beyond chance.
    """
    areas = set(ends.labels)
    away = ends.origin != ends.destination
    of = []
    for rows in (np.ones(len(count), bool), away):
        by = pd.Series(count[rows]).groupby(key[rows]).agg(sorted)
        of.append(dict(zip(by.index.tolist(), by.tolist(), strict=True)))
    common = pd.Series(count).value_counts(normalize=True)
    every, some, tested, log_chance = 0, 0, 0, 0.0
    for area, text in zip(at.tolist(), texts, strict=True):
        told = [token for token in NUMBER.findall(text) if token not in areas]
        numbers = sorted(float(token[-LONGEST:]) for token in told)
        mine = of[0].get(area, [])
        if len(set(mine)) < 2 or len(numbers) < 2:
            continue
        tested += 1
        every += numbers in (mine, of[1].get(area))
        if set(numbers) <= set(mine):
            some += 1
            chance = common.reindex(list(set(numbers))).to_numpy(np.float64) * len(set(mine))
            log_chance += float(np.log(np.minimum(chance, 1.0)).sum())
    if tested < 3:
        return False
    return every >= NEARLY_ALL * tested or (
        some >= NEARLY_ALL * tested and log_chance < np.log(CHANCE)
    )
