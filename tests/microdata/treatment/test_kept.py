"""What kept columns tell: rules from a year of birth to an age, pairs of columns, households."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import Treatment, read_microdata, treat
from bayes_sdc.microdata.treatment.kept import kept_checks, told_values
from bayes_sdc.microdata.treatment.release import released_file


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """Ages of which twelve are unique, and columns that tell them or single records."""
    rng = np.random.default_rng(1)
    n = 400
    age = np.concatenate([rng.integers(20, 60, n - 12), np.arange(84, 96)])
    token = rng.permutation(n)
    frame = pd.DataFrame({"age": age, "sex": rng.choice(["m", "f"], n)}).astype(str)
    return frame.assign(
        born=2026 - age, row=token // 20, place=token % 20, shoe=rng.integers(36, 40, n),
        wage=np.where(rng.random(n) < 0.1, np.arange(n), 5),
    )  # fmt: skip


@pytest.fixture(scope="module")
def done(people: pd.DataFrame) -> Treatment:
    data = read_microdata(people, keys=["age", "sex"])
    return treat(data, target_risk=0.3, population_size=4000, keys=["age"], seed=1)


def test_columns_that_identify_together_hold_the_release(done, people) -> None:
    """Row and place each stand for many records, and both for one: every record was told."""
    checks = {one.name: one for one in kept_checks(done, people, ["row", "place"])}
    assert checks["kept columns together"].verdict == "fail"
    assert "100% of the records" in checks["kept columns together"].reason
    assert checks["kept column row"].verdict != "fail"


def test_what_a_rare_value_tells_by_a_rule_holds_the_release(done, people) -> None:
    """The year of birth told every treated age, because each occurred in one record."""
    (found,) = kept_checks(done, people, ["born"])
    assert found.verdict == "fail"
    assert f"tells {int(done.hidden.sum()):,} treated values" in found.reason


def test_a_rare_value_without_a_rule_is_to_be_looked_at(done, people) -> None:
    (found,) = kept_checks(done, people, ["wage"])
    beside = done.hidden[:, 0] & (people["wage"] != 5)
    assert found.verdict == "look"
    assert beside.any() == ("in one or two records" in found.reason)
    (found,) = kept_checks(done, people, ["shoe"])
    assert found.verdict == "pass"
    assert "tells by itself no treated value" in found.reason


@given(st.integers(0, 10_000))
def test_no_value_is_called_safe_that_stands_beside_one_level_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    value, codes = rng.integers(0, rng.integers(1, 30), 40), rng.integers(-1, 3, 40)
    hidden = rng.random(40) < 0.3
    found = told_values(value, codes, hidden)
    single = [len(set(codes[value == one])) == 1 for one in value]
    assert found.surely + found.perhaps == (hidden & single).sum()
    often = np.array([(value == one).sum() >= 3 for one in value])
    assert found.surely >= (hidden & single & often).sum()


@pytest.mark.parametrize(
    ("method", "options", "verdict"),
    [
        ("suppression", {"k": 3}, "look"),
        ("synthesis", {"share": 0.3, "keys": ["region"]}, "look"),
        ("pram", {"change": 0.2, "keys": ["region"]}, "fail"),
        ("pram", {"change": 0.2, "keys": ["age"]}, "look"),
    ],
)
@pytest.mark.parametrize("lacking", [0, 2])
def test_kept_households_do_not_show_the_true_value_of_what_their_members_share(
    method, options, verdict, lacking: int
) -> None:
    """Regions were changed or suppressed person by person, and the others showed the true one."""
    rng = np.random.default_rng(5)
    home = np.repeat(np.arange(40), 3)
    frame = pd.DataFrame({"region": rng.choice(list("abcdef"), 40)[home], "home": home})
    frame["age"] = rng.integers(0, 4, 120).astype(str)
    frame.loc[: lacking - 1, "region"] = None
    data = read_microdata(frame, keys=["region", "age"], household="home")
    done = treat(data, method=method, **options, population_size=900, seed=1)
    (found, _) = released_file(done, frame, keep=["home"]).checks
    assert done.treated.any()
    assert found.verdict == verdict, found.reason
    if verdict == "fail":
        assert "do not keep 'home'" in found.reason
