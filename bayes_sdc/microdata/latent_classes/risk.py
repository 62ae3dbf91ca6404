r"""Risk of the sample uniques by latent classes with a learned scatter about them.

Latent classes say which combinations are plausible, far beyond those that occur in the file; how
much the combinations of this population scatter about that is learned in a second stage. See
:mod:`bayes_sdc.microdata.latent_classes.conditionals` and
:mod:`bayes_sdc.microdata.latent_classes.dispersion`.
"""

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.checks import Check
from bayes_sdc.convergence import convergence
from bayes_sdc.cores import threads
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.individual.record_risk import RecordRisk
from bayes_sdc.microdata.lancaster.structural_zeros import StructuralZeros
from bayes_sdc.microdata.latent_classes.assumptions import assumed
from bayes_sdc.microdata.latent_classes.clusters import nearly_shared_keys
from bayes_sdc.microdata.latent_classes.combinations import labels_of
from bayes_sdc.microdata.latent_classes.gibbs import MONITORS, plan_for, run_chains
from bayes_sdc.microdata.latent_classes.population import people_behind
from bayes_sdc.microdata.latent_classes.sample import sample_of
from bayes_sdc.microdata.latent_classes.second_stage import Chain
from bayes_sdc.microdata.latent_classes.trace import chains_of
from bayes_sdc.microdata.latent_classes.verdicts import Facts, judge
from bayes_sdc.microdata.posterior.sampling import divergences
from bayes_sdc.results import Fact, Result, with_interval
from bayes_sdc.seeds import generator, seed_sequence

LEVEL = 0.9
#: d: tau1 is multiplied by exp(d z), tau2 by exp(d z / 2), z ~ N(0, 1). It stands for what is wrong
#: of the classes and of the shape of the scatter, and goes to 0 with the part that is not in the
#: file. A judgement, not an estimate: errors of 7 to 9 % beside posterior deviations of 7 % were
#: seen in samples of 500 to 2,000 records from Fulton, Adult and two invented populations, seeds
#: other than those of tests/validation/record_risk.py. It is too small for populations in clumps
#: that the keys do not show (eusilcP, whose households are resampled).
MISFIT = 0.06
#: Of small samples d is this over the root of n, and tau2 has three quarters of it: classes that
#: make keys depend on each other cannot be learned from a few hundred records. Of six invented
#: populations with keys in trees, by municipality or nearly functions of others, estimates were off
#: by 0 to 58 % at n = 100 to 200 and by 4 to 28 % at n = 500, nearly always upwards.
SMALL = 2.5

Floats = npt.NDArray[np.float64]


class Estimate90(NamedTuple):
    """A quantity of the file: posterior mean and central interval of probability 0.9.

    Made by :func:`bayes_sdc.latent_class_risk`.

    Parameters
    ----------
    value : float
        Posterior mean.
    interval : tuple of float
        5 and 95 % quantile.
    sd : float
        Posterior standard deviation.
    """

    value: float
    interval: tuple[float, float]
    sd: float


