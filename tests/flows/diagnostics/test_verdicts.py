"""Verdicts: each number beyond its limit changes one verdict, and that one alone."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.checks import Check
from bayes_sdc.flows.diagnostics import Dispersion, checks
from bayes_sdc.flows.diagnostics.verdicts import dispersed


def verdicts(
    groups: pd.DataFrame,
    errors: list[float],
    unreliable: int = 0,
    width: float = 5.0,
    value: float = 1.0,
    by_size: bool = False,
) -> dict[str, Check]:
    # 100 cells of each count, and intervals narrow enough for an error of 15 % to lie outside
    expected = 100.0 * (1.0 + np.array(errors))
    predictive = pd.DataFrame(
        {
            "observed": 100,
            "expected": expected,
            "lower": expected - width,
            "upper": expected + width,
            "relative_error": errors,
        },
        index=pd.RangeIndex(1, len(errors) + 1, name="count"),
    )
    risk = SimpleNamespace(
        rho=xr.DataArray(np.zeros((50, 9)), dims=("cell", "count")),
        unreliable_cells=unreliable,
        khat_threshold=0.7,
    )
    dispersion = Dispersion(value, 0.9, 1.05)
    sized = by_size_of(predictive)
    if by_size:  # the misfit of one class is made up for by another
        predictive = predictive.assign(relative_error=0.0)
    found = checks(groups, predictive, sized, dispersion, risk)
    return {check.name: check for check in found}


def by_size_of(predictive: pd.DataFrame) -> pd.DataFrame:
    """The same numbers as those of groups of one size."""
    return pd.concat({"10 to 99": predictive}, names=["size"])


@pytest.fixture(scope="module")
def passing() -> pd.DataFrame:
    """Three groups of 4 x 4 cells whose chains agree."""
    numbers = {"cells": 16, "origins": 4, "destinations": 4, "blocks": 1, "parameters": 10}
    counted = dict.fromkeys(("rhat_above", "ess_below", "divergences", "at_bound"), 0)
    good = {"rhat": 1.001, "ess": 1500.0, "by_prior": False}
    return pd.DataFrame(numbers | counted | good, index=pd.Index(["g1", "g2", "g3"], name="group"))


def test_good_numbers_pass_every_check(passing):
    found = verdicts(passing, [0.1, -0.149, 0.0])
    assert list(found) == [
        "convergence",
        "divergences",
        "small groups",
        "fit to the counts",
        "fit by size of group",
        "dispersion",
        "importance weights",
    ]
    assert {check.verdict for check in found.values()} == {"pass"}


@pytest.mark.parametrize(
    ("changed", "name", "verdict"),
    [
        ({"rhat": 1.02, "rhat_above": 1}, "convergence", "look"),
        ({"ess": 350.0, "ess_below": 2}, "convergence", "look"),
        ({"rhat": 1.051, "rhat_above": 1}, "convergence", "fail"),
        ({"rhat": np.inf, "rhat_above": 1}, "convergence", "fail"),
        ({"ess": 99.0, "ess_below": 1}, "convergence", "fail"),
        ({"divergences": 1}, "divergences", "look"),
        ({"by_prior": True}, "small groups", "look"),
    ],
)
def test_one_bad_group_changes_its_verdict_alone(passing, changed, name, verdict):
    groups = passing.copy()
    for column, value in changed.items():
        groups.loc["g2", column] = value
    found = verdicts(groups, [0.0])
    assert found[name].verdict == verdict
    assert {c.verdict for n, c in found.items() if n != name} == {"pass"}
    assert "of 3 groups" in found["convergence"].reason


@pytest.mark.parametrize("errors", [[0.0, 0.151, 0.1], [0.1, 0.0, -0.2], [0.0, -0.5, 0.0]])
def test_misfit_of_either_sign_is_to_be_looked_at(passing, errors):
    check = verdicts(passing, errors)["fit to the counts"]
    assert check.verdict == ("fail" if min(errors) < -0.3 else "look")
    worst = int(np.nanargmax(np.abs(errors)))
    assert f"{worst + 1} ({errors[worst]:+.0%})" in check.reason
    assert check.reason.startswith("1 of 3 counts")


def test_misfit_in_groups_of_one_size_is_to_be_looked_at(passing):
    # else tiny groups that the model misses are hidden behind the large ones
    found = verdicts(passing, [0.0, -0.43, *[0.2] * 12], by_size=True)
    assert found["fit to the counts"].verdict == "pass"
    check = found["fit by size of group"]
    assert check.verdict == "look"
    assert "2 in groups with 10 to 99 small cells (-43%)" in check.reason
    assert check.reason.startswith("13 of 14 counts")
    assert "and others" in check.reason


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(1.04, "pass"), (1.07, "look"), (0.85, "look"), (1.12, "look"), (1.3, "fail")],
)
def test_dispersion_beyond_chance_is_judged(passing, value, verdict):
    # else a table whose counts scatter more than the model allows is released unseen
    assert verdicts(passing, [0.0], value=value)["dispersion"].verdict == verdict


@given(value=st.floats(0.5, 1.6), middle=st.floats(0.9, 1.1), width=st.floats(0.0, 0.4))
def test_verdict_on_dispersion_is_that_of_the_printed_intervals(value, middle, width):
    # else a reader sees a value outside the interval beside the word "pass"
    check = dispersed(Dispersion(value, middle - width, middle + width))
    at, least, most, worst, best = (
        float(number) for number in re.findall(r"\d\.\d\d", check.reason)[:5]
    )
    verdict = "pass" if least <= at <= most else "look" if worst <= at <= best else "fail"
    assert check.verdict == verdict


def test_error_within_the_predictive_interval_is_chance(passing):
    # else every small table fails, for a count that two cells have and three were expected to
    assert verdicts(passing, [0.4, -0.3], width=50.0)["fit to the counts"].verdict == "pass"


def test_count_that_only_replicas_have_is_to_be_looked_at(passing):
    # else a model that predicts many nines where there are none passes: no relative error exists
    predictive = pd.DataFrame(
        {
            "observed": [90, 0],
            "expected": [70.0, 20.0],
            "lower": [60.0, 10.0],
            "upper": [95.0, 30.0],
            "relative_error": [-0.22, np.nan],
        },
        index=pd.RangeIndex(1, 3, name="count"),
    )
    risk = SimpleNamespace(
        rho=xr.DataArray(np.zeros((5, 2)), dims=("cell", "count")),
        unreliable_cells=0,
        khat_threshold=0.7,
    )
    dispersion = Dispersion(1.0, 0.9, 1.1)
    found = {
        check.name: check
        for check in checks(passing, predictive, by_size_of(predictive), dispersion, risk)
    }
    assert found["fit to the counts"].verdict == "look"
    assert "2 (none observed)" in found["fit to the counts"].reason


def test_one_unreliable_cell_is_to_be_looked_at(passing):
    check = verdicts(passing, [0.0], unreliable=1)["importance weights"]
    assert check.verdict == "look"
    assert "1 of 50 cells" in check.reason
    assert "0.70" in check.reason
