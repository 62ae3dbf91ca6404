"""The doctor: what is missing ends with 1, what is slow is told."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayes_sdc.cli import app
from bayes_sdc.jobs import doctor
from bayes_sdc.jobs.doctor import Finding, examine, verdict_line


def test_this_machine_has_what_the_tests_need() -> None:
    found = examine()
    assert [finding for finding in found if finding.verdict == "missing"] == []
    text = "\n".join(map(str, found))
    for word in ("Python 3", "pymc", "compiler: numba", "cores:", "memory:", "cache of"):
        assert word in text


@pytest.mark.parametrize(
    ("requirement", "words"),
    [
        ("surely-not-there>=3", "surely-not-there>=3 is not installed"),
        ("numpy>=99", "numpy>=99 is needed"),
    ],
)
def test_a_package_that_is_absent_or_too_old_is_missing(requirement: str, words: str) -> None:
    there, wrong = doctor.judge_packages([requirement, "scipy>=1", 'xlrd>=99; extra == "irs"'])
    assert (there.verdict, wrong.verdict) == ("ok", "missing")
    assert words in wrong.text
    assert f'python -m pip install "{requirement}"' in wrong.text


def test_a_compiler_that_does_not_work_is_missing() -> None:
    def broken() -> float:
        raise OSError("no LLVM")

    assert doctor.judge_compiler(broken).verdict == "missing"
    assert "no LLVM" in doctor.judge_compiler(broken).text
    assert doctor.judge_compiler(lambda: 0.5).verdict == "ok"


def test_a_cache_that_cannot_be_written_is_slow(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    blocked = tmp_path / "file" / "cache"
    (one,) = doctor.judge_caches({"kernels": [blocked]})
    assert one.verdict == "slow"
    assert "compiles it again" in one.text
    (one,) = doctor.judge_caches({"kernels": [blocked, tmp_path / "made" / "later"]})
    assert one == Finding("ok", f"cache of kernels: {tmp_path / 'made' / 'later'}")
    assert not (tmp_path / "made").exists()
    assert doctor.judge_temporary(blocked).verdict == "missing"


def test_a_cache_named_by_the_environment_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/somewhere")
    monkeypatch.setenv("PYTENSOR_FLAGS", "floatX=float64,base_compiledir=/elsewhere,cxx=")
    folders = [path for paths in doctor.cache_folders().values() for path in paths]
    assert folders == [Path("/somewhere"), Path("/elsewhere")]


def test_what_is_slow_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)  # where set, kernels are looked for there
    assert doctor.judge_cores(1).verdict == doctor.judge_memory(1.0).verdict == "slow"
    assert doctor.judge_cores(2).verdict == doctor.judge_memory(16.0).verdict == "ok"
    assert doctor.judge_memory(None).verdict == "ok"
    assert doctor.judge_kernels(tmp_path).verdict == "slow"
    (tmp_path / "kernel.nbi").write_text("x")
    assert doctor.judge_kernels(tmp_path).verdict == "ok"


@pytest.mark.parametrize(("verdict", "code"), [("ok", 0), ("slow", 0), ("missing", 1)])
def test_the_exit_code_tells_whether_something_is_missing(
    verdict: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: [Finding(verdict, "a thing")])
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == code
    assert "a thing" in result.output
    assert verdict_line([Finding(verdict, "a thing")]) in result.output
