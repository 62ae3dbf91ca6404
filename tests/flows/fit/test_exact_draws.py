"""How near released draws are to those of the exact posterior, for which the promise is made.

Tables so small that the posterior of everything is a sum over a grid: the probability of every
whole release is known, and beside it stands what the draws of a chain give.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import halfnorm

from bayes_sdc import fit_flows, read_flows
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.table.bound import Bound, bound_of
from bayes_sdc.flows.table.cells import fitted_cells
from bayes_sdc.models.migration import PRIORS

NODES = 41


def exact_releases(y: np.ndarray, upper: int, bound: Bound | None) -> np.ndarray:
    """Probability of every release of one origin and two destinations: Poisson, prior "weak".

    Given level and scales the log rates of the two cells are normal with known covariance: variance
    of the origin's effect plus that of the destination's, and the former between the two.
    """
    prior = PRIORS["weak"]
    # half-normal scales by the middle of equal shares of their prior
    share = (np.arange(NODES) + 0.5) / NODES
    sd = prior["sd_scale"] * halfnorm.ppf(share)
    node, weight = np.polynomial.hermite_e.hermegauss(NODES)
    weight = weight / weight.sum()
    # level and origin's effect add up: one normal number, given the scale of origins
    total = np.zeros((upper + 1, upper + 1))
    evidence = 0.0
    group = np.zeros(1, np.int64)
    rungs = counts.ladder(np.zeros(1), upper, bound)
    for sd_origin in sd:
        shared = np.sqrt(2.0 * prior["mu_sd"] ** 2 + sd_origin**2) * node  # (NODES,)
        for sd_destination in sd:
            rate = (shared[:, None] + sd_destination * node[None, :]).ravel()
            log_p = counts.log_table(rate, np.repeat(group, len(rate)), rungs)
            p = np.exp(log_p).reshape(NODES, NODES, upper + 1)
            one = np.einsum("k,skc->sc", weight, p)  # (shared, count) of a cell
            both = [np.einsum("k,sk,skc->sc", weight, p[..., count], p) for count in y]
            likelihood = one[:, y[0]] * one[:, y[1]]
            evidence += float(weight @ likelihood)
            total += np.einsum("s,sa,sb->ab", weight, both[0], both[1])
    return total / evidence


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_releases_of_the_chain_have_the_exact_probabilities(epsilon: float | None) -> None:
    """Total variation over all 81 releases, and the largest log ratio of those that occur."""
    frame = pd.DataFrame({"o": ["a", "a"], "d": ["x", "z"], "n": [2, 7]})
    table = read_flows(frame, origin="o", destination="d", count="n")
    how = {} if epsilon is None else {"epsilon": epsilon}
    posterior = fit_flows(
        table, family="poisson", prior="weak", draws=10_000, tune=1000, chains=4, seed=1, **how
    )
    cells, rates = fitted_cells(table, posterior), rates_by_draw(posterior)
    upper, found = table.k, np.zeros((table.k + 1, table.k + 1))
    for at in range(rates.n_draws):  # what a release is drawn from, summed over the chain
        log_rate, rungs = rates.at(cells, at)
        p = np.exp(counts.log_table(log_rate, cells.group, rungs))
        found += np.outer(p[0], p[1]) / rates.n_draws
    exact = exact_releases(cells.y, upper, bound_of(posterior.attrs))
    assert exact.sum() == pytest.approx(1.0, abs=1e-6)
    distance = 0.5 * float(np.abs(found - exact).sum())
    print(f"epsilon {epsilon}: total variation {distance:.4f} of {rates.n_draws} draws")
    assert distance < 0.01
    # what the chain changes of a log ratio is far below epsilon
    likely = exact > 1e-4
    assert float(np.abs(np.log(found[likely] / exact[likely])).max()) < 0.1
