"""What the rest of a household says of a record is left out, and nothing else."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import latent_class_risk, read_microdata
from bayes_sdc.microdata.latent_classes import households as hh
from bayes_sdc.microdata.latent_classes.clusters import households_with, nearly_shared_keys
from bayes_sdc.microdata.latent_classes.combinations import cells_of
from bayes_sdc.microdata.latent_classes.gibbs import start_state
from bayes_sdc.models.latent_classes import bands_of

KEYS = ["place", "age", "job"]


def homes(N: int = 900, seed: int = 1) -> pd.DataFrame:
    """People in homes of one to four, whose members come from the same place."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 5, N)
    home = np.repeat(np.arange(N), size)[:N]
    place = rng.geometric(0.12, N)[home]
    frame = {"place": place, "age": rng.integers(0, 9, N), "job": rng.integers(0, 4, N)}
    people = pd.DataFrame({name: values.astype(str) for name, values in frame.items()})
    return people.assign(home=home.astype(str))


def prepared(frame: pd.DataFrame, missing: str = "own"):
    data = read_microdata(frame, keys=KEYS, household="home", missing=missing)
    cells = cells_of(data)
    row = np.empty(len(cells.place), dtype=np.int64)
    row[cells.place] = np.arange(len(cells.place))
    record = np.flatnonzero(data.f == 1)
    record = record[np.argsort(row[data.combination[record]], kind="stable")]
    return data, cells, row, record


@pytest.mark.parametrize("missing", ["own", "wildcard"])
def test_the_ratio_is_that_of_counts_without_the_household(missing: str) -> None:
    """By hand: the mean of g over phi and eta given all classes, with the household and without."""
    frame = homes(60)
    frame.loc[::17, "job"] = None
    data, cells, row, record = prepared(frame, missing)
    rest = hh.companions_of(data, row, record)
    rng = np.random.default_rng(2)
    state = start_state(rng, cells, 5)
    for j, finest in enumerate(state.resolution[:, 0]):
        state.resolution[j] = rng.integers(0, finest + 1, 5)
    labels, counts = hh.label_records(rng, cells.rows, cells.shared, cells.records, state)
    before = counts.level.copy()
    unique = row[data.combination[record]]
    found = hh.without_household(unique, cells.start, cells.rows, *rest, labels, state, counts)
    np.testing.assert_array_equal(counts.level, before)
    cell_of = np.repeat(np.arange(len(cells.rows)), cells.records)

    sizes = np.diff(cells.start)
    bands = [bands_of(int(size)) for size in sizes]

    def learned(j: int, d: int, level: int, kept: np.ndarray) -> float:
        """What the node above a level after d halvings is learned from: tables, or records."""
        node = np.flatnonzero(bands[j][d][level])
        total = 0.5 * len(node)
        for h in range(5):
            s = state.resolution[j, h]
            here = cells.rows[cell_of[kept & (labels == h)], j] - cells.start[j]
            if d > s:
                total += np.isin(here, node).sum()
                continue
            for band in {tuple(np.flatnonzero(bands[j][s][k])) for k in node}:
                shape = state.strength[j] * state.base[cells.start[j] + np.array(band)].sum()
                total += (shape / (shape + np.arange(np.isin(here, band).sum()))).sum()
        return float(total)

    def split(j: int, d: int, level: int, kept: np.ndarray) -> float:
        """Mean of the share of that node in the one above it."""
        above = np.flatnonzero(bands[j][d - 1][level])
        halves = {tuple(np.flatnonzero(bands[j][d][k])) for k in above}
        return learned(j, d, level, kept) / sum(learned(j, d, half[0], kept) for half in halves)

    def base(j: int, d: int, level: int, kept: np.ndarray) -> float:
        """The m of that node, changed as its mean is by leaving people out."""
        m = state.base[cells.start[j] + np.flatnonzero(bands[j][d][level])].sum()
        for e in range(1, 1 if kept.all() else d + 1):
            m *= split(j, e, level, kept) / split(j, e, level, everybody)
        return float(m)

    def mean(x: np.ndarray, kept: np.ndarray) -> float:
        total = 0.0
        for h in range(5):
            members = cells.rows[cell_of[kept & (labels == h)]]
            value = (len(members) + state.alpha[0] / 5) / (kept.sum() + state.alpha[0])
            for j in np.flatnonzero(x >= 0):
                level, s, b = int(x[j] - cells.start[j]), state.resolution[j, h], state.strength[j]
                alone = base(j, len(bands[j]) - 1, level, kept)
                if s > 0:
                    band = base(j, s, level, kept)
                    same = np.flatnonzero(bands[j][s][level]) + cells.start[j]
                    value *= np.isin(members[:, j], same).sum() + b * band
                    value *= alone / band / ((members[:, j] >= 0).sum() + b)
                else:
                    value *= alone
            total += value
        return total

    everybody = np.ones(len(labels), dtype=bool)
    for i in range(0, len(unique), 6):
        kept = everybody.copy()
        kept[rest.place[rest.first[i] : rest.first[i + 1]]] = False
        x = cells.rows[unique[i]]
        assert found[i] == pytest.approx(np.log(mean(x, kept) / mean(x, everybody)), abs=1e-9)