@dataclass(frozen=True, eq=False, repr=False)
class LatentClassRisk(Result):
    """Risk of the sample uniques by latent classes; made by :func:`latent_class_risk`.

    Parameters
    ----------
    tau1 : Estimate90
        Sample uniques that are population uniques.
    tau2 : Estimate90
        Expected correct matches of sample uniques: the sum of 1 / F.
    records : DataFrame
        Index ``record``, the places of the sample uniques in the file from 0. ``P_unique``, the
        probability to be alone in the population, and ``inverse_F``, the mean of 1 / F, both in
        [0, 1], with ``_low`` and ``_high``: central 90 % intervals over what is uncertain of the
        model. Confidential.
    population_uniques : Estimate90
        Members of the population who are alone with their values, in the file or not.
    trusted : bool
        False where the chains disagree about tau1 or tau2, or the standard deviation of tau1 is
        above 20 % of it.
    checks : list of Check
        What the data can and cannot tell, each with its limit.
    diagnostics : DataFrame
        ``rhat`` and ``ess`` of quantities that do not depend on the labels of the classes. Those
        of tau1 and tau2 are of the draws behind the intervals, with the misfit factor: in a large
        file chains may be apart by more than each of them is wide, and by less than the model is
        known to be wrong.
    kappa, log_R : Estimate90
        How much combinations scatter about the classes.
    gain : float
        Gain of the log likelihood by the scatter, a mean.
    n, uniques : int
        Records and sample uniques.
    population_size : float
        N.
    seed : int
        Everything random follows from it.
    notes : tuple of str
        What was assumed.
    """

    tau1: Estimate90
    tau2: Estimate90
    records: pd.DataFrame
    population_uniques: Estimate90
    trusted: bool
    checks: list[Check]
    diagnostics: pd.DataFrame
    kappa: Estimate90
    log_R: Estimate90
    gain: float
    n: int
    uniques: int
    population_size: float
    seed: int
    notes: tuple[str, ...] = ()

    def _title(self) -> str:
        return "Risk by latent classes, posterior mean and 90 % interval: confidential"

    def _facts(self) -> list[Fact]:
        tau1, tau2, uniques = (
            with_interval(one.value, one.interval)
            for one in (self.tau1, self.tau2, self.population_uniques)
        )
        return [
            ("tau1", tau1, "sample uniques that are population uniques"),
            ("tau2", tau2, "expected correct matches of sample uniques"),
            ("population uniques", uniques, "in the file or not"),
            ("sample uniques", f"{self.uniques:,}", f"of {self.n:,} records"),
            *((check.verdict, check.name, check.reason) for check in self.checks),
            *(("note", "", note) for note in self.notes),
        ]

    def __repr__(self) -> str:
        trust = "" if self.trusted else "; NOT TRUSTED"
        tau1, tau2 = (with_interval(one.value, one.interval) for one in (self.tau1, self.tau2))
        return f"<LatentClassRisk: tau1 {tau1}; tau2 {tau2}{trust}>"


def misfit(n: int) -> float:
    """Return d, the standard deviation of what is wrong of the model, for a sample of n records.

    Examples
    --------
    >>> misfit(100), misfit(10_000)
    (0.25, 0.06)
    """
    return max(MISFIT, SMALL / math.sqrt(n))


def recommended_risk(closed: RecordRisk, found: LatentClassRisk | None) -> Floats:
    """Risk of each record: sample uniques by latent classes, others by the closed form.

    Parameters
    ----------
    closed : RecordRisk
        The closed form, which is too low for sample uniques.
    found : LatentClassRisk or None
        Of the same file; None where it was not fitted.

    Returns
    -------
    array of float, shape (record,)
        In [0, 1].
    """
    risk = closed.risk.copy()
    if found is not None:
        risk[found.records.index] = found.records["inverse_F"]
    return risk


def recommended_line(risk: LatentClassRisk) -> str:
    """Say the estimate in one sentence, for the first line of a console or report; confidential."""
    low, high = risk.tau1.interval
    said = "recommended estimate" if risk.trusted else "NOT recommended for this file"
    return (
        f"{said}, latent classes: {risk.tau1.value:,.1f} ({low:,.0f} to {high:,.0f}) "
        f"of {risk.uniques:,} sample uniques are population uniques; {_matches(risk)}"
        + ("" if risk.trusted else "; see its checks")
    )


def _matches(risk: LatentClassRisk) -> str:
    low, high = risk.tau2.interval
    return f"{risk.tau2.value:,.1f} ({low:,.0f} to {high:,.0f}) correct matches of them expected"


