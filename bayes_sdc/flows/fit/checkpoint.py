"""Draws of a fit, kept on disk while it runs: an interrupted fit loses twenty seconds at most."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.sealed import Arrays, read_arrays, write_arrays
from bayes_sdc.runs import write_json


class Part(NamedTuple):
    """Draws of some groups: (chain, draw, ...) arrays over those groups and their effects."""

    groups: np.ndarray
    posterior: dict[str, np.ndarray]
    statistics: dict[str, np.ndarray]


class Checkpoint:
    """A folder of finished parts that belong to one call; without a folder, nothing is kept.

    Parameters
    ----------
    folder : Path or None
        Where the parts are kept.
    call : dict
        What determines the draws: input, model, sampler, seed. Another call is refused.
    """

    def __init__(self, folder: Path | None, call: dict[str, Any]) -> None:
        self._folder = folder = None if folder is None else Path(folder)
        self._call = json.dumps(call, sort_keys=True).encode()
        if folder is None:
            return
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{folder}: cannot keep the draws of an interrupted run there "
                f"({error.strerror}); choose another folder"
            ) from None
        stamp = folder / "call.json"
        if stamp.exists():
            earlier = kept_call(folder)
            # what only one of them has, such as an epsilon, differs too
            changed = sorted(k for k in {*call, *earlier} if earlier.get(k) != call.get(k))
            if changed:
                raise InputError(
                    f"{folder}: holds another run, which differs in {', '.join(changed)}; "
                    "repeat that call, or delete the folder to start afresh"
                )
        elif any(folder.glob("*.npz")):
            raise InputError(
                f"{folder}: holds draws, but the record of their call (call.json) is missing; "
                "delete the folder to start afresh"
            )
        else:
            write_json(stamp, call, private=True)

    def finished(self) -> Iterator[Part]:
        """Yield the parts that an earlier call finished."""
        for path in sorted(self._folder.glob("part-*.npz")) if self._folder else ():
            arrays = read_arrays(path, belongs=self._call)
            yield Part(
                arrays["groups"],
                {k.removeprefix("p."): arrays[k] for k in arrays if k.startswith("p.")},
                {k.removeprefix("s."): arrays[k] for k in arrays if k.startswith("s.")},
            )

    def save(self, part: Part) -> None:
        """Keep a finished part."""
        if self._folder is None:
            return
        arrays = {
            "groups": part.groups,
            **{f"p.{name}": values for name, values in part.posterior.items()},
            **{f"s.{name}": values for name, values in part.statistics.items()},
        }
        first = int(part.groups[0])
        write_arrays(self._folder / f"part-{first:06d}.npz", arrays, belongs=self._call)
        for path in self._folder.glob(f"chain-{first:06d}-*.npz"):
            path.unlink()

    def save_draws(
        self, first: int, chain: int, start: int, draws: dict[str, np.ndarray], place: Arrays
    ) -> None:
        """Keep what a chain drew since the last save, and its state.

        Parameters
        ----------
        first : int
            First group of the part that the chain belongs to.
        chain : int
            Number of the chain.
        start : int
            Number of the first of these draws; the warm-up does not count.
        draws : dict of array, shape (draw, ...)
            By name; empty during the warm-up.
        place : mapping of array
            What the chain needs to continue.
        """
        if self._folder is None:
            return
        name = f"chain-{first:06d}-{chain:03d}"
        # the draws first: a state whose draws are missing cannot be resumed
        if draws:
            write_arrays(self._folder / f"{name}-draw-{start:06d}.npz", draws, belongs=self._call)
        write_arrays(self._folder / f"{name}.npz", place, belongs=self._call)

    def load_draws(
        self, first: int, chain: int, tune: int, draws: int
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]] | None:
        """Return the draws of an interrupted chain, and where it was.

        Parameters
        ----------
        first, chain : int
            As for :meth:`save_draws`.
        tune, draws : int
            Length of the warm-up and of the chain.

        Returns
        -------
        dict of array, dict of array; or None
            Draws in arrays as long as the whole chain, and what it needs to continue. None where
            nothing was kept.
        """
        name = f"chain-{first:06d}-{chain:03d}"
        if self._folder is None or not (self._folder / f"{name}.npz").exists():
            return None
        place = read_arrays(self._folder / f"{name}.npz", belongs=self._call)
        done = max(int(place["done"]) - tune, 0)
        values: dict[str, np.ndarray] = {}
        reached = 0
        for path in sorted(self._folder.glob(f"{name}-draw-*.npz")):
            start = int(path.stem.rpartition("-")[2])
            # draws beyond the state come from a run that was killed between the two files
            if start >= done:
                break
            blocks = read_arrays(path, belongs=self._call)
            if start == reached:
                reached += len(next(iter(blocks.values())))
            for key, block in blocks.items():
                if key not in values:
                    values[key] = np.empty((draws, *block.shape[1:]), block.dtype)
                values[key][start : start + len(block)] = block
        if reached < done:
            raise InputError(
                f"{self._folder}: draws from {reached} on of chain {chain} are missing; delete the "
                "folder to start afresh"
            )
        return values, place


def kept_call(folder: Path) -> dict[str, Any]:
    """Return the call whose draws a folder keeps."""
    stamp = folder / "call.json"
    if not stamp.exists():
        raise InputError(f"{folder}: holds no fit; name the folder given to it as resume")
    try:
        call: dict[str, Any] = json.loads(stamp.read_text(encoding="utf-8"))
        int(call["seed"])
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise InputError(
            f"{stamp}: is not what was saved; delete its folder to start afresh"
        ) from None
    return call
