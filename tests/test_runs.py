"""The run folder: what is private, and files that are whole or absent."""

import hashlib
import json
import os
import stat

import pytest

from bayes_sdc import runs
from bayes_sdc.errors import InputError


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def usual_umask():
    """Give the tests the mask of a usual shell, whatever the machine has."""
    before = os.umask(0o022)
    yield
    os.umask(before)


# ---- atomic writes ---------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_failed_write_leaves_nothing_and_keeps_the_old_file(tmp_path, error):
    # else a release is cut off, or a good earlier result is lost
    path = tmp_path / "table.csv"
    path.write_text("old", encoding="utf-8")

    def broken(temporary):
        temporary.write_text("half", encoding="utf-8")
        raise error("stop")

    with pytest.raises(InputError if error is OSError else error):
        runs.write_atomically(path, broken)
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]
    assert path.read_text(encoding="utf-8") == "old"


def test_failure_of_the_disk_is_told_with_the_file_that_was_meant(tmp_path):
    path = tmp_path / "missing" / "table.csv"
    with pytest.raises(InputError, match=r"table\.csv: cannot be written \(No such file"):
        runs.write_text(path, "x")


@pytest.mark.parametrize(("private", "expected"), [(True, 0o600), (False, 0o644)])
def test_private_files_are_private_from_their_first_byte(tmp_path, private, expected):
    # else another user reads the posterior while it is written
    seen = []

    def write(temporary):
        seen.append(mode(temporary))
        temporary.write_bytes(b"x")
        assert temporary.parent == tmp_path  # same disk: the rename is atomic

    runs.write_atomically(tmp_path / "file", write, private=private)
    assert seen == [expected]
    assert mode(tmp_path / "file") == expected
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_private_file_replaces_a_public_one_of_the_same_name(tmp_path):
    # else it would inherit that everybody may read it
    path = tmp_path / "file"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o644)
    runs.write_text(path, "new ä", private=True)
    assert mode(path) == 0o600
    assert path.read_bytes() == "new ä".encode()


def test_private_file_is_private_even_over_a_part_left_by_a_crash(tmp_path):
    # a part of a killed process with the same number may be readable by everybody
    path = tmp_path / "file"
    left = tmp_path / f".file.{os.getpid()}.part"
    left.write_text("left", encoding="utf-8")
    left.chmod(0o644)
    runs.write_text(path, "new", private=True)
    assert mode(path) == 0o600


def test_json_is_sorted_and_refuses_what_json_has_not(tmp_path):
    path = tmp_path / "run.json"
    runs.write_json(path, {"b": 1, "a": [0.5, None, "ä"]})
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == {"b": 1, "a": [0.5, None, "ä"]}
    assert text.index('"a"') < text.index('"b"')
    assert text.endswith("}\n")
    with pytest.raises(ValueError, match="Out of range float"):
        runs.write_json(path, {"a": float("nan")})
    assert path.read_text(encoding="utf-8") == text


# ---- folders ---------------------------------------------------------------------------------


def test_confidential_folder_is_closed_to_others(tmp_path):
    run = runs.open_run(tmp_path / "deep" / "out")
    assert run.release.is_dir()
    assert mode(run.confidential) == 0o700
    assert mode(run.release) & 0o055 == 0o055
    # what a repository around it must not take up
    assert [path.name for path in run.confidential.iterdir()] == [".gitignore"]
    assert run.resume.parent == run.confidential


def test_open_confidential_folder_of_an_earlier_run_is_closed(tmp_path):
    # else results land in a folder that everybody can read
    (tmp_path / "confidential").mkdir(mode=0o755)
    assert mode(runs.open_run(tmp_path).confidential) == 0o700


def test_folder_that_cannot_be_made_is_an_input_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match="choose another folder with --out"):
        runs.open_run(blocked)


def test_a_folder_is_checked_without_being_made(tmp_path):
    # else a job that is refused leaves folders, or one that cannot be written fails after the work
    runs.check_out(tmp_path / "deep" / "out")
    assert not list(tmp_path.iterdir())
    blocked = tmp_path / "file"
    blocked.write_text("x", encoding="utf-8")
    for out in (blocked, blocked / "below"):
        with pytest.raises(InputError, match="choose another folder with --out"):
            runs.check_out(out)
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "thesis.tex").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match=r"thesis\.tex: was not written by an earlier run"):
        runs.check_out(tmp_path)


