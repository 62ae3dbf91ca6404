"""The run folder: what may leave the agency, what must not, and how files are written."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from bayes_sdc.errors import InputError
from bayes_sdc.locks import lock

IGNORE = ".gitignore"
UNFINISHED = "unfinished"  # in the record of a run while its release is being written
LEFTOVERS = ".*.[0-9]*.part"  # names of what is being written, or deleted


class RunFolder(NamedTuple):
    """Folders of one run. Only the content of ``release`` may leave the agency."""

    root: Path
    release: Path
    confidential: Path  # readable by its owner alone

    @property
    def held(self) -> Path:
        """The release of a run whose checks failed, until somebody approves it; confidential."""
        return self.root / "held"

    @property
    def resume(self) -> Path:
        """Finished groups of a run that has not ended; confidential."""
        return self.confidential / "resume"


def check_out(out: Path, *, resume: bool = False) -> RunFolder:
    """Name the folders of a run without making them, for a check before the work.

    Parameters
    ----------
    out : Path
        Folder of the run.
    resume : bool
        Whether an interrupted run is resumed, which may have been writing its results.

    Raises
    ------
    InputError
        If the folder cannot be written, holds a finished run, an interrupted run that is not
        resumed, or files that no run wrote.
    """
    run = _folders(out)
    try:
        with suppress(FileNotFoundError, NotADirectoryError):  # reported below
            os.stat(out)
    except (OSError, ValueError) as error:  # a name that is too long or has impossible characters
        raise InputError(
            f"{str(out)[:60]!r}: cannot be a folder ({error}); choose another one with --out"
        ) from None
    lock(out)
    earlier = results_of_earlier_run(run)
    if is_interrupted(out):
        if not resume:
            raise InputError(
                f"{out}: holds an interrupted run of flows; continue it with --resume, choose "
                "another folder with --out, or delete that one to start anew"
            )
    elif _is_finished(run, earlier):
        held = ", whose release is held" if run.held.is_dir() else ""
        raise InputError(
            f"{out}: holds a finished run{held}; choose another folder with --out, or delete that "
            "one"
        )
    for folder in (run.release, run.confidential):
        there = next(path for path in (folder, *folder.parents) if path.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise _cannot_write(out)
    try:
        # last of all, because another run may be writing in a refused folder
        for folder in (run.release, run.confidential, run.held):
            _remove_leftovers(folder)
    except OSError as error:
        raise _cannot_write(out, error) from None
    return run


def open_run(out: Path, *, resume: bool = False) -> RunFolder:
    """Create the folders of a run, or open them if they exist.

    Raises
    ------
    InputError
        As for :func:`check_out`.
    """
    run = check_out(out, resume=resume)
    try:
        run.release.mkdir(parents=True, exist_ok=True)
        # again: before this run had the folder for itself, another one may have ended there
        check_out(out, resume=resume)
        _make_private(run.confidential)
    except OSError as error:
        raise _cannot_write(out, error) from None
    return run


def open_held(run: RunFolder) -> None:
    """Create the folder for a release that may not leave, readable by its owner alone.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    try:
        _make_private(run.held)
    except OSError as error:
        raise _cannot_write(run.root, error) from None


def close_held(run: RunFolder) -> None:
    """Remove the folder of a held release once nothing is left in it."""
    if run.held.is_dir() and {path.name for path in run.held.iterdir()} <= {IGNORE}:
        (run.held / IGNORE).unlink(missing_ok=True)
        run.held.rmdir()


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    # a run inside a repository must not be committed by accident; renamed, it replaces a link
    write_text(folder / IGNORE, "*\n", private=True)


def discard_finished(out: Path, source: Path) -> None:
    """Delete the results of a finished run of one input file, if there is one, and nothing else."""
    run = _folders(out)
    earlier = results_of_earlier_run(run)
    if not _is_finished(run, earlier):
        return
    if read_record(run)["input"]["sha256"] == hashlib.sha256(source.read_bytes()).hexdigest():
        # the record last: without it the rest would be files that no run wrote
        for path in sorted(earlier, key=lambda path: path.name == "run.json"):
            path.unlink()
        close_held(run)


def is_interrupted(out: Path) -> bool:
    """Tell whether a run began here and did not end."""
    return _folders(out).resume.exists()


def finished_run(out: Path) -> RunFolder:
    """Return the folders of a run that has ended.

    Raises
    ------
    InputError
        If no run ended here, or the folder holds files that no run wrote.
    """
    run = _folders(out)
    if is_interrupted(out) or not _is_finished(run, results_of_earlier_run(run)):
        raise InputError(f"{out}: holds no finished run; name the folder that was given as --out")
    return run


def _folders(out: Path) -> RunFolder:
    return RunFolder(out, out / "release", out / "confidential")


def _cannot_write(out: Path, error: OSError | None = None) -> InputError:
    why = "" if error is None else f" ({error.strerror})"
    return InputError(f"{out}: cannot write there{why}; choose another folder with --out")


def _is_finished(run: RunFolder, earlier: list[Path]) -> bool:
    """Tell whether a run ended here: its record is complete, and the files that it names exist.

    A run that is killed while it writes leaves a list of names as its record, not all files, or a
    mark. The release may be gone: it is meant to be taken away, and a held one may have been
    approved.
    """
    record = read_record(run)
    gone = {run.root / name for name in record["written"]} - set(earlier)
    complete = "checks" in record and UNFINISHED not in record
    return complete and all(path.parent in (run.release, run.held) for path in gone)


