"""The PyMC model of a table, to sample, change and inspect; and its traces as posteriors.

:func:`bayes_sdc.fit_flows` samples this model, with NUTS or with samplers that are tested against
it.
"""

from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.checkpoint import Part
from bayes_sdc.flows.fit.nuts import RECORDED, STATISTICS, model_of
from bayes_sdc.flows.fit.posterior import assemble
from bayes_sdc.flows.fit.settings import (
    Family,
    PriorName,
    attributes_of_fit,
    cells_to_fit,
    sampling_of,
)
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.table.cells import SmallCells
from bayes_sdc.flows.table.read import FlowTable

# : Dimensions of the model, and their names in a posterior.
EFFECTS = {"origin": "origin_effect", "destination": "destination_effect"}


@checked
def migration_model(
    table: FlowTable,
    *,
    family: Family = "default",
    prior: PriorName = "default",
    covariates: str = "default",
) -> pm.Model:
    """Build the PyMC model of the small cells of a table.

    It is the model that :func:`bayes_sdc.fit_flows` fits with the same arguments. Sample it with
    ``pm.sample``, draw it with ``pm.model_to_graphviz``, or add to it in a ``with`` block;
    :func:`bayes_sdc.as_posterior` turns a trace into a posterior.

    Parameters
    ----------
    table : FlowTable
        From :func:`bayes_sdc.read_flows`.
    family : {"default", "negative-binomial", "canonical", "poisson", "base"}
        Distribution of the counts; "base" without a rule of impossible counts.
    prior : {"default", "pooled", "weak", "paper"}
        Hyperpriors by name.
    covariates : {"default", "published", "none"}
        As for :func:`bayes_sdc.fit_flows`.

    Returns
    -------
    pymc.Model
        As :func:`bayes_sdc.models.migration.build` describes it: the observed ``y`` (cell,) are
        counts minus the smallest one that is protected, log rates are on that scale.

    Raises
    ------
    InputError
        If the table has no small cell, or an argument is unknown.

    See Also
    --------
    bayes_sdc.fit_flows, bayes_sdc.as_posterior, bayes_sdc.extend_posterior

    References
    ----------
    Hawala, Reiter and Wang, section 2.1, eq. (1) and (2).

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import migration_model, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> model = migration_model(table, prior="weak")
    >>> model["y"].eval().shape, sorted(v.name for v in model.free_RVs)[:2]
    ((3,), ['alpha', 'beta_raw'])
    """
    sampling = _settings(family, prior, covariates)
    return model_of(cells_to_fit(table, sampling), sampling)


@checked
def as_posterior(
    table: FlowTable,
    trace: xr.DataTree,
    *,
    family: Family = "default",
    prior: PriorName = "default",
    covariates: str = "default",
) -> xr.DataTree:
    """Turn a trace of the table's PyMC model into a posterior.

    :func:`bayes_sdc.synthesize`, :func:`bayes_sdc.intruder_risk` and the diagnostics take it like a
    posterior of :func:`bayes_sdc.fit_flows`. They read rates and dispersion from it and draw counts
    from the family, so they cannot take a model with another distribution of the counts.

    Parameters
    ----------
    table : FlowTable
        The table whose model was sampled.
    trace : xarray.DataTree
        What ``pm.sample`` returns in the model of :func:`bayes_sdc.migration_model`.
    family, prior, covariates
        As given to :func:`bayes_sdc.migration_model`.

    Returns
    -------
    xarray.DataTree
        As :func:`bayes_sdc.fit_flows` describes it; its sampler is called "pymc".

    Raises
    ------
    InputError
        If the trace lacks a variable of the model, or belongs to another table.

    See Also
    --------
    bayes_sdc.migration_model, bayes_sdc.synthesize

    References
    ----------
    Hawala, Reiter and Wang, section 2.1, eq. (1) and (2).

    Examples
    --------
    >>> import pandas as pd
    >>> import pymc as pm
    >>> from bayes_sdc import as_posterior, migration_model, read_flows, synthesize
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> with migration_model(table, prior="weak"):  # doctest: +SKIP
    ...     trace = pm.sample(random_seed=1)
    >>> posterior = as_posterior(table, trace, prior="weak")  # doctest: +SKIP
    >>> release = synthesize(table, posterior, seed=1)  # doctest: +SKIP
    """
    sampling = _settings(family, prior, covariates)
    cells = cells_to_fit(table, sampling)
    draws = _draws(trace, cells, sampling)
    sizes = draws.sizes
    sampling = sampling._replace(
        sampler="pymc",
        chains=sizes["chain"],
        draws=sizes["draw"],
        tune=int(trace["posterior"].attrs.get("tuning_steps", 0)),
    )
    statistics = trace["sample_stats"].to_dataset() if "sample_stats" in trace.children else {}
    part = Part(
        np.arange(len(cells.groups)),
        {name: draws[name].to_numpy() for name in RECORDED if name in draws},
        {name: statistics[name].to_numpy()[..., None] for name in STATISTICS if name in statistics},
    )
    return assemble(cells, [part], attributes_of_fit(table, cells, sampling, {}))


def _settings(family: str, prior: str, covariates: str) -> Sampling:
    """Settings of a fit, of which the model needs family, prior and covariates."""
    return sampling_of(
        family=family, prior=prior, sampler="nuts", draws=1, tune=None, chains=1, seed=0,
        cores=None, scheduler=None, covariates=covariates,
    )  # fmt: skip


def _draws(trace: xr.DataTree, cells: SmallCells, sampling: Sampling) -> xr.Dataset:
    """Draws of the trace with the names of a posterior; refuses those of another table or model."""
    for group in ("posterior", "constant_data"):
        if group not in trace.children:
            raise InputError(
                f"the trace has no group {group!r}; give what pm.sample returns for the model of "
                "migration_model"
            )
    given = trace["constant_data"].to_dataset()
    known: dict[str, Any] = {
        "y_data": cells.y, "origin_index": cells.origin, "destination_index": cells.destination,
        **({"x": cells.x} if cells.covariates else {}),
    }  # fmt: skip
    for name, values in known.items():
        if name not in given or not np.array_equal(given[name].to_numpy(), values):
            raise InputError(
                f"the trace was sampled from another table or with other covariates ({name} "
                "differs); give the table and the arguments of its migration_model"
            )
    draws = trace["posterior"].to_dataset()
    needed = ["alpha", "beta", "gamma", "mu_beta", "mu_gamma", "phi_beta", "phi_gamma"]
    needed += ["r"] if sampling.family != "poisson" else []
    needed += ["base", "base_sd"] if sampling.family == "base" else []
    needed += ["coefficient"] if cells.covariates else []
    needed += ["national_mean", "national_sd"] if "national_log_sd_sd" in sampling.prior else []
    for name in needed:
        if name not in draws:
            raise InputError(
                f"the trace lacks {name!r}, which the model with family {sampling.family!r} and "
                f"prior {sampling.prior_name!r} has; give the arguments of its migration_model"
            )
    if sampling.family == "poisson" and "r" in draws:
        raise InputError(
            "the trace has 'r', which the Poisson model does not have; give its family"
        )
    return draws.rename({dim: name for dim, name in EFFECTS.items() if dim in draws.dims})
