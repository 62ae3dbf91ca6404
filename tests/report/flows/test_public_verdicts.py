"""A public verdict near its limit may go either way, and far from it is the true one."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.checks import Check
from bayes_sdc.flows.diagnostics import Dispersion
from bayes_sdc.flows.diagnostics.verdicts import MISFIT_FAIL
from bayes_sdc.flows.release.use.uses import GOOD, NOT_GOOD, WITH_CARE, Z
from bayes_sdc.report.flows.public_reasons import PUBLIC_REASONS
from bayes_sdc.report.flows.public_shares import PublicShares
from bayes_sdc.report.flows.public_verdicts import public_fit, public_uses


def measured(error: float, cells: int = 2700, scatter: float = 1.0) -> SimpleNamespace:
    """As many of each count, the first of them predicted with some relative error."""
    observed = np.full(9, cells / 9)
    expected = observed * np.r_[1.0 + error, np.ones(8)]
    predictive = pd.DataFrame(
        {
            "observed": observed, "expected": expected, "lower": expected - 5,
            "upper": expected + 5, "relative_error": (expected - observed) / observed,
        },
        index=pd.RangeIndex(1, 10, name="count"),
    )  # fmt: skip
    by_size = pd.concat({"100 or more": predictive}, names=["size"])
    return SimpleNamespace(
        predictive=predictive, predictive_by_size=by_size,
        dispersion=Dispersion(scatter, 0.97, 1.03),
    )  # fmt: skip


def told(key: str, of: SimpleNamespace, verdict: str = "pass") -> set[str | None]:
    check = Check(key, verdict, "", key=key)
    return {public_fit(check, of, PublicShares(seed)) for seed in range(25)}


@pytest.mark.parametrize("key", ["fit", "fit_by_size"])
def test_a_fit_near_the_limit_may_be_told_either_way(key):
    assert told(key, measured(0.15)) == told(key, measured(0.15 + 9 / 2700)) == {"pass", "look"}
    assert told(key, measured(0.0)) == {"pass"}
    assert told(key, measured(0.6)) == {"look"}, "a check that failed would have held the release"


@given(seed=st.integers(0, 10**6), error=st.sampled_from([0.1, 0.15, 0.2, 0.25, 0.4, 1.2]))
def test_by_size_is_never_better_than_the_whole(seed: int, error: float) -> None:
    """The groups add up to the whole: it cannot be missed where all of them are met."""
    of = measured(error)
    checks = {
        "fit": Check("fit", "fail" if error > MISFIT_FAIL else "look", "", key="fit"),
        "fit_by_size": Check("fit by size", "pass", "", key="fit_by_size"),
    }
    whole, by_size = (public_fit(one, of, PublicShares(seed)) for one in checks.values())
    assert by_size == "look" or whole == "pass"


def test_what_is_said_by_size_stands_alone() -> None:
    """A sentence that says "it does so" is false after one that says that it does not."""
    said = PUBLIC_REASONS["fit_by_size", "pass"]
    assert "reproduces how common each small count is" in said


def test_a_dispersion_near_the_limit_may_be_told_either_way():
    assert told("dispersion", measured(0.0, scatter=1.05)) == {"pass", "look"}
    assert told("dispersion", measured(0.0, scatter=1.2)) == {"look"}
    assert told("dispersion", measured(0.0, scatter=1.0)) == {"pass"}


def test_a_failure_is_told_and_few_cells_are_not_judged():
    assert told("fit", measured(0.0), "fail") == {"fail"}
    assert told("fit_by_size", measured(0.0, cells=450)) == {None}


def test_uses_near_a_limit_may_be_told_either_way():
    rows = [("a", "error", 0.02), ("b", "error", 0.0), ("c", "error", 0.05), ("d", Z, 0.8),
            ("e", Z, 0.99), ("f", "error", 0.3)]  # fmt: skip
    uses = pd.DataFrame(rows, columns=["use", "measure", "value"])
    found = [dict(map(reversed, public_uses(uses, PublicShares(seed)))) for seed in range(40)]
    by_use = {use: {one[use] for one in found} for use, _, _ in rows}
    assert np.mean([one["c"] == WITH_CARE for one in found]) > 0.9
    assert by_use | {"c": WITH_CARE} == {
        "a": {GOOD, WITH_CARE}, "b": {GOOD}, "c": WITH_CARE, "d": {WITH_CARE, NOT_GOOD},
        "e": {GOOD}, "f": {NOT_GOOD},
    }  # fmt: skip
