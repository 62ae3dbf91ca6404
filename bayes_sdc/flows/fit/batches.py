"""The chains of a batch of groups side by side, kept on disk as they go."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bayes_sdc.flows.fit.chains import Chain, place_of, sample_chain, start_chain
from bayes_sdc.flows.fit.checkpoint import Checkpoint, Part
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.model.hyperpriors import is_pooled
from bayes_sdc.flows.table.cells import SmallCells
from bayes_sdc.progress import Progress

BATCH = 20_000  # cells, roughly, that advance together where the groups stand alone
SAVE_EVERY = 20.0  # seconds between two saves of a chain


def batches(cells: SmallCells, sampling: Sampling) -> list[np.ndarray]:
    """Consecutive groups, about :data:`BATCH` cells together; or all of them where pooled."""
    if is_pooled(sampling.prior):
        return [np.arange(len(cells.groups))]
    total = np.cumsum(np.bincount(cells.group, minlength=len(cells.groups)))
    batch = (total - 1) // BATCH
    return [np.flatnonzero(batch == b) for b in np.unique(batch)]


def sample_part(
    members: SmallCells,
    groups: np.ndarray,
    sampling: Sampling,
    store: Checkpoint,
    progress: Progress,
) -> Part:
    """Run the chains of one batch in threads.

    Parameters
    ----------
    members : SmallCells
        The small cells of these groups alone.
    groups : array of int
        Positions of the groups in the whole table.
    sampling : Sampling
        What to draw from, and by which Gibbs sampler.
    store : Checkpoint
        Where the draws are kept, and where those of an interrupted run are.
    progress : Progress
        Counts the groups.
    """
    first, length = int(groups[0]), sampling.tune + sampling.draws
    share = len(groups) / (sampling.chains * length)
    stop = threading.Event()

    def run(number: int) -> Chain:
        chain, values = start_chain(members, sampling, number), None
        if (kept := store.load_draws(first, number, sampling.tune, sampling.draws)) is not None:
            values, place = kept
            chain.restore(place)
            progress.advance(share * chain.done, earlier=True)
        saved, last = max(chain.done - sampling.tune, 0), time.monotonic()

        def save(drawn: dict[str, np.ndarray]) -> None:
            nonlocal saved, last
            done = max(chain.done - sampling.tune, 0)
            new = {name: array[saved:done] for name, array in drawn.items()} if done > saved else {}
            store.save_draws(first, number, saved, new, place_of(chain))
            saved, last = done, time.monotonic()

        def after_draw(drawn: dict[str, np.ndarray]) -> None:
            progress.advance(share)
            if chain.done == length or stop.is_set() or time.monotonic() - last > SAVE_EVERY:
                save(drawn)
            if stop.is_set():
                raise InterruptedError

        return sample_chain(chain, sampling, values=values, after_draw=after_draw)

    with ThreadPoolExecutor(min(sampling.cores, sampling.chains)) as pool:
        try:
            results = list(pool.map(run, range(sampling.chains)))
        except BaseException:
            stop.set()  # the chains stop after their next draw, not after their last
            raise
    return joined(groups, results)


def joined(groups: np.ndarray, chains: list[Chain]) -> Part:
    """Stack the chains of a part, and free each one once it is copied."""
    names, rates = list(chains[0].values), list(chains[0].acceptance)
    return Part(
        groups,
        {name: np.stack([chain.values.pop(name) for chain in chains]) for name in names},
        {name: np.stack([chain.acceptance[name] for chain in chains]) for name in rates},
    )
