"""Weights of cells: one pseudo-posterior in every sampler, and what an intruder makes of it."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayes_sdc import (
    InputError,
    extend_posterior,
    fit_flows,
    guarantee,
    intruder_risk,
    loo_flows,
    posterior_so_far,
    read_flows,
    risk_weights,
    synthesize,
)
from bayes_sdc.flows.fit.nuts import model_of
from bayes_sdc.flows.fit.settings import cells_to_fit, sampling_of, with_bound
from bayes_sdc.flows.gibbs import engine
from bayes_sdc.flows.intruder.weighting import expected_gain, weights_checks
from bayes_sdc.flows.table.cells import small_cells, thin
from bayes_sdc.flows.table.read import FlowTable

COLUMNS = {"origin": "o", "destination": "d", "count": "n"}
SHORT = {"draws": 20, "tune": 20, "chains": 2, "seed": 1}


def frame_of(seed: int, areas: int = 4) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in "abcdefgh"[:areas] for j in "abcdefgh"[:areas] if i != j]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    frame["n"] = 1 + np.minimum(rng.geometric(0.3, len(frame)) - 1, 8)
    return frame


@pytest.fixture(scope="module")
def table() -> FlowTable:
    return read_flows(frame_of(1), **COLUMNS)


@pytest.fixture(scope="module")
def weights(table: FlowTable) -> np.ndarray:
    found = np.random.default_rng(2).uniform(0.2, 1.0, table.n_small)
    found[:3] = [1.0, 0.0, 0.05]
    return found


def test_weights_of_one_change_no_digit(table: FlowTable) -> None:
    for sampler in ("gibbs", "reference"):
        plain, ones = (
            fit_flows(table, sampler=sampler, weights=each, **SHORT)
            for each in (None, [1.0] * table.n_small)
        )
        xr.testing.assert_identical(
            plain["posterior"].to_dataset().drop_attrs(),
            ones["posterior"].to_dataset().drop_attrs(),
        )
        assert ones.attrs["weights_from"] == "given"
        assert "weights_from" not in plain.attrs


@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_a_cell_without_weight_is_as_if_it_were_not_there(
    table: FlowTable, epsilon: float | None
) -> None:
    """To the last digit: the engine with weight 0, and without the cells."""
    sampling = with_bound(sampling_of(
        family="negative-binomial", prior="pooled", sampler="gibbs", draws=5, tune=5, chains=1,
        seed=1, cores=1, scheduler=None,
    ), table, epsilon, "bundled")  # fmt: skip
    cells = small_cells(table, covariates="published", bound=sampling.bound)
    keep = np.arange(len(cells.y)) % 4 != 1
    chains = [
        engine.MarkovChain(engine.prepare(each), sampling, np.random.SeedSequence(3))
        for each in (cells._replace(weight=keep.astype(float)), thin(cells, keep))
    ]
    for _ in range(10):
        for chain in chains:
            chain.draw()
    weighted, thinned = (chain.record() for chain in chains)
    for name, values in thinned.items():
        np.testing.assert_array_equal(weighted[name], values, err_msg=name)


@pytest.mark.parametrize(
    "family", ["negative-binomial", pytest.param("poisson", marks=pytest.mark.slow)]
)
def test_the_pymc_model_weighs_every_log_likelihood(
    table: FlowTable, weights: np.ndarray, family: str
) -> None:
    """Each cell alone, and all: the density less the prior's is a weighted sum."""
    sampling = sampling_of(
        family=family, prior="weak", sampler="nuts", draws=1, tune=1, chains=1, seed=1, cores=1,
        scheduler=None,
    )  # fmt: skip
    n = table.n_small

    def log_density(weight: np.ndarray | None, point: dict[str, np.ndarray]) -> float:
        chosen = sampling._replace(weight=weight)
        return float(model_of(cells_to_fit(table, chosen), chosen).compile_logp()(point))

    model = model_of(cells_to_fit(table, sampling), sampling)
    point = {name: value + 0.3 for name, value in model.initial_point().items()}
    prior = log_density(np.zeros(n), point)
    assert log_density(np.ones(n), point) == pytest.approx(log_density(None, point), abs=1e-9)
    single = [log_density(np.eye(n)[k], point) - prior for k in (0, 1, 5)]
    some = np.zeros(n)
    some[[0, 1, 5]] = weights[[0, 4, 5]]
    expected = prior + float(np.dot(weights[[0, 4, 5]], single))
    assert log_density(some, point) == pytest.approx(expected, abs=1e-9)


