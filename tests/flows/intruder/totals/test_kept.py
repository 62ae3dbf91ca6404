"""The intruder who knows the totals that a release keeps, against enumeration of small tables."""

import itertools

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, fit_flows, intruder_risk, keep_totals, read_flows, synthesize
from bayes_sdc.flows.intruder.probabilities.knowledge import backgrounds
from bayes_sdc.flows.intruder.probabilities.settings import RiskSettings
from bayes_sdc.flows.intruder.totals.cycles import (
    log_weights,
    release_given_cycles,
    tables_along,
)
from bayes_sdc.flows.intruder.totals.kept import tied
from bayes_sdc.flows.intruder.totals.search import widest_cycles
from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.model.truncated import log_table
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.totals.alternating_cycles import graph_of
from bayes_sdc.flows.release.totals.chances import chances
from bayes_sdc.flows.release.totals.draws import mixing
from bayes_sdc.flows.release.totals.kept import kept_by_name
from bayes_sdc.flows.release.totals.margins import Margins
from bayes_sdc.flows.table.cells import fitted_cells

UPPER = 2
SHAPE = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2), (2, 1), (3, 2)]  # the last is pinned


def margins_of(y: np.ndarray) -> Margins:
    left, right = np.array(SHAPE).T
    return Margins(left, right, *(np.bincount(b, y).astype(np.int64) for b in (left, right)))


def tables(margins: Margins, upper: int) -> np.ndarray:
    """All tables with these totals."""
    every = np.array(list(itertools.product(range(upper + 1), repeat=len(margins.left))))
    sums = [
        np.stack([np.bincount(blocks, table, len(wanted)) for table in every])
        for blocks, wanted in zip(margins[:2], margins[2:], strict=True)
    ]
    fits = (sums[0] == margins.left_sums).all(axis=1) & (sums[1] == margins.right_sums).all(axis=1)
    return every[fits]


def shares(every: np.ndarray, log_weight: np.ndarray) -> np.ndarray:
    """Exact probability of each count of each cell given the totals: (cell, count)."""
    log_p = log_weight[np.arange(every.shape[1]), every].sum(axis=1)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    result = np.zeros(log_weight.shape)
    for table, mass in zip(every, p, strict=True):
        result[np.arange(len(table)), table] += mass
    return result


def test_release_probabilities_are_those_of_bayes_rule_over_the_tables_of_a_cycle() -> None:
    """Wrong signs along the cycle, or weights of other cells, would show in M and before."""
    rng = np.random.default_rng(3)
    y = np.array([1, 1, 2, 0, 1, 1, 1, 2])
    logs = np.log(rng.dirichlet(np.ones(UPPER + 1), (3, len(y))))  # three states of the world
    margins = margins_of(y)
    every = tables(margins, UPPER)
    cycles = widest_cycles(rng, graph_of(margins.left, margins.right), y, UPPER)
    assert len(cycles.through(len(y) - 1)) == 0
    assert all(len(cycles.through(t)) >= 4 for t in range(len(y) - 1))
    counts = np.array([500, 300, 200])  # of draws in each state, which is the posterior
    draws = np.repeat(np.arange(3), counts)
    chance = np.stack([shares(every, logs[state]) for state in range(3)])
    found = release_given_cycles(
        np.stack([log_weights(logs[state], y, cycles) for state in draws]), chance[draws], y, 2
    )
    prior = counts / np.exp(logs[:, np.arange(len(y)), y].sum(axis=1))  # before the true table
    for t in range(len(y)):
        before = np.zeros(UPPER + 1)
        for d in range(cycles.low[t], cycles.high[t] + 1):
            other = y.copy()
            cells = cycles.through(t)
            other[cells] += d * np.resize([1, -1], len(cells))
            assert (np.bincount(margins.left, other) == margins.left_sums).all()
            assert (np.bincount(margins.right, other) == margins.right_sums).all()
            assert (np.delete(other, cells) == np.delete(y, cells)).all()
            after = prior * np.exp(logs[:, np.arange(len(y)), other].sum(axis=1))
            before[y[t] + d] = after.sum()
            exact = (after / after.sum()) @ chance[:, t]
            np.testing.assert_allclose(found.m[t, y[t] + d], exact, rtol=1e-6)
        np.testing.assert_allclose(found.before[t], before / before.sum(), rtol=1e-6)
    np.testing.assert_allclose(found.m.sum(axis=2), 1.0, rtol=1e-6)
    even = tables_along(np.ones(UPPER + 1), y, cycles)
    assert ((even > 0) == (found.before > 0)).all()
    np.testing.assert_allclose(even.max(axis=1), 1.0 / (even > 0).sum(axis=1))


@pytest.fixture(scope="module")
def small():
    names = [(f"o{i}", f"d{j}") for i, j in SHAPE]
    frame = pd.DataFrame(names, columns=["o", "d"]).assign(n=[2, 2, 3, 1, 2, 2, 2, 3])
    table = read_flows(frame, origin="o", destination="d", count="n", high=UPPER + 1)
    posterior = fit_flows(table, draws=150, tune=150, chains=2, seed=1)
    return table, posterior, kept_by_name(table, "origin,destination")


