"""Release probabilities by refitting: the exact answer, for chosen cells.

For each candidate the target's true count is replaced and the posterior is sampled anew by the
Gibbs engine, from several starts that are draws of the fitted posterior. A large table needs little
warm-up, because one count hardly moves it. In a tiny one it moves everything and mixing is slow,
but a sweep costs next to nothing, so there are many more (:func:`sweeps_of_start`). The mean over
the new posterior of the target's probabilities is its row of M; starts are independent of each
other, so their spread gives the Monte Carlo error.

Without pooling only the target's group is sampled, because the others do not matter. With pooling
the whole table is, up to :data:`WHOLE` cells; in a larger one, the target's group and the national
distribution, while the other groups' parameters keep their posterior draws. One count of thousands
reaches them only through the national distribution.
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import xarray as xr

from bayes_sdc.cores import threads
from bayes_sdc.flows.gibbs import engine
from bayes_sdc.flows.gibbs.base_move import Base, base_at, copy_of, move_base
from bayes_sdc.flows.gibbs.batch_terms import BASE, TERMS
from bayes_sdc.flows.gibbs.national import draw_nation, move_nation
from bayes_sdc.flows.gibbs.newton import sweep
from bayes_sdc.flows.gibbs.newton_step import adapted
from bayes_sdc.flows.gibbs.state import Data, State, empty_coefficients, refresh
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.hyperpriors import (
    CV,
    Priors,
    base_prior,
    compiled,
    is_pooled,
    nation,
    priors,
    slope_prior,
)
from bayes_sdc.flows.table.bound import Bound
from bayes_sdc.flows.table.cells import SmallCells, subset
from bayes_sdc.seeds import generator

SMALLEST_PRECISION = 1e-250  # one of the paper's prior may underflow
STARTS, WARM_UP, SWEEPS = 20, 20, 60  # starts of each candidate, and the least sweeps of each
# Sweeps times cells that a start of a tiny table may take, and the most sweeps as a multiple of the
# least. In tables of 4 to 12 cells 80 sweeps left errors of M of 0.03, 60 times as many
# leave 0.01: against quadrature, tests/flows/intruder/estimators/test_refit.py.
WORK, LONGEST = 60_000, 60
OPTIONAL = (
    "r", "coefficient", "national_mean", "national_sd", "national_slope", "base", "base_sd",
)  # fmt: skip
AT_A_TIME = 5  # sweeps between two draws of the national distribution given all groups
WHOLE = 1000  # cells of a table that is sampled as a whole under the pooled prior


class Refit(NamedTuple):
    """Release probabilities of the chosen cells from refits."""

    m: np.ndarray  # (target, candidate, released)
    error: np.ndarray  # (target, candidate, released) Monte Carlo standard error
    ess: np.ndarray  # (target, candidate) independent sweeps that would give the largest error
    by_start: np.ndarray  # (start, target, candidate, released)


def refit(
    posterior: xr.DataTree,
    cells: SmallCells,
    targets: np.ndarray,
    *,
    seed: int,
    cores: int | None = None,
    advance: Callable[[float], None] = lambda units: None,
) -> Refit:
    """Refit with every candidate count of each target.

    Parameters
    ----------
    posterior : DataTree
        From any sampler.
    cells : SmallCells
        The counts that were fitted.
    targets : array of int
        Positions of the cells.
    seed : int
        A target's numbers do not depend on which others are refitted.
    cores : int, optional
        Threads; by default all. The numbers do not depend on it.
    advance : callable
        Told how many targets are done.

    Returns
    -------
    Refit
        M, its Monte Carlo error, and the effective number of sweeps.

    References
    ----------
    Hawala, Reiter and Wang, eq. (6).
    """
    settings = json.loads(posterior.attrs["prior_settings"])
    width = cells.upper + 1
    by_start = np.empty((STARTS, len(targets), width, width))
    squares, sweeps = np.zeros((len(targets), width, width)), np.empty(len(targets))
    pooled = is_pooled(settings)

    def one(number: int) -> None:
        t = int(targets[number])
        moving = np.array([cells.group[t]])
        if pooled and len(cells.y) <= WHOLE:
            moving = np.arange(len(cells.groups))
        part = subset(cells, moving)
        position = int(np.flatnonzero(np.flatnonzero(np.isin(cells.group, moving)) == t)[0])
        lengths = sweeps_of_start(len(part.y))
        sweeps[number] = lengths[1]
        starts = _starts(posterior, cells, moving, seed, cells.cells[t])
        for candidate in range(width):
            y = part.y.copy()
            y[position] = candidate
            data = engine.prepare(part._replace(y=y))
            rng = generator(seed, f"refit {cells.cells[t]} {candidate}")
            step_size = np.full(len(moving) + 2, 0.7)
            for k, start in enumerate(starts):
                state = start.state(data, step_size)
                mean, square = _mean_probabilities(
                    rng, data, state, position, settings, start, lengths, cells.bound
                )
                by_start[k, number, candidate] = mean
                squares[number, candidate] += square / STARTS
                step_size = state.step_size
        advance(1)

    with ThreadPoolExecutor(threads(cores)) as pool:
        list(pool.map(one, range(len(targets))))
    m = by_start.mean(axis=0)
    error = by_start.std(axis=0, ddof=1) / np.sqrt(STARTS)
    drawn = STARTS * sweeps[:, None, None]
    return Refit(m, error, _effective_sweeps(squares - m**2, error, drawn), by_start)


def sweeps_of_start(cells: int) -> tuple[int, int]:
    """Sweeps of the warm-up and kept sweeps of each start, for so many cells that are sampled.

    Examples
    --------
    >>> sweeps_of_start(9), sweeps_of_start(50), sweeps_of_start(10_000)
    ((1200, 3600), (300, 900), (20, 60))
    """
    times = min(max(WORK // (max(cells, 1) * (WARM_UP + SWEEPS)), 1), LONGEST)
    return times * WARM_UP, times * SWEEPS


def _effective_sweeps(variance: np.ndarray, error: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Variance of one sweep over that of the mean, the smallest over released counts.

    At most the number of sweeps, which is taken where nothing varies.
    """
    several = np.maximum(variance, 0.0) / np.where(error > 0.0, error, 1.0) ** 2
    several = np.where(error > 0.0, several, drawn)
    return np.asarray(np.clip(several, 1.0, drawn).min(axis=-1))


