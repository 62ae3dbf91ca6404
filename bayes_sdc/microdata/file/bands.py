"""Classes of a key variable that is nearly unique: bands of a width, quantiles, years."""

import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.io.columns import Problem
from bayes_sdc.io.form import UNTOLD, FileForm
from bayes_sdc.io.numbers import both_readings, decimals_in_two_ways, plain
from bayes_sdc.microdata.file.columns import bare, text_of, unused_codes
from bayes_sdc.microdata.file.suspects import DATE, codes_by_position

LARGEST = 2.0**53
QUANTILES = re.compile(r"q([1-9][0-9]{0,2})")
OPEN = re.compile(r"([0-9]+)\s*(\+|and (over|more|older)|or (over|more|older)|u\. mehr)")
PARTS = ("year", "month")  # of a date that are kept


def banded(
    frame: pd.DataFrame,
    bands: Mapping[str, Any],
    missing: Mapping[str, Collection[str]],
    form: FileForm = UNTOLD,
) -> tuple[pd.DataFrame, list[Problem], list[str]]:
    """Put key variables into classes; a missing value stays one.

    Parameters
    ----------
    frame : DataFrame
        With the key variables.
    bands : mapping
        By key variable: a width, ``"q10"`` for ten classes of as many records each, or ``"year"``
        or ``"month"`` of dates such as 2021-03-01.
    missing : mapping
        Declared missing codes by column.
    form : FileForm
        How numbers are written.

    Returns
    -------
    DataFrame, list of Problem, list of str
        The frame with ordered classes; values that are no numbers or dates; notes.

    Raises
    ------
    InputError
        If a band is invalid, or a name is not a key variable.
    """
    frame, problems, notes = frame.copy(deep=False), [], []
    for name, asked in bands.items():
        if name not in frame.columns:
            raise InputError(f"bands names {name!r}, which is not a key variable")
        texts = [_text(value) for value in frame[name]]
        declared, codes = {bare(code) for code in missing.get(name, ())}, list(map(bare, texts))
        present = np.array([bool(code) and code not in declared for code in codes])
        notes += unused_codes(name, missing.get(name, ()), set(codes))
        band = _asked(name, asked)
        said = list(
            dict.fromkeys(text for text, is_one in zip(texts, present, strict=True) if is_one)
        )
        if not isinstance(band, str) and (doubtful := decimals_in_two_ways(said, form)):
            problems.append(_in_two_ways(name, texts, doubtful))
            continue
        values, wrong = _values(texts, present, band, form)
        if wrong:
            problems.append(
                Problem(
                    "a value that cannot be put into a class",
                    (name,),
                    np.array(wrong, dtype=np.intp),
                    tuple(texts[row] for row in wrong[:5]),
                    "classes are of numbers, or of dates: 2021-03-01 by year or month, 1.3.2021 or "
                    "3/1/2021 by year; declare missing codes",
                )
            )
            continue
        labels = dict.fromkeys(label for _, label in sorted(set(values.values())))
        of_row = [values[row][1] if row in values else None for row in range(len(texts))]
        frame[name] = pd.Categorical(of_row, categories=list(labels), ordered=True)
        notes.append(f"column {name!r}: put into {len(labels):,} classes ({asked})")
        if suspects := [] if isinstance(band, str) else codes_by_position(said):
            listed = ", ".join(map(repr, suspects[:5]))
            notes.append(
                f"column {name!r}: {listed} put into a class as a number; if it stands for a "
                "missing value, declare it as a missing code"
            )
    return frame, problems, notes


def _text(value: Any) -> str:
    """Return what is to be put into a class; bytes, which are no text, to be refused by name."""
    text = text_of(value)
    return repr(value) if text is None else text.strip()


def _in_two_ways(name: str, texts: list[str], doubtful: Collection[str]) -> Problem:
    rows = np.flatnonzero(np.isin(np.array(texts, dtype=object), list(doubtful)))
    shown = tuple(texts[row] for row in rows[:5])
    return Problem(
        "numbers that can be read in two ways, all with three digits after a point,",
        (name,),
        rows,
        shown,
        f"{both_readings(shown[0])}: say which by --decimal . or --thousands . (a FileForm)",
    )


