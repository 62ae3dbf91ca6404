"""Blocks of target cells, each with the effects, neighbours and posterior draws that it needs.

A target needs all cells of its two effects, and the draws of the effects of these cells on the
other side. Targets that share effects form a block, so the work on an effect is done once for many
of them, and memory is bounded whatever the number of cells.
"""

from typing import NamedTuple

import numpy as np
import xarray as xr

from bayes_sdc.flows.intruder.estimators.refit import SMALLEST_PRECISION
from bayes_sdc.flows.model.bounded import row_of
from bayes_sdc.flows.model.rates import base_by_draw
from bayes_sdc.flows.table.cells import SmallCells


class Draws(NamedTuple):
    """Thinned posterior draws of some groups, the chains one after another: (draw, ...)."""

    beta: np.ndarray  # (draw, origin_effect)
    gamma: np.ndarray  # (draw, destination_effect)
    mean_beta: np.ndarray  # (draw, group)
    mean_gamma: np.ndarray  # (draw, group)
    sd_beta: np.ndarray  # (draw, group)
    sd_gamma: np.ndarray  # (draw, group)
    log_cv: np.ndarray  # (draw, group) minus infinity for the Poisson family
    coefficient: np.ndarray  # (draw, group, covariate)
    bound: np.ndarray  # (K + 1,) centres of the steps, then half their width; 0 without a bound
    base: np.ndarray  # (draw, K + 1) log of the base measure; 0 without one
    canonical: bool  # whether the rate is the argument of the power series


class Side(NamedTuple):
    """Effects of one side, and all cells of each; positions are those among the draws."""

    effect: np.ndarray  # (effect,)
    group: np.ndarray  # (effect,)
    runs: np.ndarray  # (effect + 1,) of the cells
    y: np.ndarray  # (cell of an effect,)
    other: np.ndarray  # (cell of an effect,) its effect on the other side
    x: np.ndarray  # (cell of an effect, covariate)
    weight: np.ndarray  # (cell of an effect,) of its log-likelihood


class Targets(NamedTuple):
    """The target cells of a block."""

    y: np.ndarray  # (target,)
    group: np.ndarray  # (target,) position among the draws
    origin: np.ndarray  # (target,) position among the block's origins
    destination: np.ndarray  # (target,) position among the block's destinations
    x: np.ndarray  # (target, covariate)
    weight: np.ndarray  # (target,) of its log-likelihood


class Neighbours(NamedTuple):
    """The cells of each effect of a whole table, as runs of cells in order of the effect."""

    by_origin: np.ndarray  # (cell,)
    of_origin: np.ndarray  # (origin_effect + 1,)
    by_destination: np.ndarray  # (cell,)
    of_destination: np.ndarray  # (destination_effect + 1,)


def neighbours(cells: SmallCells) -> Neighbours:
    """Sort the cells of a table by either effect."""

    def sort(effect: np.ndarray, effects: int) -> tuple[np.ndarray, np.ndarray]:
        ends = np.cumsum(np.bincount(effect, minlength=effects))
        return np.argsort(effect, kind="stable"), np.concatenate([[0], ends])

    return Neighbours(
        *sort(cells.origin, len(cells.group_of_origin)),
        *sort(cells.destination, len(cells.group_of_destination)),
    )


