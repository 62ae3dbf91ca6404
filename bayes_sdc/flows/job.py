"""The main job in one call: fit, release, measure, check."""

from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pandas as pd
import xarray as xr

from bayes_sdc import diagnostics
from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit import fit_flows
from bayes_sdc.flows.intruder import intruder_risk
from bayes_sdc.flows.limits import check_limits
from bayes_sdc.flows.repeats import repeat_risk
from bayes_sdc.flows.risk import UNIQUE, IntruderRisk
from bayes_sdc.flows.synthesis import refuse_column_named_dataset, synthesize
from bayes_sdc.flows.table import FlowTable
from bayes_sdc.flows.utility import margins
from bayes_sdc.leaks import leaks, unchanged
from bayes_sdc.policy import Policy
from bayes_sdc.seeds import seed_sequence


@dataclass(frozen=True, eq=False)
class Protection:
    """A release with all that was measured about it. Only ``release`` may leave the agency.

    Parameters
    ----------
    table : FlowTable
        The input.
    release : DataFrame
        The synthetic table; columns and order of the input.
    posterior : DataTree or None
        None when the table has no small cells; then so is all that follows.
    groups : DataFrame or None
        :func:`bayes_sdc.diagnostics.group_diagnostics`.
    predictive : DataFrame or None
        :func:`bayes_sdc.diagnostics.predictive_counts`.
    dispersion : Dispersion or None
        :func:`bayes_sdc.diagnostics.dispersion`.
    margins : DataFrame or None
        :func:`bayes_sdc.flows.utility.margins`.
    risk : IntruderRisk or None
        Of this release.
    repeats : DataFrame or None
        :func:`bayes_sdc.flows.intruder.repeat_risk`: the spread over independent releases.
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
    dispersion: diagnostics.Dispersion | None
    margins: pd.DataFrame | None
    risk: IntruderRisk | None
    repeats: pd.DataFrame | None
    checks: list[diagnostics.Check]
    seconds: dict[str, float]


def protect_flows(
    table: FlowTable,
    *,
    family: str = "default",
    prior: str = "default",
    sampler: str = "gibbs",
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    datasets: int = 1,
    releases: int = 20,
    unique: str = "single-mover",
    policy: Policy | None = None,
    seed: int,
    cores: int | None = None,
    resume: Path | None = None,
) -> Protection:
    """Fit the model, release a synthetic table, measure the intruder's risk and check it all.

    Parameters
    ----------
    table : FlowTable
        From :func:`bayes_sdc.flows.table.read_flows`.
    family, prior, sampler, draws, tune, chains, cores, resume
        As for :func:`bayes_sdc.flows.fit.fit_flows`.
    datasets : int
        Synthetic data sets in the release.
    releases : int
        Independent releases over which the spread of the risk is measured.
    unique : {"single-mover", "isolated"}
        As for :func:`bayes_sdc.flows.intruder.intruder_risk`.
    policy : Policy, optional
        Limits on the intruder's risk, each judged by a check; none by default.
    seed : int
        Everything random follows from it. Confidential, and best ``secrets.randbits(128)``: a
        short one can be found by trial, and then the release is undone.

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
    if policy is not None:
        policy.for_flows()  # refuses one without limits for flows before the fit
    seed_sequence(seed)  # refuses a seed that is none
    if table.n_small == 0:
        release = synthesize(table, xr.DataTree(), datasets=datasets, seed=seed)
        nothing = dict.fromkeys(
            ["posterior", "groups", "predictive", "dispersion", "margins", "risk", "repeats"]
        )
        checks = [*leaks(table), *check_limits(policy, None, unique=unique)]
        return Protection(table=table, release=release, checks=checks, seconds={}, **nothing)
    seconds: dict[str, float] = {}
    clock = monotonic()

    def lap(stage: str) -> None:
        nonlocal clock
        seconds[stage] = monotonic() - clock
        clock = monotonic()

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
    )
    lap("fit")
    groups = diagnostics.group_diagnostics(posterior)
    predictive = diagnostics.predictive_counts(table, posterior, seed=seed)
    dispersion = diagnostics.dispersion(table, posterior, seed=seed)
    lap("diagnostics")
    release = synthesize(table, posterior, datasets=datasets, seed=seed)
    lap("synthesis")
    risk = intruder_risk(table, posterior, release, unique=unique)
    repeats = repeat_risk(
        table,
        posterior,
        risk,
        releases=releases,
        datasets=datasets,
        seed=seed,
    )
    lap("intruder risk")
    return Protection(
        table=table,
        release=release,
        posterior=posterior,
        groups=groups,
        predictive=predictive,
        dispersion=dispersion,
        margins=margins(table, release),
        risk=risk,
        repeats=repeats,
        checks=[
            *diagnostics.checks(groups, predictive, dispersion, risk),
            unchanged(table, release),
            *leaks(table),
            *check_limits(policy, risk, unique=unique),
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
