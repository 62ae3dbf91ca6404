"""Local suppression: it reaches what it says, and the cheapest set is the cheapest of all."""

import itertools
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import milp

from bayes_sdc import InputError, read_microdata, suda
from bayes_sdc.microdata.treatment import suppression
from bayes_sdc.microdata.treatment.suppression import (
    cheapest,
    count_strictly,
    suppress_special_uniques,
    suppress_to_k,
)


def file(
    seed: int, rows: int, keys: int = 3, levels: int = 3, missing: float = 0.0, rule="wildcard"
):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, levels, (rows, keys)), columns=list("abcdefgh")[:keys])
    frame = frame.astype(str)
    if missing:
        frame = frame.mask(rng.random(frame.shape) < missing)
    return read_microdata(frame, keys=list(frame.columns), missing=rule)


def counted(codes: np.ndarray) -> np.ndarray:
    """The rule "conservative" by its definition: who has all my values."""
    return np.array([((row < 0) | (codes == row)).all(axis=1).sum() for row in codes])


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.2]))
def test_the_count_is_that_of_the_rule(seed: int, missing: float) -> None:
    """Both by the definition and as files are read."""
    data = file(seed, 12, missing=missing, rule="conservative")
    assert (count_strictly(data, data.codes) == counted(data.codes)).all()
    assert (counted(data.codes) == data.f).all()


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from([0.0, 0.1]))
@pytest.mark.parametrize("rule", ["wildcard", "conservative"])
def test_afterwards_every_record_counts_k(rule, seed: int, k: int, missing: float) -> None:
    data = file(seed, 40, keys=4, missing=missing, rule=rule)
    found = suppress_to_k(data, k, costs={"a": 3.0}, exact=False)
    after = data.with_codes(np.where(found.hidden, -1, data.codes).astype(np.int32))
    assert (after.f >= k).all()
    assert (counted(after.codes) >= k).all()
    assert found.bound is not None
    assert found.bound <= found.cost
    assert (counted(data.codes)[~found.hidden.any(axis=1)] >= k).all()


def in_households(seed: int, rule: str):
    """A key that members share, two that they do not, and values that are missing."""
    rng = np.random.default_rng(seed)
    home = rng.integers(0, 20, 45)
    frame = pd.DataFrame(rng.integers(0, 3, (45, 3)), columns=list("abc")).astype(str)
    frame["a"] = rng.choice(list("1234"), 20, p=[0.6, 0.2, 0.1, 0.1])[home]
    frame = frame.mask(rng.random(frame.shape) < rng.choice([0.0, 0.1])).assign(home=home)
    return read_microdata(frame, keys=list("abc"), household="home", missing=rule)


def read_off_members(data, codes: np.ndarray) -> np.ndarray:
    """Each missing value of the shared key replaced by that of another member, if one shows it."""
    filled = codes.copy()
    for i in range(len(codes)):
        mates = codes[data.household == data.household[i], 0]
        filled[i, 0] = mates.max()
    return filled


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.integers(2, 5))
@pytest.mark.parametrize("rule", ["wildcard", "conservative"])
def test_other_members_of_the_household_do_not_undo_it(rule, seed: int, k: int) -> None:
    """A suppressed region stood beside that of the others, and records counted fewer than k."""
    data = in_households(seed, rule)
    found = suppress_to_k(data, k, costs={"b": 2.0})
    codes = np.where(found.hidden, -1, data.codes).astype(np.int32)
    assert (counted(codes) >= k).all()
    told = read_off_members(data, codes)
    assert (counted(told) >= k).all()
    assert not ((told >= 0) & found.hidden).any()
    assert found.cost == pytest.approx((found.hidden * [1.0, 2.0, 1.0]).sum())
    assert found.bound <= found.cost


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10_000))
@pytest.mark.parametrize("rule", ["wildcard", "conservative"])
def test_members_of_the_household_show_no_special_unique(rule, seed: int) -> None:
    data = in_households(seed, rule)
    found = suppress_special_uniques(data, 2)
    codes = np.where(found.hidden, -1, data.codes).astype(np.int32)
    for view in (codes, read_off_members(data, codes)):
        after = data.with_codes(view)
        if (after.f == 1).any():
            assert suda(after, max_size=2).minimal_sample_uniques().empty


