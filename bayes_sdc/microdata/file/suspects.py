"""Codes that may stand for a missing value, and keys that are nearly unique."""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bayes_sdc.io.numbers import NUMBER

WORDS = frozenset(["na", "n/a", "nan", "null", "none", "nil", "<na>", "?", "*", "**", "-", "--"])
ERRORS = re.compile(r"#(N/A|REF!|VALUE!|NAME\?|NULL!|DIV/0!|NUM!)|\.{1,3}|\.[a-z]", re.IGNORECASE)
# words in the labels that questionnaires give to missing answers
LABELS = re.compile(
    r"no (answer|response|data|information|statement)|not (stated|applicable|available|answered|"
    r"asked|ascertained|known|reported)|refus(ed|al|é)|don'?t know|do not know|unknown|missing|"
    r"inapplicable|does not apply|undisclosed|k\. ?a\.|keine (angabe|antwort)|weiss nicht|"
    r"weiß nicht|trifft nicht zu|verweigert|sans objet|non[- ]r[eé]ponse|ne sait pas|sin respuesta|"
    r"no (sabe|contesta)",
    re.IGNORECASE,
)
# 2021-03-01 or 2021-03-01T10:00; with the year at the end 1.3.2021, 03/01/2021
DATE = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})(-[0-9]{2}([T ].*)?)?"
    r"|[0-9]{1,2}(?P<mark>[./-])[0-9]{1,2}(?P=mark)(?P<last>[0-9]{4})"
)
MOST_APART = 6  # codes that stand apart; more are values
MOST_WORDS, FEW = 0.1, 3  # texts among numbers: share of the values, and how many
FAR, PART = 3.0, 8.0  # gap before codes that stand apart: in gaps of the others, and their reach
NEARLY, USUAL, LEAST = 0.95, 0.5, 30  # shares of records with a value of their own; records


def codes_by_label(labels: Sequence[str], given: Mapping[str, str]) -> list[str]:
    """Return codes whose label says that there is no answer.

    Examples
    --------
    >>> codes_by_label(["1", "-1"], {"1": "yes", "-1": "No answer"})
    ['-1']
    """
    return [code for code in labels if LABELS.search(given.get(code, ""))]


def codes_by_position(labels: Sequence[str]) -> list[str]:
    """Return codes that stand apart from the others, as codes of missing values do.

    Those are words such as NA or "not stated"; few words among numbers; numbers below 0 beside
    numbers from 0; and few numbers at the end, of repeated digits such as 88 or 99, behind a gap
    that is wide beside those of the others.

    Examples
    --------
    >>> codes_by_position(["1", "2", "3", "-9", "88", "97", "98", "99"])
    ['-9', '88', '97', '98', '99']
    >>> codes_by_position([str(age) for age in range(100)])
    []
    >>> codes_by_position([*map(str, range(20, 60)), "88", "X"])
    ['X', '88']
    """
    numbers = {
        float(label.strip()): label
        for label in labels
        if NUMBER.fullmatch(label.strip()) and float(label.strip()).is_integer()
    }
    values = sorted(numbers)
    below = [value for value in values if value < 0]
    rest = [value for value in values if value >= 0]
    if not rest or len(below) > MOST_APART:
        below = []
    return [*_words(labels, len(values)), *(numbers[value] for value in [*below, *_at_end(rest)])]


def _words(labels: Sequence[str], numbers: int) -> list[str]:
    """Words that say nothing, and few words among many numbers."""
    words = [label for label in labels if not any(sign.isdigit() for sign in label)]
    if len(words) <= min(FEW, MOST_WORDS * numbers):
        return [word for word in words if word.strip()]
    return [
        word
        for word in words
        if word.strip().casefold() in WORDS or ERRORS.fullmatch(word.strip()) or LABELS.search(word)
    ]


def _at_end(values: Sequence[float]) -> Sequence[float]:
    """Few numbers of repeated digits behind a gap."""
    for place in range(max(1, len(values) - MOST_APART), len(values)):
        block, end = values[:place], values[place:]
        reach = max(block[-1] - block[0], 1.0)
        usual = max(float(np.diff(block).max(initial=1.0)), 1.0)
        gap = end[0] - block[-1]
        apart = gap > reach or (len(block) > FEW and gap >= max(FAR * usual, reach / PART))
        if apart and all(_repeated(value) for value in end):
            return end
    return []


def _repeated(value: float) -> bool:
    """Whether a number is made of repeated digits at the end of a range, as 8, 88, 97 or 999."""
    text = f"{value:.0f}"
    return re.fullmatch(r"(7+|8+|9+|9*[6-9])", text) is not None


def nearly_unique(labels: Sequence[str], codes: np.ndarray, share: float) -> bool:
    """Whether more than a share of the records have a value of their own in a key variable."""
    present = int((codes >= 0).sum())
    return present >= LEAST and len(labels) > share * present


def unique_notes(name: str, labels: Sequence[str], codes: np.ndarray) -> Iterator[str]:
    """Say that a key variable is nearly unique, with the classes that fit it."""
    if not nearly_unique(labels, codes, USUAL):
        return
    some = [label.strip() for label in labels[:50]]
    if all(NUMBER.fullmatch(label) for label in some):
        remedy = f"classes: --bands {name}=q10 (ten of as many records), or =5 (a width)"
    elif all(DATE.fullmatch(label) for label in some):
        remedy = f"classes: --bands {name}=year"
    else:
        remedy = "classes in the file, or leave it out, if it is a name or number of the person"
    present = int((codes >= 0).sum())
    yield (
        f"column {name!r}: {len(labels):,} distinct values in {present:,} records, so that it is "
        f"nearly unique by itself; put it into {remedy}"
    )
