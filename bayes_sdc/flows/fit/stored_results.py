"""Results of the steps after a fit on disk, so that a run that is killed late continues late.

Kept are the most expensive: the intruder's probabilities, some thousands of cells at a time;
refits, some cells at a time; the fits of an intruder who does not know the other counts (with their
draws, as by :mod:`bayes_sdc.flows.fit.checkpoint`); and the tables of the diagnostics, of the
repeated releases and of other protections, each when it is done. The rest is computed again.

A result is filed under a fingerprint of everything it follows from, so a result of another
posterior, release or argument is not found and cannot be mistaken for it.
"""

import hashlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.sealed import read_arrays, read_frame, write_arrays, write_frame

SOFTWARE = ("bayes-sdc", "numba", "numpy", "pandas", "scipy")  # the results depend on it


def fingerprint(*parts: object) -> str:
    """Digest of arrays, by type, shape and content, and of anything else by its text.

    Examples
    --------
    >>> fingerprint(np.arange(3), "a") == fingerprint(np.arange(3), "a")
    True
    >>> fingerprint(np.arange(3)) == fingerprint(np.arange(3.0))
    False
    """
    digest = hashlib.sha256(repr([version(name) for name in SOFTWARE]).encode())
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str} {part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(repr(part).encode())
        digest.update(b"\x1f")
    return digest.hexdigest()[:32]


def fingerprint_of_draws(posterior: xr.DataTree) -> str:
    """Digest of a posterior: its draws, and what was fitted."""
    draws = posterior["posterior"].to_dataset()
    named = sorted(str(name) for name in draws.data_vars)
    arrays = [draws[name].to_numpy() for name in named]
    return fingerprint(sorted(posterior.attrs.items()), named, *arrays)


def kept_by_cell(
    folder: Path | None,
    targets: np.ndarray,
    at_once: int,
    make: Callable[[np.ndarray], dict[str, np.ndarray]],
    *,
    advance_earlier: Callable[[float], None] = lambda units: None,
) -> dict[str, np.ndarray]:
    """Make arrays by cell, some cells at a time, and keep each lot when it is done.

    Parameters
    ----------
    folder : Path or None
        Where they are kept, a folder for them alone; without one, all are made at once.
    targets : array of int
        Positions of the cells, ascending.
    at_once : int
        Cells of a lot.
    make : callable
        Gives arrays, by name, whose first axis are the cells it is asked for. The numbers of a cell
        must not depend on which others it is asked for.
    advance_earlier : callable
        Told how many cells an earlier run has done.

    Returns
    -------
    dict of array
        By name; first axis as ``targets``.

    Raises
    ------
    InputError
        If the folder cannot be written, or holds a damaged file.
    """
    if folder is None:
        return make(targets)
    _make_folder(folder)
    result: dict[str, np.ndarray] = {}
    left = np.ones(len(targets), dtype=bool)

    def put(part: np.ndarray, arrays: dict[str, np.ndarray]) -> None:
        asked = np.isin(part, targets)  # an earlier call may have asked for more cells
        part, arrays = part[asked], {name: values[asked] for name, values in arrays.items()}
        places = np.searchsorted(targets, part)
        for name, values in arrays.items():
            if name not in result:
                result[name] = np.empty((len(targets), *values.shape[1:]), values.dtype)
            result[name][places] = values
        left[places] = False

    for path in sorted(folder.glob("cells-*.npz")):
        arrays = read_arrays(path)
        part = arrays.pop("cells")
        put(part, arrays)
        advance_earlier(len(part))
    rest = targets[left]
    for start in range(0, len(rest), at_once):
        part = rest[start : start + at_once]
        arrays = make(part)
        write_arrays(folder / f"cells-{int(part[0]):08d}.npz", {"cells": part, **arrays})
        put(part, arrays)
    return result


def kept_frame(
    folder: Path | None, name: str, mark: str, make: Callable[[], pd.DataFrame]
) -> pd.DataFrame:
    """Make a table, or take the one that an earlier run made from the same input.

    Parameters
    ----------
    folder : Path or None
        Where it is kept; without one it is made.
    name : str
        Name of the table.
    mark : str
        From :func:`fingerprint`, of all that the table follows from.
    make : callable
        Makes it.
    """
    if folder is None:
        return make()
    path = folder / f"{name}-{mark}.parquet"
    if path.exists():
        return read_frame(path)
    frame = make()
    _make_folder(folder)
    write_frame(path, frame)
    # as it will be read: a resumed run must not differ
    return read_frame(path)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot keep its intermediate results there ({error.strerror}); "
            "choose another folder"
        ) from None
