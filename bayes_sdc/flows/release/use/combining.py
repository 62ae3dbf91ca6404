"""Totals estimated from several data sets; the intervals include the noise of the synthesis.

A total that the release keeps is the true one in every data set, whatever its cells do: nothing is
left to estimate, and its interval has no width.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.totals.kept import KeptTotals, kept_of
from bayes_sdc.flows.release.totals.margins import totals_kept
from bayes_sdc.flows.release.use.utility import SIDES
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.results import Fact, Result


@dataclass(frozen=True, eq=False, repr=False)
class CombinedTotals(Result):
    """Totals of small cells estimated from several data sets, with intervals. Confidential.

    Made by :func:`bayes_sdc.combined_totals`.

    Parameters
    ----------
    totals : DataFrame
        One row per ``side`` and ``area``: side is "origin", "destination", "group", where the area
        is a group, or "net migration", inflow minus outflow. ``cells``, ``true`` total,
        ``estimate`` (mean of the data sets), variances ``between`` and ``within`` data sets,
        ``variance`` of the estimate, degrees of freedom ``df`` (infinite when the data sets agree),
        ``lower`` and ``upper`` end of the interval, whether the true total is ``covered``, and
        whether it is ``exact``: kept by the release, with variance 0 and an interval of no width.
    by_side : DataFrame
        One row per side: ``areas``, ``exact`` ones among them, ``coverage`` (share of true totals
        inside) and ``mean_width`` of the intervals in persons, exact ones included.
    datasets : int
        Number m of data sets.
    """

    totals: pd.DataFrame
    by_side: pd.DataFrame
    datasets: int

    def _title(self) -> str:
        return f"Totals of small cells from {self.datasets} data sets: confidential"

    def _facts(self) -> list[Fact]:
        return [
            (
                f"true totals {by_area(str(side))} inside",
                f"{t['coverage']:.1%}",
                "kept by the release, and exact"
                if t["exact"] == t["areas"]
                else f"of {t['areas']:,.0f} intervals of 95 %, mean width {t['mean_width']:,.1f}",
            )
            for side, t in self.by_side.iterrows()
        ]

    def __str__(self) -> str:
        """Return in one line how many intervals for totals hold the true one."""
        parts = [
            f"{by_area(str(side))} exact"
            if t["exact"] == t["areas"]
            else f"{by_area(str(side))} {t['coverage']:.1%} (mean width {t['mean_width']:,.1f})"
            for side, t in self.by_side.iterrows()
        ]
        return (
            f"true totals inside their 95 % intervals from {self.datasets} data sets: "
            + ", ".join(parts)
        )


@checked
def combined_totals(
    table: FlowTable, release: pd.DataFrame, *, totals: str | Sequence[str] | KeptTotals = ()
) -> CombinedTotals:
    """Estimate totals of small cells from several data sets, by the rules for partial synthesis.

    For the total of an area, q is its mean over the m data sets, b its variance between them and u
    its within variance. The variance of q is ``T = u + b / m``, and the 95 % interval is that of
    Student's t with ``(m - 1) (1 + m u / b)^2`` degrees of freedom.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    release : pandas.DataFrame
        Two data sets or more from :func:`bayes_sdc.synthesize`.
    totals : str, sequence of str or KeptTotals
        Totals that the release keeps, as for :func:`bayes_sdc.synthesize`. By default those kinds
        of which ten totals or more agree in all data sets, and with the truth.

    Returns
    -------
    CombinedTotals
        Estimates and intervals by origin, destination and group, and of net migration by area, and
        how many hold the true total.

    Raises
    ------
    InputError
        If the release belongs to another table, has one data set, for which b is undefined, or does
        not keep the totals, or the table has no small cells.

    See Also
    --------
    bayes_sdc.synthesize, bayes_sdc.utility

    Notes
    -----
    A complete table has no sampling variance: the total is one outcome of its rates, and scatters
    about what they expect with a variance V. A data set scatters about the same by V and by what
    the posterior leaves open of the rates, S, so ``b = V + S``. The mean of the data sets misses
    the truth with variance ``V - S = 2 V - b`` (exactly for normal counts, whatever the prior: the
    better the rates follow the counts, the smaller the error), plus b / m. V shows in the cells:
    between data sets a cell scatters like others with its mean count, and where many cells share an
    effect S is a small part of that. So u is the sum of this over the area's cells, C, times ``2 -
    (sum of b) / (sum of C)`` over all areas of the side, from 0 to 1, with the sum of b less its
    standard error, because few areas estimate it badly.

    In tables drawn from the model the intervals hold 94 to 99 % of the true totals by area. They
    end at the least and largest total of so many small counts, or at those that kept totals leave.
    Net migration is the difference of two totals without a common cell.

    Kept totals are exact, and so is net migration where inflow and outflow are; they are left out
    of the sums of b and C. Where totals are kept to a base, the interval ends where the total would
    round to another multiple. Cells of kept totals scatter against each other, so totals across
    them, such as of merged ones, scatter less than C, and their intervals are rather too wide.

    Estimates and ends of the intervals follow from the release alone, and anyone can compute them
    from it. The rest is a comparison with the truth.

    References
    ----------
    Reiter 2003, "Inference for partially synthetic, public use microdata sets", Survey Methodology
    29, 181-188.

    Examples
    --------
    >>> from bayes_sdc import combined_totals, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a"], "d": ["x", "y"], "n": [1, 4]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> two = pd.concat([frame.assign(dataset=1), frame.assign(dataset=2, n=[3, 4])])
    >>> columns = ["side", "area", "true", "estimate", "between", "within", "variance"]
    >>> combined_totals(table, two).totals[columns]
                side area  true  estimate  between  within  variance
    0         origin    a     5       6.0      2.0     4.0       5.0
    1    destination    x     1       2.0      2.0     2.0       3.0
    2    destination    y     4       4.0      0.0     2.0       2.0
    3          group  all     5       6.0      2.0     4.0       5.0
    4  net migration    a    -5      -6.0      2.0     4.0       5.0
    5  net migration    x     1       2.0      2.0     2.0       3.0
    6  net migration    y     4       4.0      0.0     2.0       2.0
    """
    if table.n_small == 0:
        raise InputError(f"{table.source}: no small cells, so there are no totals to estimate")
    counts = released_counts(table, release) + table.low
    m = len(counts)
    if m < 2:
        raise InputError(
            "the release has 1 data set, and the variance between data sets is undefined; "
            "synthesize with datasets=2 or more"
        )
    kept = _kept(table, counts - table.low, totals)
    scatter = scatter_of_cells(counts)
    found = pd.concat(
        [_of_side(table, counts, scatter, kept, side) for side in (*SIDES, "net migration")],
        ignore_index=True,
    )
    by_side = (
        found.assign(width=found["upper"] - found["lower"])
        .groupby("side", sort=False)
        .agg(
            areas=("area", "size"), exact=("exact", "sum"), coverage=("covered", "mean"),
            mean_width=("width", "mean"),
        )
    )  # fmt: skip
    return CombinedTotals(totals=found, by_side=by_side, datasets=m)


def _kept(
    table: FlowTable, released: np.ndarray, totals: str | Sequence[str] | KeptTotals
) -> KeptTotals:
    """Totals that the release was told to keep, or those that are seen to be kept."""
    y = table.cells["y"].to_numpy(np.int64)
    kept = kept_of(table, totals)
    if not kept.sides:  # one at a time: together they may be more than a two-way table
        sides = [
            side for name in totals_kept(table, released) for side in kept_of(table, name).sides
        ]
        return KeptTotals(tuple(side.name for side in sides), tuple(sides))
    for data in released:
        for sums, within in zip(kept.margins(data)[2:], kept.bounds(y), strict=True):
            if ((sums < within[:, 0]) | (sums > within[:, 1])).any():
                raise InputError(
                    f"the release does not keep the totals by {' and '.join(kept.names)}; name "
                    "those that it was drawn with, or none"
                )
    return kept


def _of_side(
    table: FlowTable, counts: np.ndarray, scatter: np.ndarray, kept: KeptTotals, side: str
) -> pd.DataFrame:
    """Estimates and intervals of one kind of total."""
    y = table.cells["y"].to_numpy(np.int64)
    true = y + table.low
    if side == "net migration":
        ends = pd.concat([table.cells["destination"], table.cells["origin"]])
        both, names = pd.factorize(ends, sort=True)
        into, out = both[: len(true)], both[len(true) :]
    else:
        into, names = pd.factorize(table.cells[side], sort=True)
        out = into[:0]
    n = len(names)
    inflow, outflow = (
        np.stack([np.bincount(area, one[: len(area)], n) for one in (true, *counts)])
        for area in (into, out)
    )
    difference = inflow - outflow
    # least and largest total of so many small counts, and given what is kept
    into_cells, out_cells = (np.bincount(area, minlength=n) for area in (into, out))
    more = possible_totals(kept, y, table.k, into, n) + table.low * into_cells[:, None]
    less = np.zeros((n, 2), np.int64)
    if len(out):
        less = possible_totals(kept, y, table.k, out, n) + table.low * out_cells[:, None]
    least, most = more[:, 0] - less[:, 1], more[:, 1] - less[:, 0]
    exact = least == most
    of_area = np.bincount(into, scatter[: len(into)], n)
    of_area = of_area + np.bincount(out, scatter[: len(out)], n)
    of_area[exact] = 0.0
    share = known_share(difference[1:, ~exact], of_area[~exact]) if not exact.all() else 0.0
    combined = combine(difference[1:], share * of_area)
    for end in ("lower", "upper"):
        combined[end] = np.clip(combined[end], least, most)
    at_true = difference[0].astype(np.int64)
    inside = (combined["lower"] <= at_true) & (at_true <= combined["upper"])
    first = {"side": side, "area": names, "cells": into_cells + out_cells, "true": at_true}
    return pd.DataFrame({**first, **combined, "covered": inside, "exact": exact})


def possible_totals(
    kept: KeptTotals, y: np.ndarray, upper: int, area: np.ndarray, areas: int
) -> np.ndarray:
    """Least and largest total of each area given what is kept: (area, 2) of sums from 0.

    A kept total that lies within an area bounds its cells together, the other cells have bounds of
    their own.

    Parameters
    ----------
    kept : KeptTotals
        Totals, exact or to a base.
    y : array of int, shape (cell,)
        Counts from 0 with these totals.
    upper : int
        Largest count.
    area : array of int, shape (cell,)
        Area of each cell.
    areas : int
        Number of areas.
    """
    cells = np.bincount(area, minlength=areas)
    found = np.stack([np.zeros(areas, np.int64), upper * cells], axis=1)
    for side in kept.sides:
        block = side.cells
        alone = KeptTotals((side.name,), (side,), kept.base)
        bounds, number = alone.bounds(y)[0], int(block.max()) + 1
        first, last = np.full(number, areas), np.full(number, -1)
        np.minimum.at(first, block, area)
        np.maximum.at(last, block, area)
        within = first == last
        rest = np.bincount(area, ~within[block], areas).astype(np.int64)
        least, most = (
            np.bincount(first[within], bounds[within, end], areas).astype(np.int64)
            for end in (0, 1)
        )
        found[:, 0] = np.maximum(found[:, 0], least)
        found[:, 1] = np.minimum(found[:, 1], most + upper * rest)
    return found


def scatter_of_cells(counts: np.ndarray) -> np.ndarray:
    """Variance between data sets of a cell like each: the mean over those with its mean count.

    Counts of few cells say little, so each mean gets one cell more, with the variance of a Poisson
    count.

    Parameters
    ----------
    counts : array of int, shape (dataset, cell)
        Of two data sets or more.

    Examples
    --------
    >>> scatter_of_cells(np.array([[1, 4, 4], [3, 4, 4]])).round(3).tolist()
    [2.0, 1.333, 1.333]
    """
    place = np.rint(counts.mean(axis=0)).astype(np.int64)
    size = np.bincount(place)
    total = np.bincount(place, counts.var(axis=0, ddof=1)) + np.arange(len(size))
    return np.asarray((total / (size + 1))[place])


def known_share(totals: np.ndarray, of_cells: np.ndarray) -> float:
    """Share of the scatter of the cells by which the mean of the data sets misses the truth.

    Parameters
    ----------
    totals : array of float, shape (dataset, area)
        Of each data set.
    of_cells : array of float, shape (area,)
        Sum of the scatter of the area's cells.

    Examples
    --------
    >>> known_share(np.array([[1.0], [3.0]]), np.array([1e-9])), known_share(
    ...     np.array([[1.0], [3.0]]), np.array([4.0])
    ... )
    (1.0, 1.0)
    """
    m, areas = totals.shape
    between = totals.var(axis=0, ddof=1).sum()
    between *= max(1.0 - np.sqrt(2.0 / ((m - 1) * areas)), 0.0)
    return float(np.clip(2.0 - between / max(of_cells.sum(), 1e-9), 0.0, 1.0))


def combine(estimates: np.ndarray, within: np.ndarray) -> dict[str, np.ndarray]:
    """Apply the combining rules for partially synthetic data.

    Parameters
    ----------
    estimates : array of float, shape (dataset, quantity)
        Estimate from each of two data sets or more.
    within : array of float, shape (quantity,)
        Within variance.

    Returns
    -------
    dict of arrays, each of shape (quantity,)
        estimate, between, within, variance, df, and lower and upper end of the 95 % interval.

    Examples
    --------
    >>> result = combine(np.array([[4.0], [8.0]]), np.array([3.0]))
    >>> [round(float(result[name][0]), 4) for name in ("between", "within", "variance", "df")]
    [8.0, 3.0, 7.0, 3.0625]
    """
    m = len(estimates)
    estimate = estimates.mean(axis=0)
    between = estimates.var(axis=0, ddof=1)
    variance = within + between / m
    # data sets that agree leave nothing to estimate between them
    agree = between == 0.0
    ratio = m * within / np.where(agree, 1.0, between)
    df = np.where(agree, np.inf, (m - 1) * (1.0 + ratio) ** 2)
    half = stdtrit(df, 0.975) * np.sqrt(variance)
    return {
        "estimate": estimate,
        "between": between,
        "within": within,
        "variance": variance,
        "df": df,
        "lower": estimate - half,
        "upper": estimate + half,
    }


def by_area(side: str) -> str:
    """Name a kind of total.

    Examples
    --------
    >>> by_area("origin"), by_area("net migration")
    ('by origin', 'net migration by area')
    """
    return f"{side} by area" if side == "net migration" else f"by {side}"
