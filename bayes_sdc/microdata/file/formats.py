"""Formats of microdata files at the edge: only the named columns are read, as the text they are.

CSV goes through Arrow, which skips the other columns, is fast at a million records and refuses
ragged lines; Stata, SPSS and SAS go through pyreadstat, an optional extra.
"""

import csv
import hashlib
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import narwhals as nw
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from bayes_sdc.errors import InputError
from bayes_sdc.io.csv_text import CsvText, not_closed, open_csv, ragged
from bayes_sdc.io.foreign import unpack_table
from bayes_sdc.io.form import UNTOLD, FileForm
from bayes_sdc.io.other_forms import read_other
from bayes_sdc.io.text import (
    csv_notes,
    damaged,
    find_columns,
    from_arrow,
    read_bytes,
    without_views,
)
from bayes_sdc.microdata.file.columns import text_of

STATISTICAL = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
}
UNREAD = (".xpt", ".xport", ".sas7bcat")


@dataclass(frozen=True, eq=False)
class Columns:
    """The named columns of a source, and what was seen on the way.

    Parameters
    ----------
    frame
        The named columns; those of a CSV file are text.
    source
        File name, or ``"DataFrame"``.
    sha256
        Of the bytes of the file; a frame has none.
    labels
        Value labels that a Stata, SPSS or SAS file gives its codes, by column and text of the code.
    notes
        Encoding, separator and the like.
    column_notes
        Values that a Stata or SPSS file itself declares missing, by column.
    """

    frame: pd.DataFrame
    source: str
    sha256: str | None = None
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    column_notes: dict[str, tuple[str, ...]] = field(default_factory=dict)


def load_columns(source: Any, wanted: Sequence[str], form: FileForm | None = None) -> Columns:
    """Read the columns ``wanted`` of a path or of a data frame of any kind narwhals knows.

    Raises
    ------
    InputError
        If the source cannot be read or lacks a column.
    """
    if isinstance(source, str | os.PathLike):
        return _load_file(Path(source), wanted, form or UNTOLD)
    if isinstance(source, pd.DataFrame):
        find_columns("DataFrame", list(source.columns), wanted)
        some = source.loc[:, list(wanted)].reset_index(drop=True)
        return Columns(without_views(some), "DataFrame")
    if isinstance(source, pa.Table):  # narwhals refuses two columns of one name
        find_columns("DataFrame", source.column_names, wanted)
        return Columns(from_arrow(source.select(list(wanted))), "DataFrame")
    try:
        native = nw.from_native(source)
    except TypeError as error:
        kind = type(source).__name__
        raise InputError(f"expected a path or a data frame, got {kind}") from error
    names = native.collect_schema().names()
    find_columns("DataFrame", names, wanted)
    chosen = native.select(*wanted)
    eager = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
    return Columns(from_arrow(eager.to_arrow()), "DataFrame")


def _load_file(path: Path, wanted: Sequence[str], form: FileForm) -> Columns:
    if path.suffix.lower() in STATISTICAL:
        return _read_statistical(path, wanted)
    _refuse_format(path)
    data = read_bytes(path)
    sha256 = hashlib.sha256(data).hexdigest()
    if (other := read_other(path, data, form)) is not None:
        find_columns(path.name, list(other.frame.columns), wanted)
        return Columns(other.frame.loc[:, list(wanted)], path.name, sha256, notes=other.notes)
    data, _ = unpack_table(data, path.name)
    if data.startswith(b"PAR1"):
        return Columns(_read_parquet(data, path.name, wanted), path.name, sha256)
    frame, notes = _read_csv(data, path.name, wanted, form)
    return Columns(frame, path.name, sha256, notes=notes)


def _refuse_format(path: Path) -> None:
    """Refuse by name what would pass for a damaged CSV file."""
    kinds = [suffix.lower() for suffix in path.suffixes[-2:]]
    if kinds[-1:] and kinds[-1] in UNREAD:
        raise InputError(
            f"{path.name}: {kinds[-1]} files are not read; save the data as .sas7bdat, CSV or "
            "Parquet"
        )
    if len(kinds) == 2 and kinds[0] in STATISTICAL and kinds[1] in (".gz", ".zip", ".bz2", ".xz"):
        raise InputError(
            f"{path.name}: a compressed {kinds[0]} file; unpack it first (only CSV and Parquet are "
            "read from .gz)"
        )


def _read_parquet(data: bytes, name: str, wanted: Sequence[str]) -> pd.DataFrame:
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        find_columns(name, file.schema_arrow.names, wanted)
        table = file.read(columns=list(wanted)).select(list(wanted))
        table.validate(full=True)  # or text that is no UTF-8 would fail where it is used
        return from_arrow(table)
    except InputError:
        raise
    # a damaged file makes Arrow raise errors that are documented nowhere
    except Exception as error:
        raise damaged(name, "Parquet", error) from error


