"""What was measured of a file: risks, totals by model, verdicts; and how they are shown."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.checks import Check
from bayes_sdc.microdata.comparison.result import RiskComparison
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.individual.record_risk import RecordRisk
from bayes_sdc.microdata.individual.superpopulation import SuperpopulationRisk
from bayes_sdc.microdata.latent_classes.risk import (
    LatentClassRisk,
    recommended_line,
    recommended_risk,
)
from bayes_sdc.microdata.measure.drivers import Drivers
from bayes_sdc.microdata.uniques.learned import LearnedUniques
from bayes_sdc.results import Fact, Result, summary_lines, with_interval


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
        each model and ``risk_recommended``, by ``recommended_risk``; None for a file without
        households.
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
    drivers : Drivers or None
        Which key and which values make records unique; None where no record is.
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
    drivers: Drivers | None = None

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
    def recommended_risk(self) -> npt.NDArray[np.float64]:
        """Risk of each record: sample uniques by latent classes, others by the closed form."""
        return recommended_risk(self.risk, self.latent_classes)

    @property
    def recommended_by_combination(self) -> npt.NDArray[np.float64]:
        """The same of each combination, whose records share it."""
        risk = np.zeros(len(self.risk.combinations))
        risk[self.data.combination] = self.recommended_risk
        return risk

    @property
    def expected_by_household(self) -> float | None:
        """Expected persons in households with a re-identified member, by ``recommended_risk``."""
        if (homes := self.households) is None:
            return None
        return float(np.sort(homes["persons"] * homes["risk_recommended"]).sum())

    @property
    def worst(self) -> SuperpopulationRisk:
        """The model with the most expected re-identifications."""
        return max(self.models.values(), key=lambda model: model.expected.value)

    @property
    def expected_households(self) -> dict[str, float]:
        """Expected households with a re-identified member; empty without households.

        By ``recommended_risk``, as "recommended", and by the name of each model.
        """
        if self.households is None:
            return {}
        names = ("recommended", *self.models)
        return {name: float(np.sort(self.households[f"risk_{name}"]).sum()) for name in names}

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
        trust = "" if worst.trusted else " (NOT trusted)"
        return (
            f"at worst, by the model {name!r}{trust}, {value:,.1f} ({low:,.1f} to {high:,.1f}) of "
            f"{n:,} records are re-identified, {value / n:.2%}; tau1 {worst.tau1.value:,.1f}"
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
            homes = self.expected_households
            by = ", ".join(f"{name} {homes[name]:,.1f}" for name in self.models)
            found = self.latent_classes
            how = "" if found is None else ", sample uniques by latent classes"
            how += " (NOT trusted)" if found is not None and not found.trusted else ""
            lines.append(
                f"expected re-identified households: {homes['recommended']:,.1f} of "
                f"{len(self.households):,}{how}; by model {by}"
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
