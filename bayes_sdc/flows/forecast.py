"""Time of the whole job, forecast before it starts; for the fit see `bayes_sdc.flows.fit`.

The constants are seconds of processor time, of one core, measured on simulated tables of 400, 5,000
and 40,000 small cells; steps that run on several cores are divided by their number.
"""

import numpy as np

from bayes_sdc.flows.fit.forecast import duration, forecast, sweep_seconds
from bayes_sdc.flows.gibbs.sampling import Sampling
from bayes_sdc.flows.intruder.estimators.integrated import draws_used
from bayes_sdc.flows.intruder.estimators.refit import STARTS, WHOLE, sweeps_of_start
from bayes_sdc.flows.model.hyperpriors import is_pooled
from bayes_sdc.flows.release.synthetic.predictive import PREDICTIVE_DRAWS
from bayes_sdc.flows.table.cells import SmallCells

# of the steps after the fit
PARAMETER = 0.35e-6  # R-hat and ESS: a parameter and draw
REPLICA = 0.7e-6  # predictive check and dispersion: a cell and replicated table
ESTIMATE = {"integrated": 4e-6, "paper": 0.7e-6}  # intruder risk: a cell and draw
RELEASE = 1.5e-6  # one more data set, with its risk: a cell
COMPARED = 27e-6  # other protections, risk and utility: a cell and row of the comparison
REPORTS = 7.0, 100e-6  # pictures; and files: a cell


def forecast_job(
    cells: SmallCells,
    sampling: Sampling,
    *,
    estimator: str,
    passes: int,
    fits: int,
    scenarios: int,
    refits: int,
    datasets: int,
    compared: int,
) -> dict[str, float | None]:
    """Forecast the time of each step of :func:`bayes_sdc.protect_flows` and of its reports.

    Parameters
    ----------
    cells, sampling
        As for :func:`bayes_sdc.flows.fit.forecast.forecast`.
    estimator : str
        Of the intruder's risk.
    passes : int
        How often the risk of all cells is measured with the posterior of the true table.
    fits : int
        Fits of the true table.
    scenarios : int
        Fits of an intruder who does not know the other counts, each with one pass.
    refits : int
        Cells that are refitted in each pass, at most.
    datasets : int
        Data sets that are drawn and measured besides.
    compared : int
        Rows of the comparison with other protections.

    Returns
    -------
    dict of float
        Seconds by step, in order; None where it cannot be forecast.
    """
    n, cores = len(cells.y), sampling.cores
    fit = forecast(cells, sampling).seconds
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
        "fit": None if fit is None else fits * fit,
        "diagnostics": PARAMETER * parameters * kept + REPLICA * n * min(PREDICTIVE_DRAWS, kept),
        "intruder risk": risk,
        "scenarios and utility": RELEASE * n * datasets + COMPARED * n * compared,
        "reports": REPORTS[0] + REPORTS[1] * n,
    }


def _refit(cells: SmallCells, sampling: Sampling) -> float:
    """Seconds of all refits of one cell."""
    n, groups = len(cells.y), 1
    size = np.bincount(cells.group)
    moving = float((size.astype(float) ** 2).sum() / n)  # of the group of a cell, on average
    if is_pooled(sampling.prior) and n <= WHOLE:
        moving, groups = float(n), len(cells.groups)
    runs = (cells.upper + 1) * STARTS * sum(sweeps_of_start(int(moving)))
    return runs * sweep_seconds(sampling.family, moving, groups)


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
