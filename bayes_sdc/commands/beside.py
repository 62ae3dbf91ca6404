"""A part of a command that runs beside the rest, in a process of its own.

Threads would share the interpreter's lock, and libraries that are loaded at the first call.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from bayes_sdc.commands.terminal import say


@contextmanager
def beside(code: str) -> Iterator[Callable[[], int]]:
    """Run Python code in another process, with the arguments of this command.

    Parameters
    ----------
    code : str
        What to run.

    Yields
    ------
    callable
        Waits for the end, shows what was said there, and returns the exit code, as a shell would
        where a signal ended it. Without this call the process is ended when the block is left.
    """
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        process = subprocess.Popen(  # noqa: S603  # ourselves
            # -P: a file of the user's folder must not stand for a module of the library
            [sys.executable, "-P", "-c", code, *sys.argv[1:]],
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=complained,
        )

        def end() -> int:
            code = process.wait()
            sys.stderr.write(_text(complained))
            if text := _text(said).rstrip("\n"):
                say(text)
            if code < 0:
                name = signal.Signals(-code).name
                sys.stderr.write(f"error: the part that ran beside was ended by {name}\n")
                return 128 - code
            return code

        try:
            yield end
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def _text(file: IO[bytes]) -> str:
    """Read what a process wrote."""
    file.seek(0)
    return file.read().decode("utf-8", "backslashreplace").replace("\r\n", "\n")
