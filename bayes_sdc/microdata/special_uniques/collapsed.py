"""Different records of a file: equal ones become one row with a multiplicity."""

from typing import NamedTuple

import numba
import numpy as np

PADDING = 64  # rows beyond the last one that may be read, so that whole words can be
LARGEST_CODE = 2**62  # of a record in mixed radix


class Distinct(NamedTuple):
    """Different records, the candidates for minimal sample uniques first."""

    columns: np.ndarray  # (key, row + PADDING) codes from 0, in a small unsigned type
    levels: np.ndarray  # (key,) number of codes of each key
    multiplicity: np.ndarray  # (row,) how often each row occurs in the file
    record: np.ndarray  # (row,) first record of the file with these values
    candidates: int  # rows before this one are unique on all keys


def distinct_records(codes: np.ndarray) -> Distinct:
    """Collapse equal records; those that occur once come first, in the order of the file.

    Parameters
    ----------
    codes : array of int, shape (record, key)
        Values of the key variables, 0 or more; best without gaps.

    Examples
    --------
    >>> records = distinct_records(np.array([[1, 0], [0, 0], [1, 0]]))
    >>> records.columns[:, :2].tolist(), records.multiplicity.tolist(), records.candidates
    ([[0, 1], [0, 0]], [1, 2], 1)
    """
    codes = _without_gaps(codes)
    levels = codes.max(axis=0, initial=0).astype(np.int64) + 1
    first, multiplicity = _collapse(codes, levels)
    order = np.argsort(multiplicity > 1, kind="stable")
    kind = np.uint8 if levels.max(initial=1) <= 256 else np.uint32
    columns = np.zeros((len(levels), len(first) + PADDING), kind)
    record = first[order]
    for key in range(len(levels)):
        columns[key, : len(record)] = codes[record, key]
    return Distinct(columns, levels, multiplicity[order], record, int((multiplicity == 1).sum()))


def candidates_first(distinct: Distinct, candidate: np.ndarray) -> Distinct:
    """Move the rows that are candidates to the front.

    Parameters
    ----------
    distinct : Distinct
        Different records.
    candidate : array of bool, shape (row,)
        Rows that are unique on all keys.
    """
    order = np.argsort(~candidate, kind="stable")
    columns = distinct.columns.copy()
    columns[:, : len(order)] = columns[:, order]
    return Distinct(
        columns,
        distinct.levels,
        distinct.multiplicity[order],
        distinct.record[order],
        int(candidate.sum()),
    )


def _without_gaps(codes: np.ndarray) -> np.ndarray:
    """Renumber the keys whose largest code is far above the number of records."""
    if codes.max(initial=0) < 4 * len(codes) + 1024:
        return codes
    columns = [np.unique(column, return_inverse=True)[1] for column in codes.T]
    return np.stack(columns, axis=1)


def _collapse(codes: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First record and multiplicity of each different record, in the order of the file."""
    group, groups = np.zeros(len(codes), np.int64), 1
    first, multiplicity = np.zeros(1, np.int64), np.array([len(codes)])
    start = 0
    while start < len(levels):
        # as many keys at once as a code in 64 bits can hold; then the groups are renumbered
        stop, cells = start, groups
        while stop < len(levels) and cells * int(levels[stop]) < LARGEST_CODE:
            cells *= int(levels[stop])
            stop += 1
        first, multiplicity = _group(codes, levels, start, stop, group)
        groups, start = len(first), stop
    return first, multiplicity


@numba.njit(cache=True, nogil=True)
def _group(
    codes: np.ndarray, levels: np.ndarray, start: int, stop: int, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Refine ``group`` in place by the keys from ``start`` to ``stop``, with a hash table."""
    records = len(group)
    bits = 4
    while (1 << bits) < 2 * records:
        bits += 1
    mask, shift = (1 << bits) - 1, np.uint64(64 - bits)
    slots = np.full(1 << bits, -1, np.int64)  # code of the group in each slot
    place = np.empty(1 << bits, np.int32)
    first, multiplicity = np.empty(records, np.int64), np.zeros(records, np.int64)
    groups = 0
    for r in range(records):
        code = group[r]
        for k in range(start, stop):
            code = code * levels[k] + codes[r, k]
        slot = np.int64((np.uint64(code) * np.uint64(0x9E3779B97F4A7C15)) >> shift)
        while slots[slot] != code:
            if slots[slot] == -1:
                slots[slot], place[slot] = code, groups
                first[groups] = r
                groups += 1
                break
            slot = (slot + 1) & mask
        group[r] = place[slot]
        multiplicity[place[slot]] += 1
    return first[:groups].copy(), multiplicity[:groups].copy()
