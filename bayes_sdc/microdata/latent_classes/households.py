r"""Households sampled whole: what a record's own household must not say of how rare it is.

Where households are sampled, the members of a household come together. A family from a far country
is then five records, which look like five of the twenty thousand people that a sample of 5 % stands
for; but all of them are here, and who is outside the sample has nothing to do with them. From the
view of one member the others are in the sample for certain. So the probability g of the member's
combination is learned from everybody but the rest of the household.

Given the classes of all records, the mean of g follows from their counts, with the rest of the
household or without it. The draw of g is multiplied by the ratio of the two. It is 1 for whoever
lives alone. The means of the classes, m, are learned from the same people, through the tables that
their counts sit at: without the household there are fewer of its levels, and m is less in
proportion. Strengths, and the classes of the others, are left as they are.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.latent_classes.conditionals import BASE, State, extend_products
from bayes_sdc.microdata.latent_classes.draws import compiled, pick

EXACT = 100  # customers; of more, an integral stands for the rest of the sum

Integers = npt.NDArray[np.int64]


class Companions(NamedTuple):
    """The rest of the household of each sample unique.

    Parameters
    ----------
    first : array of int, shape (sample unique + 1,)
        Where those of each begin in ``place`` and ``cell``.
    place : array of int, shape (companion,)
        Which record: by combination, then by household.
    cell : array of int, shape (companion,)
        Its combination.
    """

    first: Integers
    place: Integers
    cell: Integers


class Counts(NamedTuple):
    """Records in the classes.

    Parameters
    ----------
    size : array of int, shape (class,)
        Records in each.
    known : array of int, shape (key, class)
        Those of them whose value of a key is not missing.
    level : array of int, shape (row, class)
        Those with each level.
    """

    size: Integers
    known: Integers
    level: Integers


NOBODY = Companions(*(np.empty(0, dtype=np.int64) for _ in range(3)))


def companions_of(data: Microdata, row: Integers, unique: Integers) -> Companions:
    """Find the rest of the household of each sample unique.

    Parameters
    ----------
    data : Microdata
        The file.
    row : array of int, shape (combination,)
        Row of each combination of the file in the sampler's cells.
    unique : array of int, shape (sample unique,)
        Their places in the file.

    Returns
    -------
    Companions
        :data:`NOBODY` where there are no households, or each has one member.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"age": list("2345"), "home": list("aabb")})
    >>> data = read_microdata(people, keys=["age"], household="home")
    >>> companions_of(data, np.arange(4), np.arange(4)).place.tolist()
    [1, 0, 3, 2]
    """
    if data.household is None:
        return NOBODY
    cell = row[data.combination]
    home = data.household
    by_home = np.lexsort([cell, home])
    start = np.flatnonzero(np.r_[True, np.diff(home[by_home]) != 0, True])
    # records of a combination are sorted by what their household looks like, which does not depend
    # on the order of the file; households that look the same are the same to the sampler
    looks = [tuple(cell[by_home[a:b]].tolist()) for a, b in pairwise(start)]
    rank = {look: k for k, look in enumerate(sorted(set(looks)))}
    of_record = np.empty(data.n, dtype=np.int64)
    number = np.repeat(np.arange(len(looks)), np.diff(start))
    of_record[by_home] = np.array([rank[look] for look in looks], dtype=np.int64)[number]
    place = np.empty(data.n, dtype=np.int64)
    place[np.lexsort([of_record, cell])] = np.arange(data.n)
    which = np.empty(data.n, dtype=np.int64)
    which[by_home] = number
    found = [
        [other for other in by_home[start[k] : start[k + 1]] if other != one]
        for one, k in zip(unique, which[unique], strict=True)
    ]
    others = np.array([other for rest in found for other in rest], dtype=np.int64)
    if not len(others):
        return NOBODY
    first = np.concatenate([[0], np.cumsum([len(rest) for rest in found])]).astype(np.int64)
    return Companions(first, place[others], cell[others].astype(np.int64))


@compiled
def count(row: np.ndarray, h: int, by: int, counts: Counts) -> None:
    """Count a record in, or out again."""
    counts.size[h] += by
    for j in range(len(row)):
        if row[j] >= 0:
            counts.known[j, h] += by
            counts.level[row[j], h] += by


@compiled
def label_records(
    rng: np.random.Generator, rows: np.ndarray, shared: np.ndarray, records: np.ndarray,
    state: State,
) -> tuple[np.ndarray, Counts]:  # fmt: skip
    """Draw the class of every record, by combination; the chain itself stays where it is."""
    keys, classes = rows.shape[1], len(state.eta)
    products = np.empty((keys + 1, classes))
    for h in range(classes):
        products[0, h] = state.eta[h]
    number = 0
    for k in range(len(records)):
        number += records[k]
    labels = np.empty(number, dtype=np.int64)
    counts = Counts(
        np.zeros(classes, dtype=np.int64),
        np.zeros((keys, classes), dtype=np.int64),
        np.zeros((state.phi.shape[0], classes), dtype=np.int64),
    )
    place = 0
    for k in range(len(rows)):
        total = extend_products(rows[k], shared[k], state.phi, products)
        for _ in range(records[k]):
            labels[place] = pick(rng, products[keys], total)
            count(rows[k], labels[place], 1, counts)
            place += 1
    return labels, counts


@compiled
def expected_tables(customers: int, strength: float) -> float:
    """Mean of CRT(customers, strength): the sum of strength / (strength + i) over i < customers."""
    total = 0.0
    for i in range(min(customers, EXACT)):
        total += strength / (strength + i)
    if customers > EXACT:
        total += strength * np.log((strength + customers - 0.5) / (strength + EXACT - 0.5))
    return total


@compiled
def tables_by_level(state: State, counts: Counts, start: np.ndarray) -> np.ndarray:
    """Tables expected of each level, over all classes."""
    found = np.zeros(len(state.base))
    for j in range(len(start) - 1):
        for row in range(start[j], start[j + 1]):
            shape = state.strength[j] * state.base[row]
            for h in range(len(state.eta)):
                found[row] += expected_tables(counts.level[row, h], shape)
    return found


@compiled
def mean_over_classes(row: np.ndarray, base: np.ndarray, state: State, counts: Counts) -> float:
    """Mean of g of a combination given the classes of all, times a constant.

    ``base`` has m of its level of each key.
    """
    total = 0.0
    for h in range(len(state.eta)):
        mean: float = counts.size[h] + state.alpha[0] / len(state.eta)
        for j in range(len(row)):
            if row[j] >= 0:
                mean *= counts.level[row[j], h] + state.strength[j] * base[j]
                mean /= counts.known[j, h] + state.strength[j]
        total += mean
    return total


@compiled
def tables_lost(row: int, shape: float, labels: np.ndarray, cells: np.ndarray, counts: Counts,
                rows: np.ndarray, key: int) -> float:  # fmt: skip
    """Tables of a level that are expected only because of some people, who are counted out."""
    lost = 0.0
    for c in range(len(labels)):
        if rows[cells[c], key] == row:
            # one after the other: so many of the level are left in the class, and one more
            left = counts.level[row, labels[c]]
            for before in range(c):
                if labels[before] == labels[c] and rows[cells[before], key] == row:
                    left += 1
            lost += shape / (shape + left)
    return lost


@compiled
def without_household(
    unique: np.ndarray, start: np.ndarray, rows: np.ndarray, first: np.ndarray, place: np.ndarray,
    cell: np.ndarray, labels: np.ndarray, state: State, counts: Counts,
) -> np.ndarray:  # fmt: skip
    """Log of the mean of g without the rest of the household over that with it, by sample unique.

    ``counts`` are those of ``labels``, and are so again afterwards.
    """
    found = np.zeros(len(unique))
    keys, records = rows.shape[1], float(len(labels))
    tables = tables_by_level(state, counts, start)
    base = np.empty(keys)
    for i in range(len(unique)):
        cells = cell[first[i] : first[i + 1]]
        others = labels[place[first[i] : first[i + 1]]]
        if len(others) == 0:
            continue
        row = rows[unique[i]]
        for j in range(keys):
            base[j] = state.base[row[j]] if row[j] >= 0 else 1.0
        whole = mean_over_classes(row, base, state, counts)
        for c in range(len(others)):
            count(rows[cells[c]], others[c], -1, counts)
        for j in range(keys):
            if row[j] >= 0:
                shape = state.strength[j] * base[j]
                lost = tables_lost(row[j], shape, others, cells, counts, rows, j)
                base[j] *= 1.0 - lost / (BASE + tables[row[j]])
        part = mean_over_classes(row, base, state, counts)
        for c in range(len(others)):
            count(rows[cells[c]], others[c], 1, counts)
        # of fewer records, each class has a larger share
        share = (records + state.alpha[0]) / (records - len(others) + state.alpha[0])
        found[i] = np.log(part / whole * share)
    return found
