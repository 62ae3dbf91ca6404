"""The interval of a share is Wilson's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from bayes_sdc.flows.intruder.summarize import wilson


@given(st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_interval_is_that_of_scipy_and_holds_the_share(counts: tuple[int, int]) -> None:
    found, n = counts
    low, high = wilson(found, n)
    interval = binomtest(found, n).proportion_ci(0.95, "wilson")
    assert (low, high) == pytest.approx((interval.low, interval.high), rel=1e-12, abs=1e-15)
    assert 0.0 <= low <= found / n <= high <= 1.0
