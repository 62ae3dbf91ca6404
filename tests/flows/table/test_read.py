"""Reading tables: what is small, what is refused and how, and that files come back as they were."""

import gzip
import hashlib
import os
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.read import FlowTable, read_flows
from bayes_sdc.io.columns import INFINITE
from bayes_sdc.io.form import FileForm
from bayes_sdc.microdata.file.read import read_microdata

NAMES = {"origin": "from", "destination": "to", "count": "n"}


def frame_of(*rows: tuple[object, ...], columns: str = "from to n") -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=columns.split())


def read(source: object, **changed: object) -> FlowTable:
    return read_flows(source, **{**NAMES, **changed})


def csv_of(folder, text: str, encoding: str = "utf-8", name: str = "flows.csv"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def refused(source: object, **changed: object) -> str:
    with pytest.raises(InputError) as caught:
        read(source, **changed)
    return str(caught.value)


# ---- which cells are small -------------------------------------------------------------------


def test_rows_fall_in_four_classes_with_both_limits_included():
    table = read(
        frame_of(
            ("A", "B", 1),
            ("A", "C", 9),
            ("A", "D", 10),
            ("B", "A", 0),
            ("B", "B", 5),
            ("B", "C", 4),
        )
    )
    assert (table.n_read, table.n_safe, table.n_small) == (6, 1, 3)
    assert (table.n_set_aside, table.n_below, table.own_areas) == (1, 1, ("B",))
    assert table.cells["y"].to_dict() == {"A>B": 0, "A>C": 8, "B>C": 3}
    assert table.cells["row"].tolist() == [0, 1, 5]
    assert table.cells.index.name == "cell"
    assert table.k == 8


def test_y_counts_from_low():
    table = read(frame_of(("A", "B", 0), ("A", "C", 3), ("A", "D", 4)), low=0, high=3)
    assert table.cells["y"].tolist() == [0, 3]
    assert table.n_below == 0
    table = read(frame_of(("A", "B", 2), ("A", "C", 3), ("A", "D", 4)), low=3, high=9)
    assert table.cells["y"].tolist() == [0, 1]
    assert table.n_below == 1
    assert any("counts below 3 are not protected: 1 row" in note for note in table.notes)


def test_groups_are_labelled_by_all_their_columns_and_order_the_cells():
    rows = [("z", "y", 2, "02", "01"), ("a", "b", 1, "02", "01"), ("c", "d", 3, "01", "02")]
    table = read(frame_of(*rows, columns="from to n fs ts"), groups=["fs", "ts"])
    assert table.cells["group"].tolist() == ["01>02", "02>01", "02>01"]
    assert table.cells.index.tolist() == ["c>d", "a>b", "z>y"]
    assert table.groups == ("fs", "ts")
    assert read(frame_of(*rows, columns="from to n fs ts")).cells["group"].unique() == ["all"]


def test_pairs_that_occur_in_several_groups_carry_the_group_in_every_label():
    rows = [("A", "B", 2, "2019"), ("A", "B", 50, "2020"), ("A", "C", 3, "2020")]
    table = read(frame_of(*rows, columns="from to n year"), groups="year")
    assert table.cells.index.tolist() == ["2019|A>B", "2020|A>C"]


def test_labels_that_would_coincide_are_refused():
    text = refused(frame_of(("a>b", "c", 1), ("a", "b>c", 2)))
    assert "two cells get the same label" in text
    assert "recode" in text
    rows = [("A", "B", 1, "x>y", "z"), ("C", "D", 1, "x", "y>z")]
    text = refused(frame_of(*rows, columns="from to n g h"), groups=["g", "h"])
    assert "two groups get the same label" in text
    rows = [("c", "B", 1, "a|b"), ("b|c", "D", 1, "a")]
    assert "two areas" in refused(frame_of(*rows, columns="from to n g"), groups="g")


codes = st.text(st.sampled_from("01AZé ;<=&"), min_size=1, max_size=3).filter(str.strip)
tables = st.lists(
    st.tuples(codes, codes, st.integers(0, 14), st.sampled_from("pq")),
    min_size=1,
    max_size=25,
    unique_by=lambda row: (row[0], row[1], row[3]),
)


@given(tables, st.randoms(use_true_random=False))
def test_row_order_changes_nothing_but_the_positions(rows, random):
    shuffled = random.sample(rows, len(rows))
    one = read(frame_of(*rows, columns="from to n g"), groups="g")
    two = read(frame_of(*shuffled, columns="from to n g"), groups="g")
    pd.testing.assert_frame_equal(one.cells.drop(columns="row"), two.cells.drop(columns="row"))
    assert one.sha256 == two.sha256
    assert one.summary() == two.summary()


@given(tables, st.integers(0, 4), st.integers(5, 12))
def test_classes_add_up_and_cells_point_at_their_rows(rows, low, high):
    frame = frame_of(*rows, columns="from to n g")
    table = read(frame, groups="g", low=low, high=high)
    assert table.n_read == len(rows)
    assert table.n_read == table.n_safe + table.n_small + table.n_set_aside + table.n_below
    assert (
        table.n_small == len(table.cells) == sum(low <= n <= high and a != b for a, b, n, _ in rows)
    )
    there = frame.iloc[table.cells["row"]]
    assert there["n"].tolist() == (table.cells["y"] + low).tolist()
    assert there["from"].tolist() == table.cells["origin"].tolist()
    assert there["to"].tolist() == table.cells["destination"].tolist()
    assert there["g"].tolist() == table.cells["group"].tolist()


@given(tables)
def test_any_codes_survive_a_csv_file_and_its_copy(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("copy")
    frame_of(*rows, columns="from to n g").to_csv(folder / "in.csv", index=False)
    table = read(folder / "in.csv", groups="g")
    table.write(table.frame, folder / "out.csv")
    assert (folder / "out.csv").read_bytes() == (folder / "in.csv").read_bytes()


# ---- counts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("3", 3),
        ("3.0", 3),
        (" 7 ", 7),
        ("1e9", 10**9),
        ("+4", 4),
        ("004", 4),
        ("9007199254740992", 2**53),
    ],
)
def test_whole_counts_are_taken_however_they_are_written(tmp_path, written, meant):
    table = read(csv_of(tmp_path, f"from,to,n\nA,B,{written}\n"))
    assert table.frame["n"].tolist() == [meant]
    assert table.frame["n"].dtype == np.int64


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "missing count"),
        (" ", "missing count"),
        ("-3", "negative count"),
        ("3.5", "fractional count"),
        ("1e-9", "fractional count"),
        ('"1,076"', "not a number"),
        ("NA", "not a number"),
        ("1_000", "not a number"),
        ("0x10", "not a number"),
        ("True", "not a number"),
        ("nan", "not a number"),
        ("٣", "not a number"),
        ("1e400", "infinite or beyond"),
        ("1e9999", "infinite or beyond"),
        ("9007199254740993", "infinite or beyond"),
        ("inf", "infinite or beyond"),
    ],
)
def test_other_counts_are_refused_with_row_line_and_value(tmp_path, written, said):
    text = refused(csv_of(tmp_path, f"from,to,n\nA,B,3\nA,C,{written}\n"))
    assert text.startswith("flows.csv: column 'n': ")
    assert said in text
    assert f"in 1 row: row 2 (line 3) {written.strip(chr(34))!r}" in text
    assert "Remedy: " in text
    assert ("look suppressed" in text) == (not written.strip())


