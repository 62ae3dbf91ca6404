"""What every treatment of a file shares: the intruder, the model, the people behind the records."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayes_sdc.arguments import check_fields
from bayes_sdc.checks import Check
from bayes_sdc.convergence import RHAT_FAIL
from bayes_sdc.cores import threads
from bayes_sdc.errors import InputError
from bayes_sdc.io.columns import LARGEST_COUNT
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.lancaster.structural_zeros import labels_of, read_rules
from bayes_sdc.microdata.treatment.intruder import (
    KNOWLEDGE,
    KNOWS,
    Knowledge,
    Knows,
    MatchRisk,
    risk_of_matches,
)
from bayes_sdc.microdata.treatment.matching import Matches, match_records
from bayes_sdc.microdata.treatment.population import population_share
from bayes_sdc.microdata.treatment.states import Layout, States, draw_states, layout_of
from bayes_sdc.results import Fact, Result

Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

DRAWS = 8  # of the model, behind the people of a combination
MATCHED = 4  # of these, over which the chances of hidden values are averaged


@dataclass(frozen=True, repr=False)
class Intruder(Result):
    """What an intruder knows of a target, and of the treatment of a file.

    Parameters
    ----------
    keys : sequence of str, optional
        Keys whose true values they know of a target; by default all. The others stay in the file
        and inform about hidden values.
    knowledge : {"population", "sample"}
        Whether they know that the target is in the file: "sample" is the stronger intruder.
    knows : {"keys", "records"}
        Whether they know which records were treated, the stronger intruder, or only the treated
        keys and the share of treated records. Several data sets of one file side by side show which
        records were treated, so with these it is always "records". After PRAM they know the
        matrices, and combine what several data sets show of a record.

    Raises
    ------
    InputError
        If keys are no list of names, or a word is unknown.

    Examples
    --------
    >>> Intruder(knowledge="sample").knowledge
    'sample'
    """

    keys: Sequence[str] | None = None
    knowledge: Knowledge = "population"
    knows: Knows = "keys"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.keys is not None:
            # two intruders are equal where they know the same, whatever it was given as
            object.__setattr__(self, "keys", tuple(map(str, self.keys)))

    def _title(self) -> str:
        return "Intruder of a file of persons"

    def _facts(self) -> list[Fact]:
        return [
            ("keys", "all" if self.keys is None else ", ".join(self.keys), "known of a target"),
            ("knowledge", self.knowledge, KNOWLEDGE[self.knowledge]),
            ("knows", self.knows, KNOWS[self.knows]),
        ]


class Setting(NamedTuple):
    """A file, its intruder and its model, ready for any treatment.

    Parameters
    ----------
    data : Microdata
        All variables of the model as keys.
    known : Microdata
        The same records with the keys that the intruder knows.
    is_known : array of bool, shape (key,)
        These keys among all.
    intruder : Intruder
        Who.
    states : States
        Draws of the model.
    in_file : array, shape (draw, record)
        Means of f / F.
    rules : array of bool, shape (rule, row of phi)
        Structural zeros.
    notes : tuple of str
        On the rules and the population.
    """

    data: Microdata
    known: Microdata
    is_known: Flags
    intruder: Intruder
    states: States
    in_file: Floats
    rules: Flags
    notes: tuple[str, ...]

    def match(self, hidden: Flags, *, released: Codes | None = None, share: float = 1.0) -> Matches:
        """Match every record where these values are hidden; see :func:`.match_records`."""
        states = self.states.thinned(MATCHED)
        return match_records(
            self.data.codes, hidden, self.is_known, states, released=released, share=share
        )

    def risk(self, hidden: Flags) -> MatchRisk:
        """Measure the risk where these values are hidden, and the intruder knows it."""
        return self.of_matches([self.match(hidden)], "records")

    def of_matches(self, matches: Sequence[Matches], knows: Knows) -> MatchRisk:
        """Put matches and the people behind the records together."""
        return risk_of_matches(
            matches,
            self.in_file,
            knowledge=self.intruder.knowledge,
            knows=knows,
            keys=self.known.keys,
        )

    def checks(self, *, hidden: bool) -> list[Check]:
        """Judge the model by what does not depend on the labels of its classes.

        Parameters
        ----------
        hidden : bool
            Whether values are hidden or drawn. Where none is, the model says at most how many
            people share the values of a record, and where it does not say that, nothing rests on
            it and nothing is judged.

        Returns
        -------
        list of Check
            One, or none.
        """
        if not hidden and len(self.in_file) == 1:
            return []
        does = (
            "The model may predict hidden values worse than it could; the risk does not rest on "
            "its classes"
            if hidden
            else "No value is hidden, so the model says only how many people share the values of "
            "a record"
        )
        bad = {name: rhat for name, rhat in self.states.rhat.items() if not rhat <= RHAT_FAIL}
        told = ", ".join(f"{name} {rhat:.3f}" for name, rhat in bad.items())
        return [
            Check(
                "model of the treatment: chains",
                "look" if bad else "pass",
                f"R-hat above {RHAT_FAIL:g}: {told}. {does}"
                if bad
                else f"the chains agree: no R-hat above {RHAT_FAIL:g}",
                key="treatment_chains",
            )
        ]


def population_of(data: Microdata, size: int | None) -> float | None:
    """Return N: as given, or the sum of the weights; None where the file is all there is."""
    if size is None:
        if data.weights is None:
            return None
        return max(float(np.sort(data.weights).sum()), float(data.n))
    if not data.n <= size <= LARGEST_COUNT:
        raise InputError(
            f"population_size must be a whole number from the {data.n:,} records up to 2^53; it is "
            f"{size!r}"
        )
    return float(size)


def rules_by_row(data: Microdata, structural_zeros: Any, layout: Layout) -> tuple[Flags, list[str]]:
    """Read structural zeros as flags by row of phi."""
    rows = int(layout.start[-1])
    if structural_zeros is None:
        return np.zeros((0, rows), dtype=np.bool_), []
    rules, notes = read_rules(structural_zeros, data)
    # a missing value has a row only where it is a level of its own
    kept = np.array(
        [
            own or label is not None
            for labels, own in zip(labels_of(data), layout.lacking, strict=True)
            for label in labels
        ]
    )
    return np.ascontiguousarray(rules[:, kept]), list(notes)


def prepare(
    data: Microdata,
    *,
    intruder: Intruder,
    population_size: int | None,
    structural_zeros: Any,
    datasets: int,
    seed: int,
    cores: int | None = None,
) -> Setting:
    """Fit the model of a file and estimate the people behind it, once for all treatments."""
    names = data.keys if intruder.keys is None else tuple(intruder.keys)
    known = data.select(names)
    size = population_of(data, population_size)
    rules, notes = rules_by_row(data, structural_zeros, layout_of(data))
    threads(cores)  # refuses a wrong number
    states = draw_states(data, draws=max(DRAWS, datasets), seed=seed, cores=cores)
    in_file = np.ones((1, data.n))
    if intruder.knowledge == "population":
        in_file = population_share(data, known, states.thinned(DRAWS), size, seed=seed)
        if size is None:
            notes.append(
                "no weights and no population size: the file counts as the whole population"
            )
    is_known = np.array([key in names for key in data.keys])
    return Setting(data, known, is_known, intruder, states, in_file, rules, tuple(notes))
