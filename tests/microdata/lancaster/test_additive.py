"""Lancaster's additive model against the formula on a table that is held in full."""

import json
from itertools import combinations, product
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
from bayes_sdc.microdata.lancaster import additive, structural_zeros
from bayes_sdc.microdata.lancaster.additive import lancaster
from bayes_sdc.microdata.lancaster.cells import Additive, sample, walk
from bayes_sdc.microdata.lancaster.forecast import lancaster_forecast

CASE = json.loads((Path(__file__).parents[2] / "data" / "lancaster.json").read_text("utf-8"))
LAMBDAS = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


def read(codes: np.ndarray) -> Microdata:
    frame = pd.DataFrame(codes).astype(str).replace("-1", None)
    frame.columns = [f"k{place}" for place in frame.columns]
    return read_microdata(frame, keys=list(frame.columns), missing="own")


def full_table(codes: np.ndarray, factor: float) -> dict[tuple[int, ...], float]:
    """Probability of every cell by eq. (4), from counts of the sample."""
    keys = codes.shape[1]
    values = [sorted(set(column)) for column in codes.T]
    table = {}
    for cell in product(*values):
        one = [np.mean(codes[:, k] == cell[k]) for k in range(keys)]
        terms = 0.0
        for a, b in combinations(range(keys), 2):
            both = np.mean((codes[:, a] == cell[a]) & (codes[:, b] == cell[b]))
            terms += both / (one[a] * one[b]) - 1.0
        table[cell] = float(np.prod(one) * (1.0 + factor * terms))
    return table


def test_worked_case():
    wanted = pd.DataFrame(CASE["results"])
    found = lancaster(read(np.array(CASE["rows"])), CASE["N"], shrinkage=wanted["lam"].tolist())
    table = found.table
    np.testing.assert_allclose(table["negative"], wanted["sum_negative"], rtol=1e-12, atol=1e-16)
    for name in ("raw", "renormalized"):
        wanted_name = "population_uniques_" + name.replace("z", "s")
        np.testing.assert_allclose(table[f"expected_{name}"], wanted[wanted_name], rtol=1e-11)
    assert len(found.risk) == CASE["sample_uniques"]


@given(
    arrays.arrays(
        np.int64, st.tuples(st.integers(2, 12), st.integers(2, 4)), elements=st.integers(0, 3)
    )
)
def test_every_small_file(codes):
    """Risk of each sample unique in both forms, from a table with all its cells."""
    unsampled = 40
    found = lancaster(read(codes), len(codes) + unsampled, shrinkage=LAMBDAS)
    for factor in LAMBDAS:
        table = full_table(codes, factor)
        negative = sum(min(p, 0.0) for p in table.values())
        row = found.table.loc[factor]
        assert row["negative"] == pytest.approx(negative, rel=1e-9, abs=1e-12)
        assert row["normalizer"] == pytest.approx(1.0 - negative, rel=1e-9)
        for record in found.risk.index:
            # rounding decides between a tiny negative and a tiny positive probability
            p = max(table[tuple(codes[record])], 0.0)
            raw = (1.0 - p) ** unsampled
            again = (1.0 - p / (1.0 - negative)) ** unsampled
            assert found.risk_raw.loc[record, factor] == pytest.approx(raw, rel=1e-9)
            assert found.risk.loc[record, factor] == pytest.approx(again, rel=1e-9)
    risks = found.risk.to_numpy()
    assert ((risks >= 0) & (risks <= 1)).all()


def random_table(sizes: list[int], seed: int) -> Additive:
    rng = np.random.default_rng(seed)
    weights = [rng.dirichlet(np.ones(size)) for size in sizes]
    terms = {}
    for a, b in combinations(range(len(sizes)), 2):
        joint = rng.dirichlet(np.full(sizes[a] * sizes[b], 0.3)).reshape(sizes[a], sizes[b])
        # with the margins of the weights, as proportions of one file have
        for _ in range(200):
            joint *= (weights[a] / joint.sum(1))[:, None]
            joint *= weights[b] / joint.sum(0)
        terms[a, b] = joint / np.outer(weights[a], weights[b]) - 1.0
    return Additive(weights, terms)


def in_full(table: Additive) -> tuple[np.ndarray, np.ndarray]:
    """Weight and terms of all cells, in the order of an array with an axis a key."""
    keys = len(table.weights)

    def along(values: np.ndarray, *axes: int) -> np.ndarray:
        shape = [1] * keys
        for axis in axes:
            shape[axis] = len(table.weights[axis])
        return values.reshape(shape)

    weight, term = np.ones([1] * keys), np.zeros([1] * keys)
    for key, values in enumerate(table.weights):
        weight = weight * along(values, key)
    for pair, values in table.terms.items():
        term = term + along(values, *pair)
    return weight, term


