"""Recodings: what becomes of levels, what they cost, and what they take from the risk."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import InputError, Intruder, read_microdata
from bayes_sdc.microdata.treatment.population import probabilities
from bayes_sdc.microdata.treatment.recoding import (
    band,
    bottom,
    candidates,
    merged_states,
    rank_recodings,
    read_hierarchy,
    read_recoding,
    recode,
    top,
)
from bayes_sdc.microdata.treatment.setting import prepare
from bayes_sdc.microdata.treatment.states import States, layout_of


def people(seed: int = 1, rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"age": rng.integers(15, 90, rows), "place": rng.choice(list("abcde"), rows)}
    )
    return frame.astype(str).mask(rng.random((rows, 2)) < 0.03)


@given(st.integers(0, 1000), st.sampled_from([2, 5, 10, 20]))
def test_bands_hold_the_numbers_they_say(seed: int, width: int) -> None:
    data = read_microdata(people(seed), keys=["age", "place"])
    done = recode(data, [band(data, "age", width)]).data
    for before, after in zip(data.codes[:, 0], done.codes[:, 0], strict=True):
        assert (before < 0) == (after < 0)
        if before >= 0:
            low, high = map(int, done.labels[0][after].split("-"))
            assert low <= int(data.labels[0][before]) <= high
            assert (high - low, low % width) == (width - 1, 0)
    assert (done.codes[:, 1] == data.codes[:, 1]).all()


WRITTEN = st.decimals(-(10**8), 10**8, places=2).map(str) | st.integers(-50, 120).map(str)


def bounds(label: str) -> tuple[Fraction, Fraction, bool]:
    """Ends of a band by its label, and whether the upper one belongs to it."""
    if " to below " in label:
        low, high = label.split(" to below ")
        return Fraction(low), Fraction(high), False
    low, _, high = label.partition(" to ") if " to " in label else label.partition("-")
    if label.lstrip("-").isdigit():
        low = high = label
    return Fraction(low), Fraction(high), True


@settings(max_examples=60)
@given(
    st.lists(WRITTEN, min_size=1, max_size=8),
    st.sampled_from(["1", "5", "10", "0.1", "0.25", "2.5", "1000000"]),
)
def test_a_band_holds_its_numbers_and_is_one_level(texts: list[str], width: str) -> None:
    """0.7 stood in a band below 0.7, one band had two levels, and four bands one label."""
    data = read_microdata(pd.DataFrame({"a": texts}), keys=["a"])
    found = band(data, "a", width).levels
    labels: dict[Fraction, str] = {}
    for text, label in found.items():
        number, low, high, closed = Fraction(text), *bounds(label)
        assert low <= number < high or (closed and number == high), (text, label)
        assert high - low == Fraction(width) - closed
        assert labels.setdefault(low, label) == label
    assert len(set(labels.values())) == len({Fraction(x) // Fraction(width) for x in texts})
    assert band(data, "a", float(width)).levels == found


def test_long_numbers_keep_their_digits() -> None:
    data = read_microdata(pd.DataFrame({"a": ["12345678", "12345690", "7"]}), keys=["a"])
    assert set(band(data, "a", 10).levels.values()) == {
        "12345670-12345679", "12345690-12345699", "0-9"
    }  # fmt: skip
    assert set(top(data, "a", 12345678.5).levels.values()) == {">=12345678.5"}
    assert set(bottom(data, "a", 12345678).levels.values()) == {"<=12345678"}


def test_ends_are_put_together() -> None:
    data = read_microdata(people(), keys=["age"])
    done = recode(data, [top(data, "age", 80), bottom(data, "age", 20)]).data
    numbers = [x for x in done.labels[0] if x.isdigit()]
    assert {">=80", "<=20"} <= set(done.labels[0])
    assert all(20 < int(x) < 80 for x in numbers)


@pytest.mark.parametrize("missing", ["wildcard", "own"])
def test_the_model_of_merged_levels_is_the_merged_model(missing: str) -> None:
    """The probability of a merged combination is the sum over what was merged."""
    frame = pd.DataFrame({"a": ["1", "2", "3", None], "b": list("xyxy")})
    data = read_microdata(frame, keys=["a", "b"], missing=missing)
    layout, rng = layout_of(data), np.random.default_rng(1)
    sizes = np.diff(layout.start)
    phi = np.concatenate([rng.dirichlet(np.ones(size), 2).T for size in sizes])
    states = States(layout, rng.dirichlet(np.ones(2))[None], phi[None].copy(), {}, {})
    done = recode(data, [top(data, "a", 2)])
    merged = merged_states(states, done)
    before = probabilities(layout.rows(np.array([[1, 0], [2, 0]], np.int32)), states.eta[0], phi)
    code = done.data.labels[0].index(">=2")
    rows = merged.layout.rows(np.array([[code, 0]], np.int32))
    after = probabilities(rows, merged.eta[0], merged.phi[0])
    assert after[0] == pytest.approx(before.sum())


def test_proposals_are_ranked_and_take_risk_away() -> None:
    data = read_microdata(people(), keys=["age", "place"])
    setting = prepare(
        data, intruder=Intruder(), population_size=3000, structural_zeros=None, datasets=1, seed=1
    )
    tried = candidates(data, ordered=["place"])
    frame = rank_recodings(setting, tried, 3000.0, seed=1)
    assert {"age=band:5", "age=band:10", "place=merge:a+b"} <= set(frame.index)
    assert frame["risk_per_bit"].is_monotonic_decreasing
    assert (frame["uniques_after"] <= frame["uniques_before"]).all()
    assert (frame["bits_lost"] > 0).all()
    by_width = frame.loc[["age=band:2", "age=band:5", "age=band:10", "age=band:20"]]
    assert by_width["expected_after"].is_monotonic_decreasing
    assert by_width["bits_lost"].is_monotonic_increasing
    assert (by_width["expected_after"] < by_width["expected_before"]).all()


def test_a_hierarchy_is_read_and_named(tmp_path: Path) -> None:
    file = tmp_path / "place.csv"
    file.write_text("a;west;*\nb;west;*\nc;east;*\nd;east;*\ne;east;*\n")
    assert [step.name for step in read_hierarchy(file, key="place")] == [
        "hierarchy:1",
        "hierarchy:2",
    ]
    data = read_microdata(people(), keys=["age", "place"])
    done = recode(data, [read_recoding(data, f"place={file}:1")]).data
    assert done.labels[1] == ("east", "west")
    file.write_text("a;west\nb;west\n")
    with pytest.raises(InputError, match="does not name the level 'c'"):
        read_recoding(data, f"place={file}:1")
    file.write_text("a;west\na;east\n")
    with pytest.raises(InputError, match="twice"):
        read_hierarchy(file, key="place")


def test_a_step_is_a_whole_number_and_of_a_key(tmp_path: Path) -> None:
    """Step 1.5 was step 1, and a hierarchy of what is no key ended in a traceback."""
    file = tmp_path / "place.csv"
    file.write_text("".join(f"{x};1;2\n" for x in "abcde"))
    data = read_microdata(people(), keys=["age", "place"])
    with pytest.raises(InputError, match=r"steps 1 to 2; asked for is 1\.5"):
        read_recoding(data, f"place={file}:1.5")
    with pytest.raises(InputError, match="'nokey' is not a key"):
        read_recoding(data, f"nokey={file}:1")


@pytest.mark.parametrize(
    "text", ["age", "age=", "age=band", "age=band:x", "age=band:0", "zz=band:5", "place=band:5"]
)
def test_what_is_no_recoding_is_refused(text: str) -> None:
    data = read_microdata(people(), keys=["age", "place"])
    with pytest.raises(InputError):
        read_recoding(data, text)


@pytest.mark.parametrize("width", [Fraction(1, 3), "x", float("nan")])
def test_a_width_that_cannot_be_written_is_refused(width):
    """A third had digits without end, and the call none."""
    data = read_microdata(pd.DataFrame({"age": ["20", "35"]}), keys=["age"])
    with pytest.raises(InputError, match="number"):
        band(data, "age", width)
