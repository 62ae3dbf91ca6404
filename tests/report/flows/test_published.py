"""The internal report on published totals, and full runs of the command with totals."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bayes_sdc.cli import app
from bayes_sdc.flows.job.protect import protect_flows
from bayes_sdc.flows.table.read import read_flows
from bayes_sdc.report.flows.published import internal_published

pytestmark = pytest.mark.usefixtures("sketches")

COLUMNS = ["--origin", "o", "--destination", "d", "--count", "n"]
FEW = ["--draws", "60", "--tune", "30", "--chains", "2", "--releases", "2", "--seed", "1"]


def flows(total=False):
    """Twelve flows of four areas, one of them alone among large ones; with a Total per origin."""
    rng = np.random.default_rng(4)
    rows = [(o, d, int(rng.integers(1, 9))) for o in "ABCD" for d in "ABCD" if o != d]
    rows = [(o, d, n + 20 if o == "A" and d != "B" else n) for o, d, n in rows]
    rows[0] = ("A", "B", 3)
    frame = pd.DataFrame(rows, columns=["o", "d", "n"])
    if total:
        sums = frame.groupby("o", as_index=False)["n"].sum().assign(d="Total")
        frame = pd.concat([frame, sums[["o", "d", "n"]]], ignore_index=True)
    return frame


def run(tmp_path, frame, *options):
    file = tmp_path / "moves.csv"
    frame.to_csv(file, index=False)
    out = tmp_path / "run"
    done = CliRunner().invoke(
        app, ["flows", str(file), *COLUMNS, *FEW, *options, "--out", str(out)]
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done, out


def test_a_run_with_published_totals_fails_and_says_what_pins_a_count(tmp_path):
    done, out = run(tmp_path, flows(), "--published", "origin", "--published", "destination")
    assert done.exit_code == 1
    assert "totals by origin, destination pin" in done.output
    bounds = pd.read_csv(out / "confidential" / "published_totals.csv", index_col="cell")
    assert bounds.loc["A>B", ["lower", "upper"]].tolist() == [3, 3]
    report = (out / "confidential" / "report.html").read_text()
    assert "<h3>Published totals</h3>" in report
    assert "Counts that follow from the published totals" in report
    assert "subtracts them from the totals" in report
    assert (out / "held").exists()
    public = next((out / "held").glob("report.html")).read_text()
    assert "A&gt;B" not in public
    assert "Counts that follow" not in public


@pytest.mark.parametrize("choice", [pytest.param("drop", marks=pytest.mark.slow), "publish"])
def test_a_run_on_a_table_with_totals(tmp_path, choice):
    done, out = run(tmp_path, flows(total=True), "--totals", choice)
    folder = out / ("held" if done.exit_code else "release")
    released = pd.read_csv(next(folder.glob("*_synthetic.csv")))
    assert ("Total" in set(released["d"])) == (choice == "publish")
    assert len(released) == 12 + 4 * (choice == "publish")
    if choice == "publish":
        assert done.exit_code == 1  # A>B follows from the total of A
        assert "A>B" in pd.read_csv(out / "confidential" / "published_totals.csv")["cell"].tolist()


def test_the_intruder_who_knows_no_other_count_combines_release_and_totals():
    done = protect_flows(
        read_flows(flows(), origin="o", destination="d", count="n"),
        published=["origin"], knowledge="none", draws=60, tune=30, chains=2, releases=2, seed=1,
    )  # fmt: skip
    found = done.with_totals
    assert found is not None
    assert found.given is not None
    probability = found.given.probability
    np.testing.assert_allclose(probability.sum("count"), 1.0)
    assert float(probability.sel(cell="A>B", count=3)) == pytest.approx(1.0)
    assert found.before is not None
    assert found.after is not None
    assert 0 < found.before < found.after <= 1
    told = internal_published(done)
    assert told is not None
    assert told["pinned"] == [["A>B", done.audit.bounds.loc["A>B", "why"], "3"]]
    assert "by exact sums" in told["together"]


def test_the_intruder_combines_the_release_with_totals_in_a_kept_column():
    """Totals are totals wherever they stand: in a column that stays, they count like published."""
    frame = flows()
    totals = frame.assign(leaving=frame.groupby("o")["n"].transform("sum") / 10)
    done, beside = (
        protect_flows(
            read_flows(each, origin="o", destination="d", count="n"), **options, knowledge="none",
            draws=60, tune=30, chains=2, releases=2, seed=1,
        )
        for each, options in ((totals, {"keep": ["leaving"]}), (frame, {"published": ["origin"]}))
    )  # fmt: skip
    assert done.with_totals is not None
    assert beside.with_totals is not None
    assert done.with_totals.words == beside.with_totals.words
    np.testing.assert_array_equal(
        done.with_totals.given.probability, beside.with_totals.given.probability
    )
