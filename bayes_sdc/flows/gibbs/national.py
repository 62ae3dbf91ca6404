"""The national distribution of the pooled prior: two moves for its means, spreads and slopes.

Each column of theta is normal over the groups; the mean of the level is a regression on properties
of the group, whose coefficients are the national slopes. ``draw_nation`` draws means, sds and
slopes given theta: it serves the reference sampler and the engine. Where single groups say little,
that hardly moves them. ``move_nation`` changes them while every group keeps its standardised
distance from its mean, by a Newton proposal like those of :mod:`bayes_sdc.flows.gibbs.newton`.
Rates are linear in the means of level and coefficients: moved alone, these take full steps; with
the spreads beside them the steps are small.
"""

import math

import numpy as np

from bayes_sdc.flows.gibbs.batch_terms import ROWS, batch_terms, fill_coefficients
from bayes_sdc.flows.gibbs.joint_move import joint_information
from bayes_sdc.flows.gibbs.newton_step import log_newton_step, newton_step
from bayes_sdc.flows.gibbs.state import Data, State, make_work, put_terms, rates_at
from bayes_sdc.flows.model.hyperpriors import CV, LEVEL, SD_DESTINATION, SD_ORIGIN, Priors, compiled

SD_STEPS = 3  # random-walk steps of the national sds given theta


def draw_nation(
    rng: np.random.Generator, columns: np.ndarray, theta: np.ndarray, z: np.ndarray, now: Priors,
    hyper: np.ndarray, of_slope: np.ndarray,
) -> Priors:  # fmt: skip
    """Draw national means, slopes and sds given the parameters of the groups.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of all randomness.
    columns : array of int
        Columns of theta that are sampled; the level is the first.
    theta : array of float, shape (group, parameter)
        Parameters of the groups.
    z : array of float, shape (group, group covariate)
        What the mean of the level depends on.
    now : Priors
        Present means, sds and slopes.
    hyper : array of float, shape (parameter, 4)
        From :func:`bayes_sdc.flows.model.hyperpriors.nation`.
    of_slope : array of float, shape (2,)
        From :func:`bayes_sdc.flows.model.hyperpriors.slope_prior`.

    Returns
    -------
    Priors
        The new ones.
    """
    n, sd, of_mean = len(theta), now.second[columns], hyper[columns]
    rest = theta[:, columns]
    rest[:, LEVEL] -= z @ now.slope
    precision = n / sd**2 + 1.0 / of_mean[:, 1] ** 2
    total = rest.sum(axis=0) / sd**2 + of_mean[:, 0] / of_mean[:, 1] ** 2
    mean = total / precision + rng.standard_normal(len(columns)) / np.sqrt(precision)
    slope = _draw_slope(rng, theta[:, LEVEL] - mean[LEVEL], z, sd[LEVEL], of_slope)
    rest[:, LEVEL] = theta[:, LEVEL] - z @ slope
    squares = ((rest - mean) ** 2).sum(axis=0)
    log_sd = _draw_log_sd(rng, np.log(sd), squares, n, of_mean)
    first, second = now.first.copy(), now.second.copy()
    first[columns], second[columns] = mean, np.exp(log_sd)
    return Priors(now.kind, first, second, slope)


def linear(columns: np.ndarray) -> np.ndarray:
    """Return the columns in which rates are linear: the level and the coefficients.

    Examples
    --------
    >>> linear(np.array([0, 1, 2, 3, 4]))
    array([0, 4])
    """
    return np.asarray(columns[(columns == LEVEL) | (columns > CV)])


def _draw_slope(
    rng: np.random.Generator, rest: np.ndarray, z: np.ndarray, sd: float, of_slope: np.ndarray
) -> np.ndarray:
    """Draw the slopes of a regression with known noise."""
    mean, spread = of_slope
    precision = z.T @ z / sd**2 + np.eye(z.shape[1]) / spread**2
    root = np.linalg.cholesky(precision)
    centre = np.linalg.solve(precision, z.T @ rest / sd**2 + mean / spread**2)
    return np.asarray(centre + np.linalg.solve(root.T, rng.standard_normal(z.shape[1])))


