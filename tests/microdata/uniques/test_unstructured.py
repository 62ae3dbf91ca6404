"""Uniques without structure against factorials, enumeration of whole tables and simulation."""

import itertools
import json
import math
import time
from pathlib import Path

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.uniques.decisions import largest_sample, smallest_sample, unique_test
from bayes_sdc.microdata.uniques.mixture import mixture_of_priors
from bayes_sdc.microdata.uniques.unstructured import (
    expected_uniques,
    unique_probability,
    uniques_deviation,
)

DATA = Path(__file__).resolve().parents[2] / "data"
REFERENCE = json.loads((DATA / "cohen_sackrowitz.json").read_text(encoding="utf-8"))


def by_mpmath(n: int, N: int, K: int, c: float) -> float:
    with mpmath.workdps(60):
        total, a = K * mpmath.mpf(c) + n, mpmath.mpf(c) + 1
        return float(mpmath.gammaprod([total - a + N - n, total], [total - a, total + N - n]))


@pytest.mark.parametrize("case", REFERENCE["table"], ids=lambda case: f"n={case['n']}")
def test_reference_values_of_the_two_published_priors(case):
    sizes = case["n"], case["N"], case["K"]
    assert unique_probability(*sizes) == pytest.approx(case["q_uniform"], rel=1e-12)
    q = unique_probability(*sizes, concentration=math.inf)
    assert q == pytest.approx(case["q_multinomial"], rel=1e-10)
    assert expected_uniques(case["s"], *sizes) == pytest.approx(case["tau_uniform"], rel=1e-12)


@pytest.mark.parametrize("case", REFERENCE["concentration"], ids=lambda case: f"c={case['c']}")
def test_reference_values_of_other_concentrations(case):
    q = unique_probability(case["n"], case["N"], case["K"], concentration=case["c"])
    assert q == pytest.approx(case["q"], rel=1e-10)


@pytest.mark.parametrize("c", [1e-6, 0.01, 1, 3.7, 50, 900, 1e3, 1e5, 1e9])
@pytest.mark.parametrize("sizes", [(1, 2, 1), (5, 5, 3), (3, 1000, 2), (100, 50_000, 10**7)])
def test_ten_digits_of_the_gamma_functions(sizes, c):
    assert unique_probability(*sizes, concentration=c) == pytest.approx(
        by_mpmath(*sizes, c) if sizes != (1, 2, 1) else 0.0, rel=1e-10, abs=1e-300
    )


@pytest.mark.parametrize("c", [1e-3, 0.2, 1, 40, 1e3, 1e5, 1e6, 1e8, 1e12])
@pytest.mark.parametrize(
    "sizes",
    [
        (500_000, 5 * 10**6, 5000),
        (1000, 3 * 10**8, 2000),
        (1000, 10**6, 2000),
        (50_000, 3 * 10**8, 10**7),
        (10**6, 3 * 10**8, 10**12),
        (20, 30_000, 2),
        (3, 50_000, 1),
    ],
)
def test_large_populations_have_the_digits_of_the_gamma_functions(sizes, c):
    """Stirling's series in place of the factors: a wrong sign or term, or lost digits, show."""
    expected = by_mpmath(*sizes, c)
    q = unique_probability(*sizes, concentration=c)
    assert q == pytest.approx(expected, rel=1e-10, abs=1e-300)


def test_a_concentration_beyond_all_numbers_is_an_infinite_one():
    """K c overflows: the others would find no cell of theirs, and Q be 1."""
    q = unique_probability(10, 10**6, 10**7, concentration=1e305)
    assert q == unique_probability(10, 10**6, 10**7, concentration=math.inf)


def test_a_thousand_concentrations_cost_no_pass_over_the_population():
    """A product over the 300 million who were not sampled takes seconds for each."""
    unique_probability(1000, 10**6, 2000)  # compiled
    start = time.process_time()
    for c in np.geomspace(1e-3, 1e6, 100):
        unique_probability(1000, 3 * 10**8, 2000, concentration=c)
    assert time.process_time() - start < 1.0


@given(st.integers(1, 60), st.integers(0, 90), st.integers(1, 40))
def test_the_published_formulas(n, more, K):
    N = n + more
    expected = (n + K - 1) * (n + K - 2) / ((N + K - 1) * (N + K - 2)) if N + K > 2 else 1.0
    assert unique_probability(n, N, K) == pytest.approx(expected, rel=1e-12)
    q = unique_probability(n, N, K, concentration=math.inf)
    assert q == pytest.approx(((K - 1) / K) ** (N - n), rel=1e-12)


