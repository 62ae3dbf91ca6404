"""A table that was protected before is noticed."""

import hashlib
import json
from pathlib import Path

from bayes_sdc.jobs.repeated import check_repeated
from bayes_sdc.runs import finished_runs_beside


def run_in(folder: Path, *, table: str, released: bytes, checks: bool = True) -> None:
    confidential = folder / "confidential"
    confidential.mkdir(parents=True)
    record = {
        "written": [],
        "input": {"sha256": table},
        "release_sha256": hashlib.sha256(released).hexdigest(),
        **({"checks": []} if checks else {}),
    }
    (confidential / "run.json").write_text(json.dumps(record), encoding="utf-8")


def test_finished_runs_of_the_same_table_are_found(tmp_path):
    """Else two releases go out, and neither report says what both tell together."""
    run_in(tmp_path / "one", table="same", released=b"1")
    run_in(tmp_path / "other", table="another", released=b"2")
    run_in(tmp_path / "interrupted", table="same", released=b"3", checks=False)
    run_in(tmp_path / "here", table="same", released=b"4")
    (tmp_path / "damaged" / "confidential").mkdir(parents=True)
    (tmp_path / "damaged" / "confidential" / "run.json").write_text("[]", encoding="utf-8")
    (tmp_path / "file").touch()
    found = finished_runs_beside(tmp_path / "here", "same")
    assert [folder.name for folder, _ in found] == ["one"]
    assert finished_runs_beside(tmp_path / "not" / "there", "same") == []


def test_a_run_beside_is_to_be_looked_at_until_it_counts(tmp_path):
    run_in(tmp_path / "one", table="same", released=b"1")
    (check,) = check_repeated(tmp_path / "here", "same", [])
    assert check.verdict == "look"
    assert "one" in check.reason
    assert "--already-released" in check.reason
    (tmp_path / "table_synthetic.csv").write_bytes(b"1")
    (check,) = check_repeated(tmp_path / "here", "same", [tmp_path / "table_synthetic.csv"])
    assert check.verdict == "pass"
    assert check_repeated(tmp_path / "here", "another", []) == []