def test_files_of_an_earlier_run_are_found_by_its_record(tmp_path):
    # else files of two runs lie side by side, or finished groups are lost
    run = runs.open_run(tmp_path)
    assert runs.results_of_earlier_run(run) == []
    runs.write_text(run.release / "synthetic.csv", "x")
    record = {"written": ["release/synthetic.csv", "confidential/run.json"]}
    runs.write_json(run.confidential / "run.json", record, private=True)
    run.resume.mkdir()
    runs.write_text(run.resume / "part-000000.npz", "x", private=True)
    runs.write_text(tmp_path / "notes.txt", "of the user")
    found = sorted(str(p.relative_to(tmp_path)) for p in runs.results_of_earlier_run(run))
    assert found == ["confidential/run.json", "release/synthetic.csv"]

    runs.discard_resume(run.resume)
    assert not run.resume.exists()
    runs.discard_resume(run.resume)  # nothing left to do is no error


@pytest.mark.parametrize("folder", ["release", "confidential"])
def test_files_of_somebody_else_are_neither_deleted_nor_released(tmp_path, folder):
    # else a folder that happens to be called release/ is emptied
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "thesis.tex").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match=r"thesis\.tex: was not written by an earlier run"):
        runs.open_run(tmp_path)
    assert (tmp_path / folder / "thesis.tex").exists()


def finished_run(out):
    run = runs.open_run(out)
    runs.write_text(run.release / "report.html", "x")
    runs.write_text(run.confidential / "risk.csv", "x", private=True)
    written = ["release/report.html", "confidential/risk.csv", "confidential/run.json"]
    source = {"sha256": hashlib.sha256(b"of the demo").hexdigest()}
    record = {"checks": [], "input": source, "written": written}
    runs.write_json(run.confidential / "run.json", record, private=True)
    return run


def test_a_finished_run_is_not_replaced_without_asking(tmp_path):
    # else a release that a board has agreed to is gone with one wrong --out
    run = finished_run(tmp_path / "out")
    for refused in (runs.check_out, runs.open_run):
        with pytest.raises(InputError, match=r"out: holds a finished run; choose another folder"):
            refused(tmp_path / "out")
        with pytest.raises(InputError, match="or delete that one"):
            refused(tmp_path / "out", resume=True)  # there is nothing to go on with
    assert (run.release / "report.html").read_text(encoding="utf-8") == "x"


