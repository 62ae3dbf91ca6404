"""Text with separators: where the column names are, and what is above them.

A title, a line of units or ``sep=;`` above the names would pass for the names. Both readers look
for the line where the named columns stand, and say it; they do not guess what to leave out.
"""

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

from bayes_sdc.errors import InputError
from bayes_sdc.io.form import FileForm
from bayes_sdc.io.text import SEPARATORS, decode, find_separator

SEARCHED, MOST_SEARCHED = 5_000, 1_000_000  # lines and characters in which names are looked for
OTHER_SEPARATORS = (" ", ":", "^", "~")  # that files use and the readers do not take


class CsvText(NamedTuple):
    """A CSV file, its header apart."""

    header: list[str]
    body: str  # what stands below the header
    line: int  # of the file where the body begins
    separator: str
    encoding: str
    windows: bool  # lines end in two characters


def open_csv(data: bytes, name: str, wanted: Sequence[str], form: FileForm) -> CsvText:
    """Decode a CSV file and find its header.

    Parameters
    ----------
    data : bytes
        Content of the file.
    name : str
        For messages.
    wanted : sequence of str
        Columns that are needed; they tell separator and header.
    form : FileForm
        What is known of the file.

    Raises
    ------
    InputError
        If the file is empty, its header cannot be parsed, or the columns are named further down.
    """
    text, encoding = decode(data, name)
    if not text.strip():
        raise InputError(f"{name}: the file is empty")
    end = text.find("\n")
    windows = end > 0 and text[end - 1] == "\r"
    skipped = form.skip_rows if form.header_line is None else form.header_line - 1
    rest = _below(text, skipped)
    if not rest.strip():
        raise InputError(f"{name}: has no line {skipped + 1}, where the names should stand")
    separator = find_separator(rest, wanted)
    stream = io.StringIO(rest, newline="")
    reader = csv.reader(stream, delimiter=separator, strict=True)
    try:
        header = next(row for row in reader if row)
    except (csv.Error, StopIteration) as error:
        raise not_closed(name, skipped + reader.line_num, error) from None
    body = rest[stream.tell() :]
    line = skipped + reader.line_num + 1
    _refuse_names_below(name, body, line, header, wanted)
    if form.header_line is not None and form.skip_rows:
        body, line = _below(body, form.skip_rows), line + form.skip_rows
    return CsvText(header, body, line, separator, encoding, windows)


def not_closed(name: str, line: int, error: Exception) -> InputError:
    """Return the error on a line that the csv module cannot parse, which a quotation mark causes.

    Parameters
    ----------
    name : str
        Of the file.
    line : int
        Of the file, where the module gave up.
    error : Exception
        What it says.
    """
    return InputError(
        f"{name}: not a valid CSV file (line {line}: {error}); look for a quotation mark that is "
        "not closed"
    )


def _below(text: str, lines: int) -> str:
    """Return a text without its first lines."""
    start = 0
    for _ in range(lines):
        end = text.find("\n", start)
        if end < 0:
            return ""
        start = end + 1
    return text[start:]


def _refuse_names_below(
    name: str, body: str, line: int, header: list[str], wanted: Sequence[str]
) -> None:
    """Say in which line the columns are named, where it is not the first one."""
    here = sum(column in header for column in wanted)
    if here == len(wanted):
        return
    best, place = here, 0
    for number, row in enumerate(body[:MOST_SEARCHED].split("\n")[:SEARCHED], start=line):
        for separator in SEPARATORS:
            cells = {cell.strip('"') for cell in row.removesuffix("\r").split(separator)}
            found = sum(column in cells for column in wanted)
            if found > best:
                best, place = found, number
    if place:
        missing = next(column for column in wanted if column not in header)
        raise InputError(
            f"{name}: no column {missing!r} in line {line - 1}, but the names of the columns stand "
            f"in line {place}. Remedy: --header-line {place} (header_line={place} of a "
            "FileForm), or remove what stands above"
        )
    alone = header[0] if len(header) == 1 else ""
    widths = {len(row.rstrip("\r")) for row in body[:MOST_SEARCHED].split("\n")[:-1]}
    if alone and not here and widths == {len(alone)}:
        raise InputError(
            f"{name}: all lines have {len(alone)} characters and no separator; if that is a file "
            "of fixed widths, say where its columns begin and end by --layout (layout= of a "
            "FileForm)"
        )
    for mark in OTHER_SEPARATORS:
        if not here and set(wanted) <= {part.strip() for part in alone.split(mark)}:
            raise InputError(
                f"{name}: the names are separated by {mark!r}, which is not a supported separator; "
                f"save the file with one of {', '.join(map(repr, SEPARATORS))}"
            )


def ragged(
    name: str, header: list[str], separator: str, count: int, shown: str, *, ends: bool = False
) -> InputError:
    """Return the error on rows that have other numbers of fields than the header.

    Parameters
    ----------
    name : str
        Of the file.
    header : list of str
        Names of the columns.
    separator : str
        Between fields.
    count : int
        Number of such rows.
    shown : str
        The first of them.
    ends : bool
        Whether all rows have an empty field beyond the header.
    """
    remedy = (
        f"Put text that contains the separator {separator!r} in quotation marks, and remove footers"
    )
    if ends:
        remedy = (
            f"The rows end with a separator {separator!r} that the header lacks: add a name to it, "
            "or remove it from the rows"
        )
    elif not header[-1].strip():
        remedy = f"The header ends with a separator {separator!r} too many: remove it. {remedy}"
    rows = "1 row does" if count == 1 else f"{count:,} rows do"
    return InputError(
        f"{name}: {rows} not have the {len(header)} fields of the header: {shown}. {remedy}"
    )
