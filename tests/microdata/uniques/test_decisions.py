"""A Bayes test, and the sizes of samples, against trial of all of them."""

import math

from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.microdata.uniques.decisions import largest_sample, smallest_sample, unique_test
from bayes_sdc.microdata.uniques.unstructured import unique_probability


def test_bayes_test():
    limit = 1 / (1 + 3)
    assert unique_test(limit, loss_accept=1, loss_reject=3)
    assert not unique_test(math.nextafter(limit, 0), loss_accept=1, loss_reject=3)


@given(st.integers(1, 300), st.integers(1, 200), st.floats(0, 1), st.sampled_from([0.2, 1.0, 30.0]))
def test_sample_sizes_are_the_first_and_last_by_trial(N, K, q, c):
    probability = [unique_probability(n, N, K, concentration=c) for n in range(1, N + 1)]
    at_most = [n for n, value in enumerate(probability, start=1) if value <= q]
    at_least = [n for n, value in enumerate(probability, start=1) if value >= q]
    assert largest_sample(N, K, q, concentration=c) == max(at_most, default=0)
    assert smallest_sample(N, K, q, concentration=c) == min(at_least)
