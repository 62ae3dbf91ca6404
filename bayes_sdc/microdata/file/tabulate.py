"""Counting records that share key values, sparsely: time and memory follow the records.

Records are first collapsed to the distinct patterns of codes among them. Without missing values
that is the whole answer. A pattern with missing values also matches others: for these, a bit set
per key and level says which patterns have that level (or lack a value, where that matches every
value), and the patterns that match a given one are the intersection over its keys, 64 patterns at a
step. Patterns are taken in blocks
that are smaller where there are many levels, so that the bit sets stay within 32 MB.
"""

import numba
import numpy as np
import numpy.typing as npt

BLOCK = 1 << 10  # at most so many words of 64 patterns a level are held at a time
HELD = 1 << 22  # at most so many words of all levels: 32 MB
LARGEST = 1 << 62  # codes of several keys are packed into one integer below this

Codes = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def patterns(codes: Codes, sizes: tuple[int, ...]) -> tuple[npt.NDArray[np.intp], Codes]:
    """Collapse records to the distinct patterns among them.

    Parameters
    ----------
    codes : array of int, shape (record, key)
        Places of the levels, -1 for missing.
    sizes : tuple of int
        Number of levels of each key.

    Returns
    -------
    pattern : array of int, shape (record,)
        Place of each record's pattern.
    found : array of int, shape (pattern, key)
        Distinct patterns in the order of their codes, so that the order of records is forgotten.

    Examples
    --------
    >>> pattern, found = patterns(np.array([[1, 0], [0, -1], [1, 0]], dtype=np.int32), (2, 1))
    >>> pattern.tolist(), found.tolist()
    ([1, 0, 1], [[0, -1], [1, 0]])
    """
    packed = np.zeros(len(codes), dtype=np.int64)
    room = 1
    for key, size in enumerate(sizes):
        if room * (size + 1) > LARGEST:
            packed, distinct = _ranks(packed)
            room = len(distinct)
        packed = packed * (size + 1) + codes[:, key] + 1
        room *= size + 1
    pattern, distinct = _ranks(packed)
    first = np.empty(len(distinct), dtype=np.intp)
    first[pattern] = np.arange(len(codes))  # any record of the pattern serves
    return pattern, codes[first]


def _ranks(packed: Integers) -> tuple[Integers, Integers]:
    """Return the rank of each value among the distinct ones, and these in order."""
    span = int(packed.max()) + 1 if len(packed) else 0
    if span <= 4 * len(packed):
        present = np.zeros(span, dtype=np.bool_)
        present[packed] = True
        rank = np.cumsum(present) - 1
        return rank[packed], np.flatnonzero(present)
    slots, seen = _number(packed)
    order = np.argsort(seen)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[slots], seen[order]


