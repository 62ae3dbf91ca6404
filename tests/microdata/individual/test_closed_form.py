"""Individual risk against multi-precision arithmetic, closed forms and simulation."""

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.individual.closed_form import (
    household_risk,
    individual_risk,
    terms_for_error,
)

DATA = Path(__file__).resolve().parents[2] / "data"
REFERENCE = json.loads((DATA / "individual_risk.json").read_text(encoding="utf-8"))


def by_mpmath(f: int, p: float) -> float:
    """Risk by the hypergeometric function as printed (the other form), with 60 digits."""
    with mpmath.workdps(60):
        exact = mpmath.mpf(p)
        risk = exact**f / f * mpmath.hyp2f1(f, f, f + 1, 1 - exact)
        return float(risk)


@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: f"f={case['f']},p={case['p']}")
def test_reference_values(case):
    assert individual_risk(case["f"], float(case["p"])) == pytest.approx(case["risk"], rel=1e-10)


@pytest.mark.parametrize("f", [1, 2, 3, 5, 17, 38, 39, 40, 41, 100, 1000, 10**6])
@pytest.mark.parametrize(
    "p", [1e-12, 1e-9, 1e-4, 0.02, 0.3, 0.4999, 0.5, 0.5001, 0.9, 1 - 1e-9, 1 - 2.0**-52, 1 - 1e-16]
)
def test_ten_digits_over_the_whole_range(f, p):
    """1 - p loses nothing in double precision, so the exact answer belongs to this very p."""
    if f <= 1000:
        expected = by_mpmath(f, p)
    else:  # the printed form needs too many digits here; Gauss's series needs a few terms
        with mpmath.workdps(30):
            z, term, total = 1 - mpmath.mpf(p), mpmath.mpf(1), mpmath.mpf(0)
            for k in range(1, 40):
                total += term
                term *= k * z / (f + k)
            assert term < 1e-30
            expected = float(mpmath.mpf(p) / f * total)
    assert float(individual_risk(f, p)) == pytest.approx(expected, rel=1e-10)


@given(st.integers(1, 300), st.floats(1e-12, 1))
def test_risk_lies_between_p_over_f_and_one_over_f(f, p):
    risk = float(individual_risk(f, p))
    assert p / f <= risk * (1 + 1e-14)
    assert risk <= 1 / f
    assert float(individual_risk(f, 1.0)) == 1 / f
    assert float(individual_risk(f + 1, p)) <= risk


def test_recurrence_and_series_agree_where_they_meet():
    """Both ways are valid at f = 39 and 40; the recurrence ties them: q I(40) = 1/39 - p I(39)."""
    p = np.array([1e-9, 0.01, 0.2, 0.49])
    left = (1 - p) * individual_risk(40, p) / p
    np.testing.assert_allclose(left, 1 / 39 - individual_risk(39, p), rtol=1e-12)


def test_risk_is_the_mean_of_the_inverse_population_frequency():
    rng = np.random.default_rng(7)
    for f, p in ((1, 0.1), (3, 0.02), (8, 0.6)):
        inverse = 1 / (f + rng.negative_binomial(f, p, 400_000))
        error = inverse.std() / math.sqrt(len(inverse))
        assert abs(inverse.mean() - float(individual_risk(f, p))) < 4 * error


def test_published_approximations():
    """(9) and (10), written as printed; both underestimate."""
    f, p = np.meshgrid(np.arange(1, 30), [0.001, 0.01, 0.3, 0.9])
    q = 1 - p
    first = p / f * (1 + q / (f + 1))
    second = p / f * (1 + q / (f + 1) + 4 * q**2 / (2 * (f + 1) * (f + 2)))
    np.testing.assert_allclose(individual_risk(f, p, method="order-1"), first, rtol=1e-14)
    np.testing.assert_allclose(individual_risk(f, p, method="order-2"), second, rtol=1e-14)
    np.testing.assert_allclose(individual_risk(f, p, terms=2), second, rtol=1e-14)
    assert np.all(first < individual_risk(f, p))
    assert np.all(second < individual_risk(f, p))
    low = 1 - float(individual_risk(4, 0.01, method="order-2")) / by_mpmath(4, 0.01)
    assert low == pytest.approx(0.048, abs=0.0005)


@given(st.integers(1, 60), st.floats(0.01, 1), st.sampled_from([1e-2, 1e-4, 1e-8, 1e-12]))
def test_terms_reach_the_wanted_error(f, p, error):
    terms = terms_for_error(f, p, error)
    exact = by_mpmath(f, p)
    assert exact - float(individual_risk(f, p, terms=terms)) <= error + 1e-15


def test_the_printed_rule_for_the_order_is_too_low():
    """Stated in the docstring; with f = 1 the printed rule has no answer at all."""
    f, p, error = 2, 0.04, 1e-4
    printed = math.floor(-math.log(error) / math.log(f)) + 1
    assert printed == 14
    assert by_mpmath(f, p) - float(individual_risk(f, p, terms=printed)) == pytest.approx(
        6.7e-4, abs=5e-6
    )
    terms = terms_for_error(f, p, error)
    assert by_mpmath(f, p) - float(individual_risk(f, p, terms=terms)) < error


