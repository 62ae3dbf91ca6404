"""Whether the count is a sum, a difference, a product or a formula of other columns, or nearly.

The columns are weighted to give the count on one half of the rows, or on the safe rows, whose
counts are public. Their prediction for other small rows is compared with the truth.
"""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

MOST_ROWS = 5_000  # that are fitted, and judged
MOST_CURVED = 6  # columns up to which roots and products of two are weighed too
SURE = 0.5  # of the variance and of the small counts, so that a formula is no accident
SUM, PRODUCT = "added and subtracted", "multiplied and divided"
CURVED = "with their roots and products added and subtracted"


class Identity(NamedTuple):
    """How well weighted columns predict small counts that they were not fitted to."""

    places: tuple[int, ...]  # of the columns that are needed
    hits: float  # share of the small counts that is right after rounding
    explained: float  # share of the variance; below 0 where the mean says more
    rows: int
    how: str  # in words


def identity(
    columns: Numbers, count: Numbers, small: npt.NDArray[np.bool_], rng: np.random.Generator
) -> Identity | None:
    """Return the best fit of the counts by columns, or None where nothing can be fitted.

    Parameters
    ----------
    columns : ndarray
        Numbers: (row, column), nan where there is none.
    count : ndarray
        Counts of all rows.
    small : ndarray of bool
        Rows whose counts are to be hidden.
    rng : Generator
        Halves the rows.

    Returns
    -------
    Identity or None
        With the columns that the fit needs.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> parts = rng.integers(0, 4, (200, 3)).astype(float)
    >>> count = parts[:, 0] + parts[:, 2]
    >>> found = identity(parts, count, count < 9, rng)
    >>> found.places, found.hits
    ((0, 2), 1.0)
    """
    filled = np.where(np.isnan(columns), 0.0, columns)
    if not filled.shape[1] or small.sum() < 3:
        return None
    halves = _splits(small, rng)
    best: Identity | None = None
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.abs(filled))
    positive = np.isfinite(logs).all(axis=1) & (count > 0)
    logs = np.where(np.isfinite(logs), logs, 0.0)
    for product in (False, True):
        x, y = (logs, np.log(np.maximum(count, 1e-9))) if product else (filled, count)
        usable = positive if product else np.ones(len(count), bool)
        for fitted, judged in halves:
            found = _fit(x, y, count, fitted & usable, judged & usable, product)
            if found is not None and (best is None or found.explained > best.explained):
                best = _needed(x, y, count, fitted & usable, judged & usable, found)
    if filled.shape[1] > MOST_CURVED or (best is not None and best.explained > SURE):
        return best
    terms, of = _curved(filled)
    for fitted, judged in halves:
        found = _fit(terms, count, count, fitted, judged, False)
        if found is not None and min(found.explained, found.hits) > SURE:
            found = _needed(terms, count, count, fitted, judged, found)
            places = {place for term in found.places for place in of[term]}
            return found._replace(places=tuple(sorted(places)), how=CURVED)
    return best


def _curved(columns: Numbers) -> tuple[Numbers, list[tuple[int, ...]]]:
    """Columns, their roots, and all products of two of these; and which columns each is made of."""
    both = np.column_stack([columns, np.sqrt(np.abs(columns))])
    of = [place % columns.shape[1] for place in range(both.shape[1])]
    pairs = list(combinations_with_replacement(range(both.shape[1]), 2))
    products = np.column_stack([both[:, a] * both[:, b] for a, b in pairs])
    made_of: list[tuple[int, ...]] = [(place,) for place in of]
    made_of += [(of[a], of[b]) for a, b in pairs]
    return np.column_stack([both, products]), made_of


def _splits(
    small: npt.NDArray[np.bool_], rng: np.random.Generator
) -> Sequence[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
    """Rows to fit and rows to judge."""
    rows = rng.permutation(np.flatnonzero(small))[:MOST_ROWS]
    half = np.zeros(len(small), bool)
    half[rows[: len(rows) // 2]] = True
    rest = np.zeros(len(small), bool)
    rest[rows[len(rows) // 2 :]] = True
    safe = np.zeros(len(small), bool)
    safe[rng.permutation(np.flatnonzero(~small))[:MOST_ROWS]] = True
    return [(half, rest), (rest, half), (safe, half | rest)]


def _fit(
    x: Numbers,
    y: Numbers,
    count: Numbers,
    fitted: npt.NDArray[np.bool_],
    judged: npt.NDArray[np.bool_],
    product: bool,
    places: tuple[int, ...] | None = None,
) -> Identity | None:
    places = tuple(range(x.shape[1])) if places is None else places
    if fitted.sum() <= len(places) + 2 or judged.sum() < 3 or not places:
        return None
    used = x[:, places]
    centre, scale = used[fitted].mean(axis=0), used[fitted].std(axis=0)
    scale = np.where(scale > 0, scale, np.inf)
    design = np.column_stack([np.ones(len(x)), (used - centre) / scale])
    weights = np.linalg.lstsq(design[fitted], y[fitted], rcond=1e-10)[0]
    said = design[judged] @ weights
    said = np.exp(np.clip(said, -300, 300)) if product else said
    truth = count[judged]
    variance = float(((truth - truth.mean()) ** 2).sum())
    error = float(((said - truth) ** 2).sum())
    if variance == 0.0:
        return None
    hits = float((np.abs(said - truth) < 0.5).mean())
    how = PRODUCT if product else SUM
    return Identity(places, hits, 1.0 - error / variance, int(judged.sum()), how)


def _needed(
    x: Numbers,
    y: Numbers,
    count: Numbers,
    fitted: npt.NDArray[np.bool_],
    judged: npt.NDArray[np.bool_],
    found: Identity,
) -> Identity:
    """Leave out, one after the other, the columns that the fit does not need."""
    if found.explained <= 0.0:
        return found
    for place in reversed(found.places):
        rest = tuple(other for other in found.places if other != place)
        less = _fit(x, y, count, fitted, judged, found.how == PRODUCT, rest)
        if less is not None and 1.0 - less.explained <= 1.2 * (1.0 - found.explained) + 1e-9:
            found = less
    return found
