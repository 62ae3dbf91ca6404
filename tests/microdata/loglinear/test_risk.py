"""The risk of a file by a log-linear model."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, loglinear_risk, read_microdata

RNG = np.random.default_rng(4)
KIND = RNG.integers(0, 4, 30_000)
PEOPLE = pd.DataFrame({
    "place": (3 * KIND + RNG.integers(0, 4, len(KIND))).astype(str),
    "age": RNG.integers(0, 40, len(KIND)).astype(str),
    "job": ((4 * KIND + RNG.geometric(0.3, len(KIND))) % 17).astype(str),
})  # fmt: skip
KEYS = list(PEOPLE)
SAMPLE = PEOPLE.sample(1500, random_state=1).reset_index(drop=True)


def test_where_the_model_holds_so_does_the_estimate() -> None:
    """The population has interactions of pairs alone."""
    data = read_microdata(SAMPLE, keys=KEYS)
    risk = loglinear_risk(data, len(PEOPLE))
    F = PEOPLE.groupby(KEYS)["age"].transform("size").loc[
        PEOPLE.sample(1500, random_state=1).index
    ].to_numpy()[data.f == 1]  # fmt: skip
    chance = (risk.tau1_interval[1] - risk.tau1_interval[0]) / 3.92
    assert abs(risk.tau1 - (F == 1).sum()) < 3.0 * chance
    assert risk.tau2 == pytest.approx((1.0 / F).sum(), rel=0.1)
    assert ("place", "job") in risk.interactions
    assert risk.records["P_unique"].sum() == pytest.approx(risk.tau1)
    assert ((risk.records >= 0.0) & (risk.records <= 1.0)).all(axis=None)


def test_order_of_records_changes_nothing() -> None:
    one = loglinear_risk(read_microdata(SAMPLE, keys=KEYS), 30_000)
    two = loglinear_risk(read_microdata(SAMPLE.iloc[::-1], keys=KEYS), 30_000)
    assert (one.tau1, one.tau2, one.interactions) == (two.tau1, two.tau2, two.interactions)


def test_a_census_is_certain() -> None:
    risk = loglinear_risk(read_microdata(SAMPLE, keys=KEYS), len(SAMPLE))
    assert (risk.records == 1.0).all(axis=None)
    assert risk.tau1_interval == (risk.uniques, risk.uniques)


def test_what_it_does_not_apply_to_is_refused() -> None:
    holes = SAMPLE.copy()
    holes.loc[3, "age"] = None
    with pytest.raises(InputError, match="match others by the rule 'wildcard'"):
        loglinear_risk(read_microdata(holes, keys=KEYS, missing="wildcard"), 30_000)
    assert loglinear_risk(read_microdata(holes, keys=KEYS, missing="own"), 30_000).uniques
    with pytest.raises(InputError, match="two keys"):
        loglinear_risk(read_microdata(SAMPLE, keys=["age"]), 30_000)
    with pytest.raises(InputError, match="from the 1,500 records"):
        loglinear_risk(read_microdata(SAMPLE, keys=KEYS), 100)
