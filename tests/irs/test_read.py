"""IRS files: every layout, every class of row, damage that must be seen, and the identities."""

import builtins
import gzip
import itertools
import re

import numpy as np
import pandas as pd
import pytest
import xlwt

from bayes_sdc import read_flows, read_irs_flows
from bayes_sdc.errors import InputError
from bayes_sdc.io.tables import Dialect, encode
from bayes_sdc.irs.hidden import hidden_margins
from bayes_sdc.irs.simulate import (
    EXAMPLE_SEED,
    example_irs_path,
    publish_irs,
    simulate_irs_flows,
)
from bayes_sdc.irs.thresholds import THRESHOLDS, threshold_of

HEADER = "y2_statefips,y2_countyfips,y1_statefips,y1_countyfips,y1_state,y1_countyname,n1,n2,agi"

# an invented county 05001 with a neighbour 05003: codes of the other side, name, three numbers
COUNTY = [
    ("05", "001", "96", "000", "QQ", "Ash Total Migration-US and Foreign", 131, 262, 6552),
    ("05", "001", "97", "000", "QQ", "Ash Total Migration-US", 119, 238, 5952),
    ("05", "001", "97", "001", "QQ", "Ash Total Migration-Same State", 60, 120, 3001),
    ("05", "001", "97", "003", "QQ", "Ash Total Migration-Different State", 59, 118, 2951),
    ("05", "001", "98", "000", "QQ", "Ash Total Migration-Foreign", 12, 24, 600),
    ("05", "001", "05", "001", "QQ", "Ash Non-migrants", 900, 1800, 45000),
    ("05", "001", "05", "003", "QQ", "Beech County", 48, 96, 2400),
    ("05", "001", "06", "005", "QR", "Elder County", 10, 20, -1),
    ("05", "001", "57", "001", "FR", "Foreign - Overseas", 12, 24, 600),
    ("05", "001", "58", "000", "SS", "Other flows - Same State", 12, 24, 600),
    ("05", "001", "59", "000", "DS", "Other flows - Different State", 49, 98, 2952),
]
STATE = [
    ("05", "000", "96", "000", "QQ", "Total Migration-US and Foreign", 400, 800, 20000),
    ("05", "000", "97", "001", "QQ", "Total Migration-Same State", -1, -1, -1),
]


def csv_text(rows=(*STATE, *COUNTY), header: str = HEADER) -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


