"""The cells of a table that a log-linear model is fitted to: all of them, or those that matter.

A small table is taken whole. Of a large one there are the cells of the file, and others drawn from
a mixture: half with independent keys, half a record of which one key is drawn anew, since expected
frequencies are highest near to what occurs. Each cell drawn stands for 1 / (draws x probability)
cells, so that any sum over the cells that nobody has is estimated without bias.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.microdata.file.combinations import codes_of
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.seeds import generator

WHOLE = 100_000  # cells of a table that is taken whole
DRAWS_A_RECORD = 5
FEWEST, MOST = 20_000, 100_000  # draws

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Table(NamedTuple):
    """Cells with their frequencies.

    Parameters
    ----------
    codes : array of int, shape (cell, key)
        Level of each key, from 0. The cells of the file come first.
    f : array of int, shape (cell,)
        Records of each.
    weight : array of float, shape (cell,)
        Cells that each stands for: 1 for those of the file.
    levels : tuple of int
        Levels of each key.
    whole : bool
        Whether all cells are there, each for itself.
    place : array of int, shape (combination,)
        Cell of each row of ``Microdata.combinations``.
    """

    codes: Integers
    f: Integers
    weight: Floats
    levels: tuple[int, ...]
    whole: bool
    place: Integers


def table_of(microdata: Microdata, *, seed: int, whole: int = WHOLE) -> Table:
    """List the cells of a file, and all others or some that stand for them.

    Parameters
    ----------
    microdata : Microdata
        Missing values count as a level of their own.
    seed : int
        Of the cells that are drawn.
    whole : int
        Largest table that is taken whole.

    Examples
    --------
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"age": list("2345"), "sex": list("mfmf")})
    >>> table = table_of(read_microdata(people, keys=["age", "sex"]), seed=1)
    >>> table.f.tolist(), table.weight.tolist() == [1.0] * 8, table.whole
    ([1, 1, 1, 1, 0, 0, 0, 0], True, True)
    """
    columns, levels = [], []
    for column in codes_of(microdata.combinations).T:
        found, codes = np.unique(column, return_inverse=True)
        columns.append(codes)
        levels.append(len(found))
    seen = np.stack(columns, axis=1)
    f = microdata.combinations["records"].to_numpy(dtype=np.int64)
    # sorted: which cell is drawn must not depend on the order of the records
    order = np.lexsort(seen.T[::-1])
    seen, f = seen[order], f[order]
    sizes = tuple(levels)
    if math.prod(sizes) <= whole:
        codes = np.indices(sizes).reshape(len(sizes), -1).T
        free = np.ones(len(codes), bool)
        free[np.ravel_multi_index(tuple(seen.T), sizes)] = False
        unseen, weight = codes[free].astype(np.int64), np.ones(int(free.sum()))
    else:
        rng = generator(seed, "unseen cells")
        unseen, weight = _drawn(seen, f, sizes, draws_for(int(f.sum())), rng)
    return Table(
        np.concatenate([seen, unseen]),
        np.concatenate([f, np.zeros(len(unseen), np.int64)]),
        np.concatenate([np.ones(len(seen)), weight]),
        sizes,
        math.prod(sizes) <= whole,
        np.argsort(order),
    )


def draws_for(records: int) -> int:
    """Cells that are drawn beside those of so many records, in a table that is not taken whole."""
    return min(max(DRAWS_A_RECORD * records, FEWEST), MOST)


def names_of(table: Table) -> list[str]:
    """Name each cell by its levels and frequency, so that another file has other names.

    Examples
    --------
    >>> names_of(Table(np.array([[0, 3]]), np.array([2]), np.ones(1), (1, 4), True, np.arange(1)))
    ['0-3: 2']
    """
    rows = zip(table.codes.tolist(), table.f.tolist(), strict=True)
    return [f"{'-'.join(map(str, codes))}: {f}" for codes, f in rows]


def _drawn(
    seen: Integers, f: Integers, levels: tuple[int, ...], draws: int, rng: np.random.Generator
) -> tuple[Integers, Floats]:
    """Cells that nobody has, drawn from the mixture, and how many cells each stands for."""
    keys = len(levels)
    shares = [
        np.bincount(seen[:, j], weights=f, minlength=levels[j]) / f.sum() for j in range(keys)
    ]
    fresh = np.stack([rng.choice(levels[j], draws, p=shares[j]) for j in range(keys)], axis=1)
    near = rng.random(draws) < 0.5
    changed = rng.integers(0, keys, draws)
    kept = seen[rng.choice(len(seen), draws, p=f / f.sum())]
    kept[np.arange(draws), changed] = fresh[np.arange(draws), changed]
    every = np.concatenate([seen, np.where(near[:, None], kept, fresh)])
    one, number = len(seen), np.concatenate([f, np.zeros(draws, np.int64)])
    cell = pd.DataFrame(every).groupby(list(range(keys)), sort=False).ngroup().to_numpy()
    first, times = np.unique(cell, return_index=True)[1], np.bincount(cell[one:])
    new = first[first >= one]
    times = times[cell[new]]
    chance = 0.5 * np.prod([shares[j][every[:, j]] for j in range(keys)], axis=0)
    for j in range(keys):
        rest = pd.DataFrame(np.delete(every, j, axis=1))
        group = rest.groupby(list(rest), sort=False).ngroup().to_numpy()
        beside = np.bincount(group, weights=number)[group] / f.sum()
        chance += 0.5 / keys * shares[j][every[:, j]] * beside
    return every[new], times / (draws * chance[new])
