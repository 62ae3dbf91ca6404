"""Bounds of hidden cells from one total at a time, until nothing changes.

A cell is at least its total less the most that all others can be, and at most its total less the
least that they can be. These bounds always hold; tighter ones may exist
(:mod:`bayes_sdc.flows.audit.network`). The total that pins a cell is remembered, because the reader
wants to know it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.model.hyperpriors import compiled
from bayes_sdc.flows.table.families import Family, Ints, sums_of

FREE = 2**40  # no upper bound is known


class System(NamedTuple):
    """Hidden cells, and what the totals leave for them after all known counts are subtracted."""

    lower: Ints  # (cell,)
    upper: Ints  # (cell,) FREE where nothing is known
    low: Ints  # (total,) of all families, one after the other
    high: Ints  # (total,)
    start: Ints  # (total + 1,) where the cells of a total begin
    cells: Ints  # cells of each total, ascending
    of: list[Ints]  # (cell,) for each family: position among all totals, or -1


class Propagated(NamedTuple):
    """Bounds, and for each cell the total that pinned it and when."""

    lower: Ints  # (cell,)
    upper: Ints  # (cell,)
    by: Ints  # (cell,) position of the total, or -1: not pinned by one total
    when: Ints  # (cell,) number of the step in which it was
    wrong: Ints  # positions of totals that nothing within the bounds adds up to


def make_system(
    counts: Ints, hidden: np.ndarray, lower: Ints, upper: Ints, families: Sequence[Family]
) -> System:
    """Subtract what is known from the totals.

    Parameters
    ----------
    counts : array of int, shape (row,)
        Ignored where hidden.
    hidden : array of bool, shape (row,)
        Rows whose count is not known: the cells, in this order.
    lower, upper : array of int, shape (cell,)
        Range of each hidden count, whatever the totals.
    families : sequence of Family
        What is published.
    """
    low, high, members, of = [], [], [], []
    before = 0
    known = np.where(hidden, 0, counts)
    for family in families:
        n = len(family.labels)
        taken = sums_of(family.of, known, n)
        low.append(family.low - taken)
        high.append(family.high - taken)
        cells = family.of[hidden]
        of.append(np.where(cells >= 0, cells + before, -1))
        members.append(of[-1])
        before += n
    owner = np.concatenate(members) if members else np.zeros(0, dtype=np.int64)
    cell = np.tile(np.arange(len(lower)), len(members))
    inside = owner >= 0
    order = np.lexsort((cell[inside], owner[inside]))
    start = np.searchsorted(owner[inside][order], np.arange(before + 1))
    return System(
        lower=lower.astype(np.int64),
        upper=upper.astype(np.int64),
        low=np.concatenate(low) if low else np.zeros(0, dtype=np.int64),
        high=np.concatenate(high) if high else np.zeros(0, dtype=np.int64),
        start=start.astype(np.int64),
        cells=cell[inside][order].astype(np.int64),
        of=of,
    )


def propagate(system: System) -> Propagated:
    """Tighten the bounds of all cells by every total until nothing changes.

    Examples
    --------
    >>> family = Family("row", ["A"], np.zeros(4, dtype=np.int64), np.array([15]), np.array([15]))
    >>> hidden = np.array([False, False, True, True])
    >>> one, nine = np.full(2, 1), np.full(2, 9)
    >>> found = propagate(make_system(np.array([10, 3, 0, 0]), hidden, one, nine, [family]))
    >>> found.lower.tolist(), found.upper.tolist()
    ([1, 1], [1, 1])
    """
    cell_of = np.repeat(np.arange(len(system.low)), np.diff(system.start))
    order = np.argsort(system.cells, kind="stable")
    begin = np.searchsorted(system.cells[order], np.arange(len(system.lower) + 1))
    lower, upper = system.lower.copy(), system.upper.copy()
    by, when = np.full(len(lower), -1), np.full(len(lower), -1)
    wrong = np.zeros(len(system.low), dtype=np.bool_)
    _propagate(
        lower,
        upper,
        system.low,
        system.high,
        system.start,
        system.cells,
        begin.astype(np.int64),
        cell_of[order].astype(np.int64),
        by,
        when,
        wrong,
    )
    return Propagated(lower, upper, by, when, np.flatnonzero(wrong))


@compiled
def _propagate(
    lower: Ints,
    upper: Ints,
    low: Ints,
    high: Ints,
    start: Ints,
    cells: Ints,
    begin: Ints,
    totals: Ints,
    by: Ints,
    when: Ints,
    wrong: np.ndarray,
) -> None:
    """Work through a queue of totals in order of arrival, so that chains stay short."""
    n = len(low)
    queue = np.arange(n)
    waiting = np.ones(n, dtype=np.bool_)
    head, length, step = 0, n, 0
    while length > 0:
        total = queue[head]
        head = (head + 1) % n
        length -= 1
        waiting[total] = False
        step += 1
        least, most, free = 0, 0, 0
        for place in range(start[total], start[total + 1]):
            least += lower[cells[place]]
            if upper[cells[place]] >= FREE:
                free += 1
            else:
                most += upper[cells[place]]
        if least > high[total] or (free == 0 and most < low[total]):
            wrong[total] = True
            continue
        for place in range(start[total], start[total + 1]):
            cell = cells[place]
            if lower[cell] == upper[cell]:
                continue
            is_free = upper[cell] >= FREE
            bottom, top = lower[cell], upper[cell]
            if free == 0:
                bottom = max(bottom, low[total] - (most - upper[cell]))
            elif free == 1 and is_free:
                bottom = max(bottom, low[total] - most)
            top = min(top, high[total] - (least - lower[cell]))
            if bottom == lower[cell] and top == upper[cell]:
                continue
            if bottom > top:
                wrong[total] = True
                continue
            if bottom == top:
                by[cell], when[cell] = total, step
            least += bottom - lower[cell]
            if is_free and top < FREE:
                free -= 1
                most += top
            elif not is_free:
                most += top - upper[cell]
            lower[cell], upper[cell] = bottom, top
            for at in range(begin[cell], begin[cell + 1]):
                other = totals[at]
                if not waiting[other]:
                    waiting[other] = True
                    queue[(head + length) % n] = other
                    length += 1
