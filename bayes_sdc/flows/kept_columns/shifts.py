"""Counts that stand in other rows: a copy shifted by any number of rows, or turned round.

All shifts are tried at once, by the correlation of the ranks of a column with those of the small
counts (a fast Fourier transform), over all rows and over the rows with small counts, in the order
of the table. Only the best few are asked what they tell. A copy in another order, such as by
destination, is not found.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.fft import irfft, rfft

Numbers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

SEQUENCES = 4  # all rows or those with small counts, in their order or turned round
ASKED = 5  # shifts of each; large safe counts among all rows may hide the right one


def best_shifts(
    numbers: Numbers, counts: Numbers, small: Codes
) -> Iterator[tuple[str, Numbers, int]]:
    """Yield a column as it reads when shifted so that it goes best with the small counts.

    Parameters
    ----------
    numbers : array of float, shape (row,)
        The column; NaN where nothing stands.
    counts : array of float, shape (row,)
        The counts.
    small : array of int, shape (small row,)
        Rows with small counts, in the order of the table.

    Yields
    ------
    tuple of (str, array of float, int)
        How it was read, what then stands in each row (NaN where nothing does), and how many ways
        to read it were tried.

    Examples
    --------
    >>> counts = np.array([3.0, 1.0, 7.0, 2.0, 2.0, 9.0])
    >>> found = {how: values for how, values, _ in best_shifts(counts[::-1], counts, np.arange(6))}
    >>> found["its values from the end, 0 rows on"].tolist()
    [3.0, 1.0, 7.0, 2.0, 2.0, 9.0]
    """
    wanted = np.full(len(numbers), np.nan)
    wanted[small] = counts[small]
    for where, rows in (("", np.arange(len(numbers))), (" among rows with small counts", small)):
        if where and len(rows) == len(numbers):
            return  # the same rows again
        target, column = _ranks(wanted[rows]), numbers[rows]
        if not target.any():
            return  # nothing to go with
        for turned in (False, True):
            read = column[::-1] if turned else column
            for shift in _best(_ranks(read), target):
                if not turned and shift == 0:
                    continue  # the column as it stands, which is asked elsewhere
                values = np.full(len(numbers), np.nan)
                values[rows] = np.roll(read, shift)  # what leaves at one end comes in at the other
                yield _words(turned, shift, len(rows)) + where, values, SEQUENCES * len(rows)


def _ranks(values: Numbers) -> Numbers:
    """Ranks about their mean; 0 where nothing stands, so that it adds nothing."""
    ranks = pd.Series(values).rank()
    return np.asarray((ranks - ranks.mean()).fillna(0.0), np.float64)


def _best(column: Numbers, target: Numbers) -> list[int]:
    """Numbers of rows to shift the column down by, so that it goes best with the target."""
    products = np.abs(irfft(np.conj(rfft(column)) * rfft(target), len(target)))
    if not products.any():
        return []
    return [int(shift) for shift in np.argsort(-products, kind="stable")[:ASKED]]


def _words(turned: bool, shift: int, n: int) -> str:
    after = shift > n // 2
    steps = n - shift if after else shift
    rows = f"{steps:,} {'row' if steps == 1 else 'rows'}"
    if turned:
        return f"its values from the end, {rows} {'back' if after else 'on'}"
    return f"its value {rows} {'after' if after else 'before'}"
