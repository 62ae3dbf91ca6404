r"""Reference sampler: Metropolis within Gibbs, readable beside the paper's steps 1 to 6.

All groups advance together; given the other side, effects are independent, so one vectorised
proposal serves every origin of every group. ``init`` and ``step`` are pure functions of a state
and an explicit generator.

Corrections to the printed steps: the exponent in steps 1-2 is :math:`y_{ij}`; step 4 draws
:math:`\mu_\gamma`; steps 5-6 use the sum of squares about :math:`\mu`, which the full conditional
needs (about the mean, the chain does not leave the posterior invariant: the Geweke test fails).
One step is added. The data do not see :math:`\delta = \mu_\beta - \mu_\gamma`, and given
:math:`\alpha = \mu_\beta + \mu_\gamma` and the deviations its full conditional is its prior, so it
is redrawn exactly.

References
----------
S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality", section 2.1.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numba
import numpy as np

from bayes_sdc.flows.counts import log_normalizer, log_normalizers
from bayes_sdc.flows.layout import Layout

TARGET_ACCEPTANCE = 0.44  # of a one-dimensional random walk (Roberts and Rosenthal 2001)
SWEEPS_PER_DRAW = 5  # the random walk mixes slowly; the sweeps between are not kept
SD_STEPS = 3  # random-walk steps for a standard deviation without a conjugate draw


class State(NamedTuple):
    """Where the chain is. Effects as in the paper; log-precisions, since phi may underflow."""

    beta: np.ndarray  # (origin_effect,)
    gamma: np.ndarray  # (destination_effect,)
    mu_beta: np.ndarray  # (group,)
    mu_gamma: np.ndarray  # (group,)
    log_phi_beta: np.ndarray  # (group,)
    log_phi_gamma: np.ndarray  # (group,)
    log_z: np.ndarray  # (cell,) log-normaliser at beta + gamma, kept to be computed once a step


class Info(NamedTuple):
    """What the Metropolis steps did."""

    accepted_beta: np.ndarray  # (origin_effect,) bool
    accepted_gamma: np.ndarray  # (destination_effect,) bool


class Side(NamedTuple):
    """The cells of each effect of one side, as consecutive runs of ``order``."""

    order: np.ndarray  # (cell,) cells sorted by effect
    start: np.ndarray  # (effect + 1,) runs in order
    group: np.ndarray  # (effect,)
    size: np.ndarray  # (group,) number of effects


class Data(NamedTuple):
    """Counts and index arrays of all groups."""

    y: np.ndarray  # (cell,)
    origin: np.ndarray  # (cell,)
    destination: np.ndarray  # (cell,)
    origins: Side
    destinations: Side
    upper: int


class Scales(NamedTuple):
    """Standard deviations c and d of the random-walk proposals of steps 1 and 2."""

    beta: np.ndarray  # (origin_effect,)
    gamma: np.ndarray  # (destination_effect,)


def prepare(cells: Layout) -> Data:
    """Sort the cells by origin and by destination once."""
    return Data(
        y=cells.y.astype(np.float64),
        origin=cells.origin,
        destination=cells.destination,
        origins=_side(cells.origin, cells.group_of_origin, len(cells.groups)),
        destinations=_side(cells.destination, cells.group_of_destination, len(cells.groups)),
        upper=cells.upper,
    )


def _side(effect_of_cell: np.ndarray, group_of_effect: np.ndarray, n_groups: int) -> Side:
    counts = np.bincount(effect_of_cell, minlength=len(group_of_effect))
    return Side(
        order=np.argsort(effect_of_cell, kind="stable"),
        start=np.concatenate([[0], np.cumsum(counts)]),
        group=group_of_effect,
        size=np.bincount(group_of_effect, minlength=n_groups).astype(np.float64),
    )


def init(rng: np.random.Generator, data: Data) -> State:
    """Start near the data, spread out enough for R-hat to mean something."""
    n_groups = len(data.origins.size)
    group = data.origins.group[data.origin]
    mean = np.bincount(group, data.y, n_groups) / np.bincount(group, minlength=n_groups)
    # the odds of the mean count stand in for log lambda: finite when all counts are at a bound
    level = np.log((mean + 0.5) / (data.upper - mean + 0.5)) + rng.normal(0.0, 0.5, n_groups)
    beta = level[data.origins.group] / 2 + rng.normal(0.0, 0.5, len(data.origins.group))
    gamma = level[data.destinations.group] / 2 + rng.normal(0.0, 0.5, len(data.destinations.group))
    return State(
        beta=beta,
        gamma=gamma,
        mu_beta=level / 2,
        mu_gamma=level / 2,
        log_phi_beta=rng.normal(0.0, 0.5, n_groups),
        log_phi_gamma=rng.normal(0.0, 0.5, n_groups),
        log_z=log_normalizers(beta[data.origin] + gamma[data.destination], data.upper),
    )


def first_scales(data: Data) -> Scales:
    """Guess proposal scales from the number of cells, for the warm-up to start from."""
    return Scales(
        beta=2.4 / np.sqrt(1.0 + 1.5 * np.diff(data.origins.start)),
        gamma=2.4 / np.sqrt(1.0 + 1.5 * np.diff(data.destinations.start)),
    )


def step(
    rng: np.random.Generator,
    state: State,
    data: Data,
    scales: Scales,
    prior: Mapping[str, float],
) -> tuple[State, Info]:
    """One sweep: the paper's steps 1 to 6, then the free direction.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of all randomness.
    state : State
        Current values.
    data : Data
        Counts and index arrays.
    scales : Scales
        Proposal standard deviations.
    prior : mapping
        Numbers of the prior, as in ``bayes_sdc.models.migration.PRIORS``.

    Returns
    -------
    State, Info
        The new values and what was accepted.
    """
    beta, gamma, mu_beta, mu_gamma, log_phi_beta, log_phi_gamma, log_z = state

    # 1. beta_i given Y and gamma
    beta, accepted_beta, log_z = metropolis(
        rng,
        beta,
        gamma[data.destination],
        log_z,
        data,
        data.origins,
        scales.beta,
        mu_beta,
        log_phi_beta,
    )
    # 2. gamma_j given Y and beta
    gamma, accepted_gamma, log_z = metropolis(
        rng,
        gamma,
        beta[data.origin],
        log_z,
        data,
        data.destinations,
        scales.gamma,
        mu_gamma,
        log_phi_gamma,
    )
    # 3. and 4. the means given the effects
    mu_beta = draw_mean(rng, beta, data.origins, log_phi_beta, prior)
    mu_gamma = draw_mean(rng, gamma, data.destinations, log_phi_gamma, prior)
    # 5. and 6. the precisions given the effects
    log_phi_beta = draw_log_precision(
        rng, log_phi_beta, sum_of_squares(beta, mu_beta, data.origins), data.origins.size, prior
    )
    log_phi_gamma = draw_log_precision(
        rng,
        log_phi_gamma,
        sum_of_squares(gamma, mu_gamma, data.destinations),
        data.destinations.size,
        prior,
    )
    # the direction that the data do not see, exactly
    delta = rng.normal(0.0, math.sqrt(2.0) * prior["mu_sd"], len(mu_beta))
    shift = (delta - (mu_beta - mu_gamma)) / 2.0
    new = State(
        beta=beta + shift[data.origins.group],
        gamma=gamma - shift[data.destinations.group],
        mu_beta=mu_beta + shift,
        mu_gamma=mu_gamma - shift,
        log_phi_beta=log_phi_beta,
        log_phi_gamma=log_phi_gamma,
        log_z=log_z,
    )
    return new, Info(accepted_beta, accepted_gamma)


def metropolis(
    rng: np.random.Generator,
    effect: np.ndarray,
    other: np.ndarray,
    log_z: np.ndarray,
    data: Data,
    side: Side,
    scale: np.ndarray,
    mu: np.ndarray,
    log_phi: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random-walk step for every effect of one side; ``other`` is the other side's, per cell."""
    proposal = effect + scale * rng.standard_normal(len(effect))
    log_ratio, log_z_then = log_likelihood_ratio(
        effect, proposal, other, log_z, data.y, side.order, side.start, data.upper
    )
    mean, phi = mu[side.group], np.exp(log_phi[side.group])
    log_ratio -= phi * ((proposal - mean) ** 2 - (effect - mean) ** 2) / 2.0
    accepted = -rng.standard_exponential(len(effect)) < log_ratio
    moved = np.repeat(accepted, np.diff(side.start))
    log_z = log_z.copy()
    log_z[side.order[moved]] = log_z_then[side.order[moved]]
    return np.where(accepted, proposal, effect), accepted, log_z


