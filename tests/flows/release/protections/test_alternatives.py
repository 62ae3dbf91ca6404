"""Other protections: probabilities by enumeration, releases by frequency, and the comparison."""

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.optimize import minimize

from bayes_sdc import (
    FlowTable,
    InputError,
    IntruderRisk,
    fit_flows,
    intruder_risk,
    read_flows,
    risk_utility,
    synthesize,
    utility,
)
from bayes_sdc.flows.release.protections.alternatives import (
    cell_key_noise,
    draw_release,
    other_flows,
    poisson_synthesis,
    posterior_given_sum,
    random_rounding,
    suppression_posterior,
)
from bayes_sdc.seeds import generator

NAMES = {"origin": "from", "destination": "to", "count": "n"}
MECHANISMS = [random_rounding, cell_key_noise, poisson_synthesis]


def flows() -> pd.DataFrame:
    """6 x 6 pairs: own areas, a safe one, and the small counts 1..9, more low than high."""
    rng = np.random.default_rng(0)
    names = [f"{a:02d}" for a in range(6)]
    frame = pd.DataFrame([(i, j) for i in names for j in names], columns=["from", "to"], dtype=str)
    frame["n"] = rng.choice(np.arange(1, 10), len(frame), p=np.arange(9, 0, -1) / 45)
    frame.loc[frame["from"] == frame["to"], "n"] = 500
    frame.loc[3, "n"] = 40
    return frame


def fit(table: FlowTable) -> xr.DataTree:
    return fit_flows(table, sampler="gibbs", draws=60, tune=60, chains=2, seed=1, cores=1)


@pytest.fixture(scope="module")
def table() -> FlowTable:
    return read_flows(flows(), **NAMES)


@pytest.fixture(scope="module")
def posterior(table) -> xr.DataTree:
    return fit(table)


@pytest.fixture(scope="module")
def risk(table, posterior) -> IntruderRisk:
    return intruder_risk(table, posterior, synthesize(table, posterior, seed=2))


@pytest.fixture(scope="module")
def compared(table, posterior, risk) -> pd.DataFrame:
    return risk_utility(table, posterior, risk, datasets=[1, 3], seed=3)


# ---- mechanisms ------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("low", "high"), [(1, 9), (0, 9), (3, 12), (0, 1)])
def test_rows_are_distributions_on_counts(mechanism, low, high):
    """A row that does not sum to one, or a negative count, is no mechanism."""
    m = mechanism(low, high)
    assert m["true"].to_numpy().tolist() == list(range(low, high + 1))
    assert m["released"].min() >= 0
    assert (m >= 0).all()
    np.testing.assert_allclose(m.sum("released"), 1.0, rtol=1e-14)


@pytest.mark.parametrize("mechanism", [random_rounding, cell_key_noise])
def test_noise_and_rounding_are_unbiased(mechanism):
    """A mean other than the true count would shift every total."""
    m = mechanism(0, 12)
    np.testing.assert_allclose((m * m["released"]).sum("released"), m["true"], atol=1e-12)


def test_rounding_goes_to_the_neighbouring_multiples_only():
    """Up with probability remainder / base; a multiple stays."""
    m = random_rounding(1, 9)
    expected = np.zeros((9, 3))
    for count in range(1, 10):
        down, remainder = divmod(count, 5)
        expected[count - 1, down] = 1 - remainder / 5
        if remainder:
            expected[count - 1, down + 1] = remainder / 5
    np.testing.assert_allclose(m, expected, atol=1e-15)
    assert m["released"].to_numpy().tolist() == [0, 5, 10]


@pytest.mark.parametrize(("distance", "variance"), [(3, 1.0), (5, 3.0), (3, 2.9), (2, 0.05)])
def test_noise_has_the_variance_and_bounds_asked_for(distance, variance):
    """Mean zero alone would be met by no noise at all."""
    m = cell_key_noise(1, 12, distance=distance, variance=variance)
    noise = m["released"] - m["true"]
    np.testing.assert_allclose((m * noise**2).sum("released"), variance, rtol=1e-10)
    assert m.where(abs(noise) > distance, 0.0).max() == 0.0
    # a true 0 can only stay: anything else has a mean above 0
    zero = cell_key_noise(0, 9, distance=distance, variance=min(variance, 1.0)).sel(true=0)
    assert zero.sel(released=0) == 1.0