@numba.njit(cache=True, nogil=True)
def _number(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the distinct values by first appearance, with an open hash table."""
    size = 16
    while size < 2 * len(packed):
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    numbers = np.empty(len(packed), dtype=np.int64)
    seen = np.empty(len(packed), dtype=np.int64)
    count, mask = 0, np.uint64(size - 1)
    for i in range(len(packed)):
        spread = np.uint64(packed[i]) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64((spread ^ (spread >> np.uint64(32))) & mask)
        while table[slot] >= 0 and seen[table[slot]] != packed[i]:
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = count
            seen[count] = packed[i]
            count += 1
        numbers[i] = table[slot]
    return numbers, seen[:count].copy()


@numba.njit(cache=True, nogil=True)
def sums(group: np.ndarray, values: np.ndarray, groups: int) -> np.ndarray:
    """Sum values by group in twice the working precision.

    The rounded result then does not depend on the order of the records, which plain sums do in
    their last digits.

    Parameters
    ----------
    group : array of int, shape (record,)
        From 0 to ``groups - 1``.
    values : array of float, shape (record,)
        What to add up.
    groups : int
        Number of groups.

    Returns
    -------
    array of float, shape (groups,)
        The sums.

    References
    ----------
    Knuth 1969, TAOCP vol. 2, sec. 4.2.2, for the exact error of a floating-point sum.
    """
    high, low = np.zeros(groups), np.zeros(groups)
    for i in range(len(group)):
        g = group[i]
        total = high[g] + values[i]
        part = total - high[g]
        low[g] += (high[g] - (total - part)) + (values[i] - part)
        high[g] = total
    return high + low


def match(
    found: Codes,
    records: Integers,
    weights: Floats,
    *,
    sizes: tuple[int, ...],
    mutual: bool,
) -> tuple[Integers, Floats]:
    """Sample frequency and weight sum of each pattern that may lack values.

    Parameters
    ----------
    found : array of int, shape (pattern, key)
        Distinct patterns, -1 for missing.
    records, weights : arrays, shape (pattern,)
        Records that have exactly this pattern, and the sum of their weights.
    sizes : tuple of int
        Number of levels of each key.
    mutual : bool
        Whether a missing value matches every value of both patterns. Otherwise a pattern counts
        only those that have its own values, and what it lacks itself can be anything: a pattern
        that lacks one of them does not count for it, so that more keys never raise a frequency.

    Returns
    -------
    f : array of int, shape (pattern,)
        Records that match, those of the pattern itself among them.
    F : array of float, shape (pattern,)
        Their weights.
    """
    f, weighted = records.copy(), weights.copy()
    lacking = (found < 0).any(axis=1)
    incomplete = np.flatnonzero(lacking)
    if len(incomplete):
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        levels = max(1, int(offsets[-1]))  # none where every value is missing
        words = min(BLOCK, max(1, HELD // levels), -(-len(found) // 64))
        bits = np.zeros((levels, words), dtype=np.uint64)
        _match(found, incomplete, ~lacking, records, weights, offsets, mutual, f, weighted, bits)
    return f, weighted


@numba.njit(cache=True, nogil=True)
def _match(
    found: np.ndarray,
    incomplete: np.ndarray,
    is_complete: np.ndarray,
    records: np.ndarray,
    weights: np.ndarray,
    offsets: np.ndarray,
    mutual: bool,
    f: np.ndarray,
    weighted: np.ndarray,
    bits: np.ndarray,
) -> None:
    n, keys = found.shape
    low_bit, one = np.uint64(0), np.uint64(1)
    block = 64 * bits.shape[1]
    for start in range(0, n, block):
        stop = min(n, start + block)
        words = (stop - start + 63) // 64
        bits[:] = 0
        anything = np.zeros((keys, words), dtype=np.uint64)
        for j in range(start, stop):
            word, bit = (j - start) // 64, one << np.uint64((j - start) % 64)
            for key in range(keys):
                if found[j, key] < 0:
                    anything[key, word] |= bit
                else:
                    bits[offsets[key] + found[j, key], word] |= bit
        if mutual:
            for key in range(keys):
                for level in range(offsets[key], offsets[key + 1]):
                    for word in range(words):
                        bits[level, word] |= anything[key, word]
        hits = np.empty(words, dtype=np.uint64)
        for i in incomplete:
            hits[:] = ~np.uint64(0)
            if (stop - start) % 64:
                hits[words - 1] = (one << np.uint64((stop - start) % 64)) - one
            for key in range(keys):
                if found[i, key] >= 0:
                    row = bits[offsets[key] + found[i, key]]
                    for word in range(words):
                        hits[word] &= row[word]
            for word in range(words):
                left = hits[word]
                while left:
                    low_bit = left & (~left + one)
                    left ^= low_bit
                    j = start + 64 * word + _place(low_bit)
                    if j == i:
                        continue
                    f[i] += records[j]
                    weighted[i] += weights[j]
                    if mutual and is_complete[j]:
                        f[j] += records[i]
                        weighted[j] += weights[i]


@numba.njit(cache=True, nogil=True)
def _place(bit: np.uint64) -> int:
    """Return which bit is set in a word that has one."""
    place, width = 0, 32
    while width:
        if bit >> np.uint64(width):
            bit >>= np.uint64(width)
            place += width
        width //= 2
    return place