@pytest.mark.parametrize(
    "sizes", [[3, 2], [2000, 3], [4, 4, 4, 4, 4, 4, 4], [40, 40, 40], [2] * 14, [1, 5, 1, 30, 2]]
)
def test_walk_is_the_sum_over_the_whole_table(sizes):
    table = random_table(sizes, 1)
    weight, term = in_full(table)
    found = walk(table, np.array(LAMBDAS))
    wanted = [float(np.minimum(weight * (1 + x * term), 0).sum()) for x in LAMBDAS]
    np.testing.assert_allclose(found.negative, wanted, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(found.total, 1.0, rtol=1e-12)
    assert (weight * (1 + term)).sum() == pytest.approx(1.0, rel=1e-9)


def test_any_number_of_threads_gives_the_same_bits():
    table = random_table([5, 6, 7, 8, 9], 2)
    several = walk(table, np.array(LAMBDAS)).negative
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        one = walk(table, np.array(LAMBDAS)).negative
    finally:
        numba.set_num_threads(before)
    assert one.tolist() == several.tolist()


def test_sampled_cells_agree_with_walked_ones_within_their_error():
    table = random_table([6, 7, 8, 9], 3)
    shrinkage = np.array([0.4, 1.0])
    exact = walk(table, shrinkage)
    off = []
    for seed in range(30):
        drawn = sample(table, shrinkage, np.random.default_rng(seed), 20_000)
        off.append((drawn.negative - exact.negative) / drawn.negative_error)
    z = np.array(off)
    # 30 standardised errors have mean 0 within 4 / sqrt(30) and variance 1 within a factor of two
    assert (abs(z.mean(0)) < 4 / np.sqrt(30)).all()
    assert ((z.std(0) > 0.7) & (z.std(0) < 1.4)).all()


def correlated(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=n)
    columns = [
        np.clip(
            np.floor((0.8 * shared + 0.6 * rng.normal(size=n)) * size / 4 + size / 2), 0, size - 1
        )
        for size in (6, 4, 9, 3)
    ]
    return np.stack(columns, axis=1).astype(int)


def test_large_tables_are_sampled_and_say_so(monkeypatch):
    data = read(correlated(400, 1))
    exact = lancaster(data, 4000, shrinkage=[0.5, 1.0])
    assert exact.walked
    monkeypatch.setattr(additive, "WALKED_CELLS", 100)
    drawn = lancaster(data, 4000, shrinkage=[0.5, 1.0], seed=3)
    assert not drawn.walked
    assert any("too many to walk" in note for note in drawn.notes)
    error = drawn.table["negative_error"]
    assert (error > 0).all()
    assert (abs(drawn.table["negative"] - exact.table["negative"]) < 4 * error).all()


def test_a_million_million_cells_in_seconds():
    """Five keys of 809, 17, 17, 7, 7 levels and six more: nothing of the table is held."""
    rng = np.random.default_rng(4)
    sizes = [809, 17, 17, 7, 7, 12, 15, 9, 8]
    found = lancaster(read(rng.integers(0, sizes, (10_000, len(sizes)))), 10**6)
    assert found.cells > 10**11
    assert not found.walked
    assert 0 < found.table["negative_error"].iloc[0] < 0.02


def test_cross_validation_by_hand():
    codes = correlated(150, 2)
    data = read(codes)
    found = lancaster(data, 1500, shrinkage="cv", seed=5)
    ordered = codes[np.lexsort(codes.T)]
    part = additive.generator(5, "parts of the file").permutation(150) % additive.FOLDS
    for factor in (0.0, 0.3, 1.0):
        total, impossible = 0.0, 0
        for fold in range(additive.FOLDS):
            train, test = ordered[part != fold], ordered[part == fold]
            table = full_table(train, factor)
            positive = sum(max(p, 0.0) for p in table.values())
            for cell in map(tuple, test):
                if cell in table:
                    p = max(table[cell], 0.0)
                    impossible += p == 0.0
                    total += np.log(p / positive) if p > 0 else 0.0
        assert found.table.loc[factor, "held_out"] == pytest.approx(total, rel=1e-9)
        assert found.table.loc[factor, "impossible"] == impossible
    assert found.shrinkage == found.table["held_out"][found.table["impossible"] == 0].idxmax()
    assert found.risk.columns.tolist() == [found.shrinkage]


def test_cross_validation_prefers_independence_only_where_it_holds():
    rng = np.random.default_rng(6)
    apart = rng.integers(0, [6, 4, 9, 3], (2000, 4))
    assert lancaster(read(apart), 10**4, shrinkage="cv").shrinkage <= 0.1
    assert lancaster(read(correlated(2000, 3)), 10**4, shrinkage="cv").shrinkage >= 0.1


def test_posterior_is_the_normalised_likelihood():
    codes = correlated(60, 4)
    found = lancaster(read(codes), 600, shrinkage=LAMBDAS)
    logs = []
    for factor in LAMBDAS:
        table = full_table(codes, factor)
        positive = sum(max(p, 0.0) for p in table.values())
        with np.errstate(divide="ignore"):
            logs.append(sum(np.log(max(table[tuple(c)], 0.0) / positive) for c in codes))
    weights = np.exp(np.array(logs) - max(logs))
    np.testing.assert_allclose(found.table["posterior"], weights / weights.sum(), rtol=1e-8)


def test_order_of_records_does_not_matter():
    codes = correlated(300, 5)
    order = np.random.default_rng(1).permutation(300)
    first = lancaster(read(codes), 3000, shrinkage="cv")
    other = lancaster(read(codes[order]), 3000, shrinkage="cv")
    pd.testing.assert_frame_equal(first.table, other.table, rtol=1e-12)
    back = other.risk.rename(index=dict(enumerate(order))).sort_index()
    pd.testing.assert_frame_equal(first.risk, back, rtol=1e-12, check_names=False)


def test_clamped_uniques_have_risk_one_and_are_counted():
    # each pair of ones occurs once, so the three pairs together take away more than there is
    codes = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]] * 20 + [[1, 1, 1]])
    found = lancaster(read(codes), 600)
    assert full_table(codes, 1.0)[1, 1, 1] < 0
    assert found.table["clamped"].tolist() == [1]
    assert found.risk_raw.loc[60].tolist() == [1.0]
    assert found.table["ruled_out"].tolist() == [1]
    assert np.isfinite(found.table).all().all()
    assert "posterior" not in found.table
    assert any("posterior is undefined" in note for note in found.notes)
    assert lancaster(read(codes), 600, shrinkage=[0, 1]).table["posterior"].tolist() == [1.0, 0.0]


