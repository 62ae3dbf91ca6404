"""What is said of an intruder: refused where it cannot be meant, equal where it is the same."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, Intruder

WRONG: list[Any] = [1.5, pd.NA, np.nan, "sex", np.array(["a", "b"]), np.array("a"), Intruder, [1]]


@pytest.mark.parametrize("field", ["keys", "knowledge", "knows"])
@pytest.mark.parametrize("value", WRONG, ids=range(len(WRONG)))
def test_what_is_no_answer_is_refused_by_the_name_of_the_field(field: str, value: Any) -> None:
    """A number for the keys ended in a TypeError after the file was read, pd.NA at once."""
    if field == "keys" and np.ndim(value) == 1 and isinstance(value, np.ndarray):
        assert Intruder(keys=value) == Intruder(keys=["a", "b"])  # names, whatever holds them
        return
    with pytest.raises(InputError, match=field):
        Intruder(**{field: value})