def test_chances_given_totals_are_those_of_the_enumeration(small) -> None:
    table, posterior, kept = small
    cells, rates = fitted_cells(table, posterior), rates_by_draw(posterior)
    margins = kept.margins(cells.y)
    draws = np.array([3, 200])
    found = chances(cells, rates, mixing(margins), draws, seed=1, tables=4000, cores=1)
    every = tables(margins, UPPER)
    for at, share in zip(draws, found, strict=True):
        log_rate, rungs = rates.at(cells, int(at))
        exact = shares(every, log_table(log_rate, cells.group, rungs))
        assert np.abs(share - exact).max() < 0.04  # 4.5 standard errors at 4000 / 1.3 tables


def test_who_knows_no_count_finds_what_the_enumeration_finds(small) -> None:
    """Given the rates of a fit to the release, the true table is one of those with these totals."""
    table, posterior, kept = small
    release = synthesize(table, posterior, totals=kept, seed=3)
    risk = intruder_risk(
        table, posterior, release, knowledge="none", prior="model", totals=kept, seed=5
    )
    settings = RiskSettings(seed=5, knowledge="none", prior="model")
    fitted, _ = backgrounds(table, posterior, released_counts(table, release), settings)[0]()
    cells, rates = fitted_cells(table, fitted), rates_by_draw(fitted)
    every = tables(kept.margins(cells.y), UPPER)
    exact = np.mean(
        [
            shares(every, log_table(rates.at(cells, s)[0], cells.group, rates.at(cells, s)[1]))
            for s in range(rates.n_draws)
        ],
        axis=0,
    )
    # 200 draws of 20 tables against all draws and all tables
    assert np.abs(risk.rho.to_numpy() - exact).max() < 0.04
    assert risk.rho.to_numpy()[-1].max() == 1.0  # the pinned cell
    assert "totals" in risk.knows


def test_who_knows_all_but_a_cycle_gains_next_to_nothing(small) -> None:
    """The totals are the disclosure: what is released beside them says little more."""
    table, posterior, kept = small
    release = synthesize(table, posterior, totals=kept, seed=3)
    risk = intruder_risk(table, posterior, release, totals=kept, seed=5)
    assert risk.knowledge == "all-but-cycle"
    assert risk.kept is kept
    rho = risk.rho.to_numpy()
    assert rho.min() >= 0.0
    np.testing.assert_allclose(rho.sum(axis=1), 1.0)
    assert rho[-1].max() == 1.0
    for gain in risk.gains.values():
        assert gain.probability.gain is not None
        assert abs(gain.probability.gain) < 0.03


def test_a_share_that_is_known_is_never_that_of_the_cell_itself(small) -> None:
    table, _, kept = small
    y = table.cells["y"].to_numpy()
    weight = np.full((len(y), UPPER + 1), 1.0 / (UPPER + 1))
    none = tied(kept, weight, y, RiskSettings(seed=1, knowledge="none"), seed=1)
    half = tied(kept, weight, y, RiskSettings(seed=1, knowledge="share", share=0.5), seed=1)
    every = tables(kept.margins(y), UPPER)
    np.testing.assert_allclose(none, shares(every, np.zeros(weight.shape)), atol=1e-12)
    truth = np.arange(len(y)), y
    assert (half[truth] >= none[truth] - 1e-12).all()  # knowing more of even counts
    with pytest.raises(InputError, match="share must be at most"):
        tied(kept, weight, y, RiskSettings(seed=1, knowledge="share", share=0.99), seed=1)


def test_totals_chosen_by_themselves_tell_no_count(small) -> None:
    table, posterior, _ = small
    kept = keep_totals(table, posterior, limit=0.95, seed=1)
    release = synthesize(table, posterior, totals=kept, seed=2)
    y = table.cells["y"].to_numpy()
    found = released_counts(table, release)[0]
    assert kept.sides
    assert "o3" in kept.merged["area"].tolist() or "d2" in kept.merged["area"].tolist()
    for side in kept.sides:
        assert (np.bincount(side.cells, y) == np.bincount(side.cells, found)).all()


@pytest.mark.parametrize("limit", [0.5, 0.9])
def test_no_true_count_is_made_more_probable_than_the_limit(small, limit: float) -> None:
    """By all tables, in many draws; where the rates alone are above it no total is to blame."""
    table, posterior, _ = small
    kept = keep_totals(table, posterior, limit=limit, seed=1)
    cells, rates = fitted_cells(table, posterior), rates_by_draw(posterior)
    every = np.array(list(itertools.product(range(UPPER + 1), repeat=len(cells.y))))
    with_them = tables(kept.margins(cells.y), UPPER) if kept.sides else every
    truth = np.arange(len(cells.y)), cells.y
    chance, alone = [], []
    for s in range(0, rates.n_draws, 5):
        weight = log_table(rates.at(cells, s)[0], cells.group, rates.at(cells, s)[1])
        chance.append(shares(with_them, weight)[truth])
        alone.append(np.exp(weight[truth]))
    chance, alone = np.mean(chance, axis=0), np.mean(alone, axis=0)
    # 20 draws, and these, stand for 300: their means differ by up to 0.03
    assert ((chance < limit + 0.03) | (alone > limit - 0.03)).all()
    assert (np.abs(chance[-1] - 1.0) > 1e-9) or alone[-1] > limit  # the pinned cell is not told
