"""Minimal sample uniques and their scores against the definition, taken literally."""

import json
from itertools import combinations
from math import comb, prod
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bayes_sdc import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.special_uniques.collapsed import distinct_records
from bayes_sdc.microdata.special_uniques.minimal import minimal_sample_uniques
from bayes_sdc.microdata.special_uniques.suda import Suda, suda, suda_forecast

CASES = json.loads((Path(__file__).parents[2] / "data" / "suda_dis.json").read_text("utf-8"))
RULES = ["wildcard", "own", "conservative"]

# few values, so that records collide on most sets; -1 is missing
small_codes = arrays.arrays(
    np.int64, st.tuples(st.integers(1, 9), st.integers(1, 5)), elements=st.integers(-1, 3)
)


def read(codes: np.ndarray, missing: str = "wildcard") -> Microdata:
    frame = pd.DataFrame(codes).astype(str).replace("-1", None)
    frame.columns = [f"k{place}" for place in frame.columns]
    return read_microdata(frame, keys=list(frame.columns), missing=missing)  # type: ignore[arg-type]


def frequencies(codes: np.ndarray, members: tuple[int, ...], missing: str) -> np.ndarray:
    """Number of records that count for each record on a set of keys, itself among them."""
    part = codes[:, members]
    equal = part[:, None] == part
    if missing != "own":
        # what a record lacks itself can be anything; what another lacks only for the wildcard
        equal = equal | (part < 0)[:, None] | ((part < 0) & (missing == "wildcard"))
    return equal.all(axis=2).sum(axis=1)


def brute_force(codes: np.ndarray, max_size: int, missing: str) -> list[set[tuple[int, ...]]]:
    found: list[set[tuple[int, ...]]] = [set() for _ in codes]
    for size in range(1, max_size + 1):
        for members in combinations(range(codes.shape[1]), size):
            for r in np.flatnonzero(frequencies(codes, members, missing) == 1):
                if not any(set(smaller) < set(members) for smaller in found[r]):
                    found[r].add(members)
    return found


def listed(found: Suda, records: int) -> list[set[tuple[int, ...]]]:
    frame = found.minimal_sample_uniques()
    result: list[set[tuple[int, ...]]] = [set() for _ in range(records)]
    for record, keys in zip(frame["record"], frame["keys"], strict=True):
        result[record].add(tuple(int(key[1:]) for key in keys.split(" + ")))
    return result


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_worked_cases(case):
    codes = np.unique(np.array(case["rows"], dtype=str), return_inverse=True)[1]
    codes = codes.reshape(np.shape(case["rows"]))
    found = suda(read(codes), max_size=case["max_size"])
    np.testing.assert_array_equal(found.scores, case["scores"])
    expected = [{tuple(members) for members in sets} for sets in case["msus"]]
    assert listed(found, len(codes)) == expected


@given(small_codes, st.integers(1, 5), st.sampled_from(RULES))
def test_every_set_of_every_small_file(codes, max_size, missing):
    found = suda(read(codes, missing), max_size=max_size)
    assert listed(found, len(codes)) == brute_force(codes, max_size, missing)


@given(small_codes, st.integers(1, 5), st.sampled_from(["elliot", "ihsn"]))
def test_scores_and_contributions_are_sums_over_the_sets(codes, max_size, scale):
    keys = codes.shape[1]
    found = suda(read(codes, "own"), max_size=max_size, score=scale)
    size = min(max_size, keys)

    def count(k: int) -> float:
        if scale == "ihsn":
            return (2 ** (keys - k) - 1) / comb(keys, k)
        return prod(keys - i for i in range(k, min(size, keys - 1) + 1))

    sets = brute_force(codes, max_size, "own")
    expected = [sum(count(len(members)) for members in minimal) for minimal in sets]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-14)
    for record in found.contributions.index:
        for key in range(keys):
            part = sum(count(len(members)) for members in sets[record] if key in members)
            assert found.contributions.loc[record, f"k{key}"] == pytest.approx(part, rel=1e-14)
    total = sum(expected)
    if total:
        by_key = found.values.groupby("key")["share"].sum()
        np.testing.assert_allclose(by_key, found.variables.loc[by_key.index], rtol=1e-12)


@pytest.mark.parametrize("missing_share", [0.0, 0.02])
@pytest.mark.parametrize("missing", RULES)
def test_hundreds_of_records_fill_several_words(missing, missing_share):
    rng = np.random.default_rng(5)
    codes = rng.integers(0, [3, 4, 6, 2, 5, 9], (300, 6))
    codes[rng.random(codes.shape) < missing_share] = -1
    found = suda(read(codes, missing), max_size=6)
    assert listed(found, 300) == brute_force(codes, 6, missing)


