"""A confidential table is opened in a spreadsheet too: nothing in it may run."""

import csv
import io
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.io.spreadsheets import AT_ONCE, csv_chunks

DANGEROUS = ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", "\r=1", "\n=1"]
HARMLESS = ["-5", "+4.5", "01001", "", "a=b", "Zürich"]


def written(frame, *, index=False):
    return b"".join(csv_chunks(frame, index=index)).decode()


def read(text, **options):
    return pd.read_csv(io.StringIO(text, newline=""), keep_default_na=False, **options)


@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_what_begins_like_a_formula_is_guarded_wherever_it_stands(dtype):
    frame = pd.DataFrame({"=name": DANGEROUS + HARMLESS, "n": np.arange(13) - 6})
    frame["=name"] = frame["=name"].astype(dtype)
    frame.index = pd.Index(DANGEROUS[::-1] + HARMLESS, name="cell")
    made = read(written(frame, index=True), dtype={"cell": str, "'=name": str})
    assert made.columns.tolist() == ["cell", "'=name", "n"]
    assert made["'=name"].tolist() == [f"'{text}" for text in DANGEROUS] + HARMLESS
    assert made["cell"].tolist() == [f"'{text}" for text in DANGEROUS[::-1]] + HARMLESS
    assert made["n"].tolist() == frame["n"].tolist()
    assert frame.iloc[0, 0] == "=1+1"


def test_labels_of_several_levels_are_guarded_and_what_is_missing_is_empty():
    frame = pd.DataFrame({"x": [1.5, np.nan]}, pd.MultiIndex.from_tuples([("=a", 1), ("b", 2)]))
    assert written(frame, index=True) == ",,x\n'=a,1,1.5\nb,2,\n"
    plain = pd.DataFrame({"x": ["a", None, pd.NA], "y": [True, False, True]})
    assert written(plain) == "x,y\na,True\n,False\n,True\n"
    assert written(plain.iloc[:0]) == "x,y\n"
    assert written(pd.DataFrame({"x": ["", "a"]})) == 'x\n""\na\n'
    assert written(pd.DataFrame({"x": pd.array([1, None], dtype="Int64")})) == 'x\n1\n""\n'
    mixed = pd.DataFrame({"x": pd.Series([1, True, 1.5, "1,2"], dtype=object), "y": 0})
    assert written(mixed) == 'x,y\n1,0\nTrue,0\n1.5,0\n"1,2",0\n'


@pytest.mark.parametrize("dtype", ["string[pyarrow]", "string[python]", "str", object])
def test_columns_that_were_joined_from_parts_are_written_too(dtype):
    parts = [pd.Series(["a", None, "b,c"], dtype=dtype), pd.Series(["a", "=d"], dtype=dtype)]
    frame = pd.concat(parts, ignore_index=True).to_frame("x").assign(y=1)
    assert written(frame) == 'x,y\na,1\n,1\n"b,c",1\na,1\n\'=d,1\n'
    numbers = pd.concat([pd.Series([1, None], dtype="int64[pyarrow]")] * 2).to_frame("n")
    assert written(numbers.assign(y=1)) == "n,y\n1,1\n,1\n1,1\n,1\n"


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@given(
    st.lists(st.tuples(TEXTS, st.floats(allow_nan=False), st.integers(-(2**63), 2**63 - 1))),
    TEXTS,
)
def test_numbers_and_texts_come_back_exactly(rows, name):
    frame = pd.DataFrame(rows, columns=["x" + name, "y", "z"]).astype({"z": "int64"})
    lines = list(csv.reader(io.StringIO(written(frame), newline="")))[1:]
    assert [float(line[1]) for line in lines] == frame["y"].tolist()
    assert [int(line[2]) for line in lines] == frame["z"].tolist()
    for before, line in zip(frame.iloc[:, 0], lines, strict=True):
        assert line[0] in (before, f"'{before}")


def test_a_long_table_is_that_of_its_parts_and_takes_little_time():
    long = 3 * AT_ONCE + 7
    frame = pd.DataFrame({f"x{k}": np.linspace(0, k + 1, long) ** 3 for k in range(10)})
    begin = time.process_time()
    text = written(frame)
    assert time.process_time() - begin < 6.0  # 10 s and more, one number at a time
    lines = list(csv.reader(io.StringIO(text)))[1:]
    assert np.array_equal(np.array(lines, dtype=float), frame.to_numpy())


ANY = st.one_of(
    st.none(),
    st.text(st.sampled_from('a=,"\n\udcff\ud800'), max_size=4),
    st.complex_numbers(allow_nan=False),
    st.binary(max_size=2),
    st.tuples(st.integers(0, 9)),
)


@given(st.lists(ANY, max_size=5), st.text(st.sampled_from("x=\udcff")), st.booleans())
def test_no_value_keeps_a_table_from_being_written(values, name, index):
    """It is written at the end of a run: what is lost then took hours."""
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object), "n": 1})
    frame.index = pd.Index(values, dtype=object)
    frame.columns = pd.Index([name, "n"], dtype=object)
    lines = list(csv.reader(io.StringIO(written(frame, index=index), newline="")))
    assert len(lines) == len(values) + 1
    assert all(len(line) == 2 + index for line in lines)
    for value, line in zip(values, lines[1:], strict=True):
        plain = str("" if value is None else value).encode("utf-8", "backslashreplace").decode()
        assert line[-2] in (plain, f"'{plain}")


@pytest.mark.parametrize("dtype", [object, "string[python]"])
def test_surrogates_are_written_as_their_escapes(dtype):
    values = pd.Series(["\udcff", "a", None], dtype=object).astype(dtype)
    frame = pd.DataFrame({"x": values, "n": [1, 2, 3]})
    frame.columns = pd.Index(["\udc80", "n"], dtype=object)
    assert written(frame) == "\\udc80,n\n\\udcff,1\na,2\n,3\n"


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (np.array([1 + 2j, 0.5]), ["(1+2j)", "(0.5+0j)"]),
        (pd.arrays.SparseArray([0.0, 1.5]), ["0", "1.5"]),
        (pd.arrays.SparseArray([0, 3]), ["0", "3"]),
        (pd.arrays.SparseArray([True, False]), ["True", "False"]),
        (pd.array([1, None], dtype="Float64"), ["1", ""]),
        (np.array([1, 2], dtype="timedelta64[D]"), ["1 days 00:00:00", "2 days 00:00:00"]),
        (np.array([1.5, 2], dtype="float16"), ["1.5", "2"]),
    ],
)
def test_columns_of_every_type_are_written(column, texts):
    lines = list(csv.reader(io.StringIO(written(pd.DataFrame({"x": column, "y": 0})))))
    assert lines == [["x", "y"], *([text, "0"] for text in texts)]


@pytest.mark.parametrize("rows", [0, 1, 3, AT_ONCE + 1])
def test_rows_without_columns_are_lines(rows):
    assert written(pd.DataFrame(index=range(rows))).count("\n") == rows + 1
