"""Scenarios, utility and choice in the report equal the result; the public reads rounded shares."""

import dataclasses
import html
import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup

from bayes_sdc import CombinedTotals, Protection
from bayes_sdc.flows.intruder.result import KNOWLEDGE
from bayes_sdc.flows.release.totals.kept import kept_by_name
from bayes_sdc.jobs.flows_record import record_of
from bayes_sdc.report import plots
from bayes_sdc.report.flows.intruder import (
    ESTIMATORS,
    MEASURES,
    PRIORS,
)
from bayes_sdc.report.flows.public_shares import PublicShares
from bayes_sdc.report.flows.render import render_flows
from bayes_sdc.report.flows.utility import external_utility

pytestmark = pytest.mark.usefixtures("sketches")

CALL: dict[str, Any] = {
    "command": "bayes-sdc flows moves.csv",
    "created": "2026-11-27",
    "seed": 987654321,
    "arguments": {},
    "versions": {},
}
SECRET_TABLES = (
    "Share of cells found",
    "Intruder in numbers",
    "Cells whose true count is most probable",
    "Risk by true count",
    "Risk by group, highest mean probability first",
    "Risk by size of area",
    "Risk by number of data sets",
    "Candidate releases",
    "Utility of the release",
    "Errors of totals",
    "Risk and utility by method",
)


def changed(result: Protection, **measured: object) -> Protection:
    """The same result with other measurements."""
    return dataclasses.replace(result, measured=dataclasses.replace(result.measured, **measured))


@pytest.fixture(scope="module")
def result(chosen: Protection) -> Protection:
    return chosen


@pytest.fixture(scope="module")
def internal(result: Protection) -> str:
    return render_flows(result, audience="internal", call=CALL)


@pytest.fixture(scope="module")
def public(large: Protection) -> str:
    return render_flows(large, audience="external", call=CALL)


def tables(text: str) -> dict[str, list[list[str]]]:
    """Cells of all rows but the head, by caption."""

    def plain(part: str) -> str:
        return html.unescape(re.sub(r"<[^>]+>", "", part)).strip()

    found = {}
    for body in re.findall(r"<table>(.*?)</table>", text, flags=re.DOTALL):
        caption = plain(re.sub(r"<small>.*?</small>", "", body.partition("</caption>")[0]))
        rows = re.findall(r"<tr>(.*?)</tr>", body, flags=re.DOTALL)[1:]
        found[caption] = [
            [plain(cell) for cell in re.findall(r"<t[hd][ >].*?</t[hd]>", row, flags=re.DOTALL)]
            for row in rows
        ]
    return found


def by_name(rows: list[list[str]]) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in rows}


def test_both_intruders_stand_side_by_side(result: Protection, internal: str) -> None:
    """Columns are the intruder asked for and the worst case, each with its own numbers."""
    numbers = by_name(tables(internal)["Intruder in numbers"])
    shares = by_name(tables(internal)["Share of cells found"])
    for column, risk in enumerate((result.measured.risk, result.measured.worst)):
        assert risk is not None
        assert risk.r_all.value is not None
        cells = risk.rho.sizes["cell"]
        low, high = risk.expected_correct_interval
        mine = {name: row[column] for name, row in numbers.items()}
        assert mine["R_all"] == f"{risk.r_all.value:.1%}"
        assert shares[f"R_all, {risk.knowledge}"][1] == f"{risk.r_all.value:.1%}"
        assert [row for name, row in mine.items() if "an intruder who" in name] == [
            f"{value:.1%}"
            for value in (
                risk.believes_release, risk.r_unq.believes_release, risk.r_all.baseline,
                risk.r_unq.baseline,
            )
        ]  # fmt: skip
        assert mine["correct guesses that the intruder expects"] == (
            f"{risk.expected_correct * cells:.0f} of {cells}: {risk.expected_correct:.1%}"
        )
        assert mine["95 % interval of these"] == f"{low * cells:.0f} to {high * cells:.0f}"
        assert mine["cells refitted"] == f"{int(risk.refitted.sum())}"
        assert mine["cells still unreliable"] == f"{risk.unreliable_cells}"
        for limit in (0.5, 0.9):
            above = int((risk.true_count_probability > limit).sum())
            assert mine[f"cells with a probability of the true count above {limit}"] == f"{above}"


def test_assumptions_are_in_words(internal: str, public: str) -> None:
    for text in (internal, public):
        assumed = by_name(tables(text)["Assumptions"])
        assert ESTIMATORS["integrated"] in assumed["estimator"][0]
        assert PRIORS["uniform"] in assumed["prior of the intruder"][0]
        assert KNOWLEDGE["none"] in assumed["knowledge of the intruder"][0]
        worst = assumed["knowledge in the worst case, beside"][0]
        assert KNOWLEDGE["all-others"] in worst


