"""The command ``audit``, and totals in the command ``flows``: exit codes and what is written."""

import stat

import pandas as pd
import pytest
from typer.testing import CliRunner

from bayes_sdc.cli import app
from bayes_sdc.errors import InputError
from bayes_sdc.flows.job.protect import protect_flows
from bayes_sdc.flows.table.read import read_flows
from bayes_sdc.flows.table.simulate import simulate_flows
from bayes_sdc.jobs.audit import run_audit

pytestmark = pytest.mark.usefixtures("sketches")

NAMES = {"origin": "o", "destination": "d", "count": "n"}
COLUMNS = ["--origin", "o", "--destination", "d", "--count", "n"]


def write(path, text):
    path.write_text("o,d,n\n" + text)
    return path


def test_pinned_cells_end_with_1_and_bounds_are_written_for_the_owner(tmp_path):
    file = write(tmp_path / "flows.csv", "A,B,3\nA,C,20\nA,Total,23\n")
    out = tmp_path / "bounds.csv"
    done = CliRunner().invoke(app, ["audit", str(file), *COLUMNS, "--out", str(out)])
    assert done.exit_code == 1
    assert "A>B is 3: total of o A: 23 minus 20" in done.output
    assert pd.read_csv(out)["lower"].tolist() == [3]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    with pytest.raises(InputError, match="already exists"):
        run_audit(file, reading=NAMES, out=out)


def test_holes_and_a_file_of_totals(tmp_path):
    file = write(tmp_path / "flows.csv", "A,B,x\nA,C,20\nB,C,30\n")
    totals = tmp_path / "totals.csv"
    totals.write_text("o,total\nA,27\nB,\n")
    options = ["--hole", "x", "--published", str(totals)]
    done = CliRunner().invoke(app, ["audit", str(file), *COLUMNS, *options])
    assert done.exit_code == 1
    assert "A>B is 7: total of o A: 27 minus 20" in done.output


def test_nothing_pinned_ends_with_0(tmp_path):
    file = write(tmp_path / "flows.csv", "A,B,3\nA,C,4\nB,C,5\nB,B,6\nC,C,9\nB,A,2\nC,A,3\nC,B,7\n")
    done = CliRunner().invoke(app, ["audit", str(file), *COLUMNS, "--published", "national"])
    assert done.exit_code == 0, done.output


def test_an_unknown_word_is_bad_input(tmp_path):
    file = write(tmp_path / "flows.csv", "A,B,3\nA,C,20\n")
    with pytest.raises(InputError, match="no such file, and none of the words"):
        run_audit(file, reading=NAMES, published=["orign"])


def test_words_with_a_comma_between_are_several(tmp_path):
    file = write(tmp_path / "flows.csv", "A,B,3\nA,C,20\nB,C,7\n")
    together = run_audit(file, reading=NAMES, published=["origin, destination"])
    assert together.published == ("origin", "destination")
    apart = run_audit(file, reading=NAMES, published=["origin", "destination"])
    pd.testing.assert_frame_equal(together.bounds, apart.bounds)


def test_sums_that_may_be_chance_are_told_and_settled_by_the_command(tmp_path):
    file = write(tmp_path / "flows.csv", "A,B,3\nA,C,20\nA,99,23\nB,C,30\nD,B,5\n")
    known = ["audit", str(file), *COLUMNS, "--published", "national"]
    told = CliRunner().invoke(app, known)
    assert told.exit_code == 1  # nothing was shown to be safe before it is said what 23 is
    # A>B is 23 less 20, and D>B then follows from the national total
    assert "if they are totals, 2 small counts follow from them" in told.output
    assert "in doubt: 2 more" in told.output
    settled = CliRunner().invoke(app, [*known, "--totals", "publish"])
    assert settled.exit_code == 1
    assert "A>B is 3: total of o A: 23 minus 20" in settled.output
    flows = CliRunner().invoke(app, [*known, "--totals", "flows"])
    assert (flows.exit_code, "may be" in flows.output) == (0, False)


def test_a_single_column_that_adds_up_is_no_pass(tmp_path):
    """Two rows with the same sum in a column of any name: a total, or an accident."""
    file = tmp_path / "flows.csv"
    file.write_text("o,d,n,x\nA,B,3,23\nA,C,20,23\nB,C,30,44\nB,A,14,44\nC,A,12,16\nC,B,4,16\n")
    known = ["audit", str(file), *COLUMNS, "--published", "national"]
    told = CliRunner().invoke(app, known)
    assert (told.exit_code, "column 'x'" in told.output) == (1, True)
    file.write_text("o,d,n,x\nA,B,3,1\nA,C,20,4\nB,C,30,4\nB,A,14,1\nC,A,12,7\nC,B,4,2\n")
    assert CliRunner().invoke(app, known).exit_code == 0


ROWS = [("A", "B", 3), ("A", "C", 20), ("A", "D", 5), ("B", "A", 2), ("B", "C", 4), ("C", "D", 6)]


def test_a_run_stops_at_totals_before_anything_is_written(tmp_path):
    file = write(tmp_path / "flows.csv", "A,B,3\nA,C,20\nA,Total,23\n")
    done = CliRunner().invoke(app, ["flows", str(file), *COLUMNS, "--out", str(tmp_path / "run")])
    assert isinstance(done.exception, InputError)
    assert "--totals drop" in str(done.exception)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("column", [pytest.param("mean", marks=pytest.mark.slow), "running"])
def test_a_kept_column_that_tells_of_counts_ends_in_a_held_run(tmp_path, column):
    """A mean is a total in disguise, and joins the audit; a running total is no total of areas."""
    frame = simulate_flows(areas=14, states=2, seed=3)
    away = frame["count"].where(frame["origin"] != frame["destination"], 0)
    columns = {
        "mean": (away.groupby(frame["origin"]).transform("sum") / 7).round(2),
        "running": frame["count"].cumsum(),
    }
    file, out = tmp_path / "flows.csv", tmp_path / "run"
    frame.assign(**columns).to_csv(file, index=False)
    names = ["--origin", "origin", "--destination", "destination", "--count", "count"]
    short = ["--draws", "40", "--tune", "40", "--chains", "2", "--releases", "2", "--seed", "5"]
    done = CliRunner().invoke(
        app, ["flows", str(file), *names, *short, "--keep", column, "--out", str(out)]
    )
    assert done.exit_code == 1
    [held] = [line for line in done.output.splitlines() if line.startswith("HELD")]
    assert "other columns" in held
    assert ("published totals" in held) == (column == "mean")
    assert not list((out / "release").glob("*"))
    [table] = (out / "held").glob("*.csv")
    [other] = set(columns) - {column}
    assert column in pd.read_csv(table).columns
    assert other not in pd.read_csv(table).columns


def test_a_protection_fails_where_published_totals_pin_a_count():
    frame = pd.DataFrame([*ROWS, ("C", "E", 30)], columns=["o", "d", "n"])
    done = protect_flows(
        read_flows(frame, **NAMES), published="origin", draws=50, tune=50, chains=2, releases=2,
        seed=1,
    )  # fmt: skip
    [check] = [check for check in done.checks if check.key == "published_totals"]
    assert check.verdict == "fail"
    assert "C>D" in check.reason
    assert done.audit is not None
    assert done.audit.pinned == 1
    assert "who knows all other small counts too finds 5 exactly" in check.reason


def test_a_protection_refuses_totals_that_nobody_settled():
    frame = pd.DataFrame([*ROWS[:3], ("A", "Total", 28)], columns=["o", "d", "n"])
    with pytest.raises(InputError, match="holds totals"):
        protect_flows(read_flows(frame, **NAMES), seed=1)
