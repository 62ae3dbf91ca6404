"""Whom a file stands for: one number, or one for each stratum."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import InputError, latent_class_risk, read_microdata
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.latent_classes.population import people_behind

FRAME = pd.DataFrame(
    {
        "region": ["N", "N", "N", "S", "S", "S", "S", "S"],
        "age": ["1", "1", "2", "1", "2", "2", "3", "3"],
        "place": ["a", "a", "b", "a", "b", "b", "b", "b"],
        "w": [2.0] * 8,
    }
)


def read(**options: str) -> Microdata:
    return read_microdata(FRAME, keys=["region", "age"], **options)  # type: ignore[arg-type]


def test_each_record_stands_for_its_stratum() -> None:
    """3 of 30 in the North and 5 of 500 in the South, not 8 of 530."""
    people = people_behind(read(), {"N": 30, "S": 500}, None, "region")
    assert people.size == 530.0
    assert people.weights is not None
    np.testing.assert_allclose(people.weights, [10.0, 10.0, 100.0, 100.0, 100.0])


def test_fractions_say_the_same_as_sizes() -> None:
    sizes = people_behind(read(), {"N": 30, "S": 500}, None, "region")
    rates = people_behind(read(), None, {"N": 0.1, "S": 0.01}, FRAME["region"])
    assert rates.size == pytest.approx(sizes.size)
    np.testing.assert_allclose(rates.weights, sizes.weights)


def test_strata_that_are_no_key_come_to_a_mean() -> None:
    """Combination (S, 1) is of one record of a, (S, 2) of two of b."""
    people = people_behind(read(), {"a": 30, "b": 500}, None, FRAME["place"].tolist())
    np.testing.assert_allclose(people.weights, [10.0, 100.0, 10.0, 100.0, 100.0])


@given(st.permutations([1, 1, 1, 2, 2, 2, 2, 2]))
def test_a_number_is_the_same_stratum_however_it_is_stored(strata: list[int]) -> None:
    """A column of whole numbers becomes one of decimals when a row without one is joined."""
    sizes = {1: 30, 2: 500}
    expected = people_behind(read(), sizes, None, strata).weights
    for given_as in (np.array(strata), [float(s) for s in strata], [str(s) for s in strata]):
        np.testing.assert_array_equal(
            people_behind(read(), sizes, None, given_as).weights,  # type: ignore[arg-type]
            expected,
        )


@pytest.mark.parametrize(
    ("size", "fraction", "strata", "message"),
    [
        ({"N": 30, "S": 500}, None, None, "belong together"),
        (530, None, "region", "belong together"),
        ({"N": 30}, None, "region", "does not have the stratum 'S'"),
        ({"N": 30, "S": 500, "W": 9}, None, "region", "no record is of the stratum 'W'"),
        ({"N": 2, "S": 500}, None, "region", "of 'N' must be a whole number from the 3 records"),
        ({"N": 30, "S": 500.0}, None, "region", "of 'S' must be a whole number"),
        (None, {"N": 0.0, "S": 0.1}, "region", "of 'N' must be above 0"),
        ({"N": 30, "S": 500}, None, "place", "not a key of the file"),
        ({"N": 30, "S": 500}, None, ["N"], "1 values; the file has 8 records"),
        ({"N": 30, "S": 500}, None, ["N", None] * 4, "record 2 has no stratum"),
        ({1: 30, "1": 31, 2: 500}, None, [1, 2] * 4, "the stratum '1' twice"),
        ({1: 30, 2: 500}, None, ["01", "02"] * 4, "stratum '01', .*; it has '1', '2'"),
        ({"a": 30, "b": 500}, None, FRAME["place"][::-1], "index is not in increasing order"),
    ],
)
def test_what_does_not_fit_is_refused(
    size: object, fraction: object, strata: object, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        people_behind(read(), size, fraction, strata)  # type: ignore[arg-type]


def test_weights_and_strata_contradict_each_other() -> None:
    with pytest.raises(InputError, match="strata would contradict them"):
        latent_class_risk(
            read(weight="w"), population_size={"N": 30, "S": 500}, strata="region", seed=1
        )


def test_a_region_that_is_in_the_file_whole_is_certain() -> None:
    """All of the North, a tenth of the South: who is alone in the North is so for certain."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 6, (400, 4)).astype(str)
    people = pd.DataFrame(codes, columns=["age", "job", "place", "sex"])
    people.insert(0, "region", np.repeat(["N", "S"], [100, 300]))
    data = read_microdata(people, keys=list(people.columns))
    risk = latent_class_risk(data, population_size={"N": 100, "S": 3000}, strata="region", seed=1)
    unique = risk.records["P_unique"]
    north = (people["region"] == "N").to_numpy()[unique.index]
    assert unique[north].min() > 0.95
    assert unique[~north].mean() < unique[north].mean()
    assert risk.population_size == 3100.0
    assert any("weights differ" in note for note in risk.notes)
