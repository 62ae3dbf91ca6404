"""Chains of the Gibbs engine: from a table's small cells to posterior draws.

One sweep serves all groups; see :mod:`bayes_sdc.flows.newton` for what a sweep does.
"""

from collections.abc import Callable, Mapping

import numpy as np

from bayes_sdc.flows.chain import Chain
from bayes_sdc.flows.hyperpriors import CV, LEVEL, Priors, is_pooled, nation, priors
from bayes_sdc.flows.layout import Layout
from bayes_sdc.flows.national import draw_nation, move_nation
from bayes_sdc.flows.newton import Data, State, adapted, refresh_group, sweep

SWEEPS_PER_DRAW = 3  # the sweeps between two kept draws cost time but no memory


def prepare(cells: Layout) -> Data:
    """Sort the cells by destination and mark the runs of groups and effects once."""

    def runs(index: np.ndarray, length: int) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(np.bincount(index, minlength=length))])

    groups = len(cells.groups)
    return Data(
        y=cells.y.astype(np.float64),
        origin=cells.origin,
        destination=cells.destination,
        x=np.ascontiguousarray(cells.x),
        cells_of_group=runs(cells.group, groups),
        origins_of_group=runs(cells.group_of_origin, groups),
        destinations_of_group=runs(cells.group_of_destination, groups),
        by_origin=np.argsort(cells.origin, kind="stable"),
        cells_of_origin=runs(cells.origin, len(cells.group_of_origin)),
        by_destination=np.argsort(cells.destination, kind="stable"),
        cells_of_destination=runs(cells.destination, len(cells.group_of_destination)),
        upper=cells.upper,
    )


def init(rng: np.random.Generator, data: Data, family: str) -> State:
    """Start near the data, spread out enough for R-hat to mean something."""
    groups, parameters = len(data.cells_of_group) - 1, CV + 1 + data.x.shape[1]
    group = np.repeat(np.arange(groups), np.diff(data.cells_of_group))
    size = np.bincount(group, minlength=groups)
    mean = np.bincount(group, data.y, groups) / np.maximum(size, 1)
    mean[size == 0] = data.upper / 2.0
    theta = rng.normal(0.0, 0.2, (groups, parameters))
    # the odds of the mean count stand in for log lambda: finite when all counts are at a bound
    theta[:, LEVEL] += np.log((mean + 0.5) / (data.upper - mean + 0.5))
    theta[:, LEVEL + 1 : CV + 1] -= 0.7
    if family == "poisson":
        theta[:, CV] = -np.inf
    state = State(
        theta=theta,
        b=rng.normal(0.0, 0.3, data.origins_of_group[-1]),
        g=rng.normal(0.0, 0.3, data.destinations_of_group[-1]),
        log_rate=np.empty(len(data.y)),
        terms=np.empty((len(data.y), 6)),
        ladders=np.zeros((groups, 4, data.upper + 1)),
        step_size=np.full(groups + 1, 0.7),
    )
    for g in range(groups):
        refresh_group(g, data, state)
    return state


def sample_chain(
    data: Data,
    prior: Mapping[str, float],
    *,
    family: str,
    draws: int,
    tune_draws: int,
    seed: np.random.SeedSequence,
    after_draw: Callable[[], None] = lambda: None,
) -> Chain:
    """Run one chain; each kept draw is the last of :data:`SWEEPS_PER_DRAW` sweeps.

    Parameters
    ----------
    data : Data
        From :func:`prepare`.
    prior : mapping
        Numbers of the prior, as in :data:`bayes_sdc.models.migration.PRIORS`.
    family : str
        Distribution of the counts.
    draws, tune_draws : int
        Kept draws, and as many times :data:`SWEEPS_PER_DRAW` sweeps of warm-up.
    seed : numpy.random.SeedSequence
        Of this chain.
    after_draw : callable
        Called after every draw and warm-up draw; may raise to stop.

    Returns
    -------
    Chain
        Kept states by the paper's names, and acceptance rates after the warm-up.
    """
    rng = np.random.default_rng(seed)
    state = init(rng, data, family)
    parameters = state.theta.shape[1]
    columns = np.array([k for k in range(parameters) if k != CV or family != "poisson"])
    now = priors(prior, data.x.shape[1])
    hyper = nation(prior, data.x.shape[1]) if is_pooled(prior) else None
    accepted = np.zeros((len(state.theta), 3))
    total = np.zeros_like(accepted)
    kept: list[dict[str, np.ndarray]] = []
    warm_up = tune_draws * SWEEPS_PER_DRAW
    for number in range(warm_up + draws * SWEEPS_PER_DRAW):
        adapt = min(1.0, 3.0 / (number + 1.0) ** 0.6) if number < warm_up else 0.0
        sweep(rng, columns, data, state, now, adapt, accepted)
        if hyper is not None:
            now = _draw_nation(rng, columns, state, now, hyper)
            moved = move_nation(rng, columns, data, state, now, hyper)
            if adapt > 0.0:
                state.step_size[-1] = adapted(state.step_size[-1], float(moved), adapt)
        if number >= warm_up:
            total += accepted
        if (number + 1) % SWEEPS_PER_DRAW == 0:
            if number >= warm_up:
                kept.append(_record(rng, data, state, now, prior, hyper is not None))
            after_draw()
    rates = total / (draws * SWEEPS_PER_DRAW)
    return Chain(
        {name: np.stack([one[name] for one in kept]) for name in kept[0]},
        {
            "acceptance_origins": rates[:, 0],
            "acceptance_destinations": rates[:, 1],
            "acceptance_jointly": rates[:, 2],
        },
    )


def _draw_nation(
    rng: np.random.Generator, columns: np.ndarray, state: State, now: Priors, hyper: np.ndarray
) -> Priors:
    """The centred move for the columns that are sampled."""
    part = Priors(now.kind[columns], now.first[columns], now.second[columns])
    new = draw_nation(rng, state.theta[:, columns], part, hyper[columns])
    first, second = now.first.copy(), now.second.copy()
    first[columns], second[columns] = new.first, new.second
    return Priors(now.kind, first, second)


def _record(
    rng: np.random.Generator,
    data: Data,
    state: State,
    now: Priors,
    prior: Mapping[str, float],
    pooled: bool,
) -> dict[str, np.ndarray]:
    """Copy the state under the paper's names; delta, which no count informs, from its prior."""
    theta = state.theta
    delta = rng.normal(0.0, np.sqrt(2.0) * prior["mu_sd"], len(theta))
    mu_beta, mu_gamma = (theta[:, LEVEL] + delta) / 2.0, (theta[:, LEVEL] - delta) / 2.0
    group = np.arange(len(theta))
    record = {
        "beta": state.b + mu_beta[np.repeat(group, np.diff(data.origins_of_group))],
        "gamma": state.g + mu_gamma[np.repeat(group, np.diff(data.destinations_of_group))],
        "mu_beta": mu_beta,
        "mu_gamma": mu_gamma,
        "log_phi_beta": -2.0 * theta[:, 1],
        "log_phi_gamma": -2.0 * theta[:, 2],
        "log_cv": theta[:, CV].copy(),
        "coefficient": theta[:, CV + 1 :].copy(),
    }
    if pooled:
        record["national_mean"], record["national_sd"] = now.first.copy(), now.second.copy()
    return record
