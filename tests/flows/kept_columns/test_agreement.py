"""Columns held against many statistics at once: each as if it were the only one."""

import numpy as np
import pytest
from scipy.special import gammaln

from bayes_sdc.flows.kept_columns.agreement import alike, log_chances
from bayes_sdc.flows.kept_columns.numbers import last_digit


def by_the_words(values: np.ndarray, statistic: np.ndarray) -> float:
    """The definition for one statistic, area by area."""
    known = [k for k, value in enumerate(values) if np.isfinite(value)]
    values, statistic = values[known], statistic[known]
    n = len(known)
    if n < 3:
        return 0.0
    half = 0.5 * last_digit(values) * (1 + 1e-9) + 1e-9
    chance = sum(gammaln((values == one).sum() + 1) for one in set(values)) - gammaln(n + 1)
    for scale in (1.0, 100.0, 1000.0):
        if sum(abs(v - scale * s) <= half for v, s in zip(values, statistic, strict=True)) >= (
            0.95 * n
        ):
            return float(chance)
    if len(set(statistic)) < 6:
        return 0.0
    order = sorted(range(n), key=lambda k: (statistic[k], k))
    apart = n // 2
    pairs = [(order[k], order[k + apart]) for k in range(n - apart)]
    pairs = [(low, high) for low, high in pairs if statistic[high] > statistic[low]]
    if not pairs:
        return 0.0
    runs = [statistic[high] - statistic[low] for low, high in pairs]
    slope = np.median(
        [(values[h] - values[low]) / run for (low, h), run in zip(pairs, runs, strict=True)]
    )
    if slope == 0.0 or abs(slope) * np.ptp(statistic) < 40.0 * half:
        return 0.0
    start = np.median(values - slope * statistic)
    more = half * np.abs(statistic - np.median(statistic)) / np.median(runs)
    near = np.abs(values - start - slope * statistic) <= half + more + 1e-9 * np.abs(values).max()
    return float(min(chance + 2.0 * np.log(n), 0.0)) if near.mean() >= 0.95 else 0.0


@pytest.mark.parametrize("seed", range(8))
def test_each_of_many_statistics_is_judged_as_if_it_were_the_only_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(60):
        n = int(rng.integers(3, 40))
        kinds = [rng.integers(0, 50, (4, n)), rng.gamma(1.0, 100.0, (4, n)).round(2)]
        statistics = np.vstack([*kinds, rng.integers(0, 4, (4, n))]).astype(float)
        values = statistics[rng.integers(12)] * rng.choice([1.0, 100.0, -2.5, 0.1])
        values += rng.choice([0.0, 7.0, 1000.0]) + rng.choice([0.0, 0.3]) * rng.normal(size=n)
        values = values.round(int(rng.integers(0, 3)))
        values[rng.random(n) < 0.05] = np.nan
        told = log_chances(values, statistics)
        alone = [by_the_words(values, one) for one in statistics]
        np.testing.assert_allclose(told, alone, rtol=1e-9, atol=1e-9)
        found += (told < 0.0).sum()
    assert found > 10  # else nothing was compared


def test_statistics_of_the_same_areas_stand_together_in_their_places() -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 5, (9, 7)).astype(float)
    rows[::2, 3], rows[4, :] = np.nan, np.nan
    for one in alike(rows):
        for place, values, ranks in zip(one.places, one.values, one.ranks, strict=True):
            np.testing.assert_array_equal(rows[place][one.known], values)
            assert np.isnan(rows[place][~one.known]).all()
            np.testing.assert_array_equal(np.unique(values)[ranks], values)
    assert sorted(np.concatenate([one.places for one in alike(rows)])) == list(range(9))
