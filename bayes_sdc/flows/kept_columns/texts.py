"""Numbers that a text tells without holding them: capitals, words, runs of a sign, what differs.

Spaces at the end of a name, capitals inside it, a list with as many items as movers, a second text
that differs from the first in so many signs: each is a number of its own, and is asked what it
tells of the small counts like any other.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile

import numpy as np
import numpy.typing as npt
import pandas as pd

Numbers = npt.NDArray[np.float64]

VOWELS = frozenset("aeiouAEIOU")
RUN = re.compile(r"(.)\1*", re.DOTALL)
RUN_OF_DIGITS = re.compile(r"\d+")
LONGEST = 15  # digits of a number that is read from a text
PARTS = re.compile(r"[\s,;|/]+")
FIRST_NUMBER, LAST_NUMBER = "the first number in its text", "the last number in its text"
DIGIT_SUM = "the sum of its digits"

MEASURES: dict[str, Callable[[str], float]] = {
    "the number of capitals in its text": lambda text: sum(map(str.isupper, text)),
    "the number of small letters in its text": lambda text: sum(map(str.islower, text)),
    "the number of digits in its text": lambda text: sum(map(str.isdigit, text)),
    "the number of vowels in its text": lambda text: sum(map(VOWELS.__contains__, text)),
    "the number of different signs in its text": lambda text: len(set(text)),
    "the longest run of a sign in its text": lambda text: max(
        (len(run[0]) for run in RUN.finditer(text)), default=0
    ),
    "the number of words in its text": lambda text: len(PARTS.split(text)),
    "the longest word in its text": lambda text: max(map(len, PARTS.split(text))),
}


def measures(text: pd.Series) -> Iterator[tuple[str, Numbers]]:
    """Yield the numbers that the texts of a column tell.

    Examples
    --------
    >>> found = dict(measures(pd.Series(["aBc", "ABC d", ""])))
    >>> found["the number of capitals in its text"].tolist()
    [1.0, 3.0, 0.0]
    >>> found["the number of words in its text"].tolist()
    [1.0, 2.0, 1.0]
    """
    places, distinct = pd.factorize(text)
    for words, measure in MEASURES.items():
        yield words, np.array([measure(one) for one in distinct], np.float64)[places]


def numbers_inside(text: pd.Series) -> Iterator[tuple[str, Numbers]]:
    """Yield the first and last run of digits in a text, their difference and their ratio.

    Examples
    --------
    >>> [(words, values.tolist()) for words, values in numbers_inside(pd.Series(["7 to 9", "x"]))]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('the first number in its text', [7.0, nan]), ('the last number in its text', [9.0, nan]),
     ('the last number in its text less the first', [2.0, nan]),
     ('the first number in its text over the last', [0.7777777777777778, nan])]
    """
    places, distinct = pd.factorize(text)
    runs = [RUN_OF_DIGITS.findall(one) for one in distinct]
    if not any(runs):
        return
    first, last = (
        np.array([float(run[at][-LONGEST:]) if run else np.nan for run in runs])[places]
        for at in (0, -1)
    )
    yield FIRST_NUMBER, first
    yield LAST_NUMBER, last
    if any(len(run) > 1 for run in runs):
        yield "the last number in its text less the first", last - first
        over = first / np.where(last == 0, np.nan, last)
        yield "the first number in its text over the last", over


def together(
    one: pd.Series,
    other: pd.Series,
    in_one: Mapping[str, Numbers],
    in_other: Mapping[str, Numbers],
) -> Iterator[tuple[str, Numbers]]:
    """Yield the numbers that two texts tell together, given those inside each.

    Examples
    --------
    >>> one, other = pd.Series(["abcd", "x 3"]), pd.Series(["abxd", "x 5"])
    >>> inside = [dict(numbers_inside(text)) for text in (one, other)]
    >>> found = dict(together(one, other, *inside))
    >>> found["the number of places in which they differ"].tolist()
    [1.0, 1.0]
    >>> found["how many signs they begin with alike"].tolist()
    [2.0, 2.0]
    >>> found["the difference of their last numbers"].tolist()
    [nan, 2.0]
    """
    lengths = [column.str.len().to_numpy(np.float64) for column in (one, other)]
    yield "the difference of their lengths", np.asarray(lengths[1] - lengths[0], np.float64)
    pairs = list(zip(one, other, strict=True))
    differ = [sum(a != b for a, b in zip(*pair, strict=False)) for pair in pairs]
    yield "the number of places in which they differ", np.array(differ, np.float64)
    alike = [
        sum(1 for _ in takewhile(lambda ab: ab[0] == ab[1], zip(*p, strict=False))) for p in pairs
    ]
    yield "how many signs they begin with alike", np.array(alike, np.float64)
    numbers = (in_one, in_other)
    for which, words in (("first", FIRST_NUMBER), ("last", LAST_NUMBER)):
        if all(words in found for found in numbers):
            difference = numbers[1][words] - numbers[0][words]
            yield f"the difference of their {which} numbers", difference


def of_whole_numbers(numbers: Numbers) -> Iterator[tuple[str, Numbers]]:
    """Yield what the digits of whole numbers tell: their sum, and the bits that are set.

    Examples
    --------
    >>> [(words, values.tolist()) for words, values in of_whole_numbers(np.array([12.0, 7.0]))]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('the sum of its digits', [3.0, 7.0]), ('the number of its bits', [2.0, 3.0]),
     ('how often it can be halved', [2.0, 0.0])]
    """
    distinct, places = np.unique(numbers, return_inverse=True)
    whole = [abs(int(number)) for number in distinct]
    digits = [sum(map(int, str(number))) for number in whole]
    yield DIGIT_SUM, np.array(digits, np.float64)[places]
    yield "the number of its bits", np.array([n.bit_count() for n in whole], np.float64)[places]
    halved = [(n & -n).bit_length() - 1 for n in whole]
    yield "how often it can be halved", np.array(halved, np.float64)[places]
