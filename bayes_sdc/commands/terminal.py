"""What the commands share: exit codes, lines of text, and the end of a run."""

import errno
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import typer

from bayes_sdc.errors import InputError

if TYPE_CHECKING:
    from bayes_sdc.jobs.writing import WrittenRun

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

# on systems that have them
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
LEAST_MEMORY = 2.5 * 2**30  # bytes of addresses; a small run on two cores was seen to take 2.3 GiB
EXIT_FAILED, EXIT_INPUT, EXIT_DEFECT, EXIT_INTERRUPTED = 1, 2, 70, 130


# of the disk, of rights and of what stands under a name: nothing that the program does wrong
LIMITS = {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EISDIR,
    errno.ENOTDIR, errno.ENAMETOOLONG, errno.EMFILE, errno.ENFILE, errno.ELOOP, errno.ENOMEM,
    *(getattr(errno, name) for name in ("EDQUOT", "ESTALE") if hasattr(errno, name)),
}  # fmt: skip
FULL = {getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name)}
# files of a run are named by who writes them
NO_ROOM = (
    ", perhaps where compiled code is kept (NUMBA_CACHE_DIR, else beside the package or in "
    "~/.cache/numba), temporary files (TMPDIR) or the output; make room, or name another folder"
)


class Ended(KeyboardInterrupt):
    """The system asked the process to end: a shutdown, or a terminal that was closed."""


@contextmanager
def interruptible(remedy: str) -> Iterator[None]:
    """End with one line and an exit code of its own after Ctrl-C, SIGTERM or SIGHUP."""
    ended: list[int] = []

    def end(number: int, frame: object) -> None:
        ended.append(number)
        raise Ended

    before = {number: signal.signal(number, end) for number in ENDING if _can_be_caught(number)}
    try:
        yield
    except KeyboardInterrupt:
        code = 128 + ended[0] if ended else EXIT_INTERRUPTED
        what = f"ended by {signal.Signals(ended[0]).name}" if ended else "interrupted"
        with suppress(OSError):  # the terminal may be gone
            sys.stderr.write(f"{what}; {remedy}\n")
            sys.stderr.flush()
        raise typer.Exit(code) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _can_be_caught(number: int) -> bool:
    """Whether a signal ends the process; what is ignored, as under nohup, stays ignored."""
    in_main = threading.current_thread() is threading.main_thread()
    return in_main and signal.getsignal(number) == signal.SIG_DFL


def end_of_run(written: "WrittenRun", lines: Sequence[str]) -> None:
    """Print the summary of a run; the exit code tells whether its release is held."""
    from bayes_sdc.jobs.summary import closing_lines

    say("\n".join([*lines, *closing_lines(written)]))
    if written.failed:
        raise typer.Exit(EXIT_FAILED)


def exit_code(job: Callable[..., None], *arguments: Any, **options: Any) -> int:
    """Run a job and return the exit code that it asks for."""
    try:
        job(*arguments, **options)
    except typer.Exit as ended:
        return int(ended.exit_code)
    return 0


def refuse_small_memory() -> None:
    """Refuse a job under a limit of memory in which the libraries alone do not fit.

    Some end the process when they meet it, with the exit code of a failed check.
    """
    # no limit is -1, or more than any machine has
    if (
        resource is None
        or not 0 <= (limit := resource.getrlimit(resource.RLIMIT_AS)[0]) < LEAST_MEMORY
    ):
        return
    raise InputError(
        f"this shell gives a program {limit / 2**30:.1f} GiB of memory (ulimit -v), and the "
        f"libraries alone reserve {LEAST_MEMORY / 2**30:.1f} GiB, most of which they never "
        "fill; raise the limit, for example by ulimit -v unlimited"
    )


def limit_of_machine(error: BaseException) -> str | None:
    """Say what of the machine ended a run: memory, disk, or the rights to a file; else None.

    Examples
    --------
    >>> limit_of_machine(PermissionError(13, "Permission denied", "moves.csv"))
    "'moves.csv': Permission denied"
    >>> limit_of_machine(OSError("of some library")) is None
    True
    """
    if isinstance(error, MemoryError):
        return (
            "out of memory, or of what may be used of it (ulimit -v); fewer --draws or --chains "
            "need less, and so do fewer cells or records"
        )
    if isinstance(error, OSError) and error.errno in LIMITS:
        if error.filename is not None:
            return f"{error.filename!r}: {error.strerror}"
        return f"{error.strerror}{NO_ROOM if error.errno in FULL else ''}"
    return None


def the_command() -> str:
    """Return the command as it was typed."""
    return shlex.join(["bayes-sdc", *sys.argv[1:]])


def steady_streams() -> None:
    """Let no terminal end a run: escape what it cannot show, and skip one that is closed.

    In the locale C a terminal shows ASCII only, and a code may hold any character.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell: >&-
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Print text as it is: codes from the data may look like markup."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError:  # the reader is gone or the disk is full; that must not cost the run
        with suppress(OSError, ValueError):  # a stream of a test has no number
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
