"""Page one says what the results say, and what the public reads of it is true of every release."""

import dataclasses
import datetime
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayes_sdc import FlowLimits, Policy, Protection, protect_flows, read_flows
from bayes_sdc.checks import Check
from bayes_sdc.flows.intruder.probabilities.gain import PRIORS, headline
from bayes_sdc.policy import LimitCheck
from bayes_sdc.report.contents import VERDICTS
from bayes_sdc.report.flows.gain import riskiest
from bayes_sdc.report.flows.intruder import _without
from bayes_sdc.report.flows.page_one import (
    _keeps,
    _kept,
    _others,
    _weaker,
    external_page_one,
    internal_page_one,
    one_sided,
)
from bayes_sdc.report.flows.page_one_figures import use_checks
from bayes_sdc.report.flows.render import render_flows
from bayes_sdc.report.flows.utility import FEW_CELLS

CALL = {"command": "", "created": "2026-11-29", "seed": 5, "arguments": {}, "versions": {}}
NO_USE = {"uses": {}, "uses_why": FEW_CELLS}
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


def test_the_mean_draws_only_where_small_areas_grow_and_large_ones_shrink(
    nasty: Protection,
) -> None:
    """Where all totals are too large, nothing is drawn anywhere."""
    true = np.r_[np.full(20, 10.0), np.full(20, 1000.0)]
    for large, drawn in ((0.97, True), (1.05, False)):
        margins = pd.DataFrame({"true": true, "synthetic": true * np.r_[[1.5] * 20, [large] * 20]})
        said = one_sided(margins)
        assert said.startswith("All the worst totals are too large: ")
        assert ("drawn towards the mean" in said) is drawn
    assert "totals are 5.4% too large in all" in said
    text = answers(internal_page_one(with_margins(nasty, 0.3)))[KEPT]
    assert "drawn" not in text, "all areas are of one size"


def test_every_failed_check_is_named(nasty: Protection) -> None:
    """What holds a release is not among "4 more"."""
    checks = [Check(f"check {i}", "fail", "it tells", key=f"c{i}") for i in range(7)]
    said = answers(internal_page_one(dataclasses.replace(nasty, checks=checks)))
    for check in checks:
        assert check.name in said["What is to be decided"]


def test_every_limit_has_a_figure(nasty: Protection) -> None:
    """A limit that is named among what is to be read, and shown nowhere, sends a reader around."""
    limits = [field.name for field in dataclasses.fields(FlowLimits)]
    policy = Policy("Board", datetime.date(2026, 1, 15), flows=FlowLimits(r_all=0.3))
    checks = [policy.judge(key, 0.1, 0.5, units=9, definition="measured") for key in limits]
    figures = internal_page_one(dataclasses.replace(nasty, checks=checks))["figures"]
    judged = [one for one in figures if one.why.startswith("policy: 0.5 > 0.1")]
    assert len(judged) == len(limits) == 7
    assert all(one.verdict == "fail" for one in judged)


def test_the_share_that_is_equal_is_that_of_all_data_sets(nasty: Protection) -> None:
    """The first alone may be far from the others."""
    table, count = nasty.table, nasty.table.count
    true = nasty.release.assign(**{count: table.frame[count].to_numpy()})
    other = true.copy()
    rows = table.cells["row"].to_numpy()
    counts = other[count].to_numpy(copy=True)
    counts[rows] = np.where(counts[rows] == table.low, table.low + 1, table.low)
    other[count] = counts
    release = pd.concat([true.assign(dataset=1), other.assign(dataset=2), other.assign(dataset=3)])
    risk = dataclasses.replace(nasty.measured.risk, datasets=3, believes_release=1.0)
    result = dataclasses.replace(
        nasty, release=release, measured=dataclasses.replace(nasty.measured, risk=risk)
    )
    said = answers(internal_page_one(result))["What was changed"]
    assert "in 3 data sets; 33% of all equal the true ones on average over these by chance" in said