@pytest.fixture(scope="module", params=[None, 1.0], ids=["free", "bounded"])
def fitted(table: FlowTable, weights: np.ndarray, request: pytest.FixtureRequest) -> xr.DataTree:
    return fit_flows(
        table, weights=weights.tolist(), epsilon=request.param, draws=1000, tune=500, seed=3
    )


@pytest.mark.slow
def test_estimators_of_the_intruder_agree(
    table: FlowTable, weights: np.ndarray, fitted: xr.DataTree
) -> None:
    """One integrates the effects of the target, the other reweights the draws."""
    release = synthesize(table, fitted, seed=1)
    own, paper = (
        intruder_risk(table, fitted, release, estimator=name) for name in ("integrated", "paper")
    )
    good = (paper.khat.max("count") < 0.5).to_numpy()
    assert good.sum() >= 4
    for name in ("release_probability", "prediction"):
        one, other = (getattr(each, name).to_numpy()[good] for each in (own, paper))
        np.testing.assert_allclose(one, other, atol=0.02, err_msg=name)
    # a cell without weight tells nothing, and is released as the others predict it
    nothing = own.release_probability.to_numpy()[1]
    assert weights[1] == 0.0
    np.testing.assert_allclose(nothing - nothing[0], 0.0, atol=1e-9)
    np.testing.assert_allclose(own.prediction.to_numpy()[1], nothing[0], atol=1e-9)


@pytest.mark.slow
def test_a_weight_near_zero_hides_what_a_full_one_tells(
    table: FlowTable, fitted: xr.DataTree
) -> None:
    m = intruder_risk(table, fitted, synthesize(table, fitted, seed=1)).release_probability
    spread = np.abs(m - m.mean("true")).max(["true", "released"]).to_numpy()
    assert spread[2] < 0.2 * spread[0]


@pytest.mark.slow
def test_by_risk_the_cells_above_the_limit_tell_less(table: FlowTable) -> None:
    y, how = table.cells["y"].to_numpy(), {"draws": 400, "tune": 300, "chains": 2, "seed": 1}
    first = fit_flows(table, **how)

    def gains(posterior: xr.DataTree) -> np.ndarray:
        return expected_gain(
            intruder_risk(table, posterior, synthesize(table, posterior, seed=1), seed=1), y
        )

    before = gains(first)
    limit = float(np.quantile(before, 0.5))
    again = fit_flows(table, weights="risk", gain_limit=limit, **how)
    weight = again["constant_data"]["weight"].to_numpy()
    np.testing.assert_array_equal(weight < 1.0, before > limit)
    np.testing.assert_allclose(weight, risk_weights(table, first, limit=limit, seed=1))
    after = gains(again)
    assert after[weight < 1.0].max() < limit
    assert again.attrs["weights_from"] == f"risk, gains above {limit:g} bits"
    risk = intruder_risk(table, again, synthesize(table, again, seed=1), seed=1)
    (check,) = weights_checks(table, again, risk)
    assert "local and asymptotic" in check.reason
    above = int((after > limit).sum())  # cells that were below may be above now: they count
    assert (check.verdict, f"{above} cells may tell more" in check.reason) == (
        "fail" if above else "look", True
    )  # fmt: skip
    assert weights_checks(table, first, risk) == []


def test_weights_end_what_epsilon_promises(table: FlowTable) -> None:
    """They may follow the counts; nothing of them is called epsilon."""
    weighted = fit_flows(table, epsilon=1.0, weights=[0.5] * table.n_small, **SHORT)
    found = guarantee(table, weighted)
    assert not found.holds
    assert any("weights" in reason for reason in found.ended)


def test_labels_and_order_of_weights(table: FlowTable) -> None:
    """A Series by label is a list by position, and another weight is another fit."""
    some = pd.Series({table.cells.index[2]: 0.3})
    listed = [1.0] * table.n_small
    listed[2] = 0.3
    one, other = (fit_flows(table, weights=each, **SHORT) for each in (some, listed))
    np.testing.assert_array_equal(one["posterior"]["beta"], other["posterior"]["beta"])
    assert one.attrs["cells_sha256"] == other.attrs["cells_sha256"]
    assert one.attrs["cells_sha256"] != fit_flows(table, **SHORT).attrs["cells_sha256"]


