"""What makes records unique: which key, which values, and what coarser values would leave.

Everything is counted in the file, by the rule for missing values; nothing is fitted. A record that
is no longer unique has at least one other that it can be taken for: guessing is right for it with
probability 1/2 at most.
"""

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.microdata.file.combinations import codes_of
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.tabulate import match, patterns, sums
from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
#: a number, or a class of numbers: 25, 25-29, 85+, 20 to 24
QUANTITY = re.compile(rf"\s*({NUMBER})\s*(?:\+|(?:-|\u2013|to)\s*{NUMBER})?\s*")
RARE = 0.05  # share of records below which a value is put together with other rare ones
FEWEST = 8  # values of a key below which numbers are taken for codes, which have no neighbours

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Drivers:
    """What makes the sample uniques of a file unique. Confidential.

    Made by :func:`bayes_sdc.measure_microdata`, as ``drivers`` of :class:`bayes_sdc.Measurement`.

    Parameters
    ----------
    keys : DataFrame
        Index ``key``, fewest ``without`` first. ``values`` that occur, ``without``: sample uniques
        left if the key is left out (NaN for a single key); ``coarser``: which values are put
        together, empty for a key of one or two; ``coarser_values``: how many there are then, and
        ``with_coarser``: sample uniques left.
    values : DataFrame
        One row a value that a sample unique has: ``key``, ``value`` (None where it is missing),
        ``records``, ``uniques``, ``matches`` (expected right matches of these uniques; their number
        where nothing was estimated), and ``excess``: the share of all such matches less the share
        of all records. Largest excess first.
    """

    keys: pd.DataFrame
    values: pd.DataFrame

    @property
    def matches(self) -> float:
        """Expected right matches of all sample uniques."""
        first = self.keys.index[0]
        return float(self.values.loc[self.values["key"] == first, "matches"].sum())


def find_drivers(microdata: Microdata, classes: LatentClassRisk | None) -> Drivers | None:
    """Count sample uniques without each key, by each value, and with coarser values.

    Parameters
    ----------
    microdata : Microdata
        The file.
    classes : LatentClassRisk or None
        Expected right matches of its sample uniques, where they were estimated.

    Returns
    -------
    Drivers or None
        None where no record is unique.

    Examples
    --------
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"sex": list("ffmm"), "job": list("abaa")})
    >>> found = find_drivers(read_microdata(people, keys=["sex", "job"]), None)
    >>> found.keys["without"].to_dict()
    {'job': 0.0, 'sex': 1.0}
    """
    if not microdata.sample_uniques:
        return None
    frame = microdata.combinations
    codes = codes_of(frame).astype(np.int32)
    records = frame["records"].to_numpy(np.float64)
    rows = {}
    for j, key in enumerate(microdata.keys):
        values = np.unique(codes[codes[:, j] >= 0, j])
        others = [i for i in range(len(microdata.keys)) if i != j]
        words, place = coarser(microdata, j)
        wider, known = codes.copy(), codes[:, j] >= 0
        wider[known, j] = place[codes[known, j]]
        rows[key] = {
            "values": len(values),
            "without": _uniques(microdata, codes, records, others) if others else np.nan,
            "coarser": words,
            "coarser_values": len(np.unique(place[values])),
            "with_coarser": _uniques(microdata, wider, records, [*others, j]),
        }
    keys = pd.DataFrame.from_dict(rows, orient="index").rename_axis("key")
    return Drivers(keys.sort_values("without", kind="stable"), _by_value(microdata, classes))


def _uniques(data: Microdata, codes: Codes, records: Floats, keys: list[int]) -> float:
    """Count records with f = 1 by some keys, from the combinations and their records."""
    sizes = tuple(len(data.labels[j]) for j in keys)
    place, found = patterns(np.ascontiguousarray(codes[:, keys]), sizes)
    f = sums(place, records, len(found)).astype(np.int64)
    if data.missing != "own":
        mutual = data.missing == "wildcard"
        f, _ = match(found, f, f.astype(np.float64), sizes=sizes, mutual=mutual)
    return float(records[f[place] == 1].sum())


def coarser(data: Microdata, key: int) -> tuple[str, npt.NDArray[np.int64]]:
    """Put the values of a key together so that half as many are left, or fewer.

    Numbers and classes of numbers are joined with their neighbours, two by two. Of any other key
    the rarer half of the values become one, and with them all that fewer than 5 % of the records
    have.

    Parameters
    ----------
    data : Microdata
        The file.
    key : int
        Place of the key.

    Returns
    -------
    str
        What was put together; empty where two values or fewer leave nothing to do.
    array of int, shape (level,)
        New place of each level.
    """
    labels, codes = data.labels[key], data.codes[:, key]
    counts = np.bincount(codes[codes >= 0], minlength=len(labels))
    occur = np.flatnonzero(counts)
    place = np.arange(len(labels))
    if len(occur) <= 2:
        return "", place
    numbers = [QUANTITY.fullmatch(labels[level]) for level in occur]
    lows = [float(found[1]) for found in numbers if found]
    if len(occur) >= FEWEST and len(set(lows)) >= len(occur) - 1:
        ordered = [
            level
            for _, level in sorted(
                zip(lows, occur[[found is not None for found in numbers]], strict=True)
            )
        ]
        for first, second in zip(ordered[::2], ordered[1::2], strict=False):
            place[second] = first
        return "neighbouring values joined, two by two", place
    half = len(occur) // 2 + 1
    rare = int((counts[occur] < RARE * len(codes)).sum())
    rarest = occur[np.argsort(counts[occur], kind="stable")]
    rarest = rarest[: min(max(half, rare), len(occur) - 1)]
    place[rarest] = rarest[0]
    return f"its {len(rarest)} rarest values as one", place


def _by_value(data: Microdata, classes: LatentClassRisk | None) -> pd.DataFrame:
    """Records, sample uniques and right matches of each value of each key."""
    # in the order of the combinations, not of the file, or sums would differ in their last digits
    unique = np.flatnonzero(data.f == 1)
    unique = unique[np.argsort(data.combination[unique], kind="stable")]
    risk = np.ones(len(unique))
    if classes is not None:
        risk = classes.records["inverse_F"].reindex(unique).to_numpy(np.float64)
    parts = []
    for j, key in enumerate(data.keys):
        code, labels = data.codes[:, j] + 1, [None, *data.labels[j]]
        records = np.bincount(code, minlength=len(labels))
        matches = np.bincount(code[unique], risk, minlength=len(labels))
        part = pd.DataFrame(
            {
                "key": key,
                "value": pd.Series(labels, dtype=object),
                "records": records,
                "uniques": np.bincount(code[unique], minlength=len(labels)),
                "matches": matches,
                "excess": matches / risk.sum() - records / data.n,
            }
        )
        parts.append(part[part["uniques"] > 0])
    joined = pd.concat(parts, ignore_index=True)
    return joined.sort_values("excess", ascending=False, kind="stable", ignore_index=True)