@pytest.mark.parametrize(("customers", "strength"), [(0, 0.3), (1, 5.0), (90, 0.02), (4000, 2.5)])
def test_expected_tables(customers: int, strength: float) -> None:
    exact = (strength / (strength + np.arange(customers))).sum()
    assert hh.expected_tables(customers, strength) == pytest.approx(exact, rel=1e-5)


def test_companions_are_the_others_of_the_home() -> None:
    data, cells, row, record = prepared(homes(200))
    rest = hh.companions_of(data, row, record)
    assert data.household is not None
    for i, one in enumerate(record):
        others = np.flatnonzero(data.household == data.household[one])
        others = others[others != one]
        cell = rest.cell[rest.first[i] : rest.first[i + 1]]
        assert sorted(cell) == sorted(row[data.combination[others]])
        place = rest.place[rest.first[i] : rest.first[i + 1]]
        assert len(set(place)) == len(others)
        np.testing.assert_array_equal(np.repeat(np.arange(len(row)), cells.records)[place], cell)


def test_people_who_live_alone_are_as_without_households() -> None:
    frame = homes(60).assign(home=lambda part: part.index.astype(str))
    alone = latent_class_risk(prepared(frame)[0], population_size=900, seed=1)
    plain = latent_class_risk(read_microdata(frame, keys=KEYS), population_size=900, seed=1)
    assert alone.tau1 == plain.tau1
    pd.testing.assert_frame_equal(alone.records, plain.records)


def test_the_order_of_the_file_does_not_matter() -> None:
    frame = homes(60)
    mixed = frame.sample(frac=1.0, random_state=3)
    one = latent_class_risk(prepared(frame)[0], population_size=900, seed=1, cores=1)
    two = latent_class_risk(prepared(mixed)[0], population_size=900, seed=1, cores=2)
    assert one.tau1 == two.tau1
    moved = two.records.set_axis(mixed.index[two.records.index]).sort_index()
    np.testing.assert_array_equal(moved.to_numpy(), one.records.to_numpy())


@pytest.mark.slow
def test_families_from_far_away_are_rarer_than_they_look() -> None:
    """Whole homes at 6 %, of which three in ten are the only one from their place.

    Four of a family look like four of seventy people from their place, who are all of it.
    """
    people = homes(8000, seed=7)
    rng = np.random.default_rng(8)
    home = people["home"].astype(int).to_numpy()
    far = (rng.random(8000) < 0.3)[home]
    people["place"] = np.where(far, "far " + people["home"], people["place"])
    people["age"] = rng.integers(0, 40, 8000).astype(str)
    F = people.groupby(KEYS)["home"].transform("size").to_numpy()
    taken = (rng.random(8000) < 0.06)[home]
    sample, own = people[taken].reset_index(drop=True), F[taken]
    found = {}
    for household in ("home", None):
        data = read_microdata(sample, keys=KEYS, household=household)
        risk = latent_class_risk(data, population_size=8000, seed=1)
        found[household] = risk.records["P_unique"][far[taken][risk.records.index]].mean()
        assert any(("sampled" in note or "whole" in note) for note in risk.notes)
    truth = (own[far[taken] & (data.f == 1)] == 1).mean()
    assert found[None] < found["home"] < 1.0
    assert truth - found["home"] < 0.6 * (truth - found[None])


def test_members_who_are_alike_count_once_for_how_common_they_are() -> None:
    """Two spouses of one age are one draw of the population, not two that agree."""
    frame = pd.DataFrame(
        {"place": list("aaabb"), "age": list("11133"), "job": list("xxxyy"), "home": list("11233")}
    )
    data, cells, row, _ = prepared(frame)
    count = households_with(data, row, cells.records)
    assert cells.records.tolist() == [3, 2]
    assert count.tolist() == [2, 1]
    alone = read_microdata(frame, keys=KEYS)
    assert households_with(alone, row, cells.records) is cells.records


@pytest.mark.parametrize(("shared", "trusted"), [(1, True), (3, False)])
def test_households_that_share_several_keys_are_not_trusted(shared: int, trusted: bool) -> None:
    """It was too low by a third, and called trusted."""
    frame = homes(700)
    for key in KEYS[1:shared]:
        frame[key] = frame.groupby("home")[key].transform("first")
    data = read_microdata(frame, keys=KEYS, household="home")
    assert nearly_shared_keys(data) == shared
    found = latent_class_risk(data, population_size=4000, seed=1)
    said = [check for check in found.checks if check.key == "classes_households"]
    assert bool(said) is not trusted
    assert not (said and found.trusted)
    if said:
        assert "too low by a third" in said[0].reason
