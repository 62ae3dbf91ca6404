"""Controlled rounding: additive, to neighbouring multiples, and unbiased."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import InputError
from bayes_sdc.flows.release.protections.controlled_rounding import controlled_rounding


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 30)), min_size=1, max_size=40
    ),
    st.integers(2, 7),
    st.integers(0, 2**32 - 1),
)
def test_cells_and_totals_are_rounded_to_neighbours(cells, base, seed) -> None:
    left, right, counts = np.array(cells).T
    left, right = (np.unique(of, return_inverse=True)[1] for of in (left, right))
    found = controlled_rounding(left, right, counts, base=base, rng=np.random.default_rng(seed))
    for of in (np.arange(len(counts)), left, right, np.zeros(len(counts), np.int64)):
        rounded, true = np.bincount(of, found), np.bincount(of, counts)
        assert (rounded % base == 0).all()
        assert (np.abs(rounded - true) < base).all()


def test_each_released_count_has_the_true_one_as_its_mean() -> None:
    rng = np.random.default_rng(1)
    left, right = np.divmod(np.arange(20), 5)
    counts = rng.integers(1, 10, 20)
    draws = np.stack(
        [controlled_rounding(left, right, counts, base=5, rng=rng) for _ in range(4000)]
    )
    fraction = counts % 5 / 5
    error = 5 * np.sqrt(fraction * (1 - fraction) / len(draws))
    assert (np.abs(draws.mean(axis=0) - counts) <= 4.5 * error + 1e-12).all()


def test_a_base_of_one_is_refused() -> None:
    one = np.zeros(1, np.int64)
    with pytest.raises(InputError, match="base must be 2 or more"):
        controlled_rounding(one, one, one, base=1, rng=np.random.default_rng(1))
