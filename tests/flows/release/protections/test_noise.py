"""Geometric noise and perturbation tables, against what defines them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import InputError
from bayes_sdc.flows.release.protections.noise import (
    cell_keys,
    geometric_noise,
    perturbation_table,
    perturbed,
)


@given(st.floats(0.05, 5.0), st.integers(0, 2), st.integers(3, 12))
def test_geometric_noise_keeps_its_epsilon_and_is_two_geometric_tails(epsilon, low, high) -> None:
    m = geometric_noise(low, high, epsilon=epsilon).to_numpy()
    np.testing.assert_allclose(m.sum(axis=1), 1.0)
    ratio = np.abs(np.diff(np.log(m), axis=0))
    assert ratio.max() <= epsilon + 1e-9
    # the difference of two geometric counts, by convolution, clamped
    p = (1 - np.exp(-epsilon)) * np.exp(-epsilon * np.arange(2000))
    tail = np.convolve(p, p[::-1])
    zero = len(p) - 1
    for y in range(low, high + 1):
        inside = [tail[zero + k - y] for k in range(low, high + 1)]
        inside[0] = tail[: zero + low - y + 1].sum()
        inside[-1] = tail[zero + high - y :].sum()
        np.testing.assert_allclose(m[y - low], inside, atol=1e-9)


@given(st.integers(2, 6), st.floats(0.1, 0.9), st.integers(0, 3))
def test_perturbation_table_is_unbiased_with_its_variance_and_bounds(distance, part, none) -> None:
    """Unbiased, variance V, at most D either way, no negative count, none that may not occur."""
    largest = distance + none + 3
    least = none if none < distance else np.inf
    most = min(1, distance) * distance
    for count in range(1, largest + 1):  # what all rows allow
        values = np.arange(-distance, distance + 1)
        values = values[(count + values == 0) | (count + values > none)]
        below, above = values[values < 0], values[values > 0]
        if 0 not in values:
            bad = len(below) == 0 or len(above) == 0
            least = np.inf if bad else max(least, -below.max() * above.min())
        most = min(most, -values.min() * values.max())
    variance = least + part * (most - least) if least < most else 1.0
    if not least < most:
        with pytest.raises(InputError, match="variance must be"):
            perturbation_table(largest, distance=distance, variance=1.0 + most, none_up_to=none)
        return
    table = perturbation_table(largest, distance=distance, variance=variance, none_up_to=none)
    m, released = table.to_numpy(), table["released"].to_numpy()
    noise = released - table["true"].to_numpy()[:, None]
    np.testing.assert_allclose(m.sum(axis=1), 1.0)
    np.testing.assert_allclose((m * noise).sum(axis=1), 0.0, atol=1e-7)
    np.testing.assert_allclose((m * noise**2).sum(axis=1)[1:], variance, atol=1e-6)
    assert m[np.abs(noise) > distance].max() == 0.0
    assert m[:, (released >= 1) & (released <= none)].sum() == 0.0
    assert m[0, 0] == 1.0
    np.testing.assert_allclose(
        m[-1][np.abs(noise[-1]) <= distance], m[-1][np.abs(noise[-1]) <= distance][::-1], atol=1e-6
    )  # far from 0 it is symmetric


def test_perturbation_table_has_the_largest_entropy() -> None:
    """No other noise with this mean and variance has more: along every allowed direction less."""
    m = perturbation_table(3, distance=3, variance=1.5).sel(true=2)
    values = m["released"].to_numpy() - 2
    p = m.to_numpy()
    inside = p > 0
    rules = np.vstack([np.ones(inside.sum()), values[inside], values[inside] ** 2])
    null = np.linalg.svd(rules)[2][3:]
    slope = null @ (-np.log(p[inside]) - 1.0)  # of the entropy
    np.testing.assert_allclose(slope, 0.0, atol=1e-6)


def test_a_cell_has_one_noise_however_often_it_is_asked_for() -> None:
    table = perturbation_table(9, distance=4, variance=2.0)
    labels = [f"{i}>{j}" for i in range(60) for j in range(60)]
    keys = cell_keys(labels, "a secret")
    true = np.full(len(labels), 5)
    first, again = (perturbed(table, true, keys) for _ in range(2))
    assert (first == again).all()
    share = np.bincount(first, minlength=table.sizes["released"]) / len(first)
    exact = table.sel(true=5).to_numpy()
    assert (np.abs(share - exact) <= 4.5 * np.sqrt(exact * (1 - exact) / len(first))).all()
    assert (cell_keys(labels, "another") != keys).mean() > 0.99


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.inf])
def test_no_noise_without_epsilon(epsilon) -> None:
    with pytest.raises(InputError, match="epsilon must be above 0"):
        geometric_noise(1, 9, epsilon=epsilon)
