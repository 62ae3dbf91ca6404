"""What a release is good for: known answers, and a regression against one with all effects."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import InputError, flow_uses, read_flows
from bayes_sdc.flows.release.use.gravity import fit_gravity, interval_overlap
from bayes_sdc.flows.release.use.uses import GOOD, NOT_GOOD
from bayes_sdc.flows.table.covariates import row_distances


def regression_with_all_effects(origin, destination, x, counts):
    """Poisson regression with a column for each effect, by plain Newton steps."""
    columns = [
        x,
        np.eye(origin.max() + 1)[origin],
        np.eye(destination.max() + 1)[destination][:, 1:],
    ]
    design = np.hstack(columns)
    beta = np.linalg.lstsq(design, np.log(counts + 0.5), rcond=None)[0]
    for _ in range(50):
        mu = np.exp(design @ beta)
        hessian = design.T @ (design * mu[:, None])
        beta = beta + np.linalg.solve(hessian, design.T @ (counts - mu))
    k = x.shape[1]
    return beta[:k], np.diag(np.linalg.inv(hessian))[:k]


@pytest.mark.parametrize("seed", range(3))
def test_gravity_is_the_regression_with_all_effects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    origin, destination = np.divmod(np.arange(56), 8)
    x = rng.normal(size=(56, 2))
    counts = rng.poisson(np.exp(1.0 + x @ [0.5, -0.3] + rng.normal(size=7)[origin])).astype(float)
    found = fit_gravity(origin, destination, x, counts)
    coefficient, variance = regression_with_all_effects(origin, destination, x, counts)
    np.testing.assert_allclose(found.coefficient, coefficient, atol=1e-6)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-4)
    # the score equations: fitted totals of areas are the true ones
    np.testing.assert_allclose(
        np.bincount(origin, found.fitted), np.bincount(origin, counts), rtol=1e-5
    )


@given(st.floats(-5, 5), st.floats(0.1, 5), st.floats(-5, 5), st.floats(0.1, 5))
def test_overlap_is_one_for_equal_intervals_and_never_more(a, wide, b, narrow) -> None:
    one, other = (a, a + wide), (b, b + narrow)
    assert interval_overlap(one, one) == pytest.approx(1.0)
    assert interval_overlap(one, other) <= 1.0 + 1e-12
    assert interval_overlap(one, other) == pytest.approx(interval_overlap(other, one))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(2)
    pairs = [(i, j) for i in range(12) for j in range(12) if i != j]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    frame["km"] = np.abs(frame["o"] - frame["d"]) * 10.0
    frame["so"], frame["sd"] = frame["o"] // 4, frame["d"] // 4
    frame["n"] = 1 + rng.poisson(400 / frame["km"] ** 1.2)
    return read_flows(
        frame.astype(dict.fromkeys(("o", "d", "so", "sd"), str)), origin="o", destination="d",
        count="n", groups=["so", "sd"], high=9,
    )  # fmt: skip


def test_the_true_table_is_good_for_everything(table) -> None:
    uses = flow_uses(table, table.frame, distance=table.frame["km"].tolist()).table
    assert (uses["verdict"] == GOOD).all()
    assert {"gravity model: effect of distance", "how far people move"} <= set(uses["use"])


def test_ones_everywhere_are_good_for_partners_and_not_for_totals(table) -> None:
    release = table.frame.copy()
    release.loc[release.index[table.cells["row"]], "n"] = 1
    uses = flow_uses(table, release, distance=table.frame["km"].tolist()).table.set_index("use")
    assert uses.loc["number of partners of an area", "verdict"] == GOOD
    for use in ("outflow of an area", "one single small count", "how common each small count is"):
        assert uses.loc[use, "verdict"] == NOT_GOOD
    small = table.cells["y"].to_numpy() + table.low
    assert uses.loc["one single small count", "value"] == pytest.approx((small != 1).mean())


def test_several_data_sets_give_coverage(table) -> None:
    two = pd.concat([table.frame.assign(dataset=k) for k in (1, 2)])
    uses = flow_uses(table, two).table.set_index("use")
    assert uses.loc["outflow of an area", "covered"] == 1.0
    assert uses.loc["gravity model: effect of one state", "covered"] == 1.0


def test_a_distance_that_is_missing_is_refused(table) -> None:
    with pytest.raises(InputError, match="distance: give one above 0"):
        flow_uses(table, table.frame, distance=[1.0])


def test_distances_of_all_rows_are_those_of_the_areas_or_none() -> None:
    frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["b", "c", "c"], "n": [1, 400, 2]})
    table = read_flows(frame, origin="o", destination="d", count="n")
    areas = pd.DataFrame({"x": [0.0, 1.0, 0.0], "y": [0.0, 0.0, 2.0]}, index=list("abc"))
    found = row_distances(table, areas, longitude="x", latitude="y")
    assert found == pytest.approx([111.2, 222.4, 248.6], rel=2e-3)
    assert row_distances(table, areas.drop("c"), longitude="x", latitude="y") is None


def test_a_coefficient_that_no_data_determine_has_no_row() -> None:
    """Whether both ends are in one state followed from the destination; it got a number."""
    rng = np.random.default_rng(1)
    pairs = [(f"o{i}", f"d{j}", "A", "A" if j < 5 else "B") for i in range(7) for j in range(11)]
    frame = pd.DataFrame(pairs, columns=["o", "d", "os", "ds"]).assign(n=rng.integers(1, 14, 77))
    found = read_flows(frame, origin="o", destination="d", count="n", groups=["os", "ds"])
    km = np.exp(rng.normal(size=77))
    uses = flow_uses(found, frame, distance=km.tolist()).table["use"]
    assert uses[uses.str.contains("gravity")].tolist() == ["gravity model: effect of distance"]
