r"""Reference sampler: Metropolis within Gibbs, to be read beside the paper's steps 1 to 6.

All groups advance together; given the other side, effects are independent, so one vectorised
proposal serves every origin of every group. ``init`` and ``step`` are pure functions of a state
and an explicit generator.

Corrections to the printed steps: the exponent in steps 1-2 is :math:`y_{ij}`; step 4 draws
:math:`\mu_\gamma`; steps 5-6 use the sum of squares about :math:`\mu`, which the full conditional
needs (about the mean, the chain does not leave the posterior invariant: the Geweke test fails).
One step is added. The data do not see :math:`\delta = \mu_\beta - \mu_\gamma`, and given
:math:`\alpha = \mu_\beta + \mu_\gamma` and the deviations its full conditional is its prior, so it
is redrawn exactly.

Four extensions add steps: the negative binomial family the coefficient of variation ``cv = r **
-0.5`` of its gamma-distributed cell effects, by a random walk on its logarithm; covariates their
coefficients, by a random walk; the pooled prior the national means and standard deviations of the
groups' parameters; the family ``base`` the coordinates of the base measure and their scale, by a
random walk.

References
----------
S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality", section 2.1.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.gibbs.conditionals import (
    Data,
    Side,
    State,
    draw_log_precision,
    draw_mean,
    measure,
    metropolis,
    metropolis_base,
    metropolis_coefficients,
    metropolis_cv,
    offset,
    refresh,
    sum_of_squares,
)
from bayes_sdc.flows.gibbs.national import draw_nation
from bayes_sdc.flows.gibbs.sampling import Sampling, generator_state, restored_generator
from bayes_sdc.flows.model.hyperpriors import (
    SD_DESTINATION,
    SD_ORIGIN,
    Priors,
    base_prior,
    is_pooled,
    level_means,
    nation,
    priors,
    slope_prior,
)
from bayes_sdc.flows.table.cells import SmallCells
from bayes_sdc.models.base_measure import basis

TARGET_ACCEPTANCE = 0.44  # of a one-dimensional random walk (Roberts and Rosenthal 2001)
SWEEPS_PER_DRAW = 5  # the random walk mixes slowly; the sweeps between are not kept


class Info(NamedTuple):
    """What the Metropolis steps did."""

    accepted_beta: np.ndarray  # (origin_effect,) bool
    accepted_gamma: np.ndarray  # (destination_effect,) bool
    accepted_cv: np.ndarray  # (group,) bool
    accepted_coefficient: np.ndarray  # (group, covariate) bool
    accepted_base: np.ndarray  # (degree + 1,) bool; or none


class Scales(NamedTuple):
    """Standard deviations of the random-walk proposals: c and d of steps 1 and 2, and the rest."""

    beta: np.ndarray  # (origin_effect,)
    gamma: np.ndarray  # (destination_effect,)
    log_cv: np.ndarray  # (group,)
    coefficient: np.ndarray  # (group, covariate)
    base: np.ndarray  # (degree + 1,) of the base measure, and of its scale; or none


def prepare(cells: SmallCells, family: str = "negative-binomial") -> Data:
    """Sort the cells by origin and by destination once."""
    none, impossible = np.empty((cells.upper + 1, 0)), cells.impossible
    return Data(
        y=cells.y.astype(np.float64),
        group=cells.group,
        origin=cells.origin,
        destination=cells.destination,
        x=cells.x,
        z=cells.z,
        origins=_side(cells.origin, cells.group_of_origin, len(cells.groups)),
        destinations=_side(cells.destination, cells.group_of_destination, len(cells.groups)),
        upper=cells.upper,
        bound=cells.bound,
        base=basis(cells.upper, impossible) if family == "base" else none,
        impossible=np.array(impossible, np.int64),
        weight=np.empty(0) if cells.weight is None else cells.weight,
        canonical=cells.canonical,
    )


def _side(effect_of_cell: np.ndarray, group_of_effect: np.ndarray, n_groups: int) -> Side:
    counts = np.bincount(effect_of_cell, minlength=len(group_of_effect))
    return Side(
        order=np.argsort(effect_of_cell, kind="stable"),
        start=np.concatenate([[0], np.cumsum(counts)]),
        group=group_of_effect,
        size=np.bincount(group_of_effect, minlength=n_groups).astype(np.float64),
    )


def init(rng: np.random.Generator, data: Data, family: str, prior: Mapping[str, float]) -> State:
    """Start near the data, spread out enough for R-hat to mean something."""
    n_groups = len(data.origins.size)
    mean = np.bincount(data.group, data.y, n_groups) / np.bincount(data.group, minlength=n_groups)
    # the odds of the mean count stand in for log lambda: finite when all counts are at a bound
    level = np.log((mean + 0.5) / (data.upper - mean + 0.5)) + rng.normal(0.0, 0.5, n_groups)
    beta = level[data.origins.group] / 2 + rng.normal(0.0, 0.5, len(data.origins.group))
    gamma = level[data.destinations.group] / 2 + rng.normal(0.0, 0.5, len(data.destinations.group))
    poisson = family == "poisson"
    start = priors(prior, data.x.shape[1], data.z.shape[1])
    state = State(
        beta=beta,
        gamma=gamma,
        mu_beta=level / 2,
        mu_gamma=level / 2,
        log_phi_beta=rng.normal(0.0, 0.5, n_groups),
        log_phi_gamma=rng.normal(0.0, 0.5, n_groups),
        log_cv=np.full(n_groups, -np.inf) if poisson else rng.normal(-0.5, 0.5, n_groups),
        coefficient=rng.normal(0.0, 0.2, (n_groups, data.x.shape[1])),
        national_mean=start.first,
        national_sd=start.second,
        national_slope=start.slope,
        base_z=np.asarray(rng.normal(0.0, 0.5, (data.base.shape[1],))),
        base_log_sd=np.array([base_prior(prior).mean if family == "base" else 0.0]),
        log_p=np.empty(0),
    )
    return refresh(state, data)


def first_scales(data: Data) -> Scales:
    """Guess the proposal scales at the start of the warm-up from the numbers of cells."""
    cells = np.bincount(data.group, minlength=len(data.origins.size))
    return Scales(
        beta=2.4 / np.sqrt(1.0 + 1.5 * np.diff(data.origins.start)),
        gamma=2.4 / np.sqrt(1.0 + 1.5 * np.diff(data.destinations.start)),
        log_cv=2.4 / np.sqrt(1.0 + 0.2 * cells),
        coefficient=np.repeat(1.0 / np.sqrt(1.0 + cells)[:, None], data.x.shape[1], axis=1),
        base=np.full(data.base.shape[1] + 1 if data.base.shape[1] else 0, 0.3),
    )


def step(
    rng: np.random.Generator,
    state: State,
    data: Data,
    scales: Scales,
    prior: Mapping[str, float],
) -> tuple[State, Info]:
    """One sweep: the paper's steps 1 to 6, the overdispersion, then the free direction.

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
    now = priors_now(state, prior)
    level_prior = level_means(now, data.z)
    # 1. beta_i given Y and gamma
    state, accepted_beta = metropolis_beta(rng, state, data, scales.beta)
    # 2. gamma_j given Y and beta
    state, accepted_gamma = metropolis_gamma(rng, state, data, scales.gamma)
    # 3. and 4. the means given the effects
    mu_beta = draw_mean(
        rng, state.beta, data.origins, state.log_phi_beta, state.mu_gamma, level_prior, now, prior
    )
    mu_gamma = draw_mean(
        rng, state.gamma, data.destinations, state.log_phi_gamma, mu_beta, level_prior, now, prior
    )
    # 5. and 6. the precisions given the effects
    log_phi_beta = draw_log_precision(
        rng,
        state.log_phi_beta,
        sum_of_squares(state.beta, mu_beta, data.origins),
        data.origins.size,
        now,
        SD_ORIGIN,
    )
    log_phi_gamma = draw_log_precision(
        rng,
        state.log_phi_gamma,
        sum_of_squares(state.gamma, mu_gamma, data.destinations),
        data.destinations.size,
        now,
        SD_DESTINATION,
    )
    # negative binomial only: the size r given Y and the effects
    state, accepted_cv = metropolis_cv(rng, state, data, scales.log_cv, now)
    # covariates only: each coefficient given the rest
    state, accepted_coefficient = metropolis_coefficients(rng, state, data, scales.coefficient, now)
    accepted_base = np.zeros(0, dtype=bool)
    if len(state.base_z):  # family "base" only
        state, accepted_base = metropolis_base(rng, state, data, scales.base, base_prior(prior))
    # the direction that the data do not see, exactly
    delta = rng.normal(0.0, math.sqrt(2.0) * prior["mu_sd"], len(mu_beta))
    shift = (delta - (mu_beta - mu_gamma)) / 2.0
    state = state._replace(
        beta=state.beta + shift[data.origins.group],
        gamma=state.gamma - shift[data.destinations.group],
        mu_beta=mu_beta + shift,
        mu_gamma=mu_gamma - shift,
        log_phi_beta=log_phi_beta,
        log_phi_gamma=log_phi_gamma,
    )
    # pooled prior only: the national distribution given the groups
    state = pool(rng, state, data.z, prior, now)
    return state, Info(
        accepted_beta, accepted_gamma, accepted_cv, accepted_coefficient, accepted_base
    )


