"""Totals that no code holds alone: split by names, or one row between areas of its own."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, read_flows, settle_totals
from bayes_sdc.flows.audit.inside.search import totals_inside

NAMES = {"origin": "o", "destination": "d", "count": "n"}


def flows(seed, areas=12, mean=4.0):
    rng = np.random.default_rng(seed)
    pairs = [(f"{o:02}", f"{d:02}") for o in range(areas) for d in range(areas) if o != d]
    frame = pd.DataFrame(pairs, columns=["o", "d"]).assign(n=rng.poisson(mean, len(pairs)))
    return frame[frame["n"] > 0].reset_index(drop=True)


def split(frame, end, codes, seed=1):
    """Totals of one end, split at random over several codes of the other."""
    sums = frame.groupby(end, as_index=False)["n"].sum()
    shares = np.random.default_rng(seed).multinomial(sums["n"], [1 / len(codes)] * len(codes))
    other = "d" if end == "o" else "o"
    parts = [sums.assign(**{other: c, "n": shares[:, i]}) for i, c in enumerate(codes)]
    whole = pd.concat([frame, *parts], ignore_index=True)
    return whole[whole["n"] > 0].reset_index(drop=True)


@pytest.mark.parametrize("end", ["o", "d"])
@pytest.mark.parametrize(
    "codes",
    [
        ("Total female", "Total male"),
        ("Gesamt (m)", "Gesamt (w)"),
        ("All ages, men", "All ages, women"),
        ("TOTAL_1", "TOTAL_2", "TOTAL_3"),
    ],
)
def test_totals_split_over_codes_are_found_together(codes, end):
    """Tried one at a time no code adds up, and all of them would be fitted and released."""
    frame = flows(2)
    table = read_flows(split(frame, end, codes), **NAMES)
    [found] = totals_inside(table)
    other = "d" if end == "o" else "o"
    assert (found.column, found.code) == (other, " + ".join(codes))
    assert set(table.frame[other].iloc[found.rows]) == set(codes)
    with pytest.raises(InputError, match="holds totals"):
        settle_totals(table)
    assert settle_totals(table, "drop").frame[["o", "d", "n"]].equals(frame)
    assert len(settle_totals(table, "publish").totals) == len(found.rows)


def test_totals_split_over_codes_beside_the_whole_total():
    frame = flows(3)
    whole = frame.groupby("o", as_index=False)["n"].sum().assign(d="Total")
    both = split(frame, "o", ["Total female", "Total male"])
    found = totals_inside(read_flows(pd.concat([both, whole], ignore_index=True), **NAMES))
    assert [each.code for each in found] == ["Total", "Total female + Total male"]


@pytest.mark.parametrize("seed", range(10))
def test_places_with_a_word_for_a_total_in_their_name_raise_no_alarm(seed):
    frame = flows(seed)
    names = {"00": "Totalville", "01": "All Saints", "02": "Total Beach", "03": "Sum (north)"}
    frame = frame.assign(o=frame["o"].replace(names), d=frame["d"].replace(names))
    assert totals_inside(read_flows(frame, **NAMES)) == []


@pytest.mark.parametrize("areas", [3, 8, 30])
def test_a_grand_total_between_areas_of_its_own_is_asked_about(areas):
    """Many small counts add up to little a row, so that the sum alone may be chance."""
    frame = flows(areas, areas, mean=1.5)
    row = pd.DataFrame({"o": ["X"], "d": ["Y"], "n": [frame["n"].sum()]})
    [found] = totals_inside(read_flows(pd.concat([frame, row], ignore_index=True), **NAMES))
    assert found.code == "X>Y"
    for off in (-1, 1):
        near = pd.concat([frame, row.assign(n=row["n"] + off)], ignore_index=True)
        assert totals_inside(read_flows(near, **NAMES)) == []


def test_pairs_that_share_no_code_hold_no_grand_total():
    """Each row stands alone there, so that the largest count is no exception."""
    pairs = [(f"o{i}", f"d{i}", n) for i, n in enumerate([1, 1, 2, 1, 1, 2, 8])]
    table = read_flows(pd.DataFrame(pairs, columns=["o", "d", "n"]), **NAMES)
    assert totals_inside(table) == []
