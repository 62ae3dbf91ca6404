"""Refits of tiny tables: against quadrature over all effects and hyperparameters.

A table of two origins leaves one integral: given both origins' log rates u, level included, every
destination is an integral over its own effect, and the prior of u needs no loop over its scale.
So everything is sums over grids, and the only loops are those over the scale of the destinations
and the coefficient of variation.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.interpolate import make_interp_spline
from scipy.special import gammaln
from scipy.stats import halfnorm, norm

from bayes_sdc import FlowTable, read_flows

COUNTS = np.arange(9)
STEP = 0.25  # of the grids of log rates: a normal peak of sd 0.2 is still summed to 1e-5
REACH = 25.0  # beyond, every count has the probability it has at the end
HERMITE, OF_HERMITE = np.polynomial.hermite_e.hermegauss(31)
OF_HERMITE = OF_HERMITE / OF_HERMITE.sum()
#: parameters that are known but for a thousandth
FIXED = {
    "mu_sd": 1.5, "alpha_mean": 0.3, "alpha_mean_sd": 1e-3, "alpha_spread": 1e-3,
    "log_sd_mean": -0.3, "log_sd_mean_sd": 1e-3, "log_sd_spread": 1e-3,
    "log_cv_mean": -0.5, "log_cv_mean_sd": 1e-3, "log_cv_spread": 1e-3,
    "coefficient_mean": 0.0, "coefficient_mean_sd": 1.0, "coefficient_spread": 0.3,
    "national_log_sd_sd": 1e-3,
}  # fmt: skip


def probabilities(log_rate: np.ndarray, cv: float) -> np.ndarray:
    """Table of the counts 0..8 at each log rate: (..., count)."""
    log_rate, kappa = np.asarray(log_rate)[..., None], cv**2
    step = -np.logaddexp(-log_rate, np.log(kappa))
    log_p = COUNTS * step + np.append(0.0, np.cumsum(np.log1p(kappa * COUNTS[:-1])))
    log_p = log_p - gammaln(COUNTS + 1.0)
    p = np.exp(log_p - log_p.max(axis=-1, keepdims=True))
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def scales(prior: Mapping[str, float], name: str, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the marginal prior of a parameter of one group alone."""
    if "national_log_sd_sd" not in prior:
        if name == "alpha":
            grid = np.linspace(-6.0, 6.0, nodes) * np.sqrt(2.0) * prior["mu_sd"]
            weights = norm.pdf(grid, 0.0, np.sqrt(2.0) * prior["mu_sd"])
        else:
            scale = prior["cv_scale"] if name == "log_cv" else prior["sd_scale"]
            grid = np.linspace(-7.0, 1.6, nodes)
            weights = np.exp(grid) * halfnorm.pdf(np.exp(grid), scale=scale)
        return grid, weights / weights.sum()
    # the nation's mean is integrated exactly, its sd by Gauss and Hermite
    sd = prior[f"{name}_spread"] * np.exp(prior["national_log_sd_sd"] * HERMITE)
    sd = np.hypot(sd, prior[f"{name}_mean_sd"])
    grid = prior[f"{name}_mean"] + np.linspace(-5.0, 5.0, nodes) * (OF_HERMITE @ sd)
    weights = norm.pdf(grid[:, None], prior[f"{name}_mean"], sd) @ OF_HERMITE
    return grid, weights / weights.sum()


def normal_on(grid: np.ndarray, means: np.ndarray, sd: float) -> np.ndarray:
    """Weights on an even grid that give means of smooth functions: (mean, node).

    A normal that is too narrow for the grid is summed by Gauss and Hermite between its nodes.
    """
    if sd > 2.0 * STEP:
        weights = norm.pdf(grid, means[:, None], sd)
        return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300))
    at = np.clip(means[:, None] + sd * HERMITE, grid[0], grid[-1])
    # four of every five nodes have weights far below rounding
    between = make_interp_spline(grid, np.eye(len(grid)), k=5)
    return np.asarray(sum(w * between(at[:, k]) for k, w in enumerate(OF_HERMITE)))


def exact_m(y: np.ndarray, target: int, prior: Mapping[str, float], *, nodes: int) -> np.ndarray:
    """M of a cell of the first origin; ``y`` has shape (2, destination)."""
    u = np.arange(-REACH, REACH + STEP / 2, STEP)
    alpha, of_alpha = scales(prior, "alpha", 8 * nodes)
    of_u = np.zeros((len(u), len(u)))
    for log_sd, weight in zip(*scales(prior, "log_sd", 2 * nodes), strict=True):
        given = normal_on(u, alpha, float(np.exp(log_sd)))
        of_u += weight * (given.T * of_alpha) @ given
    a, z = np.zeros((9, 9)), np.zeros(9)
    for log_sd, of_sd in zip(*scales(prior, "log_sd", nodes), strict=True):
        sd = float(np.exp(log_sd))
        if sd > 2.0 * STEP:
            g = np.arange(-REACH, REACH + STEP / 2, STEP)
            g = g[np.abs(g) < 8.0 * sd]
            of_g = norm.pdf(g, 0.0, sd)
            of_g /= of_g.sum()
        else:
            g, of_g = sd * HERMITE, OF_HERMITE
        for log_cv, of_cv in zip(*scales(prior, "log_cv", nodes), strict=True):
            p = probabilities(u[:, None] + g, float(np.exp(log_cv)))
            weights = of_sd * of_cv * of_u
            for j in range(y.shape[1]):
                if j != target:
                    weights = weights * ((p[..., y[0, j]] * of_g) @ p[..., y[1, j]].T)
            # what every value of the target's pair of effects weighs: (u, g)
            both = p * (weights @ p[..., y[1, target]] * of_g)[..., None]
            z += both.sum(axis=(0, 1))
            a += np.einsum("ugy,ugk->yk", both, p, optimize=True)
    return np.asarray(a / z[:, None])


def table_of(y: np.ndarray) -> FlowTable:
    """A table of two origins with these counts from 0."""
    i, j = np.indices(y.shape)
    frame = pd.DataFrame(
        {"o": [f"o{k}" for k in i.ravel()], "d": [f"d{k}" for k in j.ravel()], "n": y.ravel() + 1}
    )
    return read_flows(frame, origin="o", destination="d", count="n")
