"""Swapping keeps all totals by area, and moves about as many movers as asked for."""

import numpy as np
import pytest

from bayes_sdc import InputError
from bayes_sdc.flows.release.alternating_cycles import graph_of
from bayes_sdc.flows.release.swapping import swapped, swapping_matrix

LEFT, RIGHT = np.divmod(np.arange(120), 12)
RNG = np.random.default_rng(4)
Y = RNG.integers(0, 9, 120)


@pytest.mark.parametrize("rate", [0.05, 0.3, 1.0])
def test_swapping_keeps_totals_and_bounds(rate) -> None:
    found = swapped(graph_of(LEFT, RIGHT), Y, 8, rate=rate, rng=np.random.default_rng(1))
    for of in (LEFT, RIGHT):
        assert (np.bincount(of, found) == np.bincount(of, Y)).all()
    assert found.min() >= 0
    assert found.max() <= 8
    assert (found != Y).any()
    # a mover is taken once or comes back: not more than the rate left their cell
    assert np.maximum(Y - found, 0).sum() <= np.ceil(rate * Y.sum()) + 2


def test_swapping_matrix_is_made_of_probabilities() -> None:
    m = swapping_matrix(
        graph_of(LEFT, RIGHT), Y, 1, 9, rate=0.2, repetitions=50, rng=np.random.default_rng(1)
    )
    np.testing.assert_allclose(m.sum("released"), 1.0)
    assert (np.diag(m) > 0.2).all()  # most movers stay


def test_a_rate_beyond_its_range_is_refused() -> None:
    with pytest.raises(InputError, match="rate must be"):
        swapped(graph_of(LEFT, RIGHT), Y, 8, rate=0.0, rng=np.random.default_rng(1))
