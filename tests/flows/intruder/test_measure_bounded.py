"""What an intruder finds in a release with bounded steps: every estimator knows the bound."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayes_sdc import fit_flows, intruder_risk, log_ratios, read_flows, synthesize
from bayes_sdc.flows.table.read import FlowTable

AREAS = [f"{number:02d}" for number in range(7)]
EPSILON = 0.7


@pytest.fixture(scope="module")
def table() -> FlowTable:
    rng = np.random.default_rng(3)
    pairs = [(a, b) for a in AREAS for b in AREAS if a != b]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    frame["n"] = np.minimum(1 + rng.poisson(rng.gamma(1.0, 3.0, len(frame))), 20)
    return read_flows(frame, origin="o", destination="d", count="n")


@pytest.fixture(scope="module")
def posterior(table: FlowTable) -> xr.DataTree:
    return fit_flows(table, epsilon=EPSILON, draws=800, tune=300, chains=4, seed=4)


@pytest.mark.parametrize("estimator", ["integrated", "paper"])
def test_one_person_changes_no_release_by_more(
    table: FlowTable, posterior: xr.DataTree, estimator: str
) -> None:
    """Two modules check each other: the bound of the model, and the intruder."""
    risk = intruder_risk(
        table, posterior, synthesize(table, posterior, seed=5), estimator=estimator
    )
    found = log_ratios(risk).by_cell
    assert (found["neighbours_at_least"] <= EPSILON).all()
    # a mixture of probabilities none of whose ratios is larger, but for smoothed weights
    assert (found["neighbours"] <= EPSILON + (0.02 if estimator == "paper" else 1e-6)).all()
    assert (found["any_pair_at_least"] <= table.k * EPSILON).all()


def test_estimators_agree(table: FlowTable, posterior: xr.DataTree) -> None:
    """Integrating two effects out, importance weights, and the engine run anew."""
    release = synthesize(table, posterior, seed=5)
    integrated, paper = (
        intruder_risk(table, posterior, release, estimator=name, seed=1)
        for name in ("integrated", "paper")
    )
    m, other = (risk.release_probability.to_numpy() for risk in (integrated, paper))
    error = np.hypot(*(risk.release_probability_error.to_numpy() for risk in (integrated, paper)))
    assert np.abs(m - other).max() < 0.03
    assert (np.abs(m - other).max(axis=2) < 5.0 * error + 1e-3).mean() > 0.97


@pytest.mark.slow
def test_refits_agree(table: FlowTable, posterior: xr.DataTree) -> None:
    """The exact answer, for every cell."""
    release = synthesize(table, posterior, seed=5)
    integrated, refits = (
        intruder_risk(table, posterior, release, estimator=name, seed=1)
        for name in ("integrated", "refit")
    )
    m, exact = (risk.release_probability.to_numpy() for risk in (integrated, refits))
    assert np.abs(m - exact).max() < 0.03


@pytest.mark.slow
def test_without_the_bound_the_numbers_are_others(table: FlowTable, posterior: xr.DataTree) -> None:
    """An estimator that forgot the bound would compute these."""
    release = synthesize(table, posterior, seed=5)
    forgot = posterior.copy()
    for name in ("epsilon", "centres"):
        del forgot.attrs[name]
    m = intruder_risk(table, posterior, release, seed=1).release_probability.to_numpy()
    wrong = intruder_risk(table, forgot, release, seed=1).release_probability.to_numpy()
    assert np.abs(m - wrong).max() > 0.05
