"""Utility against plain definitions and cases whose answer is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import null_space
from scipy.optimize import minimize

from bayes_sdc import InputError, read_microdata, treat, treated_utility
from bayes_sdc.microdata.treatment.regressions import combine, least_squares, overlap
from bayes_sdc.microdata.treatment.utility import pmse_of, table_distance


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({n: np.minimum(rng.geometric(0.5, 800), 8).astype(str) for n in "abc"})
    frame["income"] = 3.0 * (frame["a"] == "2") + rng.normal(size=800)
    return frame


def treated(people, **options):
    return treat(read_microdata(people, keys=list("abc")), population_size=9000, seed=1, **options)


@given(st.integers(0, 10_000))
def test_the_distance_of_tables_is_that_of_crosstabs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    true, after = (rng.integers(-1, 3, (40, 2)).astype(np.int32) for _ in range(2))
    tables = [
        pd.crosstab(pd.Series(one[:, 0]), pd.Series(one[:, 1])).stack() / 40
        for one in (true, after)
    ]
    expected = tables[0].sub(tables[1], fill_value=0).abs().sum() / 2
    assert table_distance(true, after, (3, 3)) == pytest.approx(expected)


def test_the_propensity_is_that_of_the_maximum_of_the_likelihood() -> None:
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(200), rng.normal(size=(200, 2))])
    y = np.repeat([0.0, 1.0], 100)
    x[100:, 1] += 0.5
    found = minimize(lambda b: np.logaddexp(0, x @ b).sum() - y @ x @ b, np.zeros(3), tol=1e-12)
    p = 1 / (1 + np.exp(-x @ found.x))
    assert pmse_of(x, y) == pytest.approx(((p - 0.5) ** 2).mean(), rel=1e-5)


def test_nothing_treated_is_nothing_lost(people) -> None:
    done = treated(people, target_risk=0.999)
    use = treated_utility(done, columns=people, regressions=["income ~ a"])
    assert not done.treated.any()
    assert (use.tables["distance"] == 0).all()
    assert use.pmse == pytest.approx(0.0, abs=1e-12)
    assert use.pmse_ratio is None
    assert (use.regressions["overlap"] == 1).all()
    assert use.levels["kept"].all()


def test_more_treated_is_more_lost_and_suppression_loses_rare_levels(people) -> None:
    little, much = (treated_utility(treated(people, share=s)) for s in (0.05, 1.0))
    assert little.distance(2) < much.distance(2)
    assert little.distance(2) < little.distance(3)
    gone = treated_utility(treated(people, method="suppression", k=10))
    assert not gone.levels["kept"].all()
    assert [one.good for one in gone.good_for if one.use == "rare levels"] == [False]


def test_full_synthesis_from_the_fitted_model_has_a_ratio_near_one(people) -> None:
    """The null value is for the right model; draws of its parameters make it up to 2."""
    ratios = [treated_utility(treated(people, method="full-synthesis", datasets=4)).pmse_ratio]
    assert 0.5 < np.mean(ratios) < 3.0


def test_a_regression_of_a_treated_key_is_found_again(people) -> None:
    done = treated(people, share=0.3, datasets=5)
    use = treated_utility(done, columns=people, regressions=["income ~ a + b", "a=2 ~ b"])
    row = use.regressions.loc["income ~ a=2"]
    assert row["true"] == pytest.approx(3.0, abs=0.3)
    assert row["true_low"] < row["true"] < row["true_high"]
    assert 0 <= row["overlap"] <= 1
    assert "a=2 ~ b=2" in use.regressions.index


def test_least_squares_is_that_of_the_textbook() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=50)
    y = 1 + 2 * x + rng.normal(size=50)
    y[3] = np.nan
    fit = least_squares(y, {"constant": np.ones(50), "x": x})
    ok = np.isfinite(y)
    slope = np.cov(x[ok], y[ok])[0, 1] / np.var(x[ok], ddof=1)
    residual = y[ok] - y[ok].mean() - slope * (x[ok] - x[ok].mean())
    variance = (residual**2).sum() / 47 / ((x[ok] - x[ok].mean()) ** 2).sum()
    assert fit["x"] == pytest.approx((slope, variance))


def test_rules_for_partially_synthetic_data_cover_the_truth() -> None:
    """A mean of a normal sample in which a third is drawn anew: 95 % intervals hold it.

    The rules want values drawn from what the replaced records themselves say, so that a data set
    has the estimate of the true file as its mean.
    """
    rng, held = np.random.default_rng(4), 0
    for _ in range(400):
        x = rng.normal(size=60)
        q, u = [], []
        for _ in range(5):
            mean = x[:20].mean() + rng.normal() / np.sqrt(20)
            new = np.where(np.arange(60) < 20, rng.normal(mean, 1, 60), x)
            q.append(new.mean())
            u.append(1 / 60)
        estimate, total, _ = combine(np.array(q), np.array(u))
        held += abs(estimate) < 1.96 * np.sqrt(total)
    assert 0.90 < held / 400 < 0.985


@given(st.integers(0, 10_000))
def test_a_coefficient_that_others_make_up_for_has_no_number(seed: int) -> None:
    """The shortest of many solutions stood there, with a narrow interval.

    A coefficient is determined where no other solution of the least squares has another value.
    """
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 4, 30), rng.integers(0, 3, 30)
    a = np.where(a == 0, 1, a) if seed % 2 else a  # the reference level is gone
    b = np.where(b == 2, 1, b) if seed % 3 else b  # another level is gone
    x = {"constant": np.ones(30)}
    x |= {f"a={k}": (a == k).astype(float) for k in (1, 2, 3)}
    x |= {f"b={k}": (b == k).astype(float) for k in (1, 2)}
    x |= {"n": rng.normal(1000.0, 1.0, 30)}
    y = rng.normal(size=30)
    design = np.column_stack(list(x.values()))
    free = null_space(design / np.linalg.norm(design, axis=0).clip(1e-9))
    fit = least_squares(y, x)
    assert list(fit) == [
        name for name, row in zip(x, free, strict=True) if np.abs(row).max(initial=0.0) < 1e-6
    ]
    solution = np.linalg.lstsq(design, y, rcond=None)[0]
    for name, value in zip(x, solution, strict=True):
        if name in fit:
            assert fit[name][0] == pytest.approx(value, rel=1e-5, abs=1e-6)
    order = rng.permutation(30)
    assert least_squares(y[order], {name: one[order] for name, one in x.items()}) == fit


def test_without_records_to_spare_nothing_is_determined() -> None:
    for rows in (0, 1, 2):
        x = {"constant": np.ones(rows), "x": np.arange(float(rows))}
        assert least_squares(np.arange(float(rows)), x) == {}


def test_what_the_released_data_do_not_determine_is_undefined() -> None:
    """A lost reference level made +2.5 to -1 within narrow limits, and the file "not good"."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"g": rng.choice(list("BC"), 400), "b": rng.choice(list("xyz"), 400)})
    frame.loc[:2, "g"] = "A"
    frame["income"] = rng.normal(size=400) + (frame["g"] == "B") + 5.0 * (frame["g"] == "C")
    data = read_microdata(frame, keys=["g", "b"])
    done = treat(data, method="suppression", k=5, population_size=4000, seed=1)
    assert "A" not in set(done.released["g"])
    use = treated_utility(done, columns=frame, regressions=["income ~ g + b"])
    released = use.regressions[["released", "released_low", "released_high", "overlap"]]
    lost = ["income ~ constant", "income ~ g=B", "income ~ g=C"]
    assert released.loc[lost].isna().all(axis=None)
    assert use.regressions[["true", "true_low", "true_high"]].notna().all(axis=None)
    assert released.drop(lost).notna().all(axis=None)
    verdict = next(one for one in use.good_for if one.use == "the named regressions")
    assert verdict.good is None
    assert "undefined are 3 of 5 coefficients, which the released data do not" in verdict.reason
    gone = replace(done, codes=np.full_like(done.codes, -1), hidden=np.ones_like(done.hidden))
    use = treated_utility(gone, columns=frame, regressions=["income ~ g"])
    assert use.regressions["released"].isna().all()
    verdict = next(one for one in use.good_for if one.use == "the named regressions")
    assert verdict.good is None
    assert verdict.reason.startswith("no intervals can be compared; undefined are 3 of 3")


def test_what_the_true_data_do_not_determine_is_no_fault_of_the_file(people) -> None:
    some = people[:100]
    done = treat(read_microdata(some, keys=["a"]), method="recoding", seed=1)
    columns = some.assign(twice=2.0 * (some["a"] == "2"))
    use = treated_utility(done, columns=columns, regressions=["income ~ a + twice"])
    lost = use.regressions.index.isin(["income ~ a=2", "income ~ twice"])
    assert use.regressions[lost].isna().all(axis=None)
    assert (use.regressions["overlap"][~lost] == 1).all()
    verdict = next(one for one in use.good_for if one.use == "the named regressions")
    assert verdict.good is True
    assert "which the true data do not determine" in verdict.reason


def test_overlap_is_one_for_equal_intervals() -> None:
    assert overlap((1.0, 2.0), (1.0, 2.0)) == 1.0


@pytest.mark.parametrize(
    "formula", ["income", "income ~", "~ a", "zz ~ a", "income ~ zz", "a=99 ~ b", "a ~ b"]
)
def test_what_is_no_regression_is_refused(people, formula: str) -> None:
    done = treated(people, target_risk=0.999)
    with pytest.raises(InputError, match="regression"):
        treated_utility(done, columns=people[["income"]], regressions=[formula])
