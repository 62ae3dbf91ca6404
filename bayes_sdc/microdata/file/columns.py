"""What stands in a key, weight or household column, as arrays of numbers.

Every distinct value of a column is judged once and the verdict is spread over the records, so the
rules are plain exact Python and a million records are still read in a fraction of a second.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from bayes_sdc.errors import InputError
from bayes_sdc.io.columns import (
    INFINITE,
    LARGEST_COUNT,
    SCIENTIFIC,
    Problem,
    cut_digits,
    look_alikes,
    padding_variants,
)
from bayes_sdc.io.form import UNTOLD, FileForm
from bayes_sdc.io.marks import may_be_a_mark
from bayes_sdc.io.numbers import both_readings, decimals_in_two_ways, plain, text_of_number
from bayes_sdc.microdata.file.suspects import codes_by_position, unique_notes

LONGEST_INTEGER = 1024  # bits of a code that is a number
WHOLE = re.compile(r"([+-]?[0-9]+)\.0+")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Levels:
    """A key variable: its levels in order, and for each record a place in them.

    The place is -1 where the value is missing.
    """

    labels: tuple[str, ...]
    places: npt.NDArray[np.int32]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def read_levels(column: pd.Series, name: str, missing: Collection[str]) -> Levels:
    """Turn a column into levels; empty, blank and declared codes are missing.

    Parameters
    ----------
    column : Series
        Values of any kind; numbers become text, whole ones without a decimal point.
    name : str
        For messages.
    missing : collection of str
        Declared missing codes, compared with the text of a value, without outer spaces and the
        ``.0`` of a whole number too.

    Returns
    -------
    Levels
        Its labels are distinct texts in sorted order, or in that of an ordered categorical.
    """
    places, values = _distinct(column)
    texts = [text_of(value) for value in values]
    bad = [i for i, text in enumerate(texts) if text is None]
    problems = []
    if bad:
        rows = np.flatnonzero(np.isin(places, bad))
        problems.append(
            Problem(
                "a value that is no code",
                (name,),
                rows,
                tuple(values[places[row]] for row in rows[:5]),
                "write codes as text or whole numbers",
            )
        )
    declared = {*missing, *map(bare, missing)}
    known = [t if t and t.strip() and not {t, bare(t)} & declared else "" for t in texts]
    labels = _ordered(column, set(known) - {""})
    rank = {label: i for i, label in enumerate(labels)} | {"": -1}
    moved = np.array([rank[text] for text in known] or [-1], dtype=np.int32)
    codes = moved[places]
    seen = {bare(t) for t in texts if t is not None}
    numbers = any(isinstance(v, float | np.floating) and v == v for v in values)
    notes = tuple(_notes(name, labels, codes, missing, seen, numbers))
    return Levels(tuple(labels), codes, tuple(problems), notes)


def _ordered(column: pd.Series, known: set[str]) -> list[str]:
    """Labels in the order that the column has, or else sorted."""
    if not isinstance(column.dtype, pd.CategoricalDtype) or not column.dtype.ordered:
        return sorted(known)
    texts = [text_of(category) or "" for category in column.dtype.categories]
    return [text for text in dict.fromkeys(texts) if text in known]


def _notes(
    name: str,
    labels: list[str],
    codes: npt.NDArray[np.int32],
    missing: Collection[str],
    seen: Collection[str],
    numbers: bool,
) -> Iterator[str]:
    absent = int(np.sum(codes < 0))
    if absent:
        yield f"column {name!r}: {absent:,} values are missing"
    yield from unused_codes(name, missing, seen)
    if suspects := codes_by_position(labels):
        yield (
            f"column {name!r}: {_first(suspects)} counted as a value; if it stands for a missing "
            "value, declare it as a missing code"
        )
    lost = [label for label in labels if SCIENTIFIC.fullmatch(label.strip())]
    if lost:
        yield (
            f"column {name!r}: codes in scientific notation, whose digits may be gone, so that "
            f"several became one: {_first(lost)}; export the column as text"
        )
    if cut := cut_digits(labels):
        yield f"column {name!r}: {cut}"
    yield from unique_notes(name, labels, codes)
    if numbers:
        yield f"column {name!r}: codes read as numbers: leading zeros are lost; read them as text"
    spaced = [label for label in labels if label != label.strip()]
    if spaced:
        yield f"column {name!r}: codes with surrounding spaces, kept: {_first(spaced)}"
    alike = [" and ".join(map(repr, group)) for group in padding_variants(labels)]
    if alike:
        yield (
            f"column {name!r}: codes that differ only in padding count as different: "
            + ", ".join(alike[:5])
        )
    if alike := [" and ".join(map(repr, group)) for group in look_alikes(labels)]:
        yield (
            f"column {name!r}: codes that differ only in case, or in how their signs are stored, "
            f"count as different: {', '.join(alike[:5])}"
        )


def unused_codes(name: str, missing: Collection[str], seen: Collection[str]) -> list[str]:
    """Note the declared missing codes of a column that are none of the codes seen in it."""
    unused = sorted(code for code in missing if code.strip() and bare(code) not in seen)
    said = f"column {name!r}: declared missing codes that do not occur: {_first(unused)}"
    return [said] if unused else []


def _first(items: list[str]) -> str:
    more = f" and {len(items) - 5:,} more" if len(items) > 5 else ""
    return ", ".join(map(repr, items[:5])) + more


def bare(text: str) -> str:
    """Return the text without outer spaces and without the decimals of a whole number.

    >>> bare(" -999.0 "), bare("01"), bare("1.50")
    ('-999', '01', '1.50')
    """
    match = WHOLE.fullmatch(text.strip())
    return match[1] if match else text.strip()


def text_of(value: Any) -> str | None:
    """Return the text of a value: empty for a missing one, None for what cannot be a code.

    Examples
    --------
    >>> [text_of(v) for v in ("01", 1, 1.0, 1.5, True, None, [1], b"1")]
    ['01', '1', '1', '1.5', 'True', '', None, None]
    """
    if isinstance(value, str):
        return value
    # of bytes nobody knows the encoding
    if not pd.api.types.is_scalar(value) or isinstance(value, bytes):
        return None
    if pd.isna(value):
        return ""
    if isinstance(value, float | np.floating):
        number = float(value)
        if math.isinf(number):
            return None
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, int) and value.bit_length() > LONGEST_INTEGER:
        return None  # Python refuses to write thousands of digits
    return str(value)


def declared_missing(
    declared: Any, keys: tuple[str, ...], household: tuple[str, ...]
) -> dict[str, frozenset[str]]:
    """Return the declared codes of each key and of the columns of the household, as text."""
    columns = tuple(dict.fromkeys([*keys, *household]))
    if not isinstance(declared, Mapping):
        # 9 may be a missing age and yet the id of a household
        return dict.fromkeys(columns, frozenset()) | dict.fromkeys(keys, _texts(declared))
    unknown = [name for name in declared if name not in columns]
    if unknown:
        raise InputError(
            f"missing_codes names {unknown[0]!r}, which is neither a key nor a household column; "
            f"these are {list(columns)}"
        )
    return {name: _texts(declared.get(name)) for name in columns}


def _texts(codes: Any) -> frozenset[str]:
    several = [] if codes is None else [codes]
    if isinstance(codes, Sequence | set | frozenset | np.ndarray) and not isinstance(codes, str):
        several = list(codes)
    texts = [text_of(code) for code in several]
    if None in texts:
        raise InputError(f"missing codes must be text or numbers; they are {codes!r}")
    return frozenset(text for text in texts if text)


def read_weights(
    column: pd.Series, name: str, form: FileForm = UNTOLD
) -> tuple[Floats, tuple[Problem, ...]]:
    """Turn a column into positive weights with a sum up to 2^53; records with a problem get 1."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        weights = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if bool(np.all((weights > 0) & np.isfinite(weights))):
            return np.array(weights), tuple(_too_heavy(weights, name))
    places, values = _distinct(column)
    numbers = [_weight(value, form) for value in values]
    problems = list(_weights_in_two_ways(places, values, name, form))
    for what, remedy in {
        "missing weight": "give every record a weight, or remove the record",
        "weight that is not a number": "write plain digits, with a point before decimals (76.5) "
        "and without thousands separators, or name these by --decimal and --thousands",
        "infinite weight": "correct the weight",
        "negative weight": "weights are above 0",
        "weight 0": "a weight is the inverse of the probability to be in the sample, so it is "
        "above 0; name another weight, or remove the records that stand for nobody",
    }.items():
        bad = [i for i, number in enumerate(numbers) if number == what]
        if bad:
            rows = np.flatnonzero(np.isin(places, bad))
            shown = tuple(_plain(values[places[row]]) for row in rows[:5])
            if what != "missing weight" and all(may_be_a_mark(values[i]) for i in bad):
                remedy = f"{remedy}; if it marks a missing weight, remove these records"
            problems.append(Problem(what, (name,), rows, shown, remedy))
    usable = [number if isinstance(number, float) else 1.0 for number in numbers]
    weights = np.array(usable or [1.0])[places]
    return weights, (*problems, *_too_heavy(weights, name))


