"""Shares of a combination's people who are in the file, against sums over their number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import nbinom

from bayes_sdc.microdata.treatment.population import mean_share


def summed(f: int, shape: float, q: float) -> float:
    """Mean of f / F over the negative binomial of F - f, term by term."""
    law = nbinom(shape + f, q)
    k = np.arange(int(law.isf(1e-13)) + 2)
    return float((law.pmf(k) * f / (f + k)).sum())


@given(
    st.integers(1, 60),
    st.floats(0.05, 50.0),
    st.floats(0.01, 0.999),
)
def test_the_mean_share_is_the_sum_over_all_numbers_of_people(f, shape, q) -> None:
    """The recursion, the sum and the two moments are three ways to the same number."""
    assert mean_share(f, shape, q) == pytest.approx(summed(f, shape, q), rel=2e-5)


@pytest.mark.parametrize("f", [2, 5, 30])
@pytest.mark.parametrize("shape", [0.3, 4.0, 1000.0])
@pytest.mark.parametrize("q", [0.02, 0.3, 0.45, 0.55, 0.9])
def test_where_the_recursion_ends_nothing_jumps(f, shape, q) -> None:
    assert mean_share(f, shape, q) == pytest.approx(summed(f, shape, q), rel=2e-5)


def test_a_file_of_everybody_has_all() -> None:
    assert mean_share(3, 1.0, 1.0) == 1.0
