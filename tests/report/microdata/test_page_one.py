"""Page one of a report on records says what the results say, to the agency and to the public."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import measure_microdata, read_microdata
from bayes_sdc.checks import Check
from bayes_sdc.microdata.comparison.result import UNIQUES
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.report.microdata import trust
from bayes_sdc.report.microdata.method_names import named
from bayes_sdc.report.microdata.page_one import internal_page_one
from bayes_sdc.report.microdata.public_page_one import external_page_one
from bayes_sdc.report.microdata.render import render_microdata
from bayes_sdc.report.microdata.risk_comparison import tell_comparison, tell_truth

pytestmark = pytest.mark.usefixtures("sketches")

CALL = {"command": "", "created": "2026-11-29", "seed": 5, "arguments": {}, "versions": {}}


def said(page: dict, start: str) -> str:
    (answer,) = [answer for question, answer in page["page_one"] if question.startswith(start)]
    return answer


@pytest.fixture(scope="module")
def register() -> Measurement:
    """Everybody is in the file: every weight is 1."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.integers(0, 4, (120, 4)).astype(str), columns=list("abcd"))
    return measure_microdata(
        read_microdata(frame.assign(w=1), keys=list("abcd"), weight="w"), seed=1
    )


def test_an_interval_that_misses_the_truth_is_said_on_page_one(measured: Measurement) -> None:
    """Else a report recommends, without a word, what its own truth contradicts."""
    found = measured.latent_classes
    assert found is not None
    assert measured.truth is not None
    low, high = found.tau1.interval
    for truth, words in (
        (int(high) + 5, "misses it: the estimate is too low"),
        (round(found.tau1.value), "holds it"),
    ):
        known = dataclasses.replace(measured, truth=measured.truth._replace(tau1=truth))
        assert low <= found.tau1.value <= high
        answer = said(internal_page_one(known, None), "The estimate")
        assert f"{truth:,} are. The interval {words}" in answer
    without = dataclasses.replace(measured, truth=None)
    assert "truth" not in said(internal_page_one(without, None), "The estimate")


def test_every_interval_is_marked_by_the_truth(measured: Measurement) -> None:
    columns, rows = tell_truth(measured)
    methods = ["latent classes", *measured.models]
    assert [row[columns.index("method")] for row in rows] == 3 * methods
    for place, name in enumerate(("tau1", "tau2", "expected")):
        truth = getattr(measured.truth, name)
        of_models = rows[place * len(methods) + 1 : (place + 1) * len(methods)]
        for row, model in zip(of_models, measured.models.values(), strict=True):
            low, high = getattr(model, name).interval
            right = row[columns.index("mark")] == "right"
            assert right is bool(low <= truth <= high), (name, row)
    assert measured.comparison is not None
    table = tell_comparison(measured.comparison, measured)
    assert table["columns"][3] == "truth"
    for about, shown in table["methods"].items():
        for row in shown:
            assert (row[3] == "not asked") is about.startswith("sample uniques times")
            assert ("no interval" in row[3]) is (row[2] == "none given" and row[3] != "not asked")


def test_the_models_stand_beside_the_other_measures(measured: Measurement) -> None:
    assert measured.comparison is not None
    methods = measured.comparison.methods
    for name in ("uncertain", "gamma", "extended"):
        row = methods.loc[f"model {name}, uniques"]
        assert row["expected"] == measured.models[name].tau1.value
        assert (row["low"], row["high"]) == measured.models[name].tau1.interval


def test_what_a_correlation_of_nothing_means_is_said(measured: Measurement) -> None:
    found = measured.comparison
    assert found is not None
    for rho, words in ((-0.02, "nothing in common"), (0.9, "much alike"), (-0.8, "against")):
        agreement = found.agreement.copy()
        agreement.loc["individual risk", "SUDA score"] = rho
        one = dataclasses.replace(found, agreement=agreement)
        first = tell_comparison(one, measured)["words"][0]
        assert f"{rho:.2f}" in first
        assert words in first


def test_a_file_that_is_the_population_has_no_models_and_says_why(register: Measurement) -> None:
    """Four models of what is known would differ, and a reader would ask which one is right."""
    assert register.whole_population
    assert list(register.models) == ["known"]
    assert register.latent_classes is None
    assert register.comparison is None
    assert {check.key for check in register.checks} & {"models", "convergence"} == set()
    alone = int((register.data.f == 1).sum())
    assert register.worst.tau1.value == alone
    assert register.risk.expected == pytest.approx(len(register.data.combinations))
    text = render_microdata(register, audience="internal", call=CALL)
    assert "no model of it was fitted" in text
    assert "models of frequencies" not in text
    assert "counts as the whole population" in said(internal_page_one(register, None), "What the")
    assert "whole population" in register.summary()
    public = render_microdata(register, audience="external", call=CALL)
    assert "F = f here, because every record stands for itself alone, by the weights." in public
    assert "samples of real populations" not in public
    answer = said(external_page_one(register, None), "What an intruder")
    assert answer == "Not shown: shares of so few records could reveal single ones."
    file = said(external_page_one(register, None), "What the file is")
    assert "which counts as the whole population" in file


