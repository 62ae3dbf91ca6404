"""Slope and information by covariates of areas: those of the same covariates taken cell by cell."""

import numpy as np
import pytest

from bayes_sdc.flows.gibbs import engine
from bayes_sdc.flows.gibbs.joint_move import joint_information
from bayes_sdc.flows.gibbs.state import OF_CELL, OF_DESTINATION, OF_ORIGIN, make_work, refresh
from bayes_sdc.flows.model.hyperpriors import CV
from bayes_sdc.flows.table.cells import SmallCells

UPPER, GROUPS = 6, 3


def cells_with_areas(seed: int) -> SmallCells:
    """Groups in which most pairs of areas are cells, with covariates of every kind, mixed."""
    rng = np.random.default_rng(seed)
    group, i, j = (index.ravel() for index in np.indices((GROUPS, 4, 5)))
    kept = rng.random(len(group)) < 0.8
    kept[:: 4 * 5] = True
    group, origin, destination = group[kept], (4 * group + i)[kept], (5 * group + j)[kept]
    columns = [
        rng.normal(size=5 * GROUPS)[destination],
        rng.normal(size=len(group)),
        rng.normal(size=4 * GROUPS)[origin],
        rng.normal(size=4 * GROUPS)[origin],
        rng.normal(size=5 * GROUPS)[destination],
        rng.normal(size=len(group)),
    ]
    return SmallCells(
        y=rng.integers(0, UPPER + 1, len(group)),
        group=group,
        origin=origin,
        destination=destination,
        group_of_origin=np.repeat(np.arange(GROUPS), 4),
        group_of_destination=np.repeat(np.arange(GROUPS), 5),
        x=np.column_stack(columns),
        z=np.empty((GROUPS, 0)),
        upper=UPPER,
        covariates=list("abcdef"),
        group_covariates=[],
        cells=[],
        groups=["g"] * GROUPS,
        origin_effects=[],
        destination_effects=[],
    )


@pytest.mark.parametrize("family", ["poisson", "negative-binomial"])
def test_sums_by_area_give_what_the_cells_give(family: str) -> None:
    """A wrong entry of the information would only slow the sampler down: no posterior shows it."""
    cells = cells_with_areas(1)
    by_area = engine.prepare(cells)
    kinds = [OF_DESTINATION, OF_CELL, OF_ORIGIN, OF_ORIGIN, OF_DESTINATION, OF_CELL]
    assert by_area.of.tolist() == kinds
    by_cell = by_area._replace(x=cells.x, of=np.full(6, OF_CELL))
    state = engine.init(np.random.default_rng(2), by_area, family)
    rates = state.log_rate.copy()
    refresh(by_cell, state)
    np.testing.assert_allclose(state.log_rate, rates, rtol=1e-12)
    columns = np.array([k for k in range(CV + 7) if k != CV or family != "poisson"])
    d, work = len(columns), make_work(by_area, state)
    for g in range(GROUPS):
        first, after = by_area.cells_of_group[g : g + 2]
        terms = np.full((len(state.terms), len(cells.y) + 5), np.nan)  # longer than the group
        terms[:, : after - first] = state.terms[:, first:after]
        found = []
        for data in (by_area, by_cell):
            slope, metric = np.full(d, np.nan), np.full((d, d), np.nan)
            joint_information(g, columns, data, state, terms, 0, 1.3, -0.7, slope, metric, work)
            found.append((slope, metric))
        np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-10, atol=1e-12)
