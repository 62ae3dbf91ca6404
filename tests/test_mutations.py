"""Files that were damaged by chance: each is read or refused, and nothing else happens.

Every reader gets files of the forms it knows, with bytes flipped, cut out, doubled or moved, and
texts put in that have broken readers before. The short run is part of the fast tests; the long one
is a test marked slow, and ``python tests/test_mutations.py NUMBER SEED`` runs any number of them
and says how many were read, how many refused, and what failed.
"""

import gzip
import io
import json
import random
import sqlite3
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pandas as pd
import pytest

from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.audit import audit_totals
from bayes_sdc.flows.audit.holes import audit_holes
from bayes_sdc.flows.fit.checkpoint import kept_call
from bayes_sdc.flows.fit.sealed import read_arrays, write_arrays
from bayes_sdc.flows.release.synthetic.earlier import earlier_counts
from bayes_sdc.flows.table.covariates import read_areas, read_neighbours
from bayes_sdc.flows.table.read import FlowTable, read_flows
from bayes_sdc.io.fixed_width import read_fixed_width
from bayes_sdc.io.form import FileForm
from bayes_sdc.irs.read import read_irs_flows
from bayes_sdc.irs.simulate import example_irs_path
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.policy import read_policy
from bayes_sdc.runs import RunFolder, read_record
from bayes_sdc.shapes import read_shapes

LONGEST = 10.0  # seconds that a reader may take for a file of some kilobytes
ODD = [
    b"\0", b"\r", b"\n\n", b'"', b'""', b"'", b";", b",,", b"\t", b"\xff\xfe", b"\xef\xbb\xbf",
    b"\xc3", b"=1+1", b"-1", b"*", b"<5", b"1.000", b"1,076", b"1e400", b"9" * 400, b"9" * 5000,
    b"nan", b"inf", b"NA", b"[" * 2000, b"{" * 2000, b"PAR1", b"PK\x03\x04", b"\x1f\x8b", b"null",
    b"sep=;\n", b"x" * 200_000,
]  # fmt: skip


class Kind(NamedTuple):
    """A reader, the name of a file for it, and a good one."""

    suffix: str
    content: bytes
    read: Callable[[Path], object]


def _flows(path: Path) -> object:
    return read_flows(path, origin="from", destination="to", count="n", groups="year")


def _frame() -> pd.DataFrame:
    rows = [("01", "02", 3, "2019"), ("02", "01", 17, "2020"), ("01", "03", 400, "2019")]
    return pd.DataFrame(rows, columns=["from", "to", "n", "year"])


def _persons() -> pd.DataFrame:
    return pd.DataFrame(
        {"sex": list("mffm") * 5, "age": [20, 30, 40, 50] * 5, "w": 1.5, "hid": list("1122") * 5}
    )


