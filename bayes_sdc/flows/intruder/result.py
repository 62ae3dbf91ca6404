"""The measured risk of one release, by cell and in summary."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.intruder.probabilities.bayes import (
    LARGEST_ERROR,
    likelihood_of_release,
    unreliable_cells,
)
from bayes_sdc.flows.intruder.probabilities.change import percents
from bayes_sdc.flows.intruder.probabilities.gain import Gain, strongest
from bayes_sdc.flows.intruder.share import Share
from bayes_sdc.flows.release.totals.kept import KeptTotals
from bayes_sdc.results import Fact, Result, or_undefined

UNIQUE = {
    "single-mover": "cells whose true count is 1",
    "isolated": "cells whose origin and whose destination occur in no other small cell",
}

KNOWLEDGE = {
    "all-others": "every true small count but the target: the worst case",
    "all-but-cycle": "the totals that the release keeps, and every true small count but those of "
    "one cycle through the target; anyone who knows these too needs no release",
    "none": "no true small count: the release stands in for them",
    "share": "a random part of the true small counts: the release stands in for the rest",
}


@dataclass(frozen=True, eq=False, repr=False)
class IntruderRisk(Result):
    """Intruder risk of one release; cells in the order of ``table.cells``, counts as published.

    Made by :func:`bayes_sdc.intruder_risk`.

    Parameters
    ----------
    rho : DataArray (cell, count)
        Probability of each candidate count given the release; rows sum to one.
    release_probability : DataArray (cell, true, released)
        M: probability of each released count for each candidate true count.
    prior_probability : DataArray (cell, count)
        The intruder's prior.
    prediction : DataArray (cell, count)
        What the model predicts of each cell from the other counts.
    khat : DataArray (cell, count)
        Pareto k-hat of the importance weights of each candidate; minus infinity where weights are
        all equal, as for the true count, or none are used, as in a refitted cell.
    ess : DataArray (cell, count)
        Effective number of posterior draws that the weights of each candidate leave; in a refitted
        cell that of the sweeps of its refits, from the spread between them.
    release_probability_error : DataArray (cell, true)
        Monte Carlo standard error of M, the largest of each candidate's row: from batches of the
        posterior draws, from refits, or for "paper" from the chains (infinite from a single one).
        Cells with one above 0.01 cannot be relied on.
    khat_threshold : float
        Weights above it are unreliable: min(1 - 1 / log10 S, 0.7) for S draws.
    refitted : DataArray (cell,)
        Whether the cell's probabilities are from refits alone, in every fit of the intruder.
    refitted_by_fit : DataArray (cell, fit)
        The same for each of their fits, from 1: one, or one for each released data set when the
        release stands in for what they do not know.
    r_all, r_unq : Share
        Eq. (9) and (10): share of cells whose single most probable count is the true one.
    distance : DataArray (cell,)
        Eq. (11): distance between the true count and the most probable one.
    true_count_probability : DataArray (cell,)
        rho at the true count.
    believes_release : float
        Share of cells where the (first) released count is the true one.
    prior, knowledge, estimator : str
        What was assumed.
    datasets : int
        Number of released data sets.
    unique : str
        Which cells R_unq is about.
    already_released : DataArray (dataset, cell)
        Counts of earlier releases of the same table, which the intruder has too; no data set where
        there was none.
    gains : mapping of str to Gain
        What the intruder knew before any release and knows after it, by name of the prior:
        "uniform", "shape", "model", and "given" where weights were given.
    seed : int
        Of refits, random cells and fits of the intruder. Confidential.
    kept : KeptTotals, optional
        Totals that the release keeps, which the intruder knows; None where it keeps none.
    """

    rho: xr.DataArray
    release_probability: xr.DataArray
    prior_probability: xr.DataArray
    prediction: xr.DataArray
    khat: xr.DataArray
    ess: xr.DataArray
    release_probability_error: xr.DataArray
    khat_threshold: float
    refitted: xr.DataArray
    refitted_by_fit: xr.DataArray
    r_all: Share
    r_unq: Share
    distance: xr.DataArray
    true_count_probability: xr.DataArray
    believes_release: float
    prior: str
    knowledge: str
    estimator: str
    datasets: int
    unique: str
    already_released: xr.DataArray
    gains: Mapping[str, Gain]
    seed: int | None = None
    kept: KeptTotals | None = None

    @property
    def strongest(self) -> Gain:
        """The gain of the intruder who knows most about the true counts after the release."""
        return strongest(self.gains)

    @property
    def knows(self) -> str:
        """Which other counts the intruder knows, in words."""
        return f"{self.knowledge} ({KNOWLEDGE[re.split('[ ,]', self.knowledge)[0]]})"

    @property
    def earlier_likelihood(self) -> np.ndarray:
        """Log-likelihood of the earlier releases by cell and candidate count; 0 without any."""
        m = self.release_probability.transpose("cell", "true", "released")
        counts = self.already_released - int(m["released"].min())
        return likelihood_of_release(m.to_numpy(), counts.to_numpy()) + np.zeros(m.shape[:2])

    @property
    def expected_correct(self) -> float:
        """Share of right guesses that the intruder expects: mean over cells of the largest rho."""
        return float(self.rho.max("count").mean())

    @property
    def expected_correct_interval(self) -> tuple[float, float]:
        """Central 95 % interval of the share of right guesses, as the intruder sees it.

        The guesses are treated as independent trials with the largest rho of each cell as
        probability, and their sum as normal.
        """
        p = self.rho.max("count").to_numpy()
        half = 1.96 * float(np.sqrt((p * (1.0 - p)).sum())) / len(p)
        return max(self.expected_correct - half, 0.0), min(self.expected_correct + half, 1.0)

    def highest(self, limit: float) -> pd.Series:
        """Cells whose true count has a probability above ``limit`` (>), highest first.

        Confidential, like everything by cell.

        Parameters
        ----------
        limit : float
            Between 0 and 1.

        Returns
        -------
        pandas.Series
            The probabilities by label of the cell.

        Raises
        ------
        InputError
            If the limit is not a probability.
        """
        if not 0.0 <= limit <= 1.0:
            raise InputError(f"limit must be from 0 to 1; it is {limit}")
        probability = self.true_count_probability.to_series()
        return probability[probability > limit].sort_values(ascending=False, kind="stable")

    @property
    def unreliable(self) -> xr.DataArray:
        """Cells that cannot be relied on, by a candidate's k-hat or Monte Carlo error: (cell,)."""
        khat = self.khat.transpose("cell", "count")
        error = self.release_probability_error.transpose("cell", "true")
        found = unreliable_cells(khat.to_numpy(), self.khat_threshold, error.to_numpy())
        return self.refitted.copy(data=found).rename("unreliable")

    @property
    def unreliable_cells(self) -> int:
        """Number of cells that cannot be relied on."""
        return int(self.unreliable.sum())

    def distance_distribution(self, *, squared: bool = False) -> pd.Series:
        """Share of cells at each distance between the true and the most probable count.

        Parameters
        ----------
        squared : bool
            Squared distances; the paper's "maximum 64" is one.

        Returns
        -------
        pandas.Series
            Shares that add up to 1, by distance from 0 to ``high - low``.
        """
        largest = self.rho.sizes["count"] - 1
        number = np.bincount(self.distance.to_numpy(), minlength=largest + 1)
        distances = np.arange(largest + 1)
        return pd.Series(
            number / number.sum(),
            index=pd.Index(distances**2 if squared else distances, name="distance"),
            name="share",
        )

    def _title(self) -> str:
        return f"Intruder risk of {self.rho.sizes['cell']:,} cells: confidential"

    def _facts(self) -> list[Fact]:
        adds = percents(self.strongest.guessed)
        truth = f"{float(self.true_count_probability.mean()):.1%}"
        return [
            ("R_all", self.r_all, self.r_all.definition),
            ("R_unq", self.r_unq, self.r_unq.definition),
            (
                "what the release adds",
                adds,
                f"cells found by the strongest intruder, prior {self.strongest.prior}",
            ),
            ("probability of the true count", truth, "mean over cells"),
            (
                "expected correct",
                f"{self.expected_correct:.1%}",
                "right guesses that the intruder expects",
            ),
            (
                "believes the release",
                f"{self.believes_release:.1%}",
                "cells whose first released count is the true one",
            ),
            (
                "unreliable cells",
                f"{self.unreliable_cells:,}",
                f"with a k-hat above {self.khat_threshold:.2f}, or a Monte Carlo error "
                f"above {LARGEST_ERROR:g}",
            ),
            ("data sets", self.datasets, "released together"),
            ("estimator", self.estimator, f"prior {self.prior}, knows {self.knowledge}"),
        ]

    def __repr__(self) -> str:
        shares = ("R_all", self.r_all), ("R_unq", self.r_unq)
        numbers = "; ".join(f"{name} {or_undefined(s.value, '.1%')}" for name, s in shares)
        return (
            f"<IntruderRisk: {numbers}; {self.rho.sizes['cell']:,} cells, "
            f"{self.unreliable_cells:,} unreliable; {self.estimator}, prior {self.prior}>"
        )