@checked
def latent_class_risk(
    microdata: Microdata,
    *,
    population_size: int | Mapping[str, int] | None = None,
    sampling_fraction: float | Mapping[str, float] | None = None,
    strata: Sequence[Any] | str | None = None,
    structural_zeros: StructuralZeros | None = None,
    trace: xr.DataTree | None = None,
    seed: int | None = None,
    cores: int | None = None,
) -> LatentClassRisk:
    """Estimate which sample uniques are population uniques, by latent classes.

    A class has levels of its own in a key only as finely as the file tells: none, bands of
    neighbouring levels (ages, codes), or each level. Where weights differ, the number of people
    that a record stands for is the mean of those of its key values. Where the file is read with its
    households they count as sampled whole: what they tell of the rarity of one of their members is
    left out. Misfit of the model beyond what is learned is left to a factor whose standard
    deviation was measured: 6 %, and more of fewer than 1,737 records.

    Parameters
    ----------
    microdata : Microdata
        From :func:`bayes_sdc.read_microdata`. By the rule "own" a missing value is a level of its
        own; by the others the model sums over what is missing.
    population_size : int or mapping from stratum to int, optional
        N, at least the number of records. One of it, the sampling fraction and weights is needed;
        beside weights it counts instead of their sum.
    sampling_fraction : float or mapping from stratum to float, optional
        n / N, above 0 and at most 1.
    strata : str or sequence, optional
        Which stratum each record is of, where strata were sampled at different rates: a key of the
        file, or a value for each record in the order of the file. Size or fraction are then those
        of each stratum. A record stands for the mean of its combination, by a regression on the
        keys; rates of small strata are drawn a little to the mean.
    structural_zeros : data frame or sequence of mappings, optional
        Combinations that cannot occur, by the rules that `allowed_cells` reads.
    trace : DataTree, optional
        What ``pm.sample`` returns in the model of :func:`bayes_sdc.latent_class_model`: then the
        classes are those of its draws, and no chains are run here.
    seed : int, optional
        Everything random follows from it; by default one is drawn, and kept in the result.
    cores : int, optional
        Threads of the sampler; all by default. The answer is the same for any number.

    Returns
    -------
    LatentClassRisk
        Estimates with intervals, risks by record, and whether to trust them.

    Raises
    ------
    InputError
        If the population size is not given, twice given or impossible, or does not fit the strata;
        if a rule is not valid, or missing values match others where there are rules; if a trace is
        of another model or file.

    See Also
    --------
    bayes_sdc.latent_class_model, bayes_sdc.measure_microdata, bayes_sdc.compare_risks

    References
    ----------
    D. Manrique-Vallier and J. P. Reiter, "Estimating identification disclosure risk using mixed
    membership models", JASA 2012, doi:10.1080/01621459.2012.710508. F. Camerlenghi, S. Favaro, Z.
    Naulet and F. Panero, "Optimal disclosure risk assessment", Annals of Statistics 2021,
    arXiv:1902.05354, for the limit of the sampling fraction.

    Examples
    --------
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> rng = np.random.default_rng(1)
    >>> people = pd.DataFrame(rng.integers(0, 5, (300, 4)), columns=list("abcd"))
    >>> risk = latent_class_risk(
    ...     read_microdata(people, keys=list("abcd")), population_size=3000, seed=1
    ... )
    >>> risk.uniques, risk.tau1.value < risk.tau2.value < risk.uniques
    (200, True)
    """
    size, weights = people_behind(microdata, population_size, sampling_fraction, strata)
    if seed is None:
        seed = secrets.randbelow(2**32)
    seed_sequence(seed)  # refuses an invalid seed
    of_file = sample_of(microdata, size, weights, structural_zeros)
    sample, record = of_file.sample, of_file.record
    unequal = weights is not None and bool(np.ptp(weights) > 1e-6 * np.mean(weights))
    notes = assumed(microdata, len(sample.rules), unequal=unequal)
    diverged: tuple[str, ...] = ()
    if trace is None:
        plan = plan_for(microdata.n, len(sample.cells.rows))
        chains = run_chains(sample, plan, seed=seed, threads=threads(cores))
    elif len(sample.rules):
        raise InputError("the model of the trace knows no structural zeros: give one of them")
    else:
        chains = chains_of(trace, sample, labels_of(microdata), seed)
        diverged = divergences(trace, "the trace")
    return _result(microdata, chains, record, size, seed, notes, diverged)


