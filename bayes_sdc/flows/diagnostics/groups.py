"""Convergence of each group, and where the prior decides instead of the counts."""

import numpy as np
import pandas as pd
import xarray as xr
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bayes_sdc.convergence import ESS_FAIL, ESS_LIMIT, RHAT_FAIL, RHAT_LIMIT, convergence
from bayes_sdc.flows.model.parameters import NATION, OF_COVARIATE, OF_GROUP, SIDES, deviations
from bayes_sdc.progress import Progress

SMALL_GROUP = 10  # cells; with fewer, or with one area on a side, the prior decides


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
        ``destinations``, ``blocks`` (parts of the group that share no area: the prior decides their
        levels relative to each other), ``parameters`` (alpha, phi_beta, phi_gamma, r, coefficients,
        and the deviations of beta and gamma from their means, which the data inform), ``rhat``
        (largest, rank-normalised split R-hat), ``ess`` (smallest of bulk and tail ESS), ``worst``
        (the parameter farthest beyond the limits of R-hat and ESS, or nearest to them),
        ``rhat_above`` and ``ess_below`` (numbers of parameters beyond the limits), ``divergences``,
        ``at_bound`` (effects all of whose counts are the smallest, or all the largest: the prior
        decides how far beyond them the rate lies), ``by_prior`` (fewer than ten cells, one area on
        a side, or all counts at one bound: the prior decides the rates) and ``verdict``. Worst
        first: groups that fail, then by their worst parameter.

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
    """How many of something each group has; with the pooled prior also all groups together."""
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


def small_by_size(groups: pd.DataFrame) -> pd.Series:
    """Tell which groups are small, by sizes that everybody sees in the release.

    Parameters
    ----------
    groups : DataFrame
        With ``cells``, ``origins`` and ``destinations``.
    """
    one_area = (groups["origins"] == 1) | (groups["destinations"] == 1)
    return (groups["cells"] < SMALL_GROUP) | one_area
