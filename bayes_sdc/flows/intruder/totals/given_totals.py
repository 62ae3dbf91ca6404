"""The intruder's probabilities once they know totals that are published beside the release.

An intruder who does not know the other small counts has a probability for each count of each cell,
given the release, and treats the cells as independent. Totals tie them: the probability of a table
is that of its counts, one by one, if it has these totals, and 0 otherwise. The probability of one
count is the sum over all such tables. The sum is exact for blocks of cells that few totals join,
cell by cell over the sums so far; larger ones are sampled along cycles that leave all totals as
they are (:mod:`bayes_sdc.flows.release.totals.alternating_cycles`).

An intruder who knows all other small counts subtracts them, and there is nothing to compute:
:attr:`bayes_sdc.Audit.covered` counts the cells they then know.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.audit import published_families, system_of
from bayes_sdc.flows.audit.network import two_trees
from bayes_sdc.flows.audit.programs import blocks_of, part_of
from bayes_sdc.flows.audit.propagation import System
from bayes_sdc.flows.audit.solve import Solved, solve
from bayes_sdc.flows.release.totals.alternating_cycles import graph_of, mix
from bayes_sdc.flows.table.families import Family, Ints, Published
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.results import Fact, Result
from bayes_sdc.seeds import seed_sequence

STATES = 2000  # partial sums of the totals of a block; beyond that, tables are drawn
CHAINS, WARM, SWEEPS = 4, 40, 2  # chains of draws, cycles a cell before the first and between two


@dataclass(frozen=True, eq=False, repr=False)
class GivenTotals(Result):
    """Probabilities of the small counts given the release and published totals.

    Made by :func:`bayes_sdc.given_totals`.

    Parameters
    ----------
    probability
        (cell, count); 0 beyond the bounds that the totals leave.
    how
        (cell,): ``"exact"``, ``"drawn"``, or ``"bounds"``: only cut at the bounds, where totals of
        more than two kinds cross or are rounded and the block is large.
    error
        (cell,): Monte Carlo standard error of the probabilities, the largest of the counts.
    """

    probability: xr.DataArray
    how: xr.DataArray
    error: xr.DataArray

    def _title(self) -> str:
        return "Small counts given the release and published totals: confidential"

    def _facts(self) -> list[Fact]:
        how = self.how.to_numpy()
        most = self.probability.max("count").to_numpy()
        return [
            ("cells", f"{len(how):,}", "small counts"),
            ("certain", f"{int((most > 1 - 1e-12).sum()):,}", "with one count left"),
            ("exact", f"{int((how == 'exact').sum()):,}", "by sums over all tables"),
            ("drawn", f"{int((how == 'drawn').sum()):,}", "by tables drawn"),
            ("bounds", f"{int((how == 'bounds').sum()):,}", "cut at their bounds only"),
            ("error", f"{float(self.error.max()):.4f}", "largest Monte Carlo error"),
        ]


class TooManyStatesError(Exception):
    """A block whose tables are too many to be summed over."""


@checked
def given_totals(
    probability: xr.DataArray,
    table: FlowTable,
    *,
    published: Published = ("origin", "destination"),
    own_area: bool | None = None,
    base: int = 1,
    draws: int = 1000,
    seed: int,
) -> GivenTotals:
    """Combine what the release tells about each small count with published totals.

    Parameters
    ----------
    probability : xarray.DataArray
        (cell, count) of every small cell in the order of ``table.cells``, such as ``rho`` of an
        :class:`bayes_sdc.IntruderRisk` with knowledge "none"; of cells that the intruder knows
        (knowledge "share"), 1 for the true count.
    table : FlowTable
        The true table.
    published, own_area, base
        As for :func:`bayes_sdc.audit_totals`.
    draws : int
        Tables drawn of a block that is too large for the sum, 2 or more for each of four chains.
    seed : int
        For the draws.

    Returns
    -------
    GivenTotals

    Raises
    ------
    InputError
        If probabilities are missing or do not allow any table with these totals, or if draws are
        too few.

    See Also
    --------
    bayes_sdc.intruder_risk, bayes_sdc.audit_totals, bayes_sdc.log_ratios

    Notes
    -----
    The cells are independent given the release, and the totals tie them: the probability of a table
    is the product over its cells if it has the totals, and 0 if not. Blocks of cells that few
    totals join are summed exactly, cell by cell; larger ones are sampled along cycles that leave
    all totals as they are (Diaconis and Sturmfels 1998).

    References
    ----------
    P. Diaconis and B. Sturmfels, "Algebraic algorithms for sampling from conditional
    distributions", Annals of Statistics 26, 1998, doi:10.1214/aos/1030563990.

    Examples
    --------
    >>> import pandas as pd
    >>> import xarray as xr
    >>> from bayes_sdc import given_totals, read_flows
    >>> frame = pd.DataFrame({"o": ["A"] * 3, "d": ["x", "y", "z"], "n": [1, 2, 20]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n", high=2)
    >>> even = xr.DataArray(
    ...     [[0.5, 0.5], [0.2, 0.8]], {"cell": ["A>x", "A>y"], "count": [1, 2]}, ("cell", "count")
    ... )
    >>> given_totals(even, table, published="origin", seed=1).probability.values.round(3).tolist()
    [[0.8, 0.2], [0.2, 0.8]]
    """
    families = published_families(table, published, own_area=own_area, base=base)
    return given_families(probability, table, families, draws=draws, seed=seed)


def given_families(
    probability: xr.DataArray,
    table: FlowTable,
    families: Sequence[Family],
    *,
    draws: int = 1000,
    seed: int,
) -> GivenTotals:
    """Combine what the release tells with totals of any kind, as :func:`given_totals` does.

    Parameters
    ----------
    probability, table, draws, seed
        As for :func:`given_totals`.
    families : sequence of Family
        Everything that is published, in columns that stay too.

    Returns
    -------
    GivenTotals
    """
    counts = np.arange(table.low, table.high + 1)
    if probability.shape != (table.n_small, len(counts)):
        raise InputError(
            f"probability must be of {table.n_small} cells and {len(counts)} counts; its shape is "
            f"{probability.shape}"
        )
    if draws < 2 * CHAINS:
        raise InputError(f"draws must be at least {2 * CHAINS}; it is {draws}")
    system, order = system_of(table, families)
    truth = table.cells["y"].to_numpy(np.int64)[order] + table.low
    solved = solve(system, truth)
    weight = probability.to_numpy()[order] * (
        (solved.lower[:, None] <= counts) & (counts <= solved.upper[:, None])
    )
    if (weight.sum(axis=1) <= 0).any():
        raise InputError("probability: 0 for every count that the totals leave of a cell")
    weight /= weight.sum(axis=1, keepdims=True)
    found, how, error = by_block(system, solved, weight, table.low, draws, seed)
    back = np.argsort(order)
    labels = {"cell": probability["cell"].to_numpy()}
    return GivenTotals(
        xr.DataArray(found[back], {**labels, "count": counts}, ("cell", "count"), "probability"),
        xr.DataArray(how[back], labels, ("cell",), "how"),
        xr.DataArray(error[back], labels, ("cell",), "error"),
    )


def by_block(
    system: System, solved: Solved, weight: np.ndarray, low: int, draws: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Take each block of cells that totals join by itself."""
    found, error = weight.copy(), np.zeros(len(weight))
    how = np.full(len(weight), "exact", dtype=object)
    block = blocks_of(system)
    members = np.split(np.argsort(block, kind="stable"), np.cumsum(np.bincount(block))[:-1])
    for number, cells in enumerate(members):
        if (solved.lower[cells] == solved.upper[cells]).all():
            continue
        part = part_of(system._replace(lower=solved.lower, upper=solved.upper), cells)
        if len(part.low) == 0:
            continue
        try:
            found[cells] = sums_over_tables(part, weight[cells], low)
        except TooManyStatesError:
            drawn = _drawn(part, weight[cells], low, draws, seed, number)
            if drawn is None:
                how[cells] = "bounds"
            else:
                found[cells], error[cells] = drawn
                how[cells] = "drawn"
    return found, how.astype(str), error


class _Step(NamedTuple):
    """One cell: which totals it is in, and which of them it completes."""

    totals: tuple[int, ...]
    ends: tuple[int, ...]


def sums_over_tables(part: System, weight: np.ndarray, low: int) -> np.ndarray:
    """Sum over all tables of a block: (cell, count), the probability of each count.

    Parameters
    ----------
    part : System
        Cells and totals.
    weight : array of float, shape (cell, count)
        Probability of each count before the totals.
    low : int
        The first count.

    Raises
    ------
    TooManyStatesError
        If more than :data:`STATES` sums so far are to be kept at a time.
    """
    # cells of one total after the other, so that few are open at a time
    order = np.lexsort(tuple(of for of in reversed(part.of)))
    steps = _steps(part, order)
    forward: list[dict[tuple[int, ...], float]] = [{(0,) * len(part.low): 1.0}]
    for cell, step in zip(order, steps, strict=True):
        forward.append(_onward(part, forward[-1], weight[cell], step, low))
    result = np.zeros_like(weight)
    backward = dict.fromkeys(forward[-1], 1.0)
    for at in range(len(order) - 1, -1, -1):
        cell, step = order[at], steps[at]
        before: dict[tuple[int, ...], float] = {}
        for state, mass in forward[at].items():
            rest = 0.0
            for place in np.flatnonzero(weight[cell]):
                after = backward.get(_moved(part, state, step, int(place) + low), 0.0)
                result[cell, place] += mass * weight[cell, place] * after
                rest += weight[cell, place] * after
            before[state] = rest
        scale = max(before.values(), default=1.0) or 1.0
        backward = {state: rest / scale for state, rest in before.items()}
    return np.asarray(result / result.sum(axis=1, keepdims=True))


def _steps(part: System, order: Ints) -> list[_Step]:
    totals = [tuple(int(of[cell]) for of in part.of if of[cell] >= 0) for cell in order]
    last = {total: at for at, own in enumerate(totals) for total in own}
    return [
        _Step(own, tuple(total for total in own if last[total] == at))
        for at, own in enumerate(totals)
    ]


def _moved(part: System, state: tuple[int, ...], step: _Step, count: int) -> tuple[int, ...]:
    """Partial sums after one more cell; a total that is complete is dropped."""
    sums = list(state)
    for total in step.totals:
        sums[total] += count
    for total in step.ends:
        sums[total] = 0 if part.low[total] <= sums[total] <= part.high[total] else -1
    return tuple(sums)


def _onward(
    part: System, states: dict[tuple[int, ...], float], weight: np.ndarray, step: _Step, low: int
) -> dict[tuple[int, ...], float]:
    following: dict[tuple[int, ...], float] = {}
    for state, mass in states.items():
        for place in np.flatnonzero(weight):
            after = _moved(part, state, step, int(place) + low)
            if all(after[t] >= 0 and after[t] <= part.high[t] for t in step.totals):
                following[after] = following.get(after, 0.0) + mass * weight[place]
    if len(following) > STATES:
        raise TooManyStatesError
    total = sum(following.values())
    return {state: mass / total for state, mass in following.items()}


def _drawn(
    part: System, weight: np.ndarray, low: int, draws: int, seed: int, number: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Draw tables of a block, and count; None where its totals are no simple graph."""
    chains, left_over = two_trees(part)
    sides = [[part.of[family] for family, side in chains if side == s] for s in (0, 1)]
    if left_over or (part.low != part.high).any() or max(map(len, sides)) > 1:
        return None
    ends = [end for end in (_ends(side, len(weight)) for side in sides) if end is not None]
    if len(ends) < 2:
        return None
    left, right = (np.unique(end, return_inverse=True)[1] for end in ends)
    start = solve(part).flow[: len(weight)] - low
    graph = graph_of(left, right)
    log_weight = np.log(np.maximum(weight, 1e-300))
    shares = np.zeros((CHAINS, *weight.shape))
    each = draws // CHAINS
    for chain in range(CHAINS):
        rng = np.random.default_rng(
            seed_sequence(seed, "tables given totals", f"{number}", f"{chain}")
        )
        y = start.astype(np.int64).copy()
        mix(rng, graph, graph.edges, log_weight, y, WARM * len(weight))
        for _ in range(each):
            mix(rng, graph, graph.edges, log_weight, y, SWEEPS * len(weight))
            shares[chain, np.arange(len(y)), y] += 1.0 / each
    error = shares.std(axis=0, ddof=1).max(axis=1) / np.sqrt(CHAINS)
    return shares.mean(axis=0), error


def _ends(side: Sequence[Ints], cells: int) -> Ints | None:
    """Ends of the cells on one side: their total, or one for all; None if only some have one."""
    if not side:
        return np.zeros(cells, dtype=np.int64)
    return side[0] if (side[0] >= 0).all() else None
