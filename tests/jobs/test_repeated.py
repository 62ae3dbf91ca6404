"""A table that was protected before is noticed."""

import hashlib
import json
from pathlib import Path

import pytest

from bayes_sdc import InputError
from bayes_sdc.jobs.repeated import check_repeated
from bayes_sdc.runs import finished_runs_beside


def run_in(
    folder: Path,
    *,
    table: str,
    released: bytes,
    checks: bool = True,
    content: str | None = None,
    epsilon: float | None = None,
    verdict: str = "pass",
) -> None:
    confidential = folder / "confidential"
    confidential.mkdir(parents=True)
    record = {
        "written": [],
        "input": {"sha256": table} | ({} if content is None else {"content_sha256": content}),
        "release_sha256": hashlib.sha256(released).hexdigest(),
        **({"checks": []} if checks else {}),
    }
    if epsilon is not None:
        record["arguments"] = {"epsilon": epsilon, "datasets": 3}
        record["checks"] = [{"key": "guarantee", "verdict": verdict}]
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
    assert [run.folder.name for run in found] == ["one"]
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


def test_a_run_of_another_file_with_the_same_content_is_found(tmp_path):
    """Records of earlier versions have no digest of the content: their file is compared."""
    run_in(tmp_path / "new", table="csv", released=b"1", content="flows")
    run_in(tmp_path / "old", table="csv", released=b"2")
    run_in(tmp_path / "other", table="other", released=b"3", content="others")
    (check,) = check_repeated(tmp_path / "here", "parquet", [], content_sha256="flows")
    assert check.verdict == "look"
    assert "new" in check.reason
    assert "old" not in check.reason
    assert "other" not in check.reason
    (check,) = check_repeated(tmp_path / "here", "csv", [], content_sha256="else")
    assert "new, old" in check.reason
    # without a digest of its own nothing is equal to none
    assert check_repeated(tmp_path / "here", "parquet", []) == []


@pytest.mark.parametrize(
    ("epsilon", "verdict", "said", "why"),
    [
        (0.5, "pass", 1.5, None),
        (0.5, "pass", 0.5, "epsilon 1.5, all its data sets together; 0.5 is less"),
        (0.5, "fail", 1.5, "promised nothing"),
        (None, "pass", 0.01, "promised nothing"),
    ],
)
def test_what_is_said_of_an_earlier_release_is_compared_with_its_run(
    tmp_path, epsilon, verdict, said, why
):
    """A release without epsilon was added up as one with 0.01, and a promise went out."""
    run_in(tmp_path / "one", table="same", released=b"1", epsilon=epsilon, verdict=verdict)
    release = tmp_path / "table_synthetic.csv"
    release.write_bytes(b"1")
    if why is None:
        (check,) = check_repeated(tmp_path / "here", "same", [release], released_epsilon=[said])
        assert check.verdict == "pass"
        return
    with pytest.raises(InputError, match=why):
        check_repeated(tmp_path / "here", "same", [release], released_epsilon=[said])
    # without a number the guarantee ends by itself
    assert check_repeated(tmp_path / "here", "same", [release])[0].verdict == "pass"
