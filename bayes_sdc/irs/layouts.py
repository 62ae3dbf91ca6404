"""Layouts of the IRS county-to-county migration files: from bytes to rows as they were printed.

The IRS has published the same rows in four layouts: CSV files of the nation (from 2004-2005),
Excel workbooks of a state (from 1992-1993), records of 91 characters (the CD-ROMs), and printed
tables in text files of a state (1990-1992). Every reader here gives the same columns of text and
the line of the file; what the rows mean is left to :mod:`bayes_sdc.irs.read`.

Sources: IRS SOI, documentation for the 2005-2006 county-to-county migration flows (record
layouts); IRS SOI, Migration Data Users Guide 2017-2018, sections E.3 and E.4 (CSV and workbooks).
Tried on files of the IRS, but for the records of 91 characters, the column names until 2011, and
workbooks before 2010-2011.
"""

import csv
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.io.text import csv_notes, decode, find_separator, read_bytes, unpack

Direction = Literal["inflow", "outflow"]
Layout = Literal["csv", "workbook", "record", "text"]
Row = tuple[int | str, ...]  # in the order of COLUMNS
Unread = tuple[int, str, str]

COLUMNS = (
    "line",  # of the file, or row of the sheet; the first is 1
    "state",  # whose flows these are: the destination of inflows, the origin of outflows
    "county",
    "partner_state",  # the other side, or a special code
    "partner_county",
    "abbreviation",
    "name",
    "returns",
    "exemptions",
    "agi",  # in thousands of dollars; empty where the layout has none
)

WORKBOOK = b"\xd0\xcf\x11\xe0"
CODE = re.compile(r"[0-9]{1,3}")
YEARS = re.compile(r"(?<!\d)((?:19|20)\d\d)\D{1,4}((?:19|20)\d\d)(?!\d)")
SHORT_YEARS = re.compile(r"(?<!\d)(\d\d)(\d\d)(?!\d)")
DIRECTIONS: tuple[tuple[Direction, str], ...] = (
    ("inflow", r"inflow|countyin|\d{4}i[a-z]{2}\b|\d{4}[a-z]{2}i\b"),
    ("outflow", r"outflow|countyout|\d{4}o[a-z]{2}\b|\d{4}[a-z]{2}o\b"),
)


# header names in the order of COLUMNS; the county whose flows these are comes first, so that the
# order tells the direction
SINCE_2011 = (
    "{0}_statefips {0}_countyfips {1}_statefips {1}_countyfips {1}_state {1}_countyname n1 n2 agi"
)
UNTIL_2011 = (
    "state_code_{0} county_code_{0} state_code_{1} county_code_{1} state_abbrv county_name "
    "return_num exmpt_num aggr_agi"
)
CSV_NAMES: tuple[tuple[Direction, list[str]], ...] = (
    ("inflow", SINCE_2011.format("y2", "y1").split()),
    ("outflow", SINCE_2011.format("y1", "y2").split()),
    ("inflow", UNTIL_2011.format("dest", "origin").split()),
    ("outflow", UNTIL_2011.format("origin", "dest").split()),
)

RECORD = re.compile(r"[ \d]\d [ \d]{2}\d [ \d]\d [ \d]{2}\d .. .{32} ")
RECORD_FIELDS = ((0, 2), (3, 6), (7, 9), (10, 13), (14, 16), (17, 49), (50, 59), (59, 70), (70, 82))

