"""Intruder risk: probabilities, summaries, refusals, and closed forms where lambda is known."""

from dataclasses import replace

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
    risk_by,
    risk_by_datasets,
    synthesize,
)
from bayes_sdc.flows.intruder.probabilities.bayes import stationary
from bayes_sdc.flows.intruder.probabilities.knowledge import backgrounds
from bayes_sdc.flows.intruder.probabilities.settings import RiskSettings
from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.synthetic.synthesis import draw_counts, spread_draws
from bayes_sdc.flows.table.cells import small_cells
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
    assert risk.believes_release == risk.r_all.believes_release == (released == true).mean()
    assert risk.r_unq.believes_release == (released == true)[movers].mean()
    assert f"believing the released count {risk.believes_release:.1%}" in str(risk.r_all)
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
    repeated = repeat_risk(table, posterior, risk, releases=2, seed=1)
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
    missed = (risk.khat > risk.khat_threshold).any("count")
    missed |= (risk.release_probability_error > 0.01).any("true")
    unreliable = missed.mean() > 0.01
    assert risk.r_all.trusted == (not unreliable)
    assert ("NOT TRUSTED" in text) == unreliable
    assert risk.unreliable_cells == int(missed.sum())


# ---- closed forms ----------------------------------------------------------------------------


@pytest.mark.parametrize("log_rate", [-30.0, -1.0, 0.875, 12.0])
def test_known_rates_leave_the_prior_unchanged(table, posterior, release, log_rate):
    # if lambda is known, the released count is drawn without looking at the true one: M does not
    # depend on the candidate, and the release tells nothing
    known = with_known_rates(posterior, log_rate)
    risk = intruder_risk(table, known, release, estimator="paper")
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
    given = intruder_risk(table, known, release, estimator="paper", prior=prior)
    np.testing.assert_allclose(given.rho, np.broadcast_to(prior / 45, (28, 9)), rtol=1e-10)
    # then everybody guesses 1, with and without the release
    assert float(given.r_all) == given.r_all.baseline == (table.cells["y"] == 0).mean()


def test_distance_of_tied_counts_is_between_its_bounds(table, posterior, release):
    # nothing is known here, so the distance depends on the rule for ties; it must be a distance
    risk = intruder_risk(table, with_known_rates(posterior, 0.5), release, estimator="paper")
    assert ((risk.distance >= 0) & (risk.distance <= 8)).all()
    assert risk.distance_distribution().sum() == pytest.approx(1.0, rel=1e-12)


# ---- repeated releases -----------------------------------------------------------------------


def test_repeated_risk_is_reproducible(table, posterior, risk):
    first = repeat_risk(table, posterior, risk, releases=4, seed=5)
    pd.testing.assert_frame_equal(first, repeat_risk(table, posterior, risk, releases=4, seed=5))
    assert not first.equals(repeat_risk(table, posterior, risk, releases=4, seed=6))
    assert first.index.tolist() == [1, 2, 3, 4]
    assert first["true_count_probability"].nunique() == 4  # independent releases


@pytest.mark.parametrize("datasets", [1, 3])
def test_first_repeated_release_is_judged_as_that_release(table, posterior, risk, datasets):
    # else the spread over releases is about another risk
    repeated = repeat_risk(table, posterior, risk, releases=3, datasets=datasets, seed=7).iloc[0]
    rng = generator(7, "repeated releases")
    rates = rates_by_draw(posterior)
    cells = small_cells(table)
    frames = []
    for number, draw in enumerate(spread_draws(rng, rates.n_draws, datasets), start=1):
        frame = table.frame.copy()
        y = draw_counts(cells, rates, int(draw), rng)
        frame.loc[table.cells["row"].to_numpy(), "n"] = y + 1
        frames.append(frame.assign(dataset=number))
    judged = intruder_risk(table, posterior, pd.concat(frames))
    assert judged.datasets == datasets
    assert repeated["r_all"] == float(judged.r_all)
    assert repeated["r_unq"] == float(judged.r_unq)
    for share, ending in ((judged.r_all, ""), (judged.r_unq, "_unq")):
        assert repeated[f"believes_release{ending}"] == share.believes_release
        assert repeated[f"no_release{ending}"] == pytest.approx(share.baseline)
    assert repeated["mean_distance"] == pytest.approx(float(judged.distance.mean()), rel=1e-12)
    assert repeated["true_count_probability"] == pytest.approx(
        float(judged.true_count_probability.mean()), rel=1e-12
    )


def test_risk_grows_with_the_number_of_data_sets(table, posterior, risk):
    # the rows of m and of one release of m data sets are the same thing
    grown = risk_by_datasets(table, posterior, risk, most=5, releases=3, seed=7)
    repeated = repeat_risk(table, posterior, risk, releases=3, datasets=5, seed=7)
    # the first data set is believed, however many there are
    assert grown["believes_release"].nunique() == 1
    for name in repeated:
        assert grown.loc[5, name] == pytest.approx(repeated[name].mean(), rel=1e-12)
        assert grown.loc[5, f"{name}_high"] == repeated[name].max()
    assert grown.loc[5, "true_count_probability"] > grown.loc[1, "true_count_probability"]


