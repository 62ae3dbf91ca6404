"""Releasable tables: each data set from one joint posterior draw of all rates."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.fitted_to import check_posterior
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.rates import Rates, rates_by_draw
from bayes_sdc.flows.release.synthetic.own_areas import OwnArea, without_own_areas
from bayes_sdc.flows.release.totals.draws import SWEEPS, Mixing, with_totals
from bayes_sdc.flows.release.totals.kept import KeptTotals, kept_of
from bayes_sdc.flows.table.cells import SmallCells, fitted_cells, under_rule
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.seeds import generator, seed_or_fresh


@checked
def synthesize(
    table: FlowTable,
    posterior: xr.DataTree,
    *,
    datasets: int = 1,
    totals: str | Sequence[str] | KeptTotals = (),
    own_area: OwnArea = "protect",
    seed: int | None = None,
    cores: int | None = None,
) -> pd.DataFrame:
    """Replace the small counts by draws from the posterior predictive distribution.

    Each data set takes one joint draw of all log rates, never their mean, and the draws of several
    data sets lie as far apart in the chains as they can. Counts come from the table of
    probabilities of each cell.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        From :func:`bayes_sdc.fit_flows`. Not needed for a table without small cells.
    datasets : int
        Number m of synthetic data sets. Of a posterior with ``epsilon`` each of them, and each
        further call, costs its epsilon again: :func:`bayes_sdc.guarantee` adds up what it is told.
    totals : sequence of str, str with commas, or KeptTotals
        Margins that every data set has exactly as the table: ``"origin"``, ``"destination"``,
        ``"group"``, ``"origin-by-group"``, ``"destination-by-group"``; none by default. They are
        totals of people who moved: those who stayed are drawn by themselves. Counts are drawn given
        them. A cell that they pin to one value keeps its true count:
        :func:`bayes_sdc.audit_totals` tells which, and :func:`bayes_sdc.keep_totals` chooses
        totals that pin none.
    own_area : {"protect", "withhold", "publish"}
        Treatment of small counts of people who stayed in their area: drawn from a model of their
        own, left blank, or released as they are.
    seed : int, optional
        Confidential: anyone who knows it can undo the draw. Use one that cannot be found by trial,
        such as ``secrets.randbits(128)``; by default a fresh one, which is not kept.
    cores : int, optional
        Threads, where totals are kept; by default all. The counts do not depend on it.

    Returns
    -------
    pandas.DataFrame
        The input's rows, order, columns and types; in small cells the count is a synthetic one
        from ``table.low`` to ``table.high``. With more than one data set they stand below each
        other, numbered from 1 in a first column ``dataset``.

    Raises
    ------
    InputError
        If the posterior belongs to another table, or has fewer draws than data sets, or a margin
        is unknown, or the margins are more than a two-way table.

    See Also
    --------
    bayes_sdc.fit_flows, bayes_sdc.keep_totals, bayes_sdc.combined_totals, bayes_sdc.utility,
    bayes_sdc.intruder_risk

    Notes
    -----
    With totals, each data set starts at its unconditional draw, changed until the totals are met,
    and is mixed along alternating cycles
    (:mod:`bayes_sdc.flows.release.totals.alternating_cycles`). It depends on the true counts
    through the totals and the posterior alone.

    Zeros are not protected when ``table.low`` is 1 or more: an empty pair stays empty.

    All columns of the input are returned, even those that may reveal the count.
    :func:`bayes_sdc.protect_flows` leaves out columns that do more than describe one area.

    References
    ----------
    Hawala, Reiter and Wang, section 2.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, read_flows, synthesize
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 40, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, sampler="gibbs", draws=10, tune=10, chains=2, seed=1)
    >>> release = synthesize(table, posterior, seed=2)
    >>> int(release["n"][1]), bool(release["n"][[0, 2]].between(1, 9).all())
    (40, True)
    """
    seed = seed_or_fresh(seed)
    if datasets < 1:
        raise InputError(f"datasets must be at least 1; it is {datasets}")
    if table.n_small == 0:
        empty = np.empty((datasets, 0), np.int64)
        return release_of(table, empty, own_area=own_area, seed=seed)
    check_posterior(table, posterior)
    cells = fitted_cells(table, posterior)
    table = under_rule(table, cells.impossible)
    rates = rates_by_draw(posterior)
    plan = kept_of(table, totals)
    if plan.sides:
        if cells.impossible:
            raise InputError(
                "totals: counts are moved by one where totals are kept, and the posterior excludes "
                "some of them; leave totals out, or fit without impossible"
            )
        if cells.bound is not None:
            raise InputError(
                "totals: those that are kept contain small counts, and the posterior was fitted "
                "with epsilon, whose guarantee would end; leave totals out, or fit without epsilon"
            )
        kept = plan.mixing(cells.y)
        drawn = draw_datasets_given_totals(cells, kept, rates, datasets, seed=seed, cores=cores)
    else:
        drawn = draw_datasets(cells, rates, datasets, generator(seed, "synthesis"))
    return release_of(table, drawn, own_area=own_area, seed=seed)


def release_of(
    table: FlowTable, released: np.ndarray, *, own_area: OwnArea, seed: int
) -> pd.DataFrame:
    """The table with released counts, from 0, in its small cells: (dataset, cell)."""
    if len(released) > 1:
        refuse_column_named_dataset(table)
    frames = []
    for y in released:
        frame = table.frame.copy()
        column = frame[table.count].copy()
        # in the type of the column, because pandas refuses 64-bit counts in a shorter one
        values = pd.Series(y + table.low).astype(column.dtype)
        column.iloc[table.cells["row"].to_numpy()] = values.array
        frame[table.count] = column
        frames.append(frame)
    if len(frames) == 1:
        return without_own_areas(table, frames[0], own_area=own_area, seed=seed)
    for number, frame in enumerate(frames, start=1):
        frame.insert(0, "dataset", number)
    release = pd.concat(frames, ignore_index=True)
    return without_own_areas(table, release, own_area=own_area, seed=seed)


def refuse_column_named_dataset(table: FlowTable) -> None:
    """Several data sets are numbered in a column of that name."""
    if "dataset" in table.frame.columns:
        raise InputError(
            f"{table.source}: has a column 'dataset', in which several data sets are numbered; "
            "rename it"
        )


def draw_counts(
    cells: SmallCells,
    rates: Rates,
    draw: int,
    rng: np.random.Generator,
    kept: Mixing | None = None,
) -> np.ndarray:
    """Draw the counts of all cells, from 0, given one joint posterior draw of the rates.

    With ``kept``, given these totals too.
    """
    log_rate, rungs = rates.at(cells, draw)
    free = counts.draw(log_rate, cells.group, rungs, rng.random(len(log_rate)))
    if kept is None:
        return free
    log_weight = counts.log_table(log_rate, cells.group, rungs)
    return with_totals(kept, free, log_weight, seed=int(rng.integers(2**62)), dataset=0)


def draw_datasets(
    cells: SmallCells,
    rates: Rates,
    datasets: int,
    rng: np.random.Generator,
    kept: Mixing | None = None,
) -> np.ndarray:
    """Counts of one release, from 0, each data set from a draw of its own: (dataset, cell)."""
    draws = spread_draws(rng, rates.n_draws, datasets)
    return np.stack([draw_counts(cells, rates, int(draw), rng, kept) for draw in draws])


def draw_datasets_given_totals(
    cells: SmallCells,
    kept: Mixing,
    rates: Rates,
    datasets: int,
    *,
    seed: int,
    cores: int | None = None,
    sweeps: int = SWEEPS,
) -> np.ndarray:
    """Counts of one release with totals kept, from 0; the counts of ``cells`` are not used.

    Returns
    -------
    array of int, shape (dataset, cell)
    """
    rng = generator(seed, "synthesis")
    draws = spread_draws(rng, rates.n_draws, datasets)
    result = []
    for number, at in enumerate(draws):
        log_rate, rungs = rates.at(cells, int(at))
        free = counts.draw(log_rate, cells.group, rungs, rng.random(len(log_rate)))
        log_weight = counts.log_table(log_rate, cells.group, rungs)
        result.append(
            with_totals(
                kept, free, log_weight, seed=seed, dataset=number, cores=cores, sweeps=sweeps
            )
        )
    return np.stack(result)


def spread_draws(rng: np.random.Generator, available: int, wanted: int) -> np.ndarray:
    """Choose equally spaced draws of all chains laid end to end, from a random start.

    They come in an order in which the first few are far apart as well: the middle after the start,
    then the middles of what is between, and so on.

    Examples
    --------
    >>> draws = spread_draws(np.random.default_rng(1), 400, 4)
    >>> ((draws - draws[0]) % 400).tolist()
    [0, 200, 100, 300]
    """
    if wanted > available:
        raise InputError(
            f"{wanted} data sets need as many posterior draws, and there are {available}; "
            "raise draws or ask for fewer"
        )
    start = rng.integers(available)
    middles = np.zeros(1, np.int64)  # of the circle halved again and again: 0, 1/2, 1/4, 3/4, 1/8
    while len(middles) < wanted:
        middles = np.concatenate([2 * middles, 2 * middles + 1])
    order = list(dict.fromkeys((middles * wanted // len(middles)).tolist()))
    return (start + np.array(order) * available // wanted) % available
