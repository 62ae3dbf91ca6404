"""Steps of the job for a table with small cells: fit, release, measure, check."""

from functools import partial
from typing import NamedTuple

import pandas as pd
import xarray as xr

from bayes_sdc.checks import Check
from bayes_sdc.flows import diagnostics
from bayes_sdc.flows.audit.beside import Beside
from bayes_sdc.flows.compiling import finish_compiling, seconds_left
from bayes_sdc.flows.fit.stored_results import fingerprint, fingerprint_of_draws, kept_frame
from bayes_sdc.flows.fitting import fit_weighted
from bayes_sdc.flows.forecast import job_in_words
from bayes_sdc.flows.intruder.comparing.choosing import Choice, choose_release
from bayes_sdc.flows.intruder.comparing.repeats import (
    CLASSES,
    repeat_risk,
    risk_by,
    risk_by_datasets,
)
from bayes_sdc.flows.intruder.comparing.tradeoff import risk_utility
from bayes_sdc.flows.intruder.measure import measured_risk
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.intruder.totals.keeping import keep_beside, pinned_by
from bayes_sdc.flows.intruder.totals.kept_checks import kept_checks
from bayes_sdc.flows.intruder.weighting import weights_checks
from bayes_sdc.flows.job.asked import FEW, MOST_DATASETS, Job
from bayes_sdc.flows.job.laps import Laps
from bayes_sdc.flows.leaks import leaks, unchanged
from bayes_sdc.flows.limits import check_limits, check_use, worse_checks
from bayes_sdc.flows.protection import Measured, Protection
from bayes_sdc.flows.release.synthetic.predictive import compare_counts
from bayes_sdc.flows.release.synthetic.synthesis import synthesize
from bayes_sdc.flows.release.totals.kept import KeptTotals
from bayes_sdc.flows.release.use.base_gain import base_gain
from bayes_sdc.flows.release.use.combining import combined_totals
from bayes_sdc.flows.release.use.distinguishing import told_apart
from bayes_sdc.flows.release.use.uses import flow_uses
from bayes_sdc.flows.release.use.utility import margins, utility
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.progress import say


def protected(table: FlowTable, job: Job, known: Beside) -> Protection:
    """Fit, release, measure and check a table with small cells, some totals being published."""
    compiling = seconds_left() if job.sampling.sampler == "gibbs" else 0.0
    expected = ({"compiling": compiling} if compiling else {}) | job.forecast(table)
    say(job_in_words(expected, job.sampling.cores))
    laps = Laps(expected)
    if compiling:
        finish_compiling()
        laps.lap("compiling")
    seed, resume = job.sampling.seed, job.asked.resume
    posterior = fit_weighted(table, job.sampling, job.weighting, resume=resume)
    laps.lap("fit")
    drawn = "" if resume is None else fingerprint_of_draws(posterior)
    groups = kept_frame(
        resume, "groups", fingerprint(drawn), lambda: diagnostics.group_diagnostics(posterior)
    )
    predictive, by_size = compare_counts(table, posterior, seed=seed)
    dispersion = diagnostics.dispersion(table, posterior, seed=seed)
    laps.lap("diagnostics")
    kept, release = _released(table, posterior, job, known)
    laps.lap("synthesis")
    release, worst, choice = _release_and_risk(table, posterior, release, job, kept)
    risk = worst
    if job.asked.knowledge != "all-others":
        risk = measured_risk(table, posterior, release, job.asked, totals=kept)
    laps.lap("intruder risk")
    over_releases = _over_releases(table, posterior, worst, job, drawn)
    laps.lap("scenarios and utility")
    measured = Measured(
        posterior=posterior,
        groups=groups,
        predictive=predictive,
        predictive_by_size=by_size,
        dispersion=dispersion,
        base_gain=base_gain(table, posterior),
        margins=margins(table, release),
        utility=utility(table, release),
        uses=flow_uses(table, release, distance=job.distance, totals=kept),
        distinguished=told_apart(table, posterior, release, kept, seed=seed),
        risk=risk,
        worst=worst,
        **over_releases._asdict(),
        classes={by: risk_by(table, risk, by) for by in CLASSES},
        combined=combined_totals(table, release, totals=kept) if job.datasets > 1 else None,
        choice=choice,
        kept=kept if kept.sides or kept.why else None,
    )
    checks = _checks(table, release, measured, kept, job, known)
    columns = job.columns
    return Protection(
        table, columns.of(release), measured, checks, laps.seconds, columns, own_area=job.own_area
    )


