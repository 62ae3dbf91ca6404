"""The slow lane by one command, and its verdicts on one page.

Run: python tests/validation/slow_lane.py [WORD ...] [--limit 900] [--total 3600] [--anew]

Every test marked slow runs in a process of its own, with a limit of seconds; a test of several
parameters counts once. The page ``slow_lane.md`` beside this file is written after each of them, so
that an interrupted run goes on where it stopped: tests with a verdict are not run again unless that
is asked for. Those that ran shortest come first. Words choose tests by parts of their names. Seeds
are those that stand in the test; hypothesis gets one of its own.
"""

import argparse
import ast
import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PAGE = HERE / "slow_lane.md"
HYPOTHESIS_SEED = 1
NOT_RUN = "not run"
COLUMNS = ("test", "verdict", "cpu s", "date", "commit", "seeds")
SOFTWARE = ("numpy", "scipy", "numba", "pymc", "arviz", "pandas")


class Verdict(NamedTuple):
    """A line of the page."""

    test: str
    verdict: str = NOT_RUN
    seconds: str = ""
    date: str = ""
    commit: str = ""
    seeds: str = ""


def as_row(verdict: Verdict) -> str:
    """Return a line of the table.

    Examples
    --------
    >>> as_row(Verdict("tests/a.py::test_b", "pass", "12", "2026-11-29", "abc", "1, 2"))
    '| tests/a.py::test_b | pass | 12 | 2026-11-29 | abc | 1, 2 |'
    """
    return f"| {' | '.join(verdict)} |"


def of_row(line: str) -> Verdict | None:
    """Return what a line of the table says; None for any other line.

    Examples
    --------
    >>> of_row("| tests/a.py::test_b | not run |  |  |  | 7 |").seeds
    '7'
    >>> of_row("| test | verdict | cpu s | date | commit | seeds |") is None
    True
    """
    cells = [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
    return Verdict(*cells) if len(cells) == len(COLUMNS) and "::" in cells[0] else None


def seeds_in(function: ast.FunctionDef) -> list[int]:
    """Whole numbers that a test uses as seeds.

    Examples
    --------
    >>> seeds_in(ast.parse("def test_x():\\n    f(default_rng(3), seed=5)").body[0])
    [3, 5]
    """
    found: set[int] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            said = [one.value for one in node.keywords if one.arg == "seed"]
            given = [*said, *(node.args[:1] if name == "default_rng" else [])]
            found |= {
                one.value
                for one in given
                if isinstance(one, ast.Constant) and isinstance(one.value, int)
            }
    return sorted(found)


def slow_tests() -> dict[str, str]:
    """Return all tests marked slow, and their seeds in words."""
    call = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "slow", "tests"]
    listed = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line.split("[")[0].strip() for line in listed.stdout.splitlines()]
    names = dict.fromkeys(line for line in lines if re.fullmatch(r"\S+\.py::\S+", line))
    if not names:
        raise SystemExit(f"no slow test was found:\n{listed.stdout}\n{listed.stderr}")
    functions = {
        (path, node.name): ", ".join(map(str, seeds_in(node)))
        for path in {name.split("::")[0] for name in names}
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    return {name: functions.get((name.split("::")[0], name.split("::")[-1]), "") for name in names}


def run(test: str, limit: float) -> tuple[str, float]:
    """Run one test, and return its verdict and the seconds of the processor."""
    call = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "slow", "-p", "no:cacheprovider"]
    call += [f"--hypothesis-seed={HYPOTHESIS_SEED}", test]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        verdict = f"out of time after {limit:g} s"
    else:
        tally = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
        verdict = "pass" if done.returncode == 0 and " passed" in tally else "FAIL"
        if done.returncode == 0 and " passed" not in tally:
            verdict = "skipped"
        if verdict == "FAIL":
            print(done.stdout[-3000:] + done.stderr[-1000:], flush=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return verdict, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_page(verdicts: Sequence[Verdict]) -> None:
    """Write the page, whole or not at all."""
    kinds = [v.verdict.split(" after")[0] for v in verdicts]
    tally = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(sorted(kinds)))
    software = ", ".join(f"{name} {version(name)}" for name in SOFTWARE)
    text = [
        "# Verdicts of the slow lane",
        "",
        "Written by `python tests/validation/slow_lane.py`: every test marked slow, what came of",
        "it, the seconds of the processor, the day, the commit it ran on, and the seeds that stand",
        f"in the test (hypothesis has seed {HYPOTHESIS_SEED}). A test that was not run has no",
        "verdict: nothing is claimed of it.",
        "",
        f"{len(verdicts)} tests: {tally}. Last written on {platform.machine()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {software}.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
        *map(as_row, sorted(verdicts)),
    ]
    temporary = PAGE.with_suffix(".part")
    temporary.write_text("\n".join(text) + "\n", encoding="utf-8")
    temporary.replace(PAGE)


def known() -> Iterator[Verdict]:
    """Verdicts that the page has."""
    for line in PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []:
        if (verdict := of_row(line)) is not None:
            yield verdict


def main() -> None:
    """Run what has no verdict, and keep the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of names; by default all tests")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds a test")
    parser.add_argument("--total", type=float, default=float("inf"), help="seconds in all")
    parser.add_argument("--anew", action="store_true", help="also tests that have a verdict")
    asked = parser.parse_args()
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    seeds = slow_tests()
    before = {verdict.test: verdict for verdict in known()}
    page = {test: before.get(test, Verdict(test))._replace(seeds=seeds[test]) for test in seeds}
    write_page(list(page.values()))
    chosen = [t for t in page if not asked.words or any(word in t for word in asked.words)]
    chosen.sort(key=lambda test: float(page[test].seconds or "inf"))
    begin = time.monotonic()
    for test in chosen:
        verdict = page[test].verdict
        if not asked.anew and (verdict in ("pass", "skipped") or verdict.startswith("FAIL")):
            continue
        left = asked.total - (time.monotonic() - begin)
        if left <= 0:
            break
        verdict, seconds = run(test, min(asked.limit, left))
        today = datetime.now(UTC).date().isoformat()
        page[test] = Verdict(test, verdict, f"{seconds:.0f}", today, commit, seeds[test])
        write_page(list(page.values()))
        print(as_row(page[test]), flush=True)


if __name__ == "__main__":
    main()
