r"""Latent classes and the scatter of combinations about them, for the risk of sample uniques.

`build_base` has the classes of the records summed out: combination k has probability

.. math:: g_k = \sum_h \eta_h \prod_j \varphi_{jh}(x_{kj}),

with the priors of :mod:`bayes_sdc.microdata.latent_classes.conditionals`. How finely a class has
levels of its own in a key, its resolution s, is a variable of the model: at s = 0 it has those of
everybody, at the finest each level by itself, and between, bands of neighbouring levels, inside
which all classes are alike. `build_dispersion` has
the second stage, given g: :math:`f_k` is negative binomial with mean :math:`n g_k` and shape
:math:`R (n g_k)^\kappa` for every combination, seen or not.

References
----------
D. B. Dunson and C. Xing, "Nonparametric Bayes modeling of multivariate categorical data", JASA
2009, doi:10.1198/jasa.2009.tm08439.
D. Manrique-Vallier and J. P. Reiter, "Estimating identification disclosure risk using mixed
membership models", JASA 2012, doi:10.1080/01621459.2012.710508.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt

PRIORS: dict[str, dict[str, float]] = {
    "alpha": {"alpha": 0.25, "beta": 0.25},
    "log_strength": {"mu": float(np.log(5.0)), "sigma": 1.5},
    "base": {"a": 0.5},
    "log_R": {"lower": -3.0, "upper": 5.0},
    "kappa": {"lower": 0.0, "upper": 1.0},
}


def bands_of(levels: int) -> list[npt.NDArray[np.float64]]:
    """For each resolution of a key, which levels are in the same band: matrices of 0 and 1.

    Bands are halved from one resolution to the next, from all levels to each by itself.

    Examples
    --------
    >>> [same.astype(int).tolist() for same in bands_of(3)][1]
    [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    """
    place = np.arange(levels)
    depth = (levels - 1).bit_length()
    return [
        (place[:, None] >> up == place[None, :] >> up).astype(np.float64)
        for up in range(depth, -1, -1)
    ]


def build_base(
    codes: npt.ArrayLike,
    records: npt.ArrayLike,
    *,
    levels: Sequence[int],
    classes: int,
    keys: Sequence[str] | None = None,
    labels: Sequence[Sequence[str]] | None = None,
) -> pm.Model:
    """Latent classes with the class of each record summed out; for small tables and `pm.sample`.

    ``pm.sample`` takes NUTS for what is continuous and Metropolis steps for the resolutions; a
    sampler by gradients alone cannot take the model.

    Parameters
    ----------
    codes : array_like of int, shape (combination, key)
        Levels of each combination of the sample, from 0; -1 where it is missing, which is summed
        over.
    records : array_like of int, shape (combination,)
        Records with it.
    levels : sequence of int
        Levels of each key.
    classes : int
        H.
    keys : sequence of str, optional
        Names of the keys; "key 1" and so on by default.
    labels : sequence of sequence of str, optional
        Names of the levels of each key; numbers from 0 by default.

    Returns
    -------
    pm.Model
        ``alpha``, ``eta``, and for each key ``log strength``, ``base``, ``shares`` of the
        resolutions, ``resolution`` and ``own`` levels by class; ``phi``, ``g`` and
        ``log_likelihood`` derived. Use only quantities that do not depend on the labels of the
        classes, such as the last two.
    """
    table, number = np.asarray(codes), np.asarray(records, dtype=np.float64)
    names = keys or [f"key {j + 1}" for j in range(table.shape[1])]
    named: Sequence[Any] = labels or [np.arange(size) for size in levels]
    coords: dict[str, Any] = {
        "class": np.arange(classes),
        "combination": np.arange(len(table)),
        **{f"level of {name}": part for name, part in zip(names, named, strict=True)},
    }
    with pm.Model(coords=coords) as model:
        alpha = pm.Gamma("alpha", **PRIORS["alpha"])
        eta = pm.Dirichlet("eta", pt.full(classes, alpha / classes), dims="class")
        log_w = pt.log(eta)[None, :]
        for j, (name, size) in enumerate(zip(names, levels, strict=True)):
            level = f"level of {name}"
            log_strength = pm.Normal(f"log strength of {name}", **PRIORS["log_strength"])
            base = pm.Dirichlet(f"base of {name}", np.full(size, PRIORS["base"]["a"]), dims=level)
            shape = pt.outer(pt.ones(classes), pt.exp(log_strength) * base)
            own = pm.Dirichlet(f"own of {name}", shape, dims=("class", level))
            bands = bands_of(size)
            shares = pm.Dirichlet(f"shares of {name}", np.ones(len(bands)))
            resolution = pm.Categorical(f"resolution of {name}", shares, dims="class")
            # of every resolution: what a class gives to a band is divided as everybody's is
            by_band = pt.stack([(own @ same) * (base / (base @ same)) for same in bands])
            phi = by_band[resolution, np.arange(classes)]
            phi = pm.Deterministic(f"phi of {name}", phi, dims=("class", level))
            known = table[:, j] >= 0
            factor = pt.log(phi)[:, np.where(known, table[:, j], 0)].T
            log_w += factor if known.all() else pt.where(known[:, None], factor, 0.0)
        log_g = pm.math.logsumexp(log_w, axis=1, keepdims=False)
        pm.Deterministic("g", pt.exp(log_g), dims="combination")
        whole = (number * log_g).sum()
        pm.Deterministic("log_likelihood", whole)
        pm.Potential("records", whole)  # which names it: the one above is a copy
    return model


def build_dispersion(f: npt.ArrayLike, expected: npt.ArrayLike) -> pm.Model:
    """The scatter of combinations about the base, given the base.

    Parameters
    ----------
    f : array_like of int, shape (combination,)
        Frequencies in the sample of all combinations that can occur, 0 included.
    expected : array_like of float, shape (combination,)
        n g of each, above 0.

    Returns
    -------
    pm.Model
        ``log_R``, ``kappa`` and the observed ``f``.
    """
    mean = np.asarray(expected, dtype=np.float64)
    observed = np.asarray(f, dtype=np.int64)
    with pm.Model(coords={"combination": np.arange(len(mean))}) as model:
        log_r = pm.Uniform("log_R", **PRIORS["log_R"])
        kappa = pm.Uniform("kappa", **PRIORS["kappa"])
        shape = pt.exp(log_r + kappa * np.log(mean))
        pm.NegativeBinomial("f", mu=mean, alpha=shape, observed=observed, dims="combination")
    return model
