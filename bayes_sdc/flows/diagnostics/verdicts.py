"""Verdicts on a posterior and on what was made of it, for console, report and tests."""

import numpy as np
import pandas as pd

from bayes_sdc.checks import Check, Verdict
from bayes_sdc.convergence import ESS_FAIL, ESS_LIMIT, RHAT_FAIL, RHAT_LIMIT
from bayes_sdc.flows.diagnostics.fit import Dispersion
from bayes_sdc.flows.diagnostics.groups import SMALL_GROUP
from bayes_sdc.flows.intruder.probabilities.bayes import LARGEST_ERROR
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.model.parameters import NATION
from bayes_sdc.flows.release.use.base_gain import WORTH

MISFIT_LIMIT, MISFIT_FAIL = 0.15, 0.3  # relative error of the share of a count
# distance from 1; in a large table chance alone stays below the first, which does no harm
DISPERSION_LIMIT, DISPERSION_FAIL = 0.05, 0.25
NAMED = 9  # counts that a verdict names, the worst


def checks(
    groups: pd.DataFrame,
    predictive: pd.DataFrame,
    by_size: pd.DataFrame,
    dispersion: Dispersion,
    risk: IntruderRisk,
    base_gain: float = 0.0,
) -> list[Check]:
    """Turn the numbers into verdicts.

    Parameters
    ----------
    groups : DataFrame
        From :func:`bayes_sdc.flows.diagnostics.groups.group_diagnostics`.
    predictive : DataFrame
        From :func:`bayes_sdc.flows.diagnostics.fit.predictive_counts`.
    by_size : DataFrame
        From :func:`bayes_sdc.flows.release.synthetic.predictive.predictive_counts_by_size`.
    dispersion : Dispersion
        From :func:`bayes_sdc.flows.diagnostics.fit.dispersion`.
    risk : IntruderRisk
        From :func:`bayes_sdc.intruder_risk`.
    base_gain : float
        From :func:`bayes_sdc.flows.release.use.base_gain.base_gain`: the check of the fit names the
        family that gains this much.

    Returns
    -------
    list of Check
        Convergence, divergences, small groups, fit to the counts, in all and by size of the group,
        dispersion, importance weights.
    """
    return [
        _convergence(groups),
        _divergences(groups),
        _small(groups),
        _fit(
            "fit to the counts", predictive, MISFIT_FAIL, key="fit", offer=family_offered(base_gain)
        ),
        # a class may be a few cells of a large table: worth a look, but no reason to refuse
        _fit("fit by size of group", by_size, np.inf, key="fit_by_size"),
        dispersed(dispersion),
        _weights(risk),
    ]


def _convergence(groups: pd.DataFrame) -> Check:
    n, total = _number(groups), int(groups["parameters"].sum())
    above, below = int(groups["rhat_above"].sum()), int(groups["ess_below"].sum())
    bad = (groups["rhat_above"] > 0) | (groups["ess_below"] > 0)
    failed = (groups["rhat"] > RHAT_FAIL) | (groups["ess"] < ESS_FAIL)
    verdict: Verdict = "fail" if failed.any() else "look" if bad.any() else "pass"
    return Check(
        "convergence",
        verdict,
        f"R-hat exceeds {RHAT_LIMIT} for {above} and ESS is below {ESS_LIMIT:.0f} for {below} of "
        f"{total} parameters, in {_named(bad)} of {n} groups; R-hat exceeds {RHAT_FAIL} or ESS is "
        f"below {ESS_FAIL:.0f} in {_named(failed)} groups"
        + ("; more draws may help" if bad.any() else ""),
        key="convergence",
    )


def _named(chosen: pd.Series) -> str:
    """Number of groups among the chosen rows, and whether the nation is among them."""
    nation = " (and in the national distribution)" if chosen.get(NATION, False) else ""
    return f"{int(chosen.sum()) - bool(nation)}{nation}"


def _number(groups: pd.DataFrame) -> int:
    """Number of groups, the row of the national distribution left out."""
    return int((groups.index != NATION).sum())


def _divergences(groups: pd.DataFrame) -> Check:
    with_any = int((groups["divergences"] > 0).sum())
    return Check(
        "divergences",
        "look" if with_any else "pass",
        f"{int(groups['divergences'].sum())} divergent transitions in {with_any} groups",
        key="divergences",
    )


