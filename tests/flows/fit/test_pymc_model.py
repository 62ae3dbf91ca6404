"""The PyMC model of a table, and its traces as posteriors."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

from bayes_sdc import (
    InputError,
    as_posterior,
    extend_posterior,
    fit_flows,
    intruder_risk,
    migration_model,
    read_flows,
    simulate_flows,
    synthesize,
)

COLUMNS = {"origin": "origin", "destination": "destination", "count": "count"}


@pytest.fixture(scope="module")
def table():
    return read_flows(simulate_flows(areas=10, states=1, seed=3), **COLUMNS)


@pytest.fixture(scope="module")
def trace(table):
    """Draws from the prior: a trace of pm.sample has the same variables and takes longer."""
    with migration_model(table, prior="weak"):
        drawn = pm.sample_prior_predictive(30, random_seed=1)
    return xr.DataTree.from_dict(
        {
            "/posterior": drawn["prior"].to_dataset(),
            "/constant_data": drawn["constant_data"].to_dataset(),
        }
    )


def test_a_trace_is_released_and_measured(table, trace):
    posterior = as_posterior(table, trace, prior="weak")
    assert posterior.attrs["sampler"] == "pymc"
    release = synthesize(table, posterior, seed=1)
    assert (release.columns == table.frame.columns).all()
    risk = intruder_risk(table, posterior, release, cores=1)
    assert 0.0 <= float(risk.r_all) <= 1.0


def test_rates_are_those_of_the_model(table, trace):
    """Effects in another order would release the counts of other areas."""
    posterior = as_posterior(table, trace, prior="weak")
    labels = posterior["posterior"]["origin_effect"].to_numpy().tolist()
    assert labels == trace["posterior"]["origin"].to_numpy().tolist()
    np.testing.assert_array_equal(posterior["posterior"]["beta"], trace["posterior"]["beta"])


def test_a_trace_as_it_is_names_what_makes_a_posterior_of_it(table, trace):
    with pytest.raises(InputError, match="as_posterior"):
        synthesize(table, trace, seed=1)


def test_it_has_the_labels_of_a_fit(table, trace):
    fitted = fit_flows(table, prior="weak", draws=10, tune=5, chains=2, seed=1, cores=1)
    posterior = as_posterior(table, trace, prior="weak")
    for name, values in fitted["posterior"].data_vars.items():
        assert posterior["posterior"][name].dims == values.dims
    xr.testing.assert_identical(
        fitted["constant_data"].to_dataset(), posterior["constant_data"].to_dataset()
    )


def test_the_prior_is_one_of_the_model(table, trace):
    posterior = as_posterior(table, trace, prior="weak")
    extended = extend_posterior(table, posterior, ["prior", "prior_predictive"], seed=3)
    prior = extended["prior"]
    assert prior["beta"].dims == ("chain", "draw", "origin_effect")
    # the level is normal about 0 with sd sqrt(2) 1.5; 4.5 standard errors of 500 draws
    assert abs(float(prior["alpha"].mean())) < 4.5 * np.sqrt(2.0) * 1.5 / np.sqrt(500)
    counts = extended["prior_predictive"]["count"]
    assert counts.min() >= table.low
    assert counts.max() <= table.high


def test_what_is_no_trace_of_the_model_is_refused(table, trace):
    other = read_flows(simulate_flows(areas=10, states=1, seed=4), **COLUMNS)
    with pytest.raises(InputError, match="another table"):
        as_posterior(other, trace, prior="weak")
    with pytest.raises(InputError, match="other covariates"):
        as_posterior(table, trace)
    with pytest.raises(InputError, match="the Poisson model does not have"):
        as_posterior(table, trace, prior="weak", family="poisson")
    with pytest.raises(InputError, match="no group 'constant_data'"):
        as_posterior(table, xr.DataTree.from_dict({"/posterior": trace["posterior"].to_dataset()}))
