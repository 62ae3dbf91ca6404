"""Posterior of the small counts, for one group or for all groups of a table."""

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from bayes_sdc.errors import InputError
from bayes_sdc.flows import gibbs
from bayes_sdc.flows.checkpoint import Checkpoint, Part
from bayes_sdc.flows.layout import Layout, layout, subset
from bayes_sdc.flows.table import FlowTable
from bayes_sdc.progress import Progress
from bayes_sdc.seeds import seed_sequence

SAMPLERS = ("nuts", "gibbs")
GIBBS_BATCH = 20_000  # cells, about, that advance together: what an interruption can cost


VERSIONED = ("bayes-sdc", "pymc", "nutpie", "numba", "numpy", "xarray")


class Sampling(NamedTuple):
    """What is drawn from, and how."""

    family: str
    prior: Mapping[str, float]
    draws: int
    tune: int
    chains: int
    seed: int
    cores: int


def fit_flows(
    table: FlowTable,
    *,
    family: str = "default",
    prior: str = "default",
    sampler: str = "nuts",
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    seed: int,
    cores: int | None = None,
    resume: Path | None = None,
) -> xr.DataTree:
    """Draw from the posterior of the truncated count model, one model a group.

    Parameters
    ----------
    table : FlowTable
        The table with its small cells.
    family : {"default", "poisson", "negative-binomial"}
        Distribution of the counts given the effects; see :mod:`bayes_sdc.models.migration`.
    prior : {"default", "weak", "paper"}
        Hyperprior; see :data:`bayes_sdc.models.migration.PRIORS`. The default is the weak one.
    sampler : {"nuts", "gibbs"}
        nutpie's NUTS, or the reference Metropolis within Gibbs, where every kept draw is the last
        of five sweeps.
    draws, tune : int
        Kept draws and warm-up draws of each chain.
    chains : int
        Number of chains; four or more for R-hat to be worth reading.
    seed : int
        Same seed, same draws: for any ``cores`` and any order of the table's rows.
    cores : int, optional
        Threads; by default as many as the machine has.
    resume : Path, optional
        Folder that keeps the finished groups of an interrupted run; a later call with the same
        arguments goes on from there. It holds confidential draws.

    Returns
    -------
    xarray.DataTree
        ``posterior`` with mu_beta, mu_gamma, alpha, delta, phi_beta, phi_gamma (chain, draw,
        group), beta (chain, draw, origin_effect) and gamma (chain, draw, destination_effect),
        log rates, and r (chain, draw, group) for the negative binomial; ``sample_stats``;
        ``observed_data`` and ``constant_data`` by cell. Labels of effects are ``group|area``.
        Attributes: model, family, prior, sampler, seed, bounds, input hash, versions.

    Raises
    ------
    InputError
        If the table has no small cell, an argument is unknown, or ``resume`` belongs to another
        run.

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
    # PyMC takes seconds to import; a plain import of the package does not pay for it
    import bayes_sdc.models.migration as migration

    if sampler not in SAMPLERS:
        raise InputError(f"sampler {sampler!r} is unknown; choose from {list(SAMPLERS)}")
    for name, value in {"draws": draws, "tune": tune, "chains": chains}.items():
        if value < 1:
            raise InputError(f"{name} must be at least 1; it is {value}")
    try:
        family = migration.resolve_family(family)
        settings = migration.resolve_prior(prior)
    except ValueError as error:
        raise InputError(str(error)) from None
    seed_sequence(seed)  # refuses a seed that is none
    cells = layout(table)
    if not cells.cells:
        raise InputError(f"{table.source}: no small cells between {table.low} and {table.high}")
    attributes = {
        "model": migration.NAME,
        "model_version": migration.VERSION,
        "family": family,
        "prior": migration.DEFAULT_PRIOR if prior == "default" else prior,
        "prior_settings": json.dumps(settings, sort_keys=True),
        "sampler": sampler,
        # netCDF has no whole numbers of more than 64 bits
        "seed": seed if seed < 2**63 else str(seed),
        "draws": draws,
        "tune": tune,
        "chains": chains,
        "low": table.low,
        "high": table.high,
        "input": table.source,
        "input_sha256": table.sha256,
        **_call(table, cells),
        "versions": json.dumps({p: version(p) for p in VERSIONED}, sort_keys=True),
    }
    cores = cores or os.cpu_count() or 1
    with Progress(len(cells.groups), f"fitting {len(cells.groups)} groups ({sampler})") as progress:
        store = Checkpoint(resume, attributes)
        make = _nuts_parts if sampler == "nuts" else _gibbs_parts
        parts = list(store.finished())
        done = {int(group) for part in parts for group in part.groups}
        progress.advance(len(done))
        sampling = Sampling(family, settings, draws, tune, chains, seed, cores)
        for part in make(cells, sampling, skip=done, progress=progress):
            store.save(part)
            parts.append(part)
    return _assemble(cells, parts, attributes)


def _call(table: FlowTable, cells: Layout) -> dict[str, str]:
    """What ties a posterior to the columns, groups and cells it was fitted to."""
    columns = [table.origin, table.destination, table.count, *table.groups]
    labels = [*cells.cells, *cells.groups, *cells.origin_effects, *cells.destination_effects]
    digest = hashlib.sha256("\x1f".join(labels).encode())
    for indices in (cells.y, cells.group, cells.origin, cells.destination):
        digest.update(indices.tobytes())
    return {"columns": json.dumps(columns), "cells_sha256": digest.hexdigest()}


def _nuts_parts(
    cells: Layout, sampling: Sampling, *, skip: set[int], progress: Progress
) -> Iterator[Part]:
    """Fit group by group."""
    from bayes_sdc.flows.nuts import sample_groups

    def seed_of(label: str) -> int:
        words = seed_sequence(sampling.seed, "nuts", label).generate_state(1, np.uint64)
        return int(words[0] >> 1)

    for result in sample_groups(
        cells,
        dict(sampling.prior),
        family=sampling.family,
        draws=sampling.draws,
        tune=sampling.tune,
        chains=sampling.chains,
        cores=sampling.cores,
        seed_of=seed_of,
        skip=skip,
        announce=progress.note,
    ):
        posterior = {
            name: values if values.ndim == 3 else values[..., None]
            for name, values in result.posterior.items()
        }
        statistics = {name: values[..., None] for name, values in result.statistics.items()}
        yield Part(np.array([result.group]), posterior, statistics)
        progress.advance(1)


def _gibbs_parts(
    cells: Layout, sampling: Sampling, *, skip: set[int], progress: Progress
) -> Iterator[Part]:
    """Fit batch by batch."""
    for groups in _batches(cells):
        if int(groups[0]) not in skip:
            yield _gibbs_part(subset(cells, groups), groups, sampling, progress)


def _gibbs_part(
    members: Layout, groups: np.ndarray, sampling: Sampling, progress: Progress
) -> Part:
    """Run the chains of one batch side by side."""
    data = gibbs.prepare(members)
    seeds = seed_sequence(sampling.seed, "gibbs", members.groups[0]).spawn(sampling.chains)
    share = len(groups) / (sampling.chains * (sampling.draws + sampling.tune))
    stop = threading.Event()

    def after_draw() -> None:
        if stop.is_set():
            raise InterruptedError
        progress.advance(share)

    def run(seed: np.random.SeedSequence) -> gibbs.Chain:
        return gibbs.sample_chain(
            data,
            sampling.prior,
            family=sampling.family,
            draws=sampling.draws,
            tune_draws=sampling.tune,
            seed=seed,
            after_draw=after_draw,
        )

    with ThreadPoolExecutor(min(sampling.cores, sampling.chains)) as pool:
        try:
            results = list(pool.map(run, seeds))
        except BaseException:
            stop.set()  # the chains end with their next draw, not with their last
            raise
    states = {
        name: np.stack([result.states[name] for result in results]) for name in results[0].states
    }
    posterior = {
        "alpha": states["mu_beta"] + states["mu_gamma"],
        "delta": states["mu_beta"] - states["mu_gamma"],
        "mu_beta": states["mu_beta"],
        "mu_gamma": states["mu_gamma"],
        "phi_beta": np.exp(states["log_phi_beta"]),
        "phi_gamma": np.exp(states["log_phi_gamma"]),
        "beta": states["beta"],
        "gamma": states["gamma"],
    }
    acceptance = {
        "acceptance_beta": np.stack([r.acceptance.accepted_beta for r in results]),
        "acceptance_gamma": np.stack([r.acceptance.accepted_gamma for r in results]),
    }
    if sampling.family != "poisson":
        posterior["r"] = np.exp(-2.0 * states["log_cv"])
        acceptance["acceptance_r"] = np.stack([r.acceptance.accepted_cv for r in results])
    return Part(groups, posterior, acceptance)


def _batches(cells: Layout) -> list[np.ndarray]:
    """Consecutive groups, about :data:`GIBBS_BATCH` cells together."""
    total = np.cumsum(np.bincount(cells.group, minlength=len(cells.groups)))
    batch = (total - 1) // GIBBS_BATCH
    return [np.flatnonzero(batch == b) for b in np.unique(batch)]


_BY_ORIGIN = ("beta", "acceptance_beta")
_BY_DESTINATION = ("gamma", "acceptance_gamma")


def _assemble(cells: Layout, parts: list[Part], attributes: dict[str, Any]) -> xr.DataTree:
    """Put the parts together into one tree with labels."""
    members = [
        (
            part,
            {
                "group": part.groups,
                "origin_effect": np.flatnonzero(np.isin(cells.group_of_origin, part.groups)),
                "destination_effect": np.flatnonzero(
                    np.isin(cells.group_of_destination, part.groups)
                ),
            },
        )
        for part in parts
    ]
    sizes = {
        "group": len(cells.groups),
        "origin_effect": len(cells.origin_effects),
        "destination_effect": len(cells.destination_effects),
    }

    def gather(kind: str, name: str) -> tuple[tuple[str, ...], np.ndarray]:
        if name in _BY_ORIGIN:
            last = "origin_effect"
        elif name in _BY_DESTINATION:
            last = "destination_effect"
        else:
            last = "group"
        first = getattr(parts[0], kind)[name]
        values = np.empty((*first.shape[:-1], sizes[last]), first.dtype)
        for part, positions in members:
            values[..., positions[last]] = getattr(part, kind)[name]
        return ("chain", "draw", last) if first.ndim == 3 else ("chain", last), values

    labels = {
        "group": cells.groups,
        "origin_effect": cells.origin_effects,
        "destination_effect": cells.destination_effects,
    }
    chains, draws = parts[0].posterior["alpha"].shape[:2]
    sampled = {"chain": np.arange(chains), "draw": np.arange(draws)}
    posterior = xr.Dataset(
        {name: gather("posterior", name) for name in parts[0].posterior},
        coords={**sampled, **labels},
        attrs=attributes,
    )
    statistics = {name: gather("statistics", name) for name in parts[0].statistics}
    used = {dim for dims, _ in statistics.values() for dim in dims}
    sample_stats = xr.Dataset(
        statistics, coords={k: v for k, v in {**sampled, **labels}.items() if k in used}
    )
    of_cell = {"cell": cells.cells}
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=attributes),
            "posterior": posterior,
            "sample_stats": sample_stats,
            "observed_data": xr.Dataset({"y": ("cell", cells.y)}, coords=of_cell),
            "constant_data": xr.Dataset(
                {
                    "group_index": ("cell", cells.group),
                    "origin_index": ("cell", cells.origin),
                    "destination_index": ("cell", cells.destination),
                    "group_of_origin": ("origin_effect", cells.group_of_origin),
                    "group_of_destination": ("destination_effect", cells.group_of_destination),
                    "upper": ((), cells.upper),
                },
                coords={**of_cell, **labels},
            ),
        }
    )
