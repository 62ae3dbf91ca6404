"""What may stand in a count or code cell, and the words for what may not.

Every distinct value of a column is judged once and the verdict is spread over the rows, so the
rules can be plain exact Python and a large table is still read in about a second.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from bayes_sdc.errors import InputError
from bayes_sdc.io.form import UNTOLD, FileForm
from bayes_sdc.io.marks import looks_suppressed, may_be_a_mark, remedy_for
from bayes_sdc.io.numbers import FLAGGED, both_readings, plain, reads_in_two_ways, text_of_number

Rows = npt.NDArray[np.intp]
Flaw = Literal[
    "missing",
    "negative",
    "fraction",
    "infinite",
    "two ways",
    "flagged",
    "text",
    "no code",
    "number as code",
    "digits lost",
]

LARGEST_COUNT = 2**53  # up to here a count is exact as a float too
SCIENTIFIC = re.compile(r"[+-]?[0-9]+([.,][0-9]*)?[eE][+-][0-9]+")
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
HIDDEN: tuple[Flaw, ...] = ("missing", "negative", "text")  # of a count that may be suppressed
MOST_MARKS = 5  # that a remedy names
SPREADSHEET_DIGITS, BY_CHANCE = 15, 3  # digits that are kept; zeros that are no coincidence
PADDED = re.compile(r"0*([0-9]+)(\.0+)?")

SAID: dict[Flaw, tuple[str, str]] = {
    "missing": ("missing count", "give the row a count or remove the row"),
    "negative": ("negative count", "counts are 0 or more"),
    "fraction": ("fractional count", "counts are whole numbers; weighted estimates do not fit"),
    "infinite": ("count that is infinite or beyond 2^53", "correct the count"),
    "two ways": (
        "count with three digits after a point",
        "say which by --decimal . or --thousands . (a FileForm), or write plain digits",
    ),
    "flagged": (
        "count with a flag",
        "put flags into a column of their own; a flag such as b, e or p says how a number was made",
    ),
    "text": (
        "count that is not a number",
        "write plain digits, without thousands separators, or name these by --thousands and "
        "--decimal",
    ),
    "no code": ("missing code", "give every row a code; total rows do not belong in the table"),
    "number as code": (
        "code that is not text",
        "read the column as text, because 1001.0 is not a code",
    ),
    "digits lost": (
        "code in scientific notation, whose digits are gone",
        "export the column as text from where it came from: a spreadsheet makes 1.00102E+13 of "
        "every code that begins with 100102, so that two areas become one",
    ),
}


@dataclass(frozen=True)
class Problem:
    """Rows that share one flaw, with the value found in each of the first few."""

    what: str
    columns: tuple[str, ...]
    rows: Rows
    values: tuple[object, ...]
    remedy: str

    def text(self, lines: npt.NDArray[np.int64] | None) -> str:
        """Say how many rows, the first five of them, and the remedy."""
        places = [
            f"row {row + 1}" + ("" if lines is None else f" (line {lines[row]})") + f" {value!r}"
            for row, value in zip(self.rows[:5].tolist(), self.values, strict=True)
        ]
        rows = "1 row" if len(self.rows) == 1 else f"{len(self.rows):,} rows"
        more = " and so on" if len(self.rows) > 5 else ""
        return (
            f"{name_columns(self.columns)}: {self.what} in {rows}: "
            f"{', '.join(places)}{more}. Remedy: {self.remedy}"
        )


def refuse_problems(
    source: str, problems: Sequence[Problem], lines: npt.NDArray[np.int64] | None = None
) -> None:
    """Raise one error that lists every problem, if there is one."""
    texts = [problem.text(lines) for problem in problems]
    if len(texts) == 1:
        raise InputError(f"{source}: {texts[0]}")
    if texts:
        raise InputError("\n- ".join([f"{source}: {len(texts)} problems", *texts]))


@dataclass(frozen=True, eq=False)
class Codes:
    """A column of codes as text: ``labels`` in sorted order, and for each row a place in them.

    The place is -1 in rows without a usable code, which are listed in ``problems``.
    """

    labels: tuple[str, ...]
    places: Rows
    problems: tuple[Problem, ...]
    numbers: bool  # some codes came as integers

    def texts(self) -> npt.NDArray[np.object_]:
        """Return the code of every row."""
        return np.array(self.labels, dtype=object)[self.places]


def name_columns(names: tuple[str, ...]) -> str:
    """Return ``column 'a'`` or ``columns 'a', 'b'``."""
    return ("column " if len(names) == 1 else "columns ") + ", ".join(map(repr, names))


def read_codes(column: pd.Series, name: str) -> Codes:
    """Turn a column into text codes; integers become text, other numbers are a problem."""
    places, values = _distinct(column)
    flaws = [_code_flaw(value) for value in values]
    texts = [str(value) if flaw is None else "" for value, flaw in zip(values, flaws, strict=True)]
    labels = sorted({t for t, flaw in zip(texts, flaws, strict=True) if flaw is None})
    rank = {label: i for i, label in enumerate(labels)}
    moved = [rank[t] if f is None else -1 for t, f in zip(texts, flaws, strict=True)]
    return Codes(
        labels=tuple(labels),
        places=np.array(moved, dtype=np.intp)[places],
        problems=tuple(_problems(name, places, values, flaws)),
        numbers=any(isinstance(value, int | np.integer) for value in values),
    )


def read_counts(
    column: pd.Series, name: str, form: FileForm = UNTOLD
) -> tuple[npt.NDArray[np.int64], tuple[Problem, ...]]:
    """Turn a column into whole counts; rows with a problem get 0."""
    places, values = _distinct(column)
    parsed = [_parse_count(value, form) for value in values]
    numbers = np.array([p if isinstance(p, int) else 0 for p in parsed], dtype=np.int64)
    flaws: list[Flaw | None] = [p if isinstance(p, str) else None for p in parsed]
    return numbers[places], tuple(_problems(name, places, values, flaws))


def duplicates(
    froms: Codes, tos: Codes, by: Sequence[Codes], wanted: tuple[str, ...]
) -> Iterable[Problem]:
    """Refuse a pair that has more than one row in its group."""
    keys = pd.DataFrame({i: codes.places for i, codes in enumerate((*by, froms, tos))})
    twice = (keys.duplicated(keep=False) & (keys >= 0).all(axis=1)).to_numpy()
    if twice.any():
        rows = np.flatnonzero(twice)
        shown = tuple(
            ">".join(codes.labels[codes.places[row]] for codes in (froms, tos)) for row in rows[:5]
        )
        within = " in the same group" if by else ""
        yield Problem(
            f"the same origin and destination{within} more than once",
            wanted[:2],
            rows,
            shown,
            "add the rows up, or name the column that tells them apart in groups",
        )


def own_area(froms: Codes, tos: Codes) -> npt.NDArray[np.bool_]:
    """Return which rows have the same code as origin and destination."""
    place_in_tos = {label: i for i, label in enumerate(tos.labels)}
    # -2 matches no place, not even the -1 of a missing code
    same = np.array([place_in_tos.get(label, -2) for label in froms.labels] + [-2], dtype=np.intp)
    return np.asarray(same[froms.places] == tos.places)


def padding_variants(codes: Iterable[str]) -> list[tuple[str, ...]]:
    r"""Return the sets of codes that differ only in leading zeros, ``.0`` or what nobody sees.

    >>> padding_variants(["01001", "1001", "1001.0", "01003", "A", "A\u200b"])
    [('01001', '1001', '1001.0'), ('A', 'A\u200b')]
    """
    alike: dict[str, list[str]] = {}
    for code in sorted(set(codes)):
        bare = _seen(code)
        match = PADDED.fullmatch(bare)
        alike.setdefault(match[1] if match else bare, []).append(code)
    return [tuple(found) for found in alike.values() if len(found) > 1]


def look_alikes(codes: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the sets of codes that look alike: other case, other blanks, accents stored apart.

    >>> look_alikes(["Z\u00fcrich", "Zu\u0308rich", "m", "M", "M "])
    [('M', 'm'), ('Zu\u0308rich', 'Z\u00fcrich')]
    """
    alike: dict[str, list[str]] = {}
    # what differs in outer blanks or invisible signs only is told by padding_variants
    for code in sorted({_seen(code) for code in codes}):
        if code.isascii() and code.isdigit():
            continue
        seen = " ".join(unicodedata.normalize("NFKC", code).casefold().split())
        alike.setdefault(seen, []).append(code)
    return [tuple(found) for found in alike.values() if len(found) > 1]


