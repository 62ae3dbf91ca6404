"""What the intruder takes for the other small counts, and the posterior that follows from it."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr

from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.fit import fit_flows
from bayes_sdc.flows.fit.stored_results import fingerprint
from bayes_sdc.flows.table.cells import small_cells
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.seeds import generator

KNOWLEDGE = ("all-others", "none", "share")

#: Gives a posterior and the counts it was fitted to, from 0.
Background = Callable[[], tuple[xr.DataTree, np.ndarray]]


def backgrounds(
    table: FlowTable,
    posterior: xr.DataTree,
    released: np.ndarray,
    knowledge: str,
    share: float | None,
    seed: int | None,
    cores: int | None,
    resume: Path | None,
) -> list[Background]:
    """One background for each fit the intruder makes; the fit is made when it is called.

    Who knows all other counts fits the true table: removing the target from its posterior leaves
    nothing of the target's own count. Otherwise each released data set in turn is completed by what
    is known and fitted as the true table was.

    Parameters
    ----------
    table, posterior
        The true table and its posterior.
    released : array of int, shape (dataset, cell)
        Released counts, from 0.
    knowledge, share, seed, cores, resume
        As for :func:`bayes_sdc.intruder_risk`.

    Raises
    ------
    InputError
        If a share is missing, superfluous or not between 0 and 1.

    References
    ----------
    Hawala, Reiter and Wang, section 3, the case in which A is empty.
    """
    check_share(knowledge, share)
    y = small_cells(table).y
    if knowledge == "all-others":
        return [lambda: (posterior, y)]
    rng = generator(seed or 0, "cells the intruder knows")
    known = rng.random(len(y)) < (share or 0.0)

    def fitted(number: int) -> tuple[xr.DataTree, np.ndarray]:
        counts = np.where(known, y, released[number])
        attributes = posterior.attrs
        stand_in = replace(table, cells=table.cells.assign(y=counts))
        own_seed = int(generator(seed or 0, f"intruder's fit {number}").integers(2**62))
        fit = fit_flows(
            stand_in,
            family=str(attributes["family"]),
            prior=json.loads(attributes["prior_settings"]),
            sampler=str(attributes["sampler"]),
            draws=int(attributes["draws"]),
            tune=int(attributes["tune"]),
            chains=int(attributes["chains"]),
            seed=own_seed,
            cores=cores,
            resume=None
            if resume is None
            else resume / f"scenario-{fingerprint(counts, own_seed, sorted(attributes.items()))}",
        )
        return fit, counts

    return [partial(fitted, number) for number in range(len(released))]


def check_share(knowledge: str, share: float | None) -> None:
    """Refuse a share that is missing, superfluous or not between 0 and 1."""
    number = isinstance(share, int | float | np.number) and 0 <= share <= 1
    if (share is None) == (knowledge == "share") or (share is not None and not number):
        raise InputError(
            'share goes with knowledge="share", and is a number from 0 to 1; it is '
            f"{share} with knowledge={knowledge!r}"
        )
