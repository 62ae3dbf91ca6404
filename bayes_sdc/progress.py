"""Progress of long work: a bar on a terminal or in a notebook, plain lines in a log."""

import sys
import threading
import time
from importlib.util import find_spec
from types import TracebackType
from typing import Self

LINE_EVERY = 10.0  # seconds between plain lines


class Progress:
    """Count finished units of work and show them on standard error.

    Parameters
    ----------
    total : float
        Units of work.
    label : str
        What is being done.
    """

    def __init__(self, total: float, label: str) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._total, self._label, self._done = total, label, 0.0
        self._lock = threading.Lock()
        self._start = self._last_line = time.monotonic()
        self._bar = None
        if has_bar():
            from rich.console import Console

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:3.0f} %"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task(label, total=total, note="")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        else:
            self._write("start")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        else:
            seconds = time.monotonic() - self._start
            self._write(f"{'done' if kind is None else 'stopped'} after {seconds:.0f} s")

    def advance(self, units: float) -> None:
        """Count units of work as done; may be called from any thread."""
        with self._lock:
            self._done += units
            if self._bar is not None:
                self._bar.update(self._task, advance=units)
            elif time.monotonic() - self._last_line >= LINE_EVERY:
                self._last_line = time.monotonic()
                share = self._done / self._total
                left = (self._last_line - self._start) * (1.0 / max(share, 1e-9) - 1.0)
                # the first units also pay for compilation: no forecast from them
                self._write(f"{share:.0%}" + (f", about {left:.0f} s left" if share > 0.02 else ""))

    def note(self, text: str) -> None:
        """Say what is going on beside the bar."""
        if self._bar is not None:
            self._bar.update(self._task, note=text)
        else:
            self._write(text)

    def _write(self, text: str) -> None:
        sys.stderr.write(f"{self._label}: {text}\n")
        sys.stderr.flush()


def has_bar() -> bool:
    """Tell whether a bar can be shown: on a terminal, or in a notebook with widgets."""
    from rich.console import Console

    in_notebook = Console(stderr=True).is_jupyter and find_spec("ipywidgets") is not None
    return sys.stderr.isatty() or in_notebook
