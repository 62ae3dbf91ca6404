"""Every number of page one stands beside the verdict on that number, and no other."""

import dataclasses
import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayes_sdc import Policy, read_microdata, treat, treated_utility
from bayes_sdc.agency_limits import MicrodataLimits
from bayes_sdc.checks import Check
from bayes_sdc.microdata.limits import check_limits
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.microdata.treatment import states
from bayes_sdc.microdata.treatment.limits import check_treated
from bayes_sdc.microdata.treatment.release import released_file
from bayes_sdc.microdata.treatment.setting import Intruder
from bayes_sdc.report.microdata.page_one import internal_page_one
from bayes_sdc.report.microdata.page_one_figures import figures_of
from bayes_sdc.report.microdata.public_page_one import _public_figures, external_page_one
from bayes_sdc.report.microdata.treated_words import Treated
from bayes_sdc.report.microdata.treatment import tell_treatment

pytestmark = pytest.mark.usefixtures("sketches")

DAY = datetime.date(2026, 1, 15)
SHARES = st.integers(0, 99).map(lambda number: number / 100)
LIMITS = {"k": st.integers(2, 900), "record_risk": SHARES, "file_risk": SHARES}
VERDICTS = ("not judged", "pass", "look", "fail")
few = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    return pd.DataFrame(rng.integers(0, 5, (200, 3)).astype(str), columns=list("abc"))


@pytest.fixture(scope="module")
def suppressed(frame: pd.DataFrame) -> Treated:
    data = read_microdata(frame, keys=list("abc"))
    done = treat(data, method="suppression", k=3, population_size=2000, seed=1)
    return done, treated_utility(done)


@pytest.fixture(scope="module")
def recoded(frame: pd.DataFrame) -> Treated:
    data = read_microdata(frame, keys=list("abc"))
    done = treat(data, method="recoding", population_size=2000, seed=1)
    flags = np.zeros(data.codes.shape, dtype=bool)
    flags[:150, 0] = True
    done = dataclasses.replace(done, recoded=flags)
    return done, treated_utility(done)


@few
@given(st.fixed_dictionaries({}, optional=LIMITS).filter(bool), st.booleans(), st.booleans())
def test_every_limit_of_a_policy_is_on_page_one_with_its_verdict(
    measured: Measurement, suppressed: Treated, limits, of_treated, target
) -> None:
    """A limit that was exceeded stood there as not judged."""
    policy = Policy("Board", DAY, microdata=MicrodataLimits(**limits))
    treated = suppressed if of_treated else None
    checks = check_treated(policy, suppressed[0])
    others = [Check("target risk", "pass", "", key="treatment_target")] if target else []
    if target:
        treated = treated and (dataclasses.replace(treated[0], target_risk=0.9), treated[1])
    figures = figures_of(dataclasses.replace(measured, checks=[*others, *checks]), treated)
    for check in checks:
        shown = [one for one in figures if check.name in one.why]
        if not shown:  # the better of two verdicts on one number
            assert check.verdict == "pass"
            continue
        (one,) = shown
        assert one.verdict == check.verdict
        assert f"{check.limit:g}"[:4] in one.why
    judged = {one.verdict for one in figures}
    assert max((one.verdict for one in checks), key=VERDICTS.index) in judged


def test_the_worse_of_target_and_limit_is_shown(measured: Measurement, suppressed: Treated) -> None:
    done = dataclasses.replace(suppressed[0], target_risk=0.5)
    for target, limit in (("pass", 0.0), ("fail", 0.99), ("look", 0.99)):
        policy = Policy("Board", DAY, microdata=MicrodataLimits(record_risk=limit))
        checks = [Check("target", target, "", key="treatment_target"), *check_treated(policy, done)]
        figures = figures_of(dataclasses.replace(measured, checks=checks), (done, suppressed[1]))
        (one,) = [one for one in figures if one.words.startswith("highest risk")]
        assert one.verdict == ("fail" if target == "pass" else target)
        assert ("limit record_risk" in one.why) is (target == "pass")


def test_a_limit_judges_its_own_number_and_no_other(measured: Measurement) -> None:
    """Records above 0.2 carried the verdict on a limit of 0.9, sample uniques that on k = 3."""
    policy = Policy("Board", DAY, microdata=MicrodataLimits(k=4, record_risk=0.95))
    checks = check_limits(policy, measured.risk, measured.models, measured.latent_classes)
    figures = figures_of(dataclasses.replace(measured, checks=checks), None)
    below = measured.data.k_violations(4).records
    assert figures[0].number == f"{below:,}"
    assert "fewer than 3 others" in figures[0].words
    (of_risk,) = [one for one in figures if "limit record_risk" in one.why]
    assert of_risk.number == f"{checks[1].value:.3f}"
    assert not any("above 0.2" in one.words for one in figures)


