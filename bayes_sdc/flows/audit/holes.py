"""A table with holes, as anyone publishes it: what can be inferred about the hidden counts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.audit import bounds_of, covered_cells
from bayes_sdc.flows.audit.hidden_totals import with_hidden_totals
from bayes_sdc.flows.audit.inside.rows import InsideTotal
from bayes_sdc.flows.audit.inside.search import totals_inside
from bayes_sdc.flows.audit.programs import blocks_of
from bayes_sdc.flows.audit.propagation import FREE, System, make_system, propagate
from bayes_sdc.flows.audit.result import Audit
from bayes_sdc.flows.audit.settle import in_words, published_inside, unsettled
from bayes_sdc.flows.audit.solve import fits
from bayes_sdc.flows.table.families import Family, Hidden, Ints, families_of
from bayes_sdc.flows.table.read import FlowTable, read_flows
from bayes_sdc.io.columns import read_codes
from bayes_sdc.io.form import FileForm
from bayes_sdc.io.marks import limits
from bayes_sdc.io.tables import load


def holes_in(
    source: Any,
    wanted: tuple[str, str, str],
    marks: Sequence[str],
    secondary: Sequence[str],
    form: FileForm | None = None,
) -> int:
    """Count the rows whose count, the last of the columns, is blank or a mark."""
    loaded, count = load(source, wanted, form), wanted[-1]
    if count not in loaded.frame.columns:
        return 0  # the reader of tables gives the better message
    return int(_marked(loaded.frame[count], [*marks, *secondary]).sum())


def _marked(column: pd.Series, marks: Sequence[str]) -> np.ndarray:
    texts = column.astype(object).where(column.notna(), "").astype(str).str.strip()
    return np.asarray(texts.isin(["", *(mark.strip() for mark in marks)]), dtype=bool)


def _range(column: pd.Series, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest count that each hole can stand for: a mark such as <5 or 1-4 says it."""
    said = [limits(str(value)) for value in column]
    largest = [high if most is None else most for _, most in said]
    least = [
        min(low, most) if few is None else few for (few, _), most in zip(said, largest, strict=True)
    ]
    return np.array(least, dtype=np.int64), np.array(largest, dtype=np.int64)


def audit_holes(
    source: Any,
    *,
    origin: str,
    destination: str,
    count: str,
    groups: str | Sequence[str] | None = None,
    low: int = 1,
    high: int = 9,
    marks: Sequence[str] = (),
    secondary: Sequence[str] = (),
    published: Sequence[Any] = (),
    base: int = 1,
    own_area: bool | None = None,
    form: FileForm | None = None,
) -> Audit:
    """Bound the hidden counts of a table in which some are blank or replaced by a mark.

    Parameters
    ----------
    source
        Path or data frame, as for :func:`bayes_sdc.read_flows`.
    origin, destination, count, groups
        Names of the columns.
    low, high
        Range of a hidden count.
    marks
        Marks that stand for a hidden count, besides blanks. A mark that states its own limits, such
        as ``<5`` or ``1-4``, keeps them.
    secondary
        Marks that stand for a hidden count of any size, such as one hidden to protect others.
    published
        Tables of totals, as for :func:`bayes_sdc.audit_totals`; those inside the table are found.
    base
        The totals are rounded to a multiple of it.
    own_area
        Whether published totals include people who stayed in their area; needed where the numbers
        do not show it.
    form
        How the file is to be read, as for :func:`bayes_sdc.read_flows`.

    Returns
    -------
    Audit
        Bounds of every hole, those of totals inside the table below the others.

    Raises
    ------
    InputError
        If the table has no holes or cannot be read, or if no counts fit the totals.

    Notes
    -----
    Where no counts from ``low`` to ``high`` fit the totals that holes are in, these holes are
    bounded from 0, and if still none fit without an upper limit; a note says so.

    Examples
    --------
    >>> frame = pd.DataFrame(
    ...     {"o": ["A"] * 5, "d": list("wxyz") + ["Total"], "n": ["10", "3", "", "", "15"]}
    ... )
    >>> found = audit_holes(frame, origin="o", destination="d", count="n")
    >>> found.bounds["lower"].to_dict(), found.pinned
    ({'A>y': 1, 'A>z': 1}, 2)
    """
    loaded = load(source, (origin, destination, count), form)
    if count not in loaded.frame.columns:
        read_flows(source, origin=origin, destination=destination, count=count, form=form)
    column = loaded.frame[count]
    hole, any_size = _marked(column, marks), _marked(column, secondary) & ~_marked(column, ())
    mask = hole | any_size
    if not mask.any():
        raise InputError(f"{loaded.source}: no count is blank or a mark; declare the marks")
    filled = loaded.frame.assign(**{count: column.astype(object).where(~mask, "0")})
    table = read_flows(
        filled, origin=origin, destination=destination, count=count, groups=groups, low=low,
        high=high, form=form,
    )  # fmt: skip
    least, largest = _range(column, low, high)
    lower = np.where(hole, least, 0)
    upper = np.where(hole, largest, np.where(any_size, FREE, 0))
    hidden = Hidden(mask, lower.astype(np.int64), upper.astype(np.int64))
    found = unsettled(table, hidden)
    table = published_inside(table, found) if found else table
    families = families_of(table, published, own_area=own_area, base=base, hidden=hidden)
    inside = totals_inside(table, hidden)
    families += [each.family for each in inside]
    own = np.zeros(len(mask), dtype=bool)
    own[list(table.totals)] = True
    rows = np.flatnonzero(mask & ~own)
    return _audited(table, loaded.source, families, rows, hidden, in_words(found), inside)


