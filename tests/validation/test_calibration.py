"""Simulation-based calibration of every family and prior: ranks of the truth are uniform.

Parameters are drawn from the prior, counts from the model, and the rank of the truth among thinned
posterior draws is noted, also that of the log-likelihood, which tells a sampler that ignores the
counts. For a prior without pooling every group is a replicate of its own, so one chain serves all.
Source: Talts, Betancourt, Simpson, Vehtari and Gelman 2018, https://arxiv.org/abs/1804.06788;
Modrak, Moon, Kim, Buerkner, Huurre, Faltejskova, Gelman and Vehtari 2023, doi:10.1214/23-BA1404.
"""

import itertools
from collections.abc import Mapping
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import chisquare

from bayes_sdc.flows.fit.chains import sample_chain
from bayes_sdc.flows.gibbs import engine, newton
from bayes_sdc.flows.gibbs import reference as gibbs
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.hyperpriors import (
    CV,
    LEVEL,
    SD_DESTINATION,
    SD_ORIGIN,
    Priors,
    nation,
)
from bayes_sdc.flows.table.cells import SmallCells
from bayes_sdc.models.migration import PRIORS

UPPER = 8
RANKS = 20  # bins; there are a multiple of this less one thinned draws
KEPT = 99
REPLICATES = 400  # 200 of the pooled prior, which needs a table for each
# of the paper's prior: within these the precision is a number, and the counts are not all equal
PAPER_LOG_PHI = (-6.0, 12.0)


def country(
    groups: int, origins: int = 5, destinations: int = 6, covariates: int = 0
) -> SmallCells:
    """Groups of one shape, every pair of areas a cell."""
    i, j = (part.ravel() for part in np.indices((origins, destinations)))
    group = np.repeat(np.arange(groups), len(i))
    return SmallCells(
        y=np.zeros(len(group), np.int64),
        group=group,
        origin=group * origins + np.tile(i, groups),
        destination=group * destinations + np.tile(j, groups),
        group_of_origin=np.repeat(np.arange(groups), origins),
        group_of_destination=np.repeat(np.arange(groups), destinations),
        x=np.random.default_rng(40).standard_normal((len(group), covariates)),
        z=np.empty((groups, 0)),
        upper=UPPER,
        covariates=[f"x{k}" for k in range(covariates)],
        group_covariates=[],
        cells=[],
        groups=[f"{g:04d}" for g in range(groups)],
        origin_effects=[],
        destination_effects=[],
    )


def with_sizes(cells: SmallCells) -> SmallCells:
    """Properties of the origins, of the destinations and of the groups, as the default has them."""
    rng = np.random.default_rng(41)
    x = [rng.standard_normal(index.max() + 1)[index] for index in (cells.origin, cells.destination)]
    return cells._replace(
        x=np.column_stack(x),
        z=rng.standard_normal((len(cells.groups), 1)),
        covariates=["size of origin", "size of destination"],
        group_covariates=["odds"],
    )


