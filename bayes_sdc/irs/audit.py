"""What an IRS file gives away of the rows that are replaced by -1 or d, or left out.

Totals, flows and other flows of one county belong together: where the total of US and foreign is
40 and that of the US 30, the suppressed total of foreign flows is 10. The totals of the counties
of a state add up to the state's. A hidden row is bounded by all of these.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.equations import Bounded, Equation, bound_by_equations
from bayes_sdc.flows.audit.propagation import FREE
from bayes_sdc.flows.audit.result import Audit
from bayes_sdc.irs.hidden import hidden_flows, hidden_margins
from bayes_sdc.irs.identities import NEEDED, identity_terms
from bayes_sdc.irs.read import IrsFlows

NEARLY_ALWAYS = 0.99  # share of tested sums that are right, for a kind of sum to be relied on
SHOWN = 5
WITH_OTHERS = ("same state", "different state", "foreign", "all flows")
OF_STATES = ("same state", "different state", "US", "foreign")


class _Sum(NamedTuple):
    """A published identity: the row of the total, and those of its parts."""

    kind: str
    name: str  # as in "US and foreign of 01001"
    total: int  # rows, by the index of the file's rows
    parts: list[int]
    open_end: bool  # a row of other flows can be missing


def audit_irs(flows: IrsFlows, other: IrsFlows | None = None) -> Audit:
    """Bound the number of returns of every row of an IRS file that is suppressed or left out.

    Parameters
    ----------
    flows : IrsFlows
        From :func:`bayes_sdc.read_irs_flows`.
    other : IrsFlows, optional
        The file of the other direction of the same years: what is published beside.

    Returns
    -------
    Audit
        Suppressed rows; rows of other flows that are not there and turn out to be below the
        threshold; and flows between two counties of a state that are not shown and are bounded.

    Raises
    ------
    InputError
        If ``other`` is of other years or of the same direction.

    Notes
    -----
    Nothing is taken for granted about the size of a hidden number, because the IRS hides large ones
    to protect small ones. So the number of pinned rows is a lower limit. A kind of sum is relied on
    where it holds in 99 % of the places of the file where all its numbers are shown. Of a total
    that is already the sum of what is shown (30 = 30 + x) nobody can tell whether x is 0 or left
    out of the total, as the IRS leaves suppressed foreign flows out of "US and foreign": it pins
    nothing.

    Examples
    --------
    >>> from bayes_sdc import read_irs_flows
    >>> from bayes_sdc.irs.simulate import example_irs_path
    >>> found = audit_irs(read_irs_flows(example_irs_path("inflow"), years="2010-2011"))
    >>> found.pinned
    5
    >>> found.bounds.loc["04007 same state total", ["lower", "upper"]].tolist()
    [10, 10]
    """
    rows = flows.rows
    value = rows["returns"].to_numpy(dtype=np.float64, na_value=np.nan)
    hidden = [int(row) for row in np.flatnonzero(np.isnan(value))]
    names = _names(flows, hidden)
    position = {row: place for place, row in enumerate(hidden)}
    sums, notes = _relied_on(list(_sums(rows)), value)
    equations, nothing_left = [], 0
    for each in sums:
        made = _equation(each, value, position, names, flows.threshold.adds_up)
        if made is not None and made.high == 0 and value[each.total] > 0:
            nothing_left += 1
        elif made is not None:
            equations.append(made)
    if nothing_left:
        notes.append(
            f"{nothing_left:,} totals are the sum of what is shown: the hidden rows hold nobody, "
            "or are left out of the total; these are not used"
        )
    n = len(names)
    bounded = bound_by_equations(
        np.zeros(n, dtype=np.int64), np.full(n, FREE, dtype=np.int64), equations
    )
    notes += [f"does not add up, and is left out: {words}" for words in bounded.wrong[:SHOWN]]
    bounds = pd.concat(
        [_frame(names, bounded, len(hidden), flows.threshold.returns), *_pairs(flows, other)]
    )
    bounds["pinned"] = bounds["pinned"].astype(bool)
    bounds["exact"] = bounds["exact"].astype(bool)
    return Audit(
        bounds=bounds.astype({"lower": "Int64", "upper": "Int64"}),
        source=flows.source,
        published=tuple(dict.fromkeys(each.kind for each in sums)),
        totals=len(sums),
        before=np.zeros(len(bounds), dtype=np.int64),
        notes=tuple(notes),
    )


def _names(flows: IrsFlows, hidden: list[int]) -> list[str]:
    """Name the hidden rows as a reader of the file would."""
    names = []
    for county, partner, record, category in flows.rows.iloc[hidden][
        ["county", "partner", "record", "category"]
    ].itertuples(index=False):
        ends = (partner, county) if flows.direction == "inflow" else (county, partner)
        names.append(
            ">".join(ends) if record == "detail" else f"{county} {category} {record}".strip()
        )
    return names


def _sums(rows: pd.DataFrame) -> Iterator[_Sum]:
    """All sums of a file: the identities of its counties, and counties that add up to states."""
    terms = pd.concat(list(identity_terms(rows)))
    for (kind, county), mine in terms.groupby(["identity", "county"], sort=False):
        is_total = (mine["role"] == "total").to_numpy()
        at = [int(row) for row in mine.index]
        total = next((row for row, yes in zip(at, is_total, strict=True) if yes), None)
        parts = [row for row, yes in zip(at, is_total, strict=True) if not yes]
        missing = NEEDED[str(kind)] - int(mine["needed"].to_numpy(bool)[~is_total].sum())
        open_end = kind in WITH_OTHERS and missing > 0
        if total is not None and (missing <= 0 or open_end):
            yield _Sum(str(kind), f"{kind} of {county}", total, parts, open_end)
    totals = rows[(rows["record"] == "total") & rows["category"].isin(OF_STATES)]
    of_state = totals["county"].str.endswith("000")
    state = totals["county"].str[:2]
    for row, code, category in totals.loc[
        of_state & (state != "00"), ["county", "category"]
    ].itertuples():
        mine = totals[~of_state & (state == code[:2]) & (totals["category"] == category)]
        if len(mine):
            yield _Sum(
                f"state by {category}", f"{category} of the counties of state {code[:2]}", int(row),
                [int(each) for each in mine.index], open_end=False,
            )  # fmt: skip


def _relied_on(sums: list[_Sum], value: np.ndarray) -> tuple[list[_Sum], list[str]]:
    """Keep the kinds of sums that hold where they can be tested; say which do not."""
    tested: dict[str, list[bool]] = {}
    for each in sums:
        shown = [*each.parts, each.total]
        if not each.open_end and not np.isnan(value[shown]).any():
            right = value[each.parts].sum() == value[each.total]
            tested.setdefault(each.kind, []).append(bool(right))
    unsure = {kind for kind, right in tested.items() if np.mean(right) < NEARLY_ALWAYS}
    notes = [
        f"sums by {kind} hold in {sum(tested[kind]):,} of {len(tested[kind]):,} and are not used"
        for kind in sorted(unsure)
    ]
    return [each for each in sums if each.kind not in unsure], notes


def _equation(
    each: _Sum,
    value: np.ndarray,
    position: dict[int, int],
    names: list[str],
    adds_up: bool,
) -> Equation | None:
    """Take off what is known; a row of other flows that is not there is one more hidden number."""
    shown = [int(value[row]) for row in each.parts if row not in position]
    parts = [position[row] for row in each.parts if row in position]
    total_hidden = each.total in position
    if not parts and not total_hidden and not each.open_end:
        return None
    given = 0 if total_hidden else int(value[each.total])
    if each.open_end:
        parts = [*parts, len(names)]
        names.append(f"{each.name.split()[-1]} {each.kind} other flows (no row)")
    rest = given - sum(shown)
    listed = [f"{v:,}" for v in shown] if len(shown) <= 4 else [f"{sum(shown):,}"]
    more = f" in {len(shown):,} rows" if len(shown) > 4 else ""
    words = (
        f"{each.name}, hidden itself" + (f", holds {' plus '.join(listed)}{more}" if shown else "")
        if total_hidden
        else f"{each.name}: {' minus '.join([f'{given:,}', *listed])}{more}"
    )
    loose = each.kind in WITH_OTHERS and not adds_up  # returns can be in the total alone
    return Equation(
        np.array(parts, dtype=np.int64),
        position[each.total] if total_hidden else -1,
        -FREE if loose else rest,
        rest,
        words,
    )


def _frame(names: list[str], bounded: Bounded, hidden: int, threshold: int) -> pd.DataFrame:
    """Bounds as a table; of rows that are not there those that are found to hold few returns."""
    pinned = bounded.lower == bounded.upper
    there = np.arange(len(names)) < hidden
    few = pinned & (bounded.upper >= 1) & (bounded.upper < threshold)
    top = pd.array(bounded.upper, dtype="Int64")
    top[bounded.upper >= FREE] = pd.NA
    frame = pd.DataFrame(
        {
            "lower": bounded.lower,
            "upper": top,
            "pinned": pinned,
            "exact": bounded.exact,
            "why": bounded.why,
        },
        index=pd.Index(names, name="cell", dtype=str),
    )
    shown: pd.DataFrame = frame.loc[there | few]
    return shown


def _pairs(flows: IrsFlows, other: IrsFlows | None) -> list[pd.DataFrame]:
    """Flows within states that are not shown, as far as sums bound them; not those of nobody."""
    given = {each.direction: each for each in (flows, other) if each is not None}
    if other is not None and len(given) < 2:
        raise InputError(f"both files hold {flows.direction}s; give one of each direction")
    first, *rest = given.values()
    found = hidden_flows(first, *rest)
    found = found[found["upper"].notna() & (found["upper"] > 0)]
    if found.empty:
        return []
    margins = hidden_margins(flows)
    told = margins[margins["scope"] == "same state"].set_index("county")["high"].to_dict()
    end = "destination" if flows.direction == "inflow" else "origin"
    why = [
        f"same state of {county}: {told[county]:,} returns in flows that are not shown"
        if yes
        else ""
        for county, yes in zip(found[end], found["determined"], strict=True)
    ]
    return [
        pd.DataFrame(
            {
                "lower": found["lower"].to_numpy(),
                "upper": found["upper"].to_numpy(),
                "pinned": found["determined"].to_numpy(bool),
                "exact": found["determined"].to_numpy(bool),
                "why": why,
            },
            index=pd.Index(found["origin"] + ">" + found["destination"], name="cell"),
        )
    ]
