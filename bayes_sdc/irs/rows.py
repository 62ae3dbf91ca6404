"""What each row of an IRS county migration file is: its class, its codes and its numbers.

The codes alone tell the classes apart. Sources: IRS SOI, documentation for the 2005-2006
county-to-county migration flows, section F; IRS SOI, Migration Data Users Guide 2017-2018, section
E.6. The codes 63 and 00-001 of the files up to 1994-1995 are in neither; what they are is known
from users of those files, and was not tried on one (the printed tables have names instead).
"""

import re

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.irs.identities import MEASURES
from bayes_sdc.irs.layouts import Printed

RECORDS = ("detail", "total", "other flows", "non-migrants", "foreign")
MARKS = ("-1", "-1.0", "d", "D")

# code of the other side: (class of the row, category)
SPECIAL = {
    "96000": ("total", "US and foreign"),
    "97000": ("total", "US"),
    "97001": ("total", "same state"),
    "97003": ("total", "different state"),
    "98000": ("total", "foreign"),
    "58000": ("other flows", "same state"),
    "59000": ("other flows", "different state"),
    "59001": ("other flows", "northeast"),
    "59003": ("other flows", "midwest"),
    "59005": ("other flows", "south"),
    "59007": ("other flows", "west"),
    "57001": ("foreign", "overseas"),
    "57003": ("foreign", "Puerto Rico"),
    "57005": ("foreign", "APO/FPO"),
    "57007": ("foreign", "Virgin Islands"),
    "57009": ("foreign", "other flows"),
    # up to 1994-1995
    "00001": ("total", "US and foreign"),
    "63010": ("other flows", "same state"),
    "63011": ("other flows", "northeast"),
    "63012": ("other flows", "midwest"),
    "63013": ("other flows", "south"),
    "63014": ("other flows", "west"),
    "63015": ("foreign", "other flows"),
    "63020": ("other flows", "same state"),
    "63021": ("other flows", "same region, different state"),
    "63022": ("other flows", "different region"),
    "63030": ("other flows", "all flows"),
    "63050": ("non-migrants", ""),
}


def interpret(printed: Printed) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """Return the good rows, everything that is broken, and how many rows had unpadded codes."""
    text = printed.rows
    county, partner = (
        _join_codes(text[f"{side}state"], text[f"{side}county"]) for side in ("", "partner_")
    )
    record, category = _classify(county, partner)
    numbers = {m: _read_numbers(text[m], signed=m == "agi") for m in MEASURES}
    hidden = text["returns"].isin(MARKS) | text["exemptions"].isin(MARKS)
    # -1 is a mark, but also the AGI of a row with a small deficit
    numbers["agi"] = numbers["agi"].mask(hidden & text["agi"].isin(MARKS))

    problems = [
        _problems(text, "county", county.isna(), "no code of a county", kept=False),
        _problems(
            text, "partner", county.notna() & record.isna(), "code is not in the layout", kept=False
        ),
    ]
    good = county.notna() & record.notna()
    for measure in MEASURES:
        if measure == "agi" and text["agi"].eq("").all():
            continue  # the layout has none
        bad = good & numbers[measure].isna() & ~text[measure].isin(MARKS)
        kept = measure != "returns"
        problems.append(_problems(text, measure, bad, "not a whole number", kept=kept))
        if not kept:
            good &= ~bad
    unread = printed.unread.rename(columns={"text": "value"}).assign(column="", kept=False)
    order = ["line", "column", "value", "reason", "kept"]
    found = [frame[order] for frame in (unread, *problems) if len(frame)]
    broken = (
        pd.concat(found).sort_values("line", ignore_index=True)
        if found
        else pd.DataFrame(columns=order).astype({"line": int, "kept": bool})
    )
    rows = pd.DataFrame(
        {
            "line": text["line"],
            "record": record.astype(str),
            "category": category,
            "county": county,
            "partner": partner.where(record != "non-migrants", county),
            "name": text["name"],
            **numbers,
            "suppressed": hidden,
        }
    )
    bare = text["state"].str.len().lt(2) | text["partner_state"].str.len().lt(2)
    bare |= text["county"].str.len().lt(3) | text["partner_county"].str.len().lt(3)
    padded = int(bare.sum()) if printed.layout == "csv" else 0  # workbooks have numbers anyway
    return rows[good].reset_index(drop=True), broken, padded


