"""Recoding: coarser levels of a key, proposed by what they take from the risk and cost in detail.

A proposal is judged without a new fit: where levels are merged their probabilities add up in every
class. Detail is lost in bits, the entropy of the key before less that afterwards.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.arguments import PathLike
from bayes_sdc.errors import InputError
from bayes_sdc.io.text import decode, find_separator, read_bytes
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.treatment.decimals import NUMBER, Number, decimal, exact
from bayes_sdc.microdata.treatment.population import population_share
from bayes_sdc.microdata.treatment.setting import DRAWS, Setting
from bayes_sdc.microdata.treatment.states import Layout, States, layout_of

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

BANDS = (2, 5, 10, 20)  # widths
ENDS = (0.01, 0.05)  # shares of records in a top or bottom code, at most
MANY = 3  # levels below which bands and ends make no sense


@dataclass(frozen=True)
class Recoding:
    """A coarser form of one key.

    Made by :func:`.candidates`, or by :func:`.read_recoding`.

    Parameters
    ----------
    key : str
        Which.
    name : str
        What it is: ``band:5``, ``top:80``, ``bottom:15``, ``merge:a+b``, ``hierarchy:1``.
    levels : mapping from str to str
        The new level of each level that changes.
    """

    key: str
    name: str
    levels: Mapping[str, str]

    def __str__(self) -> str:
        """Return what ``--recode`` understands, where it can be said in a line."""
        return f"{self.key}={self.name}"


class Recoded(NamedTuple):
    """A file after recoding, and for each key the new place of each level."""

    data: Microdata
    places: list[npt.NDArray[np.int64]]


def recode(data: Microdata, recodings: Sequence[Recoding]) -> Recoded:
    """Merge levels.

    Parameters
    ----------
    data : Microdata
        The file.
    recodings : sequence of Recoding
        One after another; several of one key work on what the one before left.

    Returns
    -------
    Recoded
        The records in the same order.

    Raises
    ------
    InputError
        If a recoding names something that is not a key.

    Examples
    --------
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"age": ["20", "21", "35"]})
    >>> data = read_microdata(people, keys=["age"])
    >>> recode(data, [band(data, "age", 10)]).data.labels
    (('20-29', '30-39'),)
    """
    labels, codes, places = [], [], []
    for j, key in enumerate(data.keys):
        names = list(data.labels[j])
        for one in recodings:
            if one.key == key:
                names = [one.levels.get(name, name) for name in names]
        fresh = sorted(set(names))
        at = {name: number for number, name in enumerate(fresh)}
        place = np.array([at[name] for name in names], dtype=np.int64)
        labels.append(tuple(fresh))
        places.append(place)
        known = data.codes[:, j] >= 0
        codes.append(np.where(known, place[np.where(known, data.codes[:, j], 0)], -1))
    for one in recodings:
        _must_be_key(data, one.key)
    wider = replace(data, labels=tuple(labels))
    return Recoded(wider.with_codes(np.stack(codes, axis=1).astype(np.int32)), places)


def merged_states(states: States, recoded: Recoded) -> States:
    """Return the model of the recoded file: probabilities of merged levels add up."""
    before, after = states.layout, layout_of(recoded.data)
    phi = np.zeros((len(states.eta), int(after.start[-1]), states.eta.shape[1]))
    for j, place in enumerate(recoded.places):
        old, new = (int(layout.start[j]) for layout in (before, after))
        if before.lacking[j]:
            phi[:, new] += states.phi[:, old]
        shift = int(before.lacking[j])
        for level, target in enumerate(place):
            phi[:, new + shift + target] += states.phi[:, old + shift + level]
    return states._replace(layout=Layout(after.start, after.lacking), phi=phi)


def numbers_of(data: Microdata, key: str) -> dict[str, Fraction]:
    """Return the levels of a key that are plain numbers, exactly as they are written."""
    labels = data.labels[data.keys.index(key)]
    return {label: Fraction(label.strip()) for label in labels if NUMBER.fullmatch(label.strip())}


def _numeric(data: Microdata, key: str) -> dict[str, Fraction]:
    _must_be_key(data, key)
    numbers = numbers_of(data, key)
    if not numbers:
        raise InputError(
            f"the levels of {key!r} are not numbers, so they have no bands and no ends"
        )
    return numbers


def _must_be_key(data: Microdata, key: str) -> None:
    if key not in data.keys:
        raise InputError(f"{key!r} is not a key of the file; they are {list(data.keys)}")


def band(data: Microdata, key: str, width: Number) -> Recoding:
    """Put numbers into bands of a width, from multiples of it.

    All bands of a key are written in one form, so that one band is one level: ``20-29`` where all
    numbers are whole, ``-10 to -1`` where some are negative too, and else ``20 to below 30``.

    Examples
    --------
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> data = read_microdata(pd.DataFrame({"age": ["20", "20.5", "0.7"]}), keys=["age"])
    >>> band(data, "age", 10).levels["20"], band(data, "age", 0.1).levels["0.7"]
    ('20 to below 30', '0.7 to below 0.8')
    """
    step = exact(width)
    if not step > 0:
        raise InputError(f"the width of a band must be above 0; it is {decimal(step)}")
    numbers = _numeric(data, key)
    whole = all(number.denominator == 1 for number in [step, *numbers.values()])
    between = " to " if min(numbers.values()) < 0 else "-"
    levels = {}
    for label, number in numbers.items():
        low = number // step * step
        first, last = decimal(low), decimal(low + step - 1 if whole else low + step)
        if whole:
            levels[label] = first if first == last else f"{first}{between}{last}"
        else:
            levels[label] = f"{first} to below {last}"
    return Recoding(key, f"band:{decimal(step)}", levels)


def top(data: Microdata, key: str, limit: Number) -> Recoding:
    """Put numbers from a limit upwards together."""
    end, numbers = exact(limit), _numeric(data, key)
    name = decimal(end)
    levels = {label: f">={name}" for label, number in numbers.items() if number >= end}
    return Recoding(key, f"top:{name}", levels)


def bottom(data: Microdata, key: str, limit: Number) -> Recoding:
    """Put numbers up to a limit together."""
    end, numbers = exact(limit), _numeric(data, key)
    name = decimal(end)
    levels = {label: f"<={name}" for label, number in numbers.items() if number <= end}
    return Recoding(key, f"bottom:{name}", levels)


def read_hierarchy(path: PathLike, *, key: str) -> list[Recoding]:
    r"""Read a hierarchy of the levels of a key, in the CSV form of ARX.

    Parameters
    ----------
    path : path
        One row per level, no header: the level itself, then what it becomes at each higher step.
    key : str
        The key it is of.

    Returns
    -------
    list of Recoding
        One a step, ``hierarchy:1`` and so on.

    Raises
    ------
    InputError
        If the file cannot be read, rows differ in length, or a level stands there twice.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "place.csv"
    ...     _ = file.write_text("Bern;CH;*\nBonn;DE;*\n")
    ...     steps = read_hierarchy(file, key="place")
    >>> [step.name for step in steps], steps[0].levels
    (['hierarchy:1', 'hierarchy:2'], {'Bern': 'CH', 'Bonn': 'DE'})
    """
    path = Path(path)
    text, _ = decode(read_bytes(path), path.name)
    separator = find_separator(text, [])
    rows = [row for row in csv.reader(text.splitlines(), delimiter=separator) if row]
    if not rows or len(rows[0]) < 2:
        raise InputError(f"{path.name}: a hierarchy has a level and at least one step above it")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise InputError(
                f"{path.name}: row {number} has {len(row)} fields and the first {len(rows[0])}"
            )
    first = [row[0] for row in rows]
    if len(set(first)) < len(first):
        twice = next(level for level in first if first.count(level) > 1)
        raise InputError(f"{path.name}: the level {twice!r} stands there twice")
    return [
        Recoding(key, f"hierarchy:{step}", {row[0]: row[step] for row in rows})
        for step in range(1, len(rows[0]))
    ]


def read_recoding(data: Microdata, text: str) -> Recoding:
    """Understand ``KEY=band:5``, ``KEY=top:80``, ``KEY=bottom:15`` or ``KEY=FILE.csv:1``.

    Raises
    ------
    InputError
        If it is none of these.
    """
    key, _, what = text.partition("=")
    name, _, value = what.rpartition(":")
    makers: dict[str, Callable[[Microdata, str, Number], Recoding]] = {
        "band": band, "top": top, "bottom": bottom
    }  # fmt: skip
    number = exact(value) if NUMBER.fullmatch(value) else None
    if name in makers and number is not None:
        return makers[name](data, key, number)
    if name and number is not None:
        _must_be_key(data, key)
        steps = read_hierarchy(name, key=key)
        if not (1 <= number <= len(steps) and number.denominator == 1):
            raise InputError(f"{name}: has steps 1 to {len(steps)}; asked for is {value}")
        missing = set(data.labels[data.keys.index(key)]) - set(steps[0].levels)
        if missing:
            raise InputError(f"{name}: does not name the level {min(missing)!r} of {key!r}")
        return steps[int(number) - 1]
    raise InputError(
        f"a recoding looks like KEY=band:5, KEY=top:80, KEY=bottom:15 or KEY=FILE.csv:1; it is "
        f"{text!r}"
    )


def candidates(
    data: Microdata,
    *,
    ordered: Sequence[str] = (),
    hierarchies: Mapping[str, Sequence[Recoding]] | None = None,
) -> list[Recoding]:
    """List recodings that could be tried: bands and ends of numbers, neighbours, hierarchies."""
    found: list[Recoding] = []
    for j, key in enumerate(data.keys):
        found += (hierarchies or {}).get(key, [])
        numbers, counts = numbers_of(data, key), np.bincount(data.codes[:, j] + 1)[1:]
        if len(numbers) >= MANY and len(numbers) >= len(data.labels[j]) - 1:
            wide = max(numbers.values()) - min(numbers.values())
            found += [band(data, key, width) for width in BANDS if width < wide]
            found += _ends(data, key, numbers, counts)
        elif key in ordered:
            found += _neighbours(key, data.labels[j])
    return [
        one
        for one in found
        if len({one.levels.get(x, x) for x in data.labels[data.keys.index(one.key)]})
        < len(data.labels[data.keys.index(one.key)])
    ]


def _ends(
    data: Microdata, key: str, numbers: Mapping[str, Fraction], counts: npt.NDArray[np.int64]
) -> list[Recoding]:
    labels = data.labels[data.keys.index(key)]
    order = sorted(numbers, key=lambda label: numbers[label])
    of = dict(zip(labels, counts.tolist(), strict=False))
    share = np.cumsum([of.get(label, 0) for label in order]) / data.n
    found = []
    for part in ENDS:
        high = int(np.searchsorted(share, 1.0 - part))
        low = int(np.searchsorted(share, part, side="right")) - 1
        if high < len(order) - 1:
            found.append(top(data, key, numbers[order[high]]))
        if low > 0:
            found.append(bottom(data, key, numbers[order[low]]))
    return list({one.name: one for one in found}.values())


def _neighbours(key: str, labels: Sequence[str]) -> list[Recoding]:
    """Merge each level with the next, in sorted order."""
    found = []
    for k in range(len(labels) - 1):
        pair = labels[k : k + 2]
        new = " or ".join(pair)
        found.append(Recoding(key, f"merge:{'+'.join(pair)}", dict.fromkeys(pair, new)))
    return found


def entropy(codes: npt.NDArray[np.int32]) -> float:
    """Entropy of a key in bits a record, a missing value being a level."""
    share = np.bincount(codes + 1) / len(codes)
    share = share[share > 0]
    return float(-(share * np.log2(share)).sum())


def rank_recodings(
    setting: Setting, recodings: Sequence[Recoding], population_size: float | None, *, seed: int
) -> pd.DataFrame:
    """Rank recodings by the risk they take away for each bit of detail lost.

    Parameters
    ----------
    setting : Setting
        The file.
    recodings : sequence of Recoding
        To try, one at a time.
    population_size : float or None
        N.
    seed : int
        Of the scatter.

    Returns
    -------
    DataFrame
        Index: the recoding. ``levels_before``, ``levels_after``, ``uniques_before``,
        ``uniques_after`` (sample uniques), ``expected_before`` and ``expected_after`` (expected
        right matches by all keys the intruder knows: the sum of E(1 / F)), ``bits_lost`` a record,
        ``risk_per_bit``, best first.
    """
    rows = {}
    before = _expected(setting, setting.data, setting.states, population_size, seed)
    for one in recodings:
        j = setting.data.keys.index(one.key)
        done = recode(setting.data, [one])
        states = merged_states(setting.states.thinned(DRAWS), done)
        after = _expected(setting, done.data, states, population_size, seed)
        lost = entropy(setting.data.codes[:, j]) - entropy(done.data.codes[:, j])
        rows[str(one)] = {
            "levels_before": len(setting.data.labels[j]),
            "levels_after": len(done.data.labels[j]),
            "uniques_before": setting.known.sample_uniques,
            "uniques_after": done.data.select(setting.known.keys).sample_uniques,
            "expected_before": before,
            "expected_after": after,
            "bits_lost": lost,
            "risk_per_bit": (before - after) / lost if lost > 0 else np.nan,
        }
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("recoding")
    return frame.sort_values("risk_per_bit", ascending=False, kind="stable") if rows else frame


def _expected(
    setting: Setting, data: Microdata, states: States, size: float | None, seed: int
) -> float:
    known = data.select(setting.known.keys)
    if setting.intruder.knowledge == "sample":
        return float(np.sort(1.0 / known.f).sum())
    share = population_share(data, known, states.thinned(DRAWS), size, seed=seed).mean(axis=0)
    return float(np.sort(share / known.f).sum())
