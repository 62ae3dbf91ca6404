"""What a demographer can and cannot do with a release: each use measured and judged."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.totals.kept import KeptTotals
from bayes_sdc.flows.release.use.combining import combine, combined_totals
from bayes_sdc.flows.release.use.gravity import Gravity, fit_gravity, identified, interval_overlap
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.io.columns import own_area, read_codes
from bayes_sdc.results import Fact, Result, or_undefined

GOOD, WITH_CARE, NOT_GOOD = "good for", "with care for", "not good for"
UNDEFINED = "undefined for"  # nothing is there whose error could be measured
VERDICTS = (GOOD, WITH_CARE, NOT_GOOD, UNDEFINED)
SMALL_ERROR, LARGE_ERROR = 0.02, 0.10  # relative errors and shares moved: good up to, care up to
FIRST = 5  # destinations of an origin that are ranked
HALF = 1.959963984540054  # of a 95 % interval, in standard errors
Z = "overlap of intervals"


@dataclass(frozen=True, eq=False, repr=False)
class FlowUses(Result):
    """What a release is good for, use by use. Confidential: it compares with true counts.

    Made by :func:`bayes_sdc.flow_uses`.

    Parameters
    ----------
    table : DataFrame
        One row per use: ``use`` in words, ``measure``, ``value``, ``verdict`` ("good for", "with
        care for", "not good for"; "undefined for" where nothing is there to measure) and
        ``covered``, the share of true values inside their 95 % intervals combined over data sets,
        where there are several.
    datasets : int
        Number of data sets.
    """

    table: pd.DataFrame
    datasets: int

    def _title(self) -> str:
        return f"What a release of {self.datasets} data sets is good for: confidential"

    def _facts(self) -> list[Fact]:
        return [
            (row["use"], row["verdict"], f"{row['measure']}: {or_undefined(row['value'], '.3g')}")
            for _, row in self.table.iterrows()
        ]


class Whole(NamedTuple):
    """All rows of a table but own areas, with the counts of each data set."""

    origin: np.ndarray  # (row,)
    destination: np.ndarray  # (row,)
    same: np.ndarray | None  # (row,) whether both ends are in one state
    true: np.ndarray  # (row,)
    released: np.ndarray  # (dataset, row)
    distance: np.ndarray | None  # (row,)


@checked
def flow_uses(
    table: FlowTable,
    release: pd.DataFrame,
    *,
    distance: Sequence[float] | None = None,
    totals: str | Sequence[str] | KeptTotals = (),
) -> FlowUses:
    """Measure what demographers do with a table of flows, true against released.

    Parameters
    ----------
    table : FlowTable
        The true table.
    release : pandas.DataFrame
        What :func:`bayes_sdc.synthesize` returned.
    distance : sequence of float, optional
        Distance between the areas of each row of the table, above 0 but for own areas.
    totals : str, sequence of str or KeptTotals
        Totals that the release keeps, as for :func:`bayes_sdc.combined_totals`.

    Returns
    -------
    FlowUses

    Raises
    ------
    InputError
        If the release belongs to another table, the table has no small cells, or a distance is
        missing.

    See Also
    --------
    bayes_sdc.utility, bayes_sdc.combined_totals

    Notes
    -----
    A use is good where the error is at most 2 %, or 95 % of the intervals overlap; to be taken with
    care up to 10 %, or from 80 %. The gravity model is a Poisson regression with effects of origins
    and destinations on log distance and on whether both ends are in one state, as far as these are
    known. Its intervals are combined over data sets. Counts above the small ones and the pairs
    without a flow are as in the true table, so uses that rest on them are good, whatever happens to
    the small counts.

    References
    ----------
    Karr, Kohnen, Oganian, Reiter and Sanil 2006, doi:10.1198/000313006X124640, for the overlap of
    intervals; Reiter 2003, Survey Methodology 29, 181-188, for intervals from several data sets.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import flow_uses, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 5]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> uses = flow_uses(table, frame.assign(n=[2, 3, 5])).table.set_index("use")
    >>> uses.loc["outflow of an area", "verdict"], uses.loc["inflow of an area", "verdict"]
    ('good for', 'not good for')
    """
    if table.n_small == 0:
        raise InputError(f"{table.source}: no small cells, so every release of it is the table")
    whole = whole_of(table, release, distance)
    rows = [
        *_totals(table, release, whole, totals),
        *_counts(table, release),
        *_structure(whole),
        *_gravity(whole),
        *_distances(whole),
    ]
    columns = ["use", "measure", "value", "verdict", "covered"]
    return FlowUses(pd.DataFrame(rows, columns=columns), len(whole.released))


def whole_of(table: FlowTable, release: pd.DataFrame, distance: Sequence[float] | None) -> Whole:
    """Take the rows that are flows between two areas, with the released counts in their places."""
    frame = table.frame
    ends = [read_codes(frame[name], name) for name in (table.origin, table.destination)]
    flow = ~own_area(*ends)
    flow[list(table.totals)] = False
    true = frame[table.count].to_numpy(np.float64)
    released = np.tile(true, (len(counts := released_counts(table, release)), 1))
    released[:, table.cells["row"].to_numpy()] = counts + table.low
    same = None
    if len(table.groups) == 2:
        texts = [read_codes(frame[name], name).texts()[flow] for name in table.groups]
        same = texts[0] == texts[1]
    far = None
    if distance is not None:
        far = np.asarray(distance, dtype=np.float64)
        if far.shape != (len(frame),) or not (far[flow] > 0).all():
            raise InputError(
                f"distance: give one above 0 for each of the {len(frame)} rows, own areas aside"
            )
        far = far[flow]
    both = [np.unique(end.texts()[flow], return_inverse=True)[1] for end in ends]
    return Whole(both[0], both[1], same, true[flow], released[:, flow], far)


def by_error(value: float) -> str:
    """Judge a relative error or a share that is wrong.

    Examples
    --------
    >>> by_error(0.0), by_error(0.05), by_error(0.3), by_error(float("nan"))
    ('good for', 'with care for', 'not good for', 'undefined for')
    """
    if np.isnan(value):
        return UNDEFINED
    return GOOD if value <= SMALL_ERROR else WITH_CARE if value <= LARGE_ERROR else NOT_GOOD


def by_overlap(value: float) -> str:
    """Judge an overlap of intervals.

    Examples
    --------
    >>> by_overlap(0.99), by_overlap(0.85), by_overlap(-2.0)
    ('good for', 'with care for', 'not good for')
    """
    if np.isnan(value):
        return UNDEFINED
    return GOOD if value >= 0.95 else WITH_CARE if value >= 0.8 else NOT_GOOD


_Row = tuple[str, str, float, str, float]


def _row(use: str, measure: str, value: float, covered: float = np.nan) -> _Row:
    verdict = by_overlap(value) if measure == Z else by_error(value)
    return use, measure, value, verdict, covered


def _totals(
    table: FlowTable,
    release: pd.DataFrame,
    whole: Whole,
    kept: str | Sequence[str] | KeptTotals,
) -> list[_Row]:
    """In-, out- and net migration: errors relative to whole totals, safe counts included."""
    covered = pd.Series(dtype=np.float64)
    if len(whole.released) > 1:
        covered = combined_totals(table, release, totals=kept).by_side["coverage"]
    mean = whole.released.mean(axis=0)
    sums = {
        "origin": [np.bincount(whole.origin, c) for c in (whole.true, mean)],
        "destination": [np.bincount(whole.destination, c) for c in (whole.true, mean)],
    }
    words = {"origin": "outflow of an area", "destination": "inflow of an area"}
    rows = [
        _row(words[side], "mean relative error", _mean_error(*pair), covered.get(side, np.nan))
        for side, pair in sums.items()
    ]
    frame = pd.DataFrame(
        {"group": table.cells["group"].to_numpy(), "true": table.cells["y"] + table.low}
    )
    frame["released"] = released_counts(table, release).mean(axis=0) + table.low
    of_group = frame.groupby("group").sum()
    error = _mean_error(of_group["true"].to_numpy(), of_group["released"].to_numpy())
    rows.append(
        _row("small flows between two groups", "mean relative error", error,
             covered.get("group", np.nan))
    )  # fmt: skip
    true, released = _net(table, whole)
    gross = np.abs(true).sum()
    net = float(np.abs(released - true).sum() / gross) if gross else float("nan")
    measure = "error relative to all net migration"
    rows.append(
        _row("net migration of an area", measure, net, covered.get("net migration", np.nan))
    )
    return rows


def _net(table: FlowTable, whole: Whole) -> tuple[np.ndarray, np.ndarray]:
    """Inflow less outflow of each area, true and released."""
    codes = [
        read_codes(table.frame[name], name).texts() for name in (table.origin, table.destination)
    ]
    flow = codes[0] != codes[1]
    flow[list(table.totals)] = False
    area = np.unique(np.concatenate([c[flow] for c in codes]), return_inverse=True)[1]
    n, areas = int(flow.sum()), int(area.max()) + 1
    return tuple(  # type: ignore[return-value]
        np.bincount(area[n:], c, areas) - np.bincount(area[:n], c, areas)
        for c in (whole.true, whole.released.mean(axis=0))
    )


def _mean_error(true: np.ndarray, released: np.ndarray) -> float:
    there = true > 0
    if not there.any():
        return float("nan")
    return float((np.abs(released - true)[there] / true[there]).mean())


def _counts(table: FlowTable, release: pd.DataFrame) -> list[_Row]:
    y, released = table.cells["y"].to_numpy(), released_counts(table, release)
    share = np.bincount(y, minlength=table.k + 1) / len(y)
    moved = [
        np.abs(np.bincount(data, minlength=table.k + 1) / len(y) - share).sum() / 2
        for data in released
    ]
    wrong = float((released != y).mean())
    return [
        _row("how common each small count is", "share moved", float(np.mean(moved))),
        _row("one single small count", "share that is not the true one", wrong),
    ]


def _structure(whole: Whole) -> list[_Row]:
    """Partners, entropy of an origin's flows, and the largest flows of each."""
    partners = np.bincount(whole.origin, whole.true > 0)
    lost = np.mean(
        [np.abs(np.bincount(whole.origin, c > 0) - partners).sum() for c in whole.released]
    ) / max(partners.sum(), 1)
    entropy = _entropy(whole.origin, whole.true)
    off = np.mean([np.abs(_entropy(whole.origin, c) - entropy).mean() for c in whole.released])
    found = np.mean([_first_found(whole.origin, whole.true, c) for c in whole.released])
    return [
        _row("number of partners of an area", "relative error", float(lost)),
        _row("entropy of the flows of an area", "mean error relative to the mean",
             float(off / max(entropy.mean(), 1e-12))),
        _row(f"the {FIRST} largest flows of an area", "share that is missed", 1.0 - float(found)),
    ]  # fmt: skip


