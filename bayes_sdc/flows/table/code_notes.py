"""What is odd about codes: marks that spreadsheets leave, padding, codes seen on one side only."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.io.columns import (
    Codes,
    Problem,
    cut_digits,
    look_alikes,
    name_columns,
    padding_variants,
)

MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
MARKS = {
    "dates, which spreadsheets make of codes": re.compile(
        rf"\d{{1,2}}[-. ]({MONTHS})|({MONTHS})[-. ]\d{{1,4}}|\d{{1,2}}[-./]({MONTHS})[-./]\d{{2,4}}"
        r"|\d{4}-\d\d-\d\d([T ].*)?|\d{1,2}/\d{1,2}/\d{2,4}",
        re.IGNORECASE,
    ),
    "formulas, as spreadsheets guard text": re.compile(r"\s*=.*"),
    "errors of a spreadsheet": re.compile(
        r"#(N/A|REF!|VALUE!|NAME\?|NULL!|DIV/0!|NUM!)", re.IGNORECASE
    ),
}
USUAL = 0.8  # share of codes above which the others are exceptions
# words of names that tell one end of a pair from the other
ENDS = {
    "o", "d", "origin", "destination", "orig", "dest", "from", "to", "source", "target", "src",
    "dst", "home", "work", "residence", "workplace", "w", "h", "out", "in", "sending",
    "receiving", "old", "new", "previous", "current", "before", "after", "y1", "y2", "1", "2",
    "i", "j", "von", "nach", "left", "right", "start", "end",
}  # fmt: skip
FLAGS = frozenset({"0", "1", "y", "n", "yes", "no", "t", "f", "true", "false", "m"})
# words of names that tell of larger areas, as in origin_state, statefips or HomeCountry
AREA = re.compile(
    r".*(state|region|countr|county|nation|provin|district|depart|territor|[ck]anton|kreis|bezirk"
    r"|fylke|municip|kommun|fips|nuts|zone|area|geo).*|st|prov|dist|dept|land|lau|msa|cbsa|gov|iso"
)
CHANCE_ALIKE = 3.0  # standard errors within chance
FEWEST_ALIKE = 4.0  # expected rows in one larger area, below which their number tells nothing


def code_notes(names: tuple[str, ...], columns: tuple[Codes, ...]) -> Iterator[str]:
    """Say what is odd about the codes of origin, destination and groups, with the first five."""
    for name, codes in zip(names, columns, strict=True):
        if codes.numbers:
            yield (
                f"column {name!r}: codes read as numbers: leading zeros are lost; read them as text"
            )
        spaced = [repr(code) for code in codes.labels if code != code.strip()]
        if spaced:
            yield f"column {name!r}: codes with surrounding spaces, kept: {first(spaced)}"
        for what, mark in MARKS.items():
            found = [repr(code) for code in codes.labels if mark.fullmatch(code.strip())]
            if found and (len(found) < USUAL * len(codes.labels) or "dates" not in what):
                yield f"column {name!r}: codes that look like {what}, kept: {first(found)}"
    for alike_in, labels in (
        (names[:2], {*columns[0].labels, *columns[1].labels}),
        *(((name,), {*c.labels}) for name, c in zip(names[2:], columns[2:], strict=True)),
    ):
        alike = [" and ".join(map(repr, codes)) for codes in padding_variants(labels)]
        if alike:
            yield (
                f"{name_columns(alike_in)}: codes that differ only in padding "
                f"count as different: {first(alike)}"
            )
        if alike := [" and ".join(map(repr, codes)) for codes in look_alikes(labels)]:
            yield (
                f"{name_columns(alike_in)}: codes that differ only in case, or in how their signs "
                f"are stored, count as different: {first(alike)}"
            )
        if cut := cut_digits(labels):
            yield f"{name_columns(alike_in)}: {cut}"
    yield from _one_side(names, columns)
    for name, by in zip(names[2:], columns[2:], strict=True):
        yield from _one_value(name, by, columns[:2])


def _one_side(names: tuple[str, ...], columns: tuple[Codes, ...]) -> Iterator[str]:
    """Areas that are never an origin, or never a destination, where nearly all are both."""
    froms, tos = (set(codes.labels) for codes in columns[:2])
    if len(froms & tos) < USUAL * len(froms | tos):
        return
    for name, here, there in ((names[0], froms, tos), (names[1], tos, froms)):
        only = sorted(map(repr, here - there))
        if only:
            yield f"codes that occur in column {name!r} only: {first(only)}"


def _one_value(name: str, by: Codes, ends: Sequence[Codes]) -> Iterator[str]:
    """Areas that occur in one value of a group column, where nearly all occur in several.

    Meant for years and the like. A state of one end is left alone: a county whose flows all stay
    in its state is no mistake.
    """
    if any(
        pd.DataFrame({"area": codes.places, "by": by.places}).drop_duplicates()["area"].is_unique
        for codes in ends
    ):
        return
    pairs = pd.concat(
        [pd.DataFrame({"area": codes.texts(), "by": by.places}).drop_duplicates() for codes in ends]
    ).drop_duplicates()
    times = pairs["area"].value_counts()
    once = times.index[times == 1]
    if 0 < len(once) <= (1 - USUAL) * len(times):
        yield f"codes that occur with one value of column {name!r} only: " + first(
            sorted(map(repr, once))
        )


def first(items: Sequence[str]) -> str:
    """Return the first five, and how many more there are."""
    more = f" and {len(items) - 5:,} more" if len(items) > 5 else ""
    return ", ".join(items[:5]) + more


def own_area_across_groups(
    own: npt.NDArray[np.bool_], by: Sequence[Codes], names: tuple[str, ...], ends: Sequence[Codes]
) -> Iterator[Problem]:
    """Refuse own-area rows that cross groups: area codes that are unique only within a state.

    County 001 of one state and county 001 of another would pass as the same area, and a flow
    between them would be released as it is. Two columns with the same values, such as sex and age,
    are no states: only names, or one value for each code of an end, make them that.
    """
    if len(by) != 2 or not set(by[0].labels) & set(by[1].labels):
        return
    texts = [np.array([*codes.labels, ""], dtype=object)[codes.places] for codes in by]
    rows = np.flatnonzero(own & (texts[0] != texts[1]))
    if rows.size and (_named_as_areas(*names) or _tell_of_ends(texts, ends)):
        yield Problem(
            "origin and destination have the same code but lie in different groups",
            names,
            rows,
            tuple(f"{texts[0][row]}>{texts[1][row]}" for row in rows[:5]),
            "codes must be unique in the whole table: put the group in front of the area code",
        )


def ask_about_ends(
    source: str,
    frame: pd.DataFrame,
    taken: tuple[str, ...],
    own: npt.NDArray[np.bool_],
    ends: Sequence[Codes],
    groups: Sequence[str] = (),
) -> None:
    """Refuse own-area rows whose ends two further columns tell apart.

    County 001 of one state and county 001 of another would pass as one area, and the flow between
    them as people who stayed.

    Parameters
    ----------
    source : str
        For messages.
    frame : DataFrame
        The table.
    taken : tuple of str
        Origin, destination and count.
    own : ndarray of bool
        Rows whose origin is the destination.
    ends : sequence of Codes
        Of origin and destination.
    groups : sequence of str
        Columns that make groups: two of them cross all pairs of areas, as sex and age do.

    Raises
    ------
    InputError
        If two columns look like the larger areas of the two ends, and differ in such a row.
    """
    rows = np.flatnonzero(own)
    if not rows.size:
        return
    names = [str(name) for name in frame.columns if name not in taken]
    texts = {
        name: frame[name].astype(object).map(str).to_numpy(object)
        for name in names
        if names.count(name) == 1
    }
    for place, one in enumerate(texts):
        for other in list(texts)[place + 1 :]:
            a, b = texts[one], texts[other]
            differ = rows[a[rows] != b[rows]]
            if not differ.size or not _larger_areas(one, other, a, b, ends):
                continue
            if {one, other} <= set(groups) and not (
                _named_as_areas(one, other) or _tell_of_ends((a, b), ends)
            ):
                continue
            if any(_splits(codes, text) for codes, text in zip(ends, (a, b), strict=True)):
                row = int(differ[0])
                code = ends[0].labels[ends[0].places[row]]
                raise InputError(
                    f"{source}: are the codes of {taken[0]!r} and {taken[1]!r} unique only within "
                    f"{one!r} and {other!r}? Row {row + 1} goes from {code!r} in {a[row]!r} to "
                    f"{code!r} in {b[row]!r}, and {differ.size:,} rows of one code do so; they "
                    "would pass as people who stayed. Remedy: put the larger area in front of the "
                    f"code; if {code!r} is one area, rename or remove one of the two columns"
                )


def _larger_areas(
    one: str, other: str, a: np.ndarray, b: np.ndarray, ends: Sequence[Codes]
) -> bool:
    """Whether two columns hold codes of the same larger areas, one for each end of a pair."""
    left, right = set(a), set(b)
    if len(left | right) < 2 or len(left & right) * 2 < len(left | right):
        return False
    alike = bool(_stem(one)) and _stem(one) == _stem(other)
    if _named_as_areas(one, other):
        return True
    values = {value.strip().lower() for value in left | right}
    # numbers may be anything, and flags agree in their values without a meaning
    if values <= FLAGS or any(
        re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?|nan|none|<na>|", value) for value in values
    ):
        return alike and not (_unrelated(a, b) or _scattered(ends, (a, b)))
    return True


def _named_as_areas(one: str, other: str) -> bool:
    """Whether two names differ in the end of the pair only, and tell of larger areas."""
    return _stem(one) == _stem(other) and any(AREA.fullmatch(word) for word in _stem(one))


def _tell_of_ends(larger: Sequence[np.ndarray], ends: Sequence[Codes]) -> bool:
    """Whether each column has one value for each code of its end, and not the same one for all."""
    if any(len(set(values)) < 2 for values in larger):
        return False
    return any(
        not any(_splits(codes, values) for codes, values in zip(order, larger, strict=True))
        for order in (ends, ends[::-1])
    )


def _scattered(ends: Sequence[Codes], larger: Sequence[np.ndarray]) -> bool:
    """Whether numbers change from row to row of one code, as a larger area does not.

    An area has one larger area in all its flows, so rows by far outnumber the pairs of the two.
    """
    pairs = (
        len(pd.DataFrame({"code": codes.places, "in": values}).drop_duplicates())
        for codes, values in zip(ends, larger, strict=True)
    )
    return min(pairs) > len(larger[0]) / 2


def _unrelated(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two columns are equal as often as they would be if one of them were shuffled.

    Flows stay in a larger area much more often than that, or, where a table holds flows between
    larger areas only, never.
    """
    here, there = pd.Series(a).value_counts(), pd.Series(b).value_counts()
    expected = float((here * there).dropna().sum()) / len(a)
    found = int((a == b).sum())
    return (
        found > 0
        and expected >= FEWEST_ALIKE
        and (found - expected) ** 2 <= CHANCE_ALIKE**2 * expected
    )


def _stem(name: str) -> tuple[str, ...]:
    """The words of a name without those that tell the two ends apart."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", name)
    joined = re.split(r"[^0-9a-zA-Z]+", name.lower())
    parts = [word for word in joined if word and word not in ENDS]
    if len(parts) < len([word for word in joined if word]):
        return tuple(parts)
    return tuple(word.lower() for word in words if word.lower() not in ENDS)


def _splits(codes: Codes, larger: np.ndarray) -> bool:
    """Whether a code lies in more than one larger area."""
    pairs = pd.DataFrame({"code": codes.places, "in": larger}).drop_duplicates()
    return bool(pairs["code"].duplicated().any())
