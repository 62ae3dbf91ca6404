"""Whether released counts can be told from true ones, even where the totals are the true ones.

A regression on the count and the totals of its areas is blind where a release keeps totals: these
regressors have the same means in both halves by construction. So further functions of the count
join it: its logarithm, whether it is the smallest and whether it is the largest; each by itself and
times the log totals, whether both ends are in one state, and the log distance, where known. The
pMSE is given with all of them, and without those that totals keep.

The result under the right model follows by simulation: two tables of the posterior, drawn like the
release, one in place of the truth.

References
----------
Snoke, Raab, Nowok, Dibben and Slavkovic 2018, doi:10.1111/rssa.12358.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.synthetic.synthesis import draw_datasets
from bayes_sdc.flows.release.totals.kept import KeptTotals
from bayes_sdc.flows.release.use.propensity import Propensity, propensity_of
from bayes_sdc.flows.release.use.utility import ground_truth
from bayes_sdc.flows.table.cells import fitted_cells
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.io.columns import read_codes
from bayes_sdc.seeds import generator

PER = 10_000  # number of cells to which the excess of the ratio is scaled


def known_of_cells(table: FlowTable) -> np.ndarray:
    """What the regression knows of each small cell: (cell, column).

    Log totals of both areas; whether both ends are in one state, where groups are pairs of states;
    and the log distance, where it is a covariate.
    """
    truth = ground_truth(table)
    columns = [np.log(truth.total[side] + (table.low == 0)) for side in ("origin", "destination")]
    if len(table.groups) == 2:
        rows = table.cells["row"].to_numpy()
        ends = [read_codes(table.frame[name], name).texts()[rows] for name in table.groups]
        columns.append(ends[0] == ends[1])
    if "log_distance" in table.covariates.columns:
        columns.append(table.covariates["log_distance"].to_numpy())
    return np.column_stack(columns).astype(np.float64)


class Distinguished(NamedTuple):
    """pMSE with all functions of the count, and without the count itself. Confidential.

    Made by :func:`bayes_sdc.protect_flows`: ``measured.distinguished``.

    Parameters
    ----------
    every, others : Propensity
        With count, log count and whether it is the smallest or the largest; without the count.
    cells : int
        Number of small cells.
    null : tuple of float or None
        Ratio of ``every`` under the right model, by simulation: 5 and 95 % quantiles.
    """

    every: Propensity  # count, log count, smallest, largest
    others: Propensity  # the same without the count and its products
    cells: int
    null: tuple[float, float] | None = None  # ratio under the right model: 5 and 95 % quantiles

    @property
    def excess(self) -> float | None:
        """How much the ratio of ``every`` exceeds 1, scaled to 10,000 cells: it grows with them."""
        ratio = self.every.ratio
        return None if ratio is None else (ratio - 1.0) * PER / self.cells


def distinguished(
    known: np.ndarray, true: np.ndarray, released: np.ndarray, *, low: int, high: int
) -> Distinguished:
    """Measure how well released counts can be told from true ones.

    Parameters
    ----------
    known : array of float, shape (cell, column)
        What is known of each cell, such as log totals of its areas, one state, log distance.
    true : array of float, shape (cell,)
        True counts, as published.
    released : array of float, shape (dataset, cell)
        Released counts.
    low, high : int
        Smallest and largest small count.

    Examples
    --------
    >>> known = np.log([[30.0], [30.0], [50.0], [50.0], [70.0]])
    >>> true = np.array([1.0, 2.0, 2.0, 3.0, 9.0])
    >>> round(distinguished(known, true, true[None], low=1, high=9).every.pmse, 12)
    0.0
    """
    # a log needs a positive count; rounding can leave 0, unclamped noise less
    one = float(low == 0 or released.min() <= 0.0)

    def functions(counts: np.ndarray, own: bool) -> np.ndarray:
        columns = [np.log(np.maximum(counts, 0.0) + one), counts == low, counts == high]
        return np.column_stack([counts, *columns] if own else columns).astype(np.float64)

    every, others = (
        propensity_of(known, functions(true, own), [functions(data, own) for data in released])
        for own in (True, False)
    )
    return Distinguished(every, others, len(true))


def null_ratios(
    known: np.ndarray, tables: Sequence[np.ndarray], *, low: int, high: int
) -> np.ndarray:
    """Ratios when one table of the posterior stands for the truth and another is released.

    Parameters
    ----------
    known : array of float, shape (cell, column)
        As for :func:`distinguished`.
    tables : sequence of array of float, shape (cell,)
        Counts drawn as a release is, each from another posterior draw.
    low, high : int
        Smallest and largest small count.

    Returns
    -------
    array of float, shape (pair,)
        With all functions of the count; one for each pair of consecutive tables.
    """
    found = [
        distinguished(known, one, other[np.newaxis], low=low, high=high).every.ratio
        for one, other in zip(tables[::2], tables[1::2], strict=False)
    ]
    return np.array([ratio for ratio in found if ratio is not None])


NULL_TABLES = 20  # of the posterior, compared two by two


def told_apart(
    table: FlowTable, posterior: xr.DataTree, release: pd.DataFrame, kept: KeptTotals, *, seed: int
) -> Distinguished:
    """Measure a release, and simulate the same for the right model with the same totals kept.

    Parameters
    ----------
    table : FlowTable
        The true table.
    posterior : xarray.DataTree
        Its posterior.
    release : DataFrame
        What :func:`bayes_sdc.synthesize` returned.
    kept : KeptTotals
        Totals that it keeps.
    seed : int
        Of the tables of the posterior.
    """
    known, cells = known_of_cells(table), fitted_cells(table, posterior)
    rates, rng = rates_by_draw(posterior), generator(seed, "null of the propensity score")
    number = min(NULL_TABLES, rates.n_draws) // 2 * 2
    prepared = kept.mixing(cells.y) if kept.sides else None
    tables = draw_datasets(cells, rates, number, rng, prepared) + float(table.low)
    ends: dict[str, int] = {"low": table.low, "high": table.high}
    released = released_counts(table, release) + float(table.low)
    found = distinguished(known, cells.y + float(table.low), released, **ends)
    ratios = null_ratios(known, list(tables), **ends)
    if len(ratios) < 2:
        return found
    low, high = np.quantile(ratios, [0.05, 0.95])
    return found._replace(null=(float(low), float(high)))
