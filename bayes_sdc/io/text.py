"""What every reader of files shares: bytes, encoding, separator, and names of columns.

The readers of flow tables and of microdata differ in what they keep of a file; how a file is opened
and what is said of it are the same.
"""

import csv
import difflib
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pyarrow as pa

from bayes_sdc.errors import InputError

MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
# Windows has signs such as the euro where latin-1, which decodes every byte, has control codes
GUESSED = ("utf-8", "cp1252", "latin-1")
CONTROLS = re.compile(rb"[\x80-\x9f]")
VIEWS = ("string_view", "binary_view", "list_view", "large_list_view")  # types of Arrow
SEPARATORS = (",", ";", "\t", "|")
HEADER = 1_000_000  # characters in which a header is looked for
MOST_UNPACKED = (
    2**30
)  # bytes that a compressed file may hold; a bomb of 1 MB holds a thousand times
LONGEST_LINE = 8 * 2**20  # bytes of a line; to look for columns in a longer one takes too long


def read_bytes(path: Path) -> bytes:
    """Read a file, or say why it cannot be read."""
    try:
        return path.read_bytes()
    except IsADirectoryError:
        empty = "an empty name means the present folder; " if path == Path() else ""
        raise InputError(f"{path}: is a folder; {empty}name a file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:  # a path that no file can have
        raise InputError(f"{str(path)!r}: cannot be read ({error})") from error


def unpack(data: bytes, name: str) -> tuple[bytes, bool]:
    """Return the content, and whether it was compressed with gzip; archives are refused."""
    gzipped = data.startswith(b"\x1f\x8b")
    if gzipped:
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                data = file.read(MOST_UNPACKED + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise InputError(f"{name}: damaged gzip file ({error})") from error
        if len(data) > MOST_UNPACKED:
            raise InputError(
                f"{name}: holds more than {MOST_UNPACKED / 2**20:,.0f} MiB when it is unpacked, "
                "the limit for compressed files; unpack it first, or save it as Parquet"
            )
    if data.startswith(b"PK\x03\x04"):
        raise InputError(
            f"{name}: a zip archive; unpack it first: unzip {name!r}. An Excel workbook is read "
            "where its name ends in .xlsx"
        )
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise InputError(
            f"{name}: an old Excel workbook; save it as CSV: libreoffice --headless --convert-to "
            f"csv {name!r}"
        )
    return data, gzipped


def decode(data: bytes, name: str) -> tuple[str, str]:
    """Return the text of a CSV file and its encoding.

    Raises
    ------
    InputError
        If the file is not what its byte-order mark says, is not text, or has a line too long.
    """
    _refuse_long_lines(data, name)
    marked = next((encoding for mark, encoding in MARKS.items() if data.startswith(mark)), None)
    if marked is not None:
        try:
            text, encoding = data.decode(marked), marked
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}: says by its byte-order mark that it is {marked}, but byte "
                f"{error.start + 1:,} is not; it is damaged, or two files were joined"
            ) from None
    else:
        encoding = next(each for each in GUESSED if _is_in(data, each))
        text = data.decode(encoding)
    if "\0" in text:
        raise InputError(
            f"{name}: the bytes are no text, or text in UTF-16 without a byte-order mark or in "
            "UTF-32; save it as UTF-8"
        )
    return text.lstrip("\ufeff"), encoding  # joined files may begin with two marks


def _refuse_long_lines(data: bytes, name: str) -> None:
    """Refuse a line that fills a whole block of the file, as every one of two blocks does."""
    for start in range(0, len(data) - LONGEST_LINE + 1, LONGEST_LINE):
        end = start + LONGEST_LINE
        if data.find(b"\n", start, end) < 0 and data.find(b"\r", start, end) < 0:
            raise InputError(
                f"{name}: byte {start + 1:,} lies in a line of more than "
                f"{LONGEST_LINE / 2**20:,.0f} MiB, the limit for a line; is it the right file? "
                "Save a table of very many columns as Parquet"
            )