@pytest.fixture
def save(tmp_path):
    def write(content: str | bytes, name: str = "countyinflow1011.csv", encoding: str = "utf-8"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return write


def changed(row: int, **cells: object) -> list[tuple[object, ...]]:
    """COUNTY with some cells of one row replaced; names as in the header."""
    names = HEADER.split(",")
    new = list(COUNTY[row])
    for name, value in cells.items():
        new[names.index(name)] = value
    return [*COUNTY[:row], tuple(new), *COUNTY[row + 1 :]]


def refused(path, **named: object) -> str:
    with pytest.raises(InputError) as caught:
        read_irs_flows(path, **named)
    return str(caught.value)


# ---- classes -----------------------------------------------------------------------------------


def test_every_row_is_in_one_class_and_counted(save):
    flows = read_irs_flows(save(csv_text()))
    assert flows.counts["rows"].to_dict() == {
        "detail": 2,
        "total": 7,
        "other flows": 2,
        "non-migrants": 1,
        "foreign": 1,
    }
    assert flows.counts["suppressed"].sum() == 1
    assert flows.n_read == len(flows.rows) == 13
    assert (flows.direction, flows.years, flows.layout) == ("inflow", "2010-2011", "csv")
    assert flows.suppressed["county"].tolist() == ["05000"]
    assert flows.suppressed[["returns", "exemptions", "agi"]].isna().all(axis=None)
    assert flows.rows["line"].tolist() == list(range(2, 15))
    assert flows.totals["category"].tolist()[2:] == [
        "US and foreign",
        "US",
        "same state",
        "different state",
        "foreign",
    ]
    assert flows.other_flows["category"].tolist() == ["same state", "different state"]
    assert flows.foreign["category"].tolist() == ["overseas"]
    assert flows.non_migrants[["county", "returns"]].to_numpy().tolist() == [["05001", 900]]
    assert not len(flows.broken)
    assert not len(flows.duplicates)


def test_direction_decides_what_is_origin_and_destination(save):
    inflow = read_irs_flows(save(csv_text())).detail
    assert inflow["origin"].tolist() == ["05003", "06005"]
    assert inflow["destination"].unique().tolist() == ["05001"]
    assert inflow["origin_state"].tolist() == ["05", "06"]
    header = HEADER.replace("y1", "y0").replace("y2", "y1").replace("y0", "y2")
    outflow = read_irs_flows(save(csv_text(header=header)))
    assert outflow.direction == "outflow"
    assert outflow.detail["destination"].tolist() == ["05003", "06005"]
    assert outflow.detail["origin"].unique().tolist() == ["05001"]


def test_minus_one_is_a_mark_but_a_deficit_beside_published_returns_is_a_number(save):
    flows = read_irs_flows(save(csv_text()))
    assert flows.detail["agi"].tolist() == [2400, -1]
    hidden = read_irs_flows(save(csv_text(changed(4, n1="d", n2="d", agi="d")))).rows
    assert hidden["suppressed"].sum() == 1
    assert hidden.loc[hidden["suppressed"], "agi"].isna().all()
    same = read_irs_flows(save(csv_text(changed(4, n1=-1, n2=-1, agi=-1)))).rows
    pd.testing.assert_frame_equal(hidden, same)


@pytest.mark.parametrize(
    ("partner", "record", "category"),
    [
        (("59", "001"), "other flows", "northeast"),
        (("59", "003"), "other flows", "midwest"),
        (("59", "005"), "other flows", "south"),
        (("59", "007"), "other flows", "west"),
        (("57", "003"), "foreign", "Puerto Rico"),
        (("57", "009"), "foreign", "other flows"),
        (("63", "010"), "other flows", "same state"),
        (("63", "011"), "other flows", "northeast"),
        (("63", "015"), "foreign", "other flows"),
        (("63", "021"), "other flows", "same region, different state"),
        (("63", "030"), "other flows", "all flows"),
        (("63", "050"), "non-migrants", ""),
        (("00", "001"), "total", "US and foreign"),
    ],
)
def test_special_codes(save, partner, record, category):
    row = ("06", "001", *partner, "XX", "name", 30, 60, 900)
    last = read_irs_flows(save(csv_text([*COUNTY, row]))).rows.iloc[-1]
    assert (last["record"], last["category"], last["county"]) == (record, category, "06001")
    assert last["partner"] == ("06001" if record == "non-migrants" else "".join(partner))


def test_total_rows_of_the_nation_are_totals(save):
    row = ("00", "000", "96", "000", "US", "Total Mig - US & For", 9000, 18000, 270000)
    assert read_irs_flows(save(csv_text([row, *COUNTY]))).totals["county"].iloc[0] == "00000"


# ---- spelling of codes, columns and files ------------------------------------------------------


def test_padding_and_case_of_columns_change_nothing(save):
    plain = read_irs_flows(save(csv_text(COUNTY)))
    bare = [
        (a.lstrip("0"), str(int(b)), c.lstrip("0"), str(int(d)), *r) for a, b, c, d, *r in COUNTY
    ]
    wide = [(f"0{a}", b, f"0{c}", d, *rest) for a, b, c, d, *rest in COUNTY]
    float_like = [(f"{a}.0", b, f"{c}.0", d, *rest) for a, b, c, d, *rest in COUNTY]
    spaced = [(f" {a}", f"{b} ", c, d, *rest) for a, b, c, d, *rest in COUNTY]
    upper, mixed = HEADER.upper(), HEADER.replace("agi", "AGI")
    for rows, header in ((bare, upper), (wide, mixed), (float_like, HEADER), (spaced, upper)):
        other = read_irs_flows(save(csv_text(rows, header)))
        pd.testing.assert_frame_equal(other.rows, plain.rows)
    assert not any("leading zeros" in note for note in plain.notes)
    assert (
        "codes without their leading zeros in 11 rows, padded"
        in read_irs_flows(save(csv_text(bare))).notes
    )


def test_column_names_of_the_files_until_2011(save):
    header = (
        "State_Code_Dest,County_Code_Dest,State_Code_Origin,County_Code_Origin,State_Abbrv,"
        "County_Name,Return_Num,Exmpt_Num,Aggr_AGI"
    )
    new = read_irs_flows(save(csv_text()))
    old = read_irs_flows(save(csv_text(header=header)))
    pd.testing.assert_frame_equal(old.rows, new.rows)
    swapped = header.replace("Dest", "X").replace("Origin", "Dest").replace("X", "Origin")
    assert read_irs_flows(save(csv_text(header=swapped))).direction == "outflow"


def test_file_without_agi_has_the_other_identities(save):
    rows = [row[:-1] for row in COUNTY]
    flows = read_irs_flows(save(csv_text(rows, HEADER.removesuffix(",agi"))))
    assert flows.rows["agi"].isna().all()
    assert not len(flows.broken)
    assert set(flows.checks["measure"]) == {"returns", "exemptions"}


def test_encodings_separators_and_gzip(save):
    rows = changed(6, y1_countyname="Doña Ana County")
    for encoding in ("utf-8", "latin-1", "utf-8-sig", "utf-16"):
        flows = read_irs_flows(save(csv_text(rows), encoding=encoding))
        assert flows.rows["name"].iloc[6] == "Doña Ana County"
        assert (encoding == "latin-1") == any("latin-1" in note for note in flows.notes)
    semicolons = csv_text(rows).replace(",", ";")
    assert len(read_irs_flows(save(semicolons)).rows) == 11
    packed = gzip.compress(csv_text(rows).encode())
    assert len(read_irs_flows(save(packed, "countyinflow1011.csv.gz")).rows) == 11
    windows = csv_text(rows).replace("\n", "\r\n") + "\r\n"
    assert len(read_irs_flows(save(windows)).rows) == 11


# ---- damage ------------------------------------------------------------------------------------


def test_broken_rows_are_listed_with_their_lines_and_the_rest_is_read(save):
    text = csv_text(changed(0, n1="r       131"))
    text = text.replace("05,001,05,003,QQ,Beech County,48,96,2400", "05,001,05,003,QQ,Beech County")
    text += "05,001,60,001,QQ,Nowhere,11,22,33\nAB,001,05,003,QQ,x,11,22,33\n"
    text += "05,000,05,003,QQ,x,11,22,33\n05,003,05,000,QQ,x,-5,22,33\n\n"
    flows = read_irs_flows(save(text))
    assert flows.broken[["line", "column"]].to_numpy().tolist() == [
        [2, "returns"],
        [8, ""],
        [13, "partner"],
        [14, "county"],
        [15, "partner"],
        [16, "partner"],
    ]
    assert flows.broken["value"].tolist()[0] == "r       131"
    assert "6 fields instead of 9" in flows.broken["reason"].iloc[1]
    assert not flows.broken["kept"].any()
    assert flows.n_read == 15
    assert len(flows.rows) == 9
    assert any(note.startswith("6 rows are broken and set aside: line 2") for note in flows.notes)


@pytest.mark.parametrize("value", ["", "1,000", "12.5", "-7", "NaN", "1e3", "9" * 16])
def test_returns_that_are_no_count_break_the_row(save, value):
    text = csv_text(changed(6, n1=f'"{value}"'))
    broken = read_irs_flows(save(text)).broken
    assert broken[["line", "column", "value"]].to_numpy().tolist() == [[8, "returns", value]]


def test_a_broken_income_does_not_lose_the_returns(save):
    flows = read_irs_flows(save(csv_text(changed(6, agi="d550"))))
    assert flows.detail["returns"].tolist() == [48, 10]
    assert flows.detail["agi"].isna().tolist() == [True, False]
    assert flows.broken[["line", "value", "kept"]].to_numpy().tolist() == [[8, "d550", True]]
    status = flows.checks.set_index(["identity", "measure"])["status"]
    assert status["same state", "returns"] == "holds"
    assert status["same state", "agi"] == "part missing"
    assert any(note.startswith("1 numbers are broken") for note in flows.notes)


def test_a_state_that_occurs_twice_is_set_aside_once(save):
    flows = read_irs_flows(save(csv_text([*STATE, *COUNTY, *STATE, *COUNTY])))
    assert len(flows.rows) == 13
    assert flows.duplicates[["line", "first_line"]].to_numpy().tolist() == [
        [13 + line, line] for line in range(2, 15)
    ]
    assert flows.n_read == 26
    assert any("by state: 05 (all 13 rows)" in note for note in flows.notes)
    assert not len(flows.gaps)


def test_rows_that_contradict_each_other_are_refused_with_their_lines(save):
    message = refused(save(csv_text([*COUNTY, changed(6, n1=47)[6]])))
    assert "lines 8 and 13 (05001, 05003)" in message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        (HEADER + "\n", "there are no rows"),
        ("a,b\n1,2\n", "not a county-to-county migration file"),
        (csv_text(header=HEADER.replace("n1", "total")), "lacks the columns n1"),
        (csv_text().split("\n", 1)[1], "lacks the columns"),
        (HEADER + "\n" + "x,y,z,u,v,w,1,2,3\n" * 3, "3 of 3 rows cannot be read"),
        ("y2_statefips,y1_statefips,y1_state,y1_state_name,n1,n2,AGI\n", "between states"),
        (csv_text(header=HEADER + ",n1").replace("\n", ",1\n"), "two columns are called 'n1'"),
        (csv_text().replace("Beech", '"Beech'), "quotation mark"),
        (b"PK\x03\x04" + bytes(50), "zip archive"),
        (b"\xd0\xcf\x11\xe0" + bytes(600), "damaged workbook"),
        (b"\x1f\x8b" + bytes(20), "damaged gzip"),
        (bytes(range(256)) * 4, "the bytes are no text"),
        (bytes(range(1, 256)) * 4, "not a county-to-county migration file"),
    ],
)
def test_what_is_not_such_a_file_gets_one_clear_error(save, content, said):
    message = refused(save(content))
    assert message.startswith("countyinflow1011.csv: ")
    assert said in message


