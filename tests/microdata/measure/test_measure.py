"""The whole measurement: what goes into it, and when a verdict fails."""

import dataclasses
import datetime

import numpy as np
import pandas as pd
import pytest

from bayes_sdc.agency_limits import FlowLimits, MicrodataLimits
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.individual.closed_form import individual_risk
from bayes_sdc.microdata.limits import check_limits
from bayes_sdc.microdata.measure.measure import measure_microdata
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.policy import Policy
from bayes_sdc.report.microdata.render import render_microdata

pytestmark = pytest.mark.usefixtures("short_chains")

RNG = np.random.default_rng(3)
PEOPLE = pd.DataFrame(
    {
        "a": RNG.integers(0, 9, 300).astype(str),
        "b": RNG.integers(0, 9, 300).astype(str),
        "w": RNG.uniform(5, 15, 300),
    }
)


def measure(weight: str | None = "w", frame: pd.DataFrame = PEOPLE, **changed) -> Measurement:
    data = read_microdata(frame, keys=["a", "b"], weight=weight)
    return measure_microdata(data, **{"draws": 200, "seed": 1, **changed})


@pytest.fixture(scope="module")
def plain() -> Measurement:
    return measure()


def policy(**limits: float) -> Policy:
    return Policy("Survey", datetime.date(2026, 1, 15), microdata=MicrodataLimits(**limits))


def verdicts(result: Measurement) -> dict[str, str]:
    return {check.name: check.verdict for check in result.checks}


def test_without_limits_nothing_fails(plain):
    assert "fail" not in verdicts(plain).values()
    assert set(plain.models) == {"known", "uncertain", "gamma", "extended"}
    assert plain.population_size == round(PEOPLE["w"].sum())


def test_limits_fail_just_beyond_and_pass_at_the_value(plain):
    """f < k and risk > limit, both exclusive; the file by its worst model."""
    lowest = plain.data.f.min()
    worst = max(plain.models, key=lambda name: plain.models[name].risk.max())
    highest = plain.models[worst].risk.max()
    share = plain.worst.expected.value / plain.data.n
    at = policy(record_risk=float(highest), file_risk=share)
    beyond = policy(k=int(lowest) + 1, record_risk=float(highest) * 0.999, file_risk=share * 0.999)
    passed, failed = measure(policy=at), measure(policy=beyond)
    names = ["limit k", "limit record_risk", "limit file_risk"]
    assert [verdicts(passed).get(name) for name in names] == [None, "pass", "pass"]
    assert [verdicts(failed).get(name) for name in names] == ["fail", "fail", "fail"]
    reasons = {check.name: check.reason for check in failed.checks}
    low = plain.data.k_violations(int(lowest) + 1)
    above = plain.models[worst].risk > highest * 0.999
    high = plain.risk.combinations["records"][above].sum()
    assert f"{low.records} records in {low.combinations} combinations" in reasons["limit k"]
    assert f"{high} records in {above.sum()} comb" in reasons["limit record_risk"]


def test_a_record_is_judged_by_the_model_in_which_it_is_riskiest(plain):
    """The closed form is too low for rare combinations: by it alone a bad file would pass."""
    closed = plain.risk.combinations["risk"].to_numpy()
    assert closed.max() < 0.6
    models = {
        "known": plain.models["known"],
        "extended": dataclasses.replace(plain.models["extended"], risk=closed * 1.5),
    }
    limit = float(closed.max()) * 1.2
    (check,) = check_limits(policy(record_risk=limit), plain.risk, models)
    assert (check.verdict, check.value) == ("fail", closed.max() * 1.5)
    assert (
        f"by the model of frequencies 'extended', where it is highest: {check.value:.6g} >"
        in check.reason
    )
    above = plain.risk.combinations["records"][closed * 1.5 > limit].sum()
    assert f"{above} records in" in check.reason


def test_the_closed_form_is_among_what_a_record_is_judged_by(plain):
    """Given only a model that is lower, a limit would pass that the closed form exceeds."""
    known = plain.models["known"]
    lower = {"known": dataclasses.replace(known, risk=known.risk / 2)}
    highest = float(plain.risk.risk.max())
    (check,) = check_limits(policy(record_risk=highest * 0.9), plain.risk, lower)
    assert (check.verdict, check.value) == ("fail", highest)
    assert "by the closed form, where it is highest" in check.reason


