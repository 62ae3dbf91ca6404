"""Chains of the Gibbs engine: from a table's small cells to posterior draws.

One sweep serves all groups; see :mod:`bayes_sdc.flows.gibbs.newton` for what a sweep does.
"""

from collections.abc import Mapping

import numpy as np

from bayes_sdc.flows.gibbs.base_move import Base, move_base, put_base, start_base
from bayes_sdc.flows.gibbs.batch_terms import TERMS
from bayes_sdc.flows.gibbs.national import draw_nation, linear, move_nation
from bayes_sdc.flows.gibbs.newton import sweep
from bayes_sdc.flows.gibbs.newton_step import adapted
from bayes_sdc.flows.gibbs.sampling import Sampling, generator_state, restored_generator
from bayes_sdc.flows.gibbs.state import (
    OF_CELL,
    OF_DESTINATION,
    OF_ORIGIN,
    Data,
    State,
    empty_coefficients,
    refresh,
    refresh_terms,
)
from bayes_sdc.flows.model.bounded import row_of
from bayes_sdc.flows.model.hyperpriors import (
    CV,
    LEVEL,
    Priors,
    base_prior,
    is_pooled,
    nation,
    priors,
    slope_prior,
)
from bayes_sdc.flows.table.cells import SmallCells

OF_BASE = ("z", "log_sd", "step_size")  # the parts of a base measure that move
SWEEPS_PER_DRAW = 3  # the sweeps between two kept draws cost time but no memory


def prepare(cells: SmallCells) -> Data:
    """Find the runs of the groups once."""

    def runs(index: np.ndarray, length: int) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(np.bincount(index, minlength=length))])

    groups = len(cells.groups)
    x_origin = _by_area(cells.x, cells.origin, len(cells.group_of_origin))
    x_destination = _by_area(cells.x, cells.destination, len(cells.group_of_destination))
    of = np.full(cells.x.shape[1], OF_CELL)
    of[(x_destination[:, cells.destination] == cells.x.T).all(axis=1)] = OF_DESTINATION
    of[(x_origin[:, cells.origin] == cells.x.T).all(axis=1)] = OF_ORIGIN
    x_origin[of != OF_ORIGIN] = 0.0
    x_destination[of != OF_DESTINATION] = 0.0
    return Data(
        y=cells.y.astype(np.float64),
        origin=cells.origin,
        destination=cells.destination,
        x=np.ascontiguousarray(np.where(of == OF_CELL, cells.x, 0.0)),
        of=of,
        x_origin=x_origin,
        x_destination=x_destination,
        z=np.array(cells.z, order="C"),  # writable, else everything is compiled twice
        cells_of_group=runs(cells.group, groups),
        origins_of_group=runs(cells.group_of_origin, groups),
        destinations_of_group=runs(cells.group_of_destination, groups),
        upper=cells.upper,
        bound=row_of(cells.bound, cells.upper),
        weight=np.empty(0) if cells.weight is None else cells.weight.copy(),
        canonical=cells.canonical,
    )


def _by_area(x: np.ndarray, index: np.ndarray, areas: int) -> np.ndarray:
    """Covariates of some cell of each area, (covariate, area); 0 for an area without cells."""
    values = np.zeros((x.shape[1], areas))
    values[:, index] = x.T
    return values