def test_what_is_held_is_the_first_thing_to_decide(measured: Measurement) -> None:
    held = dataclasses.replace(measured, checks=[Check("limit k", "fail", "1", key="limit_k")])
    answer = said(internal_page_one(held, None), "What is to be decided")
    assert answer.startswith("Failed: limit k. The release is held")


def test_the_figures_are_few_and_judged_only_where_asked(measured: Measurement) -> None:
    plain = dataclasses.replace(
        measured, checks=[one for one in measured.checks if not one.key.startswith("limit")]
    )
    figures = internal_page_one(plain, None)["figures"]
    assert 4 <= len(figures) <= 6
    assert figures[0].verdict == "not judged"
    judged = internal_page_one(measured, None)["figures"]
    assert judged[0].verdict == "fail", "the limit k is exceeded, and page one does not say so"


def test_the_public_reads_whole_per_cents_with_intervals(measured: Measurement) -> None:
    page = external_page_one(measured, None)
    text = " ".join(answer for _, answer in page["page_one"])
    assert "90 % intervals" in text
    assert "about 900 persons" in text
    for exact in (measured.data.sample_uniques, len(measured.data.combinations)):
        assert f"{exact:,} " not in text
    few = dataclasses.replace(measured.data, codes=measured.data.codes[:400])
    assert few.n == 400
    small = external_page_one(dataclasses.replace(measured, data=few), None)
    assert small["figures"] == []
    assert "Not shown" in said(small, "What an intruder")
    assert "%" not in " ".join(answer for _, answer in small["page_one"])


def test_the_board_reads_what_it_can_do_and_the_public_no_share_of_few_records(
    measured: Measurement,
) -> None:
    """A file leaves as it is, or with fewer or coarser keys: that is what page one is for."""
    page = internal_page_one(measured, None)
    assert "with fewer or coarser keys" in said(page, "What is to be decided")
    assert "sample uniques" in said(page, "What drives the risk")
    looks = [
        Check(name, "look", "", key=name)
        for name in ("latent classes: chains", "models", "latent classes: width")
    ]
    asked = said(
        internal_page_one(dataclasses.replace(measured, checks=looks), None), "What is to be"
    )
    assert asked.startswith("Read before a release: latent classes (chains, width), models.")


@pytest.mark.parametrize(
    ("key", "told", "public"),
    [
        ("classes_chains", "the chains disagree about it", "disagree"),
        ("classes_width", "it is too uncertain", "wrong by a third or more"),
        ("classes_households", "too low by a third", "too low by a third"),
        ("classes_divergences", "went astray", "went astray"),
    ],
)
def test_an_estimate_that_is_not_trusted_says_so_first_and_why(
    measured: Measurement, key: str, told: str, public: str
) -> None:
    """It was stated, and three paragraphs later came two reasons of which one did not hold."""
    found = measured.latent_classes
    assert found is not None
    diagnostics = found.diagnostics.assign(rhat=1.0)
    diagnostics.loc["log likelihood", "rhat"] = 1.4  # slow, which alone is no reason
    if key == "classes_chains":
        diagnostics.loc["tau1", "rhat"] = 1.3
    checks = [Check("chains", "look", "", key="classes_chains")]
    if key != "classes_chains":
        checks.append(Check("the reason", "look", "", key=key))
    doubted = dataclasses.replace(found, trusted=False, checks=checks, diagnostics=diagnostics)
    result = dataclasses.replace(measured, latent_classes=doubted)
    page = internal_page_one(result, None)
    first = said(page, "What an intruder")
    assert first.startswith("This estimate is not to be relied on: ")
    assert told in first.partition(". They")[0]
    assert ("chains disagree" in first) is (key == "classes_chains")
    assert f"Do not rely on it here: {trust.why_not(doubted)}. Then" in said(page, "The estimate")
    outside = external_page_one(result, None)
    first = said(outside, "What an intruder")
    assert first.startswith("The estimates here are not to be relied on: ")
    assert public in first.partition(". Somebody")[0]
    for figure in (page["figures"][1], *outside["figures"]):
        assert figure.verdict == "look"
        assert "not to be relied on" in figure.why
    assert trust.why_not(dataclasses.replace(found, trusted=True)) == ""


def test_the_methods_at_the_ends_of_the_range_are_explained(measured: Measurement) -> None:
    """A board does not know who Zayatz is."""
    assert measured.comparison is not None
    methods = measured.comparison.methods
    uniques = methods[methods["about"] == UNIQUES]
    for name in uniques.index:
        assert ("which" in named(name)) is (name != "latent classes, uniques"), name
    answer = said(internal_page_one(measured, None), "The estimate")
    assert f"({named(uniques['expected'].idxmax())})" in answer
