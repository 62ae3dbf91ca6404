"""A run that keeps totals, on the files that it writes."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, protect_flows, read_flows
from bayes_sdc.flows.release.totals.kept import kept_by_name
from bayes_sdc.flows.table.simulate import simulate_flows
from bayes_sdc.jobs.flows import run_flows
from bayes_sdc.report.flows.render import render_flows

pytestmark = pytest.mark.usefixtures("sketches")

READING = {
    "origin": "origin", "destination": "destination", "count": "count",
    "groups": ["origin_state", "destination_state"],
}  # fmt: skip
FAST = {"draws": 60, "tune": 60, "chains": 2, "releases": 2, "datasets": 2}
BY_GROUP = {
    "origin-by-group": ["origin", "origin_state", "destination_state"],
    "destination-by-group": ["destination", "origin_state", "destination_state"],
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("input") / "moves.csv"
    simulate_flows(areas=14, states=2, seed=5).to_csv(path, index=False, lineterminator="\n")
    return path


def run(file: Path, out: Path, **arguments):
    return run_flows(
        file, reading=READING, gravity={}, shapes={}, policy=None, out=out, seed=4, resume=False,
        arguments={**FAST, **arguments}, command="", announce=lambda text: None,
    )  # fmt: skip


def released(out: Path) -> pd.DataFrame:
    (path,) = [*out.glob("release/*.csv"), *out.glob("held/*.csv")]
    return pd.read_csv(path, dtype={"origin": str, "destination": str})


def test_written_totals_are_the_true_ones_but_for_those_on_the_list(
    file: Path, tmp_path: Path
) -> None:
    """The error of totals is 0 on the file itself, in every data set."""
    _, lines = run(file, tmp_path / "out", totals_kept="auto")
    out = tmp_path / "out"
    true = pd.read_csv(file, dtype={"origin": str, "destination": str})
    listed = out / "confidential" / "totals_not_to_publish.csv"
    merged = pd.read_csv(listed, dtype=str) if listed.exists() else pd.DataFrame()
    for _, data in released(out).groupby("dataset"):
        assert (data["count"].to_numpy() != true["count"].to_numpy()).any()
        for side in ("origin", "destination"):
            off = _differences(true, data, [side])
            if len(merged):
                lost = merged[merged["with"] == "all totals that are merged"]["area"]
                off = off[~off.index.isin(lost)]
            assert (off == 0).all()
        for margin, columns in BY_GROUP.items():
            off = _differences(true, data, columns)
            names = [f"{int(a):02d}>{int(b):02d}" for _, a, b in off.index]
            pairs = list(zip(off.index.get_level_values(0), names, strict=True))
            if len(merged):
                rows = merged[merged["margin"] == margin]
                gone = set(zip(rows["area"], rows["group"], strict=True))
                keep = [pair not in gone for pair in pairs]
                assert not all(keep) or rows.empty
                off = off[keep]
            assert (off == 0).all()
    record = json.loads((out / "confidential" / "run.json").read_text(encoding="utf-8"))
    checks = {check["key"]: check["verdict"] for check in record["checks"]}
    assert checks["kept_totals_error"] == "pass"
    assert checks["mixing_given_totals"] in ("pass", "look")
    assert checks["totals_kept"] in ("pass", "look")
    assert record["totals_kept"]["by_themselves"] > 0
    assert any("R_all" in line for line in lines)


def _differences(true: pd.DataFrame, data: pd.DataFrame, columns: list[str]) -> pd.Series:
    return data.groupby(columns)["count"].sum() - true.groupby(columns)["count"].sum()


@pytest.mark.parametrize("allowed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_pinned_cell_holds_the_release_unless_allowed(allowed: bool) -> None:
    """What is released of it is the truth, and every page says so."""
    frame = pd.DataFrame({"o": list("aabbc"), "d": list("xyxyx"), "n": [2, 3, 4, 2, 5]})
    table = read_flows(frame, origin="o", destination="d", count="n")
    done = protect_flows(
        table, totals_kept="origin,destination", pinned_allowed=allowed, draws=40, tune=40,
        chains=2, releases=1, seed=1,
    )  # fmt: skip
    checks = {check.key: check for check in done.checks}
    assert checks["totals_kept"].verdict == ("look" if allowed else "fail")
    assert "pin 1 of 5" in checks["totals_kept"].reason
    assert checks["small_counts_left"].verdict == "look"
    assert done.pinned == 1
    assert "4 small cells in 1 groups are synthetic" in done.summary()
    call = {"command": "", "created": "2026-01-01", "seed": 1, "arguments": {}, "versions": {}}
    for audience in ("internal", "external"):
        said = render_flows(done, audience=audience, call=call)
        assert said.count("given the totals that the release keeps: these are released as") == 2
        assert "equal the true ones: by chance" not in said
        assert "equal the true ones by chance" not in said
        assert "Totals of the release by origin and destination are the true ones." in said
        assert "pMSE ratio: 0.00, pass" not in said, "a number that kept totals make 0"
    # with these totals a guesser finds more than one count in nine
    assert "11%" not in said.partition("R_all found by guessing")[2][:99]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"totals_kept": "orign"}, "'orign' is unknown"),
        ({"totals_kept": "auto", "candidates": 3}, "draw one release"),
        ({"totals_kept": "auto", "kept_limit": 0.0}, "kept_limit must be above 0"),
        ({"totals_kept": "auto", "totals_base": 0}, "totals_base must be 1 or more"),
        ({"totals_base": 5}, "totals_base belongs to totals_kept"),
    ],
)
def test_unusable_totals_are_refused_before_the_fit(file: Path, tmp_path: Path, arguments, said):
    with pytest.raises(InputError, match=said):
        run(file, tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


def test_no_totals_kept_is_said_in_the_summary_and_in_both_reports() -> None:
    """Asked for as many as possible, the job found none; nothing said so."""
    frame = pd.DataFrame([(f"o{i}", f"d{j}") for i in range(5) for j in range(5)])
    frame.columns = ["o", "d"]
    frame["n"] = 1
    frame.loc[[0, 8, 21], "n"] = [30, 44, 50]
    table = read_flows(frame, origin="o", destination="d", count="n")
    done = protect_flows(table, totals_kept="auto", draws=40, tune=40, chains=2, releases=1, seed=1)
    (check,) = [check for check in done.checks if check.key == "totals_kept"]
    assert check.verdict == "look"
    assert "they make small counts follow" in check.reason
    assert "no totals are kept" in done.summary()
    call = {"command": "", "created": "2026-01-01", "seed": 1, "arguments": {}, "versions": {}}
    for audience in ("internal", "external"):
        said = render_flows(done, audience=audience, call=call)
        assert "No totals of the table are kept, because they would make small counts" in said


def test_as_many_as_possible_to_a_base_of_one_origin() -> None:
    """The total of the only origin follows from the others only where these are exact."""
    frame = pd.DataFrame({"o": ["a"] * 6, "d": list("uvwxyz"), "n": [2, 5, 7, 3, 8, 4]})
    table = read_flows(frame, origin="o", destination="d", count="n")
    done = protect_flows(
        table, totals_kept="auto", totals_base=5, draws=40, tune=40, chains=2, releases=1, seed=1
    )
    assert done.measured is not None
    assert done.measured.kept is not None
    assert set(done.measured.kept.names) <= {"destination"}


def test_rounded_totals_are_those_of_what_the_file_shows() -> None:
    """What rests on too few people is left blank, and is in no total that a reader adds up."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame([(f"o{i}", f"d{j}") for i in range(6) for j in range(6)])
    frame.columns = ["o", "d"]
    large = rng.random(36) < 0.4
    frame["n"] = np.where(large, rng.integers(12, 60, 36), rng.integers(1, 10, 36))
    frame["people"] = np.where(rng.random(36) < 0.6, frame["n"], 4).clip(max=frame["n"])
    table = read_flows(frame, origin="o", destination="d", count="n", threshold_column="people")
    assert len(table.withheld) > 3
    shown = ~frame.index.isin(table.withheld)
    for side in kept_by_name(table, "origin,destination", base=5).sides:
        y = table.cells["y"].to_numpy()
        total = side.rest + np.bincount(side.cells, y)
        short = side.labels.columns[0][0]
        sums = frame[shown].groupby(short)["n"].sum()
        assert (sums.loc[side.labels.iloc[:, 0]].to_numpy() == total).all()