def test_missing_file_and_wrong_arguments(save, tmp_path):
    assert "cannot be read" in refused(tmp_path / "no.csv")
    assert "must be a path" in refused(pd.DataFrame())
    assert "choose from ['inflow', 'outflow']" in refused(save(csv_text()), direction="in")
    assert "holds inflows" in refused(save(csv_text()), direction="outflow")
    assert "two successive years" in refused(save(csv_text()), years="2010")
    assert "give years=" in refused(save(csv_text(), "flows.csv"))


def test_years_come_from_the_name_unless_they_are_given(save):
    assert read_irs_flows(save(csv_text(), "countyinflow9900.csv")).years == "1999-2000"
    flows = read_irs_flows(save(csv_text(), "countyinflow1415.csv"), years="2013-2014")
    assert (flows.years, flows.threshold.returns) == ("2013-2014", 20)
    assert "the file speaks of 2014-2015, but years is 2013-2014" in flows.notes


# ---- the other layouts -------------------------------------------------------------------------

TABLES = """\
05 001   Ash Total Migration Fl QQ       160              330
  05 003 Beech                  QQ        60  37.50       120  36.36
  06 005 Elder                  QR        40  25.00        80  24.24
  57 001 Foreign / Overseas     FR        12   7.50        30   9.09
   Same State                             18  11.25        40  12.12
   Region 1:   Northeast                  10   6.25        20   6.06
   Region 2:   Midwest                    10   6.25        20   6.06
   Region 3:   South                      10    .00        20    .00
      05 001   County Non-Migrants       900             1800
05 003   Beech Total Migratio QQ        90              180
  05 001 Ash                    QQ        55  61.11       110  61.11
   Same State                             10  11.11        20  11.11
   Same Region, Diff. State               11  12.22        22  12.22
   Different Region                       14  15.55        28  15.55
      05 003   County Non-Migrants       300              600
05 005   Cherry Total Migr QQ        21               42
   All Migration Flows                    21 100.00        42 100.00
      05 005   County Non-Migrants        80              160
"""