@pytest.mark.parametrize("knowledge", ["all-others", "none", "share of 50%"])
@pytest.mark.parametrize("estimator", list(ESTIMATORS))
@pytest.mark.parametrize("prior", list(PRIORS))
def test_every_assumption_has_words(
    result: Protection, knowledge: str, estimator: str, prior: str
) -> None:
    """A name without words would end the run after all the work."""
    risk = dataclasses.replace(
        result.measured.risk, knowledge=knowledge, estimator=estimator, prior=prior
    )
    said = changed(result, risk=risk).summary().splitlines()
    assert any(f"estimator {estimator}" in line and knowledge in line for line in said)


def test_one_intruder_has_one_column(result: Protection) -> None:
    same = changed(result, risk=result.measured.worst)
    found = tables(render_flows(same, audience="internal", call=CALL))
    assert {len(row) for row in found["Intruder in numbers"]} == {2}
    assert [row[0] for row in found["Share of cells found"]] == ["R_all", "R_unq"]
    assert "knowledge in the worst case, beside" not in by_name(found["Assumptions"])


def test_classes_and_highest_cells_equal_the_result(result: Protection, internal: str) -> None:
    found, risk = tables(internal), result.measured.risk
    assert risk is not None
    for caption, name in {
        "Risk by true count": "true-count",
        "Risk by group, highest mean probability first": "group",
        "Risk by size of area": "area-size",
    }.items():
        wanted = {
            str(key): [
                f"{row['cells']:.0f}",
                f"{row['r_all']:.1%}",
                f"{row['true_count_probability']:.1%}",
                f"{row['mean_distance']:.2f}",
            ]
            for key, row in result.measured.classes[name].iterrows()
        }
        assert by_name([[row[0].split(",")[0], *row[1:]] for row in found[caption]]) == wanted
    highest = found["Cells whose true count is most probable"]
    by_cell = result.measured.risk.strongest.by_cell
    lifted = (by_cell["before"] <= 0.8) & (by_cell["after"] > 0.8)
    first = by_cell["after"][lifted].sort_values(ascending=False, kind="stable")
    top = pd.concat([first, by_cell["after"][~lifted].nlargest(20, keep="first")])[:20]
    assert [row[5] for row in highest] == [f"{p:.1%}" for p in top]
    cells = result.table.cells.loc[top.index]
    assert [row[:2] for row in highest] == cells[["origin", "destination"]].to_numpy().tolist()
    assert [row[3] for row in highest] == [str(y + result.table.low) for y in cells["y"]]


def test_risk_by_data_sets_equals_the_result(result: Protection, internal: str) -> None:
    rows = tables(internal)["Risk by number of data sets"]
    told = result.measured.by_datasets.loc[[1, 2, 5, 10, 20]]  # the file has all
    assert [row[0] for row in rows] == [str(m) for m in told.index]
    percent = [name for name in MEASURES if name != "mean_distance"]
    for column, name in zip((1, 2, *range(4, 9)), percent, strict=True):
        assert [row[column] for row in rows] == told[name].map("{:.1%}".format).tolist()


def test_utility_and_map_equal_the_result(result: Protection, internal: str) -> None:
    found, measured, compared = tables(internal), result.measured.utility, result.measured.tradeoff
    assert measured is not None
    assert measured.pmse_ratio is not None
    assert compared is not None
    values = by_name(found["Utility of the release"])
    assert values["error of totals by area"] == [f"{measured.totals_error:.2%}"]
    assert values["pMSE ratio"] == [f"{measured.pmse_ratio:.2f}"]
    totals = by_name(found["Errors of totals"])
    for side in ("origin", "destination", "group"):
        assert totals[f"by {side}"][1] == f"{float(measured.totals['total_error'][side]):.2%}"
    rows = found["Risk and utility by method"]
    number = compared.groupby(["method", "knowledge"])["datasets"]
    first, last = number.transform("min"), number.transform("max")
    compared = compared[compared["datasets"].isin([1]) | (compared["datasets"] == last)]
    assert (first == 1).all()
    assert [row[0] for row in rows] == compared["method"].tolist()
    assert [row[2] for row in rows] == compared["datasets"].astype(str).tolist()
    for column, name in ((3, "r_all"), (5, "true_count_probability"), (7, "totals_error")):
        assert [row[column] for row in rows] == compared[name].map("{:.1%}".format).tolist()
    assert 'aria-label="Mean probability of the true count against error of totals' in internal
    assert "Its risk cannot be compared" in internal


