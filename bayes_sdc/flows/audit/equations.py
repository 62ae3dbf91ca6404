"""Bounds of hidden numbers in equations some of whose totals are hidden themselves.

Where every total is known, :mod:`bayes_sdc.flows.audit.solve` handles many cells. Here a total can
be unknown as well, and be a part of the next: 40 = 30 + x, x = 4 + y. Each equation tightens the
bounds of its own numbers until nothing changes; numbers tied together by several equations are then
settled by integer programs, block by block.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from bayes_sdc.flows.audit.propagation import FREE
from bayes_sdc.flows.table.families import Ints

LARGEST_BLOCK = 300  # hidden numbers of a block that is settled by programs
SECONDS = 2.0  # for each program


class Equation(NamedTuple):
    """A sum: the hidden parts, less the hidden total if there is one, lie between two numbers."""

    parts: Ints  # positions of the hidden parts
    total: int  # position of the hidden total, or -1
    low: int
    high: int
    words: str  # what it says, as in "total of origin A: 40 minus 30"

    @property
    def members(self) -> Ints:
        """Positions of all its hidden numbers."""
        return np.append(self.parts, self.total) if self.total >= 0 else self.parts

    @property
    def signs(self) -> Ints:
        """Sign of each."""
        signs = np.ones(len(self.parts) + (self.total >= 0), dtype=np.int64)
        if self.total >= 0:
            signs[-1] = -1
        return signs


class Bounded(NamedTuple):
    """Bounds of hidden numbers, and what pins them."""

    lower: Ints
    upper: Ints  # FREE where there is none
    exact: np.ndarray  # whether both are reached by numbers that fit
    why: list[str]  # of those that are pinned by equations
    wrong: list[str]  # equations that no numbers within the bounds fit; they are left out


def bound_by_equations(lower: Ints, upper: Ints, equations: Sequence[Equation]) -> Bounded:
    """Find the least and the most of hidden whole numbers that fit all equations.

    Parameters
    ----------
    lower, upper : array of int, shape (number,)
        Range of each, whatever the equations; ``FREE`` for no upper bound.
    equations : sequence of Equation
        Those that no numbers within the bounds fit are left out, and named in ``wrong``.

    Examples
    --------
    40 = 30 + x, and x = 4 + y:

    >>> none = np.zeros(0, dtype=np.int64)
    >>> equations = [
    ...     Equation(np.array([0]), -1, 10, 10, "40 minus 30"),
    ...     Equation(np.array([1]), 0, -4, -4, "x minus 4"),
    ... ]
    >>> found = bound_by_equations(np.zeros(2, int), np.full(2, FREE), equations)
    >>> found.lower.tolist(), found.upper.tolist()
    ([10, 6], [10, 6])
    """
    lower, upper = lower.astype(np.int64), upper.astype(np.int64)
    why, wrong = [""] * len(lower), set[int]()
    again = True
    while again:
        again = False
        for number, equation in enumerate(equations):
            if number in wrong:
                continue
            step = _tightened(equation, lower, upper)
            if step is None:
                wrong.add(number)
                continue
            bottom, top = step
            members = equation.members
            if (bottom == lower[members]).all() and (top == upper[members]).all():
                continue
            again = True
            for place in np.flatnonzero((bottom == top) & (lower[members] < upper[members])):
                why[members[place]] = _said(equation, int(place), bottom, top)
            lower[members], upper[members] = bottom, top
    kept = [each for number, each in enumerate(equations) if number not in wrong]
    exact = _by_programs(lower, upper, kept, why)
    return Bounded(lower, upper, exact, why, [equations[n].words for n in sorted(wrong)])


def _tightened(equation: Equation, lower: Ints, upper: Ints) -> tuple[Ints, Ints] | None:
    """Bounds of the numbers of one equation, or None if nothing fits."""
    members, sign = equation.members, equation.signs
    bottom, top = lower[members], upper[members]
    least = np.where(sign > 0, bottom, -top).astype(np.float64)  # exact: all below 2**53
    most = np.where(sign > 0, top, -bottom).astype(np.float64)
    least[(sign < 0) & (top >= FREE)] = -np.inf
    most[(sign > 0) & (top >= FREE)] = np.inf
    lows, highs = equation.low - _others(most), equation.high - _others(least)
    new_bottom = np.maximum(bottom, np.where(sign > 0, lows, -highs))
    new_top = np.minimum(np.where(top >= FREE, np.inf, top), np.where(sign > 0, highs, -lows))
    if (new_bottom > new_top).any() or not len(members):
        return None
    return new_bottom.astype(np.int64), np.where(np.isinf(new_top), FREE, new_top).astype(np.int64)


def _others(values: np.ndarray) -> np.ndarray:
    """Sum of all but each; infinite if another is."""
    infinite = np.isinf(values)
    finite = np.where(infinite, 0.0, values)
    rest: np.ndarray = finite.sum() - finite
    sign = np.inf if (values == np.inf).any() else -np.inf
    return np.where(infinite.sum() - infinite > 0, sign, rest)


def _said(equation: Equation, place: int, bottom: Ints, top: Ints) -> str:
    """What one equation says about a number that it pins."""
    others = np.arange(len(bottom)) != place
    found = [int(v) for v in bottom[others & (bottom == top)]]
    open_ones = int((others & (bottom < top)).sum())
    text = equation.words
    if found and len(found) <= 4:
        text += ", with " + " and ".join(f"{value:,}" for value in found) + " found"
    elif found:
        text += f", with {len(found):,} hidden numbers found that add up to {sum(found):,}"
    return text + (f"; {open_ones:,} more cannot change it" if open_ones else "")


def _by_programs(
    lower: Ints, upper: Ints, equations: Sequence[Equation], why: list[str]
) -> np.ndarray:
    """Settle blocks that several equations tie together; tell which bounds are exact: (number,)."""
    n = len(lower)
    exact = np.ones(n, dtype=bool)
    live = [e for e in equations if (lower[e.members] < upper[e.members]).any()]
    if not live:
        return exact
    at = np.concatenate([np.full(len(e.members), k) for k, e in enumerate(live)])
    of = np.concatenate([e.members for e in live])
    sign = np.concatenate([e.signs for e in live])
    open_ones = lower[of] < upper[of]
    joined = coo_array(
        (np.ones(int(open_ones.sum())), (at[open_ones], len(live) + of[open_ones])),
        shape=(len(live) + n, len(live) + n),
    )
    block = connected_components(joined, directed=False)[1]
    for number in np.unique(block[: len(live)]):
        rows = np.flatnonzero(block[: len(live)] == number)
        if len(rows) == 1:
            continue  # the bounds of a single sum are reached
        mine = np.isin(at, rows)
        cells, position = np.unique(of[mine], return_inverse=True)
        if len(cells) > LARGEST_BLOCK:
            exact[cells] = lower[cells] == upper[cells]
            continue
        matrix = np.zeros((len(rows), len(cells)))
        matrix[np.searchsorted(rows, at[mine]), position] = sign[mine]
        sums = LinearConstraint(matrix, [live[r].low for r in rows], [live[r].high for r in rows])
        for place, cell in enumerate(cells):
            if lower[cell] == upper[cell]:
                continue
            exact[cell] = _settled(sums, cells, place, lower, upper)
            if lower[cell] == upper[cell]:
                why[cell] = "together: " + "; ".join(live[r].words for r in rows[:4])
                why[cell] += f"; and {len(rows) - 4:,} more" if len(rows) > 4 else ""
    return exact


def _settled(sums: LinearConstraint, cells: Ints, place: int, lower: Ints, upper: Ints) -> bool:
    """Tighten one number's bounds in place; tell whether they are now reached."""
    cost = np.zeros(len(cells))
    cost[place] = 1.0
    top = np.where(upper[cells] >= FREE, np.inf, upper[cells])
    reached = True
    for sign in (1, -1):
        found = milp(
            sign * cost, constraints=sums, bounds=Bounds(lower[cells], top),
            integrality=np.ones(len(cells), dtype=np.int64), options={"time_limit": SECONDS},
        )  # fmt: skip
        if found.status == 0:
            value = round(found.x[place])
            (lower if sign > 0 else upper)[cells[place]] = value
        elif not (found.status in (3, 4) and sign < 0 and top[place] == np.inf):
            reached = False
    return reached
