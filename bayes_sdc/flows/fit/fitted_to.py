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
    _check_draws(posterior)
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


def _check_draws(posterior: xr.DataTree) -> None:
    """Refuse draws that were cut down to none, turned, or replaced by what is no number."""
    if "posterior" not in posterior.children or "constant_data" not in posterior.children:
        raise InputError("the posterior lacks the group posterior or constant_data of fit_flows")
    drawn, fitted = (posterior[group].to_dataset() for group in ("posterior", "constant_data"))
    if lacking := [name for name in ("alpha", "beta", "gamma") if name not in drawn]:
        raise InputError(f"the posterior lacks {', '.join(lacking)}; keep all that fit_flows gave")
    for label in ("group", "origin_effect", "destination_effect"):
        known = [list(each[label].to_numpy()) for each in (drawn, fitted) if label in each.coords]
        if len(known) == 2 and known[0] != known[1]:
            raise InputError(
                f"the labels of {label} in the draws are not those of the fit, or in another order"
            )
    for name, values in drawn.data_vars.items():
        if values.dims[:2] != ("chain", "draw"):
            raise InputError(
                f"{name!r} of the posterior has the dimensions {values.dims}; they must begin with "
                "chain and draw, which a selection keeps if it is a list, as in isel(chain=[0])"
            )
        if 0 in values.shape[:2]:
            raise InputError("the posterior holds no draws")
        if values.dtype.kind not in "fiub" or not np.isfinite(
            float(values.sum(skipna=False, dtype=np.float64))
        ):
            raise InputError(f"{name!r} of the posterior holds values that are no numbers")