def _draw_log_sd(
    rng: np.random.Generator, log_sd: np.ndarray, squares: np.ndarray, n: int, hyper: np.ndarray
) -> np.ndarray:
    """Some steps of a random walk for the logs of the national sds."""

    def log_density(log_sd: np.ndarray) -> np.ndarray:
        deviation = (log_sd - hyper[:, 2]) / hyper[:, 3]
        return np.asarray(-n * log_sd - 0.5 * squares * np.exp(-2.0 * log_sd) - 0.5 * deviation**2)

    scale = 2.4 / np.sqrt(2.0 * n + 1.0 / hyper[:, 3] ** 2)
    for _ in range(SD_STEPS):
        proposal = log_sd + scale * rng.standard_normal(len(log_sd))
        log_ratio = log_density(proposal) - log_density(log_sd)
        accepted = -rng.standard_exponential(len(log_sd)) < log_ratio
        log_sd = np.where(accepted, proposal, log_sd)
    return log_sd


@compiled
def move_nation(
    rng: np.random.Generator, columns: np.ndarray, data: Data, state: State, priors: Priors,
    hyper: np.ndarray, of_slope: np.ndarray, spreads: bool,
) -> bool:  # fmt: skip
    """Change means, sds and slopes, every group keeping its standardised distance.

    Tells whether the move was accepted. ``priors`` holds the present values and is changed in place
    like the state; ``hyper`` and ``of_slope`` are those of :func:`draw_nation`. The columns begin
    with the level. Without ``spreads`` the sds stay; that kind of move has a size of its own.
    """
    d, groups = len(columns), len(data.cells_of_group) - 1
    at = 2 * d if spreads else d  # where the slopes begin
    size = state.step_size[groups if spreads else groups + 1]
    one = math.exp(0.0)  # a constant argument would have a type of its own
    mean, sd, coefficient = priors.first, priors.second, priors.slope
    all_of_it = at + len(coefficient)
    slope, metric = np.zeros(all_of_it), np.zeros((all_of_it, all_of_it))
    height = nation_priors(columns, mean, sd, coefficient, hyper, of_slope, slope, metric)
    centre = centres(mean, coefficient, data.z)
    one_slope, one_metric, work = np.empty(d), np.empty((d, d)), make_work(data, state)
    for g in range(groups):
        height += joint_information(
            g, columns, data, state, state.terms, data.cells_of_group[g], one, one, one_slope,
            one_metric, work,
        )  # fmt: skip
        gather(columns, state.theta[g], centre[g], data.z[g], one_slope, one_metric, slope, metric)
    move, log_q = newton_step(rng, slope, metric, size)
    log_ratio = -height - log_q
    new_mean, new_sd, new_coefficient = mean.copy(), sd.copy(), coefficient + move[at:]
    for k in range(d):
        new_mean[columns[k]] += move[k]
        if spreads:
            new_sd[columns[k]] *= math.exp(min(move[d + k], 50.0))
    new_centre = centres(new_mean, new_coefficient, data.z)
    # loops, because expressions of whole arrays take several times as long to compile
    theta, b_scale, g_scale = state.theta.copy(), np.empty(groups), np.empty(groups)
    poisson = True
    for k in range(d):
        poisson = poisson and columns[k] != CV
    for g in range(groups):
        for p in range(len(mean)):
            if p != CV or not poisson:
                away = (theta[g, p] - centre[g, p]) * (new_sd[p] / sd[p])
                theta[g, p] = new_centre[g, p] + away
        b_scale[g] = math.exp(min(theta[g, SD_ORIGIN] - state.theta[g, SD_ORIGIN], 300.0))
        moved = theta[g, SD_DESTINATION] - state.theta[g, SD_DESTINATION]
        g_scale[g] = math.exp(min(moved, 300.0))
    rates, terms = np.empty(len(state.log_rate)), np.empty(state.terms.shape)
    coefficients = state.coefficients.copy()  # with the bound of the steps
    slope, metric = np.zeros(all_of_it), np.zeros((all_of_it, all_of_it))
    height = nation_priors(
        columns, new_mean, new_sd, new_coefficient, hyper, of_slope, slope, metric
    )
    for g in range(groups):
        start, stop = data.cells_of_group[g], data.cells_of_group[g + 1]
        fill_coefficients(theta[g, CV], coefficients[g])
        rates_at(g, theta[g], b_scale[g], g_scale[g], data, state, rates[start:stop])
        batch_terms(
            data.y[start:stop], data.weight[start:stop], rates[start:stop], theta[g, CV],
            coefficients[g], work.terms, work.polynomials,
        )  # fmt: skip
        put_terms(work.terms, stop - start, start, terms)
        height += joint_information(
            g, columns, data, state, work.terms, data.cells_of_group[0], b_scale[g], g_scale[g],
            one_slope, one_metric, work,
        )  # fmt: skip
        gather(columns, theta[g], new_centre[g], data.z[g], one_slope, one_metric, slope, metric)
    if not np.isfinite(height):  # out of range: its metric is not complete
        return False
    log_ratio += height + log_newton_step(-move, slope, metric, size)
    if not -rng.standard_exponential() < log_ratio:
        return False
    for p in range(len(mean)):
        mean[p], sd[p] = new_mean[p], new_sd[p]
    for j in range(len(coefficient)):
        coefficient[j] = new_coefficient[j]
    for g in range(groups):
        for p in range(len(mean)):
            state.theta[g, p] = theta[g, p]
        for e in range(data.origins_of_group[g], data.origins_of_group[g + 1]):
            state.b[e] *= b_scale[g]
        for e in range(data.destinations_of_group[g], data.destinations_of_group[g + 1]):
            state.g[e] *= g_scale[g]
        for k in range(ROWS):
            for y in range(data.upper + 1):
                state.coefficients[g, k, y] = coefficients[g, k, y]
    for c in range(len(rates)):
        state.log_rate[c] = rates[c]
    put_terms(terms, len(rates), data.cells_of_group[0], state.terms)
    return True


