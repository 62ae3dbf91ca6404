"""An audit from file to bounds: of true counts with small ones, or of a table with holes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.audit import audit_totals
from bayes_sdc.flows.audit.holes import audit_holes, holes_in
from bayes_sdc.flows.audit.result import Audit
from bayes_sdc.flows.audit.settle import settle_totals, unsettled
from bayes_sdc.flows.table.read import read_flows
from bayes_sdc.io.spreadsheets import csv_chunks
from bayes_sdc.irs.audit import audit_irs
from bayes_sdc.irs.layouts import Direction
from bayes_sdc.irs.read import read_irs_flows
from bayes_sdc.runs import write_bytes


def run_audit(
    file: Path,
    *,
    reading: Mapping[str, Any],
    marks: Sequence[str] = (),
    secondary: Sequence[str] = (),
    published: Sequence[str] = (),
    base: int = 1,
    own_area: bool | None = None,
    totals: str | None = None,
    out: Path | None = None,
) -> Audit:
    """Audit a file, and write the bounds if asked for.

    Parameters
    ----------
    file : Path
        The table.
    reading : mapping
        Arguments of :func:`bayes_sdc.read_flows`.
    marks, secondary
        What stands for hidden counts, as for :func:`bayes_sdc.flows.audit.holes.audit_holes`.
    published : sequence of str
        Words or files. By default the totals inside the table; if there are none and all counts are
        known, totals by origin and destination.
    base : int
        What the totals are rounded to a multiple of.
    own_area : bool, optional
        Whether published totals include people who stayed in their area.
    totals : {"drop", "publish", "flows"}, optional
        As for :func:`bayes_sdc.settle_totals`, of a table without holes. By default totals inside
        the table count as published where chance does not make them.
    out : Path, optional
        CSV file for the bounds, readable by its owner only.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        If the file cannot be read, is no table of flows, or ``out`` already exists.
    """
    _refuse_existing(out)
    ends = (reading["origin"], reading["destination"], reading["count"])
    if holes_in(file, ends, marks, secondary, reading.get("form")):
        if totals is not None:
            raise InputError(f"{file}: --totals is for a table in which no count is hidden")
        found = audit_holes(
            file, **reading, marks=marks, secondary=secondary, published=published, base=base,
            own_area=own_area,
        )  # fmt: skip
    else:
        table = read_flows(file, **reading)
        if totals is not None:
            table = settle_totals(table, totals)
        inside = bool(table.totals or table.total_columns)
        inside |= any(each.believed for each in unsettled(table))
        usual = () if published or inside else ("origin", "destination")
        found = audit_totals(table, published=[*published, *usual], base=base, own_area=own_area)
    _write(found, out)
    return found


def run_irs_audit(
    file: Path,
    *,
    direction: str | None = None,
    years: str | None = None,
    published: Sequence[str] = (),
    out: Path | None = None,
) -> Audit:
    """Audit a county-to-county file of the IRS, and write the bounds if asked for.

    Parameters
    ----------
    file : Path
        The file, in any layout of the IRS.
    direction, years : str, optional
        As for :func:`bayes_sdc.read_irs_flows`.
    published : sequence of str
        The file of the other direction of the same years, if it is published too.
    out : Path, optional
        CSV file for the bounds, readable by its owner only.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        If a file cannot be read, or ``out`` already exists.
    """
    _refuse_existing(out)
    if direction is not None and direction not in get_args(Direction):
        raise InputError(f"direction {direction!r} is unknown; choose inflow or outflow")
    way: Any = direction
    flows = read_irs_flows(file, direction=way, years=years)
    if len(published) > 1:
        raise InputError(
            "beside a file of the IRS only one can be given as published, the one of the other "
            f"direction; there are {list(published)}"
        )
    other = None
    if published:
        turned: Any = "outflow" if flows.direction == "inflow" else "inflow"
        other = read_irs_flows(published[0], direction=turned, years=years)
    found = audit_irs(flows, other)
    _write(found, out)
    return found


def _refuse_existing(out: Path | None) -> None:
    if out is not None and out.exists():
        raise InputError(f"{out}: already exists; choose another name")


def _write(found: Audit, out: Path | None) -> None:
    if out is not None:
        rows = pd.concat([found.bounds, found.besides])
        write_bytes(out, b"".join(csv_chunks(rows, index=True)), private=True)
