r"""All minimal sample uniques of a file, level by level over the sets of key variables.

A record is *unique on a set* of variables when no other record has its values there. Such a set is
a *minimal sample unique* (MSU) of the record when the record is unique on no proper subset. Three
facts make the search short:

- a record unique on a set is unique on every larger one, so only records unique on all keys can
  have an MSU, and equal records can be counted as one with a multiplicity;
- two records equal on a set are equal on its subsets, so on each set only those *alive*, that is
  non-unique on all its subsets, need to be compared with each other;
- the MSUs of size k are therefore the alive records that the comparison finds unique.

Alive records are kept as one bit a record and set, so a level costs a few words a record, and
"alive on all subsets" is an AND of whole words. On each set the alive records are counted in a
table of bytes indexed by their code in mixed radix, or, where that table would be too large, in a
hash table of exact comparisons.

References
----------
M. J. Elliot, A. M. Manning, R. W. Ford, "A computational algorithm for handling the special uniques
problem", International Journal of Uncertainty, Fuzziness and Knowledge-Based Systems 10 (2002)
493-509. A. M. Manning, D. J. Haglin, J. A. Keane 2008, https://doi.org/10.1007/s10618-007-0078-6,
for a recursive search of the same sets.
"""

import math
from itertools import combinations
from typing import NamedTuple

import numba
import numpy as np

from bayes_sdc.microdata.special_uniques.collapsed import Distinct
from bayes_sdc.microdata.special_uniques.missing import Missing, drop_compatible, nothing_missing
from bayes_sdc.microdata.special_uniques.row_bits import (
    WORD,
    find_row,
    lowest,
    popcount,
    set_bit,
    size_of_slots,
)

SMALL_TABLE = 1 << 21  # bytes that stay in the cache of one core
LARGE_TABLE = 1 << 26  # bytes of the largest table of a thread
WORTH_THREADS = 1_000_000  # records times sets; less is done before other threads would have begun
DENSE = 12  # alive records in a word from which all 64 codes are computed at once


class Level(NamedTuple):
    """Minimal sample uniques of one size."""

    sets: np.ndarray  # (set, size) key variables, ascending
    bits: np.ndarray  # (set, word) uint64; bit r of a row: the set is an MSU of candidate r


