r"""Poisson log-linear model of a table of key values, with a scale for each block of effects.

Cell k with levels x has a frequency with mean

.. math:: \mu_k = \exp\Big(c + \sum_j \beta_j(x_j) + \sum_{a<b} \beta_{ab}(x_a, x_b)
    + \sum_{a<b<c} \beta_{abc}(x_a, x_b, x_c)\Big),

of which the pairs and triples are chosen. The effects of all keys have one half-normal scale, so
have those of all pairs, and those of all triples. With ``dispersed`` frequencies are negative
binomial about the mean, with one shape for all cells.

References
----------
C. J. Skinner and N. Shlomo, JASA 2008, doi:10.1198/016214507000001328. C. Carota, M. Filippone,
R. Leombruni and S. Polettini, "Bayesian nonparametric disclosure risk estimation via mixed effects
log-linear models", Annals of Applied Statistics 2015, doi:10.1214/15-AOAS807.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt

PRIORS: dict[str, dict[str, float]] = {
    "scale of keys": {"sigma": 2.0},
    "scale of pairs": {"sigma": 1.0},
    "scale of triples": {"sigma": 1.0},
    "log_shape": {"mu": 0.0, "sigma": 3.0},
}
BLOCKS = {1: "keys", 2: "pairs", 3: "triples"}


def build_loglinear(
    codes: npt.ArrayLike,
    f: npt.ArrayLike,
    *,
    levels: Sequence[int],
    terms: Sequence[tuple[int, ...]],
    weight: npt.ArrayLike | None = None,
    dispersed: bool = False,
    keys: Sequence[str] | None = None,
    cells: Sequence[str] | None = None,
) -> pm.Model:
    """Build the model of some cells, each of which may stand for several empty ones.

    Parameters
    ----------
    codes : array_like of int, shape (cell, key)
        Levels of each cell, from 0.
    f : array_like of int, shape (cell,)
        Frequencies in the sample, 0 included.
    levels : sequence of int
        Levels of each key.
    terms : sequence of tuples of int
        Keys whose values have effects together: one, two or three of them. Those of one key are
        given too.
    weight : array_like of float, shape (cell,), optional
        Cells that each cell stands for: its part of the log likelihood is multiplied by it. 1 by
        default.
    dispersed : bool
        Whether frequencies scatter about the mean.
    keys : sequence of str, optional
        Names of the keys; "key 1" and so on by default.
    cells : sequence of str, optional
        Names of the cells; numbers from 0 by default.

    Returns
    -------
    pm.Model
        ``constant``, ``effects of ...`` for each term, ``scale of keys`` and so on, ``log_shape``
        where dispersed; ``log_mean`` and ``log_likelihood`` of the cells derived. The likelihood is
        a potential, without the factorials of f.
    """
    table, number = np.asarray(codes, np.int64), np.asarray(f, np.float64)
    counted = np.ones(len(number)) if weight is None else np.asarray(weight, np.float64)
    names = keys or [f"key {j + 1}" for j in range(table.shape[1])]
    typical = np.log(number.sum() / counted.sum())
    named = np.arange(len(number)) if cells is None else cells
    with pm.Model(coords={"cell": named}) as model:
        log_mean = pm.Normal("constant", mu=float(typical), sigma=5.0) * np.ones(len(number))
        for size in sorted({len(term) for term in terms}):
            block = f"scale of {BLOCKS[size]}"
            scale = pm.HalfNormal(block, **PRIORS[block])
            for term in (term for term in terms if len(term) == size):
                shape = [levels[j] for j in term]
                place = np.ravel_multi_index([table[:, j] for j in term], shape)
                # most pairs of levels occur in no given cell, so the prior is all that is known
                # about them
                occurring, column = np.unique(place, return_inverse=True)
                name = " x ".join(names[j] for j in term)
                model.add_coord(f"levels of {name}", occurring)
                free = pm.Normal(f"free effects of {name}", dims=f"levels of {name}")
                effects = pm.Deterministic(
                    f"effects of {name}", scale * free, dims=f"levels of {name}"
                )
                log_mean += effects[column]
        log_mean = pm.Deterministic("log_mean", log_mean, dims="cell")
        mean = pt.exp(log_mean)
        if dispersed:
            shape_of_all = pt.exp(pm.Normal("log_shape", **PRIORS["log_shape"]))
            each = (
                pt.gammaln(shape_of_all + number)
                - pt.gammaln(shape_of_all)
                - (shape_of_all + number) * pt.log1p(mean / shape_of_all)
                + number * (log_mean - pt.log(shape_of_all))
            )
        else:
            each = number * log_mean - mean
        pm.Deterministic("log_likelihood", each, dims="cell")
        pm.Potential("frequencies", (counted * each).sum())
    return model
