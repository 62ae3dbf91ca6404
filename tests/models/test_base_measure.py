"""The coordinates of a base measure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.models.base_measure import IMPOSSIBLE, basis, log_measure, possible


@st.composite
def rules(draw: st.DrawFn) -> tuple[int, list[int]]:
    """A largest count, and counts that a rule excludes; three are possible."""
    upper = draw(st.integers(2, 14))
    counts = st.lists(st.integers(0, upper), unique=True, max_size=upper - 2)
    return upper, draw(counts)


@given(rules())
def test_columns_say_nothing_that_the_rate_says(rule: tuple[int, list[int]]) -> None:
    """Neither a constant nor a trend over the possible counts; but every other shape."""
    upper, impossible = rule
    columns, y = basis(upper, impossible), possible(upper, impossible)
    there = columns[y]
    np.testing.assert_allclose(there.T @ np.column_stack([np.ones(len(y)), y]), 0.0, atol=1e-8)
    assert np.linalg.matrix_rank(np.column_stack([there, np.ones(len(y)), y])) == len(y)
    assert not columns[impossible].any()


@given(rules())
def test_columns_are_orthogonal_with_the_spreads_that_are_printed(
    rule: tuple[int, list[int]],
) -> None:
    upper, impossible = rule
    there = basis(upper, impossible)[possible(upper, impossible)]
    degree = np.arange(2, there.shape[1] + 2)
    np.testing.assert_allclose(
        there.T @ there / len(there), np.diag(1.0 / (degree - 1.0)), atol=1e-8
    )


def test_fewer_than_three_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="three possible"):
        basis(4, [0, 1, 2])


def test_zero_is_a_rule_and_nothing_else() -> None:
    measure = log_measure(np.array([0.3, -0.2]), 5, [1, 3])
    assert (measure[[1, 3]] == IMPOSSIBLE).all()
    assert (np.abs(measure[[0, 2, 4, 5]]) < 2.0).all()
