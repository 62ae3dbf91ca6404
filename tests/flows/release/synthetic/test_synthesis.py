"""Synthesis: what changes, what stays, which draws are used, and that counts follow the model."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from scipy import stats
from scipy.special import gammaln

from bayes_sdc import (
    FlowTable,
    InputError,
    fit_flows,
    read_flows,
    synthesize,
    with_covariates,
)
from bayes_sdc.flows.model.rates import Rates, rates_by_draw
from bayes_sdc.flows.release.synthetic.synthesis import draw_counts, spread_draws
from bayes_sdc.flows.table.cells import small_cells
from bayes_sdc.models.migration import TruncatedNegativeBinomial


def flows(areas: int = 6, seed: int = 0) -> pd.DataFrame:
    """All pairs of some areas: own areas, safe, small and empty ones, in a random order."""
    rng = np.random.default_rng(seed)
    names = [f"{a:02d}" for a in range(areas)]
    frame = pd.DataFrame([(i, j) for i in names for j in names], columns=["from", "to"], dtype=str)
    frame["n"] = rng.negative_binomial(1, 0.12, len(frame))
    frame.loc[::7, "n"] = 0
    frame.loc[frame["from"] == frame["to"], "n"] = 5
    frame.loc[1:3, "n"] = 0
    return frame.sample(frac=1, random_state=seed).reset_index(drop=True)


def read(frame: pd.DataFrame, **changed) -> FlowTable:
    return read_flows(frame, **{"origin": "from", "destination": "to", "count": "n", **changed})


def fit(table: FlowTable, draws: int = 20) -> xr.DataTree:
    return fit_flows(
        table, family="poisson", prior="weak", draws=draws, tune=20, chains=2, seed=1, cores=2
    )


def with_effects(posterior: xr.DataTree, **effects: float) -> xr.DataTree:
    """The posterior with every draw of beta and gamma replaced by one number."""
    known = posterior.copy(deep=True)
    for name, value in effects.items():
        known["posterior"][name].values[:] = value
        assert (known["posterior"][name] == value).all()
    return known


@pytest.fixture(scope="module")
def table() -> FlowTable:
    table = read(flows())
    assert min(table.n_safe, table.n_small, table.n_set_aside, table.n_below) > 0
    return table


@pytest.fixture(scope="module")
def posterior(table) -> xr.DataTree:
    return fit(table)


def small_rows(table: FlowTable) -> np.ndarray:
    return np.isin(np.arange(table.n_read), table.cells["row"])


# ---- what changes and what stays -------------------------------------------------------------


def test_only_small_counts_change_and_stay_in_range(table, posterior):
    # else safe, own-area or empty rows are altered, or a count leaves its class
    release = synthesize(table, posterior, own_area="publish", seed=3)
    small = small_rows(table)
    assert release["n"][small].between(1, 9).all()
    assert (release["n"][small] != table.frame["n"][small]).any()
    pd.testing.assert_series_equal(release["n"][~small], table.frame["n"][~small])
    pd.testing.assert_frame_equal(release[["from", "to"]], table.frame[["from", "to"]])


def test_lower_bound_zero_is_protected_too():
    # else zeros stay zeros although the user asked for their protection
    table = read(flows(), low=0, high=4)
    zeros = (table.frame["n"] == 0).to_numpy() & small_rows(table)
    releases = synthesize(table, fit(table), datasets=10, seed=4)["n"].to_numpy()
    released = releases.reshape(10, -1)[:, zeros]
    assert ((released >= 0) & (released <= 4)).all()
    assert (released > 0).any()


@pytest.mark.parametrize("dtype", ["int64", "Int64", "float64", "int32", "uint8"])
def test_columns_types_index_and_order_come_back(posterior, table, dtype):
    # else the release does not fit where the input came from
    n = len(table.frame)
    frame = table.frame.astype({"n": dtype}).assign(
        kind=pd.Categorical(["a", "b"] * (n // 2), categories=["b", "a", "unused"]),
        when=pd.date_range("2020-01-01", periods=n, tz="UTC"),
        text=pd.Series(["x", None] * (n // 2), dtype="string"),
        share=np.where(np.arange(n) % 3, 0.1, np.nan),
    )
    frame.index = pd.Index(np.arange(n)[::-1] * 10, name="id")
    before = frame.copy(deep=True)
    release = synthesize(read(frame), posterior, seed=3)
    pd.testing.assert_frame_equal(release.drop(columns="n"), before.drop(columns="n"))
    assert release["n"].dtype == before["n"].dtype
    assert list(release.columns) == list(before.columns)
    pd.testing.assert_frame_equal(frame, before)  # the input itself is not modified
    # the type of the column does not change what is drawn
    plain = synthesize(table, posterior, seed=3)["n"].to_numpy()
    np.testing.assert_array_equal(release["n"].to_numpy(np.int64), plain)


def test_table_without_small_cells_is_returned_unchanged():
    frame = pd.DataFrame({"from": ["a", "b"], "to": ["b", "a"], "n": [40, 0]})
    table = read(frame)
    release = synthesize(table, xr.DataTree(), seed=1)
    pd.testing.assert_frame_equal(release, frame)
    release.loc[0, "n"] = 1
    assert table.frame.loc[0, "n"] == 40  # a copy: changing it must not change the table
    several = synthesize(table, xr.DataTree(), datasets=2, seed=1)
    assert several["dataset"].tolist() == [1, 1, 2, 2]


# ---- seeds and order -------------------------------------------------------------------------


def test_same_seed_same_frame_and_another_seed_another(table, posterior):
    first = synthesize(table, posterior, seed=3)
    pd.testing.assert_frame_equal(first, synthesize(table, posterior, seed=3))
    assert not first.equals(synthesize(table, posterior, seed=4))


def test_order_of_rows_does_not_matter(table, posterior):
    # else the release cannot be reproduced from a table that was sorted in between
    shuffled = table.frame.sample(frac=1, random_state=9).reset_index(drop=True)
    other = read(shuffled)
    again = synthesize(other, fit(other), seed=3)
    pairs = ["from", "to"]
    pd.testing.assert_frame_equal(again[pairs], shuffled[pairs])
    pd.testing.assert_series_equal(
        again.set_index(pairs)["n"].sort_index(),
        synthesize(table, posterior, seed=3).set_index(pairs)["n"].sort_index(),
    )


# ---- several data sets -----------------------------------------------------------------------


def test_data_sets_stand_below_each_other(table, posterior):
    release = synthesize(table, posterior, datasets=3, seed=3)
    assert list(release.columns) == ["dataset", "from", "to", "n"]
    assert release["dataset"].tolist() == np.repeat([1, 2, 3], table.n_read).tolist()
    assert release.index.equals(pd.RangeIndex(3 * table.n_read))
    parts = [part.drop(columns="dataset") for _, part in release.groupby("dataset")]
    for part in parts:
        pd.testing.assert_frame_equal(
            part[["from", "to"]].reset_index(drop=True), table.frame[["from", "to"]]
        )
    counts = [part["n"].to_numpy()[small_rows(table)] for part in parts]
    assert not np.array_equal(counts[0], counts[1])
    assert not np.array_equal(counts[1], counts[2])


@pytest.mark.parametrize(("available", "wanted"), [(40, 1), (40, 4), (40, 7), (40, 40), (3, 2)])
def test_draws_of_the_data_sets_are_far_apart(available, wanted):
    # neighbouring draws are correlated: data sets would tell less than they seem to
    for seed in range(20):
        draws = spread_draws(np.random.default_rng(seed), available, wanted)
        assert len(draws) == wanted
        assert len(set(draws.tolist())) == wanted
        assert (draws >= 0).all()
        assert (draws < available).all()
        gaps = np.diff(np.sort(draws), append=np.sort(draws)[0] + available)
        assert gaps.min() >= available // wanted
        assert gaps.max() <= -(-available // wanted)


def test_start_of_the_draws_is_random():
    # else everybody knows which draw a release was made from
    starts = {int(spread_draws(np.random.default_rng(s), 40, 2)[0]) for s in range(60)}
    assert len(starts) > 20


def test_each_data_set_uses_one_joint_draw(table, posterior):
    # beta is at one of two extremes in the first and the second half of the draws: a data set made
    # from a mean, or from several draws, would have both low and high counts
    known = with_effects(posterior, gamma=0.0)
    beta = known["posterior"]["beta"].values
    beta[0], beta[1] = -40.0, 40.0
    release = synthesize(table, known, datasets=2, seed=5)
    small = np.tile(small_rows(table), 2)
    by_set = release[small].groupby("dataset")["n"].agg(["min", "max"])
    assert sorted(map(tuple, by_set.to_numpy().tolist())) == [(1, 1), (9, 9)]


def test_effects_keep_chains_end_to_end(posterior):
    # else an origin gets the draws of another one
    rates = rates_by_draw(posterior)
    beta, gamma, kappa = rates.beta, rates.gamma, rates.kappa
    values = posterior["posterior"]["beta"].values
    assert (kappa == 0.0).all()  # Poisson
    assert beta.shape == (values.shape[0] * values.shape[1], values.shape[2])
    np.testing.assert_array_equal(beta[:20, 2], values[0, :, 2])
    np.testing.assert_array_equal(beta[20:, 2], values[1, :, 2])
    np.testing.assert_array_equal(gamma[20:, 1], posterior["posterior"]["gamma"].values[1, :, 1])


# ---- refusals --------------------------------------------------------------------------------


def test_more_data_sets_than_draws_are_refused(table, posterior):
    with pytest.raises(InputError, match=r"41 data sets need as many posterior draws.* 40"):
        synthesize(table, posterior, datasets=41, seed=1)
    assert len(synthesize(table, posterior, datasets=40, seed=1)) == 40 * table.n_read


@pytest.mark.parametrize("datasets", [0, -1])
def test_no_data_set_is_refused(table, posterior, datasets):
    with pytest.raises(InputError, match="datasets must be at least 1"):
        synthesize(table, posterior, datasets=datasets, seed=1)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"source": flows(seed=1)}, "input_sha256"),
        ({"high": 8}, "high"),
        ({"low": 2}, "low"),
        ({"origin": "to", "destination": "from"}, "another table|other groups or cells"),
    ],
)
def test_posterior_of_another_table_is_refused(table, posterior, changed, words):
    # else counts are drawn from the rates of other cells
    source = changed.pop("source", table.frame)
    with pytest.raises(InputError, match=words):
        synthesize(read(source, **changed), posterior, seed=1)


def test_posterior_of_other_groups_of_the_same_file_is_refused(tmp_path):
    # same bytes, same labels and order of cells, but one destination effect per group: drawing
    # with the effects of the other reading uses the rates of other cells
    frame = flows().sort_values(["from", "to"])
    frame["half"] = (frame["from"] < "03").map({True: "a", False: "b"})
    frame.loc[frame["from"] == frame["to"], "n"] = 50
    path = tmp_path / "flows.csv"
    frame.to_csv(path, index=False)
    whole, halves = read(path), read(path, groups=["half"])
    assert whole.cells.index.tolist() == halves.cells.index.tolist()
    with pytest.raises(InputError, match="groups"):
        synthesize(whole, fit(halves), seed=1)
    with pytest.raises(InputError, match="groups"):
        synthesize(halves, fit(whole), seed=1)


# ---- distribution ----------------------------------------------------------------------------


def test_counts_follow_the_truncated_poisson_table():
    # else the released counts are not draws of the fitted distribution
    names = [f"{a:02d}" for a in range(40)]
    frame = pd.DataFrame([(i, j) for i in names for j in names if i != j], columns=["from", "to"])
    frame["n"] = 1 + np.arange(len(frame)) % 9
    table = read(frame)
    known = with_effects(fit(table, draws=5), beta=0.4, gamma=0.8)
    counts = synthesize(table, known, datasets=5, seed=6)["n"].to_numpy()
    y = np.arange(9)
    pmf = np.exp(1.2 * y - gammaln(y + 1.0))
    pmf /= pmf.sum()
    observed = np.bincount(counts - 1, minlength=9)
    expected = len(counts) * pmf
    assert expected.min() > 5
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_each_group_is_drawn_with_its_own_overdispersion():
    # else every group gets the size of the first one
    cells = small_cells(
        read_flows(
            pd.DataFrame(
                {
                    "from": [f"{i:05d}" for i in range(20_000)],
                    "to": "x",
                    "n": 1,
                    "g": np.repeat(["a", "b"], 10_000),
                }
            ),
            origin="from",
            destination="to",
            count="n",
            groups="g",
        )
    )
    kappa = np.array([0.0, 3.0])
    rates = Rates(np.full((1, 20_000), 0.7), np.zeros((1, 2)), kappa[None], np.empty((1, 2, 0)))
    y = draw_counts(cells, rates, 0, np.random.default_rng(3))
    for group in (0, 1):
        observed = np.bincount(y[cells.group == group], minlength=9)
        dist = TruncatedNegativeBinomial.dist(log_rate=0.7, kappa=kappa[group], upper=8)
        expected = 10_000 * np.exp(pm.logp(dist, np.arange(9)).eval())
        # the thin upper end goes together
        observed = np.append(observed[:5], observed[5:].sum())
        expected = np.append(expected[:5], expected[5:].sum())
        assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_posterior_with_other_covariates_is_refused(table):
    # else log rates are made of one table's coefficients and another one's distances
    rng = np.random.default_rng(1)
    near, far = (
        with_covariates(
            table, pd.DataFrame({"distance": rng.normal(size=table.n_small)}, table.cells.index)
        )
        for _ in range(2)
    )
    posterior = fit_flows(near, draws=10, tune=10, chains=2, seed=1)
    assert len(synthesize(near, posterior, seed=1)) == near.n_read
    with pytest.raises(InputError, match="other values of the covariates"):
        synthesize(far, posterior, seed=1)
    with pytest.raises(InputError, match="other groups or cells"):
        synthesize(table, posterior, seed=1)
