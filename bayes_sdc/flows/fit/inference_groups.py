"""The groups that ArviZ expects beside a posterior: prior, predictive draws, log-likelihood."""

from collections.abc import Sequence
from typing import get_args

import numpy as np
import pymc as pm
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.fitted_to import check_posterior
from bayes_sdc.flows.fit.nuts import RECORDED, model_of
from bayes_sdc.flows.fit.pymc_model import EFFECTS
from bayes_sdc.flows.fit.settings import InferenceGroup, sampling_again
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.table.cells import SmallCells, fitted_cells
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.seeds import generator, seed_or_fresh, seed_sequence

NAME = "count"  # of the counts in every group
LARGEST = 100_000_000  # draws times cells of a group, by default: 0.8 GB of log-likelihoods
PRIOR_DRAWS = 500


@checked
def extend_posterior(
    table: FlowTable,
    posterior: xr.DataTree,
    groups: Sequence[InferenceGroup] = get_args(InferenceGroup),
    *,
    draws: int | None = None,
    seed: int | None = None,
) -> xr.DataTree:
    """Add the groups that ArviZ works with to a posterior; all of them are confidential.

    Counts are on the scale of the table, from its smallest protected count. With them ``az.loo``,
    ``az.compare``, ``az.plot_ppc_dist``, ``az.plot_loo_pit`` and ``az.plot_prior_posterior`` work
    as on any result of PyMC.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        From :func:`bayes_sdc.fit_flows` or :func:`bayes_sdc.as_posterior`.
    groups : sequence of {"prior", "prior_predictive", "posterior_predictive", "log_likelihood"}
        What to add; the prior needs the PyMC model to be compiled.
    draws : int, optional
        Draws of each chain in the groups made from the posterior, evenly spread; by default all, or
        in a large table as many as give 10^8 numbers.
    seed : int, optional
        Seed of the predictive draws; a fresh one by default.

    Returns
    -------
    xarray.DataTree
        A new tree: the posterior with ``count`` (chain, draw, cell) in ``log_likelihood`` (natural
        logarithms) and ``posterior_predictive``, the same in ``prior_predictive``, the parameters
        in ``prior``, and the true ``count`` (cell,) in ``observed_data``. ``posterior`` and
        ``sample_stats`` keep all their draws.

    Raises
    ------
    InputError
        If the posterior belongs to another table, or has fewer draws than asked for.

    See Also
    --------
    bayes_sdc.fit_flows, bayes_sdc.migration_model

    Notes
    -----
    ``plot_prior_posterior`` of ArviZ has a dimension of its own that is called group, as that of
    the groups of a table is. Rename the latter for it::

        renamed = posterior.map_over_datasets(
            lambda part: part.rename(group="pair") if "group" in part.dims else part
        )
        az.plot_prior_posterior(renamed, var_names=["national_mean"])

    References
    ----------
    A. Vehtari, A. Gelman, J. Gabry 2017, "Practical Bayesian model evaluation using leave-one-out
    cross-validation and WAIC", https://doi.org/10.1007/s11222-016-9696-4, for what the
    log-likelihood is used for.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import extend_posterior, fit_flows, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=10, tune=10, chains=2, seed=1)
    >>> more = extend_posterior(table, posterior, ["log_likelihood"])
    >>> dict(more["log_likelihood"]["count"].sizes)
    {'chain': 2, 'draw': 10, 'cell': 3}
    """
    check_posterior(table, posterior)
    cells = fitted_cells(table, posterior)
    if cells.weight is not None:
        raise InputError(
            "the posterior was fitted with weights of the cells: it is no posterior of a model "
            "that could be compared by these groups"
        )
    seed = seed_or_fresh(seed)
    found = posterior.to_dict()
    found["/observed_data"] = (
        posterior["observed_data"].to_dataset().assign({NAME: ("cell", table.low + cells.y)})
    )
    if {"posterior_predictive", "log_likelihood"} & set(groups):
        at = _spread(posterior, cells, draws)
        found |= _of_posterior(table, cells, posterior, groups, at, seed)
    if {"prior", "prior_predictive"} & set(groups):
        found |= _of_prior(table, cells, posterior, groups, seed)
    return xr.DataTree.from_dict(found)


def _spread(posterior: xr.DataTree, cells: SmallCells, draws: int | None) -> np.ndarray:
    """Positions of the draws of each chain that are taken."""
    sizes = posterior["posterior"].sizes
    if draws is None:
        draws = min(sizes["draw"], max(LARGEST // (len(cells.y) * sizes["chain"]), 1))
    if not 1 <= draws <= sizes["draw"]:
        raise InputError(
            f"draws must be from 1 to {sizes['draw']}, those of a chain; it is {draws}"
        )
    return np.arange(draws) * sizes["draw"] // draws


def _of_posterior(
    table: FlowTable,
    cells: SmallCells,
    posterior: xr.DataTree,
    groups: Sequence[str],
    at: np.ndarray,
    seed: int,
) -> dict[str, xr.Dataset]:
    """Predictive counts and log-likelihoods, draw by draw."""
    sizes, rates = posterior["posterior"].sizes, rates_by_draw(posterior)
    shape = (sizes["chain"], len(at), len(cells.y))
    predicted = np.empty(shape, np.int16 if table.high < 2**15 else np.int64)
    log_likelihood = np.empty(shape if "log_likelihood" in groups else (0, 0, 0))
    y, rng = cells.y.astype(np.float64), generator(seed, "posterior predictive")
    for chain in range(sizes["chain"]):
        for place, draw in enumerate(at):
            log_rate, rungs = rates.at(cells, chain * sizes["draw"] + int(draw))
            if "posterior_predictive" in groups:
                uniform = rng.random(len(y))
                predicted[chain, place] = table.low + counts.draw(
                    log_rate, cells.group, rungs, uniform
                )
            if "log_likelihood" in groups:
                log_likelihood[chain, place] = counts.log_probabilities(
                    y, log_rate, cells.group, rungs
                )
    coords = {
        "chain": posterior["posterior"]["chain"].to_numpy(),
        "draw": posterior["posterior"]["draw"].to_numpy()[at],
        "cell": cells.cells,
    }
    return {
        f"/{name}": xr.Dataset({NAME: (("chain", "draw", "cell"), values)}, coords=coords)
        for name, values in (
            ("posterior_predictive", predicted),
            ("log_likelihood", log_likelihood),
        )
        if name in groups
    }


def _of_prior(
    table: FlowTable, cells: SmallCells, posterior: xr.DataTree, groups: Sequence[str], seed: int
) -> dict[str, xr.Dataset]:
    """Draws from the prior of the PyMC model, and counts given them."""
    model = model_of(cells, sampling_again(posterior, seed=seed, cores=1))
    words = seed_sequence(seed, "prior predictive").generate_state(1, np.uint32)
    names = [v.name for v in model.unobserved_RVs if v.name in RECORDED]
    drawn = pm.sample_prior_predictive(
        PRIOR_DRAWS, model=model, var_names=[*names, "y"], random_seed=int(words[0])
    )
    prior = drawn["prior"].to_dataset()
    prior = prior.rename({dim: name for dim, name in EFFECTS.items() if dim in prior.dims})
    if "value" in prior.coords:  # counts of the base measure, from 0 in the model
        prior = prior.assign_coords(value=prior["value"] + table.low)
    y = drawn["prior_predictive"].to_dataset()["y"].assign_coords(cell=cells.cells)
    found = {
        "/prior": prior,
        "/prior_predictive": (table.low + y).rename(NAME).to_dataset(),
    }
    return {name: group for name, group in found.items() if name[1:] in groups}
