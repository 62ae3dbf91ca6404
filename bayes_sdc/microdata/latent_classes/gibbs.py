"""Chains of the latent-class sampler, on threads; each chain is the same on any number of them."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.latent_classes.combinations import Cells
from bayes_sdc.microdata.latent_classes.conditionals import (
    State,
    draw_classes,
    draw_eta,
    draw_phi,
    sweep,
)
from bayes_sdc.microdata.latent_classes.draws import compiled
from bayes_sdc.microdata.latent_classes.households import (
    NOBODY,
    Companions,
    label_records,
    without_household,
)
from bayes_sdc.microdata.latent_classes.prediction import HYPER_DRAWS, Prediction, predict
from bayes_sdc.microdata.latent_classes.unseen import (
    EQUAL_WEIGHTS,
    NO_RULES,
    draw_unseen,
    index_rows,
)
from bayes_sdc.microdata.latent_classes.zeros import sweep_with_zeros
from bayes_sdc.seeds import generator

CHAINS = 4
MONITORS = ("log likelihood", "plain P(F = 1)", "sum of g squared")
UNSEEN = 3  # draws from the base for each record
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
    """

    classes: int
    warm_up: int
    draws: int
    every: int


def plan_for(n: int, combinations: int) -> Plan:
    """Choose the length of a run by the size of the file: fewer draws where each tells more.

    A larger file has more to say of dependences: where all classes are in use, chains settle for
    different ones, and find too many population uniques. Of a census of 63,388 people 60 classes
    fit worse than 150 by 8,000 in log likelihood. In the largest files time sets the limit. In
    small files the number of classes in use wanders slowly, and sweeps cost next to nothing.

    Examples
    --------
    >>> plan_for(300, 200)
    Plan(classes=40, warm_up=700, draws=40, every=50)
    >>> plan_for(5000, 3000)
    Plan(classes=106, warm_up=350, draws=40, every=15)
    """
    classes = min(max(round(1.5 * math.sqrt(n)), FEWEST_CLASSES), MOST_CLASSES)
    if n < 1000:
        return Plan(classes, 700, 40, 50)
    if combinations < 20_000:
        return Plan(classes, 350, 40, 15)
    if combinations < 100_000:
        return Plan(classes, 600, 25, 20)
    return Plan(CLASSES_IN_LARGE_FILES, 150, 10, 15)


class Chain(NamedTuple):
    """What a chain gives.

    Parameters
    ----------
    monitors : array, shape (sweep, 3)
        After the warm-up, see :data:`MONITORS`.
    unique, inverse : array, shape (draw, sample unique)
        P(F = 1) and the mean of 1 / F by draw of base, R and kappa.
    unique_mean, inverse_mean : array, shape (sample unique,)
        Their means over all draws.
    totals : array, shape (draw, hyper draw, 6)
        See `bayes_sdc.microdata.latent_classes.prediction.Prediction`.
    """

    monitors: Floats
    unique: npt.NDArray[np.float32]
    inverse: npt.NDArray[np.float32]
    unique_mean: Floats
    inverse_mean: Floats
    totals: Floats