def test_printed_tables_of_1990_to_1992(save):
    flows = read_irs_flows(save(TABLES, "C9091qqi.txt"))
    assert (flows.layout, flows.direction, flows.years) == ("text", "inflow", "1990-1991")
    assert flows.counts["rows"].tolist() == [3, 3, 8, 3, 1]
    assert flows.rows["agi"].isna().all()
    assert flows.other_flows["category"].tolist() == [
        "same state",
        "northeast",
        "midwest",
        "south",
        "same state",
        "same region, different state",
        "different region",
        "all flows",
    ]
    assert flows.detail.iloc[0, :6].tolist() == ["05003", "05001", "05", "05", 60, 120]
    table = flows.identities
    assert table.loc[("returns", "all flows"), "holds"] == 3
    assert table.loc[("exemptions", "all flows"), "holds"] == 3
    assert read_irs_flows(save(TABLES, "C9091qqo.txt")).direction == "outflow"
    assert "tells the direction" in refused(save(TABLES, "C9091.txt"))
    given = read_irs_flows(save(TABLES, "x.txt"), direction="outflow", years="1991-1992")
    assert given.detail["origin"].iloc[0] == "05001"


def test_rows_below_a_county_line_that_is_broken_do_not_join_the_county_before(save):
    text = TABLES.replace("05 003   Beech Total Migratio QQ        90", "05 003   Beech Tot QQ  9x")
    flows = read_irs_flows(save(text, "C9091qqi.txt"))
    assert flows.broken["line"].tolist() == [10, 11, 12, 13, 14, 15]
    assert flows.broken["reason"].iloc[1] == "no county's total before it"
    assert set(flows.rows["county"]) == {"05001", "05005"}
    assert not len(flows.gaps)
    strange = TABLES.replace("Different Region", "Different Planet")
    broken = read_irs_flows(save(strange, "C9091qqi.txt")).broken
    assert broken["reason"].tolist() == ["summary row 'Different Planet' is not known"]
    moved = TABLES.replace("      05 001   County", "      05 009   County")
    assert "another county" in read_irs_flows(save(moved, "C9091qqi.txt")).broken["reason"][0]


def record(a: str, b: str, c: str, d: str, state: str, name: str, *numbers: object) -> str:
    n1, n2, agi = numbers
    return f"{a} {b} {c} {d} {state} {name[:32]:<32} {n1:>9}{n2:>11}{agi:>12}{'30000':>9}"


def test_records_of_91_characters_say_the_same_as_the_csv(save):
    lines = [record(*row) for row in (*STATE, *COUNTY)]
    assert {len(line) for line in lines} == {91}
    lines.insert(3, "05 001 damaged")
    flows = read_irs_flows(save("\r\n".join(lines) + "\r\n", "countyin1011.dat"))
    assert (flows.layout, flows.direction) == ("record", "inflow")
    same = read_irs_flows(save(csv_text())).rows
    columns = same.columns.drop(["line", "name"])
    pd.testing.assert_frame_equal(flows.rows[columns], same[columns])
    assert flows.broken["line"].tolist() == [4]
    assert read_irs_flows(save("\n".join(lines), "countyout1011.dat")).direction == "outflow"


