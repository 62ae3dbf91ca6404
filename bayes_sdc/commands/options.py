"""Options that several commands share, the panels of the help, and lists of columns."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from bayes_sdc.errors import InputError
from bayes_sdc.io.form import UNTOLD, FileForm
from bayes_sdc.io.unicode import refuse_no_unicode

INPUT, MODEL, RELEASE, RISK, MACHINE = "Input", "Model", "Release", "Risk", "Machine"  # panels
TREATMENTS = ("synthesis", "full-synthesis", "suppression", "pram", "recoding")


def option(text: str, panel: str, *names: str, choices: Sequence[str] = ()) -> Any:
    """Return an option in a panel of the help; a shell completes its choices."""
    complete = (lambda: list(choices)) if choices else None
    return typer.Option(*names, help=text, rich_help_panel=panel, autocompletion=complete)


def folder(given: str | Path) -> Path:
    """Return a folder; an empty name would mean the current one."""
    if not str(given).strip():
        raise typer.BadParameter("must name a folder; it is empty")
    return Path(given)


Out = Annotated[
    Path,
    typer.Option(
        help="Folder for release/, or held/, and confidential/.",
        rich_help_panel=RELEASE,
        parser=folder,
        metavar="PATH",
    ),
]
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
    "Totals that are published too, by word (origin, destination, group, origin-by-group, "
    "destination-by-group, national) or as a file; repeatable."
)


Decimal = Annotated[
    str | None, option("Mark before decimals: . or , where numbers may be read in two ways.", INPUT)
]
Thousands = Annotated[str | None, option("Mark between thousands: . , ' or a blank.", INPUT)]
HeaderLine = Annotated[int | None, option("Line that holds the column names, from 1.", INPUT)]
SkipRows = Annotated[int, option("Lines to skip at the top, or below --header-line.", INPUT)]
Layout = Annotated[
    Path | None, option("File of fixed widths: CSV with name, start and end of columns.", INPUT)
]
Query = Annotated[str | None, option("SQL, for a database of SQLite or DuckDB.", INPUT)]
Totals = Annotated[
    str | None,
    option(
        "Totals inside the table: drop, publish as they are, or flows: they add up by chance.",
        INPUT,
        choices=["drop", "publish", "flows"],
    ),
]
Wide = Annotated[bool, option("A matrix: origins in the first column.", INPUT, "--wide")]


def form_of(
    decimal: str | None,
    thousands: str | None,
    header_line: int | None,
    skip_rows: int,
    layout: Path | None,
    query: str | None,
    *,
    wide: bool = False,
) -> dict[str, FileForm]:
    """Return the form of the file as an argument of a reader; none where nothing was said."""
    form = FileForm(decimal, thousands, header_line, skip_rows, wide, layout, query)
    return {} if form == UNTOLD else {"form": form}


def columns(listed: str) -> list[str]:
    """Split a list of columns; blanks around a name are no part of it."""
    return [name.strip() for name in listed.split(",") if name.strip()]


def some_columns(listed: str | None, name: str) -> list[str]:
    """Split the list of an option that was left out or names something.

    Examples
    --------
    >>> some_columns(None, "--keep"), some_columns("a, b", "--keep")
    ([], ['a', 'b'])
    """
    found = columns(listed or "")
    if listed is not None and not found:
        raise InputError(f"{name} names nothing; it is {listed!r}. Leave it out, or name something")
    return found


def numbers(listed: str | None, name: str) -> list[float]:
    """Split a list of numbers.

    Examples
    --------
    >>> numbers("1, 0.5", "--released-epsilon")
    [1.0, 0.5]
    """
    try:
        return [float(number) for number in some_columns(listed, name)]
    except ValueError:
        raise InputError(f"{name} must be numbers, separated by commas; it is {listed!r}") from None


def whole_numbers(listed: str | None, name: str) -> list[int]:
    """Split a list of whole numbers.

    Examples
    --------
    >>> whole_numbers("1, 2", "--impossible")
    [1, 2]
    """
    try:
        return [int(number) for number in some_columns(listed, name)]
    except ValueError:
        raise InputError(
            f"{name} must be whole numbers, separated by commas; it is {listed!r}"
        ) from None


def shares_or_name(text: str) -> str | list[float]:
    """Return numbers where a list of them is given, else the text: a name or a file.

    Examples
    --------
    >>> shares_or_name("0.5,0.3,0.2"), shares_or_name("bundled")
    ([0.5, 0.3, 0.2], 'bundled')
    """
    try:
        return numbers(text, "") if "," in text else text
    except InputError:
        return text


def pairs(options: list[str] | None, name: str) -> list[tuple[str, str]]:
    """Split NAME=VALUE; the last = separates, because names of columns may hold one."""
    split = [option.rpartition("=") for option in options or []]
    for option, (left, _, right) in zip(options or [], split, strict=True):
        if not left or not right:
            raise InputError(f"{name} must look like NAME=VALUE; it is {option!r}")
    return [(left, right) for left, _, right in split]


def named_once(options: list[str] | None, name: str) -> dict[str, str]:
    """Split NAME=VALUE where a name has one value: a second one would replace the first unseen."""
    split = pairs(options, name)
    twice = [left for k, (left, _) in enumerate(split) if left in dict(split[:k])]
    if twice:
        raise InputError(f"{name} names {twice[0]!r} twice; give it once")
    return dict(split)


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


def as_typed(arguments: Sequence[str]) -> list[str]:
    r"""Return what was typed, lists joined; refuse bytes that are not UTF-8.

    A run writes its options into reports and tables, at its end, and these are UTF-8.

    Examples
    --------
    >>> as_typed(["microdata", "f.csv", "--keys", "region,", "sex"])
    ['microdata', 'f.csv', '--keys', 'region,sex']
    """
    for before, argument in pairwise(["", *arguments]):
        is_value = before.startswith("--") and not argument.startswith("-")
        refuse_no_unicode(before if is_value else "the argument", argument)
    return joined_lists(arguments)
