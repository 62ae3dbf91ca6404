"""Drawn cells stand for all those that nobody has."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import read_microdata
from bayes_sdc.microdata.loglinear.table import table_of

RNG = np.random.default_rng(1)
KIND = RNG.integers(0, 3, 400)
PEOPLE = pd.DataFrame({
    "a": (KIND + RNG.integers(0, 3, 400)).astype(str),
    "b": RNG.integers(0, 6, 400).astype(str),
    "c": ((2 * KIND + RNG.integers(0, 4, 400)) % 9).astype(str),
})  # fmt: skip
DATA = read_microdata(PEOPLE, keys=["a", "b", "c"])


def test_sums_over_drawn_cells_are_those_over_all() -> None:
    """Any sum over the unseen cells: of a mean with dependence, and of its square."""
    all_, drawn = (table_of(DATA, seed=2, whole=limit) for limit in (1000, 10))
    assert all_.whole
    assert not drawn.whole
    seen = len(DATA.combinations)
    assert (drawn.f[seen:] == 0).all()
    pair = RNG.gamma(1.0, size=(6, 9))
    for power in (1.0, 2.0):
        sums = [
            (t.weight[seen:] * pair[t.codes[seen:, 0], t.codes[seen:, 2]] ** power).sum()
            for t in (all_, drawn)
        ]
        assert sums[1] == pytest.approx(sums[0], rel=0.03)


def test_place_leads_from_combinations_to_cells() -> None:
    table = table_of(DATA, seed=2)
    records = DATA.combinations["records"].to_numpy()
    assert (table.f[table.place] == records).all()
    assert table.f.sum() == 400


def test_order_of_records_does_not_matter() -> None:
    turned = read_microdata(PEOPLE.iloc[::-1], keys=["a", "b", "c"])
    one, two = (table_of(data, seed=3, whole=10) for data in (DATA, turned))
    assert (one.codes == two.codes).all()
    assert (one.weight == two.weight).all()
