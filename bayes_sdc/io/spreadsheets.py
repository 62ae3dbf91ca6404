"""Tables as CSV that a spreadsheet will open, and may be long.

A code of the data that begins like a formula gets an apostrophe in front, or a spreadsheet would
run it. Numbers are written with as few digits as give them back exactly, by Arrow: a file of a
million persons has thirty million of them.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bayes_sdc.io.numbers import NUMBER

STARTS = re.compile(r"[=+@\t\r\n-]")
AT_ONCE = 50_000  # rows
UNWRITTEN = "backslashreplace"  # how what UTF-8 cannot hold is written


def guarded(value: Any) -> Any:
    """Return a text with an apostrophe before what looks like a formula; all else as it is.

    Examples
    --------
    >>> [guarded(value) for value in ("=1+1", "-5", "-1+cmd", "north", 3)]
    ["'=1+1", '-5', "'-1+cmd", 'north', 3]
    """
    # some spreadsheets leave out a tab or a line end before a formula
    if isinstance(value, str) and STARTS.match(value) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def csv_chunks(frame: pd.DataFrame, *, index: bool) -> Iterator[bytes]:
    r"""Yield a table as CSV in UTF-8, its names first, with lines that end alike everywhere.

    What UTF-8 cannot hold, a surrogate of a byte that was no text, is written as its escape
    (``\udcff``): a run of hours is not lost at its end to one value.

    Parameters
    ----------
    frame : DataFrame
        The table; what is missing is left empty.
    index : bool
        Whether its index comes first.

    Examples
    --------
    >>> frame = pd.DataFrame({"area": ["01001", "=A1", "a,b"], "risk": [0.25, None, 1.0]})
    >>> b"".join(csv_chunks(frame, index=False)).decode().splitlines()
    ['area,risk', '01001,0.25', "'=A1,", '"a,b",1']
    """
    levels = [frame.index.get_level_values(k) for k in range(frame.index.nlevels)] if index else []
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    names = [*(frame.index.names if index else ()), *frame.columns]
    yield _line(["" if name is None else name for name in names])
    for start in range(0, len(frame), AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        texts = [
            *(_texts(pd.Series(level[rows])) for level in levels),
            *(_texts(column.iloc[rows]) for column in columns),
        ]
        if not texts:  # rows without columns are still counted
            yield b'""\n' * len(frame.iloc[rows])
            continue
        if len(texts) == 1:  # a line of nothing would be read as none
            texts = [pc.if_else(pc.equal(texts[0], ""), '""', texts[0])]
        lines = pc.binary_join_element_wise(*texts, ",")
        yield "".join(f"{line}\n" for line in lines.to_pylist()).encode()


def _line(fields: Sequence[Any]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(map(guarded, fields))
    return line.getvalue().encode("utf-8", UNWRITTEN)


def _texts(column: pd.Series) -> pa.Array:
    """Return the values of a column as they stand in the file."""
    if isinstance(column.dtype, pd.SparseDtype):
        column = pd.Series(column.to_numpy())
    # what Arrow does not know, complex numbers and surrogates, goes one by one through Python
    with suppress(pa.ArrowException, UnicodeEncodeError):
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            numbers = pa.Array.from_pandas(column)
            return numbers.cast(pa.string()).fill_null("")
        if isinstance(column.dtype, pd.StringDtype):
            plain = pa.array(column.to_numpy(object), pa.string(), from_pandas=True)
            coded = plain.dictionary_encode()
            fields = [_field(value) for value in coded.dictionary.to_pylist()]
            return pa.array(fields, pa.string()).take(coded.indices).fill_null("")
    missing = column.isna().to_numpy()
    written = ["" if none else _field(value) for value, none in zip(column, missing, strict=True)]
    return pa.array(written, pa.string())


def _field(value: Any) -> str:
    text = str(guarded(value)).encode("utf-8", UNWRITTEN).decode()
    return f'"{text.replace(chr(34), 2 * chr(34))}"' if re.search('[,"\n\r]', text) else text
