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
from bayes_sdc.microdata.posterior.quadrature import LogDensity
from bayes_sdc.microdata.posterior.sampling import (
    Learned,
    Sampler,
    integrate_posterior,
    log_rising,
    pad,
    padded_length,
    sample_posterior,
)
from bayes_sdc.models.priors import LOG_SCALE_SD, RATES, log_typical

P_STEP = 0.02  # in log p, between the groups from which alpha and beta are learned
STEP = 0.05  # in log(p / (1 - p)), between the values for which the risk is integrated
NEGLIGIBLE = -35.0  # log of a weight, relative to the largest
SERIES_FROM = 40
LEVELS = (0.025, 0.975)
SCANNED = 6.0  # standard deviations of the prior on each side, among which modes are looked for
AT_ONCE = 1 << 21
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(64)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class SharedRisk(NamedTuple):
    """Risk of combinations over alpha and beta.

    Parameters
    ----------
    mean : array of float, shape (combination,)
        Mean over the nodes, or over the draws without them, in [0, 1 / f].
    interval : array of float, shape (combination, 2)
        Quantiles of 2.5 and 97.5 % over the draws.
    totals : array of float, shape (2, draw)
        Risks of each draw summed over records and over sample uniques.
    """

    mean: Floats
    interval: Floats
    totals: Floats


class Groups(NamedTuple):
    """Combinations of equal f and p are one group, and how many they are.

    Parameters
    ----------
    f, p, copies : array of float, shape (group,)
        Sample frequency, inclusion probability to one per cent, number of combinations.
    unseen : array of float, shape (group,), or None
        Combinations with the p of the group that can occur and are not in the sample.
    """

    f: Floats
    p: Floats
    copies: Floats
    unseen: Floats | None


def group_rates(f: Integers, p: Floats, empty: int | None) -> Groups:
    """Group combinations to learn alpha and beta from."""
    # p to one per cent is enough to learn two parameters, and makes few groups of many weights
    rounded = np.minimum(1.0, np.exp(np.round(np.log(p) / P_STEP) * P_STEP))
    pairs, copies = np.unique(np.column_stack([f, rounded]), axis=0, return_counts=True)
    unseen = None if empty is None else copies * (empty / copies.sum())
    return Groups(pairs[:, 0], pairs[:, 1], copies.astype(np.float64), unseen)


def fit_rates(
    f: Integers,
    p: Floats,
    empty: int | None,
    extended: bool,
    draws: int,
    seed: int,
    sampler: Sampler = "quadrature",
) -> Learned:
    """Posterior of alpha and beta, by quadrature or by NUTS."""
    groups = group_rates(f, p, empty)
    what = f"model {'extended' if extended else 'gamma'}"
    if sampler == "nuts":
        return _sampled(groups, extended, what, draws, seed)
    prior = RATES["extended" if extended else "gamma"]
    typical = log_typical(groups.f, groups.p, groups.copies)
    scan = [
        (mean - SCANNED * sd, mean + SCANNED * sd)
        for mean, sd in (
            (prior["log_shape_mean"], prior["log_shape_sd"]),
            (typical, LOG_SCALE_SD),
        )
    ]

    def parameters(points: Floats) -> dict[str, Floats]:
        return {
            "alpha": prior["lowest"] + np.exp(points[:, 0]),
            "beta": np.exp(-points[:, 1]),
        }

    density = rates_density(groups, extended)
    return integrate_posterior(density, scan, parameters, what, draws=draws, seed=seed)


