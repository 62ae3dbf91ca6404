"""Totals inside the table: codes, rows and columns that are sums of others, whatever their names.

A row ``A > Total`` is not a flow. Released beside the flows it is a published total: 23 less 20 is
3. Such rows are found by arithmetic (:mod:`bayes_sdc.flows.audit.inside.codes` and the modules
beside). Sums that arithmetic cannot tell from chance are kept apart from those that it can.
"""

from collections.abc import Collection, Iterator

import numpy as np

from bayes_sdc.flows.audit.inside.both_ends import totals_of_both_ends
from bayes_sdc.flows.audit.inside.codes import codes_that_are_sums, crossing, joined
from bayes_sdc.flows.audit.inside.columns import columns_of_totals, grand_total
from bayes_sdc.flows.audit.inside.parts import totals_in_parts
from bayes_sdc.flows.audit.inside.rows import InsideTotal, Rows, called_total, rows_of
from bayes_sdc.flows.audit.inside.subtotals import subtotals
from bayes_sdc.flows.table.families import Family, Hidden, sums_of
from bayes_sdc.flows.table.read import FlowTable


def totals_inside(
    table: FlowTable, hidden: Hidden | None = None, *, doubtful: bool = True
) -> list[InsideTotal]:
    """Find codes of areas and groups, single rows and columns that are sums of others.

    Parameters
    ----------
    table : FlowTable
        From :func:`bayes_sdc.read_flows`.
    hidden : Hidden, optional
        Rows whose count is not known, and its range.
    doubtful : bool
        Whether to report sums that may be chance and are not called totals, too.

    Returns
    -------
    list of InsideTotal
        Codes first, by column, then a grand total, then columns of totals.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import read_flows
    >>> frame = pd.DataFrame({"o": ["A"] * 3, "d": ["B", "C", "99"], "n": [3, 20, 23]})
    >>> [found] = totals_inside(read_flows(frame, origin="o", destination="d", count="n"))
    >>> print(found)
    column 'd', code '99' (1 row): sums of the counts by o, right in 1 of 1
    """
    rows = rows_of(table, hidden)
    found = _search(rows, table)
    if hidden is None and not all(each.believed for each in found):
        # what is beyond chance first, so that no chance sum hides it
        rows = rows_of(table, hidden)
        found = _search(rows._replace(doubtful=False), table)
        found += _search(rows, table, {each.column for each in found}) if doubtful else []
    if hidden is None and doubtful:
        found += _only_called(rows)
    return [_checked(each, rows) for each in found]


def _search(rows: Rows, table: FlowTable, but: Collection[str] = ()) -> list[InsideTotal]:
    """Find totals that are not marked yet, and mark them; no columns ``but`` others."""
    found: list[InsideTotal] = []
    holes = bool(rows.hidden.any())
    for axis in rows.texts:
        found += codes_that_are_sums(rows, axis)
        found += totals_in_parts(rows, axis)
        found += [] if holes else subtotals(rows, axis, crossing(rows, axis))
    for together, axis in joined(rows):
        found += codes_that_are_sums(together, axis)
    if not holes:
        found += totals_of_both_ends(rows)
        found += grand_total(rows, table)
        found += [each for each in columns_of_totals(rows, table) if each.column not in but]
    return found


def _only_called(rows: Rows) -> Iterator[InsideTotal]:
    """Give the codes that are called totals and add up nowhere: whoever made the table must say."""
    for axis, texts in rows.texts.items():
        codes = [str(code) for code in np.unique(texts[~rows.total].astype(str))]
        for code in codes if len(codes) > 1 else []:
            at = np.flatnonzero((texts == code) & ~rows.total)
            if called_total(code) and len(at):
                rows.total[at] = True
                none = np.full(len(texts), -1)
                nothing = Family("nothing", [], none, none[:0], none[:0])
                yield InsideTotal(axis, code, at, nothing, 0, 0, 0.0)


def found_inside(table: FlowTable) -> list[InsideTotal]:
    """Search a table of known counts for totals once, and remember what was found."""
    if not table.searched:
        table.searched.append(totals_inside(table))
    return list(table.searched[0])


def _checked(found: InsideTotal, rows: Rows) -> InsideTotal:
    """Leave out rows that proved to be totals later, and totals that do not add up."""
    family = found.family
    if not family.labels:
        return found
    of = np.where(rows.total, -1, family.of)
    n = len(family.labels)
    sums = sums_of(of, rows.counts, n)
    least, most = (sums + sums_of(of, each, n) for each in (rows.lower, rows.upper))
    # with holes a sum that does not add up stays: the holes may be larger than their marks say
    holes = sums_of(of, rows.hidden.astype(np.int64), n)
    right = (family.low <= most) & (least <= family.high) | (holes > 0)
    of = np.where((of >= 0) & right[of], of, -1)
    # a total of totals alone has no part left, so it says nothing about one
    has = np.bincount(of[of >= 0], minlength=n) > 0
    low, high = (np.where(has, each, 0) for each in (family.low, family.high))
    return InsideTotal(
        found.column,
        found.code,
        found.rows,
        family._replace(of=of, low=low, high=high),
        found.matches,
        found.tested,
        found.bits,
        found.whole,
    )
