"""A file of a statistics package that is written again: values, labels and missing codes."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from bayes_sdc.microdata.file.stored import load_stored


@pytest.mark.parametrize("suppressed", [False, True])
def test_extended_missing_values_of_stata_are_written_again(
    suppressed: bool, tmp_path: Path
) -> None:
    """The run ended in a traceback after everything was computed: .a is text among numbers."""
    path = tmp_path / "persons.dta"
    jobs = pd.Series([1.0, "a", 2.0, "b", None, 1.0], dtype=object)
    frame = pd.DataFrame({"job": jobs, "age": [20.0, 30.0, 40.0, 50.0, 60.0, np.nan]})
    pyreadstat.write_dta(
        frame, str(path), missing_user_values={"job": ["a", "b"]},
        variable_value_labels={"job": {1: "clerk", 2: "cook", "a": "refused"}},
    )  # fmt: skip
    stored = load_stored(path, ["job"])
    released = stored.frame[["job"]].copy()
    if suppressed:
        released = released.mask(np.arange(6)[:, None] == 2, None)
    path.write_bytes(stored.encode(released))
    again = load_stored(path, ["job"])
    told = [None if pd.isna(one) else one for one in again.frame["job"]]
    assert told == [1.0, "a", None if suppressed else 2.0, "b", None, 1.0]
    assert again.described.missing_user_values == {"job": ["a", "b"]}
    labels = stored.described.variable_value_labels
    assert again.described.variable_value_labels == labels
