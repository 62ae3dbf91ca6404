"""The small cells of a table as flat arrays: one index space for all groups.

A group has its own effect for each of its origins and destinations, so an area that occurs in
several groups has several effects, labelled ``group|area``. Every module that computes works on
these arrays; labels come back at the edges.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.bound import Bound, bound_of
from bayes_sdc.flows.table.published import published_covariates
from bayes_sdc.flows.table.read import FlowTable

#: Families with the canonical link.
CANONICAL = ("canonical", "base")
CANONICAL_SINCE = 5  # version of the model from which family "base" has it

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]


class SmallCells(NamedTuple):
    """Flat arrays of the small cells; cells are sorted by group, origin, destination."""

    y: Indices  # (cell,) count minus low, 0..upper
    group: Indices  # (cell,) position in groups
    origin: Indices  # (cell,) position in origin_effects; never decreasing
    destination: Indices  # (cell,) position in destination_effects
    group_of_origin: Indices  # (origin_effect,)
    group_of_destination: Indices  # (destination_effect,)
    x: np.ndarray  # (cell, covariate) standardised
    z: np.ndarray  # (group, group covariate) standardised; what moves the mean of the level
    upper: int
    covariates: list[str]
    group_covariates: list[str]
    cells: list[str]
    groups: list[str]
    origin_effects: list[str]
    destination_effects: list[str]
    bound: Bound | None = None  # of the steps from a count to the next
    impossible: tuple[int, ...] = ()  # values of y that a rule excludes
    weight: np.ndarray | None = None  # (cell,) of its log-likelihood, 0 to 1; all 1 without
    canonical: bool = False  # whether rates enter by the canonical link


def small_cells(
    table: FlowTable, *, covariates: str = "none", bound: Bound | None = None,
    impossible: tuple[int, ...] = (),
    weight: np.ndarray | None = None, canonical: bool = False,
) -> SmallCells:  # fmt: skip
    """Number the groups and the effects of a table's small cells.

    Parameters
    ----------
    table : FlowTable
        The table.
    covariates : {"none", "published"}
        Whether published covariates join those of the table; see
        :func:`bayes_sdc.flows.table.published.published_covariates`.
    bound : Bound, optional
        Of the steps of the model; none by default.
    impossible : tuple of int
        Values of ``y`` that a rule excludes; none by default.
    weight : array of float, shape (cell,), optional
        Of the log-likelihood of each cell, in the order of ``table.cells``; 1 by default.
    canonical : bool
        Whether the model takes rates by the canonical link.
    """
    cells = table.cells
    x, z = table.covariates, pd.DataFrame(index=sorted(cells["group"].unique().tolist()))
    if covariates == "published":
        known = published_covariates(table)
        x, z = pd.concat([x, known.cells], axis=1), known.groups
    group, groups = pd.factorize(cells["group"], sort=True)
    origin, origin_effects, group_of_origin = _effects(cells, "origin", group)
    destination, destination_effects, group_of_destination = _effects(cells, "destination", group)
    return SmallCells(
        y=cells["y"].to_numpy(np.int64),
        group=group.astype(np.int64),
        origin=origin,
        destination=destination,
        group_of_origin=group_of_origin,
        group_of_destination=group_of_destination,
        x=np.array(x, dtype=np.float64, order="C"),
        z=np.array(z, dtype=np.float64, order="C"),
        upper=table.high - table.low,
        covariates=[str(name) for name in x.columns],
        group_covariates=[str(name) for name in z.columns],
        cells=cells.index.tolist(),
        groups=[str(label) for label in groups],
        origin_effects=origin_effects,
        destination_effects=destination_effects,
        bound=bound,
        impossible=impossible,
        weight=weight,
        canonical=canonical,
    )


def fitted_cells(table: FlowTable, posterior: xr.DataTree) -> SmallCells:
    """The small cells as a posterior was fitted to them: covariates, bound, rule, weights and link.

    Raises
    ------
    InputError
        If the posterior is of a model that an earlier version had.
    """
    made = posterior.attrs
    if made.get("family") == "base" and int(made.get("model_version", 0)) < CANONICAL_SINCE:
        raise InputError(
            "the posterior has family 'base' with the log of the mean as link, as versions before "
            "this one had it; fit it again"
        )
    return small_cells(
        table, covariates=made.get("covariates", "none"), bound=bound_of(made),
        impossible=impossible_of(made), weight=weights_of(posterior),
        canonical=made.get("family") in CANONICAL,
    )  # fmt: skip


def weights_of(posterior: xr.DataTree) -> np.ndarray | None:
    """Weights of the cells that a posterior was fitted with; None where it had none."""
    if "constant_data" not in posterior.children or "weight" not in posterior["constant_data"]:
        return None
    return np.asarray(posterior["constant_data"]["weight"].to_numpy(), np.float64)


def impossible_of(attributes: Mapping[Any, Any]) -> tuple[int, ...]:
    """Values of y, from 0, that the rule of a fit excludes.

    Examples
    --------
    >>> impossible_of({"low": 1, "impossible": "[1, 2]"}), impossible_of({})
    ((0, 1), ())
    """
    counts = json.loads(attributes.get("impossible", "[]"))
    return tuple(int(count) - int(attributes["low"]) for count in counts)


def under_rule(table: FlowTable, impossible: tuple[int, ...]) -> FlowTable:
    """The same table, with the values of ``y`` that a rule excludes."""
    return table if table.impossible == impossible else replace(table, impossible=impossible)


def _effects(
    cells: pd.DataFrame, side: str, group: np.ndarray
) -> tuple[Indices, list[str], Indices]:
    """Number the distinct (group, area) pairs in sorted order."""
    area, areas = pd.factorize(cells[side], sort=True)
    pairs, index = np.unique(group * max(len(areas), 1) + area, return_inverse=True)
    group_of_effect, area_of_effect = np.divmod(pairs, max(len(areas), 1))
    # lists, because one element of an index of pandas takes as long as a hundred of theirs
    names, codes = pd.factorize(cells["group"], sort=True)[1].tolist(), areas.tolist()
    labels = [
        f"{names[g]}|{codes[a]}"
        for g, a in zip(group_of_effect.tolist(), area_of_effect.tolist(), strict=True)
    ]
    return index.astype(np.int64), labels, group_of_effect.astype(np.int64)


def subset(whole: SmallCells, groups: Indices) -> SmallCells:
    """Keep some groups (positions in ascending order), renumbered."""
    keep = np.isin(whole.group, groups)
    keep_origin = np.isin(whole.group_of_origin, groups)
    keep_destination = np.isin(whole.group_of_destination, groups)
    new_origin, new_destination = np.cumsum(keep_origin) - 1, np.cumsum(keep_destination) - 1
    return SmallCells(
        y=whole.y[keep],
        group=np.searchsorted(groups, whole.group[keep]),
        origin=new_origin[whole.origin[keep]],
        destination=new_destination[whole.destination[keep]],
        group_of_origin=np.searchsorted(groups, whole.group_of_origin[keep_origin]),
        group_of_destination=np.searchsorted(groups, whole.group_of_destination[keep_destination]),
        x=whole.x[keep],
        z=whole.z[groups],
        upper=whole.upper,
        covariates=whole.covariates,
        group_covariates=whole.group_covariates,
        cells=[label for label, kept in zip(whole.cells, keep, strict=True) if kept],
        groups=[whole.groups[g] for g in groups],
        origin_effects=_kept(whole.origin_effects, keep_origin),
        destination_effects=_kept(whole.destination_effects, keep_destination),
        bound=whole.bound,
        impossible=whole.impossible,
        weight=None if whole.weight is None else whole.weight[keep],
        canonical=whole.canonical,
    )


def thin(whole: SmallCells, keep: np.ndarray) -> SmallCells:
    """Keep some cells (a boolean mask), but every group and effect, to hold out the others."""
    return whole._replace(
        y=whole.y[keep],
        group=whole.group[keep],
        origin=whole.origin[keep],
        destination=whole.destination[keep],
        x=whole.x[keep],
        cells=_kept(whole.cells, keep),
        weight=None if whole.weight is None else whole.weight[keep],
    )


def _kept(labels: list[str], keep: np.ndarray) -> list[str]:
    return [label for label, kept in zip(labels, keep, strict=True) if kept]


def identity(table: FlowTable, cells: SmallCells) -> dict[str, str | int]:
    """What ties a posterior to the columns, groups and cells that it was fitted to."""
    columns = [table.origin, table.destination, table.count, *table.groups]
    labels = [*cells.cells, *cells.groups, *cells.origin_effects, *cells.destination_effects]
    labels += [*cells.covariates, *cells.group_covariates]
    digest = hashlib.sha256("\x1f".join(labels).encode())
    for values in (cells.y, cells.group, cells.origin, cells.destination, cells.x, cells.z):
        digest.update(values.tobytes())
    if cells.weight is not None:
        digest.update(cells.weight.tobytes())
    return {
        "low": table.low,
        "high": table.high,
        "input_sha256": table.sha256,
        "columns": json.dumps(columns),
        "cells_sha256": digest.hexdigest(),
    }
