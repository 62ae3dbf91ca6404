"""Totals estimated from several data sets; the intervals include the noise of the synthesis."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.release.synthetic.released import released_counts
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
        ``lower`` and ``upper`` end of the interval, and whether the true total is ``covered``.
    by_side : DataFrame
        One row per side: ``areas``, ``coverage`` (share of true totals inside) and ``mean_width``
        of the intervals in persons.
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
                f"of {t['areas']:,.0f} intervals of 95 %, mean width {t['mean_width']:,.1f}",
            )
            for side, t in self.by_side.iterrows()
        ]

    def __str__(self) -> str:
        """Return in one line how many intervals for totals hold the true one."""
        parts = [
            f"{by_area(str(side))} {t['coverage']:.1%} (mean width {t['mean_width']:,.1f})"
            for side, t in self.by_side.iterrows()
        ]
        return (
            f"true totals inside their 95 % intervals from {self.datasets} data sets: "
            + ", ".join(parts)
        )


@checked
def combined_totals(table: FlowTable, release: pd.DataFrame) -> CombinedTotals:
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

    Returns
    -------
    CombinedTotals
        Estimates and intervals by origin, destination and group, and of net migration by area, and
        how many hold the true total.

    Raises
    ------
    InputError
        If the release belongs to another table, has one data set, for which b is undefined, or the
        table has no small cells.

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
    end at the least and largest total of so many small counts. Net migration is the difference of
    two totals without a common cell.

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
    true = (table.cells["y"] + table.low).to_numpy()
    scatter, sides = scatter_of_cells(counts), []
    for side in (*SIDES, "net migration"):
        if side == "net migration":
            ends = pd.concat([table.cells["destination"], table.cells["origin"]])
            both, names = pd.factorize(ends, sort=True)
            into, out = both[: len(true)], both[len(true) :]
        else:
            into, names = pd.factorize(table.cells[side], sort=True)
            out = into[:0]
        inflow, outflow = (
            np.stack([np.bincount(area, one[: len(area)], len(names)) for one in (true, *counts)])
            for area in (into, out)
        )
        difference = inflow - outflow
        of_area = np.bincount(into, scatter[: len(into)], len(names))
        of_area = of_area + np.bincount(out, scatter[: len(out)], len(names))
        combined = combine(difference[1:], known_share(difference[1:], of_area) * of_area)
        into_cells, out_cells = (np.bincount(a, minlength=len(names)) for a in (into, out))
        # least and largest total of so many small counts
        least = table.low * into_cells - table.high * out_cells
        most = table.high * into_cells - table.low * out_cells
        for end in ("lower", "upper"):
            combined[end] = np.clip(combined[end], least, most)
        at_true = difference[0].astype(np.int64)
        inside = (combined["lower"] <= at_true) & (at_true <= combined["upper"])
        first = {"side": side, "area": names, "cells": into_cells + out_cells, "true": at_true}
        sides.append(pd.DataFrame({**first, **combined, "covered": inside}))
    found = pd.concat(sides, ignore_index=True)
    by_side = (
        found.assign(width=found["upper"] - found["lower"])
        .groupby("side", sort=False)
        .agg(areas=("area", "size"), coverage=("covered", "mean"), mean_width=("width", "mean"))
    )
    return CombinedTotals(totals=found, by_side=by_side, datasets=m)


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
