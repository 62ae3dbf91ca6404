r"""The base measure of the family ``base``: two moves for its coordinates and their scale.

The logarithm of the measure is :math:`\sum_d u_d q_d(y)` with :math:`u_d = \tau z_d`, where the
columns :math:`q_d` of :func:`bayes_sdc.models.base_measure.basis` hold the standard deviations of
the coordinates relative to each other. One move keeps the :math:`z_d` standard normal: a Newton
proposal for all of them, :math:`\log \tau`, and with them the levels and the log cv of all groups,
which stand in for shapes that a few polynomials approximate. The other draws :math:`\tau` given the
:math:`u_d`.
"""

import math
from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.gibbs.batch_terms import (
    BASE,
    LOG_PRODUCT,
    SLOPE_KAPPA,
    TERMS,
)
from bayes_sdc.flows.gibbs.newton_step import adapted, log_newton_step, newton_step
from bayes_sdc.flows.gibbs.state import Data, State, refresh_terms
from bayes_sdc.flows.model.hyperpriors import CV, LEVEL, BasePrior, Priors, compiled
from bayes_sdc.models.base_measure import IMPOSSIBLE, basis

SD_STEPS = 3  # random-walk steps of the scale given the coordinates


class Base(NamedTuple):
    """The measure of a chain; all arrays but the first are changed in place."""

    columns: np.ndarray  # (K + 1, degree) q_d
    impossible: np.ndarray  # (impossible,) counts
    z: np.ndarray  # (degree,)
    log_sd: np.ndarray  # (1,) log tau
    step_size: np.ndarray  # (1,) of the Newton proposal, in (0, 1]

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
    return Base(columns, np.array(impossible, np.int64), z, log_sd, np.full(1, 0.7))


def base_at(measure: np.ndarray, sd: float, upper: int, impossible: tuple[int, ...]) -> Base:
    """Base with this log measure of the possible counts and this tau, as stored in a posterior."""
    columns = basis(upper, impossible)
    there = np.delete(columns, impossible, axis=0)
    z = np.linalg.lstsq(there, measure, rcond=None)[0] / sd
    return Base(columns, np.array(impossible, np.int64), z, np.log([sd]), np.full(1, 0.7))


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
) -> bool:  # fmt: skip
    """Make both moves; ``base``, ``state`` and ``now`` are changed in place.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of all randomness.
    base : Base
        The measure that the state has.
    data, state
        Of the engine.
    now : Priors
        The national distribution, whose means of level and log cv move with the groups.
    hyper : array of float, shape (parameter, 4)
        From :func:`bayes_sdc.flows.model.hyperpriors.nation`.
    prior : BasePrior
        Of log tau.
    adapt : float
        Above 0 tunes the size of the proposal.

    Returns
    -------
    bool
        Whether the Newton proposal was accepted.
    """
    base.log_sd[0], base.z[:] = draw_scale(rng, base.log_sd[0], base.z, prior)
    moved = _newton(rng, base, data, state, now, hyper, prior)
    if adapt > 0.0:
        base.step_size[0] = adapted(base.step_size[0], float(moved), adapt)
    return moved


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
    hyper: np.ndarray, prior: BasePrior,
) -> bool:  # fmt: skip
    """A Newton proposal for z, log tau, and the levels and log cv of all groups together."""
    degrees, size = len(base.z), base.step_size[0]
    slope, metric, height = _information(base, data, state, now, hyper, prior)
    move, log_q = newton_step(rng, slope, metric, size)
    there = base._replace(z=base.z + move[:degrees], log_sd=base.log_sd + move[degrees])
    if not abs(there.log_sd[0]) < 20.0 or np.abs(there.log_measure()).max() > -IMPOSSIBLE:
        return False
    shift, theta = np.zeros(state.theta.shape[1]), state.theta
    shift[LEVEL], shift[CV] = move[degrees + 1 :]
    new = state._replace(
        theta=theta + shift,
        log_rate=state.log_rate + shift[LEVEL],
        terms=np.empty((TERMS, len(data.y))),
        coefficients=state.coefficients.copy(),
    )
    put_base(there, data, new)
    mean = now._replace(first=now.first + shift)
    new_slope, new_metric, new_height = _information(there, data, new, mean, hyper, prior)
    if not np.isfinite(new_height):
        return False
    log_ratio = new_height - height - log_q + log_newton_step(-move, new_slope, new_metric, size)
    if not -rng.standard_exponential() < log_ratio:
        return False
    base.z[:], base.log_sd[:], now.first[:] = there.z, there.log_sd, mean.first
    for name in ("theta", "log_rate", "terms", "coefficients"):
        getattr(state, name)[...] = getattr(new, name)
    return True


