"""Totals that a release keeps have no interval, and others none that is too narrow beside them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import FlowTable, InputError, combined_totals, flow_uses, read_flows
from bayes_sdc.flows.release.totals.draws import with_totals
from bayes_sdc.flows.release.totals.kept import WITH_ALL, KeptTotals, kept_by_name

UPPER = 8


def table_of(counts: np.ndarray) -> FlowTable:
    """Flows between the same areas on both sides; a count above 9 is not small."""
    areas = [f"{i:02d}" for i in range(max(counts.shape))]
    pairs = [(areas[i], areas[j]) for i, j in np.ndindex(counts.shape)]
    frame = pd.DataFrame(pairs, columns=["o", "d"], dtype=str).assign(n=counts.ravel())
    return read_flows(frame[frame["o"] != frame["d"]], origin="o", destination="d", count="n")


def release_of(table: FlowTable, kept: KeptTotals, datasets: int, seed: int) -> pd.DataFrame:
    """Data sets drawn from all tables with these totals, each as probable as any other."""
    rng = np.random.default_rng(seed)
    y = table.cells["y"].to_numpy(np.int64)
    prepared, even = kept.mixing(y), np.zeros((len(y), UPPER + 1))
    frames = []
    for number in range(datasets):
        free = rng.integers(0, UPPER + 1, len(y))
        drawn = with_totals(prepared, free, even, seed=seed, dataset=number, cores=1)
        count = table.frame["n"].to_numpy().copy()
        count[table.cells["row"]] = drawn + table.low
        frames.append(table.frame.assign(n=count, dataset=number))
    return pd.concat(frames, ignore_index=True)


@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
@settings(max_examples=10, deadline=None)
def test_a_kept_total_is_exact(seed: int, datasets: int) -> None:
    """It was 8 in every data set, and the interval went from 4 to 14.5."""
    table = table_of(np.random.default_rng(seed).integers(1, 12, (12, 12)))
    release = release_of(table, kept_by_name(table, "origin,destination"), datasets, seed)
    for totals in ("origin,destination", ()):
        found = combined_totals(table, release, totals=totals)
        for side in ("origin", "destination", "net migration"):
            part = found.totals[found.totals["side"] == side]
            for name in ("estimate", "lower", "upper"):
                assert (part[name] == part["true"]).all(), (side, name)
            assert part["exact"].all()
            assert (part[["between", "within", "variance"]] == 0.0).all(axis=None)
            row = found.by_side.loc[side]
            assert (row["exact"], row["coverage"], row["mean_width"]) == (len(part), 1.0, 0.0)
    assert "by origin exact" in str(found)
    uses = flow_uses(table, release).table.set_index("use")
    assert uses.loc["net migration of an area", "covered"] == 1.0


def test_totals_that_are_kept_in_sum_only_have_intervals() -> None:
    table = table_of(np.random.default_rng(1).integers(1, 10, (12, 12)))
    (side,) = kept_by_name(table, "origin").sides
    level = side.level.copy()
    level[[2, 5]] = WITH_ALL
    kept = KeptTotals(("origin",), (side._replace(level=level),))
    totals = combined_totals(table, release_of(table, kept, 3, 1), totals=kept).totals
    by = totals[totals["side"] == "origin"].set_index("area")
    assert by.index[~by["exact"]].tolist() == side.labels["origin"].iloc[[2, 5]].tolist()
    assert ((by["upper"] > by["lower"]) == ~by["exact"]).all()


def test_totals_kept_to_a_base_end_where_they_would_round_to_another_multiple() -> None:
    counts = np.random.default_rng(2).integers(1, 12, (12, 12))
    table = table_of(counts)
    kept = kept_by_name(table, "origin,destination", base=5)
    found = combined_totals(table, release_of(table, kept, 3, 1), totals=kept).totals
    safe = table.frame[table.frame["n"] > 9]
    for side, column in (("origin", "o"), ("destination", "d")):
        part = found[found["side"] == side].set_index("area")
        above = safe.groupby(column)["n"].sum().reindex(part.index).fillna(0)
        multiple = (part["true"] + above + 2) // 5
        for end in ("lower", "upper"):
            rounded = (np.ceil(part[end] - 1e-9) if end == "lower" else part[end] // 1) + above
            assert ((rounded + 2) // 5 == multiple).all()
        assert part["covered"].all()
        assert not part["exact"].any()
    net = found[found["side"] == "net migration"]
    assert (net["upper"] - net["lower"] <= 8).all()  # four on either side


@pytest.mark.parametrize("base", [1, 4])
def test_intervals_hold_the_totals_that_are_not_kept(base: int) -> None:
    """Truth and data sets from the same rates, by origin kept: 95 % or rather more."""
    covered, rng = [], np.random.default_rng(5)
    for seed in range(4):
        table = table_of(rng.integers(1, 10, (30, 30)))
        kept = kept_by_name(table, "origin", base=base)
        found = combined_totals(table, release_of(table, kept, 5, seed), totals=kept)
        covered.append(found.by_side["coverage"])
        if base == 1:
            assert found.by_side.loc["origin", "exact"] == 30
            assert found.by_side.loc["destination", "exact"] == 0
    held = pd.concat(covered, axis=1).mean(axis=1)
    assert held["origin"] == 1.0
    # 120 totals of a side: a standard error of 0.02
    assert held[["destination", "net migration"]].between(0.90, 1.0).all(), held


def test_a_release_without_the_totals_is_refused() -> None:
    """Its interval would be the true total, and the estimate beside it."""
    table = table_of(np.random.default_rng(3).integers(1, 10, (6, 6)))
    release = release_of(table, kept_by_name(table, "origin"), 2, 1)
    with pytest.raises(InputError, match="does not keep the totals by destination"):
        combined_totals(table, release, totals="destination")
    assert not combined_totals(table, release).totals["exact"].any()  # six may agree by chance
