"""Posterior of the small counts, for one group or for all groups of a table."""

from collections.abc import Callable, Iterator
from pathlib import Path

import xarray as xr

from bayes_sdc.arguments import PathLike
from bayes_sdc.flows.fit.batches import batches, sample_part
from bayes_sdc.flows.fit.checkpoint import Checkpoint, Part, kept_call
from bayes_sdc.flows.fit.cluster import cluster_parts
from bayes_sdc.flows.fit.forecast import forecast
from bayes_sdc.flows.fit.posterior import assemble
from bayes_sdc.flows.fit.settings import attributes_of_fit, cells_to_fit
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.model.hyperpriors import is_pooled
from bayes_sdc.flows.table.cells import SmallCells, subset
from bayes_sdc.flows.table.published import published_covariates
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.progress import Progress
from bayes_sdc.seeds import seed_or_fresh

FIRST_FIT = "first-fit"  # in the folder of a fit to resume: the one that tells the weights


def seed_of_fit(seed: int | None, resume: PathLike | None) -> int:
    """Return the seed given, that of a fit to resume, or a fresh one."""
    if seed is None and resume is not None:
        seed = kept_seed(Path(resume))
    return seed_or_fresh(seed)


def kept_seed(folder: Path) -> int | None:
    """Return the seed of the fit that a folder holds, or of the one before it; None without any."""
    for place in (folder, folder / FIRST_FIT):
        if (place / "call.json").exists():
            return int(kept_call(place)["seed"])
    return None


def fit(table: FlowTable, sampling: Sampling, *, resume: Path | None = None) -> xr.DataTree:
    """Draw from the posterior with resolved settings; see :func:`bayes_sdc.fit_flows`."""
    covariates, cells = sampling.covariates, cells_to_fit(table, sampling)
    dropped = published_covariates(table).dropped if covariates == "published" else {}
    attributes = attributes_of_fit(table, cells, sampling, dropped)
    title = f"fitting {len(cells.groups)} groups ({sampling.sampler})"
    with Progress(len(cells.groups), title) as progress:
        progress.note(str(forecast(cells, sampling)))
        for name, why in dropped.items():
            progress.note(f"covariate {name} left out: {why}")
        store = Checkpoint(resume, attributes)
        make: Callable[..., Iterator[Part]] = _gibbs_parts
        if sampling.scheduler is not None:
            make = cluster_parts
        elif sampling.sampler == "nuts":
            make = _nuts_parts
        parts = list(store.finished())
        done = {int(group) for part in parts for group in part.groups}
        progress.advance(len(done), earlier=True)
        for part in make(cells, sampling, store, skip=done, progress=progress):
            store.save(part)
            parts.append(part)
    return assemble(cells, parts, attributes)


def _nuts_parts(
    cells: SmallCells, sampling: Sampling, store: Checkpoint, *, skip: set[int], progress: Progress
) -> Iterator[Part]:
    """Fit group by group, or all together where there are several and the prior pools them."""
    from bayes_sdc.flows.fit.nuts import sample_groups, sample_together

    if is_pooled(sampling.prior) and len(cells.groups) > 1:
        if not skip:
            yield sample_together(cells, sampling, announce=progress.note)
        return
    for part in sample_groups(cells, sampling, skip=skip, announce=progress.note):
        yield part
        progress.advance(1)


def _gibbs_parts(
    cells: SmallCells, sampling: Sampling, store: Checkpoint, *, skip: set[int], progress: Progress
) -> Iterator[Part]:
    """Fit batch by batch, with the engine or the reference sampler."""
    for groups in batches(cells, sampling):
        if int(groups[0]) not in skip:
            members = subset(cells, groups)
            yield sample_part(members, groups, sampling, store, progress)
