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

References
----------
L. Sweeney, "Achieving k-anonymity privacy protection using generalization and suppression", IJUFKS
2002, doi:10.1142/S021848850200165X. A. Hundepool et al., "Statistical Disclosure Control", Wiley
2012, section 3.5.2.
"""

from collections.abc import Mapping
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

Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

EXACT = 20_000  # pairs of records times keys up to which the cheapest set is looked for
SECONDS = 60.0  # for that search
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
    prices = prices_of(data, costs)
    if not 2 <= k <= data.n:
        raise InputError(f"k must be from 2 to the {data.n:,} records; it is {k!r}")
    if data.missing == "own":
        raise InputError(
            "a suppressed value is not a category: read the file with missing 'wildcard' or "
            "'conservative'"
        )
    low = count_strictly(data, data.codes) < k
    bound: float | None = float(low.sum()) * float(prices.min())
    hidden = np.zeros(data.codes.shape, dtype=np.bool_)
    while low.any():
        # an incomplete record that counted enough may lose one of those it counted
        now = np.where(hidden, -1, data.codes).astype(np.int32)
        hidden |= cheapest_sets(data, now, low, k, prices)
        now = np.where(hidden, -1, data.codes).astype(np.int32)
        low = count_strictly(data, now) < k
    if data.n * int(hidden.sum()) * len(prices) <= RESTORED:
        hidden = give_back(data, hidden, k, prices)
    cost = float((hidden * prices).sum())
    small = data.n * (data.n - 1) * len(prices) <= EXACT
    if (small if exact is None else exact) and bound is not None and cost > bound:
        hidden, cost, searched = cheapest(data.codes, k, prices, hidden)
        bound = bound if searched is None else max(bound, searched)  # a search can end early
    return Suppression(hidden, cost, bound)


def prices_of(data: Microdata, costs: Mapping[str, float] | None) -> Floats:
    """Return the cost of a value of each key.

    Raises
    ------
    InputError
        If a name is no key, a cost is not above 0, or there are too many keys.
    """
    if len(data.keys) > MOST_KEYS:
        raise InputError(f"at most {MOST_KEYS} keys can be suppressed; there are {len(data.keys)}")
    for key, cost in (costs or {}).items():
        if key not in data.keys:
            raise InputError(f"{key!r} is not a key of the file; they are {list(data.keys)}")
        if not 0.0 < cost < np.inf:
            raise InputError(f"the cost of a value of {key!r} must be above 0; it is {cost!r}")
    return np.array([float((costs or {}).get(key, 1.0)) for key in data.keys])


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
        for gaps in patterns_of_gaps:
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
    now: np.ndarray, codes: np.ndarray, order: np.ndarray, keys: np.ndarray, k: int
) -> None:
    """Give suppressed values back, one by one, where the record still counts k; in place.

    That takes nothing from others: who has more values counts for more.
    """
    for place in range(len(order)):
        i, key = order[place], keys[place]
        now[i, key] = codes[i, key]
        number = 0
        for other in range(len(now)):
            number += has_all(now[i], now[other])
        if number < k:
            now[i, key] = -1


def give_back(data: Microdata, hidden: Flags, k: int, prices: Floats) -> Flags:
    """Give back what is not needed, the most expensive values first."""
    now = np.where(hidden, -1, data.codes).astype(np.int32)
    record, key = np.nonzero(hidden)
    # by what records hold, so that the order of the file does not matter
    order = np.lexsort([data.combination[record], key, -prices[key]])
    try_to_give_back(now, data.codes, record[order], key[order], k)
    return np.asarray((now < 0) & (data.codes >= 0))


def cheapest(
    codes: Codes, k: int, prices: Floats, start: Flags
) -> tuple[Flags, float, float | None]:
    """Find the cheapest set by integer programming; ``start`` where time runs out."""
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
        options={"time_limit": SECONDS},
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
        Its bound is that of the first round, below which no set can be.

    Raises
    ------
    InputError
        If an argument cannot be used.
    """
    prices = prices_of(data, costs)
    if data.missing == "own":
        raise InputError(
            "a suppressed value is not a category: read the file with missing 'wildcard' or "
            "'conservative'"
        )
    names = {
        " + ".join(data.keys[j] for j in one): sum(1 << j for j in one)
        for size in range(1, max_size + 1)
        for one in combinations(range(len(data.keys)), size)
    }
    sets = sorted(
        range(1, 1 << len(data.keys)),
        key=lambda mask: (sum(prices[j] for j in range(len(prices)) if mask >> j & 1), mask),
    )
    hidden = np.zeros(data.codes.shape, dtype=np.bool_)
    bound: float | None = None
    now = data
    for _ in range(MOST_ROUNDS):
        if not (now.f == 1).any():
            break
        found = suda(now, max_size=max_size).minimal_sample_uniques()
        if found.empty:
            break
        to_hit: dict[int, set[int]] = {}
        for record, keys in zip(found["record"].tolist(), found["keys"], strict=True):
            to_hit.setdefault(record, set()).add(names[keys])
        for record, these in to_hit.items():
            chosen = next(mask for mask in sets if all(mask & one for one in these))
            hidden[record] |= [bool(chosen >> j & 1) for j in range(len(prices))]
        if bound is None:
            bound = float((hidden * prices).sum()) if data.missing == "conservative" else None
        now = data.with_codes(np.where(hidden, -1, data.codes).astype(np.int32))
    else:
        raise InputError(
            f"special uniques are left after {MOST_ROUNDS} rounds of suppression; suppress to k"
        )
    return Suppression(hidden & (data.codes >= 0), float((hidden * prices).sum()), bound)
