"""The command: what it writes, where, with which permissions, and how it ends."""

import contextlib
import errno
import io
import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from bayes_sdc import cli, commands, jobs, read_flows
from bayes_sdc.cli import end_with
from bayes_sdc.flows.table.simulate import simulate_flows
from bayes_sdc.results import LINES

pytestmark = pytest.mark.usefixtures("sketches")

SHORT = ["--sampler", "gibbs", "--draws", "60", "--tune", "60", "--chains", "2", "--releases", "3"]
COLUMNS = ["--origin", "origin", "--destination", "destination", "--count", "count"]
GROUPS = ["--groups", "origin_state,destination_state"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("input") / "moves.csv"
    simulate_flows(areas=12, states=2, seed=3).to_csv(path, index=False, lineterminator="\n")
    return path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """Run the command in this process and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["bayes-sdc", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def flows(monkeypatch: pytest.MonkeyPatch, file: Path, out: Path, *more: object) -> int:
    return run(monkeypatch, "flows", file, *COLUMNS, *GROUPS, *SHORT, "--out", out, *more)


def released(out: Path) -> Path:
    """The synthetic table of a run, which is held if a check failed."""
    (path,) = [*out.glob("release/*.csv"), *out.glob("held/*.csv")]
    return path


class Whole(NamedTuple):
    """A whole run by the command: its folder, exit code and what it said."""

    out: Path
    code: int
    said: str


SEED = 987654321  # found wherever it stands, as no other number of a report is like it


@pytest.fixture(scope="module")
def whole(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """One run that many tests look at; none changes it."""
    out = tmp_path_factory.mktemp("whole") / "out"
    told = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(told):
        code = flows(patch, file, out, "--seed", SEED, "--cores", 1)
    return Whole(out, code, told.getvalue())


@pytest.fixture(scope="module")
def limited(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The same on more cores, with a policy: one limit is exceeded, one not known to be kept."""
    folder = tmp_path_factory.mktemp("limited")
    policy = folder / "policy.toml"
    policy.write_text(
        'name = "Board"\ndate = 2026-01-15\n[flows]\nr_all = 0\ntrue_count_probability = 0.9999\n'
    )
    told = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(told):
        asked = ["--seed", SEED, "--cores", 2, "--policy", policy]
        code = flows(patch, file, folder / "out", *asked)
    return Whole(folder / "out", code, told.getvalue())


def test_run_writes_both_folders_and_ends_with_a_summary(whole: Whole) -> None:
    """Everything promised is there, and what must not leave is readable by its owner alone."""
    out, code, said = whole
    assert code in (0, 1)
    assert (code == 1) == ("FAIL" in said) == ("HELD" in said)
    assert sorted(path.name for path in (out / ("held" if code else "release")).iterdir()) == [
        *([".gitignore"] if code else []),
        "moves_synthetic.csv",
        "report.html",
    ]
    confidential = {path.name for path in (out / "confidential").iterdir()}
    assert confidential == {
        ".gitignore",
        "gain_by_cell.csv",
        "gain_by_prior.csv",
        "groups.csv",
        "log_ratios.csv",
        "margins.csv",
        "other_protections.csv",
        "posterior.nc",
        "predictive_counts.csv",
        "predictive_counts_by_size.csv",
        "report.html",
        "risk_by_area.csv",
        "risk_by_area_size.csv",
        "risk_by_cell.csv",
        "risk_by_datasets.csv",
        "risk_by_group.csv",
        "risk_by_release.csv",
        "risk_by_true_count.csv",
        "run.json",
        "uses.csv",
    }
    listed = jobs.__doc__ or ""
    assert all(name in listed for name in confidential - {".gitignore"}), "help(bayes_sdc.jobs)"
    assert stat.S_IMODE((out / "confidential").stat().st_mode) == 0o700
    for path in (out / "confidential").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    record = json.loads((out / "confidential" / "run.json").read_text(encoding="utf-8"))
    assert record["seed"] == SEED
    assert record["input"]["small"] == len(pd.read_csv(out / "confidential" / "risk_by_cell.csv"))
    share = re.search(r"R_all: ([\d.]+)%", said)
    assert share is not None
    assert float(share[1]) == pytest.approx(100 * record["risk"]["r_all"]["value"], abs=0.05)
    # that it is confidential, what was read, summary, where; notes and failed checks have more
    usual = [line for line in said.splitlines() if not line.startswith(("note: ", "FAIL"))]
    assert len(usual) <= 2 + LINES + 3


def test_release_differs_only_in_small_cells(file: Path, whole: Whole) -> None:
    """Safe counts, own-area rows, names and the order of rows are those of the input."""
    before = pd.read_csv(file, dtype=str)
    after = pd.read_csv(released(whole.out), dtype=str)
    small = before["count"].astype(int).between(1, 9) & (before["origin"] != before["destination"])
    pd.testing.assert_frame_equal(before.drop(columns="count"), after.drop(columns="count"))
    assert (before["count"] == after["count"])[~small].all()
    assert after.loc[small, "count"].astype(int).between(1, 9).all()
    assert (before["count"] != after["count"])[small].any()


def test_same_seed_same_bytes_other_seed_other_bytes(
    file: Path, whole: Whole, limited: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run on a core, one on two; a policy judges the release and must not change it."""
    flows(monkeypatch, file, tmp_path, "--seed", 5)
    first = released(whole.out).read_bytes()
    assert released(limited.out).read_bytes() == first
    assert released(tmp_path).read_bytes() != first
    for name in ("risk_by_cell.csv", "uses.csv"):
        one, two = (out / "confidential" / name for out in (whole.out, limited.out))
        assert one.read_bytes() == two.read_bytes()


@pytest.mark.slow
def test_without_a_seed_two_runs_differ(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seed that anybody can guess would undo the protection."""
    for name in "ab":
        flows(monkeypatch, file, tmp_path / name)
    seeds = {
        json.loads((tmp_path / name / "confidential" / "run.json").read_text())["seed"]
        for name in "ab"
    }
    assert len(seeds) == 2


def test_nothing_releasable_names_the_seed_or_the_hash(whole: Whole) -> None:
    """With the hash of the table, who knows all other cells finds the last one by trying nine."""
    record = json.loads((whole.out / "confidential" / "run.json").read_text())
    for path in released(whole.out).parent.iterdir():
        text = path.read_text(encoding="utf-8")
        assert str(SEED) not in text
        assert record["input"]["sha256"] not in text
        assert record["input"]["content_sha256"] not in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--count": "n"}, "'n'"),
        ({"--sampler": "hmc"}, "sampler 'hmc' is unknown"),
        ({"--prior": "flat"}, "prior 'flat' is unknown"),
        ({"--unique": "twice"}, "unique 'twice' is unknown"),
        ({"--low": "9", "--high": "3"}, "low"),
        ({"--policy": "nowhere.toml"}, "nowhere.toml: cannot be read"),
    ],
)
def test_bad_input_ends_with_two_and_one_line(
    change: dict[str, str],
    words: str,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2, a message that names the value, and no results left behind."""
    more = [part for pair in change.items() for part in pair]
    assert flows(monkeypatch, file, tmp_path / "out", *more) == 2
    message = capsys.readouterr().err
    assert words in message
    assert "Traceback" not in message
    assert not (tmp_path / "out").exists()


def test_table_without_small_cells_comes_back_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large.csv"
    path.write_text("origin,destination,count\n01,02,50\n02,01,60\n")
    assert run(monkeypatch, "flows", path, *COLUMNS, "--out", tmp_path / "out", *SHORT) == 0
    assert (tmp_path / "out" / "release" / "large_synthetic.csv").read_text() == path.read_text()
    assert "no small cells" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("limit", "verdict"), [("r_all", "FAIL"), ("true_count_probability", "LOOK")]
)
def test_limits_of_a_policy_are_judged_and_named(limit: str, verdict: str, limited: Whole) -> None:
    """The verdict reaches console, record and both reports; what failed holds the release."""
    out, code, said = limited
    name = f"limit {limit}"
    # those to be looked at share a line, each that failed has its own
    assert any(line.startswith(f"{verdict}  ") and name in line for line in said.splitlines())
    (last,) = (line for line in said.splitlines() if line.startswith("HELD"))
    assert code == 1
    assert "may leave" not in said
    assert (name in last) == (verdict == "FAIL")
    record = json.loads((out / "confidential" / "run.json").read_text(encoding="utf-8"))
    (check,) = (check for check in record["checks"] if check["name"] == name)
    assert check["verdict"] == verdict.lower()
    assert (check["policy"], check["date"]) == ("Board", "2026-01-15")
    for path in (released(out).with_name("report.html"), out / "confidential" / "report.html"):
        text = path.read_text(encoding="utf-8")
        assert "<strong>Board</strong>, 2026-01-15" in text


def test_a_policy_for_the_other_job_ends_with_two(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('name = "Board"\ndate = 2026-01-15\n[microdata]\nk = 3\n')
    assert flows(monkeypatch, file, tmp_path / "out", "--policy", policy) == 2
    assert "no section [flows]" in capsys.readouterr().err


def test_unwritable_folder_is_one_clear_error(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    assert flows(monkeypatch, file, tmp_path / "taken") == 2
    assert "cannot write there" in capsys.readouterr().err


def test_refused_call_drops_no_interrupted_run(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else one misspelt option costs the hours of the run that was to be resumed."""
    resume = tmp_path / "confidential" / "resume"
    resume.mkdir(parents=True)
    (resume / "call.json").write_text('{"seed": 3}')
    assert flows(monkeypatch, file, tmp_path, "--resume", "--estimator", "guess") == 2
    assert (resume / "call.json").exists()


def test_forgotten_resume_drops_no_interrupted_run(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the shell's last command, sent again, costs the hours that it had run."""
    resume = tmp_path / "confidential" / "resume"
    resume.mkdir(parents=True)
    (resume / "call.json").write_text('{"seed": 3}')
    assert flows(monkeypatch, file, tmp_path) == 2
    said = capsys.readouterr().err
    assert "holds an interrupted run of flows; continue it with --resume" in said
    assert "or delete that one to start anew" in said
    assert (resume / "call.json").exists()


def test_second_run_into_a_folder_is_refused_and_changes_nothing(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both commands: a release that was decided upon must not be replaced by a slip."""
    written = ["release/report.html", "confidential/run.json"]
    (tmp_path / "release").mkdir()
    (tmp_path / "confidential").mkdir()
    (tmp_path / "release" / "report.html").write_text("decided")
    record = tmp_path / "confidential" / "run.json"
    record.write_text(json.dumps({"checks": [], "written": written}))
    before = record.read_bytes()
    assert flows(monkeypatch, file, tmp_path) == 2
    assert flows(monkeypatch, file, tmp_path, "--resume") == 2
    assert run(monkeypatch, "microdata", file, "--keys", "origin", "--out", tmp_path) == 2
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "error" in line] == [
        f"error: {tmp_path}: holds a finished run; choose another folder with --out, or delete "
        "that one"
    ] * 3
    assert record.read_bytes() == before
    assert (tmp_path / "release" / "report.html").read_text() == "decided"


def test_ctrl_c_says_how_to_go_on(file: Path, tmp_path: Path) -> None:
    """Interrupted from the keyboard, the run ends soon, with 130 and without a traceback."""
    process = subprocess.Popen(
        [
            *[sys.executable, "-m", "bayes_sdc.cli", "flows", str(file), *COLUMNS, *GROUPS],
            *["--sampler", "gibbs", "--draws", "100000", "--out", str(tmp_path / "out")],
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # a shell that started these tests in the background lets its children ignore Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stderr is not None
    line = ""
    while "fitting" not in line:
        line = process.stderr.readline()
        assert process.poll() is None, line
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume" in rest
    assert "Traceback" not in rest
    assert not list((tmp_path / "out" / "release").iterdir())


def test_simulate_writes_a_table_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A country to try things on is of no use if the next command refuses it."""
    file = tmp_path / "country.csv.gz"
    call = ["simulate", file, "--areas", "40", "--states", "3", "--small", "600", "--truth"]
    assert run(monkeypatch, *call) == 0
    table = read_flows(
        file,
        origin="origin",
        destination="destination",
        count="count",
        groups=["origin_state", "destination_state"],
    )
    assert abs(table.n_small - 600) < 4 * 600**0.5
    assert {"mean", "rate"} <= set(table.frame.columns)
    before = file.read_bytes()
    assert run(monkeypatch, *call) == 2
    assert "already exists" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_simulated_areas_serve_as_covariates_of_the_simulated_flows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flows_file, areas = tmp_path / "country.csv", tmp_path / "areas.csv"
    call = ["simulate", flows_file, "--areas", 12, "--states", 2, "--seed", 3, "--areas-file"]
    assert run(monkeypatch, *call, flows_file) == 2
    assert "choose two names" in capsys.readouterr().err
    assert not flows_file.exists()
    assert run(monkeypatch, *call, areas) == 0
    gravity = ["--population", "population", "--longitude", "longitude", "--latitude", "latitude"]
    out = tmp_path / "out"
    asked = ["--areas", areas, *gravity, "--state", "state", "--releases", 1]
    assert flows(monkeypatch, flows_file, out, *asked, "--seed", 4) in (0, 1)
    record = json.loads((out / "confidential" / "run.json").read_text(encoding="utf-8"))
    assert record["arguments"]["covariates"] == [
        "log_population_origin",
        "log_population_destination",
        "log_distance",
        "same_state",
        # then what the published part says of the areas and of the groups
        "log_safe_outflow_origin",
        "log_safe_inflow_origin",
        "log_safe_outflow_destination",
        "log_safe_inflow_destination",
        "log_partners_origin",
        "log_odds_safe_origin",
        "log_partners_destination",
        "log_odds_safe_destination",
        "log_odds_safe_group",
    ]


def squares(path: Path, codes: list[str]) -> Path:
    """Write a GeoJSON file with a square for each code."""
    features = [
        {
            "type": "Feature",
            "properties": {"geoid": code},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[i, 0], [i + 1, 0], [i + 1, 1], [i, 1], [i, 0]]],
            },
        }
        for i, code in enumerate(codes)
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


@pytest.mark.slow
def test_shapes_give_maps_in_the_internal_report_alone(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = sorted(set(pd.read_csv(file, dtype=str)["origin"]))
    shapes = squares(tmp_path / "areas.geojson", codes[1:])
    out = tmp_path / "out"
    options = ["--shapes", shapes, "--shape-key", "geoid", "--seed", 4]
    assert flows(monkeypatch, file, out, *options) in (0, 1)
    internal = (out / "confidential" / "report.html").read_text(encoding="utf-8")
    assert internal.count('aria-label="Map of areas') == 2
    assert f"no outline in the file: {codes[0]}." in internal
    external = released(out).with_name("report.html")
    assert "Map of areas" not in external.read_text(encoding="utf-8")
    record = json.loads((out / "confidential" / "run.json").read_text(encoding="utf-8"))
    assert record["arguments"]["shapes"] == str(shapes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shapes", "areas.geojson"], "belong together"),
        (["--shape-key", "geoid"], "belong together"),
        (["--shapes", "areas.geojson", "--shape-key", "geoid"], "0 of the table's 12 codes match"),
        (["--shapes", "none.geojson", "--shape-key", "geoid"], "cannot be read"),
    ],
)
def test_shapes_that_cannot_be_used_end_the_run_before_it_begins(
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    """A fit of hours must not be lost to a misspelt property."""
    monkeypatch.chdir(tmp_path)
    squares(tmp_path / "areas.geojson", ["1", "2"])
    assert flows(monkeypatch, file, tmp_path / "out", *options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_simulate_writes_both_files_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table without its areas would be found, and refused, by the next try."""
    file, areas = tmp_path / "country.csv", tmp_path / "none" / "areas.csv"
    call = ["simulate", file, "--areas", "20", "--states", "2", "--areas-file", areas]
    assert run(monkeypatch, *call) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_refused_demo_leaves_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt option is no reason to lose what is there."""
    deleted: list[Path] = []
    monkeypatch.setattr("bayes_sdc.runs.discard_finished", lambda out, source: deleted.append(out))
    assert run(monkeypatch, "demo", "--out", tmp_path / "demo", "--sampler", "nonsense") == 2
    assert run(monkeypatch, "demo", "--out", tmp_path / "demo", "--cores", "0") == 2
    assert deleted == []


@pytest.mark.parametrize("given", [None, "2"])
def test_linear_algebra_has_one_thread_unless_told(given: str | None) -> None:
    """Chains have all cores; its threads beneath them waited for each other."""
    call = (
        "import sys, os, atexit; sys.argv = ['bayes-sdc', '--version']; from bayes_sdc import cli; "
        "atexit.register(lambda: print(os.environ['OPENBLAS_NUM_THREADS'])); cli.main()"
    )
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    env |= {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    done = subprocess.run(
        [sys.executable, "-c", call], capture_output=True, text=True, check=False, env=env
    )
    assert done.stdout.split()[-1] == (given or "1")


def test_help_is_quick_and_says_whole_sentences() -> None:
    """No command needs arrays to say what it does; loading them takes seconds."""
    call = (
        "import sys; sys.argv = ['bayes-sdc', *sys.argv[1:]]; import atexit; from bayes_sdc import "
        "cli; atexit.register(lambda: print('loaded', *sorted({'numpy', 'pandas', 'numba', "
        "'scipy', 'xarray', 'pymc', 'matplotlib', 'pyarrow'} & set(sys.modules)))); cli.main()"
    )
    for arguments in ([], ["--help"], ["flows", "--help"], ["--version"]):
        done = subprocess.run(
            [sys.executable, "-c", call, *arguments], capture_output=True, text=True, check=False
        )
        assert done.stdout.splitlines()[-1] == "loaded", f"{arguments} load what is slow"
        if arguments in ([], ["--help"]):
            words = " ".join(done.stdout.replace("│", " ").split())
            assert "an origin-destination table and measure what is left to learn." in words


@pytest.mark.parametrize("command", ["flows", "microdata", "simulate", "demo", "approve", "doctor"])
def test_every_command_shows_an_example_that_it_can_parse(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, command, "--help") == 0
    said = " ".join(capsys.readouterr().out.split())
    example = said.partition("Example: bayes-sdc ")[2]
    assert example.startswith(command)
    with pytest.raises(SystemExit) as ended:
        cli.app([*shlex.split(example), "--no-such-option"])
    assert ended.value.code == 2
    assert "--no-such-option" in capsys.readouterr().err


def test_options_of_flows_stand_in_panels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, "flows", "--help")
    said = capsys.readouterr().out
    places = [
        said.index(f"─ {panel} ─") for panel in ("Input", "Model", "Release", "Risk", "Machine")
    ]
    assert places == sorted(places)
    assert said.index("--groups") < places[1] < said.index("--sampler") < places[2]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MemoryError(), 2, "error: out of memory"),
        (OSError(errno.ENOSPC, "No space left"), 2, "error: No space left, perhaps where"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "x.nc"), 2, "error: 'x.nc': Is a dir"),
        (OSError("of a library"), 70, "Traceback"),
        (ZeroDivisionError(), 70, "Traceback"),
    ],
)
def test_a_limit_of_the_machine_is_no_defect_of_the_program(
    error: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def job() -> None:
        raise error

    with pytest.raises(SystemExit) as ended:
        end_with(job)
    assert ended.value.code == code
    assert capsys.readouterr().err.startswith(said)


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"bayes-sdc {version('bayes-sdc')}\n"


def test_a_shell_completes_commands_and_choices() -> None:
    for typed, word in (("bayes-sdc de", "demo"), ("bayes-sdc flows --sampler n", "nuts")):
        environment = {
            **os.environ,
            "_BAYES_SDC_COMPLETE": "complete_bash",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(typed.split()) - 1),
        }
        done = subprocess.run(
            [sys.executable, "-c", "import sys; sys.argv = ['bayes-sdc']; from bayes_sdc import "
             "cli; cli.main()"],
            capture_output=True, text=True, env=environment, check=False,
        )  # fmt: skip
        assert word in done.stdout.split()


