"""Hidden cells as arcs of a network: what can flow in a circle can change, and nothing else can.

Totals of two kinds, such as by origin and by destination, make each cell an arc from one total to
another, and a table that fits is a flow. Coarser totals of either kind are further nodes above the
finer ones. The arcs to them carry what is left open; exact totals leave nothing open. Two tables
that fit differ by circles of the *residual* network, which has an arc forward wherever a count can
grow and an arc back wherever it can shrink.

References
----------
D. Gusfield, "A graph theoretic approach to statistical data security", SIAM Journal on Computing
17, 1988, doi:10.1137/0217034.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, maximum_flow

from bayes_sdc.flows.audit.propagation import System
from bayes_sdc.flows.model.hyperpriors import compiled
from bayes_sdc.flows.table.families import Ints

LARGEST_FLOW = 2**31 - 1  # scipy's maximum flow counts in 32 bits


class Network(NamedTuple):
    """Arcs between totals; the cells come first, then the arcs between totals."""

    tail: Ints  # (arc,)
    head: Ints  # (arc,)
    lower: Ints  # (arc,)
    upper: Ints  # (arc,)
    nodes: int
    total_of_arc: Ints  # (arc,) position of the total that an arc carries; -1 for cells
    total_of_node: Ints  # (node,) position of the total that a node balances; -1 for the rest


def two_trees(system: System) -> tuple[list[tuple[int, int]], list[int]]:
    """Arrange families in two chains, each of finer totals within coarser ones.

    Returns
    -------
    list of (family, side), list of family
        Those in the chains, from fine to coarse; and those that fit in neither. A family whose
        totals are sums of exact totals of another says nothing new and is in no list.
    """
    order = sorted(range(len(system.of)), key=lambda f: (-len(np.unique(system.of[f])), f))
    exact = system.low == system.high
    top = [np.full(len(system.lower), -1), np.full(len(system.lower), -1)]
    kept: list[tuple[int, int]] = []
    left_over: list[int] = []
    for family in order:
        of = system.of[family]
        if any(_follows(of, system.of[other], exact) for other, _ in kept):
            continue
        side = next((s for s in (0, 1) if _nested(top[s], of)), None)
        if side is None:
            left_over.append(family)
            continue
        kept.append((family, side))
        top[side] = np.where(of >= 0, of, top[side])
    return kept, left_over


def _nested(fine: Ints, coarse: Ints) -> bool:
    """Whether every fine total lies inside one coarse total, or outside all of them."""
    inside = fine >= 0
    if not inside.any():
        return True
    fine, coarse = fine[inside], coarse[inside]
    order = np.argsort(fine, kind="stable")
    same = fine[order][1:] == fine[order][:-1]
    return not (same & (coarse[order][1:] != coarse[order][:-1])).any()


def _follows(coarse: Ints, fine: Ints, exact: np.ndarray) -> bool:
    """Whether all coarse totals are sums of exact fine totals."""
    inside = coarse >= 0
    if not (fine[inside] >= 0).all() or not exact[np.unique(coarse[inside])].all():
        return False
    return bool(exact[np.unique(fine[inside])].all()) and _nested(fine, coarse)


def make_network(
    system: System, lower: Ints, upper: Ints, chains: Sequence[tuple[int, int]]
) -> Network:
    """Build the network of the families in the two chains."""
    cells = len(lower)
    ends = [np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=np.int64)]  # node 0: no total
    top = [np.full(cells, -1), np.full(cells, -1)]
    node_of = np.zeros(len(system.low), dtype=np.int64)
    nodes = 1
    parent = [np.zeros(len(system.low), dtype=np.int64), np.zeros(len(system.low), dtype=np.int64)]
    side_of = np.full(len(system.low), -1)
    for family, side in chains:
        of = system.of[family]
        totals = np.unique(of[of >= 0])
        node_of[totals] = nodes + np.arange(len(totals))
        side_of[totals] = side
        nodes += len(totals)
        below = (of >= 0) & (top[side] >= 0)
        parent[side][top[side][below]] = node_of[of[below]]
        hangs = (of >= 0) & (top[side] < 0)
        ends[side][hangs] = node_of[of[hangs]]
        top[side] = np.where(of >= 0, of, top[side])
    used = np.flatnonzero(side_of >= 0)
    above = np.where(side_of[used] == 0, parent[0][used], parent[1][used])
    outward = side_of[used] == 0
    total_of_node = np.full(nodes, -1)
    total_of_node[node_of[used]] = used
    return Network(
        tail=np.concatenate([ends[0], np.where(outward, above, node_of[used])]),
        head=np.concatenate([ends[1], np.where(outward, node_of[used], above)]),
        lower=np.concatenate([lower, system.low[used]]),
        upper=np.concatenate([upper, system.high[used]]),
        nodes=nodes,
        total_of_arc=np.concatenate([np.full(cells, -1), used]),
        total_of_node=total_of_node,
    )


def some_flow(network: Network) -> Ints | None:
    """Find counts within all bounds that balance every node, or None if there are none.

    The whole flow must be at most ``LARGEST_FLOW``.
    """
    excess = np.zeros(network.nodes, dtype=np.int64)
    np.add.at(excess, network.head, network.lower)
    np.subtract.at(excess, network.tail, network.lower)
    room = network.upper - network.lower
    need = int(excess[excess > 0].sum())
    # a node in the middle of each arc, because arcs can have the same ends
    arcs = len(network.tail)
    middle = network.nodes + np.arange(arcs)
    source, sink = network.nodes + arcs, network.nodes + arcs + 1
    gives, takes = np.flatnonzero(excess > 0), np.flatnonzero(excess < 0)
    rows = np.concatenate([network.tail, middle, np.full(len(gives), source), takes])
    columns = np.concatenate([middle, network.head, gives, np.full(len(takes), sink)])
    size = np.concatenate([room, room, excess[gives], -excess[takes]])
    capacity = csr_array(
        (np.minimum(size, need).astype(np.int32), (rows, columns)), shape=(sink + 1, sink + 1)
    )
    found = maximum_flow(capacity, source, sink)
    if found.flow_value < need:
        return None
    flow = csr_array(found.flow)
    through = np.asarray(flow[network.tail, middle]).ravel()
    return np.asarray(network.lower + through, dtype=np.int64)


def complete(system: System, network: Network, counts: Ints) -> Ints:
    """Add to the counts of the cells what the arcs between totals carry."""
    sums = np.zeros(len(system.low), dtype=np.int64)
    for of in system.of:
        np.add.at(sums, of[of >= 0], counts[of >= 0])
    return np.concatenate([counts, sums[network.total_of_arc[len(counts) :]]])


def unpinned(network: Network, flow: Ints) -> np.ndarray:
    """Find the arcs whose flow is not the same in all tables that fit: (arc,) of bool.

    An arc is free if it lies on a circle of the residual network: both its ends lie in one strongly
    connected part, and it is not a bridge of that part. All others are pinned. Time grows with the
    number of arcs.
    """
    up, down = flow < network.upper, flow > network.lower
    rows = np.concatenate([network.tail[up], network.head[down]])
    columns = np.concatenate([network.head[up], network.tail[down]])
    residual = csr_array(
        (np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(network.nodes, network.nodes)
    )
    part = connected_components(residual, directed=True, connection="strong")[1]
    inside = (up | down) & (part[network.tail] == part[network.head])
    arcs = np.flatnonzero(inside & (network.tail != network.head))
    tail, head = network.tail[arcs], network.head[arcs]
    start, incident = incidence(tail, head, network.nodes)
    free = inside.copy()
    free[arcs[_bridges(tail, head, start, incident)]] = False
    return np.asarray(free)


def incidence(tail: Ints, head: Ints, nodes: int) -> tuple[Ints, Ints]:
    """List the arcs at each node: where those of a node begin, and the arcs."""
    ends = np.concatenate([tail, head])
    order = np.argsort(ends, kind="stable")
    start = np.searchsorted(ends[order], np.arange(nodes + 1))
    return start.astype(np.int64), (order % max(len(tail), 1)).astype(np.int64)


@compiled
def _bridges(tail: Ints, head: Ints, start: Ints, incident: Ints) -> np.ndarray:
    """Mark the arcs without which, taken both ways, a connected part falls apart.

    References
    ----------
    R. E. Tarjan, "A note on finding the bridges of a graph", Information Processing Letters 2,
    1974, doi:10.1016/0020-0190(74)90003-9.
    """
    nodes = len(start) - 1
    bridge = np.zeros(len(tail), dtype=np.bool_)
    number = np.full(nodes, -1)
    lowest = np.zeros(nodes, dtype=np.int64)
    entered = np.full(nodes, -1)  # arc by which a node was first reached
    place = start[:nodes].copy()
    stack = np.zeros(nodes, dtype=np.int64)
    visited = 0
    for root in range(nodes):
        if number[root] >= 0:
            continue
        number[root] = lowest[root] = visited
        visited += 1
        stack[0], depth = root, 1
        while depth > 0:
            node = stack[depth - 1]
            if place[node] < start[node + 1]:
                arc = incident[place[node]]
                place[node] += 1
                if arc == entered[node]:
                    continue
                other = head[arc] if tail[arc] == node else tail[arc]
                if number[other] >= 0:
                    lowest[node] = min(lowest[node], number[other])
                    continue
                number[other] = lowest[other] = visited
                visited += 1
                entered[other] = arc
                stack[depth] = other
                depth += 1
                continue
            depth -= 1
            if depth > 0:
                below = stack[depth - 1]
                lowest[below] = min(lowest[below], lowest[node])
                if lowest[node] > number[below]:
                    bridge[entered[node]] = True
    return bridge
