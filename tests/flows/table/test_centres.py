"""Centres that come from the protected table are refused, however they are dressed."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import InputError, read_flows
from bayes_sdc.flows.table.centres import bundled_shares, own_shares, resolve_bound
from bayes_sdc.flows.table.read import FlowTable

AREAS = [f"{number:02d}" for number in range(16)]


def frame_of(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame([(a, b) for a in AREAS for b in AREAS if a != b], columns=["o", "d"])
    return frame.assign(
        n=rng.choice(np.arange(1, 11), len(frame), p=[*bundled_shares() * 0.6, 0.4])
    )


def read(frame: pd.DataFrame) -> FlowTable:
    return read_flows(frame, origin="o", destination="d", count="n")


def numbers(table: FlowTable) -> np.ndarray:
    return np.bincount(table.cells["y"], minlength=9).astype(float)


@pytest.mark.parametrize("dressed", ["twice", "one more", "turned and one more", "one less"])
def test_a_file_with_the_shares_of_the_table_is_refused(tmp_path, dressed: str) -> None:
    """With other codes, one row more or every row twice it was taken for another table."""
    frame = frame_of(1)
    other = frame.assign(o="x" + frame["o"], d="x" + frame["d"])
    if dressed == "twice":
        other = pd.concat([other, frame.assign(o="y" + frame["o"], d="y" + frame["d"])])
    elif dressed == "one less":
        other = other.iloc[1:]
    else:
        more = pd.DataFrame({"o": ["z"], "d": ["w"], "n": [3]})
        other = pd.concat([other, more])
        if dressed.startswith("turned"):
            other = other.rename(columns={"o": "d", "d": "o"})
    path = tmp_path / "other.csv"
    other.to_csv(path, index=False)
    with pytest.raises(InputError, match=r"centres: .*protected"):
        resolve_bound(read(frame), 1.0, str(path))


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.0, 50.0), st.floats(-1e-5, 1e-5))
def test_shares_made_from_those_of_the_table_are_refused(seed, more, off) -> None:
    """A number added to each, or one share moved a little."""
    table = read(frame_of(seed))
    made = numbers(table) + more
    made = made / made.sum()
    assert own_shares(table, made)
    moved = numbers(table) / table.n_small
    moved[0] += off
    assert own_shares(table, moved)


def test_another_year_is_accepted_in_nearly_all_cases(tmp_path) -> None:
    """Two draws from the same shares are the nearest that two years can honestly be."""
    table = read(frame_of(0))
    refused = sum(own_shares(table, numbers(read(frame_of(seed)))) for seed in range(1, 400))
    assert refused <= 2
    frame_of(7).to_csv(tmp_path / "year.csv", index=False)
    bound, words = resolve_bound(table, 1.0, str(tmp_path / "year.csv"))
    assert bound is not None
    assert "year.csv" in words
    assert not own_shares(table, bundled_shares())
