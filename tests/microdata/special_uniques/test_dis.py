"""DIS against its expectation under sampling, and against matching done literally."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bayes_sdc import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.special_uniques.dis import dis
from bayes_sdc.microdata.special_uniques.dis_special import MOST_FRAGMENTS, dis_special
from bayes_sdc.microdata.special_uniques.fragments import aligned, match_all, match_fragment

CASES = json.loads((Path(__file__).parents[2] / "data" / "suda_dis.json").read_text("utf-8"))


def read(
    codes: np.ndarray, missing: str = "wildcard", weights: np.ndarray | None = None
) -> Microdata:
    frame = pd.DataFrame(codes).astype(str).replace("-1", None)
    frame.columns = [f"k{place}" for place in frame.columns]
    keys = list(frame.columns)
    if weights is not None:
        frame["w"] = weights
    weight = None if weights is None else "w"
    return read_microdata(frame, keys=keys, missing=missing, weight=weight)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_worked_cases(case):
    found = dis(read(np.array(case["rows"])), case["sampling_fraction"])
    assert found.value == pytest.approx(case["dis"], rel=1e-14)
    assert found.uniques == case["sample_uniques"]
    assert found.pair_records == case["records_in_pairs"]


def population(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells with a long tail, and inclusion probabilities that differ within them."""
    rng = np.random.default_rng(seed)
    cell = np.repeat(np.arange(4000), rng.geometric(0.25, 4000))
    return cell, rng.uniform(0.05, 0.4, len(cell))


def truth(cell: np.ndarray, sampled: np.ndarray) -> tuple[int, int]:
    """U and V: sample uniques, and people outside the file who share their values."""
    f = np.bincount(cell[sampled], minlength=4000)
    big = np.bincount(cell, minlength=4000)
    return int((f == 1).sum()), int((big - 1)[f == 1].sum())


@pytest.mark.parametrize("equal", [pytest.param(True, marks=pytest.mark.slow), False])
def test_false_matches_are_estimated_without_bias_and_the_error_is_as_large_as_said(equal):
    """A wrong weight for the pairs, or the odds of the wrong record, shows in the mean."""
    cell, probability = population(1)
    if equal:
        probability = np.full(len(cell), 0.15)
    rng = np.random.default_rng(2)
    off, square, said, inside = [], [], [], []
    for _ in range(300):
        sampled = rng.random(len(cell)) < probability
        weights = None if equal else 1.0 / probability[sampled]
        found = dis(read(cell[sampled][:, None], weights=weights), 0.15 if equal else None)
        uniques, false = truth(cell, sampled)
        theta = uniques / (uniques + false)
        off.append(found.false_matches - false)
        square.append((found.value - theta) ** 2)
        said.append(found.standard_error**2)
        low, high = found.delta_interval
        inside.append(low <= theta <= high)
    assert abs(np.mean(off)) < 4 * np.std(off) / np.sqrt(len(off))
    # the mean of 300 squares of nearly normal errors has a relative error of 8 %
    assert 0.72 < np.mean(said) / np.mean(square) < 1.4
    assert np.mean(inside) > 0.91


def test_equal_weights_are_the_same_as_their_fraction():
    codes = np.random.default_rng(3).integers(0, 4, (200, 4))
    by_weight = dis(read(codes, weights=np.full(200, 8.0)), None)
    by_fraction = dis(read(codes), 0.125)
    assert by_weight.value == pytest.approx(by_fraction.value, rel=1e-14)
    assert by_weight.standard_error == pytest.approx(by_fraction.standard_error, rel=1e-14)
    assert by_weight.beta_interval == pytest.approx(by_fraction.beta_interval, rel=1e-14)


def test_the_partner_of_a_record_in_a_pair_may_be_in_a_larger_group_by_a_wildcard():
    # (a, ?) matches both others, so f = 2, 3, 2 and the weights left out are those of (a, ?)
    data = read(np.array([[0, 0], [0, -1], [0, 1]]), weights=np.array([2.0, 5.0, 3.0]))
    assert data.f.tolist() == [2, 3, 2]
    assert dis(data, None).false_matches == 8.0


def test_weights_below_one_are_counted_as_one_and_said():
    data = read(np.array([[0], [0], [1]]), weights=np.array([0.4, 3.0, 2.0]))
    found = dis(data, None)
    assert found.raised_weights == 1
    assert found.value == pytest.approx(1 / (1 + 2))


@pytest.mark.parametrize(
    ("rows", "fraction", "value"),
    [([[0], [0]], 0.5, 0.0), ([[0], [1]], 0.01, 1.0), ([[0], [1]], 1.0, 1.0), ([[0]], 1.0, 1.0)],
)
def test_edges_are_defined(rows, fraction, value):
    found = dis(read(np.array(rows)), fraction)
    assert found.value == value
    low, high = found.beta_interval
    assert 0 <= low <= high <= 1


