"""Independent counts, each with probabilities of its own, once their sum is known."""

import numpy as np
from scipy.optimize import brentq

STEEPEST = 700.0  # of a tilt, where exp is still a number


def counts_given_sum(prior: np.ndarray, total: int) -> np.ndarray:
    """Probability of each of several independent counts given the sum of all.

    Proportional to the prior times the probability that the others make up the rest, by convolution
    from both ends. Weighting every count y by ``exp(tilt * y)`` does not change the answer, since
    the sum is given, and keeps what is convolved from underflow where the sum is.

    Parameters
    ----------
    prior : array of float, shape (cell, count)
        Probability of each count, from 0; rows sum to one.
    total : int
        The sum, which the prior allows.

    Returns
    -------
    array of float, shape (cell, count)
        Rows sum to one.

    Examples
    --------
    >>> counts_given_sum(np.array([[0.5, 0.5, 0.0], [0.1, 0.6, 0.3]]), 2)
    array([[0.33333333, 0.66666667, 0.        ],
           [0.        , 0.66666667, 0.33333333]])
    """
    weight = _tilted(prior, total)
    cells, values = weight.shape
    before, after = [np.ones(1)], [np.ones(1)]
    for row in weight[:-1]:
        before.append(np.convolve(before[-1], row))
    for row in weight[:0:-1]:
        after.append(np.convolve(after[-1], row))
    result = np.zeros_like(weight)
    for cell in range(cells):
        others = np.convolve(before[cell], after[cells - 1 - cell])
        rest = total - np.arange(values)
        inside = (rest >= 0) & (rest < len(others))
        result[cell, inside] = weight[cell, inside] * others[rest[inside]]
    return np.asarray(result / result.sum(axis=1, keepdims=True))


def _tilted(prior: np.ndarray, total: int) -> np.ndarray:
    """Weigh the counts so that their mean sum is the total, where it lies within what can be."""
    counts = np.arange(prior.shape[1])
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)

    def tilted(tilt: float) -> np.ndarray:
        weight = log_prior + tilt * counts
        weight = np.exp(weight - weight.max(axis=1, keepdims=True))
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))

    def too_many(tilt: float) -> float:
        return float((tilted(tilt) @ counts).sum() - total)

    steepest = STEEPEST / prior.shape[1]
    if too_many(-steepest) >= 0.0:
        return tilted(-steepest)
    if too_many(steepest) <= 0.0:
        return tilted(steepest)
    return tilted(brentq(too_many, -steepest, steepest))
