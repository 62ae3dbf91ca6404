"""What Lancaster's model will need, and when it is refused before the work."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numba
import numpy as np

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.lancaster.structural_zeros import labels_of
from bayes_sdc.results import Fact, Result

WALKED_CELLS = 10_000_000_000  # a larger table is sampled
MEMORY = 4 * 2**30  # bytes that the pairs of keys may need at most
NANOSECONDS = 2.0  # a cell and shrinkage on one thread, from the benchmark
DRAWN_SECONDS = 0.3  # for cells that are drawn, by pair of keys and shrinkage, at most
GRID = tuple(i / 10 for i in range(11))  # shrinkages that cross-validation compares
FOLDS = 5


@dataclass(frozen=True, repr=False)
class LancasterForecast(Result):
    """What the model will need, roughly.

    Made by :func:`bayes_sdc.lancaster_forecast`.

    Parameters
    ----------
    cells : int
        Possible combinations of the levels that occur.
    walked : bool
        Whether all of them are added up; otherwise some are drawn.
    seconds : float
        Time of adding up, which is most of it in a large table.
    memory : int
        Bytes of the tables of pairs of keys.
    """

    cells: int
    walked: bool
    seconds: float
    memory: int

    def __str__(self) -> str:
        """Return the forecast in words."""
        what = "to walk" if self.walked else "of which some are drawn"
        return (
            f"{self.cells:,} cells {what}: about {self.seconds:.1f} s and "
            f"{self.memory / 2**20:,.0f} MiB"
        )

    def _title(self) -> str:
        return "Forecast of the additive model"

    def _facts(self) -> list[Fact]:
        how = "all are added up" if self.walked else "some of them are drawn"
        return [
            ("time", f"about {self.seconds:.1f} s", "of adding up"),
            ("memory", f"{self.memory / 2**20:,.0f} MiB", "of the tables of pairs of keys"),
            ("cells", f"{self.cells:,}", how),
        ]


@checked
def lancaster_forecast(
    microdata: Microdata, *, shrinkage: float | Sequence[float] | Literal["cv"] = 1.0
) -> LancasterForecast:
    """Tell what `lancaster` will need, without doing it.

    Parameters
    ----------
    microdata : Microdata
        From `read_microdata`.
    shrinkage : float, sequence of float, or "cv"
        As for `lancaster`.

    Returns
    -------
    LancasterForecast
        Cells, seconds and bytes.

    Raises
    ------
    InputError
        If the shrinkage is out of range.

    See Also
    --------
    bayes_sdc.lancaster, bayes_sdc.allowed_cells

    References
    ----------
    Takemura (2001), whose model it is.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"sex": list("ffffm"), "job": list("cccdd")})
    >>> lancaster_forecast(read_microdata(people, keys=["sex", "job"])).cells
    4
    """
    sizes = [len(labels) for labels in labels_of(microdata)]
    cells = math.prod(sizes)
    walks = int((shrinkages(shrinkage) > 0).sum())  # 0 has no negative cells
    if isinstance(shrinkage, str):
        walks *= FOLDS + 1
    walked = cells <= WALKED_CELLS
    pairs = [a * b for a, b in combinations(sizes, 2)]
    seconds = (
        cells * NANOSECONDS * 1e-9 / numba.get_num_threads()
        if walked
        else DRAWN_SECONDS * len(pairs)
    )
    # proportions, terms and the walk's own copy of these, and what is at work for the largest pair
    memory = 24 * sum(pairs) + 16 * max(pairs, default=0)
    return LancasterForecast(cells, walked, walks * seconds, memory)


def shrinkages(shrinkage: Any) -> np.ndarray:
    """Return the shrinkages that are meant, or refuse them."""
    if isinstance(shrinkage, str):
        if shrinkage != "cv":
            raise InputError(f"shrinkage is numbers from 0 to 1, or 'cv'; it is {shrinkage!r}")
        return np.array(GRID)
    try:
        grid = np.atleast_1d(np.asarray(shrinkage, float))
    except (TypeError, ValueError):
        grid = np.array([np.nan])
    if grid.ndim != 1 or not len(grid) or not ((grid >= 0) & (grid <= 1)).all():
        raise InputError(f"shrinkage is numbers from 0 to 1, or 'cv'; it is {shrinkage!r}")
    if len(np.unique(grid)) < len(grid):
        raise InputError(f"shrinkage names a number twice: {shrinkage!r}")
    return grid


def refuse(microdata: Microdata) -> None:
    """Raise where the tables of pairs of keys are too large, and name the largest pair."""
    found = lancaster_forecast(microdata)
    if found.memory <= MEMORY:
        return
    sizes = dict(zip(microdata.keys, map(len, labels_of(microdata)), strict=True))
    first, second = sorted(sizes, key=lambda key: -sizes[key])[:2]
    raise InputError(
        f"lancaster holds a table for each pair of keys: {found.memory / 2**20:,.0f} MiB, of at "
        f"most {MEMORY / 2**20:,.0f}. The largest are of {first!r} with {sizes[first]:,} levels "
        f"and {second!r} with {sizes[second]:,}. Remedy: group levels, or leave one of them out"
    )
