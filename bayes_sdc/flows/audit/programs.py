"""Bounds by integer programs, where the totals are of more than two kinds that cross.

Totals by origin, by destination and by group at once form no network. Two networks enclose what
they allow: one without the totals that fit in no chain, whose bounds hold; and one in which counts
change only where all totals stay as they are, whose bounds are reached. Where both agree they are
exact; for the rest one program per cell and side is solved, as far as the budget allows.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bayes_sdc.flows.audit.propagation import System
from bayes_sdc.flows.table.families import Ints

LARGEST_BLOCK = 1000  # cells of a block whose programs are solved, each in some 20 ms
BUDGET = 400_000  # cells of all programs together
NODES = 1000  # of the search for one program; beyond, its own bound is used, not the tightest


def blocks_of(system: System) -> Ints:
    """Number the blocks of cells that totals join: (cell,)."""
    cells = len(system.lower)
    total = np.repeat(np.arange(len(system.low)), np.diff(system.start))
    joined = csr_array(
        (np.ones(len(total), dtype=np.int8), (system.cells, cells + total)),
        shape=(cells + len(system.low),) * 2,
    )
    block = connected_components(joined, directed=False)[1][:cells]
    return np.unique(block, return_inverse=True)[1].astype(np.int64)


def part_of(system: System, cells: Ints) -> System:
    """Keep some cells, which must be whole blocks, and the totals that they are in."""
    position = np.full(len(system.lower), -1)
    position[cells] = np.arange(len(cells))
    owner = np.repeat(np.arange(len(system.low)), np.diff(system.start))
    inside = position[system.cells] >= 0
    totals, owner = np.unique(owner[inside], return_inverse=True)
    renumbered = np.full(len(system.low) + 1, -1)  # the last one means no total
    renumbered[totals] = np.arange(len(totals))
    return System(
        lower=system.lower[cells],
        upper=system.upper[cells],
        low=system.low[totals],
        high=system.high[totals],
        start=np.searchsorted(owner, np.arange(len(totals) + 1)).astype(np.int64),
        cells=position[system.cells[inside]],
        of=[renumbered[of[cells]] for of in system.of],
    )


def _constraint(system: System) -> list[LinearConstraint]:
    if len(system.low) == 0:
        return []
    matrix: Any = csr_array(
        (np.ones(len(system.cells)), system.cells, system.start),
        shape=(len(system.low), len(system.lower)),
    )
    return [LinearConstraint(matrix, system.low, system.high)]


def some_counts(system: System) -> Ints | None:
    """Find counts that fit all totals, or None if there are none."""
    found = milp(
        np.zeros(len(system.lower)),
        constraints=_constraint(system),
        bounds=Bounds(system.lower, system.upper),
        integrality=np.ones(len(system.lower), dtype=np.int64),
    )
    return None if found.x is None else np.rint(found.x).astype(np.int64)


def extremes_by_program(
    system: System, inner: tuple[Ints, Ints], outer: tuple[Ints, Ints]
) -> tuple[Ints, Ints, np.ndarray]:
    """Close the gap between bounds that are reached and bounds that hold.

    Parameters
    ----------
    system : System
        Cells and totals.
    inner, outer : (lower, upper), each an array of int, shape (cell,)
        Bounds that tables reach, and bounds that all tables keep.

    Returns
    -------
    lower, upper : array of int, shape (cell,)
        Bounds that all tables keep.
    exact : array of bool, shape (cell,)
        Whether tables reach them too.
    """
    lower, upper = outer[0].copy(), outer[1].copy()
    sides = ((inner[0], lower, 1.0), (inner[1], upper, -1.0))
    exact = (inner[0] == lower) & (inner[1] == upper)
    block = blocks_of(system)
    sizes = np.bincount(block)
    budget = BUDGET
    for number in np.argsort(sizes, kind="stable"):
        cells = np.flatnonzero(block == number)
        if sizes[number] > LARGEST_BLOCK or exact[cells].all():
            continue
        part = part_of(system._replace(lower=lower, upper=upper), cells)
        for place, cell in enumerate(cells):
            solved = True
            for reached, bound, sign in sides:
                if reached[cell] == bound[cell]:
                    continue
                budget -= len(cells)
                if budget < 0:
                    return lower, upper, exact
                bound[cell], done = _extreme(part, place, sign, int(bound[cell]))
                solved &= done
            exact[cell] |= solved
    return lower, upper, exact


def _extreme(part: System, place: int, sign: float, known: int) -> tuple[int, bool]:
    """Least (sign 1) or most (-1) of one cell, and whether it was found."""
    cost = np.zeros(len(part.lower))
    cost[place] = sign
    found = milp(
        cost,
        constraints=_constraint(part),
        bounds=Bounds(part.lower, part.upper),
        integrality=np.ones(len(cost), dtype=np.int64),
        options={"node_limit": NODES},
    )
    if found.status == 0:
        return round(sign * found.fun), True
    bound = found.mip_dual_bound
    if bound is None or not np.isfinite(bound):
        return known, False
    # the dual bound holds even if the search did not finish
    tight = sign * np.ceil(bound - 1e-6)
    return int(max(tight, known) if sign > 0 else min(tight, known)), False


def refined(sides: Sequence[Ints], left_over: Sequence[Ints]) -> list[Ints]:
    """Split the totals of both sides by the totals that fit in no chain: (cell,) of parts.

    Counts that change within the parts only, and keep their sums, keep every total.
    """
    parts = []
    for side in sides:
        part = side
        for of in left_over:
            part = np.unique(part * (of.max() + 2) + of + 1, return_inverse=True)[1]
        parts.append(part.astype(np.int64))
    return parts
