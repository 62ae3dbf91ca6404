"""A column that gives an area's flow to one partner is no description of the area."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import read_flows
from bayes_sdc.flows.kept_columns.selection import select_columns
from bayes_sdc.flows.table.simulate import simulate_areas, simulate_flows

FLOWS = simulate_flows(areas=60, states=4, small=700, seed=5)
FLOWS = FLOWS.assign(n=FLOWS["count"].astype(int))
AWAY = FLOWS[FLOWS["origin"] != FLOWS["destination"]]
SMALL = AWAY[AWAY["n"] <= 9]


def released(values: pd.Series, side: str = "origin") -> bool:
    """Whether a column with this value for each area is released without being named."""
    frame = FLOWS.assign(x=FLOWS[side].map(values).fillna("").astype(str))
    table = read_flows(frame, origin="origin", destination="destination", count="count",
                       groups=["origin_state", "destination_state"])  # fmt: skip
    return "x" in select_columns(table).released


@pytest.mark.parametrize("side", ["origin", "destination"])
@pytest.mark.parametrize("rank", [0, 3, 8])
@pytest.mark.parametrize("text", ["{}", "n = {} movers"])
def test_movers_to_one_partner_are_left_out(side, rank, text):
    other = "destination" if side == "origin" else "origin"
    partner = SMALL[other].value_counts().index[rank]
    of = AWAY[AWAY[other] == partner].set_index(side)["n"]
    assert not released(of.map(text.format), side)


@pytest.mark.parametrize("side", ["origin", "destination"])
@pytest.mark.parametrize("which", ["first", "last"])
def test_counts_of_a_row_of_each_area_are_left_out(side, which):
    assert not released(getattr(AWAY.groupby(side)["n"], which)(), side)


def together(values: pd.Series, sign: str) -> str:
    return sign.join(map(str, values))


@pytest.mark.parametrize("order", ["as they stand", "sorted", "largest"])
@pytest.mark.parametrize("sign", [" ", ", ", ";"])
def test_lists_of_counts_are_left_out(order, sign):
    rows = AWAY if order == "as they stand" else AWAY.sort_values("n", ascending=order == "sorted")
    rows = rows.groupby("origin").head(4) if order == "largest" else rows
    assert not released(rows.groupby("origin")["n"].agg(together, sign=sign))


@pytest.mark.parametrize("smallest", [True, False])
def test_names_of_extreme_partners_are_left_out(smallest):
    rows = SMALL.sort_values("n", ascending=smallest)
    assert not released(rows.groupby("origin")["destination"].first())


STATISTICS = {
    "variance": lambda n: n.var(),
    "sum of squares": lambda n: (n**2).sum(),
    "product": lambda n: n.astype(float).prod(),
    "geometric mean": lambda n: np.exp(np.log(n).mean()),
    "concentration": lambda n: (n**2).sum() / n.sum() ** 2,
    "entropy": lambda n: -(n / n.sum() * np.log(n / n.sum())).sum(),
    "upper quartile": lambda n: n.quantile(0.75),
    "second largest": lambda n: n.nlargest(2).iloc[-1],
    "largest share": lambda n: n.max() / n.sum(),
}


@pytest.mark.parametrize("rows", [AWAY, SMALL, FLOWS], ids=["away", "small", "all"])
@pytest.mark.parametrize("name", STATISTICS)
def test_functions_of_the_counts_of_an_area_are_left_out(name, rows):
    """Each is one number for an area, and gives its small counts to whoever knows the others."""
    assert not released(rows.groupby("origin")["n"].apply(STATISTICS[name]).round(6))


@pytest.mark.parametrize("seed", range(4))
def test_what_describes_areas_is_released(seed):
    rng = np.random.default_rng(seed)
    areas = simulate_areas(areas=60, states=4, seed=5)
    code = areas.columns[0]
    index = pd.Index(areas[code].astype(str), name="origin")
    ordinary = {
        "name": [f"Place {k}" for k in rng.permutation(60)],
        "number": rng.permutation(60) + 1,
        "few": rng.integers(1, 10, 60),
        "coordinate": rng.normal(size=60).round(4),
        "population": areas["population"].to_numpy(),
        "size": pd.qcut(areas["population"], 9, labels=False).to_numpy() + 1,
        "list": [f"zones {a} and {b}" for a, b in rng.integers(1, 10, (60, 2))],
        "neighbour": rng.permutation(index.to_numpy(str)),
    }
    for name, values in ordinary.items():
        assert released(pd.Series(values, index=index)), name


OF_LINES = {
    "a total and a number": lambda n: n.sum() + 1000,
    "a number less a total": lambda n: 100_000 - n.sum(),
    "a total in other units": lambda n: 3 * n.sum() + 17,
    "its square": lambda n: n.sum() ** 2,
    "one over it": lambda n: 1 / n.sum(),
    "ten means and three": lambda n: 10 * n.mean() + 3,
    "counts up to three": lambda n: n[n <= 3].sum(),
    "counts from five": lambda n: n[n.between(5, 9)].sum(),
    "how many are from four to six": lambda n: n.between(4, 6).sum(),
    "odd ones": lambda n: (n % 2).sum(),
    "cubes": lambda n: (n**3).sum(),
    "harmonic mean": lambda n: len(n) / (1 / n).sum(),
    "places times counts": lambda n: (np.arange(1, len(n) + 1) * n.to_numpy()).sum(),
}
SPELLED = {
    "digits": lambda n: "".join(str(k % 10) for k in n),
    "letters": lambda n: "".join(chr(64 + min(k, 26)) for k in n),
    "letters after a sign": lambda n: "#" + "".join(chr(64 + min(k, 26)) for k in n),
    "sorted letters": lambda n: "".join(sorted(chr(64 + min(k, 26)) for k in n)),
    "small or not": lambda n: "".join("m" if k <= 2 else "n" for k in n),
}


@pytest.mark.parametrize("name", [*OF_LINES, *SPELLED])
def test_what_is_as_good_as_a_statistic_or_a_list_is_left_out(name):
    """A total and 7 is the total; ABACA is 1, 2, 1, 3, 1: all were released by default."""
    whole = name in ("its square", "one over it", "harmonic mean", "places times counts")
    rows = (FLOWS if whole else SMALL).groupby("origin")["n"]
    values = rows.apply({**OF_LINES, **SPELLED}[name])
    assert not released(values if name in SPELLED else values.round(12))


@pytest.mark.parametrize("of", ["net", "turnover", "rate", "across"])
def test_columns_that_give_net_migration_or_turnover_together_are_not_both_released(of):
    """The population at both ends of a year is net migration, or nearly."""
    rng = np.random.default_rng(6)
    left, came = (AWAY.groupby(side)["n"].sum() for side in ("origin", "destination"))
    index = left.index
    came = came.reindex(index).fillna(0).rename(None)
    before = pd.Series(rng.integers(5000, 90_000, len(index)), index=index)
    after = {
        "net": before + came - left,
        "turnover": before + came + left,
        "rate": ((came - left) / before * 1000).round(9),
        "across": before + came,
    }[of]
    side = "destination" if of == "across" else "origin"
    frame = FLOWS.assign(before=FLOWS["origin"].map(before), after=FLOWS[side].map(after))
    table = read_flows(frame, origin="origin", destination="destination", count="n")
    both = {"before", "after"}
    assert not both <= set(select_columns(table).released)
