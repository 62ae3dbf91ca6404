"""Expected numbers of page one."""

import re

from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.microdata.latent_classes.risk import Estimate90
from bayes_sdc.report.microdata.numbers import count, part, wide


@given(st.floats(1e-12, 1e6))
def test_what_is_not_nothing_is_not_written_as_nothing(value: float) -> None:
    """0.0 (0.0 to 0.0) sample uniques were matched."""
    for told in (count(value), part(min(value, 1.0)), wide(Estimate90(value, (value, value), 0.0))):
        first = re.sub("fewer than|less than|[,%]", "", told).split()[0]
        assert float(first) > 0.0, told
    assert "0.0 to 0.0" not in wide(Estimate90(value, (0.0, value), 0.0))


def test_nothing_is_written_as_nothing() -> None:
    assert (count(0.0), part(0.0)) == ("0", "0%")
    assert wide(Estimate90(0.0, (0.0, 0.0), 0.0)) == "0 (0 to 0)"
