"""Page one says what drives the risk, and what coarser values would leave."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.measure.drivers import find_drivers
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.report.microdata.drivers import tell_drivers


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
    assert "Among values, a = y stands out: 1% of the records, 50% of the sample uniques" in told(
        measured, frame
    )


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"a": list("aabb")}), "no record is alone"),
        (pd.DataFrame({"a": list("aab")}), "There is one key, a."),
        # every pair of values once: each key alone leaves nobody unique
        (
            pd.DataFrame(np.stack(np.indices((3, 3)), -1).reshape(-1, 2), columns=list("ab")),
            "without it 0 of the 9",
        ),
        # a record that three keys single out each by itself
        (pd.DataFrame({k: list("xxxxy") for k in "abc"}), "No single key: without any of them all"),
    ],
)
def test_what_is_said_holds_for_every_file(measured, frame, words) -> None:
    text = told(measured, frame.astype(str))
    assert words in text
    assert "nan" not in text
