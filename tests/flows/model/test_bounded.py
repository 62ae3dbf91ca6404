"""Bounded steps on arrays: no log ratio of any two neighbouring counts leaves its interval."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.flows.gibbs.batch_terms import ROWS, TERMS, WORK_ROWS, batch_terms, fill_coefficients
from bayes_sdc.flows.gibbs.bounded_terms import CENTRE
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.bounded import bounded, clipped, log_table, row_of, steps
from bayes_sdc.flows.table.bound import Bound

CENTRES = (-0.9, -0.6, -0.4, -0.35, -0.2, -0.3, -0.1, -0.2)
numbers = st.floats(-30.0, 30.0)
kappas = st.one_of(st.just(0.0), st.floats(1e-6, 1e6))
bounds = st.builds(
    Bound,
    st.floats(0.02, 20.0),
    st.lists(st.floats(-3.0, 3.0), min_size=1, max_size=12).map(tuple),
)


@given(numbers, kappas, bounds)
def test_no_log_ratio_leaves_its_interval(log_rate: float, kappa: float, bound: Bound) -> None:
    """The whole guarantee rests on this: width epsilon, wherever the parameters are."""
    free = steps(np.array(log_rate), kappa, len(bound.centres))
    for kept in (bounded(free, bound), clipped(free, bound)):
        ratios = np.diff(log_table(kept))
        assert (np.abs(ratios - bound.centres) <= bound.epsilon / 2.0 + 1e-9).all()


@given(numbers, kappas, bounds)
def test_compiled_ladder_is_the_formula(log_rate: float, kappa: float, bound: Bound) -> None:
    """What is released and what an intruder computes must be what the argument is about."""
    upper = len(bound.centres)
    expected = log_table(bounded(steps(np.array(log_rate), kappa, upper), bound))
    rungs = counts.ladder(np.array([kappa]), upper, bound)
    zero = np.zeros(upper + 1, np.int64)
    rates = np.full(upper + 1, log_rate)
    assert counts.log_table(rates[:1], zero[:1], rungs)[0] == pytest.approx(expected, abs=1e-9)
    table = counts.probabilities(rates[:1], zero[:1], rungs)[0]
    assert table == pytest.approx(np.exp(expected), rel=1e-9)
    every = counts.log_probabilities(np.arange(upper + 1.0), rates, zero, rungs)
    assert every == pytest.approx(expected, abs=1e-9)


def _terms(y: np.ndarray, log_rate: np.ndarray, log_cv: float, bound: Bound) -> np.ndarray:
    rows = np.zeros((ROWS, len(bound.centres) + 1))
    rows[CENTRE] = row_of(bound, len(bound.centres))
    fill_coefficients(log_cv, rows)
    terms, work = np.empty((TERMS, len(y))), np.empty((WORK_ROWS, len(y)))
    batch_terms(y, np.empty(0), log_rate, log_cv, rows, terms, work)
    return terms


@given(
    st.lists(numbers, min_size=1, max_size=70),
    st.one_of(st.just(-np.inf), st.floats(-4.0, 5.0)),
    bounds,
)
def test_terms_of_the_engine(rates: list[float], log_cv: float, bound: Bound) -> None:
    """Log-probability against the formula; slopes and information against its differences."""
    upper, log_rate = len(bound.centres), np.array(rates)
    y = np.arange(len(rates)) % (upper + 1)

    def table(shift: float, of_cv: float) -> np.ndarray:
        free = steps(log_rate + shift, np.exp(2.0 * (log_cv + of_cv)), upper)
        return log_table(bounded(free, bound))

    terms, at = _terms(y.astype(float), log_rate, log_cv, bound), (np.arange(len(y)), y)
    assert terms[0] == pytest.approx(table(0.0, 0.0)[at], abs=1e-8)
    p, h = np.exp(table(0.0, 0.0)), 1e-4 * min(bound.epsilon, 1.0)
    close = {"abs": 1e-5, "rel": 1e-4}
    by_rate = (table(h, 0.0) - table(-h, 0.0)) / (2.0 * h)
    by_cv = (table(0.0, h) - table(0.0, -h)) / (2.0 * h)
    assert terms[1] == pytest.approx(by_rate[at], **close)
    assert terms[2] == pytest.approx((p * by_rate**2).sum(axis=1), **close)
    assert terms[3] == pytest.approx(by_cv[at], **close)
    assert terms[4] == pytest.approx((p * by_cv**2).sum(axis=1), **close)
    assert terms[5] == pytest.approx((p * by_cv * by_rate).sum(axis=1), **close)


@pytest.mark.parametrize("kappa", [0.0, 0.8])
def test_without_end_it_is_the_family(kappa: float) -> None:
    """A bound so wide that nothing reaches it changes nothing."""
    rates, zero = np.linspace(-2.0, 3.0, 9), np.zeros(9, np.int64)
    free = counts.probabilities(rates, zero, counts.ladder(np.array([kappa]), 8))
    wide = counts.ladder(np.array([kappa]), 8, Bound(100.0, CENTRES))
    assert counts.probabilities(rates, zero, wide) == pytest.approx(free, rel=5e-2)
    wider = counts.ladder(np.array([kappa]), 8, Bound(1e4, CENTRES))
    assert counts.probabilities(rates, zero, wider) == pytest.approx(free, rel=1e-5)


def test_with_a_tiny_epsilon_the_counts_have_the_public_shares() -> None:
    """Nothing of the table is left, so the shares that the centres stand for must be."""
    rungs = counts.ladder(np.array([0.8]), 8, Bound(1e-9, CENTRES))
    found = counts.probabilities(np.array([3.0]), np.zeros(1, np.int64), rungs)[0]
    shares = np.exp(np.concatenate([[0.0], np.cumsum(CENTRES)]))
    assert found == pytest.approx(shares / shares.sum(), rel=1e-6)
