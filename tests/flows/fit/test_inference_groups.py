"""The groups that ArviZ works with, beside what they are by definition."""

import arviz as az
import numpy as np
import pytest
import xarray as xr
from scipy import stats

from bayes_sdc import InputError, extend_posterior, fit_flows, read_flows, simulate_flows
from bayes_sdc.flows.table.cells import fitted_cells

COLUMNS = {"origin": "origin", "destination": "destination", "count": "count"}
GROUPS = {"groups": ["origin_state", "destination_state"]}


@pytest.fixture(scope="module")
def table():
    return read_flows(simulate_flows(areas=12, states=2, seed=3), **COLUMNS, **GROUPS)


@pytest.fixture(scope="module")
def posterior(table):
    return fit_flows(table, draws=60, tune=30, chains=2, seed=1, cores=1)


@pytest.fixture(scope="module")
def extended(table, posterior):
    return extend_posterior(table, posterior, ["posterior_predictive", "log_likelihood"], seed=2)


def test_the_log_likelihood_is_that_of_the_truncated_negative_binomial(table, posterior, extended):
    """Another count, scale or order of draws would make every comparison of models wrong."""
    cells = fitted_cells(table, posterior)
    draws = posterior["posterior"].to_dataset().sel(chain=1, draw=7)
    # effects are kept in single precision, their sum is not
    beta, gamma = (draws[name].to_numpy().astype(float) for name in ("beta", "gamma"))
    log_rate = beta[cells.origin] + gamma[cells.destination]
    log_rate = log_rate + (cells.x * draws["coefficient"].to_numpy()[cells.group]).sum(axis=1)
    r = draws["r"].to_numpy()[cells.group]
    counts = stats.nbinom(r[:, None], (r / (r + np.exp(log_rate)))[:, None])
    log_pmf = counts.logpmf(np.arange(cells.upper + 1))
    right = log_pmf[np.arange(len(cells.y)), cells.y] - np.logaddexp.reduce(log_pmf, axis=1)
    found = extended["log_likelihood"]["count"].sel(chain=1, draw=7)
    np.testing.assert_allclose(found, right, atol=1e-10)


def test_counts_are_those_of_the_table(table, extended):
    observed = extended["observed_data"]["count"].to_numpy()
    assert (observed == table.low + table.cells["y"].to_numpy()).all()
    predicted = extended["posterior_predictive"]["count"]
    assert predicted.min() >= table.low
    assert predicted.max() <= table.high
    # far from it, draws and cells would not belong together
    assert abs(float(predicted.mean()) - observed.mean()) < 0.5


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")  # of 120 draws
def test_arviz_takes_them(extended):
    found = az.loo(extended, var_name="count", pointwise=True)
    assert np.isfinite(found.elpd)
    assert found.elpd_i.shape == (extended["observed_data"].sizes["cell"],)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # inside ArviZ
def test_arviz_draws_prior_beside_posterior_of_renamed_groups(posterior):
    """As the docstring says; a dimension of ArviZ's own would meet that of the groups."""
    both = posterior.copy()
    both["prior"] = posterior["posterior"].to_dataset()
    renamed = both.map_over_datasets(
        lambda part: part.rename(group="pair") if "group" in part.dims else part
    )
    assert az.plot_prior_posterior(renamed, var_names=["national_mean"], backend="none") is not None


def test_fewer_draws_are_spread_over_each_chain(table, posterior):
    some = extend_posterior(table, posterior, ["log_likelihood"], draws=6, seed=2)
    assert some["log_likelihood"]["draw"].to_numpy().tolist() == [0, 10, 20, 30, 40, 50]
    assert some["posterior"].sizes["draw"] == 60


def test_the_same_seed_gives_the_same_draws(table, posterior, extended):
    again = extend_posterior(table, posterior, ["posterior_predictive"], seed=2)
    xr.testing.assert_identical(
        again["posterior_predictive"].to_dataset(), extended["posterior_predictive"].to_dataset()
    )


def test_a_posterior_of_another_table_is_refused(posterior):
    other = read_flows(simulate_flows(areas=12, states=2, seed=4), **COLUMNS, **GROUPS)
    with pytest.raises(InputError, match="fitted to another table"):
        extend_posterior(other, posterior)
    with pytest.raises(InputError, match="draws must be from 1 to 60"):
        extend_posterior(
            read_flows(simulate_flows(areas=12, states=2, seed=3), **COLUMNS, **GROUPS),
            posterior,
            draws=61,
        )
