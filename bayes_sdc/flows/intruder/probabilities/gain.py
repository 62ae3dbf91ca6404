"""What the release adds to what the intruder knew: before and after, for one prior.

A cell is at risk because the release moves the intruder, or because its count was known anyway.
Only the first is caused by the release. So every number here is a pair: what the intruder says
of the true count before any release, by the prior alone, and after it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.flows.intruder.probabilities.bayes import TINY, posterior_of_counts
from bayes_sdc.results import Fact, Result, or_undefined

LIMITS = (0.5, 0.8, 0.95)  # probabilities of the true count past which a cell can be pushed
MOVED = 1.5  # where the odds of the true count rise by this factor, the release is the reason
SHAPE_CELLS = 100  # with fewer, their own shares tell so much of each cell that nobody knows them

PRIORS = {
    "uniform": "takes every small count for equally probable",
    "shape": "knows how common each small count is, as anyone does from other years and countries",
    "model": "expects what the model predicts of a cell from all other counts",
    "given": "expects what the agency gave",
}


class Change(NamedTuple):
    """A mean over cells before and after the release; None where it is undefined.

    Made by :func:`bayes_sdc.intruder_gain`.

    Parameters
    ----------
    before, after : float or None
        The mean before any release and after this one.
    gain : float or None
        Their difference.
    interval : tuple of float or None
        95 % interval of the gain, the cells taken as independent.
    monte_carlo_error : float or None
        Standard error of the gain, by comparing chains; None from a single one.
    """

    before: float | None
    after: float | None
    gain: float | None
    interval: tuple[float, float] | None  # 95 % of the gain, the cells taken as independent
    monte_carlo_error: float | None  # of the gain, by comparing chains; None from a single one


NO_CHANGE = Change(None, None, None, None, None)


@dataclass(frozen=True, eq=False, repr=False)
class Gain(Result):
    """What an intruder with one prior learns from the release. Confidential.

    Made by :func:`bayes_sdc.intruder_risk`, for every prior it knows by name and for the one asked
    for: ``risk.gains``, and :func:`bayes_sdc.intruder_gain` for the strongest. Before means before
    any release, also of those that are out already.

    Parameters
    ----------
    prior : {"uniform", "shape", "model", "given"}
        What the intruder expects before the release.
    cells : int
        Number of cells measured.
    found : Change
        Share of cells whose single most probable count is the true one; a tie is not found. After
        the release this is R_all.
    guessed : Change
        The same share when the intruder guesses at random among equally probable counts. Differs
        from ``found`` where counts tie, as all do before the release under the uniform prior.
    unique : Change
        ``guessed`` among the cells of R_unq.
    probability : Change
        Mean probability of the true count.
    bits : Change
        Mean log2 probability of the true count; None when the prior rules out a true count.
    pushed : mapping of float to int
        Number of cells whose true count has a probability above 0.5, 0.8, 0.95 after the release
        and not before.
    largest_ratio : float
        Largest ratio of the probability of the true count after and before, over cells.
    ruled_out : int
        Cells whose true count the prior rules out, so that nothing can be learned of it.
    unreliable : int
        Cells whose release probabilities cannot be relied on.
    by_cell : DataFrame
        By cell: probability of the true count before and after, bits gained, and whether the
        release moved the intruder: whether it raised the odds of the true count by half or more.

    Examples
    --------
    >>> even = np.full((2, 2), 0.5)
    >>> gain = measure_gain(
    ...     "uniform", even, np.array([[0.9, 0.1], [0.4, 0.6]]), [], np.array([0, 0]),
    ...     unique=np.array([True, False]), labels=["a>x", "a>y"],
    ... )
    >>> gain.guessed.before, gain.guessed.after, gain.pushed[0.8]
    (0.5, 0.5, 1)
    >>> gain.by_cell["moved"].to_dict()
    {'a>x': True, 'a>y': False}
    """

    prior: str
    cells: int
    found: Change
    guessed: Change
    unique: Change
    probability: Change
    bits: Change
    pushed: Mapping[float, int]
    largest_ratio: float
    ruled_out: int
    unreliable: int
    by_cell: pd.DataFrame

    @property
    def trusted(self) -> bool:
        """False when more than one cell in a hundred cannot be relied on."""
        return self.unreliable <= 0.01 * self.cells

    def _title(self) -> str:
        return f"Gain by the release of {self.cells:,} cells: confidential"

    def _facts(self) -> list[Fact]:
        facts: list[Fact] = [
            ("intruder", self.prior, f"{PRIORS[self.prior]}"),
            ("cells found", percents(self.guessed), "the most probable count is the true one"),
            ("cells of R_unq found", percents(self.unique), "the same of the riskiest kind"),
            ("probability of the true count", percents(self.probability), "mean over cells"),
            ("log2 probability of the true count", bits_in_words(self.bits), "mean over cells"),
            (
                "cells pushed by the release",
                _pushed(self),
                "past so high a probability of the true count",
            ),
            ("largest ratio", f"{self.largest_ratio:.2f}", "probability after over before"),
        ]
        if not self.trusted:
            facts.append(
                ("NOT TRUSTED", f"{self.unreliable:,} cells", "weights or errors are unreliable")
            )
        return facts

    def __repr__(self) -> str:
        trust = "" if self.trusted else "; NOT TRUSTED"
        return (
            f"<Gain: prior {self.prior}; cells found {before_and_after(self.guessed)}; "
            f"{bits_gained(self.bits)}{trust}>"
        )


def percents(change: Change) -> str:
    """Write a change of a share: before, after, and the gain in percentage points."""
    if change.before is None or change.after is None or change.gain is None:
        return "undefined (no such cell)"
    error = _error(change, 100.0, ".2f")
    return f"{change.before:.1%} before, {change.after:.1%} after: {points(change.gain)}{error}"


def points(gain: float) -> str:
    """Write a difference of shares in percentage points.

    Examples
    --------
    >>> points(0.12), points(-0.00001)
    ('+12.0 points', '+0.0 points')
    """
    return f"{_no_minus_zero(100.0 * gain, 1):+.1f} points"


def headline(gain: Gain) -> str:
    """Return one sentence: what the intruder finds before and after the release."""
    found = gain.guessed
    if found.before is None or found.after is None:
        return "What the release adds is undefined: there is no cell."
    before, after = round(1000 * found.before), round(1000 * found.after)
    adds = f"{after - before:+d}" if after != before else "none"
    return (
        f"Of every 1,000 small counts the strongest intruder finds {before} before any release and "
        f"{after} after it: the release adds {adds}"
    )


def gain_lines(gains: Mapping[str, Gain]) -> list[str]:
    """Return the lines of the console on what the release adds."""
    gain = strongest(gains)
    trust = "" if gain.trusted else f"; NOT TRUSTED: {gain.unreliable:,} cells are unreliable"
    by_prior = "; ".join(
        f"{one.prior} {before_and_after(one.guessed)} ({bits_gained(one.bits)})"
        for one in gains.values()
    )
    return [
        f"{headline(gain)} (prior {gain.prior}, {bits_gained(gain.bits)}; pushed by the release: "
        f"{_pushed(gain)}; largest ratio {gain.largest_ratio:.2f}){trust}",
        f"found before and after, by what the intruder expects: {by_prior}",
    ]


def before_and_after(change: Change) -> str:
    """Write a share before and after."""
    return f"{or_undefined(change.before, '.1%')} → {or_undefined(change.after, '.1%')}"


def bits_gained(change: Change) -> str:
    """Write a gain in bits."""
    return (
        "bits undefined" if change.gain is None else f"{_no_minus_zero(change.gain, 3):+.3f} bits"
    )


def _pushed(gain: Gain) -> str:
    return ", ".join(f"{count:,} past {limit:.0%}" for limit, count in gain.pushed.items())


def bits_in_words(change: Change) -> str:
    """Write a change of the mean log2 probability."""
    if change.before is None or change.after is None or change.gain is None:
        return "undefined (the prior rules out a true count)"
    error = _error(change, 1.0, ".4f")
    gain = _no_minus_zero(change.gain, 3)
    return f"{change.before:.3f} before, {change.after:.3f} after: {gain:+.3f} bits{error}"


def _error(change: Change, factor: float, form: str) -> str:
    """Write interval and Monte Carlo error of a gain."""
    if change.interval is None:
        return ""
    low, high = (factor * end for end in change.interval)
    error = change.monte_carlo_error
    known = "unknown (one chain)" if error is None else f"{factor * error:{form}}"
    return f" (95 % interval {low:+.2f} to {high:+.2f}, Monte Carlo error {known})"


def _no_minus_zero(value: float, digits: int) -> float:
    return round(value, digits) + 0.0


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
) -> Gain:
    """Compare what the intruder says of the true counts before and after the release.

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
    y, unique, labels, unreliable
        As for :func:`measure_gain`.
    """
    chains = min((len(of_fit) for of_fit in by_chain), default=0)
    gains = {}
    for name, weights in priors.items():
        before, after = learn(weights, likelihoods)
        alone = [learn(weights, [of_fit[c] for of_fit in by_chain])[1] for c in range(chains)]
        gains[name] = measure_gain(
            name, before, after, alone, y, unique=unique, labels=labels, unreliable=unreliable
        )
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
    bits = np.log2(np.maximum(at_truth, TINY))  # what underflows is far off, not infinitely so
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


def as_frames(gains: Mapping[str, Gain]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Put the gains into two tables: a row for each prior, and a row for each cell and prior.

    Returns
    -------
    by_prior : DataFrame
        Before, after and gain of every measure; missing where undefined.
    by_cell : DataFrame
        ``prior`` and the columns of :class:`Gain`.by_cell.
    """
    rows = {}
    for name, gain in gains.items():
        row: dict[str, float | None] = {}
        for measure in ("found", "guessed", "unique", "probability", "bits"):
            change: Change = getattr(gain, measure)
            low, high = change.interval or (None, None)
            row |= {f"{measure}_before": change.before, f"{measure}_after": change.after}
            row |= {f"{measure}_gain": change.gain, f"{measure}_gain_low": low}
            row |= {f"{measure}_gain_high": high}
            row[f"{measure}_monte_carlo_error"] = change.monte_carlo_error
        row |= {f"pushed_over_{limit:.0%}"[:-1]: count for limit, count in gain.pushed.items()}
        rows[name] = {**row, "largest_ratio": gain.largest_ratio, "unreliable": gain.unreliable}
    by_prior = pd.DataFrame.from_dict(rows, orient="index").rename_axis(index="prior")
    cells = [gain.by_cell.assign(prior=name) for name, gain in gains.items()]
    return by_prior, pd.concat(cells)[["prior", *cells[0].columns[:-1]]]


def strongest(gains: Mapping[str, Gain]) -> Gain:
    """Return the gain of the intruder who says most of the true counts after the release.

    By the mean log probability of the true count, which nobody can raise by saying other than they
    believe. An intruder whose prior rules out a true count comes last. ``shape`` is taken from the
    true counts themselves, so with fewer than :data:`SHAPE_CELLS` cells it is nobody's knowledge
    and left out where there is another.

    Parameters
    ----------
    gains : mapping of str to Gain
        By name of the prior; not empty.

    Returns
    -------
    Gain
    """
    known = [gain for name, gain in gains.items() if name != "shape" or gain.cells >= SHAPE_CELLS]

    def told(gain: Gain) -> float:
        return -math.inf if gain.bits.after is None else gain.bits.after

    return max(known or gains.values(), key=told)