def priors_now(state: State, prior: Mapping[str, float]) -> Priors:
    """Prior of the groups' parameters, with the present national distribution if it is pooled."""
    given = priors(prior, state.coefficient.shape[1], len(state.national_slope))
    if not is_pooled(prior):
        return given
    return Priors(given.kind, state.national_mean, state.national_sd, state.national_slope)


def pool(
    rng: np.random.Generator,
    state: State,
    z: np.ndarray,
    prior: Mapping[str, float],
    now: Priors,
) -> State:
    """Draw the national distribution, that of log cv only where it is sampled."""
    if not is_pooled(prior):
        return state
    theta = np.column_stack(
        [
            state.mu_beta + state.mu_gamma,
            -state.log_phi_beta / 2.0,
            -state.log_phi_gamma / 2.0,
            state.log_cv,
            state.coefficient,
        ]
    )
    sampled = np.flatnonzero(np.isfinite(theta).all(axis=0))
    hyper = nation(prior, state.coefficient.shape[1])
    new = draw_nation(rng, sampled, theta, z, now, hyper, slope_prior(prior))
    return state._replace(national_mean=new.first, national_sd=new.second, national_slope=new.slope)


def metropolis_beta(
    rng: np.random.Generator, state: State, data: Data, scale: np.ndarray
) -> tuple[State, np.ndarray]:
    """Step 1: a random-walk step for every beta_i at once; given gamma they are independent."""
    effect, log_p, accepted = metropolis(
        rng,
        state.beta,
        state.gamma[data.destination] + offset(state.coefficient, data),
        scale,
        state.mu_beta,
        state.log_phi_beta,
        data.origins,
        state,
        data,
    )
    return state._replace(beta=effect, log_p=log_p), accepted