def test_the_model_behind_the_risk_of_the_file_is_named(plain):
    check = next(c for c in measure(policy=policy(file_risk=0.5)).checks if "file" in c.name)
    name = next(name for name, model in plain.models.items() if model is plain.worst)
    assert f"by the model of frequencies {name!r}, where it is highest: " in check.reason


@pytest.mark.parametrize("fraction", [0.5, 0.1])
def test_population_and_fraction_of_one_file_are_not_both_taken(fraction):
    """Else the risk would be that of one population, and the comparison that of another."""
    with pytest.raises(InputError, match=r"300 records of 3,000 people are a fraction of 0\.1;"):
        measure(weight=None, population_size=3000, sampling_fraction=fraction)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sampling_fraction": 1e-300}, r"sampling fraction makes a population of 3e\+302"),
        ({"sampling_fraction": 5e-324}, "sampling fraction makes a population of inf"),
        ({"population_size": 10**400}, "population size is beyond"),
        ({"population_size": float("inf")}, "must be a whole number"),
    ],
)
def test_a_population_that_no_country_has_is_refused_before_it_overflows(given, words):
    """A raw OverflowError from deep inside would not say which argument is wrong."""
    with pytest.raises(InputError, match=words):
        measure(weight=None, **given)


def test_weights_that_overflow_are_refused():
    with pytest.raises(InputError, match=r"beyond 2\^53"):
        measure(frame=PEOPLE.assign(w=1e200))


def test_the_largest_population_is_measured():
    """What the limit lets through must not overflow further down."""
    result = measure(weight=None, population_size=2**53)
    assert 0 <= result.risk.expected < 1e-9
    assert result.comparison is not None
    assert result.comparison.methods["expected"].notna().all()


@pytest.mark.usefixtures("sketches")
def test_more_keys_than_suda_can_search_leave_the_risks():
    """Else 65 keys would end the whole measurement, whose other parts work."""
    frame = pd.DataFrame(RNG.integers(0, 2, (12, 65)).astype(str)).add_prefix("k").assign(w=4.0)
    data = read_microdata(frame, keys=list(frame.columns[:65]), weight="w")
    result = measure_microdata(data, draws=200, seed=1)
    assert result.comparison is None
    (note,) = result.notes
    assert "65 keys are too many for SUDA" in note
    assert result.risk.expected > 0
    text = render_microdata(
        result,
        audience="internal",
        call={"command": "", "created": "", "seed": 1, "arguments": {}, "versions": {}},
    )
    assert "65 keys are too many for SUDA" in text


def test_nothing_is_noted_where_nothing_is_left_out(plain):
    assert plain.comparison is not None
    assert plain.notes == ()


@pytest.mark.parametrize(("k", "verdict"), [(2, "pass"), (3, "pass"), (4, "fail")])
def test_k_is_the_smallest_frequency_that_passes(k, verdict):
    frame = pd.DataFrame({"a": list("xxxyyy"), "b": "1", "w": 4.0})
    assert verdicts(measure(frame=frame, policy=policy(k=k)))["limit k"] == verdict


def test_population_size_gives_the_fraction_of_an_unweighted_file():
    result = measure(weight=None, population_size=3000)
    assert result.risk.sampling_fraction == pytest.approx(0.1)
    np.testing.assert_allclose(result.risk.risk, individual_risk(result.data.f, 0.1))
    assert "uncertain" not in result.models  # there are no weights to be uncertain about
    assert "population" not in verdicts(result)
    assert measure(weight=None, sampling_fraction=0.1).population_size == 3000


def test_a_file_without_weights_and_population_is_said_to_be_the_population():
    result = measure(weight=None)
    assert verdicts(result)["population"] == "look"
    np.testing.assert_allclose(result.risk.risk, 1 / result.data.f)


def test_weights_that_miss_the_population_are_remarked_on():
    assert verdicts(measure(population_size=6000))["population"] == "look"
    assert verdicts(measure(population_size=3000))["population"] == "pass"


