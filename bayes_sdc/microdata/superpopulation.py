r"""Risk with its uncertainty: draws of the population frequencies, given the sample.

The models are those of :mod:`bayes_sdc.models.individual_risk`. Risks of single combinations are
integrated, not simulated; draws serve the totals over the file, whose spread they show.

With shape alpha and rate beta of the shared Gamma distribution the risk is

.. math:: r = \rho \int_0^1 y^{f-1} (\rho + z y)^{\alpha - 1} \, dy
    = \frac{\rho}{f} \, {}_2F_1(1, 1 - \alpha; f + 1; z),
    \qquad \rho = \frac{\beta + p}{\beta + 1}, \quad z = 1 - \rho ,

from :math:`E[1/F] = \int_0^1 t^{-1} E[t^F] dt` with :math:`y = \rho t / (1 - z t)`.
"""

import functools
import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numba
import numpy as np
import numpy.typing as npt
import xarray as xr

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.individual import check_numbers, check_whole, individual_risk
from bayes_sdc.microdata.posterior import (
    FEWEST_DRAWS,
    Estimate,
    check_draws,
    estimate,
    mean_error,
    pad,
    padded_length,
    sample_posterior,
    spread_draws,
)
from bayes_sdc.microdata.tabulate import sums
from bayes_sdc.seeds import generator, seed_sequence

Model = Literal["known", "uncertain", "gamma", "extended"]
MODELS: dict[str, str] = {
    "known": "prior 1/rate for each combination, inclusion probability known",
    "uncertain": "prior 1/rate, inclusion probability from the weights with its uncertainty",
    "gamma": "the rates of all combinations share a Gamma distribution",
    "extended": "rates share a distribution whose shape may be negative: more rare combinations",
}
SIMULATED = 20_000_000  # population frequencies drawn in all; fewer draws of a large table
INTEGRATED_DRAWS = 100  # of alpha and beta, for the risk of single combinations
NEGLIGIBLE = -35.0  # log of a weight, relative to the largest
P_STEP = 0.02  # in log p, between the groups from which alpha and beta are learned
SERIES_FROM = 40
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(64)
AT_ONCE = 2_000_000

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SuperpopulationRisk:
    """Risk of combinations and of the file under one model of the population.

    Made by :func:`bayes_sdc.microdata.superpopulation.superpopulation_risk`.

    Parameters
    ----------
    model : {"known", "uncertain", "gamma", "extended"}
        The assumption on the rates.
    risk : array of float, shape (combination,)
        Posterior mean of 1 / F, in [0, 1].
    expected : Estimate
        Correct matches when every record is matched to one member of its population cell by lot:
        the sum of 1 / F over records.
    tau1 : Estimate
        Sample uniques that are population uniques.
    tau2 : Estimate
        Correct matches among sample uniques.
    posterior : DataTree or None
        Of alpha and beta, for "gamma" and "extended".
    trusted : bool
        False when the chains did not converge.
    draws : int
        Number of draws behind the totals.
    notes : tuple of str
        What was done otherwise than asked for.
    """

    model: str
    risk: Floats = field(repr=False)
    expected: Estimate
    tau1: Estimate
    tau2: Estimate
    posterior: xr.DataTree | None = field(repr=False)
    trusted: bool
    draws: int
    notes: tuple[str, ...]


