"""Chains of the largest files begin with a part of the records."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.latent_classes import gibbs
from bayes_sdc.microdata.latent_classes.combinations import Cells, cells_of
from bayes_sdc.microdata.latent_classes.gibbs import Plan, part_of, plan_for, run_chains
from bayes_sdc.microdata.latent_classes.sample import sample_of


@pytest.fixture
def people() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    kind = rng.integers(0, 3, 3000)
    columns = {f"k{j}": (rng.poisson(1 + kind * (j % 2 + 1)) % 7).astype(str) for j in range(5)}
    return pd.DataFrame(columns)


def same_beginnings(cells: Cells) -> list[int]:
    return [
        next((j for j, (a, b) in enumerate(zip(one, other, strict=True)) if a != b), len(one))
        for one, other in zip(cells.rows[:-1], cells.rows[1:], strict=True)
    ]


def test_a_part_has_a_tenth_of_the_records_and_true_beginnings(people: pd.DataFrame) -> None:
    """The products of a combination go on from those of its neighbour: what is shared must be."""
    whole = cells_of(read_microdata(people, keys=list(people)))
    part = part_of(np.random.default_rng(1), whole)
    assert 220 < part.records.sum() < 380
    assert part.records.min() == 1
    assert part.shared.tolist() == [0, *same_beginnings(part)]
    before = {tuple(row): n for row, n in zip(whole.rows, whole.records, strict=True)}
    assert all(n <= before[tuple(row)] for row, n in zip(part.rows, part.records, strict=True))
    np.testing.assert_array_equal(whole.place[:0], part.place[:0])
    np.testing.assert_array_equal(part.start, whole.start)


def test_chains_that_begin_with_a_part_end_where_the_others_do(people: pd.DataFrame) -> None:
    sample = sample_of(read_microdata(people, keys=list(people)), 30_000.0).sample
    late, early = (
        np.mean([chain.totals[:, :, :2].mean(axis=(0, 1)) for chain in run_chains(
            sample, Plan(40, after, 40, 5, early=before), seed=1, threads=2
        )], axis=0)
        for before, after in ((0, 200), (200, 40))
    )  # fmt: skip
    np.testing.assert_allclose(early, late, rtol=0.08)


def test_the_order_of_records_and_the_threads_change_nothing(people: pd.DataFrame) -> None:
    plan = Plan(10, 5, 2, 2, early=30)
    found = [
        run_chains(sample_of(read_microdata(each, keys=list(each)), 30_000.0).sample, plan,
                   seed=1, threads=threads)
        for each, threads in ((people, 1), (people.sample(frac=1, random_state=1), 3))
    ]  # fmt: skip
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one.monitors, other.monitors)
        np.testing.assert_array_equal(one.totals, other.totals)


def test_only_the_largest_files_begin_so() -> None:
    assert [plan_for(n, n // 2).early > 0 for n in (300, 5000, 60_000, 400_000)] == [
        False, False, False, True,
    ]  # fmt: skip
    assert gibbs.PART * plan_for(10**6, 6 * 10**5).early < 50
