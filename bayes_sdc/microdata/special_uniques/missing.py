"""Records that are not unique on a set of variables because a missing value matches others.

Two records are compatible on a variable when their values are equal or one is missing. "wildcard"
lets both records of a compatible pair count for each other; "conservative" lets a record count
those that have all the values it has itself. Either keeps a record that is unique on a set unique
on every larger one. Then

- a variable where a record's own value is missing never makes it unique: what matches it on the
  rest of a set matches it on the set;
- with "wildcard" a record with values on all of a set is matched by records that lack some of
  these values and agree on the others, which is looked up for each pattern of lacking values.
"""

from typing import NamedTuple

import numba
import numpy as np

from bayes_sdc.microdata.special_uniques.collapsed import Distinct
from bayes_sdc.microdata.special_uniques.row_bits import WORD, find_row, lowest, size_of_slots

MISSING = 0  # code of a missing value in the columns


class Missing(NamedTuple):
    """Rows by the keys they lack a value of."""

    masks: np.ndarray  # (pattern,) uint64, bit k for key k; patterns that lack something
    start: np.ndarray  # (pattern + 1,) where the rows of each pattern start
    rows: np.ndarray  # (row with missing values,) by pattern
    lacking: np.ndarray  # (row,) uint64 mask of every row
    mutual: bool  # whether a row is matched by those that lack some of its values


def nothing_missing() -> Missing:
    """Return what stands for a file in which a missing value is a value like any other."""
    none = np.empty(0, np.int64)
    return Missing(
        none.astype(np.uint64), np.zeros(1, np.int64), none, np.zeros(0, np.uint64), False
    )


def rows_by_pattern(distinct: Distinct, *, mutual: bool) -> Missing:
    """Sort rows by the keys they lack a value of.

    Parameters
    ----------
    distinct : Distinct
        Different records, with code 0 for missing.
    mutual : bool
        Whether records count for those whose values they lack: "wildcard".

    Examples
    --------
    >>> from bayes_sdc.microdata.special_uniques.collapsed import distinct_records
    >>> found = rows_by_pattern(distinct_records(np.array([[1, 1], [1, 0]])), mutual=True)
    >>> found.masks.tolist(), found.rows.tolist(), found.lacking.tolist()
    ([2], [1], [0, 2])
    """
    columns = distinct.columns[:, : len(distinct.record)]
    lacking = np.zeros(len(distinct.record), np.uint64)
    for key, column in enumerate(columns):
        lacking |= (column == MISSING).astype(np.uint64) << np.uint64(key)
    rows = np.flatnonzero(lacking)
    rows = rows[np.argsort(lacking[rows], kind="stable")]
    masks, start = np.unique(lacking[rows], return_index=True)
    return Missing(
        masks=masks,
        start=np.append(start, len(rows)).astype(np.int64),
        rows=rows.astype(np.int64),
        lacking=lacking,
        mutual=mutual,
    )


@numba.njit(cache=True, nogil=True)
def drop_compatible(
    distinct: Distinct,
    missing: Missing,
    members: np.ndarray,
    unique: np.ndarray,
    left: np.ndarray,
    slots: np.ndarray,
) -> None:
    """Clear the bits of candidates that are compatible with another row on a set.

    Parameters
    ----------
    distinct : Distinct
        Different records, candidates first; two or more, unless nothing is to be cleared.
    missing : Missing
        Rows by pattern.
    members : array of int
        Keys of the set. Nobody is unique on its subsets.
    unique : array of uint64, shape (word,)
        Bits of the candidates that equal no other row on the set.
    left : array of int, shape (candidate,)
        Room to work.
    slots : array of int32
        Room for a hash table of the rows with missing values, from ``size_of_slots``.
    """
    on_set = np.uint64(0)
    for key in members:
        on_set |= np.uint64(1) << np.uint64(key)
    n = 0
    for w in range(len(unique)):
        word, kept = unique[w], np.uint64(0)
        while word != 0:
            bit = word & (~word + np.uint64(1))
            r = w * WORD + lowest(word)
            word ^= bit
            if missing.lacking[r] & on_set != 0:
                # alone in the file it is unique on anything, as nobody is there to match it
                if len(distinct.record) == 1:
                    kept |= bit
            elif missing.mutual:
                left[n] = r
                n += 1
            else:
                kept |= bit
        unique[w] = kept
    restricted, order = _by_pattern(missing.masks, on_set)
    first = 0
    while first < len(order) and n > 0:
        pattern = restricted[order[first]]
        after = first + 1
        while after < len(order) and restricted[order[after]] == pattern:
            after += 1
        if pattern == on_set:
            n = 0  # rows without any of the values match everybody
        elif pattern != 0:
            n = _drop_matched(
                distinct, missing, members, pattern, order[first:after], left, n, slots
            )
        first = after
    for i in range(n):
        unique[left[i] // WORD] |= np.uint64(1) << np.uint64(left[i] % WORD)


@numba.njit(cache=True, nogil=True)
def _by_pattern(masks: np.ndarray, on_set: np.uint64) -> tuple[np.ndarray, np.ndarray]:
    """Masks on the keys of a set, and their order, by Shell's method; numba's takes seconds.

    Examples
    --------
    >>> _by_pattern(np.array([7, 4, 2], np.uint64), np.uint64(3))[1]
    array([1, 2, 0])
    """
    n = len(masks)
    restricted, order = np.empty(n, np.uint64), np.empty(n, np.int64)
    for i in range(n):
        restricted[i], order[i] = masks[i] & on_set, i
    gap = n
    while gap > 1:
        gap = 1 if gap < 5 else gap * 4 // 9
        for i in range(gap, n):
            moved, place = order[i], i
            while place >= gap and restricted[order[place - gap]] > restricted[moved]:
                order[place] = order[place - gap]
                place -= gap
            order[place] = moved
    return restricted, order


@numba.njit(cache=True, nogil=True)
def _drop_matched(
    distinct: Distinct,
    missing: Missing,
    members: np.ndarray,
    pattern: np.uint64,
    patterns: np.ndarray,
    left: np.ndarray,
    n: int,
    slots: np.ndarray,
) -> int:
    """Keep those of the first ``n`` that equal no row of the patterns where these have values."""
    compared = np.empty(len(members), np.int64)
    size = 0
    for key in members:
        if (pattern >> np.uint64(key)) & np.uint64(1) == 0:
            compared[size] = key
            size += 1
    compared = compared[:size]
    rows = 0
    for p in patterns:
        rows += missing.start[p + 1] - missing.start[p]
    size, shift = size_of_slots(rows)
    slots = slots[:size]
    slots[:] = -1
    for p in patterns:
        for i in range(missing.start[p], missing.start[p + 1]):
            row = missing.rows[i]
            slots[find_row(distinct, compared, row, slots, shift)] = row
    kept = 0
    for i in range(n):
        if slots[find_row(distinct, compared, left[i], slots, shift)] == -1:
            left[kept] = left[i]
            kept += 1
    return kept
