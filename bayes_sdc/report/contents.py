"""The table of contents of a report: each section with its verdict and the reason for it."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from bayes_sdc.checks import Check
from bayes_sdc.report.policy_limits import WITHHELD, Told

VERDICTS = ("pass", "look", WITHHELD, "fail")  # what is withheld may be no pass
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
    sections : mapping from id to title and names of checks
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
    >>> checks = [Check("fit", "pass", "close"), Check("spread", "look", "too wide")]
    >>> contents_of({"model": ("The model", ["fit", "spread"]), "run": ("Run", [])}, checks)[0]
    Entry(id='model', title='The model', verdict='look', reason='spread: too wide')
    """
    unclaimed = {check.name for check in other_checks(sections, told)}
    entries = []
    for section, (title, names) in sections.items():
        mine = unclaimed if section == OTHER else names
        checks = [check for check in told if check.name in mine]
        if section in without or (section in (OTHER, "policy") and not checks):
            continue
        verdict = max((check.verdict for check in checks), key=VERDICTS.index, default="")
        reasons = [
            f"{check.name}: {check.reason.rstrip('.')}"
            for check in checks
            if check.verdict == verdict
        ]
        entries.append(Entry(section, title, verdict, "; ".join(reasons)))
    return entries


def other_checks(
    sections: Mapping[str, tuple[str, Sequence[str]]], told: Sequence[Check | Told]
) -> list[Check | Told]:
    """Return the checks that no section claims by name."""
    claimed = {name for _, names in sections.values() for name in names}
    return [check for check in told if check.name not in claimed]
