"""What goes wrong outside: the disk, the terminal, the system, and names of folders."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from bayes_sdc import cli
from bayes_sdc.commands import terminal

WAITS = """
import time
import typer
from bayes_sdc.commands.terminal import interruptible

app = typer.Typer()

@app.command()
@interruptible("the same command goes on")
def command() -> None:
    print("at work", flush=True)
    time.sleep(60)

app()
"""

TALKS = """
from bayes_sdc.commands.terminal import say
from bayes_sdc.progress import say as say_progress
for _ in range(100):
    say("x" * 10_000)
    say_progress("y" * 10_000)
open("done", "w").close()
"""

FULL = """
import resource
import signal
import sys
from functools import partial
from pathlib import Path
import numpy as np
import xarray as xr
from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.posterior import write_posterior
from bayes_sdc.runs import write_atomically

draws = {name: (("chain", "draw", name + "_effect"), np.zeros((2, 50, 40)))
         for name in ("beta", "gamma")}
tree = xr.DataTree.from_dict({"/": xr.Dataset(), "posterior": xr.Dataset(draws)})
path = Path(sys.argv[1]) / "posterior.nc"
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for room in sys.argv[2:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), resource.RLIM_INFINITY))
    try:
        write_atomically(path, partial(write_posterior, tree))
    except InputError as error:
        print(room, len(list(path.parent.iterdir())), error)
"""


def python(code: str, *arguments: object, **more: object) -> subprocess.Popen[str]:
    call = [sys.executable, "-c", code, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(call, **{**pipes, **more})  # type: ignore[call-overload]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_shutdown_or_a_closed_terminal_ends_with_a_line(name: str) -> None:
    number = getattr(signal, name)
    # the tests themselves may run under nohup, which a process inherits
    default = f"import signal; signal.signal(signal.{name}, signal.SIG_DFL)\n"
    run = python(default + WAITS)
    assert run.stdout is not None
    assert run.stdout.readline() == "at work\n"
    run.send_signal(number)
    _, said = run.communicate(timeout=30)
    assert said == f"ended by {name}; the same command goes on\n"
    assert run.returncode == 128 + number


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_signal_that_nohup_has_ignored_stays_so() -> None:
    run = python("import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + WAITS)
    assert run.stdout is not None
    assert run.stdout.readline() == "at work\n"
    run.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert run.poll() is None
    run.kill()
    run.communicate()


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_pipe_that_is_closed_does_not_end_the_run(closed: str, tmp_path: Path) -> None:
    """`bayes-sdc flows ... | head -1` must not lose hours of work."""
    with python(TALKS, cwd=tmp_path) as run:
        getattr(run, closed).close()
        other = run.stderr if closed == "stdout" else run.stdout
        assert other is not None
        text = other.read()
    assert (tmp_path / "done").exists()
    assert "Traceback" not in text
    assert "BrokenPipe" not in text


@pytest.mark.parametrize("command", [["doctor"], ["approve", "run", "--reason", "x"]])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_every_command_tells_that_it_was_interrupted(
    command: list[str],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With 1 a script would take it for a check that failed."""
    number = getattr(signal, name, signal.SIGINT)
    usual = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
    before = signal.signal(number, usual)

    def at_work(*_: object, **__: object) -> None:
        signal.raise_signal(number)

    monkeypatch.setattr("bayes_sdc.jobs.doctor.examine", at_work)
    monkeypatch.setattr("bayes_sdc.jobs.writing.approve", at_work)
    monkeypatch.setattr(sys, "argv", ["bayes-sdc", *command])
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main()
    finally:
        signal.signal(number, before)
    assert ended.value.code == 128 + number
    assert capsys.readouterr().err.count("; the same command ") == 1