def posterior_tables(f: tuple[int, ...], N: int, c: float) -> dict[tuple[int, ...], float]:
    """All population tables with their posterior probabilities: prior times sampling, no formula.

    Prior: Dirichlet-multinomial, as a product of rising factorials (``inf``: multinomial).
    Sampling: multivariate hypergeometric.
    """
    weight = {}
    for table in itertools.product(range(N + 1), repeat=len(f)):
        if sum(table) != N or any(a < b for a, b in zip(table, f, strict=True)):
            continue
        prior = math.prod(
            (1.0 if math.isinf(c) else math.prod(c + i for i in range(F))) / math.factorial(F)
            for F in table
        )
        weight[table] = prior * math.prod(math.comb(a, b) for a, b in zip(table, f, strict=True))
    total = sum(weight.values())
    return {table: w / total for table, w in weight.items()}


@pytest.mark.parametrize("c", [0.3, 1.0, 2.5, math.inf])
@pytest.mark.parametrize(("f", "N"), [((1, 1, 2), 7), ((1, 0, 1, 1), 6), ((3, 1), 12)])
def test_probability_expectation_and_deviation_by_enumeration(c, f, N):
    """A wrong exponent or cell count in any closed form would show here."""
    tables = posterior_tables(f, N, c)
    alone = {table: sum(a == b == 1 for a, b in zip(table, f, strict=True)) for table in tables}
    first = f.index(1)
    q = sum(w for table, w in tables.items() if table[first] == 1)
    arguments = (sum(f), N, len(f))
    assert unique_probability(*arguments, concentration=c) == pytest.approx(q, rel=1e-12)
    s = f.count(1)
    mean = sum(w * alone[table] for table, w in tables.items())
    square = sum(w * alone[table] ** 2 for table, w in tables.items())
    assert expected_uniques(s, *arguments, concentration=c) == pytest.approx(mean, rel=1e-12)
    assert uniques_deviation(s, *arguments, concentration=c) == pytest.approx(
        math.sqrt(square - mean**2), rel=1e-9
    )


def test_uniques_of_simulated_tables():
    """Populations drawn from the prior, sampled without replacement: Q is how often."""
    rng = np.random.default_rng(11)
    n, N, K, c = 30, 60, 40, 0.6
    sample_uniques, both = 0, 0
    for _ in range(3000):
        table = rng.multinomial(N, rng.dirichlet(np.full(K, c)))
        f = rng.multivariate_hypergeometric(table, n)
        sample_uniques += int(np.sum(f == 1))
        both += int(np.sum((f == 1) & (table == 1)))
    q = unique_probability(n, N, K, concentration=c)
    error = math.sqrt(q * (1 - q) / sample_uniques)
    assert abs(both / sample_uniques - q) < 4 * error


@pytest.mark.parametrize(
    "call",
    [
        lambda: unique_probability(0, 5, 3),
        lambda: unique_probability(6, 5, 3),
        lambda: unique_probability(2, 5, 0),
        lambda: unique_probability(2.5, 5, 3),
        lambda: unique_probability(2, 5, 3, concentration=0),
        lambda: unique_probability(2, 5, 3, concentration=float("nan")),
        lambda: expected_uniques(4, 3, 5, 9),
        lambda: expected_uniques(-1, 3, 5, 9),
        lambda: unique_test(1.2, loss_accept=1, loss_reject=1),
        lambda: unique_test(0.2, loss_accept=0, loss_reject=1),
        lambda: unique_test(0.2, loss_accept=1, loss_reject=float("inf")),
        lambda: largest_sample(5, 3, -0.1),
        lambda: smallest_sample(5, 3, float("nan")),
        lambda: smallest_sample(5, 3, "0.1"),
        lambda: smallest_sample("5", 3, 0.1),
        lambda: largest_sample(5, 3, "a"),
        lambda: largest_sample(5, 3, None),
        lambda: largest_sample(5, float("nan"), 0.1),
        lambda: unique_test("a", loss_accept=1, loss_reject=1),
        lambda: unique_test(0.2, loss_accept="1", loss_reject=1),
        lambda: mixture_of_priors(pd.Series({1: 3}), 9, 2, concentrations=[1]),
        lambda: mixture_of_priors(pd.Series({0: 3}), 9, 5, concentrations=[1]),
        lambda: mixture_of_priors(pd.Series({1: 3}), 9, 5, concentrations=[]),
        lambda: mixture_of_priors(pd.Series({1: 3}), 9, 5, concentrations=[1], weights=[1, 2]),
        lambda: mixture_of_priors(pd.Series({1: 3}), 9, 5, concentrations=[1, 2], weights=[0, 0]),
    ],
)
def test_arguments_out_of_range_are_refused(call):
    with pytest.raises(InputError):
        call()
