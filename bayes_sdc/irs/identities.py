"""Published + other = total: the identities of an IRS file, county by county.

Totals, published flows and rows of other flows of one county belong together. Where one of them is
missing, the rest gives it away; where all are there and do not add up, something is wrong with the
file, or returns were left out of the flows but not of the totals, which the IRS does since the
threshold is 20 (Migration Data Users Guide 2017-2018, section D).
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

MEASURES = ("returns", "exemptions", "agi")
STATUS = ("holds", "rounding", "gap", "part missing", "total missing")
REGIONS = ("northeast", "midwest", "south", "west")
KEYS = ["county", "identity"]
# how many totals or rows of other flows a complete identity has among its parts
NEEDED = {
    "all flows": 1,
    "same state": 1,
    "different state": 1,
    "foreign": 1,
    "US": 2,
    "US and foreign": 2,
    "other flows by region": 4,
}


def check_identities(rows: pd.DataFrame) -> pd.DataFrame:
    """Compare totals with the sum of their parts, for each county and measure.

    The identities are named by their total: ``same state`` and ``different state`` (published
    flows and other flows), ``foreign`` (its kinds), ``US`` (same and different state), ``US and
    foreign``, and ``other flows by region`` (the four regions, where they are shown). Files up to
    1994-1995 have one total, of ``all flows``.

    Parameters
    ----------
    rows
        As in :class:`bayes_sdc.IrsFlows`.

    Returns
    -------
    pandas.DataFrame
        ``county``, ``identity``, ``measure``; ``total``; ``parts``, the sum of those published;
        ``terms``, how many these are; ``gap``, the total less the parts; and ``status``: ``holds``
        (gap 0), ``rounding`` (AGI only: a gap of at most half a thousand for each number),
        ``part missing`` (a part is suppressed, or there is no row of other flows, so that the gap
        is what is not shown), ``total missing`` (suppressed, or no such row), ``gap``.
    """
    terms = pd.concat(list(identity_terms(rows)), ignore_index=True)
    found = [_compare(terms, measure) for measure in MEASURES if rows[measure].notna().any()]
    if not found:
        columns = [*KEYS, "measure", "total", "parts", "terms", "gap", "status"]
        return pd.DataFrame(columns=columns)
    return pd.concat(found, ignore_index=True)


def identity_table(checks: pd.DataFrame) -> pd.DataFrame:
    """Count the counties of `check_identities` by status; the index is measure and identity."""
    table = checks.groupby(["measure", "identity", "status"], sort=False).size().unstack()
    return table.reindex(columns=list(STATUS)).fillna(0).astype(int)


def identity_terms(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the rows that take part in identities: ``identity``, and ``role`` total or part.

    The index is that of ``rows``.
    """
    record, category = rows["record"], rows["category"]
    counties = ~rows["county"].str.endswith("000")
    total, other = record == "total", record == "other flows"
    not_shown = (record == "foreign") & (category == "other flows")
    same = rows["partner"].str[:2] == rows["county"].str[:2]

    def take(identity: str, role: str, which: pd.Series) -> pd.DataFrame:
        return rows.loc[which, ["county", *MEASURES]].assign(
            identity=identity, role=role, needed=(other | total | not_shown)[which]
        )

    if not (total & (category == "US")).any():  # up to 1994-1995
        yield take("all flows", "total", counties & total)
        parts = counties & (other | record.isin(["detail", "foreign"]))
        yield take("all flows", "part", parts)
        return
    for scope, inside in (("same state", same), ("different state", ~same)):
        yield take(scope, "total", counties & total & (category == scope))
        yield take(scope, "part", counties & (record == "detail") & inside)
        yield take(scope, "part", counties & other & (category == scope))
    yield take("foreign", "total", counties & total & (category == "foreign"))
    yield take("foreign", "part", counties & (record == "foreign"))
    yield take("US", "total", total & (category == "US"))
    yield take("US", "part", total & category.isin(["same state", "different state"]))
    yield take("US and foreign", "total", total & (category == "US and foreign"))
    yield take("US and foreign", "part", total & category.isin(["US", "foreign"]))
    regional = other & category.isin(REGIONS)
    shown = rows["county"].isin(rows.loc[regional, "county"])
    yield take("other flows by region", "total", other & shown & (category == "different state"))
    yield take("other flows by region", "part", regional)


def _compare(terms: pd.DataFrame, measure: str) -> pd.DataFrame:
    part = terms["role"] == "part"
    by = terms[part].groupby(KEYS, sort=False)
    parts = pd.DataFrame(
        {
            "parts": by[measure].sum(),
            "terms": by[measure].count(),
            "known": by[measure].count() == by[measure].size(),
            "needed": by["needed"].sum(),
        }
    )
    total = terms[~part].set_index(KEYS)[measure].rename("total")
    table = parts.join(total, how="outer").reset_index()
    table["measure"] = measure
    table["terms"] = table["terms"].fillna(0).astype(int)
    table["parts"] = table["parts"].fillna(0).astype("Int64")
    table["gap"] = table["total"] - table["parts"]
    gap = table["gap"].abs().fillna(0).to_numpy(dtype=float)
    known = table["known"].eq(True) | table["known"].isna()  # nothing is suppressed
    complete = known & (table["needed"].fillna(0) >= table["identity"].map(NEEDED))
    table["status"] = np.select(
        [
            table["total"].isna(),
            ~known,
            gap == 0,
            complete & (measure == "agi") & (gap <= (table["terms"] + 1) / 2),
            ~complete,
        ],
        ["total missing", "part missing", "holds", "rounding", "part missing"],
        "gap",
    )
    columns = [*KEYS, "measure", "total", "parts", "terms", "gap", "status"]
    return table[columns].sort_values(KEYS, ignore_index=True)
