"""What runs beside a command is shown when it has ended, and ends with the command."""

import time

import pytest

from bayes_sdc.commands.beside import beside

SAYS = """
import sys
print("from there")
print("and its errors", file=sys.stderr)
sys.exit(3)
"""


def test_what_was_said_is_shown_at_the_end_with_the_exit_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with beside(SAYS) as end:
        print("from here")
        assert end() == 3
    shown = capsys.readouterr()
    assert shown.out.splitlines() == ["from here", "from there"]
    assert shown.err == "and its errors\n"


def test_a_part_that_a_signal_ends_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is that of a shell, and not a silent 247."""
    with beside("import os, signal; os.kill(os.getpid(), signal.SIGTERM)") as end:
        assert end() == 128 + 15
    assert "ended by SIGTERM" in capsys.readouterr().err


def test_it_ends_where_the_command_fails() -> None:
    """Ctrl-C, or a file that is refused, must leave no process behind."""
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), beside("import time; time.sleep(60)"):
        raise KeyboardInterrupt
    assert time.monotonic() - begun < 30
