"""A bridge to differential privacy: how much one true count can change what is released.

M[y, r] is the probability of releasing r when the true count of a cell is y and all other counts
are what they are. Differential privacy bounds how far log M[y, r] moves with y, for every table.
Here it is computed for this table and this model. It is a property, not a promise: nothing follows
for other tables, other counts of the same table or another model.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.flows.intruder.probabilities.bayes import TINY
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.results import Fact, Result

NO_PROMISE = (
    "a property of this table and this model, one count changed and all others held fixed; "
    "by itself it promises nothing and is not differential privacy"
)
QUANTILES = {"median": 0.5, "95 % of cells below": 0.95, "largest": 1.0}


@dataclass(frozen=True, eq=False, repr=False)
class LogRatios(Result):
    """By cell, how much its true count can change the log probability of what is released.

    Made by :func:`log_ratios`. Natural logarithms. Confidential.

    Parameters
    ----------
    by_cell : DataFrame
        By cell: ``neighbours``, the largest log M[y, r] - log M[y', r] over released r and true
        counts y' = y +- 1; ``any_pair``, the same over any two true counts; ``neighbours_at_least``
        and ``any_pair_at_least``, the same after the Monte Carlo error: the largest lower end (two
        standard errors of either probability) over all entries, 0 or more. Of all released data
        sets together.
    datasets : int
        Number of released data sets, those that were out already among them.
    width : int
        Number of counts from the lowest to the highest.
    """

    by_cell: pd.DataFrame
    datasets: int
    width: int

    @property
    def distribution(self) -> pd.DataFrame:
        """Quantiles over cells, and epsilon of the clamped geometric mechanism that has the same.

        Its log ratio is epsilon between neighbours and (width - 1) epsilon between the lowest and
        the highest count: :func:`clamped_geometric`.
        """
        columns = ["neighbours", "neighbours_at_least", "any_pair", "any_pair_at_least"]
        rows = self.by_cell[columns].quantile(list(QUANTILES.values()))
        rows.index = pd.Index(list(QUANTILES), name="over cells")
        rows["epsilon_neighbours"] = rows["neighbours"]
        rows["epsilon_any_pair"] = rows["any_pair"] / max(self.width - 1, 1)
        return rows

    def _title(self) -> str:
        return f"Log ratios of {len(self.by_cell):,} cells: confidential"

    def _facts(self) -> list[Fact]:
        return [
            (
                f"log ratio, {name}",
                f"{row['neighbours']:.3f} (at least {row['neighbours_at_least']:.3f}) between "
                f"neighbours, {row['any_pair']:.3f} (at least {row['any_pair_at_least']:.3f}) "
                "between any two counts",
                f"geometric mechanism with epsilon {row['epsilon_neighbours']:.3f}, and "
                f"{row['epsilon_any_pair']:.3f}",
            )
            for name, row in self.distribution.iterrows()
        ]

    def _remarks(self) -> list[str]:
        return [NO_PROMISE]

    def __repr__(self) -> str:
        row = self.distribution.iloc[-1]
        return (
            f"<LogRatios: largest {row['neighbours']:.3f} between neighbours; "
            f"{row['any_pair']:.3f} between any two counts; {len(self.by_cell):,} cells>"
        )


@checked
def log_ratios(risk: IntruderRisk) -> LogRatios:
    """Measure how much each true count can change the log probability of the release.

    Parameters
    ----------
    risk : IntruderRisk
        Its release probabilities and their Monte Carlo errors.

    Returns
    -------
    LogRatios
        By cell, their distribution, and the geometric mechanism that has the same.

    Raises
    ------
    InputError
        If ``risk`` is not an :class:`bayes_sdc.IntruderRisk`.

    See Also
    --------
    bayes_sdc.intruder_risk, bayes_sdc.intruder_gain

    Notes
    -----
    A probability near 0 is estimated with a large relative error, so a large ratio may be noise,
    and its estimate is then too large rather than too small. Judge by both: the estimate, and its
    lower end after the Monte Carlo error.

    References
    ----------
    C. Dwork, A. Roth 2014, doi:10.1561/0400000042; A. Ghosh, T. Roughgarden, M. Sundararajan
    2012, doi:10.1137/09076828X, on the geometric mechanism.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, intruder_risk, log_ratios, read_flows, synthesize
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, sampler="gibbs", draws=50, tune=50, chains=2, seed=1)
    >>> risk = intruder_risk(table, posterior, synthesize(table, posterior, seed=2))
    >>> found = log_ratios(risk).by_cell
    >>> bool((found["neighbours"] <= found["any_pair"]).all())
    True
    """
    m = risk.release_probability.transpose("cell", "true", "released").to_numpy()
    error = risk.release_probability_error.transpose("cell", "true").to_numpy()
    datasets = risk.datasets + risk.already_released.sizes["dataset"]
    cells = risk.release_probability["cell"].to_numpy().tolist()
    return from_matrices(m, error, cells, datasets=datasets)


def from_matrices(
    m: np.ndarray, error: np.ndarray, labels: Sequence[str], *, datasets: int = 1
) -> LogRatios:
    """Log ratios from the release probabilities themselves.

    Parameters
    ----------
    m : array of float, shape (cell, true, released)
        Rows over released counts sum to one.
    error : array of float, shape (cell, true)
        Largest standard error of each row; infinite where it is not known.
    labels : sequence of str
        Of the cells.
    datasets : int
        Independent data sets released together: their log ratios add up.

    Examples
    --------
    >>> m = np.array([clamped_geometric(0.3, 9)])
    >>> found = from_matrices(m, np.zeros((1, 9)), ["a>x"]).by_cell.loc["a>x"]
    >>> [round(float(found[name]), 9) for name in ("neighbours", "any_pair")]
    [0.3, 2.4]
    """
    log_m = np.log(np.maximum(m, TINY))
    # of each end of the error of a row; what may be 0 bounds no ratio from below
    spread = np.minimum(2.0 * error, 1.0)[..., None]
    lowest = np.log(np.maximum(m - spread, TINY))
    highest = np.log(np.clip(m + spread, TINY, 1.0))
    by_cell = pd.DataFrame(
        {
            "neighbours": _neighbours(log_m, log_m),
            "neighbours_at_least": _neighbours(lowest, highest),
            "any_pair": _any_pair(log_m, log_m),
            "any_pair_at_least": _any_pair(lowest, highest),
        },
        index=pd.Index(list(labels), name="cell"),
    )
    return LogRatios(datasets * by_cell, datasets, m.shape[-1])


def _neighbours(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Largest difference of neighbouring rows, either way, over released counts; 0 or more."""
    if upper.shape[1] == 1:
        return np.zeros(len(upper))
    up = (upper[:, 1:] - lower[:, :-1]).max(axis=(1, 2))
    down = (upper[:, :-1] - lower[:, 1:]).max(axis=(1, 2))
    return np.asarray(np.maximum(np.maximum(up, down), 0.0))


def _any_pair(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Largest difference of any two rows over released counts; 0 or more."""
    return np.asarray(np.maximum((upper.max(axis=1) - lower.min(axis=1)).max(axis=1), 0.0))


def clamped_geometric(epsilon: float, width: int) -> np.ndarray:
    """Release probabilities of geometric noise (discrete Laplace), clamped to the ends.

    Noise z has probability proportional to exp(-epsilon |z|); a sum beyond an end is released as
    the end.

    Parameters
    ----------
    epsilon : float
        Above 0.
    width : int
        Number of counts, 1 or more.

    Returns
    -------
    array of float, shape (true, released)
        Rows sum to one; the log ratio of neighbouring rows is at most epsilon.

    Examples
    --------
    >>> clamped_geometric(math.log(2.0), 2).round(3).tolist()
    [[0.667, 0.333], [0.333, 0.667]]
    """
    a = math.exp(-epsilon)
    counts = np.arange(width)
    m = a ** np.abs(counts[:, None] - counts) * (1.0 - a) / (1.0 + a)
    if width == 1:
        return np.ones((1, 1))
    m[:, 0] = a**counts / (1.0 + a)
    m[:, -1] = a ** counts[::-1] / (1.0 + a)
    return np.asarray(m)
