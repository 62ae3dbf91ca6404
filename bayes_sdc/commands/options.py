"""Options that several commands share, the panels of the help, and lists of columns."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bayes_sdc.errors import InputError

INPUT, MODEL, RELEASE, RISK, MACHINE = "Input", "Model", "Release", "Risk", "Machine"  # panels
TREATMENTS = ("synthesis", "full-synthesis")


def option(text: str, panel: str, *names: str, choices: Sequence[str] = ()) -> Any:
    """Return an option in a panel of the help; a shell completes its choices."""
    complete = (lambda: list(choices)) if choices else None
    return typer.Option(*names, help=text, rich_help_panel=panel, autocompletion=complete)


Out = Annotated[Path, option("Folder for release/, or held/, and confidential/.", RELEASE)]
Sampler = Annotated[
    str,
    option(
        "gibbs, nuts, or reference: the paper's own Metropolis within Gibbs.",
        MODEL,
        choices=["gibbs", "nuts", "reference"],
    ),
]
PolicyFile = Annotated[
    Path | None, option("TOML file of named, dated limits on the risk.", RISK, "--policy")
]
Cores = Annotated[
    int | None, option("Threads; by default all. Draws do not depend on it.", MACHINE)
]

PUBLISHED = (
    "Totals that are published beside, by word (origin, destination, group, origin-by-group, "
    "destination-by-group, national) or as a file; repeatable."
)


def columns(listed: str) -> list[str]:
    """Split a list of columns; blanks around a name are no part of it."""
    return [name.strip() for name in listed.split(",") if name.strip()]


def pairs(options: list[str] | None, name: str) -> list[tuple[str, str]]:
    """Split NAME=VALUE; the last = separates, because names of columns may hold one."""
    split = [option.rpartition("=") for option in options or []]
    for option, (left, _, right) in zip(options or [], split, strict=True):
        if not left or not right:
            raise InputError(f"{name} must look like NAME=VALUE; it is {option!r}")
    return [(left, right) for left, _, right in split]


def joined_lists(arguments: Sequence[str]) -> list[str]:
    """Join what a shell split at the blanks after the commas of a list.

    Examples
    --------
    >>> joined_lists(["--keys", "region,", "sex,", "age", "--out", "run"])
    ['--keys', 'region,sex,age', '--out', 'run']
    """
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1].endswith(",") and not argument.startswith("-"):
            joined[-1] += argument
        else:
            joined.append(argument)
    return joined
