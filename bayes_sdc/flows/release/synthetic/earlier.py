"""Earlier releases of the same table, which an intruder can compare with the new one.

The same table protected again with another seed, or a revision of it, is another look at the same
true counts. Earlier releases count as further data sets in the risk.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.centres import FEWEST_SAME, same_file
from bayes_sdc.flows.table.read import FlowTable, read_flows
from bayes_sdc.io.tables import Loaded, load

ITSELF = (
    "is the table that is protected, or holds all its counts; name what was released of it, not "
    "the table itself (--already-released)"
)


def earlier_counts(table: FlowTable, releases: Sequence[Any]) -> np.ndarray:
    """Counts of the small cells in earlier releases, from 0.

    Parameters
    ----------
    table : FlowTable
        The table that is protected now.
    releases : sequence of path or DataFrame
        Synthetic tables as they were released, each with the columns of the table; several data
        sets in one are told apart by its column ``dataset``. Rows may be in any order; they are
        matched by their codes.

    Returns
    -------
    array of int, shape (dataset, cell)
        In the order of ``table.cells``; no row without a release.

    Raises
    ------
    InputError
        If a release cannot be read, has other small cells than the table, or is named twice:
        counted twice, it would hide what a further release adds.

    Examples
    --------
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 12]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> earlier_counts(table, [frame.assign(n=[3, 9, 12])]).tolist()
    [[2, 8]]
    """
    if isinstance(releases, str | bytes | pd.DataFrame) or not isinstance(releases, Sequence):
        raise InputError(
            "already_released must be a list of files or frames, such as [path]; "
            f"it is one {type(releases).__name__}"
        )
    wanted = (table.origin, table.destination, table.count, *table.groups)
    files: dict[str, str] = {}  # name of the release by the digest of its file
    sets: dict[bytes, str] = {}  # name of the data set by its counts
    every = []
    for number, release in enumerate(releases, start=1):
        loaded = load(release, wanted)
        name = f"earlier release {number} ({loaded.source})"
        if loaded.sha256:
            _refuse_again(name, files.setdefault(loaded.sha256, name))
        here = {}
        for source, part in _data_sets(table, loaded, name):
            counts = _counts(table, source, part)
            # a release of a few cells may equal another by chance
            if table.n_small >= FEWEST_SAME:
                _refuse_again(source, sets.get(counts.tobytes(), source))
            here[counts.tobytes()] = source
            every.append(counts)
        sets |= here  # data sets of one release are draws, equal or not
    return np.array(every, dtype=np.int64).reshape(len(every), table.n_small)


def _refuse_again(name: str, first: str) -> None:
    """Refuse a release that was named before, in this file or another."""
    if name != first:
        raise InputError(
            f"{name}: holds the small counts of {first}, so it is the same release and no further "
            "look at the table; name each release once, in one file (--already-released)"
        )


def _data_sets(table: FlowTable, loaded: Loaded, name: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Name and frame of each data set of a release."""
    if same_file(table, loaded.path, loaded.sha256):
        raise InputError(f"{name}: {ITSELF}")
    if "dataset" not in loaded.frame.columns or "dataset" in table.frame.columns:
        yield name, loaded.frame
        return
    for value, part in loaded.frame.groupby("dataset", sort=True, dropna=False):
        yield f"{name}, data set {value}", part


def _counts(table: FlowTable, source: str, frame: pd.DataFrame) -> np.ndarray:
    """Counts of one data set, after a check that it has the same small cells."""
    try:
        other = read_flows(
            frame.reset_index(drop=True),
            origin=table.origin, destination=table.destination, count=table.count,
            groups=table.groups, low=table.low, high=table.high,
        )  # fmt: skip
    except InputError as error:
        raise InputError(f"{source}: {str(error).removeprefix('DataFrame: ')}") from None
    missing = table.cells.index.difference(other.cells.index)
    more = other.cells.index.difference(table.cells.index)
    if len(missing):
        raise InputError(
            f"{source}: has no count from {table.low} to {table.high} in {len(missing):,} small "
            f"cells of {table.source}, the first {missing[0]!r}; pass releases of this table, with "
            "codes as text"
        )
    if len(more):
        raise InputError(
            f"{source}: has {len(more):,} small cells that {table.source} does not have, the first "
            f"{more[0]!r}; pass releases of this table"
        )
    counts = other.cells["y"].loc[table.cells.index].to_numpy()
    # a release of a few cells may have drawn the true counts
    if (
        table.n_small >= FEWEST_SAME
        and table.cells["y"].nunique() > 1
        and np.array_equal(counts, table.cells["y"])
    ):
        raise InputError(f"{source}: {ITSELF}")
    return counts
