"""Published totals as arrays: by word, or from tables of totals as they were published.

A *family* is one kind of total, such as those by origin: a row of the table counts in at most one
total of a family. Rounded totals are known up to half the base.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.io.columns import read_codes, read_counts, refuse_problems
from bayes_sdc.io.tables import load

Ints = np.ndarray[tuple[int], np.dtype[np.int64]]

WORDS = (
    "origin",
    "destination",
    "group",
    "origin-by-group",
    "destination-by-group",
    "national",
)


class Hidden(NamedTuple):
    """Rows whose count is not known, and its range; 0 and 0 for the others."""

    mask: np.ndarray  # (row,)
    lower: Ints  # (row,)
    upper: Ints  # (row,)


def none_hidden(n: int) -> Hidden:
    """Return n rows that are all known."""
    zero = np.zeros(n, dtype=np.int64)
    return Hidden(np.zeros(n, dtype=bool), zero, zero)


#: Totals by word, a frame or a file of totals, or several of them.
Published = str | Path | pd.DataFrame | Sequence[str | Path | pd.DataFrame]


class Family(NamedTuple):
    """Totals of one kind."""

    name: str  # what they are totals of, as in "origin"
    labels: list[str]  # (total,)
    of: Ints  # (row,) position of the row's total, or -1
    low: Ints  # (total,) least that the rows of a total can add up to
    high: Ints  # (total,) most

    def called(self, total: int) -> str:
        """Name one total, as in ``total of origin 01001``."""
        label = self.labels[total]
        return f"total of {self.name} {label}" if label else f"{self.name} total"

    def says(self, total: int) -> str:
        """Write what is published about one total: a number, or its range."""
        low, high = int(self.low[total]), int(self.high[total])
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def families_of(
    table: FlowTable,
    published: Published,
    *,
    own_area: bool | None = None,
    base: int = 1,
    hidden: Hidden | None = None,
) -> list[Family]:
    """Turn words and tables of totals into families; those named twice count once.

    Parameters
    ----------
    table : FlowTable
        The true table, of which these are totals.
    published : str, path, DataFrame or sequence of them
        As for :func:`bayes_sdc.audit_totals`.
    own_area : bool, optional
        Whether the totals include the own-area rows; by default those by word do not, and the
        numbers of a table of totals show whether it does.
    base : int
        The totals are rounded to a multiple of it.
    hidden : Hidden, optional
        Rows whose count is not known; then no total can be computed, so none can be given by word.

    Raises
    ------
    InputError
        If a word is unknown, a table of totals does not fit the table, or base is not a number.
    """
    if isinstance(base, bool) or not isinstance(base, int | np.integer) or base < 1:
        raise InputError(f"base must be a whole number, 1 or more; it is {base!r}")
    listed = [published] if isinstance(published, str | Path | pd.DataFrame) else list(published)
    given = [each for one in listed for each in _words_of(one)]
    if base > 1 and not given:
        raise InputError(
            f"base: {base} is what published totals are rounded to, and none are named; name them "
            "by published (--published), or leave the base out"
        )
    columns = {
        name: read_codes(table.frame[name], name).texts()
        for name in (table.origin, table.destination, *table.groups)
    }
    own = columns[table.origin] == columns[table.destination]
    counts = table.frame[table.count].to_numpy(np.int64, copy=True)
    total = np.zeros(len(counts), dtype=bool)
    total[list(table.totals)] = True
    counts[total] = 0  # totals inside the table are not part of others
    hidden_rows = none_hidden(len(counts)) if hidden is None else hidden
    counts[hidden_rows.mask] = 0
    families = []
    for number, each in enumerate(dict.fromkeys(g for g in given if isinstance(g, str)), start=1):
        if each in WORDS:
            if hidden is not None:
                raise InputError(
                    f"published totals by {each!r} cannot be computed, because counts are missing; "
                    "give the table of these totals"
                )
            families.append(_by_word(table, each, columns, counts, own, bool(own_area), base))
        elif not Path(each).exists():
            raise InputError(
                f"published totals {each!r}: no such file, and none of the words {list(WORDS)}"
            )
        else:
            families += _by_table(
                table, Path(each), number, counts, own, own_area, base, hidden_rows
            )
    for number, frame in enumerate((g for g in given if not isinstance(g, str)), start=1):
        families += _by_table(table, frame, number, counts, own, own_area, base, hidden_rows)
    return [family._replace(of=np.where(total, -1, family.of)) for family in families]


def _words_of(published: str | Path | pd.DataFrame) -> Sequence[str | Path | pd.DataFrame]:
    """Split a list of words separated by commas; the name of a file may contain commas."""
    if not isinstance(published, str) or "," not in published or Path(published).exists():
        return [published]
    return [word for part in published.split(",") if (word := part.strip())]


def _by_word(
    table: FlowTable,
    word: str,
    columns: dict[str, Any],
    counts: Ints,
    own: np.ndarray,
    own_area: bool,
    base: int,
) -> Family:
    by: tuple[str, ...] = {
        "origin": (table.origin,),
        "destination": (table.destination,),
        "group": table.groups,
        "origin-by-group": (table.origin, *table.groups),
        "destination-by-group": (table.destination, *table.groups),
        "national": (),
    }[word]
    if "group" in word and not table.groups:
        raise InputError(
            f"published totals by {word!r}: the table has no groups; name their columns in groups"
        )
    of, labels = keyed([columns[name] for name in by], len(counts))
    inside = np.ones(len(counts), dtype=bool) if own_area else ~own
    sums = sums_of(of, counts * inside, len(labels))
    shown = (sums + base // 2) // base * base
    return Family(
        word.replace("-", " "),
        labels,
        np.where(inside, of, -1),
        np.maximum(shown - base // 2, 0),
        shown + base // 2,
    )


def keyed(columns: Sequence[np.ndarray], n: int) -> tuple[Ints, list[str]]:
    """Number the combinations of some columns of text: position of each row, and labels."""
    if not columns:
        return np.zeros(n, dtype=np.int64), [""]
    place = np.zeros(n, dtype=np.int64)
    texts: list[np.ndarray] = []
    for column in columns:
        codes, labels = pd.factorize(column, sort=True)
        place, combinations = pd.factorize(place * len(labels) + codes, sort=True)
        before, now = np.divmod(combinations, len(labels))
        texts = [*(text[before] for text in texts), np.asarray(labels, dtype=object)[now]]
    return place.astype(np.int64), [", ".join(map(str, row)) for row in zip(*texts, strict=True)]


def sums_of(of: Ints, values: Ints, n: int) -> Ints:
    """Add whole numbers up by total; rows in none are left out. Exact where floats are not."""
    sums = np.zeros(n, dtype=np.int64)
    inside = of >= 0
    np.add.at(sums, of[inside], values[inside])
    return sums


def _by_table(
    table: FlowTable,
    source: Path | pd.DataFrame,
    number: int,
    counts: Ints,
    own: np.ndarray,
    own_area: bool | None,
    base: int,
    hidden: Hidden,
) -> list[Family]:
    """Read published totals; the columns that the table has too say what they are totals of.

    One code that the table does not have, such as Total, stands for all. Columns of a matrix may be
    codes of either end: then the numbers show of which.
    """
    loaded = load(source, ())
    name = f"published totals {number}" if loaded.source == "DataFrame" else loaded.source
    *others, last = _one_total_a_row(loaded.frame, table)
    for frame in others:
        with suppress(InputError):
            return _by_rows(table, name, frame, counts, own, own_area, base, hidden)
    return _by_rows(table, name, last, counts, own, own_area, base, hidden)


def _by_rows(
    table: FlowTable,
    name: str,
    frame: pd.DataFrame,
    counts: Ints,
    own: np.ndarray,
    own_area: bool | None,
    base: int,
    hidden: Hidden,
) -> list[Family]:
    """Read published totals, one a row."""
    wanted = [c for c in frame.columns if c in table.frame.columns and c != table.count]
    rest = [c for c in frame.columns if c not in wanted]
    value = table.count if table.count in rest else rest[0] if len(rest) == 1 else None
    if value is None:
        raise InputError(
            f"{name}: need the columns that say what the totals are of, called as in the table, "
            f"and one column of totals, called {table.count!r} or the only other one; it has "
            f"{list(map(str, frame.columns))}"
        )
    empty = frame[value].isna() | (frame[value].astype(str).str.strip() == "")
    frame = frame[~empty].reset_index(drop=True)
    shown, problems = read_counts(frame[value], str(value))
    codes = [read_codes(frame[c], str(c)) for c in wanted]
    refuse_problems(name, [*problems, *(p for c in codes for p in c.problems)])
    ours = [read_codes(table.frame[c], str(c)).texts() for c in wanted]
    theirs = [code.texts() for code in codes]
    families = []
    for rows, places in _kinds(ours, theirs, shown):
        of, labels = _positions(
            name,
            [ours[p] for p in places],
            [theirs[p][rows] for p in places],
            len(counts),
            len(rows),
        )
        shown_here = shown[rows]
        names = [label or "all" for label in labels]
        inside = _own_area_inside(name, counts, own, of, shown_here, own_area, base, names, hidden)
        families.append(
            Family(
                " and ".join(str(wanted[p]) for p in places) or "national",
                labels,
                np.where(inside, of, -1),
                np.maximum(shown_here - base // 2, 0),
                shown_here + base // 2,
            )
        )
    return families


def _one_total_a_row(frame: pd.DataFrame, table: FlowTable) -> list[pd.DataFrame]:
    """Turn a matrix of totals, whose columns are codes of a column of the table, into rows."""
    ours = [table.origin, table.destination, *table.groups]
    wanted = [name for name in ours if name in frame.columns]
    rest = [name for name in frame.columns if name not in table.frame.columns]
    if len(rest) < 2 or table.count in frame.columns:
        return [frame]
    known = {name: {*read_codes(table.frame[name], name).labels} for name in ours}
    return [
        frame[[*wanted, *rest]].melt(wanted, var_name=column, value_name=table.count)
        for column in ours
        if column not in wanted and sum(str(r) in known[column] for r in rest) > len(rest) / 2
    ] or [frame]


def _kinds(
    ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], shown: Ints
) -> list[tuple[np.ndarray, list[int]]]:
    """Rows of each kind of total, and the places of the columns that it is a total of.

    A code that the table does not have stands for all, if it is the only one of its column.
    """
    if not ours:
        return [(np.arange(len(shown)), [])]
    whole = np.zeros((len(shown), len(ours)), dtype=bool)
    for place, (mine, others) in enumerate(zip(ours, theirs, strict=True)):
        unknown = ~pd.Series(others).isin(set(mine)).to_numpy()
        if len(set(others[unknown])) == 1 and shown[unknown].any():
            whole[:, place] = unknown
    kinds, of = np.unique(whole, axis=0, return_inverse=True)
    of = of.ravel()
    return [
        (np.flatnonzero(of == k), [int(p) for p in np.flatnonzero(~kind)])
        for k, kind in enumerate(kinds)
    ]


def _positions(
    name: str, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], n: int, number: int
) -> tuple[Ints, list[str]]:
    """Return the position of the total of each of n rows, -1 for none, and labels of the totals."""
    both = [np.concatenate(pair) for pair in zip(ours, theirs, strict=True)]
    place, labels = keyed(both, n + number)
    of, totals = place[:n], place[n:]
    if len(np.unique(totals)) < len(totals):
        twice = labels[int(pd.Series(totals)[pd.Series(totals).duplicated()].iloc[0])]
        raise InputError(f"{name}: the total of {twice or 'all'} more than once; keep one row")
    position = np.full(len(labels), -1, dtype=np.int64)
    position[totals] = np.arange(len(totals))
    return position[of], [labels[t] for t in totals]


def _own_area_inside(
    name: str,
    counts: Ints,
    own: np.ndarray,
    of: Ints,
    shown: Ints,
    own_area: bool | None,
    base: int,
    labels: list[str],
    hidden: Hidden,
) -> np.ndarray:
    """Find whether the totals include the own-area rows, by comparing them with both sums."""
    wrong, least = {}, {}
    for choice in (False, True) if own_area is None else (own_area,):
        inside = ~own | choice
        least[choice] = sums_of(of, (counts + hidden.lower) * inside, len(shown))
        most = sums_of(of, (counts + hidden.upper) * inside, len(shown))
        off = base // 2
        wrong[choice] = (shown < least[choice] - off) | (shown > most + off)
        # holes may be larger than their marks say: then totals that do not add up are left to the
        # bounds
        wrong[choice] &= sums_of(of, (hidden.mask & inside).astype(np.int64), len(shown)) == 0
    right = [choice for choice, where in wrong.items() if not where.any()]
    # a hole may stand for any number, so that totals do not always show what they are of
    if (
        len(right) == 2
        and hidden.mask.any()
        and bool((of >= 0)[own & (hidden.mask | (counts > 0))].any())
    ):
        raise InputError(
            f"{name}: it cannot be seen from these totals whether they include people who stayed "
            "in their area, because counts are hidden; say so by own_area (--with-own-area or "
            "--without-own-area)"
        )
    if right:
        return np.asarray(~own | right[0])
    choice = min(wrong, key=lambda c: (int(wrong[c].sum()), int(abs(least[c] - shown).sum())))
    at = int(np.argmax(wrong[choice]))
    common = math.gcd(*map(int, shown)) if len(shown) > 1 else 1
    hint = f"; if they are rounded to multiples of {common}, say so by base" if common > 1 else ""
    raise InputError(
        f"{name}: the total of {labels[at]} is {int(shown[at]):,}, and the rows of the table add "
        f"up to {int(least[choice][at]):,} with{'' if choice else 'out'} own-area rows; give "
        f"totals of this table{hint}"
    )