@numba.njit(cache=True, nogil=True)
def log_likelihood_ratio(
    effect: np.ndarray,
    proposal: np.ndarray,
    other: np.ndarray,
    log_z: np.ndarray,
    y: np.ndarray,
    order: np.ndarray,
    start: np.ndarray,
    upper: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihood of each proposal minus that of the present value, over its own cells."""
    ratio, log_z_then = np.zeros(len(effect)), np.empty(len(log_z))
    for e in range(len(effect)):
        for position in range(start[e], start[e + 1]):
            cell = order[position]
            log_z_then[cell] = log_normalizer(proposal[e] + other[cell], upper)
            ratio[e] += y[cell] * (proposal[e] - effect[e]) - (log_z_then[cell] - log_z[cell])
    return ratio, log_z_then


def draw_mean(
    rng: np.random.Generator,
    effect: np.ndarray,
    side: Side,
    log_phi: np.ndarray,
    prior: Mapping[str, float],
) -> np.ndarray:
    """Steps 3 and 4: normal with precision n phi + 1/sigma_mu^2 (25 in the paper)."""
    phi = np.exp(log_phi)
    precision = side.size * phi + prior["mu_sd"] ** -2.0
    total = np.bincount(side.group, effect, len(side.size))
    noise = rng.standard_normal(len(phi)) / np.sqrt(precision)
    return np.asarray(phi * total / precision + noise)


def sum_of_squares(effect: np.ndarray, mu: np.ndarray, side: Side) -> np.ndarray:
    """Squares of the effects of each group about mu (printed: about their mean, wrongly)."""
    return np.bincount(side.group, (effect - mu[side.group]) ** 2, len(side.size))


def draw_log_precision(
    rng: np.random.Generator,
    log_phi: np.ndarray,
    squares: np.ndarray,
    size: np.ndarray,
    prior: Mapping[str, float],
) -> np.ndarray:
    """Steps 5 and 6: gamma draw under the gamma prior, random walk under the half-normal."""
    if "phi_shape" in prior:
        shape = prior["phi_shape"] + size / 2.0
        log_gamma = np.log(rng.standard_gamma(shape))
        return np.asarray(log_gamma - np.log(prior["phi_rate"] + squares / 2.0))

    def log_density(log_sd: np.ndarray) -> np.ndarray:
        # of log sd: likelihood of the effects, half-normal prior, and the change of variable
        variance = np.exp(2.0 * log_sd)
        half_normal = variance / (2.0 * prior["sd_scale"] ** 2)
        return np.asarray((1.0 - size) * log_sd - squares / (2.0 * variance) - half_normal)

    log_sd = -log_phi / 2.0
    scale = 2.4 / np.sqrt(1.0 + 2.0 * size)  # the curvature at the mode is about 2 n
    for _ in range(SD_STEPS):
        proposal = log_sd + scale * rng.standard_normal(len(log_sd))
        log_ratio = log_density(proposal) - log_density(log_sd)
        accepted = -rng.standard_exponential(len(log_sd)) < log_ratio
        log_sd = np.where(accepted, proposal, log_sd)
    return -2.0 * log_sd


def tune(scales: Scales, info: Info, sweep: int) -> Scales:
    """Move the proposal scales towards the target acceptance; for the warm-up only."""
    rate = min(1.0, 3.0 / (sweep + 1.0) ** 0.6)
    return Scales(
        beta=scales.beta * np.exp(rate * (info.accepted_beta - TARGET_ACCEPTANCE)),
        gamma=scales.gamma * np.exp(rate * (info.accepted_gamma - TARGET_ACCEPTANCE)),
    )


class Chain(NamedTuple):
    """The kept states of one chain, and the acceptance rates after the warm-up."""

    states: dict[str, np.ndarray]  # the fields of State but log_z, with a leading draw axis
    acceptance_beta: np.ndarray  # (origin_effect,)
    acceptance_gamma: np.ndarray  # (destination_effect,)


def sample_chain(
    data: Data,
    prior: Mapping[str, float],
    *,
    draws: int,
    tune_draws: int,
    seed: np.random.SeedSequence,
    after_draw: Callable[[], None] = lambda: None,
) -> Chain:
    """Run one chain; each kept draw is the last of :data:`SWEEPS_PER_DRAW` sweeps."""
    rng = np.random.default_rng(seed)
    state, scales = init(rng, data), first_scales(data)
    for sweep in range(tune_draws * SWEEPS_PER_DRAW):
        state, info = step(rng, state, data, scales, prior)
        scales = tune(scales, info, sweep)
        if sweep % SWEEPS_PER_DRAW == 0:
            after_draw()
    kept = {
        name: np.empty((draws, len(field)))
        for name, field in state._asdict().items()
        if name != "log_z"
    }
    accepted_beta, accepted_gamma = np.zeros(len(state.beta)), np.zeros(len(state.gamma))
    for draw in range(draws):
        for _ in range(SWEEPS_PER_DRAW):
            state, info = step(rng, state, data, scales, prior)
            accepted_beta += info.accepted_beta
            accepted_gamma += info.accepted_gamma
        for name, store in kept.items():
            store[draw] = getattr(state, name)
        after_draw()
    sweeps = draws * SWEEPS_PER_DRAW
    return Chain(kept, accepted_beta / sweeps, accepted_gamma / sweeps)