def workbook(tmp_path, *sheets: str, row: tuple[str, ...] = ()):
    """A workbook as the IRS lays them out; a sheet for each name; ``row`` is one more row."""
    book = xlwt.Workbook()
    for name in sheets:
        sheet = book.add_sheet(name)
        inflow = "Inflow" in name
        sheet.write(1, 0, f"County-to-County Migration {name}, Calendar Years 2017-2018")
        sheet.write(3, 0, "Destination into Q" if inflow else "Origin from Q")
        for column, head in enumerate(["State Code", "County Code"] * 2):
            sheet.write(4, column, head)
        for column in (6, 7, 8):
            sheet.write(5, column, 5.0 - column)
        state = name.startswith("State")
        for i, printed in enumerate((*STATE, *COUNTY), start=6):
            codes = [float(printed[0]), float(printed[2])]
            values = [*codes, *printed[4:]] if state else list(printed)
            for j, value in enumerate(values):
                number = not state and j < 4
                mark = "d" if value == -1 and i == 7 else value
                sheet.write(i, j, float(value) if number else mark)
        for j, value in enumerate(row):
            sheet.write(i + 1, j, float(value) if value.isdecimal() else value)
        sheet.write(i + 2, 0, "d - suppressed")
    path = tmp_path / "1718qq.xls"
    book.save(str(path))
    return path


def test_workbooks_say_the_same_as_the_csv(save, tmp_path):
    flows = read_irs_flows(workbook(tmp_path, "State Inflow", "County Inflow"))
    assert (flows.layout, flows.direction, flows.years) == ("workbook", "inflow", "2017-2018")
    same = read_irs_flows(save(csv_text())).rows
    assert flows.rows["line"].tolist() == list(range(7, 20))
    pd.testing.assert_frame_equal(flows.rows.drop(columns="line"), same.drop(columns="line"))
    assert any("6 heading rows and 1 footnotes" in note for note in flows.notes)
    assert any("sheets not read: State Inflow" in note for note in flows.notes)


def test_the_sheet_of_a_workbook_is_chosen_by_direction(tmp_path):
    path = workbook(tmp_path, "County Outflow", "County Inflow")
    assert "2 sheets have county flows" in refused(path)
    assert read_irs_flows(path, direction="inflow").detail["destination"].iloc[0] == "05001"
    assert read_irs_flows(path, direction="outflow").detail["origin"].iloc[0] == "05001"
    only = workbook(tmp_path, "County Inflow")
    assert "no sheet with county outflows" in refused(only, direction="outflow")
    assert "no sheet with county-to-county flows" in refused(workbook(tmp_path, "State Inflow"))


def test_a_broken_row_of_a_workbook_is_listed(tmp_path):
    flows = read_irs_flows(workbook(tmp_path, "County Inflow", row=("05", "x", "05", "003", "?")))
    assert flows.broken[["line", "value"]].to_numpy().tolist() == [[20, "5-x"]]
    assert flows.n_read == 14


def test_a_cut_workbook_is_one_clear_error(tmp_path):
    path = workbook(tmp_path, "County Inflow")
    data = path.read_bytes()
    for end in (600, 3000, len(data) - 700):
        path.write_bytes(data[:end])
        with pytest.raises(InputError, match=r"1718qq\.xls: "):
            read_irs_flows(path)


def test_missing_reader_of_workbooks_is_named(tmp_path, monkeypatch):
    path = workbook(tmp_path, "County Inflow")
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "xlrd":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "pip install bayes-sdc[irs]" in refused(path)


# ---- thresholds --------------------------------------------------------------------------------


def test_thresholds_are_dated_without_holes():
    assert [threshold_of(f"{y}-{y + 1}").returns for y in (1990, 2004, 2012)] == [10, 10, 10]
    assert [threshold_of(f"{y}-{y + 1}").returns for y in (2013, 2017, 2021)] == [20, 20, 20]
    for earlier, later in itertools.pairwise(THRESHOLDS):
        assert int(later.first[:4]) == int(earlier.last[:4]) + 1
    assert THRESHOLDS[-1].last is None
    for years in ("2010", "2010-2012", "10-11", "2011-2010", "", "20x0-2011"):
        with pytest.raises(InputError, match="two successive years"):
            threshold_of(years)
    with pytest.raises(InputError, match="no threshold is known for 1985-1986"):
        threshold_of("1985-1986")


def test_flows_below_the_threshold_are_said(save):
    ten = read_irs_flows(save(csv_text(COUNTY)))
    assert not len(ten.below_threshold)
    twenty = read_irs_flows(save(csv_text(COUNTY), "countyinflow1314.csv"))
    assert twenty.below_threshold["origin"].tolist() == ["06005"]
    assert any("the lowest has 10" in note for note in twenty.notes)


# ---- identities --------------------------------------------------------------------------------


def status(flows, measure: str = "returns") -> dict[str, str]:
    checks = flows.checks[flows.checks["measure"] == measure]
    return checks[checks["county"] == "05001"].set_index("identity")["status"].to_dict()


def test_totals_are_the_sum_of_published_and_other_flows(save):
    flows = read_irs_flows(save(csv_text()))
    assert status(flows) == dict.fromkeys(
        ["same state", "different state", "foreign", "US", "US and foreign"], "holds"
    )
    assert status(flows, "agi")["same state"] == "rounding"  # 3001 = 2400 + 600, and 1 left
    assert not len(flows.gaps)
    off = read_irs_flows(save(csv_text(changed(6, n1=47, agi=2398))))
    assert off.gaps[["identity", "measure", "total", "parts", "gap"]].to_numpy().tolist() == [
        ["same state", "returns", 60, 59, 1],
        ["same state", "agi", 3001, 2998, 3],
    ]


