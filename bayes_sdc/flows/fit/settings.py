"""The settings of a fit: their names and defaults, resolved, and kept with the posterior."""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
import xarray as xr

from bayes_sdc.cores import threads
from bayes_sdc.errors import InputError
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.model.hyperpriors import is_pooled
from bayes_sdc.flows.table.bound import attributes_of, bound_of
from bayes_sdc.flows.table.cells import (
    CANONICAL,
    SmallCells,
    identity,
    impossible_of,
    small_cells,
    weights_of,
)
from bayes_sdc.flows.table.centres import Centres, resolve_bound
from bayes_sdc.flows.table.published import COVARIATES
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.seeds import seed_sequence

# draws of warm-up by sampler: NUTS mixes after 500 as well as after 1,000, in two thirds of the
# time (measured: one group of 390 cells, and 36 groups of 1 to 108)
WARM_UP = {"nuts": 500, "gibbs": 1000, "reference": 1000}
SAMPLERS = tuple(WARM_UP)

Family = Literal["default", "negative-binomial", "canonical", "poisson", "base"]
PriorName = Literal["default", "pooled", "weak", "paper"]
Sampler = Literal["gibbs", "nuts", "reference"]
InferenceGroup = Literal["prior", "prior_predictive", "posterior_predictive", "log_likelihood"]

VERSIONED = ("bayes-sdc", "pymc", "nutpie", "numba", "numpy", "xarray")


def sampling_of(
    *,
    family: str,
    prior: str,
    sampler: str,
    draws: int,
    tune: int | None,
    chains: int,
    seed: int,
    cores: int | None,
    scheduler: str | None,
    covariates: str = "default",
) -> Sampling:
    """Resolve the names and defaults of a fit; refuse unusable ones before any work."""
    import bayes_sdc.models.migration as migration

    if sampler not in SAMPLERS:
        raise InputError(f"sampler {sampler!r} is unknown; choose from {list(SAMPLERS)}")
    tune = WARM_UP[sampler] if tune is None else tune
    for name, value in {"draws": draws, "tune": tune, "chains": chains}.items():
        if value < 1:
            raise InputError(f"{name} must be at least 1; it is {value}")
    try:
        family = migration.resolve_family(family, prior)
        settings = migration.resolve_prior(prior, family)
    except ValueError as error:
        raise InputError(str(error)) from None
    if covariates not in ("default", *COVARIATES):
        raise InputError(
            f"covariates {covariates!r} is unknown; choose from {['default', *COVARIATES]}"
        )
    if family == "base" and not is_pooled(settings):
        raise InputError(
            f"family 'base' has a measure that all groups share, and prior {prior!r} lets each "
            "stand alone; choose the pooled prior"
        )
    if covariates == "default":
        covariates = "published" if is_pooled(settings) else "none"
    if scheduler is not None and sampler == "nuts":
        raise InputError("scheduler: runs the Gibbs samplers; choose sampler 'gibbs'")
    seed_sequence(seed)  # refuses an invalid seed
    return Sampling(
        family, settings, draws, tune, chains, seed, threads(cores), sampler, scheduler,
        prior_name=migration.DEFAULT_PRIOR if prior == "default" else prior,
        covariates=covariates,
    )  # fmt: skip


def with_bound(
    sampling: Sampling, table: FlowTable, epsilon: float | None, centres: Centres
) -> Sampling:
    """Add the bound asked for; refuse an impossible one."""
    bound, words = resolve_bound(table, epsilon, centres)
    if sampling.family == "canonical" and bound is not None:
        raise InputError(
            "epsilon: the steps of family 'canonical' are not bounded; leave one of the two out"
        )
    return sampling._replace(bound=bound, centres_from=words)


