"""The comparison shows what each method gives alone, and ranks as scipy does."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from bayes_sdc import InputError
from bayes_sdc.microdata.comparison.compare import compare_risks
from bayes_sdc.microdata.comparison.result import DRAWN, MATCHES, UNIQUES, RiskComparison
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.lancaster.additive import lancaster
from bayes_sdc.microdata.loglinear.risk import loglinear_risk
from bayes_sdc.microdata.patience import left_out
from bayes_sdc.microdata.size_models.ewens_pitman import ewens, pitman
from bayes_sdc.microdata.special_uniques.dis_suda import dis_suda
from bayes_sdc.microdata.special_uniques.suda import suda
from bayes_sdc.microdata.uniques.unstructured import expected_uniques

pytestmark = pytest.mark.usefixtures("short_chains")


def data(weights: bool = True, missing: bool = False) -> Microdata:
    rng = np.random.default_rng(1)
    shared = rng.normal(size=600)
    frame = pd.DataFrame(
        {
            name: np.clip(np.floor(shared + rng.normal(size=600) + size / 2), 0, size - 1).astype(
                int
            )
            for name, size in {"age": 9, "job": 6, "town": 5, "kind": 4}.items()
        }
    ).astype(str)
    if missing:
        frame.loc[::9, "job"] = None
    frame["w"] = rng.uniform(5, 15, 600)
    return read_microdata(
        frame, keys=["age", "job", "town", "kind"], weight="w" if weights else None
    )


@pytest.fixture(scope="module")
def found() -> RiskComparison:
    return compare_risks(data(), 6000)


def test_numbers_are_those_of_the_methods_alone(found):
    file = data()
    expected = found.methods["expected"]
    additive = lancaster(file, 6000, shrinkage=[0, 1]).table["expected_renormalized"]
    assert expected["independence"] == additive[0.0]
    assert expected["Lancaster"] == additive[1.0]
    assert expected["Ewens"] == ewens(file.size_indices, 600, 6000).expected
    assert expected["Pitman"] == pitman(file.size_indices, 600, 6000).expected
    special = dis_suda(file, 0.1)
    assert expected["DIS-SUDA"] == special.total
    assert expected["log-linear, uniques"] == loglinear_risk(file, 6000).tau1
    assert "Too high" in found.methods["assumption"]["log-linear, uniques"]
    assert expected["DIS-SUDA"] == pytest.approx(found.records["DIS-SUDA"].sum(), rel=1e-12)
    assert set(found.methods["about"]) == {UNIQUES, MATCHES, DRAWN}
    assert (found.methods["assumption"].str.len() > 20).all()
    assert (expected <= found.uniques).all()
    risks = found.records.drop(columns="SUDA score").to_numpy()
    assert ((risks >= 0) & (risks <= 1)).all()


def test_impossible_cells_are_not_counted(found):
    # a cell of the file's table that no record has
    file = data()
    taken = set(file.combinations.index)
    labels = [file.labels[k] for k in range(4)]
    zero = next(cell for cell in product(*labels) if cell not in taken)
    without = compare_risks(file, 6000, structural_zeros=[dict(zip(file.keys, zero, strict=True))])
    cells = 9 * 6 * 5 * 4 - 1
    expected = expected_uniques(file.sample_uniques, 600, 6000, cells)
    assert without.methods["expected"]["Cohen-Sackrowitz"] == expected
    assert expected < found.methods["expected"]["Cohen-Sackrowitz"]


def test_ranks_agree_with_scipy(found):
    matrix = spearmanr(found.records.to_numpy()).statistic
    np.testing.assert_allclose(found.agreement, matrix, atol=1e-12)


def test_records_that_methods_rank_apart_come_first(found):
    table = found.disagreements
    assert len(table) == 20
    difference = table["disagreement", "difference"]
    assert difference.is_monotonic_decreasing
    ranks = found.records.rank(method="average")
    spread = (ranks.max(axis=1) - ranks.min(axis=1)) / len(ranks)
    np.testing.assert_allclose(difference, spread.nlargest(20), atol=1e-12)
    first = table.index[0]
    assert ranks.loc[first].idxmax() == table.loc[first, ("disagreement", "highest")]
    file = data()
    assert table.loc[first, ("key", "age")] == file.labels[0][file.codes[first, 0]]


def test_text_has_a_line_a_method(found):
    text = str(found)
    for name in found.methods.index:
        assert name in text


def test_what_a_file_does_not_allow_is_left_out_and_said():
    plain = compare_risks(data(weights=False, missing=True), 6000)
    assert "individual risk" not in plain.records
    assert any("no weights" in note for note in plain.notes)
    assert any("size indices count a missing value" in note for note in plain.notes)
    assert "log-linear" not in plain.records
    assert any("log-linear is left out" in note for note in plain.notes)


def test_a_file_without_uniques():
    frame = pd.DataFrame({"a": ["0", "1"] * 6, "b": ["0", "1"] * 6})
    empty = compare_risks(read_microdata(frame, keys=["a", "b"]), 100)
    assert empty.uniques == 0
    assert empty.disagreements.empty
    assert (empty.methods["expected"] == 0).all()


def test_methods_without_differences_have_no_correlation():
    """Every unique needs both keys: all have the same SUDA score."""
    frame = pd.DataFrame({"a": list("001122"), "b": list("010122")})
    found = compare_risks(read_microdata(frame, keys=["a", "b"]), 60)
    assert "SUDA score" not in found.agreement
    assert any("SUDA score" in note and "without a ranking" in note for note in found.notes)


def test_wrong_arguments_are_named():
    with pytest.raises(InputError, match="most_disagreements"):
        compare_risks(data(), 6000, most_disagreements=-1)


def test_cells_that_can_occur_serve_the_models_that_count_them():
    """Else one report holds two numbers for the same prior, and the higher count hides uniques."""
    file = data()
    found = compare_risks(file, 6000, cells=700)
    alone = expected_uniques(file.sample_uniques, file.n, 6000, 700)
    assert found.methods["expected"]["Cohen-Sackrowitz"] == alone
    assert not any("count all" in note for note in found.notes)
    plain = compare_risks(file, 6000)
    assert any("those that cannot occur must not be counted" in note for note in plain.notes)
    with pytest.raises(InputError, match="cells, the combinations that can occur"):
        compare_risks(file, 6000, cells=10)


def test_size_models_are_left_out_where_sizes_do_not_tell_of_uniques():
    """Else more population uniques are expected than there are sample uniques."""
    file = data(missing=True)
    found = compare_risks(file, 6000)
    assert not {"Ewens", "Pitman", "Zayatz"} & set(found.methods.index)
    assert any("Zayatz are left out" in note for note in found.notes)
    of_uniques = found.methods[found.methods["about"] == UNIQUES]
    assert (of_uniques["expected"] <= found.uniques).all()


def test_order_of_records_changes_no_digit_of_the_totals():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.integers(0, 7, (500, 3)).astype(str), columns=list("abc"))
    frame["w"] = rng.uniform(5, 15, 500)
    totals = [
        compare_risks(
            read_microdata(frame.sample(frac=1, random_state=k), keys=list("abc"), weight="w"), 6000
        ).methods["expected"]
        for k in range(4)
    ]
    for other in totals[1:]:
        pd.testing.assert_series_equal(totals[0], other, check_exact=True)


def test_keys_of_many_levels_leave_out_the_log_linear_model_which_would_take_minutes():
    """Its fits solve for the effects of all pairs of levels of the keys that interact."""
    rng = np.random.default_rng(2)
    codes = {f"k{i}": rng.integers(0, 60, 2000).astype(str) for i in range(5)}
    data = read_microdata(pd.DataFrame(codes), keys=list(codes))
    assert "up to" in left_out(data, 2)["loglinear"]
    assert "loglinear" not in left_out(data.select(["k0", "k1"]), 2)


def test_of_forty_keys_methods_that_take_minutes_are_left_out_and_nothing_is_nan():
    codes = np.random.default_rng(1).integers(0, 3, (60, 40)).astype(str)
    frame = pd.DataFrame(codes, columns=[f"k{i}" for i in range(40)])
    data = read_microdata(frame, keys=list(frame))
    late = left_out(data, 3)
    assert set(late) == {"lancaster", "cross-validation"}
    assert all("takes minutes" in note and "slow=True" in note for note in late.values())
    assert left_out(data.select(["k0", "k1"]), 2) == {}
    found = suda(data)
    for table in (found.values, found.contributions, found.sizes):
        assert not table.isna().any(axis=None)
    none = suda(data, max_size=1)
    assert "share" not in none.values
    assert none.variables.empty
    assert "undefined" in none.summary()