@pytest.mark.parametrize(
    "mark",
    [
        *"*cSx:D-",
        "..",
        "<5",
        "(D)",
        "[c]",
        "-1",
        "-9",
        "-99",
        "d",
        -1,
        "\u2026",
        ": c",
        "<=5",
        "\u22645",
        "up to 4",
        "fewer than 5",
        "1-4",
        "1\u20134",
        "0 to 9",
    ],
)
def test_suppression_marks_get_a_remedy_that_fits(mark):
    text = refused(frame_of(("A", "B", mark), ("A", "C", 4)))
    assert "look suppressed: leave them out, or `bayes-sdc audit`" in text
    assert f"with --suppressed '{mark}' treats them as holes" in text


@settings(max_examples=40)
@given(st.text(min_size=1, max_size=20).filter(lambda text: not any(c.isdigit() for c in text)))
def test_any_word_in_place_of_a_count_may_be_a_mark(word):
    """Marks are many: what has no digits gets both remedies, none a remedy that cannot work."""
    assume(word.strip() and "," not in word and INFINITE.fullmatch(word.strip()) is None)
    text = refused(frame_of(("A", "C", 4), ("A", "B", word), ("A", "D", "7")))
    assert "`bayes-sdc audit`" in text or "the name 'n' stands there again" in text


