"""The gain of a real release: every prior, earlier releases, the choice and the policy."""

from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayes_sdc import (
    FlowTable,
    InputError,
    choose_release,
    fit_flows,
    intruder_gain,
    intruder_risk,
    log_ratios,
    read_flows,
    repeat_risk,
    synthesize,
)
from bayes_sdc.agency_limits import FlowLimits
from bayes_sdc.flows.intruder.probabilities.bayes import best_guess
from bayes_sdc.flows.intruder.probabilities.prior import prior_of_cells, shares_of_counts
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.limits import check_limits
from bayes_sdc.flows.table.simulate import example_flows_path
from bayes_sdc.policy import Policy

DAY = date(2026, 1, 15)


@pytest.fixture(scope="module")
def table() -> FlowTable:
    rng = np.random.default_rng(5)
    names = "abcdef"
    frame = pd.DataFrame([(i, j) for i in names for j in names if i != j], columns=["o", "d"])
    frame["n"] = rng.choice(np.arange(1, 10), len(frame), p=np.arange(9, 0, -1) / 45)
    return read_flows(frame, origin="o", destination="d", count="n")


@pytest.fixture(scope="module")
def posterior(table) -> xr.DataTree:
    return fit_flows(table, draws=100, tune=100, chains=2, seed=1)


@pytest.fixture(scope="module")
def risk(table, posterior) -> IntruderRisk:
    return intruder_risk(table, posterior, synthesize(table, posterior, seed=2))


def test_who_always_says_one_finds_the_ones_of_the_example():
    """36.5 % of all and every single mover, release or no release."""
    demo = read_flows(
        example_flows_path(), origin="origin", destination="destination", count="count",
        groups=["origin_state", "destination_state"],
    )  # fmt: skip
    before = prior_of_cells("shape", demo, None)
    y = demo.cells["y"].to_numpy()
    right = best_guess(before) == y
    assert round(100 * right.mean(), 1) == 36.5
    assert right[y == 0].all()
    np.testing.assert_allclose(before.sum(axis=1), 1.0)
    assert before[0, 0] == pytest.approx((y == 0).mean())


def test_every_prior_by_name_is_measured_whichever_is_asked_for(table, posterior, risk):
    """Else the headline depends on an option, and the flat prior makes the release look bad."""
    release = synthesize(table, posterior, seed=2)
    for prior in ("shape", "model"):
        other = intruder_risk(table, posterior, release, prior=prior)
        assert list(other.gains) == ["uniform", "shape", "model"]
        for name, gain in other.gains.items():
            assert gain.found == risk.gains[name].found
            pd.testing.assert_frame_equal(gain.by_cell, risk.gains[name].by_cell)
        own = other.gains[prior]
        assert own.found.after == other.r_all.value
        assert own.guessed.before == pytest.approx(other.r_all.baseline)
        assert own.unique.after == other.r_unq.value
        np.testing.assert_array_equal(own.by_cell["after"], other.true_count_probability)
    flat = risk.gains["uniform"]
    assert (flat.found.before, flat.guessed.before) == (0.0, pytest.approx(1 / 9))
    assert flat.found.after == risk.r_all.value
    given = intruder_risk(table, posterior, release, prior=shares_of_counts(table))
    assert given.gains["given"].probability == given.gains["shape"].probability
    assert intruder_gain(risk) is risk.strongest
    with pytest.raises(InputError, match="'given' was not measured"):
        intruder_gain(risk, prior="given")


def test_earlier_releases_are_further_data_sets(table, posterior):
    """Two releases one after the other tell what both would tell at once."""
    both = synthesize(table, posterior, datasets=2, seed=2)
    one, other = (part.drop(columns="dataset") for _, part in both.groupby("dataset"))
    at_once = intruder_risk(table, posterior, both)
    in_turn = intruder_risk(table, posterior, one, already_released=[other])
    np.testing.assert_array_equal(at_once.rho, in_turn.rho)
    assert in_turn.datasets == 1
    assert in_turn.already_released.sizes["dataset"] == 1
    for name, gain in at_once.gains.items():
        assert gain.guessed == in_turn.gains[name].guessed  # before means before any release
    pd.testing.assert_frame_equal(log_ratios(at_once).by_cell, log_ratios(in_turn).by_cell)
    alone = intruder_risk(table, posterior, one)
    assert not np.array_equal(alone.rho, in_turn.rho)
    # and what is drawn anew stands beside what is out
    again = repeat_risk(table, posterior, in_turn, releases=3, seed=4)
    without = repeat_risk(table, posterior, alone, releases=3, seed=4)
    assert not again["true_count_probability"].equals(without["true_count_probability"])


