"""What a treated file is still good for: tables, propensities, regressions, rare levels.

Everything compares the released keys with the true ones. A missing or suppressed value is a level
of its own, so a suppressed value counts as lost. With several data sets measures are means over
them.

References
----------
Woo, Reiter, Oganian and Karr 2009, doi:10.29012/jpc.v1i1.568. Snoke, Raab, Nowok, Dibben and
Slavkovic 2018, doi:10.1111/rssa.12358.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.tabulate import patterns
from bayes_sdc.microdata.treatment.regressions import compare_regression
from bayes_sdc.microdata.treatment.result import Treatment
from bayes_sdc.results import Fact, Result, or_undefined

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

RARE = 0.01  # share of records below which a level is rare
MOST_TERMS = 120  # columns of the propensity regression besides the constant
STEPS = 30
SMALL_TABLE, SMALL_RATIO, MUCH_OVERLAP, MOST_KEPT = 0.03, 3.0, 0.8, 0.9  # of "good for"


class UseVerdict(NamedTuple):
    """One use of the file, whether it is good for it, and the number behind that.

    Made by :func:`bayes_sdc.treated_utility`.

    Parameters
    ----------
    use : str
        In words.
    good : bool or None
        None where nothing was judged, or not all that has to be.
    reason : str
        The number and its limit.
    """

    use: str
    good: bool | None
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class TreatedUtility(Result):
    """What a treated file is good for; made by :func:`bayes_sdc.treated_utility`. Confidential.

    Parameters
    ----------
    tables : DataFrame
        Index: the keys of each two- and three-way table, " x " between. ``distance``: total
        variation between the true and the released shares of its cells, in [0, 1]; worst first.
    pmse : float
        Propensity score mean squared error, in [0, 1/4], by the levels of all keys and, where there
        is room, pairs of them.
    pmse_ratio : float or None
        The same in units of what a release of as many records from the right model would give by
        chance; None where nothing was treated.
    regressions : DataFrame
        Index: the coefficients. ``true``, ``true_low``, ``true_high``, ``released`` and so on, and
        ``overlap``: mean share of each interval that the other covers, 0 where they are apart. NaN
        where the true data, or those of some data set, do not determine a coefficient.
    levels : DataFrame
        Rare levels: index key and level; ``true`` and ``released`` records, the latter a mean over
        the data sets, and ``kept``.
    good_for : list of UseVerdict
        One table to read: each use with a verdict.
    """

    tables: pd.DataFrame
    pmse: float
    pmse_ratio: float | None
    regressions: pd.DataFrame
    levels: pd.DataFrame
    good_for: list[UseVerdict]

    def distance(self, ways: int) -> float | None:
        """Mean distance of the tables of so many keys; None where there is none."""
        chosen = self.tables["distance"][self.tables["ways"] == ways]
        return float(np.sort(chosen).mean()) if len(chosen) else None

    def _title(self) -> str:
        return "What the treated file is good for: confidential"

    def _facts(self) -> list[Fact]:
        return [
            (
                one.use,
                {True: "good", False: "not good", None: "undefined"}[one.good],
                one.reason,
            )
            for one in self.good_for
        ]


@checked
def treated_utility(
    treatment: Treatment,
    *,
    columns: pd.DataFrame | None = None,
    regressions: Sequence[str] = (),
) -> TreatedUtility:
    """Measure what a treated file is good for.

    Parameters
    ----------
    treatment : Treatment
        From :func:`bayes_sdc.treat`.
    columns : DataFrame, optional
        Further columns of the file, records in the same order, for regressions.
    regressions : sequence of str
        ``"income ~ age + sex"``: a column of numbers, or a level of a key as ``"sex=male"``, on
        keys and columns. Keys are sets of levels, the first of them the reference; columns are
        numbers. Records with a missing value are left out. Least squares.

    Returns
    -------
    TreatedUtility
        The measures, and one table of what the file is good for. Intervals combined over data sets
        can be too narrow: new values are drawn from a model of all records, and the rules assume
        one of the replaced records alone.

    Raises
    ------
    InputError
        If a regression names no column, or its outcome is not a number.

    See Also
    --------
    bayes_sdc.treat

    References
    ----------
    J. P. Reiter, "Inference for partially synthetic, public use microdata sets", Survey Methodology
    2003. Snoke et al. 2018, doi:10.1111/rssa.12358, for the pMSE and its null value.

    Examples
    --------
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> from bayes_sdc.microdata.treatment.treat import treat
    >>> rng = np.random.default_rng(1)
    >>> people = pd.DataFrame(rng.integers(0, 3, (300, 3)), columns=list("abc"))
    >>> data = read_microdata(people, keys=list("abc"))
    >>> use = treated_utility(treat(data, share=0.2, population_size=3000, seed=1))
    >>> use.distance(2) < 0.1, len(use.tables)
    (True, 4)
    """
    data = treatment.data
    tables = _tables(data, treatment.codes)
    pmse, ratio = _propensity(treatment)
    fits = [compare_regression(treatment, columns, one) for one in regressions]
    frame = pd.concat(fits) if fits else pd.DataFrame(columns=["overlap"], dtype=float)
    levels = _rare_levels(data, treatment.codes)
    return TreatedUtility(
        tables, pmse, ratio, frame, levels, _good_for(tables, ratio, frame, levels, treatment)
    )


def _tables(data: Microdata, released: Codes) -> pd.DataFrame:
    rows = {}
    for ways in (2, 3):
        for chosen in combinations(range(len(data.keys)), ways):
            keys = list(chosen)
            sizes = tuple(len(data.labels[j]) for j in keys)
            distances = [
                table_distance(data.codes[:, keys], one[:, keys], sizes) for one in released
            ]
            name = " x ".join(data.keys[j] for j in keys)
            rows[name] = {"ways": ways, "distance": float(np.mean(distances))}
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=["ways", "distance"])
    frame = frame.rename_axis("table").astype({"ways": int})
    return frame.sort_values("distance", ascending=False, kind="stable")


def table_distance(true: Codes, released: Codes, sizes: tuple[int, ...]) -> float:
    """Total variation between two tables: half the sum of the differences of the shares.

    Examples
    --------
    >>> one = np.array([[0], [0], [1], [1]], dtype=np.int32)
    >>> table_distance(one, np.array([[0], [0], [0], [1]], dtype=np.int32), (2,))
    0.25
    """
    both = np.ascontiguousarray(np.concatenate([true, released]))
    cell, found = patterns(both, sizes)
    before = np.bincount(cell[: len(true)], minlength=len(found)) / len(true)
    after = np.bincount(cell[len(true) :], minlength=len(found)) / len(released)
    return float(np.abs(before - after).sum() / 2.0)


def _design(data: Microdata, codes: Codes) -> Floats:
    """Indicators of levels, and of pairs of them where there is room, the most frequent first."""
    parts = []
    for j, labels in enumerate(data.labels):
        parts += [codes[:, j] == level for level in range(-1, len(labels))]
    kept = sorted(range(len(parts)), key=lambda k: (-int(parts[k].sum()), k))[:MOST_TERMS]
    return np.column_stack([parts[k] for k in sorted(kept)]).astype(np.float64)


def _pairs(data: Microdata, true: Codes, room: int) -> list[tuple[int, int, int, int]]:
    """The most frequent pairs of levels in the true file."""
    found = []
    for a, b in combinations(range(len(data.keys)), 2):
        sizes = (len(data.labels[a]), len(data.labels[b]))
        cell, levels = patterns(np.ascontiguousarray(true[:, [a, b]]), sizes)
        counts = np.bincount(cell)
        found += [
            (-int(n), a, b, int(la), int(lb)) for n, (la, lb) in zip(counts, levels, strict=True)
        ]
    return [(a, b, la, lb) for _, a, b, la, lb in sorted(found)[:room]]


def _propensity(treatment: Treatment) -> tuple[float, float | None]:
    """Return the pMSE, and its ratio to what chance would give."""
    data = treatment.data
    main = _design(data, data.codes).shape[1]
    pairs = _pairs(data, data.codes, max(0, MOST_TERMS - main))
    values, terms = [], 1
    for codes in treatment.codes:
        both = np.concatenate([data.codes, codes])
        columns = [(both[:, a] == la) & (both[:, b] == lb) for a, b, la, lb in pairs]
        design = np.column_stack([np.ones(len(both)), _design(data, both), *columns])
        design = _independent(design)
        terms = design.shape[1] - 1
        values.append(pmse_of(design, np.repeat([0.0, 1.0], data.n)))
    pmse, share = float(np.mean(values)), float(treatment.treated.mean())
    if share == 0.0 or terms == 0:
        return pmse, None
    # c = 1/2 and N = 2 n; only the treated records vary
    expected = terms * 0.125 / (2 * data.n) * share
    return pmse, pmse / expected


def _independent(design: Floats) -> Floats:
    """Leave out columns that follow from those before."""
    gram = design.T @ design
    kept: list[int] = []
    for column in range(len(gram)):
        if kept:
            part = np.linalg.lstsq(gram[np.ix_(kept, kept)], gram[kept, column], rcond=None)[0]
            left = gram[column, column] - gram[kept, column] @ part
        else:
            left = gram[column, column]
        if left > 1e-8 * max(gram[column, column], 1.0):
            kept.append(column)
    return design[:, kept]


def pmse_of(design: Floats, released: Floats) -> float:
    """Mean squared distance of the predicted probabilities of a logistic regression from c.

    Examples
    --------
    >>> x = np.column_stack([np.ones(4), [0.0, 1.0, 0.0, 1.0]])
    >>> round(pmse_of(x, np.array([0.0, 0.0, 1.0, 1.0])), 6)
    0.0
    """
    c = float(released.mean())
    beta = np.zeros(design.shape[1])
    beta[0] = np.log(c / (1.0 - c))
    p = np.full(len(design), c)
    for _ in range(STEPS):
        weight = np.maximum(p * (1.0 - p), 1e-10)
        gram = design.T @ (weight[:, None] * design)
        step = np.linalg.lstsq(gram, design.T @ (released - p), rcond=None)[0]
        beta += step / max(1.0, float(np.abs(step).max()) / 2.0)
        before, p = p, 1.0 / (1.0 + np.exp(-np.clip(design @ beta, -30.0, 30.0)))
        if np.abs(p - before).max() < 1e-9:
            break
    return float(((p - c) ** 2).mean())


def _rare_levels(data: Microdata, released: Codes) -> pd.DataFrame:
    rows = []
    for j, (key, labels) in enumerate(zip(data.keys, data.labels, strict=True)):
        true = np.bincount(data.codes[:, j] + 1, minlength=len(labels) + 1)[1:]
        after = np.mean(
            [np.bincount(one[:, j] + 1, minlength=len(labels) + 1)[1:] for one in released], axis=0
        )
        rows += [
            {"key": key, "level": label, "true": int(a), "released": float(b), "kept": bool(b > 0)}
            for label, a, b in zip(labels, true, after, strict=True)
            if 0 < a < RARE * data.n
        ]
    columns = ["key", "level", "true", "released", "kept"]
    return pd.DataFrame(rows, columns=columns).set_index(["key", "level"])


def _regressions_verdict(regressions: pd.DataFrame, datasets: int) -> UseVerdict:
    """Judge by the coefficients that both files determine; good needs all that the true one does.

    What is undefined has no number to be judged by, so it is said and not called bad.
    """
    overlap = regressions["overlap"].dropna()
    mean = float(overlap.mean()) if len(overlap) else None
    known = regressions["true"].notna()
    lost, never = int((known & regressions["released"].isna()).sum()), int((~known).sum())
    one = "" if datasets > 1 else "; of one data set, without what was drawn"
    reason = (
        "no intervals can be compared"
        if mean is None
        else f"intervals overlap by {mean:.0%} in the mean{one}; the limit is {MUCH_OVERLAP:.0%}"
    )
    for number, whose in ((lost, "released data"), (never, "true data")):
        if number:
            reason += (
                f"; undefined are {number:,} of {len(regressions):,} coefficients, which the "
                f"{whose} do not determine"
            )
    good = None if mean is None or (lost and mean >= MUCH_OVERLAP) else mean >= MUCH_OVERLAP
    return UseVerdict("the named regressions", good, reason)


def _good_for(
    tables: pd.DataFrame,
    ratio: float | None,
    regressions: pd.DataFrame,
    levels: pd.DataFrame,
    treatment: Treatment,
) -> list[UseVerdict]:
    """One table: what the file is good for, by limits that are said."""
    found = []
    for ways in (2, 3):
        chosen = tables[tables["ways"] == ways]["distance"]
        if len(chosen):
            worst = float(chosen.iloc[0])
            found.append(
                UseVerdict(
                    f"tables of {ways} keys", worst <= SMALL_TABLE,
                    f"the worst, {chosen.index[0]}, moves {worst:.1%} of the records between its "
                    f"cells; the limit is {SMALL_TABLE:.0%}",
                )
            )  # fmt: skip
    found.append(
        UseVerdict(
            "models of the keys", None if ratio is None else ratio <= SMALL_RATIO,
            f"pMSE ratio {or_undefined(ratio, '.1f')}; the limit is {SMALL_RATIO:g}",
        )
    )  # fmt: skip
    if len(regressions):
        found.append(_regressions_verdict(regressions, treatment.datasets))
    kept = float(levels["kept"].mean()) if len(levels) else None
    found.append(
        UseVerdict(
            "rare levels", None if kept is None else kept >= MOST_KEPT,
            "no level is rare"
            if kept is None
            else f"{kept:.0%} of the levels below {RARE:.0%} of the records are still there",
        )
    )  # fmt: skip
    found.append(
        UseVerdict(
            "single records and small cells", not treatment.treated.any(),
            f"{int(treatment.treated.sum()):,} records were treated, so their keys may not be what "
            "they were: do not take small counts of this file for facts",
        )
    )  # fmt: skip
    return found
