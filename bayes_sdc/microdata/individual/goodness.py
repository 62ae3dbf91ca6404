"""Whether frequencies look as a model of shared rates expects: a test of their shape."""

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

EDGES = (1, 2, 3, 4, 5, 7, 11, 21)  # first frequency of each class; the last one is open
FEWEST = 5.0  # expected combinations in a class
MANY = 500  # different p; where there are more, they are rounded
P_STEP = 0.02  # in log p
PARAMETERS = 2  # learned from the same frequencies
UNLIKELY = 0.01

Floats = npt.NDArray[np.float64]


def expected_classes(p: Floats, alpha: float, beta: float) -> Floats:
    """Combinations expected in each class of frequencies, of those that occur.

    Parameters
    ----------
    p : array, shape (combination,)
        Probability to be in the sample.
    alpha, beta : float
        Shape, above -1, and rate of the Gamma distribution of the rates.

    Returns
    -------
    array, shape (class,)
        Their sum is the number of combinations.

    Examples
    --------
    >>> expected_classes(np.full(100, 0.5), 1.0, 0.5).round(1).tolist()  # 1/2, 1/4, 1/8, ...
    [50.0, 25.0, 12.5, 6.2, 4.7, 1.5, 0.1, 0.0]
    """
    chance, copies = np.unique(p, return_counts=True)
    if len(chance) > MANY:
        step, copies = np.unique(np.round(np.log(p) / P_STEP), return_counts=True)
        chance = np.exp(step * P_STEP)
    # f = 1 given f > 0: alpha (1 - q) q^alpha / (1 - q^alpha), whose limit at 0 is -(1 - q) / log q
    log_q = -np.log1p(chance / beta)
    q = np.exp(log_q)
    exponent = alpha * log_q
    ratio = np.ones(len(q))
    far = np.abs(exponent) > 1e-9
    ratio[far] = exponent[far] * np.exp(exponent[far]) / np.expm1(exponent[far])
    now = ratio * (1.0 - q) / -log_q
    found, left = np.zeros(len(EDGES)), np.ones(len(q))
    for f in range(1, EDGES[-1]):
        place = int(np.searchsorted(EDGES, f, side="right")) - 1
        found[place] += copies @ now
        left -= now
        now = now * (f + alpha) / (f + 1.0) * (1.0 - q)
    found[-1] = copies @ np.maximum(left, 0.0)
    return found


def shape_test(f: npt.NDArray[np.int64], p: Floats, alpha: float, beta: float) -> float:
    """Test the shape of the frequencies by Pearson's statistic; the probability of one as large.

    1 where there are too few combinations to tell.
    """
    expected = expected_classes(p, alpha, beta)
    place = np.searchsorted(EDGES, f, side="right") - 1
    observed = np.bincount(place, minlength=len(EDGES)).astype(np.float64)
    return _pearson(observed, expected, PARAMETERS)


def prior_test(f: npt.NDArray[np.int64]) -> float:
    """Test whether frequencies are those of the prior 1 / rate; the probability of one as far off.

    Of the combinations with f below 21, whatever the inclusion probabilities, it expects numbers in
    proportion to 1 / f. 1 where there are too few combinations to tell.

    Examples
    --------
    >>> f = np.repeat(np.arange(1, 21), np.round(500.0 / np.arange(1, 21)).astype(int))
    >>> prior_test(f) > 0.99, prior_test(np.concatenate([f, np.ones(400, dtype=int)])) < 1e-6
    (True, True)
    """
    value = np.arange(1, EDGES[-1])
    place = np.searchsorted(EDGES, value, side="right") - 1
    observed = np.bincount(place, weights=np.bincount(f[f < EDGES[-1]], minlength=EDGES[-1])[1:])
    share = np.bincount(place, weights=1.0 / value)
    return _pearson(observed, share / share.sum() * observed.sum(), 0)


def _pearson(observed: Floats, expected: Floats, parameters: int) -> float:
    """Probability of a statistic as large, where so many parameters were learned."""
    # classes with few expected are joined, from the highest frequencies down
    while len(expected) > 1 and expected[-1] < FEWEST:
        expected = np.append(expected[:-2], expected[-2:].sum())
        observed = np.append(observed[:-2], observed[-2:].sum())
    freedom = len(expected) - 1 - parameters
    if freedom < 1:
        return 1.0
    statistic = ((observed - expected) ** 2 / np.maximum(expected, 1e-300)).sum()
    return float(chdtrc(freedom, statistic))
