"""What a release is good for: each measure against its definition, written out another way."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import t as student

from bayes_sdc import (
    FlowTable,
    InputError,
    combined_totals,
    fit_flows,
    read_flows,
    simulate_flows,
    synthesize,
    utility,
)
from bayes_sdc.flows.release.synthetic.synthesis import draw_counts, rates_by_draw
from bayes_sdc.flows.release.use.combining import combine
from bayes_sdc.flows.release.use.propensity import (
    Propensity,
    _basis,
    mean_score,
    null_pmse,
    propensity_of,
)
from bayes_sdc.flows.release.use.utility import (
    error_of_totals,
    ground_truth,
    in_right_band,
    measure,
    scores,
    size_bands,
)
from bayes_sdc.flows.table.cells import fitted_cells

NAMES = {"origin": "from", "destination": "to", "count": "n"}


def propensity(totals: np.ndarray, true: np.ndarray, released: np.ndarray) -> Propensity:
    """Of the counts themselves."""
    return propensity_of(totals, true[:, np.newaxis], list(released[..., np.newaxis]))


def flows(low: int = 1) -> pd.DataFrame:
    """7 x 7 pairs in two groups: own areas, safe cells, small ones, and zeros."""
    rng = np.random.default_rng(3)
    names = [f"{a:02d}" for a in range(7)]
    frame = pd.DataFrame([(i, j) for i in names for j in names], columns=["from", "to"], dtype=str)
    frame["n"] = rng.choice(np.arange(low, 10), len(frame))
    frame.loc[frame["from"] == frame["to"], "n"] = 500
    frame.loc[[3, 20, 33], "n"] = [40, 60, 12]
    frame.loc[[10, 11], "n"] = 0
    frame["state"] = np.where(frame["from"] < "03", "east", "west")
    return frame


def read(frame: pd.DataFrame, **more: object) -> FlowTable:
    return read_flows(frame, **NAMES, groups="state", **more)


def redraw(table: FlowTable, datasets: int, seed: int = 1) -> pd.DataFrame:
    """A release whose small counts are uniform: as wrong as one can be."""
    rng = np.random.default_rng(seed)
    frames = []
    for number in range(1, datasets + 1):
        frame = table.frame.copy()
        rows = table.cells["row"].to_numpy()
        frame.iloc[rows, frame.columns.get_loc("n")] = rng.integers(
            table.low, table.high + 1, len(rows)
        )
        frames.append(frame.assign(dataset=number) if datasets > 1 else frame)
    return pd.concat(frames, ignore_index=True)


@pytest.fixture(scope="module")
def table() -> FlowTable:
    return read(flows())


@pytest.fixture(scope="module")
def release(table) -> pd.DataFrame:
    return redraw(table, 3)


# ---- totals and counts -----------------------------------------------------------------------


def test_totals_and_net_migration_follow_their_definitions(table, release):
    """Group-bys of the whole frames: else safe cells, own areas or sides are mixed up."""
    measured = utility(table, release)
    mean = release.groupby(["from", "to"])["n"].mean()
    both = table.frame.assign(
        synthetic=mean.loc[
            list(zip(table.frame["from"], table.frame["to"], strict=True))
        ].to_numpy()
    )
    both = both[both["from"] != both["to"]]
    both["error"] = both["synthetic"] - both["n"]
    small = both[both["n"].between(1, 9)]
    for side, column in (("origin", "from"), ("destination", "to"), ("group", "state")):
        error = small.groupby(column)["error"].sum().abs()
        total, whole = small.groupby(column)["n"].sum(), both.groupby(column)["n"].sum()
        row = measured.totals.loc[side]
        assert row["areas"] == len(error)
        assert row["mean_relative_error"] == pytest.approx((error / total).mean(), rel=1e-12)
        assert row["mean_relative_error_all"] == pytest.approx(
            (error / whole[error.index]).mean(), rel=1e-12
        )
        assert row["total_error"] == pytest.approx(error.sum() / total.sum(), rel=1e-12)
    net = {
        column: (both.groupby("to")[column].sum() - both.groupby("from")[column].sum())
        for column in ("n", "synthetic")
    }
    assert measured.net_migration_error == pytest.approx((net["synthetic"] - net["n"]).abs().mean())
    assert measured.datasets == 3
    assert measured.totals_error == pytest.approx(
        (measured.totals.loc["origin"] + measured.totals.loc["destination"])["total_error"] / 2
    )


def test_bands_and_ratios_are_of_each_data_set(table, release):
    """Averaging the counts first would make three poor data sets look like one good one."""
    measured = utility(table, release)
    band = np.array([-1, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    true = table.cells["y"].to_numpy() + 1
    rows = table.cells["row"].to_numpy()
    released = np.stack([f["n"].to_numpy()[rows] for _, f in release.groupby("dataset")])
    assert measured.bands == ((1, 2), (3, 5), (6, 9))
    assert measured.right_band == pytest.approx((band[released] == band[true]).mean())
    ratio = np.log(released / true)
    assert not measured.add_one
    assert measured.log_ratio_mean == pytest.approx(ratio.mean())
    assert measured.log_ratio_interval == pytest.approx(tuple(np.quantile(ratio, [0.05, 0.95])))


def test_true_counts_released_are_without_error(table):
    """A measure that is not 0 here measures something else."""
    measured = utility(table, table.frame)
    errors = measured.totals.drop(columns="areas")
    assert (errors == 0).all(axis=None)
    assert measured.net_migration_error == 0
    assert (measured.right_band, measured.log_ratio_mean) == (1.0, 0.0)
    assert measured.log_ratio_interval == (0.0, 0.0)
    assert measured.pmse == pytest.approx(0, abs=1e-20)


def test_counts_of_zero_get_the_add_one_ratio():
    """log 0 would be infinite, and an origin whose every count is 0 has no log total."""
    frame = flows(low=0)
    frame.loc[(frame["from"] == "02") & (frame["to"] != "02"), "n"] = 0
    table = read(frame, low=0)
    release = redraw(table, 1)
    measured = utility(table, release)
    rows = table.cells["row"].to_numpy()
    true, released = table.frame["n"].to_numpy()[rows], release["n"].to_numpy()[rows]
    assert measured.add_one
    assert measured.log_ratio_mean == pytest.approx(np.log((released + 1) / (true + 1)).mean())
    assert measured.bands == ((0, 0), (1, 2), (3, 5), (6, 9))
    assert np.isfinite(measured.pmse)
    # the empty origin has no relative error and is left out, not counted as exact
    assert measured.totals.loc["origin", "areas"] == 7
    totals = [table.frame["n"].to_numpy()[rows][table.cells["origin"] == o] for o in sorted(set(
        table.cells["origin"]))]  # fmt: skip
    theirs = [released[table.cells["origin"] == o] for o in sorted(set(table.cells["origin"]))]
    relative = [
        abs(r.sum() - t.sum()) / t.sum() for t, r in zip(totals, theirs, strict=True) if t.sum()
    ]
    assert len(relative) == 6
    assert measured.totals.loc["origin", "mean_relative_error"] == pytest.approx(np.mean(relative))


@pytest.mark.parametrize(
    ("low", "high", "bands"),
    [
        (1, 9, ((1, 2), (3, 5), (6, 9))),
        (0, 9, ((0, 0), (1, 2), (3, 5), (6, 9))),
        (1, 2, ((1, 2),)),
        (1, 10, ((1, 2), (3, 5), (6, 9), (10, 10))),
        (5, 9, ((5, 6), (7, 9))),
    ],
)
def test_bands_grow_and_cover_the_range(low, high, bands):
    """A gap or overlap would leave counts in no band, or in two."""
    assert size_bands(low, high) == bands


def test_values_between_and_outside_bands():
    """A rounded 0 or 10 is in no band of 1 to 9; a fraction is in the nearer band."""
    truth = ground_truth(read(flows()))._replace(counts=np.array([1.0, 9.0, 3.0, 3.0]))
    one = np.zeros(4, dtype=np.int64)
    truth = truth._replace(
        area=dict.fromkeys(truth.area, one),
        total=dict.fromkeys(truth.total, one + 100.0),
        net=(one, one),
    )
    assert measure(truth, np.array([[0.0, 10.0, 2.4, 2.6]])).right_band == 0.25


def test_order_of_rows_and_names_of_areas_do_not_matter(table, release):
    """Else the figures of one release differ from machine to machine."""
    first = utility(table, release)
    shuffled = table.frame.sample(frac=1, random_state=4)
    second = utility(read(shuffled), release.sample(frac=1, random_state=5))
    rename = {f"{a:02d}": f"area {9 - a}" for a in range(7)}
    renamed = [f.replace({"from": rename, "to": rename}) for f in (table.frame, release)]
    third = utility(read(renamed[0]), renamed[1])
    for other in (second, third):
        pd.testing.assert_frame_equal(other.totals, first.totals, rtol=1e-12)
        for name in ("net_migration_error", "right_band", "log_ratio_mean", "pmse", "pmse_ratio"):
            assert getattr(other, name) == pytest.approx(getattr(first, name), rel=1e-9), name


def test_codes_that_are_numbers_in_the_frame_are_the_same_areas(table, release):
    """Own areas and totals must not depend on how pandas stores the codes."""
    numbers = [f.astype({"from": int, "to": int}) for f in (table.frame, release)]
    first, second = utility(table, release), utility(read(numbers[0]), numbers[1])
    pd.testing.assert_frame_equal(second.totals, first.totals, rtol=1e-12)
    assert second.pmse == pytest.approx(first.pmse, rel=1e-9)


def test_no_small_cells_and_other_tables_are_refused(table, release):
    with pytest.raises(InputError, match="no small cells"):
        utility(read(flows().assign(n=50)), flows())
    with pytest.raises(InputError, match="48 rows and the table 49"):
        utility(table, table.frame.iloc[1:])


# ---- propensity score ------------------------------------------------------------------------


def test_pmse_is_that_of_a_logistic_regression_fitted_by_other_means():
    """A Newton iteration that stops early, or a lost column, gives a smaller pMSE."""
    rng = np.random.default_rng(8)
    totals = np.log(rng.integers(20, 500, (150, 2)))
    true = rng.integers(1, 10, 150).astype(float)
    released = np.clip(true + rng.integers(0, 4, 150), 1, 9)
    count = np.concatenate([true, released])[:, np.newaxis]
    both = np.concatenate([totals, totals])
    raw = np.hstack([count, both, count * both])
    x = np.hstack([np.ones((300, 1)), (raw - raw.mean(axis=0)) / raw.std(axis=0)])
    y = np.repeat([0.0, 1.0], 150)

    def minus_log_likelihood(beta: np.ndarray) -> float:
        return float(np.sum(np.logaddexp(0.0, x @ beta) - y * (x @ beta)))

    beta = minimize(minus_log_likelihood, np.zeros(6), method="BFGS", options={"gtol": 1e-7}).x
    p = 1.0 / (1.0 + np.exp(-x @ beta))
    result = propensity(totals, true, released[np.newaxis])
    assert result.pmse == pytest.approx(np.mean((p - 0.5) ** 2), rel=1e-6)
    assert result.parameters == 3  # count and two products; the totals are equal on both sides
    assert result.expected == pytest.approx(3 * 0.25 * 0.5 / 300)


def test_separated_counts_reach_the_largest_pmse():
    """Ones released as nines are told apart with certainty: 1/4, and no failure to converge."""
    totals = np.log(np.random.default_rng(2).integers(20, 500, (40, 2)))
    result = propensity(totals, np.ones(40), np.full((1, 40), 9.0))
    assert result.pmse == pytest.approx(0.25, rel=1e-6)


def test_nothing_that_can_differ_has_no_ratio():
    """One constant count on both sides: undefined, not 0 or infinite."""
    result = propensity(np.zeros((5, 2)), np.ones(5), np.ones((2, 5)))
    assert (result.pmse, result.parameters, result.ratio) == (0.0, 0, None)


def test_columns_without_information_are_not_counted():
    """With one origin its log total is constant, and its product is the count again."""
    rng = np.random.default_rng(7)
    totals = np.column_stack([np.full(30, 4.0), np.log(rng.integers(20, 500, 30))])
    true, released = rng.integers(1, 10, (2, 30)).astype(float)
    assert propensity(totals, true, released[np.newaxis]).parameters == 2


def simulate(fitted: bool, repeats: int = 1500, n: int = 400) -> np.ndarray:
    """Ratios of releases from the right model: counts whose distribution no area changes.

    ``fitted``: from the distribution that the true counts have exactly; else both halves are drawn.
    """
    rng = np.random.default_rng(11)
    # each combination of totals has every count once, so that the model fits the true half exactly
    totals = np.repeat(rng.normal(size=(n // 4, 2)), 4, axis=0)
    counts = np.tile(np.arange(1.0, 5.0), n // 4)
    ratios = []
    for _ in range(repeats):
        true = counts if fitted else rng.integers(1, 5, n).astype(float)
        released = rng.integers(1, 5, n).astype(float)
        ratios.append(propensity(totals, true, released[np.newaxis]).ratio)
    return np.array(ratios)


def test_expected_pmse_is_that_of_the_right_fitted_model():
    """Formula against simulation, within four Monte Carlo errors: (1 - c)^2 c, not (1 - c) c."""
    ratios = simulate(fitted=True)
    error = ratios.std(ddof=1) / np.sqrt(len(ratios))
    assert error < 0.03
    assert abs(ratios.mean() - 1.0) < 4 * error + 0.02  # first order in 1 / N


def test_expected_pmse_is_twice_as_large_when_the_true_half_varies_too():
    """What the docstring says of draws of the parameters, which vary as the true counts do."""
    ratios = simulate(fitted=False)
    error = ratios.std(ddof=1) / np.sqrt(len(ratios))
    assert abs(ratios.mean() - 2.0) < 4 * error + 0.04


def test_null_value_of_unequal_halves():
    """c stands for the released rows: exchanging the halves changes the null value."""
    assert null_pmse(4, 0.25, 1000) == pytest.approx(4 * 0.5625 * 0.25 / 1000)


# ---- several data sets -----------------------------------------------------------------------


def test_combining_rules_by_hand():
    """m = 3, q = 10, 12, 17, u = 6: worked out on paper."""
    result = combine(np.array([[10.0], [12.0], [17.0]]), np.array([6.0]))
    assert result["estimate"] == 13.0
    assert result["between"] == 13.0  # (9 + 1 + 16) / 2
    assert result["within"] == 6.0
    assert result["variance"] == pytest.approx(6 + 13 / 3)
    df = 2 * (1 + 3 * 6 / 13) ** 2
    assert result["df"] == pytest.approx(df)
    half = student.ppf(0.975, df) * np.sqrt(6 + 13 / 3)
    assert result["lower"] == pytest.approx(13 - half)
    assert result["upper"] == pytest.approx(13 + half)


def test_data_sets_that_agree_leave_the_within_variance():
    """b = 0 must give the normal interval, not a division by zero."""
    result = combine(np.full((4, 1), 9.0), np.array([9.0]))
    assert np.isposinf(result["df"])
    assert result["upper"] == pytest.approx(9 + 1.959964 * 3)
    empty = combine(np.zeros((2, 1)), np.zeros(1))
    assert (empty["lower"], empty["upper"]) == (0.0, 0.0)


def test_combined_totals_of_a_release(table, release):
    """Totals by area from each data set; the within variance is a share of the cells' scatter."""
    result = combined_totals(table, release)
    small = release[release["from"] != release["to"]]
    kept = set(zip(table.cells["origin"], table.cells["destination"], strict=True))
    small = small[[pair in kept for pair in zip(small["from"], small["to"], strict=True)]]
    by = small.groupby(["to", "dataset"])["n"].sum().unstack()
    part = result.totals[result.totals["side"] == "destination"].set_index("area")
    np.testing.assert_allclose(part["estimate"], by.mean(axis=1))
    np.testing.assert_allclose(part["between"], by.var(axis=1))
    cells = table.cells.set_axis(pd.RangeIndex(table.n_small))
    each = np.stack(
        [one["n"].to_numpy()[cells["row"]] for _, one in release.groupby("dataset", sort=True)]
    )
    mean, scatter = np.rint(each.mean(axis=0)), each.var(axis=0, ddof=1)
    like = [(scatter[mean == k].sum() + k) / ((mean == k).sum() + 1) for k in mean]
    of_cells = pd.Series(like).groupby(cells["destination"]).sum()
    ratio = part["between"].sum() * (1 - (2 / (2 * len(part))) ** 0.5) / of_cells.sum()
    np.testing.assert_allclose(part["within"], of_cells * np.clip(2 - ratio, 0, 1))
    np.testing.assert_allclose(part["variance"], part["within"] + part["between"] / 3)
    inside = part["true"].between(part["lower"], part["upper"])
    assert (inside == part["covered"]).all()
    assert result.by_side.loc["destination", "coverage"] == inside.mean()
    assert result.by_side.loc["destination", "mean_width"] == pytest.approx(
        (part["upper"] - part["lower"]).mean()
    )
    sums = result.totals.groupby("side")["true"].sum()
    total = (table.cells["y"] + 1).sum()
    assert sums.to_dict() == {
        "origin": total, "destination": total, "group": total, "net migration": 0
    }  # fmt: skip


