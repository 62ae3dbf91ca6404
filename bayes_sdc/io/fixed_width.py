"""Files of fixed widths, cut by a layout."""

from itertools import pairwise
from pathlib import Path

import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.io.form import UNTOLD
from bayes_sdc.io.text import decode, find_columns, read_bytes

COLUMNS = ("name", "start", "end")


def read_fixed_width(data: bytes, name: str, layout: Path) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Cut every line into columns; blanks around a value are no part of it.

    Parameters
    ----------
    data : bytes
        Content of the file.
    name : str
        Of the file, for messages.
    layout : Path
        CSV file with ``name``, ``start`` and ``end``, counted from 1, one row per column.

    Returns
    -------
    DataFrame, tuple of str
        Table and notes.

    Raises
    ------
    InputError
        If the layout cannot be used, or a line is too short for it.
    """
    text, encoding = decode(data, name)
    fields = _layout(layout)
    last = max(end for _, _, end in fields)
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    short = [number for number, line in lines if len(line) < max(start for _, start, _ in fields)]
    if short:
        raise InputError(
            f"{name}: {len(short):,} lines end before the last column of {layout.name} begins, "
            f"first line {short[0]}; is it the layout of this file?"
        )
    cut = {
        field: [line[start - 1 : end].strip() for _, line in lines] for field, start, end in fields
    }
    notes = [f"fixed widths by {layout.name}, {encoding}"]
    if any(len(line) > last for _, line in lines):
        notes.append(f"what stands beyond character {last} is not in the layout, and not read")
    ordered = sorted(fields, key=lambda field: field[1:])
    for (one, _, end), (other, start, _) in pairwise(ordered):
        if start <= end:
            notes.append(f"columns {one!r} and {other!r} overlap in {layout.name}")
    return pd.DataFrame(cut, dtype=str), tuple(notes)


def _layout(path: Path) -> list[tuple[str, int, int]]:
    """Read and check a layout."""
    from bayes_sdc.io.csv_text import open_csv

    found = open_csv(read_bytes(path), path.name, COLUMNS, UNTOLD)
    places = find_columns(path.name, found.header, COLUMNS)
    fields = []
    for number, line in enumerate(found.body.splitlines(), start=1):
        if not line.strip():
            continue
        cells = [cell.strip().strip('"') for cell in line.split(found.separator)]
        try:
            name, start, end = (cells[place] for place in places)
            fields.append((name, int(start), int(end)))
        except (IndexError, ValueError):
            raise InputError(
                f"{path.name}: row {number} is no name, start and end: {line!r}"
            ) from None
        if not 1 <= fields[-1][1] <= fields[-1][2]:
            raise InputError(
                f"{path.name}: row {number}: {name!r} begins at {start} and ends at {end}; both "
                "count from 1, and the end is included"
            )
    names = [name for name, _, _ in fields]
    if not names or len(set(names)) < len(names):
        raise InputError(f"{path.name}: must name each column once; it names {names}")
    return fields
