"""Rows that are totals over both ends at once: a state to a state, or an area to itself.

A row ``01000 > 02000`` beside the flows between the counties of two states is the sum of all of
them, and neither code is a total of the other codes of a county. Among the rows of a pair of
regions it is as large as all others together. A row ``A > A`` that holds all that leave A, or all
that come, is no flow of people who stayed.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.flows.audit.inside.codes import crossing, nearly_all
from bayes_sdc.flows.audit.inside.rows import SURE, InsideTotal, Rows, choices, surprise
from bayes_sdc.flows.table.families import Family, Ints, keyed, sums_of

FEWEST = 3  # sums that are right
LONGEST = 6  # first characters of a code that may be that of a region
TRIED = 7.0  # bits for the ways to split both ends


class Split(NamedTuple):
    """A way to split the codes of one end into regions."""

    words: str
    region: Ints  # (row,)


def totals_of_both_ends(rows: Rows) -> list[InsideTotal]:
    """Find rows that are sums over regions of origins and of destinations, and own-area totals."""
    origin, destination = list(rows.texts)[:2]
    found = list(_own_areas(rows, origin, destination))
    if len(set(rows.texts[origin])) * len(set(rows.texts[destination])) < 12:
        return found
    splits = [list(_splits(rows, axis, other)) for axis, other in
              ((origin, destination), (destination, origin))]  # fmt: skip
    for one in splits[0]:
        for other in splits[1]:
            if one.words == other.words == "all":
                continue  # a grand total, which is looked for elsewhere
            each = _of_regions(rows, one, other, (origin, destination))
            if each is not None:
                rows.total[each.rows] = True
                found.append(each)
    return found


def _splits(rows: Rows, axis: str, other: str) -> Iterator[Split]:
    """Not at all, by columns that go by the code, and by its first characters."""
    codes = rows.texts[axis].astype(str)
    distinct = set(codes)
    yield Split("all", np.zeros(len(codes), dtype=np.int64))
    crossed = crossing(rows, axis)
    for name, text in rows.texts.items():
        if name not in (axis, other, *crossed) and 1 < len(set(text)) < len(distinct):
            yield Split(name, pd.factorize(text)[0].astype(np.int64))
    for length in range(1, min(max(map(len, distinct), default=1), LONGEST)):
        start = pd.factorize(pd.Series(codes).str[:length])[0].astype(np.int64)
        if 0 < start.max(initial=0) < len(distinct) - 1:
            yield Split(f"first {length} characters", start)


def _of_regions(rows: Rows, one: Split, other: Split, ends: tuple[str, str]) -> InsideTotal | None:
    """Find the rows that are as large as all others of their pair of regions together."""
    wide = int(other.region.max(initial=0)) + 1
    at = np.flatnonzero(~rows.total & ~rows.own)
    pair, pairs = pd.factorize(one.region[at] * wide + other.region[at], sort=True)
    order = np.lexsort((rows.counts[at], pair))
    last = np.flatnonzero(np.diff(pair[order], append=len(pairs)))  # the largest of each pair
    largest = at[order[last]]
    number = np.bincount(pair, minlength=len(pairs))
    for own in (False, True) if rows.own.any() else (False,):
        whole = sums_of(pair.astype(np.int64), rows.counts[at], len(pairs))
        if own:
            stayed = np.flatnonzero(~rows.total & rows.own)
            place = np.searchsorted(pairs, one.region[stayed] * wide + other.region[stayed])
            place = np.minimum(place, len(pairs) - 1)
            inside = pairs[place] == one.region[stayed] * wide + other.region[stayed]
            whole = whole + sums_of(place[inside], rows.counts[stayed[inside]], len(pairs))
        tested = number >= 3
        right = tested & (2 * rows.counts[largest] == whole) & (whole > 0)
        for split, name in ((one, ends[0]), (other, ends[1])):
            right[right] = _usual(rows.texts[name], split.region, largest[right])
        if right.sum() < FEWEST:
            continue
        # of many pairs of regions some have such a row by chance
        strange = surprise(rows, rows.counts[largest[right]]) - TRIED
        strange -= float(choices(tested.sum(), (tested & ~right).sum()))
        if strange < SURE:
            continue
        totals = _by_their_codes(rows, largest[right], ends)
        of_pair = np.isin(largest, totals) & tested
        if not nearly_all(right.sum(), of_pair.sum()):
            continue
        words = f"{one.words} of {ends[0]} and {other.words} of {ends[1]}"
        key = np.full(len(rows.counts), -1, dtype=np.int64)
        key[at] = pair
        if own:
            key[stayed[inside]] = place[inside]
        return _total(rows, " and ".join(ends), totals, key, words,
                      (int(right.sum()), int(of_pair.sum()), strange))  # fmt: skip
    return None


def _usual(codes: np.ndarray, region: Ints, found: Ints) -> np.ndarray:
    """Whether each row has the code that most of those found in its region have.

    A few counts add up by chance, and their codes are no totals.
    """
    frame = pd.DataFrame({"region": region[found], "code": codes[found].astype(str)})
    number = frame.groupby(["region", "code"])["code"].transform("size")
    return (number == number.groupby(frame["region"]).transform("max")).to_numpy(bool)


def _by_their_codes(rows: Rows, found: Ints, ends: tuple[str, str]) -> Ints:
    """All rows whose codes are those of totals on both ends, those of single rows among them."""
    sides = [rows.texts[name].astype(str) for name in ends]
    codes = [set(side[found]) for side in sides]
    both = np.isin(sides[0], list(codes[0])) & np.isin(sides[1], list(codes[1]))
    return np.flatnonzero(both & ~rows.total)


def _own_areas(rows: Rows, origin: str, destination: str) -> Iterator[InsideTotal]:
    """Find rows of an area to itself that hold all that leave it, or all that come."""
    stayed = np.flatnonzero(rows.own & ~rows.total)
    if len(stayed) < FEWEST:
        return
    away = ~rows.own & ~rows.total
    of_destination = crossing(rows, destination)  # a group of either end says nothing here
    crossed = [name for name in crossing(rows, origin) if name in of_destination]
    for side in (origin, destination):
        key, labels = keyed([rows.texts[name] for name in (side, *crossed)], len(rows.counts))
        sums = sums_of(key[away], rows.counts[away], len(labels))
        several = np.bincount(key[away], minlength=len(labels)) >= 2
        tested = stayed[several[key[stayed]]]
        right = rows.counts[tested] == sums[key[tested]]
        if right.sum() < FEWEST or not nearly_all(right.sum(), len(tested)):
            continue
        strange = surprise(rows, rows.counts[tested[right]]) - 2.0
        strange -= float(choices(len(tested), (~right).sum()))
        if strange < SURE:
            continue
        own_key = np.where(away, key, -1)
        total = _total(rows, f"{origin} and {destination}", stayed, own_key, side,
                       (int(right.sum()), len(tested), strange), key, "the same code")  # fmt: skip
        rows.total[stayed] = True
        yield total
        return


def _total(
    rows: Rows, column: str, totals: Ints, of: Ints, words: str,
    evidence: tuple[int, int, float], key: Ints | None = None, code: str | None = None,
) -> InsideTotal:  # fmt: skip
    """Put what was found into the form that all searches share."""
    key = of if key is None else key
    origin, destination = (rows.texts[name].astype(str) for name in list(rows.texts)[:2])
    kept, place = np.unique(key[totals], return_inverse=True)
    shown = sums_of(place.ravel().astype(np.int64), rows.counts[totals], len(kept))
    position = np.searchsorted(kept, of)
    position = np.minimum(position, len(kept) - 1)
    member = (of >= 0) & (kept[position] == of) & ~rows.total
    member[totals] = False
    first = totals[np.unique(place.ravel(), return_index=True)[1]]
    labels = [f"{origin[row]}>{destination[row]}" for row in first]
    family = Family(words, labels, np.where(member, position, -1), shown, shown)
    right, tested, strange = evidence
    return InsideTotal(column, code or f"{labels[0]} and others", totals, family, right, tested,
                       strange)  # fmt: skip