def test_every_model_says_how_many_households_are_found(plain):
    """By the closed form alone, which is too low, the table of households would look safe."""
    frame = PEOPLE.assign(h=[f"{i // 3:03}" for i in range(300)])
    data = read_microdata(frame, keys=["a", "b"], weight="w", household="h")
    result = measure_microdata(data, draws=200, seed=1)
    assert len(result.households) == 100
    for name, model in result.models.items():
        by_hand = 1 - np.prod(1 - model.risk[data.combination].reshape(100, 3), axis=1)
        np.testing.assert_allclose(result.households[f"risk_{name}"], by_hand, rtol=1e-9)
        assert result.expected_households[name] == pytest.approx(by_hand.sum())
    best = result.risk.risk.copy()
    for record, row in result.latent_classes.records.iterrows():
        best[record] = row["inverse_F"]
    by_hand = 1 - np.prod(1 - best.reshape(100, 3), axis=1)
    np.testing.assert_allclose(result.households["risk_recommended"], by_hand, rtol=1e-9)
    assert result.expected_households["recommended"] == pytest.approx(by_hand.sum())
    assert plain.households is None
    assert plain.expected_households == {}


def test_truth_is_counted_over_records():
    frame = pd.DataFrame({"a": list("xxyz"), "b": "1", "w": 4.0})
    result = measure(frame=frame, population_counts=[4, 4, 1, 5])
    assert result.truth == pytest.approx((0.25 + 0.25 + 1 + 0.2, 1, 1.2))


def test_cells_add_the_estimates_that_need_them():
    result = measure(cells=81)
    assert result.unstructured.cells == 81
    assert result.unstructured.uniform >= 0
    low, high = result.unstructured.learned.uniques.interval
    assert 0 <= low <= high <= result.data.sample_uniques


def test_same_seed_same_numbers_for_any_record_order(plain):
    other = measure(frame=PEOPLE.sample(frac=1, random_state=5))
    for name, model in plain.models.items():
        assert model.expected == other.models[name].expected, name
        assert model.tau1 == other.models[name].tau1, name


@pytest.mark.parametrize(
    "changed",
    [
        {"population_size": 200},
        {"sampling_fraction": 0.1},
        {"policy": Policy("Tables", datetime.date(2026, 1, 15), flows=FlowLimits(r_all=0.3))},
        {"population_counts": [1, 2]},
        {"population_counts": np.zeros(300)},
        {"cells": 3},
        {"seed": -1},
    ],
)
def test_arguments_that_cannot_be_used(changed):
    with pytest.raises(InputError):
        measure(**changed)


def test_overlapping_combinations_are_to_be_looked_at():
    """Else totals that missing values lower tenfold pass for those of a safe file."""
    frame = PEOPLE.copy()
    frame.loc[::5, "a"] = None
    wildcard = measure(frame=frame)
    assert verdicts(wildcard)["missing values"] == "look"
    (check,) = (check for check in wildcard.checks if check.name == "missing values")
    times = wildcard.data.combinations["f"].sum() / 300
    assert times > 1.5
    assert f"{times:,.2f} times the file" in check.reason
    own = read_microdata(frame, keys=["a", "b"], weight="w", missing="own")
    assert "missing values" not in verdicts(measure_microdata(own, draws=200, seed=1))
    assert "missing values" not in verdicts(measure())


def test_uniques_without_structure_are_those_of_the_rule_or_none():
    """59 records that a record without values matches are no sample uniques."""
    frame = pd.DataFrame({"a": [*map(str, range(59)), None], "b": ["x"] * 59 + [None], "w": 2.0})
    result = measure(frame=frame, cells=70, force=True)
    assert result.data.sample_uniques == 0
    assert result.unstructured is None
    assert any("uniques without structure were not estimated" in note for note in result.notes)


def test_too_few_cells_are_refused_before_the_work(monkeypatch):
    monkeypatch.setattr(
        "bayes_sdc.microdata.measure.measure.record_risk", lambda *a, **k: pytest.fail("late")
    )
    with pytest.raises(InputError, match=r"whole number from the \d+ combinations in the file up"):
        measure(cells=3)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([4, 4, 1.5, 5], "whole numbers; row 3 has 1.5"),
        ([4, 4, 1, 0], "at least the frequency in the file; row 4 has 0"),
        ([4, 5, 1, 5], "equal for equal key values; row"),
    ],
)
def test_truth_that_cannot_be_is_refused(counts, said):
    frame = pd.DataFrame({"a": list("xxyz"), "b": "1", "w": 4.0})
    with pytest.raises(InputError, match=said):
        measure(frame=frame, population_counts=counts)
