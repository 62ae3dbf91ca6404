"""Labels beside marks, placed where they cover neither a mark, nor a line, nor each other."""

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

AWAY = (7.0, 12.0, 18.0, 26.0, 36.0, 50.0)  # points from the mark, the nearest first
DIRECTIONS = 12
WIDTH, HEIGHT = 0.68, 1.1  # of a letter with some space, in units of the font size
APART = 3.0  # points between labels side by side, or 1 and 10 are read as 110
BETWEEN = 24  # places tested along each piece of a line


def label_marks(
    axes: Axes, marks: np.ndarray, texts: Sequence[str], *, lines: Sequence[np.ndarray] = ()
) -> None:
    """Write a text beside each mark, at the nearest place that is free.

    Limits and size of the axes must be final; the layout of the figure is done here.

    Parameters
    ----------
    axes : matplotlib Axes
        Where the marks are.
    marks : array of float, shape (mark, 2)
        In units of the data.
    texts : sequence of str
        One for each mark.
    lines : sequence of array of float, shape (point, 2)
        Lines that must not be covered.
    """
    root = axes.get_figure(root=True)
    if root is None:
        return
    root.draw_without_rendering()  # lays the axes out
    scale = 72.0 / root.dpi  # points a pixel
    size = 8.0
    taken = np.concatenate([_places(axes, line) for line in lines] or [np.empty((0, 2))]) * scale
    frame = np.asarray(axes.get_window_extent().extents) * scale
    boxes: list[np.ndarray] = []  # left, bottom, right, top of each label
    at = axes.transData.transform(marks) * scale
    for mark, place, text in zip(marks.tolist(), at, texts, strict=True):
        half = (np.array([WIDTH * len(text), HEIGHT]) * size + np.array([APART, 0.0])) / 2.0
        best, least = np.zeros(2), np.inf
        for shift in _shifts(half):
            middle = place + shift
            box = np.concatenate([middle - half, middle + half])
            # a label on a label cannot be read, one on a line can
            cost = _covered(box, taken) + 1000 * _overlaps(box, boxes)
            cost += 1000 * _outside(box, frame)
            if cost < least:
                best, least = shift, cost
            if least == 0:
                break
        middle = place + best
        boxes.append(np.concatenate([middle - half, middle + half]))
        axes.annotate(
            text,
            (mark[0], mark[1]),
            xytext=(float(best[0]), float(best[1])),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=size,
        )


def _shifts(half: np.ndarray) -> list[np.ndarray]:
    """Places of the middle of a label about its mark, the nearest first, from the upper right."""
    angle = np.pi / 4 + 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    unit = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return [one * (away + half - half.min()) for away in AWAY for one in unit]


def _places(axes: Axes, line: np.ndarray) -> np.ndarray:
    """Pixels along a line, its points among them."""
    points = axes.transData.transform(line)
    along = np.linspace(0.0, 1.0, BETWEEN)[:, None]
    pieces = [a + (b - a) * along for a, b in itertools.pairwise(points)]
    # a mark is wider than a line, so the places beside it count as well
    around = np.array([[0, 0], [4, 0], [-4, 0], [0, 4], [0, -4]], dtype=float)
    wide = (points[:, None] + around).reshape(-1, 2)
    return np.concatenate([wide, *pieces])


def _covered(box: np.ndarray, places: np.ndarray) -> int:
    inside = (places >= box[:2]).all(axis=1) & (places <= box[2:]).all(axis=1)
    return int(inside.sum())


def _overlaps(box: np.ndarray, boxes: Sequence[np.ndarray]) -> int:
    return sum(bool((box[:2] < one[2:]).all() and (one[:2] < box[2:]).all()) for one in boxes)


def _outside(box: np.ndarray, frame: np.ndarray) -> bool:
    return bool((box[:2] < frame[:2]).any() or (box[2:] > frame[2:]).any())
