"""A table as the search for totals inside it sees it, what it finds, and how far from chance.

In a few rows counts add up by chance: 1 + 2 = 3. The counts of the table itself show how likely
that is: the distance from a sum to the counts nearest to it says how many counts of its size there
are.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from bayes_sdc.flows.table.families import Family, Hidden, Ints, none_hidden
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.io.columns import read_codes

SURE = 16.0  # bits beyond what was tried: one table in 65,000
NEAREST = 2  # counts whose distance says how many there are of a size
WORDS = "totals?|totale|totaal|insgesamt|gesamt|summe|ensemble|sum|all"
NAMES = re.compile(rf"_t|(grand |sub)?[ _-]?({WORDS})\W*", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class InsideTotal:
    """A code or a column whose values are totals of the table.

    Parameters
    ----------
    column
        Where the code stands, or the column of totals itself.
    code
        The code; None for a column of totals.
    rows
        Rows of the frame that hold totals; none for a column.
    family
        The totals, and the rows that each is the sum of.
    matches, tested
        For how many totals the sum was right, and for how many it was tested.
    bits
        How far the sums are from chance, whatever the code is called, after the cost of everything
        that was tried.
    whole
        (row,) which row is the total that each row counts in, hidden ones too, or -1; None where
        totals are rounded or no rows.
    """

    column: str
    code: str | None
    rows: Ints = field(repr=False)
    family: Family = field(repr=False)
    matches: int
    tested: int
    bits: float
    whole: Ints | None = None

    @property
    def beyond_chance(self) -> bool:
        """Whether counts do not add up like this by chance."""
        return self.bits >= SURE

    @property
    def believed(self) -> bool:
        """Whether it is beyond chance, or is called a total."""
        return self.beyond_chance or called_total(self.column if self.code is None else self.code)

    def __str__(self) -> str:
        """Say what it is, with the evidence."""
        rows = "1 row" if len(self.rows) == 1 else f"{len(self.rows):,} rows"
        what = "" if self.code is None else f", code {self.code!r} ({rows})"
        if self.tested == 0:
            return f"column {self.column!r}{what}: called a total, but no sum of the other counts"
        return (
            f"column {self.column!r}{what}: sums of the counts by {self.family.name}, "
            f"right in {self.matches:,} of {self.tested:,}"
        )


def called_total(code: str) -> bool:
    """Whether a code is called a total; several are joined by ``>``, as in ``Total>Total``."""
    return all(NAMES.fullmatch(part) for part in code.split(">"))


class Rows(NamedTuple):
    """The table as arrays, with the rows that are known to be totals."""

    counts: Ints  # 0 where hidden
    lower: Ints  # what a hidden count is at least, 0 elsewhere
    upper: Ints
    hidden: np.ndarray
    own: np.ndarray
    total: np.ndarray  # changed as totals are found
    texts: dict[str, np.ndarray]  # codes of origin, destination and groups
    others: dict[str, np.ndarray]  # every other column, as text
    doubtful: bool  # whether sums that may be chance are sought too


def rows_of(table: FlowTable, hidden: Hidden | None) -> Rows:
    """Turn a table into arrays; what cannot be told from chance is sought as well."""
    frame = table.frame
    hidden = none_hidden(len(frame)) if hidden is None else hidden
    names = [table.origin, table.destination, *table.groups]
    texts = {name: read_codes(frame[name], name).texts() for name in names}
    return Rows(
        counts=np.where(hidden.mask, 0, frame[table.count].to_numpy(np.int64)),
        lower=hidden.lower,
        upper=hidden.upper,
        hidden=hidden.mask,
        own=texts[table.origin] == texts[table.destination],
        total=np.zeros(len(frame), dtype=bool),
        texts=texts,
        others={
            str(name): frame[name].astype(str).to_numpy(dtype=object)
            for name in frame.columns
            if name not in (*names, table.count)
        },
        doubtful=True,
    )


def surprise(rows: Rows, sums: Ints, width: int = 1) -> float:
    """How far from chance it is, in bits, that counts equal all these sums.

    Parameters
    ----------
    rows : Rows
        The table; each sum is the count of one of its rows.
    sums : array of int
        What was equal.
    width : int
        How many numbers would have counted as equal.
    """
    return float(bits_of(rows.counts[~rows.hidden], sums, width).sum())


def bits_of(
    numbers: npt.NDArray[np.generic], sums: npt.NDArray[np.generic], width: npt.ArrayLike = 1
) -> npt.NDArray[np.float64]:
    """How far from chance it is, in bits, that one of some numbers is the sum: (sum,).

    Parameters
    ----------
    numbers : array
        Among which each sum was found.
    sums : array
        What was equal.
    width : array_like
        Of the numbers that would have counted as equal; 1 for whole numbers.

    Notes
    -----
    The density of the numbers at a sum is estimated by the distance d to the
    :data:`NEAREST`-th nearest other one: all numbers up to d away, for many may be equal, lie in a
    width of 2 d, and 1 of whole numbers.
    """
    numbers = np.sort(numbers)
    n = len(numbers) - 1  # without the one that was equal
    k = min(NEAREST, n)
    if k < 1 or len(sums) == 0:
        return np.zeros(len(sums))
    place = np.searchsorted(numbers, sums)[:, None] + np.arange(-k - 1, k + 2)
    away = np.abs(numbers[np.clip(place, 0, n)] - sums[:, None]).astype(np.float64)
    away[(place < 0) | (place > n)] = np.inf
    distance = np.sort(away, axis=1)[:, k]  # the nearest is the row itself
    near = np.searchsorted(numbers, sums + distance, "right")
    near -= np.searchsorted(numbers, sums - distance, "left")
    unit = np.minimum(width, 1)
    chance = np.clip((near - 1) / n, k / n, 1.0) * width / (2.0 * distance + unit)
    return np.asarray(-np.log2(np.minimum(chance, 1.0)), np.float64)


def choices(tests: npt.ArrayLike, wrong: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Bits that it costs to say which of some tests went wrong.

    Examples
    --------
    >>> bool(np.isclose(choices(4, 2), np.log2(6)))
    True
    """
    n, k = np.asarray(tests, np.float64), np.asarray(wrong, np.float64)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.round(np.asarray(ways / np.log(2)), 12)
