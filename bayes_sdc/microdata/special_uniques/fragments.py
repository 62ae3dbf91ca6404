"""Matching part of a file against the rest, as somebody with an outside file would."""

import numba
import numpy as np

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata

RULE_NUMBER = {"own": 0, "conservative": 1, "wildcard": 2}


def aligned(original: Microdata, protected: Microdata) -> tuple[np.ndarray, np.ndarray, int]:
    """Codes of both files on the same labels, and the number of the rule about missing values."""
    if protected.keys != original.keys:
        raise InputError(
            f"the protected file has the keys {list(protected.keys)}, the original "
            f"{list(original.keys)}; they must be the same, in the same order"
        )
    if protected.n != original.n:
        raise InputError(
            f"the protected file has {protected.n:,} records, the original {original.n:,}; each "
            "record must stay in its place (suppressed values as missing)"
        )
    codes = np.empty_like(protected.codes)
    for k, labels in enumerate(protected.labels):
        place = {label: code for code, label in enumerate(original.labels[k])}
        new = np.array([place.get(label, -2 - i) for i, label in enumerate(labels)] + [-1])
        # labels that the original does not have match nothing, but are not missing
        new[new <= -2] = len(original.labels[k]) - 2 - new[new <= -2]
        codes[:, k] = new[protected.codes[:, k]]
    return original.codes, codes, RULE_NUMBER[protected.missing]


@numba.njit(cache=True, nogil=True)
def _matches(known: np.ndarray, released: np.ndarray, rule: int) -> bool:
    """Whether a released record is what somebody with the known values looks for."""
    for k in range(len(known)):
        a, b = known[k], released[k]
        if a != b and not (rule > 0 and a < 0) and not (rule == 2 and b < 0):
            return False
    return True


def match_all(known: np.ndarray, released: np.ndarray, rule: int) -> np.ndarray:
    """Number of released records that each known one matches.

    Records are taken together by the keys they lack a value of: for two such patterns, the records
    match that agree on all keys that are compared.
    """
    if rule == 0:
        return _agreeing(known, released)
    counts = np.zeros(len(known), np.int64)
    nothing = np.zeros(known.shape[1], np.bool_)
    answering = _patterns(released) if rule == 2 else [(nothing, np.arange(len(released)))]
    for lack, rows in _patterns(known):
        for other, answers in answering:
            compared = ~(lack | other)
            counts[rows] += _agreeing(known[rows][:, compared], released[answers][:, compared])
    return counts


def _patterns(codes: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Keys without a value and rows, for each pattern that occurs."""
    lacking, pattern = np.unique(codes < 0, axis=0, return_inverse=True)
    pattern = pattern.reshape(-1)
    return [(lack, np.flatnonzero(pattern == number)) for number, lack in enumerate(lacking)]


def _agreeing(asking: np.ndarray, answering: np.ndarray) -> np.ndarray:
    """Number of rows of one array that equal each row of another."""
    both = np.vstack([asking, answering]).astype(np.int64)
    packed = np.zeros(len(both), np.int64)
    room = 1
    for column in both.T:
        size = int(column.max(initial=0)) + 2
        if room * size >= 2**62:
            packed = np.unique(packed, return_inverse=True)[1].reshape(-1)
            room = len(both)
        packed = packed * size + column + 1
        room *= size
    values, number = np.unique(packed[len(asking) :], return_counts=True)
    if len(values) == 0:
        return np.zeros(len(asking), np.int64)
    place = np.minimum(np.searchsorted(values, packed[: len(asking)]), len(values) - 1)
    return np.where(values[place] == packed[: len(asking)], number[place], 0)


@numba.njit(cache=True, nogil=True)
def match_fragment(
    known: np.ndarray,
    released: np.ndarray,
    rule: int,
    matches: np.ndarray,
    members: np.ndarray,
    copied: np.ndarray,
) -> tuple[int, int]:
    """Unique and correct matches of a fragment against the file without its uncopied records."""
    unique, correct = 0, 0
    for i in range(len(members)):
        r = members[i]
        left = matches[r]
        for j in range(len(members)):
            if not copied[j] and _matches(known[r], released[members[j]], rule):
                left -= 1
        if left == 1:
            unique += 1
            correct += copied[i] and _matches(known[r], released[r], rule)
    return unique, correct
