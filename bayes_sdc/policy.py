"""Limits that an agency has set itself: a named, dated policy, and the verdicts on it.

A policy is a TOML file::

    name = "Table release, board decision"
    date = 2026-01-15
    [flows]
    r_all = 0.30
    [microdata]
    k = 3

A limit is exceeded when the value is above it, and kept when they are equal; ``k`` is exceeded when
a record has f < k. A value is compared as it is, not rounded, and not by its interval.
"""

import datetime
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

from bayes_sdc.agency_limits import FlowLimits, MicrodataLimits
from bayes_sdc.arguments import checked
from bayes_sdc.checks import Check, Verdict
from bayes_sdc.errors import InputError
from bayes_sdc.io.text import read_bytes
from bayes_sdc.results import Fact, Result

SECTIONS: dict[str, type[FlowLimits | MicrodataLimits]] = {
    "flows": FlowLimits,
    "microdata": MicrodataLimits,
}


@dataclass(frozen=True)
class LimitCheck(Check):
    """Verdict on one limit: "pass", "fail", or "look" where there is nothing to judge.

    Parameters
    ----------
    definition : str
        What is limited.
    exceeded_when : str
        ``> 0.3``, or ``< 3`` for k.
    limit : float
        As in the policy.
    value : float or None
        What was measured; None where it is undefined, which is not a risk of 0.
    units : int
        Number of cells or records that were judged.
    policy, date : str
        Name and ISO date of the policy.
    known : bool
        False where the number that keeps a limit cannot be relied on: nobody knows whether it is
        kept.
    """

    definition: str
    exceeded_when: str
    limit: float
    value: float | None
    units: int
    policy: str
    date: str
    known: bool = True

    @property
    def compared(self) -> str:
        """Return value and limit in short; never a value that rounding puts on the other side.

        Examples
        --------
        >>> import datetime
        >>> policy = Policy("Board", datetime.date(2026, 1, 15), flows=FlowLimits(r_all=0.3))
        >>> policy.judge("r_all", 0.3, 0.300004, units=900, definition="share found").compared
        '0.300004 > 0.3'
        """
        if self.value is None:
            return "undefined"
        side = (self.value > self.limit, self.value < self.limit)
        forms = (f"{self.value:.3g}", f"{self.value:.6g}", repr(float(self.value)))
        shown = next(
            (
                form
                for form in forms
                if (float(form) > self.limit, float(form) < self.limit) == side
            ),
            forms[-1],
        )
        exceeded, _, limit = self.exceeded_when.partition(" ")
        sign = exceeded if self.verdict == "fail" else {">": "<=", "<": ">="}[exceeded]
        return f"{shown} {sign} {limit}"


