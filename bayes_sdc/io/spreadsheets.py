"""Text that a spreadsheet would run: a code of the data that begins like a formula."""

import re
from collections.abc import Iterable
from typing import Any

import pandas as pd

from bayes_sdc.io.numbers import NUMBER

STARTS = re.compile(r"[=+@\t\r-]")


def guarded(value: Any) -> Any:
    """Return a text with an apostrophe before what looks like a formula; all else as it is.

    Examples
    --------
    >>> [guarded(value) for value in ("=1+1", "-5", "-1+cmd", "north", 3)]
    ["'=1+1", '-5', "'-1+cmd", 'north', 3]
    """
    if isinstance(value, str) and STARTS.match(value) and not NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def guarded_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Guard the texts, labels and names of a table that will be opened in a spreadsheet."""
    made = frame.copy(deep=False)
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        if not pd.api.types.is_numeric_dtype(column) and _any(column.dropna().unique()):
            made.isetitem(place, [guarded(value) for value in column])
    if _any(frame.columns):
        made.columns = frame.columns.map(guarded)
    levels = [frame.index.get_level_values(k) for k in range(frame.index.nlevels)]
    if any(_any(level.unique()) for level in levels):
        guards = [level.map(guarded) for level in levels]
        made.index = guards[0] if len(guards) == 1 else pd.MultiIndex.from_arrays(guards)
        made.index.names = frame.index.names
    return made


def _any(values: Iterable[Any]) -> bool:
    """Whether a value needs a guard."""
    return any(guarded(value) is not value for value in values)