def test_combined_net_migration_is_inflow_less_outflow(table, release):
    """Its variance is that of a difference: else the intervals are too narrow."""
    found = combined_totals(table, release).totals.set_index(["side", "area"])
    zero = pd.Series(0.0, found.loc["net migration"].index)
    into, out = (
        found.loc[side].reindex(zero.index).fillna(0.0) for side in ("destination", "origin")
    )
    net = found.loc["net migration"]
    for name in ("true", "estimate"):
        np.testing.assert_allclose(net[name], into[name] - out[name])
    np.testing.assert_allclose(net["cells"], into["cells"] + out["cells"])
    by_set = release.merge(
        table.cells[["origin", "destination"]], left_on=["from", "to"],
        right_on=["origin", "destination"],
    )  # fmt: skip
    each = [
        by_set.groupby([end, "dataset"])["n"].sum().unstack().reindex(zero.index).fillna(0.0)
        for end in ("to", "from")
    ]
    np.testing.assert_allclose(net["between"], (each[0] - each[1]).var(axis=1))


@pytest.mark.parametrize("shares", [[1] * 9, [60, 20, 8, 4, 3, 2, 1, 1, 1]])
def test_intervals_hold_totals_of_any_scatter(shares):
    """Truth and data sets from the same rates: counts that scatter more than Poisson, and less."""
    rng = np.random.default_rng(4)
    ends = [(f"{i:02d}", f"{j:02d}") for i in range(40) for j in range(40) if i != j]
    frame = pd.DataFrame(ends, columns=["from", "to"]).assign(state="one")
    p = np.array(shares) / np.sum(shares)

    def drawn() -> pd.DataFrame:
        return frame.assign(n=rng.choice(np.arange(1, 10), len(frame), p=p))

    coverage = []
    for _ in range(8):
        table = read(drawn())
        release = pd.concat([drawn().assign(dataset=k) for k in range(5)], ignore_index=True)
        coverage.append(combined_totals(table, release).by_side["coverage"])
    held = pd.concat(coverage, axis=1).mean(axis=1)
    # 320 areas a side: a standard error of 0.012
    assert held[["origin", "destination", "net migration"]].between(0.915, 0.985).all(), held


