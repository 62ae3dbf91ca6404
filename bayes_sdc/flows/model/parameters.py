"""What a posterior says about its parameters: draws by name, and effects with intervals.

The data can tell a group's level, the deviations of its effects from their means, and scales. Beta,
gamma and their means also hold delta, which is drawn from its prior alone: that noise mixes
perfectly and would hide a deviation that mixes badly.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.errors import InputError

NATION = "(national distribution)"  # where the pooled prior's parameters stand among the groups
CI_PROB = 0.89  # arviz's default, and with it equal tails ("eti")
SIDES = {
    "origin": ("beta", "mu_beta", "origin_effect", "group_of_origin"),
    "destination": ("gamma", "mu_gamma", "destination_effect", "group_of_destination"),
}
OF_GROUP, OF_COVARIATE = ("alpha", "phi_beta", "phi_gamma", "r"), "coefficient of "
EFFECTS_AT_A_TIME = 2000  # whose deviations are in memory together


def draws_of(posterior: xr.DataTree, group: str, name: str) -> xr.DataArray:
    """Draws of one parameter, named as in the column ``worst`` of the diagnostics.

    Parameters
    ----------
    posterior : xarray.DataTree
        From :func:`bayes_sdc.fit_flows`.
    group : str
        A group, or ``(national distribution)``.
    name : str
        Such as ``alpha`` or ``beta - mu_beta[group|area]``.

    Returns
    -------
    DataArray (chain, draw)

    Raises
    ------
    InputError
        If there is no such group or parameter.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=10, tune=10, chains=2, seed=1)
    >>> draws_of(posterior, "all", "beta - mu_beta[all|a]").dims
    ('chain', 'draw')
    """
    draws = posterior["posterior"].to_dataset()
    wanted, _, label = name.partition("[")
    label = label.removesuffix("]")
    if group == NATION:
        if wanted in ("national_mean", "national_sd") and wanted in draws:
            return _at(draws[wanted], "parameter", label, name)
        if wanted == "national_slope" and wanted in draws:
            return _at(draws[wanted], "group_covariate", label, name)
        if wanted == "base" and wanted in draws:
            return draws["base"].isel(value=_place(draws["value"], label, name), drop=True)
        if name == "base_sd" and name in draws:
            return draws[name]
    elif group not in draws["group"]:
        raise InputError(f"there is no group {group!r} in this posterior")
    elif name in OF_GROUP and name in draws:
        return _at(draws[name], "group", group, name)
    elif name.startswith(OF_COVARIATE) and "coefficient" in draws:
        coefficient = draws["coefficient"].sel(group=group, drop=True)
        return _at(coefficient, "covariate", name.removeprefix(OF_COVARIATE), name)
    for effect, mean, dim, _ in SIDES.values():
        if wanted == f"{effect} - {mean}" and label.startswith(f"{group}|"):
            return _at(draws[effect], dim, label, name) - draws[mean].sel(group=group, drop=True)
    raise InputError(f"there is no parameter {name!r} of {group!r} in this posterior")


def _place(counts: xr.DataArray, label: str, name: str) -> int:
    """Position of a count of the base measure."""
    labels = [str(count) for count in counts.to_numpy()]
    if label not in labels:
        raise InputError(f"there is no parameter {name!r} in this posterior")
    return labels.index(label)


def _at(draws: xr.DataArray, dim: str, label: str, name: str) -> xr.DataArray:
    if label not in draws[dim]:
        raise InputError(f"there is no parameter {name!r} in this posterior")
    return draws.sel({dim: label}, drop=True)


def deviations(posterior: xr.DataTree, side: str) -> Iterator[tuple[slice, np.ndarray]]:
    """Effects of a side less the mean of their group, some at a time: a nation has many.

    Parameters
    ----------
    posterior : xarray.DataTree
        From :func:`bayes_sdc.fit_flows`.
    side : {"origin", "destination"}
        Which effects.

    Yields
    ------
    slice, array of float, shape (chain, draw, effect)
        Which effects they are, and their deviations.
    """
    effect, mean, _, of = SIDES[side]
    draws = posterior["posterior"].to_dataset()
    group = posterior["constant_data"][of].to_numpy()
    values, means = draws[effect].to_numpy(), draws[mean].to_numpy()
    for start in range(0, len(group), EFFECTS_AT_A_TIME):
        part = slice(start, start + EFFECTS_AT_A_TIME)
        yield part, values[..., part] - means[..., group[part]]


def effects(posterior: xr.DataTree, *, ci_prob: float = CI_PROB) -> pd.DataFrame:
    """Origin and destination effects as deviations from their group's mean, with intervals.

    Parameters
    ----------
    posterior : xarray.DataTree
        From :func:`bayes_sdc.fit_flows`.
    ci_prob : float
        Probability of the interval, above 0 and below 1. Its tails are equal ("eti").

    Returns
    -------
    DataFrame
        One row per effect: ``side`` ("origin", "destination"), ``group``, ``area``, and ``median``,
        ``lower`` and ``upper`` of the deviation, on the scale of the log rate. Confidential.

    Raises
    ------
    InputError
        If ``ci_prob`` is not strictly between 0 and 1.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=10, tune=10, chains=2, seed=1)
    >>> effects(posterior)[["side", "area"]].to_numpy().tolist()
    [['origin', 'a'], ['origin', 'b'], ['destination', 'x'], ['destination', 'y']]
    """
    if not 0.0 < ci_prob < 1.0:
        raise InputError(f"ci_prob must be above 0 and below 1; it is {ci_prob}")
    data = posterior["constant_data"].to_dataset()
    groups = data["group"].to_numpy()
    tail = (1.0 - ci_prob) / 2.0
    frames = []
    for side, (_, _, dim, of) in SIDES.items():
        group = data[of].to_numpy()
        labels = data[dim].to_numpy()
        quantiles = [
            np.quantile(values, [0.5, tail, 1.0 - tail], axis=(0, 1))
            for _, values in deviations(posterior, side)
        ]
        names = groups[group]
        frame = pd.DataFrame(
            np.concatenate(quantiles, axis=1).T, columns=["median", "lower", "upper"]
        )
        # a label is group|area, and either may hold the bar
        areas = [label[len(name) + 1 :] for label, name in zip(labels, names, strict=True)]
        frame.insert(0, "side", side)
        frame.insert(1, "group", names)
        frame.insert(2, "area", areas)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def extreme(frame: pd.DataFrame, *, number: int, group: str | None = None) -> pd.DataFrame:
    """The effects of each side whose median is farthest from 0, farthest first.

    Parameters
    ----------
    frame : DataFrame
        From :func:`effects`.
    number : int
        Effects on each side.
    group : str, optional
        Effects of this group only.

    Returns
    -------
    DataFrame
        Rows of the frame, origins first.

    Raises
    ------
    InputError
        If there is no such group, or ``number`` is below 1.

    Examples
    --------
    >>> rows = {"side": ["origin"] * 3, "group": ["g"] * 3, "median": [0.1, -2.0, 1.0]}
    >>> extreme(pd.DataFrame(rows), number=2)["median"].tolist()
    [-2.0, 1.0]
    """
    if number < 1:
        raise InputError(f"number must be 1 or more; it is {number}")
    if group is not None:
        if group not in set(frame["group"]):
            raise InputError(f"there is no group {group!r} in this posterior")
        frame = frame[frame["group"] == group]
    ordered = frame.sort_values("median", key=abs, ascending=False, kind="stable")
    sides = [ordered[ordered["side"] == side].iloc[:number] for side in SIDES]
    return pd.concat(sides)
