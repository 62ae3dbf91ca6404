"""What makes records unique, against counting the file anew without a key and with fewer values."""

import dataclasses
from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.io.spreadsheets import csv_chunks
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk
from bayes_sdc.microdata.measure.drivers import coarser, find_drivers


def file_of(seed: int, missing: str, lacking: float, records: int = 60) -> Microdata:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], records),
            "age": rng.integers(0, 12, records).astype(str),
            "place": rng.choice(list("abcde"), records, p=[0.6, 0.2, 0.1, 0.07, 0.03]),
        }
    ).mask(rng.random((records, 3)) < lacking)
    return read_microdata(frame, keys=["sex", "age", "place"], missing=missing)


@given(
    seed=st.integers(0, 2**32 - 1),
    missing=st.sampled_from(["wildcard", "own", "conservative"]),
    lacking=st.sampled_from([0.0, 0.2]),
)
def test_uniques_left_are_those_of_the_file_counted_anew(seed, missing, lacking):
    """Else page one would name the wrong key."""
    data = file_of(seed, missing, lacking)
    found = find_drivers(data, None)
    if found is None:
        assert data.sample_uniques == 0
        return
    assert found.keys["without"].is_monotonic_increasing
    for key, row in found.keys.iterrows():
        others = [one for one in data.keys if one != key]
        assert row["without"] == data.select(others).sample_uniques
        j = data.keys.index(key)
        words, place = coarser(data, j)
        codes = data.codes.copy()
        codes[:, j] = np.where(codes[:, j] < 0, -1, place[codes[:, j]])
        again = data.with_codes(codes)
        assert row["with_coarser"] == again.sample_uniques <= data.sample_uniques
        assert row["coarser_values"] == len(set(codes[codes[:, j] >= 0, j]))
        assert (words == "") == (row["coarser_values"] == row["values"])
        assert row["coarser_values"] <= max(2, row["values"] // 2 + 1)


def test_the_values_add_up_for_every_key():
    data = file_of(3, "wildcard", 0.1)
    found = find_drivers(data, None)
    assert found is not None
    for _, part in found.values.groupby("key"):
        assert part["uniques"].sum() == data.sample_uniques == found.matches
    unique = data.f == 1
    for row in found.values.itertuples():
        j = data.keys.index(row.key)
        labels = np.array([None, *data.labels[j]], dtype=object)[data.codes[:, j] + 1]
        mine = labels == row.value if row.value is not None else data.codes[:, j] < 0
        assert (row.records, row.uniques) == (mine.sum(), (mine & unique).sum())
        assert row.excess == pytest.approx(row.uniques / unique.sum() - row.records / data.n)
    assert found.values["excess"].is_monotonic_decreasing


@pytest.mark.parametrize(
    ("labels", "joined"),
    [
        ([f"{n}-{n + 4}" for n in range(0, 60, 5)], True),
        ([*(f"{n} to {n + 9}" for n in range(10, 90, 10)), "90+"], True),
        ([str(n) for n in range(20)], True),
        (["1", "2", "3", "9"], False),  # few numbers are codes, which have no neighbours
        ([f"country {n:02}" for n in range(12)], False),
    ],
)
def test_only_numbers_have_neighbours(labels, joined):
    """Else the countries next to each other in the alphabet became one."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"k": [*labels, *rng.choice(labels, 500)]})
    data = read_microdata(frame, keys=["k"])
    words, place = coarser(data, 0)
    assert ("neighbouring" in words) is joined
    if joined:
        order = sorted(
            data.labels[0], key=lambda name: float(name.split("-")[0].split()[0].strip("+"))
        )
        together = pd.Series(order).groupby([place[data.labels[0].index(n)] for n in order])
        assert {tuple(part) for _, part in together} == {
            tuple(order[i : i + 2]) for i in range(0, len(order), 2)
        }
    else:
        counts = frame["k"].value_counts()
        merged = [n for n in labels if (place == place[data.labels[0].index(n)]).sum() > 1]
        assert counts[merged].max() <= counts.drop(merged).min()


def test_a_file_without_uniques_or_with_one_key():
    twice = pd.DataFrame({"k": ["a", "a", "b", "b"]})
    assert find_drivers(read_microdata(twice, keys=["k"]), None) is None
    once = read_microdata(pd.DataFrame({"k": ["a", "a", "b"]}), keys=["k"])
    found = find_drivers(once, None)
    assert found is not None
    assert np.isnan(found.keys.loc["k", "without"])
    empty = pd.DataFrame({"k": ["a", "a", "b"], "nothing": [None, None, None]})
    found = find_drivers(read_microdata(empty, keys=["k", "nothing"], missing="own"), None)
    assert found is not None
    assert found.keys.loc["nothing", ["values", "without", "with_coarser"]].tolist() == [0, 1, 1]


def test_right_matches_are_those_of_the_uniques():
    """A value of rare people weighs more than one of as many uniques who have doubles."""
    data = file_of(5, "own", 0.0)
    unique = np.flatnonzero(data.f == 1)
    risk = np.linspace(0.1, 0.9, len(unique))

    @dataclasses.dataclass
    class Found:
        records: pd.DataFrame

    found = find_drivers(data, Found(pd.DataFrame({"inverse_F": risk}, index=unique)))
    assert found.matches == pytest.approx(risk.sum())
    row = found.values.iloc[0]
    j = data.keys.index(row["key"])
    mine = data.codes[unique, j] == data.labels[j].index(row["value"])
    assert row["matches"] == pytest.approx(risk[mine].sum())


@given(st.integers(0, 2**32 - 1), st.sampled_from(["wildcard", "own", "conservative"]))
def test_the_order_of_the_records_changes_no_digit(seed, missing):
    """Sums in the order of the file differ in their last digits."""
    data = file_of(seed, missing, 0.1, records=120)
    if not data.sample_uniques:
        return
    rng = np.random.default_rng(seed)
    risk = rng.random(len(data.combinations)) ** 9  # of unlike sizes, so that order matters
    order = rng.permutation(data.n)
    shuffled = dataclasses.replace(
        data, codes=data.codes[order], combination=data.combination[order]
    )
    told = []
    for one in (data, shuffled):
        records = pd.DataFrame({"inverse_F": risk[one.combination]})
        classes = cast(LatentClassRisk, SimpleNamespace(records=records))
        told.append(b"".join(csv_chunks(find_drivers(one, classes).values, index=False)))
    assert told[0] == told[1]
