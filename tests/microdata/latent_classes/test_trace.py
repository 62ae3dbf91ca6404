"""Traces that somebody else sampled in the model of the latent classes."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayes_sdc import InputError, latent_class_model, latent_class_risk
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.latent_classes.combinations import cells_of, labels_of
from bayes_sdc.microdata.latent_classes.gibbs import Plan, run_chains, start_state, sweep_on
from bayes_sdc.microdata.latent_classes.sample import sample_of
from bayes_sdc.microdata.latent_classes.trace import DRAWS, chains_of
from bayes_sdc.seeds import generator
from tests.microdata.latent_classes.test_risk import PEOPLE, SAMPLE, read

PLAN = Plan(classes=5, warm_up=3, draws=DRAWS, every=1)


def as_trace(data: Microdata, chains: int = 4) -> xr.DataTree:
    """The draws of the package's own sampler, as pm.sample would return them."""
    sample = sample_of(data, 4000.0).sample
    cells, labels = cells_of(data), labels_of(data)
    drawn: dict[str, list[list[Any]]] = {}
    for number in range(chains):
        rng = generator(1, "latent classes", str(number))
        state = start_state(rng, cells, PLAN.classes)
        sweep_on(rng, sample, 0.0, state, np.empty((PLAN.warm_up, 3)))
        for _ in range(PLAN.draws):
            monitor = np.empty((1, 3))
            sweep_on(rng, sample, 0.0, state, monitor)
            now = {
                "alpha": state.alpha[0],
                "eta": state.eta.copy(),
                "log_likelihood": monitor[0, 0],
            }
            for j, key in enumerate(labels):
                rows = slice(cells.start[j], cells.start[j + 1])
                now |= {
                    f"log strength of {key}": np.log(state.strength[j]),
                    f"base of {key}": state.base[rows].copy(),
                    f"phi of {key}": state.phi[rows].T.copy(),
                    f"resolution of {key}": state.resolution[j].copy(),
                }
            for name, value in now.items():
                drawn.setdefault(name, [[] for _ in range(chains)])[number].append(value)
    dims = {"eta": ("class",)}
    for key in labels:
        dims |= {
            f"base of {key}": (f"level of {key}",),
            f"phi of {key}": ("class", f"level of {key}"),
            f"resolution of {key}": ("class",),
        }
    coords = {f"level of {key}": levels for key, levels in labels.items()}
    data_vars = {
        name: (("chain", "draw", *dims.get(name, ())), np.array(values))
        for name, values in drawn.items()
    }
    return xr.DataTree.from_dict({"posterior": xr.Dataset(data_vars, coords=coords)})


DATA = read(SAMPLE)
TRACE = as_trace(DATA)


def test_a_trace_of_the_same_draws_says_the_same() -> None:
    """A key, level or class that is read in another order would change every number."""
    sample = sample_of(DATA, 4000.0).sample
    own = run_chains(sample, PLAN, seed=1, threads=1)
    theirs = chains_of(TRACE, sample, labels_of(DATA), 1)
    for one, other in zip(own, theirs, strict=True):
        np.testing.assert_allclose(other.totals, one.totals, rtol=1e-9)
        np.testing.assert_allclose(other.unique, one.unique, rtol=1e-5)
        np.testing.assert_allclose(other.monitors, one.monitors, rtol=1e-9)


def test_missing_values_are_summed_over_in_a_trace_too() -> None:
    frame = SAMPLE.copy()
    frame.iloc[:20, 1] = None
    data = read(frame, missing="wildcard")
    sample = sample_of(data, 4000.0).sample
    own = run_chains(sample, PLAN, seed=1, threads=1)
    theirs = chains_of(as_trace(data), sample, labels_of(data), 1)
    np.testing.assert_allclose(theirs[2].totals, own[2].totals, rtol=1e-9)


