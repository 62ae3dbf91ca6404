"""Put the fits of an intruder together: mean over the fits, comparison with the truth, labels."""

import math
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.special import ndtri

from bayes_sdc.flows.intruder.probabilities.bayes import (
    FitOfIntruder,
    best_guess,
    likelihood_of_release,
    unreliable_cells,
)
from bayes_sdc.flows.intruder.probabilities.learning import chance_of_truth, gains_by_prior
from bayes_sdc.flows.intruder.probabilities.prior import NAMED, prior_of_cells
from bayes_sdc.flows.intruder.probabilities.settings import Prior, RiskSettings
from bayes_sdc.flows.intruder.result import UNIQUE, IntruderRisk
from bayes_sdc.flows.intruder.share import Share
from bayes_sdc.flows.intruder.totals.kept import OfTotals
from bayes_sdc.flows.table.read import FlowTable


def summarize(
    table: FlowTable,
    released: np.ndarray,
    datasets: int,
    targets: np.ndarray,
    settings: RiskSettings,
    fits: list[FitOfIntruder],
    told: OfTotals | None = None,
) -> IntruderRisk:
    """Average over the fits, compare with the true counts, and label.

    The first ``datasets`` of ``released`` are the release, the others were released earlier.
    """
    y = table.cells["y"].to_numpy()[targets]
    founds = [fit.found for fit in fits]
    rho = np.mean([fit.rho for fit in fits], axis=0)
    prior = np.mean([fit.prior for fit in fits], axis=0)
    khat = np.max([found.khat for found in founds], axis=0)
    error = np.max([found.error for found in founds], axis=0)
    guesses = Guesses(
        right=best_guess(rho) == y,
        by_chain=[best_guess(one) == y for one in _mean([fit.rho_by_chain for fit in fits])],
        baseline=chance_of_truth(prior, y),
        believed=released[0, targets] == y,
        unreliable=unreliable_cells(khat, founds[-1].threshold, error),
    )
    label = Labels(table.cells.index[targets].tolist(), np.arange(table.low, table.high + 1))
    refitted = np.array([found.refitted for found in founds])
    unique = unique_cells(table, settings.unique)[targets]
    knowledge = settings.knowledge if settings.share is None else f"share of {settings.share:g}"
    gains = told.gains if told is not None else gains_by_prior(
        priors_by_name(settings.prior, table, fits, targets),
        [likelihood_of_release(found.m, released[:, targets]) for found in founds],
        [found.by_chain for found in founds],
        y,
        unique=unique,
        labels=label.cells,
        unreliable=guesses.unreliable,
    )  # fmt: skip
    return IntruderRisk(
        rho=label.by_count(rho, "rho"),
        release_probability=label.by_counts(
            _mean([found.m for found in founds]), "release_probability"
        ),
        prior_probability=label.by_count(prior, "prior_probability"),
        prediction=label.by_count(
            np.mean([found.prediction for found in founds], axis=0), "prediction"
        ),
        khat=label.by_count(khat, "khat"),
        ess=label.by_count(np.min([found.ess for found in founds], axis=0), "ess"),
        release_probability_error=label.by_count(error, "release_probability_error", "true"),
        khat_threshold=founds[-1].threshold,
        refitted=label.by_cell(refitted.all(axis=0), "refitted"),
        refitted_by_fit=label.by_fit(refitted.T, "refitted_by_fit"),
        r_all=_share("small cells", np.ones(len(y), dtype=bool), guesses),
        r_unq=_share(UNIQUE[settings.unique], unique, guesses),
        distance=label.by_cell(np.abs(np.argmax(rho, axis=1) - y), "distance"),
        true_count_probability=label.by_cell(rho[np.arange(len(y)), y], "true_count_probability"),
        believes_release=float(guesses.believed.mean()),
        prior=settings.prior if isinstance(settings.prior, str) else "given",
        knowledge=knowledge if told is None else told.knowledge,
        estimator=settings.estimator,
        datasets=datasets,
        unique=settings.unique,
        already_released=label.by_dataset(
            released[datasets:, targets] + table.low, "already_released"
        ),
        gains=gains,
        seed=settings.seed,
    )


