"""Page one says what drives the risk, and what coarser values would leave."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.measure.drivers import find_drivers
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.report.microdata.drivers import driver_tables, tell_drivers


def told(measured: Measurement, frame: pd.DataFrame) -> str:
    data = read_microdata(frame, keys=list(frame))
    return tell_drivers(
        dataclasses.replace(
            measured, data=data, drivers=find_drivers(data, None), latent_classes=None
        )
    )


def test_the_key_whose_loss_leaves_fewest_uniques_comes_first(measured: Measurement) -> None:
    """Six people of six ages: without age, none of them is alone."""
    frame = pd.DataFrame({"sex": list("ffffmm"), "age": [str(n) for n in range(20, 26)]})
    text = told(measured, frame)
    assert text.startswith(
        "Above all age: without it 0 of the 6 sample uniques are left; without sex, the next, 6."
    )
    assert "values of age instead of 6 (its 4 rarest values as one)" in text


def test_a_value_that_stands_out_is_named_with_both_shares(measured: Measurement) -> None:
    frame = pd.DataFrame({"a": ["x"] * 98 + ["y", "z"], "b": ["p", "q"] * 49 + ["p", "p"]})
    assert (
        "Among values, a = y and a = z stand out: each has 1% of the records, 50% of the sample "
        "uniques."
    ) in told(measured, frame)
    one = frame.assign(a=["x"] * 99 + ["z"], b=["p", "q"] * 50)
    assert "Among values, a = z stands out: 1% of the records, 100% of the sample" in told(
        measured, one
    )


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"a": list("aabb")}), "no record is alone"),
        (pd.DataFrame({"a": list("aab")}), "There is one key, a."),
        # every pair of values once: each key alone leaves nobody unique
        (
            pd.DataFrame(np.stack(np.indices((3, 3)), -1).reshape(-1, 2), columns=list("ab")),
            "Above all a or b: without either 0 of the 9 sample uniques are left.",
        ),
        # a record that three keys single out each by itself
        (pd.DataFrame({k: list("xxxxy") for k in "abc"}), "No single key: without any of them all"),
    ],
)
def test_what_is_said_holds_for_every_file(measured, frame, words) -> None:
    text = told(measured, frame.astype(str))
    assert words in text
    assert "nan" not in text


def test_keys_that_leave_as_few_are_named_together(measured: Measurement) -> None:
    """Above all puma, where educ did the same."""
    frame = pd.DataFrame({"a": list("pqrs"), "b": list("tuvw"), "c": list("xxxx")})
    drivers = find_drivers(read_microdata(frame, keys=list("abc")), None)
    assert drivers is not None
    for without, words in (
        ([0.0, 0.0, 3.0], "Above all a or b: without either 0 of the 4 sample uniques are left; "
         "without c, the next, 3."),
        ([1.0, 1.0, 1.0], "Above all a, b or c: without any one of them 1 of the 4"),
        ([1.0, 2.0, 2.0], "Above all a: without it 1 of the 4 sample uniques are left; without b"),
    ):  # fmt: skip
        keys = drivers.keys.sort_index().assign(without=without)
        one = dataclasses.replace(
            measured,
            data=read_microdata(frame, keys=list("abc")),
            drivers=dataclasses.replace(drivers, keys=keys),
            latent_classes=None,
        )
        assert tell_drivers(one).startswith(words)


def test_a_share_of_nearly_no_match_is_no_finding(measured: Measurement) -> None:
    """83 % of the right matches, of which there was a tenth of one."""
    frame = pd.DataFrame({"a": ["x"] * 99 + ["z"], "b": ["p", "q"] * 50})
    data = read_microdata(frame, keys=["a", "b"])
    found = find_drivers(data, None)
    assert found is not None
    for scale, said in ((1.0, True), (0.1, False)):
        few = found.values.assign(matches=found.values["matches"] * scale)
        one = dataclasses.replace(
            measured, data=data, drivers=dataclasses.replace(found, values=few)
        )
        assert ("stands out" in tell_drivers(one)) is said
        rows = driver_tables(one)["driving_values"]
        assert rows[0][4].startswith("1.0 (" if said else "0.1 (")
