r"""The base measure of the family ``base``: three moves for its coordinates and their scale.

The logarithm of the measure is :math:`\sum_d u_d q_d(y)` with :math:`u_d = \tau z_d`, where the
columns :math:`q_d` of :func:`bayes_sdc.models.base_measure.basis` hold the standard deviations of
the coordinates relative to each other. The first draws :math:`\tau` given the :math:`u_d`. The
second is a Newton proposal for all coordinates and the levels of all groups: in a table of many
cells a full step. The third moves :math:`\log \tau` as well, for tables that say little of the
measure; where they say much, its steps are small.

The log cv of the groups act on the counts as a measure does (:mod:`bayes_sdc.models.canonical`):
their national mean is held near its prior mean, and the measure has what all groups share.
"""

import math
from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.gibbs.batch_terms import (
    BASE,
    LOG_PRODUCT,
    TERMS,
)
from bayes_sdc.flows.gibbs.newton_step import adapted, log_newton_step, newton_step
from bayes_sdc.flows.gibbs.state import Data, State, refresh_terms
from bayes_sdc.flows.model.hyperpriors import LEVEL, BasePrior, Priors, compiled
from bayes_sdc.models.base_measure import IMPOSSIBLE, basis

SD_STEPS = 3  # random-walk steps of the scale given the coordinates


class Base(NamedTuple):
    """The measure of a chain; all arrays but the first are changed in place."""

    columns: np.ndarray  # (K + 1, degree) q_d
    impossible: np.ndarray  # (impossible,) counts
    z: np.ndarray  # (degree,)
    log_sd: np.ndarray  # (1,) log tau
    step_size: np.ndarray  # (2,) of the Newton proposals, without the scale and with it, in (0, 1]

    def log_measure(self) -> np.ndarray:
        """Log h of every count."""
        measure = self.columns @ (math.exp(self.log_sd[0]) * self.z)
        measure[self.impossible] = IMPOSSIBLE
        return np.asarray(measure)


def start_base(
    rng: np.random.Generator, upper: int, impossible: tuple[int, ...], prior: BasePrior
) -> Base:
    """Start near the negative binomial."""
    columns = basis(upper, impossible)
    z = rng.normal(0.0, 0.5, columns.shape[1])
    log_sd = prior.mean + rng.normal(0.0, 0.3, 1)
    return Base(columns, np.array(impossible, np.int64), z, log_sd, np.full(2, 0.7))


def base_at(measure: np.ndarray, sd: float, upper: int, impossible: tuple[int, ...]) -> Base:
    """Base with this log measure of the possible counts and this tau, as stored in a posterior."""
    columns = basis(upper, impossible)
    there = np.delete(columns, impossible, axis=0)
    z = np.linalg.lstsq(there, measure, rcond=None)[0] / sd
    return Base(columns, np.array(impossible, np.int64), z, np.log([sd]), np.full(2, 0.7))


def copy_of(base: Base) -> Base:
    """A copy to move from."""
    z, log_sd, step_size = base.z.copy(), base.log_sd.copy(), base.step_size.copy()
    return base._replace(z=z, log_sd=log_sd, step_size=step_size)


def put_base(base: Base, data: Data, state: State) -> None:
    """Give the state this measure."""
    state.coefficients[:, BASE] = base.log_measure()
    refresh_terms(data, state)


def move_base(
    rng: np.random.Generator, base: Base, data: Data, state: State, now: Priors,
    hyper: np.ndarray, prior: BasePrior, adapt: float,
) -> None:  # fmt: skip
    """Make all three moves; ``base``, ``state`` and ``now`` are changed in place.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of all randomness.
    base : Base
        The measure that the state has.
    data, state
        Of the engine.
    now : Priors
        The national distribution, whose mean of the levels moves with the groups.
    hyper : array of float, shape (parameter, 4)
        From :func:`bayes_sdc.flows.model.hyperpriors.nation`.
    prior : BasePrior
        Of log tau.
    adapt : float
        Above 0 tunes the size of the proposal.
    """
    base.log_sd[0], base.z[:] = draw_scale(rng, base.log_sd[0], base.z, prior)
    for k, with_scale in enumerate((False, True)):
        moved = _newton(rng, base, data, state, now, hyper, prior, with_scale)
        if adapt > 0.0:
            base.step_size[k] = adapted(base.step_size[k], float(moved), adapt)


def draw_scale(
    rng: np.random.Generator, log_sd: float, z: np.ndarray, prior: BasePrior
) -> tuple[float, np.ndarray]:
    """Draw log tau given u = tau z; returns it and the z that leave u where it is."""
    log_sd = float(log_sd)
    u = math.exp(log_sd) * z

    def log_density(x: float) -> float:
        away = (x - prior.mean) / prior.sd
        return float(-len(u) * x - 0.5 * (u @ u) * math.exp(-2.0 * x) - 0.5 * away**2)

    height, scale = log_density(log_sd), 2.4 / math.sqrt(2.0 * len(u) + prior.sd**-2.0)
    for _ in range(SD_STEPS):
        then = log_sd + scale * rng.standard_normal()
        new = log_density(then)
        if -rng.standard_exponential() < new - height:
            log_sd, height = then, new
    return log_sd, u * math.exp(-log_sd)


