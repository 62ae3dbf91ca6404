"""A small nation and its prior, from which both samplers of it start."""

from typing import NamedTuple

import numpy as np
import pytest

from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.hyperpriors import CV, LEVEL, Priors
from bayes_sdc.flows.table.cells import SmallCells
from bayes_sdc.models.migration import PRIORS

UPPER, GROUPS, ORIGINS, DESTINATIONS = 4, 5, 2, 3
PRIOR = PRIORS["pooled"] | {
    "mu_sd": 0.5, "alpha_mean_sd": 0.7, "alpha_spread": 0.6, "log_sd_mean_sd": 0.4,
    "log_cv_mean_sd": 0.4, "coefficient_mean_sd": 0.6,
}  # fmt: skip


class OneNation(NamedTuple):
    """Five groups of two by three cells, with a covariate of cells and one of groups."""

    prior: dict[str, float]
    cells: SmallCells

    def draw(self, rng: np.random.Generator) -> tuple[Priors, np.ndarray, np.ndarray, np.ndarray]:
        """The nation, theta and the deviations, written from their definition."""
        prior, cells = self.prior, self.cells
        names = ["alpha", "log_sd", "log_sd", "log_cv", "coefficient"]
        mean = np.array([rng.normal(prior[f"{n}_mean"], prior[f"{n}_mean_sd"]) for n in names])
        scatter = prior["national_log_sd_sd"]
        sd = np.array([prior[f"{n}_spread"] * np.exp(scatter * rng.normal()) for n in names])
        slope = rng.normal(prior["coefficient_mean"], prior["coefficient_mean_sd"], 1)
        theta = rng.normal(mean, sd, (GROUPS, 5))
        theta[:, 0] += cells.z[:, 0] * slope[0]
        b = rng.normal(0.0, np.exp(theta[cells.group_of_origin, 1]))
        g = rng.normal(0.0, np.exp(theta[cells.group_of_destination, 2]))
        return Priors(np.zeros(5, np.int64), mean, sd, slope), theta, b, g

    def draw_counts(
        self, rng: np.random.Generator, theta: np.ndarray, b: np.ndarray, g: np.ndarray,
        measure: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Counts of all cells, given everything else."""
        cells = self.cells
        log_rate = theta[cells.group, LEVEL] + b[cells.origin] + g[cells.destination]
        log_rate += cells.x[:, 0] * theta[cells.group, CV + 1]
        kappa = np.exp(2.0 * theta[:, CV])
        rungs = counts.ladder(kappa, UPPER, base=measure, canonical=cells.canonical)
        return counts.draw(log_rate, cells.group, rungs, rng.random(len(log_rate)))


@pytest.fixture(scope="session")
def one_nation() -> OneNation:
    rng = np.random.default_rng(3)
    group, i, j = (index.ravel() for index in np.indices((GROUPS, ORIGINS, DESTINATIONS)))
    z = rng.normal(size=(GROUPS, 1))
    cells = SmallCells(
        y=np.zeros(len(group), np.int64),
        group=group,
        origin=ORIGINS * group + i,
        destination=DESTINATIONS * group + j,
        group_of_origin=np.repeat(np.arange(GROUPS), ORIGINS),
        group_of_destination=np.repeat(np.arange(GROUPS), DESTINATIONS),
        x=rng.normal(size=(ORIGINS * GROUPS, 1))[ORIGINS * group + i],
        z=(z - z.mean()) / z.std(),
        upper=UPPER,
        covariates=["x"],
        group_covariates=["z"],
        cells=[],
        groups=[str(g) for g in range(GROUPS)],
        origin_effects=[],
        destination_effects=[],
    )
    return OneNation(PRIOR, cells)
