"""Reading microdata: key variables, combinations of their values, and how often each occurs.

A combination is a set of values of the key variables that occurs in the file. Its sample frequency
f is the number of records that match it and its estimated population frequency F the sum of their
weights, kept as a real number. What a missing value matches is one named rule for the whole file:

``"wildcard"``
    it matches every value, so both records of a matching pair count for each other;
``"own"``
    it is a category of its own and matches only another missing value;
``"conservative"``
    what a record lacks itself can be anything, but a record that lacks one of its values does not
    count for it: complete records are as rare as they look. A record counts those that have all
    the values it has, so a further key never makes anybody more common, even one that nobody has.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.io.form import UNTOLD, FileForm
from bayes_sdc.microdata.file.columns import declared_missing
from bayes_sdc.microdata.file.formats import load_columns
from bayes_sdc.microdata.file.records import check_roles, read_records
from bayes_sdc.microdata.file.tabulate import match, patterns, sums
from bayes_sdc.results import Fact, Result

VIOLATIONS = (2, 3, 5)  # k of the k-anonymity that is counted everywhere
MissingRule = Literal["wildcard", "own", "conservative"]
RULES = {
    "wildcard": "a missing value matches every value",
    "own": "missing is a category of its own",
    "conservative": (
        "a record counts those that have all the values it has; one that lacks some of them is not "
        "counted for it"
    ),
}


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
            If k is no whole number from 2.
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
            If a name is no key variable here, or occurs twice.
        """
        names = _check_keys(keys)
        for name in names:
            if name not in self.keys:
                raise InputError(f"{name!r} is no key variable here; they are {list(self.keys)}")
        places = [self.keys.index(name) for name in names]
        labels = tuple(self.labels[place] for place in places)
        codes = np.ascontiguousarray(self.codes[:, places])
        combination, combinations = _tabulate(names, labels, codes, self.weights, self.missing)
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
        combination, combinations = _tabulate(
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


@checked
def read_microdata(
    source: Any,
    *,
    keys: Sequence[str],
    weight: str | None = None,
    household: str | Sequence[str] | None = None,
    missing: MissingRule = "wildcard",
    missing_codes: Mapping[str, Any] | Sequence[Any] | None = None,
    form: FileForm | None = None,
    bands: Mapping[str, Any] | None = None,
) -> Microdata:
    """Read records and tabulate the combinations of their key variables.

    Parameters
    ----------
    source : path or data frame
        CSV (also gzipped), Parquet, Stata (.dta), SPSS (.sav, .zsav, .por), SAS (.sas7bdat), or a
        data frame of any kind that narwhals knows. Only the named columns are read. Codes stay
        text.
    keys : sequence of str
        Key variables: what somebody could know of a person in the file.
    weight : str, optional
        Column of sampling weights, above 0. Without it each record stands for itself, and F = f.
    household : str or sequence of str, optional
        Column that is equal for the members of a household; several, such as area and number, where
        they tell households apart only together. One of several may be a key.
    missing : {"wildcard", "own", "conservative"}
        What a missing value matches; see the head of this module.
    missing_codes : mapping from column to code or codes, or sequence of codes for all keys
        Values that stand for a missing one. Empty and blank cells always do; ``-999`` does only
        when it is declared, and then as ``-999.0`` too. The mapping may also name the household
        column: a person with such a code shares no household.
    form : FileForm, optional
        How the file is to be read, where it does not say so itself.
    bands : mapping, optional
        Classes of key variables that are nearly unique: a width as ``{"age": 5}``, ``"q10"`` for
        ten classes of as many records each, or ``"year"`` or ``"month"`` of dates.

    Returns
    -------
    Microdata
        Codes and combinations; nothing is dropped.

    Raises
    ------
    InputError
        If the source or an argument cannot be used. One error lists every kind of problem, with
        rows and remedy.

    See Also
    --------
    bayes_sdc.record_risk, bayes_sdc.measure_microdata

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame(
    ...     {"sex": list("mmmf"), "age": ["20", "30", None, "20"], "w": [10.5, 20, 15, 30]}
    ... )
    >>> data = read_microdata(people, keys=["sex", "age"], weight="w")
    >>> data.f.tolist(), data.F.tolist()
    ([2, 2, 3, 1], [25.5, 35.0, 45.5, 30.0])
    >>> read_microdata(people, keys=["sex", "age"], weight="w", missing="own").f.tolist()
    [1, 1, 1, 1]
    >>> data.k_violations(3)
    Tally(records=3, combinations=3)
    """
    names = _check_keys(keys)
    if missing not in RULES:
        raise InputError(f"missing {missing!r} is unknown; choose from {list(RULES)}")
    homes = (household,) if isinstance(household, str) else tuple(household or ())
    check_roles(names, weight, homes)
    declared = declared_missing(missing_codes, names, homes)
    wanted = [*names, *([] if weight is None else [weight]), *homes]
    loaded = load_columns(source, list(dict.fromkeys(wanted)), form)
    if loaded.frame.empty:
        raise InputError(f"{loaded.source}: a header but no rows")
    read = read_records(
        loaded, names, weight, homes, declared=declared, form=form or UNTOLD, bands=bands or {}
    )
    labels = tuple(level.labels for level in read.levels)
    codes = np.column_stack([level.places for level in read.levels])
    combination, combinations = _tabulate(names, labels, codes, read.weights, missing)
    return Microdata(
        keys=names,
        labels=labels,
        codes=codes,
        combination=combination,
        combinations=combinations,
        weights=read.weights,
        household=None if read.living is None else read.living.numbers,
        household_ids=() if read.living is None else read.living.ids,
        missing=missing,
        weight_name=weight,
        household_name=" + ".join(homes) or None,
        value_labels=loaded.labels,
        source=loaded.source,
        sha256=loaded.sha256,
        file_notes=read.notes,
        key_notes=read.key_notes,
    )


def _check_keys(keys: Sequence[str]) -> tuple[str, ...]:
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise InputError(f"keys must be a sequence of column names; it is {keys!r}")
    names = tuple(keys)
    if not names:
        raise InputError("keys must name at least one column")
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"column names must be text, got {name!r}")
        if names.count(name) > 1:
            raise InputError(f"key {name!r} is named twice")
    return names


def _tabulate(
    keys: tuple[str, ...],
    labels: tuple[tuple[str, ...], ...],
    codes: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float64] | None,
    missing: MissingRule,
) -> tuple[npt.NDArray[np.intp], pd.DataFrame]:
    """Return the combination of each record, and the table of combinations."""
    sizes = tuple(map(len, labels))
    combination, found = patterns(codes, sizes)
    records = np.bincount(combination, minlength=len(found)).astype(np.int64)
    total = (
        records.astype(np.float64) if weights is None else sums(combination, weights, len(found))
    )
    f, weight_sum = records, total
    if missing != "own":
        f, weight_sum = match(found, records, total, sizes=sizes, mutual=missing == "wildcard")
    index = pd.MultiIndex(
        levels=list(labels), codes=list(found.T), names=list(keys), verify_integrity=False
    )
    columns = {
        "records": records,
        "f": f,
        "weight_sum": weight_sum,
        "F": np.maximum(weight_sum, f),
    }
    return combination, pd.DataFrame(columns, index=index)
