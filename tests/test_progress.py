"""Progress: a bar where somebody can see it move, lines where it would be a mess."""

import sys
from types import SimpleNamespace

import pytest

from bayes_sdc import progress
from bayes_sdc.progress import Progress, has_bar


@pytest.fixture
def surroundings(monkeypatch):
    """Pretend to be somewhere."""

    def pretend(*, terminal: bool, notebook: bool, widgets: bool) -> None:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
        monkeypatch.setattr("rich.console._is_jupyter", lambda: notebook)
        found = object() if widgets else None
        monkeypatch.setattr(progress, "find_spec", lambda name: found)

    return pretend


@pytest.mark.parametrize(
    ("terminal", "notebook", "widgets", "bar"),
    [
        (True, False, False, True),
        (False, False, True, False),
        (False, True, True, True),
        (False, True, False, False),  # rich could only warn
    ],
)
def test_bar_on_terminals_and_in_notebooks_with_widgets(
    surroundings, terminal, notebook, widgets, bar
):
    surroundings(terminal=terminal, notebook=notebook, widgets=widgets)
    assert has_bar() is bar


def test_lines_in_a_log(surroundings, capsys, monkeypatch):
    surroundings(terminal=False, notebook=False, widgets=True)
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    with Progress(4, "work") as shown:
        shown.advance(2)
        shown.note("half")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("work: 50%, about ")
    assert lines[1] == "work: half"
    assert lines[2].startswith("work: done in ")


def test_a_short_step_is_one_line_in_a_log(surroundings, capsys):
    """Pairs of start and end bury in thirty lines the two that somebody needs."""
    surroundings(terminal=False, notebook=False, widgets=False)
    with Progress(4, "work") as shown:
        for _ in range(4):
            shown.advance(1)
    assert capsys.readouterr().err.splitlines() == ["work: done in 0 s"]


def test_a_long_step_has_its_first_line_soon_and_then_one_a_minute(
    surroundings, capsys, monkeypatch
):
    surroundings(terminal=False, notebook=False, widgets=False)
    clock = {"now": 0.0}
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock["now"]))
    with Progress(200, "fit") as shown:
        for _ in range(200):  # a second each
            clock["now"] += 1.0
            shown.advance(1)
    percents = [line.split()[1] for line in capsys.readouterr().err.splitlines()]
    assert percents == ["5%,", "35%,", "65%,", "95%,", "done"]


def test_a_log_says_that_work_stopped(surroundings, capsys):
    surroundings(terminal=False, notebook=False, widgets=False)
    with pytest.raises(KeyboardInterrupt), Progress(4, "work"):
        raise KeyboardInterrupt
    assert "work: stopped after" in capsys.readouterr().err


def test_work_within_work_shares_one_display(surroundings):
    """Two displays that refresh themselves write over each other, and break a notebook."""
    surroundings(terminal=True, notebook=False, widgets=False)
    with Progress(2, "outer") as outer:
        with Progress(3, "inner") as inner:
            inner.advance(1)
            assert outer.bars is inner.bars
            assert [task.description for task in outer.bars.tasks] == ["outer", "inner"]
        outer.advance(1)
        assert [(task.description, task.completed) for task in outer.bars.tasks] == [("outer", 1)]
    with pytest.raises(ValueError, match="broken"), Progress(2, "broken"):
        raise ValueError("broken")
    with Progress(2, "next") as following:
        assert following.bars is not outer.bars
        assert len(following.bars.tasks) == 1


def test_work_of_an_earlier_run_says_nothing_about_the_time_left(surroundings, capsys, monkeypatch):
    # 80 of 100 were done before; one more took a second: 19 s are left, not none
    surroundings(terminal=False, notebook=False, widgets=False)
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    clock = iter([0.0, 1.0, 1.0, 5.0, 5.0, 6.0])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with Progress(100, "fit") as shown:
        shown.advance(80, earlier=True)
        shown.advance(1)
        shown.advance(4)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "fit: 81%"
    assert lines[1] == "fit: 85%, about 15 s left"


def test_a_long_note_leaves_the_bar_its_place(surroundings, capsys):
    # as a column of the bar a sentence would push out bar, per cent and time left
    surroundings(terminal=True, notebook=False, widgets=False)
    with Progress(4, "work") as shown:
        shown.note("a long word " * 20)
        assert list(shown.bars.tasks[0].fields) == []
    assert "work: a long word" in capsys.readouterr().err
