"""Forms that are not read: each is refused with a command that makes one that is."""

import bz2
import gzip
import json
import lzma
import pickle
import sqlite3
from contextlib import closing

import pandas as pd
import pytest

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.read import read_flows
from bayes_sdc.io.form import FileForm
from bayes_sdc.microdata.file.read import read_microdata

TABLE = b"from,to,n\nA,B,3\nB,A,40\n"
ROWS = [{"from": "A", "to": "B", "n": 3}, {"from": "B", "to": "A", "n": 40}]


def files(folder):
    """Real files where something here writes them, beginnings of them elsewhere."""
    frame = pd.DataFrame(ROWS)
    frame.to_stata(folder / "x.dta", write_index=False)
    frame.to_stata(folder / "old.dta", write_index=False, version=114)
    frame.to_feather(folder / "x.feather")
    return {
        "x.csv.bz2": (bz2.compress(TABLE), "bunzip2"),
        "x.csv.xz": (lzma.compress(TABLE), "unxz"),
        "x.csv.gz": (gzip.compress(gzip.compress(TABLE)), "packed twice"),
        "x.dta.csv": ((folder / "x.dta").read_bytes(), "pandas.read_stata"),
        "old.csv": ((folder / "old.dta").read_bytes(), "pandas.read_stata"),
        "x.feather": ((folder / "x.feather").read_bytes(), "pandas.read_feather"),
        "x.pkl": (pickle.dumps(frame), "pandas.read_pickle"),
        "x.json": (json.dumps(ROWS).encode(), "pandas.read_json"),
        "indented.json": (json.dumps({"a": ROWS}, indent=1).encode(), "pandas.read_json"),
        "x.jsonl": ("\n".join(map(json.dumps, ROWS)).encode(), "lines=True"),
        "x.rds": (gzip.compress(b"X\n\0\0\0\x03" + bytes(40)), "readRDS"),
        "x.RData": (gzip.compress(b"RDX3\nX\n" + bytes(40)), "get(load("),
        "x.sav.csv": (b"$FL2@(#) SPSS DATA FILE", "pandas.read_spss"),
        "x.pdf": (b"%PDF-1.4\n", "the table behind it"),
        "x.xls": (b"<html><table><tr><td>from</td></tr></table>", "libreoffice"),
        "x.xml": (b"<?xml version='1.0'?><a/>", "pandas.read_xml"),
        "x.zip": (b"PK\x03\x04" + bytes(60), "unzip"),
        "x.ods": (b"PK\x03\x04" + bytes(26) + b"mimetypeapplication/vnd.oasis.", "libreoffice"),
        "old.xls": (b"\xd0\xcf\x11\xe0" + bytes(60), "libreoffice"),
    }


def _flows(path):
    return read_flows(path, origin="from", destination="to", count="n")


def _persons(path):
    return read_microdata(path, keys=["from"])


@pytest.mark.parametrize("read", [_flows, _persons])
def test_each_form_is_refused_with_its_command(read, tmp_path):
    for name, (content, command) in files(tmp_path).items():
        path = tmp_path / f"of {name}"
        path.write_bytes(content)
        with pytest.raises(InputError) as refused:
            read(path)
        said = str(refused.value)
        assert said.startswith(f"of {name}: ")
        assert "is not read. Remedy: convert it: " in said
        assert command in said, said


def test_tables_that_begin_oddly_are_still_read(tmp_path):
    for number, name in enumerate(["[from]", "{from", "<from>", "RDX", "PK"]):
        path = tmp_path / f"{number}.csv"
        path.write_text(f"{name},to,n\nA,B,3\nB,A,40\n")
        assert read_flows(path, origin=name, destination="to", count="n").n_small == 1


@pytest.mark.parametrize(
    "query",
    ["DROP TABLE t", "DELETE FROM t", "ATTACH 'other.db' AS o", "PRAGMA user_version = 3"],
)
def test_a_query_reads_the_file_that_was_named_and_does_nothing_else(query, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute('CREATE TABLE t ("from" TEXT, "to" TEXT, n INTEGER)')
        database.execute("INSERT INTO t VALUES ('A', 'B', 3)")
    before = path.read_bytes()
    with pytest.raises(InputError, match="the query fails: not authorized"):
        read_flows(path, origin="from", destination="to", count="n", form=FileForm(query=query))
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["t.db"]
    whole = FileForm(query='SELECT upper("from") AS "from", "to", sum(n) AS n FROM t GROUP BY 1, 2')
    assert read_flows(path, origin="from", destination="to", count="n", form=whole).n_small == 1


def test_lines_of_one_length_without_separators_are_asked_for_a_layout(tmp_path):
    path = tmp_path / "w.txt"
    path.write_text("A1B2  3\nA2B1 17\n")
    with pytest.raises(InputError, match=r"all lines have 7 characters .* by --layout"):
        read_flows(path, origin="from", destination="to", count="n")


def test_columns_of_a_layout_that_overlap_are_noted(tmp_path):
    (tmp_path / "lay.csv").write_text("name,start,end\nfrom,1,2\nto,2,4\nn,5,7\n")
    (tmp_path / "w.txt").write_text("A1B2  3\nA2B1 17\n")
    form = FileForm(layout=tmp_path / "lay.csv")
    table = read_flows(tmp_path / "w.txt", origin="from", destination="to", count="n", form=form)
    assert "columns 'from' and 'to' overlap in lay.csv" in table.notes


def test_names_in_a_damaged_database_that_are_no_unicode_are_refused(tmp_path):
    """SQLite puts them into its message, and Python cannot read that."""
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute('CREATE TABLE t ("from" TEXT, "to" TEXT, n INTEGER)')
    path.write_bytes(path.read_bytes().replace(b'"from" TEXT', b'"fr\xeem" TEXT'))
    form = FileForm(query="SELECT * FROM t")
    with pytest.raises(InputError, match=r"^t\.db: "):
        read_flows(path, origin="from", destination="to", count="n", form=form)
