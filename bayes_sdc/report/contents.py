"""The table of contents of a report: each section with its verdict and the reason for it."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from bayes_sdc.checks import Check
from bayes_sdc.report.policy_limits import WITHHELD, Told

NOT_JUDGED = "not judged"  # the question was not asked
NOT_HELD = "A look does not hold a release: somebody has to read why, and decide."
VERDICTS = (NOT_JUDGED, "pass", "look", WITHHELD, "fail")  # a withheld verdict may not be a pass
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
    """Return the sections of a report, each with the worst verdict of its checks and the reasons.

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
    """
    of_section = checks_by_section(sections, told)
    entries = []
    for section, (title, _) in sections.items():
        checks = of_section[section]
        if section in without or (section in (OTHER, "policy") and not checks):
            continue
        verdict = max((check.verdict for check in checks), key=VERDICTS.index, default="")
        names: dict[str, list[str]] = {}  # a reason shared by several checks is given once
        for check in checks:
            if check.verdict == verdict:
                names.setdefault(check.reason.rstrip("."), []).append(check.name)
        reasons = [f"{', '.join(named)}: {reason}" for reason, named in names.items()]
        entries.append(Entry(section, title, verdict, "; ".join(reasons)))
    return entries


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
