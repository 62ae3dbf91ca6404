"""Means of coefficients with the coefficients integrated out: against one normal of all of them."""

import numpy as np

from bayes_sdc.flows.gibbs import engine
from bayes_sdc.flows.gibbs.mean_coefficients import move_mean_coefficients
from bayes_sdc.flows.gibbs.state import OF_DESTINATION, OF_ORIGIN
from bayes_sdc.flows.model.hyperpriors import CV, SD_DESTINATION, SD_ORIGIN, nation, priors
from bayes_sdc.flows.table.cells import SmallCells
from bayes_sdc.models.migration import PRIORS

GROUPS, AREAS, PRIOR = 3, 5, PRIORS["pooled"]


def cells_of(rng: np.random.Generator) -> SmallCells:
    """Every pair of the areas of each group, two covariates of origins and one of destinations."""
    group, i, j = (index.ravel() for index in np.indices((GROUPS, AREAS, AREAS)))
    origin, destination = AREAS * group + i, AREAS * group + j
    of_area = rng.normal(size=(3, GROUPS * AREAS))
    return SmallCells(
        y=rng.integers(0, 9, len(group)),
        group=group,
        origin=origin,
        destination=destination,
        group_of_origin=np.repeat(np.arange(GROUPS), AREAS),
        group_of_destination=np.repeat(np.arange(GROUPS), AREAS),
        x=np.column_stack([of_area[0][origin], of_area[1][origin], of_area[2][destination]]),
        z=np.empty((GROUPS, 0)),
        upper=8,
        covariates=["a", "b", "c"],
        group_covariates=[],
        cells=[],
        groups=[str(g) for g in range(GROUPS)],
        origin_effects=[],
        destination_effects=[],
    )


def test_means_and_coefficients_are_those_of_their_joint_normal():
    """Each call is an independent draw, for what effects and covariates add up to stays."""
    rng = np.random.default_rng(1)
    data = engine.prepare(cells_of(rng))
    assert data.of.tolist() == [OF_ORIGIN, OF_ORIGIN, OF_DESTINATION]
    state = engine.init(rng, data, "negative-binomial")
    now, hyper = priors(PRIOR, 3), nation(PRIOR, 3)
    log_rate = state.log_rate.copy()
    draws = []
    for _ in range(4000):
        move_mean_coefficients(rng, data, state, now, hyper)
        draws.append(np.concatenate([now.first[CV + 1 :], state.theta[:, CV + 1 :].ravel()]))
    found = np.array(draws)
    # the precision of three means, then three coefficients of each group, term by term
    precision, right = np.zeros((12, 12)), np.zeros(12)
    for k in range(3):
        precision[k, k] += 1.0 / hyper[CV + 1 + k, 1] ** 2
        right[k] += hyper[CV + 1 + k, 0] / hyper[CV + 1 + k, 1] ** 2
        for g in range(GROUPS):
            apart = np.zeros(12)
            apart[k], apart[3 + 3 * g + k] = 1.0, -1.0
            precision += np.outer(apart, apart) / now.second[CV + 1 + k] ** 2
    sides = (
        ([0, 1], data.x_origin, state.b, SD_ORIGIN),
        ([2], data.x_destination, state.g, SD_DESTINATION),
    )
    for which, x, effects, column in sides:
        for e in range(GROUPS * AREAS):
            g = e // AREAS
            at = 3 + 3 * g + np.array(which)
            both = effects[e] + x[which, e] @ state.theta[g, CV + 1 + np.array(which)]
            weight = np.exp(-2.0 * state.theta[g, column])
            precision[np.ix_(at, at)] += weight * np.outer(x[which, e], x[which, e])
            right[at] += weight * both * x[which, e]
    covariance = np.linalg.inv(precision)
    sd = np.sqrt(np.diag(covariance))
    z = (found.mean(axis=0) - covariance @ right) / (sd / np.sqrt(len(found)))
    assert np.abs(z).max() < 4.0
    np.testing.assert_allclose(
        np.cov(found.T) / np.outer(sd, sd), covariance / np.outer(sd, sd), atol=0.08
    )
    # and no rate has changed
    engine.refresh(data, state)
    np.testing.assert_allclose(state.log_rate, log_rate, atol=1e-9)
