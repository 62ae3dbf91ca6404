r"""Fewer values of the inclusion probability, from which functions of it are interpolated.

In a file with weights nearly every combination has a p of its own, but what is computed of a
combination is a smooth function of p for each f. Where combinations of equal f have more values of
p than a grid would, the function is evaluated on the grid, equal steps of
:math:`\log(p / (1 - p))`, and interpolated by cubics between its four nearest values. For a
step h the error is about :math:`h^4 / 40` of the value where that is proportional to p.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.microdata.file.tabulate import sums

CERTAIN = 1.0 - 1e-9  # a larger p is a node of its own: log(p / (1 - p)) has no end

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Nodes(NamedTuple):
    """Where a function is evaluated, and how its values make those of the combinations.

    Parameters
    ----------
    first : array of int, shape (node,)
        A combination of the family of each node, from which all but p can be taken.
    p : array of float, shape (node,)
        Probabilities, above 0 and at most 1.
    place : array of int, shape (combination, 4)
        Nodes about each combination; 4 times the same where the node has its very p.
    weight : array of float, shape (combination, 4)
        Their weights, which add up to 1.
    """

    first: Integers
    p: Floats
    place: Integers
    weight: Floats

    def interpolate(self, values: Floats) -> Floats:
        """Return values of the combinations from those of the nodes, by the last axis."""
        total = values[..., self.place[:, 0]] * self.weight[:, 0]
        for k in range(1, 4):
            total += values[..., self.place[:, k]] * self.weight[:, k]
        return np.asarray(total, dtype=np.float64)

    def collect(self, numbers: npt.ArrayLike) -> Floats:
        """Return for each node what it counts in a sum over combinations, shape (node,)."""
        parts = (np.asarray(numbers)[:, None] * self.weight).ravel()
        return np.asarray(sums(self.place.ravel(), parts, len(self.p)), dtype=np.float64)


def nodes_of(family: npt.ArrayLike, p: Floats, step: float | None) -> Nodes:
    """Choose nodes for combinations.

    Parameters
    ----------
    family : array_like of int, shape (combination,)
        Equal where all is equal but p.
    p : array of float, shape (combination,)
        Above 0 and at most 1.
    step : float or None
        Of the grid; None for no grid, so that every family and p has a node.

    Returns
    -------
    Nodes
        Combinations of equal family and p have one node or the same four.

    Examples
    --------
    >>> nodes_of([1, 1, 2], np.array([0.1, 0.1, 0.2]), 0.05).p.tolist()
    [0.1, 0.2]
    >>> p = np.linspace(0.2, 0.3, 10_000)
    >>> found = nodes_of(np.ones(10_000, dtype=int), p, 0.05)
    >>> len(found.p), bool(np.all(np.abs(found.interpolate(found.p**2) - p**2) < 1e-7))
    (15, True)
    """
    member = np.asarray(family, dtype=np.int64)
    order = np.lexsort((p, member))
    new = np.ones(len(p), dtype=bool)
    new[1:] = (np.diff(member[order]) != 0) | (np.diff(p[order]) != 0)
    group = np.empty(len(p), dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    first = order[new]
    chance = p[first]
    with np.errstate(divide="ignore"):
        logit = np.log(chance) - np.log1p(-chance)
    open_ended = chance <= CERTAIN
    place = np.repeat(np.arange(len(first))[:, None], 4, axis=1)
    weight = np.zeros((len(first), 4))
    weight[:, 0] = 1.0
    if step is None or not len(p):
        return Nodes(first, chance, place[group], weight[group])
    starts = np.flatnonzero(np.r_[True, np.diff(member[first]) != 0])
    block = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(first)]))
    low = np.minimum.reduceat(np.where(open_ended, logit, np.inf), starts)
    high = np.maximum.reduceat(np.where(open_ended, logit, -np.inf), starts)
    some = np.isfinite(low)
    lowest = np.floor(np.where(some, low, 0.0) / step).astype(np.int64) - 1
    length = np.floor(np.where(some, high, 0.0) / step).astype(np.int64) + 3 - lowest
    gridded = np.add.reduceat(open_ended.astype(np.int64), starts) > length
    within = gridded[block] & open_ended
    if not within.any():
        return Nodes(first, chance, place[group], weight[group])
    alone = np.flatnonzero(~within)
    place[alone] = np.arange(len(alone))[:, None]
    lengths = np.where(gridded, length, 0)
    offset = len(alone) + np.cumsum(lengths) - lengths
    inside = np.flatnonzero(within)
    position = logit[inside] / step - lowest[block[inside]]
    left = np.floor(position)
    u = position - left
    corner = offset[block[inside]] + left.astype(np.int64) - 1
    place[inside] = corner[:, None] + np.arange(4)
    weight[inside] = np.column_stack(
        [
            -u * (u - 1) * (u - 2) / 6,
            (u + 1) * (u - 1) * (u - 2) / 2,
            -(u + 1) * u * (u - 2) / 2,
            (u + 1) * u * (u - 1) / 6,
        ]
    )
    of = np.repeat(np.arange(len(starts)), lengths)
    where = lowest[of] + np.arange(len(of)) - (offset[of] - len(alone))
    grid = 1.0 / (1.0 + np.exp(-where * step))
    return Nodes(
        np.concatenate([first[alone], first[starts][of]]),
        np.concatenate([chance[alone], grid]),
        place[group],
        weight[group],
    )
