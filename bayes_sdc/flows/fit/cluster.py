"""The chains of a fit on the workers of a dask.distributed cluster.

A task is one chain of one batch of groups, as on one machine, and depends on nothing but its arrays
and its seed: the draws are the same wherever they are made. A task whose worker is lost is run
again by another one.
"""

import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError
from importlib.metadata import version
from typing import Any

import numpy as np

from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.batches import batches, joined
from bayes_sdc.flows.fit.chains import Chain, chain_at, place_of, sample_chain, start_chain
from bayes_sdc.flows.fit.checkpoint import Checkpoint, Part
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.table.cells import SmallCells, subset
from bayes_sdc.progress import Progress

PATIENCE = 30  # seconds to wait for the scheduler
SAME = ("bayes-sdc", "numba", "numpy")  # versions that decide the draws


def cluster_parts(
    cells: SmallCells,
    sampling: Sampling,
    store: Checkpoint,
    *,
    skip: set[int],
    progress: Progress,
) -> Iterator[Part]:
    """Fit all batches on a cluster; yield a part when the last of its chains has arrived.

    Parameters
    ----------
    cells : SmallCells
        All small cells.
    sampling, store, progress
        As for :func:`bayes_sdc.flows.fit.batches.sample_part`; with the address of a scheduler.
    skip : set of int
        Groups that are done.

    Raises
    ------
    InputError
        If the extra is not installed, nobody answers, or workers run other versions.
    """
    distributed, scheduler = _distributed(), str(sampling.scheduler)
    try:
        client = distributed.Client(scheduler, timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise InputError(
            f"scheduler {scheduler}: cannot be reached ({error}); start it with 'dask scheduler' "
            "and workers with 'dask worker ADDRESS'"
        ) from None
    with client:
        _same_versions(client, scheduler)
        chains: dict[int, dict[int, Chain]] = {}
        groups_of: dict[int, np.ndarray] = {}
        tasks: dict[Any, tuple[int, int]] = {}
        for groups in batches(cells, sampling):
            first = int(groups[0])
            if first in skip:
                continue
            groups_of[first], chains[first] = groups, {}
            missing = []
            for number in range(sampling.chains):
                kept = store.load_draws(first, number, sampling.tune, sampling.draws)
                if kept is None or int(kept[1]["done"]) < sampling.tune + sampling.draws:
                    missing.append(number)
                else:
                    chains[first][number] = chain_at(*kept)
                    progress.advance(len(groups) / sampling.chains, earlier=True)
            if not missing:
                yield _part(groups, chains.pop(first))
                continue
            # labels stay here; the name of the first group is part of the seed
            members = subset(cells, groups)._replace(
                cells=[], origin_effects=[], destination_effects=[]
            )
            for number in missing:
                with warnings.catch_warnings():
                    # counts sent ahead to one worker would be lost with it
                    warnings.filterwarnings("ignore", message="Sending large graph")
                    task = client.submit(run_chain, members, sampling, number, pure=False)
                tasks[task] = first, number
        progress.note(f"{len(tasks)} chains on {len(client.scheduler_info()['workers'])} workers")
        for task in distributed.as_completed(list(tasks)):
            first, number = tasks.pop(task)
            values, place = _result(task, scheduler)
            store.save_draws(first, number, 0, values, place)
            chains[first][number] = chain_at(values, place)
            task.release()
            # a worker returns whole chains: only it knows how far each one is
            progress.advance(len(groups_of[first]) / sampling.chains)
            if len(chains[first]) == sampling.chains:
                yield _part(groups_of[first], chains.pop(first))


def _result(task: Any, scheduler: str) -> Any:
    """Result of a task, or one clear error when the cluster lost it for good."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    try:
        return task.result()
    except (KilledWorker, CommClosedError, CancelledError) as error:
        raise InputError(
            f"scheduler {scheduler}: lost a chain that no worker could finish ({error}); the "
            "chains that ended are kept: check the workers and resume"
        ) from None


def run_chain(
    members: SmallCells, sampling: Sampling, number: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Run one chain from start to end, on a worker: its draws, and where it ended."""
    chain = start_chain(members, sampling, number)
    return sample_chain(chain, sampling).values, place_of(chain)


def _part(groups: np.ndarray, chains: dict[int, Chain]) -> Part:
    return joined(groups, [chains[number] for number in sorted(chains)])


def _distributed() -> Any:
    """Import the library of the extra."""
    try:
        import distributed
    except ImportError:
        raise InputError(
            "a scheduler needs the extra 'cluster': python -m pip install 'bayes-sdc[cluster]', "
            "here and on the workers"
        ) from None
    return distributed


def versions() -> dict[str, str]:
    """Versions, on this machine, that decide the draws.

    Examples
    --------
    >>> sorted(versions()) == sorted(SAME)
    True
    """
    return {name: version(name) for name in SAME}


def _same_versions(client: Any, scheduler: str) -> None:
    """Refuse workers that would draw other numbers, and a cluster without workers."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise InputError(
            f"scheduler {scheduler}: has no worker; start some with 'dask worker {scheduler}'"
        ) from None
    here = versions()
    for worker, there in client.run(versions).items():
        if there != here:
            raise InputError(
                f"worker {worker}: has {there} and this machine {here}; install the same versions, "
                "or the draws would not be those of one machine"
            )
