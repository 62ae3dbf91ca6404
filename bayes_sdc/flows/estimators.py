"""The estimators of the release probabilities, by name, and refits of what they cannot tell."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import xarray as xr

from bayes_sdc.flows import importance, integrated
from bayes_sdc.flows.layout import Layout, thin
from bayes_sdc.flows.pareto import khat_threshold
from bayes_sdc.flows.refit import STARTS, SWEEPS, refit
from bayes_sdc.flows.synthesis import rates_by_draw
from bayes_sdc.flows.target import likelihood_of_release, stationary

ESTIMATORS = ("integrated", "paper", "refit")


class Found(NamedTuple):
    """An estimate for the target cells, and which of them were refitted."""

    m: np.ndarray  # (target, candidate, released)
    prediction: np.ndarray  # (target, count)
    by_chain: np.ndarray  # (chain, target, candidate)
    khat: np.ndarray  # (target, candidate)
    ess: np.ndarray  # (target, candidate)
    threshold: float
    refitted: np.ndarray  # (target,)


def estimate(
    posterior: xr.DataTree,
    cells: Layout,
    released: np.ndarray,
    targets: np.ndarray,
    *,
    estimator: str,
    refits: int,
    seed: int | None,
    cores: int | None,
    advance: Callable[[float], None],
) -> Found:
    """Release probabilities of the targets; the worst of those with a bad k-hat are refitted.

    Parameters
    ----------
    posterior : DataTree
        Fitted to the counts of ``cells``.
    cells : Layout
        All small cells.
    released : array of int, shape (dataset, cell)
        Released counts, from 0.
    targets : array of int
        Positions of the target cells, ascending.
    estimator, refits, seed, cores
        As for :func:`bayes_sdc.flows.intruder.intruder_risk`.
    advance : callable
        Told how many targets are done.
    """
    chains = posterior["posterior"].sizes["chain"]
    if estimator == "refit":
        width = cells.upper + 1
        found = Found(
            m=np.empty((len(targets), width, width)),
            prediction=np.empty((len(targets), width)),
            by_chain=np.empty((chains, len(targets), width)),
            khat=np.full((len(targets), width), np.inf),
            ess=np.empty((len(targets), width)),
            threshold=khat_threshold(STARTS * SWEEPS),
            refitted=np.zeros(len(targets), dtype=bool),
        )
        chosen = np.arange(len(targets))
    else:
        if estimator == "integrated":
            result = integrated.release_probabilities(
                posterior, cells, released, targets=targets, cores=cores, advance=advance
            )
        else:
            chosen_only = thin(cells, np.isin(np.arange(len(cells.y)), targets))
            result = importance.release_probabilities(
                rates_by_draw(posterior), chosen_only, chains, released[:, targets],
                advance=advance,
            )  # fmt: skip
        found = Found(*result, refitted=np.zeros(len(targets), dtype=bool))
        worst = found.khat.max(axis=1)
        bad = np.flatnonzero(worst > found.threshold)
        chosen = np.sort(bad[np.argsort(-worst[bad], kind="stable")][:refits])
    if len(chosen):
        exact = refit(
            posterior, cells, targets[chosen], seed=seed or 0, cores=cores,
            advance=advance if estimator == "refit" else lambda done: None,
        )  # fmt: skip
        found.m[chosen] = exact.m
        found.prediction[chosen] = [stationary(one) for one in exact.m]
        found.khat[chosen] = -np.inf  # no weights
        found.ess[chosen] = STARTS * SWEEPS
        found.refitted[chosen] = True
        for chain in range(chains):
            mean = exact.by_start[chain % STARTS :: chains].mean(axis=0)
            found.by_chain[chain, chosen] = likelihood_of_release(
                mean, released[:, targets[chosen]]
            )
    return found
