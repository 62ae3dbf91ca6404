"""Log ratios of release probabilities, against mechanisms whose epsilon is known."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.flows.intruder.log_ratios import NO_PROMISE, clamped_geometric, from_matrices


@given(st.floats(0.01, 5.0), st.integers(2, 12), st.integers(1, 4))
def test_the_geometric_mechanism_gives_back_its_epsilon(epsilon, width, datasets):
    """Else the epsilon that is compared with is another mechanism's."""
    m = np.array([clamped_geometric(epsilon, width)])
    np.testing.assert_allclose(m.sum(axis=2), 1.0, atol=1e-12)
    found = from_matrices(m, np.zeros((1, width)), ["a>x"], datasets=datasets)
    largest = found.distribution.loc["largest"]
    assert largest["neighbours"] == pytest.approx(datasets * epsilon, rel=1e-9)
    assert largest["epsilon_neighbours"] == pytest.approx(datasets * epsilon, rel=1e-9)
    assert largest["epsilon_any_pair"] == pytest.approx(datasets * epsilon, rel=1e-9)
    assert found.by_cell.loc["a>x", "neighbours_at_least"] == pytest.approx(datasets * epsilon)


@given(st.floats(0.05, 3.0), st.integers(2, 9))
def test_the_mechanism_is_noise_that_is_clamped(epsilon, width):
    """Its matrix against sums over the noise itself, far into the tails."""
    noise = np.arange(-2000, 2001)
    weight = np.exp(-epsilon * np.abs(noise))
    weight /= weight.sum()
    for y, row in enumerate(clamped_geometric(epsilon, width)):
        expected = np.bincount(np.clip(y + noise, 0, width - 1), weight, width)
        np.testing.assert_allclose(row, expected, atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(2, 6))
def test_ratios_are_those_of_all_pairs(seed, cells, width):
    rng = np.random.default_rng(seed)
    m = rng.dirichlet(np.ones(width), (cells, width)) + 1e-9
    error = rng.uniform(0.0, 0.01, (cells, width))
    found = from_matrices(m, error, [str(t) for t in range(cells)]).by_cell
    for t in range(cells):
        pairs = [
            (abs(a - b), np.log(m[t, a, r] / m[t, b, r]), error[t, a], error[t, b], a, b, r)
            for a, b, r in itertools.product(range(width), range(width), range(width))
            if a != b
        ]
        assert found["any_pair"].iloc[t] == pytest.approx(max(p[1] for p in pairs))
        assert found["neighbours"].iloc[t] == pytest.approx(max(p[1] for p in pairs if p[0] == 1))
    assert (found["neighbours_at_least"] <= found["neighbours"] + 1e-12).all()
    assert (found["any_pair_at_least"] <= found["any_pair"] + 1e-12).all()
    assert (found >= 0.0).all(axis=None)


def test_what_the_monte_carlo_error_hides_is_not_claimed():
    """Two tiny probabilities of which nothing is known must not give a large ratio for certain."""
    m = np.array([[[0.999999, 1e-6], [1.0 - 1e-12, 1e-12]]])
    (found,) = from_matrices(m, np.full((1, 2), 0.003), ["a"]).by_cell.to_dict("records")
    assert found["neighbours"] > 10.0
    assert found["neighbours_at_least"] == 0.0
    (unknown,) = from_matrices(m, np.full((1, 2), np.inf), ["a"]).by_cell.to_dict("records")
    assert unknown["any_pair_at_least"] == 0.0


def test_a_release_independent_of_the_table_has_no_ratio():
    m = np.tile(np.array([0.2, 0.3, 0.5]), (4, 3, 1))
    found = from_matrices(m, np.zeros((4, 3)), list("abcd"))
    assert (found.by_cell == 0.0).all(axis=None)
    assert NO_PROMISE in found.summary()
    assert NO_PROMISE in found._repr_html_()


def test_a_count_that_cannot_be_released_bounds_a_ratio_as_it_gives_it() -> None:
    """Given kept totals some counts have no chance, and no error either."""
    m = np.array([[[1.0, 0.0], [0.5, 0.5]]])
    found = from_matrices(m, np.zeros((1, 2)), ["a>x"]).by_cell.loc["a>x"]
    assert np.isfinite(found).all()
    assert found["neighbours_at_least"] == found["neighbours"]