def blocks(
    cells: SmallCells, targets: np.ndarray, *, target: int, effect: int, room: int
) -> list[np.ndarray]:
    """Positions of targets, in blocks of whole groups, or of a part of one group.

    Parameters
    ----------
    cells : SmallCells
        All small cells.
    targets : array of int
        Positions of the target cells, ascending.
    target, effect : int
        Bytes for each target, and for each effect of its group.
    room : int
        Bytes that a block may take, but for the effects of one group.

    Returns
    -------
    list of array of int
        Positions in ``targets``; together all, each once.
    """
    group, origin, destination = (
        index[targets] for index in (cells.group, cells.origin, cells.destination)
    )
    size = np.bincount(cells.group_of_origin, minlength=len(cells.groups))
    size += np.bincount(cells.group_of_destination, minlength=len(cells.groups))

    def halves(positions: np.ndarray) -> list[np.ndarray]:
        """Halve a group, by the side with more effects, until it fits."""
        if len(positions) * target <= room or len(positions) == 1:
            return [np.sort(positions)]
        sides = [side[positions] for side in (origin, destination)]
        longer = max(sides, key=lambda side: len(np.unique(side)))
        order = positions[np.argsort(longer, kind="stable")]
        return [*halves(order[: len(order) // 2]), *halves(order[len(order) // 2 :])]

    result: list[np.ndarray] = []
    taken = room  # of the last block
    for members in np.split(np.arange(len(targets)), np.flatnonzero(np.diff(group)) + 1):
        needed = len(members) * target + int(size[group[members[0]]]) * effect
        if taken + needed <= room:
            result[-1] = np.concatenate([result[-1], members])
            taken += needed
        else:
            result += halves(members)
            taken = needed
    return result


def block_of(
    posterior: xr.DataTree,
    kept: np.ndarray,
    cells: SmallCells,
    near: Neighbours,
    targets: np.ndarray,
) -> tuple[Draws, Side, Side, Targets]:
    """Take from the table and the kept draws of each chain what the targets need."""
    groups = np.unique(cells.group[targets])
    origins = np.flatnonzero(np.isin(cells.group_of_origin, groups))
    destinations = np.flatnonzero(np.isin(cells.group_of_destination, groups))
    weight = np.ones(len(cells.y)) if cells.weight is None else cells.weight

    def side(
        own: np.ndarray, own_effects: np.ndarray, group_of_own: np.ndarray,
        other: np.ndarray, other_effects: np.ndarray, order: np.ndarray, runs: np.ndarray,
    ) -> tuple[Side, np.ndarray]:  # fmt: skip
        effects, position = np.unique(own[targets], return_inverse=True)
        length = np.diff(runs)[effects]
        after = np.cumsum(length)
        members = order[np.arange(after[-1]) + np.repeat(runs[effects] - after + length, length)]
        result = Side(
            effect=np.searchsorted(own_effects, effects),
            group=np.searchsorted(groups, group_of_own[effects]),
            runs=np.concatenate([[0], after]),
            y=cells.y[members],
            other=np.searchsorted(other_effects, other[members]),
            x=cells.x[members],
            weight=weight[members],
        )
        return result, position

    from_origins, origin = side(
        cells.origin, origins, cells.group_of_origin,
        cells.destination, destinations, near.by_origin, near.of_origin,
    )  # fmt: skip
    from_destinations, destination = side(
        cells.destination, destinations, cells.group_of_destination,
        cells.origin, origins, near.by_destination, near.of_destination,
    )  # fmt: skip
    return (
        _draws(
            posterior,
            kept,
            groups,
            origins,
            destinations,
            row_of(cells.bound, cells.upper),
            cells.canonical,
        ),
        from_origins,
        from_destinations,
        Targets(
            y=cells.y[targets],
            group=np.searchsorted(groups, cells.group[targets]),
            origin=origin,
            destination=destination,
            x=cells.x[targets],
            weight=weight[targets],
        ),
    )


def _draws(
    posterior: xr.DataTree,
    kept: np.ndarray,
    groups: np.ndarray,
    origins: np.ndarray,
    destinations: np.ndarray,
    bound: np.ndarray,
    canonical: bool,
) -> Draws:
    draws = posterior["posterior"]

    def of(name: str, columns: np.ndarray) -> np.ndarray:
        values = draws[name].to_numpy()[:, kept[:, None], columns]
        return np.ascontiguousarray(values.reshape(-1, *values.shape[2:]), dtype=np.float64)

    def sd(name: str) -> np.ndarray:
        # a precision of the paper's prior may underflow
        precision = np.clip(of(name, groups), SMALLEST_PRECISION, 1.0 / SMALLEST_PRECISION)
        return np.asarray(precision**-0.5)

    alpha = of("alpha", groups)
    base = base_by_draw(posterior)
    if base is None:
        measure = np.zeros((len(alpha), len(bound)))
    else:
        length = draws["alpha"].sizes["draw"]
        measure = base.reshape(-1, length, len(bound))[:, kept].reshape(-1, len(bound))
    poisson, none = np.full_like(alpha, -np.inf), np.empty((*alpha.shape, 0))
    return Draws(
        beta=of("beta", origins),
        gamma=of("gamma", destinations),
        mean_beta=of("mu_beta", groups),
        mean_gamma=of("mu_gamma", groups),
        sd_beta=sd("phi_beta"),
        sd_gamma=sd("phi_gamma"),
        log_cv=-0.5 * np.log(of("r", groups)) if "r" in draws else poisson,
        coefficient=of("coefficient", groups) if "coefficient" in draws else none,
        bound=bound,
        base=np.ascontiguousarray(measure),
        canonical=canonical,
    )
