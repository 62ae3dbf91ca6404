"""Sums whose totals are hidden too: against every choice of numbers, one by one."""

import itertools

import numpy as np
import pytest

from bayes_sdc.flows.audit.equations import Equation, bound_by_equations
from bayes_sdc.flows.audit.propagation import FREE


@pytest.mark.parametrize("seed", range(60))
def test_bounds_are_those_of_all_numbers_that_fit(seed):
    rng = np.random.default_rng(seed)
    n = 5
    truth = rng.integers(0, 5, n)
    equations = []
    for _ in range(rng.integers(1, 4)):
        chosen = rng.permutation(n)[: rng.integers(2, 5)]
        parts, total = (chosen[:-1], int(chosen[-1])) if rng.random() < 0.5 else (chosen, -1)
        rest = int(truth[parts].sum()) - (int(truth[total]) if total >= 0 else 0)
        off = int(rng.integers(0, 2)) * int(rng.random() < 0.3)
        equations.append(Equation(parts, total, rest - off, rest + off, "a sum"))
    fitting = [
        each
        for each in itertools.product(range(5), repeat=n)
        if all(e.low <= (np.array(each)[e.members] * e.signs).sum() <= e.high for e in equations)
    ]
    found = bound_by_equations(np.zeros(n, int), np.full(n, 4), equations)
    assert found.lower.tolist() == np.min(fitting, axis=0).tolist()
    assert found.upper.tolist() == np.max(fitting, axis=0).tolist()
    assert found.exact.all()
    assert all(found.why[k] for k in np.flatnonzero(found.lower == found.upper))


def test_an_equation_that_nothing_fits_is_named_and_left_out():
    wrong = Equation(np.array([0]), -1, -3, -3, "30 minus 33")
    found = bound_by_equations(np.zeros(1, int), np.array([9]), [wrong])
    assert found.wrong == ["30 minus 33"]
    assert (found.lower[0], found.upper[0]) == (0, 9)


def test_numbers_without_limit_stay_without():
    one = Equation(np.array([0]), 1, 4, 4, "x plus 4 hidden")  # x - y = 4
    two = Equation(np.array([0, 2]), 1, 6, 6, "more")
    found = bound_by_equations(np.zeros(3, int), np.full(3, FREE), [one, two])
    assert found.lower.tolist() == [4, 0, 2]
    assert found.upper.tolist() == [FREE, FREE, 2]
    assert found.exact.all()
