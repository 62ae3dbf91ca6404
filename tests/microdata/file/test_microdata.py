"""A file of records: its counts, and the same with fewer keys."""

import pandas as pd
import pytest

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.read import read_microdata

TEN = pd.DataFrame(
    {
        "area": list("UUUURUUUUU"),
        "sex": list("FFFMFMFMFF"),
        "status": list("sspcccrqss"),
        "work": list("EENEXENXNN"),
        "w": [180, 180, 215, 76, 186, 76, 180, 215, 186, 76],
    }
)


def read(source: object, **changed: object) -> Microdata:
    return read_microdata(source, **{"keys": ["a", "b", "c"], **changed})


@pytest.mark.parametrize("k", [0, 1, 2.5, True, "3"])
def test_k_is_a_whole_number_from_two(k):
    data = read(pd.DataFrame({"a": ["1"], "b": "1", "c": "1"}))
    with pytest.raises(InputError, match="k must be"):
        data.k_violations(k)


def test_fewer_keys_give_what_reading_them_gives():
    keys = ["area", "sex", "status", "work"]
    data = read(TEN, keys=keys, weight="w").select(["work", "area"])
    pd.testing.assert_frame_equal(
        data.combinations, read(TEN, keys=["work", "area"], weight="w").combinations
    )
    with pytest.raises(InputError, match="not a key variable"):
        data.select(["sex"])


def test_notes_of_fewer_keys_speak_of_these_alone():
    columns = {"a": list("xxyy"), "b": ["1", "NA", "3", ""], "c": "1", "w": [0.4, 3, 5, 6]}
    data = read(pd.DataFrame(columns), weight="w", missing="own")
    assert data.raised == 1
    assert any("weight sum below f" in note for note in data.notes)
    assert sum("'b'" in note for note in data.notes) == 2
    fewer = data.select(["a"])
    assert (fewer.raised, fewer.notes) == (0, ())
    light = pd.DataFrame(columns).assign(w=[0.4, 0.3, 5, 6])
    low = read(light, weight="w", missing="own").select(["a"])
    assert low.notes == ("1 combinations have a weight sum below f; F is raised to f there",)


def test_summary_says_rule_records_and_combinations():
    text = read(TEN, keys=["area", "sex", "status", "work"], weight="w").summary()
    assert "a missing value matches every value" in text
    assert "f < 3                   10 records, 7 combinations" in text