def read_record(run: RunFolder) -> dict[str, Any]:
    """Read the record of an earlier run; without one, nothing was written.

    Raises
    ------
    InputError
        If the file is not such a record.
    """
    path = run.confidential / "run.json"
    if not path.exists():
        return {"written": []}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return {**record, "written": [str(name) for name in record["written"]]}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        raise InputError(
            f"{path}: is not the record that a run wrote, so what it wrote is not known; "
            "choose another folder with --out"
        ) from None


def results_of_earlier_run(run: RunFolder) -> list[Path]:
    """List the files that an earlier run wrote here, by its own record.

    Raises
    ------
    InputError
        If the folders hold files that no run recorded: they must not be replaced.
    """
    ours = {run.root / name for name in read_record(run)["written"]}
    ours |= {run.confidential / IGNORE, run.held / IGNORE}
    folders = [path for path in (run.release, run.confidential, run.held) if path.is_dir()]
    there = [p for folder in folders for p in folder.iterdir()]
    leftovers = {path for folder in folders for path in folder.glob(LEFTOVERS)}
    foreign = [p for p in there if p not in ours | leftovers and p != run.resume]
    if foreign:
        raise InputError(
            f"{foreign[0]}: was not written by an earlier run, and would stand among the results; "
            "choose another folder with --out"
        )
    return [p for p in there if p.is_file() and p in ours and p.name != IGNORE]


def discard_resume(folder: Path) -> None:
    """Delete the finished groups of a run that has ended or is not wanted."""
    if folder.exists():
        # under a name that nobody resumes: half deleted it would hold draws without their call
        leftover = folder.with_name(f".{folder.name}.{os.getpid()}.part")
        folder.rename(leftover)
        _remove(leftover)


def _remove_leftovers(folder: Path) -> None:
    """Remove files that a killed run was writing or deleting."""
    for path in folder.glob(LEFTOVERS):
        _remove(path)


def _remove(path: Path) -> None:
    """Delete a file or a folder; of a link only the link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def write_atomically(path: Path, write: Callable[[Path], None], *, private: bool = False) -> None:
    """Let ``write`` fill a file of another name, then rename it: the file is complete or absent.

    Parameters
    ----------
    path : Path
        The file to make or replace.
    write : callable
        Takes the path to write to.
    private : bool
        Readable by its owner alone, from its first byte.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.unlink(missing_ok=True)  # a crash may have left one, with another mode
        temporary.touch(mode=0o600 if private else 0o644)
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())  # else a power cut could leave the name without the content
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        with suppress(OSError):  # the folder may not exist, which is reported elsewhere
            temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file, completely or not at all."""

    def write(temporary: Path) -> None:
        temporary.write_bytes(content)

    write_atomically(path, write, private=private)


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write UTF-8 text, completely or not at all."""
    write_bytes(path, text.encode(), private=private)


def write_json(path: Path, content: dict[str, Any], *, private: bool = False) -> None:
    """Write JSON, completely or not at all; NaN and infinities are refused."""
    text = json.dumps(content, indent=2, sort_keys=True, allow_nan=False)
    write_text(path, text + "\n", private=private)


class FinishedRun(NamedTuple):
    """A finished run of a table.

    Parameters
    ----------
    folder : Path
        Where it is.
    released : str
        SHA-256 of the table it released.
    epsilon : float or None
        What it promised, all its data sets together; None where nothing was promised.
    """

    folder: Path
    released: str
    epsilon: float | None


def finished_runs_beside(
    out: Path, sha256: str, content_sha256: str | None = None
) -> list[FinishedRun]:
    """Find finished runs of the same input in folders beside this one.

    Parameters
    ----------
    out : Path
        Folder of a run.
    sha256 : str
        Of its input.
    content_sha256 : str, optional
        Of what the input holds, in whatever file. Older records have none; these are compared by
        their file alone.

    Returns
    -------
    list of FinishedRun
        By name. Records that cannot be read are skipped: they belong to somebody else.
    """
    here = out.resolve()
    found = []
    for folder in sorted(here.parent.iterdir()) if here.parent.is_dir() else []:
        if folder == here:
            continue
        with suppress(OSError, InputError, KeyError, TypeError, AttributeError):
            run = _folders(folder)
            record = read_record(run)
            read = record["input"]
            held = read.get("content_sha256")
            same = read["sha256"] == sha256 or (held is not None and held == content_sha256)
            if "checks" in record and same:
                released = str(record["release_sha256"])
                found.append(FinishedRun(folder, released, _promised(record)))
    return found


def _promised(record: dict[str, Any]) -> float | None:
    """Epsilon that a run promised for all its data sets; None where it promised nothing."""
    arguments = record.get("arguments", {})
    epsilon, verdicts = (
        arguments.get("epsilon"),
        [check["verdict"] for check in record["checks"] if check.get("key") == "guarantee"],
    )
    if epsilon is None or verdicts != ["pass"]:
        return None
    return float(epsilon) * int(arguments.get("datasets", 1))
