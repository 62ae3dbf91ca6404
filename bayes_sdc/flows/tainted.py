"""Covariates that give small counts away, found by how they relate to the counts.

Such a covariate reveals small counts that no bound protects, so it ends a guarantee.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from bayes_sdc.flows.kept_columns.functions import codes_of, depends_on
from bayes_sdc.flows.kept_columns.statistics import statistic_in
from bayes_sdc.flows.kept_columns.totals import Ends, ends_of
from bayes_sdc.flows.table.read import FlowTable

SAME = 1.0 - 1e-10  # correlation of two columns that differ by origin and scale only
CLOSE = 0.95  # correlation with small counts beyond anything measured elsewhere
ROUNDED = 2e-3  # 1 less the correlation with totals, that rounding them may leave
SHARE = 0.1  # of the distance from the safe totals, in which a column is nearer to the others
REPEATS = 12  # cells beyond one per count, from which one value per count is not chance
MOST = 2_000  # cells in which a sum of two totals is looked for
DISTINCT = 6  # number of values from which a common order is not chance


def tainted_covariates(table: FlowTable) -> list[str]:
    """Names of covariates that were made from small counts, as far as can be detected.

    A covariate counts as made from them if it is a linear function of the counts, or of totals that
    contain small ones: by origin, destination, group, or area and partner group, of those who left
    an area, came to it, both together or their difference, with people who stayed or without; or if
    it orders the cells like these, and not like the totals of the safe counts alone. So does one
    with a single value for each count, such as classes of the counts, one more closely related
    to the counts than anything measured elsewhere is, the count of the way back, one that follows
    from totals of both areas, and one that describes an area by its small counts: their mean, how
    many are ones, the largest.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import read_flows, with_covariates
    >>> frame = pd.DataFrame({"o": list("aabb"), "d": list("xyxy"), "n": [1, 4, 2, 30]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> twice = pd.DataFrame({"twice": [2.0, 8.0, 4.0]}, index=table.cells.index)
    >>> tainted_covariates(with_covariates(table, twice))
    ['twice']
    """
    rows = table.cells["row"].to_numpy()
    with_small, safe = _sums(table, table.low), _sums(table, table.high + 1)
    ends = ends_of(table)
    secret = [table.frame[table.count].to_numpy(np.float64)[rows], *with_small]
    secret += [every - large for every, large in zip(with_small, safe, strict=True)]

    return [
        str(name)
        for name, column in table.covariates.items()
        if _of_counts(column.to_numpy(np.float64), secret[0])
        or _more_like(column.to_numpy(np.float64), secret, safe)
        or _of_both_ends(column.to_numpy(np.float64), with_small, safe)
        or _of_an_area(table, column.to_numpy(np.float64), ends)
    ]


def _of_both_ends(
    values: np.ndarray, secret: Sequence[np.ndarray], safe: Sequence[np.ndarray]
) -> bool:
    """Whether a column is a weighted sum of a form of two totals, and not of the safe ones.

    What holds exactly in all cells holds in some of them, and the other way round.
    """
    some = np.linspace(0, len(values) - 1, min(len(values), MOST), dtype=np.int64)
    values = values[some]

    def follows(sums: Sequence[np.ndarray]) -> bool:
        forms = [_forms(each[some]) for each in sums]
        return any(
            _explained(values, one, other)
            for a, b in combinations(range(len(sums)), 2)
            for one, other in zip(forms[a], forms[b], strict=True)
        )

    return follows(secret) and not follows(safe)


def _explained(values: np.ndarray, one: np.ndarray, other: np.ndarray) -> bool:
    x = np.column_stack([np.ones(len(values)), one, other])
    if len(values) < x.shape[1] + REPEATS or np.linalg.matrix_rank(x) < x.shape[1]:
        return False
    left = values - x @ np.linalg.lstsq(x, values, rcond=None)[0]
    spread = float(np.linalg.norm(values - values.mean()))
    return spread > 0.0 and float(np.linalg.norm(left)) < np.sqrt(1.0 - SAME) * spread


def _of_an_area(table: FlowTable, values: np.ndarray, ends: Ends) -> bool:
    """Whether a column is a function of one area that its small counts or totals give."""
    rows = table.cells["row"].to_numpy()
    for side, end in (("origin", ends.origin), ("destination", ends.destination)):
        if depends_on(codes_of(pd.Series(values)), end[rows]) is False:
            continue
        of_area = np.full(len(ends.labels), np.nan)
        of_area[end[rows]] = values
        column = pd.Series(of_area[end])
        if statistic_in(table, column, side, ends):
            return True
    return False


def _more_like(
    values: np.ndarray, secret: Sequence[np.ndarray], safe: Sequence[np.ndarray]
) -> bool:
    """Whether a column follows from the first sums, and not as closely from the others."""
    if any(_in_a_form(values, each) for each in secret):
        return not any(_in_a_form(values, each) for each in safe)
    if any(_same_order(values, each) for each in secret):
        return not any(_same_order(values, each) for each in safe)
    far, near = _distance(values, safe), _distance(values, secret)
    return near < min(ROUNDED, SHARE * far)


def _distance(values: np.ndarray, sums: Sequence[np.ndarray]) -> float:
    """How far the nearest form of the sums is from a column: 1 less the correlation."""
    forms = [form for each in sums for form in _forms(each) if np.ptp(form) > 0.0]
    if np.ptp(values) == 0.0:
        return 1.0
    return min((1.0 - abs(float(np.corrcoef(values, form)[0, 1])) for form in forms), default=1.0)


def _in_a_form(values: np.ndarray, sums: np.ndarray) -> bool:
    """Whether a column is linear in sums, or in their logarithm or square root."""
    return any(_linear(values, form) for form in _forms(sums))


def _forms(sums: np.ndarray) -> tuple[np.ndarray, ...]:
    size = np.abs(sums)
    return sums, np.log1p(size), np.log(np.maximum(size, 1.0)), np.sqrt(size)


def _of_counts(values: np.ndarray, counts: np.ndarray) -> bool:
    """Whether a column follows from the counts, or nearly, in tables large enough to tell."""
    if len(np.unique(values)) < 2 or len(values) - len(np.unique(counts)) < REPEATS:
        return False
    pairs = np.unique(np.column_stack([counts, values.round(9)]), axis=0)
    if len(pairs) == len(np.unique(counts)):
        return True
    return any(
        abs(float(np.corrcoef(values, form(counts))[0, 1])) > CLOSE
        for form in (np.asarray, np.log1p)
        if len(np.unique(counts)) > 1
    )


def _sums(table: FlowTable, least: int) -> list[np.ndarray]:
    """Totals of the counts from ``least`` on at every small cell, with who stayed and without."""
    count = table.frame[table.count].to_numpy(np.float64)
    count = np.where(count >= least, count, 0.0)
    columns = [
        table.frame[name].astype(str).to_numpy(str)
        for name in (table.origin, table.destination, *table.groups)
    ]
    origin, destination, *groups = columns
    stayed = origin == destination
    keys = [[column] for column in columns]
    if groups:
        keys += [[origin, *groups], [destination, *groups]]
    sums = []
    for counted in (count, np.where(stayed, 0.0, count)) if stayed.any() else (count,):
        sums += [_by(key, counted) for key in keys]
        sums += _of_areas(origin, destination, counted)
    sums.append(_way_back(origin, destination, count))
    rows = table.cells["row"].to_numpy()
    return [each[rows] for each in sums]


def _by(key: list[np.ndarray], counted: np.ndarray) -> np.ndarray:
    """Total of all rows with the key of this one, at every row."""
    place = np.zeros(len(counted), dtype=np.int64)
    for column in key:
        values = np.unique(column, return_inverse=True)[1]
        place = np.unique(place * (values.max(initial=0) + 1) + values, return_inverse=True)[1]
    return np.bincount(place, counted)[place]


def _of_areas(origin: np.ndarray, destination: np.ndarray, counted: np.ndarray) -> list[np.ndarray]:
    """Who left, who came, both and their difference, of the area at either end of every row."""
    areas, place = np.unique(np.concatenate([origin, destination]), return_inverse=True)
    ends = place[: len(origin)], place[len(origin) :]
    left, came = (np.bincount(end, counted, minlength=len(areas)) for end in ends)
    kinds = (left, came, left + came, left - came)
    return [kind[end] for kind in kinds for end in ends]


def _way_back(origin: np.ndarray, destination: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Sum of the rows from the destination to the origin, at every row; 0 where there are none."""
    areas, place = np.unique(np.concatenate([origin, destination]), return_inverse=True)
    one, other = place[: len(origin)], place[len(origin) :]
    pairs, at = np.unique(np.r_[one * len(areas) + other, other * len(areas) + one],
                          return_inverse=True)  # fmt: skip
    return np.bincount(at[: len(one)], counted, minlength=len(pairs))[at[len(one) :]]


def _linear(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two columns with at least three values differ by origin and scale only."""
    one, other = one - one.mean(), other - other.mean()
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    several = len(np.unique(other)) >= 3
    return several and size > 0.0 and abs(float(one @ other)) > SAME * size


def _same_order(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two columns with enough values rank the cells alike, or the other way round."""
    ranks = [np.unique(each.round(9), return_inverse=True)[1] for each in (one, other, -other)]
    return bool(ranks[1].max(initial=0) + 1 >= DISTINCT) and any(
        np.array_equal(ranks[0], each) for each in ranks[1:]
    )
