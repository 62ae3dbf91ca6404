"""Sets of variables on which a record matches another only because a value is missing.

Two records are compatible on a variable when their values are equal or one is missing, and on a
set when they are so on each of its variables. So a pair of records matches on exactly the subsets
of the variables it is compatible on, and a few such largest sets say everything about a record. As
in the combinations of the file, "wildcard" lets both records of a compatible pair count for each
other; "conservative" lets a record with a missing value anywhere count whatever it is compatible
with, and be counted by no complete record. Judging completeness on all keys, not on each set, keeps
a record that is unique on a set unique on every larger one.
"""

import numba
import numpy as np

from bayes_sdc.microdata.distinct import Distinct

MISSING = 0  # code of a missing value in the columns
WORD = 64


def unmatched(distinct: Distinct, *, mutual: bool) -> np.ndarray:
    """Rows that occur once and are compatible with no other row on all keys.

    Parameters
    ----------
    distinct : Distinct
        Different records, with code 0 for missing.
    mutual : bool
        Whether records with missing values count for complete ones: "wildcard".

    Returns
    -------
    array of bool, shape (row,)

    Examples
    --------
    >>> from bayes_sdc.microdata.distinct import distinct_records
    >>> records = distinct_records(np.array([[1, 1], [1, 2], [1, 0], [2, 2]]))
    >>> unmatched(records, mutual=True)
    array([False, False, False,  True])
    >>> unmatched(records, mutual=False)
    array([ True,  True, False,  True])
    """
    values, incomplete = _rows(distinct)
    alone: np.ndarray = distinct.multiplicity == 1
    _drop_matched(values, incomplete, np.flatnonzero(incomplete), mutual, alone)
    return alone


def matched_sets(distinct: Distinct, masks: np.ndarray, *, mutual: bool) -> np.ndarray:
    """Bits of the candidates that are compatible with another row on each set.

    Parameters
    ----------
    distinct : Distinct
        Different records, candidates first, with code 0 for missing.
    masks : array of uint64, shape (set,)
        Bit k for key k.
    mutual : bool
        Whether records with missing values count for complete ones.

    Returns
    -------
    array of uint64, shape (set, word)
        Bit r of a row for candidate r. Pairs of complete rows are left to be compared by value.
    """
    values, incomplete = _rows(distinct)
    bits = np.zeros((len(masks), -(-distinct.candidates // WORD)), np.uint64)
    _fill_matched(
        values, incomplete, np.flatnonzero(incomplete), distinct.candidates, masks, mutual, bits
    )
    return bits


def _rows(distinct: Distinct) -> tuple[np.ndarray, np.ndarray]:
    values = np.ascontiguousarray(distinct.columns[:, : len(distinct.record)].T)
    return values, np.asarray((values == MISSING).any(axis=1))


@numba.njit(cache=True, nogil=True)
def _compatible(a: np.ndarray, b: np.ndarray) -> np.uint64:
    """Variables on which two rows are compatible, a bit each."""
    mask = np.uint64(0)
    for k in range(len(a)):
        if a[k] == b[k] or a[k] == MISSING or b[k] == MISSING:
            mask |= np.uint64(1) << np.uint64(k)
    return mask


@numba.njit(cache=True, nogil=True, parallel=True)
def _drop_matched(
    values: np.ndarray,
    incomplete: np.ndarray,
    incomplete_rows: np.ndarray,
    mutual: bool,
    alone: np.ndarray,
) -> None:
    rows, keys = values.shape
    for r in numba.prange(rows):
        others = rows if incomplete[r] else (len(incomplete_rows) if mutual else 0)
        if not alone[r]:
            others = 0
        for i in range(others):
            s = i if incomplete[r] else incomplete_rows[i]
            same = s != r
            for k in range(keys):
                a, b = values[r, k], values[s, k]
                same &= (a == b) | (a == MISSING) | (b == MISSING)
            if same:
                alone[r] = False
                break


@numba.njit(cache=True, nogil=True, parallel=True)
def _fill_matched(
    values: np.ndarray,
    incomplete: np.ndarray,
    incomplete_rows: np.ndarray,
    candidates: int,
    masks: np.ndarray,
    mutual: bool,
    bits: np.ndarray,
) -> None:
    rows = len(values)
    for w in numba.prange(bits.shape[1]):
        for r in range(w * WORD, min((w + 1) * WORD, candidates)):
            largest = [np.uint64(0)]  # compatible sets of which none holds another
            others = rows if incomplete[r] else (len(incomplete_rows) if mutual else 0)
            for i in range(others):
                s = i if incomplete[r] else incomplete_rows[i]
                if s == r:
                    continue
                mask = _compatible(values[r], values[s])
                known = False
                for other in largest:
                    known |= mask & ~other == 0
                    if known:
                        break
                if not known:
                    kept = [mask]
                    for other in largest:
                        if other & ~mask != 0:
                            kept.append(other)  # noqa: PERF401 comprehensions are slow to compile
                    largest = kept
            bit = np.uint64(1) << np.uint64(r & 63)
            for s in range(len(masks)):
                for mask in largest:
                    if masks[s] & ~mask == 0:
                        bits[s, w] |= bit
                        break
