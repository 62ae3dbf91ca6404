"""What counts depend on: the rates of a posterior, draw by draw."""

from typing import NamedTuple

import numpy as np
import xarray as xr

from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.truncated import Ladder
from bayes_sdc.flows.table.cells import SmallCells
from bayes_sdc.models.base_measure import IMPOSSIBLE


class Rates(NamedTuple):
    """What counts depend on, with all chains laid end to end: (draw, effect or group)."""

    beta: np.ndarray  # (draw, origin_effect)
    gamma: np.ndarray  # (draw, destination_effect)
    kappa: np.ndarray  # (draw, group) 1 / r; 0 for the Poisson family
    coefficient: np.ndarray  # (draw, group, covariate)
    base: np.ndarray | None = None  # (draw, K + 1) log of the base measure, if the family has one

    @property
    def n_draws(self) -> int:
        """Number of draws of all chains together."""
        return len(self.beta)

    def at(self, cells: SmallCells, draw: int) -> tuple[np.ndarray, Ladder]:
        """Log rate of each cell and the ladders of all groups in one draw."""
        # effects may be kept in single precision; sums are not
        log_rate = self.beta[draw].astype(np.float64)[cells.origin]
        log_rate += self.gamma[draw][cells.destination]
        log_rate += (cells.x * self.coefficient[draw][cells.group]).sum(axis=1)
        base = None if self.base is None else self.base[draw]
        return log_rate, counts.ladder(
            self.kappa[draw], cells.upper, cells.bound, base, canonical=cells.canonical
        )


def rates_by_draw(posterior: xr.DataTree) -> Rates:
    """Take beta, gamma and 1 / r out of a posterior, without copying the effects."""
    draws = posterior["posterior"].to_dataset()

    def flat(name: str) -> np.ndarray:
        values = draws[name].to_numpy()
        return values.reshape(-1, *values.shape[2:])

    alpha = flat("alpha")
    return Rates(
        beta=flat("beta"),
        gamma=flat("gamma"),
        kappa=1.0 / flat("r") if "r" in draws else np.zeros_like(alpha),
        coefficient=flat("coefficient") if "coefficient" in draws else np.empty((*alpha.shape, 0)),
        base=base_by_draw(posterior),
    )


def base_by_draw(posterior: xr.DataTree) -> np.ndarray | None:
    """Log of the base measure of every count, (draw, K + 1), the chains laid end to end.

    None if the family has no such measure.
    """
    draws = posterior["posterior"].to_dataset()
    if "base" not in draws:
        return None
    upper = int(posterior["constant_data"]["upper"])
    possible = draws["value"].to_numpy() - int(posterior.attrs["low"])
    result = np.full((draws.sizes["chain"] * draws.sizes["draw"], upper + 1), IMPOSSIBLE)
    result[:, possible] = draws["base"].to_numpy().reshape(-1, len(possible))
    return result
