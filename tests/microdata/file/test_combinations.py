"""Frequencies of combinations under each rule for missing values."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.individual.closed_form import individual_risk

TEN = pd.DataFrame(
    {
        "area": list("UUUURUUUUU"),
        "sex": list("FFFMFMFMFF"),
        "status": list("sspcccrqss"),
        "work": list("EENEXENXNN"),
        "w": [180, 180, 215, 76, 186, 76, 180, 215, 186, 76],
    }
)


def read(source: object, **changed: object) -> Microdata:
    return read_microdata(source, **{"keys": ["a", "b", "c"], **changed})


def csv_of(folder, text: str, encoding: str = "utf-8", name: str = "people.csv"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def test_the_ten_records_of_the_practitioners():
    data = read(TEN, keys=["area", "sex", "status", "work"], weight="w")
    assert data.f.tolist() == [2, 2, 1, 2, 1, 2, 1, 1, 2, 2]
    assert data.F.tolist() == [360, 360, 215, 152, 186, 152, 180, 215, 262, 262]
    assert data.sample_uniques == 4
    assert data.pairs == (6, 3)
    assert data.k_violations(2) == (4, 4)
    assert data.k_violations(3) == (10, 7)
    assert data.size_indices.to_dict() == {1: 4, 2: 3}


TRIO = {"wildcard": [2, 2, 3], "own": [1, 1, 1], "conservative": [1, 1, 3]}


@pytest.mark.parametrize("rule", TRIO)
@pytest.mark.parametrize(
    "mark", [None, float("nan"), "NaN", "", "NA", ".", -999, "-999", " ", "  "]
)
def test_the_missing_trio_however_a_missing_value_is_written(rule, mark, tmp_path):
    frame = pd.DataFrame({"a": ["m"] * 3, "b": ["x", "y", mark], "c": ["e"] * 3})
    data = read(frame, missing=rule, missing_codes={"b": mark})
    assert data.f.tolist() == TRIO[rule]
    assert data.codes[2, 1] == -1
    path = csv_of(tmp_path, frame.to_csv(index=False))
    assert read(path, missing=rule, missing_codes={"b": mark}).f.tolist() == TRIO[rule]


def test_a_code_that_looks_missing_is_a_value_unless_declared():
    frame = pd.DataFrame({"a": ["m"] * 3, "b": [1, 2, -999], "c": ["e"] * 3})
    data = read(frame)
    assert data.f.tolist() == [1, 1, 1]
    assert any("'-999'" in note and "declare" in note for note in data.notes)
    # a gap turns the column of a pandas frame into floats, and -999 into -999.0
    gap = pd.DataFrame({"a": ["m"] * 3, "b": [1.0, None, -999.0], "c": ["e"] * 3})
    assert read(gap, missing_codes=[-999]).labels[1] == ("1",)


def test_a_whole_missing_code_is_matched_with_its_decimals(tmp_path):
    path = csv_of(tmp_path, "a,b,c\n1,-999.0,1\n1,01,1\n1,1.0,1\n1,-99.00,1\n")
    data = read(path, missing_codes={"b": -999})
    assert data.codes[:, 1].tolist() == [-1, 1, 2, 0]
    assert data.labels[1] == ("-99.00", "01", "1.0")
    assert not any("do not occur" in note for note in data.notes)
    assert any("'-99.00' counted as a value" in note for note in data.notes)
    assert read(path, missing_codes={"b": "-999.0"}).codes[0, 1] == -1
    assert read(path, missing_codes={"b": "1"}).codes[:, 1].tolist() == [1, 2, -1, 0]


def brute_force(rows: list[tuple], rule: str) -> list[list[int]]:
    """Which records count for which, by the words of the rule, one pair at a time."""

    def counts(j: tuple, i: tuple) -> bool:
        if rule == "own":
            return i == j
        if rule == "conservative":
            return all(x is None or x == y for x, y in zip(i, j, strict=True))
        return all(x is None or y is None or x == y for x, y in zip(i, j, strict=True))

    return [[k for k, j in enumerate(rows) if counts(j, i)] for i in rows]


values = st.sampled_from(["x", "y", "z", None])
people = st.lists(st.tuples(values, values, values), min_size=1, max_size=90)


@given(people, st.sampled_from(sorted(TRIO)), st.randoms(use_true_random=False))
def test_frequencies_match_pairwise_comparison_in_any_record_order(rows, rule, random):
    weights = [random.uniform(1, 1e6) for _ in rows]
    frame = pd.DataFrame(rows, columns=list("abc"), dtype=object).assign(w=weights)
    data = read(frame, weight="w", missing=rule)
    found = brute_force(rows, rule)
    assert data.f.tolist() == [len(js) for js in found]
    np.testing.assert_allclose(
        data.F, [sum(weights[j] for j in js) for js in found], rtol=1e-12, atol=0
    )
    order = random.sample(range(len(rows)), len(rows))
    moved = read(frame.iloc[order], weight="w", missing=rule)
    pd.testing.assert_frame_equal(moved.combinations, data.combinations, check_exact=True)
    assert moved.combination.tolist() == data.combination[order].tolist()
    assert data.combinations["records"].sum() == len(rows)


@given(people, st.sampled_from(sorted(TRIO)))
def test_more_keys_never_make_anybody_more_common_or_less_at_risk(rows, rule):
    """Else a key that few have, or nobody, would hide people."""
    frame = pd.DataFrame(rows, columns=list("abc"), dtype=object).assign(none=None)
    f, risk = [], []
    for keys in (["a"], ["a", "b"], ["a", "b", "none"], ["a", "b", "none", "c"]):
        data = read(frame, keys=keys, missing=rule)
        f.append(data.f)
        risk.append(individual_risk(data.f, data.f / (10.0 * data.f)))
    assert (np.diff(f, axis=0) <= 0).all()
    assert (np.diff(risk, axis=0) >= -1e-12).all()


def test_a_key_that_nobody_has_changes_nothing(tmp_path):
    path = csv_of(tmp_path, "A,B\n1,\n1,\n2,\n,\n")
    for rule in ("conservative", "wildcard"):
        both, alone = (
            read(path, keys=keys, missing=rule).f.tolist() for keys in (["A", "B"], ["A"])
        )
        assert both == alone
    assert read(path, keys=list("AB"), missing="conservative").f.tolist() == [2, 2, 1, 4]


def test_many_patterns_with_missing_values_cross_the_blocks_of_bit_sets():
    """More than 65,536 patterns, checked against pandas on the complete records."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({k: rng.integers(0, 60, 90_000).astype(str) for k in "abc"})
    holes = rng.choice(90_000, 40, replace=False)
    frame.loc[holes, "b"] = None
    data = read(frame, missing="conservative")
    assert len(data.combinations) > 65_536
    whole = frame.drop(index=holes)
    expected = whole.groupby(["a", "b", "c"])["a"].transform("size")
    assert data.f[whole.index].tolist() == expected.tolist()
    wild = read(frame)
    for i in holes[:10]:
        mates = (frame["a"] == frame.at[i, "a"]) & (frame["c"] == frame.at[i, "c"])
        assert data.f[i] == wild.f[i] == mates.sum()
    assert wild.f.sum() > data.f.sum()


