"""Priors that stand beside posteriors are those of the model, and are densities."""

import json

import numpy as np
import pytest
import xarray as xr

from bayes_sdc.flows.model.hyperparameters import hyperparameters
from bayes_sdc.flows.model.hyperpriors import log_prior, nation, priors
from bayes_sdc.models.migration import PRIORS

# wide enough for the paper's prior, whose precisions reach from exp(-1000) to exp(10)
GRID = np.concatenate([np.arange(-40.0, 40.0, 1e-3), np.arange(40.0, 3000.0, 0.05)])


def posterior(prior: str, *, family: str = "negative-binomial", covariates: int = 1) -> xr.DataTree:
    """Draws of the hyperparameters alone: two chains of three draws in two groups."""
    rng = np.random.default_rng(2)
    names = ["alpha", "log_sd_beta", "log_sd_gamma", "log_cv"][: 3 + (family != "poisson")]
    covariate = [f"x{i}" for i in range(covariates)]
    draws = {
        name: (("chain", "draw", "group"), rng.gamma(2.0, size=(2, 3, 2)))
        for name in ("alpha", "phi_beta", "phi_gamma", "r")
    }
    if family == "poisson":
        del draws["r"]
    coords = {"group": ["a", "b"], "covariate": covariate}
    if covariates:
        draws["coefficient"] = (
            ("chain", "draw", "group", "covariate"),
            rng.normal(size=(2, 3, 2, covariates)),
        )
    if prior == "pooled":
        labels = [*names, *(f"coefficient of {name}" for name in covariate)]
        coords["parameter"] = labels
        for what in ("mean", "sd"):
            values = rng.gamma(2.0, size=(2, 3, len(labels)))
            draws[f"national_{what}"] = (("chain", "draw", "parameter"), values)
    used = {dim: coords[dim] for dim in coords if any(dim in dims for dims, _ in draws.values())}
    tree = xr.DataTree.from_dict({"posterior": xr.Dataset(draws, coords=used)})
    tree.attrs["prior_settings"] = json.dumps(PRIORS[prior])
    return tree


@pytest.mark.parametrize("prior", ["pooled", "weak", "paper"])
def test_priors_are_densities(prior):
    # else the line in the picture has another height than the histogram it is compared with
    for found in hyperparameters(posterior(prior)):
        assert np.trapezoid(found.density(GRID), GRID) == pytest.approx(1.0, abs=2e-3), found.name


@pytest.mark.parametrize("prior", ["weak", "paper"])
def test_priors_of_groups_are_those_that_the_sampler_uses(prior):
    own = priors(PRIORS[prior], 1)
    x = np.linspace(-3.0, 1.5, 40)
    found = hyperparameters(posterior(prior))
    assert len(found) == len(own.kind)
    for k, shown in enumerate(found):
        numbers = (int(own.kind[k]), float(own.first[k]), float(own.second[k]))
        expected = np.array([log_prior(value, *numbers) for value in x])
        assert np.ptp(np.log(shown.density(x)) - expected) < 1e-9, shown.name


@pytest.mark.parametrize("family", ["poisson", "negative-binomial"])
@pytest.mark.parametrize("covariates", [0, 2])
def test_priors_of_the_nation_are_those_that_the_sampler_uses(family, covariates):
    tree = posterior("pooled", family=family, covariates=covariates)
    found = hyperparameters(tree)
    rows = list(nation(PRIORS["pooled"], covariates))
    if family == "poisson":
        del rows[3]  # of log cv
    assert len(found) == 2 * len(rows)
    x = np.linspace(0.05, 3.0, 40)
    for (mean, sd), (m, s, log_m, log_s) in zip(
        zip(found[::2], found[1::2], strict=True), rows, strict=True
    ):
        assert np.ptp(np.log(mean.density(x)) + 0.5 * ((x - m) / s) ** 2) < 1e-9
        # the prior is of the log of the sd
        expected = -0.5 * ((np.log(x) - log_m) / log_s) ** 2 - np.log(x)
        assert np.ptp(np.log(sd.density(x)) - expected) < 1e-9
    draws = tree["posterior"]
    np.testing.assert_array_equal(
        found[-1].draws, draws["national_sd"].isel(parameter=-1).to_numpy().ravel()
    )


def test_draws_of_all_groups_are_on_the_scale_of_their_prior():
    tree = posterior("weak")
    draws = tree["posterior"]
    names = {one.name: one.draws for one in hyperparameters(tree)}
    np.testing.assert_array_equal(names["level"], draws["alpha"].to_numpy().ravel())
    sd = 1.0 / np.sqrt(draws["phi_gamma"].to_numpy().ravel())
    np.testing.assert_allclose(names["log sd of destinations"], np.log(sd))
    cv = 1.0 / np.sqrt(draws["r"].to_numpy().ravel())
    np.testing.assert_allclose(names["log cv of cells"], np.log(cv))
    assert "coefficient of x0" in names


def test_quantiles_have_equal_tails():
    one = hyperparameters(posterior("weak"))[0]._replace(draws=np.arange(101.0))
    assert one.quantiles(0.8) == pytest.approx((50.0, 10.0, 90.0))
    assert one.quantiles() == pytest.approx((50.0, 5.5, 94.5))


def test_a_precision_too_small_for_a_float_is_shown_at_the_end():
    """Under the paper's prior there are some; an infinite log would take the picture with it."""
    tree = posterior("paper")
    tree["posterior"]["phi_beta"][0, 0, 0] = 0.0
    shown = {one.name: one.draws for one in hyperparameters(tree)}["log sd of origins"]
    assert np.isfinite(shown).all()
    assert shown.max() > 350.0
