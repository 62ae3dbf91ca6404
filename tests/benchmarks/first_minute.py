"""What a new user waits for: the first runs on a machine, and later ones, as a Markdown table.

Run: python tests/benchmarks/first_minute.py [--repeats 3] [--only demo flows microdata]
Every run is a process of its own. "New machine" has empty caches of numba, PyTensor and Matplotlib.
Seconds are medians; those of the processor tell more than those of the clock where others work on
the machine too.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import NamedTuple

SMALL_CELLS = 2000
SOFTWARE = ("bayes-sdc", "numpy", "numba", "pymc", "scipy")
KEYS = "region,sex,age,marital_status,birth_place"
GOALS = {
    "demo, new machine": "100 s, 60 functions",
    "demo, again": "40 s",
    "flows of 2,000 small cells, new machine": "60 s",
    "flows of 2,000 small cells, again": "10 s",
    "microdata of 5,000 records, again": "8 s",
}
#: Read by every process at its start: notes what numba compiles there, in those that compile ahead
#: too. Functions that come from a cache are not compiled, so they are not counted.
COUNTING = """
import atexit, importlib.util, json, os, sys

class AfterNumba:
    def find_spec(self, name, path=None, target=None):
        if name != "numba":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (load(module), count())
        return spec

def count():
    from numba.core import event
    names = []
    class Listener(event.Listener):
        def on_start(self, found):
            function = found.data["dispatcher"].py_func
            names.append(f"{function.__module__}.{function.__qualname__}")
        def on_end(self, found):
            pass
    event.register("numba:compile", Listener())
    def write():
        with open(os.path.join(os.environ["FIRST_MINUTE"], f"{os.getpid()}.json"), "w") as file:
            json.dump(names, file)
    atexit.register(write)

sys.meta_path.insert(0, AfterNumba())
"""


class Run(NamedTuple):
    """One process: seconds of the clock and of the processor, and what numba compiled."""

    wall: float
    processor: float
    compiled: list[str]


def run(arguments: list[str], caches: Path) -> Run:
    """Run the command in a process of its own, with these caches."""
    names = Path(tempfile.mkdtemp(dir=caches))
    (names / "sitecustomize.py").write_text(COUNTING, encoding="utf-8")
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(caches / "numba"),
        "PYTENSOR_FLAGS": f"compiledir={caches / 'pytensor'}",
        "MPLCONFIGDIR": str(caches / "matplotlib"),
        "PYTHONPATH": os.pathsep.join([str(names), os.environ.get("PYTHONPATH", "")]),
        "FIRST_MINUTE": str(names),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's Python keeps what it has read
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "bayes_sdc.cli", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - clock
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):  # 1: done, but a limit or a diagnostic failed
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    compiled = [json.loads(path.read_text(encoding="utf-8")) for path in names.glob("*.json")]
    return Run(wall, processor, [name for one in compiled for name in one])


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the command of each job, without its output folder."""
    from bayes_sdc.flows.table.simulate import simulate_flows
    from bayes_sdc.microdata.file.simulate import example_persons_path

    simulate_flows(small=SMALL_CELLS, seed=1).to_csv(folder / "flows.csv", index=False)
    columns = "--origin origin --destination destination --count count"
    columns += " --groups origin_state,destination_state --seed 1"
    return {
        "demo": ["demo"],
        "flows": ["flows", str(folder / "flows.csv"), *columns.split()],
        "microdata": [
            "microdata", str(example_persons_path()), "--keys", KEYS, "--weight", "weight",
            "--seed", "1",
        ],
    }  # fmt: skip


def measure(only: list[str], repeats: int) -> dict[str, list[Run]]:
    """Run each job on empty caches and once more, as often as asked for."""
    titles = {
        "demo": "demo",
        "flows": "flows of 2,000 small cells",
        "microdata": "microdata of 5,000 records",
    }
    found: dict[str, list[Run]] = {}
    for repeat in range(repeats):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for job, command in commands(folder).items():
                if job not in only:
                    continue
                caches = folder / f"caches-{job}"
                caches.mkdir()
                for when in ("new machine", "again"):
                    out = folder / f"{job}-{repeat}-{when.replace(' ', '-')}"
                    result = run([*command, "--out", str(out)], caches)
                    found.setdefault(f"{titles[job]}, {when}", []).append(result)
                    sys.stderr.write(
                        f"{titles[job]}, {when}: {result.wall:.0f} s, {result.processor:.0f} s of "
                        f"the processor, {len(result.compiled)} functions compiled\n"
                    )
                    sys.stderr.flush()
    return found


def markdown(found: dict[str, list[Run]], repeats: int) -> str:
    """Return the table."""
    lines = [
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; Python "
        f"{platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in SOFTWARE)
        + f"; medians of {repeats}",
        "",
        "| work | seconds | of the processor | numba functions compiled | goal |",
        "|---|---|---|---|---|",
    ]
    for work, runs in found.items():
        wall, processor = median(r.wall for r in runs), median(r.processor for r in runs)
        number = median(len(r.compiled) for r in runs)
        goal = GOALS.get(work, "")
        lines.append(f"| {work} | {wall:.1f} | {processor:.1f} | {number:g} | {goal} |")
    lines.append("")
    for work, runs in found.items():
        if names := runs[0].compiled:
            ours = [name for name in names if name.startswith("bayes_sdc")]
            lines.append(
                f"{work}: of {len(names)} functions that numba compiled {len(ours)} are the "
                f"package's own, {len(set(ours))} by name; the others are parts of numba."
            )
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    jobs = ["demo", "flows", "microdata"]
    parser.add_argument("--only", nargs="+", choices=jobs, default=jobs)
    arguments = parser.parse_args()
    found = measure(arguments.only, arguments.repeats)
    sys.stdout.write(markdown(found, arguments.repeats) + "\n")


if __name__ == "__main__":
    main()
