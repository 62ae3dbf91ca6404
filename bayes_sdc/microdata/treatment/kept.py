"""What columns tell that are released as they are, beside treated keys.

They are judged one by one and all together: what differs from record to record identifies, and what
goes with a single level of a treated key undoes the treatment. Of a value that occurs in one or two
records nobody can say by itself whether the level follows from it. It does where the other values
of the column go with one level each, as an age follows from a year of birth.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.checks import Check
from bayes_sdc.microdata.file.stored import text_places
from bayes_sdc.microdata.treatment.households import agreeing, shared_keys, spread_over_households
from bayes_sdc.microdata.treatment.result import Treatment

DISTINCT = 0.5  # share of records with a value of their own above which a column identifies
FEW = 3  # records with a value below which it is no evidence of a rule
RULE = 0.1  # of the exceptions that chance would leave: with fewer a key follows from a column

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def kept_checks(treatment: Treatment, source: pd.DataFrame, names: Sequence[str]) -> list[Check]:
    """Judge the columns that are released as they are.

    Parameters
    ----------
    treatment : Treatment
        From :func:`bayes_sdc.treat`.
    source : DataFrame
        All columns of the input, records in the same order.
    names : sequence of str
        Those that are kept, the household among them perhaps.

    Returns
    -------
    list of Check
        One a column, and one for all together where there are several.
    """
    checks, values = [], {}
    for name in names:
        if name == treatment.data.household_name:
            checks.append(_households_check(treatment, name))
            continue
        values[name] = text_places(source[name])
        of = "the weight" if name == treatment.data.weight_name else "the column"
        checks.append(_judged(treatment, f"kept column {name}", f"{of} {name!r}", values[name]))
    if len(values) > 1:
        listed = ", ".join(map(repr, values))
        checks.append(
            _judged(
                treatment, "kept columns together", f"what is kept ({listed}), taken together,",
                together(list(values.values())),
            )
        )  # fmt: skip
    return checks


def together(columns: Sequence[Integers]) -> Integers:
    """Number the different rows of several columns.

    >>> together([np.array([0, 0, 1]), np.array([5, 7, 5])]).tolist()
    [0, 1, 2]
    """
    one = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        one = np.unique(one * (int(column.max()) + 1) + column, return_inverse=True)[1]
    return one


class Told(NamedTuple):
    """How many treated values a column tells, and how many of them it may tell."""

    surely: int
    perhaps: int


def told_values(value: Integers, codes: npt.NDArray[Any], hidden: Flags) -> Told:
    """Count treated values of a key whose level is the only one beside a value of a column.

    Parameters
    ----------
    value : array of int, shape (record,)
        Number of each record's value in the column.
    codes : array of int, shape (record,)
        True levels of the key, -1 for missing.
    hidden : array of bool, shape (record,)
        Treated ones.

    Returns
    -------
    Told
        Surely: the value occurs with that level three times or more, or the level follows from the
        column elsewhere. Perhaps: it occurs in one or two records.

    Examples
    --------
    >>> year = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 3])
    >>> treated = np.arange(10) == 9
    >>> told_values(year, year + 20, treated)
    Told(surely=1, perhaps=0)
    >>> told_values(year, np.arange(10), treated)
    Told(surely=0, perhaps=1)
    """
    times = np.bincount(value)[value]
    levels, level = np.unique(codes, return_inverse=True)
    if len(levels) < 2:
        return Told(0, 0)
    pairs = np.unique(np.stack([value, level]), axis=1)[0]
    single = np.bincount(pairs, minlength=int(value.max()) + 1)[value] == 1
    often = times >= FEW
    # records beside more than one level, among those whose value occurs again: by chance, and here
    again = times > 1
    sizes, number = np.unique(times[again], return_counts=True)
    shares = np.bincount(level) / len(level)
    by_chance = sum(
        count * (1.0 - float(np.sum(shares**size)))
        for size, count in zip(sizes.tolist(), number.tolist(), strict=True)
    )
    follows = by_chance >= FEW and int((again & ~single).sum()) <= RULE * by_chance
    surely = hidden & single & (often | follows)
    return Told(int(surely.sum()), int((hidden & single & ~surely).sum()))


def _judged(treatment: Treatment, name: str, what: str, value: Integers) -> Check:
    """Judge what a column, or several together, tell of single records and of treated values."""
    alone = float((np.bincount(value)[value] == 1).mean())
    found = [
        told_values(value, treatment.data.codes[:, j], treatment.hidden[:, j])
        for j in np.flatnonzero(treatment.hidden.any(axis=0))
    ]
    told, perhaps = (sum(one[part] for one in found) for part in (0, 1))
    if alone > DISTINCT:
        return Check(
            name, "fail",
            f"{what} has a value of its own in {alone:.0%} of the records: whoever knows it "
            "knows the record; leave it out, or make it coarser",
            key="treatment_columns",
        )  # fmt: skip
    if told:
        return Check(
            name, "fail",
            f"{what} tells {told:,} treated values: what is written there goes with one level of "
            "the key alone; leave it out, or treat it too",
            key="treatment_columns",
        )  # fmt: skip
    says = (
        f"{perhaps:,} treated values stand beside a value of it that occurs in one or two "
        "records: whoever can derive the key from it, as an age from a year of birth, knows them; "
        "no others are told for certain"
        if perhaps
        else "tells by itself no treated value for certain"
    )
    return Check(
        name,
        "look" if alone > 0.0 or perhaps else "pass",
        f"{what} has a value of its own in {alone:.2%} of the records, and {says}",
        key="treatment_columns",
    )


def _households_check(treatment: Treatment, name: str) -> Check:
    """Judge what members of a household tell of each other's treated values."""
    told = (
        f"households have new numbers in {name!r}, but their members stay together: the risk is "
        "that of persons one by one, and who knows a whole household knows more"
    )
    data = replace(treatment.data, missing="wildcard")
    treated = shared_keys(data) & treatment.hidden.any(axis=0)
    if treatment.method == "pram":
        apart = treated
    else:
        told_off = spread_over_households(data, treatment.hidden) & ~treatment.hidden
        split = [treatment.hidden & ~agreeing(data.with_codes(codes)) for codes in treatment.codes]
        apart = treated & (told_off | np.any(split, axis=0)).any(axis=0)
    if not apart.any():
        return Check("households kept", "look", told, key="treatment_columns")
    keys = ", ".join(key for key, one in zip(data.keys, apart, strict=True) if one)
    return Check(
        "households kept", "fail",
        f"{keys} is equal within households, or nearly all of them, but was treated person by "
        "person: the members of a household together tell its true value, and the risk does not "
        f"count that; do not keep {name!r}",
        key="treatment_columns",
    )  # fmt: skip