def start_state(rng: np.random.Generator, cells: Cells, classes: int) -> State:
    """Start from combinations dealt to the classes at random: far from any answer, and apart."""
    keys, rows = len(cells.start) - 1, int(cells.start[-1])
    sizes = np.diff(cells.start)
    state = State(
        alpha=np.ones(1),
        eta=np.empty(classes),
        strength=np.minimum(sizes, 10).astype(np.float64),
        base=np.repeat(1.0 / sizes, sizes),
        phi=np.empty((rows, classes)),
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
    """Sweep as often as ``monitors`` has rows."""
    for i in range(len(monitors)):
        sweep(rng, start, rows, shared, records, state)
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
        watch(state.g, records, rest, monitors[i])
    return True


class Sample(NamedTuple):
    """What the chains need to know of the file.

    Parameters
    ----------
    cells : Cells
        Its combinations.
    unique : array of int, shape (sample unique,)
        Their rows in ``cells``.
    times : array, shape (sample unique,)
        Members of the population for each record with its key values; N / n without weights.
    population : float
        N / n.
    pull : float
        See :func:`bayes_sdc.microdata.latent_classes.dispersion.log_prior`.
    rules : array of bool, shape (rule, row)
        See :func:`bayes_sdc.microdata.latent_classes.zeros.rules_for`.
    effects : array, shape (row + 1,)
        See :func:`bayes_sdc.microdata.latent_classes.weights.log_weights`; empty without weights.
    companions : Companions
        Rest of the household of each sample unique.
    """

    cells: Cells
    unique: npt.NDArray[np.int64]
    times: Floats
    population: float
    pull: float
    rules: npt.NDArray[np.bool_] = NO_RULES
    effects: Floats = EQUAL_WEIGHTS
    companions: Companions = NOBODY


def _nothing_predicted(uniques: int) -> Prediction:
    """Sums to which the draws of a chain are added."""
    return Prediction(
        unique=np.zeros(uniques),
        inverse=np.zeros(uniques),
        unique_sum=np.zeros(uniques),
        inverse_sum=np.zeros(uniques),
        totals=np.empty((HYPER_DRAWS, 6)),
    )


def sweep_on(
    rng: np.random.Generator, sample: Sample, rest: float, state: State, monitors: Floats
) -> None:
    """Sweep as often as ``monitors`` has rows."""
    cells = sample.cells
    now = (rng, cells.start, cells.rows, cells.shared, cells.records, rest, state, monitors)
    if not len(sample.rules):
        run_sweeps(*now)
    elif not run_with_zeros(*now, sample.rules):
        raise InputError(
            "the structural zeros forbid nearly everything that the other dependences of the keys "
            "expect, so that latent classes cannot be fitted; remedy: fewer rules"
        )


def _households(rng: np.random.Generator, sample: Sample, state: State) -> Floats:
    """How much lower log g is without the rest of the household, by sample unique."""
    if not len(sample.companions.first):
        return np.zeros(len(sample.unique))
    cells = sample.cells
    labels, counts = label_records(rng, cells.rows, cells.shared, cells.records, state)
    found: Floats = without_household(
        sample.unique, cells.start, cells.rows, *sample.companions, labels, state, counts
    )
    return found


def run_chain(
    sample: Sample, plan: Plan, seed: int, number: int, stopped: Callable[[], bool]
) -> Chain | None:
    """Run one chain with its second stage; None where it was stopped."""
    cells = sample.cells
    rng = generator(seed, "latent classes", str(number))
    second = generator(seed, "scatter about latent classes", str(number))
    state = start_state(rng, cells, plan.classes)
    complete = np.flatnonzero((cells.rows >= 0).all(axis=1))
    occupied = np.ascontiguousarray(cells.rows[complete])
    table = index_rows(occupied)
    f = cells.records[complete]
    # by the rules that match missing values the scatter is learned from complete records; a record
    # is unique among all of them
    known, n = float(f.sum()), float(cells.records.sum())
    rest = (sample.population - 1.0) * n
    monitors = np.empty((plan.warm_up + plan.draws * plan.every, len(MONITORS)))
    uniques = len(sample.unique)
    of_draw = np.empty((2, plan.draws, uniques), dtype=np.float32)
    totals = np.empty((plan.draws, HYPER_DRAWS, 6))
    result = _nothing_predicted(uniques)

    def advance(first: int, after: int) -> bool:
        for begin in range(first, after, 10):
            if stopped():
                return False
            part = monitors[begin : min(begin + 10, after)]
            sweep_on(rng, sample, rest, state, part)
        return True

    if not advance(0, plan.warm_up):
        return None
    for draw in range(plan.draws):
        done = plan.warm_up + draw * plan.every
        if not advance(done, done + plan.every):
            return None
        number_drawn = int(UNSEEN * n)
        unseen, unseen_times, possible = draw_unseen(
            second, number_drawn, cells.start, occupied, table, state.eta, state.phi, sample.rules,
            sample.effects,
        )  # fmt: skip
        # what is possible has probability 1 together
        share = max(possible, 1) / number_drawn
        predict(
            second, f, np.log(known / share * state.g[complete]),
            np.log(max(known, 1.0) / share * unseen), unseen_times, known / max(possible, 1),
            np.log(n / share * state.g[sample.unique]) + _households(second, sample, state),
            sample.times, sample.population,
            sample.pull, result,
        )  # fmt: skip
        of_draw[0, draw], of_draw[1, draw], totals[draw] = (
            result.unique, result.inverse, result.totals,
        )  # fmt: skip
    number_of_draws = plan.draws * HYPER_DRAWS
    return Chain(
        monitors[plan.warm_up :],
        of_draw[0],
        of_draw[1],
        result.unique_sum / number_of_draws,
        result.inverse_sum / number_of_draws,
        totals,
    )


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
