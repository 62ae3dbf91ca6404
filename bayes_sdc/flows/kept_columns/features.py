"""Ways to read a column: whole values, their digits, differences between rows, and two together.

An intruder reads the columns of a release in every way that may tell a count: the value itself, its
last digit, how often it occurs, the difference from the row before, the difference of two columns.
Each way is a feature; the tests do not depend on where it came from.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.flows.kept_columns.numbers import numbers_in
from bayes_sdc.flows.kept_columns.texts import (
    DIGIT_SUM,
    LAST_NUMBER,
    measures,
    numbers_inside,
    of_whole_numbers,
    together,
)

Codes = npt.NDArray[np.intp]
Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

FEW_VALUES = 64  # up to which numbers are looked at one by one
BINS = (4, 16, 64)  # into which numbers of more values are cut
MODULI = (*range(2, 17), 20, 24, 25, 26, 32, 36, 37, 50, 60, 64, 97, 100, 128, 256, 1000)
KEYED = (9, 10, 100)  # numbers of digits with which one number is often hidden in another
LIKELY = (*MODULI, 360, 365, 366, 500, 512, 1024, 10_000)  # one above the largest remainder
NEXT_ABOVE = 3  # of the likely divisors, which are tried
PLACES = 12  # characters of a text that are read from either end
COMMON_SIGNS, SAMPLED = 40, 5_000  # characters counted in a text; texts that show which ones
SEVERAL = 6  # columns up to which three of them are mixed
WIDEST = 12  # numeric columns up to which all four operations are tried on each pair


class Feature(NamedTuple):
    """One way to read one or more columns, a value for each row of the table."""

    columns: tuple[str, ...]
    how: str  # in words, empty for the value itself
    values: Codes | Numbers  # numbered categories, or numbers with missing ones as nan
    raw: bool = False  # the column as it stands
    there: Mask | None = None  # rows that it says something of; all by default


Make = Callable[[str, Codes | Numbers], Feature]


class Column(NamedTuple):
    """A column with its values as text and as numbers, and the numbers that its texts tell."""

    name: str
    text: pd.Series
    numbers: Numbers
    inside: Mapping[str, Numbers]


def read_column(name: str, values: pd.Series, *, inside: bool) -> Column:
    """Read a column as text and as numbers; without any, those that its texts tell if asked for."""
    places, distinct = pd.factorize(values.astype(object), use_na_sentinel=False)
    texts = ["" if pd.isna(value) else str(value) for value in distinct]
    text = pd.Series(np.array(texts, dtype=object)[places])
    numbers = numbers_in(values)
    told = inside and np.isnan(numbers).all()
    found = dict(chain(measures(text), numbers_inside(text))) if told else {}
    return Column(name, text, numbers, found)


def number_read(column: Column) -> Column:
    """Return a column of texts such as ``id 17`` with the last number in each."""
    return column._replace(numbers=column.inside.get(LAST_NUMBER, column.numbers))


def numbered(values: pd.Series) -> Codes:
    """Number the values of a column."""
    return np.asarray(pd.factorize(values)[0], np.intp)


def single_features(column: Column, ends: Sequence[Codes]) -> Iterator[Feature]:
    """Yield the ways to read one column; ``ends`` are the areas of the rows."""
    name, text, numbers, inside = column
    codes = numbered(text)

    def feature(how: str, values: Codes | Numbers) -> Feature:
        return Feature((name,), how, values)

    yield Feature((name,), "", codes, raw=True)
    yield feature("whether it is missing", np.asarray(text == "", np.intp))
    yield feature("how often its value occurs", np.bincount(codes)[codes])
    if codes.max(initial=0) > FEW_VALUES or np.isnan(numbers).all():
        yield feature("the length of its text", np.asarray(text.str.len(), np.float64))
        for where, part in _signs(text):
            yield feature(where, part)
    if np.isnan(numbers).all():
        for where, part in inside.items():
            yield feature(where, part)
            if where == LAST_NUMBER:
                yield from _remainders(feature, part, where)
        return
    yield feature("", numbers)
    yield from _tails(feature, numbers)
    pointed = numbers - np.min(numbers)
    if (np.sort(pointed) == np.arange(len(numbers))).all():  # numbers of rows
        yield feature("the row whose number stands here", np.argsort(pointed).astype(np.float64))
    if codes.max(initial=0) > 1:
        yield from _steps(feature, numbers, ends)


def moved_features(column: Column, moves: Mapping[str, Codes]) -> Iterator[Feature]:
    """Yield what a column holds in another row: a count may stand in the row of the way back.

    Parameters
    ----------
    column : Column
        Any.
    moves : mapping from words to array of int
        Row from which each row reads, -1 for none: (row,).
    """
    codes = numbered(column.text)
    for words, rows in moves.items():
        there = rows >= 0
        if not there.any():
            continue
        how = f"its value {words}"
        # whether there is such a row anyone sees, and it goes with the count
        text = np.isnan(column.numbers).all()
        values = codes[rows].astype(np.intp) if text else column.numbers[rows]
        yield Feature((column.name,), how, values, there=there)


def _tails(make: Make, numbers: Numbers) -> Iterator[Feature]:
    """The digits after the point, and remainders of whole numbers."""
    with np.errstate(invalid="ignore"):
        fraction = np.abs(numbers) % 1
    if np.nanmax(fraction, initial=0.0) > 0:
        yield make("its digits after the point", fraction)
        return
    yield from _remainders(make, numbers, "it")
    if np.isfinite(numbers).all() and np.abs(numbers).max() < 2**53:
        for words, values in of_whole_numbers(numbers):
            yield make(words, values)
            if words == DIGIT_SUM:  # as of numbers with a check digit
                yield from _remainders(make, values, words)


def _remainders(make: Make, numbers: Numbers, what: str) -> Iterator[Feature]:
    """What is left of whole numbers after division; many remainders are numbers themselves."""
    largest = np.nanmax(np.abs(numbers), initial=0.0)
    for modulus in MODULI:
        if largest >= modulus:
            left = np.where(np.isnan(numbers), -1.0, np.abs(numbers) % modulus)
            few = modulus <= FEW_VALUES
            words = f"what is left of {what} after division by {modulus}"
            yield make(words, left.astype(np.intp) if few else left)


def _steps(make: Make, numbers: Numbers, ends: Sequence[Codes]) -> Iterator[Feature]:
    """Differences between rows: a running total, or numbers of rows with gaps."""
    rows = np.arange(len(numbers))
    orders = {
        "in the order of the rows": rows,
        "in the order of its values": np.lexsort((rows, numbers)),
        "inside an origin": np.lexsort((rows, ends[0])),
        "inside a destination": np.lexsort((rows, ends[1])),
    }
    for words, order in orders.items():
        step = np.diff(numbers[order])
        inside = words.startswith("inside")
        if inside:
            end = ends[0 if "origin" in words else 1][order]
            step = np.where(np.diff(end) == 0, step, np.nan)
        for which, at in (("before", order[1:]), ("after", order[:-1])):
            values = np.full(len(numbers), np.nan)
            values[at] = step
            if inside and which == "before":  # the first row of an area starts from nothing
                first = np.r_[True, np.diff(end) != 0]
                values[order[first]] = numbers[order[first]]
            yield make(f"its difference to the row {which} {words}", values)


def _signs(text: pd.Series) -> Iterator[tuple[str, Codes | Numbers]]:
    """The sign at each place of a text, from both ends, and how often the common ones occur."""
    longest = int(text.str.len().max())
    for place in range(min(longest, PLACES)):
        yield f"character {place + 1} of its text", numbered(text.str[place : place + 1])
        end = None if place == 0 else -place
        last = "last character" if place == 0 else f"character {place + 1} from the end"
        yield f"the {last} of its text", numbered(text.str[-place - 1 : end])
    signs = pd.Series(list("".join(text.head(SAMPLED)))).value_counts().index[:COMMON_SIGNS]
    for sign in signs:
        number = text.str.count(re.escape(str(sign)))
        yield f"how often {sign!r} stands in its text", np.asarray(number, np.float64)


def pair_features(columns: Sequence[Column], kept: Sequence[str]) -> Iterator[Feature]:
    """Yield the ways to read two columns together, one of them at least a kept one."""
    codes = {column.name: numbered(column.text) for column in columns}
    wanted = [column for column in columns if column.name in kept]
    for one, other in combinations(wanted, 2):
        levels = [int(codes[column.name].max(initial=0)) + 1 for column in (one, other)]
        if min(levels) > 1 and max(levels) <= FEW_VALUES:
            joint = codes[one.name] * levels[1] + codes[other.name]
            yield Feature((one.name, other.name), "their values together", joint)
    if len(wanted) > 2:
        names = tuple(column.name for column in wanted)
        whole = np.stack([codes[name] for name in names], axis=1)
        joint = np.unique(whole, axis=0, return_inverse=True)[1].ravel()
        yield Feature(names, "their values together", joint)
    texts = [column for column in wanted if np.isnan(column.numbers).all()]
    for one, other in combinations(texts[:SEVERAL], 2):
        for how, values in together(one.text, other.text, one.inside, other.inside):
            yield Feature((one.name, other.name), how, values)
    columns = [number_read(column) if column.name in kept else column for column in columns]
    wanted = [column for column in columns if column.name in kept]
    numeric = [column for column in columns if np.isfinite(column.numbers).any()]
    added = [column for column in wanted if np.isfinite(column.numbers).any()]
    if len(added) > 2:  # as many columns as rows leave nothing to fit a sum to
        total = np.sum([np.nan_to_num(column.numbers) for column in added], axis=0)
        yield Feature(tuple(column.name for column in added), "their sum", total)
    for one, other in combinations(numeric, 2):
        if one.name not in kept and other.name not in kept:
            continue
        a, b = one.numbers, other.numbers
        pair = (one.name, other.name)
        yield Feature(pair, "their difference", a - b)
        if len(numeric) > WIDEST:
            continue
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for how, values in (("their sum", a + b), ("their product", a * b),
                                ("their ratio", a / b),
                                ("the difference of their squares", a * a - b * b)):  # fmt: skip
                yield Feature(pair, how, np.where(np.isfinite(values), values, np.nan))
    yield from _mixed([column for column in wanted if np.isfinite(column.numbers).any()])


def _mixed(columns: Sequence[Column]) -> Iterator[Feature]:
    """Whole numbers combined two, three or all at a time: so a key hides a number.

    Bit by bit, and two of them digit by digit.
    """
    whole = [
        column
        for column in columns
        if np.isfinite(column.numbers).all()
        and (column.numbers % 1 == 0).all()
        and (np.abs(column.numbers) < 2**53).all()
    ]
    if len(whole) > WIDEST:
        return
    sizes = (2, 3) if len(whole) <= SEVERAL else (2,)
    sets = [each for size in sizes for each in combinations(whole, size)]
    if len(whole) > max(sizes):
        sets.append(tuple(whole))
    for some in sets:
        mixed = np.bitwise_xor.reduce([column.numbers.astype(np.int64) for column in some])
        names = tuple(column.name for column in some)
        yield Feature(names, "their bits, added", mixed.astype(np.float64))
        if len(some) == 2:
            a, b = (column.numbers for column in some)
            for how, values in (("difference", a - b), ("sum", a + b)):
                for modulus in _divisors(a, b):
                    words = f"what is left of their {how} after division by {modulus}"
                    left = values % modulus
                    yield Feature(
                        names, words, left.astype(np.intp) if modulus <= FEW_VALUES else left
                    )


def _divisors(a: Numbers, b: Numbers) -> list[int]:
    """Numbers by which two columns may have been divided: usual ones, and those above either."""
    above = [
        [divisor for divisor in LIKELY if divisor > largest][:NEXT_ABOVE]
        for largest in (float(np.abs(a).max()), float(np.abs(b).max()))
    ]
    return sorted({*KEYED, *above[0], *above[1]})


def categories(values: Codes | Numbers) -> Iterator[Codes]:
    """Turn a feature of the small rows into numbered categories, coarse and fine."""
    if values.dtype.kind == "i":
        yield np.unique(values, return_inverse=True)[1]
        return
    distinct, codes = np.unique(values, return_inverse=True, equal_nan=True)
    if len(distinct) <= FEW_VALUES:
        yield codes
        return
    ranks = pd.Series(values).rank(method="average", pct=True).to_numpy()
    for bins in BINS:
        if len(values) >= 4 * bins:
            binned = np.where(np.isnan(ranks), bins, np.minimum(ranks * bins, bins - 1))
            yield np.unique(binned.astype(np.intp), return_inverse=True)[1]
