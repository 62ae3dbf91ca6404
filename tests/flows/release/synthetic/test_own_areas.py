"""Small counts of people who stayed do not leave as they are."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayes_sdc import FlowTable, InputError, read_flows, synthesize
from bayes_sdc.flows.release.synthetic.own_areas import own_area_risk, own_area_rows
from bayes_sdc.flows.release.synthetic.released import released_counts


def table_of(counts: list[int], high: int = 9, groups: list[str] | None = None) -> FlowTable:
    codes = [f"{i:03}" for i in range(len(counts))]
    frame = pd.DataFrame({"o": codes, "d": codes, "n": counts})
    if groups is not None:
        frame["g"] = groups
    return read_flows(
        frame, origin="o", destination="d", count="n", high=high,
        groups=None if groups is None else "g",
    )  # fmt: skip


def release(table: FlowTable, **options: object) -> pd.DataFrame:
    return synthesize(table, xr.DataTree(), **{"seed": 1, **options})


def test_a_table_of_own_areas_does_not_come_out_as_it_is():
    table = table_of([3, 4] * 50 + [40])
    out = release(table)["n"].to_numpy()
    assert out[-1] == 40
    assert ((out[:-1] >= 1) & (out[:-1] <= 9)).all()
    same = (out[:-1] == table.frame["n"].to_numpy()[:-1]).mean()
    assert 0.3 < same < 0.7, "about half of them are equal by chance"


def test_own_areas_can_be_withheld_or_published_by_choice():
    table = table_of([3, 4, 40])
    assert release(table, own_area="withhold")["n"].tolist() == [pd.NA, pd.NA, 40]
    assert release(table, own_area="publish")["n"].tolist() == [3, 4, 40]
    with pytest.raises(InputError, match="own_area 'keep' is unknown"):
        release(table, own_area="keep")
    blank = table.dialect
    assert blank.format == "csv"


def test_every_data_set_is_protected_and_none_depends_on_the_order_of_rows():
    table = table_of([3, 4] * 20, groups=["x", "y"] * 20)
    three = release(table, datasets=3)
    assert three["dataset"].tolist() == [1] * 40 + [2] * 40 + [3] * 40
    sets = three["n"].to_numpy().reshape(3, 40)
    assert len(np.unique(sets, axis=0)) == 3
    mixed = table.frame.sample(frac=1, random_state=1)
    again = read_flows(mixed, origin="o", destination="d", count="n", groups="g")
    moved = release(again, datasets=3).sort_values(["dataset", "o"])
    assert moved["n"].tolist() == three.sort_values(["dataset", "o"])["n"].tolist()


def test_counts_follow_the_shares_of_their_group():
    table = table_of([3] * 40 + [7] * 40, groups=["x"] * 40 + ["y"] * 40)
    drawn = np.stack([release(table, seed=seed)["n"].to_numpy() for seed in range(40)])
    for part, count in ((drawn[:, :40], 3), (drawn[:, 40:], 7)):
        share = (part == count).mean()
        assert share == pytest.approx(41 / 49, abs=4 * np.sqrt(0.14 / 1600))
        other = (part == 9).mean()
        assert other == pytest.approx(1 / 49, abs=4 * np.sqrt(0.02 / 1600))


def test_the_intruder_agrees_with_enumeration():
    """Over all releases of a small table, by the probability of each given every true count."""
    truth = [1, 1, 2]
    table = table_of(truth, high=3)

    def chance(counts: list[int], out: tuple[int, ...]) -> float:
        weight = 1.0 + np.bincount(np.array(counts) - 1, minlength=3)
        return float(np.prod((weight / weight.sum())[np.array(out) - 1]))

    total = 0.0
    for out in product((1, 2, 3), repeat=3):
        total += chance(truth, out)
        at_true, found = [], []
        for t in range(3):
            given = [chance([*truth[:t], y, *truth[t + 1 :]], out) for y in (1, 2, 3)]
            rho = np.array(given) / sum(given)
            at_true.append(rho[truth[t] - 1])
            found.append((rho > rho.max() - 1e-12).sum() == 1 and rho.argmax() == truth[t] - 1)
        risk = own_area_risk(table, table.frame.assign(n=list(out)))
        assert risk is not None
        assert risk.at_true == pytest.approx(np.mean(at_true))
        assert risk.found == pytest.approx(np.mean(found))
    assert total == pytest.approx(1.0), "the enumeration is whole"


def test_counts_of_few_people_are_blank():
    frame = pd.DataFrame({"o": list("aabb"), "d": list("aabc"), "n": [11, 5, 40, 50], "p": 1})
    frame.loc[1, "d"] = "d"
    table = read_flows(frame, origin="o", destination="d", count="n", threshold_column="p")
    out = frame.assign(n=frame["n"])
    assert len(own_area_rows(table)) == 0
    from bayes_sdc.flows.release.synthetic.synthesis import release_of

    out = release_of(table, np.array([[2]]), own_area="protect", seed=1)
    assert out["n"].isna().tolist() == [True, False, True, True]
    assert released_counts(table, out).tolist() == [[2]], "the others can still be read"
    assert released_counts(table, out.iloc[::-1]).tolist() == [[2]]