NUMBER = r"(-?\d+|d)"
SHARE = r"(?:\d*\.\d+|\d+)"
TEXT_TOTAL = re.compile(rf"(\d\d) (\d{{3}}) +(.+?) +([A-Za-z]{{2}}) +{NUMBER} +{NUMBER}")
TEXT_DETAIL = re.compile(
    rf"  (\d\d) (\d{{3}}) +(.+?) +([A-Za-z]{{2}}) +{NUMBER} +{SHARE} +{NUMBER} +{SHARE}"
)
TEXT_OTHER = re.compile(rf"   ([A-Za-z].*?) +{NUMBER} +{SHARE} +{NUMBER} +{SHARE}")
TEXT_NON_MIGRANTS = re.compile(rf"      (\d\d) (\d{{3}}) +County Non-Migrants +{NUMBER} +{NUMBER}")
# the printed tables have no codes in these rows; the workbooks of 1992-1995 have these for them
TEXT_CODES = {
    "same state": "010",
    "region 1: northeast": "011",
    "region 2: midwest": "012",
    "region 3: south": "013",
    "region 4: west": "014",
    "foreign": "015",
    "same region, diff. state": "021",
    "different region": "022",
    "all migration flows": "030",
}


@dataclass(frozen=True, eq=False)
class Printed:
    """The rows of a file as printed.

    Parameters
    ----------
    rows
        Text in the columns `COLUMNS`; ``line`` is a number.
    unread
        Rows that do not have the form of the layout: ``line``, ``text``, ``reason``.
    layout, direction, years
        What the content, or else the name of the file, says; None where neither does.
    source, sha256
        Name of the file, and hash of its bytes.
    notes
        What was seen besides.
    """

    rows: pd.DataFrame
    unread: pd.DataFrame
    layout: Layout
    direction: Direction | None
    years: str | None
    source: str
    sha256: str
    notes: tuple[str, ...]


def read_printed(path: Path, direction: Direction | None) -> Printed:
    """Read a file in whatever layout it has; ``direction`` chooses the sheet of a workbook.

    Raises
    ------
    InputError
        If the file cannot be read, or has none of the layouts.
    """
    data = read_bytes(path)
    if data.startswith(WORKBOOK):
        printed = _read_workbook(data, path.name, direction)
    else:
        printed = _read_text(unpack(data, path.name)[0], path.name)
    named = [found for found, pattern in DIRECTIONS if re.search(pattern, path.name.lower())]
    return replace(
        printed,
        direction=printed.direction or (named[0] if len(named) == 1 else None),
        years=printed.years or years_in(path.name),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def years_in(text: str) -> str | None:
    """Return the two years that a title or a file name speaks of, if it does.

    Examples
    --------
    >>> years_in("countyinflow1415.csv"), years_in("Calendar Years 1999-2000"), years_in("2010.csv")
    ('2014-2015', '1999-2000', None)
    """
    for first, second in YEARS.findall(text):
        if int(second) == int(first) + 1:
            return f"{first}-{second}"
    for first, second in SHORT_YEARS.findall(text):
        if int(second) == (int(first) + 1) % 100:
            year = int(first) + (1900 if int(first) >= 70 else 2000)
            return f"{year}-{year + 1}"
    return None


def _printed(
    name: str,
    layout: Layout,
    rows: Sequence[Row],
    unread: Sequence[Unread],
    notes: Iterable[str],
    direction: Direction | None = None,
    years: str | None = None,
) -> Printed:
    lines, *columns = zip(*rows, strict=True) if rows else ((),) * len(COLUMNS)
    frame = pd.DataFrame({"line": np.array(lines, dtype=np.int64)})
    for column, values in zip(COLUMNS[1:], columns, strict=True):
        frame[column] = pd.Series(values, dtype=str).str.strip()
    return Printed(
        rows=frame,
        unread=pd.DataFrame(list(unread), columns=["line", "text", "reason"]),
        layout=layout,
        direction=direction,
        years=years,
        source=name,
        sha256="",
        notes=tuple(notes),
    )


def _read_text(data: bytes, name: str) -> Printed:
    text, encoding = decode(data, name)
    if not text.strip():
        raise InputError(f"{name}: the file is empty")
    head = [line for line in _lines(text[:4000]) if line]
    if any(RECORD.match(line) for line in head):
        return _read_records(_lines(text), name, encoding)
    if any(TEXT_TOTAL.fullmatch(line) for line in head):
        return _read_printed_tables(_lines(text), name, encoding)
    return _read_csv(text, name, encoding)


def _lines(text: str) -> list[str]:
    # str.splitlines would also split at characters that latin-1 text may hold
    return [line.rstrip() for line in re.split(r"\r\n|\n|\r", text)]


def _read_csv(text: str, name: str, encoding: str) -> Printed:
    separator = find_separator(text, ())
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows, unread = list[Row](), list[Unread]()
    blank, start = 0, 1
    header: list[str] = []
    pick: Callable[[Sequence[str]], tuple[str, ...]] = tuple
    direction: Direction | None = None
    unused: list[str] = []
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                blank += 1
            elif not header:
                header = [cell.strip().casefold() for cell in cells]
                direction, places, unused = _match_header(name, header)
                pick = itemgetter(*places)
            elif len(cells) != len(header):
                reason = f"{len(cells)} fields instead of {len(header)}"
                unread.append((start, separator.join(cells), reason))
            else:
                rows.append((start, *pick((*cells, ""))))
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{name}: not a valid CSV file (line {reader.line_num}: {error}); "
            "look for a quotation mark that is not closed"
        ) from error
    notes = [f"columns not used: {', '.join(unused)}"] if unused else []
    notes += csv_notes(encoding, separator, blank)
    return _printed(name, "csv", rows, unread, notes, direction)