def test_lines_that_are_no_rows_are_told_from_marks(tmp_path):
    unit = refused(csv_of(tmp_path, "from,to,n\ncode,code,persons\nA,B,3\n"))
    assert "a line of units or types below the names" in unit
    joined = refused(csv_of(tmp_path, "from,to,n\nA,B,3\nfrom,to,n\nA,C,4\n"))
    assert "the name 'n' stands there again" in joined
    ends = refused(csv_of(tmp_path, "from,to,n\nA,B,3,\nA,C,4,\n"))
    assert "The rows end with a separator ',' that the header lacks" in ends
    for mark in " :":
        apart = refused(csv_of(tmp_path, "from,to,n\nA,B,3\n".replace(",", mark)))
        assert f"the names are separated by {mark!r}" in apart
    deep = refused(csv_of(tmp_path, "a note\n" * 200 + "from,to,n\nA,B,3\n"))
    assert "the names of the columns stand in line 201" in deep


@pytest.mark.parametrize(
    "flagged", ["17 b", "12 p", "17b", "3 ep", "17*", "*17", "5\u2020", "(5)", "[5]", "12%", "~5"]
)
def test_flags_beside_a_count_are_no_suppression(flagged):
    text = refused(frame_of(("A", "B", flagged), ("A", "C", 4)))
    assert "count with a flag" in text
    assert "a column of their own" in text
    assert "suppressed" not in text


@pytest.mark.parametrize("written", ["1.000", "12.345", "+7.000", "1234.000"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_counts_that_can_be_read_in_two_ways_are_refused_with_both(tmp_path, written, separator):
    text = separator.join(["from", "to", "n"]) + "\n" + separator.join(["A", "B", written]) + "\n"
    path = csv_of(tmp_path, text)
    said = refused(path)
    assert "three digits after a point" in said
    assert f"{written!r} is {float(written):.15g} if" in said
    assert f"and {int(written.replace('.', '')):,} if between thousands" in said
    if len(written) < 8:
        thousands = read(path, form=FileForm(thousands="."))
        assert thousands.frame["n"].tolist() == [int(written.replace(".", ""))]
    if float(written).is_integer():
        decimals = read(path, form=FileForm(decimal="."))
        assert decimals.frame["n"].tolist() == [int(float(written))]


@given(st.integers(0, 2**53), st.sampled_from([(".", ","), (",", "."), (",", " "), (".", "'")]))
def test_counts_with_marks_are_read_as_they_were_written(number, marks):
    decimal, thousands = marks
    written = f"{number:,}".replace(",", thousands)
    for text in (written, str(number), f"{written}{decimal}0"):
        table = read(frame_of(("A", "B", text)), form=FileForm(decimal, thousands))
        assert table.frame["n"].tolist() == [number]


@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("1,07", FileForm(thousands=",")),
        ("1.07", FileForm(thousands=".")),
        ("1,076", FileForm(decimal=".")),
        ("1.076", FileForm(decimal=",")),
    ],
)
def test_marks_in_the_wrong_place_are_refused(written, form):
    assert "not a number" in refused(frame_of(("A", "B", written)), form=form)


@pytest.mark.parametrize(
    "above",
    ["Flows of 2021\n", "Title\n\nunit: persons\n", "sep=;\n", "# a comment, of two\n", "a,b,\n"],
)
def test_what_stands_above_the_header_is_told_from_it(tmp_path, above):
    path = csv_of(tmp_path, f"{above}from,to,n\nA,B,3\n")
    line = above.count("\n") + 1
    said = refused(path)
    assert f"no column 'from' in line 1, but the names of the columns stand in line {line}" in said
    assert f"--header-line {line}" in said
    for form in (FileForm(header_line=line), FileForm(skip_rows=line - 1)):
        assert read(path, form=form).cells["y"].tolist() == [2]
    path = csv_of(tmp_path, f"{above}from,to,n\nx,y,persons\nA,B,oops\n")
    form = FileForm(header_line=line, skip_rows=1)
    assert f"row 1 (line {line + 2}) 'oops'" in refused(path, form=form)


def test_a_separator_too_many_in_the_header_is_said(tmp_path):
    said = refused(csv_of(tmp_path, "from,to,n,\nA,B,3\n"))
    assert "The header ends with a separator ',' too many" in said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0, np.nan], "missing count"),
        ([1.0, np.inf], "infinite"),
        ([1.0, 3.5], "fractional"),
        ([True, False], "not a number in 2 rows"),
        ([1, True], "not a number in 1 row: row 2 True"),
        ([1, None], "missing count"),
        (pd.array([1, None], dtype="Int64"), "missing count"),
    ],
)
def test_frames_are_held_to_the_same_rules(values, said):
    assert said in refused(pd.DataFrame({"from": ["A", "A"], "to": ["B", "C"], "n": values}))


