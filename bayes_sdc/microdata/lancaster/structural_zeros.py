"""Impossible combinations of key values, and the independence model on the cells that are left.

Without structural zeros, independence has the one-way proportions of the sample as its weights.
With them it does not: weights are fitted by iterative proportional scaling until the cells that are
allowed add up to the observed proportions. Only keys that some rule names need to be fitted; the
others stay independent of everything.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.lancaster.cells import Additive

#: Impossible cells: a mapping from keys to values for each rule, or a row of a data frame.
StructuralZeros = pd.DataFrame | Sequence[Mapping[str, Any]]

LARGEST_TABLE = 1 << 25  # cells of the keys that the rules name
TOLERANCE = 1e-12  # of the fitted proportions
MOST_SCALINGS = 20_000


def read_rules(
    structural_zeros: StructuralZeros, microdata: Microdata
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Check rules and turn them into flags.

    Parameters
    ----------
    structural_zeros : data frame, or sequence of mappings from key to value or values
        A cell is impossible when it has one of the values for every key that a rule names. In a
        data frame each row is a rule, and an empty cell stands for any value.
    microdata : Microdata
        Keys and labels; levels are those that occur, and the missing value where it does.

    Returns
    -------
    rules : array of bool, shape (rule, sum of levels)
        Whether the rule holds for each value of each key.
    notes : tuple of str
        Rules that have no effect.

    Raises
    ------
    InputError
        If a rule names no key, an unknown key, or makes a record of the file impossible.
    """
    sizes = [len(labels) for labels in labels_of(microdata)]
    starts = np.cumsum([0, *sizes])
    rules, notes = [], []
    for number, rule in enumerate(_mappings(structural_zeros, microdata.keys), start=1):
        flags, named = np.ones(int(starts[-1]), bool), False
        for key, values in rule.items():
            if key not in microdata.keys:
                raise InputError(
                    f"structural zero {number} names {key!r}, which is not a key; the keys are "
                    f"{list(microdata.keys)}"
                )
            place = microdata.keys.index(key)
            several = [values] if isinstance(values, str | int | float) else list(values)
            wanted = {str(value) for value in several}
            here = np.array([label in wanted for label in labels_of(microdata)[place]])
            flags[starts[place] : starts[place + 1]] = here
            named = True
            if not here.any():
                notes.append(f"structural zero {number}: no record has {key!r} in {sorted(wanted)}")
        if not named:
            raise InputError(f"structural zero {number} names no key, so every cell would be one")
        rules.append(flags)
        codes = level_codes(microdata)
        held = np.logical_and.reduce([flags[starts[k] + c] for k, c in enumerate(codes.T)])
        if held.any():
            raise InputError(
                f"structural zero {number} holds for {int(held.sum()):,} records, the first of "
                f"them record {int(np.argmax(held))} (from 0); remedy: correct the rule, or the "
                "records"
            )
    return np.array(rules, bool).reshape(len(rules), int(starts[-1])), tuple(notes)


def _mappings(structural_zeros: StructuralZeros, keys: Sequence[str]) -> list[Mapping[str, Any]]:
    if isinstance(structural_zeros, pd.DataFrame):
        return [
            {str(key): value for key, value in row.items() if pd.notna(value) and value != ""}
            for row in structural_zeros.to_dict("records")
        ]
    rules = list(structural_zeros)
    for rule in rules:
        if not isinstance(rule, Mapping):
            raise InputError(
                f"structural zeros are mappings from key to values, such as {{{keys[0]!r}: 'x'}}; "
                f"one is {rule!r}"
            )
    return rules


def labels_of(microdata: Microdata) -> list[tuple[str | None, ...]]:
    """Labels of each key, with None first where values are missing."""
    lacking = (microdata.codes < 0).any(axis=0)
    return [
        (None, *labels) if lacks else tuple(labels)
        for labels, lacks in zip(microdata.labels, lacking, strict=True)
    ]


def level_codes(microdata: Microdata) -> np.ndarray:
    """Codes from 0, a missing value being a level of its own."""
    return microdata.codes + (microdata.codes < 0).any(axis=0).astype(microdata.codes.dtype)


