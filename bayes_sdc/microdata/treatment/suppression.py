r"""Local suppression: the cheapest values to set missing, so that no record is rarer than k.

A record is counted as the rule "conservative" does, which is the strictest: it counts the records
that have all the values that it has itself. So only a value that it loses itself can make it less
rare. Under "wildcard" a file that satisfies it satisfies k-anonymity too; the reverse would be a
trick, because there k - 1 records without any value match everybody.

For small files the cheapest set is found by integer programming: with s_ic for a suppressed value
and m_ij for a record j that i counts, the sum of the costs of s is least subject to

.. math::

    m_{ij} \le s_{ic} \text{ where they differ in key } c, \quad
    m_{ij} \le 1 - s_{jc} + s_{ic} \text{ where they agree}, \quad \sum_j m_{ij} \ge k - 1.

For others every record with f < k loses the cheapest set of keys without which enough records have
all the values that are left; then values are given back where it still counts k. As many values as
there are such records, at the least cost, is a bound: each must lose one.

A key that members share, in all or nearly all households, is suppressed for all of a household or
for none: else a member shows it of the others. The aim holds for the file as it is, and for one who
takes what is missing from the other members.

References
----------
L. Sweeney, "Achieving k-anonymity privacy protection using generalization and suppression", IJUFKS
2002, doi:10.1142/S021848850200165X. A. Hundepool et al., "Statistical Disclosure Control", Wiley
2012, section 3.5.2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.tabulate import patterns
from bayes_sdc.microdata.latent_classes.draws import compiled
from bayes_sdc.microdata.special_uniques.suda import suda
from bayes_sdc.microdata.treatment.households import filled_in, shared_keys, widened

Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

EXACT = 6_000  # pairs of records times keys up to which the cheapest set is looked for
NODES = 2e8  # of its tree, times that number squared: about 10 s, and not the time of a machine
RESTORED = 200_000_000  # comparisons of values that giving back may take
MOST_KEYS = 16
MOST_ROUNDS = 50


class Suppression(NamedTuple):
    """What to suppress.

    Parameters
    ----------
    hidden : array of bool, shape (record, key)
        Values to set missing.
    cost : float
        Sum of the costs of these values: their number, where all keys cost 1.
    bound : float or None
        No set that reaches the aim costs less; None where none was computed. Equal to the cost
        where the set is known to be the cheapest.
    """

    hidden: Flags
    cost: float
    bound: float | None


def count_strictly(data: Microdata, codes: Codes) -> Integers:
    """Count for each record those that have all the values that it has, itself among them.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> people = pd.DataFrame({"a": list("xxxy"), "b": ["1", "1", "2", None]})
    >>> data = read_microdata(people, keys=["a", "b"])
    >>> count_strictly(data, data.codes).tolist()
    [2, 2, 1, 1]
    """
    return replace(data, missing="conservative", weights=None).with_codes(codes).f


def suppress_to_k(
    data: Microdata, k: int, *, costs: Mapping[str, float] | None = None, exact: bool | None = None
) -> Suppression:
    """Choose values to suppress so that every record counts k, itself among them.

    Parameters
    ----------
    data : Microdata
        With at least k records; by the rules "wildcard" or "conservative".
    k : int
        2 or more.
    costs : mapping from key to float, optional
        What a value of a key is worth, above 0; 1 for keys that are not named.
    exact : bool, optional
        Whether to look for the cheapest set; by default in small files.

    Returns
    -------
    Suppression
        Its bound is the cost where the cheapest set was found.

    Raises
    ------
    InputError
        If k or a cost cannot be used, the file is too small, or has too many keys.
    """
    prices = prices_of(data.keys, costs)
    if not 2 <= k <= data.n:
        raise InputError(f"k must be from 2 to the {data.n:,} records; it is {k!r}")
    refuse_own(data)
    shared, views = shared_keys(data), views_of(data)
    joint = prices_in_households(data, shared, prices)
    bound: float | None = float((count_strictly(data, data.codes) < k).sum()) * float(prices.min())
    hidden = np.zeros(data.codes.shape, dtype=np.bool_)
    rare = True
    while rare:
        rare = False
        for view in views:
            now = np.where(hidden, -1, view).astype(np.int32)
            low = count_strictly(data, now) < k
            # an incomplete record that counted enough may lose one of those it counted
            while low.any():
                rare = True
                hidden = widened(data, shared, hidden | cheapest_sets(data, now, low, k, joint))
                now = np.where(hidden, -1, view).astype(np.int32)
                low = count_strictly(data, now) < k
    if data.n * int(hidden.sum()) * len(prices) * len(views) <= RESTORED:
        hidden = give_back(data, views, hidden, k, prices, shared)
    hidden &= data.codes >= 0
    cost = float((hidden * prices).sum())
    small = data.n * (data.n - 1) * len(prices) <= EXACT and not shared.any()
    if (small if exact is None else exact) and bound is not None and cost > bound:
        hidden, cost, searched = cheapest(data.codes, k, prices, hidden)
        bound = bound if searched is None else max(bound, searched)  # a search can end early
    return Suppression(hidden, cost, bound)


def refuse_own(data: Microdata) -> None:
    """Refuse a file in which a missing value is a category: a suppressed one is none."""
    if data.missing == "own":
        raise InputError(
            "a suppressed value is not a category: read the file with missing 'wildcard' or "
            "'conservative' (--missing)"
        )


def views_of(data: Microdata) -> Codes:
    """Codes as they are and, if that differs, with what other members of the household tell."""
    told = filled_in(data)
    return np.stack([data.codes] if (told == data.codes).all() else [data.codes, told])


def prices_in_households(data: Microdata, shared: Flags, prices: Floats) -> Floats:
    """Cost of a value with those of the other members that go with it, in a usual household."""
    if data.household is None or not shared.any():
        return prices
    return np.asarray(prices * np.where(shared, data.n / len(np.unique(data.household)), 1.0))


def prices_of(keys: Sequence[str], costs: Mapping[str, float] | None) -> Floats:
    """Return the cost of a value of each key.

    Raises
    ------
    InputError
        If a name is no key, a cost is not above 0, or there are too many keys.
    """
    if len(keys) > MOST_KEYS:
        raise InputError(f"at most {MOST_KEYS} keys can be suppressed; there are {len(keys)}")
    for key, cost in (costs or {}).items():
        if key not in keys:
            raise InputError(f"{key!r} is not a key to suppress, so it has no cost: {list(keys)}")
        if not 0.0 < cost < np.inf:
            raise InputError(f"the cost of a value of {key!r} must be above 0; it is {cost!r}")
    return np.array([float((costs or {}).get(key, 1.0)) for key in keys])


def cheapest_sets(data: Microdata, codes: Codes, low: Flags, k: int, prices: Floats) -> Flags:
    """For each rare record the cheapest keys without which enough records have what is left.

    Sets are taken by their cost. Who lost another value than these does not count; those that lose
    the same ones count for each other.
    """
    sizes, keys = tuple(map(len, data.labels)), len(prices)
    hidden = np.zeros(codes.shape, dtype=np.bool_)
    left = low.copy()
    lacks = codes < 0
    patterns_of_gaps = np.unique(lacks[low], axis=0)
    sets = [one for size in range(1, keys + 1) for one in combinations(range(keys), size)]
    for taken in sorted(sets, key=lambda one: (float(prices[list(one)].sum()), one)):
        for gaps in patterns_of_gaps if left.any() else ():
            mine = left & (lacks == gaps).all(axis=1)
            if not mine.any():
                continue
            kept = [j for j in range(keys) if j not in taken and not gaps[j]]
            # whether others that are still to be treated will keep these values is not known
            whole = ~(hidden[:, kept] | lacks[:, kept]).any(axis=1) & (~left | mine)
            agree = np.full(len(codes), int(whole.sum()) if kept else len(codes))
            if kept:
                of, found = patterns(
                    np.ascontiguousarray(codes[:, kept]), tuple(sizes[j] for j in kept)
                )
                agree = np.bincount(of[whole], minlength=len(found))[of]
            cured = mine & (agree >= k)
            hidden[np.ix_(np.flatnonzero(cured), list(taken))] = True
            left &= ~cured
    return np.asarray(hidden & ~lacks)


@compiled
def has_all(values: np.ndarray, other: np.ndarray) -> bool:
    """Tell whether another record has all the values of one."""
    has = True
    for j in range(len(values)):
        has &= values[j] < 0 or values[j] == other[j]
    return has


@compiled
def try_to_give_back(
    now: np.ndarray, views: np.ndarray, order: np.ndarray, start: np.ndarray, keys: np.ndarray,
    k: int,
) -> None:  # fmt: skip
    """Give suppressed values back where the records still count k in every view; in place.

    One by one, or together for a household: ``order[start[u] : start[u + 1]]`` get back the key
    ``keys[u]``, or none does. That takes nothing from others: who has more values counts for more.
    """
    for unit in range(len(keys)):
        key = keys[unit]
        these = order[start[unit] : start[unit + 1]]
        enough = True
        for v in range(len(views)):
            for i in these:
                now[v, i, key] = views[v, i, key]
        for v in range(len(views)):
            for i in these:
                number = 0
                for other in range(now.shape[1]):
                    number += has_all(now[v, i], now[v, other])
                if number < k:
                    enough = False
                    break
            if not enough:
                break
        if not enough:
            for v in range(len(views)):
                for i in these:
                    now[v, i, key] = -1


def give_back(
    data: Microdata, views: Codes, hidden: Flags, k: int, prices: Floats, shared: Flags
) -> Flags:
    """Give back what is not needed, the most expensive values first."""
    now = np.where(hidden, -1, views).astype(np.int32)
    record, key = np.nonzero(hidden)
    if not len(record):
        return hidden
    # by what records hold, so that the order of the file does not matter
    content = data.combination[record]
    unit = np.arange(len(record))
    if data.household is not None:
        least = np.full(int(data.household.max()) + 1, len(data.combinations))
        np.minimum.at(least, data.household, data.combination)
        home = data.household[record]
        content = np.where(shared[key], least[home], content)
        unit = np.where(shared[key], len(record) + home, unit)
    order = np.lexsort([unit, content, key, -prices[key]])
    first = np.flatnonzero(np.diff(unit[order], prepend=-1))
    # a household's values of one key stand together, and so do those of one of its other keys
    first = np.union1d(first, np.flatnonzero(np.diff(key[order], prepend=-1)))
    start = np.append(first, len(order))
    try_to_give_back(now, views, record[order], start, key[order][first], k)
    return np.asarray(((now < 0) & (views >= 0)).any(axis=0))


def cheapest(
    codes: Codes, k: int, prices: Floats, start: Flags
) -> tuple[Flags, float, float | None]:
    """Find the cheapest set by integer programming; ``start`` where the tree grows too large."""
    n, keys = codes.shape
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    of_m = n * keys
    number = of_m + len(pairs)
    rows: list[tuple[dict[int, float], float]] = []  # sum of coefficients is at most the number
    for i in range(n):
        counted = {of_m + p: -1.0 for p, (a, _) in enumerate(pairs) if a == i}
        rows.append((counted, 1.0 - k))
    for p, (i, j) in enumerate(pairs):
        for c in np.flatnonzero(codes[i] >= 0).tolist():
            row = {of_m + p: 1.0, i * keys + c: -1.0}
            if codes[i, c] == codes[j, c]:
                rows.append(({**row, j * keys + c: 1.0}, 1.0))
            else:
                rows.append((row, 0.0))
    r = np.repeat(np.arange(len(rows)), [len(row) for row, _ in rows])
    column = np.array([place for row, _ in rows for place in row])
    value = np.array([one for row, _ in rows for one in row.values()])
    matrix = sparse.csr_array((value, (r, column)), shape=(len(rows), number))
    lower, upper = np.zeros(number), np.ones(number)
    upper[: n * keys] = (codes >= 0).ravel()
    found = milp(
        np.concatenate([np.tile(prices, n), np.zeros(number - n * keys)]),
        constraints=LinearConstraint(matrix, ub=np.array([top for _, top in rows])),
        integrality=np.concatenate([np.ones(of_m), np.zeros(len(pairs))]),
        bounds=Bounds(lower, upper),
        options={"node_limit": max(1, int(NODES / (len(pairs) * keys) ** 2))},
    )
    cost = float((start * prices).sum())
    bound = None if found.mip_dual_bound is None else float(found.mip_dual_bound)
    if found.x is None:
        return start, cost, bound
    hidden = found.x[: n * keys].reshape(n, keys) > 0.5
    better = float((hidden * prices).sum())
    if better > cost:
        return start, cost, bound
    return hidden, better, better if found.status == 0 else bound


def suppress_special_uniques(
    data: Microdata, max_size: int, *, costs: Mapping[str, float] | None = None
) -> Suppression:
    """Choose values to suppress so that no record is unique on a set of up to so many keys.

    Every minimal sample unique of a record must lose a value; the cheapest set of keys that does it
    is found for each record. Where that makes another record unique it is done again.

    Parameters
    ----------
    data : Microdata
        By the rules "wildcard" or "conservative".
    max_size : int
        Largest size of a minimal sample unique.
    costs : mapping from key to float, optional
        As for :func:`suppress_to_k`.

    Returns
    -------
    Suppression
        Its bound is that of the first round, below which no set can be; None where members of
        households share a key.

    Raises
    ------
    InputError
        If an argument cannot be used.
    """
    prices = prices_of(data.keys, costs)
    refuse_own(data)
    names = {
        " + ".join(data.keys[j] for j in one): sum(1 << j for j in one)
        for size in range(1, max_size + 1)
        for one in combinations(range(len(data.keys)), size)
    }
    shared, views = shared_keys(data), views_of(data)
    joint = prices_in_households(data, shared, prices)
    sets = sorted(
        range(1, 1 << len(data.keys)),
        key=lambda mask: (sum(joint[j] for j in range(len(joint)) if mask >> j & 1), mask),
    )
    hidden = np.zeros(data.codes.shape, dtype=np.bool_)
    bound: float | None = None
    for _ in range(MOST_ROUNDS):
        to_hit: dict[int, set[int]] = {}
        for view in views:
            now = data.with_codes(np.where(hidden, -1, view).astype(np.int32))
            if not (now.f == 1).any():
                continue
            found = suda(now, max_size=max_size).minimal_sample_uniques()
            for record, keys in zip(found["record"].tolist(), found["keys"], strict=True):
                to_hit.setdefault(record, set()).add(names[keys])
        if not to_hit:
            break
        for record, these in to_hit.items():
            chosen = next(mask for mask in sets if all(mask & one for one in these))
            hidden[record] |= [bool(chosen >> j & 1) for j in range(len(prices))]
        if bound is None and data.missing == "conservative" and not shared.any():
            bound = float((hidden * prices).sum())
        hidden = widened(data, shared, hidden)
    else:
        raise InputError(
            f"special uniques are left after {MOST_ROUNDS} rounds of suppression; suppress to k"
        )
    hidden &= data.codes >= 0
    return Suppression(hidden, float((hidden * prices).sum()), bound)
