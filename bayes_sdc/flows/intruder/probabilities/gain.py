"""What the release adds to what the intruder knew: before and after, for one prior.

A cell is at risk because the release moves the intruder, or because its count was known anyway.
Only the first is caused by the release. So every number here is a pair: the intruder's probability
of the true count before any release, by the prior alone, and after it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from bayes_sdc.flows.intruder.probabilities.change import (
    Change,
    before_and_after,
    bits_gained,
    bits_in_words,
    percents,
)
from bayes_sdc.results import Fact, Result

LIMITS = (0.5, 0.8, 0.95)  # probabilities of the true count past which a cell can be pushed
# with fewer, the shares reveal so much about each cell that nobody can be assumed to know them
SHAPE_CELLS = 100

PRIORS = {
    "uniform": "takes every small count for equally probable",
    "shape": "knows how common each small count is, as anyone does from other years and countries",
    "model": "expects what the model predicts of a cell from all other counts",
    "given": "expects what the agency gave",
}


@dataclass(frozen=True, eq=False, repr=False)
class Gain(Result):
    """What an intruder with one prior learns from the release. Confidential.

    Made by :func:`bayes_sdc.intruder_risk`, for every prior it knows by name and for the one asked
    for: ``risk.gains``, and :func:`bayes_sdc.intruder_gain` for the strongest. Before means before
    any release, earlier ones included.

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
    totals : bool
        Whether the totals that the release keeps count as known before it: then the gain is that of
        its counts alone, and what the totals give away stands before.

    Examples
    --------
    >>> import numpy as np
    >>> from bayes_sdc.flows.intruder.probabilities.learning import measure_gain
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
    totals: bool = False

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


def earlier_in_words(earlier: int) -> str:
    """Name the releases that are out already; empty where there are none."""
    return f"{earlier:,} earlier release{'s' * (earlier > 1)}" if earlier else ""


def headline(gain: Gain, earlier: int = 0) -> str:
    """Return one sentence: what the intruder finds before and after the releases.

    Parameters
    ----------
    gain : Gain
        Of the intruder.
    earlier : int
        Number of earlier releases, which tell as well.
    """
    found = gain.guessed
    if found.before is None or found.after is None:
        return "What the release adds is undefined: there is no cell."
    before, after = round(1000 * found.before), round(1000 * found.after)
    adds = f"{after - before}" if after > before else "none"
    adds += f", and they find {before - after} fewer" if after < before else ""
    when, then, what = (
        ("from the totals that the release keeps", "from the whole of it", "its counts add")
        if gain.totals
        else ("before any release", "after it", "the release adds")
    )
    if others := earlier_in_words(earlier):
        then = f"{'from the whole of ' if gain.totals else 'after '}this and {others}"
        what = "its counts and they add" if gain.totals else "together they add"
    return (
        f"Of every 1,000 small counts the strongest intruder finds {before} {when} and {after} "
        f"{then}: {what} {adds}"
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


def _pushed(gain: Gain) -> str:
    return ", ".join(f"{count:,} past {limit:.0%}" for limit, count in gain.pushed.items())


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
    """Return the gain of the intruder who knows most about the true counts after the release.

    By the mean log probability of the true count, a proper score. An intruder whose prior rules out
    a true count comes last. ``shape`` is taken from the true counts themselves, so with fewer than
    :data:`SHAPE_CELLS` cells nobody can be assumed to know it, and it is left out where there is
    another.

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
