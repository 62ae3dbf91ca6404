"""Elapsed time of three ways to fit the same groups, and what they give for it.

Run: python -m pytest tests/benchmarks --benchmark-only -m "not slow" -s
Each way is timed once, from a warm process; ``effective draws per second`` is the median over cells
of the bulk ESS of log lambda, summed over groups, divided by the elapsed time.
"""

from collections.abc import Callable, Iterable
from typing import Any

import arviz_stats
import numpy as np
import pymc as pm
import pytest
import xarray as xr

from bayes_sdc import FlowTable, fit_flows, read_flows
from bayes_sdc.flows.table.cells import SmallCells, small_cells, subset
from bayes_sdc.flows.table.simulate import simulate_flows
from bayes_sdc.models import migration

DRAWS = {"draws": 1000, "tune": 1000, "chains": 4}


@pytest.fixture(scope="module")
def table() -> FlowTable:
    frame = simulate_flows(areas=60, states=3, seed=8)
    return read_flows(
        frame,
        origin="origin",
        destination="destination",
        count="count",
        groups=["origin_state", "destination_state"],
    )


def effective_draws(posterior: xr.DataTree, cells: SmallCells) -> float:
    """Sum over groups of the median ESS of log lambda over the group's cells."""
    draws = posterior["posterior"].to_dataset()
    log_rate = (
        draws["beta"].to_numpy()[..., cells.origin]
        + (draws["gamma"].to_numpy()[..., cells.destination])
    )
    ess = arviz_stats.ess(xr.Dataset({"x": (("chain", "draw", "cell"), log_rate)}))["x"].to_numpy()
    return float(sum(np.median(ess[cells.group == g]) for g in range(len(cells.groups))))


def fresh_pm_sample(
    cells: SmallCells, groups: Iterable[int], *, family: str = "default", prior: str = "default"
) -> list[xr.DataTree]:
    """What a user would write: a model and a pm.sample for each group."""
    trees = []
    for group in groups:
        members = subset(cells, np.array([group]))
        model = migration.build(
            members.y,
            members.origin,
            members.destination,
            upper=cells.upper,
            origins=members.origin_effects,
            destinations=members.destination_effects,
            family=family,
            prior=prior,
        )
        with model:
            tree = pm.sample(
                **DRAWS, cores=2, random_seed=1, nuts_sampler="nutpie", progressbar=False
            )
        trees.append(tree)
    return trees


@pytest.mark.parametrize("way", ["fresh pm.sample per group", "compiled loop", "gibbs"])
def test_elapsed_time_of_a_fit(way: str, table: FlowTable, benchmark: Any) -> None:
    """Nine groups; the fresh loop is timed on three of them and its time counts threefold."""
    cells = small_cells(table)
    fit: dict[str, Callable[[], Any]] = {
        "fresh pm.sample per group": lambda: fresh_pm_sample(cells, range(3)),
        "compiled loop": lambda: fit_flows(table, **DRAWS, sampler="nuts", prior="weak", seed=1),
        "gibbs": lambda: fit_flows(table, **DRAWS, sampler="gibbs", seed=1),
    }
    result = benchmark.pedantic(fit[way], rounds=1, iterations=1)
    seconds = benchmark.stats["mean"]
    if isinstance(result, list):
        effective = 3.0 * sum(
            effective_draws(tree, subset(cells, np.array([group])))
            for group, tree in enumerate(result)
        )
        seconds *= 3.0
    else:
        effective = effective_draws(result, cells)
    benchmark.extra_info["seconds for nine groups"] = round(seconds, 1)
    benchmark.extra_info["effective draws per second"] = round(effective / seconds)
    assert effective > 0