def metropolis_gamma(
    rng: np.random.Generator, state: State, data: Data, scale: np.ndarray
) -> tuple[State, np.ndarray]:
    """Step 2: a random-walk step for every gamma_j at once; given beta they are independent."""
    effect, log_p, accepted = metropolis(
        rng,
        state.gamma,
        state.beta[data.origin] + offset(state.coefficient, data),
        scale,
        state.mu_gamma,
        state.log_phi_gamma,
        data.destinations,
        state,
        data,
    )
    return state._replace(gamma=effect, log_p=log_p), accepted


def tune(scales: Scales, info: Info, sweep: int) -> Scales:
    """Move the proposal scales towards the target acceptance; for the warm-up only."""
    rate = min(1.0, 3.0 / (sweep + 1.0) ** 0.6)
    return Scales(
        beta=scales.beta * np.exp(rate * (info.accepted_beta - TARGET_ACCEPTANCE)),
        gamma=scales.gamma * np.exp(rate * (info.accepted_gamma - TARGET_ACCEPTANCE)),
        log_cv=scales.log_cv * np.exp(rate * (info.accepted_cv - TARGET_ACCEPTANCE)),
        coefficient=scales.coefficient
        * np.exp(rate * (info.accepted_coefficient - TARGET_ACCEPTANCE)),
        base=scales.base * np.exp(rate * (info.accepted_base - TARGET_ACCEPTANCE)),
    )


