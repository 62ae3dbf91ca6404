"""The fit of a table, with all that can be asked of it: where fits and what they tell meet."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import xarray as xr

from bayes_sdc.arguments import PathLike, checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.fit import FIRST_FIT, fit, seed_of_fit
from bayes_sdc.flows.fit.settings import (
    Family,
    InferenceGroup,
    PriorName,
    Sampler,
    sampling_of,
    with_bound,
    with_rule,
)
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.intruder.weighting import GAIN_LIMIT, check_gain_limit, risk_weights
from bayes_sdc.flows.table.centres import Centres
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.flows.table.weights import Weights, weights_by_cell


@dataclass(frozen=True)
class Weighting:
    """What is asked about the weights of cells; see :func:`bayes_sdc.fit_flows`."""

    weights: Literal["risk"] | Weights | None = None
    gain_limit: float | None = None

    @property
    def by_risk(self) -> bool:
        """Whether a first fit tells the weights."""
        return isinstance(self.weights, str)


@checked
def fit_flows(
    table: FlowTable,
    *,
    family: Family = "default",
    prior: PriorName = "default",
    covariates: str = "default",
    epsilon: float | None = None,
    centres: Centres = "bundled",
    weights: Literal["risk"] | Weights | None = None,
    gain_limit: float | None = None,
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
    family : {"default", "negative-binomial", "canonical", "poisson", "base"}
        Distribution of the counts given the effects; see :mod:`bayes_sdc.models.migration`. The
        default is the negative binomial, and the paper's Poisson with ``prior="paper"``.
        "canonical" is the negative binomial with its canonical link: the relation of counts with
        areas is released as it is, but the largest small counts may be too common. "base", with
        the same link, also learns how common each count is in the whole table: for the shares of
        the counts, for surveys, and for rounded or adjusted counts; a check of the fit says what it
        would gain.
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
    weights : "risk", Series or sequence of float, optional
        From 0 to 1, by cell: each log-likelihood is multiplied by its weight, so that a cell tells
        less about itself. A Series is labelled as in ``table.cells``, and a cell that it does not
        name weighs 1; a sequence has their order. With ``"risk"`` the table is fitted, what a
        release tells about each cell is measured (:func:`bayes_sdc.risk_weights`), the weights of
        the cells above ``gain_limit`` are lowered, and the table is fitted again. What this
        promises is local and asymptotic (:mod:`bayes_sdc.flows.table.weights`): it is no epsilon,
        and it ends the guarantee of ``epsilon``.
    gain_limit : float, optional
        Bits above 0 that a data set may tell of a count, with ``weights="risk"``; 0.05 by default.
    impossible : sequence of int
        Small counts that a rule excludes, such as 1 and 2 where they were adjusted away; with
        family "base". The rule counts as public: no release has these counts, and the intruder
        knows it. A count that merely does not occur stays possible.
    sampler : {"gibbs", "nuts", "reference"}
        Metropolis within Gibbs with Newton proposals, all groups at once; nutpie's NUTS, group by
        group, or on one model of all groups where the prior pools them, which takes long for more
        than a few; or the paper's random-walk Metropolis within Gibbs, which mixes slowly. Every
        kept draw of the first and the last is the last of several sweeps. NUTS draws the same again
        on a machine that has compiled the model; code that was compiled just now can round
        differently, and so can other machines.
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
        input hash, versions; epsilon, centres and weights_from where there are any.

    Raises
    ------
    InputError
        If the table has no small cell, an argument is unknown or conflicts with another, a count
        said to be impossible occurs, the centres come from the table itself, a weight is not from 0
        to 1, or ``resume`` belongs to another run.

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
    if extend and weights is not None:
        raise InputError("extend: its groups are those of a model, which weights change; leave out")
    weighting, folder = Weighting(weights, gain_limit), None if resume is None else Path(resume)
    posterior = fit_weighted(table, sampling, weighting, resume=folder)
    if not extend:
        return posterior
    from bayes_sdc.flows.fit.inference_groups import extend_posterior  # imports PyMC

    return extend_posterior(table, posterior, extend, seed=sampling.seed)


def fit_weighted(
    table: FlowTable, sampling: Sampling, weighting: Weighting, *, resume: Path | None = None
) -> xr.DataTree:
    """Draw from the posterior or a pseudo-posterior with resolved settings; see `fit_flows`."""
    check_weighting(table, sampling, weighting)
    weights = weighting.weights
    limit = GAIN_LIMIT if weighting.gain_limit is None else weighting.gain_limit
    if weights is None:
        return fit(table, sampling, resume=resume)
    if isinstance(weights, str):
        first = fit(table, sampling, resume=None if resume is None else resume / FIRST_FIT)
        found = risk_weights(table, first, limit=limit, seed=sampling.seed, cores=sampling.cores)
        sampling = sampling._replace(
            weight=weights_by_cell(table, found), gain_limit=limit,
            weights_from=f"risk, gains above {limit:g} bits",
        )  # fmt: skip
    else:
        sampling = sampling._replace(weight=weights_by_cell(table, weights), weights_from="given")
    return fit(table, sampling, resume=resume)


def check_weighting(table: FlowTable, sampling: Sampling, weighting: Weighting) -> None:
    """Refuse weights that cannot be, before any work."""
    weights = weighting.weights
    if weighting.gain_limit is not None:
        if not isinstance(weights, str):
            raise InputError('gain_limit belongs to weights="risk": give both of them, or neither')
        check_gain_limit(weighting.gain_limit)
    if weights is None:
        return
    if sampling.family == "base":
        raise InputError('weights: are not worked out for family "base"; leave one of the two out')
    if not isinstance(weights, str):
        weights_by_cell(table, weights)
    elif weights != "risk":
        raise InputError(
            f'weights: {weights!r} is unknown; choose "risk", or give a number for each cell'
        )
