"""Progress of long work: a bar on a terminal or in a notebook, plain lines in a log.

A log gets one line per step, when it has ended, and more only for a step that takes long.
"""

import sys
import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

FIRST_LINE, LINE_EVERY = 10.0, 60.0  # seconds to the first plain line of a step, and the next

# the bars on the screen: nested work shares one display, because two displays that refresh
# themselves would overwrite each other
_shown: "list[RichProgress]" = []


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
        self._total, self._label, self._done, self._earlier = total, label, 0.0, 0.0
        self._lock = threading.Lock()
        self._start = self._last_line = time.monotonic()
        self._wait = FIRST_LINE
        self.bars: RichProgress | None = None  # the display, which nested work shares

    def __enter__(self) -> Self:
        if not has_bar():
            return self
        self._outermost = not _shown
        if self._outermost:
            _shown.append(_display())
            _shown[0].start()
        self.bars = _shown[0]
        self._task = self.bars.add_task(self._label, total=self._total)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.bars is None:
            seconds = time.monotonic() - self._start
            self._write(f"{'done in' if kind is None else 'stopped after'} {seconds:.0f} s")
        elif self._outermost:
            _shown.clear()
            self.bars.stop()
        else:
            self.bars.remove_task(self._task)

    def advance(self, units: float, *, earlier: bool = False) -> None:
        """Count units of work as done; may be called from any thread.

        Work of an ``earlier`` run took no time now, so it says nothing about the time left.
        """
        with self._lock:
            self._done += units
            if earlier:
                self._earlier += units
                if self.bars is not None:
                    self.bars.reset(self._task, completed=self._done)  # type: ignore[arg-type]
            elif self.bars is not None:
                self.bars.update(self._task, advance=units)
            elif time.monotonic() - self._last_line >= self._wait:
                self._last_line, self._wait = time.monotonic(), LINE_EVERY
                now = self._done - self._earlier
                line = f"{self._done / self._total:.0%}"
                # the first units also pay for compilation: no forecast from them, or from none
                if now > 0.02 * self._total:
                    left = (self._last_line - self._start) * (self._total - self._done) / now
                    line += f", about {left:.0f} s left"
                self._write(line)

    def advance_earlier(self, units: float) -> None:
        """Count units of work that an earlier run did: they took no time now."""
        self.advance(units, earlier=True)

    def note(self, text: str) -> None:
        """Write a line of its own."""
        if self.bars is not None:
            self.bars.print(f"{self._label}: {text}", markup=False, highlight=False)
        else:
            self._write(text)

    def _write(self, text: str) -> None:
        say(f"{self._label}: {text}")


def say(text: str) -> None:
    """Write a line to standard error, where no bar is."""
    with suppress(BrokenPipeError):  # the reader is gone; that must not end the run
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def _display() -> "RichProgress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def has_bar() -> bool:
    """Tell whether a bar can be shown: on a terminal, or in a notebook with widgets."""
    from rich.console import Console

    in_notebook = Console(stderr=True).is_jupyter and find_spec("ipywidgets") is not None
    return sys.stderr.isatty() or in_notebook
