"""Columns of areas that are weighted sums of the numbers of their small counts of each size.

Ten times the ones and the twos, the sum of the small counts, their cubes, the odd ones: each is a
sum over 1, 2, 3 and so on of a weight times how many counts of that size an area has. The weights
need not be known: exact least squares finds them, and no column agrees in all areas by accident.
"""

import numpy as np
import numpy.typing as npt

from bayes_sdc.flows.kept_columns.numbers import last_digit
from bayes_sdc.flows.table.read import FlowTable

Numbers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

FEWEST_FREE = 12  # areas beyond the weights
EXACT = 1e-9  # relative error of the computer
BY_LUCK = 0.5  # chance of an area at most, as that of a column of zeros and ones


def weighted_numbers(table: FlowTable, at: Codes, held: Numbers, key: Codes) -> float:
    """Return the log chance that numbers of areas are such sums by accident; 0 if they are none.

    Parameters
    ----------
    table : FlowTable
        Counts as they are.
    at : array of int, shape (area,)
        Areas that the column speaks of.
    held : array of float, shape (area,)
        What it holds of them; nan where there is none.
    key : array of int, shape (row,)
        Area of each row.
    """
    count = table.frame[table.count].to_numpy(np.float64)
    small = (count >= table.low) & (count <= table.high)
    areas = int(max(key.max(initial=0), at.max(initial=0))) + 1

    def numbers_of(rows: npt.NDArray[np.bool_]) -> Numbers:
        return np.bincount(key[rows], minlength=areas).astype(np.float64)

    safe = ~small
    public = np.column_stack([
        np.ones(areas), numbers_of(safe), numbers_of(small),
        np.bincount(key[safe], count[safe], areas),
    ])  # fmt: skip
    sizes = range(table.low, table.high + 1)
    hidden = np.column_stack([numbers_of(small & (count == size)) for size in sizes])
    known = np.isfinite(held) & (public[at, 2] > 0)
    x, public, hidden = held[known], public[at][known], hidden[at][known]
    design = np.column_stack([public, hidden])
    free = len(x) - int(np.linalg.matrix_rank(design)) if len(x) else 0
    if free < FEWEST_FREE:
        return 0.0
    size = EXACT * max(1.0, float(np.abs(x).max()))
    beside = _left(public, x)  # what everybody sees may go by a column, too
    if np.abs(beside).max() <= size:
        return 0.0
    spread = float(np.linalg.norm(beside)) / np.sqrt(len(x) - public.shape[1])
    rounding = 0.5 * last_digit(x)
    left = float(np.abs(_left(design, x)).max())
    if left <= size:
        return free * float(np.log(BY_LUCK))
    if left <= 2.0 * rounding:  # least squares hands rounding on
        return free * float(np.log(min(2.0 * rounding / spread, 1.0)))
    return 0.0


def _left(design: Numbers, y: Numbers) -> Numbers:
    scale = np.linalg.norm(design, axis=0)
    scaled = design / np.where(scale > 0, scale, 1.0)
    return np.asarray(y - scaled @ np.linalg.lstsq(scaled, y, rcond=1e-12)[0])