def with_rule(sampling: Sampling, table: FlowTable, impossible: Sequence[int]) -> Sampling:
    """Add the counts that a rule excludes; refuse those that occur, and impossible models."""
    rule = sorted(set(impossible))
    if sampling.family != "base":
        if rule:
            raise InputError(
                f"impossible: counts are excluded with family 'base' only; it is "
                f"{sampling.family!r}"
            )
        return sampling
    if sampling.bound is not None:
        raise InputError(
            "epsilon: the measure of family 'base' is learned without a bound; leave one of the "
            "two out"
        )
    outside = [count for count in rule if not table.low <= count <= table.high]
    if outside:
        raise InputError(
            f"impossible: {outside[0]} is not a small count; they are {table.low} to {table.high}"
        )
    if table.high - table.low + 1 - len(rule) < 3:
        raise InputError(
            f"family 'base' needs at least three possible small counts; of {table.low} to "
            f"{table.high} there are {table.high - table.low + 1 - len(rule)}"
        )
    count = table.frame[table.count]
    found = np.flatnonzero(count.isin(rule).to_numpy())
    if len(found):
        row = found[0]
        raise InputError(
            f"{table.source}: row {row + 1}, column {table.count!r}: the count "
            f"{count.iloc[row]} is said to be impossible, and occurs in {len(found):,} rows; leave "
            "it out of the rule, or correct the rows"
        )
    return sampling._replace(impossible=tuple(value - table.low for value in rule))


def sampling_again(posterior: xr.DataTree, *, seed: int, cores: int | None) -> Sampling:
    """Settings of the fit that made a posterior, on this machine and with another seed."""
    made = posterior.attrs
    return Sampling(
        str(made["family"]), json.loads(made["prior_settings"]), int(made["draws"]),
        int(made["tune"]), int(made["chains"]), seed, threads(cores), str(made["sampler"]),
        prior_name=made["prior"], covariates=str(made.get("covariates", "none")),
        bound=bound_of(made), centres_from=str(made.get("centres_from", "")),
        impossible=impossible_of(made),
        weight=weights_of(posterior), weights_from=str(made.get("weights_from", "")),
        gain_limit=made.get("gain_limit"),
    )  # fmt: skip


def cells_to_fit(table: FlowTable, sampling: Sampling) -> SmallCells:
    """Return the small cells with what a model knows about them; refuse a table without any."""
    cells = small_cells(
        table, covariates=sampling.covariates, bound=sampling.bound,
        impossible=sampling.impossible, weight=sampling.weight,
        canonical=sampling.family in CANONICAL,
    )  # fmt: skip
    if not cells.cells:
        raise InputError(f"{table.source}: no small cells between {table.low} and {table.high}")
    return cells


def attributes_of_fit(
    table: FlowTable, cells: SmallCells, sampling: Sampling, dropped: Mapping[str, str]
) -> dict[str, Any]:
    """Describe a fit: what later steps need, and what a reader would ask."""
    # PyMC takes seconds to import; a plain import of the package does not pay for it
    import bayes_sdc.models.migration as migration

    return {
        "model": migration.NAME,
        "model_version": migration.VERSION,
        "family": sampling.family,
        "prior": sampling.prior_name,
        "prior_settings": json.dumps(sampling.prior, sort_keys=True),
        "covariates": sampling.covariates,
        "covariates_dropped": json.dumps(dropped, sort_keys=True),
        **attributes_of(sampling.bound),
        **({} if sampling.bound is None else {"centres_from": sampling.centres_from}),
        **(
            {"impossible": json.dumps([table.low + y for y in sampling.impossible])}
            if sampling.impossible
            else {}
        ),
        **({} if sampling.weight is None else {"weights_from": sampling.weights_from}),
        **({} if sampling.gain_limit is None else {"gain_limit": sampling.gain_limit}),
        "sampler": sampling.sampler,
        # netCDF has no whole numbers of more than 64 bits
        "seed": sampling.seed if sampling.seed < 2**63 else str(sampling.seed),
        "draws": sampling.draws,
        "tune": sampling.tune,
        "chains": sampling.chains,
        "input": table.source,
        **identity(table, cells),
        "versions": json.dumps({p: version(p) for p in VERSIONED}, sort_keys=True),
    }