def test_coverage_of_totals_is_internal_and_the_width_public(result: Protection) -> None:
    """That an interval holds the truth is a bound on a true count where an area has one cell."""
    sides = ["origin", "destination", "group", "net migration"]
    frame = pd.DataFrame(
        {
            "areas": [1234, 40, 3, 50], "exact": 0, "coverage": 0.9753,
            "mean_width": [12.34, 5.0, 90.1, 7.0],
        },
        index=sides,
    )  # fmt: skip
    several = changed(result, combined=CombinedTotals(pd.DataFrame(), frame, 3))
    inside = tables(render_flows(several, audience="internal", call=CALL))["Intervals for totals"]
    assert inside[0] == ["by origin", "1,234", "0", "97.5%", "12.3"]
    assert [row[0] for row in inside][3] == "net migration by area"
    assert "97.5% (mean width 12.3)" in several.summary()
    public = render_flows(several, audience="external", call=CALL)
    assert tables(public)["Intervals for totals"] == [[row[0], row[4]] for row in inside]
    assert "97.5%" not in public
    assert "1,234" not in public
    assert "Intervals for totals" not in tables(
        render_flows(result, audience="internal", call=CALL)
    )


@pytest.mark.parametrize("audience", ["internal", "external"])
def test_totals_that_the_release_keeps_have_no_public_interval(
    result: Protection, audience: str
) -> None:
    """Both reports gave a width in persons to totals that are the true ones."""
    frame = pd.DataFrame(
        {"areas": [8, 8, 4], "exact": [8, 6, 0], "coverage": 1.0, "mean_width": [0.0, 2.0, 5.0]},
        index=["origin", "destination", "group"],
    )
    kept = kept_by_name(result.table, "origin")
    combined = CombinedTotals(pd.DataFrame(), frame, 3)
    shown = render_flows(
        changed(result, combined=combined, kept=kept), audience=audience, call=CALL
    )
    assert "Exact totals of small cells: by origin, by destination (some of them)." in shown
    if audience == "external":
        # the width is that of the totals that have an interval
        rows = [["by destination", "8.0"], ["by group", "5.0"]]
        assert tables(shown)["Intervals for totals"] == rows
    every = CombinedTotals(pd.DataFrame(), frame.iloc[:1], 3)
    shown = render_flows(changed(result, combined=every, kept=kept), audience="external", call=CALL)
    assert "Intervals for totals" not in tables(shown)
    assert "Exact totals of small cells: by origin." in shown
    assert "Exact totals" not in render_flows(result, audience=audience, call=CALL)


@pytest.mark.parametrize(
    ("totals", "base", "number"),
    [("origin,destination", 1, "0%"), ("origin", 1, None), ("origin,destination", 5, None)],
)
def test_the_public_error_of_totals_is_zero_by_what_is_kept(
    large: Protection, totals: str, base: int, number: str | None
) -> None:
    """A mean of three equal counts can be off by 2e-17, and noise was added to the number."""
    found = large.measured.utility
    errors = found.totals.assign(total_error=2e-17)
    kept = kept_by_name(large.table, totals, base=base)
    of = changed(large, kept=kept, utility=dataclasses.replace(found, totals=errors))
    told = [external_utility(of.table, of.measured, PublicShares(seed)) for seed in range(8)]
    values = {dict(map(tuple, one["utility"]))["error of totals by area"] for one in told}
    assert values == {number} if number else len(values) > 1


def test_choice_is_told(result: Protection, internal: str) -> None:
    choice = result.measured.choice
    assert choice is not None
    assert str(choice)[1:] in html.unescape(internal)
    rows = tables(internal)["Candidate releases"]
    assert sorted(int(row[0]) for row in rows) == [1, 2, 3]
    chosen = choice.candidates[choice.candidates["chosen"]].iloc[0]
    assert rows[0][1:5] == ["yes", "yes", f"{chosen['totals_error']:.2%}", f"{chosen['r_all']:.1%}"]


