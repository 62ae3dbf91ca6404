"""What a base measure would add: against a search, and where there is nothing to find."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from bayes_sdc import fit_flows, read_flows
from bayes_sdc.flows.diagnostics.verdicts import family_offered
from bayes_sdc.flows.release.use.base_gain import RIDGE, base_gain, best_measure


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_measure_is_the_one_that_a_search_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(5), 300)
    y = rng.choice(5, 300, p=[0.4, 0.05, 0.3, 0.0, 0.25])

    def minus(free: np.ndarray) -> float:
        measure = np.concatenate([[0.0], free])
        log_p = measure[y] - np.log(p @ np.exp(measure))
        return float(-log_p.sum() + 0.5 * RIDGE * measure @ measure)

    found = minimize(minus, np.zeros(4), method="BFGS", options={"gtol": 1e-6}).x
    measure, gain = best_measure(p, y)
    np.testing.assert_allclose(measure[1:], found, atol=1e-3)
    q = p * np.exp(measure)
    q /= q.sum(axis=1, keepdims=True)
    at = np.arange(300), y
    np.testing.assert_allclose(gain, np.log(q[at] / p[at]).mean(), rtol=1e-9)


def test_counts_of_the_model_gain_nothing_but_chance() -> None:
    """The mean over tables is about 0 after the correction: Akaike's."""
    rng, gains = np.random.default_rng(5), []
    for _ in range(60):
        p = rng.dirichlet(np.ones(6), 400)
        y = (rng.random(400)[:, None] >= np.cumsum(p, axis=1)).sum(axis=1)
        gains.append(best_measure(p, np.minimum(y, 5))[1] - 5 / 400)
    assert np.mean(gains) < 0.0  # half of what is taken off is the gain in the table itself
    assert max(gains) < 0.02


def test_heaped_counts_are_offered_the_family_and_others_are_not() -> None:
    areas = [f"{number:02d}" for number in range(14)]
    pairs = [(a, b) for a in areas for b in areas if a != b]
    frame = pd.DataFrame(pairs, columns=["o", "d"])
    rng = np.random.default_rng(6)
    smooth = 1 + rng.poisson(rng.gamma(1.0, 4.0, len(frame)))
    gains = []
    for n in (smooth, np.where(smooth < 10, np.maximum(3, 3 * np.round(smooth / 3)), smooth)):
        table = read_flows(frame.assign(n=n.astype(int)), origin="o", destination="d", count="n")
        posterior = fit_flows(table, draws=60, tune=60, chains=2, seed=1)
        gains.append(base_gain(table, posterior))
    assert gains[0] < 0.01
    assert gains[1] > 0.8
    assert family_offered(gains[0]) == ""
    assert f"would gain about {gains[1]:.2f}" in family_offered(gains[1])
    with_measure = fit_flows(table, family="base", draws=60, tune=60, chains=2, seed=1)
    assert base_gain(table, with_measure) == 0.0
