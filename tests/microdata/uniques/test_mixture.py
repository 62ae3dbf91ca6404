"""Concentrations weighed by what a sample says of them."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.uniques.mixture import mixture_of_priors
from bayes_sdc.microdata.uniques.unstructured import unique_probability


def test_mixture_weights_by_enumeration():
    """Marginal likelihood of the sample, from all population tables under each prior."""
    f, N, K = (1, 1, 3), 8, 3
    concentrations, weights = [0.2, 1.0, 4.0, math.inf], [1.0, 2.0, 0.0, 3.0]

    def marginal(c: float) -> float:
        def unnormalised(table: tuple[int, ...]) -> float:
            return math.prod(
                (1.0 if math.isinf(c) else math.prod(c + i for i in range(F))) / math.factorial(F)
                for F in table
            )

        tables = [t for t in itertools.product(range(N + 1), repeat=K) if sum(t) == N]
        norm = sum(map(unnormalised, tables))
        sampled = sum(
            unnormalised(t) * math.prod(math.comb(a, b) for a, b in zip(t, f, strict=True))
            for t in tables
        )
        return sampled / norm

    expected = np.array([w * marginal(c) for w, c in zip(weights, concentrations, strict=True)])
    expected /= expected.sum()
    result = mixture_of_priors(
        pd.Series({1: 2, 3: 1}), N, K, concentrations=concentrations, weights=weights
    )
    np.testing.assert_allclose(result.weights, expected, rtol=1e-12)
    q = [unique_probability(5, N, K, concentration=c) for c in concentrations]
    assert result.probability == pytest.approx(float(expected @ q), rel=1e-12)


def test_size_indices_as_a_mapping_and_of_other_types():
    expected = mixture_of_priors(pd.Series({1: 7, 2: 5}), 1000, 50, concentrations=[1.0, 2.0])
    given = {1: 7, 2: 5}
    for sizes in (given, pd.Series({1.0: 7.0, 2.0: 5.0}), pd.Series(given, dtype=object)):
        result = mixture_of_priors(sizes, 1000, 50, concentrations=[1.0, 2.0])
        assert result.weights.tolist() == expected.weights.tolist()


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        (pd.Series({1.5: 7, 2: 5}), "index of size_indices.* it is 1.5"),
        (pd.Series({1: 7.5, 2: 5}), "numbers of cells by size, .* it is 7.5"),
        (pd.Series({1: 7, 2: None}), "numbers of cells"),
        ({"1": 7}, "index of size_indices.* must hold numbers"),
        ({1: 7, -2: 5}, "it is -2"),
        ({1: 0}, "at least one cell"),
        ({}, "at least one cell"),
        ([7, 5], "must be a Series"),
    ],
)
def test_size_indices_that_are_none_are_refused_in_words(sizes, said):
    """Sizes of 1.5 counted as sizes of 1: another n, and another risk."""
    with pytest.raises(InputError, match=said):
        mixture_of_priors(sizes, 1000, 50, concentrations=[1.0, 2.0])


@pytest.mark.parametrize("changed", [{"K": "50"}, {"weights": ["a", 1]}, {"concentrations": ["1"]}])
def test_other_arguments_of_a_mixture_are_refused_in_words(changed):
    arguments = {"K": 50, "concentrations": [1.0], **changed}
    with pytest.raises(InputError):
        mixture_of_priors({1: 7}, 1000, arguments.pop("K"), **arguments)
