"""The last lines of a run, the same for every job: what a person needs, then where the rest is."""

import shlex
from collections.abc import Mapping, Sequence

from bayes_sdc.checks import Check
from bayes_sdc.jobs.writing import WrittenRun

LINES = 10  # of a summary; more only where more than a few checks failed
TRIVIAL = ("encoding: ", "separator: ")  # notes on reading that no one acts on


def notes_to_act_on(notes: Sequence[str]) -> list[str]:
    """Return the notes on reading that the console shows; the report has all of them."""
    return [f"note: {note}" for note in notes if not note.startswith(TRIVIAL)]


def summary_lines(
    headline: str, checks: Sequence[Check], measures: Sequence[str], seconds: Mapping[str, float]
) -> list[str]:
    """Return the summary of a run: headline, verdicts with reasons, main numbers, time.

    Parameters
    ----------
    headline : str
        What was done.
    checks : sequence of Check
        Every failed one is shown with its reason. Of those to be looked at the last share a line
        where there is no room, and those that passed are named.
    measures : sequence of str
        The main numbers, a line each.
    seconds : mapping
        Wall time of each stage.

    Returns
    -------
    list of str

    Examples
    --------
    >>> checks = [Check("fit", "pass", "close", key="fit"), Check("k", "fail", "1 < 3", key="k")]
    >>> summary_lines("9 records", checks, ["risk: 2 %"], {"risk": 61.0, "report": 2.2})
    ['9 records', 'FAIL  k: 1 < 3', 'pass  fit', 'risk: 2 %', 'time: 63 s, most of it risk (61 s)']
    """
    verdicts = [
        f"FAIL  {check.name}: {check.reason}" for check in checks if check.verdict == "fail"
    ]
    looks = [check for check in checks if check.verdict == "look"]
    passed = [check.name for check in checks if check.verdict == "pass"]
    room = LINES - 2 - len(verdicts) - bool(passed) - len(measures)
    shown = len(looks) if len(looks) <= room else max(room - 1, 0)
    verdicts += [f"LOOK  {check.name}: {check.reason}" for check in looks[:shown]]
    if looks[shown:]:
        names = ", ".join(check.name for check in looks[shown:])
        verdicts.append(f"LOOK  {names}: the report has the reasons")
    if passed:
        verdicts.append(f"pass  {', '.join(passed)}")
    return [headline, *verdicts, *measures, _time(seconds)]


def closing_lines(written: WrittenRun) -> list[str]:
    """Return what may leave or is held and why, and where the rest is."""
    run = written.folder
    rest = f"confidential: {run.confidential}; its report.html has all checks, tables and pictures"
    if not written.failed:
        return [*(f"may leave: {path}" for path in written.public), rest]
    files = ", ".join(path.name for path in written.public)
    return [
        f"HELD: {', '.join(written.failed)} failed, so {files} stay in {run.held}",
        rest,
        "to release it nevertheless, once the report is read: bayes-sdc approve "
        f"{shlex.quote(str(run.root))} --reason '...'",
    ]


def _time(seconds: Mapping[str, float]) -> str:
    if not seconds:
        return "time: less than a second"
    longest = max(seconds, key=lambda stage: seconds[stage])
    return f"time: {sum(seconds.values()):.0f} s, most of it {longest} ({seconds[longest]:.0f} s)"