def _seen(code: str) -> str:
    """What one sees of a code: without outer blanks and signs that have no width."""
    if code.isascii():
        return code.strip()
    seen = "".join(sign for sign in code if unicodedata.category(sign) != "Cf")
    return " ".join(seen.split()) if "\xa0" in seen else seen.strip()


def cut_digits(codes: Iterable[str]) -> str | None:
    """Say that long numbers end in zeros from the sixteenth digit on, as a spreadsheet leaves them.

    >>> cut_digits(["123456789012345000", "123456789012346000"]) is None
    False
    >>> cut_digits(["123456789012345001", "12"]) is None
    True
    """
    long = [code.strip() for code in codes if len(code.strip()) > SPREADSHEET_DIGITS]
    zeros = sum(len(code) - SPREADSHEET_DIGITS for code in long)  # one in ten is one by chance
    cut = all(code.isdigit() and not code[SPREADSHEET_DIGITS:].strip("0") for code in long)
    if not cut or zeros < BY_CHANCE:
        return None
    return (
        f"numbers of more than {SPREADSHEET_DIGITS} digits that all end in zeros, as {long[0]!r}: "
        "a spreadsheet has cut them, so that several became one; export the column as text"
    )


def _distinct(column: pd.Series) -> tuple[Rows, list[Any]]:
    """Return the distinct values and, for each row, the place of its value among them."""
    if isinstance(column.dtype, pd.StringDtype):
        # by Arrow, which hashes bytes; a text that is no Unicode is left to pandas
        with suppress(UnicodeEncodeError, pa.ArrowInvalid):
            found = pa.array(column, type=pa.large_string(), from_pandas=True)
            whole = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
            coded = whole.dictionary_encode(null_encoding="encode")
            return coded.indices.to_numpy(zero_copy_only=False), coded.dictionary.to_pylist()
    values = column.astype(object)
    if pd.api.types.infer_dtype(values, skipna=True).startswith("mixed"):
        # 1, 1.0 and True are equal and would hide one another, so no value stands for another
        return np.arange(len(values)), list(values)
    places, distinct = pd.factorize(values, use_na_sentinel=False)
    return places, list(distinct)


