"""Posterior predictive check of the counts, in all cells together and by size of their group."""

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.release.synthetic.synthesis import draw_counts, spread_draws
from bayes_sdc.flows.table.cells import fitted_cells
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.seeds import generator

PREDICTIVE_DRAWS = 200
SIZES = {"fewer than 10": 0, "10 to 99": 10, "100 or more": 100}  # small cells, from


def compare_counts(
    table: FlowTable, posterior: xr.DataTree, *, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How many small cells have each count, and how many should: in all, and by size of group.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior.
    seed : int
        Seed of the replicated tables, which serve both.

    Returns
    -------
    DataFrame, DataFrame
        As :func:`bayes_sdc.flows.diagnostics.predictive_counts` and
        :func:`predictive_counts_by_size` describe them.

    References
    ----------
    Gelman, Meng and Stern 1996, Statistica Sinica 6, 733-807.
    """
    cells = fitted_cells(table, posterior)
    rates = rates_by_draw(posterior)
    rng = generator(seed, "predictive check")
    size = np.bincount(cells.group)[cells.group]
    place = np.searchsorted(list(SIZES.values()), size, side="right") - 1
    width = cells.upper + 1

    def tally(y: np.ndarray) -> np.ndarray:
        numbers = np.bincount(place * width + y, minlength=len(SIZES) * width)
        return numbers.reshape(len(SIZES), width)

    replicated = np.stack(
        [
            tally(draw_counts(cells, rates, int(draw), rng))
            for draw in spread_draws(rng, rates.n_draws, min(PREDICTIVE_DRAWS, rates.n_draws))
        ]
    )
    observed = tally(cells.y)
    counts = pd.RangeIndex(table.low, table.high + 1, name="count")
    there = np.unique(place)
    by_size = _compared(observed[there].ravel(), replicated[:, there].reshape(len(replicated), -1))
    names = np.array(list(SIZES))[there]
    by_size.index = pd.MultiIndex.from_product([names, counts], names=["size", "count"])
    in_all = _compared(observed.sum(axis=0), replicated.sum(axis=1))
    return in_all.set_index(counts), by_size


def _compared(observed: np.ndarray, replicated: np.ndarray) -> pd.DataFrame:
    """Numbers of cells beside those of the replicated tables, (replicate, number)."""
    lower, upper = np.quantile(replicated, [0.025, 0.975], axis=0)
    expected = replicated.mean(axis=0)
    return pd.DataFrame(
        {
            "observed": observed,
            "expected": expected,
            "lower": lower,
            "upper": upper,
            "relative_error": (expected - observed) / np.where(observed > 0, observed, np.nan),
        }
    )


def predictive_counts_by_size(
    table: FlowTable, posterior: xr.DataTree, *, seed: int
) -> pd.DataFrame:
    """Posterior predictive check by size of the group: a fit on average may fit no group.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior.
    seed : int
        Seed of the replicated tables; with the same one they are those of
        :func:`bayes_sdc.flows.diagnostics.predictive_counts`, so expected numbers add up to its
        own.

    Returns
    -------
    pandas.DataFrame
        The columns of :func:`bayes_sdc.flows.diagnostics.predictive_counts`, indexed by ``size``,
        the number of small cells in the cell's group ("fewer than 10", "10 to 99", "100 or more";
        those that occur), and ``count``.
    """
    return compare_counts(table, posterior, seed=seed)[1]
