"""Figures and lists of a first page, of either job."""

from typing import NamedTuple

NAMED = 3  # uses, checks and the like named in a sentence


class Figure(NamedTuple):
    """One figure of page one."""

    number: str
    words: str
    verdict: str  # pass, look, fail or not judged
    why: str  # what decides the verdict
    short: str = ""  # name among what is to be read before a release, where no check has one
    key: str = ""  # of the check of a section that this figure decides


def listed(items: list[str], most: int = NAMED) -> str:
    """Join a few items, and say how many more there are."""
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest} more" if rest > 0 else "")


def grouped(names: list[str]) -> str:
    """List names of checks; those that share what stands before a colon are put together.

    Examples
    --------
    >>> grouped(["models", "classes: chains", "classes: fraction"])
    'models, classes (chains, fraction)'
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        first, colon, rest = name.partition(": ")
        groups.setdefault(first, []).extend([rest] if colon else [])
    return ", ".join(
        f"{first} ({', '.join(rest)})" if rest else first for first, rest in groups.items()
    )
