"""How results are shown: the same facts as text, as a table in a notebook, and in one line."""

from collections.abc import Mapping, Sequence

from bayes_sdc.checks import Check
from bayes_sdc.html import facts_table

LINES = 10  # of the summary of a run; more only where more than a few checks failed
IN_ONE_LINE = 3  # facts of a result in its repr
WIDEST = 32  # a longer value pushes its own meaning to the right, not those of all others

Fact = tuple[str, object, str]  # name, value, and what it is


class Result:
    """What a result says about itself: its facts, the most important first.

    A result gives ``_title``, ``_facts`` and, where there are any, ``_remarks``. All three ways of
    showing it follow from these, so all three show the same numbers.
    """

    def _title(self) -> str:
        """What the facts are about, in one line."""
        raise NotImplementedError

    def _facts(self) -> Sequence[Fact]:
        """Name, value and meaning of each main number."""
        raise NotImplementedError

    def _remarks(self) -> Sequence[str]:
        """What was assumed or must be known to read the facts."""
        return getattr(self, "notes", ())

    def summary(self) -> str:
        """Return the main numbers in a few lines, for the console.

        Returns
        -------
        str
            One line per number; confidential where the result is.
        """
        facts = [(name, str(value), meaning) for name, value, meaning in self._facts()]
        name_width = max((len(name) for name, _, _ in facts), default=0)
        value_width = min(max((len(value) for _, value, _ in facts), default=0), WIDEST)
        lines = [
            f"  {name:<{name_width}}  {value:<{value_width}}  {meaning}".rstrip()
            for name, value, meaning in facts
        ]
        return "\n".join([self._title(), *lines, *(f"note: {note}" for note in self._remarks())])

    def _repr_html_(self) -> str:
        """Show the main numbers in a notebook."""
        return facts_table(self._title(), self._facts(), self._remarks())

    def __repr__(self) -> str:
        facts = list(self._facts())[:IN_ONE_LINE]
        numbers = "; ".join(f"{name} {value}" for name, value, _ in facts)
        return f"<{type(self).__name__}: {numbers}>"


def with_interval(value: float, interval: tuple[float, float]) -> str:
    """Write a number with its interval.

    Examples
    --------
    >>> with_interval(12.34, (10.0, 1500.0))
    '12.3 [10.0, 1,500.0]'
    """
    low, high = interval
    return f"{value:,.1f} [{low:,.1f}, {high:,.1f}]"


def or_undefined(value: float | None, form: str) -> str:
    """Write a number, or that there is none, which is not 0.

    Examples
    --------
    >>> or_undefined(0.256, ".1%"), or_undefined(None, ".1%")
    ('25.6%', 'undefined')
    """
    return "undefined" if value is None else format(value, form)


def summary_lines(
    headline: str, checks: Sequence[Check], measures: Sequence[str], seconds: Mapping[str, float]
) -> list[str]:
    """Return the summary of a run: headline, verdicts with reasons, main numbers, time.

    Parameters
    ----------
    headline : str
        What was done.
    checks : sequence of Check
        Every failed one is shown with its reason. Of those to be looked at the last share a line
        where there is no room, and those that passed are named.
    measures : sequence of str
        The main numbers, one per line.
    seconds : mapping
        Wall time of each stage.

    Returns
    -------
    list of str

    Examples
    --------
    >>> checks = [Check("fit", "pass", "close", key="fit"), Check("k", "fail", "1 < 3", key="k")]
    >>> summary_lines("9 records", checks, ["risk: 2 %"], {"risk": 61.0, "fit": 2.2})[-1]
    'time: 63 s before reports, most of it risk (61 s)'
    """
    verdicts = [
        f"FAIL  {check.name}: {check.reason}" for check in checks if check.verdict == "fail"
    ]
    looks = [check for check in checks if check.verdict == "look"]
    passed = [check.name for check in checks if check.verdict == "pass"]
    room = LINES - 2 - len(verdicts) - bool(passed) - len(measures)
    shown = len(looks) if len(looks) <= room else max(room - 1, 0)
    verdicts += [f"LOOK  {check.name}: {check.reason}" for check in looks[:shown]]
    if looks[shown:]:
        names = ", ".join(check.name for check in looks[shown:])
        verdicts.append(f"LOOK  {names}: the report has the reasons")
    if passed:
        verdicts.append(f"pass  {', '.join(passed)}")
    return [headline, *verdicts, *measures, _time(seconds)]


def _time(seconds: Mapping[str, float]) -> str:
    if not seconds:
        return "time: less than a second"
    longest = max(seconds, key=lambda stage: seconds[stage])
    total = sum(seconds.values())
    return f"time: {total:.0f} s before reports, most of it {longest} ({seconds[longest]:.0f} s)"
