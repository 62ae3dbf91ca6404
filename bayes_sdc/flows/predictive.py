"""Posterior predictive check of the counts, in all cells together or in classes of cells."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.flows.layout import layout
from bayes_sdc.flows.synthesis import draw_counts, rates_by_draw, spread_draws
from bayes_sdc.flows.table import FlowTable
from bayes_sdc.seeds import generator

PREDICTIVE_DRAWS = 200
SIZES = {"fewer than 10": 0, "10 to 99": 10, "100 or more": 100}  # small cells, from


def compare_counts(
    table: FlowTable, posterior: xr.DataTree, classes: Sequence[str] | np.ndarray, *, seed: int
) -> pd.DataFrame:
    """How many small cells of each class have each count, and how many should.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior.
    classes : sequence of str, shape (cell,)
        Class of each cell, in the order of ``table.cells``.
    seed : int
        Seed of the replicated tables, which do not depend on the classes.

    Returns
    -------
    pandas.DataFrame
        By class, in order of appearance, and count: ``observed``, ``expected``, ``lower``,
        ``upper`` and ``relative_error`` as :func:`bayes_sdc.diagnostics.predictive_counts` has
        them.

    References
    ----------
    Gelman, Meng and Stern 1996, Statistica Sinica 6, 733-807.
    """
    cells = layout(table)
    rates = rates_by_draw(posterior)
    rng = generator(seed, "predictive check")
    place, names = pd.factorize(np.asarray(classes, dtype=object))
    width = cells.upper + 1

    def tally(y: np.ndarray) -> np.ndarray:
        return np.bincount(place * width + y, minlength=len(names) * width)

    replicated = np.stack(
        [
            tally(draw_counts(cells, rates, int(draw), rng))
            for draw in spread_draws(rng, rates.n_draws, min(PREDICTIVE_DRAWS, rates.n_draws))
        ]
    )
    observed = tally(cells.y)
    lower, upper = np.quantile(replicated, [0.025, 0.975], axis=0)
    expected = replicated.mean(axis=0)
    return pd.DataFrame(
        {
            "observed": observed,
            "expected": expected,
            "lower": lower,
            "upper": upper,
            "relative_error": (expected - observed) / np.where(observed > 0, observed, np.nan),
        },
        index=pd.MultiIndex.from_product(
            [names, range(table.low, table.high + 1)], names=["class", "count"]
        ),
    )


def predictive_counts_by_size(
    table: FlowTable, posterior: xr.DataTree, *, seed: int
) -> pd.DataFrame:
    """Posterior predictive check by size of the group: what fits on average may fit no group.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior.
    seed : int
        Seed of the replicated tables; with the same one they are those of
        :func:`bayes_sdc.diagnostics.predictive_counts`, so expected numbers add up to its own.

    Returns
    -------
    pandas.DataFrame
        As of :func:`compare_counts`, indexed by ``size``, the number of small cells in the cell's
        group ("fewer than 10", "10 to 99", "100 or more"; those that occur), and ``count``.
    """
    group = layout(table).group
    size = np.bincount(group)[group]
    names = np.array(list(SIZES))
    classes = names[np.searchsorted(list(SIZES.values()), size, side="right") - 1]
    frame = compare_counts(table, posterior, classes, seed=seed)
    frame.index = frame.index.set_names(["size", "count"])
    return frame.loc[[name for name in SIZES if name in set(classes)]]