@pytest.mark.parametrize(
    ("rows", "identity", "expected"),
    [
        (COUNTY[:9] + COUNTY[10:], "same state", "part missing"),
        (changed(9, n1=-1, n2=-1, agi=-1), "same state", "part missing"),
        (changed(2, n1="d", n2="d", agi="d"), "same state", "total missing"),
        (changed(2, n1="d", n2="d", agi="d"), "US", "part missing"),
        (COUNTY[1:], "US and foreign", "total missing"),
        (changed(0, n1=132), "US and foreign", "gap"),
        (changed(8, n1=11), "foreign", "part missing"),
    ],
)
def test_what_is_missing_is_told_from_what_is_wrong(save, rows, identity, expected):
    assert status(read_irs_flows(save(csv_text(rows))))[identity] == expected


def test_regions_are_a_breakdown_and_not_counted_twice(save):
    regions = [
        ("05", "001", "59", f"00{2 * i + 1}", "DS", "Other flows", n, 2 * n, 0)
        for i, n in enumerate([10, 11, 12, 16])
    ]
    flows = read_irs_flows(save(csv_text([*COUNTY, *regions])))
    assert status(flows)["other flows by region"] == "holds"
    assert status(flows)["different state"] == "holds"
    short = read_irs_flows(save(csv_text([*COUNTY, *regions[:3]])))
    assert status(short)["other flows by region"] == "part missing"


def test_hidden_sums_are_other_flows_or_what_is_left_of_the_total(save):
    def hidden(rows, name="countyinflow1011.csv"):
        table = hidden_margins(read_irs_flows(save(csv_text(rows), name)))
        row = table[(table["county"] == "05001") & (table["scope"] == "same state")].iloc[0]
        return [None if pd.isna(row[c]) else row[c] for c in ("total", "other", "low", "high")]

    assert hidden(COUNTY) == [60, 12, 12, 12]
    assert hidden(COUNTY[:9] + COUNTY[10:]) == [60, None, 12, 12]
    assert hidden(changed(2, n1="d", n2="d", agi="d")) == [None, 12, 12, 12]
    both = changed(2, n1="d", n2="d", agi="d")
    assert hidden(both[:9] + both[10:]) == [None, None, 0, None]
    # where numbers do not add up, here or by rule, other flows may be another county's
    assert hidden(changed(2, n1=63)) == [63, 12, 0, 15]
    assert hidden(changed(2, n1=50)) == [50, 12, 0, 12]
    assert hidden(changed(2, n1=48)) == [48, 12, 0, 12]
    assert hidden(COUNTY, "countyinflow1415.csv") == [60, 12, 0, 19]


# ---- onwards -----------------------------------------------------------------------------------


def test_detail_flows_lead_into_read_flows(save):
    frame = read_irs_flows(save(csv_text())).flow_frame()
    table = read_flows(
        frame,
        origin="origin",
        destination="destination",
        count="count",
        groups=["origin_state", "destination_state"],
        high=10,
    )
    assert (table.n_read, table.n_small) == (2, 1)
    assert table.cells["group"].tolist() == ["06>05"]
    assert frame["count"].dtype == np.int64
    people = read_irs_flows(save(csv_text())).flow_frame("exemptions")
    assert people["count"].tolist() == [96, 20]
    with pytest.raises(InputError, match="'returns' or 'exemptions'"):
        read_irs_flows(save(csv_text())).flow_frame("agi")


def test_summary_names_classes_threshold_identities_and_notes(save):
    text = read_irs_flows(save(csv_text(changed(0, n1="?")))).summary()
    for line in (
        "countyinflow1011.csv: county inflow 2010-2011 (csv), 11 rows read",
        "fewer than 10 returns are not shown (from 1990-1991 to 2012-2013)",
        "returns, same state: adds up in 1 of 1",
        "note: 1 rows are broken",
    ):
        assert line in text
    assert re.search(r"detail +2\n", text)
    assert re.search(r"broken rows set aside +1\n", text)


@pytest.mark.parametrize("rows", [STATE[1:], COUNTY[6:7]], ids=["all suppressed", "no totals"])
def test_a_file_of_one_row_has_tables_and_a_summary_too(save, rows):
    flows = read_irs_flows(save(csv_text(rows)))
    assert "1 rows read" in flows.summary()
    assert not len(flows.gaps)
    assert flows.identities["holds"].sum() == 0
    assert len(flows.flow_frame()) == len(flows.detail)
    assert len(hidden_margins(flows)) == 2 * (len(flows.detail))


# ---- the simulated files -----------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["inflow", "outflow"])
def test_example_files_are_what_the_generator_writes(direction):
    # else a file was edited by hand, or the generator changed without the file
    made = encode(publish_irs(simulate_irs_flows(seed=EXAMPLE_SEED), direction), Dialect())
    assert example_irs_path(direction).read_bytes() == made


