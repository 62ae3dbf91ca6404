"""Traces of the log-linear model against the fit, and against sums over frequencies."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

from bayes_sdc import InputError, loglinear_model, loglinear_risk, read_microdata
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.loglinear.selection import choose
from bayes_sdc.microdata.loglinear.table import names_of, table_of

KEYS = ["region", "age", "job"]


def sampled(n: int = 150) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    region = rng.integers(0, 4, n)
    frame = {
        "region": region,
        "age": rng.integers(0, 9, n),
        "job": (region + rng.integers(0, 3, n)),
    }
    return pd.DataFrame({name: values.astype(str) for name, values in frame.items()})


FRAME = sampled()
DATA = read_microdata(FRAME, keys=KEYS)
TIMES = 12
N = TIMES * DATA.n


def as_trace(log_mean: Any, **more: Any) -> xr.DataTree:
    """The same draw so many times, as pm.sample would return it."""
    drawn = {"log_mean": (("chain", "draw", "cell"), np.tile(log_mean, (2, 100, 1)))}
    drawn |= {name: (("chain", "draw"), np.full((2, 100), value)) for name, value in more.items()}
    names = names_of(table_of(DATA, seed=0))[: len(log_mean)]
    coords = {"cell": names} if len(names) == len(log_mean) else {}
    return xr.DataTree.from_dict({"posterior": xr.Dataset(drawn, coords=coords)})


def fitted(data: Microdata) -> np.ndarray:
    return np.log(choose(table_of(data, seed=0), TIMES)[0].fitted.mean)


def test_a_trace_that_stays_at_the_fit_says_what_the_fit_says() -> None:
    """A cell that is read for another would change every number."""
    one = loglinear_risk(DATA, N)
    other = loglinear_risk(DATA, N, trace=as_trace(fitted(DATA)))
    assert other.tau1 == pytest.approx(one.tau1, rel=1e-12)
    assert other.tau2 == pytest.approx(one.tau2, rel=1e-12)
    pd.testing.assert_frame_equal(other.records, one.records)
    assert other.tau1_interval == pytest.approx(one.tau1_interval, abs=1.5)
    assert not other.converged  # of what never moves nobody knows


def test_rows_may_come_in_any_order() -> None:
    turned = read_microdata(FRAME.iloc[::-1], keys=KEYS)
    one, other = (
        loglinear_risk(data, N, trace=as_trace(fitted(data)), seed=4) for data in (DATA, turned)
    )
    assert one.tau1_interval == other.tau1_interval
    assert one.tau1 == pytest.approx(other.tau1, rel=1e-12)


@pytest.mark.parametrize("shape", [0.05, 1.0, 40.0])
def test_scattered_frequencies_against_their_sum(shape: float) -> None:
    log_mean = fitted(DATA)
    risk = loglinear_risk(DATA, N, trace=as_trace(log_mean, log_shape=np.log(shape)))
    table = table_of(DATA, seed=0)
    mean = np.exp(log_mean[table.place[DATA.combination[risk.records.index]]])
    others = np.arange(20_000)
    q = (shape + mean) / (shape + TIMES * mean)
    chance = stats.nbinom.pmf(others[:, None], shape + 1.0, q)
    np.testing.assert_allclose(risk.records["P_unique"], chance[0], rtol=1e-10)
    inverse = (chance / (1.0 + others[:, None])).sum(axis=0)
    np.testing.assert_allclose(risk.records["inverse_F"], inverse, rtol=1e-8)


@pytest.mark.parametrize(
    ("trace", "says"),
    [
        (xr.Dataset(), "trace"),
        (xr.DataTree(), "a DataTree with a posterior"),
        (as_trace(fitted(DATA)[:-1]), "cells"),
        (as_trace(np.nan * fitted(DATA)), "no numbers"),
        (as_trace(fitted(DATA)).isel(cell=0), "another model"),
        (as_trace(fitted(DATA)).isel(cell=slice(None, None, -1)), "cells"),
        (as_trace(fitted(DATA)).isel(chain=slice(1)), "one chain"),
    ],
)
def test_traces_of_other_models_and_files_are_refused(trace: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        loglinear_risk(DATA, N, trace=trace)


def test_a_trace_of_other_people_in_as_many_cells_is_refused() -> None:
    """The cells of the file come first, so that those of another file are in another order."""
    other = FRAME.copy()
    other["age"] = other["age"].to_numpy()[::-1]
    data = read_microdata(other, keys=KEYS)
    assert len(table_of(data, seed=0).f) == len(table_of(DATA, seed=0).f)
    with pytest.raises(InputError, match="cells"):
        loglinear_risk(data, N, trace=as_trace(fitted(DATA)))


@pytest.mark.parametrize(
    "interactions",
    [[("region",)], ["region"], [("region", "height")], [("age", "age")],
     [("age", "job"), ("job", "age")]],
)  # fmt: skip
def test_interactions_that_are_none_are_refused(interactions: Any) -> None:
    with pytest.raises(InputError, match="interaction"):
        loglinear_model(DATA, interactions=interactions)


@pytest.mark.slow
def test_nuts_on_the_model_finds_what_is_there() -> None:
    """The interaction that made the file has the largest effects, and the chains agree."""
    import pymc as pm

    with loglinear_model(DATA, interactions=[("region", "job"), ("region", "age")]):
        trace = pm.sample(500, tune=1000, chains=4, random_seed=1, target_accept=0.95)
    risk = loglinear_risk(DATA, N, trace=trace)
    assert risk.converged
    assert ("region", "job") in risk.interactions
    drawn = trace["posterior"]
    spread = [float(drawn[f"effects of region x {key}"].std()) for key in ("job", "age")]
    assert spread[0] > 2.0 * spread[1]
