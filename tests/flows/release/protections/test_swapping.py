"""Swapping keeps all totals by area, and moves about as many movers as asked for."""

import numpy as np
import pytest

from bayes_sdc import InputError
from bayes_sdc.flows.release.protections.swapping import swapped, swapping_likelihood
from bayes_sdc.flows.release.totals.alternating_cycles import graph_of

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


def test_a_cell_that_no_swap_can_reach_is_told() -> None:
    """Averaged over all cells, what is certain of one would look like a chance."""
    left, right = np.append(LEFT, 10), np.append(RIGHT, 12)  # one more cell, on no square
    y = np.append(Y, 3)
    graph, rng = graph_of(left, right), np.random.default_rng(1)
    released = swapped(graph, y, 8, rate=0.5, rng=rng)
    found = swapping_likelihood(graph, y, released, 8, rate=0.5, repetitions=200, rng=rng)
    rho = np.exp(found) / np.exp(found).sum(axis=1, keepdims=True)
    assert rho[-1, 3] > 0.999999
    assert rho[:-1].max(axis=1).mean() < 0.9
    # the share that is unchanged is what the intruder expects of it
    chance = np.exp(found[np.arange(len(y)), released])
    assert abs(chance[released == y].mean() - (released == y).mean()) < 0.15


def test_a_rate_beyond_its_range_is_refused() -> None:
    with pytest.raises(InputError, match="rate must be"):
        swapped(graph_of(LEFT, RIGHT), Y, 8, rate=0.0, rng=np.random.default_rng(1))