def test_the_result_of_a_trace_is_a_result_like_any_other() -> None:
    risk = latent_class_risk(DATA, population_size=4000, trace=TRACE, seed=1)
    assert 0.0 < risk.tau1.value < risk.tau2.value < risk.uniques
    assert risk == risk
    again = latent_class_risk(DATA, population_size=4000, trace=TRACE, seed=1)
    assert again.tau1 == risk.tau1


def without(name: str) -> xr.DataTree:
    kept = TRACE["posterior"].to_dataset().drop_vars(name)
    return xr.DataTree.from_dict({"posterior": kept})


@pytest.mark.parametrize(
    ("trace", "says"),
    [
        (TRACE["posterior"].to_dataset(), "trace"),
        (xr.DataTree(), "a DataTree with a posterior"),
        (without("phi of age"), "holds no phi of age"),
        (without("alpha"), "holds no alpha"),
        (without("log_likelihood"), "holds no log_likelihood"),
        (TRACE.isel(chain=slice(1)), "one chain"),
        (TRACE.isel(draw=slice(5)), "5 draws a chain"),
        (TRACE.isel({"level of age": slice(None, None, -1)}), "levels of 'age'"),
        (TRACE.isel({"level of age": slice(5)}), "levels of 'age'"),
        (TRACE.isel({"class": 0}), "dimensions"),
        (TRACE.map_over_datasets(lambda part: part * np.nan), "no numbers"),
    ],
)
def test_traces_of_other_models_and_files_are_refused(trace: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        latent_class_risk(DATA, population_size=4000, trace=trace, seed=1)


def test_a_trace_of_other_people_with_the_same_levels_is_refused() -> None:
    """Levels alone do not tell a later wave from this one."""
    other = SAMPLE.copy()
    other["sex"] = other["sex"].to_numpy()[::-1]
    with pytest.raises(InputError, match="of another file"):
        latent_class_risk(read(other), population_size=4000, trace=TRACE, seed=1)


def test_divergences_end_the_trust() -> None:
    diverging = np.zeros((4, DRAWS), bool)
    diverging[0, 3] = True
    tree = TRACE.copy()
    tree["sample_stats"] = xr.Dataset({"diverging": (("chain", "draw"), diverging)})
    risk = latent_class_risk(DATA, population_size=4000, trace=tree, seed=1)
    assert not risk.trusted
    assert risk.checks[-1].verdict == "look"
    assert "1 of 160 transitions diverged" in risk.checks[-1].reason


def test_a_key_of_one_value_is_refused_before_sampling() -> None:
    with pytest.raises(InputError, match="'sex' has one value"):
        latent_class_model(read(SAMPLE.assign(sex="1")))


def test_a_trace_knows_no_structural_zeros() -> None:
    there = pd.crosstab(SAMPLE["age"], SAMPLE["job"])
    age, job = (there == 0).stack().idxmax()
    with pytest.raises(InputError, match="structural zeros"):
        latent_class_risk(
            DATA, population_size=4000, trace=TRACE, seed=1,
            structural_zeros=[{"age": age, "job": job}],
        )  # fmt: skip


@pytest.mark.slow
def test_nuts_on_the_model_agrees_with_the_sampler() -> None:
    """Two samplers of one model, by everything that is reported."""
    import pymc as pm

    data = read(PEOPLE.sample(60, random_state=3)[["region", "sex", "age", "job"]])
    sample = sample_of(data, 1200.0).sample
    plan = Plan(classes=4, warm_up=500, draws=200, every=10)
    own = run_chains(sample, plan, seed=1, threads=1)
    # resolutions are drawn one by one, each by the density of all: few classes
    with latent_class_model(data, classes=4):
        trace = pm.sample(
            400, tune=800, chains=4, random_seed=1, target_accept=0.95, progressbar=False
        )
    theirs = chains_of(trace, sample, labels_of(data), 2)
    tau1 = [
        np.concatenate([chain.totals[..., 0].ravel() for chain in run]) for run in (own, theirs)
    ]
    error = np.hypot(*(draws.std() for draws in tau1)) / np.sqrt(40)
    assert abs(tau1[0].mean() - tau1[1].mean()) < 4.0 * error