def superpopulation_risk(
    f: npt.ArrayLike,
    p: npt.ArrayLike,
    *,
    records: npt.ArrayLike | None = None,
    model: Model = "known",
    spread: npt.ArrayLike | None = None,
    empty: int | None = None,
    draws: int = 1000,
    seed: int,
) -> SuperpopulationRisk:
    """Draw the population frequencies of all combinations, and sum up the risk of the file.

    Parameters
    ----------
    f : array_like of int, shape (combination,)
        Sample frequencies, 1 or more.
    p : array_like of float, shape (combination,)
        Probability to be in the sample, above 0 and at most 1.
    records : array_like of int, shape (combination,), optional
        Records with each combination; f by default. They differ where missing values match.
    model : {"known", "uncertain", "gamma", "extended"}
        See :data:`MODELS`.
    spread : array_like of float, shape (combination,)
        Relative standard deviation of p, for "uncertain" only; see `weight_spread`.
    empty : int, optional
        For "gamma" only: combinations that can occur and are not in the sample, without structural
        zeros. By default their number is unknown.
    draws : int
        Draws behind the totals; fewer, but at least 200, beyond 20 million frequencies in all.
    seed : int
        Everything random follows from it.

    Returns
    -------
    SuperpopulationRisk
        Means, intervals and whether to trust them.

    Raises
    ------
    InputError
        If an argument is out of range or does not go with the model.

    Examples
    --------
    >>> result = superpopulation_risk([1, 1, 3], [0.1, 0.2, 0.1], seed=1)
    >>> result.risk.round(4).tolist()
    [0.2558, 0.4024, 0.0464]
    >>> result.tau1.interval
    (0.0, 1.0)
    """
    risk = individual_risk(f, p)  # which also judges f and p
    frequency = check_whole(f, "f")
    multiplicity = frequency if records is None else check_whole(records, "records")
    if frequency.ndim != 1 or not len(frequency) or multiplicity.shape != frequency.shape:
        raise InputError("f, p and records must have one dimension, equal lengths and no length 0")
    inclusion = _as_long("p", p, frequency)
    if model not in MODELS:
        raise InputError(f"model {model!r} is unknown; choose from {list(MODELS)}")
    for name, given, only in (("spread", spread, "uncertain"), ("empty", empty, "gamma")):
        if given is not None and model != only:
            raise InputError(f"{name} goes with the model {only!r}, not with {model!r}")
    check_draws(draws)
    if empty is not None:
        number = isinstance(empty, int | np.integer) and not isinstance(empty, bool)
        if not number or empty < 0:
            raise InputError(f"empty must be a whole number, 0 or more; it is {empty!r}")
    seed_sequence(seed)  # refuses a seed that is none
    used = int(np.clip(SIMULATED // len(frequency), FEWEST_DRAWS, draws))
    notes: tuple[str, ...] = ()
    if used < draws:
        notes = (
            f"intervals by model are from {used:,} draws, not {draws:,}: there are "
            f"{len(frequency):,} combinations",
        )
    rng = generator(seed, "superpopulation", model)
    posterior, trusted, errors = None, True, [0.0, 0.0]
    shape, rate = np.zeros(used), np.zeros(used)
    deviation = None
    if model == "uncertain":
        if spread is None:
            raise InputError("the model 'uncertain' needs spread; see weight_spread")
        deviation = _as_long("spread", spread, frequency)
        if not bool(np.all((deviation >= 0) & np.isfinite(deviation))):
            raise InputError("spread must be 0 or more")
        risk = _uncertain_risk(frequency, inclusion, deviation)
    elif model in ("gamma", "extended"):
        posterior, trusted = _fit(frequency, inclusion, empty, model == "extended", seed)
        shape = spread_draws(posterior, "alpha", used)
        rate = spread_draws(posterior, "beta", used)
        few = np.linspace(0, used - 1, INTEGRATED_DRAWS).astype(int)
        risk, integrated = _shared_risk(frequency, inclusion, shape[few], rate[few], multiplicity)
        errors = [mean_error(total) for total in integrated]
    totals = _totals(frequency, inclusion, multiplicity, shape, rate, deviation, rng)
    alone = frequency == 1
    return SuperpopulationRisk(
        model=model,
        risk=risk,
        expected=estimate(totals[0], float(risk @ multiplicity), errors[0]),
        tau1=estimate(totals[1], float(inclusion[alone].sum()) if posterior is None else None),
        tau2=estimate(totals[2], float(risk[alone].sum()), errors[1]),
        posterior=posterior,
        trusted=trusted,
        draws=used,
        notes=notes,
    )


def _as_long(name: str, values: npt.ArrayLike, f: Integers) -> Floats:
    given = check_numbers(values, name).astype(np.float64)
    if given.shape not in ((), (1,), f.shape):
        raise InputError(f"{name} must be one number or {len(f):,}, as many as f")
    return np.broadcast_to(given, f.shape)


def weight_spread(
    weights: npt.ArrayLike, combination: npt.ArrayLike, records: npt.ArrayLike
) -> Floats:
    """Estimate how uncertain the inclusion probability of each combination is, from its weights.

    The weights within a combination vary with a relative variance that is pooled over all
    combinations with two records or more; the mean weight of f records then has a relative variance
    f times smaller. Equal weights within combinations give 0: then p is known. Without a
    combination of two records the variance of all weights is taken, which is at least as large.

    Parameters
    ----------
    weights : array_like of float, shape (record,)
        Above 0.
    combination : array_like of int, shape (record,)
        Place of the record's combination.
    records : array_like of int, shape (combination,)
        Records with each combination, 1 or more.

    Returns
    -------
    array of float, shape (combination,)
        Relative standard deviation of p.

    Raises
    ------
    InputError
        If a weight is not above 0, or the records of a combination are not as many as said.

    Examples
    --------
    >>> weight_spread([10, 20, 15], [0, 0, 1], [2, 1]).round(3).tolist()
    [0.333, 0.471]
    """
    given = check_numbers(weights, "weights").astype(np.float64)
    place, number = check_whole(combination, "combination", 0), check_whole(records, "records")
    if not (np.isfinite(given) & (given > 0)).all():
        raise InputError("weights must be numbers above 0")
    if given.shape != place.shape or not np.array_equal(
        np.bincount(place, minlength=len(number)), number
    ):
        raise InputError(
            f"records must count the {len(given):,} weights by combination; they count "
            f"{number.sum():,}"
        )
    if number.max() == 1:
        place, pooled = np.zeros_like(place), np.array([len(given)])
    else:
        pooled = number
    means = sums(place, given, len(pooled)) / pooled
    squares = sums(place, (given / means[place] - 1.0) ** 2, len(pooled)).sum()
    variance = squares / max(1, (pooled - 1).sum())
    return np.asarray(np.sqrt(variance / number), dtype=np.float64)


def _uncertain_risk(f: Integers, p: Floats, spread: Floats) -> Floats:
    r"""Mean risk over the Beta distribution of p.

    The risk is :math:`p / f + p q g(p)` with :math:`g = {}_2F_1(1, 2; f + 2; q) / (f (f + 1))`, so
    its mean under Beta(a, b) is :math:`E[p] / f + E[p q] E'[g]` with E' under Beta(a + 1, b + 1):
    however much of Beta(a, b) lies at its ends, what is left to integrate has none there.
    """
    from bayes_sdc.models.individual_risk import MOST_CERTAIN, beta_concentration

    risk = individual_risk(f, p)
    uncertain = np.flatnonzero(spread > 0)
    if not len(uncertain):
        return risk
    triples, place = np.unique(
        np.column_stack([f, p, spread])[uncertain], axis=0, return_inverse=True
    )
    mean = np.minimum(triples[:, 1], MOST_CERTAIN)
    concentration = beta_concentration(mean, triples[:, 2])
    found = _beta_mean_risk(triples[:, 0], mean, concentration)
    risk[uncertain] = found[place.ravel()]
    return risk


@numba.njit(cache=True, nogil=True)
def _beta_mean_risk(f: np.ndarray, mean: np.ndarray, concentration: np.ndarray) -> np.ndarray:
    """By the trapezoidal rule in x = log(p / q), where both tails of the integrand are exponential.

    A third of its standard deviation is a step that leaves less than 1e-11, see the tests.
    """
    risk = np.empty(len(f))
    for i in range(len(f)):
        a = 1.0 + mean[i] * concentration[i]
        b = 1.0 + (1.0 - mean[i]) * concentration[i]
        mode, rest = a / (a + b), b / (a + b)  # of p and q in the density of x
        step = math.sqrt(1.0 / a + 1.0 / b) / 3.0
        total = weights = 0.0
        for direction in (-1.0, 1.0):
            j = 0 if direction > 0 else 1
            while True:
                distance = direction * j * step
                # density relative to the mode: the terms of first order in distance cancel
                exponent = -a * math.log1p(rest * math.expm1(-distance))
                exponent -= b * math.log1p(mode * math.expm1(distance))
                if exponent < NEGLIGIBLE:
                    break
                weight = math.exp(exponent)
                p = mode / (mode + rest * math.exp(-distance))
                q = rest / (rest + mode * math.exp(distance))
                weights += weight
                total += weight * _excess(f[i], p, q)
                j += 1
        both = mean[i] * (1.0 - mean[i]) * concentration[i] / (concentration[i] + 1.0)  # E[p q]
        risk[i] = min(mean[i] / f[i] + both * total / weights, 1.0 / f[i])
    return risk


@numba.njit(cache=True, nogil=True)
def _excess(f: float, p: float, q: float) -> float:
    """(r - p / f) / (p q), in the two ways of `individual_risk`."""
    if f >= SERIES_FROM or q <= 0.5:
        term = total = 1.0
        j = 0
        while term > 1e-17 * total:
            term *= (j + 2.0) * q / (f + 2.0 + j)
            total += term
            j += 1
        return total / (f * (f + 1.0))
    integral = -math.log(p) / q
    for j in range(1, int(f)):
        integral = (1.0 / j - p * integral) / q
    return (integral - 1.0 / f) / q


def _fit(
    f: Integers, p: Floats, empty: int | None, extended: bool, seed: int
) -> tuple[xr.DataTree, bool]:
    """Posterior of alpha and beta; combinations of equal f and p are one group."""
    from bayes_sdc.models.individual_risk import log_typical

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
    if empty is not None:
        data["unseen"] = pad(copies * (empty / copies.sum()), length, 0.0)
    model = _compiled(length, empty is not None, extended).with_data(**data)
    return sample_posterior(model, ["alpha", "beta"], seed)


@functools.cache
def _compiled(length: int, with_unseen: bool, extended: bool) -> Any:
    import nutpie

    from bayes_sdc.models.individual_risk import build_shared

    blank = np.ones(length)
    model = build_shared(
        blank, 0.5 * blank, blank, unseen=blank if with_unseen else None, extended=extended
    )
    return nutpie.compile_pymc_model(model, var_names=["alpha", "beta"])


def _shared_risk(
    f: Integers, p: Floats, shape: Floats, rate: Floats, records: Integers
) -> tuple[Floats, Floats]:
    """Mean risk over draws of alpha and beta, shape (combination,), and two totals of each draw.

    The totals, shape (2, draw), are the risks summed over records and over sample uniques.
    """
    groups, place = np.unique(np.column_stack([f, p]), axis=0, return_inverse=True)
    place = place.ravel()
    number = np.stack([sums(place, copies, len(groups)) for copies in (records, 1.0 * (f == 1))])
    risk, totals = _mean_risk(groups[:, 0], groups[:, 1], number, shape, rate, NODES, NODE_WEIGHTS)
    return np.asarray(risk[place], dtype=np.float64), totals


@numba.njit(cache=True, nogil=True)
def _mean_risk(
    f: np.ndarray,
    p: np.ndarray,
    number: np.ndarray,
    shape: np.ndarray,
    rate: np.ndarray,
    nodes: np.ndarray,
    node_weights: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    risk, totals = np.zeros(len(f)), np.zeros((len(number), len(shape)))
    for i in range(len(f)):
        for s in range(len(shape)):
            rho = (rate[s] + p[i]) / (rate[s] + 1.0)
            z = (1.0 - p[i]) / (rate[s] + 1.0)
            if f[i] >= SERIES_FROM + shape[s] or z < 1e-3:
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
            for k in range(len(number)):
                totals[k, s] += number[k, i] * value
    return risk / len(shape), totals


def _totals(
    f: Integers,
    p: Floats,
    records: Integers,
    shape: Floats,
    rate: Floats,
    spread: Floats | None,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Floats]:
    """Sum of 1 / F over records, population uniques, and 1 / F over sample uniques, by draw."""
    draws, unique = len(shape), f == 1
    expected, tau1, tau2 = np.empty(draws), np.empty(draws), np.empty(draws)
    step = max(1, AT_ONCE // len(f))
    for start in range(0, draws, step):
        part = slice(start, min(draws, start + step))
        chance = p
        if spread is not None:
            chance = _draw_inclusion(p, spread, part.stop - part.start, rng)
        size = f + shape[part, None]
        success = (rate[part, None] + chance) / (rate[part, None] + 1.0)
        # negative binomial as a Poisson of a Gamma, which also serves means beyond 64 bits
        mean = rng.gamma(size) * ((1.0 - success) / success)
        unsampled = np.where(mean < 1e15, rng.poisson(np.minimum(mean, 1e15)), mean)
        inverse = records / (f + unsampled)
        expected[part] = inverse.sum(axis=1)
        tau1[part] = (unsampled[:, unique] == 0).sum(axis=1)
        tau2[part] = inverse[:, unique].sum(axis=1)
    return expected, tau1, tau2


def _draw_inclusion(p: Floats, spread: Floats, draws: int, rng: np.random.Generator) -> Floats:
    from bayes_sdc.models.individual_risk import MOST_CERTAIN, beta_concentration

    mean = np.minimum(p, MOST_CERTAIN)
    concentration = beta_concentration(mean, spread)
    drawn = rng.beta(mean * concentration, (1.0 - mean) * concentration, (draws, len(p)))
    return np.where(spread > 0, np.maximum(drawn, 1e-300), p)
