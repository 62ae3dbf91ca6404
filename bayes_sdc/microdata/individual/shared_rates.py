r"""Rates that share a Gamma distribution, learned from the frequencies of all combinations.

With shape alpha and rate beta of the Gamma distribution the risk of a combination is

.. math:: r = \rho \int_0^1 y^{f-1} (\rho + z y)^{\alpha - 1} \, dy
    = \frac{\rho}{f} \, {}_2F_1(1, 1 - \alpha; f + 1; z),
    \qquad \rho = \frac{\beta + p}{\beta + 1}, \quad z = 1 - \rho ,

from :math:`E[1/F] = \int_0^1 t^{-1} E[t^F] dt` with :math:`y = \rho t / (1 - z t)`.
"""

import functools
import math
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from bayes_sdc.microdata.individual.interpolation import nodes_of
from bayes_sdc.microdata.sampling import Sampled, pad, padded_length, sample_posterior

P_STEP = 0.02  # in log p, between the groups from which alpha and beta are learned
STEP = 0.05  # in log(p / (1 - p)), between the values for which the risk is integrated
NEGLIGIBLE = -35.0  # log of a weight, relative to the largest
SERIES_FROM = 40
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(64)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class SharedRisk(NamedTuple):
    """Risk of combinations over draws of alpha and beta.

    Parameters
    ----------
    mean : array of float, shape (combination,)
        Mean over the draws, in [0, 1 / f].
    interval : array of float, shape (combination, 2)
        Quantiles of 2.5 and 97.5 % over the draws.
    totals : array of float, shape (2, draw)
        Risks of each draw summed over records and over sample uniques.
    """

    mean: Floats
    interval: Floats
    totals: Floats


def fit_rates(
    f: Integers, p: Floats, empty: int | None, extended: bool, draws: int, seed: int
) -> Sampled:
    """Posterior of alpha and beta; combinations of equal f and p are one group."""
    from bayes_sdc.models.individual_risk import PRIORS, log_typical

    # p to one per cent is enough to learn two parameters, and makes few groups of many weights
    rounded = np.minimum(1.0, np.exp(np.round(np.log(p) / P_STEP) * P_STEP))
    pairs, copies = np.unique(np.column_stack([f, rounded]), axis=0, return_counts=True)
    length = padded_length(len(pairs))
    data = {
        "frequencies": pad(pairs[:, 0], length, 1.0),
        "inclusion": pad(pairs[:, 1], length, 0.5),
        "copies": pad(copies, length, 0.0),
        "log_typical": np.float64(log_typical(pairs[:, 0], pairs[:, 1], copies)),
    }
    prior = PRIORS["extended" if extended else "gamma"]
    data |= {name: np.float64(value) for name, value in prior.items()}
    if empty is not None:
        data["unseen"] = pad(copies * (empty / copies.sum()), length, 0.0)
    model = _compiled(length, empty is not None).with_data(**data)
    what = f"model {'extended' if extended else 'gamma'}"
    return sample_posterior(model, ["alpha", "beta"], what, draws=draws, seed=seed)


@functools.cache
def _compiled(length: int, with_unseen: bool) -> Any:
    import nutpie

    from bayes_sdc.models.individual_risk import build_shared

    blank = np.ones(length)
    model = build_shared(blank, 0.5 * blank, blank, unseen=blank if with_unseen else None)
    return nutpie.compile_pymc_model(model, var_names=["alpha", "beta"])


def shared_risk(
    f: Integers, p: Floats, shape: Floats, rate: Floats, records: Integers
) -> SharedRisk:
    """Integrate the risk for each draw of alpha and beta.

    Parameters
    ----------
    f, p, records : array, shape (combination,)
        Sample frequency, inclusion probability, and the number of records.
    shape, rate : array of float, shape (draw,)
        Alpha, above -1, and beta, 0 or more.

    Returns
    -------
    SharedRisk
        Risks; exact, but where combinations of equal f have more than a grid of values of p: there
        means are within a millionth and ends of intervals within a thousandth.
    """
    found = nodes_of(f, p, STEP)
    number = np.stack([found.collect(1.0 * copies) for copies in (records, f == 1)])
    sizes = f[found.first].astype(np.float64)
    risk, interval, totals = _mean_risk(sizes, found.p, number, shape, rate, NODES, NODE_WEIGHTS)
    within = 1.0 / f
    ends = np.clip(found.interpolate(interval), 0.0, within).T
    mean = np.clip(found.interpolate(risk), 0.0, within)
    return SharedRisk(mean, np.ascontiguousarray(ends), totals)


@numba.njit(cache=True, nogil=True)
def _mean_risk(
    f: np.ndarray,
    p: np.ndarray,
    number: np.ndarray,
    shape: np.ndarray,
    rate: np.ndarray,
    nodes: np.ndarray,
    node_weights: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    risk, totals = np.zeros(len(f)), np.zeros((len(number), len(shape)))
    interval, of_draws = np.empty((2, len(f))), np.empty(len(shape))
    for i in range(len(f)):
        for s in range(len(shape)):
            rho = (rate[s] + p[i]) / (rate[s] + 1.0)
            z = (1.0 - p[i]) / (rate[s] + 1.0)
            if f[i] >= SERIES_FROM + shape[s] or z * max(1.0, shape[s]) < 1e-3:
                term = total = 1.0
                j = 0
                while abs(term) > 1e-17 * abs(total) and j < 1000:
                    term *= (1.0 - shape[s] + j) * z / (f[i] + 1.0 + j)
                    total += term
                    j += 1
                value = rho / f[i] * total
            elif f[i] == 1.0:
                x = shape[s] * math.log(rho)
                value = -rho / z * math.log(rho) * (math.expm1(x) / x if x != 0.0 else 1.0)
            else:
                # v = log(rho + z y) makes the integrand smooth whatever rho. Its logarithm is
                # concave, so below the tangent at v = 0: that tells from where on it counts
                slope = (f[i] - 1.0) / z + shape[s]
                half = 0.5 * min(-math.log(rho), -NEGLIGIBLE / slope)
                value = 0.0
                for node, weight in zip(nodes, node_weights):  # noqa: B905  # not in numba
                    v = (node - 1.0) * half
                    y = (math.exp(v) - rho) / z
                    value += weight * y ** (f[i] - 1.0) * math.exp(shape[s] * v)
                value *= rho * half / z
            value = min(max(value, 0.0), 1.0 / f[i])
            risk[i] += value
            of_draws[s] = value
            for k in range(len(number)):
                totals[k, s] += number[k, i] * value
        interval[:, i] = np.quantile(of_draws, np.array([0.025, 0.975]))
    return risk / len(shape), interval, totals