@pytest.mark.parametrize("dtype", ["int32", "float64", "Int64", "uint8"])
def test_numeric_counts_of_a_frame_keep_their_type(dtype):
    frame = frame_of(("A", "B", 3), ("A", "C", 12)).astype({"n": dtype})
    table = read(frame)
    assert table.frame["n"].dtype == dtype
    assert table.cells["y"].tolist() == [2]
    assert table.cells["y"].dtype == np.int64


def test_one_error_lists_every_kind_of_problem_and_the_first_five_rows(tmp_path):
    rows = ["A,B,3", "A,B,4", ",C,5", *(f"D,{i},-1" for i in range(7)), "E,F,2.5"]
    lines = refused(csv_of(tmp_path, "from,to,n\n" + "\n".join(rows))).splitlines()
    assert lines[0] == "flows.csv: 4 problems"
    assert len(lines) == 5
    assert "column 'from': missing code in 1 row: row 3 (line 4) ''" in lines[1]
    assert "column 'n': negative count in 7 rows: row 4 (line 5) '-1'" in lines[2]
    assert "row 8 (line 9) '-1' and so on" in lines[2]
    assert "row 9" not in lines[2]
    assert "fractional count in 1 row: row 11 (line 12) '2.5'" in lines[3]
    assert "more than once in 2 rows: row 1 (line 2) 'A>B', row 2 (line 3) 'A>B'" in lines[4]


def test_the_same_pair_twice_is_refused_only_inside_a_group():
    rows = [("A", "B", 1, "x"), ("A", "B", 2, "y"), ("A", "B", 3, "y")]
    text = refused(frame_of(*rows, columns="from to n g"), groups="g")
    assert "in the same group more than once in 2 rows: row 2 'A>B', row 3 'A>B'" in text
    assert read(frame_of(*rows[:2], columns="from to n g"), groups="g").n_small == 2


# ---- codes -----------------------------------------------------------------------------------


def test_codes_stay_the_text_they_are(tmp_path):
    odd = ["00100", "NA", "null", "1e5", "<script>", "=1+1", "a;b", "Zürich", "None"]
    rows = "\n".join(f'"{code}",X,{i + 1},keep 0{i}' for i, code in enumerate(odd))
    table = read(csv_of(tmp_path, f"from,to,n,other\n{rows}\n"))
    assert table.frame["from"].tolist() == odd
    assert sorted(table.cells["origin"]) == sorted(odd)
    assert table.frame["other"].tolist() == [f"keep 0{i}" for i in range(len(odd))]


def test_padding_and_spaces_are_kept_and_told(tmp_path):
    rows = "01001,X,1\n1001,X,2\n1001.0,Y,3\n01003 ,Y,4\n01003,Y,5\n66,Y,1\n66000,Y,1\n"
    table = read(csv_of(tmp_path, "from,to,n\n" + rows))
    assert table.n_small == 7
    notes = "\n".join(table.notes)
    assert "column 'from': codes with surrounding spaces, kept: '01003 '" in notes
    assert "'01001' and '1001' and '1001.0', '01003' and '01003 '" in notes
    assert "66" not in notes


def test_padding_is_compared_between_origin_and_destination():
    # else the own-area row of this area would pass as a move, and nobody would know
    table = read(frame_of(("01001", "1001", 4)))
    assert "columns 'from', 'to': codes that differ only in padding" in table.notes[0]


@pytest.mark.parametrize("code", ["", "  ", None, np.nan, pd.NA])
@pytest.mark.parametrize("column", ["from", "to", "g"])
def test_missing_codes_are_refused(column, code):
    frame = frame_of(("A", "B", 1, "x"), ("A", "C", 2, "x"), columns="from to n g").astype(object)
    frame.loc[1, column] = code
    assert f"column '{column}': missing code in 1 row: row 2" in refused(frame, groups="g")


def test_a_missing_destination_is_no_own_area():
    rows = [("A", "", 1, "x", "y"), ("B", "C", 2, "y", "x")]
    text = refused(frame_of(*rows, columns="from to n g h"), groups=["g", "h"])
    assert text.startswith("DataFrame: column 'to': missing code in 1 row")
    assert "different groups" not in text


def test_integer_codes_become_text_with_a_note_and_floats_are_refused():
    table = read(frame_of((1001, 1003, 4), (1003, 1001, 5)))
    assert table.cells.index.tolist() == ["1001>1003", "1003>1001"]
    assert sum("read as numbers: leading zeros are lost" in note for note in table.notes) == 2
    text = refused(frame_of((1001.0, "B", 4), (1003.0, "B", 5)))
    assert "code that is not text in 2 rows: row 1 1001.0" in text
    assert "read the column as text" in text
    assert "1 row: row 2 True" in refused(frame_of((1, "B", 4), (True, "C", 5)))


