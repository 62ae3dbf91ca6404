r"""Population uniques without structure: a Dirichlet-multinomial model of the whole table.

The K cells that can be occupied have probabilities :math:`\theta \sim \mathrm{Dirichlet}(c, ...,
c)`, the sample is :math:`f \sim \mathrm{Multinomial}(n, \theta)`, and the members who were not
sampled are :math:`F - f \sim \mathrm{Multinomial}(N - n, \theta)`. Given f, theta is
:math:`\mathrm{Dirichlet}(c + f)`. A sample unique is a population unique when its cell gets none of
the others. c = 1 is the uniform prior on population tables and c = infinity makes all cells equal.

Structural zeros, combinations that cannot occur, must not be among the K cells.

References
----------
A. Cohen and H. B. Sackrowitz, "Some issues concerning disclosure risk in contingency tables"; a
sample from a multinomial population is multivariate hypergeometric given the population, (2.1).
"""

import math

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt

from bayes_sdc.models.priors import CONCENTRATION

STIRLING_FROM = 1e3  # the first term left out is below 1e-18
PRIORS = CONCENTRATION


def build(f: npt.ArrayLike, N: int, *, concentration: float = 1.0) -> pm.Model:
    """The table after the sample was seen; forward draws are draws from the posterior.

    Parameters
    ----------
    f : array_like of int, shape (cell,)
        Sampled members in each of the K cells, 0 included.
    N : int
        Members of the population.
    concentration : float
        c, above 0; ``math.inf`` for equal cells.

    Returns
    -------
    pm.Model
        ``theta``, ``unsampled`` (F - f) and ``uniques``, the number of cells with f = F = 1.
    """
    sample = np.asarray(f, dtype=np.int64)
    with pm.Model(coords={"cell": np.arange(len(sample))}) as model:
        if math.isinf(concentration):
            theta = pt.as_tensor(np.full(len(sample), 1.0 / len(sample)))
        else:
            theta = pm.Dirichlet("theta", concentration + sample, dims="cell")
        unsampled = pm.Multinomial("unsampled", n=N - sample.sum(), p=theta, dims="cell")
        alone = pt.eq(sample, 1) & pt.eq(unsampled, 0)
        pm.Deterministic("uniques", alone.sum())
    return model


def build_joint(f: npt.ArrayLike, *, concentration: float = 1.0) -> pm.Model:
    """Prior and likelihood as they are written, for NUTS: theta Dirichlet, f multinomial given it.

    `build` has the posterior of theta in closed form and needs no chains; this is the model it
    comes from, for tables of up to about a thousand cells and for changes of the prior. The members
    who were not sampled are drawn forward from its posterior: `add_unsampled`.

    Parameters
    ----------
    f : array_like of int, shape (cell,)
        Sampled members in each of the K cells, 0 included.
    concentration : float
        c, above 0; ``math.inf`` for equal cells, which leaves nothing to sample.

    Returns
    -------
    pm.Model
        ``theta`` and the observed ``f``.
    """
    sample = np.asarray(f, dtype=np.int64)
    K = len(sample)
    with pm.Model(coords={"cell": np.arange(K)}) as model:
        if math.isinf(concentration):
            theta = pm.Deterministic("theta", pt.as_tensor(np.full(K, 1.0 / K)), dims="cell")
        else:
            theta = pm.Dirichlet("theta", np.full(K, concentration), dims="cell")
        pm.Multinomial("f", n=sample.sum(), p=theta, observed=sample, dims="cell")
    return model


def add_unsampled(model: pm.Model, f: npt.ArrayLike, N: int) -> pm.Model:
    """Add to a sampled model of `build_joint` the N - n members who were not sampled.

    Parameters
    ----------
    model : pm.Model
        From `build_joint`; changed.
    f : array_like of int, shape (cell,)
        The same as there.
    N : int
        Members of the population.

    Returns
    -------
    pm.Model
        With ``unsampled`` (F - f) and ``uniques``, for ``pm.sample_posterior_predictive``.
    """
    sample = np.asarray(f, dtype=np.int64)
    with model:
        unsampled = pm.Multinomial("unsampled", n=N - sample.sum(), p=model["theta"], dims="cell")
        alone = pt.eq(sample, 1) & pt.eq(unsampled, 0)
        pm.Deterministic("uniques", alone.sum())
    return model


def build_concentration(sizes: npt.ArrayLike, cells: npt.ArrayLike, K: int) -> pm.Model:
    """The concentration c, learned from the sample by NUTS.

    theta is integrated out. The likelihood needs only how many cells have each size, so it costs
    the same for a thousand cells and for a million.

    Parameters
    ----------
    sizes : array_like of int, shape (size,)
        Numbers of sampled members, from 1.
    cells : array_like of int, shape (size,)
        How many cells have each; 0 makes a size idle.
    K : int
        Cells that can be occupied.

    Returns
    -------
    pm.Model
        Free variable ``log_concentration``; ``concentration`` derived from it. ``with_data`` of a
        compiled model can replace sizes, cells and K by others of the same length.
    """
    size = np.asarray(sizes, dtype=np.float64)
    number = np.asarray(cells, dtype=np.float64)
    prior = PRIORS["log_concentration"]
    with pm.Model(coords={"size": np.arange(len(size))}) as model:
        observed = pm.Data("cells_data", number, dims="size")
        members = pm.Data("sizes", size, dims="size")
        whole = pm.Data("K", float(K))
        log_c = pm.Normal("log_concentration", prior["mean"], prior["sd"])
        c = pm.Deterministic("concentration", pt.exp(log_c))
        pm.CustomDist(
            "cells", c, members, whole, logp=_log_likelihood, signature="(),(n),()->(n)",
            observed=observed, dims="size",
        )  # fmt: skip
    return model


def _log_likelihood(
    cells: pt.TensorVariable,
    c: pt.TensorVariable,
    sizes: pt.TensorVariable,
    K: pt.TensorVariable,
) -> pt.TensorVariable:
    """Dirichlet-multinomial log-probability of all cells up to a factor that does not depend on c.

    With n members the powers of c, c^n in the numerator and (K c)^n below, leave K^n.
    """
    n = (cells * sizes).sum()
    return (cells * _log_rising(c, sizes)).sum() - _log_rising(K * c, n)


def _log_rising(x: pt.TensorVariable, n: pt.TensorVariable) -> pt.TensorVariable:
    """Log of Gamma(x + n) / (Gamma(x) x^n), by Stirling's series where Gamma loses the digits."""
    small, large = pt.minimum(x, STIRLING_FROM), pt.maximum(x, STIRLING_FROM)
    exact = pt.gammaln(small + n) - pt.gammaln(small) - n * pt.log(small)
    end = large + n
    series = (end - 0.5) * pt.log1p(n / large) - n
    series += (1.0 / end - 1.0 / large) / 12.0 - (end**-3.0 - large**-3.0) / 360.0
    return pt.switch(x < STIRLING_FROM, exact, series)
