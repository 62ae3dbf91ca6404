"""The same people in another order of rows: the same bytes leave, whatever the treatment."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import Treatment, read_microdata, treat
from bayes_sdc.jobs.treatment import TreatedRun, load_to_treat, treat_file
from bayes_sdc.microdata.treatment.order import dealt_by_columns

KEYS = ["a", "b", "c"]
ASKED: dict[str, Any] = {
    "target_risk": None, "share": None, "keys": [], "k": None, "special": None, "costs": None,
    "change": None, "datasets": 1, "recode": [], "propose": False, "ordered": [],
    "regressions": [], "sensitive": None, "given": [], "structural_zeros": None,
    "keep": ["inc", "home"], "keep_order": False,
    "intruder": {"keys": KEYS, "knowledge": "population", "knows": "keys"},
}  # fmt: skip


def people(rows: int) -> pd.DataFrame:
    """Few combinations, so that many records differ in nothing but what is kept."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 4, rows), "b": rng.choice(list("xyz"), rows, p=[0.6, 0.3, 0.1]),
            "c": rng.integers(0, 3, rows), "inc": rng.integers(0, 40, rows),
            "w": rng.choice([10, 20], rows), "home": rng.integers(0, rows // 2, rows),
        }
    ).astype(str)  # fmt: skip
    frame.loc[rng.random(rows) < 0.5, "home"] = ""
    frame.loc[rng.random(rows) < 0.05, "a"] = ""
    return frame


def released(
    frame: pd.DataFrame, folder: Path, options: dict[str, Any], **reading: Any
) -> TreatedRun:
    file = folder / "people.csv"
    frame.to_csv(file, index=False)
    asked = {**ASKED, **options}
    data = read_microdata(file, keys=[*KEYS, *asked["given"]], **reading)
    stored = load_to_treat(file, data, asked)
    return treat_file(data, stored, asked=asked, policy=None, population_size=9000, seed=1)


@pytest.mark.parametrize("reading", [{}, {"weight": "w", "household": "home"}])
@pytest.mark.parametrize(
    "options",
    [
        {"method": "pram", "change": 0.2},
        {"method": "full-synthesis", "datasets": 2},
        {"method": "synthesis", "share": 0.6, "keys": KEYS},
        {"method": "synthesis", "target_risk": 0.02},
        {"method": "suppression", "k": 3},
        {"method": "suppression", "k": 3, "given": ["w"]},
        {"method": "suppression", "special": 2},
    ],
    ids=str,
)
def test_shuffled_rows_give_the_same_bytes(options, reading, tmp_path: Path) -> None:
    """Draws met other incomes, and other values were suppressed, in another order of rows."""
    if "given" in options and reading:
        reading = {"household": "home"}
    frame = people(30 if options["method"] == "suppression" else 150)
    one, two = (
        released(rows, tmp_path, options, **reading)
        for rows in (frame, frame.sample(frac=1.0, random_state=3))
    )
    assert one.treatment.treated.any()
    assert one.content == two.content
    assert [str(check) for check in one.checks] == [str(check) for check in two.checks]
    assert one.treatment.notes == two.treatment.notes


@pytest.fixture(scope="module")
def done() -> Treatment:
    frame = people(40)
    data = read_microdata(frame, keys=KEYS, weight="w", household="home")
    return treat(data, method="pram", change=0.3, population_size=900, seed=1)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_draws_are_dealt_among_records_that_the_treatment_cannot_tell_apart(done, seed) -> None:
    """By brute force: each such group keeps its draws, and gets them in the order of the column."""
    rng = np.random.default_rng(seed)
    n = done.data.n
    codes = rng.integers(-1, 5, (1, n, 3)).astype(np.int32)
    risk = done.after.records.assign(right=codes[0, :, 0] * 1.0)
    drawn = replace(done, codes=codes, after=replace(done.after, records=risk))
    column = pd.DataFrame({"x": rng.integers(0, 9, n).astype(str)})
    dealt = dealt_by_columns(drawn, column)
    homes = np.minimum(done.data.household, len(done.data.household_ids))
    groups = pd.DataFrame([done.data.combination, done.data.weights, homes]).T
    for records in groups.groupby([0, 1, 2]).groups.values():
        by_column = sorted(records, key=lambda i: column["x"][i])
        assert (dealt.codes[0, by_column] == codes[0, sorted(records)]).all()
    assert (dealt.after.records["right"] == dealt.codes[0, :, 0]).all()
    assert dealt.after.records.index.equals(risk.index)
