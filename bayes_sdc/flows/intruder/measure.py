"""What an intruder learns about a small count from the release.

For a target cell t, the probability of each candidate count y given the released counts is
``rho_t^y`` proportional to ``P(y) * prod_l M_t[y, k_l]``, where ``M_t[y, k]`` is the probability
of releasing k when the true count is y and the other cells are known. Counts here are counted from
the lower bound, 0 to K.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import binomtest

from bayes_sdc.arguments import PathLike, checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.fitted_to import check_posterior
from bayes_sdc.flows.intruder.estimators.estimate import estimate
from bayes_sdc.flows.intruder.probabilities.bayes import (
    FitOfIntruder,
    best_guess,
    likelihood_of_release,
    posterior_of_counts,
    unreliable_cells,
)
from bayes_sdc.flows.intruder.probabilities.gain import gains_by_prior
from bayes_sdc.flows.intruder.probabilities.knowledge import backgrounds
from bayes_sdc.flows.intruder.probabilities.prior import NAMED, prior_of_cells
from bayes_sdc.flows.intruder.probabilities.settings import (
    Estimator,
    Knowledge,
    Prior,
    RiskSettings,
    Unique,
)
from bayes_sdc.flows.intruder.result import UNIQUE, IntruderRisk, Share
from bayes_sdc.flows.intruder.totals.kept import OfTotals, along_cycles, without_others
from bayes_sdc.flows.release.synthetic.earlier import earlier_counts
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.totals.kept import KeptTotals, kept_of
from bayes_sdc.flows.release.totals.margins import totals_kept
from bayes_sdc.flows.table.cells import fitted_cells, impossible_of, under_rule
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.progress import Progress
from bayes_sdc.seeds import generator, seed_or_fresh


@checked
def intruder_risk(
    table: FlowTable,
    posterior: xr.DataTree,
    release: pd.DataFrame,
    *,
    estimator: Estimator = "integrated",
    prior: Prior = "uniform",
    knowledge: Knowledge = "all-others",
    share: float | None = None,
    unique: Unique = "single-mover",
    totals: str | Sequence[str] | KeptTotals = (),
    cells: int | Sequence[str] | None = None,
    already_released: Sequence[Any] = (),
    refits: int = 0,
    seed: int | None = None,
    cores: int | None = None,
    resume: PathLike | None = None,
) -> IntruderRisk:
    """Measure what an intruder learns about each small count from the release.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior, from any sampler.
    release : pandas.DataFrame
        What :func:`bayes_sdc.synthesize` returned.
    estimator : {"integrated", "paper", "refit"}
        How M is computed: with both effects of the target integrated out of each posterior draw;
        by importance sampling from the fitted posterior, eq. (7) and (8), with smoothed weights;
        exactly, by refitting with every candidate count (seconds a cell).
    prior : "uniform", "shape", "model", sequence of float or DataFrame
        Intruder's prior over the counts ``low`` to ``high``, up to a factor: equal; the shares of
        the counts over the table, which anyone knows about from other years and countries; what the
        model predicts of the cell from the others; one row of weights for all cells; or one row a
        cell (labelled as in ``table.cells``), one column a count. What the release adds is measured
        for all that have a name, whichever is asked for.
    knowledge : {"all-others", "none", "share"}
        Which other small counts the intruder knows: all, the paper's worst case; none: each
        released data set stands in for them in turn, is fitted like the true table, and the
        results are averaged, the paper's approximation; or a random ``share`` of them, the rest
        being taken from the release.
    share : float, optional
        With knowledge "share": between 0 and 1.
    unique : {"single-mover", "isolated"}
        Which cells R_unq counts: true count 1, or origin and destination in no other small cell.
    totals : str, sequence of str or KeptTotals
        Totals that the release keeps, as for :func:`bayes_sdc.synthesize`: the intruder knows them.
        Who knows all other counts too subtracts them and needs no release, so with
        "all-others" the intruder knows all but those of one cycle through the target, along which
        the totals leave several tables.
    cells : int or sequence of str, optional
        Measure only so many random cells, or those with these labels; by default all.
    already_released : sequence of path or DataFrame
        Earlier releases of the same table, or of a revision that has the same small cells: further
        data sets that the intruder has, taken to come from this posterior.
    refits : int
        Budget: so many of the cells that cannot be relied on (k-hat above the threshold, or Monte
        Carlo error of M above 0.01) are refitted, worst first, for each fit of the intruder.
    seed : int, optional
        For refits, random cells, and knowledge other than "all-others"; by default a fresh one of
        128 bits, kept in ``seed`` of the result.
    cores : int, optional
        Threads of fits and refits; by default all. No number depends on it.
    resume : path, optional
        Folder that keeps what an interrupted call has done: a later one of the same posterior,
        release and arguments continues from there. It holds confidential numbers.

    Returns
    -------
    IntruderRisk
        Probabilities for each cell and the summaries R_all, R_unq and d_t.

    Raises
    ------
    InputError
        If the release or the posterior belongs to another table, or an argument is unknown.

    See Also
    --------
    bayes_sdc.synthesize, bayes_sdc.repeat_risk, bayes_sdc.intruder_gain, bayes_sdc.log_ratios,
    bayes_sdc.plot_intruder_risk

    References
    ----------
    Hawala, Reiter and Wang, eq. (3)-(11); k-hat: Vehtari, Simpson, Gelman, Yao and Gabry 2024,
    https://jmlr.org/papers/v25/19-556.html.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, intruder_risk, read_flows, synthesize
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, sampler="gibbs", draws=50, tune=50, chains=2, seed=1)
    >>> risk = intruder_risk(table, posterior, synthesize(table, posterior, seed=2))
    >>> risk.rho.sizes["count"], bool(abs(risk.rho.sum("count") - 1 < 1e-12).all())
    (9, True)
    """
    settings = RiskSettings(
        estimator=estimator, prior=prior, knowledge=knowledge, share=share, unique=unique,
        already_released=already_released,
        refits=refits, seed=seed_or_fresh(seed), cores=cores,
        resume=None if resume is None else Path(resume),
    )  # fmt: skip
    return measured_risk(table, posterior, release, settings, cells=cells, totals=totals)


def measured_risk(
    table: FlowTable,
    posterior: xr.DataTree,
    release: pd.DataFrame,
    settings: RiskSettings,
    *,
    cells: int | Sequence[str] | None = None,
    totals: str | Sequence[str] | KeptTotals = (),
) -> IntruderRisk:
    """Measure with all settings in one object; see :func:`intruder_risk`."""
    settings.check(table)
    if table.n_small == 0:
        raise InputError(f"{table.source}: no small cells, so there is no risk to measure")
    check_posterior(table, posterior)
    table = under_rule(table, impossible_of(posterior.attrs))
    released = released_counts(table, release)
    plan = kept_of(table, totals)
    if not plan.sides and (names := totals_kept(table, released)):
        raise InputError(
            f"the release keeps the totals by {' and '.join(names)}: its counts are not drawn cell "
            "by cell, so these probabilities do not hold for it; name what it keeps, such as "
            f"totals={','.join(names)!r}"
        )
    earlier = earlier_counts(table, settings.already_released)
    targets = _targets(table.cells.index.tolist(), cells, settings.seed)
    seen = np.concatenate([released, earlier])
    if plan.sides:
        return _with_kept(table, posterior, seen, len(released), targets, settings, plan)
    fits = _fits_of_intruder(table, posterior, seen, targets, settings)
    return _summarized(table, seen, len(released), targets, settings, fits)


def _with_kept(
    table: FlowTable,
    posterior: xr.DataTree,
    seen: np.ndarray,
    datasets: int,
    targets: np.ndarray,
    settings: RiskSettings,
    kept: KeptTotals,
) -> IntruderRisk:
    """Measure a release that keeps totals, which tie all cells."""
    if len(targets) < table.n_small:
        raise InputError("cells: where totals are kept all cells are measured together; leave out")
    unique = unique_cells(table, settings.unique)
    if settings.knowledge == "all-others":
        told = along_cycles(table, posterior, seen, settings, kept, unique)
    else:
        told = without_others(table, posterior, seen, settings, kept, unique)
    found = _summarized(table, seen, datasets, targets, settings, told.fits, told)
    return replace(found, kept=kept)


def _fits_of_intruder(
    table: FlowTable,
    posterior: xr.DataTree,
    released: np.ndarray,
    targets: np.ndarray,
    settings: RiskSettings,
) -> list[FitOfIntruder]:
    """Rho of the targets by each fit: one, or one for each data set that stands in for counts."""
    whole, fits = fitted_cells(table, posterior), []
    steps = backgrounds(table, posterior, released, settings)
    with Progress(len(steps) * len(targets), f"intruder risk of {len(targets)} cells") as progress:
        for background in steps:
            fitted, y = background()
            cells = whole._replace(y=y)
            found = estimate(fitted, cells, released, targets, settings, progress)
            prior = prior_of_cells(settings.prior, table, found.prediction, targets)
            likelihood = likelihood_of_release(found.m, released[:, targets])
            by_chain = [posterior_of_counts(one, prior) for one in found.by_chain]
            rho = posterior_of_counts(likelihood, prior)
            fits.append(FitOfIntruder(found, prior, rho, np.stack(by_chain)))
    return fits


def _summarized(
    table: FlowTable,
    released: np.ndarray,
    datasets: int,
    targets: np.ndarray,
    settings: RiskSettings,
    fits: list[FitOfIntruder],
    told: OfTotals | None = None,
) -> IntruderRisk:
    """Average over the fits, compare with the true counts, and label.

    The first ``datasets`` of what is released are the release, the others were out before.
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
        baseline=_guessed_blindly(prior, y),
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


