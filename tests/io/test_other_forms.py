"""Forms that people have: each is read, or refused with what converts it."""

import gzip
import sqlite3
import sys
from contextlib import closing

import pandas as pd
import pytest

from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.holes import audit_holes
from bayes_sdc.flows.table.read import read_flows
from bayes_sdc.io.form import FileForm
from bayes_sdc.microdata.file.read import read_microdata

NAMES = {"origin": "from", "destination": "to", "count": "n"}
ROWS = [("01", "02", 3), ("02", "01", 17), ("01", "01", 400)]
FRAME = pd.DataFrame(ROWS, columns=["from", "to", "n"])


def same(table) -> None:
    assert table.frame["from"].tolist() == ["01", "02", "01"]
    assert table.frame["n"].tolist() == [3, 17, 400]
    assert table.dialect.suffix == ".csv"


def test_a_workbook_is_read_from_its_first_sheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    for row in [["Flows of a year"], [], ["from", "to", "n"], *map(list, ROWS)]:
        sheet.append(row)
    book.create_sheet("notes").append(["made by hand"])
    book.save(tmp_path / "moves.xlsx")
    table = read_flows(tmp_path / "moves.xlsx", **NAMES, form=FileForm(header_line=3))
    same(table)
    assert "sheet 'Sheet'; 1 more are not read" in table.notes
    data = read_microdata(tmp_path / "moves.xlsx", keys=["from"], form=FileForm(header_line=3))
    assert data.f.tolist() == [2, 1, 2]
    with pytest.raises(InputError, match="no column 'from'"):
        read_flows(tmp_path / "moves.xlsx", **NAMES)


def test_without_the_library_a_workbook_is_refused_with_what_converts_it(tmp_path, monkeypatch):
    (tmp_path / "moves.xlsx").write_bytes(b"PK\x03\x04...")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"bayes-sdc\[excel\].*libreoffice --headless"):
        read_flows(tmp_path / "moves.xlsx", **NAMES)


def _flows(path, form=None):
    return read_flows(path, **NAMES, form=form)


def _persons(path, form=None):
    return read_microdata(path, keys=["from"], form=form)


@pytest.mark.parametrize("read", [_flows, _persons])
@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("title", [0, 2])
def test_rows_of_a_streamed_workbook_need_not_be_as_long_as_its_header(
    read, streamed, title, tmp_path
):
    """Such a sheet does not store how wide it is, and its rows come as long as they are."""
    openpyxl = pytest.importorskip("openpyxl")

    def workbook(*rows):
        book = openpyxl.Workbook(write_only=streamed)
        sheet = book.create_sheet("flows", 0)
        for row in [*[["Flows"]] * title, ["from", "to", "n", "note"], *rows]:
            sheet.append(row)
        book.save(tmp_path / "moves.xlsx")
        return read(tmp_path / "moves.xlsx", FileForm(header_line=title + 1))

    short = [list(row) for row in ROWS]
    assert workbook(*short) is not None
    assert workbook(short[0], [*short[1], "x", None, None], short[2]) is not None
    if streamed:
        said = (
            rf"^moves\.xlsx: 2 values .* row {title + 1}; .* 'odd' in row {title + 3}, column 5\. "
        )
        with pytest.raises(InputError, match=said):
            workbook(short[0], [*short[1], "x", "odd"], [*short[2], "x", None, "more"])


def test_a_title_over_a_streamed_sheet_is_named(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in [["Flows of a year"], ["from", "to", "n"], *map(list, ROWS)]:
        sheet.append(row)
    book.save(tmp_path / "moves.xlsx")
    with pytest.raises(InputError, match=r"'to' in row 2, column 2\. .* --header-line"):
        read_flows(tmp_path / "moves.xlsx", **NAMES)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"PK\x03\x04...", "unzip"), (b"\xd0\xcf\x11\xe0...", "libreoffice --headless --convert-to")],
)
def test_archives_and_old_workbooks_are_refused_with_what_converts_them(tmp_path, content, said):
    (tmp_path / "moves.csv").write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_flows(tmp_path / "moves.csv", **NAMES)


def test_a_matrix_is_read_by_cell(tmp_path):
    (tmp_path / "matrix.csv").write_text(",01,02\n01,400,3\n02,17,\n")
    table = read_flows(tmp_path / "matrix.csv", **NAMES, form=FileForm(wide=True))
    assert table.frame.to_numpy().tolist() == [["01", "01", 400], ["01", "02", 3], ["02", "01", 17]]
    assert any("1 blank cells of the matrix are left out" in note for note in table.notes)
    (tmp_path / "twice.csv").write_text(",01,01\n01,400,3\n")
    with pytest.raises(InputError, match="two columns of the matrix are called '01'"):
        read_flows(tmp_path / "twice.csv", **NAMES, form=FileForm(wide=True))


