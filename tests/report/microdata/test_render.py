"""The report on records equals the result, and its external form tells no value and small count."""

import json
import re
import stat
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, cli, commands, household_risk, jobs
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.individual import superpopulation
from bayes_sdc.microdata.measure.measure import measure_microdata
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.report.microdata.render import render_microdata

pytestmark = pytest.mark.usefixtures("sketches")

NASTY = ['<script>alert("x")</script>', "Größe", "=1+1", "a;b", "Unit #7", "{{ 7 * 7 }}", "a & b"]
CALL = {
    "command": "bayes-sdc microdata /secret/place/people.csv",
    "created": "2026-11-27",
    "seed": 5,
    "arguments": {"keys": ["f", "birth place (grouped)"]},
    "versions": {"bayes-sdc": "0.1.0"},
}


@pytest.fixture(scope="module")
def result(measured: Measurement) -> Measurement:
    return measured


class Page(HTMLParser):
    """Tables by caption, ids, addresses and tags of a document."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self._caption: str | None = None
        self._into: str | None = None
        self._row: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            if name in ("href", "src"):
                self.links.append(str(value))
        if tag == "caption":
            self._caption, self._into = "", "caption"
        elif tag == "tr":
            self._row = []
        elif tag in ("td", "th"):
            self._row.append("")
            self._into = "cell"
        elif tag == "small":
            self._into = None

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "caption"):
            self._into = None
        if tag == "tr" and self._caption is not None:
            self.tables.setdefault(self._caption, []).append(self._row)

    def handle_data(self, data: str) -> None:
        if self._into == "caption":
            self._caption = (self._caption or "") + data
        elif self._into == "cell":
            self._row[-1] += data


@pytest.fixture(scope="module")
def internal(result: Measurement) -> str:
    return render_microdata(result, audience="internal", call=CALL)


@pytest.fixture(scope="module")
def external(result: Measurement) -> str:
    return render_microdata(result, audience="external", call=CALL)


def test_the_recommended_estimate_comes_first(
    internal: str, external: str, result: Measurement
) -> None:
    """A reader who stops after a line has the estimate that holds, with its interval."""
    found = result.latent_classes
    assert found is not None
    low, high = found.tau1.interval
    assert high < 10, "a larger number has no decimals"
    line = f"Latent classes: {found.tau1.value:,.1f} ({low:,.1f} to {high:,.1f}) sample uniques"
    assert internal.count(line) == 1
    assert internal.index(line) < internal.index("<nav")
    assert line not in external
    table = {row[0]: row[1:] for row in Page(internal).tables[
        "Estimates by latent classes, with 90 % intervals"
    ]}  # fmt: skip
    low, high = found.tau1.interval
    shown = table["tau1, sample uniques that are population uniques"]
    assert shown == [f"{found.tau1.value:,.2f}", f"{low:,.2f} to {high:,.2f}"]


def test_internal_report_shows_what_was_measured(internal: str, result: Measurement) -> None:
    page = Page(internal)
    low = result.data.k_violations(3)
    row = next(r for r in page.tables["Violations of k-anonymity"] if r[0] == "f < 3")
    assert row[1:] == [f"{low.records:,}", f"{low.records / 900:.2%}", f"{low.combinations:,}"]
    measures = dict(page.tables["Individual risk, closed form"][1:])
    assert measures["expected re-identifications"] == f"{result.risk.expected:,.2f}"
    tally = result.risk.above(0.1)
    assert measures["records, combinations with risk > 0.1"] == (
        f"{tally.records:,}, {tally.combinations:,}"
    )
    model = next(
        r
        for r in page.tables["Totals of the file by model, with 95 % intervals"]
        if r[0] == "extended"
    )
    assert model[1].startswith(f"{result.models['extended'].expected.value:,.1f} (")
    household = dict(page.tables["Household risk"][1:])
    of_person = household_risk(result.recommended_risk, result.data.household)
    assert household["persons with household risk > 0.5"] == f"{np.sum(of_person > 0.5):,}"
    names, *riskiest = page.tables["The ten riskiest combinations"]
    assert len(riskiest) == 10
    shown = float(riskiest[0][names.index("risk")])
    assert shown == pytest.approx(result.recommended_risk.max(), abs=1e-4)
    names, *rows = page.tables["Truth beside the estimates"]
    truth = {row[0]: row[names.index("truth")] for row in rows}
    assert truth["right matches over all records"] == f"{900 / 999:.1f}"
    assert truth["sample uniques that are population uniques (tau1)"] == "0.0"


def test_internal_report_compares_all_measures(internal: str, result: Measurement) -> None:
    """Else a reader cannot see why one method says ten times what another does."""
    found = result.comparison
    assert found is not None
    tables = Page(internal).tables
    for about, methods in found.methods.groupby("about"):
        shown = tables[f"Expected number by method: {about}"][1:]
        for row, (name, method) in zip(shown, methods.iterrows(), strict=True):
            assert row[:2] == [name, f"{method['expected']:,.2f}"]
            assert row[-1] == method["assumption"]


def test_external_report_has_no_comparison(external: str) -> None:
    """Its numbers speak of the sample uniques of one file."""
    assert "side by side" not in external
    assert "Lancaster" not in external


def test_values_of_the_data_are_text_and_never_markup(internal: str) -> None:
    page = Page(internal)
    assert page.tags.count("script") == 1, "there is a script beside that of the page"
    assert "49" not in [
        cell for row in page.tables["The ten riskiest combinations"] for cell in row
    ]


def test_report_is_one_offline_file_with_working_contents(internal: str, external: str) -> None:
    for text in (internal, external):
        page = Page(text)
        assert len(page.ids) == len(set(page.ids))
        for link in page.links:
            assert link.startswith("#")
            assert link[1:] in page.ids
        assert not re.search(r"url\((?!#)", text)
        assert "@import" not in text


def test_external_report_holds_no_value_hash_path_seed_or_exact_number(
    external: str, result: Measurement
) -> None:
    """Every number in it is a year, a limit, a level, or rounded to a whole per cent."""
    for secret in ("/secret", *NASTY[1:], "alert", "SHA-256", result.data.sha256 or "SHA"):
        assert secret not in external, secret
    body = re.sub(r"<style>.*?</style>", "", external, flags=re.DOTALL)
    cells = [c for rows in Page(body).tables.values() for row in rows for c in row]
    for exact in (
        result.data.sample_uniques,
        result.data.k_violations(3).records,
        result.data.k_violations(5).combinations,
        len(result.data.combinations),
    ):
        assert str(exact) not in cells
    for cell in cells:
        assert not re.search(r"\d\.\d+ ?%", cell), cell
    assert "about 900" in cells


def test_both_reports_show_the_policy_and_only_the_internal_one_its_values(
    internal: str, external: str, result: Measurement
) -> None:
    for text in (internal, external):
        assert "<strong>Survey &lt;b&gt;</strong>, 2026-01-15" in text
    columns, k, share = Page(internal).tables["Limits of the policy"]
    assert columns == ["limit", "of what", "verdict", "exceeded when", "value"]
    assert [cell.strip() for cell in k[::2]] == ["k", "✗ fail", "1"]
    assert [cell.strip() for cell in share[2:4]] == ["✓ pass", "> 0.9"]
    assert float(share[4]) == pytest.approx(result.worst.expected.value / 900, rel=1e-5)
    columns, k, share = Page(external).tables["Limits of the policy"]
    assert columns == ["limit", "of what", "verdict", "exceeded when"]
    assert [cell.strip() for cell in k] == ["k", "smallest f of a record", "✗ fail", "< 3"]
    assert share[2].strip() == "✓ pass"
    for check in result.checks:
        assert check.reason not in external


def test_the_riskiest_combinations_are_read_with_the_labels_of_their_codes() -> None:
    people = pd.DataFrame({"sex": [1, 1, 2, 3, None], "age": list("22345"), "w": 10.0})
    data = read_microdata(people, keys=["sex", "age"], weight="w", missing="own")
    data = replace(data, value_labels={"sex": {"1": "man", "2": "<b>woman</b>"}})
    text = render_microdata(measure_microdata(data, seed=1), audience="internal", call=CALL)
    (risky,) = [
        rows for caption, rows in Page(text).tables.items() if "riskiest" in caption.lower()
    ]
    first = {row[0] for row in risky[1:]}
    assert first == {"1 (man)", "2 (<b>woman</b>)", "3", "(missing)"}
    assert "<b>" not in text


def test_without_a_policy_there_is_no_section_on_it(people: pd.DataFrame) -> None:
    data = read_microdata(people, keys=["f"], weight="w")
    plain = measure_microdata(data, draws=200, seed=1)
    assert "Limits of the policy" not in render_microdata(plain, audience="internal", call=CALL)


def test_fewer_draws_than_asked_for_are_said_inside(
    people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draws of a large file fell without a word; the number of combinations stays inside."""
    monkeypatch.setattr(superpopulation, "SIMULATED", 1)
    data = read_microdata(people, keys=["f"], weight="w")
    result = measure_microdata(data, draws=500, seed=1)
    said = "from 200 draws, not 500"
    assert render_microdata(result, audience="internal", call=CALL).count(said) == 1
    assert said not in render_microdata(result, audience="external", call=CALL)