class Labels(NamedTuple):
    """Names of the target cells and the counts, to label arrays with."""

    cells: list[str]
    counts: np.ndarray

    def by_cell(self, values: np.ndarray, name: str) -> xr.DataArray:
        """Label an array of shape (cell,)."""
        return xr.DataArray(values, {"cell": self.cells}, ("cell",), name)

    def by_count(self, values: np.ndarray, name: str, dim: str = "count") -> xr.DataArray:
        """Label an array of shape (cell, count)."""
        return xr.DataArray(values, {"cell": self.cells, dim: self.counts}, ("cell", dim), name)

    def by_counts(self, values: np.ndarray, name: str) -> xr.DataArray:
        """Label an array of shape (cell, true count, released count)."""
        labels = {"cell": self.cells, "true": self.counts, "released": self.counts}
        return xr.DataArray(values, labels, ("cell", "true", "released"), name)

    def by_dataset(self, values: np.ndarray, name: str) -> xr.DataArray:
        """Label an array of shape (dataset, cell); data sets are counted from 1."""
        labels = {"dataset": np.arange(1, len(values) + 1), "cell": self.cells}
        return xr.DataArray(values, labels, ("dataset", "cell"), name)

    def by_fit(self, values: np.ndarray, name: str) -> xr.DataArray:
        """Label an array of shape (cell, fit); fits are counted from 1."""
        labels = {"cell": self.cells, "fit": np.arange(1, values.shape[1] + 1)}
        return xr.DataArray(values, labels, ("cell", "fit"), name)


def priors_by_name(
    asked: Prior, table: FlowTable, fits: list[FitOfIntruder], targets: np.ndarray
) -> dict[str, list[np.ndarray]]:
    """Every prior that has a name, and the weights given if any: an array for each fit."""
    named = {
        name: [prior_of_cells(name, table, fit.found.prediction, targets) for fit in fits]
        for name in NAMED
    }
    return named if isinstance(asked, str) else {**named, "given": [fit.prior for fit in fits]}


class Guesses(NamedTuple):
    """Whether the count of each cell is found; all of shape (cell,)."""

    right: np.ndarray  # by the intruder
    by_chain: list[np.ndarray]  # the same from each chain alone
    baseline: np.ndarray  # probability that a guess without the release is right
    believed: np.ndarray  # by one who takes the first released count for the true one
    unreliable: np.ndarray  # cells whose probabilities cannot be relied on


def wilson(found: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share; scipy.stats has it too, and takes long to import.

    Examples
    --------
    >>> [round(end, 3) for end in wilson(3, 10)]
    [0.108, 0.603]
    """
    z, share = float(ndtri(0.975)), found / n
    twice = 2.0 * (n + z**2)
    centre = (2.0 * n * share + z**2) / twice
    half = z / twice * math.sqrt(4.0 * n * share * (1.0 - share) + z**2)
    return (0.0 if found == 0 else centre - half, 1.0 if found == n else centre + half)


def _share(among: str, chosen: np.ndarray, guesses: Guesses) -> Share:
    """Share of the chosen cells that the intruder finds, with Wilson's interval."""
    definition = f"cells whose single most probable count is the true one, among {among}"
    n, right = int(chosen.sum()), guesses.right[chosen]
    if n == 0:
        return Share(definition, 0, None, None, None, None, trusted=True)
    chains = [of_chain[chosen].mean() for of_chain in guesses.by_chain]
    error = float(np.std(chains, ddof=1) / np.sqrt(len(chains))) if len(chains) > 1 else None
    return Share(
        definition,
        n,
        value=float(right.mean()),
        interval=wilson(int(right.sum()), n),
        monte_carlo_error=error,
        baseline=float(guesses.baseline[chosen].mean()),
        trusted=bool(guesses.unreliable[chosen].mean() <= 0.01),
        believes_release=float(guesses.believed[chosen].mean()),
    )


def _mean(arrays: list[np.ndarray]) -> np.ndarray:
    """Mean over the fits; a single one is not copied, because the arrays of a nation are large."""
    return arrays[0] if len(arrays) == 1 else np.asarray(np.mean(arrays, axis=0))


def unique_cells(table: FlowTable, unique: str) -> np.ndarray:
    """Cells that R_unq is about: (cell,) of bool."""
    cells = table.cells
    if unique == "single-mover":
        return (cells["y"] + table.low == 1).to_numpy()
    alone = [~cells[side].duplicated(keep=False).to_numpy() for side in ("origin", "destination")]
    return alone[0] & alone[1]
