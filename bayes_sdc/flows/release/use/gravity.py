"""Gravity model of flows: Poisson regression with an effect of each origin and destination.

The effects are projected out in turn, so the work grows with the number of flows and not with the
square of the number of areas.

References
----------
J. M. C. Santos Silva, S. Tenreyro, "The log of gravity", Review of Economics and Statistics 88,
2006, doi:10.1162/rest.88.4.641. A. F. Karr, C. N. Kohnen, A. Oganian, J. P. Reiter, A. P. Sanil,
"A framework for evaluating the utility of data altered to protect confidentiality", American
Statistician 60, 2006, doi:10.1198/000313006X124640.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, hstack
from scipy.sparse.linalg import lsmr

STEPS, SWEEPS = 100, 500  # Newton steps, and projections in each
FOLLOWS = 1e-6  # share of a column's length up to which it follows from effects and other columns
ENOUGH = 1e-9  # relative change of the deviance, and of a projection


class Gravity(NamedTuple):
    """Coefficients and what their intervals need."""

    coefficient: np.ndarray  # (covariate,)
    variance: np.ndarray  # (covariate,)
    fitted: np.ndarray  # (flow,) expected counts


def fit_gravity(
    origin: np.ndarray, destination: np.ndarray, x: np.ndarray, counts: np.ndarray
) -> Gravity:
    """Fit log expected counts = effect of the origin + of the destination + x coefficients.

    Parameters
    ----------
    origin, destination : array of int, shape (flow,)
        Areas of each flow, numbered from 0.
    x : array of float, shape (flow, covariate)
        Such as the log distance. No column may follow from the areas.
    counts : array of float, shape (flow,)
        0 or more.

    Returns
    -------
    Gravity

    Examples
    --------
    >>> o, d = np.divmod(np.arange(9), 3)
    >>> x = ((o == d) * 1.0)[:, None]
    >>> round(float(fit_gravity(o, d, x, np.exp(0.7 * x[:, 0])).coefficient[0]), 6)
    0.7
    """
    mu = (counts + counts.mean()) / 2.0
    deviance = np.inf
    for _ in range(STEPS):
        z = np.log(mu) + (counts - mu) / mu
        within = _projected(origin, destination, np.column_stack([z, x]), mu)
        known = within[:, 1:]
        information = known.T @ (known * mu[:, None])
        coefficient = np.linalg.solve(information, known.T @ (mu * within[:, 0]))
        mu = np.exp(np.clip(z - (within[:, 0] - known @ coefficient), -30.0, 30.0))
        before, deviance = deviance, _deviance(counts, mu)
        if abs(before - deviance) <= ENOUGH * (abs(deviance) + 1.0):
            break
    return Gravity(coefficient, np.diag(np.linalg.inv(information)), mu)


def identified(origin: np.ndarray, destination: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Which columns tell something that the areas and the other columns do not: (covariate,).

    A column that follows from them has no coefficient of its own. By arithmetic with rounding it
    seldom is exactly so: a regression gives it a number all the same. Flows without people drive
    such a coefficient to infinity, so columns are judged on the others alone (Santos Silva and
    Tenreyro 2010, doi:10.1016/j.econlet.2010.02.020).

    Parameters
    ----------
    origin, destination : array of int, shape (flow,)
        Areas of each flow with people, numbered from 0.
    x : array of float, shape (flow, covariate)
        Columns.

    Examples
    --------
    >>> o, d = np.divmod(np.arange(12), 4)
    >>> x = np.column_stack([d < 2, o == d, (o == d) + 3.0 * o]).astype(float)
    >>> identified(o, d, x).tolist(), identified(o, d, x[:, :2]).tolist()
    ([False, False, False], [False, True])
    """
    told = np.zeros(x.shape[1], dtype=bool)
    if len(x) == 0:
        return told
    flows, ones = np.arange(len(x)), np.ones(len(x))
    effects = [coo_array((ones, (flows, of))) for of in (origin, destination)]
    unit = x / np.maximum(np.linalg.norm(x, axis=0), 1e-300)
    for k in range(x.shape[1]):
        known = hstack([*effects, coo_array(np.delete(unit, k, axis=1))]).tocsr()
        found = lsmr(known, unit[:, k], atol=1e-10, btol=1e-10, maxiter=10_000)[0]
        told[k] = np.linalg.norm(unit[:, k] - known @ found) > FOLLOWS
    return told


def _projected(
    origin: np.ndarray, destination: np.ndarray, columns: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Columns less their weighted regression on the effects of the areas."""
    result = columns.copy()
    scale = np.abs(columns).max(axis=0) + 1.0
    sums = [(of, np.bincount(of, weight)) for of in (origin, destination)]
    for _ in range(SWEEPS):
        moved = np.zeros(columns.shape[1])
        for of, total in sums:
            mean = np.stack([np.bincount(of, weight * column) for column in result.T], axis=1)
            mean /= np.maximum(total, 1e-300)[:, None]
            result -= mean[of]
            moved = np.maximum(moved, np.abs(mean).max(axis=0))
        if (moved <= ENOUGH * scale).all():
            break
    return result


def _deviance(counts: np.ndarray, mu: np.ndarray) -> float:
    log_ratio = np.log(np.where(counts > 0, counts, 1.0) / np.where(counts > 0, mu, 1.0))
    return float(2.0 * (counts * log_ratio - counts + mu).sum())


def interval_overlap(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Mean share of each of two intervals that lies in the other; below 0 if they do not touch.

    Examples
    --------
    >>> interval_overlap((0.0, 2.0), (1.0, 3.0)), interval_overlap((0.0, 1.0), (2.0, 3.0))
    (0.5, -1.0)
    """
    common = min(one[1], other[1]) - max(one[0], other[0])
    widths = one[1] - one[0], other[1] - other[0]
    return float(sum(common / width for width in widths) / 2.0)
