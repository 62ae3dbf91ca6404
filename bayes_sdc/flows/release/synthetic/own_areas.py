"""Small counts of people who stayed in their area, and counts that rest on too few people.

The model of flows does not describe people who stay. Their small counts get a model of their own:
in every group the counts, but for those that a rule excludes, have unknown shares with a flat
Dirichlet prior, and each released count is drawn from its posterior predictive distribution. Its
intruder is known in closed form.
"""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.seeds import generator

OwnArea = Literal["protect", "withhold", "publish"]
OWN_AREA: dict[str, str] = {
    "protect": "drawn from a model of their own, with the shares of each count in their group",
    "withhold": "left blank",
    "publish": "released as they are, by choice",
}


class OwnAreaRisk(NamedTuple):
    """What an intruder who knows all other counts finds about the own-area counts."""

    cells: int
    found: float  # share whose single most probable count is the true one
    at_true: float  # mean probability of the true count


def check_own_area(own_area: str) -> None:
    """Refuse a choice that is unknown."""
    if own_area not in OWN_AREA:
        raise InputError(f"own_area {own_area!r} is unknown; choose from {list(OWN_AREA)}")


def own_area_rows(table: FlowTable) -> npt.NDArray[np.intp]:
    """Rows of small counts whose origin is the destination, sorted by their codes."""
    count = table.frame[table.count].to_numpy(np.float64)
    small = (count >= table.low) & (count <= table.high)
    small[table.cells["row"].to_numpy()] = False
    small[list(table.withheld)] = False
    rows = np.flatnonzero(small)
    names = [table.origin, *table.groups]
    codes = [table.frame[name].iloc[rows].astype(str).to_numpy(object) for name in names]
    order = sorted(range(len(rows)), key=lambda row: tuple(code[row] for code in codes))
    return rows[np.array(order, np.intp)]


def without_own_areas(
    table: FlowTable, release: pd.DataFrame, *, own_area: OwnArea, seed: int
) -> pd.DataFrame:
    """Protect or withhold the small counts of own areas, and withhold counts of few people.

    Parameters
    ----------
    table : FlowTable
        With the true counts.
    release : DataFrame
        One data set below the other, each in the order of the table's rows; its small cells are
        protected already. It is changed in place.
    own_area : {"protect", "withhold", "publish"}
        Treatment of the small counts of own areas.
    seed : int
        Confidential.

    Returns
    -------
    DataFrame
        ``release``.

    Raises
    ------
    InputError
        If ``own_area`` is unknown.
    """
    check_own_area(own_area)
    rows, blank = own_area_rows(table), np.array(table.withheld, np.intp)
    if own_area == "withhold":
        blank = np.r_[blank, rows]
    n = len(table.frame)
    starts = range(0, len(release), n)
    column = release[table.count].copy()
    if own_area == "protect" and len(rows):
        rng = generator(seed, "own areas")
        for start in starts:
            values = pd.Series(_draw(table, rows, rng) + table.low).astype(column.dtype)
            column.iloc[start + rows] = values.array
    if len(blank):
        if not isinstance(column.dtype, pd.ArrowDtype):
            column = column.astype("Int64")
        column.iloc[np.concatenate([start + blank for start in starts])] = pd.NA
    release[table.count] = column
    return release


def own_area_risk(table: FlowTable, release: pd.DataFrame) -> OwnAreaRisk | None:
    """Return what an intruder finds who knows all other counts; None without such rows.

    With a_k = 1 + number of the other counts of the group that equal k, and c_k released counts of
    the group that equal k, the likelihood of the true count y is proportional to 1 + 1 / a_y to the
    power c_y: every released count has the probability of its value. All y are equally probable
    before.

    Parameters
    ----------
    table : FlowTable
        With the true counts.
    release : DataFrame
        Made with ``own_area="protect"``.
    """
    rows = own_area_rows(table)
    if not len(rows):
        return None
    y, group = _counts(table, rows), _groups(table, rows)
    starts = np.arange(0, len(release), len(table.frame))
    released = release[table.count].iloc[(starts[:, None] + rows).ravel()].to_numpy(np.int64)
    kinds = table.k + 1
    held = np.zeros((group.max() + 1, kinds))
    np.add.at(held, (group, y), 1.0)
    seen = np.zeros_like(held)
    np.add.at(seen, (np.tile(group, len(starts)), released - table.low), 1.0)
    others = 1.0 + held[group]
    others[np.arange(len(y)), y] -= 1.0
    log_rho = seen[group] * np.log1p(1.0 / others)
    log_rho[:, list(table.impossible)] = -np.inf
    rho = np.exp(log_rho - log_rho.max(axis=1, keepdims=True))
    rho /= rho.sum(axis=1, keepdims=True)
    best = rho >= rho.max(axis=1, keepdims=True) * (1 - 1e-9)
    at_true = rho[np.arange(len(y)), y]
    found = best[np.arange(len(y)), y] & (best.sum(axis=1) == 1)
    return OwnAreaRisk(len(y), float(found.mean()), float(at_true.mean()))


def _draw(
    table: FlowTable, rows: npt.NDArray[np.intp], rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """One count from 0 for each row, from the predictive distribution of its group."""
    y, group = _counts(table, rows), _groups(table, rows)
    weight = np.ones((group.max() + 1, table.k + 1))
    np.add.at(weight, (group, y), 1.0)
    weight[:, list(table.impossible)] = 0.0
    cumulative = np.cumsum(weight / weight.sum(axis=1, keepdims=True), axis=1)[group]
    drawn = (rng.random(len(rows))[:, None] >= cumulative).sum(axis=1)
    return np.asarray(np.minimum(drawn, table.k), np.intp)


def _counts(table: FlowTable, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    return table.frame[table.count].iloc[rows].to_numpy(np.intp) - table.low


def _groups(table: FlowTable, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    if not table.groups:
        return np.zeros(len(rows), np.intp)
    texts = table.frame[list(table.groups)].iloc[rows].astype(str)
    return np.asarray(texts.groupby(list(table.groups), sort=True).ngroup(), np.intp)
