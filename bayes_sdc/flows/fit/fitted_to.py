"""Whether a posterior belongs to a table: checked before the two are used together."""

import numpy as np
import xarray as xr

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.cells import fitted_cells
from bayes_sdc.flows.table.read import FlowTable


def check_posterior(table: FlowTable, posterior: xr.DataTree) -> None:
    """Refuse a posterior that was fitted to another table, or is incomplete."""
    attributes = posterior.attrs
    if "interrupted" in attributes:
        raise InputError(
            f"the posterior is that of an interrupted fit ({attributes['interrupted']}); "
            "let the fit finish"
        )
    if "input_sha256" not in attributes:
        raise InputError(
            "this is not a posterior of fit_flows; as_posterior(table, trace) turns a trace of "
            "pm.sample, made in the model of migration_model, into one"
        )
    expected = {"input_sha256": table.sha256, "low": table.low, "high": table.high}
    for name, value in expected.items():
        if attributes.get(name) != value:
            # not the hashes: anyone who has one finds the last unknown count by trying nine
            raise InputError(
                f"the posterior was fitted to another table (its {name} differs); "
                "fit this table first"
            )
    cells = fitted_cells(table, posterior)
    fitted = posterior["constant_data"].to_dataset()
    for name, labels in {
        "cell": cells.cells,
        "group": cells.groups,
        "origin_effect": cells.origin_effects,
        "destination_effect": cells.destination_effects,
        "covariate": cells.covariates,
        "group_covariate": cells.group_covariates,
    }.items():
        if (list(fitted[name].to_numpy()) if name in fitted.coords else []) != labels:
            raise InputError(
                f"the posterior was fitted to other groups or cells of this table ({name}); "
                "read the table with the same columns as for the fit"
            )
    known = {"x": cells.x, "z": cells.z}
    if any(
        values.size and not np.array_equal(fitted[name], values) for name, values in known.items()
    ):
        raise InputError(
            "the posterior was fitted with other values of the covariates; fit this table first"
        )