def rates_density(groups: Groups, extended: bool) -> LogDensity:
    """Log posterior density of ``log_shape`` and ``log_scale`` in ``build_shared``, by numpy.

    Terms that hold f and those that hold p stand apart, so each is computed once a value of f or p,
    not once a group.
    """
    prior = RATES["extended" if extended else "gamma"]
    typical = log_typical(groups.f, groups.p, groups.copies)
    size, of_size = np.unique(groups.f, return_inverse=True)
    chance, of_chance = np.unique(groups.p, return_inverse=True)
    copies_of_size = np.bincount(of_size, groups.copies)
    members = np.bincount(of_chance, groups.copies * groups.f)
    seen = np.bincount(of_chance, groups.copies)
    every = seen if groups.unseen is None else seen + np.bincount(of_chance, groups.unseen)
    start = 1.0 if groups.unseen is None else 0.0  # of the product that Gamma(f + alpha) ends

    def density(log_shape: Floats, log_scale: Floats) -> Floats:
        alpha = (prior["lowest"] + np.exp(log_shape))[:, None]
        beta = np.exp(-log_scale)[:, None]
        rise = log_rising(alpha + start, size - start) + (size - start) * np.log(alpha + start)
        log_none = -np.log1p(chance / beta)
        value = rise @ copies_of_size + (alpha * log_none) @ every
        value -= np.log1p(beta / chance) @ members
        if groups.unseen is None:
            # (1 - P(0)) / alpha, which has a limit at 0
            exponent = alpha * log_none
            small = np.abs(exponent) < 1e-5
            ratio = np.where(
                small, 1.0 + 0.5 * exponent, np.expm1(exponent) / np.where(small, 1.0, exponent)
            )
            value -= (np.log(-log_none) + np.log(ratio)) @ seen
        value -= 0.5 * ((log_shape - prior["log_shape_mean"]) / prior["log_shape_sd"]) ** 2
        value -= 0.5 * ((log_scale - typical) / LOG_SCALE_SD) ** 2
        return np.asarray(value, dtype=np.float64)

    def log_density(points: Floats) -> Floats:
        step = max(1, AT_ONCE // (len(size) + len(chance)))
        parts = [points[k : k + step].T for k in range(0, len(points), step)]
        return np.concatenate([density(*part) for part in parts])

    return log_density


def _sampled(groups: Groups, extended: bool, what: str, draws: int, seed: int) -> Learned:
    """Posterior by NUTS."""
    length = padded_length(len(groups.f))
    data = {
        "frequencies": pad(groups.f, length, 1.0),
        "inclusion": pad(groups.p, length, 0.5),
        "copies": pad(groups.copies, length, 0.0),
        "log_typical": np.float64(log_typical(groups.f, groups.p, groups.copies)),
    }
    prior = RATES["extended" if extended else "gamma"]
    data |= {name: np.float64(value) for name, value in prior.items()}
    if groups.unseen is not None:
        data["unseen"] = pad(groups.unseen, length, 0.0)
    model = _compiled(length, groups.unseen is not None).with_data(**data)
    return sample_posterior(model, ["alpha", "beta"], what, draws=draws, seed=seed)


@functools.cache
def _compiled(length: int, with_unseen: bool) -> Any:
    import nutpie

    from bayes_sdc.models.individual_risk import build_shared

    blank = np.ones(length)
    model = build_shared(blank, 0.5 * blank, blank, unseen=blank if with_unseen else None)
    return nutpie.compile_pymc_model(model, var_names=["alpha", "beta"])


def shared_risk(
    f: Integers,
    p: Floats,
    shape: Floats,
    rate: Floats,
    records: Integers,
    nodes: tuple[Floats, Floats, Floats] | None = None,
) -> SharedRisk:
    """Integrate the risk for each draw of alpha and beta, and over their posterior.

    Parameters
    ----------
    f, p, records : array, shape (combination,)
        Sample frequency, inclusion probability, and the number of records.
    shape, rate : array of float, shape (draw,)
        Alpha, above -1, and beta, 0 or more.
    nodes : three arrays of float, shape (node,), optional
        Alpha, beta and weight of the nodes of a quadrature; the mean is over the draws without.

    Returns
    -------
    SharedRisk
        Risks; exact, but where combinations of equal f have more than a grid of values of p: there
        means are within a millionth and ends of intervals within a thousandth.
    """
    found = nodes_of(f, p, STEP)
    number = np.stack([found.collect(1.0 * copies) for copies in (records, f == 1)])
    sizes = f[found.first].astype(np.float64)
    draws = len(shape)
    alpha, beta, weight = shape, rate, np.full(draws, 1.0 / draws)
    if nodes is not None:
        alpha, beta = np.concatenate([shape, nodes[0]]), np.concatenate([rate, nodes[1]])
        weight = np.concatenate([np.zeros(draws), nodes[2]])
    mean, interval = np.empty(len(sizes)), np.empty((2, len(sizes)))
    totals = np.zeros((2, draws))
    step = max(1, AT_ONCE // len(alpha))
    for start in range(0, len(sizes), step):
        part = slice(start, start + step)
        risk = _risk(sizes[part], found.p[part], alpha, beta, NODES, NODE_WEIGHTS)
        # einsum adds up in one order on every machine
        mean[part] = np.einsum("is,s->i", risk, weight)
        totals += np.einsum("ki,is->ks", number[:, part], risk[:, :draws])
        interval[:, part] = np.quantile(risk[:, :draws], LEVELS, axis=1)
    within = 1.0 / f
    ends = np.clip(found.interpolate(interval), 0.0, within).T
    return SharedRisk(
        np.clip(found.interpolate(mean), 0.0, within), np.ascontiguousarray(ends), totals
    )


def expected_alone(p: Floats, shape: Floats, rate: Floats, weight: Floats) -> float:
    """Sample uniques that are population uniques, over nodes of alpha and beta.

    Parameters
    ----------
    p : array of float, shape (combination,)
        Inclusion probabilities of the sample uniques.
    shape, rate, weight : array of float, shape (node,)
        Alpha, beta and weights that add up to 1.

    Returns
    -------
    float
        In [0, the number of sample uniques], within a millionth of it.
    """
    found = nodes_of(np.ones(len(p), dtype=np.int64), p, STEP)
    log_success = np.log1p((found.p[:, None] - 1.0) / (rate + 1.0))
    alone = np.einsum("is,s->i", np.exp((1.0 + shape) * log_success), weight)
    return float(np.clip(found.interpolate(alone), 0.0, 1.0).sum())


@numba.njit(cache=True, nogil=True)
def _risk(
    f: np.ndarray,
    p: np.ndarray,
    shape: np.ndarray,
    rate: np.ndarray,
    nodes: np.ndarray,
    node_weights: np.ndarray,
) -> np.ndarray:
    risk = np.empty((len(f), len(shape)))
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
                for k in range(len(nodes)):
                    v = (nodes[k] - 1.0) * half
                    y = (math.exp(v) - rho) / z
                    value += node_weights[k] * y ** (f[i] - 1.0) * math.exp(shape[s] * v)
                value *= rho * half / z
            risk[i, s] = min(max(value, 0.0), 1.0 / f[i])
    return risk
