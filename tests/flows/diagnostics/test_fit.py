"""Predictive checks and dispersion agree with closed forms."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import gammaln

from bayes_sdc import FlowTable, read_flows
from bayes_sdc.flows.diagnostics import dispersion, predictive_counts


def simulated(areas: int = 30, dispersed: float = 0.0) -> tuple[FlowTable, np.ndarray, np.ndarray]:
    """A table drawn from the model with known effects; log rates get noise of the given sd."""
    rng = np.random.default_rng(12)
    beta, gamma = rng.normal(0.4, 0.6, areas), rng.normal(0.5, 0.6, areas)
    names = [f"{a:02d}" for a in range(areas)]
    i, j = np.nonzero(~np.eye(areas, dtype=bool))
    log_rate = beta[i] + gamma[j] + dispersed * rng.normal(size=len(i))
    cumulated = np.cumsum(tables_of(log_rate), axis=1)
    y = (rng.random((len(i), 1)) >= cumulated[:, :-1]).sum(axis=1)
    frame = pd.DataFrame({"from": np.take(names, i), "to": np.take(names, j), "n": y + 1})
    return read_flows(frame, origin="from", destination="to", count="n"), beta, gamma


def tables_of(log_rate: np.ndarray) -> np.ndarray:
    y = np.arange(9)
    weights = np.exp(y * log_rate[:, None] - gammaln(y + 1.0))
    return weights / weights.sum(axis=1, keepdims=True)


def known_posterior(beta: np.ndarray, gamma: np.ndarray) -> xr.DataTree:
    """Every draw is the truth."""
    shape = (2, 150, 1)
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(
                {
                    "beta": (("chain", "draw", "origin_effect"), np.tile(beta, shape)),
                    "gamma": (("chain", "draw", "destination_effect"), np.tile(gamma, shape)),
                    "alpha": (("chain", "draw", "group"), np.zeros(shape)),
                }
            )
        }
    )


def test_predicted_numbers_agree_with_the_closed_form():
    # else the check of fit judges replicated tables of another model
    table, beta, gamma = simulated()
    predictive = predictive_counts(table, known_posterior(beta, gamma), seed=3)
    i, j = table.cells["origin"].astype(int), table.cells["destination"].astype(int)
    pmf = tables_of(beta[i] + gamma[j])
    mean, sd = pmf.sum(axis=0), np.sqrt((pmf * (1 - pmf)).sum(axis=0))
    assert predictive.index.tolist() == list(range(1, 10))
    assert (np.abs(predictive["expected"] - mean) < 4 * sd / np.sqrt(200)).all()
    observed = table.cells["y"].value_counts().reindex(range(9), fill_value=0)
    np.testing.assert_array_equal(predictive["observed"], observed)
    # the central 95 % of a sum of many indicators; its ends vary with 200 tables
    np.testing.assert_allclose((predictive["lower"] - mean) / sd, -1.96, atol=0.6)
    np.testing.assert_allclose((predictive["upper"] - mean) / sd, 1.96, atol=0.6)
    np.testing.assert_allclose(
        predictive["relative_error"], predictive["expected"] / observed.to_numpy() - 1, rtol=1e-12
    )
    assert predictive["expected"].sum() == pytest.approx(table.n_small, rel=1e-12)


def test_predictive_check_is_reproducible_by_seed():
    table, beta, gamma = simulated(areas=8)
    posterior = known_posterior(beta, gamma)
    first = predictive_counts(table, posterior, seed=3)
    pd.testing.assert_frame_equal(first, predictive_counts(table, posterior, seed=3))
    assert not first.equals(predictive_counts(table, posterior, seed=4))


def test_count_that_nobody_has_has_no_relative_error():
    # dividing by none would give inf, or warn
    frame = pd.DataFrame({"from": list("aabb"), "to": list("xyxy"), "n": [1, 1, 2, 9]})
    table = read_flows(frame, origin="from", destination="to", count="n")
    predictive = predictive_counts(table, known_posterior(np.zeros(2), np.zeros(2)), seed=1)
    assert predictive["observed"].tolist() == [2, 1, 0, 0, 0, 0, 0, 0, 1]
    assert predictive["relative_error"].isna().tolist() == [False] * 2 + [True] * 6 + [False]


def test_dispersion_equals_its_formula():
    table, beta, gamma = simulated(areas=8)
    i, j = table.cells["origin"].astype(int), table.cells["destination"].astype(int)
    pmf, y = tables_of(beta[i] + gamma[j]), np.arange(9)
    mean = pmf @ y
    variance = pmf @ y**2 - mean**2
    expected = np.mean((table.cells["y"] - mean) ** 2 / variance)
    ours = dispersion(table, known_posterior(beta, gamma), seed=1)
    assert ours.value == pytest.approx(expected, rel=1e-9)


def test_dispersion_is_near_one_when_the_model_holds_and_above_when_not():
    # 870 cells: the standard error is about 0.05
    table, beta, gamma = simulated()
    holds = dispersion(table, known_posterior(beta, gamma), seed=1)
    assert holds.value == pytest.approx(1.0, abs=0.15)
    assert holds.lower < holds.value < holds.upper
    table, beta, gamma = simulated(dispersed=1.0)
    fails = dispersion(table, known_posterior(beta, gamma), seed=1)
    assert fails.value > 1.4 > fails.upper