def _small(groups: pd.DataFrame) -> Check:
    own = groups[groups.index != NATION]
    n, split = int(own["by_prior"].sum()), own["blocks"] > 1
    return Check(
        "small groups",
        "look" if n else "pass",
        f"{n} of {len(own)} groups have fewer than {SMALL_GROUP} small cells, one origin or one "
        "destination, or all counts at one bound: their rates are decided by the prior; "
        f"{int(split.sum())} groups fall into separate blocks ({int(own['blocks'][split].sum())} "
        "together), whose levels relative to each other are decided by the prior; so is how far "
        f"beyond the bound {int(own['at_bound'].sum())} of "
        f"{int((own['origins'] + own['destinations']).sum())} effects lie, all of whose counts are "
        "the smallest or all the largest",
        key="small_groups",
    )


def family_offered(base_gain: float) -> str:
    """Name the family that learns which counts are heaped or rare, where it gains enough."""
    if not base_gain > WORTH:
        return ""
    return (
        f"; family 'base', which learns how common each count is wherever it occurs, would gain "
        f"about {base_gain:.2f} a cell in log probability"
    )


def misfits(predictive: pd.DataFrame) -> pd.Series:
    """Return the relative errors of the counts that are predicted badly; infinite for none seen.

    Parameters
    ----------
    predictive : DataFrame
        From :func:`bayes_sdc.flows.diagnostics.fit.predictive_counts`, or by size of the group.
    """
    # a count that no cell has gives no relative error, but too many replicas may have it
    error = predictive["relative_error"].fillna(np.inf)
    outside = (predictive["observed"] < predictive["lower"]) | (
        predictive["observed"] > predictive["upper"]
    )
    return error[outside & (error.abs() > MISFIT_LIMIT)]


def _fit(name: str, predictive: pd.DataFrame, fail: float, *, key: str, offer: str = "") -> Check:
    missed = misfits(predictive)
    worst = missed.reindex(missed.abs().sort_values(ascending=False).index)[:NAMED].sort_index()
    found = ", ".join(
        f"{_place(place)} ({f'{error:+.0%}' if np.isfinite(error) else 'none observed'})"
        for place, error in worst.items()
    )
    found += " and others" if len(missed) > NAMED else ""
    return Check(
        name,
        "fail"
        if (missed[np.isfinite(missed)].abs() > fail).any()
        else "look"
        if len(missed)
        else "pass",
        f"{len(missed)} of {len(predictive)} counts are predicted with a relative error above "
        f"{MISFIT_LIMIT:.0%} and lie outside the 95 % predictive interval"
        + (f": {found}; the release has too many or too few of them" if found else "")
        + offer,
        key=key,
    )


def _place(index: object) -> str:
    """Name a row of a predictive check: a count, or a count in groups of some size."""
    if isinstance(index, tuple):
        return f"{index[1]} in groups with {index[0]} small cells"
    return str(index)


def dispersed(found: Dispersion) -> Check:
    """Judge the scatter of the small counts about the model's means."""
    value, lower, upper = (round(n, 2) for n in (found.value, found.lower, found.upper))
    # the rounded numbers decide, as they are printed, and the wider of two intervals
    least, most = min(lower, 1.0 - DISPERSION_LIMIT), max(upper, 1.0 + DISPERSION_LIMIT)
    worst = min(lower, 1.0 - DISPERSION_FAIL), max(upper, 1.0 + DISPERSION_FAIL)
    verdict: Verdict = "pass"
    if not least <= value <= most:
        verdict = "look" if worst[0] <= value <= worst[1] else "fail"
    return Check(
        "dispersion",
        verdict,
        f"Pearson dispersion of the small counts is {value:.2f}; {least:.2f} to {most:.2f} passes, "
        f"beyond {worst[0]:.2f} to {worst[1]:.2f} fails. 1 is right, above 1 the counts scatter "
        f"more than the model allows. Tables that the model made have {lower:.2f} to {upper:.2f} "
        "(95 %)",
        key="dispersion",
    )


def _weights(risk: IntruderRisk) -> Check:
    n, bad = risk.rho.sizes["cell"], risk.unreliable_cells
    return Check(
        "importance weights",
        "look" if bad else "pass",
        f"{bad} of {n} cells have a candidate count with Pareto k-hat above "
        f"{risk.khat_threshold:.2f}, or a Monte Carlo error above {LARGEST_ERROR:g}"
        + (
            ": their probabilities are not reliable; refits or more draws make them so"
            if bad
            else ""
        ),
        key="importance_weights",
    )
