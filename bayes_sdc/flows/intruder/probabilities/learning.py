"""What an intruder learns of the true counts, from probabilities before and after the release.

A :class:`~bayes_sdc.flows.intruder.probabilities.gain.Gain` holds what is measured here.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.flows.intruder.probabilities.bayes import TINY, posterior_of_counts
from bayes_sdc.flows.intruder.probabilities.change import NO_CHANGE, Change
from bayes_sdc.flows.intruder.probabilities.gain import LIMITS, Gain

MOVED = 1.5  # where the odds of the true count rise by this factor, the release is the reason


def learn(
    priors: Sequence[np.ndarray], likelihoods: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of each count before and after the release, averaged over the intruder's fits.

    Parameters
    ----------
    priors : sequence of array of float, shape (cell, count)
        One for each fit; rows sum to one.
    likelihoods : sequence of array of float, shape (cell, count)
        Log-likelihood of all releases, one for each fit.

    Returns
    -------
    before, after : array of float, shape (cell, count)

    Examples
    --------
    >>> learn([np.array([[0.5, 0.5]])], [np.log([[0.2, 0.6]])])[1]
    array([[0.25, 0.75]])
    """
    after = [posterior_of_counts(*pair) for pair in zip(likelihoods, priors, strict=True)]
    if len(after) == 1:
        return priors[0], after[0]
    return np.mean(priors, axis=0), np.mean(after, axis=0)