def test_ctrl_c_while_a_command_begins_or_ends_is_no_failed_check(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def begins() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        cli.end_with(begins)
    assert (ended.value.code, capsys.readouterr().err) == (130, "interrupted\n")


COMMAND = "from bayes_sdc.cli import main; main()"


@pytest.mark.parametrize(
    "terminal",
    [
        pytest.param({"PYTHONIOENCODING": "ascii"}, marks=pytest.mark.slow),
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_signs_that_a_terminal_cannot_show_do_not_end_the_run(terminal, tmp_path: Path) -> None:
    """In the locale C a note on a code with an umlaut ended in a traceback."""
    (tmp_path / "t.csv").write_text("o,d,n\nZ\u00fcrich,Bern,3\nBern,Z\u00fcrich ,40\n", "utf-8")
    call = ["audit", "t.csv", "--origin", "o", "--destination", "d", "--count", "n"]
    run = python(COMMAND, *call, cwd=tmp_path, env={**os.environ, **terminal})
    said, errors = run.communicate()
    assert (run.returncode, errors) == (1, "")
    assert "hidden cell" in said
    missing = python(COMMAND, *call[:3], "\u00fc", cwd=tmp_path, env={**os.environ, **terminal})
    _, errors = missing.communicate()
    assert missing.returncode == 2
    assert "Traceback" not in errors


@pytest.mark.skipif(sys.platform == "win32", reason="shells of POSIX")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "> /dev/full"])
def test_a_terminal_that_is_none_does_not_end_the_run(closed: str, tmp_path: Path) -> None:
    if "full" in closed and not Path("/dev/full").exists():
        pytest.skip("the system has no such file")
    (tmp_path / "t.csv").write_text("o,d,n\nA,B,3\nB,A,40\n")
    call = f"'{sys.executable}' -c '{COMMAND}' audit t.csv --origin o --destination d --count n"
    shell = ["sh", "-c", f"{call} --out bounds.csv {closed}"]
    done = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode == 1  # a count is pinned
    assert (tmp_path / "bounds.csv").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_disk_that_fills_leaves_no_part_of_a_posterior(tmp_path: Path) -> None:
    """Inside of HDF5 it would end the process with a segmentation fault."""
    rooms = [0, 100, 4096, 30_000]
    run = python(FULL, tmp_path, *rooms)
    said, errors = run.communicate()
    assert run.returncode == 0, errors
    lines = said.splitlines()
    assert len(lines) == len(rooms)
    for line, room in zip(lines, rooms, strict=True):
        assert line.startswith(f"{room} 0 "), "a part is left behind"
        assert "posterior.nc: cannot be written (File too large)" in line


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize("job", ["flows", "microdata"])
def test_a_limit_in_which_the_libraries_do_not_fit_is_said_before_they_are_loaded(
    job: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """OpenBLAS would end the process with 1, as if a check had failed."""
    limits = {"getrlimit": lambda _: (2**30, -1), "RLIMIT_AS": 9, "RLIM_INFINITY": -1}
    monkeypatch.setattr(terminal, "resource", SimpleNamespace(**limits))
    (tmp_path / "t.csv").write_text("from,to,n\nA,B,3\n")
    ends = ["--origin", "from", "--destination", "to", "--count", "n"]
    columns = ends if job == "flows" else ["--keys", "from,to"]
    file, out = str(tmp_path / "t.csv"), str(tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["bayes-sdc", job, file, *columns, "--out", out])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "1.0 GiB of memory (ulimit -v)" in capsys.readouterr().err
    assert not Path(out).exists()


@pytest.mark.parametrize(
    ("out", "said"), [("", "must name a folder; it is empty"), ("x" * 300, "cannot be a folder")]
)
@pytest.mark.parametrize("job", ["flows", "microdata"])
def test_names_that_no_folder_can_have_are_refused(
    out: str,
    said: str,
    job: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An empty one would write into the present folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("from,to,n\nA,B,3\n")
    ends = ["--origin", "from", "--destination", "to", "--count", "n"]
    columns = ends if job == "flows" else ["--keys", "from,to"]
    monkeypatch.setattr(sys, "argv", ["bayes-sdc", job, "t.csv", *columns, "--out", out])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
