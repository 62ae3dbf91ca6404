"""The estimators of the release probabilities, by name, and refits where they are not reliable."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import xarray as xr

from bayes_sdc.flows.fit.stored_results import fingerprint, fingerprint_of_draws, kept_by_cell
from bayes_sdc.flows.intruder.estimators import importance, integrated
from bayes_sdc.flows.intruder.estimators.refit import STARTS, SWEEPS, refit
from bayes_sdc.flows.intruder.probabilities.bayes import (
    ReleaseProbabilities,
    likelihood_of_release,
    stationary,
    unreliable_cells,
)
from bayes_sdc.flows.intruder.probabilities.pareto import khat_threshold
from bayes_sdc.flows.intruder.probabilities.settings import RiskSettings
from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.table.cells import SmallCells, thin
from bayes_sdc.progress import Progress

AT_ONCE = {"integrated": 10_000, "paper": 100_000, "refit": 16}  # cells between two saves

#: Arrays by name, whose first axis are the cells asked for.
ByCell = dict[str, np.ndarray]


def estimate(
    posterior: xr.DataTree,
    cells: SmallCells,
    released: np.ndarray,
    targets: np.ndarray,
    settings: RiskSettings,
    progress: Progress,
) -> ReleaseProbabilities:
    """Release probabilities of the targets; the worst of those that miss are refitted.

    A cell misses if its k-hat or Monte Carlo error is too large:
    :func:`bayes_sdc.flows.intruder.probabilities.bayes.unreliable_cells`.

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
    settings : RiskSettings
        Estimator, refits, seed, cores, and where results are kept.
    progress : Progress
        Told how many targets are done.
    """
    chains, resume = posterior["posterior"].sizes["chain"], settings.resume
    mark = ""
    if resume is not None:
        counts = (cells.y, cells.origin, cells.destination, cells.x, released)
        mark = fingerprint(fingerprint_of_draws(posterior), *counts)

    def folder(name: str, *of: object) -> Path | None:
        return None if resume is None else resume / f"{name}-{fingerprint(mark, *of)}"

    if settings.estimator == "refit":
        found, chosen = _empty(chains, len(targets), cells.upper + 1), np.arange(len(targets))
        of_refits = progress
    else:
        kept = kept_by_cell(
            folder("risk", settings.estimator),
            targets,
            AT_ONCE[settings.estimator],
            lambda part: _sampled(posterior, cells, released, part, settings, progress),
            advance_earlier=progress.advance_earlier,
        )
        kept["by_chain"] = np.moveaxis(kept["by_chain"], 0, 1)
        threshold = float(kept.pop("threshold")[0])
        none = np.zeros(len(targets), dtype=bool)
        found = ReleaseProbabilities(**kept, threshold=threshold, refitted=none)
        chosen = _worst(found, settings.refits)
        of_refits = Progress(len(chosen), f"refits of {len(chosen)} cells")
    if len(chosen):
        with nullcontext() if of_refits is progress else of_refits:
            exact = kept_by_cell(
                folder("refits", settings.seed),
                targets[chosen],
                AT_ONCE["refit"],
                lambda part: _refitted(
                    posterior, cells, released, part, settings, of_refits.advance
                ),
                advance_earlier=of_refits.advance_earlier,
            )
        _put(found, chosen, exact)
    return found


def _sampled(
    posterior: xr.DataTree,
    cells: SmallCells,
    released: np.ndarray,
    part: np.ndarray,
    settings: RiskSettings,
    progress: Progress,
) -> ByCell:
    """Estimate from the draws of the posterior."""
    if settings.estimator == "integrated":
        result = integrated.release_probabilities(
            posterior, cells, released, targets=part, cores=settings.cores,
            advance=progress.advance,
        )  # fmt: skip
    else:
        chosen_only = thin(cells, np.isin(np.arange(len(cells.y)), part))
        chains = posterior["posterior"].sizes["chain"]
        result = importance.release_probabilities(
            rates_by_draw(posterior), chosen_only, chains, released[:, part],
            advance=progress.advance,
        )  # fmt: skip
    arrays = result._asdict()
    del arrays["refitted"]
    by_chain = np.moveaxis(result.by_chain, 1, 0)
    return arrays | {"by_chain": by_chain, "threshold": np.full(len(part), result.threshold)}


def _refitted(
    posterior: xr.DataTree,
    cells: SmallCells,
    released: np.ndarray,
    part: np.ndarray,
    settings: RiskSettings,
    advance: Callable[[float], None],
) -> ByCell:
    """Estimate by fits with every candidate count."""
    chains = posterior["posterior"].sizes["chain"]
    exact = refit(posterior, cells, part, seed=settings.seed, cores=settings.cores, advance=advance)
    by_chain = [
        likelihood_of_release(exact.by_start[k % STARTS :: chains].mean(axis=0), released[:, part])
        for k in range(chains)
    ]
    return {
        "m": exact.m,
        "prediction": np.array([stationary(one) for one in exact.m]),
        "by_chain": np.stack(by_chain, axis=1),
        "ess": exact.ess,
        "error": exact.error.max(axis=2),
    }


def _empty(chains: int, targets: int, width: int) -> ReleaseProbabilities:
    """Arrays to be filled by refits."""
    return ReleaseProbabilities(
        m=np.empty((targets, width, width)),
        prediction=np.empty((targets, width)),
        by_chain=np.empty((chains, targets, width)),
        khat=np.full((targets, width), np.inf),
        ess=np.empty((targets, width)),
        threshold=khat_threshold(STARTS * SWEEPS),
        error=np.empty((targets, width)),
        refitted=np.zeros(targets, dtype=bool),
    )


def _worst(found: ReleaseProbabilities, number: int) -> np.ndarray:
    """Positions, ascending, of the worst cells that cannot be relied on: k-hat first."""
    bad = np.flatnonzero(unreliable_cells(found.khat, found.threshold, found.error))
    khat, error = found.khat[bad].max(axis=1), found.error[bad].max(axis=1)
    by_khat = np.where(khat > found.threshold, khat, -np.inf)  # the others by their error
    return np.sort(bad[np.lexsort((-error, -by_khat))][:number])


def _put(found: ReleaseProbabilities, chosen: np.ndarray, exact: ByCell) -> None:
    """Replace the estimates of some cells by those of refits."""
    found.m[chosen], found.prediction[chosen] = exact["m"], exact["prediction"]
    found.by_chain[:, chosen] = np.moveaxis(exact["by_chain"], 0, 1)
    found.khat[chosen] = -np.inf  # no weights
    found.ess[chosen], found.error[chosen] = exact["ess"], exact["error"]
    found.refitted[chosen] = True