def test_shares_of_a_small_file_are_not_shown() -> None:
    frame = pd.DataFrame({"a": list("xxyz"), "w": 4.0})
    small = measure_microdata(read_microdata(frame, keys=["a"], weight="w"), draws=200, seed=1)
    text = render_microdata(small, audience="external", call=CALL)
    cells = [c for rows in Page(text).tables.values() for row in rows for c in row]
    assert "not shown (few records)" in cells
    assert not [cell for cell in cells if re.search(r"\d ?%", cell) and "1 %" not in cell]


def test_unknown_audience(result: Measurement) -> None:
    with pytest.raises(InputError, match="internal or external"):
        render_microdata(result, audience="press", call=CALL)  # type: ignore[arg-type]


# ---- the command -----------------------------------------------------------------------------


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["bayes-sdc", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def command(monkeypatch: pytest.MonkeyPatch, file: Path, out: Path, *more: object) -> int:
    keys = ["--keys", "f,birth place (grouped)", "--weight", "w", "--draws", 200]
    return run(monkeypatch, "microdata", file, *keys, "--out", out, *more)


@pytest.fixture(scope="module")
def file(people: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("input") / "people.csv"
    people.to_csv(path, index=False)
    return path


def test_command_writes_the_folders(
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    people: pd.DataFrame,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    more = ["--household", "h", "--truth", "truth", "--key-set", "short=f"]
    assert command(monkeypatch, file, out, *more, "--missing-code", "f=a;b") == 0
    assert [path.name for path in (out / "release").iterdir()] == ["report.html"]
    names = {path.name for path in (out / "confidential").iterdir()}
    assert names == {
        ".gitignore",
        "combinations_by_size.csv",
        "key_sets.csv",
        "report.html",
        "risk_by_combination.csv",
        "risk_by_household.csv",
        "risk_by_record.csv",
        "run.json",
    }
    assert all(name in (jobs.__doc__ or "") for name in names - {".gitignore"})
    for path in (out / "confidential").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    records = pd.read_csv(out / "confidential" / "risk_by_record.csv")
    combinations = pd.read_csv(out / "confidential" / "risk_by_combination.csv", dtype=str)
    assert len(records) == len(people)
    # a key called f must not be taken for the frequency f
    assert combinations.columns.tolist()[:3] == ["combination", "key f", "birth place (grouped)"]
    row = combinations.iloc[records["combination"][7] - 1]
    assert float(row["risk"]) == pytest.approx(records["risk"][7])
    assert row["birth place (grouped)"] == people["birth place (grouped)"][7]
    # every model's risk, and both intervals of it, for the record as for its combination
    for name in ("known", "uncertain", "gamma", "extended"):
        for column in (f"risk_{name}", f"inverse_F_{name}"):
            low, high = records[f"{column}_low"], records[f"{column}_high"]
            assert ((low >= 0) & (low <= high) & (high <= 1 / records["f"] + 1e-12)).all()
            assert float(row[f"{column}_low"]) == pytest.approx(low[7])
        assert float(row[f"risk_{name}"]) == pytest.approx(records[f"risk_{name}"][7])
    record: dict[str, Any] = json.loads((out / "confidential" / "run.json").read_text())
    assert record["risk"]["expected"] == pytest.approx(records["risk"].sum())
    assert record["arguments"]["missing_codes"] == {"f": ["a;b"]}
    # the table of households, its key in that of the records, and their sum in the record
    homes = pd.read_csv(out / "confidential" / "risk_by_household.csv", dtype={"id": str})
    assert records.groupby("household").size().tolist() == homes["persons"].tolist()
    assert people["h"].iloc[records[records["household"] == 9].index].nunique() == 1
    one = homes.set_index("household").loc[9]
    members = records[records["household"] == 9]
    assert one["risk"] == pytest.approx(1 - (1 - members["risk"]).prod())
    assert one["first_record"] == members["record"].min()
    assert one["id"] == people["h"][one["first_record"] - 1]
    assert record["households"] == people["h"].nunique()
    assert record["risk"]["expected_households"] == pytest.approx(homes["risk"].sum())
    extended = record["models"]["extended"]["expected_households"]
    assert extended == pytest.approx(homes["risk_extended"].sum())
    said = capsys.readouterr().out
    found = homes["risk_recommended"].sum()
    assert record["expected_households"] == pytest.approx(found)
    assert f"households: {found:,.1f} of {len(homes):,}" in said
    by_record = records["risk_recommended"]
    kept = (1 - by_record).groupby(records["household"]).prod()
    assert (1 - kept).to_list() == pytest.approx(homes["risk_recommended"].to_list())
    assert f"extended {extended:,.1f}" in said
    assert {model["draws"] for model in record["models"].values()} == {200}
    # nothing else was done otherwise than asked for
    notes = [note for model in record["models"].values() for note in model["notes"]]
    assert notes
    assert all("are not trusted" in note for note in notes)
    sets = pd.read_csv(out / "confidential" / "key_sets.csv", index_col=0)
    assert sets.index.tolist() == ["keys of this run", "short"]
    # a board that has only the report or only the record still reads file and sets
    size = file.stat().st_size
    assert record["input"]["bytes"] == size
    assert record["input"]["population_size"] == round(people["w"].sum())
    assert record["arguments"]["key_sets"] == {"short": ["f"]}
    assert record["key_sets"]["short"]["expected"] == pytest.approx(sets.loc["short", "expected"])
    page = Page((out / "confidential" / "report.html").read_text())
    read = dict(page.tables["What was read"][1:])
    assert read["size"] == f"{size:,} bytes"
    assert read["number of key variables"] == "2"
    shown = page.tables["Sets of key variables"]
    assert [row[0] for row in shown[1:]] == sets.index.tolist()
    assert shown[2][3] == f"{sets.loc['short', 'records_below_2']:,}"
    assert shown[2][6] == f"{sets.loc['short', 'expected']:,.2f}"
    assert "Sets of key variables" not in (out / "release" / "report.html").read_text()
    # once more into the same folder: a finished run is not replaced
    assert command(monkeypatch, file, out) == 2
    assert (out / "confidential" / "key_sets.csv").exists()


@pytest.mark.parametrize(
    ("limits", "code"),
    [("k = 3\nrecord_risk = 0.01\nfile_risk = 1e-6", 1), ("file_risk = 0.99", 0)],
)
def test_a_limit_that_is_exceeded_ends_with_one_and_is_named(
    limits: str,
    code: int,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    policy = written_policy(tmp_path, "microdata", limits)
    assert command(monkeypatch, file, tmp_path / "out", "--policy", policy) == code
    said = capsys.readouterr().out
    (held,) = [line for line in said.splitlines() if line.startswith("HELD")] or [""]
    assert bool(held) == bool(code)
    assert ("may leave" in said) != bool(code)
    assert bool(list(tmp_path.glob("out/release/*"))) != bool(code)
    record = json.loads((tmp_path / "out" / "confidential" / "run.json").read_text())
    for limit in limits.splitlines():
        name = f"limit {limit.partition(' ')[0]}"
        assert (f"FAIL  {name}: " if code else name) in said
        assert (name in held) == bool(code)
        (check,) = (check for check in record["checks"] if check["name"] == name)
        assert (check["policy"], check["date"]) == ("Board", "2026-01-15")
        assert check["verdict"] == ("fail" if code else "pass")
    assert record["arguments"]["policy"] == "policy 'Board' of 2026-01-15"


def written_policy(folder: Path, section: str, limits: str) -> Path:
    path = folder / "policy.toml"
    path.write_text(f'name = "Board"\ndate = 2026-01-15\n[{section}]\n{limits}\n')
    return path


@pytest.mark.parametrize(
    ("section", "limits", "words"),
    [
        ("flows", "r_all = 0.3", "no section [microdata]"),
        ("microdata", "k = 1", "policy.toml: [microdata] k must be"),
        ("microdata", "", "holds no limit"),
    ],
)
def test_a_policy_that_cannot_be_used_ends_with_two(
    section: str,
    limits: str,
    words: str,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    policy = written_policy(tmp_path, section, limits)
    assert command(monkeypatch, file, tmp_path / "out", "--policy", policy) == 2
    assert words in capsys.readouterr().err
    assert not list((tmp_path / "out").rglob("*.html"))


@pytest.mark.parametrize(
    "more",
    [
        ("--missing", "drop"),
        ("--missing-code", "f"),
        ("--missing-code", "q=1"),
        ("--key-set", "bad=q"),
        ("--truth", "nothing"),
        ("--sampling-fraction", 0.1),
        ("--household", "f"),
        ("--population-size", 3),
    ],
)
def test_bad_usage_ends_with_two_and_one_message(
    more: tuple[str, object],
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command(monkeypatch, file, tmp_path / "out", *more) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "more",
    [
        ("--sampling-fraction", 0.1),
        ("--population-size", 3),
        ("--cells", 3),
        ("--seed", -1),
        ("--truth", "zero"),
    ],
)
def test_a_refused_run_leaves_no_folder(
    more: tuple[str, object],
    people: pd.DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An empty release folder looks like a run whose report was lost."""
    few = people.head(40).assign(zero=0)
    few.to_csv(tmp_path / "few.csv", index=False)
    assert command(monkeypatch, tmp_path / "few.csv", tmp_path / "deep" / "out", *more) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["few.csv"]


def test_a_truth_of_nobody_is_not_called_a_weight(
    people: pd.DataFrame,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The user named no such weight, and would look for the fault in another column."""
    people.head(40).assign(zero=0).to_csv(tmp_path / "few.csv", index=False)
    assert command(monkeypatch, tmp_path / "few.csv", tmp_path / "o", "--truth", "zero") == 2
    said = capsys.readouterr().err
    assert "population frequency 0" in said
    assert "record's key values" in said
    assert "weight" not in said


@pytest.mark.slow
def test_demo_measures_the_bundled_survey_beside_its_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other job of the demo is left out: it takes a minute and has tests of its own."""
    monkeypatch.setattr(commands.flows, "run_and_tell", lambda *_, **__: None)
    assert run(monkeypatch, "demo", "--out", tmp_path / "demo") == 0
    said = capsys.readouterr().out
    assert "truth:" in said
    assert "FAIL" not in said
    text = (tmp_path / "demo" / "microdata" / "confidential" / "report.html").read_text()
    assert "Truth beside the estimates" in text


def test_records_above_levels_of_dis_suda_and_suda(result: Measurement, internal: str) -> None:
    assert result.comparison is not None
    records = result.comparison.records
    rows = Page(internal).tables["Sample uniques above levels of DIS-SUDA and of the SUDA score"]
    shown = {level.strip(): int(number) for level, number in rows[1:]}
    for name in ("DIS-SUDA", "SUDA score"):
        levels = [float(level.split(" > ")[1]) for level in shown if level.startswith(name)]
        assert [shown[f"{name} > {level:g}"] for level in levels] == [
            int((records[name] > level).sum()) for level in levels
        ]
    assert shown["SUDA score > 0"] == len(records)