def _is_in(data: bytes, encoding: str) -> bool:
    """Whether bytes can be text in an encoding, latin-1 being the one that decodes all."""
    if encoding == "cp1252" and not CONTROLS.search(data):
        return False
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def find_separator(text: str, wanted: Sequence[str]) -> str:
    """Return the separator that yields most of the named columns; ties go to most columns."""
    end = text.find("\n", HEADER)  # a header may hold line ends, but not many
    text = text[: end if end > 0 else None]

    def yield_of(separator: str) -> tuple[int, int]:
        try:
            rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
            header = next((row for row in rows if row), [])
        except csv.Error:
            return 0, 0
        return sum(name in header for name in wanted), len(header)

    return max(SEPARATORS, key=yield_of)


def csv_notes(encoding: str, separator: str, blank: int, *, usual: bool = False) -> tuple[str, ...]:
    """Say what is unusual about a CSV file; encoding and separator also where they are usual."""
    notes = []
    if encoding == "utf-8-sig":
        notes.append("encoding: UTF-8 with a byte-order mark")
    elif encoding != "utf-8":
        notes.append(f"encoding: read as {encoding}, because the bytes are not UTF-8")
    elif usual:
        notes.append("encoding: UTF-8")
    if usual or separator != ",":
        notes.append(f"separator: {separator!r}")
    if blank:
        notes.append(f"{blank:,} blank lines skipped")
    return tuple(notes)


def damaged(name: str, kind: str, error: Exception) -> InputError:
    """Return the error on a file that a library cannot decode; it says why in many ways."""
    why = str(error).strip().split("\n")[0][:200] or type(error).__name__
    return InputError(f"{name}: damaged {kind} file ({why})")


def from_arrow(table: pa.Table) -> pd.DataFrame:
    """Make a data frame; integers with gaps stay integers, and a stored index stays a column."""
    # pandas can neither sort nor compare columns that are stored as views
    columns = [_no_view(column) for column in table.columns]
    table = pa.Table.from_arrays(columns, names=table.column_names)
    return cast(pd.DataFrame, table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True))


def without_views(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose columns of Arrow are no views, as those of :func:`from_arrow`."""
    made = frame.copy(deep=False)
    for place, kind in enumerate(frame.dtypes):
        if isinstance(kind, pd.ArrowDtype) and str(kind.pyarrow_dtype).split("<")[0] in VIEWS:
            plain = from_arrow(pa.table({"x": pa.array(frame.iloc[:, place])}))["x"]
            made.isetitem(place, plain.array)
    return made


def _no_view(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the same values in a type that is no view."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(column.type):
        return column.cast(pa.large_binary())
    if pa.types.is_list_view(column.type) or pa.types.is_large_list_view(column.type):
        # by way of Python: Arrow's own cast loses what follows a missing list
        plain = pa.large_list(column.type.value_type)
        return pa.chunked_array([pa.array(column.to_pylist(), plain)])
    return column


def find_columns(source: str, available: Sequence[Any], wanted: Sequence[str]) -> list[int]:
    """Return the places of the named columns.

    Raises
    ------
    InputError
        If a column is missing, or two have its name.
    """
    for name in wanted:
        found = sum(column == name for column in available)
        if found > 1:
            raise InputError(f"{source}: {found} columns are called {name!r}; rename one")
        if not found:
            folded = {str(c).strip(" '\"").casefold(): str(c) for c in reversed(available)}
            near = difflib.get_close_matches(name.strip().casefold(), folded, n=1)
            hint = f"; did you mean {folded[near[0]]!r}?" if near else "."
            listed = ", ".join(repr(str(c)) for c in available[:40])
            more = ", ..." if len(available) > 40 else ""
            raise InputError(f"{source}: no column {name!r}{hint} The columns are {listed}{more}")
    return [list(available).index(name) for name in wanted]