def _read_csv(
    data: bytes, name: str, wanted: Sequence[str], form: FileForm
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    found = open_csv(data, name, wanted, form)
    places = [str(place) for place in find_columns(name, found.header, wanted)]
    one_column = len(found.header) == 1
    blank = _blank_lines(found, name)
    wrong: list[str] = []
    longer: set[tuple[int, str]] = set()

    def refuse(row: pa_csv.InvalidRow) -> str:
        wrong.append(f"row {row.number}, blank lines not counted, has {row.actual_columns}")
        longer.add((row.actual_columns - row.expected_columns, row.text[-1:]))
        return "skip"  # and refused below, once all are counted

    if found.body.strip("\r\n") or (one_column and found.body):
        try:
            table = pa_csv.read_csv(
                pa.BufferReader(found.body.encode()),
                # names are places, because a header may hold a name twice
                pa_csv.ReadOptions(
                    column_names=[str(place) for place in range(len(found.header))],
                    use_threads=False,
                ),
                pa_csv.ParseOptions(
                    delimiter=found.separator,
                    newlines_in_values=True,
                    # in a file of one column a blank line is a record whose only cell is empty
                    ignore_empty_lines=not one_column,
                    invalid_row_handler=refuse,
                ),
                pa_csv.ConvertOptions(
                    include_columns=places,
                    column_types={place: pa.string() for place in places},
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowException as error:
            raise damaged(name, "CSV", error) from error
    else:
        table = pa.table({place: pa.array([], pa.string()) for place in places})
    if wrong:
        ends = longer == {(1, found.separator)} and table.num_rows == 0
        raise ragged(name, found.header, found.separator, len(wrong), wrong[0], ends=ends)
    skipped = blank if table.num_rows and not one_column else 0
    notes = csv_notes(found.encoding, found.separator, skipped, usual=True)
    if one_column and blank:
        notes = (*notes, f"{blank:,} blank lines are records with an empty value")
    return from_arrow(table.rename_columns(list(wanted))), notes


def _blank_lines(found: CsvText, name: str) -> int:
    """Count blank lines; an open quotation mark is refused on the way."""
    if '"' not in found.body:
        # what follows the last line end is no line
        return sum(not line.strip("\r") for line in found.body.split("\n")[:-1])
    # Arrow would take an open quotation mark for the end of the file
    stream = io.StringIO(found.body, newline="")
    reader = csv.reader(stream, delimiter=found.separator, strict=True)
    try:
        return sum(not row for row in reader)
    except csv.Error as error:
        raise not_closed(name, found.line + reader.line_num - 1, error) from error


def _read_statistical(path: Path, wanted: Sequence[str]) -> Columns:
    try:
        import pyreadstat
    except ImportError as error:
        raise InputError(
            f"{path.name}: Stata, SPSS and SAS files need the extra 'statistical': "
            "pip install bayes-sdc[statistical]"
        ) from error
    sha256 = hashlib.sha256(read_bytes(path)).hexdigest()
    read: Callable[..., Any] = getattr(pyreadstat, STATISTICAL[path.suffix.lower()])
    columns = list(wanted)
    # format .por has no such reading
    both = {} if path.suffix.lower() == ".por" else {"user_missing": True}
    try:
        _, described = read(str(path), metadataonly=True)
        find_columns(path.name, described.column_names, columns)
        marked, meta = read(str(path), usecols=columns, **both)
        declared = {*meta.missing_ranges, *meta.missing_user_values} & set(columns)
        frame = read(str(path), usecols=columns)[0] if declared else marked
    except InputError:
        raise
    # a damaged file makes pyreadstat raise errors that are documented nowhere
    except Exception as error:
        raise damaged(path.name, path.suffix.lower(), error) from error
    labels = {
        column: {text_of(code) or "": label for code, label in given.items()}
        for column, given in meta.variable_value_labels.items()
        if column in columns
    }
    notes: dict[str, tuple[str, ...]] = {}
    for name in declared:
        codes = marked[name][frame[name].isna() & marked[name].notna()]
        if len(codes):
            notes[name] = (_two_kinds(name, frame[name], codes),)
    return Columns(frame.loc[:, columns], path.name, sha256, labels=labels, column_notes=notes)


def _two_kinds(name: str, column: pd.Series, codes: pd.Series) -> str:
    """Say how many missing values have a code that the file declares missing; others are empty."""
    missing = sum(not (text_of(value) or "").strip() for value in column)
    listed = ", ".join(
        f"{code!r} {times:,} times"
        for code, times in codes.map(text_of).value_counts().sort_index().items()
    )
    return (
        f"column {name!r}: {len(codes):,} of the missing values have codes that the file itself "
        f"declares missing ({listed}), {missing - len(codes):,} are empty"
    )
