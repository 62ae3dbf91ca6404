"""A part of a command that runs beside the rest, in a process of its own.

Threads would share the interpreter's lock, and libraries that are loaded at the first call.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
        Waits for the end, shows what was said there, and returns the exit code. Without this call
        the process is ended when the block is left.
    """
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603  # ourselves
            [sys.executable, "-c", code, *sys.argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )

        def end() -> int:
            code = process.wait()
            said.seek(0)
            say(said.read().decode("utf-8", "backslashreplace").rstrip("\n"))
            return code

        try:
            yield end
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