@pytest.mark.parametrize("direction", ["inflow", "outflow"])
def test_example_files_hold_every_class_and_what_they_hide_adds_up(direction):
    flows = read_irs_flows(example_irs_path(direction), years="2010-2011")
    assert (flows.counts["rows"] > 0).all()
    assert flows.counts.loc["total", "suppressed"] > 10
    assert not len(flows.gaps)
    assert not len(flows.below_threshold)
    assert set(flows.identities.index.get_level_values(1)) == {
        "same state",
        "different state",
        "foreign",
        "US",
        "US and foreign",
        "other flows by region",
    }
    truth = simulate_irs_flows(seed=EXAMPLE_SEED).set_index(["origin", "destination"])["n1"]
    shown = flows.flow_frame().set_index(["origin", "destination"])["count"]
    assert (truth[shown.index] == shown).all()
    hidden = truth.drop(shown.index).reset_index()
    inside = hidden[hidden["origin"].str[:2] == hidden["destination"].str[:2]]
    inside = inside[inside["origin"] != inside["destination"]]
    county = "destination" if direction == "inflow" else "origin"
    sums = inside.groupby(county)["n1"].sum()
    margins = hidden_margins(flows).query("scope == 'same state'").set_index("county")
    known = margins.dropna(subset="high")
    assert len(known) > 50
    assert (known["high"] == sums.reindex(known.index, fill_value=0)).all()
    assert (known["low"] == known["high"]).all()


# ---- real files --------------------------------------------------------------------------------

REAL = {
    "countyinflow1011": ("countyinflow1011_from_state_xls.csv.gz", "2010-11", "inflow"),
    "countyoutflow1011": ("countyoutflow1011_from_state_xls.csv.gz", "2010-11", "outflow"),
    "countyinflow1415": ("countyinflow1415.csv.gz", "2014-15", "inflow"),
    "countyoutflow1415": ("countyoutflow1415.csv.gz", "2014-15", "outflow"),
    "countyinflow9899": ("countyinflow9899_from_state_xls.csv.gz", "1998-99", "inflow"),
    "countyoutflow0304": ("countyoutflow0304_from_state_xls.csv.gz", "2003-04", "outflow"),
}


@pytest.fixture(scope="module")
def real(shared_data):
    read: dict[str, object] = {}

    def get(name: str):
        if name not in read:
            read[name] = read_irs_flows(shared_data / "irs" / REAL[name][0])
        return read[name]

    return get


@pytest.mark.shared_data
@pytest.mark.parametrize("name", list(REAL))
def test_real_files_have_the_numbers_counted_elsewhere(shared_data, real, name):
    file, years, direction = REAL[name]
    known = pd.read_csv(shared_data / "irs" / "THRESHOLDS.csv")
    known = known[known["file"].str.endswith(file)].iloc[0]
    flows = real(name)
    assert flows.n_read == known["rows"]
    assert len(flows.rows) + len(flows.duplicates) + (~flows.broken["kept"]).sum() == flows.n_read
    assert (flows.direction, flows.years[:4]) == (direction, years[:4])
    assert flows.threshold.returns == known["documented_threshold"]
    twice = known["duplicate_pairs"]
    assert len(flows.detail) == known["county_pairs"] - twice
    returns = flows.detail["returns"]
    assert returns.min() == known["lowest_published"]
    if not twice:
        assert (returns == returns.min()).sum() == known["cells_at_lowest"]
        assert returns.sum() == known["sum_pairs"]
    assert flows.rows["suppressed"].sum() == known["suppressed_markers"]
    assert (flows.broken["column"] == "returns").sum() == known["other_nonnumeric"]
    if twice:
        doubled = set(flows.duplicates["county"].str[:2])
        assert doubled == {"39"}
        place = ["county", "partner"]
        both = flows.duplicates.merge(flows.rows, on=place)
        assert (both["record"] == "detail").sum() == twice


@pytest.mark.shared_data
@pytest.mark.parametrize(("years", "least"), [("1011", 10), ("1415", 20)])
def test_real_pairs_are_those_of_the_derived_file(shared_data, real, years, least):
    name = {"1011": "irs_2010_2011_pairs_ge10", "1415": "irs_2014_2015_pairs_ge20"}[years]
    derived = pd.read_csv(
        shared_data / "irs" / f"{name}.csv.gz",
        dtype=dict.fromkeys(("origin", "destination", "origin_state", "destination_state"), str),
    )
    inflow, outflow = (real(f"county{d}{years}").flow_frame() for d in ("inflow", "outflow"))
    pairs = ["origin", "destination"]
    union = pd.concat([inflow, outflow]).drop_duplicates(pairs).sort_values(pairs)
    union = union.reset_index(drop=True)
    pd.testing.assert_frame_equal(union.iloc[:, :4], derived.iloc[:, :4], check_dtype=False)
    same = (union["count"] == derived["count"]).mean()
    assert same == 1.0


