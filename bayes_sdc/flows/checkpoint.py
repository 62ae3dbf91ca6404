"""Finished groups and chains of a fit on disk: an interrupted run loses those in hand."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayes_sdc.errors import InputError
from bayes_sdc.flows.chain import Chain
from bayes_sdc.runs import write_atomically, write_json


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
        What makes the draws what they are: input, model, sampler, seed. Another call is refused.
    """

    def __init__(self, folder: Path | None, call: dict[str, Any]) -> None:
        self._folder = folder
        if folder is None:
            return
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stamp = folder / "call.json"
        if stamp.exists():
            earlier = json.loads(stamp.read_text(encoding="utf-8"))
            changed = sorted(k for k in call if earlier.get(k) != call[k])
            if changed:
                raise InputError(
                    f"{folder}: holds another run, which differs in {', '.join(changed)}; "
                    "repeat that call, or start afresh without resuming"
                )
        else:
            write_json(stamp, call, private=True)

    def finished(self) -> Iterator[Part]:
        """Yield the parts that an earlier call finished."""
        for path in sorted(self._folder.glob("part-*.npz")) if self._folder else ():
            with np.load(path, allow_pickle=False) as arrays:
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

        self._write(self._folder / f"part-{int(part.groups[0]):06d}.npz", arrays)
        for path in self._folder.glob(f"chain-{int(part.groups[0]):06d}-*.npz"):
            path.unlink()

    def chain(self, group: int, number: int) -> Chain | None:
        """Return a chain that an earlier call finished of a part that it did not."""
        path = None if self._folder is None else self._folder / _chain_name(group, number)
        if path is None or not path.exists():
            return None
        with np.load(path, allow_pickle=False) as arrays:
            return Chain(
                {k.removeprefix("s."): arrays[k] for k in arrays if k.startswith("s.")},
                {k.removeprefix("a."): arrays[k] for k in arrays if k.startswith("a.")},
            )

    def save_chain(self, group: int, number: int, chain: Chain) -> None:
        """Keep a finished chain until the part that starts with this group is saved."""
        if self._folder is None:
            return
        arrays = {
            **{f"s.{name}": values for name, values in chain.states.items()},
            **{f"a.{name}": values for name, values in chain.acceptance.items()},
        }
        self._write(self._folder / _chain_name(group, number), arrays)

    @staticmethod
    def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
        def write(temporary: Path) -> None:
            with temporary.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)

        write_atomically(path, write, private=True)


def _chain_name(group: int, number: int) -> str:
    return f"chain-{group:06d}-{number:03d}.npz"