def test_categorical_codes_are_text_without_their_unused_levels():
    frame = frame_of(("A", "B", 4), ("B", "C", 5))
    frame["from"] = pd.Categorical(frame["from"], categories=["unused", "B", "A"])
    table = read(frame)
    assert table.cells.index.tolist() == ["A>B", "B>C"]
    assert isinstance(table.frame["from"].dtype, pd.CategoricalDtype)


def test_area_codes_that_are_unique_only_inside_a_state_are_refused():
    # county 001 of two states is not one area: its flows would be released unprotected
    rows = [("001", "001", 4, "01", "02"), ("001", "003", 5, "01", "02"), ("3", "4", 1, "02", "01")]
    text = refused(frame_of(*rows, columns="from to n fs ts"), groups=("fs", "ts"))
    assert "same code but lie in different groups in 1 row: row 1 '01>02'" in text
    other = [("A", "A", 4, "2019", "f"), ("A", "B", 5, "2019", "m")]
    assert read(frame_of(*other, columns="from to n year sex"), groups=("year", "sex")).n_small == 1


# ---- columns and arguments -------------------------------------------------------------------


def test_a_missing_column_is_named_with_the_nearest_and_all_others(tmp_path):
    text = refused(csv_of(tmp_path, "From,to,n\nA,B,1\n"))
    assert text == (
        "flows.csv: no column 'from'; did you mean 'From'? The columns are 'From', 'to', 'n'"
    )
    text = refused(frame_of(("A", "B", 1)), count="zzz")
    assert text == "DataFrame: no column 'zzz'. The columns are 'from', 'to', 'n'"


@pytest.mark.parametrize(
    "changed", [{"destination": "from"}, {"groups": "n"}, {"groups": ["g", "g"]}], ids=str
)
def test_a_column_has_one_role(changed):
    frame = frame_of(("A", "B", 1, "x"), columns="from to n g")
    assert "is named twice" in refused(frame, **changed)


def test_two_columns_of_one_name_matter_only_when_named(tmp_path):
    path = csv_of(tmp_path, "from,to,n,x,x\nA,B,3,1,2\n")
    table = read(path)
    table.write(table.frame, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == path.read_bytes()
    assert "2 columns are called 'x'" in refused(path, groups="x")


@pytest.mark.parametrize("twice", ["from", "to", "n", "g"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "pandas"])
def test_two_columns_of_one_name_are_no_damage(tmp_path, twice, kind):
    """Whoever is told that the file is damaged looks for it in the wrong place."""
    names = ["from", "to", "n", "g", twice]
    table = pa.table([["A"], ["B"], [3], ["x"], ["7"]], names=names)
    frame = pd.DataFrame([["A", "B", 3, "x", "7"]], columns=names)
    source = {"arrow": table, "pandas": frame}.get(kind, tmp_path / f"t.{kind}")
    if kind == "csv":
        frame.to_csv(source, index=False)
    elif kind == "parquet":
        pq.write_table(table, source)
    assert f"2 columns are called '{twice}'; rename one" in refused(source, groups="g")
    other = {"from": "to", "to": "from"}.get(twice, "from")
    assert read_microdata(source, keys=[other]).n == 1
    with pytest.raises(InputError, match=f"2 columns are called '{twice}'; rename one"):
        read_microdata(source, keys=[twice])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"low": 9, "high": 9}, "low must be below high"),
        ({"low": 10}, "low must be below high"),
        ({"low": -1}, "low must be 0 or more"),
        ({"low": 1.0}, "low must be a whole number; it is 1.0"),
        ({"high": "9"}, "high must be a whole number; it is '9'"),
        ({"low": True}, "low must be a whole number"),
        ({"high": 152}, "high - low must be at most 150, got 151"),
        ({"origin": 3}, "origin must be a text; it is 3"),
    ],
)
def test_arguments_out_of_range_are_refused(changed, said):
    assert said in refused(frame_of(("A", "B", 1)), **changed)
    assert read(frame_of(("A", "B", 1)), high=151).k == 150


@pytest.mark.parametrize("source", [None, [1, 2], {"from": ["A"]}, 7], ids=str)
def test_other_sources_are_refused(source):
    assert "expected a path or a data frame" in refused(source)


