"""Limits that an agency has set itself, for a flow table and for a file of persons."""

import math
from dataclasses import dataclass, fields
from typing import Any

from bayes_sdc.errors import InputError
from bayes_sdc.results import Fact, Result


class Limits(Result):
    """Limits of one job, shown alike."""

    def __repr__(self) -> str:
        """Return the call that makes it, without the limits that are not set."""
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
        0 or more. Exceeded when the release adds more bits than this to the mean log2 probability
        of the true count, for the strongest intruder: :func:`bayes_sdc.intruder_gain`.
    pushed_over_80 : int or None
        0 or more. Exceeded when the release pushes more cells than this past a probability of 80 %
        of the true count, for the strongest intruder.
    totals_error : float or None
        From 0 to below 1. Exceeded when the totals of the small cells by area are off by more, in
        all and relative to them: ``totals_error`` of :func:`bayes_sdc.utility`.
    pmse_ratio : float or None
        1 or more. Exceeded when this ratio of how well released rows are told from true ones is
        larger: ``pmse_ratio`` of :func:`bayes_sdc.utility`; 1 to 2 where nobody can tell.

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