def _audited(
    table: FlowTable,
    source: str,
    families: list[Family],
    rows: Ints,
    hidden: Hidden,
    inside: str,
    totals: Sequence[InsideTotal],
) -> Audit:
    counts = table.frame[table.count].to_numpy(np.int64)
    lower, upper, notes = _wide_enough(table, source, families, rows, hidden)
    codes = {
        name: read_codes(table.frame[name], name).texts()
        for name in (table.origin, table.destination, *table.groups)
    }
    names = [f"{o}>{d}" for o, d in zip(codes[table.origin], codes[table.destination], strict=True)]
    if len(set(names)) < len(names):
        names = ["|".join(map(str, each)) for each in zip(*codes.values(), strict=True)]
    bounds = bounds_of(families, counts, rows, lower, upper, [names[row] for row in rows])
    before = np.where(upper >= FREE, 0, upper - lower + 1)
    hidden_totals = np.flatnonzero(hidden.mask & np.isin(np.arange(len(names)), table.totals))
    if len(hidden_totals):
        bounds = with_hidden_totals(bounds, rows, hidden_totals, names, counts, hidden.mask, totals)
        before = np.append(before, np.zeros(len(hidden_totals), dtype=np.int64))
    every = np.concatenate([rows, hidden_totals])
    labels = pd.DataFrame(
        {"origin": codes[table.origin][every], "destination": codes[table.destination][every]},
        index=bounds.index,
    )
    if inside:
        notes = [f"totals inside the table: {inside}", *notes]
    return Audit(
        bounds=pd.concat([labels, bounds], axis=1),
        source=source,
        published=tuple(dict.fromkeys(family.name for family in families)),
        totals=sum(len(family.labels) for family in families),
        before=before,
        notes=tuple(notes),
        covered=covered_cells(families, rows),
    )


def _wide_enough(
    table: FlowTable, source: str, families: list[Family], rows: Ints, hidden: Hidden
) -> tuple[Ints, Ints, list[str]]:
    """Widen the range of holes whose totals no counts in it fit."""
    counts = table.frame[table.count].to_numpy(np.int64)
    cells = np.zeros(len(counts), dtype=bool)
    cells[rows] = True
    lower, upper = hidden.lower[rows].copy(), hidden.upper[rows].copy()
    notes = []
    wider: list[Mapping[str, Any]] = [
        {"lower": 0, "words": f"0 to {table.high}"},
        {"upper": FREE, "words": "any number"},
    ]
    for step in [*wider, None]:
        system = make_system(counts, cells, lower, upper, families)
        wrong = ~fits(system)[blocks_of(system)] if len(rows) else np.zeros(0, dtype=bool)
        if not wrong.any():
            break
        if step is None:
            codes = [table.frame[n].iloc[rows[wrong][0]] for n in (table.origin, table.destination)]
            raise InputError(
                f"{source}: no counts fit the totals that the hole {codes[0]}>{codes[1]} is in; "
                "check the totals, or say by base that they are rounded"
            )
        lower[wrong] = step.get("lower", 0)
        upper[wrong] = step.get("upper", upper[wrong])
        notes.append(
            f"{int(wrong.sum()):,} holes cannot all be {table.low} to {table.high}: bounded as "
            f"{step['words']}"
        )
    _refuse_wrong(source, system, families)
    return lower, upper, notes


def _refuse_wrong(source: str, system: System, families: list[Family]) -> None:
    """Refuse totals that hold no hidden count and are not the sum of their rows."""
    names = [f"{family.name} {label}".strip() for family in families for label in family.labels]
    for total in propagate(system).wrong:
        if system.start[total] == system.start[total + 1]:
            raise InputError(
                f"{source}: none of the rows of the total of {names[total]} is hidden, and they "
                f"differ from it by {system.low[total]:,} to {system.high[total]:,}; check this "
                "total, and the totals that were found inside the table, or say by base that "
                "totals are rounded"
            )
