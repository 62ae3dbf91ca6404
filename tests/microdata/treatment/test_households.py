"""What members of a household tell of each other, by its definition."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import read_microdata
from bayes_sdc.microdata.latent_classes.clusters import AGREE_IN, agreement
from bayes_sdc.microdata.treatment.households import (
    filled_in,
    shared_keys,
    spread_over_households,
)
from bayes_sdc.microdata.treatment.kept import kept_checks
from bayes_sdc.microdata.treatment.suppression import suppress_to_k


def homes(seed: int, rule: str = "wildcard"):
    """Households of up to three with a region in common, where some values are missing."""
    rng = np.random.default_rng(seed)
    home = np.sort(rng.integers(0, 8, 16))
    frame = pd.DataFrame({"region": rng.choice(list("abc"), 8)[home], "sex": rng.choice(["m"], 16)})
    frame["age"] = rng.integers(0, 3, 16).astype(str)
    frame = frame.mask(rng.random(frame.shape) < 0.15).assign(home=home)
    return read_microdata(frame, keys=["region", "sex", "age"], household="home", missing=rule)


@given(st.integers(0, 10_000))
@pytest.mark.parametrize("rule", ["wildcard", "own"])
def test_a_key_is_shared_where_no_two_members_differ(rule: str, seed: int) -> None:
    """A member whose value is missing is no second value, unless missing is one of its own."""
    data = homes(seed, rule)
    for j, found in enumerate(shared_keys(data)):
        pairs = [
            data.codes[i, j] == data.codes[k, j]
            for i in range(data.n)
            for k in range(i)
            if data.household[i] == data.household[k]
            and (rule == "own" or min(data.codes[i, j], data.codes[k, j]) >= 0)
        ]
        assert found == (bool(pairs) and all(pairs))


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_what_is_hidden_of_one_member_is_read_off_no_other(seed: int, other: int) -> None:
    data = homes(seed)
    hidden = np.random.default_rng(other).random(data.codes.shape) < 0.2
    hidden = spread_over_households(data, hidden & (data.codes >= 0))
    left = data.with_codes(np.where(hidden, -1, data.codes).astype(np.int32))
    shared = shared_keys(data)
    told = filled_in(left)[:, shared] >= 0
    assert not (told & hidden[:, shared]).any()
    assert (filled_in(data)[:, ~shared] == data.codes[:, ~shared]).all()


def near(seed: int, share: float, homes: int = 60):
    """Households of three who share a region; in a part of them one member differs."""
    rng = np.random.default_rng(seed)
    home = np.repeat(np.arange(homes), 3)
    region = rng.integers(0, 8, homes)[home]
    moved = rng.permutation(homes)[: round((1.0 - share) * homes)] * 3
    region[moved] = (region[moved] + 1) % 8
    frame = pd.DataFrame({"region": region, "sex": rng.choice(["m", "f"], 3 * homes)}).astype(str)
    frame["age"] = rng.integers(0, 4, 3 * homes).astype(str)
    return frame.mask(rng.random(frame.shape) < 0.02).assign(home=home)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.91, 1.0), st.integers(2, 4))
def test_a_member_who_differs_in_one_household_lets_no_other_be_read(seed, share, k) -> None:
    """One moved member made the key person by person: 33 of 33 suppressed regions were read off."""
    data = read_microdata(near(seed, share), keys=["region", "sex", "age"], household="home")
    assert shared_keys(data).tolist() == [True, False, False]
    hidden = suppress_to_k(data, k).hidden[:, 0]
    shown = set(data.household[~hidden & (data.codes[:, 0] >= 0)])
    assert not shown & set(data.household[hidden])


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10_000), st.floats(0.91, 1.0))
def test_kept_households_do_not_show_a_key_that_nearly_all_of_them_share(seed, share) -> None:
    frame = near(seed, share)
    data = read_microdata(frame, keys=["region", "sex", "age"], household="home")
    hidden = np.zeros(data.codes.shape, dtype=bool)
    hidden[seed % 30, 0] = data.codes[seed % 30, 0] >= 0

    def verdict(method: str, flags: np.ndarray, codes: np.ndarray) -> str:
        done = SimpleNamespace(data=data, method=method, hidden=flags, codes=codes[None])
        (found,) = kept_checks(done, frame, ["home"])
        return found.verdict

    gone = np.where(hidden, -1, data.codes).astype(np.int32)
    others = data.household == data.household[seed % 30]
    told = hidden.any() and (data.codes[others, 0] >= 0).sum() > 1
    assert verdict("suppression", hidden, gone) == ("fail" if told else "look")
    assert verdict("pram", hidden, gone) == ("fail" if hidden.any() else "look")
    wide = spread_over_households(data, hidden)
    gone = np.where(wide, -1, data.codes).astype(np.int32)
    assert verdict("suppression", wide, gone) == "look"


def test_a_key_that_most_people_have_in_one_level_is_not_shared() -> None:
    """Of 97 % without a pension nearly all households agree, and no member tells it of another."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"pension": rng.choice(["no", "yes"], 600, p=[0.97, 0.03])})
    frame = frame.assign(home=np.repeat(np.arange(300), 2), age=rng.integers(0, 5, 600).astype(str))
    data = read_microdata(frame, keys=["pension", "age"], household="home")
    assert agreement(data)[0] > AGREE_IN
    assert not shared_keys(data).any()


@given(st.integers(0, 10_000))
def test_what_is_missing_is_read_from_most_members(seed: int) -> None:
    frame = near(seed, 0.95)
    data = read_microdata(frame, keys=["region", "sex", "age"], household="home")
    filled = filled_in(data)
    known = data.codes >= 0
    assert (filled[known] == data.codes[known]).all()
    for i in np.flatnonzero(~known[:, 0]):
        mates = data.codes[(data.household == data.household[i]) & known[:, 0], 0]
        times = (mates[:, None] == mates).sum(axis=1)
        assert filled[i, 0] == (mates[times == times.max()].max() if len(mates) else -1)
