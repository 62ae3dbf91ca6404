"""What totals published beside a table reveal about its small counts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.inside.rows import InsideTotal
from bayes_sdc.flows.audit.inside.search import found_inside, totals_inside
from bayes_sdc.flows.audit.propagation import FREE, System, make_system
from bayes_sdc.flows.audit.reasons import Reasons
from bayes_sdc.flows.audit.result import Audit
from bayes_sdc.flows.audit.settle import in_words, published_inside, unsettled
from bayes_sdc.flows.audit.solve import solve
from bayes_sdc.flows.table.families import Family, Ints, Published, families_of
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.io.columns import read_codes


def _settled(
    table: FlowTable,
) -> tuple[FlowTable, list[str], list[InsideTotal]]:
    """Treat totals inside the table as published where beyond chance; list the doubtful ones."""
    found = unsettled(table)
    doubtful = [each for each in found if not each.believed]
    if doubtful:
        # without them, because every other row is part of one
        table = replace(table, searched=[totals_inside(table, doubtful=False)])
        found = unsettled(table)
    notes = [f"totals inside the table count as published: {in_words(found)}"] * bool(found)
    return published_inside(table, found) if found else table, notes, doubtful


def _if_totals(
    table: FlowTable, families: Callable[[FlowTable], list[Family]], doubtful: list[InsideTotal],
    known: Audit, own_area_hidden: bool,
) -> tuple[int, str]:  # fmt: skip
    """Count the small counts that follow if what may be chance is a total; and a note."""
    both = published_inside(table, unsettled(table))
    try:
        told = families(both)
    except InputError:  # tables of totals that do not fit then
        told = published_families(both, ())
    audit = audit_families(both, told, own_area_hidden=own_area_hidden)
    more = len(_pinned_in(audit) - _pinned_in(known))
    return more, (
        "these may be totals inside the table, or add up by chance, and count as flows here: "
        f"{in_words(doubtful)}; if they are totals, {more:,} small count"
        f"{' follows' if more == 1 else 's follow'} from them: say what they are with "
        "settle_totals (--totals publish, or --totals flows)"
    )


def _pinned_in(audit: Audit) -> set[str]:
    """Names of the rows whose count follows."""
    return {
        str(name)
        for bounds in (audit.bounds, audit.besides)
        if bounds is not None
        for name in bounds.index[bounds["pinned"].to_numpy(bool)]
    }


@checked
def audit_totals(
    table: FlowTable,
    *,
    published: Published = ("origin", "destination"),
    own_area: bool | None = None,
    base: int = 1,
    own_area_hidden: bool = True,
) -> Audit:
    """Bound every small count by the totals that are published beside the table.

    Anyone who knows the totals and all counts above the small ones can tell that a small count lies
    between two bounds. Where the bounds are equal, they know the count. The bounds are the least
    and the most over all tables of whole counts from ``low`` to ``high`` in the small cells that
    have these totals. Zeros and safe counts are known, because they are released as they are.
    Withheld counts and small own-area counts are not known. Totals inside the table are found
    (:func:`bayes_sdc.settle_totals`) and count as published if their names say so, or if chance
    would not produce such sums. For the others a note says what would follow from them, and
    :attr:`bayes_sdc.Audit.in_doubt` counts it.

    Parameters
    ----------
    table : FlowTable
        The true table.
    published : str, path, DataFrame or sequence of them
        What is published beside it. By word: "origin" and "destination" (totals by area), "group",
        "origin-by-group" and "destination-by-group" (by area and partner state, where the groups
        are pairs of states), "national". Or a table of totals, or its file: columns shared with the
        table say what the totals are of, and one more column holds the totals, which must agree
        with the table; empty ones are not published.
    own_area : bool, optional
        Whether the totals include the own-area rows. By default totals by word do not; for a table
        of totals its numbers show whether they do.
    base : int
        The totals are rounded to a multiple of it, so they are known up to half of it either way.
    own_area_hidden : bool
        Whether small own-area counts are hidden too, as a release does by default.

    Returns
    -------
    Audit
        Bounds of every small cell, which cells are pinned, and by what; and the same for small
        own-area and withheld rows in ``besides``.

    Raises
    ------
    InputError
        If a word is unknown or asks for groups that the table does not have, or if published totals
        are not those of the table.

    See Also
    --------
    bayes_sdc.settle_totals, bayes_sdc.synthesize, bayes_sdc.protect_flows

    Notes
    -----
    Bounds of one total at a time are tightened until nothing changes. Where the totals are of two
    kinds that cross, with any coarser ones above them, the rest is a question of flow in a network:
    pinned cells are found in linear time (Gusfield 1988), and the range of the others by pushing
    flow around them. Totals of three kinds that cross need integer programs, which are solved while
    there are few of them; ``exact`` says where.

    References
    ----------
    D. Gusfield, "A graph theoretic approach to statistical data security", SIAM Journal on
    Computing 17, 1988, doi:10.1137/0217034.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import audit_totals, read_flows
    >>> frame = pd.DataFrame(
    ...     {"o": ["A", "A", "B", "B"], "d": ["x", "y", "x", "y"], "n": [3, 20, 4, 5]}
    ... )
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> audit = audit_totals(table, published="origin")
    >>> audit.bounds[["lower", "upper", "pinned", "why"]].values.tolist()
    [[3, 3, True, 'total of origin A: 23 minus 20'], [1, 8, False, ''], [1, 8, False, '']]
    """
    families = partial(published_families, published=published, own_area=own_area, base=base)
    settled, notes, doubtful = _settled(table)
    audit = audit_families(settled, families(settled), own_area_hidden=own_area_hidden)
    if not doubtful:
        return replace(audit, notes=tuple(notes))
    more, note = _if_totals(table, families, doubtful, audit, own_area_hidden)
    return replace(audit, notes=(*notes, note), in_doubt=more)


def audit_families(
    table: FlowTable,
    families: list[Family],
    *,
    own_area_hidden: bool = True,
) -> Audit:
    """Bound every small count by totals of any kind, as :func:`audit_totals` does.

    Parameters
    ----------
    table : FlowTable
        The true table, with the totals inside it settled.
    families : list of Family
        What is published.
    own_area_hidden : bool
        As for :func:`audit_totals`.

    Returns
    -------
    Audit
    """
    hidden = hidden_counts(table, own_area_hidden)
    n = table.n_small
    bounds = bounds_of(
        families,
        hidden.counts,
        hidden.rows,
        hidden.lower,
        hidden.upper,
        [
            *map(str, table.cells.index),
            *_named(table, hidden.stayed, "own area"),
            *_named(table, hidden.withheld, "withheld"),
        ],
        hidden.counts[hidden.rows],
    )
    besides = bounds.iloc[n:] if len(hidden.rows) > n else None
    bounds = bounds.iloc[:n]
    return Audit(
        bounds=pd.concat([table.cells[["group", "origin", "destination"]], bounds], axis=1),
        source=table.source,
        published=tuple(family.name for family in families),
        totals=sum(len(family.labels) for family in families),
        before=np.full(n, table.high - table.low + 1),
        covered=covered_cells(families, hidden.rows[:n]),
        besides=besides,
    )


def _named(table: FlowTable, rows: Ints, what: str) -> list[str]:
    """Name rows that are not cells."""
    ends = table.frame.iloc[rows][[table.origin, table.destination]].astype(str)
    return [
        f"{o}>{d} ({what}, row {row + 1})"
        for row, (o, d) in zip(rows, ends.to_numpy(), strict=True)
    ]


class HiddenCounts(NamedTuple):
    """Rows whose count no release shows, and the range that anyone knows of each."""

    counts: Ints  # (row,) of the table
    rows: Ints  # (hidden,) small cells in their order, then own areas, then withheld rows
    lower: Ints  # (hidden,)
    upper: Ints  # (hidden,) FREE where there is none
    stayed: Ints  # rows of own areas
    withheld: Ints  # rows that rest on too few people


def hidden_counts(table: FlowTable, own_area_hidden: bool) -> HiddenCounts:
    """Rows that no release shows: small cells, own areas if they are hidden, and withheld ones."""
    rows = table.cells["row"].to_numpy(np.int64)
    counts = table.frame[table.count].to_numpy(np.int64)
    codes = [
        read_codes(table.frame[name], name).texts() for name in (table.origin, table.destination)
    ]
    own = (codes[0] == codes[1]) & (counts >= table.low) & (counts <= table.high)
    own[list(table.totals)] = False
    stayed = np.flatnonzero(own & own_area_hidden).astype(np.int64)
    withheld = np.array(sorted(set(table.withheld) - set(table.totals)), dtype=np.int64)
    shown = len(rows) + len(stayed)  # rows of which the range is that of a small count
    lower = np.full(shown + len(withheld), table.low)
    upper = np.full(shown + len(withheld), table.high)
    lower[shown:], upper[shown:] = table.high + 1, FREE
    return HiddenCounts(
        counts, np.concatenate([rows, stayed, withheld]), lower, upper, stayed, withheld
    )


def published_families(
    table: FlowTable, published: Published, *, own_area: bool | None = None, base: int = 1
) -> list[Family]:
    """Totals beside a table, and those inside it that stay; as for :func:`audit_totals`."""
    families = families_of(table, published, own_area=own_area, base=base)
    if table.totals or table.total_columns:
        families += [each.family for each in found_inside(table)]
    return families


def system_of(table: FlowTable, families: Sequence[Family]) -> tuple[System, Ints]:
    """Return small cells and totals in the order of the rows, and that order of the cells.

    All counts that are not small are taken as known.
    """
    rows = table.cells["row"].to_numpy()
    order = np.argsort(rows, kind="stable")
    counts = table.frame[table.count].to_numpy(np.int64)
    hidden = np.zeros(len(counts), dtype=bool)
    hidden[rows] = True
    lower, upper = np.full(len(rows), table.low), np.full(len(rows), table.high)
    return make_system(counts, hidden, lower, upper, families), order


def covered_cells(families: Sequence[Family], rows: Ints) -> int:
    """Count the cells that are in an exact total."""
    covered = np.zeros(len(rows), dtype=bool)
    for family in families:
        exact = np.append(family.low == family.high, False)  # the last one means no total
        covered |= exact[family.of[rows]]
    return int(covered.sum())


def bounds_of(
    families: list[Family],
    counts: Ints,
    rows: Ints,
    lower: Ints,
    upper: Ints,
    names: list[str],
    truth: Ints | None = None,
) -> pd.DataFrame:
    """Bound the hidden cells of a table.

    Parameters
    ----------
    families : list of Family
        What is published.
    counts : array of int, shape (row,)
        Counts of the table; those of hidden rows are not looked at.
    rows : array of int, shape (cell,)
        Hidden rows.
    lower, upper : array of int, shape (cell,)
        Range of their counts, whatever the totals.
    names : list of str
        Of the cells.
    truth : array of int, shape (cell,), optional
        Counts that fit, if they are known; they save a search.

    Returns
    -------
    DataFrame
        ``lower``, ``upper``, ``pinned``, ``exact`` and ``why``; the index is the names.
    """
    # a system counts its cells in the order of the rows
    order = np.argsort(rows, kind="stable")
    hidden = np.zeros(len(counts), dtype=bool)
    hidden[rows] = True
    system = make_system(counts, hidden, lower[order], upper[order], families)
    solved = solve(system, None if truth is None else truth[order])
    reasons = Reasons(families, counts, hidden, [names[cell] for cell in order], system, solved)
    pinned = solved.lower == solved.upper
    why = np.full(len(rows), "", dtype=object)
    for cell in np.flatnonzero(pinned):
        why[cell] = reasons.of(int(cell))
    back = np.empty(len(rows), dtype=np.int64)
    back[order] = np.arange(len(rows))
    top = pd.array(solved.upper[back], dtype="Int64")
    top[solved.upper[back] >= FREE] = pd.NA
    return pd.DataFrame(
        {
            "lower": solved.lower[back],
            "upper": top if top.isna().any() else solved.upper[back],
            "pinned": pinned[back],
            "exact": solved.exact[back],
            "why": pd.Series(why[back], index=names, dtype=str),
        },
        index=pd.Index(names, name="cell", dtype=str),
    )
