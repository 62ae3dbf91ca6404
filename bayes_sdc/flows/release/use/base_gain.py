r"""What a base measure would add to a fit: whether counts are heaped or rare wherever they occur.

The posterior predictive probabilities :math:`p_c(y)` of the cells are multiplied by one measure
:math:`h`, the same for all cells, that makes the true counts most probable,

.. math:: \max_h \; \frac{1}{n} \sum_c \log \frac{h(y_c)\, p_c(y_c)}{\sum_y h(y)\, p_c(y)}
    - \frac{1}{n} \sum_c \log p_c(y_c) - \frac{K}{n},

less the gain of as many free numbers by chance (Akaike). It is a concave function of the logarithms
of :math:`h`. The measure is found without fitting again, so this is a first estimate of the gain of
the family ``base`` in log probability per cell.
"""

import numpy as np
import xarray as xr

from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.table.cells import fitted_cells
from bayes_sdc.flows.table.read import FlowTable

DRAWS = 40  # of the posterior, evenly spread
WORTH = 0.01  # gain per cell from which a check mentions it
STEPS, ENOUGH = 200, 1e-9
RIDGE = 0.05  # keeps the measure of a count that does not occur away from minus infinity


def base_gain(table: FlowTable, posterior: xr.DataTree) -> float:
    """Gain of a base measure in log probability per cell; 0 where the fit has one.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        Its posterior.

    Returns
    -------
    float
        In nats; below 0 where a measure gains no more than chance would.

    References
    ----------
    H. Akaike 1974, doi:10.1109/TAC.1974.1100705.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> base_gain(table, fit_flows(table, draws=10, tune=10, chains=2, seed=1)) < 0.0
    True
    """
    if posterior.attrs["family"] == "base" or table.n_small == 0:
        return 0.0
    cells, rates = fitted_cells(table, posterior), rates_by_draw(posterior)
    chosen = np.linspace(0, rates.n_draws - 1, min(DRAWS, rates.n_draws)).astype(int)
    p = np.zeros((len(cells.y), cells.upper + 1))
    for draw in chosen:
        log_rate, rungs = rates.at(cells, int(draw))
        p += counts.probabilities(log_rate, cells.group, rungs) / len(chosen)
    return best_measure(p, cells.y)[1] - cells.upper / len(cells.y)


def best_measure(p: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Log of the measure under which the counts are most probable, and its gain per cell.

    Parameters
    ----------
    p : array of float, shape (cell, count)
        Probabilities; rows sum to one.
    y : array of int, shape (cell,)
        Counts, from 0.

    Returns
    -------
    array of float, shape (count,)
        The first is 0.
    float
        Mean of the log probabilities less that without a measure, at least 0.

    Examples
    --------
    >>> measure, gain = best_measure(np.full((4, 2), 0.5), np.array([0, 1, 1, 1]))
    >>> round(float(np.exp(measure[1])), 1), round(gain, 2)
    (2.8, 0.13)
    """
    seen = np.bincount(y, minlength=p.shape[1]).astype(np.float64)

    def height(measure: np.ndarray) -> float:
        return float(
            seen @ measure - np.log(p @ np.exp(measure)).sum() - 0.5 * RIDGE * measure @ measure
        )

    measure = np.zeros(p.shape[1])
    now = height(measure)
    for _ in range(STEPS):
        q = p * np.exp(measure)
        q /= q.sum(axis=1, keepdims=True)
        slope = seen - q.sum(axis=0) - RIDGE * measure
        curvature = np.diag(q.sum(axis=0) + RIDGE) - q.T @ q
        step = np.zeros(len(measure))
        step[1:] = np.linalg.solve(curvature[1:, 1:], slope[1:])
        size = 1.0
        while (then := height(measure + size * step)) < now and size > ENOUGH:
            size /= 2.0
        if size <= ENOUGH or np.abs(step).max() < ENOUGH:
            break
        measure, now = measure + size * step, then
    gained = seen @ measure - np.log(p @ np.exp(measure)).sum()
    return measure, max(float(gained) / len(y), 0.0)
