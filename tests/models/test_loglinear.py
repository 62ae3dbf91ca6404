"""The log-linear model against densities computed by SciPy on a whole small table."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import gammaln

from bayes_sdc.models.loglinear import build_loglinear

LEVELS = (2, 3, 2)
CELLS = np.indices(LEVELS).reshape(3, -1).T
F = np.array([4, 0, 1, 2, 0, 0, 7, 1, 0, 3, 0, 1])
TERMS = [(0,), (1,), (2,), (0, 1), (0, 1, 2)]


def test_one_scale_a_block_and_chosen_terms() -> None:
    model = build_loglinear(CELLS, F, levels=LEVELS, terms=TERMS, keys=["a", "b", "c"])
    scales = {name for name in model.named_vars if name.startswith("scale")}
    assert scales == {"scale of keys", "scale of pairs", "scale of triples"}
    sizes = {name: len(model.coords[f"levels of {name}"]) for name in ("a", "b", "a x b")}
    assert sizes == {"a": 2, "b": 3, "a x b": 6}


@pytest.mark.parametrize("dispersed", [False, True])
def test_the_likelihood_is_that_of_the_whole_table(dispersed: bool) -> None:
    """Means by hand from the effects; the densities are SciPy's."""
    model = build_loglinear(CELLS, F, levels=LEVELS, terms=TERMS, dispersed=dispersed)
    names = ["constant", "log_mean", "log_likelihood"]
    names += ["effects of " + " x ".join(f"key {j + 1}" for j in term) for term in TERMS]
    names += ["log_shape"] * dispersed
    drawn = dict(zip(names, pm.draw([model[name] for name in names], random_seed=1), strict=True))
    effects = {term: drawn["effects of " + " x ".join(f"key {j + 1}" for j in term)]
               for term in TERMS}  # fmt: skip
    log_mean = drawn["constant"] + sum(
        values[np.ravel_multi_index(tuple(CELLS[:, j] for j in term), [LEVELS[j] for j in term])]
        for term, values in effects.items()
    )
    np.testing.assert_allclose(drawn["log_mean"], log_mean, rtol=1e-10)
    mean = np.exp(log_mean)
    if dispersed:
        r = np.exp(drawn["log_shape"])
        exact = stats.nbinom.logpmf(F, r, r / (r + mean))
    else:
        exact = stats.poisson.logpmf(F, mean)
    np.testing.assert_allclose(drawn["log_likelihood"], exact + gammaln(F + 1), atol=1e-6)


def test_cells_that_stand_for_others_count_so_often() -> None:
    """Twice the same empty cell is one of weight 2."""
    twice = build_loglinear(
        np.vstack([CELLS, CELLS[1]]), np.append(F, 0), levels=LEVELS, terms=TERMS[:3]
    )
    weight = np.ones(len(F))
    weight[1] = 2.0
    once = build_loglinear(CELLS, F, levels=LEVELS, terms=TERMS[:3], weight=weight)
    point = twice.initial_point(random_seed=1)
    point["constant"] = point["constant"] + 0.3
    logp = [model.compile_logp()(point) for model in (twice, once)]
    assert logp[0] == pytest.approx(logp[1], rel=1e-12)
