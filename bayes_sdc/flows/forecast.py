"""What a fit will take, and what the whole job will, said before it starts.

The constants are seconds of processor time, of one core, measured on simulated tables of 400, 5,000
and 40,000 small cells; steps that run on several cores are divided by their number. A machine with
other work takes longer by the clock, and the first run also compiles, for some minutes.
"""

from dataclasses import dataclass

import numpy as np

from bayes_sdc.flows.engine import SWEEPS_PER_DRAW
from bayes_sdc.flows.hyperpriors import is_pooled
from bayes_sdc.flows.integrated import draws_used
from bayes_sdc.flows.layout import Layout
from bayes_sdc.flows.predictive import PREDICTIVE_DRAWS
from bayes_sdc.flows.refit import STARTS, SWEEPS, WARM_UP, WHOLE
from bayes_sdc.flows.walk import Sampling

# of the engine on one thread of a server of 2020, from the benchmark: a cell and a group per sweep
CELL = {"poisson": 0.25e-6, "negative-binomial": 0.4e-6}
GROUP = 10e-6
SWEEP = 0.35e-3  # of a sweep whatever the table
# of the steps after the fit
PARAMETER = 0.35e-6  # R-hat and ESS: a parameter and draw
REPLICA = 0.7e-6  # predictive check and dispersion: a cell and replicated table
ESTIMATE = {"integrated": 4e-6, "paper": 0.7e-6}  # intruder risk: a cell and draw
RELEASE = 1.5e-6  # one more data set, with its risk: a cell
COMPARED = 27e-6  # other protections, risk and utility: a cell and row of the comparison
REPORTS = 7.0, 100e-6  # pictures; and files: a cell
BY_GROUP = 8 * 7  # bytes of a draw: level, scales, means and what follows from them
BY_EFFECT = 4  # bytes of a draw, in single precision
BY_CELL = 600  # bytes of labels, indices and what a sweep carries
BASE = 700 * 2**20  # bytes of the libraries and of compiling


@dataclass(frozen=True)
class Forecast:
    """Time and memory of a fit.

    Parameters
    ----------
    cells, groups, effects : int
        Small cells, their groups, and origins and destinations within them.
    seconds : float or None
        Of the chains; None where it cannot be told, as for NUTS and the reference sampler.
    draws : int
        Bytes of the posterior.
    memory : int
        Largest memory in bytes, roughly.
    """

    cells: int
    groups: int
    effects: int
    seconds: float | None
    draws: int
    memory: int

    def __str__(self) -> str:
        """Return the forecast in words."""
        time = ""
        if self.seconds is not None:
            time = f"about {duration(self.seconds)} (and minutes of compiling the first time), "
        return (
            f"{self.cells:,} small cells in {self.groups:,} groups with {self.effects:,} effects: "
            f"the chains take {time}{self.draws / 2**20:,.0f} MiB of draws, about "
            f"{self.memory / 2**30:.1f} GiB of memory"
        )


def duration(seconds: float) -> str:
    """Write a time for people.

    Examples
    --------
    >>> duration(8.2), duration(420.0), duration(9000.0)
    ('8 s', '7 min', '2.5 h')
    """
    if seconds < 60.0:
        return f"{max(seconds, 1.0):.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


