"""Columns that repeat a total on each row that it is the sum of, and a single grand total."""

from itertools import combinations

import numpy as np
import pandas as pd

from bayes_sdc.flows.audit.inside.codes import BITS, nearly_all
from bayes_sdc.flows.audit.inside.rows import (
    SURE,
    InsideTotal,
    Rows,
    bits_of,
    called_total,
    choices,
    surprise,
)
from bayes_sdc.flows.table.families import Family, Ints, keyed, sums_of
from bayes_sdc.flows.table.read import FlowTable

FEWEST_ROWS = 5  # among which a row whose codes are nowhere else is strange
MOST_GROUPS = 4  # columns of groups up to which every combination of codes is tried


def grand_total(rows: Rows, table: FlowTable) -> list[InsideTotal]:
    """Find a single row that is the sum of all others, with codes that no other flow has."""
    at = np.flatnonzero(~rows.total)
    if len(at) < 3:
        return []
    row = int(at[np.argmax(rows.counts[at])])
    rest = at[at != row]
    ends = (table.origin, table.destination)
    alone = all((rows.texts[n][rest] != rows.texts[n][row]).all() for n in ends)
    sums = {own: int(rows.counts[rest][~rows.own[rest] | own].sum()) for own in (False, True)}
    own_area = next((own for own, total in sums.items() if total == rows.counts[row]), None)
    if own_area is None or not alone:
        return []
    if np.log2(sums[own_area] + 1.0) < BITS + np.log2(len(at)) and not _nowhere_else(
        rows, row, ends
    ):
        return []
    code = ">".join(str(rows.texts[name][row]) for name in ends)
    strange = surprise(rows, rows.counts[[row]]) - np.log2(len(at))
    if not (rows.doubtful or called_total(code) or strange >= SURE):
        return []
    rows.total[row] = True
    of = np.where(~rows.total & (~rows.own | own_area), 0, -1)
    shown = rows.counts[[row]]
    family = Family("all rows", [""], of, shown, shown)
    return [InsideTotal(ends[1], code, np.array([row]), family, 1, 1, strange)]


def _nowhere_else(rows: Rows, row: int, ends: tuple[str, str]) -> bool:
    """Whether a row is the only one whose codes no other row has, at either end.

    In a table of flows such a row is strange, and to be asked about however many rows there are,
    small ones too. In a table of pairs that share no code it is like any other.
    """
    at = np.flatnonzero(~rows.total)
    first, second = (rows.texts[name][at].astype(str) for name in ends)
    _, place, number = np.unique(
        np.concatenate([first, second]), return_inverse=True, return_counts=True
    )
    times = number[place.ravel()].reshape(2, len(at))
    lonely = (times == 1).all(axis=0)
    return len(at) >= FEWEST_ROWS and bool(lonely[at == row].all()) and int(lonely.sum()) == 1


def columns_of_totals(rows: Rows, table: FlowTable) -> list[InsideTotal]:
    """Find columns that repeat a total on each of the rows that it is the sum of."""
    found = []
    numbers = {name: _whole_numbers(text) for name, text in rows.others.items()}
    numbers = {name: values for name, values in numbers.items() if values is not None}
    ways = _ways(table)
    for name, values in numbers.items():
        for by in ways:
            tried = max(12, 2 * len(ways)) * len(numbers)
            each = _column_by(rows, name, np.asarray(values), by, tried)
            if each is not None:
                if rows.doubtful or each.believed:
                    found.append(each)
                break
    return found


def _ways(table: FlowTable) -> list[tuple[str, ...]]:
    """Combinations of codes that several rows can share; areas and groups come first."""
    o, d, groups = table.origin, table.destination, table.groups
    usual = [(o,), (d,), (o, *groups), (d, *groups), groups, ()]
    if 0 < len(groups) <= MOST_GROUPS:
        names = (o, d, *groups)
        usual += [some for size in range(1, len(names)) for some in combinations(names, size)]
    return list(dict.fromkeys(usual))


def _column_by(
    rows: Rows, name: str, values: Ints, by: tuple[str, ...], tried: int
) -> InsideTotal | None:
    key, labels = keyed([rows.texts[n] for n in by], len(values))
    flows = np.flatnonzero(~rows.total & ~rows.own & (values >= 0))
    if len(flows) == 0:
        return None
    shown = np.full(len(labels), -1, dtype=np.int64)
    shown[key[flows]] = values[flows]
    if (values[flows] != shown[key[flows]]).any():
        return None
    base = max(int(np.gcd.reduce(shown[shown >= 0])), 1)
    for own_area in (False, True):
        member = ~rows.total & (~rows.own | own_area)
        of = np.where(member, key, -1)
        sums = sums_of(of, rows.counts, len(labels))
        tested = (np.bincount(key[member], minlength=len(labels)) >= 2) & (shown >= 0)
        for off in (0, base - 1):
            right = tested & (np.abs(shown - sums) <= off)
            matches, tests = int(right.sum()), int(tested.sum())
            usual = bool(nearly_all(matches, tests))
            if usual:
                bits = float(np.log2((sums[right] + 1.0) / (2 * off + 1)).clip(0).sum())
                bits -= 5.0 * (tests - matches)
            else:
                bits = float(bits_of(shown[shown >= 0], sums[right], 2 * off + 1).sum())
                bits -= float(choices(tests, tests - matches))
            if tests and bits >= (BITS if usual else SURE) + np.log2(tried):
                family = Family(
                    " and ".join(by) or "all rows", labels, np.where(shown[key] >= 0, of, -1),
                    np.maximum(shown - off, 0), shown + off,
                )  # fmt: skip
                none = np.zeros(0, dtype=np.int64)
                return InsideTotal(name, None, none, family, matches, tests, bits - np.log2(tried))
    return None


def _whole_numbers(texts: np.ndarray) -> Ints | None:
    """Read a column of whole numbers, -1 where there is none; None if it is no such column."""
    numbers = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce")
    given = numbers.notna().to_numpy()
    empty = np.array(
        [not str(text).strip() or str(text) in ("nan", "None", "<NA>") for text in texts]
    )
    whole = numbers[given]
    if not given.any() or (~given & ~empty).any() or (whole % 1 != 0).any():
        return None
    if (whole.abs() > 2**53).any():
        return None
    return np.where(given, numbers.fillna(-1), -1).astype(np.int64)
