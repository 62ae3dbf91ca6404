"""Classes of keys that are nearly unique: everybody in one, in their order."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.errors import InputError
from bayes_sdc.io.form import FileForm
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.measure.measure import measure_microdata


def read(values: list, band: object, **more: object):
    return read_microdata(pd.DataFrame({"k": values}), keys=["k"], bands={"k": band}, **more)


def shown(data) -> list[str | None]:
    return [None if code < 0 else data.labels[0][code] for code in data.codes[:, 0]]


def test_bands_of_five_years():
    data = read(["3", "27", "24", "100", ""], 5)
    assert shown(data) == ["0-4", "25-29", "20-24", "100-104", None]
    assert data.labels[0] == ("0-4", "20-24", "25-29", "100-104")
    assert "column 'k': put into 4 classes (5)" in data.notes


@given(st.lists(st.integers(-999, 999), min_size=1), st.integers(1, 40))
def test_every_number_lies_in_its_band(numbers, width):
    data = read([str(number) for number in numbers], width)
    for number, label in zip(numbers, shown(data), strict=True):
        low = number // width * width
        assert label == (f"{low}" if width == 1 else f"{low}-{low + width - 1}")
    lows = [int(code) for code in dict.fromkeys(sorted(n // width * width for n in numbers))]
    assert [label.startswith(f"{low}") for label, low in zip(data.labels[0], lows, strict=True)]


QUARTERS = st.integers(0, 10**6).map(lambda n: n / 4)  # three digits would have two readings


@given(st.lists(QUARTERS, min_size=2, max_size=60), st.integers(2, 10))
def test_quantile_classes_hold_equal_shares_and_keep_ties_together(numbers, classes):
    data = read([repr(number) for number in numbers], f"q{classes}")
    codes = data.codes[:, 0]
    order = np.argsort(numbers, kind="stable")
    assert (np.diff(codes[order]) >= 0).all()
    assert len(data.labels[0]) <= classes
    for number in set(numbers):
        assert len({c for c, n in zip(codes, numbers, strict=True) if n == number}) == 1
    if len(set(numbers)) == len(numbers) >= classes:
        sizes = np.bincount(codes)
        assert sizes.max() - sizes.min() <= 1


def test_dates_by_year_and_month():
    dates = ["2021-03-01", "2020-12-31T10:00", "2021-04-05", ""]
    assert shown(read(dates, "year")) == ["2021", "2020", "2021", None]
    assert shown(read(dates, "month")) == ["2021-03", "2020-12", "2021-04", None]


def test_dates_with_the_year_at_the_end_have_a_year_and_no_month():
    """3/1/2021 is in March here and in January there."""
    assert shown(read(["3.1.2021", "03/01/1999", "2020-05-05"], "year")) == ["2021", "1999", "2020"]
    with pytest.raises(InputError, match=r"row 1 '3/1/2021'"):
        read(["3/1/2021"], "month")


def test_an_open_class_stays_one_above_the_others():
    data = read(["90+", "3", "88", "90+"], 5)
    assert shown(data) == ["90+", "0-4", "85-89", "90+"]
    assert data.labels[0] == ("0-4", "85-89", "90+")
    with pytest.raises(InputError, match="in 1 row: row 2 '93'"):
        read(["90+", "93"], 5)


def test_numbers_that_read_in_two_ways_are_put_into_no_class():
    with pytest.raises(InputError, match=r"'1.076' is 1.076 if .* and 1,076 if between"):
        read(["1.076", "1.200", "950"], "q2")
    form = FileForm(thousands=".")
    assert shown(read(["1.076", "1.200", "950"], 1000, form=form)) == [
        "1000-1999",
        "1000-1999",
        "0-999",
    ]


def test_a_code_that_a_class_would_hide_is_noted():
    notes = read([*map(str, range(20, 60)), "-9", "999"], 5).notes
    assert any("'-9', '999' put into a class as a number" in note for note in notes)
    declared = read([*map(str, range(20, 60)), "-9"], 5, missing_codes={"k": "-9"}).notes
    assert not any("put into a class as a number" in note for note in declared)


@pytest.mark.parametrize("number", ["1e300", "-1e300", "9" * 30])
def test_numbers_too_large_for_a_class_are_refused(number):
    with pytest.raises(InputError, match="cannot be put into a class in 1 row: row 2"):
        read(["1", number], 5)


def test_what_has_no_class_is_refused_and_declared_codes_stay_missing():
    with pytest.raises(InputError, match="cannot be put into a class in 1 row: row 2 'x'"):
        read(["1", "x"], 5)
    assert shown(read(["1", "999"], 5, missing_codes={"k": "999"})) == ["0-4", None]
    for band in (0, -5, "q0", "day", "inf"):
        with pytest.raises(InputError, match="bands of 'k' are"):
            read(["1"], band)
    with pytest.raises(InputError, match="bands names 'z', which is not a key variable"):
        read_microdata(pd.DataFrame({"k": ["1"]}), keys=["k"], bands={"z": 5})


INCOME = [str(17_000 + 31 * i) for i in range(100)]


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        (INCOME, "--bands k=q10"),
        ([f"2021-{m:02}-{d:02}" for m in range(1, 11) for d in range(1, 11)], "--bands k=year"),
        ([f"person {i}" for i in range(100)], "leave it out"),
    ],
)
def test_a_key_that_is_nearly_unique_is_said_with_its_remedy(values, remedy):
    frame = pd.DataFrame({"k": values})
    notes = read_microdata(frame, keys=["k"]).notes
    assert any("100 distinct values in 100 records" in n and remedy in n for n in notes)
    some = read_microdata(frame.assign(k=values[:40] + ["1"] * 60), keys=["k"]).notes
    assert not any("nearly unique" in note for note in some)


def test_models_are_not_run_on_a_key_that_is_nearly_unique_unless_forced():
    frame = pd.DataFrame({"k": INCOME})
    with pytest.raises(
        InputError, match=r"key 'k' has 100 distinct values.*--bands k=q10.*--force"
    ):
        measure_microdata(read_microdata(frame, keys=["k"]), population_size=1000, seed=1)
    # 95 of 100 are not more than 95 %
    frame["k"] = INCOME[:95] + INCOME[:5]
    data = read_microdata(frame, keys=["k"])
    assert measure_microdata(data, population_size=1000, seed=1).risk.expected > 0


CODES = st.sampled_from(["-9", "-9.0", " -9 ", "999", "999.0", -9, 999, -9.0])


@given(
    st.lists(st.one_of(st.integers(0, 99).map(str), CODES), min_size=1, max_size=20),
    st.lists(CODES, min_size=1, max_size=3),
    st.sampled_from([5, 0.5, "q3"]),
)
def test_declared_codes_are_those_that_are_missing_without_bands(values, declared, band):
    """A declared code that did occur was said not to, and -9.0 was put into a class."""
    frame = pd.DataFrame({"k": pd.Series(values, dtype=object)})
    plain = read_microdata(frame, keys=["k"], missing_codes=declared)
    banded = read_microdata(frame, keys=["k"], missing_codes=declared, bands={"k": band})
    assert ((plain.codes < 0) == (banded.codes < 0)).all()
    said = [[note for note in data.notes if "do not occur" in note] for data in (plain, banded)]
    assert said[0] == said[1]


def test_a_year_stays_a_class_where_its_number_is_a_missing_code():
    data = read(["2021-03-01", "2021", "2020-01-01"], "year", missing_codes={"k": "2021"})
    assert shown(data) == ["2021", None, "2020"]


@pytest.mark.parametrize("value", [b"25", [25]], ids=["bytes", "list"])
def test_what_is_no_text_is_refused_and_not_taken_for_missing(value):
    with pytest.raises(InputError, match=r"column 'k': a value that cannot be put .* row 2 ") as no:
        read(["20", value, "30"], 5)
    assert repr(value) in str(no.value)
