"""What the job on a file of persons says before it measures."""

from pathlib import Path

import pytest

from bayes_sdc import InputError
from bayes_sdc.jobs import microdata as job


@pytest.mark.parametrize("compiled", [True, False])
def test_the_first_run_on_a_machine_says_that_it_compiles(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    compiled: bool,
) -> None:
    """Else the same file that takes seconds tomorrow seems to hang today."""
    file = tmp_path / "persons.csv"
    file.write_text("sex,age\nm,2\nf,2\nm,3\n")

    def stop(*_: object, **__: object) -> None:
        raise InputError("far enough")

    monkeypatch.setattr(job, "measure_microdata", stop)
    monkeypatch.setattr(job, "in_cache", lambda *_: compiled)
    with pytest.raises(InputError, match="far enough"):
        job.run_microdata(
            file,
            reading={"keys": ["sex", "age"]},
            policy=None,
            arguments={"seed": 1},
            truth=None,
            key_sets={},
            out=tmp_path / "out",
            command="",
            announce=lambda text: None,
        )
    assert ("this run also compiles, about" in capsys.readouterr().err) is not compiled
