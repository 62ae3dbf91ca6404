"""Columns of areas that are weighted sums of the numbers of their small counts of each size.

Ten times the ones and the twos, the sum of the small counts, their cubes, the odd ones: each is a
sum over 1, 2, 3 and so on of a weight times how many counts of that size an area has. The weights
need not be known: exact least squares finds them, and no column agrees in all areas by accident.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from bayes_sdc.flows.kept_columns.numbers import last_digit
from bayes_sdc.flows.table.read import FlowTable

Numbers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

FEWEST_FREE = 12  # areas beyond the weights
EXACT = 1e-9  # relative error of the computer
BY_LUCK = 0.5  # chance of an area at most, as that of a column of zeros and ones
FEWEST_WITH = 3  # areas that have counts of a size
FEWEST_MORE = 3  # areas beyond what everybody sees


class Cells(NamedTuple):
    """Numbers of the cells of each area: what everybody sees, and how many small ones of each size.

    Parameters
    ----------
    public : array, shape (area, column)
        One, numbers of safe and of small counts and their shares, the sum of the safe counts.
    hidden : array, shape (area, size)
        Small counts of each size.
    """

    public: Numbers
    hidden: Numbers


def cells_of(table: FlowTable, key: Codes, areas: int) -> Cells:
    """Count the cells of each area; ``key`` is the area of each row."""
    count = table.frame[table.count].to_numpy(np.float64)
    small = (count >= table.low) & (count <= table.high)

    def numbers_of(rows: npt.NDArray[np.bool_]) -> Numbers:
        return np.bincount(key[rows], minlength=areas).astype(np.float64)

    of_small, of_safe = numbers_of(small), numbers_of(~small)
    every = np.maximum(of_small + of_safe, 1.0)
    sums = np.bincount(key[~small], count[~small], areas)
    public = [np.ones(areas), of_safe, of_small, of_small / every, of_safe / every, sums]
    sizes = range(table.low, table.high + 1)
    hidden = [numbers_of(small & (count == size)) for size in sizes]
    return Cells(np.column_stack(public), np.column_stack(hidden))


def is_public(cells: Cells, at: Codes, held: Numbers) -> bool:
    """Tell whether numbers of areas follow from what everybody sees, in all of them.

    Parameters
    ----------
    cells : Cells
        From :func:`cells_of`.
    at : array of int, shape (area,)
        Areas that the column speaks of.
    held : array of float, shape (area,)
        What it holds of them; nan where there is none.
    """
    known = np.isfinite(held)
    x, public = held[known], cells.public[at][known]
    if len(x) < public.shape[1] + FEWEST_MORE:
        return False
    size = EXACT * max(1.0, float(np.abs(x).max()))
    return bool(np.abs(_left(public, x)).max() <= size)


def weighted_numbers(cells: Cells, at: Codes, held: Numbers) -> float:
    """Return the log chance that numbers of areas are such sums by accident; 0 if they are none.

    Areas that have counts of a size which hardly any other area has are left aside: any flag of one
    of these is a sum with a weight for that size.

    Parameters
    ----------
    cells, at, held
        As for :func:`is_public`.
    """
    hidden = cells.hidden[at]
    rare = (hidden > 0).sum(axis=0) < FEWEST_WITH
    known = np.isfinite(held) & (hidden.sum(axis=1) > 0) & ~(hidden[:, rare] > 0).any(axis=1)
    x, public = held[known], cells.public[at][known]
    design = np.column_stack([public, hidden[known][:, ~rare]])
    free = len(x) - int(np.linalg.matrix_rank(design)) if len(x) else 0
    if free < FEWEST_FREE:
        return 0.0
    size = EXACT * max(1.0, float(np.abs(x).max()))
    beside = _left(public, x)  # what everybody sees may go by a column, too
    if np.abs(beside).max() <= size:
        return 0.0
    kinds = np.unique(x, return_counts=True)[1]
    shuffled = float(gammaln(kinds + 1).sum() - gammaln(len(x) + 1))
    spread = float(np.linalg.norm(beside)) / np.sqrt(len(x) - np.linalg.matrix_rank(public))
    rounding = 0.5 * last_digit(x)
    left = float(np.abs(_left(design, x)).max())
    if left <= size:
        return max(free * float(np.log(BY_LUCK)), shuffled)
    if left <= 2.0 * rounding:  # least squares hands rounding on
        return max(free * float(np.log(min(2.0 * rounding / spread, 1.0))), shuffled)
    return 0.0


def _left(design: Numbers, y: Numbers) -> Numbers:
    scale = np.linalg.norm(design, axis=0)
    scaled = design / np.where(scale > 0, scale, 1.0)
    return np.asarray(y - scaled @ np.linalg.lstsq(scaled, y, rcond=1e-12)[0])