def test_more_levels_than_fit_one_integer():
    """Thirty keys of 50 levels: 50^30 combinations; a wrong packing would merge records."""
    rng = np.random.default_rng(1)
    names = [f"k{i}" for i in range(30)]
    frame = pd.DataFrame(rng.integers(0, 50, (500, 30)), columns=names)
    frame = pd.concat([frame, frame.iloc[:7]])
    data = read(frame, keys=names)
    assert data.k_violations(2) == (493, 493)
    assert data.pairs == (14, 7)
    texts = [[data.labels[k][c] for k, c in enumerate(row)] for row in data.codes]
    assert texts == frame.astype(str).to_numpy().tolist()


def test_sparse_keys_stay_small_in_memory():
    rng = np.random.default_rng(2)
    sizes = dict(zip("abcde", (809, 17, 17, 7, 7), strict=True))
    frame = pd.DataFrame({k: rng.integers(0, n, 10_000).astype(str) for k, n in sizes.items()})
    frame.loc[:50, "a"] = None
    read(frame.head(100), keys=list(sizes))  # compiled
    tracemalloc.start()
    read(frame, keys=list(sizes))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6


def test_many_levels_with_a_missing_value_stay_small_in_memory():
    """Bit sets of all 40,000 patterns at once would take 200 MB."""
    n = 40_000
    frame = pd.DataFrame({"a": np.arange(n), "b": np.arange(n) % 7, "c": "1"}).astype(str)
    frame.loc[[5, 30_001], "a"] = None
    read(frame.head(100))  # compiled
    tracemalloc.start()
    data = read(frame)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6
    # a block has 6,656 patterns here, so the matches lie in several
    group = np.arange(n) % 7
    expected = np.where(np.isin(group, [5, 6]), 2, 1)
    expected[[5, 30_001]] = [(group == 5).sum(), (group == 6).sum()]
    assert data.f.tolist() == expected.tolist()


def test_sums_do_not_depend_on_record_order_to_the_last_digit():
    weights = np.random.default_rng(3).lognormal(0, 9, 3000)
    frame = pd.DataFrame({"a": "x", "b": "y", "c": "z", "w": weights})
    exact = sum(map(Fraction, weights.tolist()))
    one = read(frame, weight="w").F[0]
    assert one == read(frame[::-1], weight="w").F[0] == float(exact)


def test_a_weight_sum_below_f_raises_population_frequency_and_is_said():
    frame = pd.DataFrame({"a": list("xxy"), "b": "1", "c": "1", "w": [0.4, 0.9, 3]})
    data = read(frame, weight="w")
    assert data.F.tolist() == [2, 2, 3]
    assert data.combinations["weight_sum"].tolist() == pytest.approx([1.3, 3])
    assert data.raised == 1
    assert any("raised to f" in note for note in data.notes)
