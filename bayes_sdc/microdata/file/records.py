"""Columns of a microdata file as records: levels of the keys, weights, households, and notes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.errors import InputError
from bayes_sdc.io.columns import refuse_problems
from bayes_sdc.io.form import FileForm
from bayes_sdc.microdata.file.bands import banded
from bayes_sdc.microdata.file.columns import Levels, read_levels, read_weights
from bayes_sdc.microdata.file.formats import Columns
from bayes_sdc.microdata.file.households import Households, doubts, read_households
from bayes_sdc.microdata.file.suspects import codes_by_label


class Records(NamedTuple):
    """What was read of a file."""

    levels: list[Levels]  # of each key
    weights: npt.NDArray[np.float64] | None
    living: Households | None
    notes: tuple[str, ...]  # on the file, its weights and households
    key_notes: dict[str, tuple[str, ...]]


def read_records(
    loaded: Columns,
    names: tuple[str, ...],
    weight: str | None,
    homes: tuple[str, ...],
    *,
    declared: Mapping[str, Collection[str]],
    form: FileForm,
    bands: Mapping[str, Any],
) -> Records:
    """Read keys, weights and households, and refuse every kind of problem at once.

    Parameters
    ----------
    loaded : Columns
        The columns.
    names : tuple of str
        Key variables.
    weight : str or None
        Column of weights.
    homes : tuple of str
        Columns that together tell a household.
    declared : mapping
        Codes that mean missing, by column.
    form : FileForm
        How numbers are written.
    bands : mapping
        Classes of key variables, as for :func:`bayes_sdc.microdata.file.bands.banded`.

    Raises
    ------
    InputError
        With rows and remedy.
    """
    if unknown := sorted(set(bands) - set(names)):
        raise InputError(f"bands names {unknown[0]!r}, which is not a key variable")
    frame, unbanded, in_bands = banded(loaded.frame, bands, declared, form)
    # a class is no code: the year 2021 stays one where the code 2021 means missing
    left = {name: () if name in bands else declared[name] for name in names}
    levels = [read_levels(frame[name], name, left[name]) for name in names]
    problems = [*unbanded, *(problem for level in levels for problem in level.problems)]
    of_column = _of_columns(loaded, names, levels)
    others = [*([] if weight is None else [weight]), *homes]
    of_others = [note for name in others for note in of_column.get(name, ())]
    notes = [*loaded.notes, *in_bands, *of_others]
    weights = living = None
    if weight is None:
        notes.append(
            "no weights: without a population size every record stands for itself, so F = f"
        )
    else:
        weights, wrong = read_weights(loaded.frame[weight], weight, form)
        problems += wrong
    if homes:
        living = read_households(loaded.frame, homes, declared)
        said = {(problem.columns, problem.what) for problem in problems}
        problems += [one for one in living.problems if (one.columns, one.what) not in said]
        notes += living.notes
    refuse_problems(loaded.source, problems)
    by_key = {name: level.places for name, level in zip(names, levels, strict=True)}
    if living is not None:
        notes += doubts(homes, living, weights=weights, keys=by_key)
    key_notes = {
        name: (*level.notes, *of_column.get(name, ()))
        for name, level in zip(names, levels, strict=True)
    }
    return Records(levels, weights, living, tuple(notes), key_notes)


def _of_columns(
    loaded: Columns, names: tuple[str, ...], levels: Sequence[Levels]
) -> dict[str, tuple[str, ...]]:
    """Notes on columns that the file itself gives, its labels among them."""
    notes = dict(loaded.column_notes)
    for name, level in zip(names, levels, strict=True):
        given = loaded.labels.get(name, {})
        if codes := codes_by_label(level.labels, given):
            said = ", ".join(f"{code!r} ({given[code]})" for code in codes[:5])
            notes[name] = (
                *notes.get(name, ()),
                f"column {name!r}: the labels of {said} say that there is no answer, but they "
                "count as values; declare them as missing codes",
            )
    return notes


def check_roles(names: tuple[str, ...], weight: str | None, homes: tuple[str, ...]) -> None:
    """Refuse a column in two roles; of several that tell a household one may be a key."""
    for role, name in (("weight", weight), *(("household", home) for home in homes)):
        alone = role == "weight" or len(homes) == 1
        if name is not None and (not isinstance(name, str) or (alone and name in names)):
            raise InputError(f"{role} must be the name of a column that is no key; it is {name!r}")
    if len(set(homes)) < len(homes):
        raise InputError(f"household names a column twice: {list(homes)}")
    if weight in homes:
        raise InputError(f"{weight!r} cannot be the weight and the household's id")


def check_keys(keys: Sequence[str]) -> tuple[str, ...]:
    """Return names of key variables, or refuse what names none, or one twice."""
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise InputError(f"keys must be a sequence of column names; it is {keys!r}")
    names = tuple(keys)
    if not names:
        raise InputError("keys must name at least one column")
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"column names must be text, got {name!r}")
        if names.count(name) > 1:
            raise InputError(f"key {name!r} is named twice")
    return names
