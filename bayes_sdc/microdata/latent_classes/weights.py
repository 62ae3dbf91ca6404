"""Unequal weights: how many people a record of a combination stands for, on average.

The base of the latent classes is that of the sample. Where some kinds of people are sampled at
higher rates, the same expected frequency in the sample stands for fewer of them: for the number of
records times their mean weight, which depends on the key variables.

That is what strata of sampling fractions come to. With the stratum s as one more key,
n_s g_ks are expected in the sample and N_s g_ks in the population, so those outside the sample
follow the sum of (N_s / n_s - 1) n_s g_ks over the strata: n g_k times the mean weight of the
records expected in k, less one. Whose stratum a sample unique itself is from does not matter
beyond this. Where strata follow from the keys (regions at other rates), the regression
finds their rates, those of small strata drawn a little to the mean; otherwise it is the mean over
the strata that a combination may be in.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import splu

from bayes_sdc.microdata.latent_classes.combinations import Cells
from bayes_sdc.microdata.latent_classes.draws import compiled

Floats = npt.NDArray[np.float64]

ITERATIONS = 50
TOLERANCE = 1e-10
EQUAL = 1e-10  # squared coefficient of variation of weights that differ by rounding alone


def log_weights(cells: Cells, weights: npt.ArrayLike, total: float) -> Floats:
    r"""Estimate the mean weight of records by their key values: a factor for each level.

    A log-linear regression with an effect of each level of each key, by the quasi-likelihood of
    weights with a constant coefficient of variation, c. Effects are drawn to 0 as by a normal prior
    with standard deviation 1.

    Parameters
    ----------
    cells : Cells
        Combinations.
    weights : array_like of float, shape (combination,)
        Mean weight of the records of each.
    total : float
        People of the population, whom the weights are made to add up to.

    Returns
    -------
    array of float, shape (row + 1,)
        Effects on the log weight, and last the constant.
    """
    given = np.asarray(weights, dtype=np.float64)
    n = cells.records.astype(np.float64)
    middle = float(n @ given / n.sum())
    spread = float(n @ (given / middle - 1.0) ** 2 / n.sum())
    effects = np.zeros(int(cells.start[-1]) + 1)
    effects[-1] = np.log(middle)
    fitted = np.full(len(given), middle)
    if spread > EQUAL:
        k, j = np.nonzero(cells.rows >= 0)
        # the last column is the constant
        row = np.concatenate([k, np.arange(len(given))])
        column = np.concatenate([cells.rows[k, j], np.full(len(given), len(effects) - 1)])
        shape = (len(given), len(effects))
        design = sparse.csr_array((np.ones(len(row)), (row, column)), shape=shape)
        penalty = np.full(len(effects), spread)
        penalty[-1] = 0.0
        # the expected second derivative of this likelihood does not change with the effects
        solve = splu((design.T @ (n[:, None] * design) + sparse.diags_array(penalty)).tocsc()).solve
        for _ in range(ITERATIONS):
            step = solve(design.T @ (n * (given / fitted - 1.0)) - penalty * effects)
            # far from the optimum a whole step could overflow
            effects += step / max(1.0, np.abs(step).max())
            fitted = np.exp(design @ effects)
            if np.abs(step).max() < TOLERANCE:
                break
    effects[-1] += np.log(total / float(n @ fitted))
    return effects


@compiled
def weight_of(row: np.ndarray, effects: np.ndarray) -> float:
    """Return how many people a record of a combination stands for: itself at least."""
    total = effects[-1]
    for j in range(len(row)):
        if row[j] >= 0:
            total += effects[row[j]]
    return max(math.exp(total), 1.0)


@compiled
def weights_of_rows(rows: np.ndarray, effects: np.ndarray) -> np.ndarray:
    """Return the same for many combinations."""
    found = np.empty(len(rows))
    for k in range(len(rows)):
        found[k] = weight_of(rows[k], effects)
    return found


def mean_weights(cells: Cells, weights: npt.ArrayLike, total: float) -> Floats:
    """Mean weight of the records of each combination, by its key values; see `log_weights`.

    Parameters
    ----------
    cells : Cells
        Combinations.
    weights : array_like of float, shape (combination,)
        Mean weight of the records of each.
    total : float
        People of the population, whom the weights are made to add up to.

    Returns
    -------
    array of float, shape (combination,)
        1 or more: a record stands at least for itself.

    Examples
    --------
    >>> cells = Cells(
    ...     np.array([[0], [1]], np.int32), np.zeros(2, int), np.array([500, 500]),
    ...     np.array([0, 2]), np.arange(2),
    ... )
    >>> mean_weights(cells, [10.0, 30.0], 20_000).round(1).tolist()
    [10.0, 30.0]
    """
    found: Floats = weights_of_rows(cells.rows, log_weights(cells, weights, total))
    return found
