"""The estimators of the release probabilities, by name, and refits of what they cannot tell."""

from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from bayes_sdc.flows.fit.stored_results import fingerprint, fingerprint_of_draws, kept_by_cell
from bayes_sdc.flows.intruder import importance, integrated
from bayes_sdc.flows.intruder.bayes import likelihood_of_release, missed, stationary
from bayes_sdc.flows.intruder.pareto import khat_threshold
from bayes_sdc.flows.intruder.refit import STARTS, SWEEPS, refit
from bayes_sdc.flows.release.synthesis import rates_by_draw
from bayes_sdc.flows.table.cells import SmallCells, thin
from bayes_sdc.progress import Progress

ESTIMATORS = ("integrated", "paper", "refit")
AT_ONCE = {"integrated": 10_000, "paper": 100_000, "refit": 16}  # cells between two times on disk


class Found(NamedTuple):
    """An estimate for the target cells, and which of them were refitted."""

    m: np.ndarray  # (target, candidate, released)
    prediction: np.ndarray  # (target, count)
    by_chain: np.ndarray  # (chain, target, candidate)
    khat: np.ndarray  # (target, candidate)
    ess: np.ndarray  # (target, candidate)
    threshold: float
    error: np.ndarray  # (target, candidate)
    refitted: np.ndarray  # (target,)


def estimate(
    posterior: xr.DataTree,
    cells: SmallCells,
    released: np.ndarray,
    targets: np.ndarray,
    *,
    estimator: str,
    refits: int,
    seed: int | None,
    cores: int | None,
    progress: Progress,
    resume: Path | None = None,
) -> Found:
    """Release probabilities of the targets; the worst of those that miss are refitted.

    Those miss whose k-hat or Monte Carlo error is too large:
    :func:`bayes_sdc.flows.intruder.bayes.missed`.

    Parameters
    ----------
    posterior : DataTree
        Fitted to the counts of ``cells``.
    cells : SmallCells
        All small cells.
    released : array of int, shape (dataset, cell)
        Released counts, from 0.
    targets : array of int
        Positions of the target cells, ascending.
    estimator, refits, seed, cores, resume
        As for :func:`bayes_sdc.intruder_risk`.
    progress : Progress
        Told how many targets are done.
    """
    chains, width = posterior["posterior"].sizes["chain"], cells.upper + 1

    mark = ""
    if resume is not None:
        counts = (cells.y, cells.origin, cells.destination, cells.x, released)
        mark = fingerprint(fingerprint_of_draws(posterior), *counts)

    def folder(name: str, *of: object) -> Path | None:
        return None if resume is None else resume / f"{name}-{fingerprint(mark, *of)}"

    def sampled(part: np.ndarray) -> dict[str, np.ndarray]:
        if estimator == "integrated":
            result = integrated.release_probabilities(
                posterior, cells, released, targets=part, cores=cores, advance=progress.advance
            )
        else:
            chosen_only = thin(cells, np.isin(np.arange(len(cells.y)), part))
            result = importance.release_probabilities(
                rates_by_draw(posterior), chosen_only, chains, released[:, part],
                advance=progress.advance,
            )  # fmt: skip
        by_cell = {"by_chain": np.moveaxis(result.by_chain, 1, 0)}
        return {**result._asdict(), **by_cell, "threshold": np.full(len(part), result.threshold)}

    def refitted(part: np.ndarray) -> dict[str, np.ndarray]:
        exact = refit(
            posterior, cells, part, seed=seed or 0, cores=cores, advance=of_refits.advance
        )
        by_chain = [
            likelihood_of_release(
                exact.by_start[k % STARTS :: chains].mean(axis=0), released[:, part]
            )
            for k in range(chains)
        ]
        return {
            "m": exact.m,
            "prediction": np.array([stationary(one) for one in exact.m]),
            "by_chain": np.stack(by_chain, axis=1),
            "ess": exact.ess,
            "error": exact.error.max(axis=2),
        }

    if estimator == "refit":
        found = Found(
            m=np.empty((len(targets), width, width)),
            prediction=np.empty((len(targets), width)),
            by_chain=np.empty((chains, len(targets), width)),
            khat=np.full((len(targets), width), np.inf),
            ess=np.empty((len(targets), width)),
            threshold=khat_threshold(STARTS * SWEEPS),
            error=np.empty((len(targets), width)),
            refitted=np.zeros(len(targets), dtype=bool),
        )
        chosen, of_refits = np.arange(len(targets)), progress
    else:
        kept = kept_by_cell(
            folder("risk", estimator), targets, AT_ONCE[estimator], sampled,
            advance_earlier=progress.advance_earlier,
        )  # fmt: skip
        kept["by_chain"] = np.moveaxis(kept["by_chain"], 0, 1)
        threshold = float(kept.pop("threshold")[0])
        found = Found(**kept, threshold=threshold, refitted=np.zeros(len(targets), dtype=bool))
        bad = np.flatnonzero(missed(found.khat, found.threshold, found.error))
        khat, error = found.khat[bad].max(axis=1), found.error[bad].max(axis=1)
        beyond = np.where(khat > found.threshold, khat, -np.inf)  # the others by their error
        chosen = np.sort(bad[np.lexsort((-error, -beyond))][:refits])
        of_refits = Progress(len(chosen), f"refits of {len(chosen)} cells")
    if len(chosen):
        with nullcontext() if of_refits is progress else of_refits:
            exact = kept_by_cell(
                folder("refits", seed), targets[chosen], AT_ONCE["refit"], refitted,
                advance_earlier=of_refits.advance_earlier,
            )  # fmt: skip
        found.m[chosen], found.prediction[chosen] = exact["m"], exact["prediction"]
        found.by_chain[:, chosen] = np.moveaxis(exact["by_chain"], 0, 1)
        found.khat[chosen] = -np.inf  # no weights
        found.ess[chosen], found.error[chosen] = exact["ess"], exact["error"]
        found.refitted[chosen] = True
    return found
