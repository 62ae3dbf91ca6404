"""Fit to the counts: how many cells have each count, and how far they scatter about their means."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.release.synthetic.predictive import PREDICTIVE_DRAWS, compare_counts
from bayes_sdc.flows.release.synthetic.synthesis import spread_draws
from bayes_sdc.flows.table.cells import fitted_cells
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.seeds import generator


def predictive_counts(table: FlowTable, posterior: xr.DataTree, *, seed: int) -> pd.DataFrame:
    """Posterior predictive check: how many small cells have each count, and how many should.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior.
    seed : int
        Seed of the replicated tables.

    Returns
    -------
    pandas.DataFrame
        By count from low to high: ``observed`` number of cells, ``expected`` number (mean over
        200 replicated tables), ``lower`` and ``upper`` ends of the central 95 % of replicated
        numbers, ``relative_error`` of the expected number (missing where none was observed).

    References
    ----------
    Gelman, Meng and Stern 1996, Statistica Sinica 6, 733-807.
    """
    return compare_counts(table, posterior, seed=seed)[0]


class Dispersion(NamedTuple):
    """Pearson dispersion of the small counts about the model's means.

    Made by :func:`bayes_sdc.protect_flows`, as ``measured.dispersion``.

    Parameters
    ----------
    value : float
        Mean over posterior draws, 0 or more; near 1 when the model fits.
    lower, upper : float
        Ends of the central 95 % of the same for replicated tables.
    """

    value: float  # mean over posterior draws; 1 when the model fits
    lower: float  # central 95 % of the same for replicated tables
    upper: float


def dispersion(table: FlowTable, posterior: xr.DataTree, *, seed: int) -> Dispersion:
    """Compare the scatter of the small counts with what the model allows.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior.
    seed : int
        Seed of the replicated tables.

    Returns
    -------
    Dispersion
        Mean over cells and posterior draws of (y - mean)^2 / variance, at least 0, and the
        interval in which it lies for tables that the model made.

    References
    ----------
    Gelman, Meng and Stern 1996, Statistica Sinica 6, 733-807.
    """
    cells = fitted_cells(table, posterior)
    rates = rates_by_draw(posterior)
    rng = generator(seed, "dispersion")
    values = np.arange(cells.upper + 1.0)
    observed, replicated = [], []
    for draw in spread_draws(rng, rates.n_draws, min(PREDICTIVE_DRAWS, rates.n_draws)):
        log_rate, rungs = rates.at(cells, int(draw))
        probabilities = counts.probabilities(log_rate, cells.group, rungs)
        mean = probabilities @ values
        variance = np.maximum(probabilities @ values**2 - mean**2, 1e-12)
        replica = counts.draw(log_rate, cells.group, rungs, rng.random(len(log_rate)))
        observed.append(np.mean((cells.y - mean) ** 2 / variance))
        replicated.append(np.mean((replica - mean) ** 2 / variance))
    lower, upper = np.quantile(replicated, [0.025, 0.975])
    return Dispersion(float(np.mean(observed)), float(lower), float(upper))
