"""Households: who lives together by the id in one column, or in several together.

An id that stands for two households makes one of them, whose members then share their risk. Digits
that a spreadsheet took away merge hundreds; ids that are unique only within an area merge two.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.io.columns import SAID, SCIENTIFIC, Problem, name_columns
from bayes_sdc.microdata.file.columns import Levels, read_levels
from bayes_sdc.microdata.file.tabulate import patterns

EXACT = 2**53  # from here on a float does not tell neighbouring whole numbers apart
CROWD = 20  # persons; households of more are seldom
USUAL = 0.9  # share of households in which an area is the same, so that others are exceptions
TOGETHER = 0.5  # share of neighbours in the file from which households stand together

Integers = npt.NDArray[np.int64]


class Households(NamedTuple):
    """Households of a file."""

    numbers: Integers  # (record,) equal for members; those without an id have one beyond the ids
    ids: tuple[str, ...]  # by number
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def read_households(
    frame: pd.DataFrame, columns: Sequence[str], missing: Mapping[str, Collection[str]]
) -> Households:
    """Number the households from 0, in the order of their ids.

    A person without an id lives alone, and has a number beyond the ids.

    Parameters
    ----------
    frame : DataFrame
        With the columns.
    columns : sequence of str
        Those that together tell a household.
    missing : mapping
        Declared missing codes by column.

    Returns
    -------
    Households
    """
    levels = [read_levels(frame[name], name, missing[name]) for name in columns]
    problems = [problem for level in levels for problem in level.problems]
    problems += [p for name in columns for p in _digits_lost(frame[name], name)]
    places = np.column_stack([level.places for level in levels])
    alone = (places < 0).any(axis=1)
    group, found = patterns(places, tuple(len(level.labels) for level in levels))
    known = (found >= 0).all(axis=1)
    numbers = (np.cumsum(known) - 1)[group].astype(np.int64)
    numbers[alone] = known.sum() + np.arange(alone.sum())
    ids = tuple(
        " | ".join(level.labels[place] for level, place in zip(levels, row, strict=True))
        for row in found[known]
    )
    notes = _notes(columns, levels, int(alone.sum()))
    return Households(numbers, ids, tuple(problems), tuple(notes))


def _notes(columns: Sequence[str], levels: Sequence[Levels], alone: int) -> Iterator[str]:
    if alone:
        persons = "1 person" if alone == 1 else f"{alone:,} persons"
        named = name_columns(tuple(columns))
        yield f"{named}: {persons} without a household id; each counts as a household"
    for level in levels:
        # persons without an id were counted, all columns together
        yield from (
            note
            for note in level.notes
            if not note.endswith("values are missing") and "nearly unique" not in note
        )


def _digits_lost(column: pd.Series, name: str) -> Iterator[Problem]:
    """Refuse ids whose last digits are gone: a spreadsheet's, or floats beyond 2^53."""
    values = column.to_numpy(dtype=object)

    def lost(value: Any) -> bool:
        if isinstance(value, str):
            return SCIENTIFIC.fullmatch(value.strip()) is not None
        if not isinstance(value, float | np.floating):
            return False
        return EXACT <= abs(float(value)) < np.inf

    rows = np.flatnonzero([lost(value) for value in values])
    if rows.size:
        what, remedy = SAID["digits lost"]
        remedy = remedy.replace("two areas become one", "many households become one")
        shown = tuple(values[row] for row in rows[:5])
        yield Problem(what.replace("code", "household id"), (name,), rows, shown, remedy)


def doubts(
    names: Sequence[str],
    households: Households,
    *,
    weights: npt.NDArray[np.float64] | None,
    keys: Mapping[str, npt.NDArray[np.int32]],
) -> Iterator[str]:
    """Say where an id may stand for two households.

    Parameters
    ----------
    names : sequence of str
        Columns of the id.
    households : Households
        From :func:`read_households`.
    weights : array of float, shape (record,), optional
        Of the records.
    keys : mapping
        Place of each record's value among the levels, by key variable.

    Yields
    ------
    str
        Notes.
    """
    order = np.argsort(households.numbers, kind="stable")
    start = np.flatnonzero(np.diff(households.numbers[order], prepend=-1))
    several = np.diff(np.append(start, len(order))) > 1
    named = name_columns(tuple(names))
    remedy = (
        "if ids are unique only within an area, name both columns: "
        f"--household AREA,{','.join(names)}"
    )

    def differ(values: np.ndarray) -> np.ndarray:
        """Households whose members differ in something."""
        sorted_values = values[order]
        least = np.minimum.reduceat(sorted_values, start)
        return np.asarray(least < np.maximum.reduceat(sorted_values, start))

    if not several.any():
        return
    sizes = np.diff(np.append(start, len(order)))
    largest = int(sizes.max())
    if largest > CROWD:
        which = int(households.numbers[order[start[int(sizes.argmax())]]])
        yield (
            f"{named}: {largest:,} persons in one household, {households.ids[which]!r}; if that is "
            "no id, or an institution, declare it as a missing code"
        )
    if weights is not None and (apart := differ(weights)).any():
        yield (
            f"{named}: in {int(apart.sum()):,} of {int(several.sum()):,} households of two persons "
            f"or more the weights differ; {remedy}"
        )
    reasons = list(_reused(households.numbers, order, start, several, keys, differ))
    if reasons:
        yield f"{named}: ids that may stand for two households: {'; '.join(reasons)}; {remedy}"


def _reused(
    numbers: Integers,
    order: np.ndarray,
    start: np.ndarray,
    several: np.ndarray,
    keys: Mapping[str, npt.NDArray[np.int32]],
    differ: Any,
) -> Iterator[str]:
    """Signs that an id is used twice: its members stand apart, or an area differs among them."""
    begins = np.diff(numbers, prepend=-1) != 0  # a run of one household in the file
    runs = np.add.reduceat(begins[order].astype(np.int64), start)
    neighbours = len(numbers) - int(begins.sum())
    if neighbours >= TOGETHER * (len(numbers) - len(start)) and (runs > 1).any():
        yield f"{int((runs > 1).sum()):,} occur in separate places of the file"
    for key, places in keys.items():
        apart = differ(places)
        values = len(np.unique(places))
        # a file sorted by area, or an area that is the same in nearly all households
        is_sorted = 1 < values <= len(places) / 2 and np.sum(np.diff(places) != 0) == values - 1
        usual = 1.0 - apart.sum() / several.sum() >= USUAL
        if apart.any() and (is_sorted or usual):
            yield f"{key!r} differs in {int(apart.sum()):,} of them"
