"""Shares of totals, and counts over what is expected, give counts beside the safe ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.flows.kept_columns.levels import from_levels, from_shares

ALARM = np.log(1e-4)


def counts(seed: int, areas: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts of all pairs of some areas, and their areas."""
    rng = np.random.default_rng(seed)
    o, d = np.divmod(np.arange(areas * areas), areas)
    rate = np.outer(rng.lognormal(1, 0.7, areas), rng.lognormal(1, 0.7, areas)).ravel()
    return 1.0 + rng.poisson(rate), o, d


def strongest(x: np.ndarray, count: np.ndarray, key: np.ndarray) -> float:
    found = from_shares(x, count, count < 10, count >= 10, {"area": key})
    return min((one.log_chance for one in found), default=0.0)


@given(
    st.integers(0, 2**31),
    st.sampled_from([2, 3, 5, 9]),
    st.sampled_from([1.0, 100.0, 0.37]),
    st.booleans(),
)
def test_rounded_shares_of_totals_are_seen_beside_safe_counts(seed, digits, scale, inverse):
    """The total is nowhere, and the safe counts over their shares are the total."""
    count, origin, _ = counts(seed)
    total = np.bincount(origin, count)[origin]
    x = np.round(scale * (total / count if inverse else count / total), digits)
    assert strongest(x, count, origin) < ALARM


@given(st.integers(0, 2**31), st.integers(0, 4))
def test_numbers_that_go_with_no_total_are_no_shares(seed, digits):
    count, origin, _ = counts(seed)
    rng = np.random.default_rng(seed + 1)
    for x in (rng.uniform(0, 1, len(count)), rng.lognormal(3, 1, len(count))):
        assert strongest(np.round(x, digits), count, origin) > ALARM


def test_bounds_of_shares_are_those_of_all_totals_and_counts_that_round_to_them():
    """By brute force: every total with these safe counts and shares, and every count with it."""
    count = np.array([2.0, 7.0, 31.0, 5.0, 18.0])
    x = np.round(count / 63, 2)
    left = []
    for total in np.arange(40, 90, 0.01):
        if all(round(n / total, 2) == s for n, s in zip(count[[2, 4]], x[[2, 4]], strict=True)):
            left += [
                {n for n in range(1, 10) if round(n / total, 2) == share} for share in x[[0, 1, 3]]
            ]
    possible = [set().union(*left[cell::3]) for cell in range(3)]
    key = {"all": np.zeros(5, np.intp)}
    found = next(iter(from_shares(x, count, count < 10, count >= 10, key)))
    # of the three small counts, the share that lies within the bounds of each
    kept = [sum(n in some for n in (2, 7, 5)) / 3 for some in possible]
    assert found.log_chance == pytest.approx(np.log(kept).sum())


@given(st.integers(0, 2**31), st.sampled_from(["ratio", "inverse", "residual", "less"]))
def test_counts_over_or_less_what_areas_lead_to_expect_are_seen(seed, how):
    count, o, d = counts(seed, areas=16)
    rows, columns = (np.bincount(end, count) for end in (o, d))
    product = rows[o] * columns[d] / count.sum()
    plus = rows[o] / 16 + columns[d] / 16
    x = {
        "ratio": count / product, "inverse": product / count,
        "residual": count - plus, "less": plus - count,
    }[how]  # fmt: skip
    small = count < 10
    has_safe = np.bincount(o, ~small, 16)[o] * np.bincount(d, ~small, 16)[d] > 0
    if (small & has_safe).sum() < 0.9 * small.sum():
        return  # levels of areas without a safe count cannot be read
    found = from_levels(np.round(x, 6), count, small, ~small, [o, d])
    assert found is not None
    alone = from_levels(np.ones(len(count)), count, small, ~small, [o, d])
    assert alone is not None
    assert alone.share == 0.0, "areas alone give nothing beyond themselves"
    if how in ("ratio", "inverse"):
        assert found.share > 0.5
    rng = np.random.default_rng(seed)
    shuffled = from_levels(rng.permutation(x), count, small, ~small, [o, d])
    assert shuffled is not None
    assert shuffled.share < 0.5
