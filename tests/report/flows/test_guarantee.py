"""What the reports say of a promise: all that is proved, nothing more, and nothing without it."""

import re

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, protect_flows, read_flows
from bayes_sdc.flows.guarantee import ENDING
from bayes_sdc.flows.protection import Protection
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.report.flows.render import render_flows

pytestmark = pytest.mark.usefixtures("sketches")

AREAS = [f"{number:02d}" for number in range(7)]
CALL = {"command": "", "created": "2026-01-01", "seed": 1, "arguments": {}, "versions": {}}
SHORT = {"draws": 80, "tune": 80, "chains": 4, "seed": 2**100, "releases": 1, "estimator": "paper"}


@pytest.fixture(scope="module")
def table() -> FlowTable:
    rng = np.random.default_rng(1)
    pairs = [(a, b) for a in AREAS for b in AREAS if a != b]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    frame["n"] = rng.integers(1, 25, len(frame))
    return read_flows(frame, origin="o", destination="d", count="n")


@pytest.fixture(scope="module")
def promised(table: FlowTable) -> Protection:
    """A run with epsilon; whether the chains were long enough is not what is tested here."""
    result = protect_flows(table, epsilon=1.0, datasets=2, **SHORT)
    found = result.guarantee
    assert found is not None
    if not found.holds:
        assert all("chains" in reason for reason in found.ended)
        object.__setattr__(found, "ended", ())
    return result


def words(result: Protection, audience: str) -> str:
    """The text of a report, without its markup."""
    html = render_flows(result, audience=audience, call=CALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


@pytest.mark.parametrize("audience", ["internal", "external"])
def test_the_promise_is_whole(promised: Protection, audience: str) -> None:
    """To whom, how much, what is public, and what it does not cover."""
    text = words(promised, audience)
    for said in (
        "What the release promises",
        "every person counted in a cell that is small",
        "change by at most the factor 7.39. Its section",  # page one
        "a factor of 7.39",  # exp(2): two data sets
        "the factor 54.60",  # exp(4): from one small cell to another
        "k times the epsilon",
        "guarantee of exact draws",
        "not the decision to release them",
        "which pairs are small (1 to 9)",
        "shares averaged over",
    ):
        assert said in text


def test_what_is_measured_stands_beside_it_inside_only(promised: Protection) -> None:
    """The log ratio of this table is a function of its true counts."""
    measured = "largest log ratio of one cell"
    assert measured in words(promised, "internal")
    assert measured not in words(promised, "external")


@pytest.mark.parametrize("audience", ["internal", "external"])
def test_a_promise_that_ended_is_none(promised: Protection, audience: str) -> None:
    """No factor, no epsilon that somebody could quote, and the reason."""
    assert promised.guarantee is not None
    ended = promised.guarantee.ending("the release was chosen among 9 by a look at the counts")
    copy = Protection(**{**vars(promised), "guarantee": ended})
    text = words(copy, audience)
    assert "No guarantee is given" in text
    assert "What is promised. Nothing." in text
    assert "chosen among 9" in text
    assert "factor of 7.39" not in text


@pytest.mark.parametrize("key", ["other_columns", "row_order"])
def test_the_promise_tells_no_verdict_that_few_cells_withhold(
    promised: Protection, key: str
) -> None:
    """One section said "not shown", and the next that other columns may reveal small counts."""
    assert promised.guarantee is not None
    reason = ENDING[key][1]
    copy = Protection(**{**vars(promised), "guarantee": promised.guarantee.ending(reason)})
    assert reason in words(copy, "internal").lower()
    text = words(copy, "external").lower()
    assert reason not in text
    assert "no guarantee is given" in text
    assert "the reason is not shown" in text


def test_without_epsilon_the_word_does_not_occur(table: FlowTable) -> None:
    """Nobody shall read a promise where none is made."""
    result = protect_flows(table, **SHORT)
    for audience in ("internal", "external"):
        assert "guarantee" not in words(result, audience).lower()
    assert "guarantee" not in result.summary().lower()


def test_weights_are_named_and_promise_nothing(table: FlowTable) -> None:
    """What is local and asymptotic must not be taken for what is proved for every table."""
    few = SHORT | {"draws": 60, "tune": 60, "chains": 2}
    result = protect_flows(table, weights="risk", gain_limit=0.01, **few)
    (check,) = [check for check in result.checks if check.key == "weights"]
    assert check.verdict != "pass"
    assert "local and asymptotic" in check.reason
    assert result.guarantee is None
    for audience, said in (("internal", "local and asymptotic"), ("external", "weigh less")):
        text = words(result, audience)
        assert said in text
        assert "guarantee" not in text.lower()


@pytest.mark.parametrize(
    "more", [{"totals_kept": "origin"}, {"refits": 1}, {"estimator": "refit"}, {"gain_limit": -1.0}]
)
def test_what_weights_do_not_go_with_is_refused_before_the_fit(
    table: FlowTable, more: dict[str, object]
) -> None:
    with pytest.raises(InputError, match=r"weights|gain_limit"):
        protect_flows(table, weights="risk", **(SHORT | more))
