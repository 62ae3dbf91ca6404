"""The table of contents of a report: each section with its verdict and the reason for it."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from bayes_sdc.checks import Check
from bayes_sdc.report.policy_limits import WITHHELD, Told

NOT_JUDGED = "not judged"  # the question was not asked
NOT_HELD = "A look does not hold a release: somebody has to read why, and decide."
VERDICTS = (NOT_JUDGED, "pass", "look", WITHHELD, "fail")  # a withheld verdict may not be a pass
SEVERAL = 2  # reasons of a section, above which only the checks are named
LONGEST, SHORTEST = 120, 60  # signs of the reasons of a section, and of one of two
OTHER = "other"  # section of the checks that no section claims, so that none is lost


class Entry(NamedTuple):
    """A line of the table of contents; the verdict is empty where nothing is judged."""

    id: str
    title: str
    verdict: str
    reason: str


def contents_of(
    sections: Mapping[str, tuple[str, Sequence[str]]],
    told: Sequence[Check | Told],
    *,
    without: Collection[str] = (),
) -> list[Entry]:
    """Return the sections of a report, each with the worst verdict of its checks and why in short.

    The sections hold the whole reasons; who reads the first page reads which checks decide.

    Parameters
    ----------
    sections : mapping from id to title and keys of checks
        In the order of the report.
    told : sequence of Check or Told
        What the audience reads of each check.
    without : collection of str
        Ids of the sections that this report does not have. That of a policy is left out where
        there is none, and so is the one for other checks.

    Returns
    -------
    list of Entry

    Examples
    --------
    >>> checks = [
    ...     Check("fit to the counts", "pass", "close", key="fit"),
    ...     Check("spread", "look", "too wide", key="spread"),
    ... ]
    >>> contents_of({"model": ("The model", ["fit", "spread"]), "run": ("Run", [])}, checks)[0]
    Entry(id='model', title='The model', verdict='look', reason='spread: too wide')
    >>> contents_of({"model": ("The model", ["fit"])}, checks)[0].reason
    'fit to the counts'
    """
    of_section = checks_by_section(sections, told)
    entries = []
    for section, (title, _) in sections.items():
        checks = of_section[section]
        if section in without or (section in (OTHER, "policy") and not checks):
            continue
        verdict = max((check.verdict for check in checks), key=VERDICTS.index, default="")
        deciding = [check for check in checks if check.verdict == verdict]
        entries.append(Entry(section, title, verdict, _in_short(deciding)))
    return entries


def _in_short(checks: Sequence[Check | Told]) -> str:
    """Name the checks; with the start of each reason where they did not pass, and limit nothing."""
    names: dict[str, list[str]] = {}  # a reason shared by several checks is given once
    for check in checks:
        plain = check.verdict == "pass" or check.key.startswith("limit_")
        names.setdefault("" if plain else check.reason.rstrip("."), []).append(check.name)
    if len(names) > SEVERAL:
        return ", ".join(check.name for check in checks)
    room = max(LONGEST // max(len(names), 1), SHORTEST)
    reasons = [
        ", ".join(named) + (f": {_start(reason, room)}" if reason else "")
        for reason, named in names.items()
    ]
    return "; ".join(reasons)


def _start(reason: str, most: int) -> str:
    """Return the clauses of a reason that there is room for; of a long one the first words.

    Examples
    --------
    >>> _start("R-hat is 1.02; it is high. See there", 30)
    'R-hat is 1.02; it is high'
    >>> _start("the chains disagree", 12), _start("the chains", 12)
    ('the chains …', 'the chains')
    """
    if len(reason) <= most:
        return reason
    ends = [end.start() for end in re.finditer(r"; |\. ", reason) if end.start() <= most]
    if ends:
        return reason[: ends[-1]]
    return reason[: most - 1].rpartition(" ")[0].rstrip(" ,:") + " …"


def checks_by_section(
    sections: Mapping[str, tuple[str, Sequence[str]]], told: Sequence[Check | Told]
) -> dict[str, list[Check | Told]]:
    """Return the checks of each section by their keys; those that none claims are the others.

    Examples
    --------
    >>> checks = [Check("a new question", "look", "odd", key="new")]
    >>> found = checks_by_section({"model": ("The model", ["fit"]), "other": ("Other", [])}, checks)
    >>> {section: len(mine) for section, mine in found.items()}
    {'model': 0, 'other': 1}
    """
    claimed = {key for _, keys in sections.values() for key in keys}
    return {
        section: [
            check
            for check in told
            if check.key in keys or (section == OTHER and check.key not in claimed)
        ]
        for section, (_, keys) in sections.items()
    }
