"""What a search for minimal sample uniques will need, and when it is refused."""

import math
from dataclasses import dataclass

import numba
import numpy as np

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.special_uniques.collapsed import (
    Distinct,
    candidates_first,
    distinct_records,
)
from bayes_sdc.microdata.special_uniques.row_bits import WORD
from bayes_sdc.results import Fact, Result

MOST_KEYS = 64  # a set of keys is kept in the bits of one word
MOST_SETS = 5_000_000
MEMORY = 4 * 2**30  # bytes that a search may need at most, unless told otherwise
MISSING_FACTOR = 30.0  # with missing values that match others, from the benchmark
NANOSECONDS = 6.0  # a record and set, on one thread, contributions included; from the benchmark


@dataclass(frozen=True, repr=False)
class SudaForecast(Result):
    """What a search will need at most.

    Made by :func:`bayes_sdc.suda_forecast`.

    Parameters
    ----------
    uniques : int
        Records that are unique on all keys.
    combinations : int
        Different records.
    sets : int
        Sets of up to the maximum number of keys.
    seconds : float
        Rough time; often far less, since most sets are settled early.
    memory : int
        Largest memory in bytes.
    """

    uniques: int
    combinations: int
    sets: int
    seconds: float
    memory: int

    def __str__(self) -> str:
        """Return the forecast in words."""
        return (
            f"{self.sets:,} sets of keys for {self.uniques:,} unique records among "
            f"{self.combinations:,} different ones: at most about {self.seconds:.1f} s and "
            f"{self.memory / 2**20:,.0f} MiB"
        )

    def _title(self) -> str:
        return "Forecast of the search for minimal sample uniques"

    def _facts(self) -> list[Fact]:
        return [
            ("time", f"at most about {self.seconds:.1f} s", "often far less"),
            ("memory", f"{self.memory / 2**20:,.0f} MiB", "at most"),
            ("sets of keys", f"{self.sets:,}", "to be searched"),
            ("unique records", f"{self.uniques:,}", f"of {self.combinations:,} different ones"),
        ]


def check_size(max_size: int, keys: int) -> int:
    """Return the largest size to look for, at most the number of keys."""
    if isinstance(max_size, bool) or not isinstance(max_size, int | np.integer) or max_size < 1:
        raise InputError(f"max_size must be a whole number, 1 or more; it is {max_size!r}")
    if keys > MOST_KEYS:
        raise InputError(f"{keys} keys are too many for SUDA; name at most {MOST_KEYS}")
    return min(int(max_size), keys)


def prepare(microdata: Microdata) -> tuple[Distinct, bool]:
    """Different records, those unique by the file's rule first, and whether values are missing."""
    missing = bool((microdata.codes < 0).any())
    # codes start at -1 for missing, which becomes a category of its own
    distinct = distinct_records(microdata.codes + np.int32(1) if missing else microdata.codes)
    if missing and microdata.missing != "own":
        distinct = candidates_first(distinct, microdata.f[distinct.record] == 1)
    return distinct, missing


def forecast(distinct: Distinct, missing: bool, size: int) -> SudaForecast:
    """Upper limits of what the search for sets of up to ``size`` keys needs."""
    keys, rows = len(distinct.levels), len(distinct.record)
    sets = [math.comb(keys, k) for k in range(1, size + 1)]
    word_bytes = 8 * -(-distinct.candidates // WORD)
    # bits of all sets found, and of two levels at work
    memory = word_bytes * (sum(sets) + 3 * max(sets))
    memory += distinct.columns.nbytes + distinct.candidates * 8 * (keys + size)
    seconds = sum(sets) * (rows + 100) * NANOSECONDS * 1e-9 / numba.get_num_threads()
    if missing:
        seconds *= MISSING_FACTOR
    return SudaForecast(distinct.candidates, rows, sum(sets), seconds, memory)


def refuse(
    expected: SudaForecast, distinct: Distinct, missing: bool, size: int, memory: int
) -> None:
    """Raise when the search is too large, and say what size would not be."""
    if expected.sets <= MOST_SETS and expected.memory <= memory:
        return
    possible = 0
    for smaller in range(1, size):
        less = forecast(distinct, missing, smaller)
        if less.sets <= MOST_SETS and less.memory <= memory:
            possible = smaller
    remedy = f"max_size={possible} would do" if possible else "name fewer keys"
    raise InputError(
        f"max_size {size} is too large for {len(distinct.levels)} keys: {expected}; the limits are "
        f"{MOST_SETS:,} sets and {memory / 2**20:,.0f} MiB (memory). Remedy: {remedy}"
    )
