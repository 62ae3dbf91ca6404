"""Leave-one-out in pieces, against ArviZ on the whole matrix and against exact refits by hand."""

import arviz as az
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import (
    InputError,
    extend_posterior,
    fit_flows,
    loo_flows,
    read_flows,
    simulate_flows,
)
from bayes_sdc.flows import cross_validation

COLUMNS = {"origin": "origin", "destination": "destination", "count": "count"}


@pytest.fixture(scope="module")
def table():
    return read_flows(simulate_flows(areas=12, states=1, seed=3), **COLUMNS)


@pytest.fixture(scope="module")
def posterior(table):
    # of 900 draws both programs smooth 90: 3 times the root, which one rounds up and one down
    return fit_flows(table, draws=225, tune=50, chains=4, seed=1, cores=1)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_it_is_what_arviz_gives_for_the_whole_matrix(table, posterior, monkeypatch) -> None:
    whole = az.loo(
        extend_posterior(table, posterior, ["log_likelihood"]),
        var_name="count", pointwise=True, reff=1.0,
    )  # fmt: skip
    monkeypatch.setattr(cross_validation, "NUMBERS", 900 * 7)  # seven cells at a time
    found = loo_flows(table, posterior)
    np.testing.assert_allclose(found.pareto_k, whole.pareto_k, atol=1e-6)
    np.testing.assert_allclose(found.elpd_i, whole.elpd_i, atol=1e-6)
    assert found.elpd == pytest.approx(float(found.elpd_i.sum()))
    assert found.se == pytest.approx(np.sqrt(found.n_data_points) * found.elpd_i.std().item())
    assert found.p == pytest.approx(whole.p, abs=abs(found.elpd - whole.elpd) + 1e-9)
    assert (found.elpd_i["cell"] == posterior["constant_data"]["cell"]).all()


def test_pieces_and_cores_change_no_digit(table, posterior, monkeypatch) -> None:
    whole = loo_flows(table, posterior, cores=1)
    monkeypatch.setattr(cross_validation, "NUMBERS", 900)
    one_by_one = loo_flows(table, posterior, cores=2)
    np.testing.assert_array_equal(whole.elpd_i, one_by_one.elpd_i)


def test_arviz_compares_them(table, posterior) -> None:
    poisson = fit_flows(
        table, family="poisson", prior="weak", draws=150, tune=50, chains=4, seed=1, cores=1
    )
    found = {"default": loo_flows(table, posterior), "poisson": loo_flows(table, poisson)}
    compared = az.compare(found)
    assert compared.index[0] == max(found, key=lambda name: found[name].elpd)
    assert set(compared.index) == set(found)


@given(st.integers(0, 2**32 - 1))
def test_draws_that_agree_leave_the_likelihood_as_it_is(seed) -> None:
    """Where no draw tells more of a count than another, to leave it out changes nothing."""
    rng = np.random.default_rng(seed)
    level = -rng.exponential(size=(3, 1))
    elpd, plain, _ = cross_validation.left_out(np.tile(level, (1, 50)))
    np.testing.assert_allclose(elpd, level[:, 0])
    np.testing.assert_allclose(plain, level[:, 0])
    elpd, plain, khat = cross_validation.left_out(level + 0.1 * rng.normal(size=(3, 400)))
    assert (elpd < plain).all()
    assert (khat < 0.7).all()


def test_another_table_is_refused(posterior) -> None:
    other = read_flows(simulate_flows(areas=12, states=1, seed=4), **COLUMNS)
    with pytest.raises(InputError, match="fitted to another table"):
        loo_flows(other, posterior)