def _estimate(draws: Floats, value: float | None = None) -> Estimate90:
    low, high = np.quantile(draws, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    middle = float(draws.mean()) if value is None else value
    # of a skew distribution, or of a few draws of a rare event, the mean may lie beyond
    ends = min(float(low), middle), max(float(high), middle)
    return Estimate90(middle, ends, float(draws.std()))


def _records(chains: list[Chain], record: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Means and intervals of the sample uniques, in the order of the file."""
    columns = {}
    for name, means, draws in (
        ("P_unique", [c.unique_mean for c in chains], [c.unique for c in chains]),
        ("inverse_F", [c.inverse_mean for c in chains], [c.inverse for c in chains]),
    ):
        every = np.concatenate(draws)
        mean = np.clip(np.mean(means, axis=0), 0.0, 1.0)
        low, high = np.quantile(every, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0], axis=0)
        columns[name] = mean
        columns[f"{name}_low"] = np.clip(low, 0.0, mean)
        columns[f"{name}_high"] = np.clip(high, mean, 1.0)
    index = pd.Index(record, name="record")
    return pd.DataFrame(columns, index=index).sort_index()


def _result(
    data: Microdata,
    chains: list[Chain],
    record: npt.NDArray[np.int64],
    size: float,
    seed: int,
    notes: tuple[str, ...],
    diverged: tuple[str, ...],
) -> LatentClassRisk:
    n, uniques = data.n, len(record)
    totals = np.stack([chain.totals for chain in chains])  # chain, draw, hyper draw, quantity
    alone, matches, outside, log_r, kappa, gain = np.moveaxis(totals, -1, 0)
    rng = generator(seed, "misfit of the scatter")
    z = misfit(n) * (1.0 - n / size) * rng.standard_normal(alone.shape)
    tau1 = np.minimum(alone * np.exp(z), uniques)
    tau2 = np.minimum(matches * np.exp(z * (0.75 if misfit(n) > MISFIT else 0.5)), uniques)
    beyond = np.minimum(outside * np.exp(z), size - n)
    value1 = float(np.mean([np.sort(chain.unique_mean).sum() for chain in chains]))
    value2 = float(np.mean([np.sort(chain.inverse_mean).sum() for chain in chains]))
    estimate1, estimate2 = _estimate(tau1, value1), _estimate(tau2, value2)
    watched = np.stack([chain.monitors for chain in chains])
    drawn = [total.reshape(len(chains), -1) for total in (tau1, tau2)]
    rhat, ess = _diagnose([*np.moveaxis(watched, -1, 0), *drawn])
    names = (*MONITORS, "tau1", "tau2")
    facts = Facts(
        n=n, fraction=n / size, tau1=value1, tau1_sd=estimate1.sd, kappa_sd=float(kappa.std()),
        gain=float(gain.mean()), rhat=rhat, ess=ess, names=names,
        shared=nearly_shared_keys(data),
    )  # fmt: skip
    return LatentClassRisk(
        tau1=estimate1,
        tau2=estimate2,
        records=_records(chains, record),
        population_uniques=_estimate((tau1 + beyond).ravel(), value1 + float(beyond.mean())),
        trusted=facts.trusted and not diverged,
        checks=[*judge(facts), *_of_divergences(diverged)],
        diagnostics=pd.DataFrame({"rhat": rhat, "ess": ess}, index=list(names)),
        kappa=_estimate(kappa.ravel()),
        log_R=_estimate(log_r.ravel()),
        gain=facts.gain,
        n=n,
        uniques=uniques,
        population_size=size,
        seed=seed,
        notes=notes,
    )


def _of_divergences(diverged: tuple[str, ...]) -> list[Check]:
    """A check where transitions of a trace diverged."""
    return [
        Check(
            "latent classes: divergences", "look",
            f"{what}: its draws may miss a part of the posterior, so it is not trusted",
            key="classes_divergences",
        )
        for what in diverged
    ]  # fmt: skip


def _diagnose(quantities: list[Floats]) -> tuple[Floats, Floats]:
    """R-hat and effective size of each, shape (chain, draw); 1 and all where it cannot vary."""
    rhat, ess = np.ones(len(quantities)), np.empty(len(quantities))
    for k, draws in enumerate(quantities):
        ess[k] = draws.size
        if np.ptp(draws) > 0.0:
            judged = convergence(draws[:, :, None])
            rhat[k], ess[k] = judged[0][0], judged[1][0]
    return rhat, ess
