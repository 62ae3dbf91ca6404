"""What pins a cell, in words: the shortest chain of totals that was found."""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bayes_sdc.flows.audit.network import unpinned
from bayes_sdc.flows.audit.propagation import System
from bayes_sdc.flows.audit.solve import Solved
from bayes_sdc.flows.table.families import Family, Ints

TERMS = 5  # numbers that are named one by one
LINKS = 3  # totals of a chain that are named one by one


class Reasons:
    """Says what pins the cells of one audit.

    Parameters
    ----------
    families : sequence of Family
        What is published.
    counts : array of int, shape (row,)
        Known counts of the table.
    hidden : array of bool, shape (row,)
        Which rows are cells.
    names : sequence of str
        Of the cells.
    system, solved
        What was solved, and the answer.
    """

    def __init__(
        self,
        families: Sequence[Family],
        counts: Ints,
        hidden: np.ndarray,
        names: Sequence[str],
        system: System,
        solved: Solved,
    ) -> None:
        self._families = families
        self._first = np.cumsum([0, *(len(family.labels) for family in families)])
        self._counts = counts
        self._names = names
        self._system = system
        self._solved = solved
        known = np.flatnonzero(~hidden & (counts != 0))
        self._known = [_sorted_by(family.of[known], known) for family in families]
        self._parts = _Parts(solved)

    def of(self, cell: int) -> str:
        """Say what pins a cell, which must be pinned."""
        if self._system.lower[cell] == self._system.upper[cell]:
            return f"can only be {self._system.lower[cell]:,}"
        if self._solved.propagated.by[cell] >= 0:
            return self._chain(cell)
        return self._cut(cell)

    def _chain(self, cell: int) -> str:
        """Name one total after the other, the last one first."""
        told: list[str] = []
        waiting, seen = [cell], {int(self._solved.propagated.by[cell])}
        more = 0
        while waiting:
            now = waiting.pop(0)
            total = int(self._solved.propagated.by[now])
            if len(told) < LINKS:
                start = "" if now == cell else f"{self._names[now]}: "
                told.append(start + self._step(now, total))
            else:
                more += 1
            for other in self._found_before(now, total):
                by = int(self._solved.propagated.by[other])
                if by not in seen and by >= 0:
                    seen.add(by)
                    waiting.append(other)
        if more:
            told.append(
                f"and so on with {more:,} more totals" if more > 1 else "and one more total"
            )
        return "; ".join(told)

    def _members(self, total: int) -> Ints:
        return self._system.cells[self._system.start[total] : self._system.start[total + 1]]

    def _found_before(self, cell: int, total: int) -> list[int]:
        """Cells of a total that other totals pinned before it pinned this cell."""
        found = self._solved.propagated
        members = self._members(total)
        earlier = (found.when[members] >= 0) & (found.when[members] < found.when[cell])
        return [int(c) for c in members[earlier & (found.by[members] != total)]]

    def _step(self, cell: int, total: int) -> str:
        """Say how one total pins a cell: what is subtracted, and which cells share the rest."""
        lower = self._solved.lower
        before = self._found_before(cell, total)
        members = self._members(total)
        given = np.isin(members, before) | (
            self._system.lower[members] == self._system.upper[members]
        )
        text = self._named(total) + self._minus_known(total)
        if before:
            values = [int(lower[c]) for c in before]
            text += (
                "".join(
                    f" minus {v:,} ({self._names[c]})" for v, c in zip(values, before, strict=True)
                )
                if len(before) <= TERMS
                else f" minus {sum(values):,} in {len(values):,} cells found before"
            )
        sharing = members[~given]
        if len(sharing) > 1:
            rest = int(lower[sharing].sum())
            side = "least" if lower[cell] == self._system.lower[cell] else "most"
            text += f" leaves {rest:,}, the {side} that {len(sharing):,} cells can be"
        return text

    def _named(self, total: int) -> str:
        family = int(np.searchsorted(self._first, total, side="right")) - 1
        own = total - int(self._first[family])
        return f"{self._families[family].called(own)}: {self._families[family].says(own)}"

    def _minus_known(self, total: int) -> str:
        family = int(np.searchsorted(self._first, total, side="right")) - 1
        start, rows = self._known[family]
        own = total - int(self._first[family])
        values = (
            self._counts[rows[start[own] : start[own + 1]]] if own + 1 < len(start) else rows[:0]
        )
        if len(values) <= TERMS:
            return "".join(f" minus {value:,}" for value in values)
        return f" minus {sum(map(int, values)):,} in {len(values):,} known counts"

    def _cut(self, cell: int) -> str:
        """Say which totals together pin a cell that none of them pins alone."""
        totals, cells = self._parts.around(cell)
        if not len(totals):
            return "all totals together"
        signs = [int(self._parts.side(t)) for t in totals]
        if len(totals) <= TERMS:
            words = [
                ("" if n == 0 else "plus " if s == signs[0] else "minus ") + self._named(t)
                for n, (t, s) in enumerate(zip(totals, signs, strict=True))
            ]
            text = " ".join(words)
        else:
            text = f"{len(totals):,} totals together"
        if len(cells) > 1:
            return f"{text}: leave {len(cells):,} cells no choice"
        return f"{text}, less what is known: leave only this cell"


class _Parts:
    """Parts of the network that are joined only by cells whose counts cannot change."""

    def __init__(self, solved: Solved) -> None:
        network = solved.network
        self._network = network
        free = unpinned(network, solved.flow)
        joined = csr_array(
            (np.ones(int(free.sum()), dtype=np.int8), (network.tail[free], network.head[free])),
            shape=(network.nodes, network.nodes),
        )
        self._part = connected_components(joined, directed=False)[1]
        size = np.bincount(self._part[network.total_of_node >= 0], minlength=network.nodes)
        self._size = size
        self._between = np.flatnonzero(
            (self._part[network.tail] != self._part[network.head]) & (network.lower < network.upper)
        )

    def around(self, cell: int) -> tuple[list[int], Ints]:
        """Totals of the smaller part at one end of a cell, and all cells that leave it."""
        network = self._network
        ends = [int(self._part[end[cell]]) for end in (network.tail, network.head)]
        root = int(self._part[0])
        choices = [end for end in set(ends) if end != root and ends[0] != ends[1]]
        if not choices:
            return [], self._between[:0]
        part = min(choices, key=lambda p: int(self._size[p]))
        nodes = np.flatnonzero(self._part == part)
        totals = network.total_of_node[nodes]
        leaves = self._between[
            (self._part[network.tail[self._between]] == part)
            | (self._part[network.head[self._between]] == part)
        ]
        return [int(t) for t in totals if t >= 0], leaves

    def side(self, total: int) -> int:
        """0 for totals whose cells leave them, 1 for those that cells enter."""
        arc = int(np.flatnonzero(self._network.total_of_arc == total)[0])
        node = int(np.flatnonzero(self._network.total_of_node == total)[0])
        return 0 if int(self._network.head[arc]) == node else 1


def _sorted_by(of: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """List rows by total: where those of each total begin, and the rows."""
    inside = of >= 0
    of, rows = of[inside], rows[inside]
    order = np.argsort(of, kind="stable")
    start = np.searchsorted(of[order], np.arange(int(of.max(initial=-1)) + 2))
    return start.astype(np.int64), rows[order]
