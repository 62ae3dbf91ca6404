"""File formats at the edge: bytes to a data frame, and back in the same format.

CSV is read by the standard ``csv`` module in strict mode, not by pandas, because every cell must
stay the text it is, a ragged line must be an error, and messages need the line of the file. A
plain file goes through Arrow, which gives the same cells in a tenth of the time.
"""

import csv
import gzip
import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bayes_sdc.errors import InputError
from bayes_sdc.io.csv_text import CsvText, not_closed, open_csv, ragged
from bayes_sdc.io.foreign import unpack_table
from bayes_sdc.io.form import UNTOLD, FileForm
from bayes_sdc.io.other_forms import long_form, read_other
from bayes_sdc.io.plain_text import read_plain
from bayes_sdc.io.text import (
    csv_notes,
    damaged,
    find_columns,
    from_arrow,
    read_bytes,
    without_views,
)

MOST_ARRAYS = 1000  # columns that have an array each


@dataclass(frozen=True)
class Dialect:
    """How a table was stored, so that the release can be stored the same way.

    Made by :func:`bayes_sdc.read_flows`, as ``table.dialect``.

    Parameters
    ----------
    format
        ``"csv"`` or ``"parquet"``.
    separator, encoding, line_end
        Of the CSV file; ``"utf-8-sig"`` is UTF-8 with a byte-order mark.
    gzipped
        Whether the file was compressed with gzip.
    """

    format: Literal["csv", "parquet"] = "csv"
    separator: str = ","
    encoding: str = "utf-8"
    line_end: str = "\n"
    gzipped: bool = False

    @property
    def suffix(self) -> str:
        """The usual ending of a file name in this format."""
        return f".{self.format}" + (".gz" if self.gzipped else "")


@dataclass(frozen=True, eq=False)
class Loaded:
    """A source as it came: frame, where it came from, and what was seen on the way."""

    frame: pd.DataFrame
    source: str
    dialect: Dialect
    sha256: str | None = None  # of the file; a frame has none yet
    lines: npt.NDArray[np.int64] | None = None  # line of the CSV file for each row
    notes: tuple[str, ...] = field(default=())
    path: str = ""  # of the file, absolute; empty for a frame


def load(source: Any, wanted: Sequence[str], form: FileForm | None = None) -> Loaded:
    """Read a path, or take a data frame of any kind narwhals knows; ``wanted`` are its columns."""
    if isinstance(source, str | os.PathLike):
        return _load_file(Path(source), wanted, form or UNTOLD)
    if isinstance(source, pd.DataFrame):
        return Loaded(without_views(source.copy()), "DataFrame", Dialect())
    if isinstance(source, pa.Table):  # narwhals refuses two columns of one name
        find_columns("DataFrame", source.column_names, wanted)
        return Loaded(from_arrow(source), "DataFrame", Dialect())
    try:
        native = nw.from_native(source)
    except TypeError as error:
        kind = type(source).__name__
        raise InputError(f"expected a path or a data frame, got {kind}") from error
    eager = native.collect() if isinstance(native, nw.LazyFrame) else native
    return Loaded(from_arrow(eager.to_arrow()), "DataFrame", Dialect())


def _load_file(path: Path, wanted: Sequence[str], form: FileForm) -> Loaded:
    data = read_bytes(path)
    sha256, place = hashlib.sha256(data).hexdigest(), str(path.absolute())
    if (other := read_other(path, data, form)) is not None:
        frame, more = long_form(other.frame, path.name, wanted) if form.wide else (other.frame, ())
        notes = (*other.notes, *more)
        return Loaded(frame, path.name, Dialect(), sha256, notes=notes, path=place)
    named = () if form.wide else wanted  # columns that the matrix does not have
    data, gzipped = unpack_table(data, path.name)
    if data.startswith(b"PAR1"):
        dialect = Dialect(format="parquet", gzipped=gzipped)
        return Loaded(_read_parquet(data, path.name, named), path.name, dialect, sha256, path=place)
    frame, lines, dialect, notes = _read_csv(data, path.name, gzipped, named, form)
    if form.wide:
        frame, more = long_form(frame, path.name, wanted)
        return Loaded(frame, path.name, dialect, sha256, notes=(*notes, *more), path=place)
    return Loaded(frame, path.name, dialect, sha256, lines, notes, place)