def _released(
    table: FlowTable, posterior: xr.DataTree, job: Job, known: Beside
) -> tuple[KeptTotals, pd.DataFrame]:
    """Choose the totals to keep, and draw the release."""
    seed = job.sampling.seed
    kept = keep_beside(
        table, posterior, known, totals=job.totals_kept, base=job.totals_base, limit=job.kept_limit,
        seed=seed, cores=job.sampling.cores,
    )  # fmt: skip
    release = synthesize(
        table, posterior, datasets=job.datasets, totals=kept, own_area=job.own_area, seed=seed,
        cores=job.sampling.cores,
    )  # fmt: skip
    return kept, release


def _release_and_risk(
    table: FlowTable, posterior: xr.DataTree, release: pd.DataFrame, job: Job, kept: KeptTotals
) -> tuple[pd.DataFrame, IntruderRisk, Choice | None]:
    """The release, chosen among candidates if asked for, with its risk in the worst case."""
    worst = measured_risk(table, posterior, release, job.worst, totals=kept)
    if job.candidates == 1:
        return release, worst, None
    choice = choose_release(
        table, posterior, worst, None if job.policy is None else job.policy.for_flows(),
        candidates=job.candidates, datasets=job.datasets, repetitions=job.releases,
        own_area=job.own_area, seed=job.sampling.seed,
    )  # fmt: skip
    return choice.release, measured_risk(table, posterior, choice.release, job.worst), choice


def _checks(
    table: FlowTable,
    release: pd.DataFrame,
    measured: Measured,
    kept: KeptTotals,
    job: Job,
    known: Beside,
) -> list[Check]:
    """Verdicts on fit, release, totals, risk and what is released as it is."""
    unique = job.asked.unique
    limits = [
        check_limits(job.policy, each, measured.choice, unique=unique)
        for each in (measured.worst, measured.risk)
    ]
    columns = job.columns
    return [
        *diagnostics.checks(
            measured.groups,
            measured.predictive,
            measured.predictive_by_size,
            measured.dispersion,
            measured.risk,
            measured.base_gain,
        ),
        unchanged(table, release),
        *kept_checks(
            table,
            measured.posterior,
            release,
            kept,
            known,
            limit=job.kept_limit,
            pinned_allowed=job.pinned_allowed,
            seed=job.sampling.seed,
            cores=job.sampling.cores,
        ),
        *leaks(table, release, columns, job.own_area, pinned=int(pinned_by(table, kept).sum())),
        *weights_checks(table, measured.posterior, measured.worst),
        *worse_checks(*limits),
        *check_use(job.policy, measured.utility, cells=table.n_small),
    ]


class OverReleases(NamedTuple):
    """The risk of the worst case over further releases, and beside other protections."""

    repeats: pd.DataFrame
    by_datasets: pd.DataFrame
    tradeoff: pd.DataFrame


def _over_releases(
    table: FlowTable, posterior: xr.DataTree, worst: IntruderRisk, job: Job, drawn: str
) -> OverReleases:
    """Measure further releases; each table is kept when it is done."""
    seed, resume = job.sampling.seed, job.asked.resume
    mark = "" if resume is None else fingerprint(
        drawn, worst.release_probability.to_numpy(), worst.prior_probability.to_numpy(),
        worst.already_released.to_numpy(), table.sha256, worst.unique, job.releases, job.datasets,
        seed,
    )  # fmt: skip
    keep = partial(kept_frame, resume)
    most, few = min(MOST_DATASETS, job.kept), min(job.releases, FEW)
    return OverReleases(
        repeats=keep("repeats", mark, lambda: repeat_risk(
            table, posterior, worst, releases=job.releases, datasets=job.datasets, seed=seed
        )),
        by_datasets=keep("by-datasets", mark, lambda: risk_by_datasets(
            table, posterior, worst, most=most, releases=few, seed=seed
        )),
        tradeoff=keep("tradeoff", mark, lambda: risk_utility(
            table, posterior, worst, datasets=range(1, job.compared + 1), seed=seed
        )),
    )  # fmt: skip
