"""``bayes-sdc audit``: which hidden counts follow from totals."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayes_sdc.commands.options import (
    INPUT,
    PUBLISHED,
    RELEASE,
    RISK,
    Decimal,
    HeaderLine,
    Layout,
    Query,
    SkipRows,
    Thousands,
    Totals,
    Wide,
    columns,
    form_of,
    option,
    some_columns,
)
from bayes_sdc.commands.terminal import EXIT_FAILED, interruptible, say
from bayes_sdc.errors import InputError

if TYPE_CHECKING:
    from bayes_sdc.flows.audit.result import Audit


@interruptible("the same command starts from the beginning")
def audit(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV (also .gz) or Parquet: true counts, or with holes; or a county file of the "
            "IRS, if no columns are named."
        ),
    ],
    *,
    origin: Annotated[str | None, option("Column of the origin's code.", INPUT)] = None,
    destination: Annotated[str | None, option("Column of the destination's code.", INPUT)] = None,
    count: Annotated[str | None, option("Column of the count.", INPUT)] = None,
    groups: Annotated[str | None, option("Columns, separated by commas.", INPUT)] = None,
    low: Annotated[int, option("Smallest count that is hidden.", INPUT)] = 1,
    high: Annotated[int, option("Largest count that is hidden.", INPUT)] = 9,
    hole: Annotated[
        list[str] | None,
        option("Mark of a hidden count from --low to --high, besides blanks; repeatable.", INPUT),
    ] = None,
    secondary: Annotated[
        list[str] | None,
        option("Mark of a hidden count of any size; repeatable.", INPUT),
    ] = None,
    suppressed: Annotated[
        str | None,
        option(
            "Marks of hidden counts, separated by commas, as '*,c,<5'; the same as --hole.", INPUT
        ),
    ] = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    header_line: HeaderLine = None,
    skip_rows: SkipRows = 0,
    layout: Layout = None,
    query: Query = None,
    wide: Wide = False,
    published: Annotated[list[str] | None, option(PUBLISHED, RISK)] = None,
    base: Annotated[
        int, option("What the published totals are rounded to a multiple of.", RISK)
    ] = 1,
    own_area: Annotated[
        bool | None,
        option(
            "Whether published totals include people who stayed in their area. By default the "
            "numbers show it.",
            RISK,
            "--with-own-area/--without-own-area",
        ),
    ] = None,
    totals: Totals = None,
    direction: Annotated[
        str | None, option("IRS file: inflow or outflow, if the file does not say.", INPUT)
    ] = None,
    years: Annotated[
        str | None, option("IRS file: its years, as 2010-2011, if the file does not say.", INPUT)
    ] = None,
    out: Annotated[
        Path | None, option("CSV file for the bounds of every cell; confidential.", RELEASE)
    ] = None,
) -> None:
    """Tell which hidden counts follow from totals; of true counts, the small ones are hidden.

    Without names of columns the file is read as a county-to-county file of the IRS: rows that are
    replaced by -1 or d, and flows that are not shown, are bounded by its totals. The file of the
    other direction can be given as published beside.
    """
    from bayes_sdc.jobs.audit import run_audit, run_irs_audit

    if not (origin or destination or count):
        _audited(
            run_irs_audit(
                file,
                direction=direction,
                years=years,
                published=tuple(published or ()),
                out=out,
            )
        )
        return
    if not (origin and destination and count):
        raise InputError(
            "--origin, --destination and --count belong together; name all three, or none for a "
            "county file of the IRS"
        )
    if direction or years:
        raise InputError("--direction and --years are for files of the IRS; leave out the columns")
    found = run_audit(
        file,
        reading={
            "origin": origin,
            "destination": destination,
            "count": count,
            "groups": some_columns(groups, "--groups") or None,
            "low": low,
            "high": high,
            **form_of(decimal, thousands, header_line, skip_rows, layout, query, wide=wide),
        },
        marks=(*(hole or ()), *columns(suppressed or "")),
        secondary=tuple(secondary or ()),
        published=tuple(published or ()),
        base=base,
        own_area=own_area,
        totals=totals,
        out=out,
    )
    _audited(found)


def _audited(found: "Audit") -> None:
    """Print an audit; the exit code tells whether something is pinned, or may be."""
    say(found.summary())
    if found.pinned + found.pinned_besides + found.in_doubt:
        raise typer.Exit(EXIT_FAILED)
