"""Time and memory of a fit, forecast before it starts.

The constants are seconds of processor time, of one core, measured on simulated tables of 400, 5,000
and 40,000 small cells; steps that run on several cores are divided by their number. A busy machine
takes longer by the clock, and the first run also compiles: see `bayes_sdc.flows.compiling`.
"""

from dataclasses import dataclass

from bayes_sdc.flows.fit import compiled
from bayes_sdc.flows.gibbs.engine import SWEEPS_PER_DRAW
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.table.cells import SmallCells

# of the engine on one thread of a server of 2020, from the benchmark: a cell and a group per sweep
CELL = {"poisson": 0.25e-6, "negative-binomial": 0.4e-6, "canonical": 0.4e-6, "base": 1.4e-6}
GROUP = 10e-6
SWEEP = 0.35e-3  # of a sweep whatever the table
COVARIATE = 0.025  # of a sweep, more for each covariate
BY_GROUP = 8 * 7  # bytes of a draw: level, scales, means and what follows from them
BY_EFFECT = 4  # bytes of a draw, in single precision
BY_CELL = 600  # bytes of labels, indices and the state of a sweep
BASE = 700 * 2**20  # bytes of the libraries and of compiling


@dataclass(frozen=True)
class Forecast:
    """Time and memory of a fit.

    Parameters
    ----------
    cells, groups, effects : int
        Small cells, their groups, and origins and destinations within them.
    seconds : float or None
        Of the chains; None where it cannot be forecast, as for NUTS and the reference sampler.
    draws : int
        Bytes of the posterior.
    memory : int
        Largest memory in bytes, roughly.
    compiling : float
        Seconds of compiling before the chains start; 0 where everything is compiled.
    """

    cells: int
    groups: int
    effects: int
    seconds: float | None
    draws: int
    memory: int
    compiling: float = 0.0

    def __str__(self) -> str:
        """Return the forecast in words."""
        time = ""
        if self.seconds is not None:
            time = f"about {duration(self.seconds)}, "
        if self.compiling:
            time += f"after {duration(self.compiling)} of compiling, once on this machine, "
        return (
            f"{self.cells:,} small cells in {self.groups:,} groups with {self.effects:,} effects: "
            f"the chains take {time}{self.draws / 2**20:,.0f} MiB of draws, about "
            f"{self.memory / 2**30:.1f} GiB of memory"
        )


def duration(seconds: float) -> str:
    """Write a time in words.

    Examples
    --------
    >>> duration(8.2), duration(420.0), duration(9000.0)
    ('8 s', '7 min', '2.5 h')
    """
    if seconds < 60.0:
        return f"{max(seconds, 1.0):.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


def forecast(cells: SmallCells, sampling: Sampling) -> Forecast:
    """Forecast time and memory of a fit from the size of the table.

    Parameters
    ----------
    cells : SmallCells
        The small cells.
    sampling : Sampling
        Sampler, family, draws, warm-up, chains and cores.
    """
    groups, effects = (
        len(cells.groups),
        len(cells.group_of_origin) + len(cells.group_of_destination),
    )
    kept = sampling.draws * sampling.chains
    draws = kept * (BY_EFFECT * effects + (BY_GROUP + 8 * len(cells.covariates)) * groups)
    seconds, compiling = None, 0.0
    if sampling.sampler == "gibbs":
        side_by_side = min(sampling.cores, sampling.chains)
        rounds = -(-sampling.chains // side_by_side)
        sweep = sweep_seconds(sampling.family, len(cells.y), groups)
        sweep *= 1.0 + COVARIATE * len(cells.covariates)
        compiling = 0.0 if compiled.sampler_is_compiled() else compiled.SECONDS
        seconds = rounds * (sampling.draws + sampling.tune) * SWEEPS_PER_DRAW * sweep
    # draws are stacked once; each chain carries its cells
    memory = BASE + int(1.5 * draws) + BY_CELL * len(cells.y) * (1 + sampling.chains // 2)
    return Forecast(len(cells.y), groups, effects, seconds, draws, memory, compiling)


def sweep_seconds(family: str, cells: float, groups: int) -> float:
    """Seconds of one sweep of the engine."""
    return SWEEP + CELL[family] * cells + GROUP * groups
