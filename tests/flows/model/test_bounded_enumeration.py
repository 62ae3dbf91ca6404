"""The promise of bounded steps, by enumeration: no release of any small table tells more.

Cells of a small table share a few parameters, so the posterior is a sum over a grid, and the
probability of every whole release is known for every true table. Each way of getting it wrong must
be seen by the same sums.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.flows.model.bounded import bounded, log_table, steps
from bayes_sdc.flows.table.bound import Bound
from bayes_sdc.flows.table.centres import bundled_shares, centres_of

TINY = 1e-9  # of rounding


class Grid(NamedTuple):
    """Parameters on a grid: log rates of every cell, kappa, and prior weights."""

    log_rate: np.ndarray  # (node, cell)
    kappa: np.ndarray  # (node,)
    log_prior: np.ndarray  # (node,)


def shared_rate(cells: int, *, nodes: int = 61) -> Grid:
    """One rate for all cells, uncertain by far, and an uncertain overdispersion."""
    rates, log_cv = np.linspace(-9.0, 9.0, nodes), np.array([-30.0, -1.0, 0.5])
    rate, cv = (part.ravel() for part in np.meshgrid(rates, log_cv, indexing="ij"))
    log_prior = -0.5 * (rate / 4.0) ** 2
    return Grid(np.repeat(rate[:, None], cells, axis=1), np.exp(2.0 * cv), log_prior)


def two_by_two() -> Grid:
    """An effect for each of two origins and two destinations."""
    effect = np.linspace(-4.0, 4.0, 9)
    b0, b1, g0, g1 = (part.ravel() for part in np.meshgrid(*[effect] * 4, indexing="ij"))
    log_rate = np.stack([b0 + g0, b0 + g1, b1 + g0, b1 + g1], axis=1)
    log_prior = -0.5 * (np.stack([b0, b1, g0, g1]) / 2.0) ** 2
    return Grid(log_rate, np.full(len(b0), 0.6), log_prior.sum(axis=0))


def by_package(grid: Grid, bound: Bound) -> np.ndarray:
    """Log-probability of every count of every cell at every node: what synthesis draws from."""
    group = np.arange(len(grid.kappa), dtype=np.int64)
    rungs = counts.ladder(grid.kappa, len(bound.centres), bound)
    tables = [counts.log_table(rate.copy(), group, rungs) for rate in grid.log_rate.T]
    return np.stack(tables, axis=1)


def with_steps(grid: Grid, change: Callable[[np.ndarray], np.ndarray], upper: int) -> np.ndarray:
    """The same from changed steps."""
    return log_table(change(steps(grid.log_rate, grid.kappa[:, None], upper)))


def of_tables(log_p: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """Log-probability of whole tables at every node: (table, node)."""
    cells = np.arange(tables.shape[1])
    return log_p[:, cells[None, :], tables].sum(axis=-1).T


def log_releases(
    fitted: np.ndarray, drawn: np.ndarray, grid: Grid, truth: np.ndarray, released: np.ndarray
) -> np.ndarray:
    """Log-probability of every release for every true table: (true, released)."""
    posterior = of_tables(fitted, truth) + grid.log_prior
    posterior -= posterior.max(axis=1, keepdims=True)
    weights = np.exp(posterior)
    weights /= weights.sum(axis=1, keepdims=True)
    release = of_tables(drawn, released)
    highest = release.max(axis=1, keepdims=True)
    return np.log(weights @ np.exp(release - highest).T) + highest.T


def all_tables(cells: int, upper: int, *, ordered: bool = False) -> np.ndarray:
    """Every table; where cells are alike, one of each set that is the same but for their order."""
    kind = itertools.product if ordered else itertools.combinations_with_replacement
    pools = kind(range(upper + 1), repeat=cells) if ordered else kind(range(upper + 1), cells)
    return np.array(list(pools))


def largest(log_m: np.ndarray, tables: np.ndarray, upper: int) -> float:
    """Largest log ratio between tables that differ by one person in one cell, over releases."""
    place = {tuple(sorted(table)): number for number, table in enumerate(tables.tolist())}
    ordered = len(place) < len(tables)
    if ordered:
        place = {tuple(table): number for number, table in enumerate(tables.tolist())}
    worst = 0.0
    for table in tables.tolist():
        here = place[tuple(table) if ordered else tuple(sorted(table))]
        for cell in range(len(table)):
            if table[cell] == upper:
                continue
            more = [*table]
            more[cell] += 1
            there = place[tuple(more) if ordered else tuple(sorted(more))]
            worst = max(worst, float(np.abs(log_m[here] - log_m[there]).max()))
    return worst


def bound_of(epsilon: float, upper: int) -> Bound:
    return Bound(epsilon, centres_of(bundled_shares()[: upper + 1].tolist()))


@pytest.mark.parametrize("epsilon", [2.0, 1.0, 0.5, 0.25])
@pytest.mark.parametrize(("cells", "upper"), [(2, 8), (3, 8), (4, 5), (6, 3), (8, 2)])
def test_no_release_tells_more_than_epsilon(cells: int, upper: int, epsilon: float) -> None:
    """Every table, every neighbour, every release."""
    grid, bound = shared_rate(cells), bound_of(epsilon, upper)
    log_p, tables = by_package(grid, bound), all_tables(cells, upper)
    log_m = log_releases(log_p, log_p, grid, tables, tables)
    assert largest(log_m, tables, upper) <= epsilon + TINY


@pytest.mark.parametrize("epsilon", [1.0, 0.5])
def test_nor_where_areas_have_effects(epsilon: float) -> None:
    """Four parameters and tables of four different cells."""
    grid, bound, tables = two_by_two(), bound_of(epsilon, 2), all_tables(4, 2, ordered=True)
    log_p = by_package(grid, bound)
    assert largest(log_releases(log_p, log_p, grid, tables, tables), tables, 2) <= epsilon + TINY


@pytest.mark.parametrize("epsilon", [1.0, 0.5])
def test_the_bound_is_not_idle(epsilon: float) -> None:
    """Some pair of six cells and a release of equal counts come near it: no less can be promised.

    With the smooth form 0.88 and 0.41 had been found before.
    """
    cells, upper = 6, 8
    grid, tables = shared_rate(cells, nodes=121), all_tables(cells, upper)
    log_p = by_package(grid, bound_of(epsilon, upper))
    released = np.repeat(np.arange(upper + 1)[:, None], cells, axis=1)
    worst = largest(log_releases(log_p, log_p, grid, tables, released), tables, upper)
    assert 0.8 * epsilon < worst <= epsilon + TINY


def test_who_moves_between_small_cells_has_twice_epsilon() -> None:
    """One cell loses, another gains; and not less is promised than needed."""
    epsilon, upper = 1.0, 2
    grid, tables = two_by_two(), all_tables(4, upper, ordered=True)
    log_p = by_package(grid, bound_of(epsilon, upper))
    log_m = log_releases(log_p, log_p, grid, tables, tables)
    place, worst = {tuple(t): n for n, t in enumerate(tables.tolist())}, 0.0
    for table in tables.tolist():
        for one, other in itertools.permutations(range(4), 2):
            if table[one] < upper and table[other] > 0:
                moved = [*table]
                moved[one], moved[other] = moved[one] + 1, moved[other] - 1
                change = log_m[place[tuple(table)]] - log_m[place[tuple(moved)]]
                worst = max(worst, float(np.abs(change).max()))
    assert worst <= 2.0 * epsilon + TINY


def test_two_people_who_move_together_have_twice_epsilon() -> None:
    """Who knows that they do learns of one what is told of both: one epsilon is too little."""
    epsilon, upper = 1.0, 8
    grid, tables = shared_rate(2, nodes=121), all_tables(2, upper, ordered=True)
    log_p = by_package(grid, bound_of(epsilon, upper))
    log_m = log_releases(log_p, log_p, grid, tables, tables).reshape(9, 9, -1)
    worst = max(float(np.abs(log_m[2:] - log_m[:-2]).max()), float(
        np.abs(log_m[:, 2:] - log_m[:, :-2]).max()))  # fmt: skip
    assert 1.1 * epsilon < worst <= 2.0 * epsilon + TINY


EPSILON, CELLS, UPPER = 0.5, 3, 5


def _unbounded(k: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(free: np.ndarray) -> np.ndarray:
        kept = bounded(free, bound_of(EPSILON, UPPER))
        kept[..., k] = free[..., k]
        return kept

    return change


@pytest.mark.parametrize("k", range(UPPER))
def test_a_step_left_unbounded_is_seen(k: int) -> None:
    grid, tables = shared_rate(CELLS), all_tables(CELLS, UPPER)
    log_p = with_steps(grid, _unbounded(k), UPPER)
    log_m = log_releases(log_p, log_p, grid, tables, tables)
    assert largest(log_m, tables, UPPER) > 1.2 * EPSILON


def test_bounds_of_the_wrong_width_are_seen() -> None:
    """An interval of epsilon on either side is one of twice the width."""
    grid, tables = shared_rate(CELLS), all_tables(CELLS, UPPER)
    log_p = by_package(grid, bound_of(2.0 * EPSILON, UPPER))
    log_m = log_releases(log_p, log_p, grid, tables, tables)
    assert largest(log_m, tables, UPPER) > 1.2 * EPSILON


def test_centres_from_the_table_are_seen() -> None:
    """They move with the counts, and with them everything that is released."""
    grid, tables = shared_rate(CELLS), all_tables(CELLS, UPPER)
    log_m = np.empty((len(tables), len(tables)))
    for number, table in enumerate(tables):
        shares = np.bincount(table, minlength=UPPER + 1) + 0.5
        log_p = by_package(grid, Bound(EPSILON, centres_of(shares.tolist())))
        log_m[number] = log_releases(log_p, log_p, grid, tables[[number]], tables)[0]
    assert largest(log_m, tables, UPPER) > 1.2 * EPSILON


def test_top_coding_is_not_truncation() -> None:
    """Counts beyond the end that are released as the end: the last step then has no bound."""
    grid, tables, far = shared_rate(CELLS), all_tables(CELLS, UPPER), 25
    centres = (*bound_of(EPSILON, UPPER).centres, *[-0.05] * (far - UPPER))
    log_p = by_package(grid, Bound(EPSILON, centres))
    tail = np.logaddexp.reduce(log_p[..., UPPER:], axis=-1, keepdims=True)
    log_p = np.concatenate([log_p[..., :UPPER], tail], axis=-1)
    log_m = log_releases(log_p, log_p, grid, tables, tables)
    assert largest(log_m, tables, UPPER) > 1.2 * EPSILON


def test_two_data_sets_cost_twice_unless_they_come_from_one_draw() -> None:
    """Counted once, two draws break the promise; two data sets of one draw do not."""
    epsilon, upper = 1.0, 8
    grid, tables = shared_rate(2, nodes=121), all_tables(2, upper)
    log_p = by_package(grid, bound_of(epsilon, upper))
    two_draws = 2.0 * largest(log_releases(log_p, log_p, grid, tables, tables), tables, upper)
    assert epsilon * 1.2 < two_draws <= 2.0 * epsilon + TINY
    four = shared_rate(4, nodes=121)
    log_p4 = by_package(four, bound_of(epsilon, upper))
    ends = [(a, a, b, b) for a in (0, 4, 8) for b in (0, 4, 8)]
    pairs = np.array(ends)  # two released tables of two cells each, from the same parameters
    posterior = of_tables(log_p, tables) + grid.log_prior
    weights = np.exp(posterior - posterior.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    both = of_tables(log_p4, pairs)
    highest = both.max(axis=1, keepdims=True)
    log_m = np.log(weights @ np.exp(both - highest).T) + highest.T
    assert largest(log_m, tables, upper) <= epsilon + TINY
