"""Reading origin-destination tables: check them, and separate the small cells from the rest.

A table has one row for each pair of areas. Rows fall in four classes: *safe* (count above
``high``), *small* (count from ``low`` to ``high``, the cells that get protected), *set aside* (the
origin is the destination) and *below* (count under ``low``). Codes are text throughout. Nothing is
corrected or dropped silently.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.code_notes import ask_about_ends, code_notes, own_area_across_groups
from bayes_sdc.flows.table.labels import labelled_cells
from bayes_sdc.io.columns import (
    Codes,
    Problem,
    duplicates,
    own_area,
    read_codes,
    read_counts,
    refuse_problems,
)
from bayes_sdc.io.form import UNTOLD, FileForm
from bayes_sdc.io.tables import Dialect, Loaded, encode, load
from bayes_sdc.io.text import find_columns
from bayes_sdc.results import Fact, Result
from bayes_sdc.runs import write_bytes

WIDEST_RANGE = 150  # the truncated likelihood sums over every count in the range


@dataclass(frozen=True, eq=False, repr=False)
class FlowTable(Result):
    """A checked origin-destination table; made by `read_flows`.

    Parameters
    ----------
    frame
        The table as read: all columns, original order, the count column numeric.
    origin, destination, count, groups
        Column names.
    low, high
        Counts from ``low`` to ``high`` are small.
    cells
        The small cells, sorted by group, origin and destination as text. The index ``cell`` holds
        a label, ``row`` the position in ``frame`` (0-based), ``group``, ``origin`` and
        ``destination`` text, and ``y`` is the count less ``low``.
    covariates
        Covariates of each small cell, in the order of ``cells`` and standardised; no column unless
        :func:`bayes_sdc.with_covariates` adds some.
    n_read, n_safe, n_small, n_set_aside, n_below
        Numbers of rows; the last four add up to the first.
    own_areas
        Codes of the areas whose own-area row was set aside.
    source
        File name, or ``"DataFrame"``.
    sha256
        Of the bytes of the file; of a frame, of its sorted codes and counts.
    notes
        What the user should know about the input.
    dialect
        Format of the file.
    withheld
        Positions in ``frame`` of rows whose count is above ``high`` and rests on too few people:
        no release shows it.
    totals, total_columns
        Positions in ``frame`` of rows that are sums of others, and names of columns of such sums,
        that are published as they are; none unless :func:`bayes_sdc.settle_totals` found some.
    searched
        Cached result of the search for totals in ``frame``; empty before the search.
    path
        Of the file; empty for a frame.
    impossible
        Values of ``y`` that a rule of the model excludes, which everybody knows.
    """

    frame: pd.DataFrame
    origin: str
    destination: str
    count: str
    groups: tuple[str, ...]
    low: int
    high: int
    cells: pd.DataFrame
    covariates: pd.DataFrame
    n_read: int
    n_safe: int
    n_small: int
    n_set_aside: int
    n_below: int
    own_areas: tuple[str, ...]
    source: str
    sha256: str
    notes: tuple[str, ...]
    dialect: Dialect
    withheld: tuple[int, ...] = ()
    totals: tuple[int, ...] = ()
    total_columns: tuple[str, ...] = ()
    searched: list[Any] = field(default_factory=list)
    path: str = ""
    impossible: tuple[int, ...] = ()
    threshold_column: str | None = None

    @property
    def k(self) -> int:
        """The largest ``y``: ``high - low``."""
        return self.high - self.low

    def summary(self) -> str:
        """Return a few lines on what was read: row classes, groups and notes.

        Returns
        -------
        str
            Text for the console.
        """
        own = ", ".join(self.own_areas[:5]) + (", ..." if len(self.own_areas) > 5 else "")
        rows = [
            (f"safe (count above {self.high})", self.n_safe, ""),
            (f"small (count {self.low} to {self.high})", self.n_small, ""),
            ("set aside (own area)", self.n_set_aside, f"  {own}" if own else ""),
            (f"below {self.low}", self.n_below, ""),
        ]
        by = f", by {' > '.join(self.groups)}" if self.groups else ""
        return "\n".join(
            [
                f"{self.source}: {self.n_read:,} rows read",
                *(f"  {what:<24}{number:>10,}{more}" for what, number, more in rows),
                f"  {'groups with small cells':<24}{self.cells['group'].nunique():>10,}{by}",
                *(f"note: {note}" for note in self.notes),
            ]
        )

    def write(self, frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
        """Write a frame in the format of the input, completely or not at all.

        Parameters
        ----------
        frame
            A table with the columns of the input, possibly with more.
        path
            Target; an existing file is replaced. ``dialect.suffix`` is the usual ending.
        """
        write_bytes(Path(path), encode(frame, self.dialect))

    def _title(self) -> str:
        return f"Flow table of {self.source}"

    def _facts(self) -> list[Fact]:
        groups = " > ".join(self.groups) or "none: all cells together"
        return [
            ("rows read", f"{self.n_read:,}", "the next four add up to them"),
            ("small", f"{self.n_small:,}", f"count {self.low} to {self.high}: to be protected"),
            ("safe", f"{self.n_safe:,}", f"count above {self.high}: released as it is"),
            ("set aside", f"{self.n_set_aside:,}", "origin is destination: unchanged"),
            ("below", f"{self.n_below:,}", f"count under {self.low}: unchanged"),
            ("groups", f"{self.cells['group'].nunique():,}", f"with small cells, by {groups}"),
        ]


@checked
def read_flows(
    source: Any,
    *,
    origin: str,
    destination: str,
    count: str,
    groups: str | Sequence[str] | None = None,
    low: int = 1,
    high: int = 9,
    threshold_column: str | None = None,
    form: FileForm | None = None,
) -> FlowTable:
    """Read an origin-destination table and find its small cells.

    Small cells are labelled ``origin>destination``. When a pair of areas occurs in more than one
    group (say, years), the labels of the whole table become ``group|origin>destination``. A group
    is labelled by the values of its columns joined by ``>``, or ``all`` without group columns.

    Parameters
    ----------
    source
        Path of a CSV file (also gzipped), a Parquet file, an Excel workbook or a table of Eurostat,
        or a data frame: pandas, polars, pyarrow, a relation of DuckDB or any other that narwhals
        knows. A frame is not modified.
    origin, destination, count
        Names of the columns.
    groups
        Names of the columns whose combinations make a group, such as origin and destination state.
    low, high
        Counts from ``low`` to ``high``, both included, are small and will be protected.
    threshold_column
        Column with the number of people behind a weighted count. A count above ``high`` that rests
        on ``high`` people or fewer is not safe: no release shows it.
    form
        How to read the file, where it does not say so itself.

    Returns
    -------
    FlowTable
        The table, its small cells, and notes.

    Raises
    ------
    InputError
        If the table cannot be used. One error lists every kind of problem, with rows and remedy.

    See Also
    --------
    bayes_sdc.with_covariates, bayes_sdc.fit_flows, bayes_sdc.protect_flows

    Examples
    --------
    >>> import pandas as pd
    >>> flows = pd.DataFrame(
    ...     {
    ...         "origin": ["01001", "01001", "01003", "01003"],
    ...         "destination": ["01001", "01003", "01001", "01005"],
    ...         "count": [512, 3, 40, 1],
    ...     }
    ... )
    >>> table = read_flows(flows, origin="origin", destination="destination", count="count")
    >>> print(table.summary())
    DataFrame: 4 rows read
      safe (count above 9)             1
      small (count 1 to 9)             2
      set aside (own area)             1  01001
      below 1                          0
      groups with small cells          1
    >>> table.cells["y"].to_dict()
    {'01001>01003': 2, '01003>01005': 0}
    """
    _check_range(low, high)
    group_columns = (groups,) if isinstance(groups, str) else tuple(groups or ())
    of_people = () if threshold_column is None else (threshold_column,)
    wanted = (origin, destination, count, *group_columns, *of_people)
    loaded = load(source, wanted, form)
    _check_columns(loaded, wanted)
    if loaded.frame.empty:
        raise InputError(f"{loaded.source}: a header but no rows")

    froms, tos, *by = (
        read_codes(loaded.frame[name], name) for name in (origin, destination, *group_columns)
    )
    form = form or UNTOLD
    counts, count_problems = read_counts(loaded.frame[count], count, form)
    problems = [problem for codes in (froms, tos, *by) for problem in codes.problems]
    problems += count_problems
    problems += duplicates(froms, tos, by, wanted)
    own = own_area(froms, tos)
    problems += own_area_across_groups(own, by, group_columns, (froms, tos))
    people, people_problems = _read_people(loaded, threshold_column, form)
    problems += people_problems
    refuse_problems(loaded.source, problems, loaded.lines)
    ask_about_ends(
        loaded.source, loaded.frame, (origin, destination, count), own, (froms, tos), group_columns
    )

    few = np.zeros(len(counts), bool) if people is None else (people <= high) & (counts > high)
    small = ~own & (counts >= low) & (counts <= high)
    below = ~own & (counts < low)
    cells = labelled_cells(np.flatnonzero(small), froms, tos, by, counts - low, loaded.source)
    notes = (
        *loaded.notes,
        *code_notes((origin, destination, *group_columns), (froms, tos, *by)),
        *_count_notes(counts, own, below, low, high, len(cells)),
        *_few_notes(few, high, threshold_column),
    )
    return FlowTable(
        frame=_with_counts(loaded, count, counts),
        origin=origin,
        destination=destination,
        count=count,
        groups=group_columns,
        low=int(low),
        high=int(high),
        cells=cells,
        covariates=pd.DataFrame(index=cells.index),
        n_read=len(counts),
        n_safe=int(np.sum(~own & (counts > high))),
        n_small=len(cells),
        n_set_aside=int(own.sum()),
        n_below=int(below.sum()),
        own_areas=tuple(froms.labels[i] for i in np.unique(froms.places[own])),
        source=loaded.source,
        sha256=loaded.sha256 or _hash((*by, froms, tos), counts),
        notes=notes,
        dialect=loaded.dialect,
        withheld=tuple(np.flatnonzero(few).tolist()),
        threshold_column=threshold_column,
        path=loaded.path,
    )


def _read_people(
    loaded: Loaded, column: str | None, form: FileForm
) -> tuple[npt.NDArray[np.int64] | None, tuple[Problem, ...]]:
    """Read the numbers of people, where a column has them."""
    if column is None:
        return None, ()
    return read_counts(loaded.frame[column], column, form)


def _check_range(low: int, high: int) -> None:
    for name, value in (("low", low), ("high", high)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise InputError(f"{name} must be a whole number, got {value!r}")
    if low < 0:
        raise InputError(f"low must be 0 or more, got {low}")
    if low >= high:
        raise InputError(f"low must be below high, got low={low} and high={high}")
    if high - low > WIDEST_RANGE:
        raise InputError(
            f"high - low must be at most {WIDEST_RANGE}, got {high - low}: "
            "larger counts are not small cells"
        )


def _check_columns(loaded: Loaded, wanted: tuple[str, ...]) -> None:
    available = list(loaded.frame.columns)
    for name in wanted:
        if not isinstance(name, str):
            raise InputError(f"column names must be text, got {name!r}")
        if wanted.count(name) > 1:
            raise InputError(
                f"column {name!r} is named twice: origin, destination, count and groups "
                "must be different columns"
            )
        find_columns(loaded.source, available, (name,))


def _count_notes(
    counts: npt.NDArray[np.int64],
    own: npt.NDArray[np.bool_],
    below: npt.NDArray[np.bool_],
    low: int,
    high: int,
    n_small: int,
) -> Iterable[str]:
    own_small = int(np.sum(own & (counts >= low) & (counts <= high)))
    if own_small:
        has = "row has" if own_small == 1 else "rows have"
        yield (
            f"{own_small:,} own-area {has} a small count, protected by a model of "
            f"{'its' if own_small == 1 else 'their'} own unless it is asked to withhold or publish"
        )
    if below.any():
        what = "zeros are not protected" if low == 1 else f"counts below {low} are not protected"
        rows = "row" if below.sum() == 1 else "rows"
        yield f"{what}: {below.sum():,} {rows} will be returned unchanged"
    if not n_small:
        rest = "only those of own areas are protected" if own_small else "nothing is protected"
        yield f"no small cells: {rest}"


def _few_notes(
    few: npt.NDArray[np.bool_], high: int, threshold_column: str | None
) -> Iterable[str]:
    if few.any():
        rows = "1 count" if few.sum() == 1 else f"{few.sum():,} counts"
        yield f"{rows} above {high} of at most {high} in {threshold_column!r} will be left blank"


def _with_counts(loaded: Loaded, count: str, counts: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Return the frame with numeric counts; numbers of a pandas frame keep their type."""
    given = loaded.frame[count].dtype
    if pd.api.types.is_numeric_dtype(given) and not isinstance(given, pd.ArrowDtype):
        return loaded.frame
    return loaded.frame.assign(**{count: counts})


def _hash(codes: Sequence[Codes], counts: npt.NDArray[np.int64]) -> str:
    """Hash codes and counts; sorted, so that the order of the rows does not matter."""
    columns = [*(c.texts() for c in codes), counts.astype(str)]
    lines = sorted("\x1f".join(row) for row in zip(*columns, strict=True))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
