"""Ranks of records against those of scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from bayes_sdc.microdata.comparison.rankings import average_ranks


@given(st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.25, 1.0])))
def test_equal_values_share_the_mean_of_their_ranks(values: list[float]) -> None:
    """Else the order of the file would decide which of two equal records is the riskier one."""
    assert average_ranks(values).tolist() == rankdata(values).tolist()


@pytest.mark.parametrize("values", [[], [0.5], [0.5] * 4])
def test_few_and_equal_values(values: list[float]) -> None:
    assert average_ranks(np.array(values)).tolist() == rankdata(values).tolist()
