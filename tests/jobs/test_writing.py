"""The protocol of writing a run: what a failed check holds back, and how it gets out."""

import json
import stat
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bayes_sdc import runs
from bayes_sdc.checks import Check, Verdict
from bayes_sdc.errors import InputError
from bayes_sdc.jobs import writing
from bayes_sdc.jobs.writing import approve, csv_writer, text_writer, write_run

TABLE = pd.DataFrame({"a": ["ä", "b"], "n": [1, 2]})


def write(out: Path, verdict: Verdict, *, resume: bool = False) -> writing.WrittenRun:
    return write_run(
        runs.open_run(out, resume=resume),
        confidential={"risk.csv": csv_writer(TABLE, index=False), "report.html": text_writer("ä")},
        public={"report.html": b"outside", "moves_synthetic.csv": b"a,n\nb,3\n"},
        record={"seed": 1, "input": {"sha256": "none"}, "checks": [{"verdict": verdict}]},
        checks=[Check("limit r_all", verdict, "0.4 > 0.3", key="limit_r_all")],
    )


def record(out: Path) -> dict:
    return json.loads((out / "confidential" / "run.json").read_text(encoding="utf-8"))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_run_whose_checks_pass_is_released(tmp_path: Path) -> None:
    done = write(tmp_path, "look")
    assert [path.relative_to(tmp_path).as_posix() for path in done.public] == [
        "release/moves_synthetic.csv",
        "release/report.html",
    ]
    assert done.failed == ()
    assert "held" not in record(tmp_path)
    assert not (tmp_path / "held").exists()
    assert (tmp_path / "confidential" / "risk.csv").read_bytes() == "a,n\nä,1\nb,2\n".encode()
    assert {mode(path) for path in done.confidential} == {0o600}


def test_a_failed_check_holds_the_release_where_its_owner_alone_can_read_it(tmp_path: Path) -> None:
    """Else somebody takes it away before they read that it fails."""
    done = write(tmp_path, "fail")
    assert done.failed == ("limit r_all",)
    assert list((tmp_path / "release").iterdir()) == []
    assert mode(tmp_path / "held") == 0o700
    assert {mode(path) for path in (tmp_path / "held").iterdir()} == {0o600}
    assert set(record(tmp_path)["written"]) == {
        "confidential/risk.csv",
        "confidential/report.html",
        "confidential/run.json",
        "held/report.html",
        "held/moves_synthetic.csv",
    }


@pytest.mark.parametrize("resume", [False, True])
def test_a_held_run_is_finished_and_not_replaced(tmp_path: Path, resume: bool) -> None:
    write(tmp_path, "fail")
    with pytest.raises(InputError, match="holds a finished run, whose release is held"):
        runs.check_out(tmp_path, resume=resume)
    assert (tmp_path / "held" / "moves_synthetic.csv").exists()


def test_a_run_that_was_killed_while_it_wrote_what_is_held_is_resumed(tmp_path: Path) -> None:
    """And what it held goes when the resumed run, with another policy, passes."""
    write(tmp_path, "fail")
    (tmp_path / "confidential" / "resume").mkdir()
    with pytest.raises(InputError, match="holds an interrupted run"):
        runs.check_out(tmp_path)
    done = write(tmp_path, "pass", resume=True)
    assert not (tmp_path / "held").exists()
    assert not (tmp_path / "confidential" / "resume").exists()
    assert {path.parent.name for path in done.public} == {"release"}


