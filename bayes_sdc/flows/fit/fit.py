"""Posterior of the small counts, for one group or for all groups of a table."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import xarray as xr

from bayes_sdc.arguments import PathLike, checked
from bayes_sdc.flows.fit.batches import batches, sample_part
from bayes_sdc.flows.fit.checkpoint import Checkpoint, Part, kept_call
from bayes_sdc.flows.fit.cluster import cluster_parts
from bayes_sdc.flows.fit.forecast import forecast
from bayes_sdc.flows.fit.posterior import assemble
from bayes_sdc.flows.fit.settings import (
    Family,
    InferenceGroup,
    PriorName,
    Sampler,
    attributes_of_fit,
    cells_to_fit,
    sampling_of,
    with_bound,
    with_rule,
)
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.model.hyperpriors import is_pooled
from bayes_sdc.flows.table.cells import SmallCells, subset
from bayes_sdc.flows.table.centres import Centres
from bayes_sdc.flows.table.published import published_covariates
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.progress import Progress
from bayes_sdc.seeds import seed_or_fresh


@checked
def fit_flows(
    table: FlowTable,
    *,
    family: Family = "default",
    prior: PriorName = "default",
    covariates: str = "default",
    epsilon: float | None = None,
    centres: Centres = "bundled",
    impossible: Sequence[int] = (),
    sampler: Sampler = "gibbs",
    draws: int = 1000,
    tune: int | None = None,
    chains: int = 4,
    seed: int | None = None,
    cores: int | None = None,
    resume: PathLike | None = None,
    scheduler: str | None = None,
    extend: Sequence[InferenceGroup] = (),
) -> xr.DataTree:
    """Draw from the posterior of the truncated count model.

    Parameters
    ----------
    table : FlowTable
        The table with its small cells.
    family : {"default", "negative-binomial", "poisson", "base"}
        Distribution of the counts given the effects; see :mod:`bayes_sdc.models.migration`. The
        default is the negative binomial, and the paper's Poisson with ``prior="paper"``. "base"
        also learns which counts are heaped or rare in the whole table, for survey counts and for
        rounded or adjusted counts; a check of the fit says what it would gain.
    prior : {"default", "pooled", "weak", "paper"}
        Hyperprior; see :data:`bayes_sdc.models.migration.PRIORS`. With the default, the pooled one,
        the groups share a national distribution; with the others each group stands alone.
    covariates : {"default", "published", "none"}
        Whether the log rate depends on what the published part of the table shows about areas and
        groups, besides the covariates of ``table``:
        :func:`bayes_sdc.flows.table.published.published_covariates`. The default is "published"
        with the pooled prior, and "none" with the others, whose groups would have to learn every
        coefficient alone. Properties of groups enter with the pooled prior only.
    epsilon : float, optional
        Bound of what one person can change, 0.01 or more: one person more or less in a small cell
        changes the probability of whatever is made from one posterior draw by a factor of at most
        exp(epsilon). By default nothing is bounded. See :mod:`bayes_sdc.flows.model.bounded`, and
        :func:`bayes_sdc.guarantee` for what it adds up to and what ends it.
    centres : {"bundled"}, path or sequence of float
        Centres of the bounds, with ``epsilon``: shares of the counts from ``table.low`` to
        ``table.high`` that do not come from this table. ``"bundled"``: averaged over public tables
        (:data:`bayes_sdc.flows.table.centres.BUNDLED`); the file of another table with the same
        columns, such as that of another year; or the shares themselves. They count as public.
    impossible : sequence of int
        Small counts that a rule excludes, such as 1 and 2 where they were adjusted away; with
        family "base". The rule counts as public: no release has these counts, and the intruder
        knows it. A count that merely does not occur stays possible.
    sampler : {"gibbs", "nuts", "reference"}
        Metropolis within Gibbs with Newton proposals, all groups at once; nutpie's NUTS, group by
        group, or on one model of all groups where the prior pools them, which takes long for more
        than a few; or the paper's random-walk Metropolis within Gibbs, which mixes slowly. Every
        kept draw of the first and the last is the last of several sweeps.
    draws : int
        Kept draws of each chain.
    tune : int, optional
        Warm-up draws of each chain; by default 500 for NUTS and 1,000 for the others.
    chains : int
        Number of chains; four or more for R-hat to be worth reading.
    seed : int, optional
        The same seed gives the same draws, for any ``cores`` and any order of the table's rows. By
        default a fresh one of 128 bits, or that of the fit that ``resume`` holds; it is among the
        attributes.
    cores : int, optional
        Threads; by default as many as the machine has.
    resume : path, optional
        Folder that keeps the draws of an interrupted run; a later call with the same arguments
        continues from there. The Gibbs samplers lose at most the last twenty seconds, on a cluster
        the unfinished chains; NUTS loses the group at work. It holds confidential draws.
    scheduler : str, optional
        Address of a dask.distributed scheduler (``tcp://host:8786``; extra ``cluster``), on whose
        workers the chains are run; not with NUTS. The draws are those of one machine. The counts
        and the draws travel to the workers and back.
    extend : sequence of {"prior", "prior_predictive", "posterior_predictive", "log_likelihood"}
        Groups that :func:`bayes_sdc.extend_posterior` adds with its defaults.

    Returns
    -------
    xarray.DataTree
        ``posterior`` with mu_beta, mu_gamma, alpha, delta, phi_beta, phi_gamma (chain, draw,
        group), beta (chain, draw, origin_effect) and gamma (chain, draw, destination_effect), log
        rates, r (chain, draw, group) unless the family is Poisson, coefficient (chain, draw, group,
        covariate), base (chain, draw, value), the log of the base measure, and base_sd (chain,
        draw) with family "base", and national_mean and national_sd (chain, draw, parameter) and
        national_slope (chain, draw, group_covariate) for the pooled prior; ``sample_stats``;
        ``observed_data`` and ``constant_data`` by cell. Labels of effects are ``group|area``.
        Attributes: model, family, prior, covariates, dropped covariates, sampler, seed, bounds,
        input hash, versions; epsilon and centres where there are any.

    Raises
    ------
    InputError
        If the table has no small cell, an argument is unknown or conflicts with another, a count
        said to be impossible occurs, the centres come from the table itself, or ``resume`` belongs
        to another run.

    See Also
    --------
    bayes_sdc.read_flows, bayes_sdc.synthesize, bayes_sdc.posterior_so_far, bayes_sdc.protect_flows

    References
    ----------
    Hawala, Reiter and Wang, section 2.1.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, sampler="gibbs", draws=10, tune=10, chains=2, seed=1)
    >>> dict(posterior["posterior"]["beta"].sizes)
    {'chain': 2, 'draw': 10, 'origin_effect': 2}
    """
    sampling = sampling_of(
        family=family, prior=prior, sampler=sampler, draws=draws, tune=tune, chains=chains,
        seed=seed_of_fit(seed, resume), cores=cores, scheduler=scheduler, covariates=covariates,
    )  # fmt: skip
    sampling = with_rule(with_bound(sampling, table, epsilon, centres), table, impossible)
    posterior = fit(table, sampling, resume=None if resume is None else Path(resume))
    if not extend:
        return posterior
    from bayes_sdc.flows.fit.inference_groups import extend_posterior  # imports PyMC

    return extend_posterior(table, posterior, extend, seed=sampling.seed)


def seed_of_fit(seed: int | None, resume: PathLike | None) -> int:
    """Return the seed given, that of a fit to resume, or a fresh one."""
    if seed is None and resume is not None and (Path(resume) / "call.json").exists():
        return int(kept_call(Path(resume))["seed"])
    return seed_or_fresh(seed)


def fit(table: FlowTable, sampling: Sampling, *, resume: Path | None = None) -> xr.DataTree:
    """Draw from the posterior with resolved settings; see :func:`fit_flows`."""
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
