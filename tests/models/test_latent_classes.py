"""The PyMC models of the latent classes against the compiled sampler and its second stage."""

import warnings

import numpy as np
import pytest

from bayes_sdc.microdata.latent_classes import dispersion as d
from bayes_sdc.microdata.latent_classes.combinations import Cells
from bayes_sdc.microdata.latent_classes.gibbs import run_sweeps, start_state
from bayes_sdc.models.latent_classes import build_base, build_dispersion

CODES = np.array([[a, b] for a in range(2) for b in range(3)])
RECORDS = np.array([14, 3, 2, 1, 2, 11])


def test_the_second_stage_has_the_same_density() -> None:
    """Up to a constant, at points all over the prior."""
    rng = np.random.default_rng(1)
    g = rng.dirichlet(np.full(40, 0.5))
    f = rng.poisson(60 * g * rng.gamma(1.0, 1.0, 40))
    n = 60.0
    seen = f > 0
    # each unseen cell drawn in proportion to g, by very many draws
    unseen = np.repeat(np.log(n * g[~seen]), np.round(1e6 * g[~seen]).astype(int))
    terms = d.collect(f[seen], np.log(n * g[seen]), unseen, n * g[~seen].sum() / len(unseen))
    model = build_dispersion(f, n * g)
    logp = model.compile_logp(vars=[model["f"]], sum=True)
    names = [variable.name for variable in model.value_vars]
    differences = []
    for log_r, kappa in [(-2.0, 0.1), (0.0, 0.5), (2.0, 0.9), (4.5, 0.3)]:
        odds = {"log_R": (log_r + 3.0) / (5.0 - log_r), "kappa": kappa / (1.0 - kappa)}
        point = {f"{k}_interval__": np.log(v) for k, v in odds.items()}
        assert set(point) == set(names)
        differences.append(float(logp(point)) - d.log_likelihood(terms, log_r, kappa))
    np.testing.assert_allclose(differences, differences[0], atol=1e-3)


@pytest.mark.slow
def test_the_sampler_agrees_with_nuts() -> None:
    """With the classes summed out, on what does not depend on their labels."""
    import arviz_stats
    import pymc as pm

    with build_base(CODES, RECORDS, levels=[2, 3], classes=2), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # weights near 0 make some steps diverge
        posterior = pm.sample(
            1500, tune=1500, chains=4, cores=1, target_accept=0.98, random_seed=1,
            progressbar=False, nuts_sampler="pymc",
        )["posterior"]  # fmt: skip
    rows = (CODES + np.array([0, 2])).astype(np.int32)
    cells = Cells(
        rows, np.array([0, 1, 1, 0, 1, 1]), RECORDS.astype(np.int64), np.array([0, 2, 5]),
        np.arange(6),
    )  # fmt: skip
    rng = np.random.default_rng(2)
    state = start_state(rng, cells, 2)
    found = []
    for _ in range(20_000):
        one = np.empty((1, 3))
        run_sweeps(rng, cells.start, rows, cells.shared, cells.records, 100.0, state, one)
        found.append([*state.g, one[0, 0]])
    sweeps = np.array(found)[500:]
    whole = np.concatenate(
        [posterior["g"].to_numpy(), posterior["log_likelihood"].to_numpy()[..., None]], axis=-1
    )
    for k in range(7):
        size = min(
            float(arviz_stats.ess(x, method="mean"))
            for x in (whole[..., k], sweeps[:, k].reshape(4, -1))
        )
        sd = sweeps[:, k].std()
        assert abs(whole[..., k].mean() - sweeps[:, k].mean()) < 4.5 * sd * np.sqrt(2.0 / size)
        assert whole[..., k].std() == pytest.approx(sd, rel=0.15)
