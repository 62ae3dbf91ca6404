"""Leave-one-out cross-validation of tables whose log-likelihood does not fit into memory.

What :func:`bayes_sdc.extend_posterior` and ``az.loo`` do together needs a matrix of all draws and
cells, and minutes for a nation. Here the matrix is made and used in pieces, with the smoothing of
weights that the intruder's probabilities use
(:mod:`bayes_sdc.flows.intruder.probabilities.pareto`).
"""

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import xarray as xr
from arviz_stats.utils import ELPDDataLOO

from bayes_sdc.arguments import checked
from bayes_sdc.cores import threads
from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.fitted_to import check_posterior
from bayes_sdc.flows.intruder.probabilities.pareto import khat_threshold, smooth
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.rates import Rates, rates_by_draw
from bayes_sdc.flows.table.cells import SmallCells, fitted_cells
from bayes_sdc.flows.table.read import FlowTable

NUMBERS = 4_000_000  # log-likelihoods that one thread holds


@checked
def loo_flows(table: FlowTable, posterior: xr.DataTree, *, cores: int | None = None) -> ELPDDataLOO:
    """Estimate how well the model predicts each small count from all others, by PSIS-LOO.

    The same as ``az.loo`` of an extended posterior with ``reff=1``, in pieces: for tables of any
    size. Models of one table, with other families, priors or covariates, are compared by
    ``az.compare``.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        From :func:`bayes_sdc.fit_flows` or :func:`bayes_sdc.as_posterior`.
    cores : int, optional
        Threads; by default all. The result does not depend on it.

    Returns
    -------
    arviz_stats.ELPDData
        Sum of log predictive densities ``elpd`` (natural logarithm) with its standard error
        ``se``, effective number of parameters ``p``, and by cell ``elpd_i`` and ``pareto_k``.
        Confidential: a single ``elpd_i`` depends on the true count of its cell.

    Raises
    ------
    InputError
        If the posterior belongs to another table, or was fitted with weights of the cells.

    See Also
    --------
    bayes_sdc.extend_posterior, bayes_sdc.fit_flows

    References
    ----------
    A. Vehtari, A. Gelman, J. Gabry 2017, "Practical Bayesian model evaluation using leave-one-out
    cross-validation and WAIC", https://doi.org/10.1007/s11222-016-9696-4.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, loo_flows, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=50, tune=50, chains=2, seed=1)
    >>> loo = loo_flows(table, posterior)
    >>> loo.n_data_points, bool(loo.elpd < 0)
    (3, True)
    """
    check_posterior(table, posterior)
    cells, rates = fitted_cells(table, posterior), rates_by_draw(posterior)
    if cells.weight is not None:
        raise InputError(
            "the posterior was fitted with weights of the cells, so it is no posterior of a model "
            "that could be compared with others"
        )
    number = max(NUMBERS // rates.n_draws, 1)
    parts = [slice(start, start + number) for start in range(0, len(cells.y), number)]
    with ThreadPoolExecutor(threads(cores)) as pool:
        found = list(pool.map(lambda part: _of_part(cells, rates, part), parts))
    elpd, plain, khat = (np.concatenate(one) for one in zip(*found, strict=True))
    good = khat_threshold(rates.n_draws)
    coords = {"cell": cells.cells}
    return ELPDDataLOO(
        elpd=float(elpd.sum()),
        se=float(np.sqrt(len(elpd) * elpd.var())),
        p=float(plain.sum() - elpd.sum()),
        n_samples=rates.n_draws,
        n_data_points=len(elpd),
        scale="log",
        warning=bool((khat > good).any()),
        good_k=good,
        elpd_i=xr.DataArray(elpd, coords, ("cell",), "elpd_i"),
        pareto_k=xr.DataArray(khat, coords, ("cell",), "pareto_k"),
    )


def _of_part(
    cells: SmallCells, rates: Rates, part: slice
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log predictive densities of some cells without and with their own count, and k-hat."""
    some = cells._replace(
        y=cells.y[part], group=cells.group[part], origin=cells.origin[part],
        destination=cells.destination[part], x=cells.x[part],
    )  # fmt: skip
    y = some.y.astype(np.float64)
    log_likelihood = np.empty((len(y), rates.n_draws))
    for draw in range(rates.n_draws):
        log_rate, rungs = rates.at(some, draw)
        log_likelihood[:, draw] = counts.log_probabilities(y, log_rate, some.group, rungs)
    plain, elpd, khat = left_out(log_likelihood)
    return plain, elpd, khat


@numba.njit(cache=True, nogil=True)
def left_out(log_likelihood: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log predictive density of each count, with the draws weighted as if it had not been seen.

    Parameters
    ----------
    log_likelihood : array of float, shape (cell, draw)

    Returns
    -------
    elpd, plain, khat : array of float, shape (cell,)
        Without the count itself, with it, and whether the weights can be relied on.

    Examples
    --------
    >>> left_out(np.log(np.full((1, 4), 0.25)))[0]
    array([-1.38629436])
    """
    n, n_draws = log_likelihood.shape
    elpd, plain, khat = np.empty(n), np.empty(n), np.empty(n)
    for t in range(n):
        weight = -log_likelihood[t]
        khat[t] = smooth(weight)
        top = weight.max()
        highest = (weight + log_likelihood[t]).max()
        largest = log_likelihood[t].max()
        total, both, own = 0.0, 0.0, 0.0
        for s in range(n_draws):
            total += np.exp(weight[s] - top)
            both += np.exp(weight[s] + log_likelihood[t, s] - highest)
            own += np.exp(log_likelihood[t, s] - largest)
        elpd[t] = highest - top + np.log(both / total)
        plain[t] = largest + np.log(own / n_draws)
    return elpd, plain, khat
