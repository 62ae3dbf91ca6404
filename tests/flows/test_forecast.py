"""What a fit is said to take: the memory of its draws to the byte, the time in proportion."""

import pytest

from bayes_sdc import fit_flows, read_flows
from bayes_sdc.flows.forecast import forecast
from bayes_sdc.flows.layout import Layout, layout
from bayes_sdc.flows.simulate import simulate_flows
from bayes_sdc.flows.walk import Sampling
from bayes_sdc.models.migration import resolve_prior


@pytest.fixture(scope="module")
def cells() -> Layout:
    return layout(table())


def table():
    return read_flows(
        simulate_flows(areas=12, states=2, seed=3),
        origin="origin",
        destination="destination",
        count="count",
        groups=["origin_state", "destination_state"],
    )


def sampling(**more: object) -> Sampling:
    asked = {"draws": 100, "tune": 50, "chains": 4, "seed": 1, "cores": 2} | more
    return Sampling(family="negative-binomial", prior=resolve_prior("default"), **asked)


def test_bytes_of_the_draws_are_those_of_the_posterior(cells: Layout) -> None:
    """Else a nation is started on a machine that cannot hold it."""
    posterior = fit_flows(table(), draws=100, tune=5, chains=4, seed=1)["posterior"].to_dataset()
    held = sum(v.nbytes for name, v in posterior.data_vars.items() if "national" not in name)
    said = forecast(cells, sampling(), "gibbs")
    assert said.draws == pytest.approx(held, rel=1e-9)
    assert said.effects == posterior.sizes["origin_effect"] + posterior.sizes["destination_effect"]
    assert said.memory > said.draws


def test_time_grows_with_draws_and_rounds_of_chains(cells: Layout) -> None:
    one = forecast(cells, sampling(), "gibbs").seconds
    assert one is not None
    twice = forecast(cells, sampling(draws=200, tune=100), "gibbs").seconds
    assert twice == pytest.approx(2.0 * one)
    # four chains on three cores take as long as on two
    assert forecast(cells, sampling(cores=3), "gibbs").seconds == pytest.approx(one)
    assert forecast(cells, sampling(cores=8), "gibbs").seconds == pytest.approx(one / 2.0)


@pytest.mark.parametrize("sampler", ["nuts", "reference"])
def test_time_that_cannot_be_told_is_not_told(cells: Layout, sampler: str) -> None:
    said = forecast(cells, sampling(), sampler)
    assert said.seconds is None
    assert "about" in str(said)
    assert "min" not in str(said)
