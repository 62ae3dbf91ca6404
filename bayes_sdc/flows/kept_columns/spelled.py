"""Texts of areas that spell their counts, a sign for each row: ABACA, 1x3x2, sorted or not."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.flows.kept_columns.evidence import information
from bayes_sdc.flows.kept_columns.totals import Ends
from bayes_sdc.seeds import generator

Codes = npt.NDArray[np.intp]
Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

NEARLY_ALL = 0.95  # of the areas have as many signs as rows
FEWEST = 20  # small counts beside their signs, from which these tell more than chance would
MOST_ADDED = 4  # signs before or after those of the rows
LOG_CHANCE = -25.0  # of as much information in shuffled rows


def spells_counts(
    texts: pd.Series, at: Codes, key: Codes, count: Numbers, small: Mask, ends: Ends
) -> bool:
    """Whether the signs of texts tell the counts in the rows of their areas.

    Parameters
    ----------
    texts : Series of str
        One of each area.
    at : array of int
        The areas.
    key : array of int, shape (row,)
        Area of each row.
    count, small : array, shape (row,)
        Counts, and which are small.
    ends : Ends
        From :func:`bayes_sdc.flows.kept_columns.totals.ends_of`.
    """
    spelled = dict(zip(at.tolist(), texts.tolist(), strict=True))
    for rows in _orders(key, count, small, ends):
        of = pd.Series(rows).groupby(key[rows]).agg(list)
        of = of[[area in spelled for area in of.index]]
        more = pd.Series([len(spelled[area]) - len(mine) for area, mine in of.items()])
        if not len(more) or more.min() < 0 or (more == more.mode()[0]).mean() < NEARLY_ALL:
            continue
        extra = int(more.mode()[0])
        for before in range(extra + 1 if extra <= MOST_ADDED else 0):
            signs, y = [], []
            for area, mine in of.items():
                text = spelled[area][before:]
                for row, sign in zip(mine, text, strict=False):
                    if small[row]:
                        signs.append(sign)
                        y.append(int(count[row]))
            if _tells(signs, y):
                return True
    return False


def _orders(key: Codes, count: Numbers, small: Mask, ends: Ends) -> Iterator[Codes]:
    """Rows in the order of the file, by partner and by count; all, between areas, small ones."""
    every = np.arange(len(key))
    partner = np.where(key == ends.origin, ends.destination, ends.origin)
    names = np.argsort(np.argsort(np.array(ends.labels, dtype=object), kind="stable"))
    orders = (every, np.argsort(names[partner], kind="stable"), np.argsort(count, kind="stable"))
    away = ends.origin != ends.destination
    for rows in (np.ones(len(key), dtype=bool), away, small, small & away):
        for order in orders:
            yield order[rows[order]]


def _tells(signs: list[str], y: list[int]) -> bool:
    if len(y) < FEWEST or len(set(signs)) < 2 or len(set(y)) < 2:
        return False
    codes = pd.factorize(np.array(signs, dtype=object))[0].astype(np.intp)
    counts = np.array(y, dtype=np.intp)
    found = information(codes, counts - counts.min(), generator(0, "spelled counts"))
    return found.log_chance < LOG_CHANCE