def _information(
    base: Base, data: Data, state: State, now: Priors, hyper: np.ndarray, prior: BasePrior
) -> tuple[np.ndarray, np.ndarray, float]:
    """Slope and information by z, log tau, level and log cv, and the log-density."""
    degrees, sd = len(base.z), math.exp(base.log_sd[0])
    along = np.column_stack([sd * base.columns, sd * base.columns @ base.z])
    slope, metric = np.zeros(degrees + 3), np.zeros((degrees + 3, degrees + 3))
    base_information(np.ascontiguousarray(along), data, state, slope, metric)
    centre = np.concatenate([np.zeros(degrees), [prior.mean], hyper[[LEVEL, CV], 0]])
    spread = np.concatenate([np.ones(degrees), [prior.sd], hyper[[LEVEL, CV], 1]])
    place = np.concatenate([base.z, base.log_sd, now.first[[LEVEL, CV]]])
    away = (place - centre) / spread
    slope -= away / spread
    metric[np.diag_indices(len(away))] += spread**-2.0
    return slope, metric, float(state.terms[0].sum() - 0.5 * away @ away)


@compiled
def base_information(
    along: np.ndarray, data: Data, state: State, slope: np.ndarray, metric: np.ndarray
) -> None:
    """Add slope and expected information of all cells by coordinates of the measure and two shifts.

    Parameters
    ----------
    along : array of float, shape (K + 1, coordinate)
        Derivatives of log h.
    data, state
        Of the engine; the state has this measure.
    slope, metric : array
        Of the coordinates, then of a shift of all levels and one of all log cv; added to.
    """
    d, upper = along.shape[1], data.upper
    p, score, mean = np.empty(upper + 1), np.empty((upper + 1, d + 2)), np.empty(d + 2)
    for g in range(len(state.theta)):
        rows, kappa = state.coefficients[g], math.exp(2.0 * state.theta[g, CV])
        for c in range(data.cells_of_group[g], data.cells_of_group[g + 1]):
            excess = state.log_rate[c] + 2.0 * state.theta[g, CV]
            shrink = 1.0 / (1.0 + math.exp(min(excess, 700.0)))
            share = 1.0 / (1.0 + math.exp(min(-excess, 700.0)))
            log_step = math.log(max(share, 1e-300)) - 2.0 * state.theta[g, CV]
            highest, total = -np.inf, 0.0
            for y in range(upper + 1):
                p[y] = y * log_step + rows[LOG_PRODUCT, y]
                highest = max(highest, p[y])
            for y in range(upper + 1):
                p[y] = math.exp(p[y] - highest)
                total += p[y]
            for k in range(d + 2):
                mean[k] = 0.0
            for y in range(upper + 1):
                p[y] /= total
                for k in range(d):
                    score[y, k] = along[y, k]
                score[y, d] = y * shrink
                score[y, d + 1] = 2.0 * (kappa * rows[SLOPE_KAPPA, y] - share * y)
                for k in range(d + 2):
                    mean[k] += p[y] * score[y, k]
            at = int(data.y[c])
            for k in range(d + 2):
                slope[k] += score[at, k] - mean[k]
            for y in range(upper + 1):
                for k in range(d + 2):
                    score[y, k] -= mean[k]
                for k in range(d + 2):
                    weighted = p[y] * score[y, k]
                    for other in range(k + 1):
                        metric[k, other] += weighted * score[y, other]
    for k in range(d + 2):
        for other in range(k):
            metric[other, k] = metric[k, other]