def test_noise_has_the_largest_entropy_of_all_that_meet_the_constraints():
    """Against a general optimiser over the probabilities themselves."""
    noise = np.arange(-1, 4)  # of a true 1
    conditions = np.stack([np.ones(5), noise, noise**2])
    found = minimize(
        lambda p: float(np.sum(p * np.log(p))),
        np.array([0.4, 0.3, 0.2, 0.05, 0.05]),
        jac=lambda p: np.log(p) + 1,
        bounds=[(1e-9, 1)] * 5,
        constraints={"type": "eq", "fun": lambda p: conditions @ p - [1, 0, 1]},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    ours = cell_key_noise(1, 9).sel(true=1, released=[0, 1, 2, 3, 4]).to_numpy()
    np.testing.assert_allclose(ours, found.x, atol=1e-6)
    np.testing.assert_allclose(conditions @ ours, [1, 0, 1], atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"variance": 3.0}, "variance must be above 0 and below 3"),
        ({"variance": 0.0}, "variance must be above 0"),
        ({"variance": float("nan")}, "variance must be above 0"),
        ({"distance": 0}, "distance must be 1 or more"),
    ],
)
def test_impossible_noise_is_refused(arguments, words):
    """Else the optimiser returns something that is not what was asked for."""
    with pytest.raises(InputError, match=words):
        cell_key_noise(1, 9, **arguments)


def test_rounding_to_ones_is_refused():
    with pytest.raises(InputError, match="base must be 2 or more"):
        random_rounding(1, 9, base=1)


def test_poisson_synthesis_is_the_truncated_poisson_of_the_true_count():
    """n^k / k! over the small counts, from the formula."""
    m = poisson_synthesis(1, 4)
    weights = np.array(
        [[n**k / np.prod(range(1, k + 1)) for k in range(1, 5)] for n in range(1, 5)]
    )
    np.testing.assert_allclose(m, weights / weights.sum(axis=1, keepdims=True), rtol=1e-12)
    assert poisson_synthesis(0, 4).sel(true=0, released=0) == 1.0


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_releases_are_drawn_with_the_probabilities_of_m(mechanism):
    """An intruder's M that is not the one of the draws makes every risk wrong."""
    m, n = mechanism(1, 9), 20_000
    for true in (1, 4, 9):
        places = draw_release(m, np.full(n, true), np.random.default_rng(5))
        share = np.bincount(places, minlength=m.sizes["released"]) / n
        p = m.sel(true=true).to_numpy()
        assert (share[p == 0] == 0).all()
        assert (np.abs(share - p) <= 4.5 * np.sqrt(p * (1 - p) / n)).all()


# ---- suppression -----------------------------------------------------------------------------


@pytest.mark.parametrize(("cells", "upper"), [(1, 8), (2, 8), (4, 3), (5, 2)])
def test_posterior_given_a_sum_is_that_of_enumeration(cells, upper):
    """Every table with the sum, counted: the answer needs no convolution."""
    tables = np.array(list(itertools.product(range(upper + 1), repeat=cells)))
    for total in range(cells * upper + 1):
        those = tables[tables.sum(axis=1) == total]
        share = np.bincount(those[:, 0], minlength=upper + 1) / len(those)
        np.testing.assert_allclose(posterior_given_sum(cells, total, upper), share, atol=1e-13)


@pytest.mark.parametrize("total", [0, 1, 40, 3000, 12_000, 23_999, 24_000])
def test_posterior_of_thousands_of_cells_has_the_mean_it_must(total):
    """9^-3000 is no number: without the tilt the ways cannot be counted."""
    rho = posterior_given_sum(3000, total, 8)
    assert rho.sum() == pytest.approx(1.0, rel=1e-12)
    assert rho @ np.arange(9) == pytest.approx(total / 3000, rel=1e-9, abs=1e-15)


