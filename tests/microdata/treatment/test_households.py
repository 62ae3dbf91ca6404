"""What members of a household tell of each other, by its definition."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import read_microdata
from bayes_sdc.microdata.treatment.households import (
    filled_in,
    shared_keys,
    spread_over_households,
)


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
