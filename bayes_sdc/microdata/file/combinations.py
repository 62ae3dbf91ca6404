"""Combinations of key values, and how often each occurs by the rule for missing values.

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

from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.microdata.file.tabulate import match, patterns, sums

MissingRule = Literal["wildcard", "own", "conservative"]
RULES = {
    "wildcard": "a missing value matches every value",
    "own": "missing is a category of its own",
    "conservative": (
        "a record counts those that have all the values it has; one that lacks some of them is not "
        "counted for it"
    ),
}


def combine(
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


def codes_of(combinations: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Codes of the key values of combinations, -1 where one is missing: (combination, key).

    Examples
    --------
    >>> codes = np.array([[1, 0], [0, -1]], np.int32)
    >>> codes_of(combine(("a", "b"), (("x", "y"), ("z",)), codes, None, "own")[1]).tolist()
    [[0, -1], [1, 0]]
    """
    parts = combinations.index.codes  # type: ignore[attr-defined]
    return np.stack([np.asarray(part, dtype=np.int64) for part in parts], axis=1)