class _Start(NamedTuple):
    """A posterior draw to start from."""

    theta: np.ndarray  # (moving group, parameter)
    b: np.ndarray
    g: np.ndarray
    held: np.ndarray  # (other group, parameter)
    z: np.ndarray  # (group, group covariate) moving groups first
    mean: np.ndarray  # (parameter,) of the nation; empty without pooling
    sd: np.ndarray
    slope: np.ndarray  # (group covariate,)
    base: Base | None  # the measure of all groups, with family "base"

    def state(self, data: Data, step_size: np.ndarray) -> State:
        """State of the engine at this draw."""
        groups = len(self.theta)
        state = State(
            theta=self.theta.copy(),
            b=self.b.copy(),
            g=self.g.copy(),
            log_rate=np.empty(len(data.y)),
            terms=np.empty((TERMS, len(data.y))),
            coefficients=empty_coefficients(groups, data),
            step_size=step_size.copy(),
        )
        if self.base is not None:
            state.coefficients[:, BASE] = self.base.log_measure()
        refresh(data, state)
        return state


def _starts(
    posterior: xr.DataTree, cells: SmallCells, moving: np.ndarray, seed: int, label: str
) -> list[_Start]:
    """Equally spaced draws of all chains laid end to end, from a random one."""
    draws = posterior["posterior"].to_dataset()
    chains, length = draws.sizes["chain"], draws.sizes["draw"]
    first = generator(seed, f"refit {label}").integers(chains * length)
    chosen = (first + np.arange(STARTS) * chains * length // STARTS) % (chains * length)
    held = np.setdiff1d(np.arange(len(cells.groups)), moving)
    in_origin = np.isin(cells.group_of_origin, moving)
    in_destination = np.isin(cells.group_of_destination, moving)
    names = ["alpha", "phi_beta", "phi_gamma", "mu_beta", "mu_gamma", "beta", "gamma"]
    names += [name for name in OPTIONAL if name in draws]
    starts = []
    for number in chosen:
        one = {name: draws[name].values[number // length, number % length] for name in names}
        columns = [
            one["alpha"],
            *(
                -0.5 * np.log(np.maximum(one[name], SMALLEST_PRECISION))
                for name in ("phi_beta", "phi_gamma")
            ),
        ]
        columns.append(
            -0.5 * np.log(one["r"]) if "r" in one else np.full_like(one["alpha"], -np.inf)
        )
        theta = np.column_stack(
            [*columns, *one.get("coefficient", np.empty((len(columns[0]), 0))).T]
        )
        starts.append(
            _Start(
                theta=theta[moving],
                b=(one["beta"] - one["mu_beta"][cells.group_of_origin])[in_origin],
                g=(one["gamma"] - one["mu_gamma"][cells.group_of_destination])[in_destination],
                held=theta[held],
                z=cells.z[np.concatenate([moving, held])],
                mean=one.get("national_mean", np.empty(0)),
                sd=one.get("national_sd", np.empty(0)),
                slope=one.get("national_slope", np.zeros(cells.z.shape[1])),
                base=base_at(one["base"], float(one["base_sd"]), cells.upper, cells.impossible)
                if "base" in one
                else None,
            )
        )
    return starts


def _mean_probabilities(
    rng: np.random.Generator,
    data: Data,
    state: State,
    target: int,
    settings: dict[str, float],
    start: _Start,
    lengths: tuple[int, int],
    bound: Bound | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean of the target's probabilities over one run of the engine, and of their squares."""
    poisson = bool(np.isneginf(state.theta[0, CV]))
    parameters, covariates = state.theta.shape[1], data.x.shape[1]
    columns = np.array([k for k in range(parameters) if k != CV or not poisson])
    now = priors(settings, covariates, len(start.slope))
    hyper, of_slope = np.empty((0, 4)), np.zeros(2)
    if len(start.mean):
        hyper, of_slope = nation(settings, covariates), slope_prior(settings)
        now.first[columns], now.second[columns] = start.mean, start.sd
        now.slope[:] = start.slope
    base = None if start.base is None else copy_of(start.base)
    moves = hyper if not len(start.held) else hyper[:0]
    warm_up, sweeps = lengths
    kept, measures = np.empty((2, sweeps)), np.zeros((sweeps, data.upper + 1))
    for number in range(-warm_up, sweeps, AT_A_TIME):
        first = max(number, 0)  # the warm-up is overwritten
        run_engine(
            rng, columns, data, state, now, moves, of_slope, 0.2 if number < 0 else 0.0, target,
            kept[:, first : first + AT_A_TIME],
        )  # fmt: skip
        if len(hyper):
            theta = np.concatenate([state.theta, start.held])
            now = draw_nation(rng, columns, theta, start.z, now, hyper, of_slope)
        # the measure rests on fixed cells as well, so one count among a few does not move it
        if base is not None and not len(start.held):
            adapt = 0.2 if number < 0 else 0.0
            move_base(rng, base, data, state, now, hyper, base_prior(settings), adapt)
        measures[first : first + AT_A_TIME] = state.coefficients[0, BASE]
    rungs = counts.ladder(
        np.exp(2.0 * kept[1]), data.upper, bound, measures, canonical=data.canonical
    )
    p = counts.probabilities(kept[0], np.arange(sweeps), rungs)
    return p.mean(axis=0), (p**2).mean(axis=0)


@compiled
def run_engine(
    rng: np.random.Generator, columns: np.ndarray, data: Data, state: State, now: Priors,
    hyper: np.ndarray, of_slope: np.ndarray, adapt: float, target: int, kept: np.ndarray,
) -> None:  # fmt: skip
    """Make a sweep for each column of ``kept``: the target's log rate and its group's log cv.

    With a hyperprior the national distribution moves together with the groups.
    """
    accepted = np.zeros((len(state.theta), 3))
    group = np.searchsorted(data.cells_of_group, target, side="right") - 1
    for number in range(kept.shape[1]):
        sweep(rng, columns, data, state, now, adapt, accepted)
        if len(hyper):
            moved = move_nation(rng, columns, data, state, now, hyper, of_slope, True)
            if adapt > 0.0:
                state.step_size[-2] = adapted(state.step_size[-2], 1.0 if moved else 0.0, adapt)
        kept[0, number], kept[1, number] = state.log_rate[target], state.theta[group, CV]