def test_suppression_follows_the_sums_of_the_table(table):
    """Cells of one origin share a posterior; a lone hidden cell is the sum itself."""
    sums = other_flows(table)
    small = flows()[lambda f: (f["from"] != f["to"]) & (f["n"] < 10)]
    assert sums["count"].to_dict() == small.groupby("from")["n"].sum().to_dict()
    assert sums["cells"].to_dict() == small.groupby("from")["n"].size().to_dict()
    rho = suppression_posterior(table)
    for cell, origin in table.cells["origin"].items():
        cells, count = sums.loc[origin]
        np.testing.assert_allclose(
            rho.sel(cell=cell), posterior_given_sum(int(cells), int(count - cells), 8)
        )
    alone = pd.DataFrame({"from": ["a", "b", "b"], "to": ["x", "x", "y"], "n": [4, 2, 30]})
    alone_rho = suppression_posterior(read_flows(alone, **NAMES))
    assert alone_rho.sel(count=[2, 4]).to_numpy().tolist() == [[0, 1], [1, 0]]
    even = np.full((3, 9), 1 / 9)[: len(alone_rho)]
    same = suppression_posterior(read_flows(alone, **NAMES), prior=even)
    np.testing.assert_allclose(same, alone_rho, atol=1e-12)
    by_destination = suppression_posterior(read_flows(alone, **NAMES), side="destination")
    np.testing.assert_allclose(by_destination.sum("count"), 1.0)
    assert (by_destination.isel(cell=0) == by_destination.isel(cell=1)).all()
    with pytest.raises(InputError, match="side 'group' is unknown"):
        other_flows(table, side="group")


# ---- comparison ------------------------------------------------------------------------------


def test_one_row_a_method_and_number_of_data_sets(compared):
    assert compared.groupby("method", sort=False)["datasets"].apply(list).to_dict() == {
        "model-based synthesis": [1, 3],
        "Poisson synthesis": [1, 3],
        "cell-key noise": [1, 3],
        "random rounding": [1, 3],
        "suppression": [1, 1],
    }
    assert not compared.isna().any(axis=None)
    shares = compared[["r_all", "r_unq", "true_count_probability", "right_band"]]
    assert ((shares >= 0) & (shares <= 1)).all(axis=None)


def test_intruder_who_knows_the_others_finds_every_suppressed_cell(compared):
    """Subtraction from the published sum: a comparison without this row flatters suppression."""
    row = compared[(compared["method"] == "suppression") & (compared["knowledge"] == "all-others")]
    assert row[["r_all", "r_unq", "true_count_probability"]].to_numpy().tolist() == [[1, 1, 1]]
    assert row["mean_distance"].tolist() == [0.0]


def test_suppressed_cells_share_their_sum(table, compared):
    """Totals by origin are exact, those by destination are not."""
    rows = table.cells.assign(n=table.cells["y"] + 1)
    even = rows.groupby("origin")["n"].transform("mean")
    error = (even - rows["n"]).groupby(rows["destination"]).sum().abs().sum() / rows["n"].sum()
    part = compared[compared["method"] == "suppression"]
    np.testing.assert_allclose(part["totals_error"], error / 2, rtol=1e-10)


def test_risk_of_a_mechanism_is_on_average_what_bayes_rule_expects():
    """With true counts from the prior, the mean probability of the truth is computable exactly.

    E rho(true) = sum over y and k of P(y) M[y, k] rho_k(y).
    """
    names = [f"{a:02d}" for a in range(40)]
    frame = pd.DataFrame([(i, j) for i in names for j in names if i != j], columns=["from", "to"])
    frame["n"] = np.random.default_rng(9).integers(1, 10, len(frame))
    table = read_flows(frame, **NAMES)
    posterior = fit_flows(table, sampler="gibbs", draws=5, tune=5, chains=2, seed=1, cores=1)
    risk = intruder_risk(table, posterior, synthesize(table, posterior, seed=2))
    compared = risk_utility(table, posterior, risk, datasets=[1], seed=3).set_index("method")
    for name, mechanism in (
        ("random rounding", random_rounding),
        ("cell-key noise", cell_key_noise),
        ("Poisson synthesis", poisson_synthesis),
    ):
        m = mechanism(1, 9).to_numpy()
        rho = m / m.sum(axis=0)
        expected = (m * rho).sum() / 9
        # the standard error over 1560 cells is at most 0.5 / sqrt(1560) = 0.013
        found = compared.loc[name, "true_count_probability"]
        assert abs(found - expected) < 4 * 0.013, name


