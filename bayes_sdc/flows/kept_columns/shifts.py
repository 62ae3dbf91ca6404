"""Counts that stand in other rows: a copy in another order, shifted, or turned round.

All shifts are tried at once, by the correlation of the ranks of a column with those of the small
counts (a fast Fourier transform), over all rows and over the rows with small counts: in the order
of the table, and in those by origin or by destination, as a copy out of a matrix has them. Only the
best few are asked what they tell.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.fft import irfft, rfft

Numbers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

SEQUENCES = 4  # all rows or those with small counts, in their order or turned round
ASKED = 5  # shifts of each; large safe counts among all rows may hide the right one
ASKED_ELSEWHERE = 2  # of each other order; a right one stands out


def listings(origin: pd.Series, destination: pd.Series) -> dict[str, Codes]:
    """Rows of a table in other orders: by origin, and by destination.

    Codes are sorted as texts, as numbers, and as they first occur, where that makes a difference.

    Examples
    --------
    >>> found = listings(pd.Series(["a", "a", "b"]), pd.Series(["b", "c", "a"]))
    >>> {words: rows.tolist() for words, rows in found.items()}
    {'by destination': [2, 0, 1]}
    """
    found: dict[str, Codes] = {}
    seen = [np.arange(len(origin))]
    codes = _codes(origin, destination)
    for words, first in (("by origin", 0), ("by destination", 1)):
        for how, pair in codes.items():
            rows = np.lexsort((pair[1 - first], pair[first])).astype(np.intp)
            if not any(np.array_equal(rows, other) for other in seen):
                seen.append(rows)
                found[words + how] = rows
    return found


def _codes(origin: pd.Series, destination: pd.Series) -> dict[str, tuple[Codes, Codes]]:
    """Ranks of the areas by each way to sort them."""
    both = pd.concat([origin.astype(str), destination.astype(str)], ignore_index=True)
    number = pd.to_numeric(both, errors="coerce").to_numpy(np.float64)
    ways = {"": pd.factorize(both, sort=True)[0]}
    if np.isfinite(number).all():
        ways[", as numbers"] = np.unique(number, return_inverse=True)[1].ravel()
    ways[", as they first occur"] = pd.factorize(both)[0]
    n = len(origin)
    return {how: (rank[:n], rank[n:]) for how, rank in ways.items()}


def best_shifts(
    numbers: Numbers, counts: Numbers, small: Codes, orders: Mapping[str, Codes]
) -> Iterator[tuple[str, Numbers, int]]:
    """Yield a column as it reads when moved so that it goes best with the small counts.

    Parameters
    ----------
    numbers : array of float, shape (row,)
        The column; NaN where nothing stands.
    counts : array of float, shape (row,)
        The counts.
    small : array of int, shape (small row,)
        Rows with small counts, in the order of the table.
    orders : mapping from words to array of int, shape (row,)
        From :func:`listings`.

    Yields
    ------
    tuple of (str, array of float, int)
        How it was read, what then stands in each row (NaN where nothing does), and how many ways
        to read it were tried.

    Examples
    --------
    >>> counts = np.array([3.0, 1.0, 7.0, 2.0, 2.0, 9.0])
    >>> ways = best_shifts(counts[::-1], counts, np.arange(6), {})
    >>> {how: values for how, values, _ in ways}["its values from the end, 0 rows on"].tolist()
    [3.0, 1.0, 7.0, 2.0, 2.0, 9.0]
    >>> rows = np.array([1, 3, 5, 0, 2, 4])
    >>> ways = best_shifts(counts[rows], counts, np.arange(6), {"by destination": rows})
    >>> {how: values for how, values, _ in ways}["counts listed by destination"].tolist()
    [3.0, 1.0, 7.0, 2.0, 2.0, 9.0]
    """
    wanted = np.full(len(numbers), np.nan)
    wanted[small] = counts[small]
    tried = SEQUENCES * (1 + 2 * len(orders))
    for where, rows in (("", np.arange(len(numbers))), (" among rows with small counts", small)):
        if where and len(rows) == len(numbers):
            return  # the same rows again
        if not _ranks(wanted[rows]).any():
            return  # nothing to go with
        for listed, read, of_row in _readings(numbers, rows, orders):
            target = _ranks(wanted[of_row])
            for turned in (False, True):
                one = read[::-1] if turned else read
                for shift in _best(_ranks(one), target, stand_out=bool(listed)):
                    still = not turned and shift == 0
                    if still and not listed:
                        continue  # the column as it stands, which is asked elsewhere
                    values = np.full(len(numbers), np.nan)
                    values[of_row] = np.roll(one, shift)  # from one end it goes on at the other
                    moved = [] if still else [_words(turned, shift, len(rows))]
                    how = ", ".join([*([listed] if listed else []), *moved])
                    yield how + where, values, tried * len(rows)


def _readings(
    numbers: Numbers, rows: Codes, orders: Mapping[str, Codes]
) -> Iterator[tuple[str, Numbers, Codes]]:
    """Yield in which order a column is read, its values, and the row that each is said of."""
    yield "", numbers[rows], rows
    inside = np.zeros(len(numbers), bool)
    inside[rows] = True
    for words, order in orders.items():
        other = order[inside[order]]
        yield f"counts listed {words}", numbers[rows], other
        yield f"values listed {words}", numbers[other], rows


def _ranks(values: Numbers) -> Numbers:
    """Ranks about their mean; 0 where nothing stands, so that it adds nothing."""
    ranks = pd.Series(values).rank()
    return np.asarray((ranks - ranks.mean()).fillna(0.0), np.float64)


def _best(column: Numbers, target: Numbers, *, stand_out: bool) -> list[int]:
    """Numbers of rows to shift the column down by, so that it goes best with the target.

    Those that must stand out go better with it than the best of all shifts by chance.
    """
    products = np.abs(irfft(np.conj(rfft(column)) * rfft(target), len(target)))
    if not products.any():
        return []
    best = np.argsort(-products, kind="stable")
    if not stand_out:
        return [int(shift) for shift in best[:ASKED]]
    chance = np.sqrt(2.0 * np.log(len(target)) / len(target)) * np.linalg.norm(column)
    chance *= np.linalg.norm(target)
    return [int(shift) for shift in best[:ASKED_ELSEWHERE] if products[shift] > chance]


def _words(turned: bool, shift: int, n: int) -> str:
    after = shift > n // 2
    steps = n - shift if after else shift
    rows = f"{steps:,} {'row' if steps == 1 else 'rows'}"
    if turned:
        return f"its values from the end, {rows} {'back' if after else 'on'}"
    return f"its value {rows} {'after' if after else 'before'}"
