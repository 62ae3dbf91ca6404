"""Draws by name and effects with intervals: they are those of the posterior, of the right area."""

import arviz_stats
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayes_sdc import FlowTable, InputError, fit_flows, read_flows, with_covariates
from bayes_sdc.flows import diagnostics
from bayes_sdc.flows.model import parameters
from bayes_sdc.flows.model.parameters import NATION, draws_of, effects, extreme

GROUPS = ("e|st", "west")  # a bar in a name, as it separates group and area in a label


@pytest.fixture(scope="module")
def table() -> FlowTable:
    rng = np.random.default_rng(4)
    pairs = [(o, d) for o in "abcd" for d in "wx|z"]
    frame = pd.DataFrame(
        {
            "o": [o for o, _ in pairs] * 2,
            "d": [d for _, d in pairs] * 2,
            "n": 1 + rng.binomial(8, 0.3, 2 * len(pairs)),
            "g": np.repeat(GROUPS, len(pairs)),
        }
    )
    table = read_flows(frame, origin="o", destination="d", count="n", groups="g")
    covariates = pd.DataFrame({"x[1]": rng.normal(size=table.n_small)}, index=table.cells.index)
    return with_covariates(table, covariates)


@pytest.fixture(scope="module")
def posterior(table: FlowTable) -> xr.DataTree:
    return fit_flows(table, draws=30, tune=30, chains=2, seed=1)


def test_every_parameter_that_diagnostics_name_is_found_and_is_the_one_they_judged(posterior):
    # else the picture shows the chains of another parameter than the verdict is about
    groups = diagnostics.group_diagnostics(posterior)
    assert set(groups.index) == {*GROUPS, NATION}
    for group, row in groups.iterrows():
        draws = draws_of(posterior, str(group), row["worst"])
        assert draws.dims == ("chain", "draw")
        rhat = arviz_stats.rhat(draws.to_dataset(name="x"))["x"].item()
        bulk = arviz_stats.ess(draws.to_dataset(name="x"), method="bulk")["x"].item()
        tail = arviz_stats.ess(draws.to_dataset(name="x"), method="tail")["x"].item()
        # the worst is farthest beyond either limit; the other may be exceeded more elsewhere
        own = (rhat, min(bulk, tail))
        judged = (row["rhat"], row["ess"])
        assert any(a == pytest.approx(b) for a, b in zip(own, judged, strict=True))


def test_draws_by_name_are_those_of_the_posterior(posterior):
    draws = posterior["posterior"]
    west = draws["beta"].sel(origin_effect="west|c") - draws["mu_beta"].sel(group="west")
    np.testing.assert_array_equal(draws_of(posterior, "west", "beta - mu_beta[west|c]"), west)
    bar = draws["gamma"].sel(destination_effect="e|st||") - draws["mu_gamma"].sel(group="e|st")
    np.testing.assert_array_equal(draws_of(posterior, "e|st", "gamma - mu_gamma[e|st||]"), bar)
    np.testing.assert_array_equal(
        draws_of(posterior, "west", "coefficient of x[1]"),
        draws["coefficient"].sel(group="west", covariate="x[1]"),
    )
    np.testing.assert_array_equal(
        draws_of(posterior, NATION, "national_sd[coefficient of x[1]]"),
        draws["national_sd"].sel(parameter="coefficient of x[1]"),
    )


@pytest.mark.parametrize(
    ("group", "name"),
    [
        ("north", "alpha"),
        ("west", "beta"),
        ("west", "beta - mu_beta[e|st|a]"),
        ("west", "beta - mu_beta"),
        (NATION, "alpha"),
        (NATION, "national_mean[beta]"),
    ],
)
def test_unknown_names_are_refused(posterior, group, name):
    with pytest.raises(InputError, match="there is no"):
        draws_of(posterior, group, name)


def test_effects_are_deviations_with_equal_tails(posterior, monkeypatch):
    frame = effects(posterior, ci_prob=0.5)
    draws = posterior["posterior"]
    assert frame["area"].tolist() == [*"abcd", *"abcd", *"wxz|", *"wxz|"]
    for _, row in frame.iterrows():
        effect, mean, dim = {
            "origin": ("beta", "mu_beta", "origin_effect"),
            "destination": ("gamma", "mu_gamma", "destination_effect"),
        }[row["side"]]
        label = f"{row['group']}|{row['area']}"
        values = draws[effect].sel({dim: label}) - draws[mean].sel(group=row["group"])
        assert row["median"] == pytest.approx(float(values.median()))
        for end, q in (("lower", 0.25), ("upper", 0.75)):
            assert row[end] == pytest.approx(float(values.quantile(q)))
    # the draws are taken in parts, and no effect may fall between two
    monkeypatch.setattr(parameters, "EFFECTS_AT_A_TIME", 3)
    pd.testing.assert_frame_equal(effects(posterior, ci_prob=0.5), frame)


def test_extreme_effects_come_from_both_ends_and_one_group_on_request(posterior):
    frame = effects(posterior)
    found = extreme(frame, number=2, group="west")
    assert found["side"].tolist() == ["origin"] * 2 + ["destination"] * 2
    assert set(found["group"]) == {"west"}
    mine = frame[(frame["side"] == "origin") & (frame["group"] == "west")]
    assert found["median"].abs().iloc[1] == mine["median"].abs().nlargest(2).iloc[1]
    with pytest.raises(InputError, match="north"):
        extreme(frame, number=2, group="north")
    with pytest.raises(InputError, match="1 or more"):
        extreme(frame, number=0)


@pytest.mark.parametrize("ci_prob", [0.0, 1.0, 89.0, float("nan")])
def test_probability_of_an_interval_is_one(posterior, ci_prob):
    with pytest.raises(InputError, match="ci_prob"):
        effects(posterior, ci_prob=ci_prob)