def forecast(cells: Layout, sampling: Sampling, sampler: str) -> Forecast:
    """Tell time and memory of a fit from the size of the table.

    Parameters
    ----------
    cells : Layout
        The small cells.
    sampling : Sampling
        Family, draws, warm-up, chains and cores.
    sampler : str
        As for :func:`bayes_sdc.flows.fit.fit_flows`.
    """
    groups, effects = (
        len(cells.groups),
        len(cells.group_of_origin) + len(cells.group_of_destination),
    )
    kept = sampling.draws * sampling.chains
    draws = kept * (BY_EFFECT * effects + (BY_GROUP + 8 * len(cells.covariates)) * groups)
    seconds = None
    if sampler == "gibbs":
        side_by_side = min(sampling.cores, sampling.chains)
        rounds = -(-sampling.chains // side_by_side)
        sweep = _sweep(sampling.family, len(cells.y), groups)
        seconds = rounds * (sampling.draws + sampling.tune) * SWEEPS_PER_DRAW * sweep
    # draws are stacked once; each chain carries its cells
    memory = BASE + int(1.5 * draws) + BY_CELL * len(cells.y) * (1 + sampling.chains // 2)
    return Forecast(len(cells.y), groups, effects, seconds, draws, memory)


def _sweep(family: str, cells: float, groups: int) -> float:
    """Seconds of one sweep of the engine."""
    return SWEEP + CELL[family] * cells + GROUP * groups


def forecast_job(
    cells: Layout,
    sampling: Sampling,
    sampler: str,
    *,
    estimator: str,
    passes: int,
    scenarios: int,
    refits: int,
    datasets: int,
    compared: int,
) -> dict[str, float | None]:
    """Tell the time of each step of :func:`bayes_sdc.flows.job.protect_flows` and of its reports.

    Parameters
    ----------
    cells, sampling, sampler
        As for :func:`forecast`.
    estimator : str
        Of the intruder's risk.
    passes : int
        How often the risk of all cells is measured with the posterior of the true table.
    scenarios : int
        Fits of an intruder who does not know the other counts, with a pass each.
    refits : int
        Cells that are refitted in each pass, at most.
    datasets : int
        Data sets that are drawn and measured besides.
    compared : int
        Rows of the comparison with other protections.

    Returns
    -------
    dict of float
        Seconds by step, in order; None where it cannot be told.
    """
    n, cores = len(cells.y), sampling.cores
    fit = forecast(cells, sampling, sampler).seconds
    kept = sampling.draws * sampling.chains
    parameters = len(cells.group_of_origin) + len(cells.group_of_destination)
    parameters += (4 + len(cells.covariates)) * len(cells.groups)
    exact = n if estimator == "refit" else min(refits, n)
    one_pass = exact * _refit(cells, sampling) / min(cores, max(exact, 1))
    if estimator != "refit":
        used = draws_used(n, kept) if estimator == "integrated" else kept
        one_pass += ESTIMATE[estimator] * n * used / cores
    risk: float | None = (passes + scenarios) * one_pass
    if scenarios and risk is not None:
        risk = None if fit is None else risk + scenarios * fit
    return {
        "fit": fit,
        "diagnostics": PARAMETER * parameters * kept + REPLICA * n * min(PREDICTIVE_DRAWS, kept),
        "intruder risk": risk,
        "scenarios and utility": RELEASE * n * datasets + COMPARED * n * compared,
        "reports": REPORTS[0] + REPORTS[1] * n,
    }


def _refit(cells: Layout, sampling: Sampling) -> float:
    """Seconds of all refits of one cell."""
    n, groups = len(cells.y), 1
    size = np.bincount(cells.group)
    moving = float((size.astype(float) ** 2).sum() / n)  # of the group of a cell, on average
    if is_pooled(sampling.prior) and n <= WHOLE:
        moving, groups = float(n), len(cells.groups)
    runs = (cells.upper + 1) * STARTS * (WARM_UP + SWEEPS)
    return runs * _sweep(sampling.family, moving, groups)


def job_in_words(steps: dict[str, float | None], cores: int) -> str:
    """Write the forecast of a job.

    Examples
    --------
    >>> job_in_words({"fit": 600.0, "diagnostics": 8.2}, 2)
    'the whole job takes about 10 min on 2 free cores: fit 10 min, diagnostics 8 s'
    >>> job_in_words({"fit": None, "diagnostics": 8.2}, 1)
    'the whole job takes at least 8 s on 1 free core: fit cannot be told, diagnostics 8 s'
    """
    known = [seconds for seconds in steps.values() if seconds is not None]
    listed = ", ".join(
        f"{name} {'cannot be told' if seconds is None else duration(seconds)}"
        for name, seconds in steps.items()
    )
    least = "about" if len(known) == len(steps) else "at least"
    return (
        f"the whole job takes {least} {duration(sum(known))} on {cores} free "
        f"core{'s' * (cores > 1)}: {listed}"
    )
