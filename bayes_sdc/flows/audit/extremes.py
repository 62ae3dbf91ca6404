"""Least and most of every hidden cell: what can be pushed around it in the residual network.

A cell can grow as long as a way leads back from its head to its tail, and shrink as long as one
leads the other way (:mod:`bayes_sdc.flows.audit.network`).
"""

import numpy as np

from bayes_sdc.flows.audit.network import Network, incidence, unpinned
from bayes_sdc.flows.model.hyperpriors import compiled
from bayes_sdc.flows.table.families import Ints


def extremes(
    network: Network, flow: Ints, outer_lower: Ints, outer_upper: Ints
) -> tuple[Ints, Ints]:
    """Find the least and the most of every cell over all tables that fit.

    Parameters
    ----------
    network : Network
        The network.
    flow : array of int, shape (arc,)
        One table that fits.
    outer_lower, outer_upper : array of int, shape (cell,)
        Bounds that hold: a search ends when it meets them.

    Returns
    -------
    lower, upper : array of int, shape (cell,)
        Exact.
    """
    free = np.flatnonzero(unpinned(network, flow) & (network.tail != network.head))
    cells = free[free < len(outer_lower)]
    lower, upper = flow[: len(outer_lower)].copy(), flow[: len(outer_lower)].copy()
    tail, head = network.tail[free], network.head[free]
    loops = np.flatnonzero((network.tail == network.head)[: len(outer_lower)])
    lower[loops], upper[loops] = outer_lower[loops], outer_upper[loops]
    if len(cells) == 0:
        return lower, upper
    start, incident = incidence(tail, head, network.nodes)
    least, most = flow[free].copy(), flow[free].copy()
    _extremes(
        tail, head, flow[free].copy(), network.lower[free], network.upper[free], start, incident,
        outer_lower[cells], outer_upper[cells], least, most,
    )  # fmt: skip
    lower[cells], upper[cells] = least[: len(cells)], most[: len(cells)]
    return lower, upper


@compiled
def _extremes(
    tail: Ints,
    head: Ints,
    flow: Ints,
    lower: Ints,
    upper: Ints,
    start: Ints,
    incident: Ints,
    outer_lower: Ints,
    outer_upper: Ints,
    least: Ints,
    most: Ints,
) -> None:
    """Push what can be pushed around each cell, up and then down.

    Every table on the way fits, so what it shows of other cells saves them a search. The table is
    not put back: the search can continue from any that fits.
    """
    nodes = len(start) - 1
    seen = np.zeros((2, nodes), dtype=np.int64)
    via = np.zeros((2, nodes), dtype=np.int64)
    queue = np.zeros((2, nodes), dtype=np.int64)
    stamp = 0
    for cell in range(len(outer_lower)):
        while most[cell] < outer_upper[cell]:
            stamp += 1
            meet = _search(
                head[cell], tail[cell], cell, stamp,
                tail, head, flow, lower, upper, start, incident, seen, via, queue,
            )  # fmt: skip
            if meet < 0:
                break
            room = _push(
                meet, head[cell], tail[cell], upper[cell] - flow[cell],
                tail, head, flow, lower, upper, via, least, most,
            )  # fmt: skip
            flow[cell] += room
            most[cell] = max(most[cell], flow[cell])
        while least[cell] > outer_lower[cell]:
            stamp += 1
            meet = _search(
                tail[cell], head[cell], cell, stamp,
                tail, head, flow, lower, upper, start, incident, seen, via, queue,
            )  # fmt: skip
            if meet < 0:
                break
            room = _push(
                meet, tail[cell], head[cell], flow[cell] - lower[cell],
                tail, head, flow, lower, upper, via, least, most,
            )  # fmt: skip
            flow[cell] -= room
            least[cell] = min(least[cell], flow[cell])


@compiled
def _search(
    source: int,
    sink: int,
    barred: int,
    stamp: int,
    tail: Ints,
    head: Ints,
    flow: Ints,
    lower: Ints,
    upper: Ints,
    start: Ints,
    incident: Ints,
    seen: np.ndarray,
    via: np.ndarray,
    queue: np.ndarray,
) -> int:
    """Look for a way in the residual network from both ends, and return where they meet, or -1.

    The end that has looked at fewer arcs goes on: where there is no way, one of them can usually
    reach few places.
    """
    seen[0, source] = stamp
    seen[1, sink] = stamp
    queue[0, 0] = source
    queue[1, 0] = sink
    front = np.zeros(2, dtype=np.int64)
    back = np.ones(2, dtype=np.int64)
    work = np.zeros(2, dtype=np.int64)
    while True:
        end = 0 if work[0] <= work[1] else 1
        if front[end] == back[end]:
            return -1
        node = queue[end, front[end]]
        front[end] += 1
        work[end] += start[node + 1] - start[node]
        for place in range(start[node], start[node + 1]):
            arc = incident[place]
            if arc == barred:
                continue
            leaves = tail[arc] == node
            other = head[arc] if leaves else tail[arc]
            if seen[end, other] == stamp:
                continue
            # seen from the sink the arcs are taken the other way round
            if leaves == (end == 0):
                if flow[arc] >= upper[arc]:
                    continue
            elif flow[arc] <= lower[arc]:
                continue
            seen[end, other] = stamp
            via[end, other] = arc
            if seen[1 - end, other] == stamp:
                return int(other)
            queue[end, back[end]] = other
            back[end] += 1


@compiled
def _push(
    meet: int,
    source: int,
    sink: int,
    room: int,
    tail: Ints,
    head: Ints,
    flow: Ints,
    lower: Ints,
    upper: Ints,
    via: np.ndarray,
    least: Ints,
    most: Ints,
) -> int:
    """Push as much as fits along the way that was found; return how much."""
    for sweep in range(2):
        for end in range(2):
            node, last = meet, source if end == 0 else sink
            while node != last:
                arc = via[end, node]
                # towards the source every arc of the way ends here, towards the sink it begins
                forward = (head[arc] == node) == (end == 0)
                if sweep == 0:
                    room = min(room, upper[arc] - flow[arc] if forward else flow[arc] - lower[arc])
                else:
                    flow[arc] += room if forward else -room
                    most[arc] = max(most[arc], flow[arc])
                    least[arc] = min(least[arc], flow[arc])
                node = tail[arc] if head[arc] == node else head[arc]
    return room