def _join_codes(state: pd.Series, county: pd.Series) -> pd.Series:
    """Return codes of five digits; missing where one is not a number of two and three digits."""
    parts = []
    for column, width in ((state, 2), (county, 3)):
        padded = {}
        for text in column.unique():
            number = re.fullmatch(r"0*([0-9]+)(\.0+)?", text)
            good = number is not None and len(number[1]) <= width
            padded[text] = number[1].zfill(width) if number and good else None
        parts.append(column.map(padded))
    return (parts[0] + parts[1]).astype(str)


def _classify(county: pd.Series, partner: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Return class and category of each row; missing where the codes make no sense."""
    record = partner.map({code: what for code, (what, _) in SPECIAL.items()}).astype(object)
    category = partner.map({code: which for code, (_, which) in SPECIAL.items()}).fillna("")
    state_row = county.str[2:] == "000"
    place = partner.str[:2].between("01", "56")
    own = place & (partner == county)
    detail = place & ~own & ~state_row & (partner.str[2:] != "000")
    record = record.mask(own, "non-migrants").mask(detail, "detail")
    # a state 00 is the US, which has no counties
    sensible = county.str[:2].between("01", "56") | (county == "00000")
    return record.where(sensible, None), category


def _read_numbers(column: pd.Series, *, signed: bool) -> pd.Series:
    """Return whole numbers; missing where the text is anything else."""
    # more than 15 digits are no count of anything, and would not be exact
    whole = column.str.fullmatch(rf"{'-?' if signed else ''}[0-9]{{1,15}}(\.0+)?")
    return pd.to_numeric(column.where(whole)).astype("Int64")


def _problems(
    text: pd.DataFrame, what: str, rows: pd.Series, reason: str, *, kept: bool
) -> pd.DataFrame:
    found = text[rows.astype(bool)]
    sides = {"county": ("state", "county"), "partner": ("partner_state", "partner_county")}
    columns = sides.get(what, (what,))
    value = found[list(columns)].agg("-".join, axis=1) if len(found) else pd.Series(dtype=object)
    return pd.DataFrame(
        {"line": found["line"], "column": what, "value": value, "reason": reason, "kept": kept}
    )


def without_repeats(rows: pd.DataFrame, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows without those that repeat an earlier one, and these."""
    keys = ["county", "partner"]
    repeat = rows.duplicated(keys)
    if not repeat.any():
        return rows, pd.DataFrame(columns=["line", "first_line", *keys]).astype({"line": int})
    first = rows.drop_duplicates(keys)[[*keys, *MEASURES, "suppressed", "line"]]
    both = rows[repeat].merge(first, on=keys, suffixes=("", "_first"))
    differ = np.zeros(len(both), dtype=bool)
    for column in (*MEASURES, "suppressed"):
        one, two = both[column], both[f"{column}_first"]
        differ |= ~(one.eq(two).fillna(False) | (one.isna() & two.isna())).to_numpy(dtype=bool)
    if differ.any():
        wrong = both[differ].head()
        lines = "; ".join(
            f"{a} and {b} ({c}, {p})"
            for a, b, c, p in wrong[["line_first", "line", *keys]].itertuples(index=False)
        )
        raise InputError(
            f"{name}: {differ.sum():,} rows repeat the codes of an earlier one with other numbers: "
            f"lines {lines}. Remove the wrong ones"
        )
    duplicates = both.rename(columns={"line_first": "first_line"})[["line", "first_line", *keys]]
    return rows[~repeat].reset_index(drop=True), duplicates
