"""Exact bounds of hidden cells given totals: propagation, then network, then programs."""

from typing import NamedTuple

import numpy as np

from bayes_sdc.flows.audit.extremes import extremes
from bayes_sdc.flows.audit.network import (
    LARGEST_FLOW,
    Network,
    complete,
    make_network,
    some_flow,
    two_trees,
)
from bayes_sdc.flows.audit.programs import (
    blocks_of,
    extremes_by_program,
    part_of,
    refined,
    some_counts,
)
from bayes_sdc.flows.audit.propagation import Propagated, System, propagate
from bayes_sdc.flows.table.families import Ints


class Solved(NamedTuple):
    """Bounds of all cells, and what is needed to say where they come from."""

    lower: Ints  # (cell,)
    upper: Ints  # (cell,) FREE where there is none
    exact: np.ndarray  # (cell,) whether some table reaches both
    propagated: Propagated
    network: Network
    flow: Ints  # (arc,) of the network: one table that fits


def fits(system: System) -> np.ndarray:
    """Whether each block has counts that fit its totals: (block,) of bool.

    Blocks are numbered as by :func:`bayes_sdc.flows.audit.programs.blocks_of`.
    """
    block = blocks_of(system)
    good = np.ones(int(block.max(initial=-1)) + 1, dtype=bool)
    wrong = propagate(system).wrong
    for total in wrong:
        good[block[system.cells[system.start[total] : system.start[total + 1]]]] = False
    if good.all() and _start(system) is not None:
        return good
    for number in np.flatnonzero(good):
        part = part_of(system, np.flatnonzero(block == number))
        good[number] = _start(part) is not None
    return good


def _start(system: System) -> Ints | None:
    """Find counts that fit, or None."""
    found = propagate(system)
    if len(found.wrong):
        return None
    chains, left_over = two_trees(system)
    if left_over or int(system.high.sum() + found.lower.sum()) > LARGEST_FLOW:
        return some_counts(system)
    network = make_network(system, found.lower, found.upper, chains)
    flow = some_flow(network)
    return None if flow is None else flow[: len(system.lower)]


def solve(system: System, counts: Ints | None = None) -> Solved:
    """Find the least and the most of each cell over all whole counts that fit the totals.

    Parameters
    ----------
    system : System
        Cells and totals, which must fit.
    counts : array of int, shape (cell,), optional
        Counts that fit, such as the true ones; by default some are found.
    """
    found = propagate(system)
    chains, left_over = two_trees(system)
    network = make_network(system, found.lower, found.upper, chains)
    start = _start(system) if counts is None else counts
    if start is None:
        raise ValueError("no counts fit these totals")  # a caller asks `fits` first
    flow = complete(system, network, start)
    lower, upper = extremes(network, flow, found.lower, found.upper)
    if not left_over:
        return Solved(lower, upper, np.ones(len(lower), dtype=bool), found, network, flow)
    inner = _kept_totals(system, lower, upper, start, network, left_over)
    lower, upper, exact = extremes_by_program(system, inner, (lower, upper))
    return Solved(lower, upper, exact, found, network, flow)


def _kept_totals(
    system: System,
    lower: Ints,
    upper: Ints,
    start: Ints,
    network: Network,
    left_over: list[int],
) -> tuple[Ints, Ints]:
    """Bounds reached by changes that leave every total as it is."""
    cells = len(start)
    ends = refined(
        (network.tail[:cells], network.head[:cells]), [system.of[family] for family in left_over]
    )
    within = [np.asarray(end) for end in ends]
    offset = int(within[0].max(initial=-1)) + 1
    inside = Network(
        tail=within[0],
        head=within[1] + offset,
        lower=lower,
        upper=upper,
        nodes=offset + int(within[1].max(initial=-1)) + 1,
        total_of_arc=np.full(cells, -1),
        total_of_node=np.zeros(0, dtype=np.int64),
    )
    return extremes(inside, start, lower, upper)
