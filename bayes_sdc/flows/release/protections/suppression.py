"""Suppression with exact totals: further cells that must go, and filling by proportional fitting.

Small cells are hidden and their totals published, so the total of a single hidden cell reveals it.
A hidden cell is safe from that when it lies on a cycle of hidden cells along which counts can move.
For each one that does not, the cheapest way between its two totals through further cells is hidden
too: the cost of a cell is its count.

What is hidden can be filled by iterative proportional fitting: even counts, scaled to the totals of
one kind and the other in turn. It follows from the totals alone, so it reveals no more than they
do.

References
----------
L. H. Cox, "Network models for complementary cell suppression", Journal of the American Statistical
Association 90, 1995, doi:10.1080/01621459.1995.10476629. W. E. Deming, F. F. Stephan, "On a least
squares adjustment of a sampled frequency table", Annals of Mathematical Statistics 11, 1940,
doi:10.1214/aoms/1177731829.
"""

import heapq

import numpy as np

ENOUGH, ROUNDS = 1e-9, 1000  # largest relative error of a total, and most rounds


def secondary_cells(
    left: np.ndarray, right: np.ndarray, counts: np.ndarray, hidden: np.ndarray
) -> np.ndarray:
    """Choose further cells to hide, so that each hidden one lies on a cycle of hidden cells.

    Parameters
    ----------
    left, right : array of int, shape (cell,)
        Totals of each cell, all cells of the table.
    counts : array of int, shape (cell,)
        Their counts, the cost of hiding them.
    hidden : array of bool, shape (cell,)
        Cells that are hidden in any case.

    Returns
    -------
    array of bool, shape (cell,)
        Further cells; none of ``hidden``.

    Notes
    -----
    A cell that no other way joins to its totals stays alone: only fewer totals help there.

    Examples
    --------
    >>> left, right = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 1, 2])
    >>> counts = np.array([3, 40, 90, 50, 20, 80])
    >>> secondary_cells(left, right, counts, counts < 10).astype(int).tolist()
    [0, 1, 0, 1, 1, 0]
    """
    nodes = int(left.max()) + int(right.max()) + 2
    head = right + int(left.max()) + 1
    gone = hidden.copy()
    at: list[list[int]] = [[] for _ in range(nodes)]
    for cell, (a, b) in enumerate(zip(left.tolist(), head.tolist(), strict=True)):
        at[a].append(cell)
        at[b].append(cell)
    for cell in np.flatnonzero(hidden).tolist():
        for step in _cheapest_way(cell, left, head, counts, gone, at):
            gone[step] = True
    return np.asarray(gone & ~hidden)


def _cheapest_way(
    cell: int,
    left: np.ndarray,
    head: np.ndarray,
    counts: np.ndarray,
    gone: np.ndarray,
    at: list[list[int]],
) -> list[int]:
    """Cells of the cheapest way between the totals of a cell without it; none if there is none."""
    start, goal = int(left[cell]), int(head[cell])
    cost, came = {start: 0}, {start: -1}
    queue = [(0, start)]
    while queue:
        so_far, node = heapq.heappop(queue)
        if node == goal:
            break
        if so_far > cost[node]:
            continue
        for step in at[node]:
            if step == cell:
                continue
            other = int(head[step]) if int(left[step]) == node else int(left[step])
            total = so_far + (0 if gone[step] else int(counts[step]))
            if total < cost.get(other, total + 1):
                cost[other], came[other] = total, step
                heapq.heappush(queue, (total, other))
    way, node = [], goal if goal in came else start
    while came[node] >= 0:
        step = came[node]
        way.append(step)
        node = int(left[step]) if int(head[step]) == node else int(head[step])
    return way


def proportional_fit(
    left: np.ndarray, right: np.ndarray, left_sums: np.ndarray, right_sums: np.ndarray
) -> np.ndarray:
    """Fill hidden cells by iterative proportional fitting of even counts to their totals.

    Parameters
    ----------
    left, right : array of int, shape (cell,)
        Totals of each hidden cell.
    left_sums, right_sums : array of float
        What the hidden cells of each total add up to.

    Returns
    -------
    array of float, shape (cell,)
        0 or more; the totals are met where some table of positive counts meets them.

    Examples
    --------
    >>> left, right = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> proportional_fit(left, right, np.array([3.0, 9.0]), np.array([4.0, 8.0])).round(6).tolist()
    [1.0, 2.0, 3.0, 6.0]
    """
    x = np.ones(len(left))
    for _ in range(ROUNDS):
        for of, sums in ((left, left_sums), (right, right_sums)):
            now = np.bincount(of, x, len(sums))
            x = x * np.divide(sums, now, out=np.zeros(len(sums)), where=now > 0)[of]
        off = np.abs(np.bincount(left, x, len(left_sums)) - left_sums)
        if (off <= ENOUGH * np.maximum(left_sums, 1.0)).all():
            break
    return x