@pytest.mark.shared_data
@pytest.mark.parametrize("years", ["1011", "1415"])
@pytest.mark.parametrize("direction", ["inflow", "outflow"])
def test_real_margins_are_those_of_the_derived_file(shared_data, real, years, direction):
    name = {"1011": "irs_2010_2011_margins", "1415": "irs_2014_2015_margins"}[years]
    derived = pd.read_csv(shared_data / "irs" / f"{name}.csv.gz", dtype={"county": str})
    derived = derived[derived["direction"] == direction.removesuffix("flow")].set_index("county")
    flows = real(f"county{direction}{years}")

    def column(record: str, category: str) -> pd.Series:
        rows = flows.rows[~flows.rows["county"].str.endswith("000")]
        rows = rows[(rows["record"] == record) & (rows["category"] == category)]
        return rows.set_index("county")["returns"].reindex(derived.index).astype(float)

    for record, prefix in (("total", "total"), ("other flows", "other")):
        for category in ("same state", "different state"):
            known = derived[f"{prefix}_{category.replace(' ', '_')}"]
            pd.testing.assert_series_equal(column(record, category), known, check_names=False)
    for category in ("northeast", "midwest", "south", "west"):
        known = derived[f"other_{category}"]
        pd.testing.assert_series_equal(
            column("other flows", category), known, check_names=False, check_dtype=False
        )
    for record, category, known in (
        ("total", "US and foreign", "total_us_and_foreign"),
        ("total", "foreign", "total_foreign"),
        ("foreign", "other flows", "other_foreign"),
        ("non-migrants", "", "non_migrants"),
    ):
        pd.testing.assert_series_equal(
            column(record, category), derived[known].astype(float), check_names=False
        )
    margins = hidden_margins(flows)
    for scope in ("same state", "different state"):
        own = margins[margins["scope"] == scope].set_index("county")["detail"]
        known = derived[f"published_pairs_{scope.replace(' ', '_')}"].fillna(0)
        assert (own.reindex(derived.index) == known).all()


@pytest.mark.shared_data
def test_published_and_other_add_up_in_2010_2011_and_not_quite_in_2014_2015(real):
    table = real("countyinflow1011").identities
    assert table.loc[("returns", "same state"), "holds"] == 3092  # 3,091, and one without flows
    assert table.loc[("returns", "different state"), "holds"] == 3092
    assert table["gap"].sum() == 0
    margins = hidden_margins(real("countyinflow1011"))
    hidden = margins.groupby("scope")["high"].sum().to_dict()
    assert hidden == {"same state": 276_636, "different state": 1_285_595}
    later = real("countyinflow1415").gaps
    returns = later[later["measure"] == "returns"]
    flows = returns[returns["identity"].isin(["same state", "different state"])]
    assert flows.groupby("identity").size().to_dict() == {"same state": 223, "different state": 227}
    # mostly returns left out of the flows; in nine counties other flows that are not in the total
    assert (flows["gap"] > 0).sum() == 441
    assert not (hidden_margins(real("countyinflow1415"))["low"] > 0).any()


@pytest.mark.shared_data
def test_real_workbook_is_the_state_of_the_csv(shared_data, real):
    book = read_irs_flows(shared_data / "irs" / "co1011iwa.xls")
    whole = real("countyinflow1011").rows
    state = whole[whole["county"].str[:2] == "53"].reset_index(drop=True)
    assert (book.layout, book.years, book.direction) == ("workbook", "2010-2011", "inflow")
    pd.testing.assert_frame_equal(book.rows.drop(columns="line"), state.drop(columns="line"))


@pytest.mark.shared_data
def test_real_workbook_of_both_directions_agrees_with_itself(shared_data):
    path = shared_data / "irs" / "1718wa.xls"
    assert "2 sheets have county flows" in refused(path)
    inflow, outflow = (read_irs_flows(path, direction=d) for d in ("inflow", "outflow"))
    assert inflow.threshold.returns == 20
    assert not len(inflow.below_threshold)
    pairs = [f.flow_frame().query("origin_state == destination_state") for f in (inflow, outflow)]
    pd.testing.assert_frame_equal(*(p.reset_index(drop=True) for p in pairs))
    stayed = [f.non_migrants.drop(columns=["line"]) for f in (inflow, outflow)]
    pd.testing.assert_frame_equal(*stayed)


@pytest.mark.shared_data
def test_real_printed_tables_add_up(shared_data):
    path = shared_data / "irs" / "C9091wai.txt"
    flows = read_irs_flows(path)
    lines = path.read_text().splitlines()
    assert flows.n_read == len(flows.rows) == len(lines)
    # counted by another rule: numbers from the right of the line
    numbers = [re.findall(r"-?[\d.]+", line[36:]) for line in lines]
    flow = sum(int(found[0]) for found in numbers if len(found) == 4)
    total = sum(int(f[0]) for f, line in zip(numbers, lines, strict=True) if line[0] != " ")
    assert flow == total == flows.totals["returns"].sum()
    assert flows.identities.loc[("returns", "all flows"), "holds"] == 39
    assert flows.identities.loc[("exemptions", "all flows"), "holds"] == 39
    assert flows.detail["returns"].min() == 10
