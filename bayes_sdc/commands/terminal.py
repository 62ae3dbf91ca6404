"""What the commands share: exit codes, lines of text, and the end of a run."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from bayes_sdc.jobs.writing import WrittenRun

EXIT_FAILED, EXIT_INPUT, EXIT_DEFECT, EXIT_INTERRUPTED = 1, 2, 70, 130


@contextmanager
def interruptible(remedy: str) -> Iterator[None]:
    """End with one line and an exit code of its own after Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"interrupted; {remedy}\n")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def end_of_run(written: "WrittenRun", lines: Sequence[str]) -> None:
    """Print the summary of a run; the exit code tells whether its release is held."""
    from bayes_sdc.jobs.summary import closing_lines

    say("\n".join([*lines, *closing_lines(written)]))
    if written.failed:
        raise typer.Exit(EXIT_FAILED)


def the_command() -> str:
    """Return the command as it was typed."""
    return shlex.join(["bayes-sdc", *sys.argv[1:]])


def say(text: str) -> None:
    """Print text as it is: codes from the data may look like markup."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