def _match_header(name: str, header: Sequence[str]) -> tuple[Direction, list[int], list[str]]:
    """Return the direction, the place of each column, and the columns that are not used.

    The place of an AGI that is not there is behind the last column.
    """
    best: list[str] = []
    for direction, columns in CSV_NAMES:
        needed = columns[:-1]  # AGI may be absent
        missing = [column for column in needed if column not in header]
        twice = [column for column in columns if header.count(column) > 1]
        if missing:
            best = missing if not best or len(missing) < len(best) else best
        elif twice:
            raise InputError(f"{name}: two columns are called {twice[0]!r}; remove one")
        elif header.index(needed[0]) < header.index(needed[2]):
            places = [header.index(c) if c in header else len(header) for c in columns]
            return direction, places, [h for h in header if h not in columns]
    if {"y1_statefips", "y2_statefips"} <= set(header) and "y1_countyfips" not in header:
        raise InputError(
            f"{name}: a file of flows between states; the files with counties are called "
            "countyinflow and countyoutflow"
        )
    raise InputError(
        f"{name}: not a county-to-county migration file of the IRS. It is none of its text "
        f"layouts, and as CSV it lacks the columns {', '.join(best)}; the first row is "
        f"{', '.join(header)[:200]!r}"
    )


def _read_records(lines: Sequence[str], name: str, encoding: str) -> Printed:
    rows, unread = list[Row](), list[Unread]()
    for number, line in enumerate(lines, start=1):
        if RECORD.match(line):
            rows.append((number, *(line[start:end] for start, end in RECORD_FIELDS)))
        elif line:
            unread.append((number, line, "not a record of 91 characters"))
    notes = (*csv_notes(encoding, ",", 0), "median AGI (characters 83-91) is not used")
    return _printed(name, "record", rows, unread, notes)


def _read_printed_tables(lines: Sequence[str], name: str, encoding: str) -> Printed:
    rows, unread = list[Row](), list[Unread]()
    county: tuple[str, str] | None = None
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        if total := TEXT_TOTAL.fullmatch(line):
            county = (total[1], total[2])
            rows.append((number, *county, "96", "000", *total.groups()[2:], ""))
            continue
        parsed = _text_row(line, county)
        if isinstance(parsed, str):
            unread.append((number, line, parsed))
            if not line.startswith("  "):
                county = None  # a county line that cannot be read: what follows is not the last's
        else:
            rows.append((number, *parsed))
    return _printed(name, "text", rows, unread, csv_notes(encoding, ",", 0))