@pytest.mark.parametrize("totals", ["auto", "origin"])
def test_counts_that_a_rule_excludes_are_refused_before_the_fit(totals: str) -> None:
    frame = pd.DataFrame({"o": list("aabb"), "d": list("xyxy"), "n": [3, 5, 4, 7]})
    table = read_flows(frame, origin="o", destination="d", count="n")
    ready = []
    with pytest.raises(InputError, match="impossible: counts are moved by one where totals"):
        protect_flows(
            table, totals_kept=totals, family="base", impossible=[1, 2], draws=40, tune=40,
            chains=2, releases=1, seed=1, ready=lambda: ready.append(True),
        )  # fmt: skip
    assert not ready


def test_what_kept_and_published_totals_pin_together_holds_the_release() -> None:
    """Origins kept, destinations published: each pins nothing, and both every count."""
    square = [("a", "x", 1), ("a", "y", 5), ("b", "x", 5), ("b", "y", 9)]
    frame = pd.DataFrame(
        [(f"{o}{k}", f"{d}{k}", n) for k in range(4) for o, d, n in square], columns=["o", "d", "n"]
    )
    table = read_flows(frame, origin="o", destination="d", count="n")
    done = protect_flows(
        table, totals_kept="origin", published="destination", pinned_allowed=True, draws=40,
        tune=40, chains=2, releases=1, seed=1,
    )  # fmt: skip
    checks = {check.key: check for check in done.checks}
    assert checks["totals_kept"].verdict == "fail"
    assert checks["published_totals"].verdict == "fail"
    assert "pin 16 of 16" in checks["published_totals"].reason
    call = {"command": "", "created": "2026-01-01", "seed": 1, "arguments": {}, "versions": {}}
    said = render_flows(done, audience="external", call=call)
    assert "that are published beside and those that a release keeps" in said