# ---- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"from,to,n\n", "a header but no rows"),
        (b"from,to,n", "a header but no rows"),
        (b"from,to,n\nA,B\n", "1 row does not have the 3 fields of the header: row 1 (line 2): 2"),
        (b"from,to,n\nA,B,3\nA,C,1,076\n", "row 2 (line 3): 4 fields"),
        (b'from,to,n\n"A,B,3\nA,C,4\n', "quotation mark that is not closed"),
        (b"PK\x03\x04...", "no Excel workbook, which is not read"),
        (b"PAR1 and no more", "damaged Parquet"),
        (gzip.compress(b"from,to,n\nA,B,3\n", mtime=0)[:-9], "damaged gzip"),
    ],
)
def test_unusable_files_are_refused_with_their_name(tmp_path, content, said):
    path = tmp_path / "flows.csv"
    path.write_bytes(content)
    text = refused(path)
    assert text.startswith("flows.csv: ")
    assert said in text


def test_absent_files_and_folders_are_refused(tmp_path):
    assert "cannot be read (No such file" in refused(tmp_path / "none.csv")
    assert "is a folder; name a file" in refused(str(tmp_path))
    assert refused("") == ".: is a folder; an empty name means the present folder; name a file"


def test_an_empty_frame_is_refused():
    assert "a header but no rows" in refused(frame_of())


def test_lines_are_those_of_the_file_when_cells_hold_line_breaks(tmp_path):
    path = csv_of(tmp_path, 'from,to,n,x\nA,B,1,"two\nlines"\n\nA,C,-4,y\n')
    assert "row 2 (line 5) '-4'" in refused(path)


def test_a_single_row_is_a_table(tmp_path):
    table = read(csv_of(tmp_path, "from,to,n\nA,B,1"))
    assert (table.n_read, table.n_small) == (1, 1)


FILES = {
    "plain": ("from,to,n\n01,02,3\n", "utf-8", []),
    "no last newline quoted": ('from,to,n\n"0,1",02,3\n', "utf-8", []),
    "windows": ("from,to,n\r\n01,02,3\r\n", "utf-8", []),
    "byte-order mark": ("from,to,n\nÅ,02,3\n", "utf-8-sig", ["byte-order mark"]),
    "latin-1": ("from,to,n\nDoña Ana,Größe,3\n", "latin-1", ["latin-1"]),
    "utf-16": ("from,to,n\nDoña Ana,Größe,3\n", "utf-16", ["utf-16"]),
    "semicolon": ("from;to;n;a,b\n01;02;3;x,y\n", "utf-8", ["separator: ';'"]),
    "tab": ("from\tto\tn\n01\t02\t3\n", "utf-8", ["separator: '\\t'"]),
    "bar": ("from|to|n\n01|02|3\n", "utf-8", ["separator: '|'"]),
}


@pytest.mark.parametrize("gzipped", [False, True])
@pytest.mark.parametrize("kind", FILES)
def test_a_file_is_read_noted_and_written_back_byte_for_byte(tmp_path, kind, gzipped):
    text, encoding, noted = FILES[kind]
    content = text.encode(encoding)
    data = gzip.compress(content, mtime=0) if gzipped else content
    path = tmp_path / "flows.csv"
    path.write_bytes(data)
    table = read(path)
    assert table.n_small == 1
    assert len(table.notes) == len(noted)
    assert all(part in note for part, note in zip(noted, table.notes, strict=True))
    assert table.sha256 == hashlib.sha256(data).hexdigest()
    assert table.source == "flows.csv"
    table.write(table.frame, tmp_path / "release")
    assert (tmp_path / "release").read_bytes() == data
    assert table.dialect.suffix == (".csv.gz" if gzipped else ".csv")


def test_the_separator_is_the_one_that_finds_the_columns(tmp_path):
    # more commas than semicolons in the header, but only semicolons give the names
    path = csv_of(tmp_path, "from;to;n;a,b,c,d,e,f\n01;02;3;x\n")
    assert read(path).dialect.separator == ";"


def test_awkward_column_names(tmp_path):
    path = csv_of(tmp_path, "Größe,a ,birth place (grouped)\nA,B,3\n", "latin-1")
    names = {"origin": "Größe", "destination": "a ", "count": "birth place (grouped)"}
    assert read(path, **names).n_small == 1
    assert "did you mean 'a '?" in refused(path, **{**names, "destination": "a"})


def test_blank_lines_are_skipped_and_counted(tmp_path):
    table = read(csv_of(tmp_path, "from,to,n\n\nA,B,1\n\n"))
    assert table.notes == ("2 blank lines skipped",)