def minimal_sample_uniques(
    distinct: Distinct,
    max_size: int,
    missing: Missing | None = None,
    *,
    small: int = SMALL_TABLE,
    large: int = LARGE_TABLE,
) -> list[Level]:
    """All minimal sample uniques of up to ``max_size`` variables.

    Parameters
    ----------
    distinct : Distinct
        Different records; the candidates, unique on all keys, come first.
    max_size : int
        Largest number of variables in a set, 1 to the number of keys.
    missing : Missing, optional
        What is needed when missing values match others; without it they are values as any other.
    small, large : int
        Bytes of the tables for counting: one that always serves when it is large enough, and one
        that is tried where it would be well filled.

    Returns
    -------
    list of Level
        By size from 1; sets without a minimal sample unique are left out.

    Examples
    --------
    >>> from bayes_sdc.microdata.special_uniques.collapsed import distinct_records
    >>> records = distinct_records(np.array([[0, 0], [0, 1], [1, 1]]))
    >>> for level in minimal_sample_uniques(records, 2):
    ...     print(level.sets.tolist(), level.bits.tolist())
    [[0], [1]] [[4], [1]]
    [[0, 1]] [[2]]
    """
    keys, candidates = len(distinct.levels), distinct.candidates
    words = -(-candidates // WORD)
    if words == 0:
        return []
    everyone = np.full((1, words), np.uint64(2**64 - 1))
    everyone[0, -1] >>= np.uint64((-candidates) % WORD)
    alive, row_of = everyone, np.zeros(1, np.int64)  # on the empty set nobody is unique
    found = []
    missing = nothing_missing() if missing is None else missing
    for size in range(1, max_size + 1):
        sets = sets_of_size(keys, size)
        parents = row_of[_parents(sets)]
        keep = (parents >= 0).all(axis=1)
        kept, parents = sets[keep], parents[keep]
        now, unique = np.empty((2, len(kept), words), np.uint64)
        tasks = numba.get_num_threads()
        arguments = (distinct, kept, parents, alive, missing, now, unique, small, large)
        if tasks == 1 or len(kept) * len(distinct.record) < WORTH_THREADS:
            _search(*arguments, 0, 1)
        else:
            _in_parallel(*arguments, tasks)
        any_unique = unique.any(axis=1)
        found.append(Level(kept[any_unique], unique[any_unique]))
        any_alive = now.any(axis=1)
        if not any_alive.any():
            break
        row_of = np.full(len(sets), -1)
        row_of[np.flatnonzero(keep)[any_alive]] = np.arange(any_alive.sum())
        alive = now[any_alive]
    return found


def sets_of_size(keys: int, size: int) -> np.ndarray:
    """All sets of ``size`` out of ``keys`` variables, ordered by their largest members.

    In this order the place of a set is the sum of C(member, position), whatever the number of keys.

    Examples
    --------
    >>> sets_of_size(3, 2).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    sets = np.array(list(combinations(range(keys), size)), np.int64).reshape(-1, size)
    return sets[np.argsort(_place(sets), kind="stable")]


def _place(sets: np.ndarray) -> np.ndarray:
    """Place of each set in the order of :func:`sets_of_size`."""
    top = int(sets.max(initial=0)) + 1
    choose = np.array(
        [[math.comb(n, k) for n in range(top)] for k in range(1, sets.shape[1] + 1)], np.int64
    ).reshape(sets.shape[1], top)
    place = np.zeros(len(sets), np.int64)
    for position in range(sets.shape[1]):
        place += choose[position, sets[:, position]]
    return place


def _parents(sets: np.ndarray) -> np.ndarray:
    """Places of the subsets with one member less: (set, member left out)."""
    size = sets.shape[1]
    return np.stack([_place(np.delete(sets, left_out, axis=1)) for left_out in range(size)], axis=1)


@numba.njit(cache=True, nogil=True, parallel=True)
def _in_parallel(
    distinct: Distinct,
    sets: np.ndarray,
    parents: np.ndarray,
    alive: np.ndarray,
    missing: Missing,
    now: np.ndarray,
    unique: np.ndarray,
    small: int,
    large: int,
    tasks: int,
) -> None:
    for task in numba.prange(tasks):
        _search(distinct, sets, parents, alive, missing, now, unique, small, large, task, tasks)


@numba.njit(cache=True, nogil=True)
def _search(
    distinct: Distinct,
    sets: np.ndarray,
    parents: np.ndarray,
    alive: np.ndarray,
    missing: Missing,
    now: np.ndarray,
    unique: np.ndarray,
    small: int,
    large: int,
    task: int,
    tasks: int,
) -> None:
    """Fill ``now`` (alive on the set) and ``unique`` for one task's share of the sets of a size."""
    words, rows = alive.shape[1], distinct.record.shape[0]
    codes = np.empty(rows + WORD, np.int32)
    small_table, large_table = np.zeros(small, np.uint8), np.zeros(0, np.uint8)
    left = np.empty(distinct.candidates if len(missing.masks) > 0 else 0, np.int64)
    slots = np.empty(size_of_slots(len(missing.rows))[0], np.int32)
    # sets are dealt out in turn, so that every task gets sets of every kind
    for s in range(task, sets.shape[0], tasks):
        taking_part = 0
        for w in range(words):
            word = alive[parents[s, 0], w]
            for p in range(1, parents.shape[1]):
                word &= alive[parents[s, p], w]
            now[s, w] = word
            unique[s, w] = 0
            taking_part += popcount(word)
        if taking_part == 0:
            continue
        cells = 1.0
        for key in sets[s]:
            cells *= distinct.levels[key]
        if cells <= small:
            _count(
                distinct, sets[s], taking_part, now[s], unique[s], codes, small_table, int(cells)
            )
        elif cells <= large and cells <= 16.0 * taking_part:
            if len(large_table) == 0:
                large_table = np.zeros(large, np.uint8)
            _count(
                distinct, sets[s], taking_part, now[s], unique[s], codes, large_table, int(cells)
            )
        else:
            _compare(distinct, sets[s], taking_part, now[s], unique[s])
        if len(missing.masks) > 0:
            drop_compatible(distinct, missing, sets[s], unique[s], left, slots)
        for w in range(words):
            now[s, w] &= ~unique[s, w]


@numba.njit(cache=True, nogil=True)
def _code_block(distinct: Distinct, members: np.ndarray, start: int, codes: np.ndarray) -> None:
    """Codes in mixed radix of 64 rows from ``start``; plain loops, so that they are vectorised."""
    first = distinct.columns[members[0], start : start + WORD]
    for r in range(WORD):
        codes[r] = first[r]
    for k in range(1, len(members)):
        column = distinct.columns[members[k], start : start + WORD]
        radix = np.int32(distinct.levels[members[k]])
        for r in range(WORD):
            codes[r] = codes[r] * radix + np.int32(column[r])


@numba.njit(cache=True, nogil=True)
def _fill_codes(
    distinct: Distinct, members: np.ndarray, alive: np.ndarray, codes: np.ndarray
) -> int:
    """Write the codes of the alive candidates, then of all repeated rows; return their number."""
    block = np.empty(WORD, np.int32)
    n = 0
    for w in range(len(alive)):
        word, start = alive[w], w * WORD
        if popcount(word) == WORD:
            _code_block(distinct, members, start, codes[n : n + WORD])
            n += WORD
        elif popcount(word) >= DENSE:
            _code_block(distinct, members, start, block)
            while word != 0:
                codes[n] = block[lowest(word)]
                word &= word - np.uint64(1)
                n += 1
        else:
            while word != 0:
                r = start + lowest(word)
                code = np.int32(0)
                for key in members:
                    code = code * np.int32(distinct.levels[key]) + np.int32(
                        distinct.columns[key, r]
                    )
                codes[n] = code
                word &= word - np.uint64(1)
                n += 1
    for start in range(distinct.candidates, len(distinct.record), WORD):
        _code_block(distinct, members, start, codes[n : n + WORD])
        n += min(WORD, len(distinct.record) - start)
    return n


@numba.njit(cache=True, nogil=True)
def _count(
    distinct: Distinct,
    members: np.ndarray,
    taking_part: int,
    alive: np.ndarray,
    unique: np.ndarray,
    codes: np.ndarray,
    table: np.ndarray,
    cells: int,
) -> None:
    """Find the unique among the alive with a table of bytes, all zero before and after.

    A byte is 0 for no row, 1 for one candidate, and more for several or a repeated row.
    """
    n = _fill_codes(distinct, members, alive, codes)
    for i in range(taking_part):
        table[codes[i]] = (table[codes[i]] << 1) | 1
    for i in range(taking_part, n):
        table[codes[i]] |= 2
    i = 0
    for w in range(len(alive)):
        word, bits = alive[w], np.uint64(0)
        while word != 0:
            if table[codes[i]] == 1:
                bits |= word & (~word + np.uint64(1))
            word &= word - np.uint64(1)
            i += 1
        unique[w] = bits
    if n * 16 > cells:
        table[:cells] = 0
    else:
        for i in range(n):
            table[codes[i]] = 0


@numba.njit(cache=True, nogil=True)
def _compare(
    distinct: Distinct,
    members: np.ndarray,
    taking_part: int,
    alive: np.ndarray,
    unique: np.ndarray,
) -> None:
    """Find the unique among the alive with a hash table of rows, compared value by value."""
    size, shift = size_of_slots(taking_part)
    slots = np.full(size, -1, np.int32)
    for w in range(len(alive)):
        word = alive[w]
        while word != 0:
            r = w * WORD + lowest(word)
            word &= word - np.uint64(1)
            slot = find_row(distinct, members, r, slots, shift)
            if slots[slot] == -1:
                slots[slot] = r
                set_bit(unique, r, True)
            else:
                set_bit(unique, slots[slot], False)
    for r in range(distinct.candidates, len(distinct.record)):
        slot = find_row(distinct, members, r, slots, shift)
        if slots[slot] != -1:
            set_bit(unique, slots[slot], False)
