"""Independent counts given their sum, against every way in which they can make it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.flows.release.protections.alternatives import posterior_given_sum
from bayes_sdc.flows.release.synthetic.given_sum import counts_given_sum


def enumerated(prior, total):
    cells, values = prior.shape
    found = np.zeros_like(prior)
    for counts in itertools.product(range(values), repeat=cells):
        if sum(counts) == total:
            found[np.arange(cells), counts] += np.prod(prior[np.arange(cells), counts])
    return found / found.sum(axis=1, keepdims=True)


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(2, 5), st.booleans())
def test_equals_the_sum_over_all_ways(seed, cells, values, ruled_out):
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(values, 0.5), cells) + 1e-6
    truth = rng.integers(0, values, cells)
    if ruled_out:  # a count that the prior does not allow is not the true one
        prior[rng.random(prior.shape) < 0.3] = 0.0
        prior[np.arange(cells), truth] += 0.1
    prior /= prior.sum(axis=1, keepdims=True)
    found = counts_given_sum(prior, int(truth.sum()))
    np.testing.assert_allclose(found, enumerated(prior, truth.sum()), atol=1e-9)


@pytest.mark.parametrize("total", [0, 1, 1200, 2399, 2400])
def test_many_equal_cells_agree_with_the_closed_convolution(total):
    """At the ends the untilted convolution would underflow: 9**-300."""
    found = counts_given_sum(np.full((300, 9), 1 / 9), total)
    np.testing.assert_allclose(found, [posterior_given_sum(300, total, 8)] * 300, atol=1e-9)