@compiled
def centres(mean: np.ndarray, coefficient: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Mean of every group's theta: the national one, and for the level the slopes besides."""
    centre = np.empty((len(z), len(mean)))
    for g in range(len(z)):
        for p in range(len(mean)):
            centre[g, p] = mean[p]
        for j in range(len(coefficient)):
            centre[g, LEVEL] += z[g, j] * coefficient[j]
    return centre


@compiled
def gather(
    columns: np.ndarray, theta: np.ndarray, centre: np.ndarray, z: np.ndarray,
    one_slope: np.ndarray, one_metric: np.ndarray, slope: np.ndarray, metric: np.ndarray,
) -> None:  # fmt: skip
    """Add a group's slope and information by theta to those by means, log sds and slopes.

    There are entries for log sds where ``slope`` has room for them.
    """
    d, at = len(columns), len(slope) - len(z)
    column, factor = np.empty(len(slope), np.int64), np.empty(len(slope))
    for k in range(d):
        column[k], factor[k] = k, 1.0
        if at > d:
            column[d + k], factor[d + k] = k, theta[columns[k]] - centre[columns[k]]
    for j in range(len(z)):
        column[at + j], factor[at + j] = LEVEL, z[j]
    for k in range(len(slope)):
        slope[k] += factor[k] * one_slope[column[k]]
        for other in range(len(slope)):
            both = factor[k] * factor[other]
            metric[k, other] += both * one_metric[column[k], column[other]]


@compiled
def nation_priors(
    columns: np.ndarray, mean: np.ndarray, sd: np.ndarray, coefficient: np.ndarray,
    hyper: np.ndarray, of_slope: np.ndarray, slope: np.ndarray, metric: np.ndarray,
) -> float:  # fmt: skip
    """Add the priors of national means, log sds and slopes; returns their log-density."""
    d, at, height = len(columns), len(slope) - len(coefficient), 0.0
    for k in range(d):
        for half, value in ((0, mean[columns[k]]), (1, math.log(sd[columns[k]]))):
            if half * d == at:  # no entries for the sds
                continue
            one, two = hyper[columns[k], 2 * half], hyper[columns[k], 2 * half + 1]
            height -= 0.5 * ((value - one) / two) ** 2
            slope[half * d + k] += (one - value) / two**2
            metric[half * d + k, half * d + k] += 1.0 / two**2
    one, two = of_slope
    for j in range(len(coefficient)):
        height -= 0.5 * ((coefficient[j] - one) / two) ** 2
        slope[at + j] += (one - coefficient[j]) / two**2
        metric[at + j, at + j] += 1.0 / two**2
    return height