def test_more_data_sets_tell_more(compared):
    """Independent noise averages out: the probability of the truth must rise with m."""
    for method, part in compared.groupby("method"):
        if method in ("cell-key noise", "random rounding"):
            assert part["true_count_probability"].is_monotonic_increasing, method


def test_risk_of_the_model_uses_its_own_probabilities(table, posterior):
    """With M that does not depend on the truth, the intruder is left with their prior.

    It is that of the strongest intruder, here one who knows by which weights counts were drawn.
    """
    release = synthesize(table, posterior, seed=2)
    known = intruder_risk(table, posterior, release, prior=np.arange(9.0, 0.0, -1.0))
    assert known.strongest.prior == "given"
    compared = risk_utility(table, posterior, known, datasets=[1, 3], seed=3)
    blind = xr.full_like(known.release_probability, 1 / 9)
    object.__setattr__(known, "release_probability", blind)
    other = risk_utility(table, posterior, known, datasets=[1, 3], seed=3)
    assert set(other["prior"]) == {"given"}
    ours = other[other["method"] == "model-based synthesis"]
    ones = (table.cells["y"] == 0).mean()
    np.testing.assert_allclose(ours["r_all"], ones)
    np.testing.assert_allclose(ours["true_count_probability"], (9 - table.cells["y"]).mean() / 45)
    rest = other["method"] != "model-based synthesis"
    pd.testing.assert_frame_equal(other[rest], compared[rest])
    rounding = compared.set_index("method").loc["random rounding"]
    assert (rounding["true_count_probability"] > ours["true_count_probability"].iloc[0]).all()


def test_same_seed_same_answer_in_any_row_order(table, risk, compared):
    """A comparison that depends on the order of the file cannot be repeated."""
    shuffled = read_flows(flows().sample(frac=1, random_state=4), **NAMES)
    pd.testing.assert_frame_equal(
        risk_utility(shuffled, fit(shuffled), risk, datasets=[1, 3], seed=3), compared, rtol=1e-9
    )
    other = risk_utility(table, fit(table), risk, datasets=[1, 3], seed=4)
    assert not other["totals_error"].equals(compared["totals_error"])


def test_numbers_and_risks_that_do_not_fit_are_refused(table, posterior, risk):
    for datasets, said in (
        ([], "datasets must be whole numbers"),
        ([0], "datasets must be whole numbers"),
        ([1.5], r"datasets must be a list of whole numbers; it is \[1\.5\]"),
    ):
        with pytest.raises(InputError, match=said):
            risk_utility(table, posterior, risk, datasets=datasets, seed=1)
    with pytest.raises(InputError, match="121 data sets need as many posterior draws"):
        risk_utility(table, posterior, risk, datasets=[121], seed=1)
    other = read_flows(flows().assign(n=lambda f: f["n"].where(f.index != 4, 70)), **NAMES)
    with pytest.raises(InputError, match="fitted to another table"):
        risk_utility(other, posterior, risk, seed=1)
    with pytest.raises(InputError, match="the risk was measured on another table"):
        risk_utility(other, fit(other), risk, seed=1)


def test_utility_columns_are_those_of_utility(table, posterior, risk):
    """The same release measured both ways; the saturated synthesis of m = 1 by its own stream."""
    one = risk_utility(table, posterior, risk, datasets=[1], seed=3).set_index("method")
    true = table.cells["y"].to_numpy() + 1
    rng = generator(3, "alternatives", "Poisson synthesis")
    frame = table.frame.copy()
    frame.loc[table.cells["row"], "n"] = draw_release(poisson_synthesis(1, 9), true, rng) + 1
    measured = utility(table, frame)
    row = one.loc["Poisson synthesis"]
    assert row["totals_error"] == pytest.approx(measured.totals_error)
    assert row["right_band"] == pytest.approx(measured.right_band)
    assert row["pmse_ratio"] == pytest.approx(measured.pmse_ratio)
