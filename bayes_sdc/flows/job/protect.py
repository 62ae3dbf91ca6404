"""The main job in one call: fit, release, measure, check."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import xarray as xr

from bayes_sdc.arguments import PathLike, checked
from bayes_sdc.checks import Check
from bayes_sdc.flows.audit.audit import published_families
from bayes_sdc.flows.audit.beside import Beside, beside
from bayes_sdc.flows.audit.result import Audit
from bayes_sdc.flows.audit.settle import settle_totals
from bayes_sdc.flows.compiling import start_compiling
from bayes_sdc.flows.fit.fit import seed_of_fit
from bayes_sdc.flows.fit.settings import (
    Family,
    PriorName,
    Sampler,
    sampling_of,
    with_bound,
    with_rule,
)
from bayes_sdc.flows.fitting import Weighting
from bayes_sdc.flows.guarantee import guarantee
from bayes_sdc.flows.intruder.probabilities.settings import (
    Estimator,
    Knowledge,
    Prior,
    RiskSettings,
    Unique,
)
from bayes_sdc.flows.intruder.totals.keeping import LIMIT, pinned_by
from bayes_sdc.flows.intruder.with_totals import with_totals
from bayes_sdc.flows.job.asked import Job, check_needed
from bayes_sdc.flows.job.steps import protected
from bayes_sdc.flows.kept_columns.selection import select_columns
from bayes_sdc.flows.kept_columns.totals import kept_totals
from bayes_sdc.flows.leaks import leaks
from bayes_sdc.flows.limits import check_limits, check_use
from bayes_sdc.flows.protection import Protection, with_checks
from bayes_sdc.flows.release.synthetic.own_areas import OwnArea
from bayes_sdc.flows.release.synthetic.synthesis import synthesize
from bayes_sdc.flows.table.cells import under_rule
from bayes_sdc.flows.table.centres import Centres
from bayes_sdc.flows.table.families import Published
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.flows.table.weights import Weights
from bayes_sdc.policy import Policy, read_policy


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
    weights: Literal["risk"] | Weights | None = None,
    gain_limit: float | None = None,
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
    weights, gain_limit
        As for :func:`bayes_sdc.fit_flows`; not with kept totals or refits. A check says what they
        are, and how many cells are above the limit after all.
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
        where they pin one, because that count is released as it is.
    totals_base : int
        With more than 1 the kept totals need only round to the same multiple of it.
    kept_limit : float
        A cell whose true count the totals make more probable than this, before any release, is as
        good as known: ``"auto"`` merges totals until there is none.
    pinned_allowed : bool
        Whether pinned cells may be released as they are; a decision for the board.
    distance : sequence of float, optional
        As for :func:`bayes_sdc.flow_uses`.
    published, published_base
        Totals that are published beside the table, and what they are rounded to a multiple of, as
        for :func:`bayes_sdc.audit_totals`: a check fails if they pin a small count, alone or with
        the totals that this release keeps and those that an earlier one kept. ``"auto"`` merges
        totals until they do not.
    seed : int, optional
        Everything random follows from it. It is confidential and should be as long as
        ``secrets.randbits(128)``: a short one can be found by trial, which undoes the release. By
        default a fresh one, or that of the call that ``resume`` holds; it is among the attributes
        of the posterior.
    resume : path, optional
        Folder that keeps the fit and the expensive steps after it when a call is interrupted
        (:mod:`bayes_sdc.flows.fit.stored_results`); a later call with the same arguments continues
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
        weighting=Weighting(weights, gain_limit),
    )  # fmt: skip
    job.check(table)
    check_needed(
        table, keep=keep, already_released=already_released, released_epsilon=released_epsilon,
        epsilon=epsilon,
    )  # fmt: skip
    if table.n_small and job.sampling.sampler == "gibbs":
        start_compiling()
    table = under_rule(table, job.sampling.impossible)
    settle_totals(table)  # refuses totals inside the table that nobody has decided about
    told = published_families(table, published, base=published_base)
    told += [family for _, _, family in kept_totals(table, job.columns.kept)]
    known = beside(
        table, told, already_released=already_released, own_area_hidden=own_area != "publish"
    )
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
        protection = protected(table, job, known)
        missing = [None] * (len(already_released) - len(released_epsilon))
        protection = _with_guarantee(protection, job, known, [*released_epsilon, *missing])
    measured = protection.measured
    audit = known.audit(None if measured is None else measured.kept)
    if audit is None:
        return protection
    combined = (
        None if measured is None else with_totals(table, measured.risk, job.asked, known.families)
    )
    checks = [*protection.checks, _judged(audit, protection, known, pinned_allowed)]
    return replace(protection, audit=audit, with_totals=combined, checks=checks)


def _judged(audit: Audit, protection: Protection, known: Beside, pinned_allowed: bool) -> Check:
    """Judge the audit; what kept totals alone pin may have been allowed."""
    check = audit.check()
    kept = None if protection.measured is None else protection.measured.kept
    if not pinned_allowed or kept is None or known.alone.any() or audit.pinned_besides:
        return check
    more = audit.bounds["pinned"].to_numpy(bool) & ~pinned_by(protection.table, kept)
    return check if more.any() or check.verdict != "fail" else replace(check, verdict="look")


def _with_guarantee(
    protection: Protection, job: Job, known: Beside, earlier: Sequence[float | None]
) -> Protection:
    """Add what is promised, and a check of it, where an epsilon was asked for."""
    if job.sampling.bound is None or protection.measured is None:
        return protection
    found = guarantee(
        protection.table, protection.measured.posterior, datasets=job.datasets, earlier=earlier,
        own_area=job.own_area, candidates=job.candidates, totals=bool(known.families),
    )  # fmt: skip
    checks = protection.checks
    return with_checks(replace(protection, guarantee=found, checks=[]), checks)
