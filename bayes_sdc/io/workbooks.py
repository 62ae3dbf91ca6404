"""Workbooks of Excel, by an optional library; the first sheet is read."""

import io
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.io.form import FileForm
from bayes_sdc.io.text import damaged

ENDINGS = (".xlsx", ".xlsm")


def is_workbook(path: Path, data: bytes) -> bool:
    """Whether a file is a workbook: names of parts stand in an archive as text."""
    named = path.suffix.lower() in ENDINGS
    return data.startswith(b"PK\x03\x04") and (named or b"xl/workbook." in data)


def read_workbook(path: Path, data: bytes, form: FileForm) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read the first sheet; cells are the text or numbers they are.

    Parameters
    ----------
    path : Path
        For messages.
    data : bytes
        Content of the file.
    form : FileForm
        Where the header is.

    Returns
    -------
    DataFrame, tuple of str
        Table and notes.

    Raises
    ------
    InputError
        If the library is missing, the workbook is damaged, the sheet is empty, or a row is
        longer than the header.
    """
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            f"{path.name}: Excel workbooks need the extra 'excel': pip install bayes-sdc[excel]; "
            f"or save it as CSV: libreoffice --headless --convert-to csv {path.name!r}"
        ) from None
    try:
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        names = book.sheetnames
        found = enumerate(book.worksheets[0].iter_rows(values_only=True), start=1)
        numbered = [(number, list(row)) for number, row in found]
    except Exception as error:  # a damaged workbook fails in many ways
        raise damaged(path.name, "workbook", error) from error
    above = form.skip_rows if form.header_line is None else form.header_line - 1
    rows = [row for row in numbered[above:] if any(cell is not None for cell in row[1])]
    if not rows:
        raise InputError(f"{path.name}: the first sheet, {names[0]!r}, has no row {above + 1}")
    header = pd.Index(["" if cell is None else str(cell) for cell in rows[0][1]])
    below = rows[1:] if form.header_line is None else rows[1 + form.skip_rows :]
    _refuse_longer(path.name, rows[0][0], len(header), below)
    cells = [[*row, *[None] * len(header)][: len(header)] for _, row in below]
    frame = pd.DataFrame(cells, columns=range(len(header)), dtype=object)
    frame.columns = header
    more = f"; {len(names) - 1} more are not read" if len(names) > 1 else ""
    return frame, (f"sheet {names[0]!r}{more}",)


def _refuse_longer(
    name: str, header: int, width: int, rows: Sequence[tuple[int, list[object]]]
) -> None:
    """Refuse values beyond the header, as a sheet has that does not store how wide it is."""
    beyond = [
        (number, place, cell)
        for number, row in rows
        for place, cell in enumerate(row[width:], start=width + 1)
        if cell is not None
    ]
    if beyond:
        number, place, cell = beyond[0]
        count = "1 value stands" if len(beyond) == 1 else f"{len(beyond):,} values stand"
        raise InputError(
            f"{name}: {count} beyond the {width} columns of the header in row {header}; the first "
            f"one is {cell!r} in row {number}, column {place}. Remedy: give that column a name or "
            "remove the value; if the names are in another row, say so by --header-line "
            "(header_line= of a FileForm)"
        )