@pytest.mark.slow
@pytest.mark.parametrize("covariates", ["published", "none"])
def test_intervals_hold_totals_of_tables_drawn_from_the_model(covariates):
    """Between 0.92 and 0.99; of the largest areas, whose rates follow their own counts, 0.92."""
    columns = {"origin": "origin", "destination": "destination", "count": "count"}
    columns["groups"] = ["origin_state", "destination_state"]
    base = read_flows(simulate_flows(areas=60, states=3, seed=1), **columns)
    short = {"draws": 100, "tune": 300, "chains": 2, "covariates": covariates}
    truth = fit_flows(base, seed=1, **short)
    cells, rates, found = fitted_cells(base, truth), rates_by_draw(truth), []
    for number in range(8):
        frame = base.frame.copy()
        y = draw_counts(cells, rates, 20 * number, np.random.default_rng(number))
        count = frame["count"].to_numpy().copy()
        count[base.cells["row"]] = y + base.low
        table = read_flows(frame.assign(count=count), **columns)
        posterior = fit_flows(table, seed=number, **short)
        release = synthesize(table, posterior, datasets=5, seed=number)
        totals = combined_totals(table, release).totals
        rank = totals.groupby("side")["cells"].rank(pct=True)
        found.append(totals.assign(largest=rank > 0.75))
    totals = pd.concat(found)
    areas = totals[totals["side"] != "group"]
    held = areas.groupby("side")["covered"].mean()
    assert held.between(0.92, 0.99).all(), held
    # a hundred totals of a side cannot tell 0.95 from 0.99, those of all sides can
    largest = areas[areas["largest"]]
    held = largest.groupby("side")["covered"].mean()
    assert (held > 0.92).all(), held
    assert largest["covered"].mean() < 0.99
    assert totals.loc[totals["side"] == "group", "covered"].mean() > 0.85  # 72 of them


