r"""Households sampled whole: what a record's own household must not say of how rare it is.

Where households are sampled, the members of a household come together. A family from a far country
is then five records, which look like five of the twenty thousand people that a sample of 5 % stands
for; but all of them are here, and who is outside the sample has nothing to do with them. From the
view of one member the others are in the sample for certain. So the probability g of the member's
combination is learned from everybody but the rest of the household.

Given the classes of all records, the mean of g follows from their counts, with the rest of the
household or without it. The draw of g is multiplied by the ratio of the two. It is 1 for whoever
lives alone. The means of the classes, m, are learned from the same people, through the splits of
their trees: without the household there are fewer tables and records of its levels, and m is less
in proportion. Strengths, resolutions, and the classes of the others, are left as they are.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.latent_classes.conditionals import extend_products
from bayes_sdc.microdata.latent_classes.draws import compiled, pick
from bayes_sdc.microdata.latent_classes.resolutions import BASE, depth_of, levels_under
from bayes_sdc.microdata.latent_classes.state import State

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
def expected_splits(state: State, counts: Counts, start: np.ndarray, key: int) -> np.ndarray:
    """What the splits of a key's tree are learned from, as in `draw_base`, by expected tables."""
    levels = start[key + 1] - start[key]
    depth = depth_of(levels)
    added = np.zeros((depth + 1, levels))
    base = state.base[start[key] : start[key + 1]]
    for h in range(len(state.eta)):
        r = state.resolution[key, h]
        shift = depth - r
        number, shape = 0, 0.0
        for k in range(levels):
            here = counts.level[start[key] + k, h]
            for d in range(r + 1, depth + 1):
                added[d, k >> (depth - d)] += here
            number += here
            shape += state.strength[key] * base[k]
            if k == levels - 1 or (k + 1) >> shift != k >> shift:
                if r > 0 and number > 0:
                    tables = expected_tables(number, shape)
                    for d in range(1, r + 1):
                        added[d, k >> (depth - d)] += tables
                number, shape = 0, 0.0
    return added


@compiled
def in_band(level: int, shift: int, values: np.ndarray) -> float:
    """Sum over the levels of the band that a level is in."""
    first = (level >> shift) << shift
    total = 0.0
    for k in range(first, min(first + (1 << shift), len(values))):
        total += values[k]
    return total


@compiled
def mean_over_classes(
    row: np.ndarray, ratio: np.ndarray, start: np.ndarray, state: State, counts: Counts
) -> float:
    """Mean of g of a combination given the classes of all, times a constant.

    ``ratio`` has, by key and depth of the tree, what the m of the node there is multiplied by.
    """
    total = 0.0
    for h in range(len(state.eta)):
        mean: float = counts.size[h] + state.alpha[0] / len(state.eta)
        for j in range(len(row)):
            if row[j] >= 0:
                levels = start[j + 1] - start[j]
                depth, r, k = depth_of(levels), state.resolution[j, h], row[j] - start[j]
                alone = state.base[row[j]] * ratio[j, depth]
                if r > 0:
                    band = state.base[start[j] : start[j + 1]]
                    of_band = in_band(k, depth - r, band) * ratio[j, r]
                    number = in_band(k, depth - r, counts.level[start[j] : start[j + 1], h])
                    mean *= (number + state.strength[j] * of_band) * alone / of_band
                    mean /= counts.known[j, h] + state.strength[j]
                else:
                    mean *= alone
        total += mean
    return total


@compiled
def ratios_of(
    row: int, key: int, start: np.ndarray, rows: np.ndarray, cells: np.ndarray, labels: np.ndarray,
    state: State, counts: Counts, added: np.ndarray, into: np.ndarray,
) -> None:  # fmt: skip
    """How the mean of m of each node above a level changes without some people.

    ``counts`` are those without them, ``added`` those of the splits with them.
    """
    levels = start[key + 1] - start[key]
    depth, place = depth_of(levels), row - start[key]
    base = state.base[start[key] : start[key + 1]]
    lost = np.zeros((depth + 1, 2))
    for c in range(len(labels)):
        level = rows[cells[c], key] - start[key]
        if level < 0:
            continue
        h = labels[c]
        r = state.resolution[key, h]
        tables = 0.0
        if r > 0:
            shift = depth - r
            # one after the other: so many of the band are left in the class, and one more
            left = in_band(level, shift, counts.level[start[key] : start[key + 1], h])
            for before in range(c):
                other = rows[cells[before], key] - start[key]
                if labels[before] == h and other >= 0 and other >> shift == level >> shift:
                    left += 1.0
            shape = state.strength[key] * in_band(level, shift, base)
            tables = shape / (shape + left)
        for d in range(1, depth + 1):
            up = depth - d
            if level >> (up + 1) == place >> (up + 1):
                lost[d, 0 if level >> up == place >> up else 1] += tables if d <= r else 1.0
    into[0] = 1.0
    for d in range(1, depth + 1):
        up = depth - d
        node = place >> up
        beside = node ^ 1
        into[d] = into[d - 1]
        if levels_under(beside, up, levels) == 0:
            continue
        mine = BASE * levels_under(node, up, levels) + added[d, node]
        other = BASE * levels_under(beside, up, levels) + added[d, beside]
        whole, rest = mine + other, mine + other - lost[d, 0] - lost[d, 1]
        into[d] *= (mine - lost[d, 0]) / mine * whole / rest


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
    longest = 1
    for j in range(keys):
        longest = max(longest, start[j + 1] - start[j])
    depth = depth_of(longest)
    added = np.zeros((keys, depth + 1, longest))
    for j in range(keys):
        part = expected_splits(state, counts, start, j)
        for d in range(part.shape[0]):
            for k in range(part.shape[1]):
                added[j, d, k] = part[d, k]
    same, changed = np.ones((keys, depth + 1)), np.ones((keys, depth + 1))
    for i in range(len(unique)):
        cells = cell[first[i] : first[i + 1]]
        others = labels[place[first[i] : first[i + 1]]]
        if len(others) == 0:
            continue
        row = rows[unique[i]]
        whole = mean_over_classes(row, same, start, state, counts)
        for c in range(len(others)):
            count(rows[cells[c]], others[c], -1, counts)
        for j in range(keys):
            if row[j] >= 0:
                ratios_of(
                    row[j], j, start, rows, cells, others, state, counts, added[j], changed[j]
                )
        part = mean_over_classes(row, changed, start, state, counts)
        for c in range(len(others)):
            count(rows[cells[c]], others[c], 1, counts)
        # of fewer records, each class has a larger share
        share = (records + state.alpha[0]) / (records - len(others) + state.alpha[0])
        found[i] = np.log(part / whole * share)
    return found
