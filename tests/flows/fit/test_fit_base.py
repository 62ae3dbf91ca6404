"""Fits with a base measure: what is refused, what is kept and released, and what it is good for."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayes_sdc import InputError, extend_posterior, fit_flows, read_flows, synthesize
from bayes_sdc.flows.diagnostics import group_diagnostics
from bayes_sdc.flows.fit.posterior import write_posterior
from bayes_sdc.flows.model.hyperparameters import hyperparameters
from bayes_sdc.flows.model.parameters import NATION, draws_of
from bayes_sdc.flows.table.read import FlowTable

AREAS = [f"{number:02d}" for number in range(16)]
COLUMNS = {"origin": "o", "destination": "d", "count": "n"}
SHORT = {"draws": 30, "tune": 40, "chains": 2, "seed": 1}
RULE = (1, 2)


def heaped(seed: int) -> pd.DataFrame:
    """Counts of which those below 10 were moved to multiples of three, as a rule but for a few."""
    rng = np.random.default_rng(seed)
    pairs = [(a, b) for a in AREAS for b in AREAS if a != b]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    true = 1 + rng.poisson(rng.gamma(1.0, 4.0, len(frame)))
    moved = np.maximum(3, 3 * np.round(true / 3.0))
    keep = (rng.random(len(frame)) < 0.1) & (true > 2)
    frame["n"] = np.where((true < 10) & ~keep, moved, true).astype(int)
    return frame


@pytest.fixture(scope="module")
def table() -> FlowTable:
    return read_flows(heaped(1), **COLUMNS)


@pytest.fixture(scope="module")
def posterior(table: FlowTable) -> xr.DataTree:
    return fit_flows(table, family="base", impossible=RULE, **SHORT | {"draws": 100, "tune": 100})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"family": "default"}, "family 'base' only"),
        ({"prior": "weak"}, "choose the pooled prior"),
        ({"epsilon": 1.0}, "without a bound"),
        ({"impossible": [0]}, "0 is not a small count; they are 1 to 9"),
        ({"impossible": [10]}, "10 is not a small count"),
        ({"impossible": [1, 2, 3]}, "count 3 is said to be impossible, and occurs in"),
        ({"impossible": range(1, 8)}, "at least three possible"),
    ],
)
def test_what_does_not_go_together_is_refused(
    table: FlowTable, changed: dict[str, object], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        fit_flows(table, **{"family": "base", "impossible": RULE} | SHORT | changed)


def test_no_release_has_a_count_that_the_rule_excludes(
    table: FlowTable, posterior: xr.DataTree
) -> None:
    release = synthesize(table, posterior, datasets=20, seed=2)
    assert release["n"].min() == 3
    assert posterior["posterior"]["value"].to_numpy().tolist() == list(range(3, 10))


def test_count_that_merely_does_not_occur_stays_possible() -> None:
    """Zero by a look at the data would be told by the release: the count is one that nobody has."""
    frame = heaped(1)
    frame["n"] = frame["n"].where(frame["n"] != 8, 9)
    table = read_flows(frame, **COLUMNS)
    posterior = fit_flows(table, family="base", impossible=RULE, **SHORT)
    measure = posterior["posterior"]["base"]
    assert float(measure.min()) > -30.0
    others = synthesize(table, posterior, datasets=20, seed=2)["n"]
    assert not others.isin(RULE).any()


def test_heaped_counts_are_released_as_they_are_heaped(
    table: FlowTable, posterior: xr.DataTree
) -> None:
    """The negative binomial is smooth: it releases a 4 as often as a 3."""
    release = synthesize(table, posterior, datasets=20, seed=2)
    small = release["n"][release["n"] < 10]
    truth = heaped(1)["n"]
    share = np.bincount(small, minlength=10) / len(small)
    true = np.bincount(truth[truth < 10], minlength=10) / (truth < 10).sum()
    assert np.abs(share - true).sum() / 2 < 0.08
    plain = fit_flows(table, **SHORT)
    gained = [
        float(extend_posterior(table, each, ["log_likelihood"])["log_likelihood"]["count"].mean())
        for each in (posterior, plain)
    ]
    assert gained[0] - gained[1] > 0.5


def test_the_measure_is_judged_like_every_parameter(
    table: FlowTable, posterior: xr.DataTree
) -> None:
    """A measure that did not converge must not pass unseen."""
    groups = group_diagnostics(posterior)
    plain = group_diagnostics(fit_flows(table, **SHORT))
    added = groups.loc[NATION, "parameters"] - plain.loc[NATION, "parameters"]
    assert added == 8  # seven counts, and the scale
    assert draws_of(posterior, NATION, "base[3]").dims == ("chain", "draw")
    assert draws_of(posterior, NATION, "base_sd").dims == ("chain", "draw")
    with pytest.raises(InputError, match=r"base\[2\]"):
        draws_of(posterior, NATION, "base[2]")
    assert hyperparameters(posterior)[-1].name == "sd of the base measure"


def test_the_rule_is_kept_with_the_posterior(
    table: FlowTable, posterior: xr.DataTree, tmp_path: Path
) -> None:
    write_posterior(posterior, tmp_path / "posterior.nc")
    with xr.open_datatree(tmp_path / "posterior.nc") as again:
        pd.testing.assert_frame_equal(
            synthesize(table, again, seed=2), synthesize(table, posterior, seed=2)
        )


def test_kept_totals_are_refused_where_counts_are_impossible(
    table: FlowTable, posterior: xr.DataTree
) -> None:
    with pytest.raises(InputError, match="excludes some of them"):
        synthesize(table, posterior, totals=("origin",), seed=1)


def test_another_rule_is_another_run(table: FlowTable, tmp_path: Path) -> None:
    fit_flows(table, family="base", impossible=RULE, resume=tmp_path / "kept", **SHORT)
    with pytest.raises(InputError, match="impossible"):
        fit_flows(table, family="base", impossible=[1], resume=tmp_path / "kept", **SHORT)


def test_small_counts_of_own_areas_follow_the_rule() -> None:
    frame = heaped(1)
    own = pd.DataFrame({"o": AREAS, "d": AREAS, "n": [3 + k % 7 for k in range(len(AREAS))]})
    table = read_flows(pd.concat([frame, own], ignore_index=True), **COLUMNS)
    posterior = fit_flows(table, family="base", impossible=RULE, **SHORT)
    release = synthesize(table, posterior, datasets=30, seed=3)
    assert release["n"].min() == 3


@pytest.mark.slow
def test_samplers_agree(table: FlowTable, standard_errors_apart) -> None:
    """NUTS on the PyMC model, the engine and the reference sampler draw from one posterior."""
    long = {"family": "base", "impossible": RULE, "seed": 5, "chains": 4}
    fits = [
        fit_flows(table, sampler="gibbs", draws=3000, tune=1000, **long)["posterior"],
        fit_flows(table, sampler="nuts", draws=1500, tune=1000, **long)["posterior"],
        fit_flows(table, sampler="reference", draws=5000, tune=1500, **long)["posterior"],
    ]
    for name in ("alpha", "phi_beta", "r", "base", "base_sd", "national_mean"):
        log = name not in ("alpha", "base", "national_mean")
        apart = standard_errors_apart(fits, name, log=log)
        for k in (0, 1):
            assert apart[k].max() < 4.5, (name, k + 1)