def test_a_census_has_risk_one_everywhere():
    codes = correlated(50, 6)
    assert (lancaster(read(codes), 50).risk.to_numpy() == 1.0).all()


def test_missing_values_are_a_level_and_said():
    codes = correlated(60, 7)
    codes[::7, 2] = -1
    found = lancaster(read(codes), 600, shrinkage=0.5)
    assert any("level of its own" in note for note in found.notes)
    table = full_table(codes, 0.5)
    assert found.cells == len(table)
    assert found.table["negative"].iloc[0] == pytest.approx(
        sum(min(p, 0.0) for p in table.values()), rel=1e-9, abs=1e-13
    )


# structural zeros


def with_zeros(n: int, seed: int) -> np.ndarray:
    """Young people are never married, and the retired are old."""
    codes = correlated(n, seed)
    young_married = (codes[:, 0] <= 1) & (codes[:, 1] == 3)
    retired_young = (codes[:, 3] == 2) & (codes[:, 0] <= 2)
    return codes[~(young_married | retired_young)]


RULES = [{"k0": ["0", "1"], "k1": "3"}, {"k3": "2", "k0": ["0", "1", "2"]}]


def impossible(cell: tuple[int, ...]) -> bool:
    return (cell[0] <= 1 and cell[1] == 3) or (cell[3] == 2 and cell[0] <= 2)


