"""Intruder risk over many releases of one posterior: M does not depend on what is released."""

from typing import Literal, get_args

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.fitted_to import check_posterior
from bayes_sdc.flows.intruder.probabilities.bayes import (
    best_guess,
    likelihood_of_release,
    measures,
    posterior_of_counts,
)
from bayes_sdc.flows.intruder.probabilities.settings import check_choice
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.intruder.summarize import unique_cells
from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.release.synthetic.synthesis import draw_counts, spread_draws
from bayes_sdc.flows.release.use.utility import ground_truth
from bayes_sdc.flows.table.cells import fitted_cells
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.progress import Progress
from bayes_sdc.seeds import generator, seed_or_fresh

Classes = Literal["true-count", "group", "area-size", "area"]
WORST = (
    "all-others",
    "all-but-cycle",
    "all-others, and totals to a base",
)  # whose M does not depend on one release
CLASSES: tuple[Classes, ...] = get_args(Classes)


@checked
def repeat_risk(
    table: FlowTable,
    posterior: xr.DataTree,
    risk: IntruderRisk,
    *,
    releases: int = 20,
    datasets: int = 1,
    seed: int | None = None,
) -> pd.DataFrame:
    """Intruder risk over independent releases: how much the luck of the draw matters.

    Parameters
    ----------
    table, posterior
        As for :func:`bayes_sdc.intruder_risk`.
    risk : IntruderRisk
        Of any release of this table and posterior, all cells, with knowledge "all-others": its
        release probabilities and prior serve all others.
    releases : int
        Number of independent releases, each of ``datasets`` data sets.
    datasets : int
        Number m of data sets in each release. Beside each, the intruder has the earlier releases
        (``already_released`` of the risk).
    seed : int, optional
        Seed of the releases. By default a fresh one.

    Returns
    -------
    pandas.DataFrame
        One row per release: r_all, r_unq (missing where undefined), mean_distance and
        true_count_probability (mean over cells); beside them the shares of an intruder who takes
        the first released count for the true one, believes_release and, of the cells of R_unq,
        believes_release_unq, and of one who sees no release, no_release and no_release_unq.

    Raises
    ------
    InputError
        If ``risk`` is of other cells, or depends on one release.

    See Also
    --------
    bayes_sdc.intruder_risk, bayes_sdc.risk_by, bayes_sdc.risk_by_datasets

    References
    ----------
    Hawala, Reiter and Wang, section 2, last paragraph.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, intruder_risk, read_flows, repeat_risk, synthesize
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=50, tune=50, chains=2, seed=1)
    >>> risk = intruder_risk(table, posterior, synthesize(table, posterior, seed=2))
    >>> repeat_risk(table, posterior, risk, releases=5, seed=2).shape
    (5, 8)
    """
    seed = seed_or_fresh(seed)
    if datasets < 1:
        raise InputError(f"datasets must be at least 1; it is {datasets}")
    rows = _measure(table, posterior, risk, releases, datasets, seed)
    last = rows[rows["datasets"] == datasets].drop(columns="datasets")
    return last.set_index(pd.RangeIndex(1, releases + 1, name="release"))


@checked
def risk_by_datasets(
    table: FlowTable,
    posterior: xr.DataTree,
    risk: IntruderRisk,
    *,
    most: int = 20,
    releases: int = 20,
    seed: int | None = None,
) -> pd.DataFrame:
    """Intruder risk as the number m of released data sets grows from 1 to ``most``.

    Parameters
    ----------
    table, posterior, risk, releases, seed
        As for :func:`repeat_risk`.
    most : int
        Largest number of data sets; at most the number of posterior draws.

    Returns
    -------
    pandas.DataFrame
        By m: mean over the releases of each measure of :func:`repeat_risk`, and the smallest and
        largest of them in columns ``..._low`` and ``..._high``.

    Raises
    ------
    InputError
        As for :func:`repeat_risk`.

    See Also
    --------
    bayes_sdc.repeat_risk, bayes_sdc.plot_risk_by_datasets

    References
    ----------
    S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality", section
    3.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, intruder_risk, read_flows, risk_by_datasets, synthesize
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=50, tune=50, chains=2, seed=1)
    >>> risk = intruder_risk(table, posterior, synthesize(table, posterior, seed=2))
    >>> risk_by_datasets(table, posterior, risk, most=3, releases=2, seed=2).index.tolist()
    [1, 2, 3]
    """
    seed = seed_or_fresh(seed)
    if most < 1:
        raise InputError(f"most must be at least 1; it is {most}")
    rows = _measure(table, posterior, risk, releases, most, seed)
    by_number = rows.groupby("datasets")
    spread = [by_number.min().add_suffix("_low"), by_number.max().add_suffix("_high")]
    return pd.concat([by_number.mean(), *spread], axis=1)