@checked
def allowed_cells(microdata: Microdata, structural_zeros: StructuralZeros | None = None) -> int:
    """Count the combinations of levels that are possible.

    The number of cells for `expected_uniques`, `learn_uniques` and `poisson_gamma`, in which
    impossible ones must not be counted: with too many cells every sample unique looks rare.

    Parameters
    ----------
    microdata : Microdata
        From `read_microdata`; levels are those that occur, and the missing value where it does.
    structural_zeros : data frame or sequence of mappings, optional
        Impossible cells: each rule maps keys to a value or several, and in a data frame an empty
        cell stands for any value.

    Returns
    -------
    int
        Product of the numbers of levels, less the cells for which a rule holds.

    Raises
    ------
    InputError
        If a rule is not valid or makes a record impossible, or the keys that the rules name have
        too many cells together.

    See Also
    --------
    bayes_sdc.lancaster, bayes_sdc.lancaster_forecast

    Examples
    --------
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"age": ["child", "adult", "old"], "wed": ["no", "yes", "no"]})
    >>> data = read_microdata(people, keys=["age", "wed"])
    >>> allowed_cells(data), allowed_cells(data, [{"age": "child", "wed": "yes"}])
    (6, 5)
    """
    sizes = [len(labels) for labels in labels_of(microdata)]
    if structural_zeros is None:
        return math.prod(sizes)
    rules, _ = read_rules(structural_zeros, microdata)
    involved, allowed = _allowed(sizes, rules)
    others = (size for k, size in enumerate(sizes) if k not in involved)
    return int(allowed.sum()) * math.prod(others)


def _allowed(sizes: Sequence[int], rules: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Keys that the rules name, and which of the cells of these are allowed."""
    starts = np.cumsum([0, *sizes])
    involved = [k for k in range(len(sizes)) if not rules[:, starts[k] : starts[k + 1]].all()]
    shape = tuple(sizes[k] for k in involved)
    if np.prod(shape, dtype=float) > LARGEST_TABLE:
        raise InputError(
            f"the keys that the structural zeros name have {np.prod(shape, dtype=float):,.0f} "
            f"cells together, and at most {LARGEST_TABLE:,} can be fitted; remedy: rules about "
            "fewer keys"
        )
    allowed = np.ones(shape, bool)
    for rule in rules:
        parts = np.ix_(*(np.flatnonzero(rule[starts[k] : starts[k + 1]]) for k in involved))
        allowed[parts] = False
    return involved, allowed


def fit_allowed(
    margins: list[np.ndarray], pairs: dict[tuple[int, int], np.ndarray], rules: np.ndarray
) -> Additive:
    """Fit weights and pair terms on the cells that are allowed.

    Parameters
    ----------
    margins : list of arrays (level,)
        Observed one-way proportions.
    pairs : dict of arrays (level of a, level of b)
        Observed two-way proportions.
    rules : array of bool, shape (rule, sum of levels)
        From :func:`read_rules`.

    Returns
    -------
    Additive
        Weights whose allowed cells have the observed one-way proportions, and terms that compare
        the observed two-way proportions with theirs.

    Raises
    ------
    InputError
        If the keys that the rules name have too many cells together, or no weights fit.
    """
    involved, allowed = _allowed([len(margin) for margin in margins], rules)
    weights = list(margins)
    fitted = _scale(allowed, [margins[k] for k in involved])
    for k, weight in zip(involved, fitted, strict=True):
        weights[k] = weight
    table = allowed.astype(float)
    for axis, weight in enumerate(fitted):
        table *= weight.reshape([-1 if i == axis else 1 for i in range(table.ndim)])
    terms = {}
    for (a, b), observed in pairs.items():
        if a in involved and b in involved:
            kept = (involved.index(a), involved.index(b))
            others = tuple(i for i in range(table.ndim) if i not in kept)
            expected = table.sum(axis=others)
        else:
            expected = np.outer(margins[a], margins[b])
        terms[a, b] = pair_term(observed, expected)
    return Additive(weights, terms)


def pair_term(observed: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Relative excess of two-way proportions; 0 where nothing can be."""
    ratio = np.divide(observed, expected, out=np.ones_like(observed), where=expected > 0)
    return np.asarray(ratio - 1.0)


def _scale(allowed: np.ndarray, margins: list[np.ndarray]) -> list[np.ndarray]:
    """Weights of each key by iterative proportional scaling."""
    weights = [margin.copy() for margin in margins]
    for _ in range(MOST_SCALINGS):
        furthest = 0.0
        for axis, margin in enumerate(margins):
            rest = allowed.astype(float)
            for other in range(len(weights) - 1, -1, -1):
                if other != axis:
                    rest = np.tensordot(rest, weights[other], axes=(other, 0))
            now = weights[axis] * rest
            furthest = max(furthest, float(np.abs(now - margin).max()))
            weights[axis] = np.divide(margin, rest, out=np.zeros_like(margin), where=rest > 0)
        if furthest < TOLERANCE:
            return weights
    raise InputError(
        f"no weights give the observed proportions on the cells that are allowed: after "
        f"{MOST_SCALINGS:,} rounds they are {furthest:.1g} off; remedy: fewer structural zeros, or "
        "coarser keys"
    )
