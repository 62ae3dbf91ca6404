"""Draws of the latent-class model itself, which predict the values of a record from one another."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.convergence import convergence
from bayes_sdc.cores import threads
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.latent_classes.combinations import cells_of, rows_of_levels
from bayes_sdc.microdata.latent_classes.gibbs import MONITORS, plan_for, run_sweeps, start_state
from bayes_sdc.seeds import generator

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LARGE = 20_000  # combinations from which two chains and a shorter run have to do
WATCHED = (400, 40)  # sweeps of a chain after the warm-up: of a small file and a large one
AT_ONCE = 10  # sweeps between two looks at whether somebody wants to stop


class Layout(NamedTuple):
    """Where the levels of each key stand in tables with one row per level, keys as in the file.

    Parameters
    ----------
    start : array of int, shape (key + 1,)
        First row of each key, and the number of all rows.
    lacking : array of bool, shape (key,)
        Whether the first level of a key stands for a missing value, by the rule "own".
    """

    start: Integers
    lacking: npt.NDArray[np.bool_]

    def rows(self, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return rows for codes of the file, shape (..., key); -1 for what is to be summed over."""
        moved = codes.astype(np.int64) + self.lacking
        return np.where(moved < 0, -1, moved + self.start[:-1])


def layout_of(data: Microdata) -> Layout:
    """Return where the levels of each key stand.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"age": ["20", "30", None], "sex": list("mff")})
    >>> own = layout_of(read_microdata(people, keys=["age", "sex"], missing="own"))
    >>> own.start.tolist(), own.lacking.tolist()
    ([0, 3, 5], [True, False])
    """
    lacking = (data.codes < 0).any(axis=0) & (data.missing == "own")
    sizes = np.array([len(labels) for labels in data.labels]) + lacking
    return Layout(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), lacking)


class States(NamedTuple):
    """Draws from the posterior of the latent classes.

    Parameters
    ----------
    layout : Layout
        Rows of ``phi``.
    eta : array, shape (draw, class)
        Weights of the classes.
    phi : array, shape (draw, row, class)
        Probability of each level in each class.
    rhat, ess : dict
        By quantity that does not depend on the labels of the classes.
    """

    layout: Layout
    eta: Floats
    phi: Floats
    rhat: dict[str, float]
    ess: dict[str, float]

    def thinned(self, draws: int) -> "States":
        """Return so many of the draws, spread over all chains."""
        kept = np.unique(np.linspace(0, len(self.eta) - 1, min(draws, len(self.eta))).astype(int))
        return self._replace(eta=self.eta[kept], phi=self.phi[kept])


def draw_states(data: Microdata, *, draws: int, seed: int, cores: int | None = None) -> States:
    """Draw from the posterior of the latent classes of a file.

    Parameters
    ----------
    data : Microdata
        Its keys are all variables of the model.
    draws : int
        At least so many are kept, the same number of each chain.
    seed : int
        The chains do not depend on the order of the records, nor on the number of cores.
    cores : int, optional
        Threads.

    Returns
    -------
    States
        Draws, in turn from each chain.
    """
    cells, layout = cells_of(data), layout_of(data)
    plan = plan_for(data.n, len(cells.rows))
    large = len(cells.rows) >= LARGE
    chains = 2 if large else 4
    warm_up = min(plan.warm_up, 250) if large else plan.warm_up
    each = -(-draws // chains)
    between = AT_ONCE * max(1, WATCHED[large] // each // AT_ONCE)
    rest = float(len(cells.records))
    stop = Event()

    def chain(number: int) -> tuple[Floats, list[Floats], list[Floats]] | None:
        rng = generator(seed, "latent classes to predict from", str(number))
        state = start_state(rng, cells, plan.classes)
        watched = np.empty((warm_up + each * between, len(MONITORS)))
        eta, phi = [], []
        for begin in range(0, len(watched), AT_ONCE):
            if stop.is_set():
                return None
            run_sweeps(
                rng, cells.start, cells.rows, cells.shared, cells.records, rest, state,
                watched[begin : begin + AT_ONCE],
            )  # fmt: skip
            if begin >= warm_up and (begin + AT_ONCE - warm_up) % between == 0:
                eta.append(state.eta.copy())
                phi.append(state.phi.copy())
        return watched[warm_up:], eta, phi

    with ThreadPoolExecutor(min(threads(cores), chains)) as pool:
        jobs = [pool.submit(partial(chain, number)) for number in range(chains)]
        try:
            found = [result for job in jobs if (result := job.result()) is not None]
        except BaseException:
            stop.set()
            raise
    order = np.concatenate(rows_of_levels(data))
    rhat, ess = {}, {}
    for k, name in enumerate(MONITORS):
        watched = np.stack([monitors[:, k] for monitors, _, _ in found])
        judged = convergence(watched[:, :, None]) if np.ptp(watched) > 0.0 else None
        rhat[name] = 1.0 if judged is None else float(judged[0][0])
        ess[name] = float(watched.size) if judged is None else float(judged[1][0])
    eta = np.stack([one for draw in zip(*(e for _, e, _ in found), strict=True) for one in draw])
    phi = np.stack([one for draw in zip(*(p for _, _, p in found), strict=True) for one in draw])
    return States(layout, eta, np.ascontiguousarray(phi[:, order]), rhat, ess)