def test_the_seed_of_the_demo_reaches_both_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job on persons runs in another process, with what it is told as text."""
    seeds: list[int] = []
    told: list[str] = []
    ended = [0, 0, 1]  # how the other process ends
    monkeypatch.setattr(commands.flows, "run_and_tell", lambda *_, seed, **__: seeds.append(seed))

    @contextlib.contextmanager
    def kept(code: str):
        told.append(code)
        yield lambda: ended[len(told) - 1]

    monkeypatch.setattr(commands.demo, "beside", kept)
    assert run(monkeypatch, "demo", "--out", tmp_path) == 0
    assert run(monkeypatch, "demo", "--out", tmp_path, "--seed", 7) == 0
    assert run(monkeypatch, "demo", "--out", tmp_path, "--seed", 8) == 1, "its failure is lost"
    assert seeds == [1, 7, 8]
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(commands.demo, "persons", lambda *call: asked.append(call))
    for code in told:
        with pytest.raises(SystemExit):
            exec(code, {})  # noqa: S102  # as the other process does
    assert asked == [(str(tmp_path), seed) for seed in seeds]


def test_a_held_release_is_approved_by_the_command(
    limited: Whole,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From a failed check to a release with a reason, all by the command."""
    assert "limit r_all" in limited.said.partition("HELD: ")[2]
    out = tmp_path / "out"
    shutil.copytree(limited.out, out)
    table = (out / "held" / "moves_synthetic.csv").read_bytes()
    assert run(monkeypatch, "approve", out, "--reason", " ") == 2
    assert run(monkeypatch, "approve", out, "--reason", "board decision") == 0
    assert "may leave" in capsys.readouterr().out
    assert (out / "release" / "moves_synthetic.csv").read_bytes() == table
    record = json.loads((out / "confidential" / "run.json").read_text(encoding="utf-8"))
    assert record["approved"]["reason"] == "board decision"
    assert run(monkeypatch, "approve", out, "--reason", "again") == 2