def test_what_is_discarded_is_a_finished_run_and_nothing_else(tmp_path):
    # the demo is made again in its folder, beside what the user keeps there
    run = finished_run(tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("of the user", encoding="utf-8")
    other, demo = tmp_path / "other.csv", tmp_path / "demo.csv"
    other.write_bytes(b"of the user")
    demo.write_bytes(b"of the demo")
    runs.discard_finished(tmp_path / "out", other)
    assert (run.release / "report.html").exists()  # a run of another file is no demo
    runs.discard_finished(tmp_path / "out", demo)
    assert list(run.release.iterdir()) == []
    assert (tmp_path / "out" / "notes.txt").exists()
    runs.open_run(tmp_path / "out")
    runs.discard_finished(tmp_path / "out", demo)  # nothing is finished, nothing is done
    runs.discard_finished(tmp_path / "none", demo)
    assert not (tmp_path / "none").exists()


def test_a_run_that_was_killed_while_it_wrote_is_gone_on_with(tmp_path):
    # else --resume refuses what it is for
    run = finished_run(tmp_path / "out")
    run.resume.mkdir()
    assert runs.open_run(tmp_path / "out", resume=True) == run
    runs.discard_resume(run.resume)
    (run.confidential / "risk.csv").unlink()  # a record without its files
    runs.open_run(tmp_path / "out")


def test_a_release_that_was_taken_away_leaves_a_finished_run(tmp_path):
    # else the draws and the record of a published table are deleted by the next run
    run = finished_run(tmp_path / "out")
    (run.release / "report.html").unlink()
    with pytest.raises(InputError, match="holds a finished run"):
        runs.check_out(tmp_path / "out")


@pytest.mark.parametrize("record", ["[]", "{}", '{"written": null}', "7"])
def test_record_of_another_shape_is_one_clear_error(tmp_path, record):
    run = runs.open_run(tmp_path / "out")
    runs.write_text(run.confidential / "run.json", record, private=True)
    with pytest.raises(InputError, match="is not the record that a run wrote"):
        runs.check_out(tmp_path / "out")


# ---- after a kill ----------------------------------------------------------------------------


def test_what_a_killed_run_was_writing_does_not_stand_in_the_way(tmp_path):
    # else --resume refuses for ever, and a half-written file stays among what may leave
    run = runs.open_run(tmp_path / "out")
    half = [run.release / ".table.csv.77.part", run.confidential / ".posterior.nc.77.part"]
    for path in half:
        path.write_text("half", encoding="utf-8")
    (run.confidential / ".resume.77.part").mkdir()
    (run.confidential / ".resume.77.part" / "part-000000.npz").write_text("x", encoding="utf-8")
    runs.open_run(tmp_path / "out")
    assert list(run.release.iterdir()) == []
    assert [p.name for p in run.confidential.iterdir()] == [".gitignore"]


def test_nothing_is_removed_from_a_folder_that_is_refused(tmp_path):
    # names that end in .part are what downloads of other programs are called too
    run = runs.open_run(tmp_path / "out")
    for name in ("thesis.tex", ".thesis.pdf.part"):
        (run.release / name).write_text("of the user", encoding="utf-8")
    with pytest.raises(InputError, match=r"thesis\.tex: was not written by an earlier run"):
        runs.check_out(tmp_path / "out")
    assert len(list(run.release.iterdir())) == 2


def test_a_run_that_is_writing_loses_nothing_to_one_started_by_mistake(tmp_path):
    # else the rename at the end of a file finds none
    run = runs.open_run(tmp_path / "out")
    run.resume.mkdir()
    (run.release / ".table.csv.77.part").write_text("half", encoding="utf-8")
    with pytest.raises(InputError, match="interrupted run"):
        runs.check_out(tmp_path / "out")
    assert (run.release / ".table.csv.77.part").exists()


def test_an_interrupted_run_is_gone_on_with_or_refused(tmp_path):
    # else its hours are lost to a command without --resume
    run = runs.open_run(tmp_path / "out")
    run.resume.mkdir()
    with pytest.raises(InputError, match="holds an interrupted run of flows; continue it with"):
        runs.check_out(tmp_path / "out")
    assert runs.is_interrupted(tmp_path / "out")
    assert runs.check_out(tmp_path / "out", resume=True) == run
    runs.discard_resume(run.resume)
    assert runs.check_out(tmp_path / "out") == run


def test_draws_are_never_left_without_their_call(tmp_path, monkeypatch):
    # else the next run takes them for its own
    folder = tmp_path / "resume"
    folder.mkdir()
    (folder / "call.json").write_text("{}", encoding="utf-8")
    (folder / "part-000000.npz").write_text("x", encoding="utf-8")

    def killed(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs.shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        runs.discard_resume(folder)
    assert not folder.exists()


def test_damaged_record_is_one_clear_error(tmp_path):
    run = runs.open_run(tmp_path / "out")
    (run.confidential / "run.json").write_text('{"writ', encoding="utf-8")
    with pytest.raises(InputError, match=r"run\.json: is not the record that a run wrote"):
        runs.open_run(tmp_path / "out")


def test_a_folder_in_place_of_the_record_is_one_clear_error(tmp_path):
    run = runs.open_run(tmp_path / "out")
    (run.confidential / "run.json").mkdir()
    with pytest.raises(InputError, match=r"run\.json: is not the record that a run wrote"):
        runs.open_run(tmp_path / "out")


def test_what_a_link_leads_to_is_not_deleted(tmp_path):
    """The draws of a large run are often moved to another disk."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "part-000000.npz").write_text("x", encoding="utf-8")
    run = runs.open_run(tmp_path / "out")
    run.resume.symlink_to(elsewhere, target_is_directory=True)
    runs.discard_resume(run.resume)
    assert not run.resume.is_symlink()
    assert [path.name for path in elsewhere.iterdir()] == ["part-000000.npz"]


@pytest.mark.parametrize("name", ["held", "confidential"])
def test_nothing_is_written_through_a_link(tmp_path, name):
    """A mark of the folder is no reason to write into a file elsewhere."""
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    (out / name).mkdir(parents=True)
    (out / name / ".gitignore").symlink_to(elsewhere)
    runs.open_held(runs.open_run(out))
    assert not elsewhere.exists()
    assert (out / name / ".gitignore").read_text(encoding="utf-8") == "*\n"


@pytest.mark.parametrize("name", ["file/x.csv", "n" * 260 + ".csv"])
def test_impossible_names_are_one_clear_error(tmp_path, name):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be written"):
        runs.write_text(tmp_path / name, "x")
