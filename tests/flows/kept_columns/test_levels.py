"""Shares of totals, and counts over what is expected, give counts beside the safe ones."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import read_flows
from bayes_sdc.flows.kept_columns.check import check_columns
from bayes_sdc.flows.kept_columns.levels import from_levels, from_shares, left_over
from bayes_sdc.flows.kept_columns.selection import select_columns

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


def beside_areas(seed, how, areas, share, scale):
    """A table whose column is the count beside a secret level of each of its areas."""
    rng = np.random.default_rng(seed)
    o, d = np.divmod(np.arange(areas**2), areas)
    there = (o != d) & (rng.random(len(o)) < 0.8)
    o, d = o[there], d[there]
    small, safe = rng.integers(1, 10, len(o)), rng.integers(10, 300, len(o))
    n = np.where(rng.random(len(o)) < share, small, safe)
    level = scale * rng.random((2, areas))
    x = {
        "plus": n + level[0][o] + level[1][d],
        "less": level[0][o].round() + level[1][d].round() - n,
        "times": n * np.exp(level[0][o] / scale) * np.exp(level[1][d] / scale),
        "noise": rng.normal(size=len(o)) + level[0][o] + level[1][d],
        "none": level[0][o] + level[1][d],
    }[how]
    codes = [f"A{k:03d}" for k in range(areas)]
    frame = {"o": np.take(codes, o), "d": np.take(codes, d), "n": n, "x": x}
    return read_flows(pd.DataFrame(frame), origin="o", destination="d", count="n")


@pytest.mark.parametrize("how", ["plus", "less", "times"])
@pytest.mark.parametrize("share", [0.3, 0.9])
@settings(max_examples=4)
@given(st.integers(0, 10_000), st.sampled_from([12, 25]), st.sampled_from([1.0, 30.0, 1e6]))
def test_counts_beside_a_secret_level_of_each_area_are_seen(how, share, seed, areas, scale):
    """Levels cancel in differences of differences, whether safe counts give them or not."""
    table = beside_areas(seed, how, areas, share, scale)
    found = check_columns(table, select_columns(table, ["x"]))
    assert found.verdict == "fail", found.reason


@pytest.mark.parametrize("how", ["noise", "none"])
@settings(max_examples=5)
@given(st.integers(0, 10_000), st.sampled_from([1.0, 30.0, 1e6]))
def test_levels_of_areas_without_the_count_raise_no_alarm(how, seed, scale):
    table = beside_areas(seed, how, 20, 0.8, scale)
    found = check_columns(table, select_columns(table, ["x"]))
    assert found.verdict != "fail", found.reason
    assert "level" not in found.reason


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(2, 40), st.booleans())
def test_what_levels_leave_is_that_of_dense_least_squares(seed, rows, both):
    rng = np.random.default_rng(seed)
    ends = [rng.integers(0, 6, rows) for _ in range(2 if both else 1)]
    x = rng.normal(size=rows)
    design = np.column_stack([end[:, None] == np.arange(6) for end in ends]).astype(float)
    exact = x - design @ np.linalg.lstsq(design, x, rcond=None)[0]
    left, free = left_over(x, ends)
    assert np.allclose(left, exact, atol=1e-8)
    assert free == rows - np.linalg.matrix_rank(design)