def test_parquet_keeps_types_and_comes_back(tmp_path):
    given = pa.table(
        {
            "from": pa.array(["01", "02"]).dictionary_encode(),
            "to": pa.array(["03", "03"], pa.large_string()),
            "n": pa.array([3, 12], pa.int32()),
            "gaps": pa.array([2**53 + 1, None]),
            "flag": pa.array([True, None]),
        }
    )
    pq.write_table(given, tmp_path / "flows.parquet")
    table = read(tmp_path / "flows.parquet")
    assert table.cells.index.tolist() == ["01>03"]
    assert table.frame["n"].dtype == np.int64
    table.write(table.frame, tmp_path / "out.parquet")
    back = pq.read_table(tmp_path / "out.parquet")
    assert back.drop_columns("n").equals(given.drop_columns("n"))
    assert back["n"].to_pylist() == [3, 12]
    first = (tmp_path / "out.parquet").read_bytes()
    table.write(table.frame, tmp_path / "out.parquet")
    assert (tmp_path / "out.parquet").read_bytes() == first


def test_a_column_stored_as_index_is_found_in_parquet(tmp_path):
    frame_of(("A", "B", 3)).set_index("from").to_parquet(tmp_path / "flows.parquet")
    assert read(tmp_path / "flows.parquet").cells.index.tolist() == ["A>B"]


@pytest.mark.parametrize(
    "convert", [pl.from_pandas, lambda f: pl.from_pandas(f).lazy(), pa.Table.from_pandas]
)
def test_other_frames_give_the_same_table(convert):
    frame = frame_of(("01", "02", 3), ("02", "01", 12), ("02", "02", 9))
    one, two = read(frame), read(convert(frame))
    pd.testing.assert_frame_equal(one.cells, two.cells)
    assert one.sha256 == two.sha256
    assert two.frame["n"].dtype == np.int64
    assert two.frame.columns.tolist() == ["from", "to", "n"]


def test_polars_categories_and_gaps():
    frame = pl.DataFrame({"from": ["A", "A"], "to": ["B", "C"], "n": [1, None], "x": [1, None]})
    frame = frame.with_columns(pl.col("from").cast(pl.Categorical))
    assert "missing count in 1 row: row 2" in refused(frame)
    assert read(frame.with_columns(n=pl.lit(4))).cells.index.tolist() == ["A>B", "A>C"]


def test_a_given_frame_is_not_modified_and_its_index_stays():
    frame = frame_of(("A", "B", 3), ("A", "C", 12))
    frame.index = pd.Index([7, 7])
    before = frame.copy(deep=True)
    table = read(frame)
    table.frame.iloc[0, 2] = 99
    pd.testing.assert_frame_equal(frame, before)
    assert table.frame.index.tolist() == [7, 7]
    assert table.cells["row"].tolist() == [0]


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch):
    table = read(frame_of(("A", "B", 3)))
    path = tmp_path / "release.csv"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError, match="disk full"):
        table.write(table.frame, path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["release.csv"]


# ---- what is said ----------------------------------------------------------------------------


def test_tables_without_small_cells_are_valid():
    table = read(frame_of(("A", "B", 10), ("B", "A", 0)), groups=[])
    assert len(table.cells) == table.n_small == 0
    assert table.cells.columns.tolist() == ["row", "group", "origin", "destination", "y"]
    assert table.cells["y"].dtype == np.int64
    assert table.notes == (
        "zeros are not protected: 1 row will be returned unchanged",
        "no small cells: nothing is protected",
    )


def test_small_own_area_rows_are_told():
    table = read(frame_of(("A", "A", 3), ("B", "B", 30), ("A", "B", 2)))
    assert "1 own-area row has a small count, protected by a model of its own" in table.notes[0]


def test_summary_names_numbers_own_areas_groups_and_notes():
    rows = [*((c, c, 50, "x") for c in "ABCDEF"), ("A", "B", 2, "x"), ("A", "C", 0, "y")]
    text = read(frame_of(*rows, columns="from to n g"), groups="g").summary()
    assert text.splitlines() == [
        "DataFrame: 8 rows read",
        "  safe (count above 9)             0",
        "  small (count 1 to 9)             1",
        "  set aside (own area)             6  A, B, C, D, E, ...",
        "  below 1                          1",
        "  groups with small cells          1, by g",
        "note: zeros are not protected: 1 row will be returned unchanged",
    ]


def test_the_hash_of_a_frame_covers_codes_counts_and_groups():
    def hash_of(*rows):
        return read(frame_of(*rows, columns="from to n g"), groups="g").sha256

    base = hash_of(("A", "B", 3, "x"))
    others = [("A", "C", 3, "x"), ("C", "B", 3, "x"), ("A", "B", 4, "x"), ("A", "B", 3, "y")]
    assert len({base, *(hash_of(row) for row in others)}) == 5
    assert base == hash_of(("A", "B", 3, "x"))


# ---- real files ------------------------------------------------------------------------------

STATES = {
    "origin": "origin",
    "destination": "destination",
    "count": "count",
    "groups": ("origin_state", "destination_state"),
}


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "read_rows", "small", "groups"),
    [
        ("gb_lad_migration_2011", 110_928, 73_535, 121),
        ("norway_municipality_commuting_2017", 29_206, 23_692, None),
        ("us_county_commuting_acs2009_2013", 130_400, 39_856, 2_112),
    ],
)
def test_real_tables_give_the_documented_numbers(shared_data, name, read_rows, small, groups):
    started = time.perf_counter()
    table = read_flows(shared_data / "flows" / f"{name}.csv.gz", **STATES)
    assert time.perf_counter() - started < 10  # about 0.6 s; a loop over rows would show
    assert (table.n_read, table.n_small, table.n_set_aside) == (read_rows, small, 0)
    assert groups in (None, table.cells["group"].nunique())
    assert table.notes == ()


