"""Forms of tables besides CSV and Parquet, each read as a data frame."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.io.databases import is_database, read_query
from bayes_sdc.io.fixed_width import read_fixed_width
from bayes_sdc.io.form import FileForm
from bayes_sdc.io.text import csv_notes, decode, unpack
from bayes_sdc.io.workbooks import is_workbook, read_workbook

# names of the dimensions of Eurostat, and of what the columns are
EUROSTAT = re.compile(r"\ufeff?([\w,]+)\\(\w+)")
EUROSTAT_CELL = re.compile(r"(:|[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([a-zA-Z]*)")
HIDDEN_FLAG = "c"  # confidential


class Other(NamedTuple):
    """A table in another form, as a frame, and what was seen."""

    frame: pd.DataFrame
    notes: tuple[str, ...]


def read_other(path: Path, data: bytes, form: FileForm) -> Other | None:
    """Read a file that is neither CSV nor Parquet, or return None.

    Parameters
    ----------
    path : Path
        The file.
    data : bytes
        Its content.
    form : FileForm
        What is known of it.

    Raises
    ------
    InputError
        If the file is damaged, a library for it is missing, or what it needs was not said.
    """
    if form.query is not None or is_database(data):
        return Other(*read_query(path, data, form.query))
    if is_workbook(path, data):
        return Other(*read_workbook(path, data, form))
    if form.layout is not None:
        return Other(*read_fixed_width(unpack(data, path.name)[0], path.name, Path(form.layout)))
    if ".tsv" in path.name or EUROSTAT.match(data[:500].decode("latin-1")):
        text, encoding = decode(unpack(data, path.name)[0], path.name)
        if EUROSTAT.match(text):
            frame, notes = _eurostat(text, path.name)
            return Other(frame, (*notes, *csv_notes(encoding, ",", 0)))
    return None


def long_form(
    frame: pd.DataFrame, name: str, wanted: Sequence[str]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Turn a matrix into a row for each cell; blank cells are left out, and counted.

    Parameters
    ----------
    frame : DataFrame
        First column: origins; header: destinations.
    name : str
        Of the file, for messages.
    wanted : sequence of str
        Names for origin, destination and count, in this order.

    Examples
    --------
    >>> matrix = pd.DataFrame({"": ["A", "B"], "A": ["", "3"], "B": ["4", "5"]})
    >>> long_form(matrix, "m.csv", ["from", "to", "n"])[0].to_numpy().tolist()
    [['A', 'B', '4'], ['B', 'A', '3'], ['B', 'B', '5']]
    """
    if len(wanted) != 3 or frame.shape[1] < 2:
        raise InputError(
            f"{name}: a matrix gives origin, destination and count, and nothing besides; it needs "
            "a column of origins and one for each destination"
        )
    names = [str(column) for column in frame.columns[1:]]
    if len(set(names)) < len(names):
        twice = next(one for one in names if names.count(one) > 1)
        raise InputError(f"{name}: two columns of the matrix are called {twice!r}; rename one")
    cells = frame.iloc[:, 1:].to_numpy(dtype=object).reshape(-1)
    origins = frame.iloc[:, 0].to_numpy(dtype=object).repeat(len(names))
    long = pd.DataFrame(dict(zip(wanted, (origins, names * len(frame), cells), strict=True)))
    count = long[wanted[2]]
    blank = count.isna() | (count.astype(str).str.strip() == "")
    notes = [f"a matrix of {len(frame):,} origins and {len(names):,} destinations, read by cell"]
    if blank.any():
        notes.append(f"{int(blank.sum()):,} blank cells of the matrix are left out")
    return long[~blank].reset_index(drop=True), tuple(notes)


def _eurostat(text: str, name: str) -> Other:
    """Read Eurostat's own form: dimensions in one column, a column a period, flags in the cells."""
    lines = [line.split("\t") for line in text.splitlines() if line.strip()]
    match = EUROSTAT.match(lines[0][0])
    assert match is not None  # noqa: S101 this is how the form was found
    dimensions, of_columns = match[1].split(","), match[2]
    periods = [period.strip() for period in lines[0][1:]]
    rows: list[list[str]] = []
    absent = 0
    for number, line in enumerate(lines[1:], start=2):
        codes = [code.strip() for code in line[0].split(",")]
        if len(codes) != len(dimensions) or len(line) != len(periods) + 1:
            raise InputError(
                f"{name}: row {number - 1} has {len(codes)} dimensions and {len(line) - 1} values, "
                f"the header {len(dimensions)} and {len(periods)}; load the file again"
            )
        for period, cell in zip(periods, line[1:], strict=True):
            found = EUROSTAT_CELL.fullmatch(cell.strip())
            value, flag = (cell.strip(), "") if found is None else found.groups()
            if value == ":" and HIDDEN_FLAG not in flag:
                absent += 1  # there is no such figure
            else:
                rows.append([*codes, period, f": {flag}" if value == ":" else value, flag])
    columns = [*dimensions, of_columns, "OBS_VALUE", "OBS_FLAG"]
    notes = [f"Eurostat's form: columns {', '.join(columns)}"]
    if absent:
        notes.append(f"{absent:,} cells without a figure (:) are left out")
    return Other(pd.DataFrame(rows, columns=columns, dtype=str), tuple(notes))
