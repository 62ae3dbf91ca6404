"""Limits on the use of a release are judged like those on its risk."""

import datetime

import pytest

from bayes_sdc import FlowLimits, InputError, Policy, protect_flows, read_flows, simulate_flows
from bayes_sdc.report.policy_limits import WITHHELD, tell_limit

DAY = datetime.date(2026, 1, 15)
FAST = {"draws": 40, "tune": 40, "chains": 2, "releases": 1, "seed": 3}


@pytest.fixture(scope="module")
def table():
    return read_flows(
        simulate_flows(areas=10, states=1, seed=3),
        origin="origin", destination="destination", count="count",
    )  # fmt: skip


@pytest.mark.parametrize(("limit", "verdict"), [(0.999, "pass"), (0.0, "fail")])
def test_an_error_of_totals_beyond_its_limit_fails(table, limit, verdict) -> None:
    policy = Policy("Board", DAY, FlowLimits(totals_error=limit, pmse_ratio=1e6))
    result = protect_flows(table, policy=policy, **FAST)
    checks = {check.key: check for check in result.checks}
    error = checks["limit_totals_error"]
    assert (error.verdict, error.value) == (verdict, result.measured.utility.totals_error)
    assert checks["limit_pmse_ratio"].value == result.measured.utility.pmse_ratio
    # nobody knows how far one count can move the ratio, so its verdict is not for the public
    assert tell_limit(checks["limit_pmse_ratio"], at_least=1).verdict == WITHHELD


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"pmse_ratio": 0.5}, "must be a ratio, 1 or more"),
        ({"pmse_ratio": True}, "must be a ratio, 1 or more"),
        ({"totals_error": 1.5}, "totals_error"),
    ],
)
def test_limits_on_use_that_cannot_be_meant_are_refused(limits, said) -> None:
    with pytest.raises(InputError, match=said):
        FlowLimits(**limits)
