"""What everybody knows about the sizes of areas: covariates from the published part of a table.

A release shows every safe count and which pairs are not empty. So the sums of an area's safe
counts, its number of partners and its share of safe cells may enter the model without disclosing
anything: none of them depends on the value of a small count. They tell the model which areas are
large, which it would otherwise have to learn in each group from a handful of cells.

An area whose counts are all small has safe sums of 0, and log(1 + 0) = 0: it counts among the
smallest areas, and its partners and effects tell the rest.

The model has no effects of an area that all groups share. In a study where an area lost all its
cells in a group (tests/validation/shared_areas.md), they added little to these covariates, even
with the best weight, and they mixed badly.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.labels import group_places
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.io.columns import own_area, read_codes

COVARIATES = ("published", "none")
DISTINCT = 0.01  # share of a column's spread that earlier columns must leave unexplained


class Known(NamedTuple):
    """Covariates that follow from what is published."""

    cells: pd.DataFrame  # one row per small cell, standardised over the small cells
    groups: pd.DataFrame  # one row per group with small cells, standardised over these groups
    dropped: dict[str, str]  # name of a covariate that was left out, and why


@lru_cache(maxsize=1)  # cached, because every step of a run asks for it and a table does not change
def published_covariates(table: FlowTable) -> Known:
    """Sizes of the areas and groups, as far as the published part of a table shows them.

    Parameters
    ----------
    table : FlowTable
        The table; its own covariates stay and come first.

    Returns
    -------
    Known
        By cell, for both ends: ``log_safe_outflow`` and ``log_safe_inflow``, log(1 + sum of the
        safe counts from and to the area); ``log_partners``, the log of the number of cells that are
        not empty, from the origin and to the destination; and ``log_odds_safe``, the log of (safe +
        1/2) / (small + 1/2) among these cells. By group: ``log_odds_safe_group``, likewise.
        Standardised to mean 0 and standard deviation 1. A column that is constant, or that earlier
        columns explain up to 1 % of its spread, is dropped.

    Raises
    ------
    InputError
        If a covariate of the user has one of these names.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import read_flows
    >>> frame = pd.DataFrame({"o": list("aab"), "d": list("xyx"), "n": [1, 40, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> published_covariates(table).cells.round(3).to_dict("list")
    {'log_safe_outflow_origin': [1.0, -1.0]}
    """
    rows = _rows(table)
    cells, groups = _of_cells(table, rows), _of_groups(table, rows)
    twice = sorted({*cells.columns, *groups.columns} & set(table.covariates.columns))
    if twice:
        raise InputError(
            f"covariates: {twice[0]!r} is the name of a covariate that the model makes itself; "
            'rename yours, or fit with covariates="none"'
        )
    dropped: dict[str, str] = {}
    return Known(
        cells=_distinct(cells, table.covariates.to_numpy(np.float64), dropped),
        groups=_distinct(groups, np.empty((len(groups), 0)), dropped),
        dropped=dropped,
    )


class _Rows(NamedTuple):
    """Codes of all rows as numbers, and the class of each row."""

    ends: dict[str, np.ndarray]  # (row,) position of the area at each end among all areas
    areas: int
    group: np.ndarray  # (row,)
    groups: list[str]
    counts: np.ndarray  # (row,) 0 for own areas
    shown: np.ndarray  # (row,) neither empty nor an own area
    safe: np.ndarray  # (row,)


def _rows(table: FlowTable) -> _Rows:
    frame = table.frame
    froms, tos, *by = (
        read_codes(frame[name], name) for name in (table.origin, table.destination, *table.groups)
    )
    areas = sorted({*froms.labels, *tos.labels})
    place = {label: number for number, label in enumerate(areas)}
    ends = {
        side: np.array([place[label] for label in codes.labels], dtype=np.int64)[codes.places]
        for side, codes in (("origin", froms), ("destination", tos))
    }
    group, groups = group_places(by, len(frame))
    counts = frame[table.count].to_numpy(np.int64)
    shown = ~own_area(froms, tos) & (counts >= table.low)
    return _Rows(ends, len(areas), group, groups, counts, shown, shown & (counts > table.high))


def _of_cells(table: FlowTable, rows: _Rows) -> pd.DataFrame:
    """Properties of both areas of each small cell, not yet standardised."""
    of_cell = table.cells["row"].to_numpy()

    def sums(end: str, values: np.ndarray) -> np.ndarray:
        """Sums over the rows at one end, by area."""
        return np.bincount(rows.ends[end], values, rows.areas)

    outflow, inflow = (sums(end, rows.counts * rows.safe) for end in rows.ends)
    columns = {}
    for side, index in rows.ends.items():
        here = index[of_cell]
        columns[f"log_safe_outflow_{side}"] = np.log1p(outflow[here])
        columns[f"log_safe_inflow_{side}"] = np.log1p(inflow[here])
    for side, index in rows.ends.items():
        here = index[of_cell]
        partners, large = sums(side, rows.shown)[here], sums(side, rows.safe)[here]
        columns[f"log_partners_{side}"] = np.log(partners)
        columns[f"log_odds_safe_{side}"] = np.log((large + 0.5) / (partners - large + 0.5))
    return pd.DataFrame(columns, index=table.cells.index)


def _of_groups(table: FlowTable, rows: _Rows) -> pd.DataFrame:
    """Log odds of a safe cell of each group with small cells, not yet standardised."""
    shown, large = (
        pd.Series(np.bincount(rows.group, of, len(rows.groups)), index=rows.groups)
        for of in (rows.shown, rows.safe)
    )
    groups = sorted(set(table.cells["group"]))
    large = large.loc[groups]
    odds = np.log((large + 0.5) / (shown.loc[groups] - large + 0.5))
    return pd.DataFrame({"log_odds_safe_group": odds})


def _distinct(frame: pd.DataFrame, given: np.ndarray, dropped: dict[str, str]) -> pd.DataFrame:
    """Standardise the columns, without those that are constant or follow from the ones before."""
    directions: list[np.ndarray] = []  # orthogonal, of length root n
    root = np.sqrt(len(frame))

    def rest_of(column: np.ndarray) -> np.ndarray:
        for _ in range(2):  # twice is enough for orthogonality in double precision
            for direction in directions:
                column = column - direction * (direction @ column) / root**2
        return column

    for column in given.T:
        rest = rest_of(column)
        if (size := np.linalg.norm(rest)) > DISTINCT * root:
            directions.append(rest * root / size)
    kept = {}
    for name in frame.columns:
        values = frame[name].to_numpy(np.float64)
        spread = values.std() if len(values) else 0.0
        if not spread > 1e-9:
            dropped[str(name)] = "the same everywhere"
            continue
        column = (values - values.mean()) / spread
        rest = rest_of(column)
        size = np.linalg.norm(rest)
        if size <= DISTINCT * root:
            dropped[str(name)] = "follows from the other covariates"
            continue
        directions.append(rest * root / size)
        kept[str(name)] = column
    return pd.DataFrame(kept, index=frame.index)
