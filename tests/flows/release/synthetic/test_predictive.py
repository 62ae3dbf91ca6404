"""Counts by size of the group add up to those of all cells."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import fit_flows, read_flows
from bayes_sdc.flows import diagnostics
from bayes_sdc.flows.release.synthetic.predictive import predictive_counts_by_size

SIZES = {"tiny": 3, "middle": 12, "large": 110, "more": 10}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    rows = [
        (f"{group}{i % 10}", f"d{i // 10}", 1 + rng.binomial(8, 0.3), group)
        for group, size in SIZES.items()
        for i in range(size)
    ]
    frame = pd.DataFrame(rows, columns=["o", "d", "n", "g"])
    table = read_flows(frame, origin="o", destination="d", count="n", groups="g")
    return table, fit_flows(table, draws=40, tune=40, chains=2, seed=1)


def test_sizes_add_up_to_all_cells(fitted):
    # else one of the two pictures of the report is about other cells, or other replicated tables
    table, posterior = fitted
    by_size = predictive_counts_by_size(table, posterior, seed=5)
    total = diagnostics.predictive_counts(table, posterior, seed=5)
    assert by_size.index.unique("size").tolist() == ["fewer than 10", "10 to 99", "100 or more"]
    summed = by_size.groupby(level="count")[["observed", "expected"]].sum()
    pd.testing.assert_frame_equal(summed, total[["observed", "expected"]], check_names=False)


def test_a_group_counts_for_its_own_size(fitted):
    table, posterior = fitted
    observed = predictive_counts_by_size(table, posterior, seed=5)["observed"]
    counts = table.cells["y"] + table.low
    for size, groups in {
        "fewer than 10": ["tiny"],
        "10 to 99": ["middle", "more"],
        "100 or more": ["large"],
    }.items():
        mine = counts[table.cells["group"].isin(groups)]
        expected = [int((mine == count).sum()) for count in range(1, 10)]
        assert observed.loc[size].tolist() == expected


def test_sizes_that_do_not_occur_are_left_out(fitted):
    table, posterior = fitted
    few = read_flows(
        table.frame[table.frame["g"] == "tiny"], origin="o", destination="d", count="n", groups="g"
    )
    posterior = fit_flows(few, draws=10, tune=10, chains=2, seed=1)
    by_size = predictive_counts_by_size(few, posterior, seed=5)
    assert by_size.index.unique("size").tolist() == ["fewer than 10"]
    assert by_size["observed"].sum() == 3
