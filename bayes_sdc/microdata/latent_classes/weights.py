"""Unequal weights: how many people a record of a combination stands for, on average.

The base of the latent classes is that of the sample. Where some kinds of people are sampled at
higher rates, the same expected frequency in the sample stands for fewer of them: for the number of
records times their mean weight, which depends on the key variables.
"""

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import splu

from bayes_sdc.microdata.latent_classes.combinations import Cells

Floats = npt.NDArray[np.float64]

ITERATIONS = 50
TOLERANCE = 1e-10


def mean_weights(cells: Cells, weights: npt.ArrayLike, total: float) -> Floats:
    r"""Estimate the mean weight of the records of each combination, by its key values.

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
    given = np.asarray(weights, dtype=np.float64)
    n = cells.records.astype(np.float64)
    middle = float(n @ given / n.sum())
    spread = float(n @ (given / middle - 1.0) ** 2 / n.sum())
    fitted = np.full(len(given), middle)
    if spread > 0.0:
        k, j = np.nonzero(cells.rows >= 0)
        shape = (len(given), int(cells.start[-1]) + 1)
        # the last column is the constant
        row = np.concatenate([k, np.arange(len(given))])
        column = np.concatenate([cells.rows[k, j], np.full(len(given), shape[1] - 1)])
        design = sparse.csr_array((np.ones(len(row)), (row, column)), shape=shape)
        penalty = np.full(design.shape[1], spread)
        penalty[-1] = 0.0
        # the expected second derivative of this likelihood does not change with the effects
        solve = splu((design.T @ (n[:, None] * design) + sparse.diags_array(penalty)).tocsc()).solve
        effects = np.zeros(design.shape[1])
        effects[-1] = np.log(middle)
        for _ in range(ITERATIONS):
            step = solve(design.T @ (n * (given / fitted - 1.0)) - penalty * effects)
            # far from the optimum a whole step could overflow
            effects += step / max(1.0, np.abs(step).max())
            fitted = np.exp(design @ effects)
            if np.abs(step).max() < TOLERANCE:
                break
    fitted *= total / float(n @ fitted)
    raised: Floats = np.maximum(fitted, 1.0)
    return raised
