"""The main job in one call: fit, release, measure, check."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import pandas as pd
import xarray as xr

from bayes_sdc.arguments import PathLike, checked
from bayes_sdc.checks import Check
from bayes_sdc.errors import InputError
from bayes_sdc.flows import diagnostics
from bayes_sdc.flows.audit.audit import audit_families, published_families
from bayes_sdc.flows.audit.result import Audit
from bayes_sdc.flows.audit.settle import settle_totals
from bayes_sdc.flows.compiling import finish_compiling, seconds_left, start_compiling
from bayes_sdc.flows.fit.fit import fit, seed_of_fit
from bayes_sdc.flows.fit.forecast import duration
from bayes_sdc.flows.fit.settings import (
    Family,
    PriorName,
    Sampler,
    sampling_of,
    with_bound,
    with_rule,
)
from bayes_sdc.flows.fit.stored_results import fingerprint, fingerprint_of_draws, kept_frame
from bayes_sdc.flows.forecast import forecast_job, job_in_words
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.guarantee import CHECK, ENDING, guarantee
from bayes_sdc.flows.intruder.comparing.choosing import Choice, choose_release
from bayes_sdc.flows.intruder.comparing.repeats import (
    CLASSES,
    repeat_risk,
    risk_by,
    risk_by_datasets,
)
from bayes_sdc.flows.intruder.comparing.tradeoff import METHODS, risk_utility
from bayes_sdc.flows.intruder.measure import measured_risk
from bayes_sdc.flows.intruder.probabilities.settings import (
    Estimator,
    Knowledge,
    Prior,
    RiskSettings,
    Unique,
)
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.intruder.totals.keeping import LIMIT, keep_totals, kept_checks, pinned_by
from bayes_sdc.flows.intruder.with_totals import with_totals
from bayes_sdc.flows.kept_columns.selection import Selection, select_columns
from bayes_sdc.flows.kept_columns.totals import kept_totals
from bayes_sdc.flows.leaks import leaks, unchanged
from bayes_sdc.flows.limits import check_limits, check_use, worse_checks
from bayes_sdc.flows.protection import Measured, Protection
from bayes_sdc.flows.release.synthetic.own_areas import OwnArea, check_own_area
from bayes_sdc.flows.release.synthetic.predictive import compare_counts
from bayes_sdc.flows.release.synthetic.synthesis import refuse_column_named_dataset, synthesize
from bayes_sdc.flows.release.totals.kept import KeptTotals, kept_by_name
from bayes_sdc.flows.release.use.base_gain import base_gain
from bayes_sdc.flows.release.use.combining import combined_totals
from bayes_sdc.flows.release.use.distinguishing import told_apart
from bayes_sdc.flows.release.use.uses import flow_uses
from bayes_sdc.flows.release.use.utility import margins, utility
from bayes_sdc.flows.table.cells import small_cells, under_rule
from bayes_sdc.flows.table.centres import Centres
from bayes_sdc.flows.table.families import Family as Totals
from bayes_sdc.flows.table.families import Published
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.policy import Policy, read_policy
from bayes_sdc.progress import say

MOST_DATASETS, COMPARED_DATASETS = 20, 10  # data sets up to which the risk is followed
FEW = 5  # releases over which it is followed


@checked
def protect_flows(
    table: FlowTable,
    *,
    family: Family = "default",
    prior: PriorName = "default",
    covariates: str = "default",
    epsilon: float | None = None,
    centres: Centres = "bundled",
    impossible: Sequence[int] = (),
    released_epsilon: Sequence[float] = (),
    sampler: Sampler = "gibbs",
    draws: int = 1000,
    tune: int | None = None,
    chains: int = 4,
    datasets: int = 1,
    releases: int = 20,
    unique: Unique = "single-mover",
    estimator: Estimator = "integrated",
    intruder_prior: Prior = "uniform",
    knowledge: Knowledge = "all-others",
    share: float | None = None,
    already_released: Sequence[Any] = (),
    refits: int = 0,
    candidates: int = 1,
    policy: Policy | PathLike | None = None,
    keep: Collection[str] = (),
    own_area: OwnArea = "protect",
    totals_kept: str | Sequence[str] = (),
    totals_base: int = 1,
    kept_limit: float = LIMIT,
    pinned_allowed: bool = False,
    distance: Sequence[float] | None = None,
    published: Published = (),
    published_base: int = 1,
    seed: int | None = None,
    cores: int | None = None,
    resume: PathLike | None = None,
    scheduler: str | None = None,
    ready: Callable[[], object] = lambda: None,
) -> Protection:
    """Fit the model, release a synthetic table, measure the intruder's risk and check it all.

    Parameters
    ----------
    table : FlowTable
        From :func:`bayes_sdc.read_flows`.
    family, prior, covariates, epsilon, centres, impossible, sampler, draws, tune, chains, cores, \
