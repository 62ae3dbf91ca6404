"""Intruder risk: probabilities, summaries, refusals, and closed forms where lambda is known."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import gammaln

from bayes_sdc import (
    FlowTable,
    InputError,
    IntruderRisk,
    fit_flows,
    intruder_risk,
    read_flows,
    repeat_risk,
    synthesize,
)
from bayes_sdc.flows.layout import layout
from bayes_sdc.flows.synthesis import draw_counts, rates_by_draw, spread_draws
from bayes_sdc.seeds import generator

NAMES = {"origin": "from", "destination": "to", "count": "n"}


def flows() -> pd.DataFrame:
    """6 x 6 pairs: own areas, two safe ones, and the small counts 1..9, more low than high."""
    rng = np.random.default_rng(0)
    names = [f"{a:02d}" for a in range(6)]
    frame = pd.DataFrame([(i, j) for i in names for j in names], columns=["from", "to"], dtype=str)
    frame["n"] = rng.choice(np.arange(1, 10), len(frame), p=np.arange(9, 0, -1) / 45)
    frame.loc[frame["from"] == frame["to"], "n"] = 500
    frame.loc[[3, 20], "n"] = 40
    frame.loc[[4, 5], "n"] = [1, 9]
    return frame


def fit(table: FlowTable, draws: int = 200) -> xr.DataTree:
    return fit_flows(
        table, family="poisson", prior="weak", draws=draws, tune=100, chains=2, seed=1, cores=2
    )


def with_known_rates(posterior: xr.DataTree, log_rate: float) -> xr.DataTree:
    """The posterior with one draw repeated: every cell has the given log rate."""
    known = posterior.copy(deep=True)
    known["posterior"]["beta"].values[:] = log_rate
    known["posterior"]["gamma"].values[:] = 0.0
    return known


def table_of(log_rate: float, upper: int = 8) -> np.ndarray:
    y = np.arange(upper + 1)
    weights = np.exp(y * log_rate - gammaln(y + 1.0))
    return weights / weights.sum()


@pytest.fixture(scope="module")
def table() -> FlowTable:
    table = read_flows(flows(), **NAMES)
    assert (table.n_small, table.n_safe, table.n_set_aside) == (28, 2, 6)
    return table


@pytest.fixture(scope="module")
def posterior(table) -> xr.DataTree:
    return fit(table)


@pytest.fixture(scope="module")
def release(table, posterior) -> pd.DataFrame:
    return synthesize(table, posterior, seed=2)


@pytest.fixture(scope="module")
def risk(table, posterior, release) -> IntruderRisk:
    return intruder_risk(table, posterior, release)


# ---- numbers ---------------------------------------------------------------------------------


def test_rho_is_a_probability_for_every_cell(table, risk):
    rho = risk.rho
    assert rho.dims == ("cell", "count")
    assert rho["count"].to_numpy().tolist() == list(range(1, 10))
    assert rho["cell"].to_numpy().tolist() == table.cells.index.tolist()
    assert np.isfinite(rho).all()
    assert ((rho >= 0) & (rho <= 1)).all()
    np.testing.assert_allclose(rho.sum("count"), 1.0, rtol=1e-12)
    np.testing.assert_allclose(risk.release_probability.sum("released"), 1.0, rtol=1e-11)
    assert not risk.khat.isnull().any()


def test_rho_is_bayes_rule_on_the_reported_probabilities(table, release, risk):
    # else rho, M and the released counts do not belong together (labels, cells or axes swapped)
    released = release["n"].to_numpy()[table.cells["row"]]
    for cell, k in zip(table.cells.index, released.tolist(), strict=True):
        likelihood = risk.release_probability.sel(cell=cell, released=k)
        np.testing.assert_allclose(
            risk.rho.sel(cell=cell), likelihood / likelihood.sum(), rtol=1e-10
        )


def test_summaries_follow_from_rho(table, release, risk):
    # eq. (9) to (11) from the definition
    rho, true = risk.rho.to_numpy(), table.cells["y"].to_numpy()
    guess = rho.argmax(axis=1)
    right = guess == true  # no ties in a fitted posterior
    assert float(risk.r_all) == right.mean()
    assert risk.r_all.cells == 28
    movers = true == 0
    assert risk.r_unq.cells == movers.sum() > 0
    assert float(risk.r_unq) == right[movers].mean()
    np.testing.assert_array_equal(risk.distance, np.abs(guess - true))
    np.testing.assert_allclose(risk.true_count_probability, rho[np.arange(28), true], rtol=1e-12)
    released = release["n"].to_numpy()[table.cells["row"]] - 1
    assert risk.believes_release == (released == true).mean()
    low, high = risk.r_all.interval
    assert 0 <= low <= float(risk.r_all) <= high <= 1
    assert risk.r_all.monte_carlo_error >= 0


def test_distances_are_a_distribution(risk):
    shares = risk.distance_distribution()
    assert shares.index.tolist() == list(range(9))
    assert shares.sum() == pytest.approx(1.0, rel=1e-12)
    assert shares[0] == (risk.distance == 0).mean()
    squared = risk.distance_distribution(squared=True)
    assert squared.index.tolist() == [0, 1, 4, 9, 16, 25, 36, 49, 64]  # the paper's maximum
    np.testing.assert_array_equal(squared.to_numpy(), shares.to_numpy())


def test_uniform_baseline_is_one_over_the_number_of_counts(risk):
    # else the risk is compared with a guess that nobody would make
    assert risk.r_all.baseline == pytest.approx(1 / 9, rel=1e-12)
    assert risk.r_unq.baseline == pytest.approx(1 / 9, rel=1e-12)


def test_baseline_of_a_given_prior_is_its_best_guess(table, posterior, release):
    # prior favours 1 and 2 equally: one half of the cells with these counts is found
    prior = [2.0, 2.0, 1, 1, 1, 1, 1, 1, 1]
    risk = intruder_risk(table, posterior, release, prior=prior)
    y = table.cells["y"]
    assert risk.r_all.baseline == pytest.approx(0.5 * (y <= 1).mean(), rel=1e-12)
    assert risk.r_unq.baseline == pytest.approx(0.5, rel=1e-12)
    assert risk.prior == "given"


def test_counts_the_intruder_rules_out_have_no_probability(table, posterior, release, risk):
    prior = np.array([0.0, 3.0, 1.0, 0.0, 1.0, 0.0, 2.0, 0.0, 0.5])
    given = intruder_risk(table, posterior, release, prior=prior)
    assert (given.rho.to_numpy()[:, prior == 0] == 0).all()
    # Bayes' rule: the prior reweighs the uniform one
    expected = risk.rho.to_numpy() * prior
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(given.rho, expected, rtol=1e-10)


def test_order_of_released_rows_and_types_do_not_matter(table, posterior, release, risk):
    # else released counts are compared with the wrong true counts
    shuffled = release.sample(frac=1, random_state=3).astype({"n": "float64"})
    other = intruder_risk(table, posterior, shuffled)
    xr.testing.assert_equal(other.rho, risk.rho)
    assert other.r_all == risk.r_all
    assert other.believes_release == risk.believes_release


def test_data_sets_multiply(table, posterior):
    # eq. (5); several releases tell more than one
    release = synthesize(table, posterior, datasets=3, seed=4)
    together = intruder_risk(table, posterior, release.sample(frac=1, random_state=1))
    assert together.datasets == 3
    product = 1.0
    for _, part in release.groupby("dataset"):
        product = product * intruder_risk(table, posterior, part.drop(columns="dataset")).rho
    product = product / product.sum("count")
    np.testing.assert_allclose(together.rho, product, rtol=1e-9)


def test_cells_without_single_movers_leave_r_unq_undefined():
    # 0 would say that nobody is at risk, when nobody was looked at
    frame = flows()
    frame["n"] += (frame["n"] == 1).astype(int)
    table = read_flows(frame, **NAMES)
    posterior = fit(table, draws=20)
    risk = intruder_risk(table, posterior, synthesize(table, posterior, seed=2))
    assert risk.r_unq.value is None
    assert risk.r_unq.cells == 0
    assert "undefined" in str(risk.r_unq)
    with pytest.raises(InputError, match="undefined: there are no cells whose true count is 1"):
        float(risk.r_unq)
    assert risk.r_all.value is not None
    repeated = repeat_risk(table, posterior, releases=2, seed=1)
    assert repeated["r_unq"].isna().all()
    assert repeated["r_all"].notna().all()


def test_isolated_cells_are_alone_on_both_sides():
    frame = pd.DataFrame(
        {"from": ["a", "a", "b", "c"], "to": ["x", "y", "z", "y"], "n": [1, 2, 3, 50]}
    )
    table = read_flows(frame, **NAMES)
    posterior = fit(table, draws=20)
    release = synthesize(table, posterior, seed=2)
    isolated = intruder_risk(table, posterior, release, unique="isolated")
    assert isolated.r_unq.cells == 1  # b>z: the safe pair c>y does not count
    right = isolated.rho.sel(cell="b>z").argmax("count") == 2
    assert float(isolated.r_unq) == right
    assert intruder_risk(table, posterior, release).r_unq.cells == 1  # a>x


def test_share_in_words_says_when_it_is_not_to_be_trusted(risk):
    text = str(risk.r_all)
    assert f"{float(risk.r_all):.1%}" in text
    assert "without the release 11.1%" in text
    unreliable = (risk.khat > risk.khat_threshold).any("count").mean() > 0.01
    assert risk.r_all.trusted == (not unreliable)
    assert ("NOT TRUSTED" in text) == unreliable
    assert risk.unreliable_cells == int((risk.khat > risk.khat_threshold).any("count").sum())


# ---- closed forms ----------------------------------------------------------------------------


@pytest.mark.parametrize("log_rate", [-30.0, -1.0, 0.9, 12.0])
def test_known_rates_leave_the_prior_unchanged(table, posterior, release, log_rate):
    # if lambda is known, the released count is drawn without looking at the true one: M does not
    # depend on the candidate, and the release tells nothing
    known = with_known_rates(posterior, log_rate)
    risk = intruder_risk(table, known, release)
    pmf = table_of(log_rate)
    np.testing.assert_allclose(
        risk.release_probability, np.broadcast_to(pmf, (28, 9, 9)), rtol=1e-10
    )
    np.testing.assert_allclose(risk.rho, 1 / 9, rtol=1e-10)
    assert (risk.khat == -np.inf).all()
    assert float(risk.r_all) == 0.0  # nine counts tie: none is found
    assert float(risk.r_unq) == 0.0
    assert risk.r_all.monte_carlo_error == 0.0
    assert risk.r_all.trusted

    prior = np.arange(9, 0, -1.0)
    given = intruder_risk(table, known, release, prior=prior)
    np.testing.assert_allclose(given.rho, np.broadcast_to(prior / 45, (28, 9)), rtol=1e-10)
    # then everybody guesses 1, with and without the release
    assert float(given.r_all) == given.r_all.baseline == (table.cells["y"] == 0).mean()


def test_distance_of_tied_counts_is_between_its_bounds(table, posterior, release):
    # nothing is known here, so the distance depends on the rule for ties; it must be a distance
    risk = intruder_risk(table, with_known_rates(posterior, 0.5), release)
    assert ((risk.distance >= 0) & (risk.distance <= 8)).all()
    assert risk.distance_distribution().sum() == pytest.approx(1.0, rel=1e-12)


# ---- repeated releases -----------------------------------------------------------------------


def test_repeated_risk_is_reproducible(table, posterior):
    first = repeat_risk(table, posterior, releases=4, seed=5)
    pd.testing.assert_frame_equal(first, repeat_risk(table, posterior, releases=4, seed=5))
    assert not first.equals(repeat_risk(table, posterior, releases=4, seed=6))
    assert first.index.tolist() == [1, 2, 3, 4]
    assert first["true_count_probability"].nunique() == 4  # independent releases


@pytest.mark.parametrize("datasets", [1, 3])
def test_first_repeated_release_is_judged_as_that_release(table, posterior, datasets):
    # else the spread over releases is about another risk
    repeated = repeat_risk(table, posterior, releases=3, datasets=datasets, seed=7).iloc[0]
    rng = generator(7, "repeated releases")
    rates = rates_by_draw(posterior)
    cells = layout(table)
    frames = []
    for number, draw in enumerate(spread_draws(rng, rates.n_draws, datasets), start=1):
        frame = table.frame.copy()
        y = draw_counts(cells, rates, int(draw), rng)
        frame.loc[table.cells["row"].to_numpy(), "n"] = y + 1
        frames.append(frame.assign(dataset=number))
    risk = intruder_risk(table, posterior, pd.concat(frames))
    assert risk.datasets == datasets
    assert repeated["r_all"] == float(risk.r_all)
    assert repeated["r_unq"] == float(risk.r_unq)
    assert repeated["mean_distance"] == pytest.approx(float(risk.distance.mean()), rel=1e-12)
    assert repeated["true_count_probability"] == pytest.approx(
        float(risk.true_count_probability.mean()), rel=1e-12
    )


# ---- refusals --------------------------------------------------------------------------------


def test_posterior_of_another_table_is_refused(posterior, release):
    frame = flows()
    frame.loc[4, "n"] = 2
    with pytest.raises(InputError, match="fitted to another table"):
        intruder_risk(read_flows(frame, **NAMES), posterior, release)
    with pytest.raises(InputError, match="fitted to another table"):
        repeat_risk(read_flows(frame, **NAMES), posterior, seed=1)


def test_table_without_small_cells_has_no_risk(posterior):
    table = read_flows(flows().assign(n=50), **NAMES)
    with pytest.raises(InputError, match="no small cells"):
        intruder_risk(table, posterior, table.frame)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: f.iloc[1:], "35 rows and the table 36"),
        (lambda f: f.drop(columns="to"), "no column 'to'"),
        (lambda f: f.drop(columns="n"), "no column 'n'"),
        (lambda f: f.assign(n=f["n"].where(f.index != 4, 0)), r"no count from 1 to 9 .* 00>04"),
        (lambda f: f.assign(n=f["n"].where(f.index != 4, 10)), r"no count from 1 to 9 .* 00>04"),
        (lambda f: f.assign(to=f["to"].replace("05", "99")), "no row for"),
    ],
)
def test_release_of_another_table_is_refused(table, posterior, release, spoil, words):
    # else a risk is reported for counts that were never released
    with pytest.raises(InputError, match=words):
        intruder_risk(table, posterior, spoil(release))


@pytest.mark.parametrize("value", [np.nan, 2.5])
def test_released_counts_that_are_no_counts_are_refused(table, posterior, release, value):
    # a missing or broken count in a small cell must not be judged as some count
    broken = release.astype({"n": "float64"})
    broken.loc[4, "n"] = value
    with pytest.raises(InputError, match="00>04"):
        intruder_risk(table, posterior, broken)


def test_release_with_a_row_twice_is_refused(table, posterior, release):
    # one pair twice and another missing: the number of rows alone does not show it
    broken = release.copy()
    broken.loc[4, ["from", "to"]] = broken.loc[5, ["from", "to"]].to_numpy()
    with pytest.raises(InputError):
        intruder_risk(table, posterior, broken)


@pytest.mark.parametrize("argument", ["estimator", "knowledge", "unique", "prior"])
def test_unknown_choices_are_refused_by_name(table, posterior, release, argument):
    # failing open would report a risk under other assumptions than those asked for
    with pytest.raises(InputError, match=f"{argument} 'wrong' is unknown; choose from"):
        intruder_risk(table, posterior, release, **{argument: "wrong"})


@pytest.mark.parametrize(
    "prior", [[1.0] * 8, [0.0] * 9, [-1.0] + [1.0] * 8, [np.nan] + [1.0] * 8, [np.inf] * 9]
)
def test_impossible_priors_are_refused(table, posterior, release, prior):
    with pytest.raises(InputError, match="prior: give 9 weights"):
        intruder_risk(table, posterior, release, prior=prior)
