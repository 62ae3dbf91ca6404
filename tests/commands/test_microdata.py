"""Options of ``bayes-sdc microdata`` that mean nothing without another one."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bayes_sdc import InputError
from bayes_sdc.cli import app


@pytest.mark.parametrize(
    "option",
    [
        "--target-risk 0", "--treat-share 0", "--suppress-to-k 0", "--suppress-special 0",
        "--pram-change 0", "--datasets 3", "--datasets 0", "--known-keys a", "--knows records",
        "--knowledge sample", "--keep-order", "--keep b", "--sensitive a",
    ],
)  # fmt: skip
def test_an_option_on_a_treatment_is_not_ignored_where_there_is_none(
    option: str, tmp_path: Path
) -> None:
    """A target of 0 passed for none given, and the run went on without it."""
    file = tmp_path / "persons.csv"
    file.write_text("a,b\n1,2\n1,3\n")
    call = ["microdata", str(file), "--keys", "a,b", "--out", str(tmp_path / "run")]
    result = CliRunner().invoke(app, [*call, *option.split()])
    assert isinstance(result.exception, InputError), result.output
    assert "--treat" in str(result.exception)
    assert not (tmp_path / "run").exists()
