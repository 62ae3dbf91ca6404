"""Codes that may stand for a missing value, found by their label and where they stand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.file.suspects import codes_by_label, codes_by_position


def texts(*numbers: int) -> list[str]:
    return [str(number) for number in numbers]


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (texts(1, 2, 3, -1, -2, -3, -4, -5), texts(-5, -4, -3, -2, -1)),
        (texts(*range(1, 8), 88, 97, 98, 99), texts(88, 97, 98, 99)),
        (texts(1, 2, 8, 9), texts(8, 9)),
        (texts(1, 2, -999), ["-999"]),
        (texts(*range(90), 999), ["999"]),
        (["m", "f", "NA", "."], ["NA", "."]),
        (texts(*range(100)), []),
        (texts(*range(18, 90), 97, 98, 99), []),  # people can be as old
        (texts(*range(-40, 40)), []),  # temperatures
        (texts(1, 2, 3, 50), []),
        (["x", "y"], []),
        ([*texts(*range(20, 60)), "X"], ["X"]),
        ([*texts(*range(20, 60)), "88"], ["88"]),  # far, beside the gaps of the others
        (texts(1, 2, 3, 4, 5, 8, 9), ["8", "9"]),
        (texts(*range(86), 88), []),
        (["m", "f", "Not stated"], ["Not stated"]),
        (["m", "f", ".a", "#N/A"], [".a", "#N/A"]),
        ([*texts(*range(40)), "90+"], []),
        (["1\x1e", "2"], []),  # a blank to one function of Python and not to another
        ([], []),
    ],
)
def test_codes_that_stand_apart(labels, found):
    assert codes_by_position(labels) == found


@given(st.integers(2, 60), st.integers(0, 50))
def test_a_run_of_codes_without_gap_has_none_that_stands_apart(length, start):
    assert codes_by_position(texts(*range(start, start + length))) == []


@pytest.mark.parametrize(
    "label", ["No answer", "not stated", "Refused", "Don't know", "keine Angabe", "Not applicable"]
)
def test_labels_say_that_there_is_no_answer(label):
    assert codes_by_label(["1", "7"], {"1": "yes", "7": label}) == ["7"]
    assert codes_by_label(["1"], {"1": "no", "7": label}) == []


@pytest.mark.parametrize("kind", ["sav", "dta"])
def test_undeclared_labels_of_a_statistical_file_are_noted(kind, tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"sex": [1.0, 2.0, -1.0, -3.0], "age": [20.0, 30.0, 40.0, 50.0]})
    labels = {"sex": {1: "man", 2: "woman", -1: "no answer", -3: "not asked"}}
    path = tmp_path / f"p.{kind}"
    getattr(pyreadstat, f"write_{kind}")(frame, str(path), variable_value_labels=labels)
    notes = read_microdata(path, keys=["sex", "age"]).notes
    assert any("'-1' (no answer), '-3' (not asked) say that there is no answer" in n for n in notes)
    assert not any("'age': the labels" in note for note in notes)
    declared = read_microdata(path, keys=["sex"], missing_codes={"sex": [-1, -3]})
    assert not any("no answer" in note for note in declared.notes)


def test_an_ordered_categorical_keeps_its_order():
    levels = ["low", "middle", "high", "unused"]
    column = pd.Categorical(["high", "low", None, "middle"], categories=levels, ordered=True)
    data = read_microdata(pd.DataFrame({"k": column}), keys=["k"])
    assert data.labels == (("low", "middle", "high"),)
    assert data.codes[:, 0].tolist() == [2, 0, -1, 1]
    assert data.f.tolist() == [2, 2, 4, 2]
    assert data.combinations.index.get_level_values(0).dropna().tolist() == levels[:3]
    unordered = pd.DataFrame({"k": column.as_unordered()})
    assert read_microdata(unordered, keys=["k"]).labels == (("high", "low", "middle"),)
    assert np.array_equal(read_microdata(unordered, keys=["k"]).f, data.f)
