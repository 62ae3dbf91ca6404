"""Verdicts: bad chains are found and named, and predictive checks agree with closed forms."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from bayes_sdc import FlowTable, fit_flows, read_flows
from bayes_sdc.checks import Check
from bayes_sdc.flows.diagnostics import (
    Dispersion,
    _dispersed,
    checks,
    dispersion,
    group_diagnostics,
    predictive_counts,
)
from bayes_sdc.flows.model.parameters import EFFECTS_AT_A_TIME

CHAINS, DRAWS = 4, 400
GROUPS = ["g1", "g2", "g3"]


def good_posterior(areas: int = 4, seed: int = 0) -> xr.DataTree:
    """Independent normal draws: three groups of ``areas`` x ``areas`` cells each."""
    rng = np.random.default_rng(seed)
    effects = [f"{g}|{a}" for g in GROUPS for a in range(areas)]
    of_effect = np.repeat(np.arange(3), areas)
    sampled = {"chain": np.arange(CHAINS), "draw": np.arange(DRAWS)}
    labels = {"group": GROUPS, "origin_effect": effects, "destination_effect": effects}

    def draws(dim: str) -> tuple[tuple[str, ...], np.ndarray]:
        return ("chain", "draw", dim), rng.normal(size=(CHAINS, DRAWS, len(labels[dim])))

    posterior = {name: draws("group") for name in ("alpha", "phi_beta")}
    posterior |= {"beta": draws("origin_effect"), "gamma": draws("destination_effect")}
    none = ("chain", "draw", "group"), np.zeros((CHAINS, DRAWS, 3))
    posterior |= {"mu_beta": none, "mu_gamma": none}
    diverging = np.zeros((CHAINS, DRAWS, 3), bool)
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(posterior, coords=sampled | labels),
            "sample_stats": xr.Dataset(
                {"diverging": (("chain", "draw", "group"), diverging)},
                coords=sampled | {"group": GROUPS},
            ),
            "observed_data": xr.Dataset({"y": ("cell", np.tile([0, 3, 8], areas**2))}),
            "constant_data": xr.Dataset(
                {
                    "group_index": ("cell", np.repeat(np.arange(3), areas**2)),
                    "origin_index": ("cell", np.repeat(np.arange(3 * areas), areas)),
                    "destination_index": (
                        "cell",
                        areas * np.repeat(np.arange(3), areas**2)
                        + np.tile(np.arange(areas), 3 * areas),
                    ),
                    "upper": 8,
                    "group_of_origin": ("origin_effect", of_effect),
                    "group_of_destination": ("destination_effect", of_effect),
                },
                coords=labels,
            ),
        }
    )


def draws_of(posterior: xr.DataTree, name: str, label: str) -> np.ndarray:
    """Writable draws of one parameter: (chain, draw)."""
    variable = posterior["posterior"][name]
    place = variable[variable.dims[-1]].to_numpy().tolist().index(label)
    return variable.values[..., place]


# ---- convergence of groups -------------------------------------------------------------------


def test_independent_draws_pass():
    # else every run is flagged and nobody looks any more
    groups = group_diagnostics(good_posterior())
    assert sorted(groups.index) == GROUPS
    assert (groups["verdict"] == "pass").all()
    assert (groups["rhat"] < 1.01).all()
    assert (groups["ess"] > 400).all()
    assert (groups["parameters"] == 2 + 4 + 4).all()
    assert (groups[["cells", "origins", "destinations"]] == [16, 4, 4]).all(axis=None)
    assert (groups[["rhat_above", "ess_below", "divergences"]] == 0).all(axis=None)


@pytest.mark.parametrize(
    ("name", "label", "group", "worst"),
    [
        ("alpha", "g3", "g3", "alpha"),
        ("beta", "g2|1", "g2", "beta - mu_beta[g2|1]"),
        ("gamma", "g1|3", "g1", "gamma - mu_gamma[g1|3]"),
    ],
)
def test_one_bad_chain_is_found_in_its_group_and_parameter(name, label, group, worst):
    # else a group is released on draws of two different distributions
    posterior = good_posterior()
    draws_of(posterior, name, label)[2] += 3.0
    groups = group_diagnostics(posterior)
    assert groups.index[0] == group  # worst first
    assert groups.loc[group, "worst"] == worst
    assert groups.loc[group, "verdict"] == "fail"
    assert groups.loc[group, "rhat"] > 1.2
    assert groups.loc[group, "rhat_above"] == 1
    others = groups.drop(index=group)
    assert (others["verdict"] == "pass").all()


def test_slow_chain_is_found_by_its_effective_sample_size():
    # else a group rests on a few independent draws though R-hat looks fair
    posterior = good_posterior()
    rng = np.random.default_rng(5)
    slow = draws_of(posterior, "beta", "g1|0")
    for t in range(1, DRAWS):
        slow[:, t] = 0.9 * slow[:, t - 1] + np.sqrt(1 - 0.9**2) * rng.normal(size=CHAINS)
    groups = group_diagnostics(posterior)
    assert groups.index[0] == "g1", "the group that has to be seen first is below others"
    assert groups.loc["g1", "worst"] == "beta - mu_beta[g1|0]"
    assert groups.loc["g1", "ess"] < 400
    assert groups.loc["g1", "ess_below"] >= 1
    assert groups.loc["g1", "verdict"] in {"look", "fail"}
    assert (groups.drop(index="g1")["verdict"] == "pass").all()


def test_parameter_that_never_moved_is_the_worst_there_is():
    # R-hat of a constant is 0 / 0; nan is not above any limit, so the group would pass
    posterior = good_posterior()
    draws_of(posterior, "gamma", "g2|2")[:] = 1.5
    groups = group_diagnostics(posterior)
    assert groups.index[0] == "g2"
    assert groups.loc["g2", "rhat"] == np.inf
    assert groups.loc["g2", "worst"] == "gamma - mu_gamma[g2|2]"
    assert groups.loc["g2", "verdict"] == "fail"
    assert groups["rhat"].notna().all()


def test_noise_of_the_free_direction_hides_no_slow_deviation():
    # delta is drawn from its prior and is part of every beta: it mixes well whatever the rest does
    posterior = good_posterior()
    rng = np.random.default_rng(6)
    slow = draws_of(posterior, "beta", "g1|0")
    for t in range(1, DRAWS):
        slow[:, t] = 0.98 * slow[:, t - 1] + np.sqrt(1 - 0.98**2) * rng.normal(size=CHAINS)
    delta = 10.0 * rng.normal(size=(CHAINS, DRAWS, 3))
    posterior["posterior"]["mu_beta"].values[:] += delta
    posterior["posterior"]["beta"].values[:] += np.repeat(delta, 4, axis=2)
    assert group_diagnostics(posterior).loc["g1", "worst"] == "beta - mu_beta[g1|0]"
    assert group_diagnostics(posterior).loc["g1", "ess_below"] >= 1


def test_chains_stuck_at_different_values_are_infinitely_bad():
    # else an infinite R-hat becomes the largest double, 309 digits in the report
    posterior = good_posterior()
    draws_of(posterior, "alpha", "g2")[:] = np.arange(CHAINS)[:, None]
    assert group_diagnostics(posterior).loc["g2", "rhat"] == np.inf


def test_missing_draws_fail():
    posterior = good_posterior()
    draws_of(posterior, "phi_beta", "g1")[1, 7] = np.nan
    groups = group_diagnostics(posterior)
    assert groups.loc["g1", "verdict"] == "fail"
    assert groups[["rhat", "ess"]].notna().all(axis=None)
    assert (groups.drop(index="g1")["verdict"] == "pass").all()


def test_divergences_are_counted_by_group():
    posterior = good_posterior()
    posterior["sample_stats"]["diverging"].values[0, :3, 1] = True
    groups = group_diagnostics(posterior)
    assert groups["divergences"].to_dict() == {"g1": 0, "g2": 3, "g3": 0}
    assert groups["verdict"].to_dict() == {"g1": "pass", "g2": "look", "g3": "pass"}


def test_sampler_without_divergences_has_none():
    posterior = good_posterior()
    posterior["sample_stats"] = xr.Dataset()
    assert (group_diagnostics(posterior)["divergences"] == 0).all()


def test_groups_that_the_prior_decides_are_marked():
    small = good_posterior(areas=3)  # nine cells
    assert (group_diagnostics(small)["by_prior"]).all()
    assert (group_diagnostics(small)["verdict"] == "look").all()
    assert not group_diagnostics(good_posterior(areas=4))["by_prior"].any()


def test_more_effects_than_one_batch_keep_their_groups():
    # else effects beyond the first batch are counted in another group
    areas = EFFECTS_AT_A_TIME // 3 + 2
    posterior = good_posterior(areas=areas).isel(draw=slice(0, 100))
    label = f"g3|{areas - 1}"
    draws_of(posterior, "beta", label)[0] += 5.0
    groups = group_diagnostics(posterior)
    assert (groups["parameters"] == 2 + 2 * areas).all()
    assert groups.index[0] == "g3"
    assert groups.loc["g3", "worst"] == f"beta - mu_beta[{label}]"


def test_posterior_of_the_gibbs_sampler_can_be_judged():
    # its statistics have no divergences and no draw dimension
    table = simulated(areas=5)[0]
    posterior = fit_flows(
        table, family="poisson", prior="weak", draws=30, tune=20, chains=4, seed=1
    )
    groups = group_diagnostics(posterior)
    assert groups.index.tolist() == ["all"]
    assert groups.loc["all", "cells"] == 20
    assert groups.loc["all", "parameters"] == 3 + 5 + 5
    assert groups.loc["all", "verdict"] in {"look", "fail"}  # 120 draws cannot reach ESS 400


# ---- predictive checks -----------------------------------------------------------------------


def simulated(areas: int = 30, dispersed: float = 0.0) -> tuple[FlowTable, np.ndarray, np.ndarray]:
    """A table drawn from the model with known effects; log rates get noise of the given sd."""
    rng = np.random.default_rng(12)
    beta, gamma = rng.normal(0.4, 0.6, areas), rng.normal(0.5, 0.6, areas)
    names = [f"{a:02d}" for a in range(areas)]
    i, j = np.nonzero(~np.eye(areas, dtype=bool))
    log_rate = beta[i] + gamma[j] + dispersed * rng.normal(size=len(i))
    cumulated = np.cumsum(tables_of(log_rate), axis=1)
    y = (rng.random((len(i), 1)) >= cumulated[:, :-1]).sum(axis=1)
    frame = pd.DataFrame({"from": np.take(names, i), "to": np.take(names, j), "n": y + 1})
    return read_flows(frame, origin="from", destination="to", count="n"), beta, gamma


def tables_of(log_rate: np.ndarray) -> np.ndarray:
    y = np.arange(9)
    weights = np.exp(y * log_rate[:, None] - gammaln(y + 1.0))
    return weights / weights.sum(axis=1, keepdims=True)


def known_posterior(beta: np.ndarray, gamma: np.ndarray) -> xr.DataTree:
    """Every draw is the truth."""
    shape = (2, 150, 1)
    return xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(
                {
                    "beta": (("chain", "draw", "origin_effect"), np.tile(beta, shape)),
                    "gamma": (("chain", "draw", "destination_effect"), np.tile(gamma, shape)),
                    "alpha": (("chain", "draw", "group"), np.zeros(shape)),
                }
            )
        }
    )


def test_predicted_numbers_agree_with_the_closed_form():
    # else the check of fit judges replicated tables of another model
    table, beta, gamma = simulated()
    predictive = predictive_counts(table, known_posterior(beta, gamma), seed=3)
    i, j = table.cells["origin"].astype(int), table.cells["destination"].astype(int)
    pmf = tables_of(beta[i] + gamma[j])
    mean, sd = pmf.sum(axis=0), np.sqrt((pmf * (1 - pmf)).sum(axis=0))
    assert predictive.index.tolist() == list(range(1, 10))
    assert (np.abs(predictive["expected"] - mean) < 4 * sd / np.sqrt(200)).all()
    observed = table.cells["y"].value_counts().reindex(range(9), fill_value=0)
    np.testing.assert_array_equal(predictive["observed"], observed)
    # the central 95 % of a sum of many indicators; its ends vary with 200 tables
    np.testing.assert_allclose((predictive["lower"] - mean) / sd, -1.96, atol=0.6)
    np.testing.assert_allclose((predictive["upper"] - mean) / sd, 1.96, atol=0.6)
    np.testing.assert_allclose(
        predictive["relative_error"], predictive["expected"] / observed.to_numpy() - 1, rtol=1e-12
    )
    assert predictive["expected"].sum() == pytest.approx(table.n_small, rel=1e-12)


def test_predictive_check_is_reproducible_by_seed():
    table, beta, gamma = simulated(areas=8)
    posterior = known_posterior(beta, gamma)
    first = predictive_counts(table, posterior, seed=3)
    pd.testing.assert_frame_equal(first, predictive_counts(table, posterior, seed=3))
    assert not first.equals(predictive_counts(table, posterior, seed=4))


def test_count_that_nobody_has_has_no_relative_error():
    # dividing by none would give inf, or warn
    frame = pd.DataFrame({"from": list("aabb"), "to": list("xyxy"), "n": [1, 1, 2, 9]})
    table = read_flows(frame, origin="from", destination="to", count="n")
    predictive = predictive_counts(table, known_posterior(np.zeros(2), np.zeros(2)), seed=1)
    assert predictive["observed"].tolist() == [2, 1, 0, 0, 0, 0, 0, 0, 1]
    assert predictive["relative_error"].isna().tolist() == [False] * 2 + [True] * 6 + [False]


def test_dispersion_equals_its_formula():
    table, beta, gamma = simulated(areas=8)
    i, j = table.cells["origin"].astype(int), table.cells["destination"].astype(int)
    pmf, y = tables_of(beta[i] + gamma[j]), np.arange(9)
    mean = pmf @ y
    variance = pmf @ y**2 - mean**2
    expected = np.mean((table.cells["y"] - mean) ** 2 / variance)
    ours = dispersion(table, known_posterior(beta, gamma), seed=1)
    assert ours.value == pytest.approx(expected, rel=1e-9)


def test_dispersion_is_near_one_when_the_model_holds_and_above_when_not():
    # 870 cells: the standard error is about 0.05
    table, beta, gamma = simulated()
    holds = dispersion(table, known_posterior(beta, gamma), seed=1)
    assert holds.value == pytest.approx(1.0, abs=0.15)
    assert holds.lower < holds.value < holds.upper
    table, beta, gamma = simulated(dispersed=1.0)
    fails = dispersion(table, known_posterior(beta, gamma), seed=1)
    assert fails.value > 1.4 > fails.upper


# ---- verdicts --------------------------------------------------------------------------------


def verdicts(
    groups: pd.DataFrame,
    errors: list[float],
    unreliable: int = 0,
    width: float = 5.0,
    value: float = 1.0,
    by_size: bool = False,
) -> dict[str, Check]:
    # 100 cells of each count, and intervals narrow enough for an error of 15 % to lie outside
    expected = 100.0 * (1.0 + np.array(errors))
    predictive = pd.DataFrame(
        {
            "observed": 100,
            "expected": expected,
            "lower": expected - width,
            "upper": expected + width,
            "relative_error": errors,
        },
        index=pd.RangeIndex(1, len(errors) + 1, name="count"),
    )
    risk = SimpleNamespace(
        rho=xr.DataArray(np.zeros((50, 9)), dims=("cell", "count")),
        unreliable_cells=unreliable,
        khat_threshold=0.7,
    )
    dispersion = Dispersion(value, 0.9, 1.05)
    sized = by_size_of(predictive)
    if by_size:  # the misfit of one class is made up for by another
        predictive = predictive.assign(relative_error=0.0)
    found = checks(groups, predictive, sized, dispersion, risk)
    return {check.name: check for check in found}


def by_size_of(predictive: pd.DataFrame) -> pd.DataFrame:
    """The same numbers as those of groups of one size."""
    return pd.concat({"10 to 99": predictive}, names=["size"])


@pytest.fixture(scope="module")
def passing() -> pd.DataFrame:
    return group_diagnostics(good_posterior())


def test_good_numbers_pass_every_check(passing):
    found = verdicts(passing, [0.1, -0.149, 0.0])
    assert list(found) == [
        "convergence",
        "divergences",
        "small groups",
        "fit to the counts",
        "fit by size of group",
        "dispersion",
        "importance weights",
    ]
    assert {check.verdict for check in found.values()} == {"pass"}


@pytest.mark.parametrize(
    ("changed", "name", "verdict"),
    [
        ({"rhat": 1.02, "rhat_above": 1}, "convergence", "look"),
        ({"ess": 350.0, "ess_below": 2}, "convergence", "look"),
        ({"rhat": 1.051, "rhat_above": 1}, "convergence", "fail"),
        ({"rhat": np.inf, "rhat_above": 1}, "convergence", "fail"),
        ({"ess": 99.0, "ess_below": 1}, "convergence", "fail"),
        ({"divergences": 1}, "divergences", "look"),
        ({"by_prior": True}, "small groups", "look"),
    ],
)
def test_one_bad_group_changes_its_verdict_alone(passing, changed, name, verdict):
    groups = passing.copy()
    for column, value in changed.items():
        groups.loc["g2", column] = value
    found = verdicts(groups, [0.0])
    assert found[name].verdict == verdict
    assert {c.verdict for n, c in found.items() if n != name} == {"pass"}
    assert "of 3 groups" in found["convergence"].reason


@pytest.mark.parametrize("errors", [[0.0, 0.151, 0.1], [0.1, 0.0, -0.2], [0.0, -0.5, 0.0]])
def test_misfit_of_either_sign_is_to_be_looked_at(passing, errors):
    check = verdicts(passing, errors)["fit to the counts"]
    assert check.verdict == ("fail" if min(errors) < -0.3 else "look")
    worst = int(np.nanargmax(np.abs(errors)))
    assert f"{worst + 1} ({errors[worst]:+.0%})" in check.reason
    assert check.reason.startswith("1 of 3 counts")


def test_misfit_in_groups_of_one_size_is_to_be_looked_at(passing):
    # else tiny groups that the model misses are hidden behind the large ones
    found = verdicts(passing, [0.0, -0.43, *[0.2] * 12], by_size=True)
    assert found["fit to the counts"].verdict == "pass"
    check = found["fit by size of group"]
    assert check.verdict == "look"
    assert "2 in groups with 10 to 99 small cells (-43%)" in check.reason
    assert check.reason.startswith("13 of 14 counts")
    assert "and others" in check.reason


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(1.04, "pass"), (1.07, "look"), (0.85, "look"), (1.12, "look"), (1.3, "fail")],
)
def test_dispersion_beyond_chance_is_judged(passing, value, verdict):
    # else a table whose counts scatter more than the model allows is released unseen
    assert verdicts(passing, [0.0], value=value)["dispersion"].verdict == verdict


@given(value=st.floats(0.5, 1.6), middle=st.floats(0.9, 1.1), width=st.floats(0.0, 0.4))
def test_verdict_on_dispersion_is_that_of_the_printed_intervals(value, middle, width):
    # else a reader sees a value outside the interval beside the word "pass"
    check = _dispersed(Dispersion(value, middle - width, middle + width))
    at, least, most, worst, best = (
        float(number) for number in re.findall(r"\d\.\d\d", check.reason)[:5]
    )
    verdict = "pass" if least <= at <= most else "look" if worst <= at <= best else "fail"
    assert check.verdict == verdict


def test_blocks_and_effects_at_a_bound_are_counted():
    # a > x, a > y and b > x are connected; c > z stands alone, with the largest count
    frame = pd.DataFrame({"o": list("aabc"), "d": list("xyxz"), "n": [1, 4, 1, 9]})
    table = read_flows(frame, origin="o", destination="d", count="n")
    posterior = fit_flows(table, sampler="gibbs", draws=10, tune=10, chains=2, seed=1)
    row = group_diagnostics(posterior).loc["all"]
    assert row["blocks"] == 2
    # b and x have ones only, c and z a nine only
    assert row["at_bound"] == 4
    for name in ("beta", "gamma"):
        assert np.isfinite(posterior["posterior"][name]).all()


def test_error_within_the_predictive_interval_is_chance(passing):
    # else every small table fails, for a count that two cells have and three were expected to
    assert verdicts(passing, [0.4, -0.3], width=50.0)["fit to the counts"].verdict == "pass"


def test_count_that_only_replicas_have_is_to_be_looked_at(passing):
    # else a model that predicts many nines where there are none passes: no relative error exists
    predictive = pd.DataFrame(
        {
            "observed": [90, 0],
            "expected": [70.0, 20.0],
            "lower": [60.0, 10.0],
            "upper": [95.0, 30.0],
            "relative_error": [-0.22, np.nan],
        },
        index=pd.RangeIndex(1, 3, name="count"),
    )
    risk = SimpleNamespace(
        rho=xr.DataArray(np.zeros((5, 2)), dims=("cell", "count")),
        unreliable_cells=0,
        khat_threshold=0.7,
    )
    dispersion = Dispersion(1.0, 0.9, 1.1)
    found = {
        check.name: check
        for check in checks(passing, predictive, by_size_of(predictive), dispersion, risk)
    }
    assert found["fit to the counts"].verdict == "look"
    assert "2 (none observed)" in found["fit to the counts"].reason


def test_one_unreliable_cell_is_to_be_looked_at(passing):
    check = verdicts(passing, [0.0], unreliable=1)["importance weights"]
    assert check.verdict == "look"
    assert "1 of 50 cells" in check.reason
    assert "0.70" in check.reason
