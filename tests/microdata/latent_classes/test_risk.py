"""The risk of a file by latent classes: what must hold for every file."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, latent_class_risk, read_microdata
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.latent_classes.risk import recommended_line

KEYS = ["region", "age", "job", "sex"]


def population(N: int = 4000, seed: int = 1) -> pd.DataFrame:
    """People in three kinds of places, whose keys are dependent."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, N)
    frame = {
        "region": (kind + rng.integers(0, 3, N)) % 5,
        "age": np.minimum(rng.gamma(2.0 + kind, 4.0), 60.0).astype(int),
        "job": (rng.geometric(0.25, N) + 3 * kind) % 14,
        "sex": rng.integers(0, 2, N),
    }
    return pd.DataFrame({name: values.astype(str) for name, values in frame.items()})


def read(frame: pd.DataFrame, **options: object) -> Microdata:
    return read_microdata(frame, keys=KEYS, **options)  # type: ignore[arg-type]


PEOPLE = population()
SAMPLE = PEOPLE.sample(200, random_state=1)


def test_rows_and_cores_do_not_matter() -> None:
    """Same seed, same numbers, whoever computes them and in whatever order the file is."""
    one = latent_class_risk(read(SAMPLE), population_size=4000, seed=1, cores=1)
    turned = SAMPLE.iloc[::-1]
    two = latent_class_risk(read(turned), population_size=4000, seed=1, cores=4)
    assert one.tau1 == two.tau1
    assert one.tau2 == two.tau2
    assert one.population_uniques == two.population_uniques
    there = len(SAMPLE) - 1 - two.records.index
    pd.testing.assert_frame_equal(
        one.records, two.records.set_axis(pd.Index(there, name="record")).sort_index()
    )


def test_risks_are_probabilities_and_add_up() -> None:
    data = read(SAMPLE)
    risk = latent_class_risk(data, sampling_fraction=0.05, seed=2)
    frame = risk.records
    assert frame.index.tolist() == np.flatnonzero(data.f == 1).tolist()
    assert ((frame >= 0.0) & (frame <= 1.0)).all(axis=None)
    assert frame["P_unique"].sum() == pytest.approx(risk.tau1.value)
    assert frame["inverse_F"].sum() == pytest.approx(risk.tau2.value)
    assert (frame["P_unique"] <= frame["inverse_F"]).all()
    assert risk.tau1.value < risk.population_uniques.value
    low, high = risk.tau1.interval
    assert 0.0 <= low < risk.tau1.value < high <= risk.uniques
    assert "tau1" in risk.summary()
    assert recommended_line(replace(risk, trusted=True)).startswith(
        "recommended estimate, latent classes: "
    )
    doubted = recommended_line(replace(risk, trusted=False))
    assert doubted.startswith("NOT recommended for this file, latent classes: ")
    assert "<table>" in risk._repr_html_()


def test_a_census_is_certain() -> None:
    """With N = n every sample unique is a population unique, without any doubt."""
    risk = latent_class_risk(read(SAMPLE), population_size=len(SAMPLE), seed=1)
    assert (risk.records == 1.0).all(axis=None)
    assert risk.tau1.value == risk.uniques
    assert risk.tau1.interval == (risk.uniques, risk.uniques)
    assert risk.population_uniques.value == risk.uniques


def test_no_sample_uniques_no_risk_of_them() -> None:
    twice = pd.concat([SAMPLE, SAMPLE])
    risk = latent_class_risk(read(twice), population_size=4000, seed=1)
    assert risk.uniques == 0
    assert len(risk.records) == 0
    assert risk.tau1.value == risk.tau2.value == 0.0


@pytest.mark.parametrize("missing", ["wildcard", "own", "conservative"])
def test_missing_values_by_every_rule(missing: str) -> None:
    holes = SAMPLE.copy()
    holes.iloc[::7, 1] = None
    risk = latent_class_risk(read(holes, missing=missing), population_size=4000, seed=1)
    assert ((risk.records >= 0.0) & (risk.records <= 1.0)).all(axis=None)


