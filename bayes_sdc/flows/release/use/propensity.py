"""Propensity scores: how well a logistic regression tells released cells from true ones.

The true and the released small cells are stacked, and a logistic regression predicts which row is
released. Where it cannot tell, every predicted probability is c, the share of released rows, and
the mean squared distance from c, the pMSE, is near 0.

For a released table of the right distribution the pMSE is not 0 but small by chance. To first order
it is ``c^2 (1 - c)^2 D' S^-1 D``, with S the covariance of the regressors and D the difference
between the means of the two halves. When the true rows are what the synthesiser was fitted to, only
the released ones vary about them: D has covariance S / (c N), and the expected pMSE is
``(k - 1) (1 - c)^2 c / N``.

References
----------
Woo, Reiter, Oganian and Karr 2009, doi:10.29012/jpc.v1i1.568; Snoke, Raab, Nowok, Dibben and
Slavkovic 2018, doi:10.1111/rssa.12358.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from bayes_sdc.cores import threads

STEPS = 100  # a separated regression gains about one per step on the logit scale
ENOUGH = 1e-10  # change of the predicted probabilities at which the regression has settled


class Propensity(NamedTuple):
    """pMSE of one or more data sets, and its expected value for the right synthesiser.

    Made by :func:`bayes_sdc.protect_flows`, in ``measured.distinguished``.

    Parameters
    ----------
    pmse : float
        Mean over data sets, in [0, 1/4].
    expected : float
        Null value.
    parameters : int
        Coefficients that can tell the halves apart.
    """

    pmse: float  # mean over data sets, in [0, 1/4]
    expected: float  # null value
    parameters: int  # k - 1: coefficients that can tell the halves apart

    @property
    def ratio(self) -> float | None:
        """The pMSE in units of its null value; None when no coefficient can differ."""
        return self.pmse / self.expected if self.expected > 0 else None


def null_pmse(parameters: int, share: float, rows: int) -> float:
    """Expected pMSE of a release from the right model, fitted to the true rows.

    Parameters
    ----------
    parameters : int
        k - 1: coefficients of the regression besides the constant.
    share : float
        c: share of released rows, between 0 and 1.
    rows : int
        N: true and released rows together.

    Returns
    -------
    float
        ``(k - 1) (1 - c)^2 c / N``.

    Examples
    --------
    >>> null_pmse(3, 0.5, 600)
    0.000625
    """
    return parameters * (1.0 - share) ** 2 * share / rows


def propensity_of(
    totals: np.ndarray, true: np.ndarray, released: Sequence[np.ndarray]
) -> Propensity:
    """Propensity score pMSE of released functions of the counts of the same cells.

    The regressors are the functions, the totals, and their products. The columns of totals are the
    same in both halves: they enter the regression, but k does not count them, nor columns that are
    combinations of others.

    Parameters
    ----------
    totals : array of float, shape (cell, side)
        What is known of each cell, such as log totals of its areas.
    true : array of float, shape (cell, function)
        Of the true counts, such as the count itself.
    released : sequence of array of float, shape (cell, function)
        Of each data set; each is compared with the true counts by itself.

    Returns
    -------
    Propensity
        Mean pMSE over the data sets, null value and number of coefficients.

    Notes
    -----
    The null value takes the parameters of the synthesiser as fitted. A release from posterior draws
    of the parameters varies about twice as much, so the right model gives a ratio up to 2.

    Examples
    --------
    >>> totals = np.log([[30.0, 10.0], [30.0, 20.0], [50.0, 10.0], [50.0, 20.0], [50.0, 30.0]])
    >>> same = np.array([[1.0], [2.0], [2.0], [3.0], [5.0]])
    >>> round(propensity_of(totals, same, [same]).pmse, 12)
    0.0
    """
    return mean_score(by_dataset(totals, true, released))


def by_dataset(
    totals: np.ndarray, true: np.ndarray, released: Sequence[np.ndarray]
) -> list[Propensity]:
    """Of each data set by itself; a thread each, because a regression of a nation takes seconds."""
    rows = 2 * len(true)
    with ThreadPoolExecutor(threads(None)) as pool:
        found = pool.map(lambda counts: _one(totals, true, counts), released)
        return [Propensity(pmse, null_pmse(extra, 0.5, rows), extra) for pmse, extra in found]


def mean_score(scores: Sequence[Propensity]) -> Propensity:
    """Of several data sets, whose numbers of coefficients differ where one is constant."""
    return Propensity(
        pmse=float(np.mean([one.pmse for one in scores])),
        expected=float(np.mean([one.expected for one in scores])),
        parameters=max(one.parameters for one in scores),
    )


def _one(totals: np.ndarray, true: np.ndarray, released: np.ndarray) -> tuple[float, int]:
    """The pMSE of one data set, and the number of coefficients that can differ."""
    known = _standardise(np.concatenate([totals, totals]))
    count = _standardise(np.concatenate([true, released]))
    constant = np.ones((len(known), 1))
    products = (known[:, :, np.newaxis] * count[:, np.newaxis, :]).reshape(len(known), -1)
    design = _basis(np.hstack([constant, known, count, products]))
    extra = design.shape[1] - _basis(np.hstack([constant, known])).shape[1]
    is_released = np.repeat([0.0, 1.0], len(true))
    return float(np.mean((_fitted(design, is_released) - 0.5) ** 2)), extra


def _standardise(columns: np.ndarray) -> np.ndarray:
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    # the rounding error of a constant column is no information
    flat = spread <= 1e-12 * np.maximum(np.abs(columns).max(axis=0), 1.0)
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, spread))


def _basis(columns: np.ndarray) -> np.ndarray:
    """Orthogonal columns of mean square one that span the same space: constants drop out.

    By singular values of the triangle that an orthogonal transform leaves of the columns: they are
    those of the columns, and take a fraction of the time where rows are many.
    """
    _, size, axes = np.linalg.svd(np.linalg.qr(columns, mode="r"), full_matrices=False)
    kept = size > 1e-9 * size[0]
    return np.asarray(columns @ (axes[kept].T / size[kept]) * np.sqrt(len(columns)))


def _fitted(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Predicted probabilities of a logistic regression, by Newton steps that never go down."""
    logit = np.zeros(len(y))
    p = np.full(len(y), 0.5)
    height = _log_likelihood(logit, y)
    for _ in range(STEPS):
        # the ridge keeps a separated regression, whose weights vanish, from a singular step
        hessian = (x * (p * (1.0 - p))[:, np.newaxis]).T @ x + 1e-9 * len(y) * np.eye(x.shape[1])
        step = x @ np.linalg.solve(hessian, x.T @ (y - p))
        then = _log_likelihood(logit + step, y)
        while then < height - 1e-9:
            step = step / 2.0
            then = _log_likelihood(logit + step, y)
        logit, height = logit + step, then
        moved = 1.0 / (1.0 + np.exp(-np.clip(logit, -500.0, 500.0)))
        settled = np.abs(moved - p).max() < ENOUGH
        p = moved
        if settled:
            break
    return p


def _log_likelihood(logit: np.ndarray, y: np.ndarray) -> float:
    return float(np.sum(y * logit - np.logaddexp(0.0, logit)))