def test_what_cannot_be_weights_is_refused(table: FlowTable, tmp_path) -> None:
    n = table.n_small
    wrong = {
        "0 to 1": [1.5, *[1.0] * (n - 1)],
        "small cells": [1.0],
        "unknown": "high",
        "is no small cell": pd.Series({"zz>zz": 0.5}),
        "numbers": ["x"] * n,
    }
    for words, weights in wrong.items():
        with pytest.raises(InputError, match=words):
            fit_flows(table, weights=weights, **SHORT)
    with pytest.raises(InputError, match="gain_limit"):
        fit_flows(table, weights="risk", gain_limit=0.0, **SHORT)
    weighted = fit_flows(table, weights=[0.5] * n, resume=tmp_path / "kept", **SHORT)
    with pytest.raises(InputError, match="weights"):
        posterior_so_far(table, tmp_path / "kept")
    with pytest.raises(InputError, match="weights"):
        extend_posterior(table, weighted, ["log_likelihood"])
    with pytest.raises(InputError, match="weights"):
        intruder_risk(table, weighted, synthesize(table, weighted, seed=1), estimator="refit")
    with pytest.raises(InputError, match="weights"):
        loo_flows(table, weighted)
    with pytest.raises(InputError, match="extend"):
        fit_flows(table, weights=[0.5] * n, extend=["log_likelihood"], **SHORT)
    with pytest.raises(InputError, match="family"):
        fit_flows(table, weights=[0.5] * n, family="base", **SHORT)
    with pytest.raises(InputError, match="cells_sha256"):
        fit_flows(table, weights=[0.4] * n, resume=tmp_path / "kept", **SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["negative-binomial", "poisson"])
def test_samplers_agree(family: str) -> None:
    """NUTS, the engine and the reference sampler draw from one pseudo-posterior."""
    table = read_flows(frame_of(4, areas=7), **COLUMNS)
    weights = np.random.default_rng(5).uniform(0.0, 1.0, table.n_small).tolist()
    long = {"weights": weights, "prior": "weak", "family": family, "seed": 5, "chains": 4}
    fits = {
        "gibbs": fit_flows(table, sampler="gibbs", draws=3000, tune=1000, **long),
        "nuts": fit_flows(table, sampler="nuts", draws=1500, tune=1000, **long),
        "reference": fit_flows(table, sampler="reference", draws=4000, tune=1000, **long),
    }
    for name in ["alpha", "phi_beta", "phi_gamma"] + (["r"] if family != "poisson" else []):
        means, errors = [], []
        for posterior in fits.values():
            draws = posterior["posterior"][name].to_numpy()[..., 0]
            draws = draws if name == "alpha" else np.log(draws)
            parts = draws.reshape(-1, draws.shape[1] // 10).mean(axis=1)
            means.append(parts.mean())
            errors.append(parts.std(ddof=1) / np.sqrt(len(parts)))
        for k in (1, 2):
            assert abs(means[0] - means[k]) < 4.5 * np.hypot(errors[0], errors[k]), name


@pytest.mark.slow
def test_release_probabilities_are_those_of_fits_with_another_count() -> None:
    """The table with another count in one cell is fitted with the same weights."""
    frame = frame_of(6)
    table = read_flows(frame, **COLUMNS)
    weights = np.random.default_rng(7).uniform(0.1, 1.0, table.n_small).tolist()
    how = {"weights": weights, "prior": "weak", "draws": 8000, "tune": 1000, "seed": 1}
    posterior = fit_flows(table, **how)
    found = intruder_risk(table, posterior, synthesize(table, posterior, seed=1))
    for cell, count in ((0, 9), (4, 1), (7, 5)):
        other = frame.copy()
        row = int(table.cells["row"].iloc[cell])
        other.loc[row, "n"] = count
        changed = read_flows(other, **COLUMNS)
        again = fit_flows(changed, **how)
        m = intruder_risk(changed, again, synthesize(changed, again, seed=1)).release_probability
        np.testing.assert_allclose(
            m.to_numpy()[cell, count - 1], found.release_probability.to_numpy()[cell, count - 1],
            atol=0.015,
        )  # fmt: skip
