"""Fits with the canonical link: what it is for, what is refused, and that all samplers agree."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayes_sdc import (
    InputError,
    fit_flows,
    intruder_risk,
    posterior_so_far,
    read_flows,
    synthesize,
    with_covariates,
)
from bayes_sdc.flows.fit.posterior import write_posterior
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.table.cells import fitted_cells
from bayes_sdc.flows.table.read import FlowTable

COLUMNS = {"origin": "o", "destination": "d", "count": "n"}
SHORT = {"family": "canonical", "draws": 60, "tune": 60, "chains": 2, "seed": 1}


def steep(areas: int, seed: int) -> tuple[FlowTable, np.ndarray]:
    """A table whose small counts grow steeply with a known property of both areas, and that."""
    rng = np.random.default_rng(seed)
    i, j = np.divmod(np.arange(areas**2), areas)
    keep = i != j
    size = rng.normal(size=areas)
    x = (size[i] + size[j])[keep] / np.sqrt(2.0)
    rungs = counts.ladder(np.array([1.0]), 8, canonical=True)
    log_rate = -0.1 + 0.45 * x
    y = counts.draw(log_rate, np.zeros(len(x), np.int64), rungs, rng.random(len(x)))
    labels = np.array([f"{number:02d}" for number in range(areas)])
    frame = pd.DataFrame({"o": labels[i[keep]], "d": labels[j[keep]], "n": y + 1, "x": x})
    table = read_flows(frame[["o", "d", "n"]], **COLUMNS)
    x = frame["x"].iloc[table.cells["row"]].to_numpy()
    return with_covariates(table, pd.DataFrame({"x": x}, index=table.cells.index)), x


def slope(n: np.ndarray, x: np.ndarray) -> float:
    return float(np.polyfit(x, np.log(n), 1)[0])


def test_relation_of_counts_with_areas_is_released_as_it_is() -> None:
    """By the log of the mean, counts of the largest areas cannot be as large as they are."""
    table, x = steep(45, 1)
    rows = table.cells["row"].to_numpy()
    true = slope(table.frame["n"].to_numpy()[rows], x)
    found = {}
    for family in ("canonical", "negative-binomial"):
        posterior = fit_flows(table, **SHORT | {"family": family})
        release = synthesize(table, posterior, datasets=10, seed=2)
        small = [one["n"].to_numpy()[rows] for _, one in release.groupby("dataset")]
        found[family] = np.mean([slope(n, x) for n in small]) / true
    assert 0.96 < found["canonical"] < 1.04
    assert found["negative-binomial"] < found["canonical"] - 0.03


def test_bounded_steps_are_refused() -> None:
    table, _ = steep(6, 1)
    with pytest.raises(InputError, match="steps of family 'canonical' are not bounded"):
        fit_flows(table, **SHORT, epsilon=1.0)


def test_cells_are_fitted_again_with_their_link(tmp_path: Path) -> None:
    """From a file: by the log of the mean the same rates would give other counts."""
    table, _ = steep(8, 2)
    posterior = fit_flows(table, **SHORT, resume=tmp_path / "kept")
    assert fitted_cells(table, posterior).canonical
    write_posterior(posterior, tmp_path / "posterior.nc")
    expected = synthesize(table, posterior, seed=2)
    with xr.open_datatree(tmp_path / "posterior.nc") as again:
        pd.testing.assert_frame_equal(synthesize(table, again, seed=2), expected)
    so_far = posterior_so_far(table, tmp_path / "kept")
    xr.testing.assert_equal(so_far["posterior"].to_dataset(), posterior["posterior"].to_dataset())


def test_released_counts_have_the_canonical_probabilities() -> None:
    """Synthesis, and not only the sampler, must take the rate for the argument of the series."""
    table, _ = steep(12, 3)
    posterior = fit_flows(table, **SHORT)
    cells = fitted_cells(table, posterior)
    log_rate, rungs = rates_by_draw(posterior).at(cells, 0)
    kappa = 1.0 / posterior["posterior"]["r"].to_numpy().reshape(-1, 1)[0]
    y = np.arange(9)
    log_p = y * log_rate[:, None] + np.concatenate(
        [[0.0], np.cumsum(np.log((1.0 + kappa * y[:-1]) / (y[:-1] + 1.0)))]
    )
    expected = np.exp(log_p) / np.exp(log_p).sum(axis=1, keepdims=True)
    found = counts.probabilities(log_rate, cells.group, rungs)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_estimators_agree() -> None:
    """Two effects integrated out, and importance weights: both must have the link."""
    table, _ = steep(9, 4)
    posterior = fit_flows(table, **SHORT | {"draws": 600, "tune": 300, "chains": 4})
    release = synthesize(table, posterior, seed=5)
    one, other = (
        intruder_risk(table, posterior, release, estimator=name, seed=1)
        for name in ("integrated", "paper")
    )
    apart = np.abs(one.release_probability - other.release_probability).to_numpy()
    error = np.hypot(*(risk.release_probability_error.to_numpy() for risk in (one, other)))[
        ..., None
    ]
    assert (apart < 5.0 * error + 2e-3).mean() > 0.97


@pytest.mark.slow
def test_samplers_agree(standard_errors_apart) -> None:
    """NUTS on the PyMC model, the engine and the reference sampler draw from one posterior."""
    table, _ = steep(14, 6)
    long = {"family": "canonical", "seed": 5, "chains": 4}
    fits = [
        fit_flows(table, sampler="gibbs", draws=3000, tune=1000, **long)["posterior"],
        fit_flows(table, sampler="nuts", draws=1500, tune=1000, **long)["posterior"],
        fit_flows(table, sampler="reference", draws=5000, tune=1500, **long)["posterior"],
    ]
    for name in ("alpha", "phi_beta", "r", "coefficient", "national_mean"):
        apart = standard_errors_apart(fits, name, log=name in ("phi_beta", "r"))
        for k in (0, 1):
            assert apart[k].max() < 4.5, (name, k + 1)
