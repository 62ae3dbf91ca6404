"""Cells that kept totals pin, against an enumeration of all tables with these totals."""

from itertools import product

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import read_flows
from bayes_sdc.flows.intruder.totals.keeping import pinned_by
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
