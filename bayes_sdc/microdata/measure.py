"""Measuring the record-level risk of a file in one call: counts, risks, models, verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.arguments import PathLike, checked
from bayes_sdc.checks import Check
from bayes_sdc.errors import InputError
from bayes_sdc.io.columns import LARGEST_COUNT
from bayes_sdc.microdata.comparison import (
    RiskComparison,
    check_cells,
    compare_risks,
    size_indices_differ,
)
from bayes_sdc.microdata.file.keys import Microdata
from bayes_sdc.microdata.individual.closed_form import check_numbers, household_risk
from bayes_sdc.microdata.individual.inclusion import weight_spread
from bayes_sdc.microdata.individual.record_risk import RecordRisk, record_risk
from bayes_sdc.microdata.individual.superpopulation import (
    MODELS,
    SuperpopulationRisk,
    superpopulation_risk,
)
from bayes_sdc.microdata.latent_classes.risk import (
    LatentClassRisk,
    latent_class_risk,
    recommended_line,
)
from bayes_sdc.microdata.limits import check_limits
from bayes_sdc.microdata.patience import refuse_nearly_unique
from bayes_sdc.microdata.special_uniques.dis import check_fraction
from bayes_sdc.microdata.uniques.learned import LearnedUniques, learn_uniques
from bayes_sdc.microdata.uniques.unstructured import expected_uniques, uniques_deviation
from bayes_sdc.policy import Policy, read_policy
from bayes_sdc.results import Fact, Result, summary_lines, with_interval
from bayes_sdc.seeds import seed_or_fresh

OVERLAP = 0.02  # share by which overlapping combinations may exceed the file without a remark
ALL_IN_FILE = (
    "every record stands for itself alone, so how many people share its key values counts as "
    "known: the risk is 1/f, and no model of it was fitted"
)
AGREEMENT = 0.05  # relative difference of weight sum and population size that is remarked on


class Truth(NamedTuple):
    """What a known population says, to stand beside the estimates.

    Made by :func:`bayes_sdc.measure_microdata`, as ``truth``.

    Parameters
    ----------
    expected : float
        Correct matches when every record is matched at random to one of its population cell.
    tau1 : int
        Sample uniques that are population uniques.
    tau2 : float
        Correct matches among sample uniques.
    """

    expected: float
    tau1: int
    tau2: float


class Unstructured(NamedTuple):
    """Population uniques among sample uniques when nothing is assumed of the cells.

    Made by :func:`bayes_sdc.measure_microdata`, as ``unstructured``.

    Parameters
    ----------
    cells : int
        Number of possible combinations, as given.
    uniform : float
        Expected number with concentration 1.
    uniform_deviation : float
        Standard deviation of that number.
    learned : LearnedUniques
        The same with the concentration learned from the file.
    """

    cells: int
    uniform: float
    uniform_deviation: float
    learned: LearnedUniques


@dataclass(frozen=True, eq=False, repr=False)
class Measurement(Result):
    """The record-level risk of a file with all that was measured about it. Confidential.

    Made by :func:`bayes_sdc.measure_microdata`.

    Parameters
    ----------
    data : Microdata
        The input.
    risk : RecordRisk
        The individual risk, by the exact closed form.
    latent_classes : LatentClassRisk or None
        The recommended estimate: the risk of the sample uniques, which are nearly all of the risk;
        None where the file has none, or counts as the whole population.
    models : dict of SuperpopulationRisk
        Totals with intervals, by the name of the model. Of a file that is the whole population
        "known" alone, without uncertainty.
    households : DataFrame or None
        One row per household, as `RecordRisk.households` gives it, with a column ``risk_MODEL`` for
        each model; None for a file without households.
    unstructured : Unstructured or None
        Where the number of cells was given, and no missing value hides how many records are unique.
    comparison : RiskComparison or None
        All measures of the sample uniques side by side; None for a single key, where there is no
        sample unique, where the file is the whole population, or where a method cannot work on the
        file, which ``notes`` tells.
    population_size : int
        As given, or the sum of the weights.
    truth : Truth or None
        Where the population is known.
    checks : list of Check
        Verdicts.
    notes : tuple of str
        What was left out, and why.
    seconds : dict
        Wall time of each stage.
    seed : int, optional
        Everything random followed from it.
    """

    data: Microdata
    risk: RecordRisk
    latent_classes: LatentClassRisk | None
    models: dict[str, SuperpopulationRisk]
    households: pd.DataFrame | None
    unstructured: Unstructured | None
    comparison: RiskComparison | None
    population_size: int
    truth: Truth | None
    checks: list[Check]
    notes: tuple[str, ...]
    seconds: dict[str, float]
    seed: int | None = None

    @property
    def whole_population(self) -> bool:
        """Whether every member of the population is in the file, so that F = f is known."""
        return self.data.n >= self.population_size and bool(
            (self.risk.combinations["p"] == 1).all()
        )

    @property
    def model_notes(self) -> list[str]:
        """What the models did otherwise than asked for; a note of several is said once."""
        notes = [note for model in self.models.values() for note in model.notes]
        if self.unstructured is not None:
            notes += self.unstructured.learned.notes
        return list(dict.fromkeys(notes))

    @property
    def worst(self) -> SuperpopulationRisk:
        """The model with the most expected re-identifications."""
        return max(self.models.values(), key=lambda model: model.expected.value)

    @property
    def expected_households(self) -> dict[str, float]:
        """Expected households with a re-identified member, by model; empty without households."""
        if self.households is None:
            return {}
        return {name: float(np.sort(self.households[f"risk_{name}"]).sum()) for name in self.models}

    def _title(self) -> str:
        return f"Risk of {self.data.source}: confidential"

    def _facts(self) -> list[Fact]:
        facts: list[Fact] = []
        if (found := self.latent_classes) is not None:
            tau1 = with_interval(found.tau1.value, found.tau1.interval)
            meaning = f"latent classes, of {found.uniques:,} sample uniques, 90 % interval"
            facts.append(("population uniques", tau1, meaning))
        for name, model in self.models.items():
            shown = with_interval(model.expected.value, model.expected.interval)
            meaning = f"re-identified of {self.data.n:,} records, 95 % interval"
            facts.append((f"expected, {name}", shown, meaning))
        return [*facts, *((check.name, check.verdict, check.reason) for check in self.checks)]

    def summary(self) -> str:
        """Return what the command prints at the end of a run: verdicts, main numbers, time.

        Returns
        -------
        str
            Text for the console; confidential.
        """
        worst, lines = self._worst_line(), self._lines()
        if self.latent_classes is None:
            return "\n".join(summary_lines(worst, self.checks, lines, self.seconds))
        first = recommended_line(self.latent_classes)
        return "\n".join(summary_lines(first, self.checks, [worst, *lines], self.seconds))

    def _worst_line(self) -> str:
        n, worst = self.data.n, self.worst
        value, (low, high), _ = worst.expected
        if self.whole_population:
            return (
                f"the file counts as the whole population: {value:,.1f} of {n:,} records are "
                f"re-identified, {value / n:.2%}; {worst.tau1.value:,.0f} are unique"
            )
        name = next(name for name, model in self.models.items() if model is worst)
        return (
            f"at worst, by the model {name!r}, {value:,.1f} ({low:,.1f} to {high:,.1f}) of {n:,} "
            f"records are re-identified, {value / n:.2%}; tau1 {worst.tau1.value:,.1f}"
        )

    def _lines(self) -> list[str]:
        """Return the main numbers beside the headline, one per line."""
        by_model = ", ".join(f"{name} {m.expected.value:,.1f}" for name, m in self.models.items())
        lines = [f"expected re-identifications by model: {by_model}"]
        if (free := self.unstructured) is not None:
            value, (low, high), _ = free.learned.uniques
            lines.append(
                f"population uniques among sample uniques, without structure of {free.cells:,} "
                f"cells: {free.uniform:,.1f} with c = 1, {value:,.1f} ({low:,.0f} to {high:,.0f}) "
                "with c learned"
            )
        if self.households is not None:
            homes = ", ".join(f"{name} {v:,.1f}" for name, v in self.expected_households.items())
            lines.append(
                f"expected re-identified households: {self.risk.expected_households:,.1f} of "
                f"{len(self.households):,} by the closed form; by model {homes}"
            )
        if self.truth is not None:
            expected, tau1 = self.truth.expected, self.truth.tau1
            lines.append(f"truth: {expected:,.1f} re-identifications, tau1 {tau1:,}")
        if self.comparison is not None:
            lines.append(self.comparison.in_one_line())
        if notes := (*self.notes, *self.model_notes):
            more = f"; {len(notes) - 1} more in the report" if len(notes) > 1 else ""
            lines.append(f"note: {notes[0]}{more}")
        return lines


@checked
def measure_microdata(
    microdata: Microdata,
    *,
    population_size: int | None = None,
    sampling_fraction: float | None = None,
    cells: int | None = None,
    policy: Policy | PathLike | None = None,
    population_counts: npt.ArrayLike | None = None,
    draws: int = 1000,
    seed: int | None = None,
    force: bool = False,
) -> Measurement:
    """Measure the risk of every record and of the file, and judge it by a policy.

    Parameters
    ----------
    microdata : Microdata
        From :func:`bayes_sdc.read_microdata`.
    population_size : int, optional
        N. Without weights and fraction it gives the sampling fraction n / N. With weights it only
        is compared with their sum.
    sampling_fraction : float, optional
        n / N, for a file without weights and instead of the population size.
    cells : int, optional
        Combinations that can occur, without structural zeros: adds the estimates of population
        uniques that need this number.
    policy : Policy or path, optional
        From :func:`bayes_sdc.read_policy`, or its file: limits, each judged by a check; none by
        default.
    population_counts : array_like of int, shape (record,), optional
        For each record how many members of the population share its key values, where that is
        known: the truth beside the estimates.
    draws : int
        Draws behind the intervals.
    seed : int, optional
        Everything random follows from it.
        By default a fresh one of 128 bits; ``seed`` of the result.
    force : bool
        Whether to run the models though a key variable is nearly unique, and methods that take
        minutes.

    Returns
    -------
    Measurement
        Risks, totals, verdicts.

    Raises
    ------
    InputError
        If an argument cannot be used, two contradict each other, the population is beyond 2^53, the
        policy has no section for microdata, or a key variable has another value in more than 95 %
        of the records.

    See Also
    --------
    bayes_sdc.record_risk, bayes_sdc.latent_class_risk, bayes_sdc.superpopulation_risk,
    bayes_sdc.compare_risks

    References
    ----------
    S. Polettini, "A note on the individual risk of disclosure", eq. (2). D. Manrique-Vallier, J. P.
    Reiter 2012, doi:10.1080/01621459.2012.710508, for the recommended estimate.

    Examples
    --------
    >>> import datetime
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.keys import read_microdata
    >>> from bayes_sdc import MicrodataLimits, Policy
    >>> people = pd.DataFrame({"sex": list("mmfm"), "age": list("2232"), "w": [10, 30, 5, 9]})
    >>> microdata = read_microdata(people, keys=["sex", "age"], weight="w")
    >>> policy = Policy("Survey", datetime.date(2026, 1, 15), microdata=MicrodataLimits(k=3))
    >>> result = measure_microdata(microdata, policy=policy, seed=1)
    >>> [(check.name, check.verdict) for check in result.checks][-1]
    ('limit k', 'fail')
    """
    policy = _limits(policy)
    seed = seed_or_fresh(seed)
    if not force:
        refuse_nearly_unique(microdata)
    fraction = _fraction(microdata, population_size, sampling_fraction)
    if cells is not None:
        check_cells(microdata, cells)
    seconds: dict[str, float] = {}
    clock = monotonic()
    risk = record_risk(microdata, sampling_fraction=fraction)
    seconds["individual risk"] = monotonic() - clock
    N = population_size or max(microdata.n, round(float(_population(microdata, fraction))))
    truth = None if population_counts is None else _truth(microdata, population_counts)

    notes: list[str] = []
    classes = None
    if microdata.n < N and microdata.sample_uniques:
        clock = monotonic()
        classes = latent_class_risk(microdata, population_size=N, seed=seed)
        seconds["latent classes"] = monotonic() - clock
    differing = size_indices_differ(microdata)
    certain = bool((risk.combinations["p"] == 1).all())
    if certain:
        notes.append(ALL_IN_FILE)
    models = _by_model(microdata, risk.combinations, draws, seed, seconds, certain=certain)
    clock = monotonic()
    households = _households(risk, models)
    if households is not None:
        seconds["households"] = monotonic() - clock
    unstructured = None
    if cells is not None and differing:
        notes += [f"uniques without structure were not estimated: {why}" for why in differing]
    elif cells is not None:
        clock = monotonic()
        unstructured = _unstructured(microdata, N, cells, draws, seed)
        seconds["uniques without structure"] = monotonic() - clock
    clock = monotonic()
    comparison, why = _comparison(microdata, N, cells, classes, models, seed, slow=force)
    if comparison is not None or why:
        seconds["comparison"] = monotonic() - clock
    notes += why
    return Measurement(
        data=microdata,
        risk=risk,
        latent_classes=classes,
        models=models,
        households=households,
        unstructured=unstructured,
        comparison=comparison,
        population_size=N,
        truth=truth,
        checks=[
            *_checks(microdata, risk, models, unstructured, N, population_size),
            *([] if classes is None else classes.checks),
            *check_limits(policy, risk, models, classes),
        ],
        notes=tuple(notes),
        seconds=seconds,
        seed=seed,
    )


def _comparison(
    microdata: Microdata,
    N: int,
    cells: int | None,
    classes: LatentClassRisk | None,
    models: Mapping[str, SuperpopulationRisk],
    seed: int,
    *,
    slow: bool,
) -> tuple[RiskComparison | None, list[str]]:
    """All measures side by side, or why there are none."""
    if len(microdata.keys) < 2 or not microdata.sample_uniques or microdata.n >= N:
        return None, []
    try:
        found = compare_risks(
            microdata, N, cells=cells, latent_classes=classes, models=models, seed=seed, slow=slow
        )
    except InputError as error:
        # the risks stand without it: more keys or sets than SUDA can search, say
        return None, [f"all measures were not set side by side: {error}"]
    return found, []


def _fraction(data: Microdata, size: int | None, fraction: float | None) -> float | None:
    """Return the sampling fraction, where that and not the weights gives F."""
    if size is not None and size < data.n:
        raise InputError(f"the population, {size:,}, is smaller than the file, {data.n:,} records")
    if size is not None and size > LARGEST_COUNT:
        raise InputError("the population size is beyond 2^53, which is no number of people")
    if fraction is not None:
        check_fraction(fraction)
        if size is not None and data.weights is None:
            raise InputError(
                "population size and sampling fraction are two ways to say the same: leave one "
                f"out. {data.n:,} records of {size:,} people are a fraction of "
                f"{data.n / size:.6g}; given is {fraction!r}"
            )
    elif data.weights is None and size is not None:
        fraction = data.n / size
    people = _population(data, fraction)
    if not people <= LARGEST_COUNT:
        source = "sampling fraction" if data.weights is None else "sum of the weights"
        raise InputError(
            f"the {source} makes a population of {people:.3g}, beyond 2^53, which is no number of "
            "people"
        )
    return fraction  # beside weights it is refused later


def _population(data: Microdata, fraction: float | None) -> float:
    if data.weights is not None:
        return float(np.sort(data.weights).sum())
    return data.n if fraction is None else data.n / fraction


def _truth(data: Microdata, population_counts: npt.ArrayLike) -> Truth:
    counts = check_numbers(population_counts, "population_counts").astype(np.float64)
    if counts.shape != (data.n,):
        raise InputError(f"population_counts must have {data.n:,} values, one a record")
    first = np.empty(len(data.combinations), dtype=np.intp)
    first[data.combination] = np.arange(data.n)
    of_combination = counts[first][data.combination]
    complete = (data.codes >= 0).all(axis=1)
    for wrong, what in (
        (counts != np.floor(counts), "must be whole numbers"),
        (counts < data.f, "must be at least the frequency in the file"),
        (complete & (counts != of_combination), "must be equal for equal key values"),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(f"population_counts {what}; row {row + 1} has {counts[row]:g}")
    unique = data.f == 1
    return Truth(
        expected=float(np.sort(1.0 / counts).sum()),
        tau1=int(np.sum(unique & (counts == 1))),
        tau2=float(np.sort(1.0 / counts[unique]).sum()),
    )


def _households(risk: RecordRisk, models: Mapping[str, SuperpopulationRisk]) -> pd.DataFrame | None:
    """Risk of each household by the closed form and by every model."""
    frame, data = risk.households(), risk.data
    if frame is None:
        return None
    first = frame["first_record"].to_numpy() - 1
    for name, model in models.items():
        frame[f"risk_{name}"] = household_risk(model.risk[data.combination], data.household)[first]
    return frame


def _unstructured(data: Microdata, N: int, cells: int, draws: int, seed: int) -> Unstructured:
    sizes, s, n = data.size_indices, data.sample_uniques, data.n
    return Unstructured(
        cells=cells,
        uniform=expected_uniques(s, n, N, cells),
        uniform_deviation=uniques_deviation(s, n, N, cells),
        learned=learn_uniques(sizes, N, cells, draws=draws, seed=seed),
    )


def _limits(policy: Policy | PathLike | None) -> Policy | None:
    """Return a policy, read where its file is given; refuses one without limits for microdata."""
    if policy is None:
        return None
    limits = policy if isinstance(policy, Policy) else read_policy(policy)
    limits.for_microdata()
    return limits


def _by_model(
    microdata: Microdata,
    frame: pd.DataFrame,
    draws: int,
    seed: int,
    seconds: dict[str, float],
    *,
    certain: bool,
) -> dict[str, SuperpopulationRisk]:
    """Risk by every model that goes with the file; its wall times are put into ``seconds``."""
    models: dict[str, SuperpopulationRisk] = {}
    for model in MODELS:
        if certain and model != "known":
            continue  # F = f leaves nothing to learn
        clock = monotonic()
        spread = None
        if model == "uncertain":
            if microdata.weights is None:
                continue  # a fraction is known, not estimated
            spread = weight_spread(
                microdata.weights, microdata.combination, frame["records"], f=frame["f"]
            )
        models[model] = superpopulation_risk(
            frame["f"],
            frame["p"],
            records=frame["records"],
            model=model,
            spread=spread,
            draws=draws,
            seed=seed,
        )
        seconds[f"model {model}"] = monotonic() - clock
    return models


def _checks(
    data: Microdata,
    risk: RecordRisk,
    models: Mapping[str, SuperpopulationRisk],
    unstructured: Unstructured | None,
    N: int,
    given: int | None,
) -> list[Check]:
    learned = [(name, model.converged) for name, model in models.items() if name != "known"]
    if unstructured is not None:
        learned.append(("learned concentration", unstructured.learned.trusted))
    return [
        # a question that was not asked must not be passed
        *([_convergence_check([n for n, trusted in learned if not trusted])] if learned else []),
        *([_models_check(data, models)] if len(models) > 1 else []),
        *_missing_check(data, risk),
        *_population_check(data, risk, N, given),
    ]


def _convergence_check(bad: list[str]) -> Check:
    return Check(
        "convergence",
        "look" if bad else "pass",
        f"parameters are not known to the digits asked for in: {', '.join(bad)}"
        if bad
        else "the parameters of every model are integrated to eight digits",
        key="convergence",
    )


def _models_check(data: Microdata, models: Mapping[str, SuperpopulationRisk]) -> Check:
    thin = [name for name, model in models.items() if model.converged and not model.trusted]
    shares = [model.expected.value / data.n for model in models.values()]
    alone = [model.tau1.value for model in models.values()]
    apart = any(max(totals) > 1.5 * min(totals) for totals in (shares, alone))
    return Check(
        "models",
        "look" if apart or thin else "pass",
        f"expected share of re-identified records from {min(shares):.2%} to {max(shares):.2%}, "
        f"population uniques among the sample's from {min(alone):,.1f} to {max(alone):,.1f}, "
        "by model"
        + ("; the closed form is known to be too low for rare cells" * apart)
        + (f"; not trusted for this file: {', '.join(thin)}" if thin else ""),
        key="models",
    )


def _missing_check(data: Microdata, risk: RecordRisk) -> list[Check]:
    if data.missing == "own" or not bool((data.codes < 0).any()):
        return []
    times = float(risk.combinations["f"].sum() / data.n)
    return [
        Check(
            "missing values",
            "look" if times > 1.0 + OVERLAP else "pass",
            f"by the rule {data.missing!r} combinations overlap: their frequencies add up to "
            f"{times:,.2f} times the file. The models take combinations for separate, so their "
            "totals are the worse the more that is above 1: compare those of the rule 'own'",
            key="missing_values",
        )
    ]


def _population_check(data: Microdata, risk: RecordRisk, N: int, given: int | None) -> list[Check]:
    if data.weights is None and risk.sampling_fraction is None:
        return [
            Check(
                "population",
                "look",
                "no weights, population size or sampling fraction: the file counts as the whole "
                "population, and every risk is 1/f",
                key="population",
            )
        ]
    if given is None or data.weights is None:
        return []
    total = _population(data, None)
    differs = abs(total / N - 1.0) > AGREEMENT
    return [
        Check(
            "population",
            "look" if differs else "pass",
            f"the weights sum to {total:,.0f}, the population has {N:,}",
            key="population",
        )
    ]
