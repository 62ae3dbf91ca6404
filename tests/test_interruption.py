"""A killed run goes on where it was, and ends with the bytes of a run that was left alone."""

import json
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from bayes_sdc.flows.table.simulate import simulate_flows

# chains are kept on disk at every draw, and the risk of every few cells, so that a short run is
# killed between two of them
COMMAND = """
from bayes_sdc.flows.intruder.estimators import estimate as estimators
from bayes_sdc.flows.fit import batches as parts
parts.SAVE_EVERY = 0.0
estimators.AT_ONCE["integrated"] = 4
from bayes_sdc.cli import main
main()
"""


def start(table: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    call = [sys.executable, "-c", COMMAND, "flows", str(table), "--origin", "origin"]
    call += ["--destination", "destination", "--count", "count", "--out", str(out)]
    call += ["--groups", "origin_state,destination_state", "--cores", "2"]
    call += ["--draws", "150", "--tune", "150", "--releases", "3", *more]
    return subprocess.Popen(
        call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # a shell lets what it starts in the background ignore the signal, and children inherit that
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, int]:
    """A table, the folder of a run that was left alone, and its exit code."""
    folder = tmp_path_factory.mktemp("interruption")
    table = folder / "moves.csv"
    simulate_flows(areas=14, states=2, seed=3).to_csv(table, index=False, lineterminator="\n")
    run = start(table, folder / "whole", "--seed", "5")
    run.communicate()
    return table, folder / "whole", run.returncode


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.slow
def test_killed_run_ends_with_the_same_bytes(
    whole: tuple[Path, Path, int], tmp_path: Path, how: signal.Signals
) -> None:
    """A run of hours on a machine that is restarted must neither start anew nor differ."""
    table, undisturbed, code = whole
    chance = random.Random(4)  # noqa: S311
    out = tmp_path / "killed"
    resume = out / "confidential" / "resume"
    for number in range(2):
        # the seed is named once: resuming takes it along
        run = start(table, out, *(["--resume"] if number else ["--seed", "5"]))
        # a run whose fit was through before it was killed has no chains any more
        while not list(resume.glob("chain-*.npz")) and not number and run.poll() is None:
            time.sleep(0.02)
        time.sleep(chance.uniform(0.0, 2.0 if number else 0.5))
        run.send_signal(how)
        run.communicate()
        # chains, or the posterior that took their place where the fit was through
        assert list(resume.glob("*")), "nothing was kept"
        assert not [*out.glob("release/*"), *out.glob("held/*.*")]
    last = start(table, out, "--resume")
    _, errors = last.communicate()
    assert last.returncode == code, errors
    for name in (
        f"{'held' if code else 'release'}/moves_synthetic.csv",
        "confidential/risk_by_cell.csv",
    ):
        assert (out / name).read_bytes() == (undisturbed / name).read_bytes(), name
    assert not resume.exists()


def results(out: Path) -> dict[str, bytes]:
    """All tables of a run, and its record but for when, where and for how long it ran."""
    tables = {path.name: path.read_bytes() for path in sorted(out.glob("*/*.csv"))}
    record = json.loads((out / "confidential" / "run.json").read_text())
    told = {name: record[name] for name in ("risk", "worst_case", "utility", "checks")}
    return {**tables, "record": json.dumps(told).encode()}


@pytest.mark.slow
def test_run_killed_after_the_fit_loses_neither_the_fit_nor_what_followed(
    whole: tuple[Path, Path, int], tmp_path: Path
) -> None:
    """The intruder's risk of a nation takes as long as the fit, and must not start anew either."""
    table, undisturbed, code = whole
    chance = random.Random(5)  # noqa: S311
    out = tmp_path / "killed"
    resume = out / "confidential" / "resume"
    # the first moment at which there is a file of each kind, and a little later
    kinds = ("part-*.npz", "groups-*.parquet", "risk-*/cells-*.npz", "repeats-*.parquet")
    for number, kind in enumerate(kinds):
        run = start(table, out, *(["--resume"] if number else ["--seed", "5"]))
        while not list(resume.glob(kind)) and run.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.1))
        run.send_signal(signal.SIGKILL)
        _, errors = run.communicate()
        # looked at when nothing moves any more: files of chains go when their part is whole
        kept = {path: path.stat().st_mtime_ns for path in resume.rglob("*-*.*")}
        assert run.returncode == -signal.SIGKILL, errors
        assert not [*out.glob("release/*"), *out.glob("held/*.*")]
        assert kept
    last = start(table, out, "--resume")
    while list(resume.glob("*")) and last.poll() is None:
        # what was there is read, not made again
        now = {path: path.stat().st_mtime_ns for path in kept if path.exists()}
        assert all(kept[path] == when for path, when in now.items())
        # nor is it kept twice, under the names of another call
        assert all(
            len(list(resume.glob(kind))) <= 1 for kind in ("groups-*", "risk-*", "repeats-*")
        )
        time.sleep(0.05)
    _, errors = last.communicate()
    assert last.returncode == code, errors
    assert results(out) == results(undisturbed)
    assert not resume.exists()
