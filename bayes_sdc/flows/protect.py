"""The main job in one call: fit, release, measure, check."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import pandas as pd
import xarray as xr

from bayes_sdc.checks import Check
from bayes_sdc.errors import InputError
from bayes_sdc.flows import diagnostics
from bayes_sdc.flows.fit.fit import fit_flows, sampling_of
from bayes_sdc.flows.fit.forecast import duration
from bayes_sdc.flows.fit.stored_results import fingerprint, fingerprint_of_draws, kept_frame
from bayes_sdc.flows.forecast import forecast_job, job_in_words
from bayes_sdc.flows.intruder.choosing import Choice, choose_release
from bayes_sdc.flows.intruder.estimators import ESTIMATORS
from bayes_sdc.flows.intruder.knowledge import KNOWLEDGE, check_share
from bayes_sdc.flows.intruder.measure import Prior, check_choice, intruder_risk
from bayes_sdc.flows.intruder.prior import prior_of_cells
from bayes_sdc.flows.intruder.repeats import CLASSES, repeat_risk, risk_by, risk_by_datasets
from bayes_sdc.flows.intruder.result import UNIQUE, IntruderRisk
from bayes_sdc.flows.intruder.tradeoff import METHODS, risk_utility
from bayes_sdc.flows.leaks import leaks, unchanged
from bayes_sdc.flows.limits import check_limits, worse_checks
from bayes_sdc.flows.release.combining import CombinedTotals, combined_totals
from bayes_sdc.flows.release.predictive import compare_counts
from bayes_sdc.flows.release.synthesis import refuse_column_named_dataset, synthesize
from bayes_sdc.flows.release.utility import Utility, margins, utility
from bayes_sdc.flows.table.cells import small_cells
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.html import facts_table
from bayes_sdc.policy import Policy
from bayes_sdc.progress import say

MOST_DATASETS, COMPARED_DATASETS = 20, 10  # data sets up to which the risk is followed
FEW = 5  # releases over which it is followed


@dataclass(frozen=True, eq=False)
class Protection:
    """A release with all that was measured about it. Only ``release`` may leave the agency.

    Made by :func:`bayes_sdc.protect_flows`.

    Parameters
    ----------
    table : FlowTable
        The input.
    release : DataFrame
        The synthetic table; columns and order of the input.
    posterior : DataTree or None
        None when the table has no small cells; then so is all that follows.
    groups : DataFrame or None
        :func:`bayes_sdc.flows.diagnostics.group_diagnostics`.
    predictive : DataFrame or None
        :func:`bayes_sdc.flows.diagnostics.predictive_counts`.
    predictive_by_size : DataFrame or None
        :func:`bayes_sdc.flows.release.predictive.predictive_counts_by_size`.
    dispersion : Dispersion or None
        :func:`bayes_sdc.flows.diagnostics.dispersion`.
    margins : DataFrame or None
        :func:`bayes_sdc.flows.release.utility.margins`.
    utility : Utility or None
        :func:`bayes_sdc.utility`.
    combined : CombinedTotals or None
        :func:`bayes_sdc.combined_totals`; None for a single data set.
    risk : IntruderRisk or None
        Of this release, for the intruder asked for.
    worst : IntruderRisk or None
        Of this release, for the intruder who knows all other cells: the same object as ``risk``
        unless another was asked for.
    repeats : DataFrame or None
        :func:`bayes_sdc.repeat_risk` of ``worst``: the spread over releases.
    by_datasets : DataFrame or None
        :func:`bayes_sdc.risk_by_datasets` of ``worst``.
    classes : dict of DataFrame
        :func:`bayes_sdc.risk_by` of ``risk``, by name of the classes.
    tradeoff : DataFrame or None
        :func:`bayes_sdc.risk_utility` of ``worst``: other protections beside.
    choice : Choice or None
        How the release was chosen, if it was.
    checks : list of Check
        Verdicts.
    seconds : dict
        Wall time of each stage.
    """

    table: FlowTable
    release: pd.DataFrame
    posterior: xr.DataTree | None
    groups: pd.DataFrame | None
    predictive: pd.DataFrame | None
    predictive_by_size: pd.DataFrame | None
    dispersion: diagnostics.Dispersion | None
    margins: pd.DataFrame | None
    utility: Utility | None
    combined: CombinedTotals | None
    risk: IntruderRisk | None
    worst: IntruderRisk | None
    repeats: pd.DataFrame | None
    by_datasets: pd.DataFrame | None
    classes: dict[str, pd.DataFrame]
    tradeoff: pd.DataFrame | None
    choice: Choice | None
    checks: list[Check]
    seconds: dict[str, float]

    def _repr_html_(self) -> str:
        """Show risk, utility and verdicts in a notebook."""
        facts: list[tuple[str, object, str]] = [
            ("small cells", f"{self.table.n_small:,}", "synthetic in the release")
        ]
        if self.risk is not None and self.utility is not None:
            facts += [
                ("R_all", self.risk.r_all, self.risk.r_all.definition),
                ("R_unq", self.risk.r_unq, self.risk.r_unq.definition),
                (
                    "error of totals",
                    f"{self.utility.totals_error:.1%}",
                    "by area, relative to the sum of their small counts",
                ),
            ]
        facts += [(check.name, check.verdict, check.reason) for check in self.checks]
        return facts_table(
            f"Protection of {self.table.source}: confidential, but for the release", facts
        )


def protect_flows(
    table: FlowTable,
    *,
    family: str = "default",
    prior: str = "default",
    sampler: str = "gibbs",
    draws: int = 1000,
    tune: int | None = None,
    chains: int = 4,
    datasets: int = 1,
    releases: int = 20,
    unique: str = "single-mover",
    estimator: str = "integrated",
    intruder_prior: Prior = "uniform",
    knowledge: str = "all-others",
    share: float | None = None,
    refits: int = 0,
    candidates: int = 1,
    policy: Policy | None = None,
    seed: int,
    cores: int | None = None,
    resume: Path | None = None,
    scheduler: str | None = None,
    ready: Callable[[], object] = lambda: None,
) -> Protection:
    """Fit the model, release a synthetic table, measure the intruder's risk and check it all.

    Parameters
    ----------
    table : FlowTable
        From :func:`bayes_sdc.read_flows`.
    family, prior, sampler, draws, tune, chains, cores, scheduler
        As for :func:`bayes_sdc.fit_flows`.
    datasets : int
        Synthetic data sets in the release.
    releases : int
        Independent releases over which the spread of the risk is measured.
    unique : {"single-mover", "isolated"}
        As for :func:`bayes_sdc.intruder_risk`.
    estimator, intruder_prior, knowledge, share, refits
        As for :func:`bayes_sdc.intruder_risk`. The worst case, an intruder who knows
        all other cells, is measured in any case.
    candidates : int
        With more than 1, so many releases are drawn and one is chosen:
        :func:`bayes_sdc.choose_release`.
    policy : Policy, optional
        Limits on the intruder's risk, each judged by a check; none by default.
    seed : int
        Everything random follows from it. Confidential, and best ``secrets.randbits(128)``: a
        short one can be found by trial, and then the release is undone.
    resume : Path, optional
        Folder that keeps what an interrupted call has done, the fit and the dear steps after it
        (:mod:`bayes_sdc.flows.fit.stored_results`); a later call with the same arguments goes on
        from there.
    ready : callable, optional
        Called once all arguments are found to be usable, before anything is written.

    Returns
    -------
    Protection
        The release and what was measured.

    Raises
    ------
    InputError
        If an argument cannot be used, or the policy has no section for flows.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import protect_flows, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> result = protect_flows(table, sampler="gibbs", draws=50, tune=50, chains=2, seed=1)
    >>> [check.name for check in result.checks][:2]
    ['convergence', 'divergences']
    """
    if datasets > 1:
        refuse_column_named_dataset(table)
    _check(datasets=datasets, releases=releases, draws=max(draws * chains, 1), unique=unique)
    check_choice("estimator", estimator, ESTIMATORS)
    check_choice("knowledge", knowledge, KNOWLEDGE)
    check_share(knowledge, share)
    if candidates < 1 or refits < 0:
        raise InputError(
            "candidates must be at least 1 and refits at least 0; they are "
            f"{candidates} and {refits}"
        )
    if table.n_small and not (isinstance(intruder_prior, str) and intruder_prior == "model"):
        prior_of_cells(intruder_prior, table, None)
    if policy is not None:
        policy.for_flows()  # refuses one without limits for flows before the fit
    sampling = sampling_of(
        family=family, prior=prior, sampler=sampler, draws=draws, tune=tune, chains=chains,
        seed=seed, cores=cores, scheduler=scheduler,
    )  # fmt: skip
    ready()
    if table.n_small == 0:
        release = synthesize(table, xr.DataTree(), datasets=datasets, seed=seed)
        nothing = dict.fromkeys(
            [
                "posterior", "groups", "predictive", "predictive_by_size", "dispersion", "margins",
                "utility", "combined", "risk", "worst", "repeats", "by_datasets", "tradeoff",
                "choice",
            ]
        )  # fmt: skip
        checks = [*leaks(table), *check_limits(policy, None, unique=unique)]
        return Protection(
            table=table, release=release, checks=checks, seconds={}, classes={}, **nothing
        )
    seconds: dict[str, float] = {}
    clock = monotonic()
    most, few = min(MOST_DATASETS, draws * chains), min(releases, FEW)
    compared = min(COMPARED_DATASETS, draws * chains)
    expected = forecast_job(
        small_cells(table),
        sampling,
        sampler,
        estimator=estimator,
        passes=1 + (candidates > 1),
        scenarios=0 if knowledge == "all-others" else datasets,
        refits=refits,
        datasets=datasets * releases
        + most * few
        + (candidates > 1) * candidates * datasets * (releases + 1),
        compared=METHODS * compared,
    )
    say(job_in_words(expected, sampling.cores))

    def lap(stage: str) -> None:
        nonlocal clock
        seconds[stage] = monotonic() - clock
        clock = monotonic()
        if stage in expected:
            del expected[stage]
            left = sum(time or 0.0 for time in expected.values())
            say(
                f"{stage}: done after {duration(seconds[stage])}; then by the forecast about "
                f"{duration(left)}: {', '.join(expected)}"
            )

    posterior = fit_flows(
        table,
        family=family,
        prior=prior,
        sampler=sampler,
        draws=draws,
        tune=tune,
        chains=chains,
        seed=seed,
        cores=cores,
        resume=resume,
        scheduler=scheduler,
    )
    lap("fit")
    drawn = "" if resume is None else fingerprint_of_draws(posterior)
    keep = partial(kept_frame, resume)
    groups = keep("groups", fingerprint(drawn), lambda: diagnostics.group_diagnostics(posterior))
    predictive, by_size = compare_counts(table, posterior, seed=seed)
    dispersion = diagnostics.dispersion(table, posterior, seed=seed)
    lap("diagnostics")
    release = synthesize(table, posterior, datasets=datasets, seed=seed)
    lap("synthesis")
    asked: dict[str, Any] = {
        "estimator": estimator, "prior": intruder_prior, "unique": unique, "refits": refits,
        "seed": seed, "cores": cores, "resume": resume,
    }  # fmt: skip
    worst = intruder_risk(table, posterior, release, **asked)
    choice = None
    if candidates > 1:
        choice = choose_release(
            table, posterior, worst, None if policy is None else policy.for_flows(),
            candidates=candidates, datasets=datasets, repetitions=releases, seed=seed,
        )  # fmt: skip
        release = choice.release
        worst = intruder_risk(table, posterior, release, **asked)
    risk = worst
    if knowledge != "all-others":
        risk = intruder_risk(table, posterior, release, **asked, knowledge=knowledge, share=share)
    limits = [check_limits(policy, each, choice, unique=unique) for each in (worst, risk)]
    lap("intruder risk")
    mark = "" if resume is None else fingerprint(
        drawn, worst.release_probability.to_numpy(), worst.prior_probability.to_numpy(),
        table.sha256, unique, releases, datasets, seed,
    )  # fmt: skip
    repeats = keep("repeats", mark, lambda: repeat_risk(
        table, posterior, worst, releases=releases, datasets=datasets, seed=seed
    ))  # fmt: skip
    by_datasets = keep("by-datasets", mark, lambda: risk_by_datasets(
        table, posterior, worst, most=most, releases=few, seed=seed
    ))  # fmt: skip
    tradeoff = keep("tradeoff", mark, lambda: risk_utility(
        table, posterior, worst, datasets=range(1, compared + 1), seed=seed
    ))  # fmt: skip
    lap("scenarios and utility")
    return Protection(
        table=table,
        release=release,
        posterior=posterior,
        groups=groups,
        predictive=predictive,
        predictive_by_size=by_size,
        dispersion=dispersion,
        margins=margins(table, release),
        utility=utility(table, release),
        combined=combined_totals(table, release) if datasets > 1 else None,
        risk=risk,
        worst=worst,
        repeats=repeats,
        by_datasets=by_datasets,
        classes={by: risk_by(table, risk, by) for by in CLASSES},
        tradeoff=tradeoff,
        choice=choice,
        checks=[
            *diagnostics.checks(groups, predictive, by_size, dispersion, risk),
            unchanged(table, release),
            *leaks(table),
            *worse_checks(*limits),
        ],
        seconds=seconds,
    )


def _check(*, datasets: int, releases: int, draws: int, unique: str) -> None:
    """Refuse what would fail only after the fit."""
    if not 1 <= datasets <= draws:
        raise InputError(
            f"datasets must be from 1 to the number of posterior draws, {draws}; it is {datasets}"
        )
    if releases < 1:
        raise InputError(f"releases must be at least 1; it is {releases}")
    if unique not in UNIQUE:
        raise InputError(f"unique {unique!r} is unknown; choose from {list(UNIQUE)}")
