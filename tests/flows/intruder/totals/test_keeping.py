"""Cells that kept totals pin, against an enumeration of all tables with these totals."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import read_flows
from bayes_sdc.flows.audit.beside import beside
from bayes_sdc.flows.audit.kept_totals import without_pinned
from bayes_sdc.flows.intruder.totals import keeping
from bayes_sdc.flows.intruder.totals.keeping import TRIALS, ChanceOfTruth, pinned_by
from bayes_sdc.flows.release.totals.kept import kept_by_name


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from(["origin", "destination", "origin,destination"]))
def test_the_cells_called_pinned_are_those_where_all_tables_agree(seed: int, names: str) -> None:
    """A release can have nothing but the truth there, and elsewhere it need not."""
    rng = np.random.default_rng(seed)
    pairs = [(o, d) for o in "ab" for d in "xy" if rng.random() < 0.8] or [("a", "x")]
    frame = pd.DataFrame(pairs, columns=["o", "d"]).assign(n=rng.integers(1, 4, len(pairs)))
    table = read_flows(frame, origin="o", destination="d", count="n", high=3)
    kept = kept_by_name(table, names)
    y = table.cells["y"].to_numpy()
    every = np.array(list(product(range(3), repeat=len(y))))
    for side in kept.sides:
        sums = np.array([np.bincount(side.cells, row) for row in every])
        every = every[(sums == np.bincount(side.cells, y)).all(axis=1)]
    assert (pinned_by(table, kept) == (every == y).all(axis=0)).all()


def test_without_totals_nothing_is_pinned() -> None:
    frame = pd.DataFrame({"o": ["a"], "d": ["x"], "n": [1]})
    table = read_flows(frame, origin="o", destination="d", count="n")
    assert not pinned_by(table, kept_by_name(table, ())).any()


def test_few_looks_at_the_probabilities_whatever_must_be_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each is dear: their number grows with the logarithm of the number of totals."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame([(o, d) for o in range(60) for d in range(60)], columns=["o", "d"])
    frame["n"] = rng.integers(1, 10, len(frame))
    table = read_flows(frame.astype({"o": str, "d": str}), origin="o", destination="d", count="n")
    looks = []

    def until_half_is_merged(table, posterior, kept, *, seed, cores) -> ChanceOfTruth:
        looks.append(kept)
        given = np.zeros(table.n_small)
        given[0] = 1.0 if len(kept.merged) < 50 else 0.5
        return ChanceOfTruth(given, np.full(table.n_small, 0.2), 400)

    monkeypatch.setattr(keeping, "chance_of_truth", until_half_is_merged)
    start = without_pinned(
        kept_by_name(table, "origin,destination"), table.cells["y"].to_numpy(), table.k
    )
    nothing = beside(table, [])
    kept = keeping._without_told(table, pd.DataFrame(), start, nothing, limit=0.9, seed=1, cores=1)
    assert 50 <= len(kept.merged) < 80
    assert len(looks) <= 5 + np.log2(120) + TRIALS


def test_rates_that_tell_a_count_are_not_put_to_the_totals() -> None:
    chance = ChanceOfTruth(
        np.array([0.97, 0.97, 0.905, 0.92]), np.array([0.95, 0.4, 0.4, 0.899]), 400
    )
    assert chance.told(0.9).tolist() == [False, True, False, False]
    assert not chance._replace(given=np.ones(4)).told(1.0).any()
