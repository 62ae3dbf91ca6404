"""Page one says what the results say, and what the public reads of it is true of every release."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import Protection
from bayes_sdc.checks import Check
from bayes_sdc.flows.intruder.probabilities.gain import headline
from bayes_sdc.policy import LimitCheck
from bayes_sdc.report.contents import VERDICTS
from bayes_sdc.report.flows.gain import riskiest
from bayes_sdc.report.flows.page_one import _weaker, external_page_one, internal_page_one
from bayes_sdc.report.flows.page_one_figures import use_checks
from bayes_sdc.report.flows.render import render_flows

CALL = {"command": "", "created": "2026-11-29", "seed": 5, "arguments": {}, "versions": {}}
KEPT = "What users of the table keep and lose"


def answers(page: dict) -> dict[str, str]:
    return dict(page["page_one"])


def with_margins(result: Protection, error: float) -> Protection:
    """Totals that err by so much, half of them less so."""
    areas = [f"a{i}" for i in range(40)]
    true = np.full(40, 100.0)
    synthetic = true * (1.0 + error * np.linspace(0.5, 1.0, 40))
    margins = pd.DataFrame(
        {"side": "origin", "area": areas, "cells": 9, "true": true, "synthetic": synthetic}
    )
    assert result.measured is not None
    return dataclasses.replace(
        result, measured=dataclasses.replace(result.measured, margins=margins)
    )


def test_what_the_release_tells_is_the_pair_and_the_cells_pushed(nasty: Protection) -> None:
    gain = nasty.measured.worst.strongest
    said = answers(internal_page_one(nasty))["What the release tells an intruder"]
    pushed = f"The true count of {gain.pushed[0.8]:,} of {gain.cells:,} cells gets a probability"
    assert pushed in said
    assert f"finds {round(1000 * gain.guessed.before)} before any release" in said
    assert ("Do not rely on these numbers" in said) is not gain.trusted


@pytest.mark.parametrize(("error", "words"), [(0.3, "too large"), (-0.3, "too small")])
def test_errors_to_one_side_are_said(nasty: Protection, error: float, words: str) -> None:
    said = answers(internal_page_one(with_margins(nasty, error)))[
        "What users of the table keep and lose"
    ]
    assert words in said


def test_errors_to_both_sides_are_not_called_one_sided(nasty: Protection) -> None:
    result = with_margins(nasty, 0.3)
    margins = result.measured.margins.copy()
    margins.loc[::2, "synthetic"] = 200.0 - margins.loc[::2, "synthetic"]
    result = dataclasses.replace(
        result, measured=dataclasses.replace(result.measured, margins=margins)
    )
    said = answers(internal_page_one(result))[KEPT]
    assert "too large" not in said
    assert "too small" not in said


def test_a_failed_check_is_the_first_thing_to_decide(nasty: Protection) -> None:
    failed = dataclasses.replace(nasty, checks=[Check("row order", "fail", "it tells", key="row")])
    said = answers(internal_page_one(failed))["What is to be decided"]
    assert said.startswith("Failed: row order. The release is held")
    assert "no policy" in said


def test_figures_without_a_policy_are_not_judged(nasty: Protection) -> None:
    """A green mark on a question that nobody asked would be read as an answer."""
    figures = internal_page_one(nasty)["figures"]
    assert [one.verdict for one in figures[:3]] == ["not judged"] * 3
    assert 4 <= len(figures) <= 6


def test_with_limits_the_verdicts_are_those_of_the_checks(chosen: Protection) -> None:
    """A number that a limit did not judge has no verdict: the strongest is another intruder."""
    figures = internal_page_one(chosen)["figures"]
    assert figures[0].verdict == "not judged"
    limits = {check.key: check for check in chosen.checks if isinstance(check, LimitCheck)}
    check = limits["limit_r_all"]
    (shown,) = [one for one in figures if one.words.startswith("R_all")]
    assert (shown.verdict, shown.number) == (check.verdict, f"{check.value:.1%}")


def test_what_the_table_is_for_is_what_was_judged(nasty: Protection) -> None:
    """A sentence for every release would promise uses that this one is not good for."""
    told = {"good for": ["Net migration"], "not good for": ["Gravity model", "Inflow"]}
    said = answers(external_page_one(nasty, "", "about 40", told))["What it is for"]
    assert "Good for: net migration. Not good for: gravity model, inflow." in said
    few = answers(external_page_one(nasty, "", "about 40", {}))["What it is for"]
    assert "Not shown" in few


def test_with_kept_totals_nothing_is_said_to_be_known_before_any_release(
    chosen: Protection,
) -> None:
    """What the release's own totals give away is due to the release."""
    gain = chosen.measured.worst.strongest
    given = dataclasses.replace(gain, totals=True)
    for one, known, anyway in ((gain, False, True), (given, True, False)):
        text = headline(one)
        assert ("from the totals that the release keeps" in text) is known
        assert ("before any release" in text) is anyway
        why = {row[-1] for row in riskiest(chosen.table, one)}
        assert ("known anyway" in why) <= anyway


