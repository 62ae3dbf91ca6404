"""Further cells that are hidden: what they leave is what enumeration of the cycle leaves."""

import numpy as np
import pandas as pd

from bayes_sdc import read_flows
from bayes_sdc.flows.audit.kept_totals import pinned_cells
from bayes_sdc.flows.intruder.comparing.suppressed import suppressed
from bayes_sdc.flows.release.totals.kept import kept_by_name

TOTALS = "origin,destination"


def table(counts: np.ndarray):
    pairs = [(f"o{i}", f"d{j}") for i in range(len(counts)) for j in range(counts.shape[1])]
    frame = pd.DataFrame(pairs, columns=["o", "d"]).assign(n=counts.ravel())
    return read_flows(frame, origin="o", destination="d", count="n")


def test_a_lone_small_cell_is_told_by_totals_until_further_cells_are_hidden() -> None:
    found = table(np.array([[3, 40, 90], [50, 20, 80], [60, 70, 100]]))
    kept, y = kept_by_name(found, TOTALS), found.cells["y"].to_numpy()
    assert pinned_cells(kept.margins(y), y, found.k).all()
    hidden = suppressed(found, kept, rng=np.random.default_rng(1))
    assert hidden.further == 3  # the cheapest square
    assert hidden.movers == 40 + 50 + 20
    # 1 to 9 are all possible: the others have room for it
    np.testing.assert_allclose(hidden.prior, 1 / 9)
    assert hidden.filled.shape == (1,)


def test_the_range_ends_where_a_hidden_count_would_be_negative() -> None:
    """By hand: the two small cells across, 9 and 2, bound what the target can take."""
    found = table(np.array([[5, 2], [9, 800]]))
    hidden = suppressed(found, kept_by_name(found, TOTALS), rng=np.random.default_rng(1))
    at = {label: k for k, label in enumerate(found.cells.index)}
    possible = hidden.prior[at["o0>d0"]] > 0
    # o0>d0 + t with o0>d1 - t and o1>d0 - t: t <= 1 for 2 - t >= 1, t >= 0 for 9 - t <= 9
    assert (np.flatnonzero(possible) + 1).tolist() == [5, 6]
    assert (hidden.prior.sum(axis=1) == 1).all()


def test_what_is_hidden_never_tells_more_than_small_cells_hidden_alone() -> None:
    rng = np.random.default_rng(3)
    found = table(1 + np.minimum(rng.geometric(0.08, (7, 9)), 60))
    kept, y = kept_by_name(found, TOTALS), found.cells["y"].to_numpy()
    pinned = pinned_cells(kept.margins(y), y, found.k)
    assert pinned.any()
    hidden = suppressed(found, kept, rng=rng)
    chance = hidden.prior[np.arange(len(y)), y]
    assert (chance[pinned] < 1).any()
    assert (chance > 0).all()
    assert hidden.further > 0
