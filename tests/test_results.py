"""How results are shown: each as text, as a table and in one line, with the same numbers."""

import datetime
import inspect
import re
import typing
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayes_sdc
from bayes_sdc.checks import Check, Verdict
from bayes_sdc.results import LINES, Result, summary_lines


def check(name: str, verdict: Verdict) -> Check:
    return Check(name, verdict, f"why {name}", key=name)


@pytest.mark.parametrize("looks", [0, 3, 4, 5, 30])
def test_a_summary_has_ten_lines_and_loses_no_check(looks: int) -> None:
    checks = [check("bad", "fail"), *(check(f"odd{i}", "look") for i in range(looks))]
    checks.append(check("good", "pass"))
    said = summary_lines("head", checks, ["one", "two"], {"fit": 3.0})
    assert len(said) <= LINES
    assert "FAIL  bad: why bad" in said
    for one in checks:
        assert any(one.name in line for line in said)
    full = [line for line in said if line.startswith("LOOK") and ": why " in line]
    assert len(full) == (looks if looks <= 4 else 3)


def test_every_failure_is_shown_however_many_there_are() -> None:
    said = summary_lines("head", [check(f"bad{i}", "fail") for i in range(20)], ["one"], {})
    assert sum(line.startswith("FAIL") for line in said) == 20
    said = summary_lines(
        "head", [*(check(f"bad{i}", "fail") for i in range(20)), check("odd", "look")], [], {}
    )
    assert "LOOK  odd: the report has the reasons" in said


def functions() -> list[str]:
    return [name for name in bayes_sdc.__all__ if inspect.isfunction(getattr(bayes_sdc, name))]


def own_types(annotation: Any) -> Iterator[type]:
    """Classes of the package in an annotation, those inside unions and containers among them."""
    if inspect.isclass(annotation) and annotation.__module__.startswith("bayes_sdc."):
        yield annotation
    for inside in typing.get_args(annotation):
        yield from own_types(inside)


def returned() -> dict[type, str]:
    """Types that public functions return, with one of these."""
    found: dict[type, str] = {}
    for name in functions():
        hints = typing.get_type_hints(inspect.unwrap(getattr(bayes_sdc, name)))
        for one in own_types(hints["return"]):
            found.setdefault(one, name)
    return found


@pytest.mark.parametrize("one", returned(), ids=lambda one: one.__name__)
def test_what_public_functions_return_is_public_and_shown(one: type) -> None:
    """A result without a name cannot be annotated, and one without a summary not be read."""
    assert getattr(bayes_sdc, one.__name__, None) is one, "returned, but not exported"
    assert issubclass(one, Result)
    for member in ("_title", "_facts"):
        assert getattr(one, member) is not getattr(Result, member), member


def parts() -> set[type]:
    """Types of the fields and properties of what is returned, and of theirs."""
    seen: set[type] = set()
    new = set(returned())
    while new:
        one = new.pop()
        seen.add(one)
        hints = [
            hint for name, hint in typing.get_type_hints(one).items() if not name.startswith("_")
        ]
        for name, member in inspect.getmembers(one):
            if isinstance(member, property) and not name.startswith("_"):
                hints.append(typing.get_type_hints(member.fget)["return"])
        new |= {part for hint in hints for part in own_types(hint)} - seen
    return seen


@pytest.mark.parametrize("one", sorted(parts(), key=lambda one: one.__name__))
def test_the_parts_of_a_result_are_public_too(one: type) -> None:
    assert getattr(bayes_sdc, one.__name__, None) is one


def shown() -> list[Any]:
    """Results that cost nothing, one a kind."""
    flows = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 40, 5]})
    people = pd.DataFrame({"sex": list("mmfff"), "age": list("12113")})
    data = bayes_sdc.read_microdata(people, keys=["sex", "age"])
    return [
        bayes_sdc.read_flows(flows, origin="o", destination="d", count="n"),
        data,
        bayes_sdc.record_risk(data, sampling_fraction=0.1),
        bayes_sdc.dis(data, sampling_fraction=0.1),
        bayes_sdc.ewens({1: 3, 2: 1}, n=5, N=50),
        bayes_sdc.Policy("B", datetime.date(2026, 1, 1), flows=bayes_sdc.FlowLimits(r_all=0.3)),
        bayes_sdc.FlowLimits(gain_bits=0.1),
        bayes_sdc.Mixture(np.array([0.25, 0.75]), 0.5),
        bayes_sdc.Share("a among <b>", 0, None, None, None, None, trusted=True),
    ]


@pytest.mark.parametrize("result", shown(), ids=lambda result: type(result).__name__)
def test_each_way_of_showing_a_result_has_its_main_number(result: Any) -> None:
    text, table, line = result.summary(), result._repr_html_(), repr(result)
    assert text.strip()
    assert "<b>" not in table, "not escaped"
    assert "\n" not in line
    assert len(line) < 200
    assert type(result).__name__ in line
    assert not re.search(r"\bnan\b|\bNone\b", text + table)
