"""The target cells: the results of an estimator, and Bayes' rule for the true counts.

References
----------
S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality", eq. (3)-(5).
"""

from typing import NamedTuple

import numpy as np

TINY = 2.2250738585072014e-308  # smallest normal number
LARGEST_ERROR = 0.01  # Monte Carlo standard error of M; with a larger one a cell cannot be judged


class ReleaseProbabilities(NamedTuple):
    """Results of an estimator for each target cell, everything else being known."""

    m: np.ndarray  # (cell, candidate, released) M; rows over released counts sum to one
    prediction: np.ndarray  # (cell, count) of the model from all other cells; sums to one
    by_chain: np.ndarray  # (chain, cell, candidate) log-likelihood of the release, chain by chain
    khat: np.ndarray  # (cell, candidate) minus infinity where all weights are equal
    ess: np.ndarray  # (cell, candidate) effective number of draws by the weights
    threshold: float  # a k-hat above it is unreliable
    error: np.ndarray  # (cell, candidate) largest Monte Carlo standard error of the row of M
    refitted: np.ndarray  # (cell,) whether all of it is from refits


class FitOfIntruder(NamedTuple):
    """What one fit of the intruder tells of the target cells."""

    found: ReleaseProbabilities
    prior: np.ndarray  # (target, count)
    rho: np.ndarray  # (target, count)
    rho_by_chain: np.ndarray  # (chain, target, count)


def unreliable_cells(khat: np.ndarray, threshold: float, error: np.ndarray) -> np.ndarray:
    """Cells that cannot be relied on: by the weights of a candidate, or by Monte Carlo error.

    Parameters
    ----------
    khat, error : array of float, shape (cell, candidate)
        As in :class:`ReleaseProbabilities`; infinite where they are not known.
    threshold : float
        Largest k-hat to be relied on; of the errors it is :data:`LARGEST_ERROR`.

    Returns
    -------
    array of bool, shape (cell,)

    Examples
    --------
    >>> unreliable_cells(np.array([[0.2], [0.9], [0.2]]), 0.7, np.array([[0.002], [0.002], [0.02]]))
    array([False,  True,  True])
    """
    return np.asarray(((khat > threshold) | (error > LARGEST_ERROR)).any(axis=1))


def error_of_batches(sums: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Monte Carlo standard error of a ratio of sums, from consecutive batches of the draws.

    Batches much longer than the autocorrelation of a chain are nearly independent, so their spread
    reflects it.

    Parameters
    ----------
    sums : array of float, shape (batch, ..., released)
        Of the numerators of each batch.
    totals : array of float, shape (batch, ...)
        Of the denominators; those of all batches together are above 0.

    Returns
    -------
    array of float, shape (..., released)
        Infinite for a single batch.

    References
    ----------
    C. Geyer, "Practical Markov Chain Monte Carlo", Statistical Science 1992, section 3.2; a ratio
    by linearization.

    Examples
    --------
    >>> error_of_batches(np.array([[1.0], [3.0]]), np.array([2.0, 2.0]))
    array([0.5])
    """
    batches = len(sums)
    if batches == 1:
        return np.full(sums.shape[1:], np.inf)
    total = totals.sum(axis=0)[..., None]
    beyond = sums - sums.sum(axis=0) / total * totals[..., None]
    np.square(beyond, out=beyond)
    return np.asarray(np.sqrt(beyond.sum(axis=0) * (batches / (batches - 1))) / total)


def likelihood_of_release(m: np.ndarray, released: np.ndarray) -> np.ndarray:
    """Log-likelihood of all released counts by candidate, eq. (5): (cell, K + 1)."""
    cells = np.arange(m.shape[0])
    return np.sum([np.log(np.maximum(m[cells, :, k], TINY)) for k in released], axis=0)


def posterior_of_counts(log_likelihood: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Eq. (3): rho by cell and candidate from likelihood and prior; rows sum to one.

    Examples
    --------
    >>> posterior_of_counts(np.log([[0.2, 0.6]]), np.array([0.5, 0.5]))
    array([[0.25, 0.75]])
    """
    with np.errstate(divide="ignore"):
        log_rho = log_likelihood + np.log(prior)
    log_rho -= log_rho.max(axis=1, keepdims=True)
    rho = np.exp(log_rho)
    return np.asarray(rho / rho.sum(axis=1, keepdims=True))


def best_guess(rho: np.ndarray) -> np.ndarray:
    """Most probable count of each cell, or -1 where two are equally probable.

    Examples
    --------
    >>> best_guess(np.array([[0.2, 0.8], [0.5, 0.5]]))
    array([ 1, -1])
    """
    guess = np.argmax(rho, axis=1)
    # equal up to rounding counts as a tie: the intruder cannot tell them apart
    tied = (rho >= rho.max(axis=1, keepdims=True) * (1.0 - 1e-12)).sum(axis=1) > 1
    return np.where(tied, -1, guess)


def stationary(m: np.ndarray) -> np.ndarray:
    """Recover the prediction of the target from the other cells out of its release probabilities.

    True and released count are exchangeable before either is known, so M leaves the prediction
    invariant: p(y) M[y, k] = p(k) M[k, y].

    Parameters
    ----------
    m : array of float, shape (candidate, released)
        M of one cell.

    Returns
    -------
    array of float, shape (count,)
        Sums to one.

    Examples
    --------
    >>> stationary(np.array([[0.9, 0.1], [0.3, 0.7]]))
    array([0.75, 0.25])
    """
    width = len(m)
    equations = np.vstack([m.T - np.eye(width), np.ones(width)])
    solution = np.linalg.lstsq(equations, np.append(np.zeros(width), 1.0), rcond=None)[0]
    solution = np.maximum(solution, 0.0)
    return np.asarray(solution / solution.sum())


# : Summaries of one release, by their names in :func:`measures`.
MEASURES = ("r_all", "r_unq", "mean_distance", "true_count_probability")


def measures(rho: np.ndarray, y: np.ndarray, unique: np.ndarray) -> dict[str, float]:
    """Summaries of rho over cells, by the names in :data:`MEASURES`.

    Parameters
    ----------
    rho : array of float, shape (cell, count)
        Probability of each candidate.
    y : array of int, shape (cell,)
        True counts, from 0.
    unique : array of bool, shape (cell,)
        Cells that R_unq is about; without any it is missing.

    Examples
    --------
    >>> rho, unique = np.array([[0.2, 0.8], [0.6, 0.4]]), np.array([True, False])
    >>> found = measures(rho, np.array([1, 1]), unique)
    >>> found["r_all"], found["r_unq"], found["mean_distance"]
    (0.5, 1.0, 0.5)
    """
    right = best_guess(rho) == y
    return {
        "r_all": float(right.mean()),
        "r_unq": float(right[unique].mean()) if unique.any() else np.nan,
        "mean_distance": float(np.abs(np.argmax(rho, axis=1) - y).mean()),
        "true_count_probability": float(rho[np.arange(len(y)), y].mean()),
    }
