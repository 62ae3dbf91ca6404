"""How a file is to be read, where it does not say so itself."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bayes_sdc.errors import InputError

DECIMALS = (".", ",")
THOUSANDS = (".", ",", " ", "'")


@dataclass(frozen=True)
class FileForm:
    """What a reader is told about a file; taken by the readers of tables and of microdata.

    Parameters
    ----------
    decimal : {".", ","}, optional
        Mark before the decimals of numbers that are text. By default a point, where a number can
        be read in one way only.
    thousands : {".", ",", " ", "'"}, optional
        Mark between thousands. By default there is none.
    header_line : int, optional
        Line of a text file where the names of the columns stand, from 1. By default the first one
        that is not blank.
    skip_rows : int
        Lines to leave out: the first ones of the file, or with ``header_line`` those just below it,
        such as a line of units.
    wide : bool
        The table is a matrix, to be read as a row for each cell: the first column holds origins,
        the header destinations.
    layout : path, optional
        Of a file of fixed widths: a CSV file with ``name``, ``start`` and ``end``, one row per
        column, counted from 1.
    query : str, optional
        SQL for a database, SQLite or DuckDB.

    Raises
    ------
    InputError
        If a mark is unknown, both are the same, or a number is out of range.

    Examples
    --------
    >>> FileForm(decimal=",", thousands=".").notation
    (',', '.')
    """

    decimal: str | None = None
    thousands: str | None = None
    header_line: int | None = None
    skip_rows: int = 0
    wide: bool = False
    layout: str | os.PathLike[str] | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        """Refuse impossible values."""
        for name, value, known in (
            ("decimal", self.decimal, DECIMALS),
            ("thousands", self.thousands, THOUSANDS),
        ):
            if value is not None and value not in known:
                raise InputError(f"{name} must be one of {list(known)}; it is {value!r}")
        if self.decimal is not None and self.decimal == self.thousands:
            raise InputError(f"decimal and thousands are both {self.decimal!r}; they must differ")
        for name, number, least in (
            ("header_line", self.header_line, 1),
            ("skip_rows", self.skip_rows, 0),
        ):
            whole = isinstance(number, int) and not isinstance(number, bool)
            if number is not None and (not whole or number < least):
                raise InputError(f"{name} must be a whole number from {least}; it is {number!r}")

        kind = "layout" if self.layout is not None else "query"
        if (self.layout is not None or self.query is not None) and (
            self.header_line is not None or self.skip_rows
        ):
            raise InputError(
                f"header_line and skip_rows belong to a table with a line of names; with {kind} "
                "nothing would be skipped"
            )

    @property
    def notation(self) -> tuple[str | None, str | None]:
        """Marks before decimals and between thousands, each None where it was not said."""
        if self.decimal is None and self.thousands == ".":
            return ",", "."
        if self.decimal is None and self.thousands is not None:
            return ".", self.thousands
        return self.decimal, self.thousands

    def said(self) -> dict[str, Any]:
        """Return what differs from the default, for the record of a run."""
        default = asdict(FileForm())
        return {
            name: str(value) if isinstance(value, Path) else value
            for name, value in asdict(self).items()
            if value != default[name]
        }


UNTOLD = FileForm()


def as_said(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of a reader as a record of a run can hold them."""
    return {
        name: value.said() if isinstance(value, FileForm) else value
        for name, value in reading.items()
    }