def test_public_shares_are_rounded(large: Protection, public: str) -> None:
    found = tables(public)
    risk = by_name(found["Risk, rounded"])
    for told, exact in zip(risk["R_all: cells found"], (0.25, 0.31), strict=True):
        assert abs(float(told.rstrip("%")) / 100 - exact) < 0.05, "noise is small"
    assert risk["R_unq: few cells found"] == ["not shown", "not shown"]
    rows = found["Risk by number of data sets, rounded"]
    told = large.measured.by_datasets[["r_all", "believes_release", "no_release"]]
    told = told.loc[[1, 2, 5, 10, 20]]
    assert [row[0] for row in rows] == [str(m) for m in told.index]
    for column, name in enumerate(told, start=1):
        shown = [float(row[column].rstrip("%")) / 100 for row in rows]
        off = np.array(shown) - told[name]
        assert np.ptp(off) < 0.0101, "one noise for all numbers of data sets"
        assert abs(off).max() < (0.0051 if name == "no_release" else 0.05)
    rows = found["Risk and utility by method, rounded"]
    assert len(rows) == 10
    assert {row[4] for row in rows} == {"not shown"}, "R_unq of few cells"
    first = large.measured.tradeoff.iloc[0]
    assert abs(float(rows[0][3].rstrip("%")) / 100 - first["r_all"]) < 0.05
    assert [row[3] for row in rows if row[:2] == ["suppression", "all other cells"]] == ["100%"]
    values = by_name(found["Utility of the release, rounded"])
    told = float(values["error of totals by area"][0].rstrip("%")) / 100
    assert abs(told - large.measured.utility.totals_error) < 1
    assert "pMSE" not in public, "no noise is known that would hide a count in it"
    assert "The release was chosen among several" in public


def test_public_pictures_hold_rounded_numbers_only(
    large: Protection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A picture can be read back, so it must not depend on what rounding takes away."""
    drawn = []

    def keep(frame: pd.DataFrame) -> Markup:
        drawn.append(frame)
        return Markup("<svg ></svg>")

    monkeypatch.setattr(plots, "ru_map", keep)
    monkeypatch.setattr(plots, "risk_by_datasets", keep)
    render_flows(large, audience="external", call=CALL)
    compared, growth = drawn
    shares = ["r_all", "true_count_probability", "totals_error", "right_band"]
    pd.testing.assert_frame_equal(growth, growth.round(2))
    pd.testing.assert_frame_equal(compared[shares], compared[shares].round(2))
    assert compared["r_unq"].isna().all()
    assert not {"r_unq", "r_all_low", "r_all_high"} & set(growth.columns)


def test_public_reads_nothing_of_the_internal_parts(
    result: Protection, large: Protection, public: str
) -> None:
    for text in (public, render_flows(result, audience="external", call=CALL)):
        assert not set(SECRET_TABLES) & set(tables(text))
        assert "area3" not in text
        assert "candidates" not in text
    for one in (large.measured.risk, large.measured.worst):
        assert one is not None
        for value in (one.believes_release, one.expected_correct, one.r_all.value):
            assert f"{value:.1%}" not in public
    assert "98.8%" not in public
    assert "99%" not in [cell for row in tables(public)["Risk, rounded"] for cell in row]


def test_small_table_has_no_public_numbers_of_these(result: Protection) -> None:
    text = render_flows(result, audience="external", call=CALL)
    found = tables(text)
    assert "<svg" not in text
    assert "Risk by number of data sets, rounded" not in found
    assert "Risk and utility by method, rounded" not in found
    assert "Utility of the release, rounded" not in found
    shares = found["Risk, rounded"]
    assert shares[0][1:] == shares[1][1:] == shares[2][1:] == ["not shown"] * 2


def test_undefined_values_are_words(result: Protection) -> None:
    odd = changed(
        result,
        by_datasets=result.measured.by_datasets.assign(
            r_unq=np.nan, r_unq_low=np.nan, r_unq_high=np.nan
        ),
        tradeoff=result.measured.tradeoff.assign(r_unq=np.nan, pmse_ratio=np.nan),
        utility=dataclasses.replace(result.measured.utility, pmse_ratio=None),
    )
    found = tables(render_flows(odd, audience="internal", call=CALL))
    assert {row[2] for row in found["Risk by number of data sets"]} == {"undefined"}
    assert {row[4] for row in found["Risk and utility by method"]} == {"undefined"}
    assert by_name(found["Utility of the release"])["pMSE ratio"] == ["undefined"]
    assert "nan" not in {cell for rows in found.values() for row in rows for cell in row}


def test_summary_names_intruder_worst_case_utility_and_choice(result: Protection) -> None:
    said = result.summary().splitlines()
    assert any(line.startswith("intruder: estimator integrated, prior uniform") for line in said)
    assert f"R_all: {result.measured.risk.r_all}" in said
    assert any(
        line.startswith(f"R_all in the worst case: {result.measured.worst.r_all}") for line in said
    )
    (line,) = [line for line in said if line.startswith("utility:")]
    assert f"{result.measured.utility.totals_error:.1%}" in line
    assert f"{result.measured.utility.pmse_ratio:.2f}" in line
    assert str(result.measured.choice) in said
    record = json.loads(json.dumps(record_of(result, CALL), default=str))
    assert record["worst_case"]["r_all"]["value"] == result.measured.worst.r_all.value
    assert record["utility"]["totals_error"] == result.measured.utility.totals_error
    assert record["choice"] == str(result.measured.choice)
