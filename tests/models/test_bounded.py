"""Bounded counts in PyMC: the formula on arrays, written once more in another language."""

import numpy as np
import pymc as pm
import pytest

from bayes_sdc.flows.model.bounded import bounded, log_table, steps
from bayes_sdc.flows.table.bound import Bound
from bayes_sdc.models.bounded import BoundedCounts

CENTRES = (-0.7, -0.3, -0.4, 0.1)


@pytest.mark.parametrize("kappa", [None, 0.7])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 6.0])
def test_log_probability_is_that_of_the_arrays(kappa: float | None, epsilon: float) -> None:
    """NUTS must fit what is released."""
    rates = np.array([-30.0, -2.0, 0.3, 4.0, 40.0])
    free = steps(rates, 0.0 if kappa is None else kappa, 4)
    expected = log_table(bounded(free, Bound(epsilon, CENTRES)))
    for y in range(5):
        dist = BoundedCounts.dist(
            log_rate=rates, kappa=kappa, upper=4, epsilon=epsilon, centres=CENTRES
        )
        found = pm.logp(dist, np.full(5, y)).eval()
        np.testing.assert_allclose(found, expected[:, y], rtol=1e-10, atol=1e-12)


def test_nothing_lies_outside() -> None:
    dist = BoundedCounts.dist(log_rate=0.0, upper=4, epsilon=1.0, centres=CENTRES)
    assert np.isneginf(pm.logp(dist, np.array([-1, 5])).eval()).all()


def test_draws_have_these_probabilities() -> None:
    """Prior and posterior predictive draws come from the same table."""
    dist = BoundedCounts.dist(
        log_rate=np.full(20_000, 0.4), kappa=0.7, upper=4, epsilon=0.5, centres=CENTRES
    )
    drawn = np.bincount(pm.draw(dist, random_seed=1), minlength=5) / 20_000
    expected = np.exp(log_table(bounded(steps(np.array(0.4), 0.7, 4), Bound(0.5, CENTRES))))
    assert np.abs(drawn - expected).max() < 4.0 * np.sqrt(0.25 / 20_000)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"centres": (0.0,) * 3}, "centres"),
        ({"upper": 0}, "upper"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, object], said: str) -> None:
    asked = {"upper": 4, "epsilon": 1.0, "centres": CENTRES} | wrong
    with pytest.raises(ValueError, match=said):
        BoundedCounts.dist(log_rate=0.0, **asked)
