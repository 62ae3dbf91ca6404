"""The goodness of fit of size indices counts every class once, however classes are joined."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.microdata.size_models.size_table import LEAST_EXPECTED, joined


@given(st.lists(st.floats(0.0, 40.0), min_size=1, max_size=12))
def test_every_class_is_in_one_group_of_neighbours_that_expects_enough(expected):
    """A class that is lost or counted twice gives a wrong chi-square, and nobody sees it."""
    by_size = np.array(expected)
    groups = joined(by_size)
    assert sorted(place for group in groups for place in group) == [*range(len(by_size))]
    assert all(max(group) - min(group) == len(group) - 1 for group in groups)
    if len(groups) > 1:
        assert min(by_size[group].sum() for group in groups) >= LEAST_EXPECTED * (1 - 1e-12)
