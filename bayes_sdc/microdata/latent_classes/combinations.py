"""The combinations of a file as the sampler reads them: sorted, counted, without the records."""

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.combinations import codes_of
from bayes_sdc.microdata.file.microdata import Microdata

Integers = npt.NDArray[np.int64]
#: How the label of an ordered level begins.
NUMBER = re.compile(r"\s*-?\d+(\.\d+)?")


class Cells(NamedTuple):
    """Distinct combinations of a file.

    Parameters
    ----------
    rows : array of int, shape (combination, key)
        For each key the row of its level in tables with one row per level; -1 where it is missing.
        Keys with few levels come first, levels are in their natural order (see
        :func:`order_of_levels`), and combinations are sorted, so that neighbours share the
        beginning of their products.
    shared : array of int, shape (combination,)
        How many keys, from the first, a combination has in common with the one before it.
    records : array of int, shape (combination,)
        Records with exactly this combination.
    start : array of int, shape (key + 1,)
        First row of each key's levels, and the number of all rows.
    place : array of int, shape (combination,)
        Row of ``Microdata.combinations``.
    """

    rows: npt.NDArray[np.int32]
    shared: Integers
    records: Integers
    start: Integers
    place: Integers


def order_of_keys(data: Microdata) -> list[int]:
    """Places of the keys in the file, in the order of the sampler: those with few levels first."""
    missing = (data.codes < 0).any(axis=0) & (data.missing == "own")
    sizes = [len(labels) + bool(more) for labels, more in zip(data.labels, missing, strict=True)]
    return [int(j) for j in np.argsort(sizes, kind="stable")]


def order_of_levels(labels: tuple[str, ...]) -> Integers:
    """Places of the labels of a key in their natural order: by number where all begin with one.

    Examples
    --------
    >>> order_of_levels(("10-14", "15+", "5-9")).tolist()
    [2, 0, 1]
    >>> order_of_levels(("10", "9", "x")).tolist()
    [0, 1, 2]
    """
    numbers = [NUMBER.match(label) for label in labels]
    if not all(numbers):
        return np.arange(len(labels), dtype=np.int64)
    values = np.array([float(found[0]) for found in numbers if found is not None])
    return np.argsort(values, kind="stable").astype(np.int64)


def rows_of_levels(data: Microdata) -> list[Integers]:
    """For each key of the file, the sampler's row of each level; a missing value first, by "own".

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"age": ["9", "10", None], "sex": list("mfm")})
    >>> data = read_microdata(people, keys=["age", "sex"], missing="own")
    >>> [rows.tolist() for rows in rows_of_levels(data)]
    [[2, 4, 3], [0, 1]]
    """
    rows, first = [np.empty(0, dtype=np.int64)] * len(data.keys), 0
    for j in order_of_keys(data):
        lacking = int(data.missing == "own" and bool((data.codes[:, j] < 0).any()))
        rank = np.argsort(order_of_levels(data.labels[j])) + lacking
        rows[j] = first + np.concatenate([np.arange(lacking), rank]).astype(np.int64)
        first += len(rows[j])
    return rows


def labels_of(data: Microdata) -> dict[str, list[str]]:
    """Return the levels of each key, as the rows of the sampler's tables stand for them.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"age": ["2", "10", None, "5"], "sex": list("mfmf")})
    >>> labels_of(read_microdata(people, keys=["age", "sex"], missing="own"))
    {'sex': ['f', 'm'], 'age': ['missing', '2', '5', '10']}
    """
    rows, found = rows_of_levels(data), {}
    for j in order_of_keys(data):
        # codes of text may say "missing" too, and coordinates must differ
        words = "missing" if "missing" not in data.labels[j] else "no value"
        lacking = [words] * (len(rows[j]) - len(data.labels[j]))
        names = [*lacking, *data.labels[j]]
        found[data.keys[j]] = [names[place] for place in np.argsort(rows[j])]
    return found


def cells_of(data: Microdata) -> Cells:
    """Sort the combinations of a file for the sampler.

    Parameters
    ----------
    data : Microdata
        By the rule "own" a missing value is a level of its own; by the others it stays missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"age": list("2345"), "sex": list("mfmf")})
    >>> cells = cells_of(read_microdata(people, keys=["age", "sex"]))
    >>> cells.rows.tolist(), cells.start.tolist()
    ([[0, 3], [0, 5], [1, 2], [1, 4]], [0, 2, 6])
    """
    columns, sizes = [], []
    codes = codes_of(data.combinations).T
    for name, column, labels in zip(data.keys, codes, data.labels, strict=True):
        missing = column < 0
        rank = np.argsort(order_of_levels(labels))
        if not len(labels) and data.missing != "own":
            raise InputError(
                f"{data.source}: key {name!r} is missing in every record, so nothing can be said "
                "of it; leave it out of the keys"
            )
        column = np.where(missing, -1, rank[column]) if len(labels) else column
        levels, found = np.unique(column if data.missing == "own" else column[~missing],
                                  return_inverse=True)  # fmt: skip
        coded = np.full(len(column), -1, dtype=np.int64)
        coded[slice(None) if data.missing == "own" else ~missing] = found
        columns.append(coded)
        sizes.append(len(levels))
    order = order_of_keys(data)
    table = np.stack([columns[j] for j in order], axis=1)
    place = np.lexsort(table.T[::-1])
    table = table[place]
    start = np.concatenate([[0], np.cumsum([sizes[j] for j in order])]).astype(np.int64)
    rows = np.where(table < 0, -1, table + start[:-1]).astype(np.int32)
    records = data.combinations["records"].to_numpy(dtype=np.int64)[place]
    return Cells(
        np.ascontiguousarray(rows), shared_beginnings(rows), records, start,
        place.astype(np.int64),
    )  # fmt: skip


def shared_beginnings(rows: npt.NDArray[np.int32]) -> Integers:
    """How many keys, from the first, each sorted combination has in common with the one before.

    Examples
    --------
    >>> shared_beginnings(np.array([[0, 3, 5], [0, 3, 6], [1, 3, 6]], dtype=np.int32)).tolist()
    [0, 2, 0]
    """
    same = np.zeros(len(rows), dtype=np.int64)
    same[1:] = np.cumprod(rows[1:] == rows[:-1], axis=1).sum(axis=1)
    return same
