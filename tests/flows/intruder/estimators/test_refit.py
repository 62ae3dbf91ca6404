"""Refits of tiny tables: against quadrature over all effects and hyperparameters.

A table of two origins leaves one integral: given both origins' log rates u, level included, every
destination is an integral over its own effect, and the prior of u needs no loop over its scale.
So everything is sums over grids, and the only loops are those over the scale of the destinations
and the coefficient of variation.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import make_interp_spline
from scipy.special import gammaln
from scipy.stats import halfnorm, norm

from bayes_sdc import FlowTable, read_flows
from bayes_sdc.flows.fit.fit import fit
from bayes_sdc.flows.fit.settings import sampling_of
from bayes_sdc.flows.intruder.estimators import integrated
from bayes_sdc.flows.intruder.estimators.refit import refit
from bayes_sdc.flows.table.cells import small_cells
from bayes_sdc.models.migration import PRIORS

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


def largest_errors(
    y: np.ndarray, prior: Mapping[str, float], *, draws: int, tune: int, nodes: int
) -> tuple[dict[str, float], dict[str, float], float]:
    """Largest error of M, and of rho at any released count, and what "integrated" says of M.

    Of "integrated" only where its weights can be relied on by k-hat; elsewhere the package fits
    again. Under the prior "pooled" the three largest counts beside a 1 leave it one such value.
    """
    table = table_of(y)
    sampling = sampling_of(
        family="negative-binomial", prior="weak", sampler="gibbs", draws=draws, tune=tune,
        chains=4, seed=3, cores=2, scheduler=None, covariates="none",
    )._replace(prior=prior)  # fmt: skip
    posterior, cells = fit(table, sampling), small_cells(table)
    exact = exact_m(y, 0, prior, nodes=nodes)
    targets, none = np.array([0]), np.zeros((1, len(cells.y)), np.int64)
    estimate = integrated.release_probabilities(posterior, cells, none, targets=targets, cores=2)
    found = {
        "refit": refit(posterior, cells, targets, seed=4, cores=2).m[0],
        "integrated": estimate.m[0],
    }
    relied = {"refit": np.ones(len(exact), bool), "integrated": estimate.khat[0] < 0.7}
    rho = {name: m / m.sum(axis=0) for name, m in found.items() if relied[name].all()}
    of_rho = {name: np.abs(r - exact / exact.sum(axis=0)).max() for name, r in rho.items()}
    return (
        {
            name: float(np.abs(m - exact)[relied[name]].max(initial=0.0))
            for name, m in found.items()
        },
        {name: float(of_rho.get(name, 0.0)) for name in found},
        float(estimate.error[0][relied["integrated"]].max(initial=0.0)),
    )


@pytest.mark.parametrize(
    "y",
    [[[8, 2], [1, 0]], pytest.param([[0, 1, 8], [3, 0, 8]], marks=pytest.mark.slow)],
    ids=["4", "6"],
)
@pytest.mark.slow
def test_tiny_tables_with_known_hyperparameters_are_those_of_quadrature(y, monkeypatch):
    # else the estimator that is called exact, and used as the cure, is wrong
    monkeypatch.setattr("bayes_sdc.flows.intruder.estimators.refit.LONGEST", 5)
    m, rho, _ = largest_errors(np.array(y), FIXED, draws=300, tune=200, nodes=3)
    assert m["integrated"] < 0.003
    assert m["refit"] < 0.01
    assert rho["integrated"] < 0.003
    assert rho["refit"] < 0.01


TABLES = {
    "4": [[0, 8], [8, 8]],
    "6": [[8, 2, 5], [1, 8, 0]],
    "8": [[0, 1, 0, 1], [1, 0, 0, 0]],
    "12": [[0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 2, 0]],
}


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["weak", "pooled"])
@pytest.mark.parametrize("cells", TABLES)
def test_tiny_tables_are_those_of_quadrature_over_the_whole_prior(cells, prior):
    m, rho, said = largest_errors(
        np.array(TABLES[cells]), PRIORS[prior], draws=4000, tune=1000, nodes=24
    )
    assert rho["refit"] < 0.01
    assert m["refit"] < 0.02
    # with draws whose error is small the identity has none of its own
    assert m["integrated"] < 4.0 * said + 0.001
    assert rho["integrated"] < max(0.003, 2.0 * said)


@pytest.mark.slow
def test_quadrature_is_that_of_a_finer_grid(monkeypatch):
    # else what the estimators are held against may be wrong itself
    y = np.array([[8, 2], [0, 1]])
    coarse = exact_m(y, 0, PRIORS["weak"], nodes=24)
    monkeypatch.setitem(globals(), "STEP", 0.2)
    np.testing.assert_allclose(coarse, exact_m(y, 0, PRIORS["weak"], nodes=32), atol=1e-3)