@pytest.mark.parametrize("packed", [False, True])
def test_eurostats_form_is_read_with_its_flags(tmp_path, packed):
    text = (
        "freq,citizen,geo\\TIME_PERIOD\t2019 \t2020 \n"
        "A,AT,DE\t3 b\t: \nA,DE,AT\t17 \t12 ep\nA,DE,FR\t: c\t5\n"
    )
    path = tmp_path / ("migr.tsv.gz" if packed else "migr.tsv")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    names = {"origin": "citizen", "destination": "geo", "count": "OBS_VALUE"}
    with pytest.raises(InputError, match=r"': c'.*look suppressed.*--suppressed ': c'"):
        read_flows(path, **names, groups="TIME_PERIOD")
    found = audit_holes(path, **names, groups="TIME_PERIOD", marks=[": c"])
    assert len(found.bounds) == 1
    path.write_bytes(text.replace(": c", "2").encode())
    table = read_flows(path, **names, groups="TIME_PERIOD")
    assert table.frame["OBS_VALUE"].tolist() == [3, 17, 12, 2, 5]
    assert table.frame["OBS_FLAG"].tolist() == ["b", "", "ep", "", ""]
    assert any("1 cells without a figure (:) are left out" in note for note in table.notes)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16"])
@pytest.mark.parametrize("form", ["csv", "wide", "eurostat", "fixed"])
def test_no_form_merges_areas_whose_names_are_not_in_ascii(tmp_path, form, encoding):
    """Two areas read as one would make a flow between them one of people who stayed."""
    text, more = {
        "csv": ("orig,dest,OBS_VALUE\nBär,Bör,4\nBör,Bär,12\n", None),
        "wide": ("x,Bär,Bör\nBär,,4\nBör,12,\n", FileForm(wide=True)),
        "eurostat": ("unit,orig,dest\\time\t2020\nN,Bär,Bör\t4\nN,Bör,Bär\t12\n", None),
        "fixed": ("BärBör 4\nBörBär12\n", FileForm(layout=tmp_path / "layout.csv")),
    }[form]
    (tmp_path / "layout.csv").write_text("name,start,end\norig,1,3\ndest,4,6\nOBS_VALUE,7,8\n")
    path = tmp_path / ("x.tsv" if form == "eurostat" else "x.txt")
    path.write_bytes(text.encode(encoding))
    names = {"origin": "orig", "destination": "dest", "count": "OBS_VALUE"}
    table = read_flows(path, **names, form=more)
    assert table.frame[["orig", "dest"]].values.tolist() == [["Bär", "Bör"], ["Bör", "Bär"]]
    assert table.n_set_aside == 0
    assert encoding == "utf-8" or any("ncoding" in note or "fixed" in note for note in table.notes)


def test_fixed_widths_are_cut_by_a_layout(tmp_path):
    (tmp_path / "moves.txt").write_text("01 02    3\n02 01   17\n01 01  400\n")
    layout = tmp_path / "layout.csv"
    layout.write_text("name,start,end\nfrom,1,2\nto,4,5\nn,6,10\n")
    same(read_flows(tmp_path / "moves.txt", **NAMES, form=FileForm(layout=layout)))
    data = read_microdata(tmp_path / "moves.txt", keys=["from"], form=FileForm(layout=layout))
    assert data.f.tolist() == [2, 1, 2]
    for text, said in (
        ("name,start,end\nfrom,1,2\nto,4,5\nn,40,41\n", "3 lines end before the last column"),
        ("name,start,end\nfrom,2,1\n", "begins at 2 and ends at 1"),
        ("name,start,end\nfrom,a,1\n", "row 1 is no name, start and end"),
        ("name,start,end\nfrom,1,1\nfrom,2,2\n", "each column once"),
    ):
        layout.write_text(text)
        with pytest.raises(InputError, match=said):
            read_flows(tmp_path / "moves.txt", **NAMES, form=FileForm(layout=layout))


