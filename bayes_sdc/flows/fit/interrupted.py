"""An interrupted fit, seen through the draws that it kept on disk."""

import json
from itertools import islice
from pathlib import Path

import numpy as np
import xarray as xr

from bayes_sdc.arguments import PathLike, checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.batches import batches, joined
from bayes_sdc.flows.fit.chains import chain_at
from bayes_sdc.flows.fit.checkpoint import Checkpoint, Part, kept_call
from bayes_sdc.flows.fit.posterior import assemble
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.table.bound import bound_of
from bayes_sdc.flows.table.cells import CANONICAL, identity, impossible_of, small_cells, subset
from bayes_sdc.flows.table.read import FlowTable


@checked
def posterior_so_far(table: FlowTable, folder: PathLike) -> xr.DataTree:
    """Return the draws of an interrupted fit, to look at before it continues.

    Stop :func:`bayes_sdc.fit_flows` with Ctrl-C, or the stop button of a notebook, look, and call
    it again with the same arguments: it continues where it stopped.

    Parameters
    ----------
    table : FlowTable
        The table that is fitted.
    folder : path
        The ``resume`` folder of ``fit_flows``.

    Returns
    -------
    xarray.DataTree
        As ``fit_flows`` returns it, for the groups that are finished; where none is, for the first
        ones at work, with the chains that together have the most draws, each cut to the shortest of
        them. The attribute ``interrupted`` says what it is. Diagnostics and plots of a posterior
        take it; it cannot make a release or measure risk.

    Raises
    ------
    InputError
        If the folder holds no fit, a fit of another table, or no draws yet.

    See Also
    --------
    bayes_sdc.fit_flows, bayes_sdc.plot_chains

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Buerkner 2021, doi:10.1214/20-BA1221, for the
    diagnostics.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, posterior_so_far, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = fit_flows(table, draws=10, tune=10, chains=2, seed=1, resume=folder)
    >>> posterior_so_far(table, folder).attrs["interrupted"]
    '1 of 1 groups, 2 of 2 chains, 10 of 10 draws'
    """
    folder = Path(folder)
    call = kept_call(folder)
    if "weights_from" in call:
        raise InputError(
            f"{folder}: holds a fit with weights of the cells, which are not kept there; let the "
            "fit come to its end"
        )
    bound = bound_of(call)
    rule = impossible_of(call)
    cells = small_cells(
        table, covariates=call.get("covariates", "none"), bound=bound, impossible=rule,
        canonical=call["family"] in CANONICAL,
    )  # fmt: skip
    if any(call.get(name) != value for name, value in identity(table, cells).items()):
        raise InputError(f"{folder}: holds the fit of another table than {table.source}")
    sampling = Sampling(
        call["family"],
        json.loads(call["prior_settings"]),
        call["draws"],
        call["tune"],
        call["chains"],
        int(call["seed"]),
        cores=1,
        sampler=call["sampler"],
        prior_name=call["prior"],
        bound=bound,
        impossible=rule,
    )
    store = Checkpoint(folder, call)
    parts = list(store.finished())
    if not parts and sampling.sampler != "nuts":
        at_work = (_at_work(store, groups, sampling) for groups in batches(cells, sampling))
        parts = list(islice((part for part in at_work if part is not None), 1))
    if not parts:
        raise InputError(f"{folder}: holds no draw yet; let the fit go on for a while")
    groups = np.sort(np.concatenate([part.groups for part in parts]))
    parts = [part._replace(groups=np.searchsorted(groups, part.groups)) for part in parts]
    chains, draws = parts[0].posterior["alpha"].shape[:2]
    said = (
        f"{len(groups)} of {len(cells.groups)} groups, {chains} of {sampling.chains} chains, "
        f"{draws} of {sampling.draws} draws"
    )
    return assemble(subset(cells, groups), parts, {**call, "interrupted": said})


def _at_work(store: Checkpoint, groups: np.ndarray, sampling: Sampling) -> Part | None:
    """Make a part from the chains with the most draws together, cut to the shortest of them."""
    chains, lengths = [], []
    for number in range(sampling.chains):
        kept = store.load_draws(int(groups[0]), number, sampling.tune, sampling.draws)
        if kept is not None and kept[0]:
            chains.append(chain_at(*kept))
            lengths.append(int(kept[1]["done"]) - sampling.tune)
    if not chains:
        return None
    shortest = max(lengths, key=lambda n: n * sum(length >= n for length in lengths))
    return joined(
        groups,
        [
            chain._replace(values={name: v[:shortest] for name, v in chain.values.items()})
            for chain, length in zip(chains, lengths, strict=True)
            if length >= shortest
        ],
    )