def _guessed_blindly(prior: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Probability of a right guess, at random among the most probable counts of the prior."""
    tied = prior >= prior.max(axis=1, keepdims=True) * (1.0 - 1e-12)
    return np.where(tied[np.arange(len(y)), y], 1.0 / tied.sum(axis=1), 0.0)


def _share(among: str, chosen: np.ndarray, guesses: Guesses) -> Share:
    """Share of the chosen cells that the intruder finds, with Wilson's interval."""
    definition = f"cells whose single most probable count is the true one, among {among}"
    n, right = int(chosen.sum()), guesses.right[chosen]
    if n == 0:
        return Share(definition, 0, None, None, None, None, trusted=True)
    interval = binomtest(int(right.sum()), n).proportion_ci(0.95, "wilson")
    chains = [of_chain[chosen].mean() for of_chain in guesses.by_chain]
    error = float(np.std(chains, ddof=1) / np.sqrt(len(chains))) if len(chains) > 1 else None
    return Share(
        definition,
        n,
        value=float(right.mean()),
        interval=(float(interval.low), float(interval.high)),
        monte_carlo_error=error,
        baseline=float(guesses.baseline[chosen].mean()),
        trusted=bool(guesses.unreliable[chosen].mean() <= 0.01),
        believes_release=float(guesses.believed[chosen].mean()),
    )


def _mean(arrays: list[np.ndarray]) -> np.ndarray:
    """Mean over the fits; of one there is no copy, because a nation's are large."""
    return arrays[0] if len(arrays) == 1 else np.asarray(np.mean(arrays, axis=0))


def _targets(labels: list[str], cells: int | Sequence[str] | None, seed: int) -> np.ndarray:
    """Positions of the cells to measure, ascending."""
    if cells is None:
        return np.arange(len(labels))
    if isinstance(cells, bool | str | float):
        raise InputError(f"cells must be a number or a list of labels; it is {cells!r}")
    if isinstance(cells, int | np.integer):
        if not 1 <= cells <= len(labels):
            raise InputError(f"cells must be from 1 to {len(labels)}, or labels; it is {cells}")
        rng = generator(seed, "target cells")
        return np.sort(rng.choice(len(labels), cells, replace=False))
    positions = {label: position for position, label in enumerate(labels)}
    unknown = [label for label in cells if label not in positions]
    if unknown or not len(cells):
        named = f"no small cell {unknown[0]!r}" if unknown else "no cell is named"
        raise InputError(f"cells: {named}; the labels are those of table.cells")
    return np.unique([positions[label] for label in cells])


def unique_cells(table: FlowTable, unique: str) -> np.ndarray:
    """Cells that R_unq is about: (cell,) of bool."""
    cells = table.cells
    if unique == "single-mover":
        return (cells["y"] + table.low == 1).to_numpy()
    alone = [~cells[side].duplicated(keep=False).to_numpy() for side in ("origin", "destination")]
    return alone[0] & alone[1]
