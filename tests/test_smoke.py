"""Both jobs from a file to a folder, small: what must run at every commit."""

import json

import pandas as pd
from typer.testing import CliRunner

from bayes_sdc.cli import app
from bayes_sdc.flows.table.simulate import simulate_flows
from bayes_sdc.microdata.file.simulate import example_persons_path


def test_a_table_of_flows_goes_from_file_to_folder(tmp_path) -> None:
    table = simulate_flows(areas=12, states=2, seed=3)
    table.to_csv(tmp_path / "moves.csv", index=False)
    options = "--origin origin --destination destination --count count --draws 60 --tune 30"
    options += " --groups origin_state,destination_state --seed 1 --cores 1"
    result = CliRunner().invoke(
        app,
        ["flows", str(tmp_path / "moves.csv"), *options.split(), "--out", str(tmp_path / "run")],
    )
    assert result.exit_code in (0, 1), result.output
    record = json.loads((tmp_path / "run" / "confidential" / "run.json").read_text("utf-8"))
    assert 0.0 <= record["risk"]["r_all"]["value"] <= 1.0


def test_a_file_of_persons_goes_from_file_to_folder(tmp_path) -> None:
    persons = pd.read_csv(example_persons_path(), dtype=str).head(300)
    persons.to_csv(tmp_path / "persons.csv", index=False)
    result = CliRunner().invoke(
        app,
        [
            "microdata", str(tmp_path / "persons.csv"), "--keys", "region,sex,age",
            "--weight", "weight", "--out", str(tmp_path / "run"),
        ],
    )  # fmt: skip
    assert result.exit_code in (0, 1), result.output
    folder = "held" if result.exit_code else "release"
    assert (tmp_path / "run" / folder / "report.html").exists()