@pytest.mark.shared_data
def test_a_published_irs_file_is_refused_for_its_marks(shared_data):
    text = refused(
        shared_data / "irs" / "countyinflow1415.csv.gz",
        origin="y1_countyfips",
        destination="y2_countyfips",
        count="n1",
        groups=["y1_statefips", "y2_statefips"],
    )
    assert "row 22 (line 23) '-1'" in text
    assert "these cells look suppressed" in text
    assert "lie in different groups" in text


TYPES = {
    "string_view": (pa.string_view(), None),
    "large_string": (pa.large_string(), None),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), None),
    "binary": (pa.binary(), b"A"),
    "binary_view": (pa.binary_view(), b"A"),
    "large_binary": (pa.large_binary(), b"A"),
    "fixed_binary": (pa.binary(1), b"A"),
    "list": (pa.list_(pa.string()), ["A"]),
    "large_list": (pa.large_list(pa.string()), ["A"]),
    "list_view": (pa.list_view(pa.string()), ["A"]),
    "large_list_view": (pa.large_list_view(pa.string()), ["A"]),
    "struct": (pa.struct([("x", pa.string())]), {"x": "A"}),
}


@pytest.mark.parametrize("stored", ["Parquet", "Arrow", "pandas"])
@pytest.mark.parametrize("role", ["from", "n", "other"])
@pytest.mark.parametrize("kind", TYPES)
def test_columns_of_arrow_are_read_as_text_or_refused_by_both_jobs(kind, role, stored, tmp_path):
    """A view was a traceback, and bytes became codes such as "b'A'" without a word."""
    arrow, odd = TYPES[kind]
    values = {"from": ["A", "B", "A"], "to": ["B", "A", "C"], "n": ["3", "40", "5"]}
    column = values.get(role, ["A", "B", "A"]) if odd is None else [odd, None, odd]
    plain = pa.array(column, pa.string() if odd is None else arrow)
    table = pa.table({**values, role: plain.cast(arrow)})
    source = table
    if stored == "pandas":
        source = table.to_pandas(types_mapper=pd.ArrowDtype)
        source.index = [7, 8, 7]
    if stored == "Parquet":
        source = tmp_path / "flows.parquet"
        try:
            pq.write_table(table, source)
        except pa.ArrowNotImplementedError:
            pytest.skip("has no form in Parquet")
    persons = {"keys": ["from"], "weight": "n"}
    if odd is None or role == "other":
        assert read(source).frame["n"].tolist() == [3, 40, 5]
        assert read_microdata(source, **persons).codes[:, 0].tolist() == [0, 1, 0]
        assert all(odd is None or list(k) == list(odd) for k in read(source).frame[role][::2])
        return
    assert f"column {role!r}: " in refused(source)
    with pytest.raises(InputError, match=rf"column {role!r}: .* row 1 "):
        read_microdata(source, **persons)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("skipped", [0, 2])
def test_a_quotation_mark_that_is_not_closed_is_named_with_its_line(rows, skipped, ends, tmp_path):
    whole = ["A,B,3"] * rows
    lines = [*["a title"] * skipped, "from,to,n", *whole, '"B,A,40']
    path = csv_of(tmp_path, ends.join([*lines, ""]))
    form = FileForm(header_line=skipped + 1)
    said = refused(path, form=form)
    assert f"flows.csv: not a valid CSV file (line {len(lines)}: " in said
    with pytest.raises(InputError) as other:
        read_microdata(path, keys=["from"], form=form)
    assert str(other.value) == said