def _asked(name: str, asked: Any) -> float | int | str:
    """Return a width, a number of quantiles below 0, or the part of a date."""
    text = str(asked).strip()
    if text in PARTS:
        return text
    if match := QUANTILES.fullmatch(text):
        return -int(match[1])
    number = plain(text)
    width = float(number) if number is not None else 0.0
    if not 0 < width < float("inf"):
        raise InputError(
            f"bands of {name!r} are {asked!r}; give a width above 0 as 5, classes of as many "
            "records each as q10, or year or month for dates"
        )
    return int(width) if width.is_integer() else width


def _values(
    texts: list[str], present: np.ndarray, asked: float | int | str, form: FileForm
) -> tuple[dict[int, tuple[float, str]], list[int]]:
    """Place and label of the class of each row that has a value, and rows that have none."""
    rows = np.flatnonzero(present).tolist()
    if isinstance(asked, str):
        kept = {row: _part(texts[row], asked) for row in rows}
        wrong = [row for row, part in kept.items() if part is None]
        return {r: (float(t.replace("-", "")), t) for r, t in kept.items() if t is not None}, wrong
    open_ended = {row: match[1] for row in rows if (match := OPEN.fullmatch(texts[row]))}
    numbers = {row: plain(open_ended.get(row, texts[row]), form) for row in rows}
    wrong = [row for row, number in numbers.items() if not _fits(number, asked)]
    closed = [row for row in rows if row not in open_ended]
    if not wrong and open_ended:
        # an open class is one already; below its beginning are the others
        least = min(float(numbers[row] or 0) for row in open_ended)
        wrong = [row for row in closed if float(numbers[row] or 0) >= least]
    if wrong or not rows:
        return {}, wrong
    top = {row: (np.inf, texts[row]) for row in open_ended}
    return _closed(closed, numbers, asked) | top, []


def _part(text: str, asked: str) -> str | None:
    """Return year or month of a date, or None; of dates with the year at the end only that."""
    match = DATE.fullmatch(text)
    if match is None:
        return None
    if asked == "year":
        return match["year"] or match["last"]
    return f"{match['year']}-{match['month']}" if match["year"] else None


def _fits(number: str | None, asked: float) -> bool:
    """Whether a text is a number whose class can be told."""
    return number is not None and abs(float(number)) / (asked if asked > 0 else 1.0) < LARGEST


def _closed(
    rows: list[int], numbers: Mapping[int, str | None], asked: float
) -> dict[int, tuple[float, str]]:
    """Place and label of the class of each number."""
    if not rows:
        return {}
    x = np.array([float(numbers[row] or 0) for row in rows])
    if asked < 0:
        edges = np.unique(np.quantile(x, np.arange(1, -asked) / -asked, method="inverted_cdf"))
        place = np.searchsorted(edges, x)
        labels = {
            int(k): f"{x[place == k].min():.12g} to {x[place == k].max():.12g}" for k in place
        }
    else:
        place = np.floor(x / asked).astype(np.int64)
        whole = isinstance(asked, int) and bool(np.all(x == np.floor(x)))
        labels = {int(k): _label(int(k) * asked, asked, whole=whole) for k in np.unique(place)}
    return {r: (float(k), labels[int(k)]) for r, k in zip(rows, place, strict=True)}


def _label(low: float, width: float, *, whole: bool) -> str:
    """Name a class by its ends, both included where the numbers are whole.

    Examples
    --------
    >>> _label(20, 5, whole=True), _label(20, 5, whole=False), _label(7, 1, whole=True)
    ('20-24', '20 to below 25', '7')
    """
    if whole:
        return f"{low:g}" if width == 1 else f"{low:.12g}-{low + width - 1:.12g}"
    return f"{low:.12g} to below {low + width:.12g}"
