"""``bayes-sdc approve`` and ``doctor``: the commands that run no job."""

from pathlib import Path
from typing import Annotated

import typer

from bayes_sdc.commands.terminal import EXIT_FAILED, interruptible, say


@interruptible("the same command continues")
def approve(
    folder: Annotated[Path, typer.Argument(help="Folder of a run whose release is held.")],
    reason: Annotated[str, typer.Option(help="Why it may leave although a check failed.")],
) -> None:
    """Release what a failed check holds back, with a reason that is recorded in run.json."""
    from bayes_sdc.jobs.writing import approve as release_held

    moved, failed = release_held(folder, reason=reason)
    say(
        f"approved despite failed checks: {', '.join(failed)}; the reason and the date are recorded"
    )
    say("\n".join(f"may leave: {path}" for path in moved))


@interruptible("the same command starts from the beginning")
def doctor() -> None:
    """Check whether this machine has what the jobs need, and what would be slow on it."""
    from bayes_sdc.jobs.doctor import examine, verdict_line

    findings = examine()
    say("\n".join([*map(str, findings), verdict_line(findings)]))
    if any(finding.verdict == "missing" for finding in findings):
        raise typer.Exit(EXIT_FAILED)