@pytest.mark.parametrize(("rows", "fraction"), [([[0]] * 3, 0.1), ([[0]] * 2, 1.0)])
def test_nothing_to_match_uniquely_is_undefined_and_not_zero(rows, fraction):
    found = dis(read(np.array(rows)), fraction)
    assert found.value is None
    assert "undefined" in str(found)
    with pytest.raises(InputError, match="undefined"):
        float(found)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (0.0, "above 0 and at most 1; it is 0.0"),
        (-0.1, "above 0 and at most 1; it is -0.1"),
        (1.5, "above 0 and at most 1; it is 1.5"),
        (float("nan"), "a number; it is nan"),
        (True, "a number; it is True"),
        ("0.1", "a number; it is '0.1'"),
    ],
)
def test_wrong_fractions_are_named(wrong, said):
    with pytest.raises(InputError, match=f"sampling_fraction must be {said}"):
        dis(read(np.array([[0]])), wrong)


def test_weights_that_are_not_there_are_asked_for():
    with pytest.raises(InputError, match="the file has none"):
        dis(read(np.array([[0]])), None)


# special form


def literal_match(known: np.ndarray, released: np.ndarray, missing: str) -> np.ndarray:
    """Whether each released record matches each known one."""
    equal = known[:, None] == released
    if missing != "own":
        # what is not known can be anything; what is suppressed only for the wildcard
        equal = equal | (known < 0)[:, None] | ((released < 0) & (missing == "wildcard"))
    return equal.all(axis=2)


@given(
    arrays.arrays(
        np.int64, st.tuples(st.integers(1, 8), st.integers(1, 3)), elements=st.integers(-1, 2)
    ),
    st.sampled_from(["wildcard", "own", "conservative"]),
    st.randoms(use_true_random=False),
)
def test_fragments_are_matched_as_one_would_by_hand(codes, missing, random):
    """Every record of the fragment is looked up in what is left of the protected file."""
    protected = codes.copy()
    for row in protected:
        row[random.randrange(len(row))] = random.randrange(-1, 4)
    known, released, rule = aligned(read(codes), read(protected, missing))
    table = literal_match(codes, protected, missing)
    counts = match_all(known, released, rule)
    np.testing.assert_array_equal(counts, table.sum(axis=1))
    members = np.array(random.sample(range(len(codes)), random.randint(1, len(codes))))
    copied = np.array([random.random() < 0.5 for _ in members])
    left = np.ones(len(codes), bool)
    left[members[~copied]] = False
    found = table & left
    unique = [r for r in members if found[r].sum() == 1]
    correct = [r for r in unique if found[r, r]]
    assert match_fragment(known, released, rule, counts, members, copied) == (
        len(unique),
        len(correct),
    )


def test_special_form_agrees_with_the_general_form():
    codes = np.random.default_rng(4).integers(0, 8, (2000, 4))
    data = read(codes)
    general = dis(data, 0.2)
    found = dis_special(data, sampling_fraction=0.2, seed=1, error=0.003, fragment=1)
    assert found.fragments == MOST_FRAGMENTS or found.stable
    several = dis_special(data, sampling_fraction=0.2, seed=1, error=0.003)
    assert several.stable
    assert abs(several.value - general.value) < 4 * several.monte_carlo_error


def test_protected_file_decides_the_risk():
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 8, (2000, 4))
    data = read(codes)
    plain = dis_special(data, sampling_fraction=0.2, seed=1, error=0.01)
    swapped = codes.copy()
    swapped[:, 0] = rng.permutation(codes[:, 0])
    protected = dis_special(data, read(swapped), sampling_fraction=0.2, seed=1, error=0.01)
    # one value in eight is right by chance, and the others match somebody else
    assert protected.value < 0.3 * plain.value
    hidden = codes.copy()
    hidden[:, 0] = -1
    wild = dis_special(data, read(hidden), sampling_fraction=0.2, seed=1, error=0.01)
    general = dis(read(codes[:, 1:]), 0.2)
    assert abs(wild.value - general.value) < 4 * wild.monte_carlo_error


def test_order_of_records_does_not_matter_and_the_seed_does():
    codes = np.random.default_rng(6).integers(0, 5, (400, 3))
    order = np.random.default_rng(7).permutation(400)
    first = dis_special(read(codes), sampling_fraction=0.3, seed=1, error=0.02)
    assert dis_special(read(codes[order]), sampling_fraction=0.3, seed=1, error=0.02) == first
    assert dis_special(read(codes), sampling_fraction=0.3, seed=2, error=0.02) != first


def test_no_unique_match_is_undefined(monkeypatch):
    monkeypatch.setattr("bayes_sdc.microdata.special_uniques.dis_special.MOST_FRAGMENTS", 50)
    found = dis_special(read(np.zeros((9, 1), int)), sampling_fraction=0.5, seed=1)
    assert found.value is None
    assert "undefined" in str(found)
    assert not found.stable


def test_files_that_do_not_belong_together_are_refused():
    data = read(np.zeros((3, 2), int))
    with pytest.raises(InputError, match="has 2 records, the original 3"):
        dis_special(data, read(np.zeros((2, 2), int)), sampling_fraction=0.5, seed=1)
    with pytest.raises(InputError, match=r"has the keys \['k0'\]"):
        dis_special(data, read(np.zeros((3, 1), int)), sampling_fraction=0.5, seed=1)
    with pytest.raises(InputError, match="error must be above 0"):
        dis_special(data, sampling_fraction=0.5, seed=1, error=0.0)
    with pytest.raises(InputError, match="fragment must be a whole number from 1 to 3"):
        dis_special(data, sampling_fraction=0.5, seed=1, fragment=4)
