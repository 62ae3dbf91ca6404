"""Numbers that texts tell without holding them are those that counting by hand gives."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.flows.kept_columns.texts import (
    measures,
    numbers_inside,
    of_whole_numbers,
    together,
)

TEXTS = st.lists(st.text(max_size=12), min_size=1, max_size=5)


@given(TEXTS)
def test_measures_are_those_of_each_text_alone(texts):
    """Equal texts are measured once: their numbers must reach every row."""
    found = dict(measures(pd.Series([*texts, *texts])))
    for words, values in found.items():
        assert values.tolist() == [
            dict(measures(pd.Series([text])))[words][0] for text in [*texts, *texts]
        ]
    assert found["the number of different signs in its text"][0] == len(set(texts[0]))
    assert found["the longest run of a sign in its text"].max() <= max(map(len, texts))


@given(
    st.lists(st.integers(0, 10**12), min_size=2, max_size=5), st.sampled_from(["-", " of ", "/"])
)
def test_numbers_in_a_text_are_read_at_both_ends(numbers, between):
    found = dict(numbers_inside(pd.Series([between.join(map(str, numbers))])))
    assert found["the first number in its text"].tolist() == [numbers[0]]
    assert found["the last number in its text"].tolist() == [numbers[-1]]
    assert found["the last number in its text less the first"].tolist() == [
        numbers[-1] - numbers[0]
    ]


@given(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_two_texts_begin_alike_as_far_as_they_do(start, one, other):
    texts = [pd.Series([start + end]) for end in (one, other)]
    found = dict(together(*texts, *(dict(numbers_inside(text)) for text in texts)))
    alike = int(found["how many signs they begin with alike"][0])
    assert alike >= len(start)
    assert (start + one)[:alike] == (start + other)[:alike]
    assert found["the difference of their lengths"][0] == len(other) - len(one)
    differ = found["the number of places in which they differ"][0]
    assert differ <= min(len(start + one), len(start + other)) - alike


@given(st.lists(st.integers(0, 2**52), min_size=1, max_size=5))
def test_digits_and_bits_of_whole_numbers(numbers):
    found = dict(of_whole_numbers(np.array(numbers, np.float64)))
    assert found["the number of its bits"].tolist() == [bin(n).count("1") for n in numbers]
    assert found["the sum of its digits"].tolist() == [sum(map(int, str(n))) for n in numbers]
    for n, k in zip(numbers, found["how often it can be halved"], strict=True):
        assert n == 0 or (n % 2**k == 0 and n // 2**k % 2 == 1)
