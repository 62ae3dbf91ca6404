r"""Risk of the sample uniques by a Poisson log-linear model, plugged in.

Given the expected frequency mu of a combination in the sample, the rest of the population with it
is Poisson with mean (N / n - 1) mu, whatever f is: P(F = 1 | f = 1) = exp(-(N / n - 1) mu), and the
mean of 1 / F follows likewise.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.io.columns import LARGEST_COUNT
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.loglinear.selection import alone, choose, matched
from bayes_sdc.microdata.loglinear.table import names_of, table_of
from bayes_sdc.microdata.loglinear.trace import Predicted, predict
from bayes_sdc.results import Fact, Result, with_interval
from bayes_sdc.seeds import generator, seed_or_fresh

Floats = npt.NDArray[np.float64]

PATH = ("interaction", "log likelihood", "tau1", "error1", "error2")
NORMAL = 1.959963984540054  # half width of a 95 % interval in standard errors
WHEN_WRONG = (
    "Too high where combinations scatter about the model, as in most files of persons; its interval"
    " knows of chance alone"
)


@dataclass(frozen=True, eq=False, repr=False)
class LoglinearRisk(Result):
    """Risk of the sample uniques by a log-linear model; made by :func:`loglinear_risk`.

    Parameters
    ----------
    tau1 : float
        Expected sample uniques that are population uniques.
    tau1_interval : tuple of float
        95 % interval of chance alone: who is unique given the model, which counts as known. Of a
        trace it has what is not known of the model too.
    tau2 : float
        Expected correct matches of sample uniques: the sum of 1 / F.
    records : DataFrame
        Index ``record``, the places of the sample uniques in the file from 0; ``P_unique`` and
        ``inverse_F``, in [0, 1]. Confidential.
    interactions : tuple of tuples of str
        Keys that interact in the model, in the order in which they entered.
    path : DataFrame
        Empty for a trace; else a line a model on the way: ``interaction`` that entered, ``log
        likelihood``, ``tau1``, and the estimated errors ``error1`` of tau1 and ``error2`` of tau2,
        by which the model is chosen: above 0 where it is too high.
    converged : bool
        Whether the fit of the chosen model came to its maximum; of a trace, whether its chains
        agree about tau1.
    uniques : int
        Sample uniques.
    notes : tuple of str
        What was assumed.
    seed : int
        Of the cells that stand for all those that nobody has, in a large table.
    """

    tau1: float
    tau1_interval: tuple[float, float]
    tau2: float
    records: pd.DataFrame
    interactions: tuple[tuple[str, ...], ...]
    path: pd.DataFrame
    converged: bool
    uniques: int
    notes: tuple[str, ...]
    seed: int

    def _title(self) -> str:
        return "Risk by a log-linear model: confidential"

    def _facts(self) -> list[Fact]:
        return [
            (
                "tau1",
                with_interval(self.tau1, self.tau1_interval),
                "sample uniques that are population uniques, 95 % interval"
                + (" of chance alone" if len(self.path) else ""),
            ),
            ("tau2", f"{self.tau2:,.1f}", "expected correct matches of sample uniques"),
            ("interactions", str(len(self.interactions)), self._interactions()),
            ("converged", "yes" if self.converged else "NO", self._how_converged()),
        ]

    def _how_converged(self) -> str:
        return "the fit converged" if len(self.path) else "the chains agree, and none diverged"

    def _interactions(self) -> str:
        return ", ".join(" x ".join(names) for names in self.interactions) or "none"

    def __repr__(self) -> str:
        shown = with_interval(self.tau1, self.tau1_interval)
        return f"<LoglinearRisk: tau1 {shown}; {len(self.interactions)} interactions>"


@checked
def loglinear_risk(
    microdata: Microdata,
    population_size: int,
    *,
    trace: xr.DataTree | None = None,
    seed: int | None = 0,
) -> LoglinearRisk:
    """Estimate the risk of sample uniques by a log-linear model, chosen by its estimated error.

    The standard of the field, for comparison. Keys are independent but for pairs of them that
    interact; pairs enter, the largest gain first, as long as it pays. `latent_class_risk` is the
    estimate to use.

    Parameters
    ----------
    microdata : Microdata
        From :func:`bayes_sdc.read_microdata`; two keys or more, every record with the same weight.
        A missing value is a level of its own.
    population_size : int
        N, at least the number of records.
    trace : DataTree, optional
        What ``pm.sample`` returns in the model of :func:`bayes_sdc.loglinear_model`: then the
        frequencies are those of its draws, and no model is chosen here.
    seed : int, optional
        Of the cells drawn to stand for those that nobody has, in tables of more than 100,000
        cells. None: a fresh one of 128 bits; ``seed`` of the result.

    Returns
    -------
    LoglinearRisk
        Totals, risks by record, and the models on the way.

    Raises
    ------
    InputError
        If the population is smaller than the file, there are fewer than two keys, missing values
        match others by the rule of the file, or a trace is of another model or file.

    See Also
    --------
    bayes_sdc.loglinear_model, bayes_sdc.latent_class_risk, bayes_sdc.compare_risks

    References
    ----------
    C. J. Skinner and N. Shlomo, "Assessing identification risk in survey microdata using log-linear
    models", JASA 2008, doi:10.1198/016214507000001328.

    Examples
    --------
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> rng = np.random.default_rng(1)
    >>> people = pd.DataFrame(rng.integers(0, 5, (300, 4)), columns=list("abcd"))
    >>> risk = loglinear_risk(read_microdata(people, keys=list("abcd")), 3000)
    >>> risk.uniques, risk.interactions, risk.tau1 < risk.tau2 < risk.uniques
    (200, (), True)
    """
    seed = seed_or_fresh(seed)
    whole = isinstance(population_size, int | np.integer) and not isinstance(population_size, bool)
    if not whole or not microdata.n <= population_size <= LARGEST_COUNT:
        raise InputError(
            f"population_size must be a whole number from the {microdata.n:,} records up to 2^53; "
            f"it is {population_size!r}"
        )
    if len(microdata.keys) < 2:
        raise InputError("a log-linear model needs two keys or more")
    if why := does_not_apply(microdata):
        raise InputError(f"a log-linear model does not apply: {why}")
    times = population_size / microdata.n
    table = table_of(microdata, seed=seed)
    record = np.flatnonzero(microdata.f == 1)
    place = table.place[microdata.combination[record]]
    notes = _notes(microdata, table.whole)
    if trace is not None:
        # in the order of the cells: the draws must not depend on the order of the records
        order = np.argsort(place, kind="stable")
        rng = generator(seed, "uniques by a log-linear trace")
        found = predict(trace, names_of(table), place[order], times, rng)
        return _of_trace(found, record[order], seed, notes)
    step, steps = choose(table, times)
    mean = step.fitted.mean[place]
    p, inverse = alone(mean, times).value, matched(mean, times).value
    # sorted: the sums must not depend on the order of the records
    tau1, tau2 = float(np.sort(p).sum()), float(np.sort(inverse).sum())
    half = NORMAL * float(np.sqrt(np.sort(p * (1.0 - p)).sum()))
    named = [(microdata.keys[a], microdata.keys[b]) for a, b in steps[-1].fitted.pairs]
    return LoglinearRisk(
        tau1=tau1,
        tau1_interval=(max(tau1 - half, 0.0), min(tau1 + half, float(len(record)))),
        tau2=tau2,
        records=pd.DataFrame(
            {"P_unique": p, "inverse_F": inverse}, index=pd.Index(record, name="record")
        ),
        interactions=tuple(named[: len(step.fitted.pairs)]),
        path=pd.DataFrame(
            {
                "interaction": ["", *(f"{a} x {b}" for a, b in named)],
                "log likelihood": [one.fitted.log_likelihood for one in steps],
                "tau1": [_tau1(table.f, one.fitted.mean, times) for one in steps],
                "error1": [one.error1 for one in steps],
                "error2": [one.error2 for one in steps],
            }
        ),
        converged=step.fitted.converged,
        uniques=len(record),
        notes=notes,
        seed=seed,
    )


def _of_trace(
    found: Predicted, record: npt.NDArray[np.int64], seed: int, notes: tuple[str, ...]
) -> LoglinearRisk:
    low, high = np.quantile(found.tau1, [0.025, 0.975])
    risks = {"P_unique": found.unique, "inverse_F": found.inverse}
    return LoglinearRisk(
        tau1=float(found.unique.sum()),
        tau1_interval=(float(low), float(high)),
        tau2=float(found.inverse.sum()),
        records=pd.DataFrame(risks, index=pd.Index(record, name="record")).sort_index(),
        interactions=found.interactions,
        path=pd.DataFrame(columns=list(PATH)),
        converged=found.agree,
        uniques=len(record),
        notes=(*notes, *found.notes),
        seed=seed,
    )


def does_not_apply(microdata: Microdata) -> str:
    """Say why the model cannot be used for a file; empty where it can."""
    if microdata.missing != "own" and bool((microdata.codes < 0).any()):
        return (
            f"missing values match others by the rule {microdata.missing!r}, and a log-linear"
            " model knows them only as a level of their own"
        )
    return ""


def _tau1(f: npt.NDArray[np.int64], mean: Floats, times: float) -> float:
    return float(alone(mean[f == 1], times).value.sum())


def _notes(microdata: Microdata, whole: bool) -> tuple[str, ...]:
    notes = []
    if microdata.weights is not None and np.ptp(microdata.weights) > 0.0:
        notes.append("log-linear: weights are not used, every record stands for N / n people")
    if not whole:
        notes.append(
            "log-linear: the cells that nobody has are too many to list; some drawn ones stand for "
            "them"
        )
    return tuple(notes)
