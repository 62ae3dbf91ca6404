"""What the intruder assumes about other small counts, and the posterior that follows."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from bayes_sdc.flows.fit.fit import fit
from bayes_sdc.flows.fit.settings import sampling_again
from bayes_sdc.flows.fit.stored_results import fingerprint
from bayes_sdc.flows.intruder.probabilities.settings import RiskSettings
from bayes_sdc.flows.table.cells import small_cells
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.seeds import generator

#: Gives a posterior and the counts it was fitted to, from 0.
Background = Callable[[], tuple[xr.DataTree, np.ndarray]]


def known_cells(n: int, settings: RiskSettings) -> np.ndarray:
    """Which of n cells the intruder knows with knowledge "share"; none with "none"."""
    return share_known(n, settings, shift=0.0)


def share_known(n: int, settings: RiskSettings, *, shift: float) -> np.ndarray:
    """Cells of one of several known shares; every cell is unknown for some shift from 0 to 1."""
    draws = generator(settings.seed, "cells the intruder knows").random(n)
    return np.asarray((draws + shift) % 1.0 < (settings.share or 0.0))


def backgrounds(
    table: FlowTable,
    posterior: xr.DataTree,
    released: np.ndarray,
    settings: RiskSettings,
) -> list[Background]:
    """One background for each fit the intruder makes; the fit is made when it is called.

    An intruder who knows all other counts fits the true table: once the target is removed, its
    posterior holds nothing of the target's own count. Otherwise each released data set in turn is
    completed by what is known and fitted as the true table was.

    Parameters
    ----------
    table, posterior
        The true table and its posterior.
    released : array of int, shape (dataset, cell)
        Released counts, from 0.
    settings : RiskSettings
        Checked: what the intruder knows, the seed, and where fits are kept.

    References
    ----------
    Hawala, Reiter and Wang, section 3, the case in which A is empty.
    """
    y = small_cells(table).y
    if settings.knowledge == "all-others":
        return [lambda: (posterior, y)]
    seed, resume = settings.seed, settings.resume
    known = known_cells(len(y), settings)

    def fitted(number: int) -> tuple[xr.DataTree, np.ndarray]:
        counts = np.where(known, y, released[number])
        stand_in = replace(table, cells=table.cells.assign(y=counts))
        own_seed = int(generator(seed, f"intruder's fit {number}").integers(2**62))
        folder = None
        if resume is not None:
            mark = fingerprint(counts, own_seed, sorted(posterior.attrs.items()))
            folder = resume / f"scenario-{mark}"
        sampling = sampling_again(posterior, seed=own_seed, cores=settings.cores)
        return fit(stand_in, sampling, resume=folder), counts

    return [partial(fitted, number) for number in range(len(released))]
