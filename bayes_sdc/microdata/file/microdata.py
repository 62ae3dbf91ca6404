"""A checked file of persons: its key variables, and how often each combination of them occurs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.combinations import RULES, MissingRule, combine
from bayes_sdc.microdata.file.records import check_keys
from bayes_sdc.results import Fact, Result

VIOLATIONS = (2, 3, 5)  # k of the k-anonymity that is counted everywhere


class Tally(NamedTuple):
    """How many records something concerns, and how many combinations these have.

    Made by :meth:`bayes_sdc.Microdata.k_violations` and its like.

    Parameters
    ----------
    records : int
        Number of records.
    combinations : int
        Number of different combinations of key values they have.
    """

    records: int
    combinations: int


@dataclass(frozen=True, eq=False, repr=False)
class Microdata(Result):
    """A checked file of records with its combinations; made by `read_microdata`.

    Parameters
    ----------
    keys : tuple of str
        Key variables.
    labels : tuple of tuple of str
        For each key the texts of its levels, in sorted order.
    codes : array of int32, shape (record, key)
        For each record and key the place in ``labels``; -1 for missing, under every rule.
    combination : array of int, shape (record,)
        Row of each record in ``combinations``.
    combinations : DataFrame
        One row per combination, in the order of its codes. The index has a level a key, with NaN
        for missing. Columns: ``records`` that have exactly these values, ``f`` (records that match
        by the missing rule), ``weight_sum`` of these, and ``F``: the weight sum, or f where that is
        larger.
    weights : array of float, shape (record,), or None
        None without a weight column: then each record stands for itself.
    household : array of int, shape (record,), or None
        Number of the household, equal for its members.
    household_ids : tuple of str
        Their ids, by number; numbers beyond these are of persons without an id.
    missing : {"wildcard", "own", "conservative"}
        The rule.
    weight_name, household_name : str or None
        Columns they came from.
    value_labels : dict
        Labels that a Stata, SPSS or SAS file gives its codes, by column and text of the code.
    source : str
        File name, or ``"DataFrame"``.
    sha256 : str or None
        Of the bytes of the file; None for a data frame.
    file_notes : tuple of str
        What the reader saw of the file, its weights and households.
    key_notes : dict
        What it saw of each key variable, by its name.
    """

    keys: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    codes: npt.NDArray[np.int32]
    combination: npt.NDArray[np.intp]
    combinations: pd.DataFrame
    weights: npt.NDArray[np.float64] | None
    household: npt.NDArray[np.int64] | None
    household_ids: tuple[str, ...]
    missing: MissingRule
    weight_name: str | None
    household_name: str | None
    value_labels: dict[str, dict[str, str]]
    source: str
    sha256: str | None
    file_notes: tuple[str, ...]
    key_notes: dict[str, tuple[str, ...]]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was seen, and the user should know, of the file and of these key variables."""
        notes = [*self.file_notes, *(note for key in self.keys for note in self.key_notes[key])]
        if self.raised:
            notes.append(
                f"{self.raised:,} combinations have a weight sum below f; F is raised to f there"
            )
        return tuple(notes)

    def shown(self, key: str, code: str) -> str:
        """Return a code with the label that its file gives it, to be read: ``1 (man)``."""
        label = self.value_labels.get(key, {}).get(code)
        return code if label is None else f"{code} ({label})"

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.codes)

    @property
    def f(self) -> npt.NDArray[np.int64]:
        """Sample frequency of each record's combination, shape (record,)."""
        return self.combinations["f"].to_numpy()[self.combination]

    @property
    def F(self) -> npt.NDArray[np.float64]:
        """Estimated population frequency of each record's combination, shape (record,)."""
        return self.combinations["F"].to_numpy()[self.combination]

    @property
    def sample_uniques(self) -> int:
        """Number of records with f = 1."""
        return self.with_frequency(1).records

    @property
    def pairs(self) -> Tally:
        """Records with f = 2, and their combinations."""
        return self.with_frequency(2)

    @property
    def raised(self) -> int:
        """Number of combinations whose weight sum is below f, and whose F is f instead."""
        frame = self.combinations
        return int((frame["weight_sum"] < frame["f"]).sum())

    @property
    def size_indices(self) -> pd.Series:
        """Number of combinations of each size, where a missing value counts as a category.

        Size is the number of records with exactly these values, so the sizes times the numbers
        add up to the records under every rule.
        """
        sizes = self.combinations["records"].value_counts().sort_index()
        return sizes.rename("combinations").rename_axis("size")

    def with_frequency(self, frequency: int) -> Tally:
        """Count records and combinations with f equal to a number."""
        return self._tally(self.combinations["f"] == frequency)

    def k_violations(self, k: int) -> Tally:
        """Count what violates k-anonymity: f < k.

        Parameters
        ----------
        k : int
            Smallest acceptable frequency; 2 or more.

        Returns
        -------
        Tally
            ``records`` with f < k, and the ``combinations`` these have.

        Raises
        ------
        InputError
            If k is not a whole number of 2 or more.
        """
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 2:
            raise InputError(f"k must be a whole number, 2 or more; it is {k!r}")
        return self._tally(self.combinations["f"] < k)

    def _tally(self, chosen: pd.Series) -> Tally:
        return Tally(int(self.combinations["records"][chosen].sum()), int(chosen.sum()))

    def select(self, keys: Sequence[str]) -> "Microdata":
        """Return the same records with fewer key variables, without reading them again.

        Parameters
        ----------
        keys : sequence of str
            Some of the key variables, in the wanted order.

        Returns
        -------
        Microdata
            With the notes on these keys.

        Raises
        ------
        InputError
            If a name is not a key variable here, or occurs twice.
        """
        names = check_keys(keys)
        for name in names:
            if name not in self.keys:
                raise InputError(f"{name!r} is not a key variable here; they are {list(self.keys)}")
        places = [self.keys.index(name) for name in names]
        labels = tuple(self.labels[place] for place in places)
        codes = np.ascontiguousarray(self.codes[:, places])
        combination, combinations = combine(names, labels, codes, self.weights, self.missing)
        return replace(
            self,
            keys=names,
            labels=labels,
            codes=codes,
            combination=combination,
            combinations=combinations,
        )

    def with_codes(self, codes: npt.NDArray[np.int32]) -> "Microdata":
        """Return the same records with other values of the keys, as after a treatment.

        Parameters
        ----------
        codes : array of int32, shape (record, key)
            Places in ``labels``, -1 for missing.

        Returns
        -------
        Microdata
            Its ``labels`` are those of this file, whether they occur or not.
        """
        combination, combinations = combine(
            self.keys, self.labels, codes, self.weights, self.missing
        )
        return replace(self, codes=codes, combination=combination, combinations=combinations)

    def summary(self) -> str:
        """Return a few lines on what was read: rule, frequencies, violations and notes.

        Returns
        -------
        str
            Text for the console; confidential.
        """
        rows = [
            ("combinations", f"{len(self.combinations):,}"),
            ("sample uniques (f = 1)", f"{self.sample_uniques:,}"),
            *(
                (f"f < {k}", "{:,} records, {:,} combinations".format(*self.k_violations(k)))
                for k in VIOLATIONS
            ),
        ]
        if self.household is not None:
            rows.insert(0, ("households", f"{len(np.unique(self.household)):,}"))
        return "\n".join(
            [
                f"{self.source}: {self.n:,} records, keys {', '.join(map(repr, self.keys))}",
                f"  missing values: {self.missing}, {RULES[self.missing]}",
                *(f"  {what:<24}{value}" for what, value in rows),
                *(f"note: {note}" for note in self.notes),
            ]
        )

    def _title(self) -> str:
        return f"Microdata of {self.source}: confidential"

    def _facts(self) -> list[Fact]:
        facts: list[Fact] = [
            ("records", f"{self.n:,}", f"keys {', '.join(self.keys)}"),
            ("combinations", f"{len(self.combinations):,}", "of key values that occur"),
            ("sample uniques", f"{self.sample_uniques:,}", "records with f = 1"),
        ]
        for k in VIOLATIONS:
            low = self.k_violations(k)
            facts.append(
                (f"f < {k}", f"{low.records:,}", f"records, in {low.combinations:,} combinations")
            )
        facts.append(("missing values", self.missing, RULES[self.missing]))
        return facts