def test_an_earlier_release_of_other_cells_is_refused_before_the_work(table, posterior):
    release = synthesize(table, posterior, seed=2)
    with pytest.raises(InputError, match="earlier release 1"):
        intruder_risk(table, posterior, release, already_released=[release.assign(n=11)])


def test_order_of_rows_moves_no_gain(table, risk):
    shuffled = read_flows(
        table.frame.sample(frac=1.0, random_state=3), origin="o", destination="d", count="n"
    )
    fitted = fit_flows(shuffled, draws=100, tune=100, chains=2, seed=1)
    other = intruder_risk(shuffled, fitted, synthesize(shuffled, fitted, seed=2))
    for name, gain in other.gains.items():
        assert gain.guessed == risk.gains[name].guessed
        assert gain.pushed == risk.gains[name].pushed


def test_choosing_and_policy_limit_the_gain(table, posterior, risk):
    """Else a release that gives cells away is chosen for its totals."""
    free = choose_release(table, posterior, risk, candidates=8, repetitions=2, seed=3)
    limit = float(free.candidates["gain_bits"].median())
    limits = FlowLimits(gain_bits=max(limit, 0.0))
    bound = choose_release(table, posterior, risk, limits, candidates=8, repetitions=2, seed=3)
    within = bound.candidates["gain_bits"] <= max(limit, 0.0)
    assert bound.candidates["within_limits"].equals(within)
    assert within[bound.candidates["chosen"]].all() or not within.any()
    for number in (1, 2):  # what the candidate table says is what the measurement finds
        chosen = choose_release(table, posterior, risk, candidates=1, repetitions=1, seed=number)
        found = intruder_risk(table, posterior, chosen.release)
        row = chosen.candidates.iloc[0]
        same = found.gains[risk.strongest.prior]
        assert row["gain_bits"] == pytest.approx(same.bits.gain, abs=1e-12)
        assert row["pushed_over_80"] == same.pushed[0.8]


@pytest.mark.parametrize(
    ("limits", "verdicts"),
    [
        (FlowLimits(gain_bits=10.0, pushed_over_80=1000), ["pass", "pass"]),
        (FlowLimits(gain_bits=0.0, pushed_over_80=0), ["fail", "fail"]),
    ],
)
def test_limits_on_the_gain(risk, limits, verdicts):
    strong = risk.strongest
    pushed = replace(
        strong,
        bits=strong.bits._replace(gain=0.2),
        pushed={0.5: 3, 0.8: 2, 0.95: 0},
        unreliable=0,
    )
    found = replace(risk, gains={strong.prior: pushed})
    checks = check_limits(Policy("Board", DAY, limits), found, unique="single-mover")
    assert [check.verdict for check in checks] == verdicts
    assert [check.key for check in checks] == ["limit_gain_bits", "limit_pushed_over_80"]
    assert [check.value for check in checks] == [0.2, 2]
    unsure = replace(risk, gains={strong.prior: replace(pushed, unreliable=30)})
    checks = check_limits(Policy("Board", DAY, limits), unsure, unique="single-mover")
    # nobody knows how many bits such cells add; thirty more pushed ones are still few enough
    unknown = "look" if verdicts[0] == "pass" else "fail"
    assert [check.verdict for check in checks] == [unknown, verdicts[1]]
    checks = check_limits(Policy("Board", DAY, limits), None, unique="single-mover")
    assert [check.verdict for check in checks] == ["look", "look"]


@pytest.mark.parametrize("value", [-0.1, float("inf"), float("nan"), True, "0.1"])
def test_a_limit_in_bits_is_a_number(value):
    with pytest.raises(InputError, match="gain_bits must be a number of bits"):
        FlowLimits(gain_bits=value)


@pytest.mark.parametrize("value", [-1, 0.5, True, "3"])
def test_a_limit_on_cells_is_a_whole_number(value):
    with pytest.raises(InputError, match="pushed_over_80 must be a whole number from 0"):
        FlowLimits(pushed_over_80=value)
