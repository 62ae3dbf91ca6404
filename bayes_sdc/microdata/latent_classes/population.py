"""How many people a file stands for: in all, or by strata that were sampled at their own rates."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.io.columns import LARGEST_COUNT
from bayes_sdc.microdata.file.microdata import Microdata

Floats = npt.NDArray[np.float64]


class People(NamedTuple):
    """Whom the records stand for.

    Parameters
    ----------
    size : float
        People of the population.
    weights : array of float, shape (combination,), or None
        Mean number for which a record of each combination stands; None where it is the same for
        all.
    """

    size: float
    weights: Floats | None


def people_behind(
    data: Microdata,
    size: int | Mapping[str, int] | None,
    fraction: float | Mapping[str, float] | None,
    strata: Sequence[Any] | str | None,
) -> People:
    """Read the arguments that say how large the population is; see ``latent_class_risk``.

    Raises
    ------
    InputError
        If they are missing, contradict each other, or are impossible.
    """
    if size is not None and fraction is not None:
        raise InputError("population_size and sampling_fraction say the same: give one of them")
    given = size if size is not None else fraction
    if strata is not None or isinstance(given, Mapping):
        return _of_strata(data, size, fraction, strata)
    weights = None
    if data.weights is not None:
        frame = data.combinations
        weights = (frame["weight_sum"] / frame["f"]).to_numpy(dtype=np.float64)
    if size is not None:
        return People(_counted(size, data.n, "population_size", "records"), weights)
    if fraction is not None:
        if data.weights is not None:
            raise InputError("the file has weights: a sampling fraction would contradict them")
        return People(_by_fraction(fraction, data.n, "sampling_fraction"), None)
    if data.weights is not None:
        return People(max(float(np.sort(data.weights).sum()), float(data.n)), weights)
    raise InputError(
        "the risk depends on the size of the population: give population_size or "
        "sampling_fraction, or read the file with its weights"
    )


def _counted(size: Any, least: int, name: str, of: str) -> float:
    whole = isinstance(size, int | np.integer) and not isinstance(size, bool)
    if not whole or not least <= size <= LARGEST_COUNT:
        raise InputError(
            f"{name} must be a whole number from the {least:,} {of} up to 2^53; it is {size!r}"
        )
    return float(size)


def _by_fraction(fraction: Any, n: int, name: str) -> float:
    number = isinstance(fraction, float | int | np.floating) and not isinstance(fraction, bool)
    if not number or not 0.0 < fraction <= 1.0 or n / fraction > LARGEST_COUNT:
        raise InputError(
            f"{name} must be above 0 and at most 1, and not make a population beyond 2^53; it is "
            f"{fraction!r}"
        )
    return n / float(fraction)


def _of_strata(
    data: Microdata,
    size: int | Mapping[str, int] | None,
    fraction: float | Mapping[str, float] | None,
    strata: Sequence[Any] | str | None,
) -> People:
    given: Any = size if size is not None else fraction
    name = "population_size" if size is not None else "sampling_fraction"
    if strata is None or not isinstance(given, Mapping):
        raise InputError(
            "strata and the size or sampling fraction of each belong together: "
            'strata="region", population_size={"North": 21_000, "South": 79_000}, say'
        )
    if data.weights is not None:
        raise InputError(
            "the file has weights: strata would contradict them; remedy: read it without weight"
        )
    labels = _labels(data, strata)
    found, stratum = np.unique(labels, return_inverse=True)
    levels = [str(level) for level in found]
    records = np.bincount(stratum)
    sizes: dict[str, Any] = {}
    for level, value in given.items():
        if _text(level) in sizes:
            raise InputError(
                f"{name} has the stratum {_text(level)!r} twice, as a number and as text; remedy: "
                "leave one out"
            )
        sizes[_text(level)] = value
    if lacking := [level for level in levels if level not in sizes]:
        there = ", ".join(map(repr, list(sizes)[:5])) or "none"
        raise InputError(
            f"{name} does not have the stratum {lacking[0]!r}, which records are of; it has {there}"
        )
    if beyond := sorted(set(sizes) - set(levels)):
        raise InputError(
            f"no record is of the stratum {beyond[0]!r} of {name}: the file says nothing of its "
            "people; remedy: leave it out, and say that the risk is that of the others"
        )
    read = _counted_stratum if size is not None else _fraction_of_stratum
    people = np.array([read(sizes[s], int(n), s) for s, n in zip(levels, records, strict=True)])
    each = (people / records)[stratum]
    # sorted: sums must not depend on the order of the records
    order = np.lexsort((each, data.combination))
    of_combination = np.bincount(data.combination[order], weights=each[order])
    of_combination /= np.bincount(data.combination)
    return People(float(people.sum()), of_combination)


def _counted_stratum(size: Any, records: int, stratum: str) -> float:
    return _counted(size, records, f"population_size of {stratum!r}", "records of it")


def _fraction_of_stratum(fraction: Any, records: int, stratum: str) -> float:
    return _by_fraction(fraction, records, f"sampling_fraction of {stratum!r}")


def _labels(data: Microdata, strata: Sequence[Any] | str) -> npt.NDArray[np.str_]:
    """Return the stratum of each record, as text."""
    if isinstance(strata, str):
        if strata not in data.keys:
            raise InputError(
                f"strata names {strata!r}, which is not a key of the file; remedy: give the "
                "stratum of each record instead, in the order of the file"
            )
        j = data.keys.index(strata)
        if (data.codes[:, j] < 0).any():
            row = int(np.argmax(data.codes[:, j] < 0)) + 1
            raise InputError(f"record {row} has no value of {strata!r}, so its stratum is unknown")
        return np.array(data.labels[j])[data.codes[:, j]]
    index = getattr(strata, "index", None)  # of a Series; a list has a method of that name
    if isinstance(index, pd.Index) and not index.is_monotonic_increasing:
        raise InputError(
            "strata is a Series whose index is not in increasing order, so it may be in another "
            "order than the records; remedy: sort it by its index, or give strata.to_numpy() if it "
            "is in the order of the file"
        )
    values = pd.Series(list(strata), dtype=object)
    if len(values) != data.n:
        raise InputError(f"strata has {len(values):,} values; the file has {data.n:,} records")
    if values.isna().any():
        raise InputError(f"record {int(values.isna().argmax()) + 1} has no stratum")
    return values.map(_text).to_numpy(dtype=np.str_)


def _text(label: object) -> str:
    """Return the text of a stratum; a column with a gap turns the number 1 into 1.0."""
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    return str(label)
