"""Totals over both ends are found, whatever their codes are called, and chance sums are not."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import audit_totals, read_flows, settle_totals
from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.inside.both_ends import totals_of_both_ends
from bayes_sdc.flows.audit.inside.rows import rows_of
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.flows.table.simulate import simulate_flows

GROUPS = ["origin_state", "destination_state"]


def flows(seed: int = 5) -> pd.DataFrame:
    frame = simulate_flows(areas=48, states=4, small=500, seed=seed)
    return frame[["origin", "destination", "count", *GROUPS]].astype({"count": int})


def read(frame: pd.DataFrame, groups: list[str] | None = None) -> FlowTable:
    return read_flows(frame, origin="origin", destination="destination", count="count",
                      groups=groups)  # fmt: skip


def of_states(frame: pd.DataFrame, own: bool, code: str) -> pd.DataFrame:
    """Rows state > state; the areas' first two characters are those of their state."""
    part = frame if own else frame[frame["origin"] != frame["destination"]]
    sums = part.groupby(GROUPS, as_index=False)["count"].sum()
    ends = {side: code + sums[f"{side}_state"] for side in ("origin", "destination")}
    return sums.assign(**ends)[frame.columns]


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("every", [1, 2])
def test_rows_from_state_to_state_are_totals(grouped, own, every):
    """Neither code is a total by itself, so that no sum over one end shows them."""
    frame = flows()
    sums = of_states(frame, own, "")
    # a state to itself would be people who stayed
    sums = sums[sums["origin"] != sums["destination"]].iloc[::every]
    sums = sums.assign(origin=sums["origin"] + "zz", destination=sums["destination"] + "zz")
    both = pd.concat([frame, sums]).sample(frac=1.0, random_state=1)
    with pytest.raises(InputError, match="holds totals"):
        settle_totals(read(both, GROUPS if grouped else None))
    table = read(both, GROUPS if grouped else None)
    dropped = settle_totals(table, totals="drop")
    assert len(dropped.frame) == len(frame), "a flow was taken for a total, or a total for a flow"


def test_a_chance_sum_among_totals_is_no_total():
    """4 = 3 + 1 in a pair of states without a total: its codes are those of counties."""
    areas = [f"{s:02d}{k:03d}" for s in range(1, 13) for k in (1, 2)]
    rng = np.random.default_rng(7)
    pairs = [(a, b) for a in areas for b in areas if a != b]
    frame = pd.DataFrame(pairs, columns=["origin", "destination"])
    frame["count"] = rng.negative_binomial(0.7, 0.05, len(pairs))
    frame = frame[frame["count"] > 0]
    by = [frame[side].str[:2] for side in ("origin", "destination")]
    sums = frame.groupby(by)["count"].sum().rename_axis(["o", "d"]).reset_index()
    sums = sums[(sums["o"] != sums["d"]) & (sums["count"] > 9)]
    totals = pd.DataFrame({"origin": sums["o"] + "000", "destination": sums["d"] + "000",
                           "count": sums["count"]})  # fmt: skip
    [found] = totals_of_both_ends(rows_of(read(pd.concat([frame, totals])), None))
    assert len(found.rows) == len(totals)
    table = settle_totals(read(pd.concat([frame, totals])), totals="publish")
    assert audit_totals(table).pinned > 0


@pytest.mark.parametrize("side", ["origin", "destination"])
def test_an_area_to_itself_may_hold_all_that_leave_it(side):
    frame = flows()
    frame = frame[frame["origin"] != frame["destination"]]
    sums = frame.groupby([side, f"{side}_state"], as_index=False)["count"].sum()
    other = "destination" if side == "origin" else "origin"
    sums = sums.assign(**{other: sums[side], f"{other}_state": sums[f"{side}_state"]})
    both = pd.concat([frame, sums[frame.columns]])
    for groups in (None, GROUPS):
        [found] = totals_of_both_ends(rows_of(read(both, groups), None))
        assert found.code == "the same code"
        assert len(found.rows) == len(sums)


@pytest.mark.parametrize("seed", range(6))
def test_tables_without_totals_raise_no_alarm(seed):
    """Thousands of pairs of regions are looked at; some rows are the sum of two others."""
    rng = np.random.default_rng(seed)
    frame = flows(seed)
    for shuffled in (frame, frame.assign(count=rng.permutation(frame["count"]))):
        for groups in (None, GROUPS):
            assert totals_of_both_ends(rows_of(read(shuffled, groups), None)) == []
