r"""Random rounding whose table adds up: cells and totals are rounded to neighbouring multiples.

Counts in units of the base flow in a circle: through the total of the left block, the cell, the
total of the right block and the grand total. Arcs that are not whole lie on cycles of such arcs,
because every node balances. Along one of them the fractions are pushed one way or the other until
an arc is whole, each way with a probability that leaves all expectations as they are. The work ends
when every arc is whole: cells and totals are rounded to a neighbour, the table adds up, and each
released count has the true one as its mean.

References
----------
L. H. Cox, "A constructive procedure for unbiased controlled rounding", Journal of the American
Statistical Association 82, 1987, doi:10.1080/01621459.1987.10478455.
"""

import numba
import numpy as np

from bayes_sdc.errors import InputError


def controlled_rounding(
    left: np.ndarray,
    right: np.ndarray,
    counts: np.ndarray,
    *,
    base: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Round cells at random so that the totals of both kinds are rounded to neighbours too.

    Parameters
    ----------
    left, right : array of int, shape (cell,)
        Blocks of the totals, each numbered from 0.
    counts : array of int, shape (cell,)
        True counts, 0 or more.
    base : int
        2 or more.
    rng : Generator
        Source of all randomness.

    Returns
    -------
    array of int, shape (cell,)
        Multiples of the base; the mean of each over repetitions is the true count.

    Raises
    ------
    InputError
        If the base is below 2.

    Examples
    --------
    >>> cells = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> found = controlled_rounding(*cells, np.array([1, 2, 2, 1]), base=3,
    ...                             rng=np.random.default_rng(1))
    >>> int(found[0] + found[1]), int(found[0] + found[2])
    (3, 3)
    """
    if base < 2:
        raise InputError(f"base must be 2 or more, or nothing is rounded; it is {base}")
    n_left, n_right = int(left.max()) + 1, int(right.max()) + 1
    source, sink = n_left + n_right, n_left + n_right + 1
    sums = np.bincount(left, counts, n_left), np.bincount(right, counts, n_right)
    tail = np.concatenate(
        [left, np.full(n_left, source), n_left + np.arange(n_right), [sink]]
    ).astype(np.int64)
    head = np.concatenate(
        [n_left + right, np.arange(n_left), np.full(n_right, sink), [source]]
    ).astype(np.int64)
    whole = np.concatenate([counts, *sums, [counts.sum()]]).astype(np.int64)
    rest = whole % base  # in units of 1 / base, exactly
    ends = np.concatenate([tail, head])
    order = np.argsort(ends, kind="stable")
    start = np.searchsorted(ends[order], np.arange(sink + 2)).astype(np.int64)
    _push_to_wholes(rng, tail, head, start, (order % len(tail)).astype(np.int64), rest, base)
    n = len(counts)
    return np.asarray(counts - counts % base + rest[:n], dtype=np.int64)


@numba.njit(cache=True, nogil=True)
def _push_to_wholes(
    rng: np.random.Generator,
    tail: np.ndarray,
    head: np.ndarray,
    start: np.ndarray,
    incident: np.ndarray,
    rest: np.ndarray,
    base: int,
) -> None:
    """Push along cycles of arcs with 0 < rest < base until none is left; in place."""
    nodes = len(start) - 1
    place = np.full(nodes, -1)
    path, nodes_of = np.empty(nodes + 2, np.int64), np.empty(nodes + 2, np.int64)
    at = start[:-1].copy()  # arcs of a node before this one are whole
    for first in range(len(rest)):
        while 0 < rest[first] < base:
            length, node, came = 0, tail[first], -1
            while place[node] < 0:
                place[node], nodes_of[length] = length, node
                k = at[node]
                while k < start[node + 1]:
                    arc = incident[k]
                    if 0 < rest[arc] < base and arc != came:
                        break
                    if k == at[node] and not 0 < rest[arc] < base:
                        at[node] += 1
                    k += 1
                arc = incident[k]
                path[length], came = arc, arc
                node = head[arc] if tail[arc] == node else tail[arc]
                length += 1
            begin = place[node]
            up, down = base, base
            for k in range(begin, length):
                arc = path[k]
                if tail[arc] == nodes_of[k]:
                    up, down = min(up, base - rest[arc]), min(down, rest[arc])
                else:
                    up, down = min(up, rest[arc]), min(down, base - rest[arc])
            push = up if rng.random() * (up + down) < down else -down
            for k in range(begin, length):
                arc = path[k]
                rest[arc] += push if tail[arc] == nodes_of[k] else -push
            for k in range(length):
                place[nodes_of[k]] = -1
