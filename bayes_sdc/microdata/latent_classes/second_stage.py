"""The second stage: what each draw of the base says of the population."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.microdata.latent_classes.households import (
    label_records,
    without_household,
)
from bayes_sdc.microdata.latent_classes.prediction import HYPER_DRAWS, Prediction, predict
from bayes_sdc.microdata.latent_classes.sample import Sample
from bayes_sdc.microdata.latent_classes.state import State
from bayes_sdc.microdata.latent_classes.unseen import (
    draw_unseen,
    index_rows,
)
from bayes_sdc.seeds import generator

UNSEEN = 3  # draws from the base for each record
#: Draws at most: of 200,000 people, 20,000 draws instead of 600,000 move tau1 by 0.02 % and the
#: ends of its interval by less than 0.5 %.
MOST_UNSEEN = 200_000

Floats = npt.NDArray[np.float64]


def draws_of_unseen(n: float) -> int:
    """How many combinations to draw from the base, for a file of n records."""
    return min(int(UNSEEN * n), MOST_UNSEEN)


class Chain(NamedTuple):
    """What a chain gives.

    Parameters
    ----------
    monitors : array, shape (sweep, 3)
        After the warm-up, see `bayes_sdc.microdata.latent_classes.gibbs.MONITORS`.
    unique, inverse : array, shape (draw, sample unique)
        P(F = 1) and the mean of 1 / F by draw of base, R and kappa.
    unique_mean, inverse_mean : array, shape (sample unique,)
        Their means over all draws.
    totals : array, shape (draw, hyper draw, 6)
        See `bayes_sdc.microdata.latent_classes.prediction.Prediction`.
    """

    monitors: Floats
    unique: npt.NDArray[np.float32]
    inverse: npt.NDArray[np.float32]
    unique_mean: Floats
    inverse_mean: Floats
    totals: Floats


class SecondStage:
    """Collects what the draws of one chain say of the population.

    Parameters
    ----------
    sample : Sample
        Of the file.
    draws : int
        Of the base.
    seed, number : int
        The random numbers follow from the seed and the number of the chain.
    """

    def __init__(self, sample: Sample, draws: int, seed: int, number: int) -> None:
        cells, uniques = sample.cells, len(sample.unique)
        self._sample = sample
        self._rng = generator(seed, "scatter about latent classes", str(number))
        self._complete = np.flatnonzero((cells.rows >= 0).all(axis=1))
        self._occupied = np.ascontiguousarray(cells.rows[self._complete])
        self._table = index_rows(self._occupied)
        # by the rules that match missing values the scatter is learned from complete records; a
        # record is unique among all of them
        apart = cells.records if sample.apart is None else sample.apart
        self._f = apart[self._complete]
        self.n = float(apart.sum())
        self._of_draw = np.empty((2, draws, uniques), dtype=np.float32)
        self._totals = np.empty((draws, HYPER_DRAWS, 6))
        self._result = Prediction(
            unique=np.zeros(uniques),
            inverse=np.zeros(uniques),
            unique_sum=np.zeros(uniques),
            inverse_sum=np.zeros(uniques),
            totals=np.empty((HYPER_DRAWS, 6)),
        )

    def add(self, draw: int, state: State) -> None:
        """Predict from one draw of the base."""
        sample, result = self._sample, self._result
        known, number = float(self._f.sum()), draws_of_unseen(self.n)
        unseen, unseen_times, possible = draw_unseen(
            self._rng, number, sample.cells.start, self._occupied, self._table, state.eta,
            state.phi, sample.rules, sample.effects,
        )  # fmt: skip
        # what is possible has probability 1 together
        share = max(possible, 1) / number
        predict(
            self._rng, self._f, np.log(known / share * state.g[self._complete]),
            np.log(max(known, 1.0) / share * unseen), unseen_times, known / max(possible, 1),
            np.log(self.n / share * state.g[sample.unique]) + self._households(state),
            sample.times, sample.population, sample.pull, result,
        )  # fmt: skip
        self._of_draw[0, draw], self._of_draw[1, draw] = result.unique, result.inverse
        self._totals[draw] = result.totals

    def _households(self, state: State) -> Floats:
        """How much lower log g is without the rest of the household, by sample unique."""
        sample = self._sample
        if not len(sample.companions.first):
            return np.zeros(len(sample.unique))
        cells = sample.cells
        labels, counts = label_records(self._rng, cells.rows, cells.shared, cells.records, state)
        found: Floats = without_household(
            sample.unique, cells.start, cells.rows, *sample.companions, labels, state, counts
        )
        return found

    def chain(self, monitors: Floats) -> Chain:
        """Return what was collected, beside the monitors of the chain."""
        number = self._totals.shape[0] * HYPER_DRAWS
        return Chain(
            monitors, self._of_draw[0], self._of_draw[1], self._result.unique_sum / number,
            self._result.inverse_sum / number, self._totals,
        )  # fmt: skip