def _entropy(origin: np.ndarray, counts: np.ndarray) -> np.ndarray:
    share = counts / np.maximum(np.bincount(origin, counts)[origin], 1e-300)
    log_share = np.log(np.where(share > 0, share, 1.0))
    return np.asarray(-np.bincount(origin, share * log_share))


def _first_found(origin: np.ndarray, true: np.ndarray, released: np.ndarray) -> float:
    """Share of the largest true flows of each origin that are among its largest released ones.

    A tie with the last of them counts as one of them.
    """
    first = [_among_first(origin, counts) for counts in (true, released)]
    both = np.bincount(origin, first[0] & first[1])
    number = np.minimum(np.bincount(origin), FIRST)
    return float((np.minimum(both, number) / number).mean())


def _among_first(origin: np.ndarray, counts: np.ndarray) -> np.ndarray:
    order = np.lexsort((-counts, origin))
    start = np.searchsorted(origin[order], np.arange(int(origin.max()) + 1))
    last = np.minimum(start + FIRST, np.append(start[1:], len(origin))) - 1
    return np.asarray(counts >= counts[order][last][origin])


def _gravity(whole: Whole) -> list[_Row]:
    """Overlap of the intervals of each coefficient, combined over data sets."""
    known = {
        "gravity model: effect of distance": None if whole.distance is None
        else np.log(whole.distance),
        "gravity model: effect of one state": None if whole.same is None
        else whole.same.astype(float),
    }  # fmt: skip
    used = {name: x for name, x in known.items() if x is not None}
    if not used:
        return []
    x = np.column_stack(list(used.values()))
    # in the truth and in every data set; their flows with people differ where 0 is a small count
    people = np.unique(np.vstack([whole.true, whole.released]) > 0, axis=0)
    told = np.all(
        [identified(whole.origin[at], whole.destination[at], x[at]) for at in people], axis=0
    )
    used = {name: x for (name, x), one in zip(used.items(), told, strict=True) if one}
    if not used:
        return []
    x = np.column_stack(list(used.values()))
    true, *data = [
        fit_gravity(whole.origin, whole.destination, x, counts)
        for counts in (whole.true, *whole.released)
    ]
    rows = []
    for k, name in enumerate(used):
        interval = _interval(data, k)
        half = HALF * np.sqrt(true.variance[k])
        wanted = true.coefficient[k] - half, true.coefficient[k] + half
        inside = interval[0] <= true.coefficient[k] <= interval[1]
        covered = float(inside) if len(data) > 1 else np.nan
        rows.append(_row(name, Z, interval_overlap(wanted, interval), covered))
    return rows


def _interval(data: Sequence[Gravity], k: int) -> tuple[float, float]:
    """Interval of a coefficient from one data set, or combined over several."""
    coefficient = np.array([[one.coefficient[k]] for one in data])
    variance = np.array([[one.variance[k]] for one in data])
    if len(data) == 1:
        half = HALF * float(np.sqrt(variance[0, 0]))
        return float(coefficient[0, 0]) - half, float(coefficient[0, 0]) + half
    found = combine(coefficient, variance.mean(axis=0))
    return float(found["lower"][0]), float(found["upper"][0])


def _distances(whole: Whole) -> list[_Row]:
    """Share of movers that are in another tenth of the distances."""
    if whole.distance is None:
        return []
    edges = np.quantile(whole.distance, np.linspace(0.1, 0.9, 9))
    tenth = np.digitize(whole.distance, edges)
    true, *data = [np.bincount(tenth, c, 10) / c.sum() for c in (whole.true, *whole.released)]
    moved = float(np.mean([np.abs(one - true).sum() / 2 for one in data]))
    return [_row("how far people move", "share moved between tenths of distance", moved)]
