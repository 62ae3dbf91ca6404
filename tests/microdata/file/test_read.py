"""Reading: what is read of files of every kind, and what is refused."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bayes_sdc.errors import InputError
from bayes_sdc.io.form import FileForm
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.read import read_microdata


def read(source: object, **changed: object) -> Microdata:
    return read_microdata(source, **{"keys": ["a", "b", "c"], **changed})


def refused(source: object, **changed: object) -> str:
    with pytest.raises(InputError) as caught:
        read(source, **changed)
    return str(caught.value)


def csv_of(folder, text: str, encoding: str = "utf-8", name: str = "people.csv"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,076.5", "not a number"),
        ("76,5", "a point before decimals"),
        ("", "missing weight"),
        ("0", "weight 0"),
        ("-3", "negative weight"),
        ("1e400", "infinite weight"),
        ("nan", "not a number"),
    ],
)
def test_weights_that_cannot_be_used_are_refused_with_row_and_value(text, said, tmp_path):
    path = csv_of(tmp_path, f'a,b,c,w\n1,1,1,5\n1,1,2,"{text}"\n')
    message = refused(path, weight="w")
    assert said in message
    assert "people.csv" in message
    assert "column 'w'" in message
    assert f"row 2 {text!r}" in message
    assert "Remedy" in message
    number = pd.DataFrame(
        {"a": ["1"], "b": "1", "c": "1", "w": [float(text.replace(",", "") or "nan")]}
    )
    if "," not in text and text != "nan":
        assert said in refused(number, weight="w")


def test_weights_whose_sum_overflows_are_refused():
    frame = pd.DataFrame({"a": list("aab"), "b": "1", "c": "1", "w": [1e308] * 3})
    message = refused(frame, weight="w")
    assert "column 'w': weight that brings the sum to inf" in message
    assert "in 3 rows: row 1 1e+308" in message
    # none is too large alone, and one small weight is not to blame
    many = refused(frame.assign(w=[2.0**52, 2.0**52, 2.0]), weight="w")
    assert "in 2 rows: row 1" in many
    largest = read(frame.assign(w=[2.0**52, 2.0**51, 2.0**51]), weight="w")
    assert largest.combinations["F"].sum() == 2.0**53


def test_weights_with_spaces_are_numbers(tmp_path):
    path = csv_of(tmp_path, "a,b,c,w\n1,1,1, 76 \n1,1,2,1e2\n")
    assert read(path, weight="w").F.tolist() == [76, 100]


def test_persons_without_household_id_are_households_of_one():
    frame = pd.DataFrame({"a": list("xyzu"), "b": "1", "c": "1", "h": ["7", None, "7", ""]})
    data = read(frame, household="h")
    assert data.household.tolist() == [0, 1, 0, 2]
    assert any("2 persons without a household id" in note for note in data.notes)


def test_persons_with_a_missing_code_do_not_become_one_household():
    ids = ["1", "1", "NA", "NA", ".", "."]
    frame = pd.DataFrame({"a": list("abcdef"), "b": "1", "c": "1", "h": ids})
    suspected = read(frame, household="h")
    assert any("'h': '.', 'NA' counted as a value" in note for note in suspected.notes)
    data = read(frame, household="h", missing_codes={"h": ["NA", "."], "a": "f"})
    assert data.household.tolist() == [0, 0, 1, 2, 3, 4]
    assert data.labels[0] == tuple("abcde")
    assert sum("'h'" in note for note in data.notes) == 1
    assert any("4 persons without a household id" in note for note in data.notes)
    # a list of codes is for the keys: 1 may be a missing sex and a household
    assert read(frame, household="h", missing_codes=["1"]).household.tolist() == [1, 1, 2, 2, 0, 0]


def test_what_is_wrong_or_odd_with_household_ids_is_said():
    frame = pd.DataFrame({"a": list("xyz"), "b": "1", "c": "1"})
    message = refused(frame.assign(h=[1, np.inf, 2]), household="h")
    assert "column 'h': a value that is no code in 1 row: row 2 inf" in message
    data = read(frame.assign(h=["01", "1", " 1"]), household="h")
    assert data.household.tolist() == [1, 2, 0]
    assert any("'h': codes that differ only in padding" in note for note in data.notes)


def test_codes_stay_text_and_odd_names_and_values_survive(tmp_path):
    names = ["birth place (grouped)", "class", "a ", "Größe"]
    cells = [
        ["01001", "1001", "01001 ", "Unit #7"],
        ["1001.0", "66", "<script>", "a;b"],
        ["66000", "001", "=1+1", "é"],
    ]
    frame = pd.DataFrame(cells, columns=names)
    for encoding in ("utf-8", "utf-8-sig", "latin-1", "utf-16"):
        for separator in (",", ";", "\t", "|"):
            path = csv_of(tmp_path, frame.to_csv(index=False, sep=separator), encoding)
            data = read(path, keys=names)
            texts = [[data.labels[k][c] for k, c in enumerate(row)] for row in data.codes]
            assert texts == cells
            assert f"separator: {separator!r}" in data.notes
            assert any(note.startswith("encoding: ") for note in data.notes)
    path = tmp_path / "people.csv.gz"
    path.write_bytes(gzip.compress(frame.to_csv(index=False).encode("latin-1")))
    data = read(path, keys=names)
    assert any("latin-1" in note for note in data.notes)
    assert any("surrounding spaces" in note for note in data.notes)
    mixed = pd.DataFrame({"a": ["1001", "01001", "1001.0"], "b": "1", "c": "1"})
    data = read(mixed)
    assert data.sample_uniques == 3
    assert any("only in padding" in note for note in data.notes)


def test_the_euro_sign_and_curly_quotes_of_windows_are_no_control_characters(tmp_path):
    names, cells = ["a€", "b", "c"], ["€", "“x”", "Größe"]
    text = ",".join(names) + "\n" + ",".join(cells) + "\n"
    data = read(csv_of(tmp_path, text, "cp1252"), keys=names)
    assert data.labels == tuple((cell,) for cell in cells)
    assert "encoding: read as cp1252, because the bytes are not UTF-8" in data.notes
    # a byte that Windows does not use: nothing is lost
    (tmp_path / "odd.csv").write_bytes(b"a,b,c\n\x81,\x80,1\n")
    odd = read(tmp_path / "odd.csv")
    assert odd.labels == (("\x81",), ("\x80",), ("1",))
    assert any("latin-1" in note for note in odd.notes)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_text_full_of_nuls_is_refused_for_that(encoding, tmp_path):
    message = refused(csv_of(tmp_path, "a,b,c\n1,2,3\n", encoding))
    assert "people.csv" in message
    assert "UTF-32" in message
    assert "save it as UTF-8" in message


def test_a_plain_file_is_said_to_be_one(tmp_path):
    notes = read(csv_of(tmp_path, "a,b,c\n1,2,3\n")).notes
    assert notes[:2] == ("encoding: UTF-8", "separator: ','")


def test_frames_of_every_kind_give_the_same_combinations(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 1], "b": ["x", "y", "x"], "c": [True, False, True], "z": 0})
    expected = read(frame).combinations
    frame.to_parquet(tmp_path / "p.parquet")
    frame.to_csv(tmp_path / "p.csv", index=False)
    for source in (
        frame.astype({"b": "category"}),
        pl.from_pandas(frame),
        pl.from_pandas(frame).lazy(),
        tmp_path / "p.parquet",
        str(tmp_path / "p.csv"),
    ):
        combinations = read(source).combinations
        if not isinstance(source, pd.DataFrame | str) and not hasattr(source, "suffix"):
            combinations.index = combinations.index.set_levels(expected.index.levels)
        pd.testing.assert_frame_equal(combinations, expected)


@pytest.mark.parametrize("suffix", ["dta", "sav", "zsav"])
def test_statistical_files_keep_their_value_labels(suffix, tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"sex": [1.0, 2.0, 1.0], "area": ["01", "02", "01"], "other": [1, 2, 3]})
    path = tmp_path / f"people.{suffix}"
    write = getattr(pyreadstat, f"write_{suffix.strip('z')}")
    compressed = {"compress": True} if suffix == "zsav" else {}
    write(frame, str(path), **compressed, variable_value_labels={"sex": {1: "man", 2: "woman"}})
    data = read(path, keys=["sex", "area"])
    assert data.labels == (("1", "2"), ("01", "02"))
    # by the text of a code, or they would not join the levels
    assert data.value_labels == {"sex": {"1": "man", "2": "woman"}}
    assert [data.shown("sex", code) for code in ("1", "3")] == ["1 (man)", "3"]
    assert data.shown("area", "01") == "01"
    assert data.f.tolist() == [2, 1, 2]
    assert data.sha256 is not None
    assert "no column 'hid'" in refused(path, keys=["hid"])


@pytest.mark.parametrize("rule", ["wildcard", "own"])
def test_codes_that_a_file_declares_missing_are_told_from_empty_values(rule, tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    values = [1.0, 99.0, 98.0, 99.0, np.nan, 1.0]
    frame = pd.DataFrame({"a": values, "b": ["x", "NA", "", "x", "x", "x"], "c": 1.0, "h": values})
    ranges = {"a": [{"lo": 98, "hi": 99}], "b": ["NA"], "h": [99]}
    pyreadstat.write_sav(frame, str(tmp_path / "p.sav"), missing_ranges=ranges)
    data = read(tmp_path / "p.sav", household="h", missing=rule)
    assert data.codes[:, 0].tolist() == [0, -1, -1, -1, -1, 0]
    assert "column 'a': 4 values are missing" in data.notes
    kinds = [note for note in data.notes if "declares" in note]
    assert [note.split(":")[0] for note in kinds] == ["column 'h'", "column 'a'", "column 'b'"]
    assert "('98' 1 times, '99' 2 times), 1 are empty" in kinds[1]
    assert "('NA' 1 times), 1 are empty" in kinds[2]
    assert not any("'b'" in note for note in data.select(["a"]).notes)
    letters = pd.DataFrame({"a": pd.Series([1.0, "b", np.nan, "b"], dtype=object), "b": 1, "c": 1})
    pyreadstat.write_dta(letters, str(tmp_path / "p.dta"), missing_user_values={"a": ["b"]})
    data = read(tmp_path / "p.dta", missing=rule)
    assert data.codes[:, 0].tolist() == [0, -1, -1, -1]
    assert any("('b' 2 times), 1 are empty" in note for note in data.notes)
    pyreadstat.write_por(frame.fillna({"a": 1}), str(tmp_path / "p.por"))
    assert read(tmp_path / "p.por", keys=["A"]).n == 6


@pytest.mark.parametrize("name", ["p.xpt", "P.XPT", "p.sav.gz", "p.dta.zip", "p.v2.zsav.gz"])
def test_formats_that_are_not_read_are_refused_by_name(name, tmp_path):
    (tmp_path / name).write_bytes(gzip.compress(b"HEADER RECORD\0"))
    message = refused(tmp_path / name)
    assert message.startswith(f"{name}: ")
    assert "unpack it first" in message or "save the data as" in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("a,b,c\n", "a header but no rows"),
        ("a,b,c", "a header but no rows"),
        (
            "a,b,c\n1,2,3\n1,2\n1\n",
            "2 rows do not have the 3 fields of the header: row 2, blank lines not counted, has 2",
        ),
        ("a,b,c\n1,2,3,4\n", "1 row does not have the 3 fields of the header: row 1"),
        ("a,b,b,c\n1,2,3,4\n", "2 columns are called 'b'"),
        ("A,b,c\n1,2,3\n", "did you mean 'A'"),
        ('a,b,c\n1,2,"3\n4,5,6\n', "quotation mark"),
        ('a,b,c\n1,2,"3\n4,5,6', "quotation mark"),
        ('a,b,c,d\n1,2,3,"x\n4,5,6,y\n7,8,9,z', "quotation mark"),
        ('a,b,c,d\n1,2,3,"x\n4,5,6,y\n7,8,9,"z"\n', "quotation mark"),
    ],
)
def test_files_that_cannot_be_used(text, said, tmp_path):
    assert said in refused(csv_of(tmp_path, text))


def test_one_record_is_enough_and_only_named_columns_are_judged(tmp_path):
    path = csv_of(tmp_path, "a,b,c,c2,c2\n1,2,3,,\n")
    data = read(path)
    assert (data.n, data.sample_uniques) == (1, 1)
    assert data.F.tolist() == [1]
    assert any("no weights" in note for note in data.notes)


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_are_skipped_and_counted(quote, end, tmp_path):
    lines = ["a,b,c", f"{quote}1{quote},2,3", "", "", "1,2,3", "", ""]
    data = read(csv_of(tmp_path, end.join(lines)))
    assert data.n == 2
    assert "3 blank lines skipped" in data.notes
    plain = read(csv_of(tmp_path, f"a,b,c{end}1,2,3{end}", name="plain.csv"))
    assert not any("blank" in note for note in plain.notes)


def test_a_line_break_in_quotes_is_part_of_the_value(tmp_path):
    data = read(csv_of(tmp_path, '"a",b,c\n"1\n2",2,3\n1,2,3\n'))
    assert data.labels[0] == ("1", "1\n2")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"keys": "a"}, "keys must be a list of texts; it is 'a'"),
        ({"keys": None}, "keys must be a list of texts; it is None"),
        ({"keys": []}, "at least one"),
        ({"keys": ["a", "a"]}, "named twice"),
        ({"keys": ["a", 1]}, "keys must be a list of texts; it is ['a', 1]"),
        ({"missing": "drop"}, "choose from"),
        ({"missing_codes": {"z": "."}}, "'z', which is neither a key nor"),
        ({"weight": "a"}, "no key"),
        ({"weight": "q"}, "no column 'q'"),
        ({"missing_codes": {"a": [[1]]}}, "text or numbers"),
    ],
)
def test_arguments_that_cannot_be_used(changed, said):
    frame = pd.DataFrame({"a": ["1"], "b": "1", "c": "1"})
    assert said in refused(frame, **changed)


def test_values_that_are_no_codes_are_listed_with_their_rows():
    frame = pd.DataFrame({"a": ["1", [2], float("inf")], "b": "1", "c": "1", "w": [1, 0, 2]})
    message = refused(frame, weight="w")
    assert "2 problems" in message
    assert "column 'a'" in message
    assert "row 2" in message
    assert "row 3" in message
    assert "weight 0 in 1 row: row 2 0" in message


@pytest.mark.parametrize("name", ["a", "w", "h"])
def test_lists_in_a_column_of_arrow_are_values_that_cannot_be_used(name):
    columns = {c: ["1", "2"] for c in "abch"} | {"w": [1, 2], name: [[1], None]}
    message = refused(pa.table(columns), weight="w", household="h")
    assert f"column {name!r}: " in message
    assert "row 1 " in message


@pytest.mark.parametrize("written", [["1.076", "1.203"], ["950", "1.076"], ["1.076", ""]])
def test_weights_that_may_be_thousands_are_refused_with_both_readings(written, tmp_path):
    """17.6 expected re-identifications of 200 where 0.02 is right, and exit code 0."""
    rows = "".join(f"1;1;{i};{w}\n" for i, w in enumerate(written))
    path = csv_of(tmp_path, "a;b;c;w\n" + rows)
    message = refused(path, weight="w")
    assert "'1.076' is 1.076 if the point stands before decimals, and 1,076 if" in message
    assert "--thousands ." in message
    if "" not in written:
        for form in (FileForm(thousands="."), FileForm(decimal=".")):
            numbers = [float(w.replace(".", "") if form.thousands else w) for w in written]
            assert read(path, weight="w", form=form).weights.tolist() == numbers


def test_weights_with_other_decimals_are_read():
    frame = pd.DataFrame({"a": "1", "b": "1", "c": ["1", "2"], "w": ["1.076", "12.5"]})
    assert read(frame, weight="w").weights.tolist() == [1.076, 12.5]
    assert read(frame.assign(w=[1.076, 2.203]), weight="w").weights.tolist() == [1.076, 2.203]
    german = frame.assign(w=["1.076,5", "12"])
    form = FileForm(decimal=",", thousands=".")
    assert read(german, weight="w", form=form).weights.tolist() == [1076.5, 12.0]


@pytest.mark.parametrize("blank", [0, 1, 30])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_of_one_column_keeps_persons_with_an_empty_key(blank, end, tmp_path):
    cells = ["x"] * 30 + [""] * blank + ["y"] * 30
    data = read(csv_of(tmp_path, end.join(["k", *cells, ""])), keys=["k"])
    assert data.n == len(cells)
    assert int((data.codes < 0).sum()) == blank
    said = f"{blank:,} blank lines are records with an empty value"
    assert (said in data.notes) == (blank > 0)
    if blank:
        empty = read(csv_of(tmp_path, "k" + end * (blank + 1)), keys=["k"])
        assert empty.n == blank


@pytest.mark.parametrize("above", ["Survey\n", "Title\n\nunit\n", "sep=;\n", "# a, comment\n"])
def test_what_stands_above_the_header_is_told_from_it(tmp_path, above):
    path = csv_of(tmp_path, above + "a,b,c\n1,2,3\n")
    line = above.count("\n") + 1
    message = refused(path)
    assert f"no column 'a' in line 1, but the names of the columns stand in line {line}" in message
    assert read(path, form=FileForm(header_line=line)).n == 1
    assert read(path, form=FileForm(skip_rows=line - 1)).n == 1


def test_codes_that_look_alike_and_numbers_that_were_cut_are_noted():
    """A spreadsheet keeps 15 digits: two households of 18 became one."""
    frame = pd.DataFrame(
        {
            "town": ["Z\u00fcrich", "Zu\u0308rich", "Bern"],
            "sex": ["m", "M", "f"],
            "hid": ["123456789012345000", "123456789012346000", "7"],
        }
    )
    notes = " ".join(read_microdata(frame, keys=["town", "sex"], household="hid").notes)
    assert "column 'town': codes that differ only in case, or in how their signs" in notes
    assert "column 'sex': codes that differ only in case" in notes
    assert "column 'hid': numbers of more than 15 digits that all end in zeros" in notes
    whole = frame.assign(hid=["123456789012345001", "123456789012346000", "7"])
    notes = " ".join(read_microdata(whole, keys=["town"], household="hid").notes)
    assert "more than 15 digits" not in notes


def test_one_household_of_many_is_noted():
    frame = pd.DataFrame({"k": ["a"] * 60, "hid": ["9"] * 30 + [str(i) for i in range(30)]})
    notes = " ".join(read_microdata(frame, keys=["k"], household="hid").notes)
    assert "31 persons in one household, '9'" in notes


@pytest.mark.parametrize("written", ["-9", "*", "n.a."])
def test_weights_that_look_like_marks_have_a_remedy_that_fits(written):
    frame = pd.DataFrame({"k": ["a", "b"], "w": ["3.5", written]})
    with pytest.raises(InputError, match="if it marks a missing weight, remove these records"):
        read_microdata(frame, keys=["k"], weight="w")
