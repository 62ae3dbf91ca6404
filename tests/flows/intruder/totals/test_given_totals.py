"""The intruder's probabilities given totals, against the sum over every table."""

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayes_sdc import InputError, read_flows
from bayes_sdc.flows.intruder.totals import given_totals as module
from bayes_sdc.flows.intruder.totals.given_totals import given_totals

HIGH = 4


def square(seed, size=3, share=0.85):
    """A table of a few small counts, and a probability for each count of each cell."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"o{i}", f"d{j}", int(rng.integers(1, HIGH + 1)) if rng.random() < share else 30)
        for i in range(size)
        for j in range(size)
    ]
    frame = pd.DataFrame(rows, columns=["o", "d", "n"])
    table = read_flows(frame, origin="o", destination="d", count="n", high=HIGH)
    weight = rng.dirichlet(np.ones(HIGH), table.n_small)
    return table, xr.DataArray(
        weight,
        {"cell": list(table.cells.index), "count": np.arange(1, HIGH + 1)},
        ("cell", "count"),
    )


def every_table(table, weight, sides):
    """Probability of each count by listing all tables with the totals."""
    cells = table.cells
    values = np.array(list(itertools.product(range(HIGH), repeat=len(cells))))
    fits = np.ones(len(values), dtype=bool)
    for side in sides:
        for area in cells[side].unique():
            inside = (cells[side] == area).to_numpy()
            fits &= values[:, inside].sum(1) == cells["y"].to_numpy()[inside].sum()
    values = values[fits]
    mass = np.prod(weight[np.arange(len(cells)), values], axis=1)
    found = np.zeros_like(weight)
    for place in range(HIGH):
        found[:, place] = (mass[:, None] * (values == place)).sum(0)
    return found / mass.sum()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("sides", [("origin",), ("origin", "destination")])
def test_sums_are_those_over_every_table(seed, sides):
    table, weight = square(seed)
    found = given_totals(weight, table, published=sides, seed=1)
    expected = every_table(table, weight.to_numpy(), sides)
    assert set(found.how.values.tolist()) == {"exact"}
    np.testing.assert_allclose(found.probability, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_drawn_tables_agree_with_every_table(seed, monkeypatch):
    monkeypatch.setattr(module, "STATES", 0)
    table, weight = square(seed, share=1.0)
    found = given_totals(weight, table, draws=8000, seed=1)
    expected = every_table(table, weight.to_numpy(), ("origin", "destination"))
    assert set(found.how.values.tolist()) == {"drawn"}
    error = np.abs(found.probability.to_numpy() - expected).max(axis=1)
    assert error.max() < 0.03
    assert (error < 5 * np.maximum(found.error.to_numpy(), 0.004)).all()


def test_what_the_intruder_knows_stays_known():
    """Of a share of the cells the count is known, so the others follow more closely."""
    table, weight = square(2, share=1.0)
    known = weight.copy()
    at = table.cells["y"].to_numpy()
    known[:4] = 0.0
    known[np.arange(4), at[:4]] = 1.0
    found = given_totals(known, table, seed=1)
    np.testing.assert_allclose(
        found.probability, every_table(table, known.to_numpy(), ("origin", "destination")),
        atol=1e-12,
    )  # fmt: skip


def test_a_pinned_cell_has_probability_1():
    frame = pd.DataFrame([("A", "x", 3), ("A", "y", 20)], columns=["o", "d", "n"])
    table = read_flows(frame, origin="o", destination="d", count="n")
    even = xr.DataArray(
        np.full((1, 9), 1 / 9), {"cell": ["A>x"], "count": np.arange(1, 10)}, ("cell", "count")
    )
    found = given_totals(even, table, published="origin", seed=1)
    assert found.probability.sel(cell="A>x", count=3) == 1.0
    wrong = even.where(even["count"] != 3, 0.0)
    with pytest.raises(InputError, match="0 for every count"):
        given_totals(wrong, table, published="origin", seed=1)


def test_the_same_seed_gives_the_same_draws(monkeypatch):
    monkeypatch.setattr(module, "STATES", 0)
    table, weight = square(4)
    one, two = (given_totals(weight, table, draws=100, seed=7) for _ in range(2))
    xr.testing.assert_identical(one.probability, two.probability)
