"""Areas of a map that lie far from the rest, such as islands, which get maps of their own."""

from collections.abc import Sequence

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from bayes_sdc.shapes import Shapes

FAR = 0.15  # largest gap between neighbours, as a share of the diagonal of all areas
MARGIN = 0.03  # about the areas, as a share of their extent
MOST = 3  # maps beside

Box = tuple[float, float, float, float]  # left, bottom, right, top


def boxes_of(shapes: Shapes) -> np.ndarray:
    """Bounds of each area: (area, 4) left, bottom, right, top."""
    found = []
    for area in shapes.outlines.values():
        points = np.concatenate([ring for polygon in area for ring in polygon])
        found.append(np.concatenate([points.min(axis=0), points.max(axis=0)]))
    return np.array(found)


def parts_of(boxes: np.ndarray, shown: np.ndarray) -> list[np.ndarray]:
    """Split the areas that are shown into parts far from each other, the largest first.

    Parameters
    ----------
    boxes : array of float, shape (area, 4)
        From :func:`boxes_of`.
    shown : array of bool, shape (area,)
        Areas with a value; without any, all are taken.

    Returns
    -------
    list of array of int
        Positions of the areas of each part, at most one more than :data:`MOST`; further ones join
        the first, so that nothing is lost.

    Examples
    --------
    >>> left = np.array([0.0, 1.0, 2.0, 30.0])
    >>> boxes = np.stack([left, 0 * left, left + 1, 0 * left + 1], axis=1)
    >>> [part.tolist() for part in parts_of(boxes, np.ones(4, bool))]
    [[0, 1, 2], [3]]
    """
    taken = np.flatnonzero(shown) if shown.any() else np.arange(len(boxes))
    if len(taken) < 3:
        return [taken]
    middle = (boxes[taken, :2] + boxes[taken, 2:]) / 2.0
    # the extent that most areas have: one far island must not make all others neighbours
    low, high = np.quantile(middle, [0.05, 0.95], axis=0)
    reach = FAR * float(np.hypot(*(high - low)))
    if reach <= 0.0:
        return [taken]
    # on a grid far finer than the reach, so that thousands of areas are as quick as hundreds
    grid, place = np.unique(np.round(middle / reach * 8.0), axis=0, return_inverse=True)
    if len(grid) < 2:
        return [taken]
    part = fcluster(linkage(grid, "single"), 8.0, "distance")[place.ravel()]
    order = sorted(np.unique(part), key=lambda one: -int((part == one).sum()))
    parts = [taken[part == one] for one in order]
    first = np.sort(np.concatenate([parts[0], *parts[MOST + 1 :]]))
    return [first, *parts[1 : MOST + 1]]


def around(boxes: np.ndarray, areas: Sequence[int] | np.ndarray) -> Box:
    """Bounds of some areas with a margin."""
    low, high = boxes[areas, :2].min(axis=0), boxes[areas, 2:].max(axis=0)
    margin = MARGIN * np.maximum(high - low, 1e-9)
    return (*(low - margin), *(high + margin))