def draw_theta(
    rng: np.random.Generator, n: int, family: str, prior: Mapping[str, float], covariates: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Parameters of n groups, and the national means and sds (empty unless pooled)."""
    parameters = CV + 1 + covariates
    if "national_log_sd_sd" in prior:
        hyper = nation(prior, covariates)
        mean = rng.normal(hyper[:, 0], hyper[:, 1])
        sd = np.exp(rng.normal(hyper[:, 2], hyper[:, 3]))
        theta = rng.normal(mean, sd, (n, parameters))
        national = np.concatenate([mean, sd])
    else:
        theta, national = np.empty((n, parameters)), np.empty(0)
        theta[:, LEVEL] = rng.normal(0.0, np.sqrt(2.0) * prior["mu_sd"], n)
        for column in (SD_ORIGIN, SD_DESTINATION):
            theta[:, column] = draw_log_sd(rng, n, prior)
        theta[:, CV] = np.log(np.abs(rng.normal(0.0, prior["cv_scale"], n)))
        theta[:, CV + 1 :] = rng.normal(0.0, prior["coefficient_sd"], (n, covariates))
    if family == "poisson":
        theta[:, CV] = -np.inf
    return theta, national


def draw_log_sd(rng: np.random.Generator, n: int, prior: Mapping[str, float]) -> np.ndarray:
    if "sd_scale" in prior:
        return np.log(np.abs(rng.normal(0.0, prior["sd_scale"], n)))
    kept = np.empty(0)
    while len(kept) < n:
        shape = prior["phi_shape"]
        log_phi = np.log(rng.gamma(shape + 1.0, 1.0 / prior["phi_rate"], 100 * n))
        log_phi -= rng.exponential(1.0, 100 * n) / shape
        inside = (log_phi > PAPER_LOG_PHI[0]) & (log_phi < PAPER_LOG_PHI[1])
        kept = np.append(kept, log_phi[inside])
    return -0.5 * kept[:n]


def log_rates(cells: SmallCells, theta: np.ndarray, b: np.ndarray, g: np.ndarray) -> np.ndarray:
    log_rate = theta[cells.group, LEVEL] + b[cells.origin] + g[cells.destination]
    return np.asarray(log_rate + (cells.x * theta[cells.group, CV + 1 :]).sum(axis=1))


def draw_data(
    rng: np.random.Generator, cells: SmallCells, theta: np.ndarray
) -> tuple[SmallCells, np.ndarray, np.ndarray]:
    b = rng.normal(0.0, np.exp(theta[cells.group_of_origin, SD_ORIGIN]))
    g = rng.normal(0.0, np.exp(theta[cells.group_of_destination, SD_DESTINATION]))
    log_rate = log_rates(cells, theta, b, g)
    rungs = counts.ladder(np.exp(2.0 * theta[:, CV]), UPPER)
    y = counts.draw(log_rate, cells.group, rungs, rng.random(len(log_rate)))
    return cells._replace(y=y), b, g


def quantities(
    cells: SmallCells, theta: np.ndarray, b: np.ndarray, g: np.ndarray
) -> dict[str, np.ndarray]:
    """What is ranked, by group: parameters, two effects, and the log-likelihood."""
    log_rate = log_rates(cells, theta, b, g)
    rungs = counts.ladder(np.exp(2.0 * theta[:, CV]), UPPER)
    log_p = counts.log_probabilities(cells.y.astype(float), log_rate, cells.group, rungs)
    first = np.searchsorted(cells.group_of_origin, np.arange(len(cells.groups)))
    last = np.searchsorted(cells.group_of_destination, np.arange(len(cells.groups)), "right") - 1
    found = {
        "alpha": theta[:, LEVEL],
        "log sd beta": theta[:, SD_ORIGIN],
        "log sd gamma": theta[:, SD_DESTINATION],
        "first origin": theta[:, LEVEL] + b[first],
        "last destination": g[last],
        "log-likelihood": np.bincount(cells.group, log_p),
    }
    if np.isfinite(theta[:, CV]).all():
        found["log cv"] = theta[:, CV]
    return found | {name: theta[:, CV + 1 + k] for k, name in enumerate(cells.covariates)}


def sample(
    module: ModuleType,
    cells: SmallCells,
    family: str,
    prior: Mapping[str, float],
    thin: int,
    seed: int,
) -> dict[str, np.ndarray]:
    sampling = Sampling(family, prior, KEPT * thin, 300, 1, seed, 1)
    chain = module.MarkovChain(module.prepare(cells), sampling, np.random.SeedSequence(seed))
    return {name: values[::thin] for name, values in sample_chain(chain, sampling).values.items()}


def ranks_of(
    cells: SmallCells, truth: dict[str, np.ndarray], states: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Rank of the truth among the draws, for every quantity and group."""
    below = {name: np.zeros(len(values)) for name, values in truth.items()}
    total = np.zeros(len(cells.groups))
    low, high = (-0.5 * np.array(PAPER_LOG_PHI))[::-1]
    for s in range(KEPT):
        theta = np.column_stack(
            [
                states["alpha"][s],
                -0.5 * np.log(states["phi_beta"][s]),
                -0.5 * np.log(states["phi_gamma"][s]),
                -0.5 * np.log(states["r"][s])
                if "r" in states
                else np.full(len(cells.groups), -np.inf),
                *(states["coefficient"][s].T if cells.covariates else []),
            ]
        )
        b = states["beta"][s] - states["mu_beta"][s][cells.group_of_origin]
        g = states["gamma"][s] - states["mu_gamma"][s][cells.group_of_destination]
        # the posterior given that the scales lie where they were drawn from
        scales = theta[:, [SD_ORIGIN, SD_DESTINATION]]
        inside = ((scales > low) & (scales < high)).all(axis=1)
        total += inside
        for name, values in quantities(cells, theta, b, g).items():
            below[name] += inside & (values < truth[name])
    enough = total >= KEPT // 2
    # with fewer draws the rank is spread evenly over the ranks that it stands for
    spread = np.random.default_rng(0).random(len(total))
    return {name: ((values + spread) / (total + 1.0))[enough] for name, values in below.items()}


def p_value(ranks: np.ndarray) -> float:
    """Chi-squared test of uniformity of ranks in [0, 1)."""
    observed = np.bincount((ranks * RANKS).astype(int), minlength=RANKS)
    return float(chisquare(observed).pvalue)


def calibration(
    module: ModuleType, family: str, prior: str, *, thin: int = 10, covariates: int = 0
) -> dict[str, float]:
    """P-values of all quantities of a prior without pooling."""
    rng = np.random.default_rng(20)
    cells = country(REPLICATES, covariates=covariates)
    theta, _ = draw_theta(rng, REPLICATES, family, PRIORS[prior], covariates)
    cells, b, g = draw_data(rng, cells, theta)
    states = sample(module, cells, family, PRIORS[prior], thin, seed=1)
    ranks = ranks_of(cells, quantities(cells, theta, b, g), states)
    return {name: p_value(values) for name, values in ranks.items()}


def calibration_pooled(
    family: str,
    *,
    replicates: int = 200,
    covariates: int = 0,
    sizes: bool = False,
    sign: float = 1.0,
) -> dict[str, float]:
    """P-values of the national distribution and of one group of each replicate."""
    rng = np.random.default_rng(30)
    prior, ranks = PRIORS["pooled"], {}
    for replicate in range(replicates):
        cells = country(8, origins=4, destinations=4, covariates=covariates)
        if sizes:
            cells = with_sizes(cells)
        theta, national = draw_theta(rng, 8, family, prior, len(cells.covariates))
        if sizes:
            slope = rng.normal(prior["coefficient_mean"], prior["coefficient_mean_sd"], 1)
            theta[:, LEVEL] += sign * cells.z @ slope
        cells, b, g = draw_data(rng, cells, theta)
        states = sample(engine, cells, family, prior, thin=10, seed=replicate)
        found = ranks_of(cells, quantities(cells, theta, b, g), states)
        one = {name: values[0] for name, values in found.items()}
        both = np.concatenate([states["national_mean"], states["national_sd"]], axis=1)
        columns = len(national) // 2
        sampled = [k for k in range(len(national)) if family != "poisson" or k % columns != CV]
        spread = np.random.default_rng(replicate).random(len(national))
        for place, k in enumerate(sampled):  # the draws have no column for what is not sampled
            below = (both[:, place] < national[k]).sum()
            one[f"national {k}"] = (below + spread[k]) / (KEPT + 1.0)
        if sizes:
            below = (states["national_slope"] < slope).sum()
            one["national slope"] = (below + spread[0]) / (KEPT + 1.0)
        for name, value in one.items():
            ranks.setdefault(name, []).append(value)
    return {name: p_value(np.array(values)) for name, values in ranks.items()}


def worst_corrected(p_values: dict[str, float]) -> float:
    """Smallest p-value after Bonferroni's correction."""
    return min(p_values.values()) * len(p_values)


@pytest.mark.slow
@pytest.mark.parametrize("covariates", [0, 2])
@pytest.mark.parametrize(
    ("family", "prior"),
    # the paper's prior with the negative binomial runs away to infinite rates: nothing to rank
    [("poisson", "weak"), ("negative-binomial", "weak"), ("poisson", "paper")],
)
def test_engine_is_calibrated(family: str, prior: str, covariates: int) -> None:
    """A biased sampler, or a likelihood that differs from the draws, tilts the ranks.

    Ranks are uniform for independent draws. Under the paper's prior coefficients of draws ten
    sweeps apart are correlated by 0.8, and ranks pile up at both ends; 40 sweeps apart by 0.45.
    """
    thin = 40 if prior == "paper" and covariates else 10
    found = calibration(engine, family, prior, thin=thin, covariates=covariates)
    assert worst_corrected(found) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "covariates"), [("poisson", 0), ("negative-binomial", 0), ("negative-binomial", 1)]
)
def test_engine_is_calibrated_with_pooling(family: str, covariates: int) -> None:
    assert worst_corrected(calibration_pooled(family, covariates=covariates)) > 0.01


