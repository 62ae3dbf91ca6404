"""The last lines of a run, the same for every job: what a person needs, then where the rest is."""

import shlex
from collections.abc import Sequence

from bayes_sdc.jobs.writing import WrittenRun

CONFIDENTIAL = "confidential too: the lines above, which are made from the true data"
TRIVIAL = ("encoding: ", "separator: ")  # notes on reading that no one acts on


def notes_to_act_on(notes: Sequence[str]) -> list[str]:
    """Return the notes on reading that the console shows; the report has all of them."""
    return [f"note: {note}" for note in notes if not note.startswith(TRIVIAL)]


def closing_lines(written: WrittenRun) -> list[str]:
    """Return what is confidential, what may leave or is held and why, and where the rest is."""
    run = written.folder
    rest = f"confidential: {run.confidential}; its report.html has all checks, tables and pictures"
    if not written.failed:
        return [CONFIDENTIAL, *(f"may leave: {path}" for path in written.public), rest]
    files = ", ".join(path.name for path in written.public)
    stay = "stays" if len(written.public) == 1 else "stay"
    return [
        CONFIDENTIAL,
        f"HELD: {', '.join(written.failed)} failed, so {files} {stay} in {run.held}",
        rest,
        "to release it nevertheless, once the report is read: bayes-sdc approve "
        f"{shlex.quote(str(run.root))} --reason '...'",
    ]
