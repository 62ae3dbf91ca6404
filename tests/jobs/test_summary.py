"""The last lines of a run: never "may leave" after a failed check."""

from pathlib import Path

from bayes_sdc.jobs.summary import CONFIDENTIAL, closing_lines, notes_to_act_on
from bayes_sdc.jobs.writing import WrittenRun
from bayes_sdc.runs import RunFolder


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
    for lines in (closing_lines(held), closing_lines(free)):
        assert lines.count(CONFIDENTIAL) == 1, "who copies the console does not know"


def test_notes_that_nobody_acts_on_are_left_to_the_report() -> None:
    notes = ["encoding: UTF-8", "separator: ','", "column 'age': 17 values are -999"]
    assert notes_to_act_on(notes) == ["note: column 'age': 17 values are -999"]