def brute_force(data, k: int, prices: np.ndarray) -> float:
    """Cost of the cheapest of all sets of values."""
    cells = np.argwhere(data.codes >= 0)
    best = np.inf
    for chosen in itertools.product([False, True], repeat=len(cells)):
        cost = float(prices[cells[np.array(chosen), 1]].sum())
        if cost < best:
            codes = data.codes.copy()
            codes[tuple(cells[np.array(chosen)].T)] = -1
            if (counted(codes) >= k).all():
                best = cost
    return best


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_the_cheapest_set_is_that_of_brute_force(seed: int, k: int) -> None:
    data = file(seed, 4, keys=2)
    prices = np.array([1.0, 1.5])
    exact = suppress_to_k(data, k, costs={"b": 1.5}, exact=True)
    assert exact.cost == pytest.approx(brute_force(data, k, prices))
    assert exact.bound == pytest.approx(exact.cost)


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_the_cheapest_set_costs_no_more_than_the_heuristic(seed: int, k: int) -> None:
    data = file(seed, 9)
    fast, exact = suppress_to_k(data, k, exact=False), suppress_to_k(data, k, exact=True)
    assert fast.bound is not None
    assert fast.bound <= exact.cost + 1e-6
    assert exact.cost <= fast.cost + 1e-6
    codes = np.where(exact.hidden, -1, data.codes)
    assert (counted(codes) >= k).all()


def test_the_search_starts_from_nothing_better_than_it_finds() -> None:
    """It may not return the start where a cheaper set exists."""
    data = file(3, 8)
    start = data.codes >= 0
    hidden, cost, bound = cheapest(data.codes, 2, np.ones(3), start)
    assert cost < start.sum()
    assert bound == cost == hidden.sum()


def test_a_search_that_ends_early_tells_no_less_than_the_simple_bound(monkeypatch) -> None:
    """Each unique record must lose a value; the search's own bound may not know that yet."""
    monkeypatch.setattr(suppression, "NODES", 0.0)
    data = file(3, 25, keys=4, levels=4)
    found = suppress_to_k(data, 2, exact=True)
    assert found.bound is not None
    assert found.cost >= found.bound >= data.sample_uniques > 5


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000))
@pytest.mark.parametrize("rule", ["wildcard", "conservative"])
def test_no_special_unique_is_left(rule, seed: int) -> None:
    data = file(seed, 60, keys=4, levels=4, rule=rule)
    found = suppress_special_uniques(data, 2)
    after = data.with_codes(np.where(found.hidden, -1, data.codes).astype(np.int32))
    if (after.f == 1).any():
        assert suda(after, max_size=2).minimal_sample_uniques().empty


def test_a_large_file_takes_seconds() -> None:
    rng = np.random.default_rng(1)
    columns = {
        name: np.minimum(rng.geometric(0.35, 100_000), levels).astype(str)
        for name, levels in zip("abcdefgh", (2, 3, 4, 5, 6, 8, 9, 9), strict=True)
    }
    data = read_microdata(pd.DataFrame(columns), keys=list("abcdefgh"))
    suppress_to_k(file(1, 50), 3, exact=False)  # compiles
    begun = time.perf_counter()
    found = suppress_to_k(data, 3)
    taken = time.perf_counter() - begun
    print(f"{taken:.1f} s, {found.cost:,.0f} values, bound {found.bound:,.0f}")
    after = np.where(found.hidden, -1, data.codes).astype(np.int32)
    assert (count_strictly(data, after) >= 3).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [({"k": 1}, "from 2"), ({"k": 99}, "from 2"), ({"k": 2, "costs": {"z": 1.0}}, "not a key"),
     ({"k": 2, "costs": {"a": 0.0}}, "above 0")],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(options, words) -> None:
    with pytest.raises(InputError, match=words):
        suppress_to_k(file(1, 20), **options)


def test_a_suppressed_value_is_no_category() -> None:
    with pytest.raises(InputError, match="wildcard"):
        suppress_to_k(file(1, 20, rule="own"), 2)


def test_the_search_ends_by_its_tree_and_not_by_the_clock(monkeypatch) -> None:
    """Sixty seconds of wall time ended it, so another machine could suppress other values."""
    given = []

    def watched(*arguments, options, **named):
        given.append(set(options))
        return milp(*arguments, options=options, **named)

    monkeypatch.setattr(suppression, "milp", watched)
    data = file(3, 8)
    cheapest(data.codes, 2, np.ones(3), data.codes >= 0)
    assert given == [{"node_limit"}]
