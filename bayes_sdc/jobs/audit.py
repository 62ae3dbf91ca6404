"""An audit from file to bounds: of true counts with small ones, or of a table with holes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.audit import Audit, audit_totals
from bayes_sdc.flows.audit.holes import audit_holes, holes_in
from bayes_sdc.flows.audit.settle import unsettled
from bayes_sdc.flows.table.read import read_flows
from bayes_sdc.runs import write_bytes


def run_audit(
    file: Path,
    *,
    reading: Mapping[str, Any],
    marks: Sequence[str] = (),
    secondary: Sequence[str] = (),
    published: Sequence[str] = (),
    base: int = 1,
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
    out : Path, optional
        CSV file for the bounds, readable by its owner only.

    Returns
    -------
    Audit

    Raises
    ------
    InputError
        If the file cannot be read, is no table of flows, or ``out`` is there already.
    """
    if out is not None and out.exists():
        raise InputError(f"{out}: is there already; choose another name")
    if holes_in(file, reading["count"], marks, secondary):
        found = audit_holes(
            file, **reading, marks=marks, secondary=secondary, published=published, base=base
        )
    else:
        table = read_flows(file, **reading)
        usual = () if published or unsettled(table) else ("origin", "destination")
        found = audit_totals(table, published=[*published, *usual], base=base)
    if out is not None:
        rows = found.bounds.to_csv(lineterminator="\n").encode()
        write_bytes(out, rows, private=True)
    return found
