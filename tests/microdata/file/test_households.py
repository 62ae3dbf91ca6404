"""Households: nobody is merged in silence."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.read import read_microdata

REUSED = pd.DataFrame(
    {"region": list("NNNSSS"), "hid": list("112112"), "k": list("abcabc"), "w": [5, 5, 7, 5, 5, 7]}
)


def read(frame: pd.DataFrame, **changed: object):
    return read_microdata(frame, **{"keys": ["k"], "household": "hid", **changed})


@pytest.mark.parametrize("ids", [["1.00102E+13", "1.00102E+13"], ["1e+05", "7"], [1e16, 1e16 + 2]])
def test_ids_whose_digits_are_gone_are_refused(ids):
    """200 persons of one spreadsheet would be one household."""
    with pytest.raises(InputError, match=r"whose digits are gone.*many households become one"):
        read(pd.DataFrame({"hid": ids, "k": ["a", "b"]}))


def test_codes_of_a_key_in_scientific_notation_are_noted():
    data = read_microdata(pd.DataFrame({"k": ["1.5E+11", "2"]}), keys=["k"])
    assert any("scientific notation" in note and "'1.5E+11'" in note for note in data.notes)


def test_an_id_that_is_used_in_two_regions_is_noted_and_two_columns_tell_them_apart():
    merged = read(REUSED)
    assert merged.household.tolist() == [0, 0, 1, 0, 0, 1]
    assert any("stand for two households" in note and "AREA,hid" in note for note in merged.notes)
    data = read(REUSED, household=["region", "hid"])
    assert data.household.tolist() == [0, 0, 1, 2, 2, 3]
    assert data.household_ids == ("N | 1", "N | 2", "S | 1", "S | 2")
    assert not any("stand for two" in note for note in data.notes)
    # the area may be a key as well, and tells by itself where the file is sorted by it
    known = read(REUSED.iloc[[0, 2, 3, 5]], keys=["region", "k"])
    assert any("'region' differs in 2 of them" in note for note in known.notes)
    both = read(REUSED, keys=["region", "k"], household=["region", "hid"])
    assert both.household.tolist() == [0, 0, 1, 2, 2, 3]


def test_an_area_that_differs_in_few_households_is_noted():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"hid": np.repeat(np.arange(60), 3), "region": "x", "k": "a"})
    frame["region"] = rng.integers(0, 5, 60)[frame["hid"]].astype(str)
    frame.loc[0, "region"] = "9"
    data = read(frame.sample(frac=1, random_state=1), keys=["region", "k"])
    assert any("'region' differs in 1 of them" in note for note in data.notes)


def test_weights_that_differ_within_a_household_are_noted():
    notes = read(REUSED.assign(w=[5, 6, 7, 5, 5, 7]), weight="w").notes
    assert any("in 1 of 2 households of two persons or more the weights differ" in n for n in notes)
    assert not any("weights differ" in note for note in read(REUSED, weight="w").notes)


def test_ordinary_households_are_not_suspected():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"hid": np.repeat(np.arange(100), rng.integers(1, 6, 100))})
    frame["sex"] = rng.integers(0, 2, len(frame)).astype(str)
    frame["age"] = rng.integers(0, 90, len(frame)).astype(str)
    for order in (np.arange(len(frame)), rng.permutation(len(frame))):
        data = read(frame.iloc[order], keys=["sex", "age"])
        assert not any("two households" in note for note in data.notes)


ids = st.lists(st.tuples(st.sampled_from("NS"), st.sampled_from(["1", "2", ""])), min_size=1)


@given(ids)
def test_two_columns_number_households_as_pairs_do(pairs):
    frame = pd.DataFrame(pairs, columns=["region", "hid"]).assign(k="a")
    data = read(frame, household=["region", "hid"])
    for i, one in enumerate(pairs):
        for j, other in enumerate(pairs):
            together = one == other and one[1] != ""
            assert (data.household[i] == data.household[j]) == (together or i == j)


def test_a_household_column_named_twice_is_refused():
    with pytest.raises(InputError, match="names a column twice"):
        read(REUSED, household=["hid", "hid"])
    with pytest.raises(InputError, match="no key"):
        read(REUSED, keys=["hid"])