@dataclass(frozen=True)
class Policy(Result):
    """Named and dated limits for one job or both.

    Parameters
    ----------
    name : str
        One line.
    date : datetime.date
        When it was decided.
    flows : FlowLimits or None
        For origin-destination tables.
    microdata : MicrodataLimits or None
        For files of persons.

    Raises
    ------
    InputError
        If the name or the date cannot be used, or there is no limit.

    Examples
    --------
    >>> import datetime
    >>> policy = Policy("Board", datetime.date(2026, 1, 15), flows=FlowLimits(r_all=0.3))
    >>> str(policy)
    "policy 'Board' of 2026-01-15"
    >>> policy.judge("r_all", 0.3, 0.31, units=900, definition="share found").verdict
    'fail'
    """

    name: str
    date: datetime.date
    flows: FlowLimits | None = None
    microdata: MicrodataLimits | None = None

    def __post_init__(self) -> None:
        name: Any = self.name
        day: Any = self.date
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InputError(f'name must be one line of text, as in name = "Board"; it is {name!r}')
        # a time is a date as well, and its zone would make the day ambiguous
        if not isinstance(day, datetime.date) or isinstance(day, datetime.datetime):
            shown = day.isoformat() if isinstance(day, datetime.datetime) else repr(day)
            raise InputError(
                f"date must be a date without quotes, as in date = 2026-01-15; it is {shown}"
            )
        today = datetime.date.today()
        if day > today + datetime.timedelta(days=1):
            raise InputError(
                f"date must be the day on which the limits were decided; {day.isoformat()} is in "
                f"the future, today being {today.isoformat()}"
            )
        if self.flows is None and self.microdata is None:
            raise InputError(
                "the policy holds no limit; add a section [flows] or [microdata] with one"
            )

    def __str__(self) -> str:
        """Return name and date."""
        return f"policy {self.name!r} of {self.date.isoformat()}"

    def _title(self) -> str:
        return f"Policy {self.name!r} of {self.date.isoformat()}"

    def _facts(self) -> list[Fact]:
        return [
            (f"[{section}] {key}", value, meaning)
            for section in SECTIONS
            if (limits := getattr(self, section)) is not None
            for key, value, meaning in limits._facts()
        ]

    def for_flows(self) -> FlowLimits:
        """Return the limits of a flow table; without any, raise `InputError`."""
        if self.flows is None:
            raise self._without("flows")
        return self.flows

    def for_microdata(self) -> MicrodataLimits:
        """Return the limits of a file of persons; without any, raise `InputError`."""
        if self.microdata is None:
            raise self._without("microdata")
        return self.microdata

    def _without(self, section: str) -> InputError:
        return InputError(
            f"{self} has no section [{section}], so it cannot judge this job; add one, or run "
            "without a policy"
        )

    def judge(
        self,
        key: str,
        limit: float,
        value: float | None,
        *,
        units: int,
        definition: str,
        detail: str = "",
    ) -> LimitCheck:
        """Compare a value with a limit.

        Parameters
        ----------
        key : str
            Name of the limit in the file.
        limit : float
            The limit.
        value : float or None
            What was measured; None where it is undefined.
        units : int
            Number of cells or records that were judged.
        definition : str
            What was measured.
        detail : str
            More for the reason.

        Returns
        -------
        LimitCheck
            Called ``limit KEY``; its own key is ``limit_KEY``.
        """
        exceeded, kept = ("<", ">=") if key == "k" else (">", "<=")
        verdict: Verdict
        if value is None:
            verdict, found = "look", "undefined, which is not a risk of 0"
        elif value >= limit if key == "k" else value <= limit:  # nan is not kept
            verdict, found = "pass", f"{value:.6g} {kept} {limit}"
        else:
            verdict, found = "fail", f"{value:.6g} {exceeded} {limit}"
        told = [f"{definition}: {found}", *([detail] if detail else [])]
        return LimitCheck(
            name=f"limit {key}",
            key=f"limit_{key}",
            verdict=verdict,
            reason="; ".join(told),
            definition=definition,
            exceeded_when=f"{exceeded} {limit}",
            limit=limit,
            value=value,
            units=units,
            policy=self.name,
            date=self.date.isoformat(),
        )


@checked
def read_policy(path: str | PathLike[str]) -> Policy:
    r"""Read a policy from a TOML file.

    Parameters
    ----------
    path : path
        The file; its keys are those of `Policy`, `FlowLimits` and `MicrodataLimits`.

    Returns
    -------
    Policy
        The limits.

    Raises
    ------
    InputError
        If the file cannot be read, a key is unknown or missing, or a value cannot be used.

    See Also
    --------
    bayes_sdc.Policy, bayes_sdc.FlowLimits, bayes_sdc.MicrodataLimits

    References
    ----------
    https://toml.io/en/v1.0.0

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "policy.toml"
    ...     _ = file.write_text('name = "Survey"\ndate = 2026-01-15\n[microdata]\nk = 3\n')
    ...     policy = read_policy(file)
    >>> policy.name, policy.microdata
    ('Survey', MicrodataLimits(k=3))
    """
    path = Path(path)
    stored = read_bytes(path)
    try:
        content = tomllib.loads(stored.decode("utf-8").lstrip("\ufeff"))
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits
        raise InputError(f"{path}: not valid TOML ({error})") from None
    try:
        return _from_toml(content)
    except (InputError, OverflowError) as error:
        raise InputError(f"{path}: {error}") from None


def _from_toml(content: Mapping[str, Any]) -> Policy:
    _refuse_unknown("", content, ["name", "date", *SECTIONS])
    for key, example in {"name": 'name = "Board"', "date": "date = 2026-01-15"}.items():
        if key not in content:
            raise InputError(f"no {key}; add a line such as {example} above the sections")
    sections: dict[str, Any] = {}
    for section, limits in SECTIONS.items():
        if section not in content:
            continue
        given = content[section]
        if not isinstance(given, dict):
            raise InputError(
                f"{section} must be one section, [{section}], with one limit per line; it is "
                f"{given!r}"
            )
        _refuse_unknown(f"[{section}] ", given, [field.name for field in fields(limits)])
        sections[section] = limits(**given)
    return Policy(content["name"], content["date"], **sections)


def _refuse_unknown(where: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    for key in given:
        if key not in known:
            raise InputError(f"{where}{key!r} is unknown; choose from {', '.join(known)}")
