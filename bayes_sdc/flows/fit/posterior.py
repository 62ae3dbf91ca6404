"""Parts of a fit put together into one tree with labels."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from bayes_sdc.flows.fit.checkpoint import Part
from bayes_sdc.flows.model.hyperpriors import PARAMETERS
from bayes_sdc.flows.table.cells import SmallCells

EFFECTS_A_PIECE = 1000  # of a posterior on disk

#: Dimensions after chain and draw of what is not by group.
DIMENSIONS: dict[str, tuple[str, ...]] = {
    "beta": ("origin_effect",),
    "acceptance_beta": ("origin_effect",),
    "gamma": ("destination_effect",),
    "acceptance_gamma": ("destination_effect",),
    "coefficient": ("group", "covariate"),
    "national_mean": ("parameter",),
    "national_sd": ("parameter",),
    "national_slope": ("group_covariate",),
    "base": ("value",),
    "base_sd": (),
}


def assemble(cells: SmallCells, parts: list[Part], attributes: dict[str, Any]) -> xr.DataTree:
    """Make the posterior of all groups from the finished parts.

    Parameters
    ----------
    cells : SmallCells
        All small cells.
    parts : list of Part
        Together all groups, each once.
    attributes : dict
        Settings of the fit.

    Returns
    -------
    xarray.DataTree
        As :func:`bayes_sdc.fit_flows` describes it.
    """
    positions = [_positions(cells, part.groups) for part in parts]
    labels = _labels(cells, attributes, poisson="r" not in parts[0].posterior)

    def gather(kind: str, name: str) -> tuple[tuple[str, ...], np.ndarray]:
        dims = DIMENSIONS.get(name, ("group",))
        first = getattr(parts[0], kind)[name]
        leading = ("chain", "draw")[: first.ndim - len(dims)]
        if not dims or dims[0] in ("parameter", "group_covariate", "value"):  # one for all groups
            return (*leading, *dims), first
        if dims[0] == "group" and first.shape[len(leading)] != len(parts[0].groups):
            return leading, first[..., 0]  # statistics of groups that were sampled as one model
        if len(parts) == 1:  # the draws of a nation are not copied
            return (*leading, *dims), first
        size = (*first.shape[: len(leading)], *(len(labels[dim]) for dim in dims))
        values = np.empty(size, first.dtype)
        for part, where in zip(parts, positions, strict=True):
            axis_first = np.moveaxis(values, len(leading), 0)
            axis_first[where[dims[0]]] = np.moveaxis(getattr(part, kind)[name], len(leading), 0)
        return (*leading, *dims), values

    chains, draws = parts[0].posterior["alpha"].shape[:2]
    coords = {"chain": np.arange(chains), "draw": np.arange(draws), **labels}

    def dataset(kind: str, **more: Any) -> xr.Dataset:
        variables = {name: gather(kind, name) for name in getattr(parts[0], kind)}
        used = {dim for dims, _ in variables.values() for dim in dims}
        return xr.Dataset(
            variables, coords={dim: coords[dim] for dim in coords if dim in used}, **more
        )

    of_cell = {"cell": cells.cells}
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=attributes),
            "posterior": dataset("posterior", attrs=attributes),
            "sample_stats": dataset("statistics"),
            "observed_data": xr.Dataset({"y": ("cell", cells.y)}, coords=of_cell),
            "constant_data": xr.Dataset(
                {
                    "group_index": ("cell", cells.group),
                    "origin_index": ("cell", cells.origin),
                    "destination_index": ("cell", cells.destination),
                    **({"x": (("cell", "covariate"), cells.x)} if cells.covariates else {}),
                    **({"z": (("group", "group_covariate"), cells.z)} if len(cells.z.T) else {}),
                    "group_of_origin": ("origin_effect", cells.group_of_origin),
                    "group_of_destination": ("destination_effect", cells.group_of_destination),
                    "upper": ((), cells.upper),
                    **({} if cells.weight is None else {"weight": ("cell", cells.weight)}),
                },
                coords={
                    **of_cell,
                    **{d: each for d, each in labels.items() if d not in ("parameter", "value")},
                },
            ),
        }
    )


def write_posterior(posterior: xr.DataTree, path: Path) -> None:
    """Write a posterior as netCDF, its effects in pieces: consecutive groups can be read alone.

    The file is made in memory: a full disk would end the process inside HDF5.

    Parameters
    ----------
    posterior : DataTree
        From :func:`bayes_sdc.fit_flows`.
    path : Path
        The file; confidential.
    """
    draws = posterior["posterior"].to_dataset()
    pieces = {
        name: {"chunksizes": (*draws[name].shape[:2], min(EFFECTS_A_PIECE, draws[name].shape[2]))}
        for name in ("beta", "gamma")
    }
    content = posterior.to_netcdf(None, engine="h5netcdf", encoding={"/posterior": pieces})
    path.write_bytes(content)


def _positions(cells: SmallCells, groups: np.ndarray) -> dict[str, np.ndarray]:
    """Where the groups of a part and their effects stand in the whole."""
    return {
        "group": groups,
        "origin_effect": np.flatnonzero(np.isin(cells.group_of_origin, groups)),
        "destination_effect": np.flatnonzero(np.isin(cells.group_of_destination, groups)),
    }


def _values(cells: SmallCells, attributes: Mapping[str, Any]) -> list[int]:
    """Counts that can occur, as the table has them."""
    ys = range(cells.upper + 1)
    return [int(attributes["low"]) + y for y in ys if y not in cells.impossible]


def _labels(
    cells: SmallCells, attributes: Mapping[str, Any], *, poisson: bool
) -> dict[str, list[Any]]:
    parameters = [name for name in PARAMETERS if not (poisson and name == "log_cv")]
    return {
        "group": cells.groups,
        "origin_effect": cells.origin_effects,
        "destination_effect": cells.destination_effects,
        **({"covariate": cells.covariates} if cells.covariates else {}),
        **({"group_covariate": cells.group_covariates} if cells.group_covariates else {}),
        **({"value": _values(cells, attributes)} if attributes["family"] == "base" else {}),
        "parameter": [*parameters, *(f"coefficient of {name}" for name in cells.covariates)],
    }