@pytest.mark.slow
def test_engine_is_calibrated_with_sizes_of_areas_and_groups() -> None:
    """The default: covariates of both areas, and what moves the mean of a group's level."""
    assert worst_corrected(calibration_pooled("negative-binomial", sizes=True)) > 0.01


@pytest.mark.slow
def test_slopes_of_the_wrong_sign_are_found() -> None:
    """Levels that fall where the fit is told that they rise."""
    found = calibration_pooled("negative-binomial", replicates=60, sizes=True, sign=-1.0)
    assert found["national slope"] < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("family", ["poisson", "negative-binomial"])
def test_reference_sampler_is_calibrated(family: str) -> None:
    assert worst_corrected(calibration(gibbs, family, "weak", thin=40, covariates=1)) > 0.01


@pytest.mark.slow
def test_broken_copies_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The study must be able to fail: printed steps 5 and 6, and effects of the wrong cells."""

    def about_the_mean(effect: np.ndarray, mu: np.ndarray, side: gibbs.Side) -> np.ndarray:
        mean = np.bincount(side.group, effect) / side.size
        return np.bincount(side.group, (effect - mean[side.group]) ** 2)

    original = engine.prepare
    monkeypatch.setattr(gibbs, "sum_of_squares", about_the_mean)

    def of_other_cells(cells: SmallCells) -> newton.Data:
        data = original(cells)
        data = data._replace(destination=data.destination.copy())
        rng = np.random.default_rng(2)
        # of the same group: an index beyond it would corrupt memory
        for start, stop in itertools.pairwise(data.cells_of_group):
            data.destination[start:stop] = rng.permutation(data.destination[start:stop])
        return data

    monkeypatch.setattr(engine, "prepare", of_other_cells)
    assert min(calibration(gibbs, "poisson", "weak", thin=40).values()) < 1e-4
    assert min(calibration(engine, "poisson", "weak").values()) < 1e-4


@pytest.mark.slow
def test_counts_of_another_overdispersion_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts drawn with twice the kappa that is ranked: a wrong size of the negative binomial."""
    original = draw_data

    def wider(
        rng: np.random.Generator, cells: SmallCells, theta: np.ndarray
    ) -> tuple[SmallCells, np.ndarray, np.ndarray]:
        theta = theta.copy()
        theta[:, CV] += 0.5 * np.log(2.0)
        return original(rng, cells, theta)

    monkeypatch.setitem(globals(), "draw_data", wider)
    assert min(calibration(engine, "negative-binomial", "weak").values()) < 1e-4


@pytest.mark.slow
def test_broken_national_distribution_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """National means and standard deviations that take every group for four.

    The other move of the national distribution is right, and pulls back: for two, a hundred
    replicates find it with 0.003 only.
    """
    original = engine.draw_nation

    def counted_often(
        rng: np.random.Generator, columns: np.ndarray, theta: np.ndarray, z: np.ndarray,
        now: Priors, hyper: np.ndarray, of_slope: np.ndarray,
    ) -> Priors:  # fmt: skip
        often = np.concatenate([theta] * 4), np.concatenate([z] * 4)
        return original(rng, columns, *often, now, hyper, of_slope)

    monkeypatch.setattr(engine, "draw_nation", counted_often)
    assert min(calibration_pooled("poisson", replicates=100).values()) < 1e-4
