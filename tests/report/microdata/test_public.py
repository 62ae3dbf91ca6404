"""What the public reads of a file of persons."""

import re

from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.microdata.latent_classes.risk import Estimate90
from bayes_sdc.report.microdata.public import public_interval

RECORDS = 5000


@given(st.lists(st.floats(0.0, RECORDS), min_size=3, max_size=3).map(sorted))
def test_a_printed_interval_holds_the_interval(numbers: list[float]) -> None:
    """Ends rounded to the nearest per cent said 5 to 6 of 4.7 to 5.7."""
    low, value, high = numbers
    said = public_interval(Estimate90(value, (low, high), 1.0), RECORDS)
    ends = re.search(r"\((.*) to (.*)\)", said)
    if ends is None:
        return
    one, other = (
        0.0 if "less" in end else 1.0 if "more" in end else float(end.strip("%")) / 100.0
        for end in ends.groups()
    )
    if "more" not in ends[1]:
        assert one <= low / RECORDS + 1e-8
    if "less" not in ends[2]:
        assert other >= high / RECORDS - 1e-8


def test_an_estimate_without_an_interval_has_none() -> None:
    assert public_interval(Estimate90(233.0, (233.0, 233.0), 1.0), RECORDS) == "5%"


def test_few_records_have_no_share() -> None:
    assert "not shown" in public_interval(Estimate90(3.0, (1.0, 4.0), 1.0), 100)
