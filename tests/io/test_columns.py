"""What may stand in a cell of a count or a code, and what is said of what may not."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import InputError, read_flows
from bayes_sdc.io.columns import look_alikes, padding_variants

UNSEEN = ["\u200b", "\ufeff", "\xad", "\xa0", "\u200d", "\u2060", "\u200e"]
NAMES = {"origin": "o", "destination": "d", "count": "n"}


def said_of(count: str) -> str:
    frame = pd.DataFrame({"o": ["a", "b"], "d": ["b", "c"], "n": [count, "12"]})
    with pytest.raises(InputError) as refused:
        read_flows(frame, **NAMES)
    return str(refused.value)


@given(
    st.sampled_from(["\u2212", "\ufe63", "\uff0d"]),
    st.sampled_from(["1", "3", "9", "99", "66", "3.0", "2.5", "1.000", "4000", "1e3"]),
)
def test_a_minus_sign_is_a_minus_whatever_its_form(sign, number):
    """It was called a flag that says how a number was made, and nobody looked for hidden counts."""
    assert said_of(sign + number).replace(sign, "-") == said_of(f"-{number}")


@given(
    st.sampled_from(["1001", "01001", "A", "AT11", "Zürich", "New York"]),
    st.sampled_from(UNSEEN),
    st.integers(0, 8),
    st.booleans(),
)
def test_codes_that_differ_in_what_nobody_sees_are_noted(code, sign, place, other_end):
    """One area would count as two, and a flow of people who stayed as one between areas."""
    place = (0 if place % 2 else len(code)) if sign == "\xa0" else place % (len(code) + 1)
    odd = code[:place] + sign + code[place:]
    assert padding_variants([code, odd, "B"]) == [tuple(sorted([code, odd]))]
    assert look_alikes([code, odd, "B"]) == []
    ends = {"o": [code, "B"], "d": ["B", odd]} if other_end else {"o": [code, odd], "d": ["B", "C"]}
    notes = read_flows(pd.DataFrame({**ends, "n": [12, 15]}), **NAMES).notes
    assert any("differ only in padding" in note and repr(odd) in note for note in notes)


def test_a_blank_that_breaks_no_line_is_noted():
    assert padding_variants(["New York", "New\xa0York"]) == [("New York", "New\xa0York")]


@pytest.mark.parametrize("sign", UNSEEN)
def test_a_code_of_which_nothing_is_seen_is_missing(sign):
    frame = pd.DataFrame({"o": ["a", sign], "d": ["b", "c"], "n": [5, 12]})
    with pytest.raises(InputError, match="missing code in 1 row: row 2"):
        read_flows(frame, **NAMES)