@pytest.mark.parametrize(
    "given",
    [
        ("a", 0.1, 0.1),
        ([2, 3], 0.1, 0.1),
        (0, 0.1, 0.1),
        (float("nan"), 0.1, 0.1),
        (2, "a", 0.1),
        (2, float("nan"), 0.1),
        (2, -0.1, 0.1),
        (2, 0.1, "a"),
        (2, 0.1, float("nan")),
        (2, 0.1, -1),
        (2, None, 0.1),
        (2, 0.1, None),
    ],
)
def test_terms_for_what_is_no_number_are_refused(given):
    """Texts and lists ended in Python's own words."""
    with pytest.raises(InputError):
        terms_for_error(*given)


def test_a_hopeless_series_is_refused():
    with pytest.raises(InputError, match="method='exact'"):
        terms_for_error(1, 1e-9, 1e-15)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0, 0.5), "whole numbers from 1"),
        ((-1, 0.5), "whole numbers from 1"),
        ((1.5, 0.5), "whole numbers from 1"),
        ((float("nan"), 0.5), "whole numbers from 1"),
        ((True, 0.5), "f must hold numbers; it is True"),
        ((1, 0.0), "p must be"),
        ((1, 1.0001), "p must be"),
        ((1, float("nan")), "p must be"),
        (([1, 2], [0.1, 0.2, 0.3]), "do not match"),
    ],
)
def test_values_out_of_range_are_refused(arguments, said):
    with pytest.raises(InputError, match=said):
        individual_risk(*arguments)


@pytest.mark.parametrize(
    "changed",
    [{"method": "approx"}, {"terms": -1}, {"terms": 1.5}, {"method": "order-1", "terms": 3}],
)
def test_options_that_cannot_be_used_are_refused(changed):
    with pytest.raises(InputError):
        individual_risk(1, 0.5, **changed)


def test_shapes_are_kept():
    assert individual_risk([[1, 2, 3]], [[0.1], [0.2]]).shape == (2, 3)
    assert individual_risk([], []).shape == (0,)
    assert individual_risk(2.0, 0.5).shape == ()


# ---- households ------------------------------------------------------------------------------


def test_tiny_and_large_risks_of_households():
    tiny = household_risk(np.full(60, 1e-12), ["h"] * 60)
    assert tiny == pytest.approx(np.full(60, 5.999999999823e-11), rel=1e-12)
    large = household_risk(np.full(40, 0.3), np.zeros(40))
    assert large == pytest.approx(np.full(40, 0.999999363319424), rel=1e-14)


@pytest.mark.parametrize("nobody", [None, float("nan"), "", "  ", pd.NA])
def test_persons_without_id_are_households_of_their_own(nobody):
    risk = household_risk([0.1, 0.2, 0.3, 0.4], ["a", nobody, nobody, "a"])
    assert risk == pytest.approx([0.46, 0.2, 0.3, 0.46])


def test_a_certain_member_makes_the_household_certain():
    assert household_risk([1.0, 0.0, 0.5, 0.0], [1, 1, 2, 3]).tolist() == [1, 1, 0.5, 0]


def test_household_risk_does_not_depend_on_record_order():
    rng = np.random.default_rng(4)
    risk, household = rng.random(500) ** 3, rng.integers(0, 40, 500)
    order = rng.permutation(500)
    moved = household_risk(risk[order], household[order])
    assert moved.tolist() == household_risk(risk, household)[order].tolist()
    expected = [1 - np.prod(1 - risk[household == h]) for h in household]
    np.testing.assert_allclose(household_risk(risk, household), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("risk", "said"),
    [
        ([0.1, float("nan")], "from 0 to 1"),
        ([1.1, 0], "from 0 to 1"),
        ([0.1], "1 risks but 2"),
        ([[0.1], [0.2]], "one dimension"),
    ],
)
def test_household_risk_refuses(risk, said):
    with pytest.raises(InputError, match=said):
        household_risk(risk, ["a", "a"])


@pytest.mark.parametrize(
    "household",
    [
        [[1], [2]],
        np.array([[1], [2]]),
        pd.Series([[1], [2]], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
    ],
    ids=["lists", "two dimensions", "Arrow lists"],
)
def test_households_that_are_no_ids_are_refused_in_words(household):
    with pytest.raises(InputError, match="household must have one id"):
        household_risk([0.1, 0.2], household)


# ---- numbers of other types -------------------------------------------------------------------


def test_whole_numbers_are_taken_from_any_kind_of_array():
    """An object array of 1 and 2 is whole; the text of the refusal would be a lie."""
    expected = individual_risk([1, 2], 0.1).tolist()
    for f in (np.array([1, 2], object), pd.Series([1, 2], dtype="Int64"), [1.0, 2.0]):
        assert individual_risk(f, 0.1).tolist() == expected
    assert individual_risk([1, 2], np.array([0.1, 0.1], object)).tolist() == expected


@pytest.mark.parametrize(
    ("f", "p", "said"),
    [
        (1, "a", "p must hold numbers"),
        ("b", 0.1, "f must hold numbers"),
        ([[1], [1, 2]], 0.1, "f must hold numbers"),
        ([1, None], 0.1, "f must hold whole numbers"),
        (pd.Series([1, None], dtype="Int64"), 0.1, "f must hold"),
        ([True], 0.1, "f must hold numbers"),
        (np.array([1, 1.5], object), 0.1, "whole numbers from 1; it is 1.5"),
        (2**70, 0.1, "whole numbers from 1"),
        (1, [None], "above 0"),
        (1, 0.5 + 1j, "p must hold numbers"),
    ],
)
def test_numbers_that_are_none_are_refused_in_words(f, p, said):
    with pytest.raises(InputError, match=said):
        individual_risk(f, p)
