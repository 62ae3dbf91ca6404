"""NUTS for many groups: the model is compiled once per shape, not once per group.

With the pooled prior several groups are one model, sampled as a whole.

Compiling takes seconds and sampling a small group a fraction of one, so groups are sorted into
buckets of similar size and padded to the bucket's shape. Padding is exact: an extra cell has the
log rate lowered by :data:`EMPTY`, so that its count 0 has a probability that does not depend on the
parameters (one, or less with a bound), and an extra effect touches no count and keeps its standard
normal prior.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import bayes_sdc.models.migration as migration
from bayes_sdc.flows.fit.checkpoint import Part
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.table.bound import Bound
from bayes_sdc.flows.table.cells import Indices, SmallCells, subset
from bayes_sdc.nuts import sample_nuts
from bayes_sdc.seeds import seed_sequence

EMPTY = -1e6  # a rate of 0 in double precision, whatever the effects add
KEPT = 8  # compiled models, of about 10 MiB each
COMPILATION = 2_500  # what a compilation costs, in cells that could be sampled meanwhile (measured)
LOW_RANK_FROM = 30  # cells; below it estimating the correlations costs more than it gains
# The likelihood ties the level to the means of the effects, which a diagonal mass matrix cannot
# follow. With nutpie's own regularisation (1e-5) the idle effects of the padding enter the low-rank
# part and make it five times as slow (measured: 598 cells, 68 effects padded to 134).
LOW_RANK = {
    "adaptation": "low_rank",
    "mass_matrix_eigval_cutoff": 3.0,
    "mass_matrix_gamma": 1e-3,
}
CAREFUL_BELOW = 200  # cells; with fewer, a scale may be near zero and large steps diverge
RECORDED = [
    "alpha", "delta", "mu_beta", "mu_gamma", "phi_beta", "phi_gamma", "beta", "gamma", "r",
    "coefficient", "national_mean", "national_sd", "national_slope", "base", "base_sd",
]  # fmt: skip
STATISTICS = ["diverging", "energy", "step_size", "n_steps", "energy_error"]


class Bucket(NamedTuple):
    """Groups that share one compiled model."""

    cells: int
    origins: int
    destinations: int
    groups: Indices


def shape_buckets(cells: SmallCells) -> list[Bucket]:
    """Sort groups into the buckets that take the least time together.

    A bucket costs one compilation, and each of its groups costs what its largest one does. With
    the groups sorted by size, the best cuts follow by dynamic programming.
    """
    n_groups = len(cells.groups)
    n_cells = np.bincount(cells.group, minlength=n_groups)
    n_origins = np.bincount(cells.group_of_origin, minlength=n_groups)
    n_destinations = np.bincount(cells.group_of_destination, minlength=n_groups)
    sizes, how_many = np.unique(n_cells, return_counts=True)
    before = np.concatenate([[0], np.cumsum(how_many)])
    best, cut = np.zeros(len(sizes) + 1), np.zeros(len(sizes) + 1, np.int64)
    for end in range(1, len(sizes) + 1):
        cost = best[:end] + COMPILATION + (before[end] - before[:end]) * sizes[end - 1]
        cut[end] = np.argmin(cost)
        best[end] = cost[cut[end]]
    buckets: list[Bucket] = []
    end = len(sizes)
    while end > 0:
        low, high = sizes[cut[end]], sizes[end - 1]
        groups = np.flatnonzero((n_cells >= low) & (n_cells <= high))
        buckets.insert(
            0,
            Bucket(
                int(high), int(n_origins[groups].max()), int(n_destinations[groups].max()), groups
            ),
        )
        end = int(cut[end])
    return buckets


def sample_groups(
    cells: SmallCells,
    sampling: Sampling,
    *,
    skip: set[int],
    announce: Callable[[str], None],
) -> Iterator[Part]:
    """Fit the groups one after another, the chains of a group side by side.

    Parameters
    ----------
    cells : SmallCells
        All small cells.
    sampling : Sampling
        Family, prior, numbers of draws, seed.
    skip : set of int
        Groups that are done already.
    announce : callable
        Called with a line of text before each bucket.

    Yields
    ------
    Part
        One for each group, in bucket order.
    """
    for bucket in shape_buckets(cells):
        todo = [int(group) for group in bucket.groups if int(group) not in skip]
        if not todo:
            continue
        announce(f"one compiled model for groups of up to {bucket.cells} cells")
        compiled = _compiled(
            bucket.cells,
            bucket.origins,
            bucket.destinations,
            cells.upper,
            sampling.family,
            tuple(sorted(sampling.prior.items())),
            tuple(cells.covariates),
            sampling.bound,
            sampling.impossible,
            cells.weight is not None,
        )
        for group in todo:
            members = subset(cells, np.array([group]))
            posterior, statistics = _sample(
                compiled.with_data(**_pad(members, bucket)),
                sampling,
                label=cells.groups[group],
                cells=len(members.y),
            )
            posterior["beta"] = posterior["beta"][..., : len(members.origin_effects)]
            posterior["gamma"] = posterior["gamma"][..., : len(members.destination_effects)]
            yield Part(np.array([group]), posterior, statistics)


@lru_cache(maxsize=KEPT)
def _compiled(
    cells: int,
    origins: int,
    destinations: int,
    upper: int,
    family: str,
    prior: tuple[tuple[str, float], ...],
    covariates: tuple[str, ...],
    bound: Bound | None,
    impossible: tuple[int, ...],
    weighted: bool,
) -> Any:
    """Compile the model of a shape once, for any data of that shape."""
    import nutpie

    nothing = np.zeros(cells, np.int64)
    model = migration.build(
        nothing,
        nothing,
        nothing,
        upper=upper,
        origins=[str(i) for i in range(origins)],
        destinations=[str(j) for j in range(destinations)],
        family=family,
        prior=dict(prior),
        covariates=np.zeros((cells, len(covariates))),
        covariate_names=covariates,
        impossible=impossible,
        weights=np.ones(cells) if weighted else None,
        **_of_bound(bound),
    )
    return nutpie.compile_pymc_model(model, var_names=_variables(model))


def sample_together(
    cells: SmallCells, sampling: Sampling, *, announce: Callable[[str], None]
) -> Part:
    """Fit all groups as one model, as the pooled prior needs.

    Parameters
    ----------
    cells, sampling, announce
        As for :func:`sample_groups`.

    Returns
    -------
    Part
        All groups.
    """
    import nutpie

    announce(f"compiling one model of {len(cells.groups)} groups and {len(cells.y)} cells")
    model = model_of(cells, sampling)
    compiled = nutpie.compile_pymc_model(model, var_names=_variables(model))
    posterior, statistics = _sample(compiled, sampling, label="all groups", cells=len(cells.y))
    return Part(np.arange(len(cells.groups)), posterior, statistics)


def _of_bound(bound: Bound | None) -> dict[str, Any]:
    """Arguments of the model's builder."""
    return {} if bound is None else bound._asdict()