def test_one_data_set_cannot_be_combined(table):
    """Its between variance is undefined; 0 would be an interval that is far too narrow."""
    with pytest.raises(
        InputError, match=r"has 1 data set, .* undefined; synthesize with datasets=2"
    ):
        combined_totals(table, redraw(table, 1))
    with pytest.raises(InputError, match="no small cells"):
        combined_totals(read(flows().assign(n=50)), flows())


@pytest.mark.parametrize("rows", [4, 400])
def test_basis_spans_what_the_columns_span(rows: int) -> None:
    # with few rows there are more columns than can differ, and one is a sum of others
    columns = np.random.default_rng(3).normal(size=(rows, 6))
    columns[:, 5] = columns[:, 0] + 1e3 * columns[:, 1]
    basis = _basis(columns)
    assert basis.shape[1] == np.linalg.matrix_rank(columns)
    np.testing.assert_allclose(basis.T @ basis / rows, np.eye(basis.shape[1]), atol=1e-9)
    np.testing.assert_allclose(basis @ (basis.T @ columns) / rows, columns, atol=1e-8)


def test_first_data_sets_have_the_utility_of_a_release_of_these_alone(table: FlowTable) -> None:
    truth = ground_truth(table)
    released = np.random.default_rng(4).integers(1, 10, (3, len(truth.counts))) * 1.0
    of_each = scores(truth, released)
    for number in (1, 2, 3):
        alone = measure(truth, released[:number])
        assert mean_score(of_each[:number]).ratio == pytest.approx(alone.pmse_ratio, rel=1e-12)
        assert in_right_band(truth, released[:number]).mean() == pytest.approx(alone.right_band)
        error = released[:number].mean(axis=0) - truth.counts
        assert error_of_totals(truth, error) == pytest.approx(alone.totals_error)
