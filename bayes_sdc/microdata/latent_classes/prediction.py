r"""What base and scatter say of the population: its frequencies given those of the sample.

Given f, the rest of a combination is negative binomial: with q = (r + n g) / (r + n g w), w being
N / n, F - f ~ NB(r + f, q). So for f = 1 the probability that F = 1 is q^(r + 1), and the mean of
1 / F is q (1 - q^r) / ((1 - q) r).
"""

import math
from typing import NamedTuple

import numpy as np

from bayes_sdc.microdata.latent_classes.dispersion import (
    Terms,
    collect,
    draw_scatter,
    log_likelihood,
    log_likelihood_without,
    posterior_grid,
)
from bayes_sdc.microdata.latent_classes.draws import compiled, inlined, sum_of

HYPER_DRAWS = 5  # of R and kappa, for one draw of the base


class Prediction(NamedTuple):
    """What one draw of the base predicts; arrays are filled in place.

    Parameters
    ----------
    unique : array, shape (sample unique,)
        P(F = 1) under the first draw of R and kappa.
    inverse : array, shape (sample unique,)
        Mean of 1 / F under it.
    unique_sum, inverse_sum : array, shape (sample unique,)
        Both summed up over all draws so far.
    totals : array, shape (hyper draw, 6)
        By draw of R and kappa: drawn number of sample uniques with F = 1, drawn sum of 1 / F over
        sample uniques, drawn population uniques outside the sample, log R, kappa, gain of the
        log likelihood over no scatter.
    """

    unique: np.ndarray
    inverse: np.ndarray
    unique_sum: np.ndarray
    inverse_sum: np.ndarray
    totals: np.ndarray


@compiled
def mean_inverse(q: float, shape: float) -> float:
    """Mean of 1 / F for f = 1: q (1 - q^r) / ((1 - q) r), and its limit 1 where q is 1."""
    if q >= 1.0:
        return 1.0
    return min(q * -math.expm1(shape * math.log(q)) / ((1.0 - q) * shape), 1.0)


@inlined
def expected_unseen_uniques(terms: Terms, times: float, log_r: float, kappa: float) -> float:
    """Population uniques expected among the combinations that nobody in the sample has."""
    total = 0.0
    for k in range(len(terms.node)):
        if terms.unseen[k] != 0.0:
            ng = math.exp(terms.node[k])
            shape = math.exp(log_r + kappa * terms.node[k])
            whole = shape + times * ng
            # P(F = 1 | f = 0) / (n g), times the records that the node stands for
            once = shape * (times - 1.0) / whole
            q = math.log((shape + ng) / whole)
            total += terms.unseen[k] * once * math.exp(shape * q)
    return max(total, 0.0)


@inlined
def expected_unequal_uniques(
    unseen: np.ndarray, times: np.ndarray, weight: float, log_r: float, kappa: float
) -> float:
    """Return the same where weights differ, from the draws themselves and what each stands for."""
    total = 0.0
    for k in range(len(unseen)):
        ng = math.exp(unseen[k])
        shape = math.exp(log_r + kappa * unseen[k])
        whole = shape + times[k] * ng
        once = shape * (times[k] - 1.0) / whole
        total += once * math.exp(shape * math.log((shape + ng) / whole))
    return weight * total


@compiled
def predict(
    rng: np.random.Generator, f: np.ndarray, log_ng: np.ndarray, unseen: np.ndarray,
    unseen_times: np.ndarray, weight: float, of_uniques: np.ndarray, times: np.ndarray,
    population: float, pull: float, result: Prediction,
) -> None:  # fmt: skip
    """Draw R and kappa given a draw of the base, and what they say of the population.

    Parameters
    ----------
    rng : numpy.random.Generator
        Of this chain's second stage.
    f, log_ng : array, shape (combination,)
        Frequencies of the complete combinations of the sample, and their log(n g).
    unseen : array
        log(n g) of the draws from the base that nobody in the sample has.
    unseen_times : array
        Members of the population for each in the sample of them; empty where weights are equal.
    weight : float
        Records that each of them stands for.
    of_uniques : array, shape (sample unique,)
        log(n g) of the sample uniques.
    times : array, shape (sample unique,)
        Members of the population for each in the sample.
    population : float
        The same for all combinations: N / n.
    pull : float
        See :func:`bayes_sdc.microdata.latent_classes.dispersion.log_prior`.
    result : Prediction
        Changed in place.
    """
    terms = collect(f, log_ng, unseen, weight)
    about = of_uniques if len(of_uniques) > 0 else terms.node
    typical = sum_of(about) / len(about)
    weights, box, slope = posterior_grid(terms, typical, pull)
    without = log_likelihood_without(terms)
    for draw in range(HYPER_DRAWS):
        log_r, kappa = draw_scatter(rng, weights, box, slope)
        alone, matches = 0.0, 0.0
        for k in range(len(of_uniques)):
            shape = math.exp(log_r + kappa * of_uniques[k])
            ng = math.exp(of_uniques[k])
            q = (shape + ng) / (shape + ng * times[k])
            unique = math.exp((shape + 1.0) * math.log(q))
            inverse = mean_inverse(q, shape)
            result.unique_sum[k] += unique
            result.inverse_sum[k] += inverse
            if draw == 0:
                result.unique[k], result.inverse[k] = unique, inverse
            rest = rng.standard_gamma(shape + 1.0) * (1.0 - q) / q
            others = float(rng.poisson(rest)) if rest < 1e15 else rest
            if others == 0.0:
                alone += 1.0
            matches += 1.0 / (1.0 + others)
        if len(unseen_times) > 0:
            outside = expected_unequal_uniques(unseen, unseen_times, weight, log_r, kappa)
        else:
            outside = expected_unseen_uniques(terms, population, log_r, kappa)
        result.totals[draw, 0] = alone
        result.totals[draw, 1] = matches
        result.totals[draw, 2] = rng.poisson(outside)
        result.totals[draw, 3] = log_r
        result.totals[draw, 4] = kappa
        result.totals[draw, 5] = log_likelihood(terms, log_r, kappa) - without
