"""Plain CSV files, read by Arrow: fast, and cell for cell what the csv module reads."""

import re

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv

from bayes_sdc.io.csv_text import CsvText

WIDEST = 100  # columns
BLOCK = 1 << 24  # bytes that Arrow reads at a time; a longer row would be an error


def read_plain(found: CsvText) -> pd.DataFrame | None:
    r"""Return text by column, or None where a line is blank, ragged or quoted in an odd way.

    Parameters
    ----------
    found : CsvText
        From :func:`bayes_sdc.io.csv_text.open_csv`.

    Returns
    -------
    DataFrame or None
        A row for each line of the body, columns numbered from 0.

    Examples
    --------
    >>> read_plain(CsvText(["a", "b"], "1,x\n2,\n", 2, ",", "utf-8", False)).to_numpy().tolist()
    [['1', 'x'], ['2', '']]
    >>> read_plain(CsvText(["a", "b"], "1,x\n\n2,y\n", 2, ",", "utf-8", False)) is None
    True
    """
    body, width = found.body, len(found.header)
    if not 1 < width <= WIDEST or not body or not _is_plain(body, found.separator):
        return None
    names = [str(place) for place in range(width)]
    odd: list[int] = []

    def refuse(row: pa_csv.InvalidRow) -> str:
        odd.append(row.actual_columns)
        return "skip"  # and read again, by what says where it is

    try:
        table = pa_csv.read_csv(
            pa.BufferReader(body.encode()),
            pa_csv.ReadOptions(column_names=names, block_size=BLOCK, use_threads=False),
            pa_csv.ParseOptions(delimiter=found.separator, invalid_row_handler=refuse),
            pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except (pa.ArrowException, UnicodeEncodeError):
        return None
    lines = body.count("\n") + (not body.endswith("\n"))
    if odd or table.num_rows != lines:
        return None
    columns = {place: table.column(place).to_pandas() for place in range(width)}
    return pd.DataFrame({place: pd.Series(each, dtype=str) for place, each in columns.items()})


def _is_plain(body: str, separator: str) -> bool:
    """Whether lines end in one way and quotation marks stand around whole cells only."""
    if body.count("\r") not in (0, body.count("\r\n")):
        return False
    if '"' not in body:
        return True
    edge = re.escape(separator) + "\r\n"
    whole = re.findall(f'(?:^|(?<=[{edge}]))"[^"\r\n]*"(?=[{edge}]|$)', body)
    return 2 * len(whole) == body.count('"')
