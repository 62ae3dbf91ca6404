"""Codes that may stand for a missing value, and keys that are nearly unique."""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bayes_sdc.io.numbers import NUMBER

WORDS = frozenset(["na", "n/a", "nan", "null", "none", ".", "?", "*"])
# words of the labels that questionnaires give to answers that are none
LABELS = re.compile(
    r"no (answer|response|data|information|statement)|not (stated|applicable|available|answered|"
    r"asked|ascertained|known|reported)|refus|don'?t know|do not know|unknown|missing|inapplicable|"
    r"does not apply|undisclosed|k\. ?a\.|keine (angabe|antwort)|weiss nicht|weiß nicht|"
    r"trifft nicht zu|verweigert|sans objet|non[- ]r[eé]ponse|ne sait pas|sin respuesta|"
    r"no (sabe|contesta)",
    re.IGNORECASE,
)
MOST_APART = 6  # codes that stand apart; more are values
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

    That are words such as NA; numbers below 0 beside numbers from 0; and few numbers at the end, of
    repeated digits such as 88 or 99, farther from the others than these reach.

    Examples
    --------
    >>> codes_by_position(["1", "2", "3", "-9", "88", "97", "98", "99"])
    ['-9', '88', '97', '98', '99']
    >>> codes_by_position([str(age) for age in range(100)])
    []
    """
    words = [label for label in labels if label.strip().casefold() in WORDS]
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
    apart: list[float] = []
    for place in range(max(1, len(rest) - MOST_APART), len(rest)):
        block, end = rest[:place], rest[place:]
        reach = max(block[-1] - block[0], 1.0)
        if end[0] - block[-1] > reach and all(_repeated(value) for value in end):
            apart = end
            break
    return [*words, *(numbers[value] for value in [*below, *apart])]


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
        remedy = f"--bands {name}=q10 (ten classes of as many records), or =5 (a width)"
    elif all(re.fullmatch(r"\d{4}-\d\d.*", label) for label in some):
        remedy = f"--bands {name}=year"
    else:
        remedy = "or leave it out, if it is a name or number of the person"
    present = int((codes >= 0).sum())
    yield (
        f"column {name!r}: {len(labels):,} distinct values in {present:,} records, so that it is "
        f"nearly unique by itself; put it into classes: {remedy}"
    )