def _read_parquet(data: bytes, name: str, wanted: Sequence[str]) -> pd.DataFrame:
    try:
        # by its rows, because by name two columns of one name would pass for damage
        table = pq.ParquetFile(pa.BufferReader(data)).read()
        table.validate(full=True)  # or text that is no UTF-8 would fail where it is used
        find_columns(name, table.column_names, wanted)
        return from_arrow(table)
    except InputError:
        raise
    # a damaged file makes Arrow raise errors that are documented nowhere
    except Exception as error:
        raise damaged(name, "Parquet", error) from error


def _read_csv(
    data: bytes, name: str, gzipped: bool, wanted: Sequence[str], form: FileForm
) -> tuple[pd.DataFrame, npt.NDArray[np.int64], Dialect, tuple[str, ...]]:
    found = open_csv(data, name, wanted, form)
    header, separator = found.header, found.separator
    plain = read_plain(found)
    if plain is not None:
        frame, lines, blank = plain, np.arange(found.line, found.line + len(plain)), 0
    else:
        rows, starts, blank = _parse(found, name)
        _check_widths(name, header, rows, starts, separator)
        frame, lines = _frame(rows, len(header)), np.asarray(starts, dtype=np.int64)
    frame.columns = pd.Index(header)  # only now, because names may occur twice

    line_end = "\r\n" if found.windows else "\n"
    dialect = Dialect("csv", separator, found.encoding, line_end, gzipped)
    notes = csv_notes(found.encoding, separator, blank)
    return frame, lines, dialect, notes


def _frame(rows: list[list[str]], width: int) -> pd.DataFrame:
    """Return text by column."""
    if width > MOST_ARRAYS:  # an array a column would take minutes
        cells = np.array(rows, dtype=object).reshape(len(rows), width)
        return pd.DataFrame(cells, columns=range(width), dtype=object)
    columns = zip(*rows, strict=True) if rows else ((),) * width
    return pd.DataFrame({i: pd.Series(c, dtype=str) for i, c in enumerate(columns)})


def _parse(found: CsvText, name: str) -> tuple[list[list[str]], list[int], int]:
    """Split into rows, the line each row starts on, and the number of blank lines."""
    stream = io.StringIO(found.body, newline="")
    reader = csv.reader(stream, delimiter=found.separator, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    blank = 0
    start = found.line
    try:
        for row in reader:
            # in a file of one column a blank line is a row whose only cell is empty
            if row or len(found.header) == 1:
                rows.append(row or [""])
                lines.append(start)
            else:
                blank += 1
            start = found.line + reader.line_num
    except csv.Error as error:
        raise not_closed(name, found.line + reader.line_num - 1, error) from error
    return rows, lines, blank


def _check_widths(
    name: str, header: list[str], rows: list[list[str]], lines: list[int], separator: str
) -> None:
    wrong = [i for i, row in enumerate(rows) if len(row) != len(header)]
    if wrong:
        shown = "; ".join(
            f"row {i + 1} (line {lines[i]}): {len(rows[i])} fields" for i in wrong[:5]
        )
        longer = {(len(row) - len(header), row[-1].strip()) for row in rows}
        raise ragged(name, header, separator, len(wrong), shown, ends=longer == {(1, "")})


def encode(frame: pd.DataFrame, dialect: Dialect) -> bytes:
    """Return the bytes of a file that holds ``frame``; the same frame gives the same bytes."""
    if dialect.format == "parquet":
        arrays = [pa.Array.from_pandas(frame.iloc[:, i]) for i in range(frame.shape[1])]
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_arrays(arrays, names=list(map(str, frame.columns))), sink)
        data: bytes = sink.getvalue().to_pybytes()
    else:
        text = frame.to_csv(index=False, sep=dialect.separator, lineterminator=dialect.line_end)
        data = text.encode(dialect.encoding)
    return gzip.compress(data, mtime=0) if dialect.gzipped else data