scheduler
        As for :func:`bayes_sdc.fit_flows`. With ``epsilon`` a check tells whether the guarantee
        holds for the release: :func:`bayes_sdc.guarantee`.
    released_epsilon : sequence of float
        Epsilon of each of ``already_released``, of all its data sets together; without it the
        guarantee ends with the first earlier release.
    datasets : int
        Synthetic data sets in the release.
    releases : int
        Independent releases over which the spread of the risk is measured.
    unique : {"single-mover", "isolated"}
        As for :func:`bayes_sdc.intruder_risk`.
    estimator, intruder_prior, knowledge, share, already_released, refits
        As for :func:`bayes_sdc.intruder_risk`. The worst case, an intruder who knows
        all other cells, is measured in any case.
    candidates : int
        With more than 1, that many releases are drawn and one is chosen:
        :func:`bayes_sdc.choose_release`.
    policy : Policy or path, optional
        From :func:`bayes_sdc.read_policy`, or its file: limits on the intruder's risk, each judged
        by a check; none by default.
    keep : collection of str
        Columns to release besides origin, destination, count, groups and those that only describe
        one area; a check tells whether they give small counts away.
    own_area : {"protect", "withhold", "publish"}
        As for :func:`bayes_sdc.synthesize`.
    totals_kept : str or sequence of str
        Totals that the release has exactly as the table, as for :func:`bayes_sdc.synthesize`, or
        ``"auto"`` for as many as pin no small count (:func:`bayes_sdc.keep_totals`). A check fails
        where they pin one: then it is released as it is.
    totals_base : int
        With more than 1 the kept totals need only round to the same multiple of it.
    kept_limit : float
        A cell whose true count is more probable than this given the totals, before any release, is
        as good as told: ``"auto"`` merges totals until there is none.
    pinned_allowed : bool
        Whether pinned cells may be released as they are; a decision for the board.
    distance : sequence of float, optional
        As for :func:`bayes_sdc.flow_uses`.
    published, published_base
        Totals that are published beside the table, and what they are rounded to a multiple of, as
        for :func:`bayes_sdc.audit_totals`: a check fails if they pin a small count.
    seed : int, optional
        Everything random follows from it. Confidential, and best ``secrets.randbits(128)``: a
        short one can be found by trial, and then the release is undone. By default a fresh one, or
        that of the call that ``resume`` holds; it is among the attributes of the posterior.
    resume : path, optional
        Folder that keeps the fit and the expensive steps after it when a call is interrupted
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
        If an argument cannot be used, the policy has no section for flows, or the table holds
        totals (:func:`bayes_sdc.settle_totals`).

    See Also
    --------
    bayes_sdc.read_flows, bayes_sdc.fit_flows, bayes_sdc.synthesize, bayes_sdc.intruder_risk,
    bayes_sdc.utility

    References
    ----------
    S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality".

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
    seed = seed_of_fit(seed, resume)
    if not isinstance(policy, Policy | None):
        policy = read_policy(policy)
    job = Job(
        sampling=with_rule(with_bound(sampling_of(
            family=family, prior=prior, sampler=sampler, draws=draws, tune=tune, chains=chains,
            seed=seed, cores=cores, scheduler=scheduler, covariates=covariates,
        ), table, epsilon, centres), table, impossible),
        asked=RiskSettings(
            estimator=estimator, prior=intruder_prior, knowledge=knowledge, share=share,
            unique=unique, already_released=already_released, refits=refits, seed=seed,
            cores=cores,
            resume=None if resume is None else Path(resume),
        ),
        datasets=datasets, releases=releases, candidates=candidates, policy=policy,
        columns=select_columns(table, keep), own_area=own_area,
        totals_kept=totals_kept, totals_base=totals_base, kept_limit=kept_limit,
        pinned_allowed=pinned_allowed, distance=distance,
    )  # fmt: skip
    job.check(table)
    if table.n_small and job.sampling.sampler == "gibbs":
        start_compiling()
    table = under_rule(table, job.sampling.impossible)
    if len(released_epsilon) > len(already_released):
        raise InputError(
            f"released_epsilon: {len(released_epsilon)} numbers for {len(already_released)} "
            "earlier releases; give one for each of already_released"
        )
    settle_totals(table)  # stops at totals of which it is not said what becomes of them
    told = published_families(table, published, base=published_base)
    told += [family for _, _, family in kept_totals(table, job.columns.kept)]
    audit = _audited(table, told, job)
    ready()
    if table.n_small == 0:
        release = synthesize(table, xr.DataTree(), datasets=datasets, own_area=own_area, seed=seed)
        checks = [
            *leaks(table, release, job.columns, own_area),
            *check_limits(policy, None, unique=unique),
            *check_use(policy, None, cells=0),
        ]
        protection = Protection(
            table, job.columns.of(release), None, checks, {}, job.columns, own_area=own_area
        )
    else:
        protection = _protected(table, job)
        missing = [None] * (len(already_released) - len(released_epsilon))
        protection = _with_guarantee(protection, job, audit, [*released_epsilon, *missing])
    if audit is None:
        return protection
    measured = protection.measured
    combined = (
        None if measured is None else with_totals(table, measured.risk, audit, job.asked, told)
    )
    checks = [*protection.checks, audit.check()]
    return replace(protection, audit=audit, with_totals=combined, checks=checks)