def _weights_in_two_ways(
    places: npt.NDArray[np.intp], values: list[Any], name: str, form: FileForm
) -> Iterator[Problem]:
    """Refuse weights that may be thousands: all that have decimals have three of them."""
    if not all(isinstance(value, str) for value in values):
        return
    found = set(decimals_in_two_ways([value.strip() for value in values], form))
    if found:
        bad = [i for i, value in enumerate(values) if value.strip() in found]
        rows = np.flatnonzero(np.isin(places, bad))
        shown = tuple(values[places[row]] for row in rows[:5])
        yield Problem(
            "weights that can be read in two ways, all with three digits after a point,",
            (name,),
            rows,
            shown,
            f"{both_readings(shown[0].strip())}: say which by --decimal . or --thousands . "
            "(a FileForm)",
        )


def _too_heavy(weights: Floats, name: str) -> Iterator[Problem]:
    """Refuse weights whose sum is beyond any number of people, and overflows when squared."""
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if total > LARGEST_COUNT:
        rows = np.flatnonzero(weights > LARGEST_COUNT / len(weights))  # at least one of them is
        yield Problem(
            f"weight that brings the sum to {total:.3g}, beyond 2^53,",
            (name,),
            rows,
            tuple(weights[rows[:5]].tolist()),
            "a weight is the number of people a record stands for; correct it or name another one",
        )


