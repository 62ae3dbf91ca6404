"""What a release promises: it adds up, and anything else that looks at the counts ends it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import (
    InputError,
    fit_flows,
    guarantee,
    protect_flows,
    read_flows,
    synthesize,
)
from bayes_sdc.flows.guarantee import SHORT_SEED, Guarantee, factor
from bayes_sdc.flows.protection import with_checks
from bayes_sdc.flows.table.read import FlowTable

AREAS = [f"{number:02d}" for number in range(8)]
SHORT = {"draws": 20, "tune": 20, "chains": 2, "seed": 2**100}


def table_of(seed: int = 1, own: bool = False) -> FlowTable:
    """Small and safe counts between eight areas."""
    rng = np.random.default_rng(seed)
    pairs = [(a, b) for a in AREAS for b in AREAS if own or a != b]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    frame["n"] = rng.integers(1, 30, len(frame))
    return read_flows(frame, origin="o", destination="d", count="n")


@pytest.fixture(scope="module")
def table() -> FlowTable:
    return table_of()


@pytest.fixture(scope="module")
def posterior(table: FlowTable) -> xr.DataTree:
    return fit_flows(table, epsilon=0.5, **SHORT)


def test_what_a_data_set_costs_adds_up(table: FlowTable, posterior: xr.DataTree) -> None:
    """Every data set has a draw of its own, and every draw costs."""
    found = guarantee(table, posterior, datasets=4, earlier=[0.25, 1.0])
    assert found.holds
    assert found.total == 4 * 0.5 + 1.25
    assert found.for_person(3) == 3 * found.total
    assert found.for_move == 2 * found.total
    assert "4 data sets and the 2 earlier releases together" in " ".join(found.promise())


@given(
    epsilon=st.floats(0.01, 5.0),
    datasets=st.integers(1, 50),
    earlier=st.lists(st.floats(0.01, 5.0), max_size=4),
    times=st.integers(1, 9),
)
def test_nothing_makes_it_cheaper(
    epsilon: float, datasets: int, earlier: list[float], times: int
) -> None:
    """More data sets, more releases or more records of a person never cost less."""
    one = Guarantee(epsilon, datasets, tuple(earlier), (), ())
    assert one.total >= datasets * epsilon
    assert replace(one, datasets=datasets + 1).total > one.total
    assert replace(one, earlier=(*one.earlier, 0.1)).total > one.total
    assert one.for_person(times) >= one.total
    assert one.for_move >= one.total
    assert one.ending("x").total == np.inf


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ({"candidates": 5}, "chosen among 5"),
        ({"totals": True}, "totals that contain small counts"),
        ({"chosen_by_evidence": True}, "how well it fits"),
        ({"earlier": [1.0, None]}, "is not known"),
    ],
)
def test_what_else_looks_at_the_counts_ends_it(
    table: FlowTable, posterior: xr.DataTree, ends: dict[str, object], said: str
) -> None:
    """It fails closed, and says why."""
    found = guarantee(table, posterior, **ends)
    assert not found.holds
    assert found.total == np.inf
    assert found.for_person() == np.inf
    assert said in found.ended[0]
    assert found.check().verdict == "fail"
    assert said in found.check().reason
    assert "No guarantee" in found.promise()[0]


def test_own_areas_have_no_bound() -> None:
    """Their model is another one, so their small counts must not go out."""
    table = table_of(own=True)
    posterior = fit_flows(table, epsilon=0.5, **SHORT)
    assert not guarantee(table, posterior).holds
    assert not guarantee(table, posterior, own_area="publish").holds
    assert guarantee(table, posterior, own_area="withhold").holds


def test_without_epsilon_there_is_nothing_to_promise(table: FlowTable) -> None:
    """A posterior without a bound must not be given one afterwards."""
    with pytest.raises(InputError, match="without epsilon"):
        guarantee(table, fit_flows(table, **SHORT))


def test_posterior_of_another_table_is_refused(posterior: xr.DataTree) -> None:
    with pytest.raises(InputError, match="another table"):
        guarantee(table_of(seed=2), posterior)


def test_totals_cannot_be_kept_with_a_bound(table: FlowTable, posterior: xr.DataTree) -> None:
    with pytest.raises(InputError, match="guarantee would end"):
        synthesize(table, posterior, totals="origin")


def test_a_run_says_what_it_promises(table: FlowTable) -> None:
    """Check, console and result agree; an earlier release of unknown epsilon ends it."""
    few = SHORT | {"draws": 100, "chains": 4, "releases": 1, "estimator": "paper"}
    few["seed"] = 2**100
    result = protect_flows(table, epsilon=1.0, datasets=2, **few)
    assert result.guarantee is not None
    verdict = {check.key: check.verdict for check in result.checks}["guarantee"]
    assert verdict == ("pass" if result.guarantee.holds else "fail")
    if result.guarantee.holds:
        assert "guarantee: epsilon 2" in result.summary()
    again = protect_flows(table, epsilon=1.0, already_released=[result.release], **few)
    assert any("not known" in reason for reason in again.guarantee.ended)
    held = with_checks(result, [])
    assert [check.key for check in held.checks].count("guarantee") == 1


def test_a_seed_that_can_be_found_by_trial_ends_it(table: FlowTable) -> None:
    """Who has the seed undoes the release, whatever its epsilon; Python said that it holds."""
    short, long = (
        guarantee(table, fit_flows(table, epsilon=0.5, **(SHORT | {"seed": seed})))
        for seed in (2**40, 2**100 + 1)
    )
    assert (short.holds, long.holds) == (False, True)
    assert (short.check().verdict, long.check().verdict) == ("fail", "pass")
    assert "by trial" in short.line()
    assert "by trial" not in long.line()
    assert any("seed of the run is secret" in sentence for sentence in long.promise())


def test_a_run_with_such_a_seed_promises_nothing_and_is_held(table: FlowTable) -> None:
    """A promise that the run itself calls undone must not be read by the public."""
    few = SHORT | {"draws": 60, "releases": 1, "estimator": "paper", "seed": 7}
    result = protect_flows(table, epsilon=1.0, **few)
    assert result.guarantee is not None
    assert [reason for reason in result.guarantee.ended if "by trial" in reason]
    assert {check.key: check.verdict for check in result.checks}["guarantee"] == "fail"
    again = with_checks(result, [])
    assert again.guarantee.ended.count(SHORT_SEED) == 1


def test_weighted_counts_have_no_promise_even_if_none_rests_on_few_people() -> None:
    """One person may count as many, in every cell of such a table."""
    frame = table_of().frame[["o", "d", "n"]].assign(people=100)
    table = read_flows(frame, origin="o", destination="d", count="n", threshold_column="people")
    assert not table.withheld
    found = guarantee(table, fit_flows(table, epsilon=0.5, **SHORT))
    assert "counts are weighted" in found.ended[0]


@pytest.mark.parametrize(
    ("low", "said", "unsaid"),
    [
        (0, "every person counted in a cell that is small.", "alone there"),
        (1, "such as one who is alone there", "below 1"),
        (3, "smallest count that is protected, 3:", "alone there"),
    ],
)
def test_to_whom_the_promise_is_made_depends_on_what_is_protected(
    low: int, said: str, unsaid: str
) -> None:
    """Where zeros are protected, who is alone in a cell is too, and no empty pair is public."""
    frame = table_of().frame[["o", "d", "n"]].copy()
    frame.loc[frame.index[:3], "n"] = [0, 2, 5]
    if low > 0:
        frame = frame[frame["n"] > 0]
    table = read_flows(frame, origin="o", destination="d", count="n", low=low)
    centres = np.full(10 - low, 1.0 / (10 - low))
    posterior = fit_flows(table, epsilon=1.0, centres=centres, **(SHORT | {"seed": 2**100}))
    found = guarantee(table, posterior)
    text = " ".join(found.promise())
    assert said in text
    assert unsaid not in text
    assert ("which are empty" in found.public[0]) is (low > 0)


@given(st.floats(1e-3, 30.0))
def test_what_is_written_is_never_below_what_is_proved(epsilon: float) -> None:
    """ "At most the factor 1.28" was written of exp(0.25), which is 1.284."""
    assert float(factor(epsilon).replace(",", "")) >= np.exp(epsilon) * (1.0 - 1e-11)
    said = Guarantee(epsilon, 1, (), (), ())
    written = float(str(said).split("epsilon ")[1].split(";")[0])
    assert epsilon * (1.0 - 1e-11) <= written <= 1.002 * epsilon


def test_epsilon_without_small_counts_between_areas_is_refused() -> None:
    """Small counts of people who stayed went out from a model without a bound, and no word."""
    frame = pd.DataFrame({"o": list("abab"), "d": list("abba"), "n": [3, 5, 40, 60]})
    table = read_flows(frame, origin="o", destination="d", count="n")
    with pytest.raises(InputError, match="there are none from 1 to 9"):
        protect_flows(table, epsilon=1.0, seed=2**100)
