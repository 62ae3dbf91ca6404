"""Inclusion probabilities that the weights do not tell exactly: a Beta distribution of each p."""

import math

import numba
import numpy as np
import numpy.typing as npt

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.tabulate import sums
from bayes_sdc.microdata.individual.closed_form import check_numbers, check_whole, individual_risk
from bayes_sdc.models.priors import MOST_CERTAIN, beta_concentration

NEGLIGIBLE = -35.0  # log of a weight, relative to the largest
SERIES_FROM = 40

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@checked
def weight_spread(
    weights: npt.ArrayLike,
    combination: npt.ArrayLike,
    records: npt.ArrayLike,
    *,
    f: npt.ArrayLike | None = None,
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
    f : array_like of int, shape (combination,), optional
        Records whose weights make p; ``records`` by default. They differ where missing values
        match.

    Returns
    -------
    array of float, shape (combination,)
        Relative standard deviation of p.

    Raises
    ------
    InputError
        If a weight is not above 0, or the records of a combination are not as many as said.

    See Also
    --------
    bayes_sdc.record_risk, bayes_sdc.read_microdata

    References
    ----------
    S. Polettini, "A note on the individual risk of disclosure", eq. (2).

    Examples
    --------
    >>> weight_spread([10, 20, 15], [0, 0, 1], [2, 1]).round(3).tolist()
    [0.333, 0.471]
    """
    given = check_numbers(weights, "weights").astype(np.float64)
    place, number = check_whole(combination, "combination", 0), check_whole(records, "records")
    if not (np.isfinite(given) & (given > 0)).all():
        raise InputError("weights must be numbers above 0")
    if (
        given.ndim != 1
        or given.shape != place.shape
        or not np.array_equal(np.bincount(place, minlength=len(number)), number)
    ):
        raise InputError(
            f"records must count the {given.size:,} weights by combination; they count "
            f"{number.sum():,}"
        )
    if number.max() == 1:
        place, pooled = np.zeros_like(place), np.array([len(given)])
    else:
        pooled = number
    means = sums(place, given, len(pooled)) / pooled
    squares = sums(place, (given / means[place] - 1.0) ** 2, len(pooled)).sum()
    variance = squares / max(1, (pooled - 1).sum())
    averaged = number if f is None else check_whole(f, "f")
    if averaged.shape != number.shape:
        raise InputError(f"f must have {len(number):,} values, as many as records")
    return np.asarray(np.sqrt(variance / averaged), dtype=np.float64)


def uncertain_risk(f: Integers, p: Floats, spread: Floats) -> Floats:
    r"""Mean risk over the Beta distribution of p.

    The risk is :math:`p / f + p q g(p)` with :math:`g = {}_2F_1(1, 2; f + 2; q) / (f (f + 1))`, so
    its mean under Beta(a, b) is :math:`E[p] / f + E[p q] E'[g]` with E' under Beta(a + 1, b + 1):
    however much of Beta(a, b) lies at its ends, what is left to integrate has none there.
    """
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


def draw_inclusion(p: Floats, spread: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Draw p, shape (draw, combination); a p without spread stays as it is."""
    mean = np.minimum(p, MOST_CERTAIN)
    concentration = beta_concentration(mean, spread)
    drawn = rng.beta(mean * concentration, (1.0 - mean) * concentration, (draws, len(p)))
    return np.where(spread > 0, np.maximum(drawn, 1e-300), p)
