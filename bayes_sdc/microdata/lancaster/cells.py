"""Sums over all cells of an additive table that is never held: by walking it, or by sampling.

A cell has the weight of independence, a product of one-way proportions, times 1 + lambda S, where S
is a sum of one term a pair of keys. The walk splits the keys: those of the inner part are laid out
as one vector of about a thousand cells, and the others are counted through like the digits of a
number. The terms between an outer value and all inner cells are one vector, so what changes from
one digit to the next is a sum of vectors, which the compiler turns into wide instructions.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

INNER_CELLS = 1024  # of the inner part, so that its vectors stay in the fastest cache
BLOCKS = 512  # parts of the walk, whatever the number of threads, so that sums do not depend on it
DRAWS_AT_A_TIME = 1 << 18


class Additive(NamedTuple):
    """One-way weights and pair terms of an additive table."""

    weights: list[np.ndarray]  # by key: (level,)
    terms: dict[tuple[int, int], np.ndarray]  # by pair of keys a < b: (level of a, level of b)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(len(weight) for weight in self.weights)


class Sums(NamedTuple):
    """Sums over the cells that are allowed."""

    negative: np.ndarray  # (lambda,) of min(p, 0)
    total: np.ndarray  # (lambda,) of p, negative ones included
    negative_error: np.ndarray  # (lambda,) standard error; 0 when all cells were walked
    total_error: np.ndarray


class Layout(NamedTuple):
    """Arrays of the walk, flattened; outer keys are ordered by their number of levels."""

    levels: np.ndarray  # (outer,) levels of each outer key
    weight: np.ndarray  # outer weights, one key after another
    weight_start: np.ndarray  # (outer,)
    term: np.ndarray  # terms between outer keys
    term_start: np.ndarray  # (outer, outer), for a < b
    vector: (
        np.ndarray
    )  # (sum of outer levels, inner cell) terms between outer values and inner cells
    inner_weight: np.ndarray  # (inner cell,)
    inner_term: np.ndarray  # (inner cell,)
    rule_outer: np.ndarray  # (rule, sum of outer levels) whether a value is one the rule names
    rule_inner: np.ndarray  # (rule, inner cell)


def walk(table: Additive, shrinkage: np.ndarray, rules: np.ndarray | None = None) -> Sums:
    """Add up all cells.

    Parameters
    ----------
    table : Additive
        Weights and terms.
    shrinkage : array of float, shape (lambda,)
        Factors of the terms.
    rules : array of bool, shape (rule, sum of levels), optional
        Structural zeros: a cell is impossible when a rule holds for the values of all keys.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> table = Additive([half, half], {(0, 1): np.array([[2.0, -2.0], [-2.0, 2.0]])})
    >>> walk(table, np.array([0.0, 1.0])).negative.tolist()
    [0.0, -0.5]
    """
    layout = _lay_out(table, rules)
    prefixes = int(np.prod(layout.levels, dtype=np.int64))
    edges = np.linspace(0, prefixes, min(BLOCKS, prefixes) + 1).astype(np.int64)
    negative = np.zeros((len(edges) - 1, len(shrinkage)))
    linear = np.zeros((len(edges) - 1, 2))
    with_rules = rules is not None
    _walk(layout, edges, shrinkage, with_rules, negative, linear)
    mass, slope = linear.sum(axis=0)
    if not with_rules:
        # the terms have mean zero under independence, so nothing needs to be added up
        mass, slope = float(np.prod([weight.sum() for weight in table.weights])), 0.0
    zero = np.zeros(len(shrinkage))
    return Sums(negative.sum(axis=0), mass + shrinkage * slope, zero, zero)


def _lay_out(table: Additive, rules: np.ndarray | None) -> Layout:
    sizes = [len(weight) for weight in table.weights]
    order = sorted(range(len(sizes)), key=lambda key: (sizes[key], key))
    inner = [order.pop()]
    while order and math.prod(sizes[key] for key in inner) * sizes[order[-1]] <= INNER_CELLS:
        inner.append(order.pop())
    cells = np.stack(
        np.meshgrid(*(np.arange(sizes[key]) for key in inner), indexing="ij"), axis=-1
    ).reshape(-1, len(inner))
    inner_weight = np.ones(len(cells))
    inner_term = np.zeros(len(cells))
    for i, key in enumerate(inner):
        inner_weight *= table.weights[key][cells[:, i]]
        for j in range(i):
            inner_term += _between(table, key, inner[j])[cells[:, i], cells[:, j]]
    vectors = [
        sum(_between(table, key, other)[:, cells[:, j]] for j, other in enumerate(inner))
        for key in order
    ]
    term_start = np.zeros((len(order), len(order)), np.int64)
    terms, place = [np.empty(0)], 0
    for b in range(len(order)):
        for a in range(b):
            flat = _between(table, order[a], order[b]).reshape(-1)
            term_start[a, b] = place
            terms.append(flat)
            place += len(flat)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    named = np.empty((0, int(starts[-1])), bool) if rules is None else rules
    rule_inner = np.ones((len(named), len(cells)), bool)
    for i, key in enumerate(inner):
        rule_inner &= named[:, starts[key] + cells[:, i]]
    outer_sizes = np.array([sizes[key] for key in order], np.int64)
    return Layout(
        levels=outer_sizes,
        weight=np.concatenate([np.empty(0), *(table.weights[key] for key in order)]),
        weight_start=np.cumsum(outer_sizes) - outer_sizes,
        term=np.concatenate(terms),
        term_start=term_start,
        vector=np.concatenate([np.empty((0, len(cells))), *vectors]),
        inner_weight=inner_weight,
        inner_term=inner_term,
        rule_outer=np.concatenate(
            [
                np.empty((len(named), 0), bool),
                *(named[:, starts[key] : starts[key + 1]] for key in order),
            ],
            axis=1,
        ),
        rule_inner=rule_inner,
    )


def _between(table: Additive, a: int, b: int) -> np.ndarray:
    """Terms of a pair in either order."""
    return table.terms[a, b] if a < b else table.terms[b, a].T


@numba.njit(cache=True, nogil=True, parallel=True)
def _walk(
    layout: Layout,
    edges: np.ndarray,
    shrinkage: np.ndarray,
    with_rules: bool,
    negative: np.ndarray,
    linear: np.ndarray,
) -> None:
    for block in numba.prange(len(edges) - 1):
        _walk_block(
            layout,
            edges[block],
            edges[block + 1],
            shrinkage,
            with_rules,
            negative[block],
            linear[block],
        )


@numba.njit(cache=True, nogil=True)
def _walk_block(
    layout: Layout,
    start: int,
    stop: int,
    shrinkage: np.ndarray,
    with_rules: bool,
    negative: np.ndarray,
    linear: np.ndarray,
) -> None:
    """Walk the outer cells numbered from ``start`` to ``stop``, the last digit fastest."""
    outer, inner = len(layout.levels), len(layout.inner_term)
    digit = np.zeros(outer, np.int64)
    rest = start
    for d in range(outer - 1, -1, -1):
        digit[d] = rest % layout.levels[d]
        rest //= layout.levels[d]
    # row d: terms of the first d digits, between themselves and with all inner cells
    term = np.empty((outer + 1, inner))
    weight = np.empty(outer + 1)
    term[0], weight[0] = layout.inner_term, 1.0
    inner_weight = layout.inner_weight.copy()
    changed = 0
    for _ in range(start, stop):
        for d in range(changed, outer):
            place = layout.weight_start[d] + digit[d]
            own = 0.0
            for a in range(d):
                own += layout.term[layout.term_start[a, d] + digit[a] * layout.levels[d] + digit[d]]
            weight[d + 1] = weight[d] * layout.weight[place]
            _add_vectors(term[d], layout.vector[place], own, term[d + 1])
        if weight[outer] > 0.0:
            if with_rules:
                _apply_rules(layout, digit, inner_weight)
                linear[0] += weight[outer] * inner_weight.sum()
                linear[1] += weight[outer] * _dot(term[outer], inner_weight)
            for i in range(len(shrinkage)):
                if shrinkage[i] != 0.0:
                    negative[i] += weight[outer] * _negative(
                        term[outer], inner_weight, shrinkage[i]
                    )
        changed = outer - 1
        while changed >= 0:
            digit[changed] += 1
            if digit[changed] < layout.levels[changed]:
                break
            digit[changed] = 0
            changed -= 1


@numba.njit(cache=True, nogil=True)
def _add_vectors(a: np.ndarray, b: np.ndarray, constant: float, out: np.ndarray) -> None:
    for j in range(len(out)):
        out[j] = a[j] + b[j] + constant


# sums may be taken in any order, always the same one, so that they are done in wide instructions
@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def _negative(term: np.ndarray, weight: np.ndarray, shrinkage: float) -> float:
    total = 0.0
    for j in range(len(term)):
        total += min(1.0 + shrinkage * term[j], 0.0) * weight[j]
    return total


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "nnan"})
def _dot(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@numba.njit(cache=True, nogil=True)
def _apply_rules(layout: Layout, digit: np.ndarray, inner_weight: np.ndarray) -> None:
    """Inner weights with those of impossible cells at zero."""
    # a loop: numba compiles the copy of an array with a text for every way in which it can fail
    for j in range(len(inner_weight)):
        inner_weight[j] = layout.inner_weight[j]
    for rule in range(len(layout.rule_outer)):
        holds = True
        for d in range(len(digit)):
            holds &= layout.rule_outer[rule, layout.weight_start[d] + digit[d]]
        if holds:
            for j in range(len(inner_weight)):
                if layout.rule_inner[rule, j]:
                    inner_weight[j] = 0.0


def sample(
    table: Additive,
    shrinkage: np.ndarray,
    rng: np.random.Generator,
    draws: int,
    rules: np.ndarray | None = None,
) -> Sums:
    """Estimate the same sums from cells drawn under independence.

    Pair terms are at least -1, so 1 + lambda S lies above 1 - lambda m (m - 1) / 2 and the estimate
    of the negative sum has a small error.

    Parameters
    ----------
    table : Additive
        Weights and terms.
    shrinkage : array of float, shape (lambda,)
        Factors of the terms.
    rng : Generator
        Source of the cells.
    draws : int
        Number of cells.
    rules : array of bool, shape (rule, sum of levels), optional
        Structural zeros, as for :func:`walk`.
    """
    mass = float(np.prod([weight.sum() for weight in table.weights]))
    cumulated = [np.cumsum(weight) / weight.sum() for weight in table.weights]
    starts = np.concatenate([[0], np.cumsum([len(weight) for weight in table.weights])])
    sums = np.zeros((4, len(shrinkage)))
    for start in range(0, draws, DRAWS_AT_A_TIME):
        number = min(DRAWS_AT_A_TIME, draws - start)
        level = [
            np.minimum(np.searchsorted(c, rng.random(number), side="right"), len(c) - 1)
            for c in cumulated
        ]
        term = np.zeros(number)
        for (a, b), terms in table.terms.items():
            term += terms[level[a], level[b]]
        allowed = np.ones(number, bool)
        for rule in () if rules is None else rules:
            held = [rule[starts[key] + at] for key, at in enumerate(level)]
            allowed &= ~np.logical_and.reduce(held)
        for i, factor in enumerate(shrinkage):
            value = (1.0 + factor * term) * allowed
            below = np.minimum(value, 0.0)
            sums[:, i] += below.sum(), (below**2).sum(), value.sum(), (value**2).sum()
    mean = sums / draws
    errors = [np.sqrt(np.maximum(mean[k + 1] - mean[k] ** 2, 0.0) / draws) for k in (0, 2)]
    if rules is None:
        return Sums(mass * mean[0], np.full(len(shrinkage), mass), mass * errors[0], 0 * errors[1])
    return Sums(mass * mean[0], mass * mean[2], mass * errors[0], mass * errors[1])
