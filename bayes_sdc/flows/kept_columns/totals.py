"""Columns that hold totals: functions of one area, and yet sums of its counts."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.flows.audit.families import Family
from bayes_sdc.flows.kept_columns.functions import codes_of, depends_on
from bayes_sdc.flows.kept_columns.numbers import numbers_in
from bayes_sdc.flows.table.read import FlowTable

Codes = npt.NDArray[np.intp]

NEARLY_ALL = 0.8  # of the areas have the sum
FEWEST = 3  # different sums, so that equality is no accident
DIGITS = 1e-3  # relative distance that rounding may leave


class Total(NamedTuple):
    """A sum of counts found in a column, and how wide rounding left it."""

    words: str
    by: str  # origin or destination: whose rows are added up
    rows: npt.NDArray[np.bool_]  # that are added up
    error: float


class Ends(NamedTuple):
    """Areas of every row, numbered alike on both sides."""

    origin: Codes
    destination: Codes
    number: int


def ends_of(table: FlowTable) -> Ends:
    """Number the areas of a table."""
    sides = [table.frame[name].astype(str) for name in (table.origin, table.destination)]
    codes, labels = pd.factorize(np.concatenate([side.to_numpy(object) for side in sides]))
    n = len(table.frame)
    return Ends(codes[:n], codes[n:], len(labels))


def total_in(table: FlowTable, column: pd.Series, side: str, ends: Ends) -> Total | None:
    """Return which sum of counts a column holds that is a function of one side, or None.

    Parameters
    ----------
    table : FlowTable
        Counts as they are.
    column : Series
        In the order of the rows.
    side : {"origin", "destination"}
        The side that fixes the column.
    ends : Ends
        From :func:`ends_of`.

    Returns
    -------
    Total or None
        Sums over all rows, without own areas, of small counts alone, means, and their multiples
        (shares, thousands), of the area as origin or as destination.
    """
    areas, first = np.unique(getattr(ends, side), return_index=True)
    values = numbers_in(column.iloc[first])
    if np.isnan(values).mean() > 0.5:
        return None
    count = table.frame[table.count].to_numpy(np.float64)
    away = ends.origin != ends.destination
    small = (count >= table.low) & (count <= table.high)
    for by in (side, "destination" if side == "origin" else "origin"):
        for words, rows in (
            ("counts", np.ones(len(count), dtype=bool)),
            ("counts without own areas", away),
            ("small counts", small & away),
        ):
            end = getattr(ends, by)[rows]
            sums = np.bincount(end, count[rows], minlength=ends.number)[areas]
            number = np.bincount(end, minlength=ends.number)[areas]
            for kind, per in (("sums", np.ones(len(areas))), ("means", np.maximum(number, 1))):
                error = _equal(values, sums / per)
                if error is not None:
                    error *= float(per.max())  # of the sum
                    return Total(f"{kind} of the {words} of each {by}", by, rows, error)
    return None


def _equal(values: npt.NDArray[np.float64], sums: npt.NDArray[np.float64]) -> float | None:
    """Width that rounding left when values are the sums or a multiple of them, else None."""
    known = np.isfinite(values) & (sums > 0)
    if len(np.unique(sums[known])) < FEWEST:
        return None
    values, sums = values[known], sums[known]
    whole = bool((values % 1 == 0).all())
    base = float(np.gcd.reduce(np.abs(values).astype(np.int64))) if whole else 0.0
    if base and base < np.median(sums) / 4 and (np.abs(values - sums) <= base).mean() > NEARLY_ALL:
        return base if (values != sums).any() else 0.0
    factor = float(np.median(values / sums))
    if factor <= 0.0:
        return None
    # half of the last digit that is written, if that is little beside the sums
    half = 0.5 * _last_digit(values) / factor
    half = half if half < np.median(sums) / 20 else 0.0
    about = np.abs(values / factor - sums) <= np.maximum(0.01 * sums, 2.0 * half)
    if about.any():
        factor = float(values[about].sum() / sums[about].sum())  # rounding averages out
    error = np.abs(values / factor - sums)
    near = error <= np.maximum(DIGITS * sums, max(1.05 * half, 1e-9))
    return float(error[near].max()) if near.mean() > NEARLY_ALL else None


def _last_digit(values: npt.NDArray[np.float64]) -> float:
    """Return what the values are rounded to: 1, 0.1 and so on, or 0 where that is not seen."""
    for places in range(7):
        scaled = values * 10.0**places
        if (np.abs(scaled - np.rint(scaled)) <= 1e-6 * np.maximum(1.0, np.abs(scaled))).all():
            return float(10.0**-places)
    return 0.0


def family_of(table: FlowTable, name: str, total: Total, ends: Ends) -> Family:
    """Turn the totals in a column into what an audit takes for published.

    Parameters
    ----------
    table : FlowTable
        Counts as they are.
    name : str
        Of the column.
    total : Total
        From :func:`total_in`.
    ends : Ends
        From :func:`ends_of`.
    """
    counts = table.frame[table.count].to_numpy(np.int64)
    areas, place = np.unique(getattr(ends, total.by), return_inverse=True)
    of = np.where(total.rows, place, -1).astype(np.int64)
    sums = np.bincount(place[total.rows], counts[total.rows], minlength=len(areas))
    end = table.frame[getattr(table, total.by)].astype(str).to_numpy(object)
    labels = np.empty(len(areas), dtype=object)
    labels[place] = end
    off = np.floor(total.error + 1e-9)
    return Family(
        f"{total.by} in column {name!r}",
        [str(label) for label in labels],
        of,
        (sums - off).clip(0).astype(np.int64),
        (sums + off).astype(np.int64),
    )


def kept_totals(table: FlowTable, kept: Collection[str]) -> Iterator[tuple[str, Total, Family]]:
    """Find the columns among some that hold totals: name, what they hold, and for an audit."""
    ends = ends_of(table)
    for name in kept:
        column = table.frame[name]
        for side in ("origin", "destination"):
            if depends_on(codes_of(column), getattr(ends, side)) is False:
                continue
            total = total_in(table, column, side, ends)
            if total is not None:
                yield name, total, family_of(table, name, total, ends)
                break