def init(rng: np.random.Generator, data: Data, family: str) -> State:
    """Start near the data, spread out enough for R-hat to mean something."""
    groups, parameters = len(data.cells_of_group) - 1, CV + 1 + data.x.shape[1]
    group = np.repeat(np.arange(groups), np.diff(data.cells_of_group))
    weight = data.weight if len(data.weight) else np.ones(len(data.y))
    size = np.bincount(group, weight, groups)
    mean = np.bincount(group, weight * data.y, groups) / np.where(size > 0.0, size, 1.0)
    mean[size == 0.0] = data.upper / 2.0
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
        terms=np.empty((TERMS, len(data.y))),
        coefficients=empty_coefficients(groups, data),
        step_size=np.full(groups + 2, 0.7),
    )
    refresh(data, state)
    return state


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
        self._state = init(self._rng, data, sampling.family)
        groups, parameters = self._state.theta.shape
        poisson = sampling.family == "poisson"
        self._columns = np.array([k for k in range(parameters) if k != CV or not poisson])
        covariates = data.x.shape[1]
        self._now = priors(sampling.prior, covariates, data.z.shape[1])
        pooled = is_pooled(sampling.prior)
        self._hyper = nation(sampling.prior, covariates) if pooled else None
        self._base: Base | None = None
        if sampling.family == "base":
            of_base = base_prior(sampling.prior)
            self._base = start_base(self._rng, data.upper, sampling.impossible, of_base)
            put_base(self._base, data, self._state)
        self._accepted = np.zeros((groups, 3))
        self._number = 0  # sweeps done

    @property
    def done(self) -> int:
        """Draws made, those of the warm-up included."""
        return self._number // SWEEPS_PER_DRAW

    def draw(self) -> None:
        """Advance by :data:`SWEEPS_PER_DRAW` sweeps."""
        accepted = np.empty_like(self._accepted)
        warm_up = self._sampling.tune * SWEEPS_PER_DRAW
        for _ in range(SWEEPS_PER_DRAW):
            number = self._number
            adapt = min(1.0, 3.0 / (number + 1.0) ** 0.6) if number < warm_up else 0.0
            # coefficients move jointly with the rest once per draw, because that costs most
            whole = number % SWEEPS_PER_DRAW == SWEEPS_PER_DRAW - 1
            columns = self._columns if whole else self._columns[self._columns <= CV]
            sweep(self._rng, columns, self._data, self._state, self._now, adapt, accepted)
            if self._hyper is not None:
                self._pool(columns, adapt)
            if number >= warm_up:
                self._accepted += accepted
            self._number += 1

    def _pool(self, columns: np.ndarray, adapt: float) -> None:
        """Move the national distribution, centred and not."""
        assert self._hyper is not None  # noqa: S101  # only called with the pooled prior
        state = self._state
        hyper = self._hyper, slope_prior(self._sampling.prior)
        theta, z = state.theta, self._data.z
        self._now = draw_nation(self._rng, self._columns, theta, z, self._now, *hyper)
        accepted = move_nation(self._rng, columns, self._data, state, self._now, *hyper, True)
        if adapt > 0.0:
            state.step_size[-2] = adapted(state.step_size[-2], float(accepted), adapt)
        if columns[-1] > CV:
            means = linear(columns)
            accepted = move_nation(self._rng, means, self._data, state, self._now, *hyper, False)
            if adapt > 0.0:
                state.step_size[-1] = adapted(state.step_size[-1], float(accepted), adapt)
        if self._base is not None and len(columns) == len(self._columns):  # once per draw
            prior = base_prior(self._sampling.prior)
            move_base(
                self._rng, self._base, self._data, state, self._now, self._hyper, prior, adapt
            )

    def record(self) -> dict[str, np.ndarray]:
        """Present values under the names of the posterior."""
        pooled = self._hyper is not None
        found = _record(self._rng, self._data, self._state, self._now, self._sampling.prior, pooled)
        if self._base is not None:
            found["base"] = self._base.log_measure()
            found["base_sd"] = np.exp(self._base.log_sd)
        return found

    def acceptance(self) -> dict[str, np.ndarray]:
        """Acceptance rates after the warm-up."""
        sweeps = max(self._number - self._sampling.tune * SWEEPS_PER_DRAW, 1)
        names = ("acceptance_origins", "acceptance_destinations", "acceptance_jointly")
        return dict(zip(names, self._accepted.T / sweeps, strict=True))

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that a chain needs to continue exactly as it would have."""
        return {
            "theta": self._state.theta,
            "b": self._state.b,
            "g": self._state.g,
            "step_size": self._state.step_size,
            "first": self._now.first,
            "second": self._now.second,
            "slope": self._now.slope,
            "accepted": self._accepted,
            "number": np.array(self._number),
            "generator": generator_state(self._rng),
            # sums that were rounded on the way would be rounded differently if formed again
            "log_rate": self._state.log_rate,
            **(
                {}
                if self._base is None
                else {f"base_{name}": getattr(self._base, name) for name in OF_BASE}
            ),
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Return to the state of a chain of the same call."""
        self._number = int(arrays["number"])
        self._now = self._now._replace(
            **{name: arrays[name] for name in ("first", "second", "slope")}
        )
        self._accepted = arrays["accepted"]
        self._rng = restored_generator(arrays["generator"])
        self._state = self._state._replace(
            **{name: arrays[name] for name in ("theta", "b", "g", "step_size", "log_rate")}
        )
        if self._base is not None:
            kept = {name: arrays[f"base_{name}"] for name in OF_BASE}
            self._base = self._base._replace(**kept)
            put_base(self._base, self._data, self._state)
        refresh_terms(self._data, self._state)


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
        record["national_slope"] = now.slope.copy()
    return record
