"""What published margins give away: bounds on the flows that an IRS file does not show.

Within a state, the flows that are not shown are the empty places of a table of its counties. The
outflow file gives the sum of each of its rows, the inflow file that of each column, both as total
less published flows or as a row of other flows. The bounds that follow are repeated until nothing
changes: a place is at least its sum less the most all others can be, and at most its sum less the
least they can be. They hold always; tighter ones can exist, so that the number of places that are
found to be determined is a lower limit.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.irs.layouts import Direction
from bayes_sdc.irs.read import IrsFlows

Table = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

SCOPES = ("same state", "different state")


@checked
def hidden_margins(flows: IrsFlows) -> pd.DataFrame:
    """Give the number of returns in those flows of each county that are not shown.

    Parameters
    ----------
    flows
        A file of either direction.

    Returns
    -------
    pandas.DataFrame
        By ``county`` and ``scope`` (``same state`` or ``different state``): ``total``; ``detail``,
        the sum of the published flows; ``other``, the row of other flows; and ``low`` and ``high``,
        between which the sum of the flows lies that are not shown. They are equal where the file
        tells the sum, as other flows or as total less detail. In years whose numbers do not add up
        by rule (``threshold.adds_up``), and in files with a county where they do not, ``low`` is 0,
        and ``high`` at least the threshold less one. It is missing where nothing is known.

    Raises
    ------
    InputError
        If ``flows`` is not what :func:`bayes_sdc.read_irs_flows` returns.

    See Also
    --------
    bayes_sdc.hidden_flows, bayes_sdc.read_irs_flows

    References
    ----------
    IRS SOI, Migration Data Users Guide 2017-2018, sections D and E.

    Examples
    --------
    >>> from bayes_sdc import read_irs_flows
    >>> from bayes_sdc.irs.simulate import example_irs_path
    >>> inflow = read_irs_flows(example_irs_path("inflow"), years="2010-2011")
    >>> margins = hidden_margins(inflow).dropna()
    >>> bool((margins["total"] - margins["detail"] == margins["high"]).all())
    True
    """
    frames = []
    for scope in SCOPES:
        found = _scope_numbers(flows.rows, scope)
        other, rest = found["other"], found["total"] - found["detail"]
        both = pd.concat([other, rest], axis=1)
        low, high = both.min(axis=1), both.max(axis=1)
        if not flows.threshold.adds_up or ((rest - other).dropna() != 0).any():
            # other flows may be another county's, or this county's be in another's row
            low, high = 0.0 * low, high.clip(lower=flows.threshold.returns - 1)
        frames.append(found.assign(scope=scope, low=low.fillna(0), high=high))
    table = pd.concat(frames).reset_index()
    table = table[["county", "scope", "total", "detail", "other", "low", "high"]]
    return table.astype(dict.fromkeys(table.columns[2:], "Int64"))


def _scope_numbers(rows: pd.DataFrame, scope: str) -> pd.DataFrame:
    """Return total, detail and other flows of each county as floats, with NaN for missing."""
    counties = rows[~rows["county"].str.endswith("000")]
    same = counties["partner"].str[:2] == counties["county"].str[:2]
    detail = counties[(counties["record"] == "detail") & (same == (scope == "same state"))]
    named = counties[counties["category"] == scope]
    index = pd.Index(np.sort(counties["county"].unique()), name="county")
    found = {
        what: named[named["record"] == record].groupby("county")["returns"].sum(min_count=1)
        for what, record in (("total", "total"), ("other", "other flows"))
    }
    sums = {**found, "detail": detail.groupby("county")["returns"].sum()}
    table = pd.DataFrame({what: s.reindex(index) for what, s in sums.items()}).astype(float)
    return table.fillna({"detail": 0.0})


@checked
def hidden_flows(
    inflow: IrsFlows, outflow: IrsFlows | None = None, *, largest: int | None = None
) -> pd.DataFrame:
    """Bound the returns in every flow between counties of a state that is not shown.

    Parameters
    ----------
    inflow, outflow
        Files of the same years. With one file alone, of either direction, only its own sums are
        used.
    largest
        The most that a hidden flow can be: the threshold less one, if nothing larger was hidden to
        protect something else. The IRS does hide larger ones; a state whose sums contradict
        ``largest`` is bounded without it.

    Returns
    -------
    pandas.DataFrame
        One row for each pair of counties of a state that is not published: ``state``, ``origin``,
        ``destination``; ``lower`` and ``upper`` (missing where nothing is known); ``determined``,
        whether they are equal; and ``largest``, whether it was used. In a state whose sums
        contradict each other even without it, the bounds are 0 and missing.

    Raises
    ------
    InputError
        If the files are of different years, or of the same direction; if ``largest`` is negative.

    See Also
    --------
    bayes_sdc.hidden_margins, bayes_sdc.read_irs_flows

    References
    ----------
    IRS SOI, Migration Data Users Guide 2017-2018, sections D and E.

    Examples
    --------
    >>> from bayes_sdc import read_irs_flows
    >>> from bayes_sdc.irs.simulate import example_irs_path
    >>> inflow = read_irs_flows(example_irs_path("inflow"), years="2010-2011")
    >>> outflow = read_irs_flows(example_irs_path("outflow"), years="2010-2011")
    >>> hidden = hidden_flows(inflow, outflow)
    >>> len(hidden), int(hidden["determined"].sum())
    (346, 27)
    """
    given = [flows for flows in (inflow, outflow) if flows is not None]
    files = {flows.direction: flows for flows in given}
    if len(files) < len(given):
        raise InputError(f"both files hold {given[0].direction}s; give one of each direction")
    if len({flows.years for flows in given}) > 1:
        raise InputError(f"files of different years: {given[0].years} and {given[1].years}")
    if largest is not None and largest < 0:
        raise InputError(f"largest must be 0 or more, got {largest}")
    county = pd.concat([flows.rows["county"] for flows in given])
    codes = np.sort(county[~county.str.endswith("000")].unique().astype(object))
    margins = {d: hidden_margins(flows) for d, flows in files.items()}
    details = {d: flows.detail.dropna(subset="returns") for d, flows in files.items()}
    frames = [
        _state_frame(state, places, margins, details, largest) for state, places in _states(codes)
    ]
    table = pd.concat(frames, ignore_index=True)
    return table.astype({"lower": "Int64", "upper": "Int64"})


def _states(codes: npt.NDArray[np.object_]) -> Iterator[tuple[str, list[str]]]:
    for state in sorted({code[:2] for code in codes}):
        yield state, [code for code in codes if code[:2] == state]


def _state_frame(
    state: str,
    counties: list[str],
    margins: dict[Direction, pd.DataFrame],
    details: dict[Direction, pd.DataFrame],
    largest: int | None,
) -> pd.DataFrame:
    n = len(counties)
    place = {code: i for i, code in enumerate(counties)}
    sums: dict[Direction, tuple[Mask, Table, Table]] = {}
    value = np.full((n, n), np.nan)
    np.fill_diagonal(value, 0.0)
    for direction, detail in details.items():
        inside = detail[(detail["origin_state"] == state) & (detail["destination_state"] == state)]
        known = inside[inside["origin"].isin(place) & inside["destination"].isin(place)]
        rows, columns = (
            known[end].map(place).to_numpy(dtype=np.intp) for end in ("origin", "destination")
        )
        value[rows, columns] = known["returns"].to_numpy(dtype=float)
        shown: Mask = np.eye(n, dtype=bool)
        shown[rows, columns] = True
        margin = margins[direction]
        own = margin[margin["scope"] == "same state"].set_index("county").reindex(counties)
        low: Table = own["low"].to_numpy(dtype=np.float64, na_value=0.0)
        high: Table = own["high"].to_numpy(dtype=np.float64, na_value=np.inf)
        sums[direction] = (~shown, low, high)

    limited = None if largest is None else _bound(value, sums, float(largest))
    bounds = limited or _bound(value, sums, np.inf)
    lower, upper = bounds or (np.zeros((n, n)), np.full((n, n), np.inf))
    hidden = np.isnan(value)
    rows, columns = np.nonzero(hidden)
    top = upper[hidden]
    codes = np.array(counties, dtype=object)
    return pd.DataFrame(
        {
            "state": state,
            "origin": codes[rows],
            "destination": codes[columns],
            "lower": lower[hidden],
            "upper": np.where(np.isinf(top), np.nan, top),
            "determined": lower[hidden] == top,
            "largest": limited is not None,
        }
    )


def _bound(
    value: Table, sums: dict[Direction, tuple[Mask, Table, Table]], largest: float
) -> tuple[Table, Table] | None:
    """Return lower and upper bounds of a square table, or None where they contradict.

    ``value`` is NaN where a place is not shown. ``sums`` gives, for the rows (``outflow``) and the
    columns (``inflow``), which places are summed, and between what the sums lie.
    """
    lower = np.where(np.isnan(value), 0.0, value)
    upper = np.where(np.isnan(value), largest, value)
    for _ in range(value.size + 1):
        before = lower.copy(), upper.copy()
        for direction, (summed, low, high) in sums.items():
            turn = direction == "inflow"
            views = (lower.T, upper.T, summed.T) if turn else (lower, upper, summed)
            tighten(*views, low, high)
        if (lower > upper).any():
            return None
        if np.array_equal(before[0], lower) and np.array_equal(before[1], upper):
            break
    return lower, upper


def tighten(lower: Table, upper: Table, summed: Mask, low: Table, high: Table) -> None:
    """Tighten the bounds of each row, whose ``summed`` places add up to something in low..high.

    Parameters
    ----------
    lower, upper : array of float, shape (row, column)
        Changed in place; ``upper`` may be infinite.
    summed : array of bool, shape (row, column)
        The places that take part; the others stay as they are.
    low, high : array of float, shape (row,)
        Between what the sum of each row lies; ``high`` may be infinite.

    Examples
    --------
    >>> lower, upper = np.zeros((1, 3)), np.array([[9.0, 9.0, 2.0]])
    >>> tighten(lower, upper, np.ones((1, 3), dtype=bool), np.array([19.0]), np.array([19.0]))
    >>> lower, upper
    (array([[8., 8., 1.]]), array([[9., 9., 2.]]))
    """
    top = np.where(summed, upper, 0.0)
    unbounded = np.isinf(top)
    finite = np.where(unbounded, 0.0, top)
    most = finite.sum(axis=1, keepdims=True) - finite
    most = np.where(unbounded.sum(axis=1, keepdims=True) - unbounded > 0, np.inf, most)
    bottom = np.where(summed, lower, 0.0)
    least = bottom.sum(axis=1, keepdims=True) - bottom
    np.maximum(lower, low[:, None] - most, out=lower, where=summed)
    np.minimum(upper, high[:, None] - least, out=upper, where=summed)