def _measure(
    table: FlowTable,
    posterior: xr.DataTree,
    risk: IntruderRisk,
    releases: int,
    most: int,
    seed: int,
) -> pd.DataFrame:
    """All measures after each further data set of each release."""
    if releases < 1:
        raise InputError(f"releases must be at least 1; it is {releases}")
    check_repeatable(table, posterior, risk)
    cells = fitted_cells(table, posterior)
    rates = rates_by_draw(posterior)
    unique = unique_cells(table, risk.unique)
    m, weights = risk.release_probability.to_numpy(), risk.prior_probability.to_numpy()
    no_release = {
        name: np.nan if share.baseline is None else share.baseline
        for name, share in (("no_release", risk.r_all), ("no_release_unq", risk.r_unq))
    }
    earlier = risk.earlier_likelihood
    kept = None if risk.kept is None else risk.kept.mixing(cells.y)
    rng = generator(seed, "repeated releases")
    rows = []
    label = f"risk of {releases} releases, of up to {most} data sets"
    with Progress(releases * most, label) as progress:
        for _ in range(releases):
            likelihood = earlier.copy()
            for number, draw in enumerate(spread_draws(rng, rates.n_draws, most), start=1):
                released = draw_counts(cells, rates, int(draw), rng, kept)
                likelihood += likelihood_of_release(m, released[None])
                rho = posterior_of_counts(likelihood, weights)
                if number == 1:
                    believes = _believes(released == cells.y, unique)
                rows.append(
                    {
                        "datasets": number,
                        **measures(rho, cells.y, unique),
                        **believes,
                        **no_release,
                    }
                )
                progress.advance(1)
    return pd.DataFrame(rows)


def _believes(right: np.ndarray, unique: np.ndarray) -> dict[str, float]:
    """Shares of cells whose released count is the true one."""
    return {
        "believes_release": float(right.mean()),
        "believes_release_unq": float(right[unique].mean()) if unique.any() else np.nan,
    }


def check_repeatable(table: FlowTable, posterior: xr.DataTree, risk: IntruderRisk) -> None:
    """Refuse a risk whose M serves no other release of this table."""
    check_choice("knowledge of the risk to repeat", risk.knowledge, WORST)
    check_posterior(table, posterior)
    if risk.rho["cell"].to_numpy().tolist() != table.cells.index.tolist():
        raise InputError("the risk to repeat is of other cells; measure all cells of this table")


@checked
def risk_by(table: FlowTable, risk: IntruderRisk, by: Classes) -> pd.DataFrame:
    """Intruder risk of classes of cells.

    Parameters
    ----------
    table : FlowTable
        The table.
    risk : IntruderRisk
        Of some or all of its cells.
    by : {"true-count", "group", "area-size", "area"}
        Classes: the true count; the group; quarters of the cells, 1 to 4, by the smaller of the
        origin's outflow and the destination's inflow in the whole table, own areas left out; or
        the area, where a cell counts once for its origin and once for its destination.

    Returns
    -------
    pandas.DataFrame
        One row per class: cells, r_all (share whose single most probable count is the true one),
        true_count_probability (mean) and mean_distance. Confidential: classes may be small.

    Raises
    ------
    InputError
        If ``by`` is unknown.

    See Also
    --------
    bayes_sdc.intruder_risk, bayes_sdc.repeat_risk, bayes_sdc.plot_risk_by_count

    References
    ----------
    S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality", section
    3.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, intruder_risk, read_flows, risk_by, synthesize
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=50, tune=50, chains=2, seed=1)
    >>> risk = intruder_risk(table, posterior, synthesize(table, posterior, seed=2))
    >>> risk_by(table, risk, "true-count")["cells"].to_dict()
    {1: 1, 2: 1, 4: 1}
    """
    check_choice("by", by, CLASSES)
    cells = table.cells.loc[risk.rho["cell"].to_numpy()]
    y = cells["y"].to_numpy()
    rho = risk.rho.to_numpy()
    if by == "true-count":
        of_cell = pd.Series(y + table.low, name="true count")
    elif by in ("group", "area"):
        of_cell = pd.Series(cells["group" if by == "group" else "origin"].to_numpy(), name=by)
    else:
        total = ground_truth(table).total
        smaller = pd.Series(np.minimum(total["origin"], total["destination"]), table.cells.index)
        rank = smaller.loc[cells.index].rank(pct=True).to_numpy()
        name = "quarter by size of the smaller area"
        of_cell = pd.Series(np.ceil(4.0 * rank).astype(np.int64), name=name)
    measures = pd.DataFrame(
        {
            "cells": 1,
            "r_all": best_guess(rho) == y,
            "true_count_probability": risk.true_count_probability.to_numpy(),
            "mean_distance": risk.distance.to_numpy(),
        }
    )
    if by == "area":
        measures = pd.concat([measures, measures], ignore_index=True)
        of_cell = pd.concat([of_cell, pd.Series(cells["destination"].to_numpy(), name=by)])
    how = dict.fromkeys(measures.columns[1:], "mean")
    result = measures.groupby(of_cell.to_numpy()).agg({"cells": "size", **how})
    result.index.name = of_cell.name
    return result