def _written(write: Callable[[Path], object], name: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


def _table() -> FlowTable:
    return read_flows(_frame(), origin="from", destination="to", count="n", groups="year")


def _people(path: Path) -> object:
    return read_microdata(path, keys=["sex", "age"], weight="w", household="hid")


def _people_of_por(path: Path) -> object:
    return read_microdata(path, keys=["SEX", "AGE"], weight="W", household="HID")


def _database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute('CREATE TABLE t ("from" TEXT, "to" TEXT, n INTEGER, year TEXT)')
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", _frame().to_numpy().tolist())


def _shapes(kind: str) -> bytes:
    ring = [[0, 0], [4, 0], [4, 4], [0, 0]]
    if kind == "GeoJSON":
        features = [
            {"properties": {"code": code}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
            for code in ("01", "02")
        ]
        return json.dumps({"type": "FeatureCollection", "features": features}).encode()
    shapes = [{"type": "Polygon", "arcs": [[0]], "properties": {"code": c}} for c in ("01", "02")]
    content = {
        "type": "Topology",
        "transform": {"scale": [1, 1], "translate": [0, 0]},
        "arcs": [ring],
        "objects": {"areas": {"type": "GeometryCollection", "geometries": shapes}},
    }
    return json.dumps(content).encode()


POLICY = b'name = "Board"\ndate = 2026-01-15\n[flows]\nr_all = 0.3\n[microdata]\nk = 3\n'
EUROSTAT = b"freq,from,to\\year\t2019 \t2020 \nA,01,02\t3 b\t: \nA,02,01\t17 \t12 p\n"
LAYOUT = b"name,start,end\nfrom,1,2\nto,3,4\nn,5,5\n"
TOTALS = b"from,n\n01,403\n02,17\n"
MATRIX = b",01,02\n01,400,3\n02,17,\n"
RECORD = b'{"written": ["release/report.html"], "checks": []}'


def kinds() -> dict[str, Kind]:
    """All readers with the files they read."""
    flows, persons = _frame(), _persons()
    csv_flows = flows.to_csv(index=False).encode()
    csv_persons = persons.to_csv(index=False, sep=";").encode()
    parquet = io.BytesIO()
    flows.to_parquet(parquet)
    people = io.BytesIO()
    persons.to_parquet(people)
    found = {
        "flows.csv": Kind("csv", csv_flows, _flows),
        "flows.csv.gz": Kind("csv.gz", gzip.compress(csv_flows, mtime=0), _flows),
        "flows.parquet": Kind("parquet", parquet.getvalue(), _flows),
        "holes": Kind(
            "csv",
            csv_flows.replace(b",3,", b",*,"),
            lambda path: audit_holes(
                path, origin="from", destination="to", count="n", groups="year", marks=["*"]
            ),
        ),
        "matrix": Kind(
            "csv",
            MATRIX,
            lambda path: read_flows(
                path, origin="from", destination="to", count="n", form=FileForm(wide=True)
            ),
        ),
        "eurostat": Kind(
            "tsv",
            EUROSTAT,
            lambda path: read_flows(
                path, origin="from", destination="to", count="OBS_VALUE", groups="year"
            ),
        ),
        "sqlite": Kind(
            "db",
            _written(_database, "t.db"),
            lambda path: read_flows(
                path,
                origin="from",
                destination="to",
                count="n",
                form=FileForm(query="SELECT * FROM t"),
            ),
        ),
        "totals": Kind("csv", TOTALS, lambda path: audit_totals(_table(), published=[path])),
        "earlier": Kind("csv", csv_flows, lambda path: earlier_counts(_table(), [path]).tolist()),
        "layout": Kind("csv", LAYOUT, lambda path: read_fixed_width(b"01023\n02011\n", "w", path)),
        "persons.csv": Kind("csv", csv_persons, _people),
        "one column": Kind("csv", b"k\n1\n\n2\n", lambda path: read_microdata(path, keys=["k"])),
        "persons.parquet": Kind("parquet", people.getvalue(), _people),
        "areas": Kind("csv", csv_flows, lambda path: read_areas(path, area="to")),
        "neighbours": Kind("csv", csv_flows, read_neighbours),
        "irs": Kind(
            "csv",
            Path(example_irs_path("inflow")).read_bytes()[:4000].rpartition(b"\n")[0] + b"\n",
            lambda path: read_irs_flows(path, direction="inflow", years="2010-2011"),
        ),
        "policy": Kind("toml", POLICY, read_policy),
        "record": Kind("json", RECORD, _record),
        "call": Kind("json", b'{"seed": 12, "draws": 100}', _call),
        "checkpoint": Kind(
            "npz",
            _written(lambda path: write_arrays(path, {"a": pd.Series([1.0]).to_numpy()}), "a.npz"),
            read_arrays,
        ),
        **{
            kind: Kind(
                "json", _shapes(kind), lambda path: read_shapes(path, key="code", codes=["01"])
            )
            for kind in ("GeoJSON", "TopoJSON")
        },
    }
    if find_spec("openpyxl") is not None:
        book = _written(lambda path: flows.to_excel(path, index=False), "t.xlsx")
        found["workbook"] = Kind("xlsx", book, _flows)
    try:
        import pyreadstat
    except ImportError:
        return found
    for suffix in ("sav", "dta", "por"):
        write = getattr(pyreadstat, f"write_{suffix}")
        content = _written(lambda path, write=write: write(persons, str(path)), f"p.{suffix}")
        found[suffix] = Kind(suffix, content, _people if suffix != "por" else _people_of_por)
    return found


def _record(path: Path) -> object:
    folder = path.parent / "confidential"
    folder.mkdir(exist_ok=True)
    path.rename(folder / "run.json")
    return read_record(RunFolder(path.parent, path.parent / "release", folder))


def _call(path: Path) -> object:
    path.rename(path.parent / "call.json")
    return kept_call(path.parent)


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Damage a file in one to four places."""
    data = bytearray(content)
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        place = chance.randrange(len(data) + 1)
        what = max(chance.randrange(-4, 7), 0)
        if what == 0 and place < len(data):
            data[place] ^= 1 << chance.randrange(8)
        elif what == 1:
            del data[place : place + chance.randint(1, 40)]
        elif what == 2:
            data[place:place] = data[max(0, place - chance.randint(1, 60)) : place]
        elif what == 3:
            data[place:place] = chance.choice(ODD)
        elif what == 4:
            data[place : place + chance.randint(1, 8)] = chance.choice(ODD)
        elif what == 5:
            lines = bytes(data).split(b"\n")
            chance.shuffle(lines)
            data = bytearray(b"\n".join(lines))
        elif what == 6:
            del data[place:]
    return bytes(data)


def run(number: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Read that many damaged files, and count what came of them.

    Returns
    -------
    Counter, list of str
        By reader and end; what failed, with reader, number and seed.
    """
    found = kinds()
    names = sorted(found)
    ends: Counter[str] = Counter()
    failed = []
    for trial in range(number):
        name = names[trial % len(names)]
        # a text as seed, so that a trial is the same whatever else is run
        chance = random.Random(f"{seed} {name} {trial}")  # noqa: S311
        kind = found[name]
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"file.{kind.suffix}"
            path.write_bytes(mutated(kind.content, chance))
            start = time.monotonic()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    kind.read(path)
                end = "read"
            except InputError:
                end = "refused"
            except Exception as error:
                end = "failed"
                failed.append(f"{name}, trial {trial}, seed {seed}: {error!r:.200}")
            seconds = time.monotonic() - start
            if seconds > LONGEST:
                failed.append(f"{name}, trial {trial}, seed {seed}: took {seconds:.0f} s")
            left = [p.name for p in Path(folder).rglob("*") if p.is_file() and p.name != path.name]
            if set(left) - {"run.json", "call.json"}:
                failed.append(f"{name}, trial {trial}, seed {seed}: left {left}")
        ends[f"{name}: {end}"] += 1
    return ends, failed


def test_undamaged_files_are_read(tmp_path: Path) -> None:
    """Else every mutation is refused for that, and the run says nothing."""
    for number, (name, kind) in enumerate(kinds().items()):
        (tmp_path / str(number)).mkdir()
        path = tmp_path / str(number) / f"file.{kind.suffix}"
        path.write_bytes(kind.content)
        assert kind.read(path) is not None, name


def test_damaged_files_are_read_or_refused() -> None:
    ends, failed = run(240, seed=1)
    assert not failed, "\n".join(failed)
    both = Counter(end.rpartition(": ")[2] for end in ends.elements())
    assert min(both["read"], both["refused"]) > 20


@pytest.mark.slow
def test_a_hundred_thousand_damaged_files_are_read_or_refused() -> None:
    _, failed = run(100_000, seed=2)
    assert not failed, "\n".join(failed[:50])


if __name__ == "__main__":
    counted, wrong = run(int(sys.argv[1]), int(sys.argv[2]))
    for end, times in sorted(counted.items()):
        print(f"{times:>8,}  {end}")
    print("\n".join(wrong))
    print(f"{counted.total():,} files, {len(wrong)} failed")
