"""What a fit is said to take: the memory of its draws to the byte, the time in proportion."""

import pytest

from bayes_sdc import fit_flows, read_flows
from bayes_sdc.flows.fit.forecast import forecast
from bayes_sdc.flows.forecast import forecast_job
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.table.cells import SmallCells, small_cells
from bayes_sdc.flows.table.simulate import simulate_flows
from bayes_sdc.models.migration import resolve_prior


@pytest.fixture(scope="module")
def cells() -> SmallCells:
    return small_cells(table(), covariates="published")


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


def test_bytes_of_the_draws_are_those_of_the_posterior(cells: SmallCells) -> None:
    """Else a nation is started on a machine that cannot hold it."""
    posterior = fit_flows(table(), draws=100, tune=5, chains=4, seed=1)["posterior"].to_dataset()
    held = sum(v.nbytes for name, v in posterior.data_vars.items() if "national" not in name)
    said = forecast(cells, sampling())
    assert said.draws == pytest.approx(held, rel=1e-9)
    assert said.effects == posterior.sizes["origin_effect"] + posterior.sizes["destination_effect"]
    assert said.memory > said.draws


def test_time_grows_with_draws_and_rounds_of_chains(cells: SmallCells) -> None:
    one = forecast(cells, sampling()).seconds
    assert one is not None
    twice = forecast(cells, sampling(draws=200, tune=100)).seconds
    assert twice == pytest.approx(2.0 * one)
    # four chains on three cores take as long as on two
    assert forecast(cells, sampling(cores=3)).seconds == pytest.approx(one)
    assert forecast(cells, sampling(cores=8)).seconds == pytest.approx(one / 2.0)


@pytest.mark.parametrize("sampler", ["nuts", "reference"])
def test_time_that_cannot_be_told_is_not_told(cells: SmallCells, sampler: str) -> None:
    said = forecast(cells, sampling(sampler=sampler))
    assert said.seconds is None
    assert "about" in str(said)
    assert "min" not in str(said)


JOB = {"estimator": "integrated", "passes": 1, "fits": 1, "scenarios": 0, "refits": 0}
AFTER = {"datasets": 20, "compared": 40}


def job(cells: SmallCells, *, sampler: str = "gibbs", cores: int = 2, **more: object) -> dict:
    return forecast_job(cells, sampling(cores=cores, sampler=sampler), **{**JOB, **AFTER, **more})


def test_job_is_told_step_by_step(cells: SmallCells) -> None:
    """A forecast of the chains alone said seven minutes for a job of half an hour."""
    steps = job(cells)
    assert list(steps) == [
        "fit",
        "diagnostics",
        "intruder risk",
        "scenarios and utility",
        "reports",
    ]
    assert steps["fit"] == forecast(cells, sampling()).seconds
    assert all(seconds > 0.0 for seconds in steps.values())


def test_steps_grow_with_what_is_asked(cells: SmallCells) -> None:
    plain = job(cells)
    risk = plain["intruder risk"]
    # passes, threads, and an intruder who fits for himself before each
    assert job(cells, passes=2)["intruder risk"] == pytest.approx(2.0 * risk)
    assert job(cells, cores=1)["intruder risk"] == pytest.approx(2.0 * risk)
    own = job(cells, scenarios=1)["intruder risk"]
    assert own == pytest.approx(2.0 * risk + plain["fit"])
    # refits cost seconds a cell, and no more cells are refitted than there are
    some, all_cells = (job(cells, refits=n)["intruder risk"] for n in (4, 10**9))
    assert some > risk + 1.0
    exact = job(cells, estimator="refit")["intruder risk"]
    assert all_cells == pytest.approx(risk + exact)
    assert (some - risk) / exact == pytest.approx(4 / len(cells.y))
    more = job(cells, datasets=40, compared=80)["scenarios and utility"]
    assert more == pytest.approx(2.0 * plain["scenarios and utility"])


def test_fit_that_cannot_be_told_leaves_the_other_steps(cells: SmallCells) -> None:
    steps = job(cells, sampler="nuts")
    assert steps["fit"] is None
    assert steps["intruder risk"] == job(cells)["intruder risk"]
    assert job(cells, sampler="nuts", scenarios=1)["intruder risk"] is None