def _is_missing(value: Any) -> bool:
    # None, NaN, NaT and NA; a list in a cell is not missing, and isna would return an array
    return pd.api.types.is_scalar(value) and bool(pd.isna(value))


def _code_flaw(value: object) -> Flaw | None:
    if _is_missing(value):
        return "no code"
    if isinstance(value, str):
        if SCIENTIFIC.fullmatch(value.strip()):
            return "digits lost"
        return None if _seen(value) else "no code"
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return None
    return "number as code"


def _parse_count(value: Any, form: FileForm = UNTOLD) -> int | Flaw:
    """Return the count that a cell stands for, or what is wrong with it.

    >>> [_parse_count(v) for v in (" 7 ", "3.0", 1e9, "1e400", "1,076", "d", -1, 3.5, True)]
    [7, 3, 1000000000, 'infinite', 'text', 'text', 'negative', 'fraction', 'text']
    >>> [_parse_count(v) for v in ("1.000", 1.0, "17 b")]
    ['two ways', 1, 'flagged']
    """
    if _is_missing(value):
        return "missing"
    if isinstance(value, bool | np.bool_):
        return "text"
    # a float as its shortest exact text, so that one rule serves numbers and text
    text = text_of_number(_plain(value))
    if not text:
        return "missing"
    if isinstance(value, str):
        if reads_in_two_ways(text, form):
            return "two ways"
        found = plain(text, form)
    else:
        found = plain(text)
    if INFINITE.fullmatch(found or text):
        return "infinite"
    if found is None:
        return "flagged" if FLAGGED.fullmatch(text) and not looks_suppressed(text) else "text"
    number = Decimal(found)
    if number < 0:
        return "negative"
    if number > LARGEST_COUNT:
        return "infinite"
    # a number in the range is safe to expand, however it was written
    whole = int(number)
    return whole if whole == number else "fraction"


def _problems(
    name: str, places: Rows, values: list[Any], flaws: list[Flaw | None]
) -> Iterable[Problem]:
    for flaw, (what, remedy) in SAID.items():
        bad = [i for i, found in enumerate(flaws) if found == flaw]
        if bad:
            rows = np.flatnonzero(np.isin(places, bad))
            shown = tuple(_plain(values[places[row]]) for row in rows[:5])
            if flaw == "two ways":
                remedy = f"{both_readings(str(shown[0]).strip())}: {remedy}"
            elif flaw in HIDDEN:
                remedy = _remedy_for_hidden(flaw, name, rows, [values[i] for i in bad], remedy)
            yield Problem(what, (name,), rows, shown, remedy)


def _remedy_for_hidden(
    flaw: Flaw, name: str, rows: Rows, values: Sequence[Any], remedy: str
) -> str:
    """Remedy for cells that may hide a count, or belong to a line that is no row of the table."""
    if any(str(value).strip() == name for value in values):
        return (
            f"the name {name!r} stands there again, so that a file was joined to another one; "
            f"remove that line; {remedy}"
        )
    marks = [value for value in values if flaw == "missing" or looks_suppressed(value)]
    if marks:
        others = "" if len(marks) == len(values) else f"{remedy}; "
        return others + remedy_for(marks)
    if unsure := [value for value in values if may_be_a_mark(value)]:
        remedy = f"{remedy}; {remedy_for(unsure[:MOST_MARKS], certain=False)}"
    if flaw == "text" and rows.tolist() == [0]:
        remedy = (
            "if that is a line of units or types below the names, --header-line (the line of the "
            f"names) with --skip-rows 1 leaves it out; {remedy}"
        )
    return remedy


def _plain(value: object) -> object:
    # so that messages say -1 and not np.int64(-1)
    return value.item() if isinstance(value, np.generic) else value