def _weight(value: Any, form: FileForm = UNTOLD) -> float | str:
    """Return the weight, or what is wrong with it.

    >>> [_weight(v) for v in (" 76 ", 1.5, "1e400", "1,076.5", 0, "-3", None)]
    [76.0, 1.5, 'infinite weight', 'weight that is not a number', 'weight 0', \
'negative weight', 'missing weight']
    """
    if not isinstance(value, str) and not pd.api.types.is_scalar(value):
        return "weight that is not a number"
    if isinstance(value, bool | np.bool_):
        return "weight that is not a number"
    text = "" if not isinstance(value, str) and pd.isna(value) else text_of_number(_plain(value))
    if not text:
        return "missing weight"
    found = plain(text, form) if isinstance(value, str) else plain(text)
    if INFINITE.fullmatch(found or text):
        return "infinite weight"
    if found is None:
        return "weight that is not a number"
    number = float(found)
    if math.isinf(number):
        return "infinite weight"
    if number < 0:
        return "negative weight"
    return number or "weight 0"


def _plain(value: object) -> object:
    # so that messages say -1 and not np.int64(-1)
    return value.item() if isinstance(value, np.generic) else value


def _distinct(column: pd.Series) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """Return the distinct values and, for each record, the place of its value among them."""
    arrow = column.dtype.pyarrow_dtype if isinstance(column.dtype, pd.ArrowDtype) else None
    if arrow is not None and pa.types.is_nested(arrow):  # lists, refused later, cannot be compared
        return np.arange(len(column)), list(column)
    text = isinstance(column.dtype, pd.StringDtype)
    if column.dtype == object:
        kind = pd.api.types.infer_dtype(column, skipna=True)
        text = kind == "string"
        if kind.startswith("mixed") or kind == "unknown-array":
            # 1, 1.0 and True are equal and would hide one another, so no value stands for another
            return np.arange(len(column)), list(column)
    if text:
        # by Arrow, which hashes bytes: three times as fast as texts of Python
        with suppress(UnicodeEncodeError, pa.ArrowInvalid):
            found = pa.array(column, type=pa.large_string(), from_pandas=True)
            if isinstance(found, pa.ChunkedArray):
                found = found.combine_chunks()
            coded = found.dictionary_encode(null_encoding="encode")
            return coded.indices.to_numpy(zero_copy_only=False), coded.dictionary.to_pylist()
    places, distinct = pd.factorize(column, use_na_sentinel=False)
    return places, list(distinct)
