"""The largest work, as one Markdown table: seconds, memory, and the goal of each row.

Run: python tests/benchmarks/all.py [ROW ...] [--repeats 3] [--out table.md] [--list]

Without names of rows those run that take a minute or less. Every repeat is a process of its own;
files are made before, from fixed seeds. Seconds are medians of the clock and of the processor
(children included); the latter tell more where others work on the machine too. Memory is the
largest resident set of the repeats; a process counts that of the one that started it, so files are
made by another. A repeat that fails is told, and has no median.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import pandas as pd

SOFTWARE = ("bayes-sdc", "numpy", "numba", "pandas", "pyarrow", "pymc")
HELD = (0, 1)  # exit codes of a run that ended: nothing failed, or the release is held
MEBIBYTE = 1024 if sys.platform != "darwin" else 2**20  # units of ru_maxrss in one
COMMAND = (sys.executable, "-c", "from bayes_sdc.cli import main; main()")
READ = "from bayes_sdc import read_flows, read_microdata; import sys; "
FLOWS = READ + "read_flows(sys.argv[1], origin='from', destination='to', count='n')"
KEYS = tuple(f"k{place}" for place in range(8))
LEVELS = (2, 90, 12, 8, 6, 30, 5, 4)  # of the keys, whose numbers multiply to 10^8 or so
PERSONS = READ + f"read_microdata(sys.argv[1], keys={KEYS!r}, weight='w')"


def flows(path: Path, rows: int) -> None:
    """Write a table of flows with that many rows, three quarters of them small."""
    rng = np.random.default_rng(29)
    areas = int((1.6 * rows) ** 0.5)
    place = np.sort(rng.choice(areas * areas, rows, replace=False))
    codes = np.array([f"{area:05d}" for area in range(areas)])
    table = {"from": codes[place // areas], "to": codes[place % areas]}
    pd.DataFrame({**table, "n": rng.geometric(0.15, rows)}).to_csv(path, index=False)


def wide(path: Path, columns: int) -> None:
    """Write a table of flows with that many further columns."""
    more = [f"c{place}" for place in range(columns)]
    ends = [(a, b) for a in "ABCD" for b in "ABCD" if a != b]
    lines = [["from", "to", "n", *more], *([a, b, "12", *more] for a, b in ends)]
    path.write_text("\n".join(map(",".join, lines)) + "\n", encoding="utf-8")


def persons(path: Path, records: int) -> None:
    """Write a file of persons whose keys hang together by a hidden class."""
    rng = np.random.default_rng(30)
    classes = rng.integers(0, 20, records)
    columns = {}
    for key, levels in zip(KEYS, LEVELS, strict=True):
        weights = rng.dirichlet(np.full(levels, 0.3), 20).cumsum(axis=1)
        draws = rng.random(records)[:, None]
        columns[key] = (weights[classes] < draws).sum(axis=1).clip(max=levels - 1)
    frame = pd.DataFrame(columns).assign(w=rng.uniform(5, 40, records).round(2))
    frame.to_csv(path, index=False)


class Row(NamedTuple):
    """A line of the table: what is made, what is run, and what it may take."""

    about: str
    make: Callable[[Path], None] | None
    call: tuple[str, ...]  # FILE and OUT stand for paths
    goal: str
    long: bool = False


def job(*arguments: str) -> tuple[str, ...]:
    """Return a command of the package with its input and output."""
    return (*COMMAND, arguments[0], "FILE", *arguments[1:], "--out", "OUT")


PERSON = ("--keys", ",".join(KEYS), "--weight", "w")
ROWS = {
    "read-flows": Row(
        "reading 2,000,000 flows",
        partial(flows, rows=2_000_000),
        (sys.executable, "-c", FLOWS, "FILE"),
        "5 s",
    ),
    "wide": Row(
        "reading flows with 200,000 columns",
        partial(wide, columns=200_000),
        (sys.executable, "-c", FLOWS, "FILE"),
        "2 s",
    ),
    "read-persons": Row(
        "reading 1,000,000 persons with 8 keys",
        partial(persons, records=1_000_000),
        (sys.executable, "-c", PERSONS, "FILE"),
        "",
    ),
    "persons-small": Row(
        "microdata job, 20,000 persons with 8 keys",
        partial(persons, records=20_000),
        job("microdata", *PERSON, "--seed", "1"),
        "",
    ),
    "persons": Row(
        "microdata job, 1,000,000 persons with 8 keys",
        partial(persons, records=1_000_000),
        job("microdata", *PERSON, "--seed", "1"),
        "60 s, 3 GB",
        long=True,
    ),
    "demo": Row("demo", None, (*COMMAND, "demo", "--out", "OUT"), "40 s"),
    "nation": Row(
        "flows job, a nation of 515,000 small cells",
        None,
        (
            "sh",
            "-c",
            f"'{sys.executable}' -m bayes_sdc.cli simulate FILE --areas 3142 --states 51 "
            f"--small 515000 --seed 7 && '{sys.executable}' -m bayes_sdc.cli flows FILE "
            "--origin origin --destination destination --count count --groups "
            "origin_state,destination_state --draws 250 --tune 60 --seed 11 --out OUT",
        ),
        "a third of 16:47, 3 GB",
        long=True,
    ),
}


class Run(NamedTuple):
    """One process."""

    code: int
    wall: float
    processor: float
    mebibytes: float


def run(row: Row, file: Path, out: Path) -> Run:
    """Run a row once."""
    names = {"FILE": str(file), "OUT": str(out)}
    call = [names.get(part, part) for part in row.call]
    if call[0] == "sh":
        call[2] = call[2].replace("FILE", str(file)).replace("OUT", str(out))
    begin = time.monotonic()
    process = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = used.ru_utime + used.ru_stime
    return Run(process.returncode, time.monotonic() - begin, seconds, used.ru_maxrss / MEBIBYTE)


def line(row: Row, runs: list[Run]) -> str:
    """Return a line of the table.

    Examples
    --------
    >>> line(Row("a", None, (), "5 s"), [Run(0, 3.0, 2.0, 100.0), Run(0, 5.0, 2.5, 90.0)])
    '| a | 4.0 | 2.2 | 100 | 5 s |'
    >>> line(Row("a", None, (), ""), [Run(2, 3.0, 2.0, 100.0)])
    '| a | failed: exit code 2 |  |  |  |'
    """
    bad = [one.code for one in runs if one.code not in HELD]
    if bad:
        return f"| {row.about} | failed: exit code {bad[0]} |  |  | {row.goal} |"
    wall, processor = (median(one[field] for one in runs) for field in (1, 2))
    return (
        f"| {row.about} | {wall:.1f} | {processor:.1f} | {max(one[3] for one in runs):.0f} | "
        f"{row.goal} |"
    )


def heading(repeats: int) -> list[str]:
    """Say on what machine, with what, and name the columns."""
    model = platform.processor() or platform.machine()
    cpu = Path("/proc/cpuinfo")
    if cpu.exists():
        said = [x for x in cpu.read_text(encoding="utf-8").splitlines() if "model name" in x]
        model = said[0].partition(":")[2].strip() if said else model
    software = ", ".join(f"{name} {version(name)}" for name in SOFTWARE)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    return [
        f"{model}, {os.cpu_count()} cores, {platform.system()}, Python "
        f"{platform.python_version()}, {software}. Medians of {repeats}; load before: {load}.",
        "",
        "| work | s of the clock | s of the processor | MiB at most | goal |",
        "|---|---|---|---|---|",
    ]


def main() -> None:
    """Run rows, and write the table after each of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []], help="by default the short ones")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="Markdown file; by default the terminal")
    parser.add_argument("--list", action="store_true", help="name the rows and end")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(f"{name:<14} {row.about}" for name, row in ROWS.items()))
        return
    table = heading(asked.repeats)
    print("\n".join(table), flush=True)
    for name in asked.rows or [name for name, row in ROWS.items() if not row.long]:
        row = ROWS[name]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "file.csv"
            if row.make is not None:
                made = get_context("spawn").Process(target=row.make, args=(file,))
                made.start()
                made.join()
            runs = [run(row, file, Path(folder) / str(k)) for k in range(asked.repeats)]
        table.append(line(row, runs))
        print(table[-1], flush=True)
        if asked.out is not None:
            asked.out.write_text("\n".join(table) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