def test_classes_of_cells_add_up_to_all_of_them(table, risk):
    for by in ("true-count", "group", "area-size"):
        classes = risk_by(table, risk, by)
        assert classes["cells"].sum() == table.n_small
        mean = (classes["r_all"] * classes["cells"]).sum() / table.n_small
        assert mean == pytest.approx(float(risk.r_all), rel=1e-12)
    with pytest.raises(InputError, match="by 'age' is unknown"):
        risk_by(table, risk, "age")


# ---- refusals --------------------------------------------------------------------------------


def test_posterior_of_another_table_is_refused(posterior, release, risk):
    frame = flows()
    frame.loc[4, "n"] = 2
    with pytest.raises(InputError, match="fitted to another table"):
        intruder_risk(read_flows(frame, **NAMES), posterior, release)
    with pytest.raises(InputError, match="fitted to another table"):
        repeat_risk(read_flows(frame, **NAMES), posterior, risk, seed=1)


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
    with pytest.raises(
        InputError,
        match=r"prior(: (give 9 weights|the weights must not be)| must be .* list of numbers)",
    ):
        intruder_risk(table, posterior, release, prior=prior)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: f.drop("00>04"), "no row for the small cell '00>04'"),
        (lambda f: f.rename(columns={9: 10}), "columns must be the counts 1 to 9"),
        (lambda f: pd.concat([f, f.loc[["00>04"]]]), "'00>04' has more than one row"),
        (
            lambda f: f.mul((f.index != "00>04").astype(float), axis=0),
            "not all zero; those of cell '00>04'",
        ),
    ],
)
def test_impossible_priors_by_cell_are_refused(table, posterior, release, spoil, words):
    prior = pd.DataFrame(1.0, table.cells.index, range(1, 10))
    with pytest.raises(InputError, match=words):
        intruder_risk(table, posterior, release, prior=spoil(prior))


# ---- what the intruder believes and knows ----------------------------------------------------


def test_prior_given_as_a_series_goes_by_its_index(table, posterior, release):
    # else the same labelled weights in another order are another prior
    weights = pd.Series(np.arange(1.0, 10.0), range(1, 10))
    plain = intruder_risk(table, posterior, release, prior=weights.to_numpy())
    for given in (weights, weights[::-1]):
        turned = intruder_risk(table, posterior, release, prior=given)
        np.testing.assert_array_equal(turned.rho, plain.rho)
    with pytest.raises(InputError, match="the index must be the counts 1 to 9"):
        intruder_risk(table, posterior, release, prior=weights.reset_index(drop=True))


@pytest.mark.parametrize("wrong", [{"refits": 1.5}, {"refits": True}, {"cells": 2.0}])
def test_numbers_that_are_none_are_refused_before_the_work(table, posterior, release, wrong):
    with pytest.raises(InputError, match="it is"):
        intruder_risk(table, posterior, release, seed=1, **wrong)


def test_prior_by_cell_is_that_of_each_cell_in_any_order(table, posterior, release, risk):
    rows = np.random.default_rng(3).random((table.n_small, 9))
    prior = pd.DataFrame(rows, table.cells.index, range(1, 10))
    shuffled = prior.sample(frac=1.0, random_state=1)[[5, 4, 3, 2, 1, 9, 8, 7, 6]]
    given = intruder_risk(table, posterior, release, prior=shuffled)
    expected = risk.rho.to_numpy() * rows
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(given.rho, expected, rtol=1e-9)
    guess = rows.argmax(axis=1) == table.cells["y"]
    assert given.r_all.baseline == guess.mean()


def test_model_as_prior_is_the_prediction_from_the_other_cells(table, posterior, release, risk):
    # M and the prediction fit together: true and released count are exchangeable
    model = intruder_risk(table, posterior, release, prior="model")
    p, m = model.prediction.to_numpy(), model.release_probability.to_numpy()
    flow = p[:, :, None] * m
    np.testing.assert_allclose(flow, flow.transpose(0, 2, 1), atol=1e-12)
    np.testing.assert_allclose([stationary(one) for one in m], p, atol=1e-9)
    expected = risk.rho.to_numpy() * p
    np.testing.assert_allclose(model.rho, expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)


def test_intruder_who_knows_nothing_needs_no_true_count(table, posterior, release):
    # else the risk without knowledge would still be computed from the secrets
    known = {"knowledge": "none", "seed": 3, "cores": 2}
    risk = intruder_risk(table, posterior, release, **known)
    other = table.cells.assign(y=(table.cells["y"] + 4) % 9)
    blind = replace(table, cells=other)
    assert backgrounds_equal(table, blind, posterior, release)
    assert risk.knowledge == "none"
    np.testing.assert_allclose(risk.rho.sum("count"), 1.0, rtol=1e-12)
    repeated = intruder_risk(table, posterior, release, **known)
    np.testing.assert_array_equal(risk.rho, repeated.rho)


