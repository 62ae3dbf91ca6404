"""Marks that stand in published tables where a count is hidden."""

import re
from collections.abc import Iterable

# one sign, one letter, either in brackets, a count below another, codes such as -1, -9 and -99
SUPPRESSED = re.compile(
    r"|\*+|\.{1,3}|…|:|-{1,3}|[\u2013\u2014]|[cdsxupz]|\([cdsxupz]\)|\[[cdsxupz]\]"
    r"|(<|&lt;|under|below|less than)\s*[0-9]+|-(1|[789]|7{2,}|8{2,}|9{2,})(\.0+)?"
    r"|: ?[cdsxupz]|suppressed|confidential",
    re.IGNORECASE,
)
BELOW = re.compile(r"(?:<|&lt;|under|below|less than)\s*([0-9]+)", re.IGNORECASE)


def looks_suppressed(value: object) -> bool:
    """Whether a cell looks like one whose count is hidden; blank cells do.

    Examples
    --------
    >>> [mark for mark in ("*", "c", "<5", "(D)", "-9", "17", "-3") if looks_suppressed(mark)]
    ['*', 'c', '<5', '(D)', '-9']
    """
    return SUPPRESSED.fullmatch(str(value).strip()) is not None


def remedy_for(values: Iterable[object]) -> str:
    """Say what to do with cells that look suppressed, with the option that fits them.

    Examples
    --------
    >>> remedy_for(["*", "<5", "*"])
    "these cells look suppressed: leave them out, or `bayes-sdc audit` with --suppressed '*,<5' \
treats them as holes"
    """
    marks = dict.fromkeys(str(value).strip() for value in values)
    listed = ",".join(mark for mark in marks if mark and mark.lower() not in ("nan", "none"))
    how = f"with --suppressed '{listed}'" if listed else "without more, blanks being holes,"
    return (
        f"these cells look suppressed: leave them out, or `bayes-sdc audit` {how} treats them as "
        "holes"
    )


def most(mark: str) -> int | None:
    """Return the largest count that a mark such as ``<5`` stands for, if it says one.

    Examples
    --------
    >>> most("<5"), most("*")
    (4, None)
    """
    match = BELOW.fullmatch(mark.strip())
    return int(match[1]) - 1 if match else None