def _text_row(line: str, county: tuple[str, str] | None) -> tuple[str, ...] | str:
    """Return the fields of a row below a county's total, or what is wrong with it."""
    if county is None:
        return "no county's total before it"
    if detail := TEXT_DETAIL.fullmatch(line):
        return (*county, *detail.groups(), "")
    if stayed := TEXT_NON_MIGRANTS.fullmatch(line):
        if stayed.groups()[:2] != county:
            return f"non-migrants of another county than {'-'.join(county)}, whose rows these are"
        return (*county, *county, "", "County Non-Migrants", *stayed.groups()[2:], "")
    if other := TEXT_OTHER.fullmatch(line):
        label = " ".join(other[1].split())
        if code := TEXT_CODES.get(label.casefold()):
            return (*county, "63", code, "", label, other[2], other[3], "")
        return f"summary row {label!r} is not known"
    return "none of the forms of a row in the printed tables"


def _read_workbook(data: bytes, name: str, direction: Direction | None) -> Printed:
    try:
        import xlrd
    except ImportError as error:
        raise InputError(
            f"{name}: Excel workbooks need the extra 'irs': pip install bayes-sdc[irs]; "
            "or save the sheet as CSV with the columns of the IRS's CSV files"
        ) from error
    try:
        book = xlrd.open_workbook(file_contents=data, logfile=io.StringIO())
    except Exception as error:  # xlrd raises errors of many kinds on a damaged file
        raise InputError(f"{name}: damaged workbook ({error})") from error
    sheets = {sheet.name: sheet for sheet in book.sheets()}
    firsts = {title: row for title, s in sheets.items() if (row := _first_row(s)) is not None}
    found = {title: _sheet_direction(sheets[title], row) for title, row in firsts.items()}
    listed = ", ".join(map(repr, sheets))
    if not found:
        raise InputError(
            f"{name}: no sheet with county-to-county flows; the sheets are {listed}. A county "
            "sheet has state and county codes of both sides in its first four columns"
        )
    chosen = [title for title, d in found.items() if direction is None or d in (None, direction)]
    if not chosen:
        raise InputError(f"{name}: no sheet with county {direction}s; the sheets are {listed}")
    if len(chosen) > 1:
        raise InputError(
            f"{name}: {len(chosen)} sheets have county flows: {', '.join(map(repr, chosen))}; "
            "name the direction, or keep one of them"
        )
    title = chosen[0]
    others = [other for other in sheets if other != title]
    return _read_sheet(sheets[title], firsts[title], name, found[title], others)


def _sheet_direction(sheet: Any, first: int) -> Direction | None:
    head = f"{sheet.name} {_head(sheet, first)}".lower()
    if "inflow" in head or "destination into" in head:
        return "inflow"
    return "outflow" if "outflow" in head or "origin from" in head else None


def _first_row(sheet: Any) -> int | None:
    """Return the first row with codes of both sides; None if it is no county sheet."""
    for i in range(sheet.nrows):
        cells = _cells(sheet, i)
        if all(CODE.fullmatch(cell) for cell in cells[:4]) and not CODE.fullmatch(cells[4]):
            return i
    return None


def _head(sheet: Any, first: int) -> str:
    return " ".join(cell for i in range(first) for cell in _cells(sheet, i) if cell)


def _cells(sheet: Any, row: int) -> list[str]:
    cells = [_cell_text(cell.value) for cell in sheet.row(row)[: len(COLUMNS) - 1]]
    return cells + [""] * (len(COLUMNS) - 1 - len(cells))


def _cell_text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _read_sheet(
    sheet: Any, first: int, name: str, direction: Direction | None, others: Sequence[str]
) -> Printed:
    rows: list[Row] = []
    footers = 0
    for i in range(first, sheet.nrows):
        cells = _cells(sheet, i)
        if any(cells[1:]):
            rows.append((i + 1, *cells))
        else:
            footers += bool(cells[0])
    notes = [f"sheet {sheet.name!r}: {first} heading rows and {footers} footnotes are not data"]
    if others:
        notes.append(f"sheets not read: {', '.join(others)}")
    return _printed(name, "workbook", rows, [], notes, direction, years_in(_head(sheet, first)))