def test_the_range_over_methods_is_not_judged_by_the_models_alone(measured: Measurement) -> None:
    """11 to 50 by all methods stood beside a verdict on 44.0 to 49.8 by the models."""
    assert any(check.key == "models" for check in measured.checks)
    last = figures_of(measured, None)[-1]
    assert "over all methods" in last.words
    assert last.verdict == "not judged"
    without = figures_of(dataclasses.replace(measured, comparison=None), None)[-1]
    (check,) = [check for check in measured.checks if check.key == "models"]
    assert (without.verdict, without.why) == (check.verdict, check.reason)


def test_what_was_only_recoded_is_not_judged_beside_itself(
    measured: Measurement, recoded: Treated, frame: pd.DataFrame
) -> None:
    """0.0 % moved passed, for a file that was compared with itself."""
    figures = figures_of(measured, recoded)
    told = " ".join(f"{one.number} {one.words} {one.why}" for one in figures)
    for vacuous in ("moved between", "pMSE", "treated records are known", "undefined"):
        assert vacuous not in told
    assert "the detail lost by recoding is not measured here" in told
    for page in (internal_page_one(measured, recoded), external_page_one(measured, recoded)):
        (said,) = [answer for question, answer in page["page_one"] if "treated" in question]
        assert "stays good for" not in said.replace("What the file stays good for was not", "")
        assert "It is good for" not in said
        assert "was not judged" in said
        assert "which records were treated" not in said
    done, use = recoded
    file = released_file(done, frame)
    facts = tell_treatment(done, use, file, audience="internal")
    assert "after, treated records known" not in facts["columns"]
    assert not {"treated keys", "treated records"} & set(facts["facts"])
    policy = Policy("Board", DAY, microdata=MicrodataLimits(record_risk=0.5))
    assert check_treated(policy, done)[0].definition.endswith("is right after the recoding")


def test_two_tables_of_a_treatment_have_room_side_by_side(
    suppressed: Treated, frame: pd.DataFrame
) -> None:
    """A cell with a number and its interval made the table so wide that half the page was empty."""
    facts = tell_treatment(*suppressed, released_file(suppressed[0], frame), audience="internal")
    rows = {row[0]: row[1:] for row in facts["rows"]}
    risks = [suppressed[0].before, suppressed[0].after, suppressed[0].strongest]
    for shown, ends, risk in zip(
        rows["expected right matches"], rows["90 % interval"], risks, strict=True
    ):
        assert float(shown) == pytest.approx(risk.expected.value, abs=0.06)
        low, high = map(float, ends.split(" to "))
        assert (low, high) == pytest.approx(risk.expected.interval, abs=0.06)
    assert max(len(text) for row in facts["rows"] for text in row[1:]) <= 18


def test_the_public_reads_the_verdict_on_the_share_that_a_limit_judges(
    measured: Measurement, suppressed: Treated
) -> None:
    """A share whose limit was exceeded stood there as not judged."""
    policy = Policy("Board", DAY, microdata=MicrodataLimits(file_risk=0.001))
    checks = [dataclasses.replace(one, units=900) for one in check_treated(policy, suppressed[0])]
    result = dataclasses.replace(measured, checks=checks)
    many = dataclasses.replace(suppressed[0], data=measured.data)
    (figure,) = _public_figures(result, (many, suppressed[1]))
    assert figure.verdict == "fail"
    (figure,) = _public_figures(dataclasses.replace(result, checks=[]), (many, suppressed[1]))
    assert figure.verdict == "not judged"


def test_the_model_is_not_said_to_predict_what_is_not_hidden(frame: pd.DataFrame) -> None:
    data = read_microdata(frame, keys=list("abc"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(states, "convergence", lambda draws: (np.array([1.5]), np.array([9.0])))
        for method, knowledge, words in (
            ("recoding", "population", "No value is hidden"),
            ("recoding", "sample", None),
            ("suppression", "sample", "may predict hidden values worse"),
        ):
            done = treat(
                data, method=method, k=3 if method == "suppression" else None, seed=1,
                intruder=Intruder(knowledge=knowledge), population_size=2000,
            )  # fmt: skip
            told = [one.reason for one in done.checks if one.key == "treatment_chains"]
            assert (words is None) == (not told)
            assert words is None or words in told[0]