@pytest.mark.parametrize("tables", [{"small": 1}, {"small": 1, "large": 1}])
def test_large_tables_and_hashing_find_what_small_tables_find(tables):
    """Which of the three ways is taken depends on the number of levels alone."""
    rng = np.random.default_rng(6)
    records = distinct_records(rng.integers(0, [7, 7, 40, 3, 11], (2000, 5)))
    expected = minimal_sample_uniques(records, 5)
    assert sum(int(np.bitwise_count(level.bits).sum()) for level in expected) > 1000
    again = minimal_sample_uniques(records, 5, **tables)
    for level, other in zip(expected, again, strict=True):
        np.testing.assert_array_equal(level.sets, other.sets)
        np.testing.assert_array_equal(level.bits, other.bits)


def test_any_number_of_threads_gives_the_same():
    codes = np.random.default_rng(7).integers(0, 6, (3000, 7))
    several = suda(read(codes), max_size=7)
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        one = suda(read(codes), max_size=7)
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(one.scores, several.scores)
    pd.testing.assert_frame_equal(one.contributions, several.contributions)


def test_order_of_records_does_not_matter():
    codes = np.random.default_rng(8).integers(-1, 6, (500, 5))
    order = np.random.default_rng(9).permutation(500)
    scores = suda(read(codes)).scores
    np.testing.assert_array_equal(suda(read(codes[order])).scores, scores[order])


@pytest.mark.slow
def test_values_of_many_levels_and_more_keys_than_a_code_in_64_bits_holds():
    """3,000 records with 25 keys of 50 levels: 50^25 combinations are more than 2^63."""
    codes = np.random.default_rng(1).integers(0, 50, (3000, 25))
    codes[0] = codes[1]
    data = read(codes)
    forecast = suda_forecast(data)
    assert forecast.uniques == 2998
    assert forecast.sets == 25 + 300 + 2300
    found = suda(data)
    assert found.scores[0] == found.scores[1] == 0
    record = 7
    minimal = [set(k.split(" + ")) for k in found.minimal_sample_uniques(record)["keys"]]
    for members in combinations(range(25), 2):
        alike = (codes[:, members] == codes[record, members]).all(axis=1)
        assert (alike.sum() == 1) == ({f"k{place}" for place in members} in minimal)


@pytest.mark.parametrize("keys", [1, 2])
def test_one_and_two_keys(keys):
    codes = np.array([[0, 0], [0, 1], [1, 1], [2, 1]])[:, :keys]
    found = suda(read(codes))
    assert listed(found, 4) == brute_force(codes, keys, "own")
    assert np.isfinite(found.scores).all()


def test_a_file_without_unique_records():
    found = suda(read(np.zeros((4, 3), int)))
    assert found.scores.tolist() == [0, 0, 0, 0]
    assert found.minimal_sample_uniques().empty
    assert found.variables.isna().all()


def test_sets_of_one_record():
    codes = np.random.default_rng(3).integers(0, 4, (200, 5))
    found = suda(read(codes), max_size=5)
    everything = found.minimal_sample_uniques()
    for record in (0, 57, 199):
        part = everything[everything["record"] == record].reset_index(drop=True)
        alone = found.minimal_sample_uniques(record)
        assert alone["keys"].tolist() == part["keys"].tolist()
        assert alone["score"].sum() == found.scores[record]


def test_a_search_that_is_too_large_is_refused_with_a_size_that_works():
    codes = np.random.default_rng(2).integers(0, 3, (200, 30))
    data = read(codes)
    with pytest.raises(InputError, match=r"max_size 8 is too large for 30 keys.*max_size=7 would"):
        suda(data, max_size=8)
    with pytest.raises(InputError, match="max_size=1 would do"):
        suda(data, memory=100_000)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "3"])
def test_wrong_sizes_are_named(wrong):
    with pytest.raises(InputError, match=f"max_size must be a whole number.*{wrong}"):
        suda(read(np.zeros((2, 2), int)), max_size=wrong)


def test_wrong_scales_and_records_are_named():
    data = read(np.zeros((2, 2), int))
    with pytest.raises(InputError, match="score 'suda' is unknown"):
        suda(data, score="suda")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="record 2 is not in the file"):
        suda(data).minimal_sample_uniques(2)
