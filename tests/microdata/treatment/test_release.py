"""What leaves of a treated file: every kind of column survives it, missing values among them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import Intruder, Treatment, read_microdata, treat
from bayes_sdc.microdata.treatment.release import released_file, without_values


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """A key with missing values that are no text, and columns of every kind beside it."""
    rng = np.random.default_rng(2)
    n = 80
    frame = pd.DataFrame(
        {
            "age": rng.integers(2, 8, n) * 10,
            "job": pd.Series(rng.choice(list("abc"), n), dtype=object),
            "wage": rng.lognormal(8, 1, n).round(-3),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 3, n), unit="D"),
        }
    )
    for name, share in (("job", 0.1), ("wage", 0.2), ("day", 0.2)):
        frame.loc[rng.random(n) < share, name] = None
    return frame


@pytest.fixture(scope="module")
def done(people: pd.DataFrame) -> Treatment:
    data = read_microdata(people, keys=["age", "job"])
    return treat(data, method="suppression", k=3, population_size=800, seed=1)


def test_columns_with_missing_values_leave_with_their_records(
    done: Treatment, people: pd.DataFrame
) -> None:
    """Missing numbers beside texts have no order, and a run ended in a traceback over it."""
    file = released_file(done, people, keep=["wage", "day"])
    assert file.frame.columns.tolist() == ["age", "job", "wage", "day"]
    for name in ("wage", "day"):
        assert file.frame[name].isna().sum() == people[name].isna().sum()
        assert sorted(file.frame[name].dropna()) == sorted(people[name].dropna())
    suppressed = int((done.codes[0] < 0).sum())
    assert file.frame[["age", "job"]].isna().to_numpy().sum() == suppressed
    assert suppressed > people["job"].isna().sum(), "nothing was suppressed"


def test_the_order_forgets_that_of_the_input(done: Treatment, people: pd.DataFrame) -> None:
    shuffled = released_file(done, people, keep=["wage"]).frame
    kept = released_file(done, people, keep=["wage"], keep_order=True)
    assert kept.frame["wage"].equals(people["wage"])
    assert not shuffled["wage"].equals(people["wage"])
    (order,) = [check for check in kept.checks if check.key == "treatment_order"]
    assert order.verdict == "look"


def test_what_informs_about_treated_values_is_judged_as_what_is_kept(people: pd.DataFrame) -> None:
    """It is released too: a number of its own for each record must hold the release."""
    more = people.assign(number=np.arange(len(people)), sex=np.arange(len(people)) % 2)
    data = read_microdata(more, keys=["age", "job", "number", "sex"])
    known = Intruder(keys=("age", "job"))
    done = treat(data, method="pram", change=0.3, keys=["job"], intruder=known, seed=1)
    file = released_file(done, more, given=["number", "sex", "job"])
    found = {check.name: check.verdict for check in file.checks}
    assert found["kept column number"] == "fail"
    assert found["kept column sex"] == "pass"
    assert "kept column job" not in found  # it was treated


@given(st.lists(st.tuples(st.sampled_from(["low", "mid", "high", None]), st.booleans()),
                min_size=1, max_size=9))  # fmt: skip
@pytest.mark.parametrize("arrow", [True, False])
def test_suppression_leaves_categories_and_their_order(arrow: bool, cells) -> None:
    """A column from Parquet came back with its levels in the order of the records, some gone."""
    values, gone = [value for value, _ in cells], np.array([one for _, one in cells])
    places = pd.Categorical(values, categories=["low", "mid", "high"], ordered=True)
    column = pd.Series(places)
    if arrow:
        chunks = pa.chunked_array([pa.array(column[:1]), pa.array(column[1:])])
        column = chunks.to_pandas(types_mapper=pd.ArrowDtype)
    left = without_values(column, gone, text=False)
    assert [None if pd.isna(one) else one for one in left] == [
        None if out else value for value, out in cells
    ]
    stored = pa.Array.from_pandas(left)
    stored = stored.chunk(0) if isinstance(stored, pa.ChunkedArray) else stored
    assert stored.dictionary.to_pylist() == ["low", "mid", "high"]
    assert stored.type.ordered


def test_a_drawn_missing_value_is_written_as_the_file_writes_one() -> None:
    """It was blank where the file has -9, so that every blank was known to be drawn."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"job": rng.choice(["1", "2", "-9", "-8"], 300, p=[0.4, 0.3, 0.2, 0.1])})
    frame["age"] = rng.integers(0, 9, 300).astype(str)
    frame.loc[0, "job"] = ""
    data = read_microdata(
        frame, keys=["job", "age"], missing="own", missing_codes={"job": ["-9", "-8"]}
    )
    done = treat(data, share=1.0, keys=["job"], population_size=3000, seed=1)
    after = released_file(done, frame, keep_order=True).frame["job"]
    drawn = (done.codes[0][:, 0] < 0) & (data.codes[:, 0] >= 0)
    assert drawn.any()
    assert (after[drawn] == "-9").all()
    stays = done.codes[0][:, 0] == data.codes[:, 0]
    assert (after[stays] == frame["job"][stays]).all()


def test_a_suppressed_value_is_blank_whatever_code_the_file_has() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.integers(0, 6, (60, 3)), columns=list("abc")).astype(str)
    frame.loc[:3, "a"] = "-9"
    data = read_microdata(frame, keys=list("abc"), missing_codes={"a": "-9"})
    done = treat(data, method="suppression", k=3, population_size=900, seed=1)
    after = released_file(done, frame, keep_order=True).frame
    gone = (done.codes[0] < 0) & (data.codes >= 0)
    assert gone[:, 0].any()
    assert (after.to_numpy()[gone] == "").all()
    assert (after["a"][:4] == "-9").all()


@pytest.mark.parametrize("empty", ["", None])
@pytest.mark.parametrize("some", [True, False])
def test_persons_without_a_household_get_no_number(empty, some: bool) -> None:
    """Where nobody had an id the run ended in a traceback."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.integers(0, 4, (60, 2)), columns=list("ab")).astype(str)
    frame["home"] = pd.Series([empty] * 60, dtype=str if empty == "" else object)
    if some:
        frame.loc[:9, "home"] = [f"h{i // 2}" for i in range(10)]
    data = read_microdata(frame, keys=list("ab"), household="home")
    done = treat(data, method="suppression", k=3, population_size=900, seed=1)
    after = released_file(done, frame, keep=["home"], keep_order=True).frame["home"]
    has = after.notna() & (after != "")
    assert has.tolist() == [some] * 10 + [False] * 50
    assert after[has].nunique() == 5 * some
