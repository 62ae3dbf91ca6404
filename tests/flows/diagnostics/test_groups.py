"""Convergence of groups: bad chains are found and named, and what the prior decides is marked."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayes_sdc import fit_flows, read_flows
from bayes_sdc.flows.diagnostics import group_diagnostics
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
    rng = np.random.default_rng(12)
    pairs = [(a, b) for a in "abcde" for b in "abcde" if a != b]
    frame = pd.DataFrame(pairs, columns=["from", "to"])
    frame["n"] = 1 + rng.poisson(3.0, len(frame)).clip(0, 8)
    table = read_flows(frame, origin="from", destination="to", count="n")
    posterior = fit_flows(
        table, family="poisson", prior="weak", draws=30, tune=20, chains=4, seed=1
    )
    groups = group_diagnostics(posterior)
    assert groups.index.tolist() == ["all"]
    assert groups.loc["all", "cells"] == 20
    assert groups.loc["all", "parameters"] == 3 + 5 + 5
    assert groups.loc["all", "verdict"] in {"look", "fail"}  # 120 draws cannot reach ESS 400


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
