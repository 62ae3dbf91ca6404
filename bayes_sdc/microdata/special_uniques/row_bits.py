"""Bits and hash slots of rows, for compiled loops."""

import numba
import numpy as np

from bayes_sdc.microdata.special_uniques.collapsed import Distinct

WORD = 64  # rows whose bits are in one word


@numba.njit(cache=True, nogil=True)
def size_of_slots(rows: int) -> tuple[int, np.uint64]:
    """Return a number of slots, at least two a row, and the shift that goes with it."""
    bits = 4
    while (1 << bits) < 2 * rows:
        bits += 1
    return 1 << bits, np.uint64(64 - bits)


@numba.njit(cache=True, nogil=True)
def popcount(word: np.uint64) -> int:
    """Number of bits set, in a form that compilers turn into one instruction."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    word = (word * np.uint64(0x0101010101010101)) >> np.uint64(56)
    number: int = numba.int64(word)
    return number


@numba.njit(cache=True, nogil=True)
def lowest(word: np.uint64) -> int:
    """Place of the lowest bit set."""
    place: int = popcount(~word & (word - np.uint64(1)))
    return place


@numba.njit(cache=True, nogil=True)
def find_row(
    distinct: Distinct, members: np.ndarray, row: int, slots: np.ndarray, shift: np.uint64
) -> int:
    """Slot of the first row with the same values, or the empty slot where it belongs."""
    code = np.uint64(0)
    for key in members:
        code = (code + np.uint64(distinct.columns[key, row])) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
    slot: int = numba.int64((code * np.uint64(0xBF58476D1CE4E5B9)) >> shift)
    while slots[slot] != -1:
        same = True
        for key in members:
            same &= distinct.columns[key, slots[slot]] == distinct.columns[key, row]
        if same:
            break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@numba.njit(cache=True, nogil=True)
def set_bit(bits: np.ndarray, place: int, flag: bool) -> None:
    """Set or clear one bit."""
    bit = np.uint64(1) << np.uint64(place & 63)
    if flag:
        bits[place >> 6] |= bit
    else:
        bits[place >> 6] &= ~bit
