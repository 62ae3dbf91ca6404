"""Verdicts on a posterior and on what was made of it, as data for console, report and tests."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bayes_sdc.checks import Check, Verdict
from bayes_sdc.convergence import ESS_FAIL, ESS_LIMIT, RHAT_FAIL, RHAT_LIMIT, convergence
from bayes_sdc.flows.intruder.probabilities.bayes import LARGEST_ERROR
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.parameters import NATION, OF_COVARIATE, OF_GROUP, SIDES, deviations
from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.release.synthetic.predictive import PREDICTIVE_DRAWS, compare_counts
from bayes_sdc.flows.release.synthetic.synthesis import spread_draws
from bayes_sdc.flows.release.use.base_gain import WORTH
from bayes_sdc.flows.table.cells import fitted_cells
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.progress import Progress
from bayes_sdc.seeds import generator

SMALL_GROUP = 10  # cells; with fewer, or with one area on a side, the prior decides
MISFIT_LIMIT, MISFIT_FAIL = 0.15, 0.3  # relative error of the share of a count
# distance from 1; in a large table chance alone leaves less than the first, and it does no harm
DISPERSION_LIMIT, DISPERSION_FAIL = 0.05, 0.25
NAMED = 9  # counts that a verdict names, the worst


def group_diagnostics(posterior: xr.DataTree) -> pd.DataFrame:
    """Convergence of each group, worst first.

    Parameters
    ----------
    posterior : xarray.DataTree
        From :func:`bayes_sdc.fit_flows`.

    Returns
    -------
    pandas.DataFrame
        By group, and for the national distribution of the pooled prior: ``cells``, ``origins``,
        ``destinations``, ``blocks`` (parts of the group that share no area: the prior
        decides their levels relative to each other), ``parameters``
        (alpha, phi_beta, phi_gamma, r, coefficients, and the deviations of beta and gamma from
        their means, which the data inform), ``rhat`` (largest, rank-normalised split R-hat),
        ``ess`` (smallest of bulk and tail ESS), ``worst`` (the parameter farthest beyond the limits
        of R-hat and ESS, or nearest to them), ``rhat_above`` and ``ess_below`` (numbers of
        parameters beyond the limits), ``divergences``, ``at_bound`` (effects all of whose counts
        are the smallest, or all the largest: how far beyond them the rate lies, the prior decides),
        ``by_prior`` (fewer than ten cells, one area on a side, or all counts at one bound: the
        prior decides the rates) and ``verdict``. Worst first: groups that fail, then by their worst
        parameter.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Buerkner 2021, doi:10.1214/20-BA1221.
    """
    data = posterior["constant_data"].to_dataset()
    groups = data["group"].to_numpy()
    parameters = _parameters(posterior)
    # 1 for a parameter at the limit of R-hat or of ESS, whichever it is farther beyond
    parameters["excess"] = np.maximum(
        (parameters["rhat"] - 1.0) / (RHAT_LIMIT - 1.0),
        ESS_LIMIT / np.maximum(parameters["ess"], 1e-9),
    )
    pooled = "national_mean" in posterior["posterior"]
    by_group = parameters.groupby("group")
    worst = parameters.loc[by_group["excess"].idxmax()].set_index("group")["name"]
    frame = pd.DataFrame(
        {
            "cells": _sizes(data["group_index"], len(groups), pooled),
            "origins": _sizes(data["group_of_origin"], len(groups), pooled),
            "destinations": _sizes(data["group_of_destination"], len(groups), pooled),
            **_undecided(posterior, pooled),
            "parameters": by_group.size(),
            "rhat": by_group["rhat"].max(),
            "ess": by_group["ess"].min(),
            "worst": worst,
            "rhat_above": by_group["rhat"].agg(lambda r: int((r > RHAT_LIMIT).sum())),
            "ess_below": by_group["ess"].agg(lambda e: int((e < ESS_LIMIT).sum())),
        }
    )
    statistics = posterior["sample_stats"].to_dataset()
    frame["divergences"] = 0
    if "diverging" in statistics:
        divergences = statistics["diverging"].sum(["chain", "draw"])
        if pooled:  # sampled as one model: the divergences are those of the whole
            frame.loc[len(groups), "divergences"] = int(divergences.sum())
        else:
            frame["divergences"] = divergences.to_numpy()
    all_at_bound = frame["at_bound"] == frame["origins"] + frame["destinations"]
    frame["by_prior"] = small_by_size(frame) | all_at_bound
    fail = (frame["rhat"] > RHAT_FAIL) | (frame["ess"] < ESS_FAIL)
    look = (
        (frame["rhat_above"] > 0)
        | (frame["ess_below"] > 0)
        | (frame["divergences"] > 0)
        | frame["by_prior"]
    )
    frame["verdict"] = np.select([fail, look], ["fail", "look"], "pass")
    frame.index = pd.Index([*groups, *([NATION] if pooled else [])], name="group")
    order = np.lexsort((-by_group["excess"].max(), ~fail))
    return frame.iloc[order]


def _sizes(index: np.ndarray | xr.DataArray, groups: int, pooled: bool) -> np.ndarray:
    """How many of something each group has, and with the pooled prior all groups together."""
    sizes = np.bincount(index, minlength=groups)
    return np.append(sizes, sizes.sum()) if pooled else sizes


def _undecided(posterior: xr.DataTree, pooled: bool) -> dict[str, np.ndarray]:
    """Number of blocks of each group, and of effects with all counts at one bound."""
    data = posterior["constant_data"].to_dataset()
    y = posterior["observed_data"]["y"].to_numpy()
    origins, destinations = data.sizes["origin_effect"], data.sizes["destination_effect"]
    effects = origins + destinations
    index = np.stack(
        [data["origin_index"].to_numpy(), origins + data["destination_index"].to_numpy()]
    )
    edges = coo_array((np.ones(len(y)), index), shape=(effects, effects))
    blocks, block = connected_components(edges, directed=False)
    group = np.concatenate([data["group_of_origin"], data["group_of_destination"]])
    group_of_block = np.empty(blocks, np.int64)
    group_of_block[block] = group
    cells = np.bincount(index.ravel(), minlength=effects)
    at_bound = np.zeros(effects, dtype=bool)
    for bound in (0, int(data["upper"])):
        here = np.tile(y == bound, 2).astype(float)
        at_bound |= np.bincount(index.ravel(), here, effects) == cells
    groups = data.sizes["group"]
    found = {"blocks": group_of_block, "at_bound": group[at_bound]}
    return {name: _sizes(of, groups, pooled) for name, of in found.items()}


def _parameters(posterior: xr.DataTree) -> pd.DataFrame:
    """R-hat and ESS of level, deviations and scales: position of the group, name, rhat, ess."""
    data = posterior["constant_data"].to_dataset()
    draws = posterior["posterior"].to_dataset()
    groups = draws.sizes["group"]
    of_group = np.arange(groups)
    blocks = [(draws[name], of_group, [name] * groups) for name in OF_GROUP if name in draws]
    for name in ("national_mean", "national_sd"):
        if name in draws:
            labels = [f"{name}[{label}]" for label in draws["parameter"].to_numpy()]
            blocks.append((draws[name], np.full(len(labels), groups), labels))
    if "national_slope" in draws:
        labels = [f"national_slope[{label}]" for label in draws["group_covariate"].to_numpy()]
        blocks.append((draws["national_slope"], np.full(len(labels), groups), labels))
    if "base" in draws:
        labels = [f"base[{count}]" for count in draws["value"].to_numpy()]
        blocks.append((draws["base"], np.full(len(labels), groups), labels))
        of_scale = draws["base_sd"].expand_dims("scale", axis=2)
        blocks.append((of_scale, np.full(1, groups), ["base_sd"]))
    for covariate in draws["covariate"].to_numpy() if "coefficient" in draws else ():
        values = draws["coefficient"].sel(covariate=covariate)
        blocks.append((values, of_group, [f"{OF_COVARIATE}{covariate}"] * groups))
    total = sum(len(labels) for _, _, labels in blocks)
    total += sum(data[of].size for *_, of in SIDES.values())
    rows = []
    with Progress(total, f"diagnostics of {total} parameters") as progress:

        def judge(values: np.ndarray, group: np.ndarray, labels: list[str]) -> None:
            rhat, bulk, tail = convergence(values)
            rows.append(
                pd.DataFrame(
                    {"group": group, "name": labels, "rhat": rhat, "ess": np.minimum(bulk, tail)}
                )
            )
            progress.advance(len(labels))

        for values, group, labels in blocks:
            judge(values.to_numpy(), group, labels)
        for side, (effect, mean, dim, of) in SIDES.items():
            label, group = data[dim].to_numpy(), data[of].to_numpy()
            for part, away in deviations(posterior, side):
                names = [f"{effect} - {mean}[{one}]" for one in label[part]]
                judge(away, group[part], names)
    return pd.concat(rows, ignore_index=True)


def predictive_counts(table: FlowTable, posterior: xr.DataTree, *, seed: int) -> pd.DataFrame:
    """Posterior predictive check: how many small cells have each count, and how many should.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior.
    seed : int
        Seed of the replicated tables.

    Returns
    -------
    pandas.DataFrame
        By count from low to high: ``observed`` number of cells, ``expected`` number (mean over
        200 replicated tables), ``lower`` and ``upper`` ends of the central 95 % of replicated
        numbers, ``relative_error`` of the expected number (missing where none was observed).

    References
    ----------
    Gelman, Meng and Stern 1996, Statistica Sinica 6, 733-807.
    """
    return compare_counts(table, posterior, seed=seed)[0]


class Dispersion(NamedTuple):
    """Pearson dispersion of the small counts about the model's means.

    Made by :func:`bayes_sdc.protect_flows`, as ``measured.dispersion``.

    Parameters
    ----------
    value : float
        Mean over posterior draws, 0 or more; near 1 when the model fits.
    lower, upper : float
        Ends of the central 95 % of the same for replicated tables.
    """

    value: float  # mean over posterior draws; 1 when the model fits
    lower: float  # central 95 % of the same for replicated tables
    upper: float


def dispersion(table: FlowTable, posterior: xr.DataTree, *, seed: int) -> Dispersion:
    """Compare the scatter of the small counts with what the model allows.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior.
    seed : int
        Seed of the replicated tables.

    Returns
    -------
    Dispersion
        Mean over cells and posterior draws of (y - mean)^2 / variance, at least 0, and the
        interval in which it lies for tables that the model made.

    References
    ----------
    Gelman, Meng and Stern 1996, Statistica Sinica 6, 733-807.
    """
    cells = fitted_cells(table, posterior)
    rates = rates_by_draw(posterior)
    rng = generator(seed, "dispersion")
    values = np.arange(cells.upper + 1.0)
    observed, replicated = [], []
    for draw in spread_draws(rng, rates.n_draws, min(PREDICTIVE_DRAWS, rates.n_draws)):
        log_rate, rungs = rates.at(cells, int(draw))
        probabilities = counts.probabilities(log_rate, cells.group, rungs)
        mean = probabilities @ values
        variance = np.maximum(probabilities @ values**2 - mean**2, 1e-12)
        replica = counts.draw(log_rate, cells.group, rungs, rng.random(len(log_rate)))
        observed.append(np.mean((cells.y - mean) ** 2 / variance))
        replicated.append(np.mean((replica - mean) ** 2 / variance))
    lower, upper = np.quantile(replicated, [0.025, 0.975])
    return Dispersion(float(np.mean(observed)), float(lower), float(upper))


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
        From :func:`group_diagnostics`.
    predictive : DataFrame
        From :func:`predictive_counts`.
    by_size : DataFrame
        From :func:`bayes_sdc.flows.release.synthetic.predictive.predictive_counts_by_size`.
    dispersion : Dispersion
        From :func:`dispersion`.
    risk : IntruderRisk
        From :func:`bayes_sdc.intruder_risk`.
    base_gain : float
        From :func:`bayes_sdc.flows.release.use.base_gain.base_gain`: the fit to the counts names
        the family that gains it.

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
        _fit("fit to the counts", predictive, MISFIT_FAIL, key="fit", offer=_offer(base_gain)),
        # a class may be a few cells of a large table: to be looked at, but no reason to refuse
        _fit("fit by size of group", by_size, np.inf, key="fit_by_size"),
        _dispersed(dispersion),
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
        + ("; more draws may mend it" if bad.any() else ""),
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


def small_by_size(groups: pd.DataFrame) -> pd.Series:
    """Tell which groups are small, by sizes that everybody sees in the release.

    Parameters
    ----------
    groups : DataFrame
        With ``cells``, ``origins`` and ``destinations``.
    """
    one_area = (groups["origins"] == 1) | (groups["destinations"] == 1)
    return (groups["cells"] < SMALL_GROUP) | one_area


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


def _offer(base_gain: float) -> str:
    """Name the family that learns which counts are heaped or rare, where it is worth its time."""
    if not base_gain > WORTH:
        return ""
    return (
        f"; family 'base', which learns how common each count is wherever it occurs, would gain "
        f"about {base_gain:.2f} a cell in log probability"
    )


def _fit(name: str, predictive: pd.DataFrame, fail: float, *, key: str, offer: str = "") -> Check:
    # a count that nobody has makes no relative error, but may still be one too many replicas have
    error = predictive["relative_error"].fillna(np.inf)
    outside = (predictive["observed"] < predictive["lower"]) | (
        predictive["observed"] > predictive["upper"]
    )
    missed = error[outside & (error.abs() > MISFIT_LIMIT)]
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


def _dispersed(found: Dispersion) -> Check:
    value, lower, upper = (round(n, 2) for n in (found.value, found.lower, found.upper))
    # what passes is what is printed: rounded, and the wider of two intervals
    least, most = min(lower, 1.0 - DISPERSION_LIMIT), max(upper, 1.0 + DISPERSION_LIMIT)
    worst = min(lower, 1.0 - DISPERSION_FAIL), max(upper, 1.0 + DISPERSION_FAIL)
    verdict: Verdict = "pass"
    if not least <= value <= most:
        verdict = "look" if worst[0] <= value <= worst[1] else "fail"
    return Check(
        "dispersion",
        verdict,
        f"Pearson dispersion of the small counts is {value:.2f}; {least:.2f} to {most:.2f} passes "
        f"and beyond {worst[0]:.2f} to {worst[1]:.2f} fails; {lower:.2f} to {upper:.2f} (95 %) in "
        "tables that the model made, and 1 is right; above 1 the counts scatter more than the "
        "model allows",
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
