"""Size indices: how many combinations occur once, twice, and so on; also with an open last class.

Published tables end with a class such as "11 or more". The records in it are known, since the
sizes add up to the file, but not how they are spread over its combinations. Statements about such a
table hold for all ways to spread them, its completions, of which two are extreme: as equal as
possible, and all but one combination of the least size.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import chdtrc

from bayes_sdc.errors import InputError
from bayes_sdc.results import Fact, Result, or_undefined

LEAST_EXPECTED = 5.0  # in a class of the goodness of fit


class SizeTable(NamedTuple):
    """Checked size indices."""

    size: np.ndarray  # (class,) ascending
    cells: np.ndarray  # (class,) combinations of this size, above 0
    n: int  # records
    N: int  # people in the population
    open_size: int  # least size in the open class; 0 without one
    open_cells: int
    open_records: int
    notes: tuple[str, ...]

    @property
    def uniques(self) -> int:
        """Combinations that occur once."""
        return int(self.cells[self.size == 1].sum())

    @property
    def combinations(self) -> int:
        """Combinations that occur at all."""
        return int(self.cells.sum()) + self.open_cells


@dataclass(frozen=True, eq=False, repr=False)
class SizeModel(Result):
    """What a model of the size indices says about the sample uniques.

    Made by :func:`bayes_sdc.ewens` and its like.

    Parameters
    ----------
    model, estimator : str
        Names.
    assumption : str
        What the number rests on, in one line.
    parameters, standard_errors : dict
        By name; standard errors are asymptotic, and left out where there is none.
    probability : float or None
        That a sample unique is a population unique, the same for all of them, in [0, 1]. None when
        the estimator has no solution for these indices.
    expected : float or None
        Expected number of sample uniques that are population uniques.
    expected_error : float or None
        Standard error of it from the parameters; not the spread of the number itself.
    expected_range : tuple of float or None
        Least and largest value over all completions of an open class; None without one.
    population_uniques : float or None
        Expected number of uniques in the whole population, in the file or not.
    fit : DataFrame or None
        Index ``size``; observed and expected combinations. Classes are joined until five are
        expected.
    fit_p : float or None
        Approximate p-value of the fit (chi-square); small: the model does not fit these indices.
    notes : tuple of str
        What was assumed about the indices.
    """

    model: str
    estimator: str
    assumption: str
    parameters: dict[str, float]
    standard_errors: dict[str, float]
    probability: float | None
    expected: float | None
    expected_error: float | None
    expected_range: tuple[float, float] | None
    population_uniques: float | None
    fit: pd.DataFrame | None
    fit_p: float | None
    notes: tuple[str, ...]

    def __float__(self) -> float:
        """Return the expected number; an undefined one raises."""
        if self.expected is None:
            raise InputError("undefined: " + "; ".join(self.notes))
        return self.expected

    def __str__(self) -> str:
        """Return the estimate in words."""
        if self.expected is None:
            return f"{self.model} ({self.estimator}): undefined; " + "; ".join(self.notes)
        error = (
            "" if self.expected_error is None else f" (standard error {self.expected_error:.3g})"
        )
        spread = (
            ""
            if self.expected_range is None or self.expected_range[0] == self.expected_range[1]
            else ", {:.4g} to {:.4g} over the open class".format(*self.expected_range)
        )
        return f"{self.model} ({self.estimator}): {self.expected:.4g}{error}{spread}"

    def _title(self) -> str:
        return f"{self.model} ({self.estimator}): {self.assumption}"

    def _facts(self) -> list[Fact]:
        facts: list[Fact] = [
            (
                "expected",
                or_undefined(self.expected, ",.4g"),
                "sample uniques that are population uniques",
            ),
            ("probability", or_undefined(self.probability, ".4g"), "the same for each of them"),
            ("standard error", or_undefined(self.expected_error, ",.3g"), "from the parameters"),
            (
                "population uniques",
                or_undefined(self.population_uniques, ",.4g"),
                "in the file or not",
            ),
            ("p of the fit", or_undefined(self.fit_p, ".3g"), "small: the model does not fit"),
        ]
        if self.expected_range is not None:
            spread = "{:.4g} to {:.4g}".format(*self.expected_range)
            facts.append(("range", spread, "of the expected number, over the open class"))
        for name, value in self.parameters.items():
            error = or_undefined(self.standard_errors.get(name), ".3g")
            facts.append((name, f"{value:.5g}", f"parameter, standard error {error}"))
        return facts

    def __repr__(self) -> str:
        return f"<SizeModel: {self}>"


EVERY_UNIQUE = (
    "every record is unique: the file shows no combination twice, so it does not tell how many "
    "people share one"
)


def without_solution(
    model: str, table: SizeTable, *, estimator: str, assumption: str, reason: str
) -> SizeModel:
    """Return a model that has no estimate for these indices, with the reason.

    Parameters
    ----------
    model, estimator, assumption : str
        As of the model.
    table : SizeTable
        The indices.
    reason : str
        Why nothing can be estimated.
    """
    return SizeModel(
        model=model,
        estimator=estimator,
        assumption=assumption,
        parameters={},
        standard_errors={},
        probability=None,
        expected=None,
        expected_error=None,
        expected_range=None,
        population_uniques=None,
        fit=None,
        fit_p=None,
        notes=(*table.notes, reason),
    )


def check_sizes(size_indices: Any, n: int, N: int) -> SizeTable:
    """Check size indices against the number of records.

    Parameters
    ----------
    size_indices : mapping, Series or sequence
        Combinations by size, or in the order of sizes from 1. A last key such as ``"11+"``, or a
        last class that leaves records over, is open: that size or more.
    n : int
        Records in the file.
    N : int
        People in the population.

    Raises
    ------
    InputError
        If numbers are negative, no whole numbers, or do not add up to the records.

    Examples
    --------
    >>> table = check_sizes({1: 3, "2+": 1}, n=6, N=100)
    >>> table.open_size, table.open_cells, table.open_records
    (2, 1, 3)
    """
    for name, number in (("n", n), ("N", N)):
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
            raise InputError(f"{name} must be a whole number, 1 or more; it is {number!r}")
    if n > N:
        raise InputError(f"n = {n:,} records are more than the N = {N:,} people in the population")
    pairs, open_size, open_cells = _pairs(size_indices)
    size = np.array([s for s, c in pairs if c], np.int64)
    cells = np.array([c for s, c in pairs if c], np.int64)
    left = int(n) - int(size @ cells)
    notes: tuple[str, ...] = ()
    if not open_size and left > 0 and len(size):
        open_size, open_cells = int(size[-1]), int(cells[-1])
        left += open_size * open_cells
        size, cells = size[:-1], cells[:-1]
        notes = (
            f"the sizes leave {left - open_size * open_cells:,} of {n:,} records over, so the last "
            f"class is taken as {open_size} or more",
        )
    if left < open_size * open_cells or (not open_cells and left):
        raise InputError(
            f"the size indices hold {int(n) - left + open_size * open_cells:,} records or more, "
            f"and n is {n:,}; the sizes times their numbers must add up to the records"
        )
    return SizeTable(size, cells, int(n), int(N), open_size, open_cells, left, notes)


def _pairs(size_indices: Any) -> tuple[list[tuple[int, int]], int, int]:
    """Sizes and numbers in ascending order, and the open class."""
    if isinstance(size_indices, Mapping | pd.Series):
        items = list(size_indices.items())
    elif isinstance(size_indices, Sequence | np.ndarray) and not isinstance(size_indices, str):
        items = list(enumerate(size_indices, start=1))
    else:
        raise InputError(f"size_indices must be numbers by size; they are {size_indices!r}")
    pairs: list[tuple[int, int]] = []
    opened: list[tuple[int, int]] = []
    for key, cells in items:
        text = str(key).strip().removesuffix("or more").strip()
        is_open = text.endswith("+") or text != str(key).strip()
        try:
            size, number = int(text.removesuffix("+")), int(cells)
        except (TypeError, ValueError):
            raise InputError(
                f"size_indices: {key!r}: {cells!r} is not a whole number of combinations"
            ) from None
        if size < 1 or number < 0 or number != cells:
            raise InputError(
                f"size_indices: {key!r}: {cells!r}; sizes are whole numbers from 1 and their "
                "numbers whole numbers from 0"
            )
        (opened if is_open else pairs).append((size, number))
    pairs.sort()
    sizes = [size for size, _ in pairs]
    if (
        len(opened) > 1
        or len(set(sizes)) < len(sizes)
        or (opened and max(sizes, default=0) >= opened[0][0])
    ):
        raise InputError(
            "size_indices must name each size once, and at most one open class beyond the others"
        )
    return pairs, *(opened[0] if opened and opened[0][1] else (0, 0))


def completions(table: SizeTable) -> list[SizeTable]:
    """Return the table without open class, or its two extreme completions.

    For a sum over combinations of a convex or concave function of their size, every completion lies
    between these two: the one as equal as possible, and the one with all but one of the least size.

    Examples
    --------
    >>> for done in completions(check_sizes({1: 3, "2+": 2}, n=10, N=100)):
    ...     print(done.size.tolist(), done.cells.tolist())
    [1, 3, 4] [3, 1, 1]
    [1, 2, 5] [3, 1, 1]
    """
    if not table.open_cells:
        return [table]
    share, more = divmod(table.open_records, table.open_cells)
    largest = table.open_records - table.open_size * (table.open_cells - 1)
    return [
        _closed(table, [(share, table.open_cells - more), (share + 1, more)]),
        _closed(table, [(table.open_size, table.open_cells - 1), (largest, 1)]),
    ]


def _closed(table: SizeTable, extra: list[tuple[int, int]]) -> SizeTable:
    counts = dict(zip(table.size.tolist(), table.cells.tolist(), strict=True))
    for size, cells in extra:
        counts[size] = counts.get(size, 0) + cells
    kept = {size: cells for size, cells in sorted(counts.items()) if cells}
    return table._replace(
        size=np.array(list(kept), np.int64),
        cells=np.array(list(kept.values()), np.int64),
        open_size=0,
        open_cells=0,
        open_records=0,
    )


def goodness_of_fit(
    table: SizeTable, expected: Callable[[np.ndarray], np.ndarray], combinations: float, fitted: int
) -> tuple[pd.DataFrame, float | None]:
    """Observed and expected size indices, and an approximate p-value.

    Parameters
    ----------
    table : SizeTable
        Observed.
    expected : callable
        Expected number of combinations by size.
    combinations : float
        Expected number of combinations in all.
    fitted : int
        Parameters that were estimated.
    """
    last = table.open_size - 1 if table.open_size else max(int(table.size.max(initial=1)), 1)
    last = min(last, 10) if last > 10 else last
    sizes = np.arange(1, last + 1)
    observed = np.zeros(last + 1)
    inside = table.size <= last
    observed[table.size[inside] - 1] = table.cells[inside]
    observed[last] = table.combinations - observed[:last].sum()
    by_size = expected(sizes)
    by_size = np.append(by_size, max(combinations - by_size.sum(), 0.0))
    labels = [*map(str, sizes), f"{last + 1}+"]
    frame = pd.DataFrame(
        {"observed": observed, "expected": by_size}, index=pd.Index(labels, name="size")
    )
    groups = joined(by_size)
    o = np.array([observed[group].sum() for group in groups])
    e = np.array([by_size[group].sum() for group in groups])
    freedom = len(groups) - fitted
    if freedom < 1 or (e <= 0).any():
        return frame, None
    return frame, float(chdtrc(freedom, ((o - e) ** 2 / e).sum()))


def joined(expected: npt.NDArray[np.float64]) -> list[list[int]]:
    """Join neighbouring classes until each expects enough; every class is in one group.

    Examples
    --------
    >>> joined(np.array([40.0, 9.0, 3.0, 1.0, 2.0]))
    [[4, 3, 2], [1], [0]]
    >>> joined(np.array([1.0, 9.0, 30.0]))
    [[2], [1, 0]]
    """
    # from the end, so that what is joined are the rare large sizes
    groups, total = [[len(expected) - 1]], expected[-1]
    for place in range(len(expected) - 2, -1, -1):
        if total < LEAST_EXPECTED:
            groups[-1].append(place)
            total += expected[place]
        else:
            groups.append([place])
            total = expected[place]
    if total < LEAST_EXPECTED and len(groups) > 1:
        few = groups.pop()
        groups[-1] += few
    return groups