@checked
def intruder_gain(risk: IntruderRisk, *, prior: str | None = None) -> Gain:
    """Return what the release adds to what the intruder knew: before, after and the gain.

    Parameters
    ----------
    risk : IntruderRisk
        From :func:`bayes_sdc.intruder_risk`.
    prior : {"uniform", "shape", "model", "given"}, optional
        What the intruder expects before the release: all counts alike; the shares of the counts
        over the table, which anyone roughly knows from other years and countries; what the model
        predicts of the cell from all other counts; or the weights that were given. By default the
        strongest of them: the highest mean log probability of the true counts after the release.

    Returns
    -------
    Gain

    Raises
    ------
    InputError
        If the prior was not measured.

    See Also
    --------
    bayes_sdc.intruder_risk, bayes_sdc.log_ratios, bayes_sdc.plot_gain

    Notes
    -----
    "shape" is taken from the true counts of the table itself, the best that the intruder could know
    of it. In a table of fewer than 100 cells these shares tell much of each cell, so there "shape"
    is never taken for the strongest.

    References
    ----------
    T. Gneiting, A. E. Raftery 2007, "Strictly proper scoring rules, prediction, and estimation",
    Journal of the American Statistical Association 102, 359-378,
    https://doi.org/10.1198/016214506000001437, for the log score.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, intruder_gain, intruder_risk, read_flows, synthesize
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, sampler="gibbs", draws=50, tune=50, chains=2, seed=1)
    >>> risk = intruder_risk(table, posterior, synthesize(table, posterior, seed=2))
    >>> gain = intruder_gain(risk, prior="uniform")
    >>> round(gain.guessed.before, 3), round(gain.probability.before, 3)
    (0.111, 0.111)
    """
    if prior is None:
        return risk.strongest
    if prior not in risk.gains:
        raise InputError(f"prior {prior!r} was not measured; choose from {', '.join(risk.gains)}")
    return risk.gains[prior]
