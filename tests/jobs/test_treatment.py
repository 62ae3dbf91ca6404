"""A file of persons from records at risk to a file that may leave."""

import json
import re
from pathlib import Path

import pandas as pd
import pyreadstat
import pytest
from typer.testing import CliRunner, Result

from bayes_sdc import read_microdata, treat, treated_utility
from bayes_sdc.cli import app
from bayes_sdc.jobs import microdata
from bayes_sdc.jobs.treatment import TreatedRun, _attributes
from bayes_sdc.microdata.file.simulate import example_persons_path
from bayes_sdc.microdata.treatment.release import released_file

pytestmark = pytest.mark.usefixtures("sketches", "short_chains")

KEYS = ["region", "sex", "age", "marital_status"]


def persons(rows: int = 400) -> pd.DataFrame:
    return pd.read_csv(example_persons_path(), dtype=str).head(rows)


def run(file: Path, out: Path, *options: str) -> Result:
    call = ["microdata", str(file), "--keys", ",".join(KEYS), "--population-size", "8000"]
    return CliRunner().invoke(app, [*call, "--out", str(out), *options])


@pytest.fixture(scope="module")
def csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("input") / "persons.csv"
    persons().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def synthetic(csv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of one run that several tests look at; none changes it."""
    out = tmp_path_factory.mktemp("synthetic") / "run"
    options = ["--treat", "synthesis", "--treat-share", "0.2", "--seed", "1"]
    result = run(csv, out, *options, "--keep", "occupation")
    assert result.exit_code in (0, 1), result.output
    return out


def released(out: Path, ending: str = "csv") -> Path:
    (path,) = [*out.glob(f"release/*.{ending}"), *out.glob(f"held/*.{ending}")]
    return path


def test_what_leaves_holds_named_columns_in_another_order(synthetic: Path) -> None:
    """Keys and named columns, nothing else; the confidential part says what was changed."""
    path = released(synthetic)
    assert path.name == "persons_protected.csv"
    before, after = persons(), pd.read_csv(path, dtype=str)
    assert list(after.columns) == [*KEYS, "occupation"]
    assert sorted(after["occupation"]) == sorted(before["occupation"])
    assert (after["occupation"].to_numpy() != before["occupation"].to_numpy()).any()
    inside = synthetic / "confidential"
    changes = pd.read_csv(inside / "changes_by_record.csv", dtype=str)
    record = json.loads((inside / "run.json").read_text("utf-8"))
    assert len(changes) == record["treatment"]["treated_records"] >= 80
    first = int(changes["record"][0]) - 1
    assert before["age"][first] == changes["true age"][0]
    untouched = before.drop(changes["record"].astype(int) - 1)[KEYS]
    # every record that was not treated is among the released ones
    assert len(untouched.merge(after[KEYS].drop_duplicates())) == len(untouched)


def test_reports_say_which_columns_leave_and_which_sections_are_of_the_file_before(
    synthetic: Path,
) -> None:
    """Weights were dropped without a word, and risks of the input read as those of the release."""
    (path,) = [*synthetic.glob("release/*.html"), *synthetic.glob("held/*.html")]
    inside, outside = (
        re.sub(r"<[^>]+>|\u00ad", "", page.read_text("utf-8"))  # words may break in the middle
        for page in (synthetic / "confidential" / "report.html", path)
    )
    for text in (inside, outside):
        assert ", ".join(pd.read_csv(released(synthetic), nrows=1).columns) in text
        assert "Individual risk, before the treatment" in text
        assert "Frequencies of combinations, before the treatment" in text
    left = [column for column in persons().columns if column not in (*KEYS, "occupation")]
    assert all(column in inside for column in left)
    assert "; --keep releases others" in inside
    assert f"{len(left)} columns" in outside


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_for_any_order_of_records(
    csv: Path, tmp_path: Path
) -> None:
    turned = tmp_path / "persons.csv"
    persons().sample(frac=1.0, random_state=1).to_csv(turned, index=False)
    options = ["--treat", "synthesis", "--treat-share", "0.2", "--seed", "3"]
    run(csv, tmp_path / "a", *options)
    run(turned, tmp_path / "b", *options)
    run(csv, tmp_path / "c", *options[:-1], "4")
    a, b, c = (released(tmp_path / name).read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_a_run_that_misses_its_target_or_policy_is_held(csv: Path, tmp_path: Path) -> None:
    """Limits are judged by what is left of the risk, not by what was there."""
    policy = tmp_path / "policy.toml"
    policy.write_text('name = "Board"\ndate = 2026-01-15\n[microdata]\nfile_risk = 0.1\n')
    options = ["--treat", "full-synthesis", "--policy", str(policy), "--seed", "1"]
    kept = run(csv, tmp_path / "kept", *options)
    assert kept.exit_code == 0, kept.output
    assert released(tmp_path / "kept").parent.name == "release"
    policy.write_text('name = "Board"\ndate = 2026-01-15\n[microdata]\nfile_risk = 0.0001\n')
    missed = run(csv, tmp_path / "missed", "--treat", "synthesis", "--treat-share", "0.01",
                 "--policy", str(policy), "--seed", "1")  # fmt: skip
    assert missed.exit_code == 1
    assert "limit file_risk" in missed.output
    assert released(tmp_path / "missed").parent.name == "held"


def test_a_column_that_identifies_or_undoes_the_treatment_holds_the_release(
    csv: Path, tmp_path: Path
) -> None:
    """Persons of a region have weights of their own, so that the weight tells the region."""
    options = "--treat synthesis --treat-share 0.3 --treat-keys region --seed 1"
    more = ["--weight", "weight", "--keep", "weight"]
    result = run(csv, tmp_path / "run", *options.split(), *more)
    assert result.exit_code == 1
    assert "FAIL  kept column weight: the weight 'weight' tells" in result.output


def test_a_file_that_loses_its_weights_says_so(csv: Path, tmp_path: Path) -> None:
    options = "--treat suppression --suppress-to-k 3 --seed 1 --weight weight"
    call = ["microdata", str(csv), "--keys", "region,sex", "--out", str(tmp_path / "run")]
    result = CliRunner().invoke(app, [*call, *options.split()])
    assert result.exit_code in (0, 1), result.output
    assert "columns that do not leave, so the file has no weights: " in result.output
    (path,) = [*tmp_path.glob("run/release/*.html"), *tmp_path.glob("run/held/*.html")]
    assert "tells nothing of numbers in the population" in path.read_text("utf-8")


def test_the_external_report_holds_no_record(synthetic: Path) -> None:
    external = next(
        path for name in ("release", "held") for path in synthetic.glob(f"{name}/*.html")
    ).read_text("utf-8")
    inside = (synthetic / "confidential" / "report.html").read_text("utf-8")
    assert "What was done" in external
    assert "changes_by_record.csv" not in external
    assert "Highest risk of a record".lower() not in external.lower()
    assert "highest risk of a record" in inside
    assert "changes nothing in it" not in external + inside


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_labels_of_a_statistical_file_are_in_the_release(ending: str, tmp_path: Path) -> None:
    frame = persons(120)[KEYS].assign(secret=1.0)
    frame["sex"] = frame["sex"].map({"female": 2.0, "male": 1.0})
    write = getattr(pyreadstat, f"write_{ending}")
    file = tmp_path / f"persons.{ending}"
    labels = {"sex": {1: "man", 2: "woman"}}
    names = ["Where", "Sex of the person", "Age", "Status", "Secret"]
    write(frame, str(file), variable_value_labels=labels, column_labels=names)
    result = run(file, tmp_path / "run", "--treat", "synthesis", "--treat-share", "0.2")
    assert result.exit_code in (0, 1), result.output
    after, described = getattr(pyreadstat, f"read_{ending}")(
        str(released(tmp_path / "run", ending))
    )
    assert list(after.columns) == KEYS
    assert described.variable_value_labels["sex"] == {1.0: "man", 2.0: "woman"}
    assert described.column_names_to_labels["sex"] == "Sex of the person"
    assert set(after["sex"]) == {1.0, 2.0}


def test_recoding_utility_and_sensitive_variables_stay_inside(csv: Path, tmp_path: Path) -> None:
    """A hierarchy is applied because it is named; what was paid is told inside."""
    steps = tmp_path / "region.csv"
    regions = sorted(persons()["region"].unique())
    steps.write_text("".join(f"{name};{'ns'[i % 2]}\n" for i, name in enumerate(regions)))
    result = run(
        csv, tmp_path / "run", "--treat", "suppression", "--suppress-to-k", "3", "--seed", "1",
        "--recode", f"region={steps}:1", "--propose-recodings", "--ordered", "age",
        "--regression", "sex=male ~ region + age", "--sensitive", "marital_status",
        "--suppress-cost", "age=2",
    )  # fmt: skip
    assert result.exit_code in (0, 1), result.output
    after = pd.read_csv(released(tmp_path / "run"), dtype=str)
    assert set(after["region"].dropna()) == {"n", "s"}
    assert "good for" in result.output
    # the risk before the treatment is that after the recoding, which must not pass for no change
    assert "recoded first (region=region.csv:1): combinations" in result.output
    inside = tmp_path / "run" / "confidential"
    names = ["utility_of_tables", "utility_of_regressions", "proposed_recodings", "attribute_risk"]
    for name in names:
        assert len(pd.read_csv(inside / f"{name}.csv")) > 0, name
    proposals = pd.read_csv(inside / "proposed_recodings.csv")
    # both were files that no report named
    told = (inside / "report.html").read_text(encoding="utf-8")
    assert f"{pd.read_csv(inside / 'attribute_risk.csv')['gain'].max():+.3f}" in told
    assert proposals["recoding"][0] in told
    (public,) = set(tmp_path.glob("run/*/report.html")) - {inside / "report.html"}
    assert "t-closeness" not in public.read_text(encoding="utf-8")
    assert proposals["recoding"].str.startswith("age=merge:").any()
    data = read_microdata(after, keys=KEYS, missing="conservative")
    assert data.f.min() >= 3


def test_what_is_of_one_data_set_alone_is_said(tmp_path: Path) -> None:
    """The sensitive variable was judged on the first of several, and nothing said so."""
    frame = pd.DataFrame({"a": list("xyz") * 20, "b": list("no") * 30})
    data = read_microdata(frame, keys=["a", "b"])
    done = treat(data, method="pram", change=0.2, datasets=2, seed=1)
    made = TreatedRun(
        treatment=done, file=released_file(done, frame), content=b"", name="", checks=[],
        seconds=0.0, utility=treated_utility(done), proposals=None,
        attributes=_attributes(done, "b", 1),
    )  # fmt: skip
    said = "note: what records tell of b is that of data set 1 of 2 alone"
    assert said in made._lines()
    first = "what a tell of b by a record in the file"
    assert any(line.startswith(first) for line in made._lines())
    made.confidential()["attribute_risk.csv"](tmp_path / "told.csv")
    assert set(pd.read_csv(tmp_path / "told.csv")["dataset"]) == {1}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--treat", "best"], "best"),
        (["--treat", "synthesis", "--keep", "nothing"], "nothing"),
        (["--treat", "synthesis", "--keep", "sex"], "a key"),
        (["--treat", "synthesis", "--target-risk", "1.5"], "target_risk"),
        (["--treat", "synthesis", "--target-risk", "0.1", "--treat-share", "0.1"], "give one"),
        (["--target-risk", "0.1"], "--treat"),
        (["--treat", "recoding"], "--recode age=band:5"),
        (["--treat", "recoding", "--recode", "nokey=h.csv:1"], "'nokey' is not a key"),
        (["--treat", "suppression", "--suppress-to-k", "3", "--missing", "own"], "not a category"),
        (["--treat", "synthesis", "--sensitive", "age", "--known-keys", "age"], "nothing is left"),
        (["--treat", "synthesis", "--sensitive", "weight"], "neither a key nor named by --given"),
        (["--treat", "synthesis", "--known-keys", "weight"], "knows 'weight', which is not a key"),
        (["--compare-treatments", "--known-keys", "weight"], "'weight' is not a key"),
    ],
)
def test_a_call_that_cannot_be_meant_is_refused(
    options: list[str], words: str, csv: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(microdata, "measure_microdata", None)  # nothing was measured before
    result = run(csv, tmp_path / "run", *options)
    assert words in str(result.exception)
    assert not (tmp_path / "run").exists()
