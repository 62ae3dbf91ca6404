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
import math
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

from bayes_sdc.arguments import checked
from bayes_sdc.checks import Check, Verdict
from bayes_sdc.errors import InputError
from bayes_sdc.io.text import read_bytes
from bayes_sdc.results import Fact, Result


class Limits(Result):
    """Limits of one job, shown alike."""

    def __repr__(self) -> str:
        """Return what would make it, without the limits that are not set."""
        given = ", ".join(
            f"{key}={value!r}" for key, value in vars(self).items() if value is not None
        )
        return f"{type(self).__name__}({given})"

    def _facts(self) -> list[Fact]:
        return [
            (key, f"{value:g}", f"exceeded when {'<' if key == 'k' else '>'} {value:g}")
            for key, value in vars(self).items()
            if value is not None
        ]


@dataclass(frozen=True, repr=False)
class FlowLimits(Limits):
    """Section ``[flows]`` of a policy; None where no limit is set.

    Made by hand, or by :func:`read_policy` as part of a :class:`Policy`.

    Parameters
    ----------
    r_all : float or None
        From 0 to below 1. Exceeded when R_all > r_all: share of small cells whose best guess is
        right.
    r_unq : float or None
        From 0 to below 1. Exceeded when R_unq > r_unq: the same among the riskiest kind of cell.
        Where there is no such cell the verdict is "look".
    true_count_probability : float or None
        From 0 to below 1. Exceeded when the probability of its true count, given the release, is
        above it in any cell.
    gain_bits : float or None
        0 or more. Exceeded when the release adds more than so many bits to the mean log2
        probability of the true count, for the strongest intruder:
        :func:`bayes_sdc.intruder_gain`.
    pushed_over_80 : int or None
        0 or more. Exceeded when the release pushes more than so many cells past a probability of
        80 % of the true count, for the strongest intruder.
    totals_error : float or None
        From 0 to below 1. Exceeded when the totals of the small cells by area are off by more, in
        all and relative to them: ``totals_error`` of :func:`bayes_sdc.utility`.
    pmse_ratio : float or None
        1 or more. Exceeded when released rows are told from true ones better than by this ratio:
        ``pmse_ratio`` of :func:`bayes_sdc.utility`; 1 to 2 where nobody can tell.

    Raises
    ------
    InputError
        If a limit cannot be used, or there is none.
    """

    r_all: float | None = None
    r_unq: float | None = None
    true_count_probability: float | None = None
    gain_bits: float | None = None
    pushed_over_80: int | None = None
    totals_error: float | None = None
    pmse_ratio: float | None = None

    def _title(self) -> str:
        return "Limits of a flow table"

    def __post_init__(self) -> None:
        for key, value in _given("flows", self).items():
            if key == "gain_bits":
                _check_bits("flows", key, value)
            elif key == "pushed_over_80":
                _check_whole("flows", key, value, least=0)
            elif key == "pmse_ratio":
                _check_ratio("flows", key, value)
            else:
                _check_share("flows", key, value)


@dataclass(frozen=True, repr=False)
class MicrodataLimits(Limits):
    """Section ``[microdata]`` of a policy; None where no limit is set.

    Made by hand, or by :func:`read_policy` as part of a :class:`Policy`.

    Parameters
    ----------
    k : int or None
        2 or more. Exceeded when a record has f < k.
    record_risk : float or None
        From 0 to below 1. Exceeded when the individual risk of a record, by the closed form or any
        model, is above it.
    file_risk : float or None
        From 0 to below 1. Exceeded when the expected share of re-identified records, by the model
        with the highest, is above it.

    Raises
    ------
    InputError
        If a limit cannot be used, or there is none.
    """

    k: int | None = None
    record_risk: float | None = None
    file_risk: float | None = None

    def _title(self) -> str:
        return "Limits of a file of persons"

    def __post_init__(self) -> None:
        for key, value in _given("microdata", self).items():
            if key != "k":
                _check_share("microdata", key, value)
            else:
                _check_whole("microdata", key, value, least=2)


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
    """

    definition: str
    exceeded_when: str
    limit: float
    value: float | None
    units: int
    policy: str
    date: str


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
        """Return the limits of a flow table; that there are none is an `InputError`."""
        if self.flows is None:
            raise self._without("flows")
        return self.flows

    def for_microdata(self) -> MicrodataLimits:
        """Return the limits of a file of persons; that there are none is an `InputError`."""
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
        told = [f"{definition}: {found}", *([detail] if detail else []), str(self)]
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
    try:
        content = tomllib.loads(read_bytes(path).decode("utf-8-sig"))
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


def _given(section: str, limits: FlowLimits | MicrodataLimits) -> dict[str, Any]:
    """Return the limits that are set; none at all is an error."""
    every = {field.name: getattr(limits, field.name) for field in fields(limits)}
    given = {key: value for key, value in every.items() if value is not None}
    if not given:
        raise InputError(
            f"[{section}] holds no limit; give one of {', '.join(every)}, or leave the section out"
        )
    return given


def _check_share(section: str, key: str, value: Any) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < 1:
        raise InputError(
            f"[{section}] {key} must be a share from 0 to below 1, as 0.3 for 30 %; it is {value!r}"
        )


def _check_bits(section: str, key: str, value: Any) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:
        raise InputError(
            f"[{section}] {key} must be a number of bits, 0 or more, as 0.05; it is {value!r}"
        )


def _check_ratio(section: str, key: str, value: Any) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 1 <= value < math.inf:
        raise InputError(f"[{section}] {key} must be a ratio, 1 or more, as 2; it is {value!r}")


def _check_whole(section: str, key: str, value: Any, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"[{section}] {key} must be a whole number from {least}; it is {value!r}")