class MarkovChain:
    """A running chain: :meth:`draw` advances it, :meth:`arrays` is its state.

    Parameters
    ----------
    data : Data
        From :func:`prepare`.
    sampling : Sampling
        Family, numbers of the prior and length of the warm-up.
    seed : numpy.random.SeedSequence
        Of this chain.
    """

    def __init__(self, data: Data, sampling: Sampling, seed: np.random.SeedSequence) -> None:
        self._data, self._sampling = data, sampling
        self._rng = np.random.default_rng(seed)
        self._state = init(self._rng, data, sampling.family, sampling.prior)
        self._scales = first_scales(data)
        self._accepted = Info(*(np.zeros(scale.shape) for scale in self._scales))
        self._number = 0  # sweeps done

    @property
    def done(self) -> int:
        """Draws made, those of the warm-up included."""
        return self._number // SWEEPS_PER_DRAW

    def draw(self) -> None:
        """Advance by :data:`SWEEPS_PER_DRAW` sweeps."""
        for _ in range(SWEEPS_PER_DRAW):
            self._state, info = step(
                self._rng, self._state, self._data, self._scales, self._sampling.prior
            )
            if self._number < self._sampling.tune * SWEEPS_PER_DRAW:
                self._scales = tune(self._scales, info, self._number)
            else:
                pairs = zip(self._accepted, info, strict=True)
                self._accepted = Info(*(total + now for total, now in pairs))
            self._number += 1

    def record(self) -> dict[str, np.ndarray]:
        """Present values by the paper's names."""
        names = [name for name in State._fields if name != "log_p"]
        if not is_pooled(self._sampling.prior):
            names = [name for name in names if not name.startswith("national")]
        found = {name: getattr(self._state, name) for name in names}
        if len(self._state.base_z):
            found["base"] = measure(self._state, self._data)
            found["base_sd"] = np.exp(self._state.base_log_sd)
        return found

    def acceptance(self) -> dict[str, np.ndarray]:
        """Acceptance rates after the warm-up."""
        sweeps = max(self._number - self._sampling.tune * SWEEPS_PER_DRAW, 1)
        return {
            "acceptance_beta": self._accepted.accepted_beta / sweeps,
            "acceptance_gamma": self._accepted.accepted_gamma / sweeps,
            "acceptance_r": self._accepted.accepted_cv / sweeps,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that a chain needs to continue exactly as it would have."""
        return {
            **self._state._asdict(),
            **{f"scale_{name}": scale for name, scale in self._scales._asdict().items()},
            **self._accepted._asdict(),
            "number": np.array(self._number),
            "generator": generator_state(self._rng),
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Return to the state of a chain of the same call."""
        self._state = State(*(arrays[name] for name in State._fields))
        self._scales = Scales(*(arrays[f"scale_{name}"] for name in Scales._fields))
        self._accepted = Info(*(arrays[name] for name in Info._fields))
        self._number = int(arrays["number"])
        self._rng = restored_generator(arrays["generator"])