def test_the_public_reads_no_number_of_the_table(nasty: Protection) -> None:
    said = " ".join(answers(external_page_one(nasty, "", "about 40", {})).values())
    assert f"{nasty.table.n_small}" not in said.replace("about 40", "")
    assert "it could reveal them" in said
    assert "pass" not in said


def test_nothing_is_said_of_a_table_without_small_cells(nasty: Protection) -> None:
    nothing = dataclasses.replace(nasty, measured=None)
    assert internal_page_one(nothing) == {"page_one": [], "figures": []}
    assert external_page_one(nothing, "", "none", {}) == {"page_one": [], "figures": []}


def test_use_alone_never_fails(nasty: Protection) -> None:
    """A fail on page one of a release that is not held would contradict it."""
    totals = nasty.measured.utility.totals.assign(total_error=0.9)
    use = dataclasses.replace(nasty.measured.utility, totals=totals)
    result = dataclasses.replace(nasty, measured=dataclasses.replace(nasty.measured, utility=use))
    (of_totals,) = [
        one for one in internal_page_one(result)["figures"] if "error of the totals" in one.words
    ]
    assert (of_totals.number, of_totals.verdict) == ("90.0%", "look")


@pytest.mark.usefixtures("sketches")
def test_the_section_on_use_is_judged_as_page_one_is(chosen: Protection) -> None:
    """Else a section is called facts while a figure of its own says: look."""
    figures = internal_page_one(chosen)["figures"]
    checks = use_checks(figures)
    assert [check.name for check in checks] == ["error of totals", "pMSE ratio"]
    worst = max((check.verdict for check in checks), key=VERDICTS.index)
    by_words = {one.words: one.verdict for one in figures}
    assert by_words["error of the totals of small cells by area"] == checks[0].verdict
    text = render_flows(chosen, audience="internal", call=CALL)
    heading = re.search(r"<h2 id=\"utility\">.*?</h2>", text, re.DOTALL)
    assert heading is not None
    assert f'class="verdict {worst}"' in heading[0]


def test_one_who_gains_and_does_not_find_more_is_told_of_once(chosen: Protection) -> None:
    """Where one prior is left beside the strongest, what it gains must not be lost."""
    gain = chosen.measured.worst.strongest
    before, after = gain.guessed.before, gain.guessed.after
    less = dataclasses.replace(
        gain, prior="uniform",
        guessed=gain.guessed._replace(before=before - 0.3, after=after - 0.1, gain=0.2),
    )  # fmt: skip
    more = dataclasses.replace(
        less, guessed=gain.guessed._replace(before=before - 0.3, after=after + 0.1, gain=0.4)
    )
    strong = dataclasses.replace(gain, guessed=gain.guessed._replace(gain=after - before))
    for other in (less, more):
        said = _weaker([strong, other], strong)
        assert said.count("uniform") == 1
        assert "gains more" in said
    assert _weaker([strong], strong) == ""
