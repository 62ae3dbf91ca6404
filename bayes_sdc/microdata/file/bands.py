"""Classes of a key variable that is nearly unique: bands of a width, quantiles, years."""

import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.io.columns import Problem
from bayes_sdc.io.form import UNTOLD, FileForm
from bayes_sdc.io.numbers import plain
from bayes_sdc.microdata.file.columns import text_of

QUANTILES = re.compile(r"q([1-9][0-9]{0,2})")
DATE = re.compile(r"([0-9]{4})-([0-9]{2})(-[0-9]{2}([T ].*)?)?")
PARTS = {"year": 1, "month": 2}  # parts of a date that are kept


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
        If a band cannot be meant, or a name is no key variable.
    """
    frame, problems, notes = frame.copy(deep=False), [], []
    for name, asked in bands.items():
        if name not in frame.columns:
            raise InputError(f"bands names {name!r}, which is no key variable")
        texts = [(text_of(value) or "").strip() for value in frame[name]]
        declared = set(missing.get(name, ()))
        present = np.array([bool(text) and text not in declared for text in texts])
        values, wrong = _values(texts, present, _asked(name, asked), form)
        if wrong:
            problems.append(
                Problem(
                    "a value that cannot be put into a class",
                    (name,),
                    np.array(wrong, dtype=np.intp),
                    tuple(texts[row] for row in wrong[:5]),
                    "classes are of numbers, or of dates such as 2021-03-01 by year or month; "
                    "declare missing codes",
                )
            )
            continue
        labels = dict.fromkeys(label for _, label in sorted(set(values.values())))
        of_row = [values[row][1] if row in values else None for row in range(len(texts))]
        frame[name] = pd.Categorical(of_row, categories=list(labels), ordered=True)
        notes.append(f"column {name!r}: put into {len(labels):,} classes ({asked})")
    return frame, problems, notes


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
        dates = {row: DATE.fullmatch(texts[row]) for row in rows}
        wrong = [row for row, match in dates.items() if match is None]
        kept = {r: "-".join(m.groups()[: PARTS[asked]]) for r, m in dates.items() if m is not None}
        return {row: (float(text.replace("-", "")), text) for row, text in kept.items()}, wrong
    numbers = {row: plain(texts[row], form) for row in rows}
    wrong = [row for row, number in numbers.items() if number is None or "inf" in number]
    if wrong or not rows:
        return {}, wrong
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
    return {r: (float(k), labels[int(k)]) for r, k in zip(rows, place, strict=True)}, []


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
