"""Every public function refuses what it cannot use with `InputError`, before any fit."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayes_sdc
from bayes_sdc import InputError
from bayes_sdc.arguments import check

FUNCTIONS = sorted(
    name for name in bayes_sdc.__all__ if inspect.isfunction(getattr(bayes_sdc, name))
)

# of a type that no parameter takes
WRONG: list[Any] = [object(), 3 + 4j, b"bytes", [object()], {"a": object()}]
# of a type that some take; where it is taken it may be used, but must not end in another error
ODD: list[Any] = [
    None, True, -1, 0, 2.5, float("nan"), float("inf"), "", "no such thing", [], ["x"],
    pd.DataFrame(), np.array([[1.0]]),
]  # fmt: skip

# of the right type, and impossible
IMPOSSIBLE: dict[str, dict[str, list[Any]]] = {
    "fit_flows": {
        "draws": [0, -5, 10.0], "tune": [0], "chains": [0, True], "seed": [-1], "cores": [0],
        "family": ["normal"], "prior": ["flat"], "sampler": ["hmc"],
        "weights": ["high", [1.0], [2.0]], "gain_limit": [0.0, -1.0],
    },
    "protect_flows": {
        "draws": [0, 10.0], "datasets": [0, 10**6], "releases": [0], "candidates": [0],
        "refits": [-1], "share": [0.5], "intruder_prior": ["flat", [1.0], [0.0] * 9],
        "policy": ["no/such/file.toml"], "seed": [-1, "1"], "cores": [0],
    },
    "intruder_risk": {
        "estimator": ["best"], "prior": ["flat", [1.0], [-1.0] * 9], "cells": [0, 10**6, ["x"]],
        "refits": [-1], "share": [0.5], "seed": [-1], "cores": [0],
    },
    "synthesize": {"datasets": [0, 10**6], "seed": [-1]},
    "choose_release": {"candidates": [0], "repetitions": [0], "datasets": [0], "seed": [-1]},
    "repeat_risk": {"releases": [0], "datasets": [0], "seed": [-1]},
    "risk_by_datasets": {"most": [0], "releases": [0], "seed": [-1]},
    "risk_utility": {"datasets": [[0], [], ["x"]], "seed": [-1]},
    "audit_totals": {"published": ["colour"], "base": [0, -1]},
    "given_totals": {"published": ["colour"], "base": [0, -1], "draws": [0, 7], "seed": [-1]},
    "risk_by": {"by": ["colour"]},
    "read_flows": {"origin": ["zz"], "groups": [["zz"]], "low": [-1, 99], "high": [0]},
    "read_microdata": {"keys": [[], ["zz"]], "weight": ["zz"], "missing": ["drop"]},
    "measure_microdata": {
        "population_size": [0, 3], "sampling_fraction": [0.0, 1.5], "cells": [0], "draws": [5],
        "policy": ["no/such/file.toml"], "seed": [-1],
    },
    "lancaster": {"population_size": [3], "shrinkage": [-0.1, [], "best"], "seed": [-1]},
    "compare_risks": {"population_size": [0, 3], "max_size": [0], "most_disagreements": [-1]},
    "superpopulation_risk": {"f": [[0]], "p": [[0.0], [2.0]], "model": ["best"], "draws": [5]},
    "individual_risk": {"f": [[0]], "p": [[0.0], [2.0]], "method": ["best"], "terms": [-1]},
    "dis": {"sampling_fraction": [0.0, 2.0]},
    "dis_special": {"sampling_fraction": [0.0], "error": [0.0, -1.0], "fragment": [0, 10**6]},
    "dis_suda": {"sampling_fraction": [0.0], "max_size": [0], "method": ["best"]},
    "suda": {"max_size": [0], "score": ["best"], "memory": [0]},
    "unique_probability": {"n": [0, 10**6], "K": [0], "concentration": [0.0, -1.0]},
    "unique_test": {"q": [-0.1, 1.1], "loss_accept": [-1.0], "loss_reject": [0.0]},
    "largest_sample": {"q": [-0.1, 1.1]},
    "smallest_sample": {"q": [-0.1, 1.1]},
    "learn_uniques": {"N": [0], "K": [0], "draws": [5], "seed": [-1]},
    "mixture_of_priors": {"concentrations": [[], [0.0]], "weights": [[1.0], [-1.0, 2.0]]},
    "ewens": {"N": [0], "n": [0], "estimator": ["best"]},
    "pitman": {"N": [0], "n": [0], "estimator": ["best"]},
    "poisson_gamma": {"N": [0], "cells": [0], "estimator": ["best"]},
    "zayatz": {"N": [0], "n": [0]},
    "terms_for_error": {"f": [0], "p": [0.0, 2.0], "error": [0.0]},
    "expected_uniques": {"s": [-1], "n": [0]},
    "extend_posterior": {"groups": [["posterior"], "prior"], "draws": [0, 10**6], "seed": [-1]},
    "risk_weights": {"limit": [0.0, -1.0], "seed": [-1], "cores": [0]},
    "compare_promises": {"epsilons": [[], [0.0], [-1.0]], "delta": [-0.1, 1.0], "draws": [0]},
    "migration_model": {"family": ["normal"], "prior": ["best"], "covariates": ["all"]},
    "uniques_deviation": {"s": [-1], "n": [0]},
    "attribute_risk": {"sensitive": ["zz"], "draws": [0, 99], "seed": [-1], "cores": [0]},
    "compare_treatments": {
        "strengths": [{"best": [1]}, {"pram": [2.0]}, {"suppression": [1]}], "datasets": [0],
        "population_size": [3], "seed": [-1], "cores": [0],
    },
    "treat": {
        "method": ["best"], "target_risk": [-0.1, 1.0], "share": [0.0, 1.5], "datasets": [0, 1000],
        "keys": [[], ["zz"]], "population_size": [3], "seed": [-1], "cores": [0],
    },
    "read_policy": {"path": ["no/such/file.toml"]},
    "read_shapes": {"path": ["no/such/file.json"]},
    "read_irs_flows": {"source": ["no/such/file.csv"], "direction": ["up"]},
    "posterior_so_far": {"folder": ["no/such/folder"]},
    "hidden_flows": {"largest": [-1]},
    "settle_totals": {"totals": ["keep"]},
    "simulate_areas": {"areas": [0, -1], "states": [0], "seed": [-1]},
    "simulate_flows": {"areas": [0, -1], "states": [0], "small": [0], "seed": [-1]},
    "simulate_irs_flows": {"areas": [0, -1], "states": [0], "seed": [-1]},
    "simulate_persons": {"persons": [0, -1], "seed": [-1]},
    "example_irs_path": {"direction": ["up"]},
    "plot_chains": {"number": [0]},
    "plot_effects": {"number": [0], "ci_prob": [0.0, 1.5]},
}  # fmt: skip


class StartedError(Exception):
    """The work has begun."""


def as_trace(posterior: xr.DataTree) -> xr.DataTree:
    """Rename a posterior as PyMC names the draws of its model."""
    data = posterior["constant_data"].to_dataset()
    names = {"origin_effect": "origin", "destination_effect": "destination"}
    shared = {
        name: data[name] for name in ("origin_index", "destination_index", "x") if name in data
    }
    return xr.DataTree.from_dict(
        {
            "/posterior": posterior["posterior"].to_dataset().rename(names),
            "/constant_data": xr.Dataset({"y_data": posterior["observed_data"]["y"], **shared}),
        }
    )


@pytest.fixture(scope="session")
def usable(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Arguments that each function can use."""
    rng = np.random.default_rng(4)
    flows = pd.DataFrame([(o, d) for o in "abcd" for d in "wxyz"], columns=["o", "d"]).assign(
        n=rng.integers(1, 9, 16)
    )
    table = bayes_sdc.read_flows(flows, origin="o", destination="d", count="n")
    result = bayes_sdc.protect_flows(table, draws=20, tune=20, chains=2, releases=1, seed=1)
    measured = result.measured
    assert measured is not None
    people = pd.DataFrame(rng.integers(0, 4, (60, 3)).astype(str), columns=list("xyz"))
    people = people.assign(w=10.0)
    microdata = bayes_sdc.read_microdata(people, keys=list("xyz"), weight="w")
    plain = bayes_sdc.read_microdata(people, keys=list("xyz"))
    sizes = pd.Series({1: 7, 2: 5, 3: 6})
    inflow = bayes_sdc.read_irs_flows(bayes_sdc.example_irs_path("inflow"), years="2010-2011")
    folder = tmp_path_factory.mktemp("files")
    covariates = pd.DataFrame({"far": np.arange(table.n_small, dtype=float)}, table.cells.index)
    shapes = bayes_sdc.Shapes({"a": [np.array([[[0.0, 0], [1, 0], [1, 1], [0, 0]]])]}, (), True)
    fitted = {"table": table, "posterior": measured.posterior}
    seen = {**fitted, "risk": measured.worst, "seed": 1}
    cells = {"n": 60, "N": 600, "K": 64}
    return {
        "allowed_cells": {"microdata": microdata},
        "as_posterior": {"table": table, "trace": as_trace(measured.posterior)},
        "attribute_risk": {"microdata": microdata, "sensitive": "z", "seed": 1},
        "audit_totals": {"table": table},
        "choose_release": {**seen, "candidates": 2, "repetitions": 1},
        "combined_totals": {"table": table, "release": bayes_sdc.synthesize(
            table, measured.posterior, datasets=2, seed=1)},
        "compare_key_sets": {"microdata": microdata, "key_sets": {"two": ["x", "y"]}},
        "compare_promises": {"table": table, "epsilons": [1.0], "seed": 1,
                             "draws": 20, "tune": 20, "chains": 2},
        "compare_protections": {**fitted, "seed": 1},
        "compare_risks": {"microdata": microdata, "population_size": 600},
        "compare_treatments": {"microdata": microdata, "seed": 1,
                               "strengths": {"suppression": [2]}},
        "dis": {"microdata": microdata, "sampling_fraction": 0.1},
        "dis_special": {"original": plain, "sampling_fraction": 0.1, "seed": 1, "error": 0.1},
        "dis_suda": {"microdata": microdata, "sampling_fraction": 0.1},
        "ewens": {"size_indices": sizes, "n": 35, "N": 600},
        "example_flows_path": {},
        "example_irs_path": {"direction": "inflow"},
        "example_persons_path": {},
        "expected_uniques": {"s": 3, **cells},
        "extend_posterior": {**fitted, "groups": ["log_likelihood"], "seed": 1},
        "fit_flows": {"table": table, "draws": 20, "tune": 20, "chains": 2, "seed": 1},
        "flow_uses": {"table": table, "release": result.release},
        "given_totals": {"probability": measured.risk.rho, "table": table, "draws": 8, "seed": 1},
        "gravity_covariates": {"table": table},
        "guarantee": fitted,
        "hidden_flows": {"inflow": inflow},
        "hidden_margins": {"flows": inflow},
        "household_risk": {"risk": [0.1, 0.2], "household": ["a", "a"]},
        "individual_risk": {"f": [1, 2], "p": [0.1, 0.2]},
        "individual_risk_model": {"f": [1, 2], "p": [0.1, 0.2]},
        "intruder_gain": {"risk": measured.risk},
        "intruder_risk": {**fitted, "release": result.release, "seed": 1},
        "keep_totals": {**fitted, "seed": 1},
        "lancaster": {"microdata": microdata, "population_size": 600},
        "lancaster_forecast": {"microdata": microdata},
        "largest_sample": {"N": 600, "K": 64, "q": 0.1},
        "latent_class_model": {"microdata": microdata, "classes": 2},
        "latent_class_risk": {"microdata": microdata, "seed": 1},
        "learn_uniques": {"size_indices": sizes, "N": 600, "K": 64, "draws": 200, "seed": 1},
        "log_ratios": {"risk": measured.risk},
        "loglinear_model": {"microdata": microdata, "seed": 1},
        "loglinear_risk": {"microdata": microdata, "population_size": 600},
        "loo_flows": fitted,
        "measure_microdata": {"microdata": plain, "sampling_fraction": 0.1, "draws": 200,
                              "seed": 1},
        "migration_model": {"table": table},
        "mixture_of_priors": {"size_indices": sizes, "N": 600, "K": 64,
                              "concentrations": [0.5, 1.0]},
        "pitman": {"size_indices": sizes, "n": 35, "N": 600},
        "plot_chains": {"posterior": measured.posterior, "groups": measured.groups},
        "plot_convergence": {"groups": measured.groups},
        "plot_effects": {"posterior": measured.posterior},
        "plot_flows": {"table": table, "release": result.release},
        "plot_gain": {"risk": measured.risk},
        "plot_intruder_risk": {"risk": measured.risk},
        "plot_key_sets": {"frame": bayes_sdc.compare_key_sets(microdata, {"two": ["x", "y"]})},
        "plot_map": {"values": pd.Series({"a": 1.0}), "shapes": shapes, "label": "x"},
        "plot_margins": {"margins": measured.margins},
        "plot_predictive": {"counts": measured.predictive},
        "plot_predictive_by_size": {"counts": measured.predictive_by_size},
        "plot_prior_posterior": {"posterior": measured.posterior},
        "plot_promises": {"frame": pd.DataFrame({
            "method": ["model"], "epsilon": [1.0], "totals_error": [0.1], "after": [0.2]})},
        "plot_record_risk": {"risk": bayes_sdc.record_risk(microdata)},
        "plot_risk_by_count": {"classes": measured.classes["true-count"]},
        "plot_risk_by_datasets": {"growth": measured.by_datasets},
        "plot_risk_comparison": {"comparison": bayes_sdc.compare_risks(microdata, 600)},
        "plot_ru_map": {"frame": measured.tradeoff},
        "plot_sizes": {"microdata": microdata},
        "plot_treatments": {"frame": bayes_sdc.compare_treatments(
            microdata, strengths={"suppression": [2]}, seed=1)},
        "poisson_gamma": {"size_indices": sizes, "n": 35, "N": 600, "cells": 64},
        "posterior_so_far": {"table": table, "folder": folder},
        "protect_flows": {"table": table, "draws": 20, "tune": 20, "chains": 2, "seed": 1},
        "read_flows": {"source": flows, "origin": "o", "destination": "d", "count": "n"},
        "read_irs_flows": {"source": folder / "none.csv"},
        "read_microdata": {"source": people, "keys": ["x", "y"]},
        "read_policy": {"path": folder / "none.toml"},
        "read_shapes": {"path": folder / "none.json", "key": "code", "codes": ["a"]},
        "record_risk": {"microdata": microdata},
        "repeat_risk": {**seen, "releases": 1},
        "risk_weights": {**fitted, "seed": 1},
        "risk_by": {"table": table, "risk": measured.risk, "by": "group"},
        "risk_by_datasets": {**seen, "most": 1, "releases": 1},
        "risk_utility": {**seen, "datasets": [1]},
        "settle_totals": {"table": table},
        "simulate_areas": {"areas": 12, "seed": 1},
        "simulate_flows": {"areas": 12, "seed": 1},
        "simulate_irs_flows": {"areas": 12, "states": 2, "seed": 1},
        "simulate_persons": {"persons": 100, "seed": 1},
        "smallest_sample": {"N": 600, "K": 64, "q": 0.1},
        "suda": {"microdata": microdata},
        "suda_forecast": {"microdata": microdata},
        "superpopulation_risk": {"f": [1, 2], "p": [0.1, 0.2], "draws": 200, "seed": 1},
        "synthesize": {**fitted, "seed": 1},
        "terms_for_error": {"f": 2, "p": 0.1, "error": 0.01},
        "treat": {"microdata": microdata, "seed": 1},
        "treated_utility": {"treatment": bayes_sdc.treat(microdata, seed=1)},
        "unique_probability": cells,
        "unique_test": {"q": 0.1, "loss_accept": 1.0, "loss_reject": 1.0},
        "uniques_deviation": {"s": 3, **cells},
        "uniques_model": {"size_indices": sizes, "K": 64},
        "utility": {"table": table, "release": result.release},
        "weight_spread": {"weights": [1.0, 2.0], "combination": [0, 0], "records": [2]},
        "with_covariates": {"table": table, "covariates": covariates},
        "zayatz": {"size_indices": sizes, "n": 35, "N": 600},
    }  # fmt: skip


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever would take long raises instead: a refusal after it comes too late."""

    def start(*args: object, **kwargs: object) -> None:
        raise StartedError

    for place in (
        "bayes_sdc.flows.fit.fit.fit",
        "bayes_sdc.flows.fitting.fit",
        "bayes_sdc.flows.intruder.comparing.promises.fit",
        "bayes_sdc.flows.intruder.measure.estimate",
        "bayes_sdc.microdata.latent_classes.risk.run_chains",
        "bayes_sdc.microdata.treatment.setting.draw_states",
        "bayes_sdc.microdata.treatment.attributes.draw_states",
        "nutpie.compile_pymc_model",
    ):
        monkeypatch.setattr(place, start)


def outcome(function: Callable[..., object], arguments: dict[str, Any]) -> str:
    """What comes of a call: refused, used, or the name of an error that a user should not see."""
    try:
        function(**arguments)
    except InputError as error:
        return "refused" if len(str(error)) > 10 else "an error without words"
    except StartedError:
        return "used"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        matplotlib.pyplot.close("all")
    return "used"


def test_every_function_is_tried(usable: dict[str, dict[str, Any]]) -> None:
    """A new public function that nobody puts into the table would go untried."""
    assert sorted(usable) == FUNCTIONS
    assert set(IMPOSSIBLE) <= set(FUNCTIONS)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_types_and_values_are_refused(name: str, usable: dict[str, dict[str, Any]]) -> None:
    function = getattr(bayes_sdc, name)
    free = ("ArrayLike", "Any", "Callable")
    bad = []
    for parameter in inspect.signature(function).parameters.values():
        hint = str(parameter.annotation)
        for value in WRONG:
            got = outcome(function, {**usable[name], parameter.name: value})
            if got != "refused" and not (got == "used" and any(word in hint for word in free)):
                bad.append(f"{parameter.name}={value!r}: {got}")
        for value in IMPOSSIBLE.get(name, {}).get(parameter.name, []):
            got = outcome(function, {**usable[name], parameter.name: value})
            if got != "refused":
                bad.append(f"{parameter.name}={value!r}: {got}")
        for value in ODD:
            got = outcome(function, {**usable[name], parameter.name: value})
            if got not in ("refused", "used"):
                bad.append(f"{parameter.name}={value!r}: {got}")
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_missing_and_unknown_arguments_are_named(
    name: str, usable: dict[str, dict[str, Any]]
) -> None:
    function = getattr(bayes_sdc, name)
    with pytest.raises(InputError, match="has no argument 'datsets'"):
        function(**usable[name], datsets=2)
    parameters = inspect.signature(function).parameters.values()
    needed = [p.name for p in parameters if p.default is inspect.Parameter.empty]
    for missing in needed:
        with pytest.raises(InputError, match=f"'{missing}'"):
            function(**{key: value for key, value in usable[name].items() if key != missing})


def test_numbers_of_numpy_and_pandas_are_numbers() -> None:
    """Else a size that was counted would have to be converted by hand."""
    for value in (np.int64(3), np.int32(3), pd.Series([3]).sum()):
        check("n", value, int)
    check("p", np.float64(0.5), float)
    check("p", 1, float)
    check("folder", Path("x"), bayes_sdc.arguments.PathLike)
    check("folder", "x", bayes_sdc.arguments.PathLike)
    for value, hint in ((True, int), (2.0, int), (True, float), ("3", int), (None, int)):
        with pytest.raises(InputError, match="n must be"):
            check("n", value, hint)


@pytest.mark.parametrize(
    ("value", "hint", "message"),
    [
        ([0.1, np.nan], Sequence[float] | None, "value 2 of it is nan"),
        (np.array([[0.5], [0.5]]), Sequence[float], r"value 1 of it is array\(\[0.5\]\)"),
        (["a", 3], Sequence[str], "value 2 of it is 3"),
        (pd.DataFrame({"a": [1.0]}), Sequence[float], "it is a DataFrame; give one of its columns"),
        ({1.0}, Sequence[Any], r"a list of values; it is \{1.0\}"),
        ("3", Mapping[str, int] | int, "a dict or a whole number; it is '3'"),
    ],
)
def test_the_value_that_does_not_fit_is_named(value: object, hint: Any, message: str) -> None:
    """A list of 10,000 weights with one NaN is hard to mend without its place."""
    with pytest.raises(InputError, match=message):
        check("x", value, hint)