@pytest.mark.parametrize(
    ("own_area", "how"), [("protect", "synthetic"), ("withhold", "left blank")]
)
def test_what_became_of_people_who_stayed_is_said(own_area: str, how: str) -> None:
    frame = pd.DataFrame({"o": list("aabb"), "d": list("axby"), "n": [3, 40, 2, 50]})
    table = read_flows(frame, origin="o", destination="d", count="n")
    said = _others(protect_flows(table, own_area=own_area, seed=1))
    assert f"who stayed in their area are {how}." in said


@pytest.mark.parametrize("earlier", [0, 1, 2])
def test_earlier_releases_are_named_where_the_risk_counts_them(
    nasty: Protection, earlier: int
) -> None:
    """Else the release seems to add what all of them do."""
    worst = nasty.measured.worst
    sets = xr.DataArray(np.full((earlier, worst.rho.sizes["cell"]), 3), dims=("dataset", "cell"))
    worst = dataclasses.replace(worst, already_released=sets)
    result = dataclasses.replace(nasty, measured=dataclasses.replace(nasty.measured, worst=worst))
    inside = answers(internal_page_one(result))["What the release tells an intruder"]
    public = answers(external_page_one(result, "", "about 40", NO_USE))["What was released"]
    words = {0: "", 1: "1 earlier release", 2: "2 earlier releases"}[earlier]
    for said in (inside, public):
        assert (words in said) if words else ("earlier release" not in said)
    assert ("together they add" in inside) is (earlier > 0)
    told = _without(worst)
    assert (f"With it and {words} they find" in told) is (earlier > 0)


def test_a_prior_is_told_in_words(chosen: Protection) -> None:
    """Uniform and shape are names, and no board knows them."""
    (shown,) = [f for f in internal_page_one(chosen)["figures"] if f.words.startswith("R_all")]
    assert PRIORS[chosen.measured.risk.prior] in shown.words
    gain = chosen.measured.worst.strongest
    more = dataclasses.replace(gain, prior="shape", guessed=gain.guessed._replace(gain=2.0))
    assert PRIORS["shape"] in _weaker([gain, more], gain)


@pytest.mark.parametrize("merged", [0, 2, 5])
def test_kept_totals_are_true_one_by_one_or_in_sum(nasty: Protection, merged: int) -> None:
    """A total that is kept in sum only is not the true one."""
    kept = SimpleNamespace(
        sides=[1], base=1, names=["origin"], merged=[0] * merged, number=5 - merged
    )
    measured = dataclasses.replace(nasty.measured, kept=kept)
    inside, public = (_kept(nasty, measured, internal=internal) for internal in (True, False))
    if merged == 0:
        assert inside == public == "Totals of the release by origin are the true ones. "
    else:
        expected = f"{5 - merged} of 5 totals of the release by origin are the true ones; {merged}"
        assert inside.startswith(expected)
        assert "each by itself or only in sum with others" in public
    assert _keeps(measured)
    assert not _keeps(nasty.measured)


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
    use = {"uses": told, "uses_why": ""}
    said = answers(external_page_one(nasty, "", "about 40", use))["What it is for"]
    assert "Good for: net migration. Not good for: gravity model, inflow." in said
    few = answers(external_page_one(nasty, "", "about 40", NO_USE))["What it is for"]
    assert FEW_CELLS in few


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
    said = " ".join(answers(external_page_one(nasty, "", "about 40", NO_USE)).values())
    assert f"{nasty.table.n_small}" not in said.replace("about 40", "")
    assert "it could reveal them" in said
    assert "pass" not in said


def test_nothing_is_said_of_a_table_without_small_cells(nasty: Protection) -> None:
    nothing = dataclasses.replace(nasty, measured=None)
    assert internal_page_one(nothing) == {"page_one": [], "figures": []}
    assert external_page_one(nothing, "", "none", NO_USE) == {"page_one": [], "figures": []}


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
