"""Chains of the latent-class sampler, on threads; each chain is the same on any number of them."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.latent_classes.combinations import Cells, shared_beginnings
from bayes_sdc.microdata.latent_classes.conditionals import (
    draw_classes,
    draw_eta,
    draw_phi,
    sweep,
)
from bayes_sdc.microdata.latent_classes.draws import compiled
from bayes_sdc.microdata.latent_classes.resolutions import depth_of
from bayes_sdc.microdata.latent_classes.sample import Sample
from bayes_sdc.microdata.latent_classes.second_stage import Chain, SecondStage
from bayes_sdc.microdata.latent_classes.state import State
from bayes_sdc.microdata.latent_classes.zeros import sweep_with_zeros
from bayes_sdc.seeds import generator

CHAINS = 4
#: The second: sample uniques that no other person matches if nothing scatters about the classes;
#: the third: the sum of the squared probabilities of the combinations that occur.
MONITORS = ("log likelihood", "uniques by the classes alone", "evenness of the combinations")
PART = 0.1  # of the records of the largest files, for the early sweeps
FEWEST_CLASSES, MOST_CLASSES, CLASSES_IN_LARGE_FILES = 40, 200, 60

Floats = npt.NDArray[np.float64]


class Plan(NamedTuple):
    """How long to sample.

    Parameters
    ----------
    classes : int
        H, at most so many latent classes.
    warm_up : int
        Sweeps that are forgotten.
    draws : int
        Of the base by chain, for the second stage.
    every : int
        Sweeps from one of them to the next.
    early : int
        Sweeps before the others, which see a part of the records.
    """

    classes: int
    warm_up: int
    draws: int
    every: int
    early: int = 0


def plan_for(n: int, combinations: int) -> Plan:
    """Choose the length of a run by the size of the file: fewer draws where each tells more.

    A larger file has more to say of dependences: where all classes are in use, chains settle for
    different ones, and find too many population uniques. Of a census of 63,388 people 60 classes
    fit worse than 150 by 8,000 in log likelihood. In the largest files time sets the limit, so a
    tenth of the records takes the chains near to where all would: of 400,000 the chains are then
    closer to each other (R-hat of the log likelihood 1.2, not 2.0) in six tenths of the time, and
    the estimates are the same to 0.1 %. In small files the number of classes in use wanders slowly,
    and sweeps cost next to nothing.

    Examples
    --------
    >>> plan_for(300, 200)
    Plan(classes=40, warm_up=700, draws=40, every=50, early=0)
    >>> plan_for(5000, 3000)
    Plan(classes=106, warm_up=350, draws=40, every=15, early=0)
    """
    classes = min(max(round(1.5 * math.sqrt(n)), FEWEST_CLASSES), MOST_CLASSES)
    if n < 1000:
        return Plan(classes, 700, 40, 50)
    if combinations < 20_000:
        return Plan(classes, 350, 40, 15)
    if combinations < 100_000:
        return Plan(classes, 600, 25, 20)
    return Plan(CLASSES_IN_LARGE_FILES, 20, 10, 6, early=400)


def part_of(rng: np.random.Generator, cells: Cells) -> Cells:
    """Draw a tenth of the records at random: cells of the same levels."""
    records = rng.binomial(cells.records, PART)
    kept = np.flatnonzero(records)
    rows = cells.rows[kept]
    return Cells(rows, shared_beginnings(rows), records[kept], cells.start, cells.place[kept])


def start_state(rng: np.random.Generator, cells: Cells, classes: int) -> State:
    """Start from combinations dealt to the classes at random: far from any answer, and apart."""
    keys, rows = len(cells.start) - 1, int(cells.start[-1])
    sizes = np.diff(cells.start)
    depths = np.array([depth_of(int(size)) for size in sizes], dtype=np.int64)
    resolutions = int(depths.max()) + 1
    state = State(
        alpha=np.ones(1),
        eta=np.empty(classes),
        strength=np.minimum(sizes, 10).astype(np.float64),
        base=np.repeat(1.0 / sizes, sizes),
        phi=np.empty((rows, classes)),
        resolution=np.repeat(depths[:, None], classes, axis=1),
        shares=np.repeat(1.0 / (1.0 + depths[:, None]), resolutions, axis=1),
        size=np.zeros(classes, dtype=np.int64),
        counts=np.zeros((rows, classes), dtype=np.int64),
        g=np.empty(len(cells.rows)),
    )
    dealt = rng.integers(0, classes, len(cells.rows))
    np.add.at(state.size, dealt, cells.records)
    for j in range(keys):
        known = cells.rows[:, j] >= 0
        np.add.at(state.counts, (cells.rows[known, j], dealt[known]), cells.records[known])
    draw_eta(rng, state)
    draw_phi(rng, cells.start, state)
    draw_classes(rng, cells.rows, cells.shared, cells.records, state)
    return state


@compiled
def watch(g: np.ndarray, records: np.ndarray, rest: float, into: np.ndarray) -> None:
    """Note what does not depend on the labels of the classes; see :data:`MONITORS`."""
    into[:] = 0.0
    for k in range(len(g)):
        into[0] += records[k] * np.log(g[k])
        if records[k] == 1:
            into[1] += np.exp(-rest * g[k])
        into[2] += g[k] * g[k]


@compiled
def run_sweeps(
    rng: np.random.Generator, start: np.ndarray, rows: np.ndarray, shared: np.ndarray,
    records: np.ndarray, rest: float, state: State, monitors: np.ndarray,
) -> None:  # fmt: skip
    """Sweep as often as ``monitors`` has rows; without columns nothing is noted."""
    for i in range(len(monitors)):
        sweep(rng, start, rows, shared, records, state)
        if monitors.shape[1] > 0:
            watch(state.g, records, rest, monitors[i])


@compiled
def run_with_zeros(
    rng: np.random.Generator, start: np.ndarray, rows: np.ndarray, shared: np.ndarray,
    records: np.ndarray, rest: float, state: State, monitors: np.ndarray, rules: np.ndarray,
) -> bool:  # fmt: skip
    """Sweep likewise where some combinations cannot occur; False where nearly all cannot."""
    for i in range(len(monitors)):
        if sweep_with_zeros(rng, start, rows, shared, records, rules, state) < 0:
            return False
        if monitors.shape[1] > 0:
            watch(state.g, records, rest, monitors[i])
    return True


def sweep_on(
    rng: np.random.Generator, sample: Sample, rest: float, state: State, monitors: Floats
) -> None:
    """Sweep as often as ``monitors`` has rows; without columns nothing is noted."""
    cells = sample.cells
    now = (rng, cells.start, cells.rows, cells.shared, cells.records, rest, state, monitors)
    if not len(sample.rules):
        run_sweeps(*now)
    elif not run_with_zeros(*now, sample.rules):
        raise InputError(
            "the structural zeros forbid nearly everything that the other dependences of the keys "
            "expect, so that latent classes cannot be fitted; remedy: fewer rules"
        )


def run_chain(
    sample: Sample, plan: Plan, seed: int, number: int, stopped: Callable[[], bool]
) -> Chain | None:
    """Run one chain with its second stage; None where it was stopped."""
    rng, cells = generator(seed, "latent classes", str(number)), sample.cells
    second = SecondStage(sample, plan.draws, seed, number)
    rest = (sample.population - 1.0) * second.n
    monitors = np.empty((plan.draws * plan.every, len(MONITORS)))

    def advance(of: Sample, state: State, into: Floats) -> bool:
        for begin in range(0, len(into), 10):
            if stopped():
                return False
            sweep_on(rng, of, rest, state, into[begin : begin + 10])
        return True

    first = sample._replace(cells=part_of(rng, cells)) if plan.early else sample
    state = start_state(rng, first.cells, plan.classes)
    if not advance(first, state, np.empty((plan.early, 0))):
        return None
    if plan.early:
        state = state._replace(g=np.empty(len(cells.rows)))
        draw_classes(rng, cells.rows, cells.shared, cells.records, state)
    if not advance(sample, state, np.empty((plan.warm_up, 0))):
        return None
    for draw in range(plan.draws):
        done = draw * plan.every
        if not advance(sample, state, monitors[done : done + plan.every]):
            return None
        second.add(draw, state)
    return second.chain(monitors)


def run_chains(sample: Sample, plan: Plan, *, seed: int, threads: int) -> list[Chain]:
    """Run all chains, so many at a time; an interruption ends them after a few sweeps."""
    stop = Event()
    with ThreadPoolExecutor(min(threads, CHAINS)) as pool:
        jobs = [
            pool.submit(run_chain, sample, plan, seed, number, stop.is_set)
            for number in range(CHAINS)
        ]
        try:
            found = [job.result() for job in jobs]
        except BaseException:
            stop.set()
            raise
    return [chain for chain in found if chain is not None]
