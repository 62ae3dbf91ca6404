"""Quadrature of one or two parameters against closed forms and a dense product rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bayes_sdc.microdata.individual.shared_rates import fit_rates, group_rates, rates_density
from bayes_sdc.microdata.posterior.quadrature import draw, integrate
from bayes_sdc.models.priors import LOG_SCALE_SD, RATES, log_typical


@given(
    mean=st.floats(-5, 5),
    sds=st.tuples(st.floats(1e-3, 2), st.floats(1e-3, 2)),
    correlation=st.floats(-0.999, 0.999),
)
def test_moments_of_a_normal_density_of_any_shape(mean, sds, correlation):
    """A ridge a thousand times as long as it is wide too."""
    covariance = np.array(
        [[sds[0] ** 2, correlation * sds[0] * sds[1]], [correlation * sds[0] * sds[1], sds[1] ** 2]]
    )
    inverse = np.linalg.inv(covariance)

    def log_density(x):
        shifted = x - mean
        return -0.5 * np.einsum("ni,ij,nj->n", shifted, inverse, shifted)

    found = integrate(log_density, [(-20.0, 20.0), (-20.0, 20.0)])
    assert found.converged
    assert found.weights.sum() == pytest.approx(1.0)
    about = found.points - mean
    np.testing.assert_allclose(found.weights @ about, 0.0, atol=1e-7)
    np.testing.assert_allclose(
        (about * found.weights[:, None]).T @ about, covariance, rtol=1e-6, atol=1e-9
    )


@given(shape=st.floats(4.0, 200.0), rate=st.floats(1e-4, 1e4))
def test_mean_of_a_gamma_distribution_by_the_density_of_its_log(shape, rate):
    """One parameter, with a long tail to the left."""
    found = integrate(lambda x: shape * x[:, 0] - rate * np.exp(x[:, 0]), [(-30.0, 30.0)])
    assert found.converged
    value = np.exp(found.points[:, 0])
    assert found.weights @ value == pytest.approx(shape / rate, rel=1e-8)
    assert found.weights @ value**2 == pytest.approx(shape * (shape + 1) / rate**2, rel=1e-7)


@pytest.mark.parametrize("sd", [0.5, 1.5, 2.5])
def test_means_of_exponentials_keep_their_digits(sd):
    """Nodes left out for their weight alone took 5e-6 of the mean of a wide log-normal."""
    found = integrate(lambda x: -0.5 * ((x[:, 0] - 1.0) / sd) ** 2, [(-20.0, 20.0)])
    assert found.converged
    for sign in (1.0, -1.0):
        mean = found.weights @ np.exp(sign * found.points[:, 0])
        assert mean == pytest.approx(np.exp(sign + 0.5 * sd**2), rel=2e-9)


BEND = 0.03


def banana(x):
    """A bent ridge: the second parameter is normal about a multiple of the first's square."""
    return -0.5 * x[:, 0] ** 2 - 0.5 * ((x[:, 1] - BEND * x[:, 0] ** 2) / 0.05) ** 2


def test_a_bent_ridge_has_its_nodes_along_the_bend():
    found = integrate(banana, [(-9.0, 9.0), (-9.0, 9.0)])
    assert found.converged
    a, b = found.points.T
    assert found.weights @ a**2 == pytest.approx(1.0, rel=1e-7)
    assert found.weights @ b == pytest.approx(BEND, rel=1e-7)
    assert found.weights @ b**2 == pytest.approx(3 * BEND**2 + 0.05**2, rel=1e-7)


def test_a_ridge_bent_too_much_is_said_to_be_not_converged():
    """Neighbours of a node miss the ridge: the halved step tells, and nothing passes for exact."""

    def log_density(x):
        return -0.5 * x[:, 0] ** 2 - 0.5 * ((x[:, 1] - 0.1 * x[:, 0] ** 2) / 0.05) ** 2

    found = integrate(log_density, [(-9.0, 9.0), (-9.0, 9.0)])
    assert not found.converged
    assert 1e-8 < found.error < 1e-5


def test_two_modes_far_apart_are_both_found():
    """Nodes are spread from the modes: one that nobody looked for would be missing."""

    def log_density(x):
        left = -0.5 * ((x[:, 0] + 6.0) / 0.3) ** 2
        return np.logaddexp(left, np.log(2.0) - 0.5 * ((x[:, 0] - 6.0) / 0.3) ** 2)

    found = integrate(log_density, [(-20.0, 20.0)])
    assert found.converged
    assert found.weights @ (found.points[:, 0] > 0) == pytest.approx(2 / 3, rel=1e-7)


def test_a_density_with_a_corner_is_said_to_be_not_converged():
    found = integrate(lambda x: -30.0 * np.abs(x[:, 0] - 0.1234), [(-5.0, 5.0)])
    assert not found.converged
    assert found.error > 1e-8


@pytest.mark.parametrize("seed", [1, 2])
def test_draws_have_the_distribution_itself(seed):
    """Not the interpolated density: its spread would be too large by a per cent or more."""
    found = integrate(banana, [(-9.0, 9.0), (-9.0, 9.0)])
    drawn = draw(found, banana, 20_000, np.random.default_rng(seed))
    assert drawn.shape == (20_000, 2)
    across = (drawn[:, 1] - BEND * drawn[:, 0] ** 2) / 0.05
    for values in (drawn[:, 0], across):
        assert stats.kstest(values, "norm").pvalue > 1e-4
    lag = np.corrcoef(drawn[:-1, 0], drawn[1:, 0])[0, 1]
    assert abs(lag) < 4.5 / np.sqrt(20_000)


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize(
    ("f", "p"),
    [
        ([1] * 30 + [2] * 8 + [5, 9, 40], 0.1),
        ([1] * 60, 0.02),  # no repeated combination: alpha and beta follow a ridge
        ([7, 8, 9, 8, 8, 7], 0.5),  # nearly Poisson: alpha is large
        ([1, 10**6], 1e-12),
    ],
)
def test_rates_agree_with_a_dense_product_rule(f, p, extended):
    """Gauss-Legendre on a box of the prior, in plain coordinates: no lattice, mode or basis."""
    f, p = np.array(f), np.full(len(f), p)
    groups = group_rates(f, p, None)
    prior = RATES["extended" if extended else "gamma"]
    typical = log_typical(groups.f, groups.p, groups.copies)
    x, w = np.polynomial.legendre.leggauss(60)
    axes, weights = [], []
    for mean, sd in (
        (prior["log_shape_mean"], prior["log_shape_sd"]),
        (typical, LOG_SCALE_SD),
    ):
        edges = np.linspace(mean - 9 * sd, mean + 9 * sd, 15)
        half, middle = np.diff(edges) / 2, (edges[:-1] + edges[1:]) / 2
        axes.append((middle[:, None] + half[:, None] * x).ravel())
        weights.append((half[:, None] * w).ravel())
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    log_weight = rates_density(groups, extended)(grid) + np.log(np.outer(*weights)).ravel()
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    found = fit_rates(f, p, None, extended, 1000, 1)
    assert found.trusted
    for values, dense in (
        (np.log(found.nodes["alpha"] - prior["lowest"]), grid[:, 0]),
        (np.log(found.nodes["beta"]), -grid[:, 1]),
    ):
        deviation = np.sqrt(weight @ (dense - weight @ dense) ** 2)
        assert abs(found.weights @ values - weight @ dense) < 1e-7 * deviation
        assert found.weights @ values**2 == pytest.approx(weight @ dense**2, rel=1e-7)