def model_of(cells: SmallCells, sampling: Sampling) -> Any:
    """Build the PyMC model of all groups together."""
    return migration.build(
        cells.y,
        cells.origin,
        cells.destination,
        upper=cells.upper,
        origins=cells.origin_effects,
        destinations=cells.destination_effects,
        groups=cells.groups,
        group_of_origin=cells.group_of_origin,
        group_of_destination=cells.group_of_destination,
        family=sampling.family,
        prior=sampling.prior,
        covariates=cells.x,
        covariate_names=cells.covariates,
        group_covariates=cells.z,
        group_covariate_names=cells.group_covariates,
        impossible=sampling.impossible,
        weights=cells.weight,
        **_of_bound(sampling.bound),
    )


def _variables(model: Any) -> list[str]:
    """Recorded variables that this model has."""
    return [v.name for v in model.unobserved_RVs if v.name in RECORDED]


def _sample(
    compiled: Any, sampling: Sampling, *, label: str, cells: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Draws and statistics of one compiled model; the latter with a last axis for the group."""
    words = seed_sequence(sampling.seed, "nuts", label).generate_state(1, np.uint64)
    trace = sample_nuts(
        compiled,
        draws=sampling.draws,
        tune=sampling.tune,
        chains=sampling.chains,
        cores=sampling.cores,
        seed=int(words[0] >> 1),
        target_accept=0.95 if cells < CAREFUL_BELOW else 0.8,
        **(LOW_RANK if cells >= LOW_RANK_FROM else {"adaptation": "diag"}),
    )
    posterior = {
        # nutpie also gives the raw coordinates
        name: np.asarray(trace["posterior"][name].to_numpy())
        for name in RECORDED
        if name in trace["posterior"]
    }
    statistics = {
        name: np.asarray(trace["sample_stats"][name].to_numpy())[..., None] for name in STATISTICS
    }
    return posterior, statistics


def _pad(members: SmallCells, bucket: Bucket) -> dict[str, np.ndarray]:
    """Data of one group in the shape of its bucket."""
    missing = bucket.cells - len(members.y)

    def longer(values: np.ndarray, fill: float = 0) -> np.ndarray:
        rows = [(0, missing), *[(0, 0)] * (values.ndim - 1)]
        return np.pad(values, rows, constant_values=fill)

    counts_origin = np.bincount(members.origin, minlength=bucket.origins)
    counts_destination = np.bincount(members.destination, minlength=bucket.destinations)
    padded = {
        "y_data": longer(members.y),
        "origin_index": longer(members.origin),
        "destination_index": longer(members.destination),
        "offset": longer(np.zeros(len(members.y)), EMPTY),
        "origin_centering": migration.centering(counts_origin),
        "destination_centering": migration.centering(counts_destination),
    }
    if members.weight is not None:
        padded["weight"] = longer(members.weight)
    return padded | ({"x": longer(members.x)} if members.covariates else {})
