"""What an intruder learns about a small count from the release.

For a target cell t, the probability of each candidate count y given the released counts is
``rho_t^y`` proportional to ``P(y) * prod_l M_t[y, k_l]``, where ``M_t[y, k]`` is the probability
of releasing k when the true count is y and the other cells are known. Counts here are counted from
the lower bound, 0 to K.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.arguments import PathLike, checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.fitted_to import check_posterior
from bayes_sdc.flows.intruder.estimators.estimate import estimate
from bayes_sdc.flows.intruder.probabilities.bayes import (
    FitOfIntruder,
    likelihood_of_release,
    posterior_of_counts,
)
from bayes_sdc.flows.intruder.probabilities.knowledge import backgrounds
from bayes_sdc.flows.intruder.probabilities.prior import prior_of_cells
from bayes_sdc.flows.intruder.probabilities.settings import (
    Estimator,
    Knowledge,
    Prior,
    RiskSettings,
    Unique,
)
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.intruder.summarize import summarize, unique_cells
from bayes_sdc.flows.intruder.totals.kept import along_cycles, without_others
from bayes_sdc.flows.release.synthetic.earlier import earlier_counts
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.totals.kept import KeptTotals, kept_of
from bayes_sdc.flows.release.totals.margins import totals_kept
from bayes_sdc.flows.table.cells import fitted_cells, impossible_of, under_rule, weights_of
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
        How M is computed: with both effects of the target integrated out of each posterior draw; by
        importance sampling from the fitted posterior, eq. (7) and (8), with smoothed weights;
        exactly, by refitting with every candidate count (seconds per cell).
    prior : "uniform", "shape", "model", sequence of float or DataFrame
        Intruder's prior over the counts ``low`` to ``high``, up to a factor: equal; the shares of
        the counts over the table, which anyone roughly knows from other years and countries; what
        the model predicts of the cell from the others; one row of weights for all cells; or one row
        per cell (labelled as in ``table.cells``), one column per count. What the release adds is
        measured for all that have a name, whichever is asked for.
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
        Anyone who knows all other counts too subtracts them and needs no release, so with
        "all-others" the intruder knows all but those of one cycle through the target, along which
        the totals leave several tables.
    cells : int or sequence of str, optional
        Measure only so many random cells, or those with these labels; by default all.
    already_released : sequence of path or DataFrame
        Earlier releases of the same table, or of a revision that has the same small cells: further
        data sets that the intruder has, assumed to come from this posterior.
    refits : int
        Budget: at most so many of the cells that cannot be relied on (k-hat above the threshold, or
        Monte Carlo error of M above 0.01) are refitted, worst first, for each fit of the intruder.
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
    """As :func:`intruder_risk`, with all settings in one object."""
    settings.check(table)
    if table.n_small == 0:
        raise InputError(f"{table.source}: no small cells, so there is no risk to measure")
    check_posterior(table, posterior)
    table = under_rule(table, impossible_of(posterior.attrs))
    released = released_counts(table, release)
    plan = kept_of(table, totals)
    _refuse_weights(posterior, settings, totals=bool(plan.sides))
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
    return summarize(table, seen, len(released), targets, settings, fits)


def _refuse_weights(posterior: xr.DataTree, settings: RiskSettings, *, totals: bool) -> None:
    """Refuse what is not worked out for a posterior that was fitted with weights of the cells."""
    refits = settings.estimator == "refit" or settings.refits > 0
    if weights_of(posterior) is not None and (refits or totals):
        what = "refits" if refits else "kept totals"
        raise InputError(
            f"the posterior was fitted with weights of the cells, for which {what} are not worked "
            "out; leave one of the two out"
        )


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
    found = summarize(table, seen, datasets, targets, settings, told.fits, told)
    return replace(found, kept=kept)


def _fits_of_intruder(
    table: FlowTable,
    posterior: xr.DataTree,
    released: np.ndarray,
    targets: np.ndarray,
    settings: RiskSettings,
) -> list[FitOfIntruder]:
    """Rho of the targets by each fit: one fit, or one per data set that stands in for counts."""
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
