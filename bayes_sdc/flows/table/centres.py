"""Centres of bounded steps: shares of the counts that do not come from the protected table.

A bound lies about the log ratios of such shares (:mod:`bayes_sdc.flows.model.bounded`). Shares of
the table itself would reveal its counts, so they are refused: by the digest of the file, by its
path, and by the counts in it.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bayes_sdc.arguments import PathLike
from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.bound import Bound, centres_of, check_bound
from bayes_sdc.flows.table.read import FlowTable, read_flows

Centres = PathLike | Sequence[float]

ALIKE = 0.9  # share of equal counts from which two tables count as the same
LOWEST, HIGHEST = 1, 9  # counts of the bundled shares

#: Numbers of cells with counts 1 to 9 in public tables of flows between different areas, by source.
#: Only these sums were kept.
BUNDLED: dict[str, tuple[int, ...]] = {
    "migration between local authorities, census of Great Britain 2011 (Office for National "
    "Statistics, Open Government Licence v3.0)": (
        15411, 13455, 10661, 8689, 7040, 5886, 4858, 4123, 3412,
    ),
    "commuting between municipalities, register of Norway 2017 (Statistics Norway, CC BY 4.0)": (
        12691, 4294, 2229, 1318, 959, 760, 599, 479, 363,
    ),
    "commuting between counties, American Community Survey 2009-2013 (US Census Bureau, public "
    "domain)": (2240, 5002, 5897, 4654, 3982, 4069, 4479, 4737, 4796),
    "migration between counties of one state, American Community Survey 2009-2013 (US Census "
    "Bureau, public domain)": (3422, 3070, 3193, 3156, 2930, 3014, 2822, 2768, 2481),
}  # fmt: skip
FEWEST_SAME = 10  # small cells from which equal counts are no chance
FEWEST_NEAR, KINDS_NEAR = 30, 7  # small cells, and different counts, from which near shares are not
NEARER = 0.09  # half the differences of near shares, of the sum of their standard deviations
ON_A_LINE = 1e-7  # of 1 less the cosine, which rounding leaves


def bundled_shares(low: int = LOWEST, high: int = HIGHEST, *, without: str = "") -> np.ndarray:
    """Shares of the counts from ``low`` to ``high``, averaged over public tables.

    Parameters
    ----------
    low, high : int
        From 1 to 9.
    without : str
        Leaves out the tables whose source begins so.

    Returns
    -------
    array of float, shape (high - low + 1,)
        They sum to one.

    Raises
    ------
    InputError
        If other counts are asked for.

    Examples
    --------
    >>> bundled_shares().round(3).tolist()
    [0.232, 0.151, 0.126, 0.102, 0.086, 0.082, 0.077, 0.075, 0.069]
    """
    if low < LOWEST or high > HIGHEST:
        raise InputError(
            f"centres: the bundled shares are of the counts {LOWEST} to {HIGHEST}, and the small "
            f"counts are {low} to {high}; give the file of another year, or shares"
        )
    kept = [
        counts for name, counts in BUNDLED.items() if not without or not name.startswith(without)
    ]
    shares = np.array(kept, np.float64)[:, low - LOWEST : high - LOWEST + 1]
    return np.asarray((shares / shares.sum(axis=1, keepdims=True)).mean(axis=0))


def resolve_bound(
    table: FlowTable, epsilon: float | None, centres: Centres
) -> tuple[Bound | None, str]:
    """Return the bound that is asked for, and where its centres come from.

    Parameters
    ----------
    table : FlowTable
        The table that is protected.
    epsilon : float or None
        Width; no bound without.
    centres : {"bundled"}, path or sequence of float
        As for :func:`bayes_sdc.fit_flows`.

    Returns
    -------
    Bound or None, str

    Raises
    ------
    InputError
        If epsilon bounds nothing, centres are given without epsilon, or they come from the table
        itself.
    """
    if epsilon is None:
        if not (isinstance(centres, str) and centres == "bundled"):
            raise InputError("centres: belong to epsilon; give both, or neither")
        return None, ""
    shares, words = shares_elsewhere(table, centres)
    bound = Bound(float(epsilon), centres_of(shares.tolist()))
    check_bound(bound, table.k)
    return bound, words


def shares_elsewhere(table: FlowTable, centres: Centres) -> tuple[np.ndarray, str]:
    """Shares of the small counts from outside the table, and their source in words."""
    if isinstance(centres, str) and centres == "bundled":
        _refuse_bundled(table)
        tables = f"{len(BUNDLED)} public tables of flows"
        return bundled_shares(table.low, table.high), f"shares averaged over {tables}"
    if isinstance(centres, str | os.PathLike):
        return _of_file(table, Path(centres))
    shares = np.asarray(list(centres), np.float64)
    if len(shares) != table.k + 1:
        raise InputError(
            f"centres: give a share for each count from {table.low} to {table.high}, that is "
            f"{table.k + 1}; there are {len(shares)}"
        )
    if own_shares(table, shares):
        raise InputError(
            "centres: these are the shares of the counts in the table that is protected; give "
            'those of another year or place, or "bundled"'
        )
    return shares, "shares given by hand"


def _of_file(table: FlowTable, path: Path) -> tuple[np.ndarray, str]:
    """Shares of another table with the same columns, with half a cell more of each count."""
    if same_file(table, str(path)):
        raise InputError(
            f"centres: {path} is the table that is protected; give one of another year or place, "
            'or "bundled"'
        )
    other = read_flows(
        path, origin=table.origin, destination=table.destination, count=table.count,
        groups=table.groups or None, low=table.low, high=table.high,
    )  # fmt: skip
    if other.sha256 == table.sha256 or same_counts(table, other):
        raise InputError(
            f"centres: {path} holds the counts of the table that is protected; give one of another "
            'year or place, or "bundled"'
        )
    if not other.n_small:
        raise InputError(
            f"centres: {path} has no small counts between {table.low} and {table.high}; give "
            'another file, or "bundled"'
        )
    numbers = np.bincount(other.cells["y"], minlength=table.k + 1) + 0.5
    if own_shares(table, numbers - 0.5) or own_shares(table, numbers):
        raise InputError(
            f"centres: the counts in {path} have the shares of the table that is protected, nearer "
            "than those of another year come; give one of another year or place, or "
            '"bundled"'
        )
    return numbers / numbers.sum(), f"shares in another table, {path.name}, taken as public"


def same_file(table: FlowTable, path: str, sha256: str | None = None) -> bool:
    """Whether a file is the one of the table, by its path or by the digest of its content."""
    if sha256 is not None and sha256 == table.sha256:
        return True
    there = bool(path and table.path) and os.path.exists(path) and os.path.exists(table.path)
    return there and os.path.samefile(path, table.path)


def same_counts(table: FlowTable, other: FlowTable) -> bool:
    """Whether another table has small counts of this one, in any order and of any format.

    It has if nine in ten common cells have equal counts: the file itself with a few corrections, a
    part of it, or one that contains it. It also has if every count occurs equally often, as with
    other codes of the areas. Two years of one table agree in far fewer cells.
    """
    shared = table.cells.index.intersection(other.cells.index)
    if len(shared):
        same = table.cells["y"].loc[shared].to_numpy() == other.cells["y"].loc[shared].to_numpy()
        if same.mean() >= ALIKE:
            return True
    here, there = (np.bincount(each.cells["y"], minlength=table.k + 1) for each in (table, other))
    return bool(table.n_small and np.array_equal(here, there))


def own_shares(table: FlowTable, shares: np.ndarray) -> bool:
    """Whether shares are those of the table: exactly, rounded, nearly, or drawn to equal ones.

    Another draw of as many cells from the same shares is nearer than :data:`NEARER` says in one of
    ten thousand where these are like the bundled ones, in more where most cells have one count.
    Equal shares tell nothing of any table.
    """
    if not table.n_small or not np.isfinite(shares).all() or not shares.sum() > 0.0:
        return False
    if np.ptp(shares) == 0.0:
        return False
    numbers = np.bincount(table.cells["y"], minlength=table.k + 1)
    told, true = shares / shares.sum(), numbers / numbers.sum()
    if table.n_small >= FEWEST_NEAR and len(told) >= KINDS_NEAR:
        apart = 0.5 * float(np.abs(told - true).sum())
        scatter = float(np.sqrt(true * (1.0 - true)).sum())
        if apart <= NEARER * scatter / np.sqrt(table.n_small) or _drawn_to_equal(told, true):
            return True
    for more in (0.0, 0.5, 1.0):  # added to each number, so that no share is 0
        own = (numbers + more) / (numbers + more).sum()
        if np.allclose(told, own, rtol=0.0, atol=1e-6):
            return True
        for scale in (1.0, 100.0):  # shares or percentages
            for digits in range(2 if scale == 1.0 else 0, 7):
                if np.array_equal(shares, np.round(scale * own, digits)):
                    return True
    return False


def _drawn_to_equal(told: np.ndarray, true: np.ndarray) -> bool:
    """Whether shares are a mean of the table's and of equal ones: a number was added to each."""
    one, other = told - told.mean(), true - true.mean()
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return size > 0.0 and float(one @ other) > (1.0 - ON_A_LINE) * size


def _refuse_bundled(table: FlowTable) -> None:
    """Refuse the bundled shares for one of the tables that they come from."""
    numbers = np.bincount(table.cells["y"], minlength=table.k + 1).tolist()
    for source, counts in BUNDLED.items():
        if numbers == list(counts[table.low - LOWEST : table.high - LOWEST + 1]):
            raise InputError(
                f"centres: the bundled shares come in part from this table ({source}); give the "
                "file of another year, or shares"
            )