def test_a_query_reads_a_database_of_sqlite(tmp_path):
    path = tmp_path / "moves.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute('CREATE TABLE moves ("from" TEXT, "to" TEXT, n INTEGER)')
        database.executemany("INSERT INTO moves VALUES (?, ?, ?)", ROWS)
    before = path.read_bytes()
    same(read_flows(path, **NAMES, form=FileForm(query="SELECT * FROM moves")))
    with pytest.raises(InputError, match="say what to read with --query"):
        read_flows(path, **NAMES)
    for query, said in (
        ("SELECT * FROM none", "no such table"),
        ("DELETE FROM moves", "not authorized"),
        ("SELECT 1; SELECT 2", "the query fails"),
    ):
        with pytest.raises(InputError, match=said):
            read_flows(path, **NAMES, form=FileForm(query=query))
    assert path.read_bytes() == before
    (tmp_path / "moves.csv").write_text("from,to,n\n")
    with pytest.raises(InputError, match="not a database"):
        read_flows(tmp_path / "moves.csv", **NAMES, form=FileForm(query="SELECT 1"))


def test_a_relation_or_a_query_of_duckdb_is_read(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "moves.duckdb"
    with closing(duckdb.connect(str(path))) as database:
        database.execute('CREATE TABLE moves ("from" TEXT, "to" TEXT, n BIGINT)')
        database.executemany("INSERT INTO moves VALUES (?, ?, ?)", ROWS)
        same(read_flows(database.table("moves"), **NAMES))
    same(read_flows(path, **NAMES, form=FileForm(query="SELECT * FROM moves")))
    with pytest.raises(InputError, match="whose tables are 'moves'"):
        read_flows(path, **NAMES)


NOT_ONE_SELECT = ["", " ", ";", "-- nothing", "SELECT 1; SELECT 2", "SELECT '\udcff'",
                  "PRAGMA database_list", "SET threads = 1"]  # fmt: skip


@pytest.mark.parametrize("read", [_flows, _persons])
@pytest.mark.parametrize("library", ["sqlite3", "duckdb"])
@pytest.mark.parametrize("query", NOT_ONE_SELECT)
def test_a_query_that_is_not_one_select_is_refused(query, library, read, tmp_path):
    """DuckDB gave the last result of two; what is not UTF-8 was a traceback."""
    path = tmp_path / "moves.db"
    with closing(pytest.importorskip(library).connect(str(path))) as database:
        database.execute('CREATE TABLE moves ("from" TEXT, "to" TEXT, n INTEGER)')
    with pytest.raises(InputError, match=r"^moves\.db: the query ") as refused:
        read(path, FileForm(query=query))
    assert refused.value.__cause__ is None or "fails" in str(refused.value)


def test_the_commuting_files_of_the_census_are_read_as_they_come(tmp_path):
    """LODES: gzipped, codes of fifteen digits, a dozen counts in a row."""
    text = (
        "w_geocode,h_geocode,S000,SA01,createdate\n010010201001010,010010202002003,3,1,20230321\n"
    )
    path = tmp_path / "al_od_main_JT00_2021.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    table = read_flows(path, origin="h_geocode", destination="w_geocode", count="S000")
    assert table.cells.index.tolist() == ["010010202002003>010010201001010"]


def test_a_mark_that_says_its_limit_bounds_the_hole():
    frame = pd.DataFrame({"from": list("aaab"), "to": list("bcda"), "n": ["<5", "*", "7", "80"]})
    found = audit_holes(frame, **NAMES, marks=["<5", "*"])
    assert found.before.tolist() == [4, 9]


@pytest.mark.parametrize(
    ("mark", "least", "most"),
    [("<5", 1, 4), ("<=5", 1, 5), ("1-4", 1, 4), ("0-4", 0, 4), ("6\u20139", 6, 9), ("<20", 1, 19)],
)
def test_a_mark_has_the_limits_it_says_and_not_those_of_the_others(mark, least, most):
    """Below 20 may be 19, though other marks stand for counts up to 9."""
    frame = pd.DataFrame({"from": list("aab"), "to": list("bca"), "n": [mark, "7", "80"]})
    found = audit_holes(frame, **NAMES, marks=[mark])
    assert found.bounds[["lower", "upper"]].to_numpy().tolist() == [[least, most]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"decimal": ";"},
        {"thousands": "_"},
        {"decimal": ",", "thousands": ","},
        {"header_line": 0},
        {"skip_rows": -1},
        {"skip_rows": True},
        {"layout": "x.csv", "skip_rows": 1},
        {"query": "SELECT 1", "header_line": 2},
    ],
)
def test_forms_that_cannot_be_are_refused(wrong):
    with pytest.raises(InputError, match=r"must|differ|nothing would be skipped"):
        FileForm(**wrong)
