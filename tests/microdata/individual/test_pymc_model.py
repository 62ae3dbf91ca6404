"""The model of the population frequencies is the one that is integrated, and its trace is taken."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

from bayes_sdc import InputError, individual_risk_model, superpopulation_risk
from bayes_sdc.microdata.individual.shared_rates import group_rates, rates_density

F = np.repeat([1, 2, 3, 5, 9], [30, 12, 6, 4, 2])
P = np.where(np.arange(len(F)) % 2, 0.3, 0.4)


@pytest.mark.parametrize("model", ["gamma", "extended"])
def test_its_density_is_the_one_that_is_integrated(model: str) -> None:
    """Else a trace of it would tell of other parameters than the report."""
    built = individual_risk_model(F, P, model=model)
    ours = rates_density(group_rates(F, P, None), model == "extended")
    density = built.compile_logp(jacobian=False)
    points = np.array([[-0.5, 0.3], [0.2, 1.0], [0.9, -0.7]])
    theirs = [density({"log_shape": a, "log_scale": b}) for a, b in points]
    np.testing.assert_allclose(np.diff(theirs), np.diff(ours(points)), rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gamma", "extended"])
def test_the_trace_of_pm_sample_gives_the_risk_of_the_quadrature(model: str) -> None:
    with individual_risk_model(F, P, model=model):
        trace = pm.sample(1500, tune=1000, chains=4, cores=1, progressbar=False, random_seed=3)
    taken = superpopulation_risk(F, P, model=model, trace=trace, seed=1)
    exact = superpopulation_risk(F, P, model=model, seed=1)
    assert taken.posterior is trace
    assert taken.converged
    assert taken.expected.value == pytest.approx(exact.expected.value, rel=0.02)
    np.testing.assert_allclose(taken.risk, exact.risk, rtol=0.05)


def test_a_trace_of_known_draws_gives_the_mean_over_them() -> None:
    """A posterior in one point is the model with these parameters, whose risk has a closed form."""
    alpha, beta = 0.0, 1e-9  # the prior 1/rate of the closed form
    flat = np.ones((4, 100))
    jitter = 1.0 + 1e-12 * np.random.default_rng(1).normal(size=flat.shape)
    trace = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(
                {
                    "alpha": (("chain", "draw"), alpha * flat),
                    "beta": (("chain", "draw"), beta * jitter),
                }
            )
        }
    )
    taken = superpopulation_risk(F, P, model="gamma", trace=trace, seed=1)
    known = superpopulation_risk(F, P, model="known", seed=1)
    np.testing.assert_allclose(taken.risk, known.risk, rtol=1e-6)


@pytest.mark.parametrize("model", ["known", "uncertain"])
def test_forward_draws_are_the_population(model: str) -> None:
    spread = np.full(len(F), 0.1) if model == "uncertain" else None
    built = individual_risk_model(F, P, model=model, spread=spread)
    drawn = pm.draw(built["risk"], draws=3000, random_seed=1)
    exact = superpopulation_risk(F, P, model=model, spread=spread, seed=1)
    error = drawn.std(axis=0) / np.sqrt(3000)
    assert (np.abs(drawn.mean(axis=0) - exact.risk) < 5 * error + 1e-12).all()


def test_what_is_no_trace_of_the_model_is_refused() -> None:
    empty = xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": (("chain", "draw"), [[1.0]])})})
    with pytest.raises(InputError, match="no alpha, beta"):
        superpopulation_risk(F, P, model="gamma", trace=empty)
    few = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(
                {n: (("chain", "draw"), np.ones((2, 9))) for n in ("alpha", "beta")}
            )
        }
    )
    with pytest.raises(InputError, match="18 draws"):
        superpopulation_risk(F, P, model="gamma", trace=few)
    with pytest.raises(InputError, match="takes no trace"):
        superpopulation_risk(F, P, model="known", trace=few)
    with pytest.raises(InputError, match="needs spread"):
        individual_risk_model(F, P, model="uncertain")