def backgrounds_equal(
    table: FlowTable, blind: FlowTable, posterior: xr.DataTree, release: pd.DataFrame
) -> bool:
    """Whether two tables that differ in the true counts lead to the same fit."""
    released = released_counts(table, release)
    fits = [
        backgrounds(one, posterior, released, RiskSettings(knowledge="none", seed=3, cores=2))[0]()
        for one in (table, blind)
    ]
    same = np.array_equal(fits[0][1], fits[1][1])
    return same and fits[0][0]["posterior"].equals(fits[1][0]["posterior"])


def test_share_of_known_cells_goes_from_none_to_all(table, posterior, release):
    released = released_counts(table, release)
    y = table.cells["y"].to_numpy()
    for share in (0.0, 0.5, 1.0):
        settings = RiskSettings(knowledge="share", share=share, seed=3, cores=2)
        (background,) = backgrounds(table, posterior, released, settings)
        counts = background()[1]
        known = counts == y
        assert np.isin(counts[~known], released).all()
        if share == 0.0:
            np.testing.assert_array_equal(counts, released[0])
        if share == 1.0:
            assert known.all()
    for wrong in (None, -0.1, 1.5):
        with pytest.raises(InputError, match="share goes with"):
            intruder_risk(table, posterior, release, knowledge="share", share=wrong, seed=1)
    with pytest.raises(InputError, match="share goes with"):
        intruder_risk(table, posterior, release, share=0.5)


def test_chosen_cells_have_the_risk_they_have_among_all(table, posterior, release, risk):
    some = intruder_risk(table, posterior, release, cells=["05>04", "00>04"])
    assert some.rho["cell"].to_numpy().tolist() == ["00>04", "05>04"]
    np.testing.assert_array_equal(some.rho, risk.rho.sel(cell=["00>04", "05>04"]))
    random = intruder_risk(table, posterior, release, cells=5, seed=1)
    assert random.r_all.cells == 5
    with pytest.raises(InputError, match="no small cell 'x>y'"):
        intruder_risk(table, posterior, release, cells=["x>y"])
    fresh = intruder_risk(table, posterior, release, cells=5)
    again = intruder_risk(table, posterior, release, cells=5, seed=fresh.seed)
    np.testing.assert_array_equal(fresh.rho, again.rho)  # a result without a seed can be repeated


@pytest.fixture
def short_refits(monkeypatch):
    """As many sweeps as large tables take."""
    monkeypatch.setattr("bayes_sdc.flows.intruder.estimators.refit.LONGEST", 1)


@pytest.mark.slow
@pytest.mark.usefixtures("short_refits")
def test_cells_with_bad_weights_are_refitted_within_the_budget(table, posterior, release):
    plain = intruder_risk(table, posterior, release, estimator="paper")
    assert plain.unreliable_cells >= 2
    mended = intruder_risk(table, posterior, release, estimator="paper", refits=2, seed=1)
    assert int(mended.refitted.sum()) == 2
    # of a refit its own Monte Carlo error is left
    open_still = (mended.release_probability_error > 0.01).any("true")
    done = mended.refitted
    assert not (mended.khat > mended.khat_threshold).any("count")[done].any()
    np.testing.assert_array_equal(mended.unreliable[done], open_still[done])
    np.testing.assert_array_equal(mended.unreliable[~done], plain.unreliable[~done])
    assert ((mended.ess[done] >= 1) & (mended.ess[done] < 1200)).all()  # sweeps are not independent
    assert mended.refitted_by_fit.dims == ("cell", "fit")
    np.testing.assert_array_equal(mended.refitted_by_fit.sel(fit=1), done)
    worst = plain.khat.max("count").to_series().nlargest(2).index
    assert set(mended.rho["cell"].to_numpy()[mended.refitted]) == set(worst)
    exact = intruder_risk(table, posterior, release, estimator="refit", cells=list(worst), seed=1)
    np.testing.assert_array_equal(mended.rho.sel(cell=exact.rho["cell"]), exact.rho)


@pytest.mark.usefixtures("short_refits")
def test_refits_are_marked_in_the_fit_that_they_were_made_for(table, posterior):
    """With one budget for each fit of the intruder, other cells may be the worst of another."""
    two = synthesize(table, posterior, datasets=2, seed=2)
    call = {"estimator": "paper", "knowledge": "none", "seed": 1}
    found = intruder_risk(table, posterior, two, refits=1, **call)
    marked = found.refitted_by_fit
    assert marked.sum("cell").to_numpy().tolist() == [1, 1]
    np.testing.assert_array_equal(found.refitted, marked.all("fit"))
    plain = intruder_risk(table, posterior, two, **call)
    changed = (found.release_probability != plain.release_probability).any(["true", "released"])
    np.testing.assert_array_equal(changed, marked.any("fit"))


def test_highest_risks_are_above_the_limit(risk):
    listed = risk.highest(0.2)
    assert len(listed) == int((risk.true_count_probability > 0.2).sum())
    assert listed.is_monotonic_decreasing
    low, high = risk.expected_correct_interval
    assert 0.0 <= low <= risk.expected_correct <= high <= 1.0
    with pytest.raises(InputError, match="limit must be from 0 to 1"):
        risk.highest(1.5)
