"""How probable each count of a cell is given the totals, for each of some posterior draws.

Given the rates of a draw, tables with the true totals are drawn as for a release
(:mod:`bayes_sdc.flows.release.totals.draws`), and the counts of each cell are tallied on the way.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bayes_sdc.cores import threads
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.rates import Rates
from bayes_sdc.flows.release.totals.draws import SWEEPS, Mixing, with_totals
from bayes_sdc.flows.table.cells import SmallCells
from bayes_sdc.seeds import seed_sequence

TABLES = 20  # tallied for each draw, with one cycle per cell between two


def chances(
    cells: SmallCells,
    rates: Rates,
    kept: Mixing,
    draws: np.ndarray,
    *,
    seed: int,
    tables: int = TABLES,
    sweeps: int = SWEEPS,
    cores: int | None = None,
    advance: Callable[[float], None] = lambda units: None,
) -> np.ndarray:
    """Shares of each count among tables with the totals, by draw.

    Parameters
    ----------
    cells : SmallCells
        Its counts are not used.
    rates : Rates
        Posterior draws.
    kept : Mixing
        The totals.
    draws : array of int, shape (draw,)
        Which draws.
    seed : int
        The same seed gives the same shares, whatever the cores.
    tables : int
        Tallied for each draw.
    sweeps : int
        Cycles for each cell before the first table.
    cores : int, optional
        Threads; by default all.
    advance : callable
        Called after each draw.

    Returns
    -------
    array of float, shape (draw, cell, count)
        Rows sum to one.
    """

    def of_draw(at: int) -> np.ndarray:
        log_rate, rungs = rates.at(cells, at)
        log_weight = counts.log_table(log_rate, cells.group, rungs)
        rng = np.random.default_rng(seed_sequence(seed, "chances given totals", f"{at}"))
        free = counts.draw(log_rate, cells.group, rungs, rng.random(len(log_rate)))
        own = int(rng.integers(2**62))
        y = with_totals(kept, free, log_weight, seed=own, dataset=0, cores=1, sweeps=sweeps)
        share = np.zeros(log_weight.shape, np.float32)
        every = np.arange(len(y))
        for _ in range(tables):
            kept.sweep(rng, log_weight, y)
            share[every, y] += np.float32(1.0 / tables)
        advance(1)
        return share

    with ThreadPoolExecutor(threads(cores)) as pool:
        return np.stack(list(pool.map(of_draw, draws.tolist())))
