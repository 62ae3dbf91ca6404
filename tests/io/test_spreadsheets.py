"""A confidential table is opened in a spreadsheet too: nothing in it may run."""

import numpy as np
import pandas as pd

from bayes_sdc.io.spreadsheets import guarded_frame

DANGEROUS = ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", "\r=1"]
HARMLESS = ["-5", "+4.5", "01001", "", "a=b", "Zürich"]


def test_what_begins_like_a_formula_is_guarded_wherever_it_stands():
    frame = pd.DataFrame({"=name": DANGEROUS + HARMLESS, "n": np.arange(12) - 6})
    frame.index = pd.Index(DANGEROUS[::-1] + HARMLESS, name="cell")
    made = guarded_frame(frame)
    assert made.columns.tolist() == ["'=name", "n"]
    assert made.iloc[:, 0].tolist() == [f"'{text}" for text in DANGEROUS] + HARMLESS
    assert made.index.tolist() == [f"'{text}" for text in DANGEROUS[::-1]] + HARMLESS
    assert made.index.name == "cell"
    assert made["n"].tolist() == frame["n"].tolist()
    assert frame.iloc[0, 0] == "=1+1"


def test_labels_of_several_levels_are_guarded_and_other_tables_are_as_they_were():
    frame = pd.DataFrame({"x": [1.5, np.nan]}, pd.MultiIndex.from_tuples([("=a", 1), ("b", 2)]))
    assert guarded_frame(frame).index.tolist() == [("'=a", 1), ("b", 2)]
    plain = pd.DataFrame({"x": ["a", None], "y": [1, 2]})
    pd.testing.assert_frame_equal(guarded_frame(plain), plain)
    pd.testing.assert_frame_equal(guarded_frame(plain.iloc[:0]), plain.iloc[:0])