def chance_of_truth(probability: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Chance that the best guess is right: one over the ties where the truth is among them.

    Parameters
    ----------
    probability : array of float, shape (cell, count)
        Of each count.
    y : array of int, shape (cell,)
        True counts, from 0.

    Examples
    --------
    >>> chance_of_truth(np.array([[0.2, 0.8], [0.5, 0.5]]), np.array([1, 0]))
    array([1. , 0.5])
    """
    # equal up to rounding counts as a tie
    tied = probability >= probability.max(axis=1, keepdims=True) * (1.0 - 1e-12)
    return np.asarray(np.where(tied[np.arange(len(y)), y], 1.0 / tied.sum(axis=1), 0.0))


def probability_of_truth(probability: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Probability of the true count of each cell, which rounding must not lift above 1: (cell,)."""
    return np.asarray(np.minimum(probability[np.arange(len(y)), y], 1.0))


def mean_bits(before: np.ndarray, after: np.ndarray) -> float:
    """Mean over cells of log2 after / before; not a number where the prior rules out a true count.

    Examples
    --------
    >>> mean_bits(np.array([0.5, 0.25]), np.array([1.0, 0.25]))
    0.5
    """
    if (before <= 0.0).any():
        return math.nan
    return float(np.log2(np.maximum(after / before, TINY)).mean())


def pushed_over(before: np.ndarray, after: np.ndarray, limit: float) -> int:
    """Number of cells whose probability of the true count is above the limit only after."""
    # a probability that stands at the limit is not pushed past it by rounding
    return int(((after > limit * (1.0 + 1e-12)) & (before <= limit)).sum())


def measure_gain(
    prior: str,
    before: np.ndarray,
    after: np.ndarray,
    after_by_chain: Sequence[np.ndarray],
    y: np.ndarray,
    *,
    unique: np.ndarray,
    labels: Sequence[str],
    unreliable: np.ndarray | None = None,
    totals: bool = False,
) -> Gain:
    """Compare the intruder's probabilities of the true counts before and after the release.

    Parameters
    ----------
    prior : str
        Name of what ``before`` is.
    before, after : array of float, shape (cell, count)
        Probabilities; rows sum to one.
    after_by_chain : sequence of array of float, shape (cell, count)
        ``after`` from each chain alone; none or one leaves the Monte Carlo error unknown.
    y : array of int, shape (cell,)
        True counts, from 0.
    unique : array of bool, shape (cell,)
        Cells of R_unq.
    labels : sequence of str
        Of the cells.
    unreliable : array of bool, shape (cell,), optional
        Cells that cannot be relied on.
    totals : bool
        Whether ``before`` knows the totals that the release keeps.

    Returns
    -------
    Gain
    """
    first, *chains = [_of_cells(one, y) for one in (before, after, *after_by_chain)]
    last, *chains = chains
    every = np.ones(len(y), dtype=bool)

    def change(name: str, among: np.ndarray = every) -> Change:
        by_chain = [getattr(one, name)[among] for one in chains]
        return _change(getattr(first, name)[among], getattr(last, name)[among], by_chain)

    p, q = first.at_truth, last.at_truth
    ratio = np.divide(q, p, out=np.ones(len(p)), where=p > 0.0)
    moved = (q > p) & (q * (1.0 - p) >= MOVED * p * (1.0 - q))
    by_cell = pd.DataFrame(
        {"before": p, "after": q, "bits": np.log2(np.maximum(ratio, TINY)), "moved": moved},
        index=pd.Index(list(labels), name="cell"),
    )
    return Gain(
        prior=prior,
        cells=len(y),
        found=change("found"),
        guessed=change("guessed"),
        unique=change("guessed", unique),
        probability=change("at_truth"),
        bits=change("bits") if (p > 0.0).all() else NO_CHANGE,
        pushed={limit: pushed_over(p, q, limit) for limit in LIMITS},
        largest_ratio=float(ratio.max()),
        ruled_out=int((p <= 0.0).sum()),
        unreliable=0 if unreliable is None else int(unreliable.sum()),
        by_cell=by_cell,
        totals=totals,
    )


def gains_by_prior(
    priors: Mapping[str, Sequence[np.ndarray]],
    likelihoods: Sequence[np.ndarray],
    by_chain: Sequence[np.ndarray],
    y: np.ndarray,
    *,
    unique: np.ndarray,
    labels: Sequence[str],
    unreliable: np.ndarray | None = None,
    totals: bool = False,
) -> dict[str, Gain]:
    """Measure the gain for each prior: the likelihood of the release is the same for all.

    Parameters
    ----------
    priors : mapping of str to sequence of array of float, shape (cell, count)
        By name; one array for each fit of the intruder.
    likelihoods : sequence of array of float, shape (cell, count)
        Log-likelihood of all releases, one for each fit.
    by_chain : sequence of array of float, shape (chain, cell, count)
        The same from each chain alone, one for each fit.
    y, unique, labels, unreliable, totals
        As for :func:`measure_gain`.
    """
    chains = min((len(of_fit) for of_fit in by_chain), default=0)
    gains = {}
    for name, weights in priors.items():
        before, after = learn(weights, likelihoods)
        alone = [learn(weights, [of_fit[c] for of_fit in by_chain])[1] for c in range(chains)]
        gains[name] = measure_gain(
            name, before, after, alone, y,
            unique=unique, labels=labels, unreliable=unreliable, totals=totals,
        )  # fmt: skip
    return gains


class _OfCells(NamedTuple):
    """What is averaged over cells."""

    at_truth: np.ndarray
    bits: np.ndarray  # log2 of it
    found: np.ndarray
    guessed: np.ndarray


def _of_cells(probability: np.ndarray, y: np.ndarray) -> _OfCells:
    at_truth = probability_of_truth(probability, y)
    guessed = chance_of_truth(probability, y)
    bits = np.log2(np.maximum(at_truth, TINY))  # an underflow means far off, not infinitely far
    return _OfCells(at_truth, bits, (guessed == 1.0).astype(float), guessed)


def _change(before: np.ndarray, after: np.ndarray, by_chain: Sequence[np.ndarray]) -> Change:
    n = len(before)
    if n == 0:
        return NO_CHANGE
    differences = after - before
    gain = float(differences.mean())
    interval = None
    if n > 1:
        half = 1.96 * float(differences.std(ddof=1)) / math.sqrt(n)
        interval = (gain - half, gain + half)
    means = [float(one.mean()) for one in by_chain]
    error = float(np.std(means, ddof=1)) / math.sqrt(len(means)) if len(means) > 1 else None
    return Change(float(before.mean()), float(after.mean()), gain, interval, error)