def test_weights_on_allowed_cells_have_the_observed_proportions(monkeypatch):
    codes = with_zeros(500, 8)
    data = read(codes)
    rules, _ = structural_zeros.read_rules(RULES, data)
    rows, number = np.unique(codes, axis=0, return_counts=True)
    model = additive.fit_additive(rows, number, [6, 4, 9, 3], rules)
    weight, term = in_full(model)
    cells = np.array(list(product(*(range(size) for size in (6, 4, 9, 3)))))
    allowed = np.array([not impossible(tuple(cell)) for cell in cells]).reshape(6, 4, 9, 3)
    weight = weight * allowed
    for key in range(4):
        others = tuple(axis for axis in range(4) if axis != key)
        observed = np.bincount(codes[:, key]) / len(codes)
        np.testing.assert_allclose(weight.sum(axis=others), observed, rtol=1e-9)
    # pair terms compare with the two-way proportions of these weights
    for a, b in combinations(range(4), 2):
        others = tuple(axis for axis in range(4) if axis not in (a, b))
        expected = weight.sum(axis=others)
        observed = np.zeros_like(expected)
        np.add.at(observed, (codes[:, a], codes[:, b]), 1 / len(codes))
        np.testing.assert_allclose(expected * (1 + model.terms[a, b]), observed, atol=1e-12)
    sums = walk(model, np.array(LAMBDAS), rules)
    wanted = [float(np.minimum(weight * (1 + x * term), 0).sum()) for x in LAMBDAS]
    np.testing.assert_allclose(sums.negative, wanted, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(sums.total, 1.0, rtol=1e-9)
    drawn = sample(model, np.array(LAMBDAS), np.random.default_rng(1), 200_000, rules)
    assert (abs(drawn.negative - sums.negative) <= 4 * drawn.negative_error).all()
    assert (abs(drawn.total - sums.total) <= 4 * drawn.total_error).all()


def test_allowed_cells_are_those_for_which_no_rule_holds():
    data = read(with_zeros(500, 8))
    every = list(product(*(range(size) for size in (6, 4, 9, 3))))
    assert structural_zeros.allowed_cells(data) == len(every)
    left = sum(not impossible(cell) for cell in every)
    assert structural_zeros.allowed_cells(data, RULES) == left < len(every)
    assert structural_zeros.allowed_cells(data, []) == len(every)


def test_structural_zeros_leave_more_probability_to_the_rest():
    data = read(with_zeros(500, 9))
    plain = lancaster(data, 5000, shrinkage=0.0)
    zeros = lancaster(data, 5000, shrinkage=0.0, structural_zeros=RULES)
    assert zeros.table["log_likelihood"].iloc[0] > plain.table["log_likelihood"].iloc[0]
    assert any("structural zeros" in note for note in zeros.notes)
    frame = pd.DataFrame(
        [
            {"k0": str(v), "k1": "3" if v < 2 else np.nan, "k3": np.nan if v < 2 else "2"}
            for v in (0, 1, 2)
        ]
        + [{"k0": v, "k1": np.nan, "k3": "2"} for v in ("0", "1")]
    )
    same = lancaster(data, 5000, shrinkage=0.0, structural_zeros=frame)
    pd.testing.assert_frame_equal(same.risk, zeros.risk, rtol=1e-12)


def test_rules_that_cannot_be_are_refused():
    data = read(with_zeros(200, 10))
    for rules, message in [
        ([{"age": "1"}], "names 'age', which is not a key"),
        ([{}], "names no key"),
        (["k0"], r"a list of dicts; it is \['k0'\]"),
        ([{"k0": "3"}], "holds for"),
    ]:
        with pytest.raises(InputError, match=message):
            lancaster(data, 2000, structural_zeros=rules)
    found = lancaster(data, 2000, structural_zeros=[{"k0": "99", "k1": "3"}])
    assert any("no record has 'k0'" in note for note in found.notes)


@pytest.mark.parametrize("shrinkage", [-0.1, 1.5, [0.1, 0.1], [], "best", float("nan"), None])
def test_wrong_shrinkages_are_named(shrinkage):
    with pytest.raises(InputError, match="shrinkage"):
        lancaster(read(correlated(20, 1)), 200, shrinkage=shrinkage)


@pytest.mark.parametrize(
    ("population", "said"),
    [
        (19, " from the 20 records up; it is 19"),
        (20.5, "; it is 20.5"),
        (True, "; it is True"),
        (-1, " from the 20 records up; it is -1"),
    ],
)
def test_wrong_populations_are_named(population, said):
    with pytest.raises(InputError, match=f"population_size must be a whole number{said}"):
        lancaster(read(correlated(20, 1)), population)


def test_one_key_has_no_pairs():
    with pytest.raises(InputError, match="two keys or more"):
        lancaster(read(np.array([[0], [1]])), 200)


def test_two_keys_of_very_many_levels_are_refused_by_name_before_the_work():
    """20,000 by 20,000 pairs took more memory than there is."""
    codes = [f"{i:05d}" for i in range(20_000)]
    frame = pd.DataFrame({"sex": ["f", "m"] * 10_000, "street": codes, "work place": codes[::-1]})
    data = read_microdata(frame, keys=["sex", "street", "work place"])
    with pytest.raises(InputError, match=r"'street' with 20,000 .* 'work place' with 20,000"):
        lancaster(data, 100_000)
    few = read_microdata(frame, keys=["sex", "street"])
    expected = lancaster_forecast(few, shrinkage="cv")
    assert (expected.cells, expected.walked) == (40_000, True)
    assert expected.memory < 2**21
    assert expected.seconds > 50 * lancaster_forecast(few).seconds
