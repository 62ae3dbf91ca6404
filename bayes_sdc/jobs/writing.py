"""The protocol by which a run is written, the same for every job.

A run is made whole before its first file is touched. Then the record names all files that are about
to be written, so that after a crash the folder still knows whose they are; files of an earlier run
go; the confidential files follow, the full record, and the release last: there is none without the
record of how it was made, and until all of it is there the record says that the run is unfinished.
Every file is written under another name and renamed.

The release of a run with a failed check does not go to ``release/`` but to ``held/``, which its
owner alone can read. :func:`approve` moves it.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from bayes_sdc.checks import Check
from bayes_sdc.errors import InputError
from bayes_sdc.io.spreadsheets import csv_chunks
from bayes_sdc.locks import lock, unlock
from bayes_sdc.runs import (
    UNFINISHED,
    RunFolder,
    close_held,
    discard_resume,
    finished_run,
    open_held,
    read_record,
    results_of_earlier_run,
    write_atomically,
    write_bytes,
    write_json,
)

Writer = Callable[[Path], None]  # writes one file to the path it is given
RECORD = "run.json"


@dataclass(frozen=True)
class WrittenRun:
    """The files of a run, and whether its release may leave.

    Parameters
    ----------
    folder : RunFolder
        Where the run is.
    public : tuple of Path
        The table, where there is one, and the external report: in ``release/``, or in ``held/``.
    confidential : tuple of Path
        All other files.
    failed : tuple of str
        Checks that failed; with any the release is held.
    """

    folder: RunFolder
    public: tuple[Path, ...]
    confidential: tuple[Path, ...]
    failed: tuple[str, ...]


def describe_call(
    command: str, *, seed: int, arguments: Mapping[str, Any], packages: Sequence[str]
) -> dict[str, Any]:
    """Return what a record says of the call: command, date, seed, arguments and versions."""
    return {
        "command": command,
        "created": _now(),
        "seed": seed,
        "arguments": dict(arguments),
        "versions": {name: version(name) for name in packages},
    }


def csv_writer(frame: pd.DataFrame, *, index: bool) -> Writer:
    """Return what writes a frame as CSV, with lines that end alike on every system.

    Text that a spreadsheet would take for a formula gets an apostrophe in front.
    """

    def write(path: Path) -> None:
        with path.open("wb") as file:
            file.writelines(csv_chunks(frame, index=index))

    return write


def text_writer(text: str) -> Writer:
    """Return what writes UTF-8 text."""

    def write(path: Path) -> None:
        path.write_bytes(text.encode())

    return write


def write_run(
    run: RunFolder,
    *,
    confidential: Mapping[str, Writer],
    public: Mapping[str, bytes],
    record: Mapping[str, Any],
    checks: Sequence[Check],
) -> WrittenRun:
    """Write all files of a run; those of an earlier run are deleted first.

    Parameters
    ----------
    run : RunFolder
        Where to write.
    confidential : mapping from name to callable
        What writes each confidential file.
    public : mapping from name to bytes
        What may leave if no check failed, in the order of writing.
    record : mapping
        The call and the main numbers; the names of the files are added.
    checks : sequence of Check
        Verdicts; a failed one holds the release.

    Returns
    -------
    WrittenRun

    Raises
    ------
    InputError
        If a file cannot be written; no file is left half-written.
    """
    failed = tuple(check.name for check in checks if check.verdict == "fail")
    if failed:
        open_held(run)
    outside = run.held if failed else run.release
    inside = [run.confidential / name for name in (*confidential, RECORD)]
    released = [outside / name for name in public]
    ours = [_name(run, path) for path in (*inside, *released)]
    earlier = results_of_earlier_run(run)
    # first of all, so that after a crash the folder still knows whose files these are
    old = [_name(run, path) for path in earlier]
    write_json(run.confidential / RECORD, {"written": [*ours, *old]}, private=True)
    for path in earlier:
        if path.name != RECORD:
            path.unlink()
    for name, write in confidential.items():
        write_atomically(run.confidential / name, write, private=True)
    full = {**record, "written": ours}
    if failed:
        digests = [[name, hashlib.sha256(content).hexdigest()] for name, content in public.items()]
        full["held"] = {"failed": list(failed), "files": digests}
    write_json(run.confidential / RECORD, {**full, UNFINISHED: True}, private=True)
    # the release last: there is none without the record of how it was made
    for path, content in zip(released, public.values(), strict=True):
        write_bytes(path, content, private=bool(failed))
    # from here on a file that is missing was taken away, not lost
    write_json(run.confidential / RECORD, full, private=True)
    close_held(run)
    discard_resume(run.resume)
    unlock(run.root)
    return WrittenRun(run, tuple(reversed(released)), tuple(inside), failed)


def approve(out: Path, *, reason: str) -> tuple[list[Path], list[str]]:
    """Move the held release of a run to ``release/``, and record when and why.

    Parameters
    ----------
    out : Path
        Folder of the run.
    reason : str
        Why the release may leave although a check failed: one line. It goes into ``run.json`` with
        the date and the failed checks.

    Returns
    -------
    list of Path
        The files that may leave now.
    list of str
        The checks that had failed.

    Raises
    ------
    InputError
        If the folder holds no finished run, its release is not held or was changed since it was
        written, a file is in the way, or the reason is empty.
    """
    reason = reason.strip()
    if not reason or not reason.isprintable():
        raise InputError(
            "--reason must say in one line why the release may leave although a check failed"
        )
    run = finished_run(out)
    record = read_record(run)
    held = record.get("held")
    if not held:
        raise InputError(f"{out}: holds back no release; what may leave is in {run.release}")
    try:
        names = [str(name) for name, _ in held["files"]]
        failed = [str(check) for check in held["failed"]]
    except (TypeError, KeyError, ValueError):
        raise InputError(
            f"{run.confidential / RECORD}: does not say what is held, so the run cannot be "
            "approved; run the job again"
        ) from None
    lock(out)
    try:
        _refuse_changed(run, held["files"], started="approved" in record)
        record["approved"] = {"reason": reason, "date": _now(), "failed": failed}
        _move_held(run, record, names)
    finally:
        unlock(out)
    return [run.release / name for name in reversed(names)], failed


def _move_held(run: RunFolder, record: dict[str, Any], names: Sequence[str]) -> None:
    """Move what was held to ``release``, with the record of it."""
    inside = [name for name in record["written"] if Path(name).parent.name == "confidential"]
    moved = [_name(run, run.release / name) for name in names]
    # both names first: after a crash the folder knows its files, and the command can be repeated
    both = [*inside, *moved, *(_name(run, run.held / name) for name in names)]
    write_json(run.confidential / RECORD, {**record, "written": both}, private=True)
    for name in names:
        source = run.held / name
        if source.exists():
            write_bytes(run.release / name, source.read_bytes())
            source.unlink()
    del record["held"]
    write_json(run.confidential / RECORD, {**record, "written": [*inside, *moved]}, private=True)
    close_held(run)


def _refuse_changed(run: RunFolder, files: Sequence[Sequence[str]], *, started: bool) -> None:
    """Refuse a held release that is not the one the checks saw."""
    for name, digest in files:
        path = run.held / name
        if not path.is_file():
            if started and (run.release / name).exists():
                continue  # moved by an earlier call that was interrupted
            raise InputError(f"{path}: is missing, so the run cannot be approved; run it again")
        if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise InputError(
                f"{path}: was changed after the checks, so they say nothing of it; run the job "
                "again"
            )


def _name(run: RunFolder, path: Path) -> str:
    return str(path.relative_to(run.root))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