def with_checks(protection: Protection, checks: Sequence[Check]) -> Protection:
    """Add checks, and what they say of the guarantee."""
    every = [check for check in protection.checks if check.key != CHECK] + list(checks)
    if protection.guarantee is None:
        return replace(protection, checks=every)
    found = protection.guarantee.ending(
        *(
            ENDING[check.key][1]
            for check in checks
            if check.key in ENDING and check.verdict in ENDING[check.key][0]
        )
    )
    return replace(protection, guarantee=found, checks=[*every, found.check()])


def _with_guarantee(
    protection: Protection, job: "Job", audit: Audit | None, earlier: Sequence[float | None]
) -> Protection:
    """Add what is promised, and a check of it, where an epsilon was asked for."""
    if job.sampling.bound is None or protection.measured is None:
        return protection
    found = guarantee(
        protection.table, protection.measured.posterior, datasets=job.datasets, earlier=earlier,
        own_area=job.own_area, candidates=job.candidates, totals=audit is not None,
    )  # fmt: skip
    checks = protection.checks
    return with_checks(replace(protection, guarantee=found, checks=[]), checks)


def _audited(table: FlowTable, families: list[Totals], job: "Job") -> Audit | None:
    """Audit what is published beside the table, the totals inside it, and in columns that stay."""
    if not families:
        return None
    audit = audit_families(table, families, own_area_hidden=job.own_area != "publish")
    return audit if audit.cells or audit.besides is not None else None