@pytest.mark.parametrize("verdict", ["pass", "fail"])
@pytest.mark.parametrize("written", [0, 1])
def test_a_run_that_ended_before_its_release_was_whole_is_not_finished(
    verdict: Verdict, written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a full disk leaves half a release, and the same command is refused from then on."""
    room = iter(range(written))

    def full(path: Path, content: bytes, *, private: bool) -> None:
        if next(room, None) is None:
            raise InputError(f"{path}: cannot be written (No space left on device)")
        runs.write_bytes(path, content, private=private)

    with monkeypatch.context() as patched:
        patched.setattr(writing, "write_bytes", full)
        with pytest.raises(InputError, match="No space"):
            write(tmp_path, verdict)
    with pytest.raises(InputError, match="holds no finished run"):
        runs.finished_run(tmp_path)
    done = write(tmp_path, verdict)
    assert all(path.exists() for path in done.public)
    assert runs.finished_run(tmp_path) == done.folder
    assert "unfinished" not in record(tmp_path)


def test_files_of_somebody_else_in_held_are_refused(tmp_path: Path) -> None:
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match=r"thesis\.tex: was not written by an earlier run"):
        runs.open_run(tmp_path)


def test_an_approved_release_leaves_with_reason_and_date(tmp_path: Path) -> None:
    write(tmp_path, "fail")
    moved, failed = approve(tmp_path, reason="  the board agreed on 3 May ")
    assert failed == ["limit r_all"]
    assert [path.relative_to(tmp_path).as_posix() for path in moved] == [
        "release/moves_synthetic.csv",
        "release/report.html",
    ]
    assert (tmp_path / "release" / "moves_synthetic.csv").read_bytes() == b"a,n\nb,3\n"
    assert not (tmp_path / "held").exists()
    assert mode(tmp_path / "release" / "report.html") & 0o444
    assert mode(tmp_path / "confidential" / "run.json") == 0o600
    told = record(tmp_path)
    assert told["approved"]["reason"] == "the board agreed on 3 May"
    assert told["approved"]["failed"] == ["limit r_all"]
    assert told["approved"]["date"][:2] == "20"
    assert "release/report.html" in told["written"]
    assert not [name for name in told["written"] if name.startswith("held")]
    with pytest.raises(InputError, match="holds a finished run; choose"):
        runs.check_out(tmp_path)
    with pytest.raises(InputError, match="holds back no release"):
        approve(tmp_path, reason="again")


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines"])
def test_an_approval_needs_a_reason(tmp_path: Path, reason: str) -> None:
    write(tmp_path, "fail")
    with pytest.raises(InputError, match="--reason must say in one line"):
        approve(tmp_path, reason=reason)
    assert (tmp_path / "held" / "report.html").exists()


def test_what_holds_no_held_run_cannot_be_approved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no finished run"):
        approve(tmp_path / "nothing", reason="why not")
    write(tmp_path / "passed", "pass")
    with pytest.raises(InputError, match="holds back no release"):
        approve(tmp_path / "passed", reason="why not")
    write(tmp_path / "half", "fail")
    (tmp_path / "half" / "confidential" / "resume").mkdir()
    with pytest.raises(InputError, match="holds no finished run"):
        approve(tmp_path / "half", reason="why not")


@pytest.mark.parametrize("held", [None, [], {}, {"files": 3, "failed": []}, {"files": [["a"]]}])
def test_a_damaged_record_of_what_is_held_is_one_clear_error(tmp_path: Path, held: Any) -> None:
    write(tmp_path, "fail")
    path = tmp_path / "confidential" / "run.json"
    path.write_text(json.dumps({**record(tmp_path), "held": held or {"files": "ab"}}))
    with pytest.raises(InputError, match="does not say what is held"):
        approve(tmp_path, reason="why not")
    assert (tmp_path / "held" / "report.html").exists()


@pytest.mark.parametrize("how", ["changed", "missing", "a folder"])
def test_a_release_that_the_checks_did_not_see_is_not_approved(tmp_path: Path, how: str) -> None:
    """Else an approval of one table lets another out."""
    write(tmp_path, "fail")
    table = tmp_path / "held" / "moves_synthetic.csv"
    if how == "changed":
        table.write_text("a,n\nb,4\n")
    else:
        table.unlink()
    if how == "a folder":
        table.mkdir()
    with pytest.raises(InputError, match=r"was changed|is missing"):
        approve(tmp_path, reason="why not")
    assert list((tmp_path / "release").iterdir()) == []


def test_an_interrupted_approval_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between two files, the run must neither lose one nor refuse to go on."""
    write(tmp_path, "fail")
    calls = []

    def killed(path: Path, content: bytes) -> None:
        if calls:
            raise KeyboardInterrupt
        calls.append(path)
        runs.write_bytes(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(writing, "write_bytes", killed)
        with pytest.raises(KeyboardInterrupt):
            approve(tmp_path, reason="agreed")
    assert (tmp_path / "held" / "moves_synthetic.csv").exists()
    assert record(tmp_path)["approved"]["reason"] == "agreed"
    approve(tmp_path, reason="agreed")
    assert {path.name for path in (tmp_path / "release").iterdir()} == {
        "report.html",
        "moves_synthetic.csv",
    }
    assert not (tmp_path / "held").exists()