def _newton(
    rng: np.random.Generator, base: Base, data: Data, state: State, now: Priors,
    hyper: np.ndarray, prior: BasePrior, with_scale: bool,
) -> bool:  # fmt: skip
    """A Newton proposal for z, log tau, and the levels of all groups together."""
    degrees, size = len(base.z), base.step_size[int(with_scale)]
    kept = np.array([k for k in range(degrees + 2) if with_scale or k != degrees])
    slope, metric, height = _information(base, data, state, now, hyper, prior)
    move = np.zeros(degrees + 2)
    move[kept], log_q = newton_step(rng, slope[kept], metric[np.ix_(kept, kept)], size)
    there = base._replace(z=base.z + move[:degrees], log_sd=base.log_sd + move[degrees])
    if not abs(there.log_sd[0]) < 20.0 or np.abs(there.log_measure()).max() > -IMPOSSIBLE:
        return False
    new, mean = _shifted(there, data, state, now, move[degrees + 1])
    new_slope, new_metric, new_height = _information(there, data, new, mean, hyper, prior)
    if not np.isfinite(new_height):
        return False
    log_ratio = (
        new_height
        - height
        - log_q
        + log_newton_step(-move[kept], new_slope[kept], new_metric[np.ix_(kept, kept)], size)
    )
    if not -rng.standard_exponential() < log_ratio:
        return False
    base.z[:], base.log_sd[:], now.first[:] = there.z, there.log_sd, mean.first
    for name in ("theta", "log_rate", "terms", "coefficients"):
        getattr(state, name)[...] = getattr(new, name)
    return True


def _shifted(
    base: Base, data: Data, state: State, now: Priors, level: float
) -> tuple[State, Priors]:
    """State and nation with another measure, and all levels moved by one number."""
    shift = np.zeros(state.theta.shape[1])
    shift[LEVEL] = level
    new = state._replace(
        theta=state.theta + shift,
        log_rate=state.log_rate + level,
        terms=np.empty((TERMS, len(data.y))),
        coefficients=state.coefficients.copy(),
    )
    put_base(base, data, new)
    return new, now._replace(first=now.first + shift)


def _information(
    base: Base, data: Data, state: State, now: Priors, hyper: np.ndarray, prior: BasePrior
) -> tuple[np.ndarray, np.ndarray, float]:
    """Slope and information by z, log tau and level, and the log-density."""
    degrees, sd = len(base.z), math.exp(base.log_sd[0])
    along = np.column_stack([sd * base.columns, sd * base.columns @ base.z])
    slope, metric = np.zeros(degrees + 2), np.zeros((degrees + 2, degrees + 2))
    base_information(np.ascontiguousarray(along), data, state, slope, metric)
    centre = np.concatenate([np.zeros(degrees), [prior.mean], hyper[[LEVEL], 0]])
    spread = np.concatenate([np.ones(degrees), [prior.sd], hyper[[LEVEL], 1]])
    place = np.concatenate([base.z, base.log_sd, now.first[[LEVEL]]])
    away = (place - centre) / spread
    slope -= away / spread
    metric[np.diag_indices(len(away))] += spread**-2.0
    return slope, metric, float(state.terms[0].sum() - 0.5 * away @ away)


@compiled
def base_information(
    along: np.ndarray, data: Data, state: State, slope: np.ndarray, metric: np.ndarray
) -> None:
    """Add slope and expected information of all cells by coordinates of the measure and a shift.

    Parameters
    ----------
    along : array of float, shape (K + 1, coordinate)
        Derivatives of log h.
    data, state
        Of the engine; the state has this measure.
    slope, metric : array
        Of the coordinates, then of a shift of all levels; added to.
    """
    d, upper = along.shape[1], data.upper
    p, score, mean = np.empty(upper + 1), np.empty((upper + 1, d + 1)), np.empty(d + 1)
    for g in range(len(state.theta)):
        rows = state.coefficients[g]
        for c in range(data.cells_of_group[g], data.cells_of_group[g + 1]):
            log_step = state.log_rate[c]
            highest, total = -np.inf, 0.0
            for y in range(upper + 1):
                p[y] = y * log_step + rows[LOG_PRODUCT, y]
                highest = max(highest, p[y])
            for y in range(upper + 1):
                p[y] = math.exp(p[y] - highest)
                total += p[y]
            for k in range(d + 1):
                mean[k] = 0.0
            for y in range(upper + 1):
                p[y] /= total
                for k in range(d):
                    score[y, k] = along[y, k]
                score[y, d] = y
                for k in range(d + 1):
                    mean[k] += p[y] * score[y, k]
            at = int(data.y[c])
            for k in range(d + 1):
                slope[k] += score[at, k] - mean[k]
            for y in range(upper + 1):
                for k in range(d + 1):
                    score[y, k] -= mean[k]
                for k in range(d + 1):
                    weighted = p[y] * score[y, k]
                    for other in range(k + 1):
                        metric[k, other] += weighted * score[y, other]
    for k in range(d + 1):
        for other in range(k):
            metric[other, k] = metric[k, other]
