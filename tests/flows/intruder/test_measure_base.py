"""What an intruder finds who knows that the model has a base measure, and its rule."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayes_sdc import InputError, fit_flows, intruder_risk, read_flows, synthesize
from bayes_sdc.flows.table.read import FlowTable

AREAS = [f"{number:02d}" for number in range(9)]
RULE = (1, 6)


@pytest.fixture(scope="module")
def table() -> FlowTable:
    rng = np.random.default_rng(3)
    pairs = [(a, b) for a in AREAS for b in AREAS if a != b]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    n = 2 + rng.poisson(rng.gamma(1.0, 3.0, len(frame)))
    frame["n"] = np.where(n == 6, 5, n)
    return read_flows(frame, origin="o", destination="d", count="n")


@pytest.fixture(scope="module")
def posterior(table: FlowTable) -> xr.DataTree:
    return fit_flows(table, family="base", impossible=RULE, draws=800, tune=300, chains=4, seed=4)


def test_estimators_agree(table: FlowTable, posterior: xr.DataTree) -> None:
    """Two effects integrated out, and importance weights: both must have the measure."""
    release = synthesize(table, posterior, seed=5)
    one, other = (
        intruder_risk(table, posterior, release, estimator=name, seed=1)
        for name in ("integrated", "paper")
    )
    m = [risk.release_probability.to_numpy() for risk in (one, other)]
    error = np.hypot(*(risk.release_probability_error.to_numpy() for risk in (one, other)))
    possible = [y for y in range(9) if y + 1 not in RULE]
    apart = np.abs(m[0] - m[1])[:, possible].max(axis=2)
    assert (apart < 5.0 * error[:, possible] + 2e-3).mean() > 0.97
    for each in m:
        assert each[:, possible][:, :, [count - 1 for count in RULE]].max() < 1e-20


@pytest.mark.parametrize("prior", ["uniform", "shape", "model", [1.0] * 9])
def test_nobody_believes_in_a_count_that_the_rule_excludes(
    table: FlowTable, posterior: xr.DataTree, prior: object
) -> None:
    release = synthesize(table, posterior, seed=5)
    risk = intruder_risk(table, posterior, release, estimator="paper", prior=prior, seed=1)
    assert np.isfinite(risk.rho).all()
    assert float(risk.rho.sel(count=list(RULE)).max()) == 0.0
    np.testing.assert_allclose(risk.rho.sum("count"), 1.0)


def test_prior_of_impossible_counts_alone_is_refused(
    table: FlowTable, posterior: xr.DataTree
) -> None:
    release = synthesize(table, posterior, seed=5)
    weights = [1.0 if count in RULE else 0.0 for count in range(1, 10)]
    with pytest.raises(InputError, match="rule excludes"):
        intruder_risk(table, posterior, release, estimator="paper", prior=weights, seed=1)


@pytest.mark.slow
def test_refits_agree(table: FlowTable, posterior: xr.DataTree) -> None:
    """The exact answer, with a measure that learns from the changed count as well."""
    release, some = synthesize(table, posterior, seed=5), table.cells.index[:6].tolist()
    one, exact = (
        intruder_risk(table, posterior, release, estimator=name, cells=some, seed=1)
        for name in ("integrated", "refit")
    )
    possible = [count for count in range(1, 10) if count not in RULE]
    m, e = (risk.release_probability.sel(true=possible).to_numpy() for risk in (one, exact))
    assert np.abs(m - e).max() < 0.05