@dataclass(frozen=True)
class Job:
    """What :func:`protect_flows` is asked for."""

    sampling: Sampling
    asked: RiskSettings  # the intruder asked for
    datasets: int
    releases: int
    candidates: int
    policy: Policy | None
    columns: Selection
    own_area: OwnArea
    totals_kept: str | Sequence[str] = ()
    totals_base: int = 1
    kept_limit: float = LIMIT
    pinned_allowed: bool = False
    distance: Sequence[float] | None = None

    @property
    def worst(self) -> RiskSettings:
        """The same for the intruder who knows all other cells."""
        return replace(self.asked, knowledge="all-others", share=None)

    @property
    def kept(self) -> int:
        """Posterior draws that are kept."""
        return self.sampling.draws * self.sampling.chains

    @property
    def compared(self) -> int:
        """Data sets up to which other protections are compared."""
        return min(COMPARED_DATASETS, self.kept)

    def check(self, table: FlowTable) -> None:
        """Refuse what would fail only after the fit."""
        if self.datasets > 1:
            refuse_column_named_dataset(table)
        if not 1 <= self.datasets <= self.kept:
            raise InputError(
                f"datasets must be from 1 to the number of posterior draws, {self.kept}; it is "
                f"{self.datasets}"
            )
        for name in ("releases", "candidates"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1; it is {getattr(self, name)}")
        self.asked.check(table)
        check_own_area(self.own_area)
        if not 0.0 < self.kept_limit <= 1.0:
            raise InputError(f"kept_limit must be above 0 and at most 1; it is {self.kept_limit}")
        if self.sampling.bound is not None and self.totals_kept not in ((), [], "", "none"):
            raise InputError(
                "totals_kept: totals contain small counts, and with epsilon the guarantee would "
                "end; leave one of them out"
            )
        if self.totals_kept != "auto" and table.n_small:
            kept_by_name(table, self.totals_kept, base=self.totals_base)
        keeps = self.totals_kept not in ((), [], "", "none")
        if keeps and self.sampling.bound is not None:
            raise InputError(
                "totals_kept: totals contain small counts, which ends the guarantee of epsilon; "
                "leave one of the two out"
            )
        if keeps and self.candidates > 1:
            raise InputError(
                "candidates are compared by the error of their totals, and where totals are kept "
                "it is 0; draw one release"
            )
        if self.policy is not None:
            self.policy.for_flows()  # refuses one without limits for flows

    def forecast(self, table: FlowTable) -> dict[str, float | None]:
        """Seconds of each stage, None where they cannot be told."""
        several = self.candidates > 1
        chosen_among = self.candidates * self.datasets * (self.releases + 1)
        return forecast_job(
            small_cells(table, covariates=self.sampling.covariates),
            self.sampling,
            estimator=self.asked.estimator,
            passes=1 + several,
            scenarios=0 if self.asked.knowledge == "all-others" else self.datasets,
            refits=self.asked.refits,
            datasets=self.datasets * self.releases
            + min(MOST_DATASETS, self.kept) * min(self.releases, FEW)
            + several * chosen_among,
            compared=METHODS * self.compared,
        )


LONG = 60.0  # seconds left that are worth a line


class Laps:
    """Wall time of each stage, and what is left by the forecast."""

    def __init__(self, expected: dict[str, float | None]) -> None:
        self.seconds: dict[str, float] = {}
        self._expected = dict(expected)
        self._clock = monotonic()

    def lap(self, stage: str) -> None:
        """End a stage."""
        now = monotonic()
        self.seconds[stage], self._clock = now - self._clock, now
        if stage in self._expected:
            del self._expected[stage]
            left = sum(time or 0.0 for time in self._expected.values())
            if left > LONG:  # of a short rest the step's own line says enough
                say(f"by the forecast about {duration(left)} left: {', '.join(self._expected)}")


def _protected(table: FlowTable, job: Job) -> Protection:
    """Fit, release, measure and check a table with small cells."""
    compiling = seconds_left() if job.sampling.sampler == "gibbs" else 0.0
    expected = ({"compiling": compiling} if compiling else {}) | job.forecast(table)
    say(job_in_words(expected, job.sampling.cores))
    laps = Laps(expected)
    if compiling:
        finish_compiling()
        laps.lap("compiling")
    seed, resume = job.sampling.seed, job.asked.resume
    posterior = fit(table, job.sampling, resume=resume)
    laps.lap("fit")
    drawn = "" if resume is None else fingerprint_of_draws(posterior)
    groups = kept_frame(
        resume, "groups", fingerprint(drawn), lambda: diagnostics.group_diagnostics(posterior)
    )
    predictive, by_size = compare_counts(table, posterior, seed=seed)
    dispersion = diagnostics.dispersion(table, posterior, seed=seed)
    laps.lap("diagnostics")
    kept, release = _released(table, posterior, job)
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
        uses=flow_uses(table, release, distance=job.distance),
        distinguished=told_apart(table, posterior, release, kept, seed=seed),
        risk=risk,
        worst=worst,
        **over_releases._asdict(),
        classes={by: risk_by(table, risk, by) for by in CLASSES},
        combined=combined_totals(table, release) if job.datasets > 1 else None,
        choice=choice,
        kept=kept if kept.sides else None,
    )
    checks = _checks(table, release, measured, kept, job)
    columns = job.columns
    return Protection(
        table, columns.of(release), measured, checks, laps.seconds, columns, own_area=job.own_area
    )


def _released(
    table: FlowTable, posterior: xr.DataTree, job: Job
) -> tuple[KeptTotals, pd.DataFrame]:
    """Choose the totals to keep, and draw the release."""
    seed = job.sampling.seed
    kept = keep_totals(
        table, posterior, totals=job.totals_kept, base=job.totals_base, limit=job.kept_limit,
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
    """The release, chosen among candidates if so asked, with its risk in the worst case."""
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
    table: FlowTable, release: pd.DataFrame, measured: Measured, kept: KeptTotals, job: Job
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
            limit=job.kept_limit,
            pinned_allowed=job.pinned_allowed,
            seed=job.sampling.seed,
            cores=job.sampling.cores,
        ),
        *leaks(table, release, columns, job.own_area, pinned=int(pinned_by(table, kept).sum())),
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
