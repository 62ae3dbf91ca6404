"""Choosing among releases: the best totals within the limits, and the risk of doing so."""

from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayes_sdc import (
    FlowTable,
    InputError,
    fit_flows,
    intruder_risk,
    read_flows,
    synthesize,
    utility,
)
from bayes_sdc.agency_limits import FlowLimits
from bayes_sdc.flows.intruder.comparing.choosing import choose_release
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.limits import check_limits
from bayes_sdc.policy import Policy


@pytest.fixture(scope="module")
def table() -> FlowTable:
    rng = np.random.default_rng(5)
    names = "abcdef"
    frame = pd.DataFrame([(i, j) for i in names for j in names if i != j], columns=["o", "d"])
    frame["n"] = rng.choice(np.arange(1, 10), len(frame), p=np.arange(9, 0, -1) / 45)
    frame["g"] = np.where(frame["o"] < "d", "one", "two")  # areas occur in both
    return read_flows(frame, origin="o", destination="d", count="n", groups=["g"])


@pytest.fixture(scope="module")
def posterior(table) -> xr.DataTree:
    return fit_flows(table, draws=100, tune=100, chains=2, seed=1)


@pytest.fixture(scope="module")
def risk(table, posterior) -> IntruderRisk:
    return intruder_risk(table, posterior, synthesize(table, posterior, seed=2))


def test_winner_has_the_best_totals_of_those_within_the_limits(table, posterior, risk):
    """Else a release beyond a limit goes out, or a needlessly bad one."""
    free = choose_release(table, posterior, risk, candidates=8, seed=3)
    limit = float(free.candidates["r_all"].median())
    bound = choose_release(table, posterior, risk, FlowLimits(r_all=limit), candidates=8, seed=3)
    pd.testing.assert_frame_equal(
        free.candidates.iloc[:, :6], bound.candidates.iloc[:, :6]
    )  # the same draws
    assert free.candidates["within_limits"].all()
    within = bound.candidates[bound.candidates["within_limits"]]
    assert (within["r_all"] <= limit).all()
    assert 0 < len(within) < 8
    winner = bound.candidates[bound.candidates["chosen"]]
    assert len(winner) == 1
    assert winner["totals_error"].item() == within["totals_error"].min()


def test_reported_measures_are_those_of_the_chosen_release(table, posterior, risk):
    """Else the risk in the report belongs to a release that was thrown away."""
    choice = choose_release(table, posterior, risk, candidates=6, datasets=2, seed=3)
    winner = choice.candidates[choice.candidates["chosen"]].iloc[0]
    again = intruder_risk(table, posterior, choice.release)
    assert float(again.r_all) == winner["r_all"]
    assert again.true_count_probability.mean() == pytest.approx(
        winner["true_count_probability"], rel=1e-12
    )
    measured = utility(table, choice.release).totals_error
    assert winner["totals_error"] == pytest.approx(measured, rel=1e-12)


def test_procedure_is_repeated_with_other_draws(table, posterior, risk):
    """The winner alone says nothing of what choosing does."""
    choice = choose_release(table, posterior, risk, candidates=4, repetitions=5, seed=3)
    assert choice.procedure.shape == (5, 8)
    largest = choice.procedure["largest_probability"]
    assert (largest > choice.procedure["true_count_probability"]).all()
    assert f"{largest.mean():.1%} on average" in str(choice)
    assert choice.procedure["true_count_probability"].nunique() == 5
    assert f"{choice.procedure['r_all'].mean():.1%} on average" in str(choice)
    again = choose_release(table, posterior, risk, candidates=4, repetitions=5, seed=3)
    pd.testing.assert_frame_equal(choice.procedure, again.procedure)
    pd.testing.assert_frame_equal(choice.release, again.release)


def test_limit_on_cells_is_judged_by_the_procedure_too(table, posterior, risk):
    """A lucky winner is not what drawing and choosing leads to."""
    choice = choose_release(table, posterior, risk, candidates=3, repetitions=3, seed=3)
    usual = choice.procedure.assign(largest_probability=0.99)
    policy = Policy("Board", date(2026, 1, 15), FlowLimits(true_count_probability=0.98))
    (lucky,) = check_limits(policy, risk, choice, unique="single-mover")
    assert lucky.value == max(
        float(risk.true_count_probability.max()), choice.procedure["largest_probability"].mean()
    )
    (check,) = check_limits(policy, risk, replace(choice, procedure=usual), unique="single-mover")
    assert (check.verdict, check.value) == ("fail", pytest.approx(0.99))


def test_nothing_within_the_limits_is_said_not_hidden(table, posterior, risk):
    choice = choose_release(
        table, posterior, risk, FlowLimits(true_count_probability=1e-6), candidates=3, seed=3
    )
    assert not choice.candidates["within_limits"].any()
    assert "0 of them within the limits" in str(choice)


def test_impossible_numbers_are_refused(table, posterior, risk):
    with pytest.raises(InputError, match="candidates must be at least 1"):
        choose_release(table, posterior, risk, candidates=0, seed=1)
    some = intruder_risk(table, posterior, synthesize(table, posterior, seed=2), cells=["a>b"])
    with pytest.raises(InputError, match="is of other cells"):
        choose_release(table, posterior, some, candidates=2, seed=1)
