"""Further cells that are hidden: what they leave is what enumeration of the cycle leaves."""

import itertools

import numpy as np
import pandas as pd
import pytest

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


@pytest.mark.parametrize(
    "names", list(itertools.permutations(["group", "origin", "destination"])), ids=", ".join
)
def test_no_total_is_dropped_by_the_order_of_names(names: tuple[str, ...]) -> None:
    """The first two of three were kept: with the group first, destinations were not."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        [(f"o{i}", f"d{j}", "A" if i < 4 else "B") for i in range(8) for j in range(8)],
        columns=["o", "d", "state"],
    )
    frame["n"] = np.where(rng.random(64) < 0.6, rng.integers(12, 60, 64), rng.integers(1, 10, 64))
    found = read_flows(frame, origin="o", destination="d", count="n", groups=["state"])
    wanted = suppressed(found, kept_by_name(found, TOTALS), rng=np.random.default_rng(2))
    hidden = suppressed(found, kept_by_name(found, names), rng=np.random.default_rng(2))
    assert hidden is not None
    assert wanted is not None
    for one, other in zip(hidden, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_totals_that_cannot_all_be_kept_give_no_row() -> None:
    """Among the small cells a group is that of the origin; among all it is that of the pair."""
    frame = pd.DataFrame(
        [(f"o{i}", f"d{j}", f"{i % 2}{j % 2}") for i in range(6) for j in range(6)],
        columns=["o", "d", "pair"],
    )
    small = [(i, j) for i in range(6) for j in range(6) if j % 2 == 0]
    frame["n"] = [3 if (k // 6, k % 6) in small else 50 for k in range(36)]
    found = read_flows(frame, origin="o", destination="d", count="n", groups=["pair"])
    kept = kept_by_name(found, "group,origin,destination")
    assert suppressed(found, kept, rng=np.random.default_rng(1)) is None
