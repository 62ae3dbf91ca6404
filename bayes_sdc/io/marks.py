"""Marks that stand in published tables where a count is hidden."""

import re
from collections.abc import Iterable

from bayes_sdc.io.numbers import text_of_number

LONGEST_MARK = 20  # characters
# one sign, one letter, either in brackets, codes such as -1, -9 and -99
SUPPRESSED = re.compile(
    r"|\*+|\.{1,3}|…|:|-{1,3}|[\u2013\u2014]|[cdsxupz]|\([cdsxupz]\)|\[[cdsxupz]\]"
    r"|-(1|[789]|7{2,}|8{2,}|9{2,})(\.0+)?"
    r"|: ?[cdsxupz]|suppressed|confidential",
    re.IGNORECASE,
)
LESS = r"(?:<|&lt;|under|below|less than|fewer than)"
BELOW = re.compile(rf"{LESS}\s*([0-9]{{1,9}})", re.IGNORECASE)
UP_TO = re.compile(r"(?:<=|≤|&le;|up to|at most)\s*([0-9]{1,9})", re.IGNORECASE)
RANGE = re.compile(r"([0-9]{1,9})\s*(?:-|\u2013|\.\.|to|bis|a)\s*([0-9]{1,9})")


def looks_suppressed(value: object) -> bool:
    """Whether a cell looks like one whose count is hidden; blank cells do.

    Examples
    --------
    >>> [mark for mark in ("*", "c", "1-4", "(D)", "-9", "17", "-3") if looks_suppressed(mark)]
    ['*', 'c', '1-4', '(D)', '-9']
    """
    mark = text_of_number(value)
    return SUPPRESSED.fullmatch(mark) is not None or limits(mark) != (None, None)


def may_be_a_mark(value: object) -> bool:
    """Whether a cell can be a mark that no list knows: a short text without digits, or below 0.

    Examples
    --------
    >>> [mark for mark in ("geheim", "n.a.", "-66", "1,076", "17") if may_be_a_mark(mark)]
    ['geheim', 'n.a.', '-66']
    """
    mark = text_of_number(value)
    without = len(mark) <= LONGEST_MARK and not any(sign.isdigit() for sign in mark)
    return without or re.fullmatch(r"-[0-9]+(\.0+)?", mark) is not None


def remedy_for(values: Iterable[object], *, certain: bool = True) -> str:
    """Say what to do with cells that look suppressed, with the option that fits them.

    Parameters
    ----------
    values : iterable
        The cells.
    certain : bool
        Whether they do look so, or only may stand for hidden counts.

    Examples
    --------
    >>> remedy_for(["*", "<5", "*"])
    "these cells look suppressed: leave them out, or `bayes-sdc audit` with --suppressed '*,<5' \
treats them as holes"
    """
    marks = dict.fromkeys(str(value).strip() for value in values)
    listed = ",".join(
        mark for mark in marks if mark and mark.lower() not in ("nan", "none", "<na>")
    )
    how = f"with --suppressed '{listed}'" if listed else "without more, blanks being holes,"
    begin = "these cells look suppressed:" if certain else "if these cells stand for hidden counts,"
    return f"{begin} leave them out, or `bayes-sdc audit` {how} treats them as holes"


def limits(mark: str) -> tuple[int | None, int | None]:
    """Return the smallest and the largest count that a mark stands for, where it says them.

    Examples
    --------
    >>> limits("<5"), limits("≤5"), limits("1-4"), limits("*")
    ((None, 4), (None, 5), (1, 4), (None, None))
    """
    mark = mark.strip()
    if match := BELOW.fullmatch(mark):
        return None, int(match[1]) - 1
    if match := UP_TO.fullmatch(mark):
        return None, int(match[1])
    if (match := RANGE.fullmatch(mark)) and int(match[1]) < int(match[2]):
        return int(match[1]), int(match[2])
    return None, None
