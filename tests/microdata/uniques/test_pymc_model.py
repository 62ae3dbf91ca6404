"""The model of the concentration is the one that is integrated, and its trace is taken."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from bayes_sdc import InputError, learn_uniques, unique_probability, uniques_model
from bayes_sdc.microdata.uniques.learned import concentration_density

SIZES = pd.Series({1: 20, 2: 8, 5: 3})
N, K = 2000, 200


def test_its_density_is_the_one_that_is_integrated() -> None:
    density = uniques_model(SIZES, K).compile_logp(jacobian=False)
    points = np.array([-2.0, 0.1, 1.4])
    theirs = [density({"log_concentration": point}) for point in points]
    sizes, cells = SIZES.index.to_numpy(), SIZES.to_numpy()
    ours = concentration_density(sizes, cells, K)(points[:, None])
    np.testing.assert_allclose(np.diff(theirs), np.diff(ours), rtol=1e-8)


@pytest.mark.slow
def test_the_trace_of_pm_sample_gives_the_uniques_of_the_quadrature() -> None:
    with uniques_model(SIZES, K):
        trace = pm.sample(1500, tune=1000, chains=4, cores=1, progressbar=False, random_seed=3)
    taken = learn_uniques(SIZES, N, K, trace=trace, seed=1)
    exact = learn_uniques(SIZES, N, K, seed=1)
    assert taken.posterior is trace
    assert taken.trusted
    assert taken.uniques.value == pytest.approx(exact.uniques.value, rel=0.05)


def test_a_trace_of_known_draws_gives_the_mean_over_them() -> None:
    c = np.full((4, 60), 0.7) * (1.0 + 1e-12 * np.random.default_rng(1).normal(size=(4, 60)))
    trace = xr.DataTree.from_dict(
        {"posterior": xr.Dataset({"concentration": (("chain", "draw"), c)})}
    )
    taken = learn_uniques(SIZES, N, K, trace=trace, draws=200, seed=1)
    expected = unique_probability(int(SIZES.index @ SIZES), N, K, concentration=0.7)
    assert taken.probability.value == pytest.approx(expected, rel=1e-6)


def test_what_is_no_trace_is_refused() -> None:
    with pytest.raises(InputError, match=r"pm\.sample"):
        learn_uniques(SIZES, N, K, trace=xr.DataTree())
