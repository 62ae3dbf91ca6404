"""What a release is still good for: totals by area, net migration, single counts.

Safe cells are equal on both sides, so errors come from the small cells alone. Areas are taken over
all groups together, as a reader of the table would.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.use.propensity import Propensity, by_dataset, mean_score
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.io.columns import own_area, read_codes
from bayes_sdc.results import Fact, Result, or_undefined

ENDS = ("origin", "destination")
SIDES = (*ENDS, "group")


def margins(table: FlowTable, release: pd.DataFrame) -> pd.DataFrame:
    """Totals of the small cells by origin and by destination, before and after.

    Safe cells are equal on both sides, so they are left out of the comparison. With several data
    sets the synthetic total is their mean.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    release : pandas.DataFrame
        What :func:`bayes_sdc.synthesize` returned.

    Returns
    -------
    pandas.DataFrame
        One row for each side ("origin", "destination") and area: ``cells`` (number of small
        cells), ``true`` and ``synthetic`` totals of their counts. Confidential: an area with one
        small cell shows its true count.

    Examples
    --------
    >>> from bayes_sdc import read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a"], "d": ["x", "y"], "n": [1, 4]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> margins(table, frame.assign(n=[2, 2]))
              side area  cells  true  synthetic
    0       origin    a      2     5        4.0
    1  destination    x      1     1        2.0
    2  destination    y      1     4        2.0
    """
    synthetic = released_counts(table, release).mean(axis=0) + table.low
    cells = table.cells.assign(true=table.cells["y"] + table.low, synthetic=synthetic)
    sides = []
    for side in ("origin", "destination"):
        totals = cells.groupby(side, sort=True).agg(
            cells=("y", "size"), true=("true", "sum"), synthetic=("synthetic", "sum")
        )
        sides.append(totals.rename_axis("area").reset_index().assign(side=side))
    columns = ["side", "area", "cells", "true", "synthetic"]
    return pd.concat(sides, ignore_index=True)[columns]


def between(table: FlowTable, release: pd.DataFrame) -> pd.DataFrame:
    """Sums of the small counts from each part of the table to each other one.

    Parameters
    ----------
    table, release
        As for :func:`margins`.

    Returns
    -------
    pandas.DataFrame
        Indexed by ``from`` and ``to``: the values of the two group columns, or areas where the
        table has another number of group columns; ``cells``, ``true`` and ``synthetic`` as in
        :func:`margins`. Confidential.

    Examples
    --------
    >>> from bayes_sdc import read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a"], "d": ["x", "y"], "n": [1, 4]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> between(table, frame.assign(n=[2, 2])).loc[("a", "y")].to_dict()
    {'cells': 1.0, 'true': 4.0, 'synthetic': 2.0}
    """
    cells = table.cells.assign(
        true=table.cells["y"] + table.low,
        synthetic=released_counts(table, release).mean(axis=0) + table.low,
    )
    ends = [cells["origin"].to_numpy(), cells["destination"].to_numpy()]
    if len(table.groups) == 2:
        rows = cells["row"].to_numpy()
        ends = [read_codes(table.frame[name], name).texts()[rows] for name in table.groups]
    sums = cells.groupby(ends).agg(
        cells=("y", "size"), true=("true", "sum"), synthetic=("synthetic", "sum")
    )
    return sums.rename_axis(["from", "to"])


@dataclass(frozen=True, eq=False, repr=False)
class Utility(Result):
    """What a release is good for. Confidential: it compares with true counts.

    Made by :func:`bayes_sdc.utility`.

    Totals and net migration come from the mean of the data sets, as a user of several would; the
    other measures are averages over the data sets.

    Parameters
    ----------
    totals : DataFrame
        One row per side, ``origin``, ``destination`` and ``group``; only areas (or groups) with
        small cells count. ``areas``: their number. ``mean_relative_error``: mean of abs(released -
        true) / true over areas, totals of small cells, areas with a true total of 0 left out.
        ``mean_relative_error_all``: the same relative to the true total of all the area's cells,
        safe ones included and own-area rows not. ``total_error``: sum of abs(released - true) over
        areas, relative to the sum of true totals of small cells.
    net_migration_error : float
        Mean over areas with small cells of the absolute error of inflow minus outflow, in persons.
    bands : tuple of (int, int)
        First and last count of each size band, see :func:`size_bands`.
    right_band : float
        Share of small cells whose released count is in the band of the true one.
    log_ratio_mean : float
        Mean over small cells of log(released / true).
    log_ratio_interval : tuple of float
        5 and 95 % quantiles of the same, over cells and data sets.
    add_one : bool
        Whether one was added to both counts of these ratios, because some count can be 0.
    pmse : float
        Propensity score mean squared error, see
        :func:`bayes_sdc.flows.release.use.propensity.propensity_of`; the regressors are the count,
        the log totals of origin and destination in the true table, and the products of the count
        with these.
    pmse_ratio : float or None
        The pMSE in units of its expected value for a release from the right model: 1 from the
        fitted parameters, up to 2 from draws of them. None when nothing can differ.
    pmse_parameters : int
        Coefficients of the regression that can differ, k - 1 in the expected value.
    datasets : int
        Number of released data sets.
    """

    totals: pd.DataFrame
    net_migration_error: float
    bands: tuple[tuple[int, int], ...]
    right_band: float
    log_ratio_mean: float
    log_ratio_interval: tuple[float, float]
    add_one: bool
    pmse: float
    pmse_ratio: float | None
    pmse_parameters: int
    datasets: int

    @property
    def totals_error(self) -> float:
        """Mean of the total errors by origin and by destination."""
        return float(self.totals.loc[list(ENDS), "total_error"].mean())

    def _title(self) -> str:
        return f"Utility of a release of {self.datasets} data sets: confidential"

    def _facts(self) -> list[Fact]:
        low, high = self.log_ratio_interval
        one = " + 1" if self.add_one else ""
        return [
            (
                "error of totals",
                f"{self.totals_error:.1%}",
                "by area, relative to the sum of their small counts",
            ),
            (
                "pMSE ratio",
                or_undefined(self.pmse_ratio, ".2f"),
                "near 1 where a release keeps how counts go with the totals of their areas",
            ),
            ("right band", f"{self.right_band:.1%}", "cells in the size band of the true count"),
            (
                "error of net migration",
                f"{self.net_migration_error:,.2f}",
                "persons by area, mean of absolute errors",
            ),
            (
                f"log of released{one} over true{one}",
                f"{self.log_ratio_mean:+.3f} [{low:+.2f}, {high:+.2f}]",
                "mean, 5 and 95 % quantiles over cells",
            ),
        ]

    def __str__(self) -> str:
        """Return the utility in one line."""
        return (
            f"utility: error of totals by area {self.totals_error:.1%}, "
            f"pMSE ratio {or_undefined(self.pmse_ratio, '.2f')} "
            "(near 1 where a release keeps how counts go with the totals of their areas)"
        )


@checked
def utility(table: FlowTable, release: pd.DataFrame) -> Utility:
    """Measure what a release is good for: totals, net migration, size bands, ratios, pMSE.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    release : pandas.DataFrame
        What :func:`bayes_sdc.synthesize` returned.

    Returns
    -------
    Utility
        The measures, each defined there.

    Raises
    ------
    InputError
        If the release belongs to another table, or the table has no small cells.

    See Also
    --------
    bayes_sdc.synthesize, bayes_sdc.combined_totals, bayes_sdc.risk_utility

    References
    ----------
    pMSE: Woo, Reiter, Oganian and Karr 2009, doi:10.29012/jpc.v1i1.568; Snoke, Raab, Nowok, Dibben
    and Slavkovic 2018, doi:10.1111/rssa.12358.

    Examples
    --------
    >>> from bayes_sdc import read_flows, utility
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 5]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> measured = utility(table, frame.assign(n=[2, 4, 4]))
    >>> measured.totals["total_error"].to_dict()
    {'origin': 0.2, 'destination': 0.0, 'group': 0.0}
    >>> measured.right_band  # 1-2, 3-5 and 6-9
    1.0
    """
    truth = ground_truth(table)
    return measure(truth, released_counts(table, release) + float(table.low))


class GroundTruth(NamedTuple):
    """True small cells in the order of ``table.cells``, with the totals of their areas."""

    counts: np.ndarray  # (cell,) float, as published
    area: dict[str, np.ndarray]  # (cell,) by side: position among the areas of that side
    total: dict[str, np.ndarray]  # (cell,) by side: all cells of the area, safe ones included
    net: tuple[np.ndarray, np.ndarray]  # (cell,) origin and destination among all areas
    low: int
    high: int


def ground_truth(table: FlowTable) -> GroundTruth:
    """Take from a table what releases are compared with."""
    if table.n_small == 0:
        raise InputError(f"{table.source}: no small cells, so every release of it is the table")
    frame, cells = table.frame, table.cells
    froms, tos = (read_codes(frame[name], name) for name in (table.origin, table.destination))
    count = np.where(own_area(froms, tos), 0.0, frame[table.count].to_numpy(np.float64))
    keys = [read_codes(frame[name], name).places for name in table.groups]
    columns = np.column_stack([np.zeros(len(frame), dtype=np.intp), *keys])
    group = np.unique(columns, axis=0, return_inverse=True)[1].ravel()
    rows = cells["row"].to_numpy()
    places = dict(zip(SIDES, (froms.places, tos.places, group), strict=True))
    both, _ = pd.factorize(pd.concat([cells["origin"], cells["destination"]]), sort=True)
    return GroundTruth(
        counts=cells["y"].to_numpy(np.float64) + table.low,
        area={side: pd.factorize(cells[side], sort=True)[0] for side in SIDES},
        total={side: np.bincount(place, count)[place[rows]] for side, place in places.items()},
        net=(both[: len(cells)], both[len(cells) :]),
        low=table.low,
        high=table.high,
    )


def measure(truth: GroundTruth, released: np.ndarray) -> Utility:
    """Compute the measures of any protection of the small cells.

    Parameters
    ----------
    truth : GroundTruth
        From :func:`ground_truth`.
    released : array of float, shape (dataset, cell)
        Counts as a user reads them, as published; 0 or more, not necessarily whole.

    Returns
    -------
    Utility
        The measures.
    """
    error = released.mean(axis=0) - truth.counts
    leaving, entering = truth.net
    areas = max(leaving.max(), entering.max()) + 1
    net = np.bincount(entering, error, areas) - np.bincount(leaving, error, areas)
    add_one = bool(truth.low == 0 or released.min() <= 0.0)
    log_ratio = np.log((np.maximum(released, 0.0) + add_one) / (truth.counts + add_one))
    score = mean_score(scores(truth, released))
    return Utility(
        totals=pd.DataFrame({side: _totals_error(truth, side, error) for side in SIDES}).T.astype(
            {"areas": np.int64}
        ),
        net_migration_error=float(np.abs(net).mean()),
        bands=size_bands(truth.low, truth.high),
        right_band=float(in_right_band(truth, released).mean()),
        log_ratio_mean=float(log_ratio.mean()),
        log_ratio_interval=(
            float(np.quantile(log_ratio, 0.05)),
            float(np.quantile(log_ratio, 0.95)),
        ),
        add_one=add_one,
        pmse=score.pmse,
        pmse_ratio=score.ratio,
        pmse_parameters=score.parameters,
        datasets=len(released),
    )


def scores(truth: GroundTruth, released: np.ndarray) -> list[Propensity]:
    """PMSE of each data set: count, log totals of both areas, and their products."""
    # a log total needs a positive one, and with low = 0 an area can be empty
    sides = np.column_stack([truth.total["origin"], truth.total["destination"]])
    known = np.log(sides + (truth.low == 0))
    return by_dataset(known, truth.counts[:, np.newaxis], list(released[..., np.newaxis]))


def in_right_band(truth: GroundTruth, released: np.ndarray) -> np.ndarray:
    """Whether the size band of each released count is that of the true one: (dataset, cell)."""
    bands = size_bands(truth.low, truth.high)
    return np.asarray(_band(bands, released) == _band(bands, truth.counts))


def error_of_totals(truth: GroundTruth, error: np.ndarray) -> float:
    """Mean over both sides of the total error by area, given the error of each cell."""
    return float(np.mean([_totals_error(truth, side, error)["total_error"] for side in ENDS]))


def size_bands(low: int, high: int) -> tuple[tuple[int, int], ...]:
    """Size bands of growing width: 2, 3, 4, ... counts from ``low`` up, the last cut at ``high``.

    A count of 0 is a band of its own.

    Parameters
    ----------
    low, high : int
        Smallest and largest count.

    Returns
    -------
    tuple of (int, int)
        First and last count of each band.

    Examples
    --------
    >>> size_bands(1, 9)
    ((1, 2), (3, 5), (6, 9))
    >>> size_bands(0, 6)
    ((0, 0), (1, 2), (3, 5), (6, 6))
    """
    bands = [(0, 0)] if low == 0 else []
    first, width = max(low, 1), 2
    while first <= high:
        bands.append((first, min(first + width - 1, high)))
        first, width = first + width, width + 1
    return tuple(bands)


def _totals_error(truth: GroundTruth, side: str, error: np.ndarray) -> dict[str, float]:
    area = truth.area[side]
    absolute = np.abs(np.bincount(area, error))
    small = np.bincount(area, truth.counts)
    whole = np.zeros(len(small))
    whole[area] = truth.total[side]
    return {
        "areas": len(small),
        "mean_relative_error": _mean_ratio(absolute, small),
        "mean_relative_error_all": _mean_ratio(absolute, whole),
        "total_error": float(absolute.sum() / small.sum()) if small.any() else np.nan,
    }


def _mean_ratio(part: np.ndarray, whole: np.ndarray) -> float:
    """Mean ratio over areas that have one; missing when none has."""
    there = whole > 0
    return float((part[there] / whole[there]).mean()) if there.any() else np.nan


def _band(bands: tuple[tuple[int, int], ...], counts: np.ndarray) -> np.ndarray:
    """Band of each count; a value between two bands is in the nearer, one outside in none."""
    edges = [first - 0.5 for first, _ in bands] + [bands[-1][1] + 0.5]
    return np.asarray(np.digitize(counts, edges))
