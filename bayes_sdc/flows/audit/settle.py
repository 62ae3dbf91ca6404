"""Totals found inside a table: left out, or set aside and published as they are."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.inside.rows import InsideTotal
from bayes_sdc.flows.audit.inside.search import found_inside, totals_inside
from bayes_sdc.flows.table.families import Hidden
from bayes_sdc.flows.table.read import FlowTable

CHOICES = ("drop", "publish", "flows")
SHOWN = 5


@checked
def settle_totals(table: FlowTable, totals: str | None = None) -> FlowTable:
    """Find totals inside a table, and leave them out or set them aside.

    A total released beside synthetic counts gives true counts away. Mistaken for a flow, it is
    fitted like one. Codes of areas and groups, single rows and columns that are sums of others are
    found by arithmetic, whatever they are called.

    Not found: totals of in and out together, multiples of totals, totals in one row of one area,
    rows of means, totals rounded to 100, and totals of states beside counties without groups. Leave
    such rows out before the table is read.

    Parameters
    ----------
    table : FlowTable
        From :func:`bayes_sdc.read_flows`.
    totals : {"drop", "publish", "flows"}, optional
        What becomes of them: rows and columns are left out of the table and the release; or stay
        in the release as they are, set aside, and count as published in
        :func:`bayes_sdc.audit_totals`; or they are flows like others, which only add up by chance.

    Returns
    -------
    FlowTable
        The table itself if it holds none, or none that is not settled.

    Raises
    ------
    InputError
        If totals are found and ``totals`` does not say what becomes of them, if the word is
        unknown, or if they are to be flows although so many of them do not add up by chance.

    See Also
    --------
    bayes_sdc.audit_totals, bayes_sdc.read_flows

    References
    ----------
    D. Gusfield, "A graph theoretic approach to statistical data security", SIAM Journal on
    Computing 17, 1988, doi:10.1137/0217034.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import read_flows, settle_totals
    >>> frame = pd.DataFrame({"o": ["A"] * 3, "d": ["B", "C", "Total"], "n": [3, 20, 23]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> settle_totals(table, "drop").frame["d"].tolist()
    ['B', 'C']
    """
    if totals is not None and totals not in CHOICES:
        raise InputError(f"totals {totals!r} is unknown; choose from {list(CHOICES)}")
    found = unsettled(table)
    if not found:
        return table
    listed = in_words(found)
    if totals is None:
        raise InputError(
            f"{table.source}: holds totals, which give small counts away: {listed}. Choose what "
            "becomes of them: drop leaves them out (--totals drop), publish keeps them as they are "
            "and counts them among what the intruder knows (--totals publish)"
            + (
                "; if they are flows that add up by chance, say so (--totals flows)"
                if any(not each.beyond_chance for each in found)
                else ""
            )
        )
    if totals == "flows":
        return _taken_for_flows(table, found)
    rows = np.unique(np.concatenate([each.rows for each in found]))
    columns = [each.column for each in found if each.code is None]
    return (
        _dropped(table, rows, columns, listed)
        if totals == "drop"
        else published_inside(table, found)
    )


def _taken_for_flows(table: FlowTable, found: Sequence[InsideTotal]) -> FlowTable:
    """Leave everything as it is, where the sums may be chance."""
    sure = [each for each in found if each.beyond_chance]
    if sure:
        raise InputError(
            f"{table.source}: these are totals, because flows do not add up like that by chance: "
            f"{in_words(sure)}. Choose drop or publish (--totals drop, --totals publish)"
        )
    return replace(
        table,
        searched=[[]],
        notes=(*table.notes, f"taken for flows that add up by chance: {in_words(found)}"),
    )


def in_words(found: Sequence[InsideTotal]) -> str:
    """List what was found, the first few."""
    more = f"; and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return "; ".join(str(each) for each in found[:SHOWN]) + more


def unsettled(table: FlowTable, hidden: Hidden | None = None) -> list[InsideTotal]:
    """Totals inside a table that are not yet known to be published."""
    return [
        each
        for each in (found_inside(table) if hidden is None else totals_inside(table, hidden))
        if not (
            set(each.rows.tolist()) <= set(table.totals)
            if each.code is not None
            else each.column in table.total_columns
        )
    ]


def _dropped(table: FlowTable, rows: np.ndarray, columns: Sequence[str], listed: str) -> FlowTable:
    """Leave rows and columns out."""
    keep = np.ones(len(table.frame), dtype=bool)
    keep[rows] = False
    frame = table.frame.loc[keep].drop(columns=list(columns)).reset_index(drop=True)
    position = np.cumsum(keep) - 1
    cells = table.cells[keep[table.cells["row"].to_numpy()]]
    cells = cells.assign(row=position[cells["row"].to_numpy()])
    return _counted(
        replace(
            table,
            frame=frame,
            cells=cells,
            covariates=table.covariates.loc[cells.index],
            n_read=len(frame),
            withheld=tuple(int(position[row]) for row in table.withheld if keep[row]),
            totals=tuple(int(position[row]) for row in table.totals if keep[row]),
            searched=[],  # other rows, another search
            notes=(*table.notes, f"left out as totals: {listed}"),
        )
    )


def published_inside(table: FlowTable, found: Sequence[InsideTotal]) -> FlowTable:
    """Set totals inside a table aside: they stay as they are, and are no cells."""
    rows = {row for each in found for row in each.rows.tolist()} | set(table.totals)
    columns = [each.column for each in found if each.code is None]
    cells = table.cells[~table.cells["row"].isin(rows)]
    return _counted(
        replace(
            table,
            cells=cells,
            covariates=table.covariates.loc[cells.index],
            totals=tuple(sorted(rows)),
            total_columns=tuple(dict.fromkeys([*table.total_columns, *columns])),
            notes=(*table.notes, f"published as totals: {in_words(found)}"),
        )
    )


def _counted(table: FlowTable) -> FlowTable:
    """Count the classes of rows again; totals that stay are set aside."""
    frame = table.frame
    counts = frame[table.count].to_numpy(np.int64)
    codes = [
        frame[name].astype(str).to_numpy(dtype=object) for name in (table.origin, table.destination)
    ]
    aside = codes[0] == codes[1]
    total = np.zeros(len(frame), dtype=bool)
    total[list(table.totals)] = True
    flows = ~aside & ~total
    return replace(
        table,
        n_small=len(table.cells),
        n_safe=int((flows & (counts > table.high)).sum()),
        n_set_aside=int((aside | total).sum()),
        n_below=int((flows & (counts < table.low)).sum()),
        own_areas=tuple(sorted(set(codes[0][aside & ~total]))),
    )
