"""The last lines of a run: never "may leave" after a failed check, and few enough to be read."""

from pathlib import Path

import pytest

from bayes_sdc.checks import Check, Verdict
from bayes_sdc.jobs.summary import LINES, closing_lines, notes_to_act_on, summary_lines
from bayes_sdc.jobs.writing import WrittenRun
from bayes_sdc.runs import RunFolder


def check(name: str, verdict: Verdict) -> Check:
    return Check(name, verdict, f"why {name}", key=name)


@pytest.mark.parametrize("looks", [0, 3, 4, 5, 30])
def test_a_summary_has_ten_lines_and_loses_no_check(looks: int) -> None:
    checks = [check("bad", "fail"), *(check(f"odd{i}", "look") for i in range(looks))]
    checks.append(check("good", "pass"))
    said = summary_lines("head", checks, ["one", "two"], {"fit": 3.0})
    assert len(said) <= LINES
    assert "FAIL  bad: why bad" in said
    for one in checks:
        assert any(one.name in line for line in said)
    full = [line for line in said if line.startswith("LOOK") and ": why " in line]
    assert len(full) == (looks if looks <= 4 else 3)


def test_every_failure_is_shown_however_many_there_are() -> None:
    said = summary_lines("head", [check(f"bad{i}", "fail") for i in range(20)], ["one"], {})
    assert sum(line.startswith("FAIL") for line in said) == 20
    said = summary_lines(
        "head", [*(check(f"bad{i}", "fail") for i in range(20)), check("odd", "look")], [], {}
    )
    assert "LOOK  odd: the report has the reasons" in said


def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path, tmp_path / "release", tmp_path / "confidential")


def test_what_is_held_is_not_said_to_leave(tmp_path: Path) -> None:
    run = folder(tmp_path / "a run")
    held = WrittenRun(run, (run.held / "x.csv", run.held / "report.html"), (), ("limit r_all",))
    said = "\n".join(closing_lines(held))
    assert "may leave" not in said
    assert "HELD: limit r_all failed, so x.csv, report.html stay in" in said
    assert f"bayes-sdc approve '{run.root}' --reason" in said, "must work when pasted"
    free = WrittenRun(run, (run.release / "x.csv",), (), ())
    assert f"may leave: {run.release / 'x.csv'}" in closing_lines(free)
    assert "HELD" not in "\n".join(closing_lines(free))


def test_notes_that_nobody_acts_on_are_left_to_the_report() -> None:
    notes = ["encoding: UTF-8", "separator: ','", "column 'age': 17 values are -999"]
    assert notes_to_act_on(notes) == ["note: column 'age': 17 values are -999"]