@pytest.mark.parametrize("weight", [9.54, 98.78, 0.1, 0.01, 1e-100])
def test_equal_weights_are_equal_whatever_they_are(weight: float) -> None:
    """A sum of f equal weights over f is not always the weight, to the last digit."""
    rare = pd.DataFrame({"a": ["x"] * 7 + ["z"], "b": "y"})
    for people, keys in ((rare, ["a", "b"]), (SAMPLE, KEYS)):
        data = read_microdata(people.assign(w=weight), keys=keys, weight="w")
        size = max(len(people) * weight, 2.0 * len(people))
        risk = latent_class_risk(data, population_size=int(min(size, 1e12)), seed=1)
        assert risk.trusted in (True, False)
        assert not any("weights" in note and "mean of" in note for note in risk.notes)


def holds(low: object, value: object, high: object) -> bool:
    return bool(np.all(low <= value) and np.all(value <= high))  # type: ignore[operator]


@pytest.mark.parametrize("size", [201, 400, 10**6, 10**12])
@pytest.mark.parametrize("people", [SAMPLE, pd.concat([SAMPLE[:1]] * 49 + [SAMPLE[1:152]])])
def test_every_interval_holds_its_estimate(size: int, people: pd.DataFrame) -> None:
    risk = latent_class_risk(read(people), population_size=size, seed=1)
    for one in (risk.tau1, risk.tau2, risk.population_uniques):
        assert holds(one.interval[0], one.value, one.interval[1])
    assert risk.population_uniques.value >= risk.tau1.value, "these are among them"
    for name in ("P_unique", "inverse_F"):
        frame = risk.records
        assert holds(frame[f"{name}_low"], frame[name], frame[f"{name}_high"])
        assert holds(0.0, frame[f"{name}_low"], 1.0)
        assert holds(0.0, frame[f"{name}_high"], 1.0)


@pytest.mark.parametrize("missing", ["wildcard", "conservative"])
def test_a_key_that_nobody_has_is_named(missing: str) -> None:
    data = read(SAMPLE.assign(age=None), missing=missing)
    with pytest.raises(InputError, match="key 'age' is missing in every record"):
        latent_class_risk(data, population_size=4000, seed=1)


def test_a_key_that_nobody_has_is_a_constant_by_the_rule_own() -> None:
    lacking = latent_class_risk(read(SAMPLE.assign(age=None), missing="own"), population_size=4000,
                                seed=1)  # fmt: skip
    same = latent_class_risk(read(SAMPLE.assign(age="0")), population_size=4000, seed=1)
    assert lacking.tau1.value == same.tau1.value


def test_no_record_is_complete() -> None:
    """Then nothing can be learned of the scatter, which is said by its width, not by a crash."""
    holes = SAMPLE.copy()
    holes.iloc[::2, 1] = None
    holes.iloc[1::2, 2] = None
    risk = latent_class_risk(read(holes, missing="wildcard"), population_size=4000, seed=1)
    assert ((risk.records >= 0.0) & (risk.records <= 1.0)).all(axis=None)
    assert np.isfinite(risk.tau2.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "depends on the size of the population"),
        ({"population_size": 10}, "must be a whole number"),
        ({"population_size": 4000, "sampling_fraction": 0.1}, "give one of them"),
        ({"sampling_fraction": 0.0}, "above 0"),
        ({"sampling_fraction": 1e-300}, "beyond"),
        ({"population_size": 4000, "seed": -1}, "seed"),
    ],
)
def test_what_cannot_be_used_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        latent_class_risk(read(SAMPLE), **options)  # type: ignore[arg-type]


def test_strata_each_count_with_their_own_rate() -> None:
    """One region in three at 20 %, the others at 2: N / n for all would be wrong for both."""
    people = population(12_000, seed=5)
    dense = people["region"].isin(["1", "2"]).to_numpy()
    rate = np.where(dense, 0.2, 0.02)
    taken = np.random.default_rng(3).random(len(people)) < rate
    sample = people[taken].assign(weight=1.0 / rate[taken])
    F = people.groupby(KEYS)["sex"].transform("size").to_numpy()
    data = read(sample, weight="weight")
    risk = latent_class_risk(data, population_size=len(people), seed=1)
    alone, inside = F[taken] == 1, dense[taken]
    low, high = risk.tau1.interval
    assert low <= alone.sum() <= high
    p = risk.records["P_unique"]
    for part in (inside, ~inside):
        chosen = p[part[p.index]]
        error = np.sqrt((chosen * (1.0 - chosen)).sum())
        assert abs(chosen.sum() - alone[part].sum()) < 4.0 * error + 0.25 * alone[part].sum()
    assert risk.population_uniques.value == pytest.approx((F == 1).sum(), rel=0.3)
    assert any("weights differ" in note for note in risk.notes)
