"""Which totals a release can keep without giving a small count away."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.audit import published_families
from bayes_sdc.flows.audit.beside import Beside, beside, marked, with_published
from bayes_sdc.flows.audit.kept_totals import (
    merged_near,
    pinned_cells,
    taken_out,
    without_pinned,
)
from bayes_sdc.flows.fit.fitted_to import check_posterior
from bayes_sdc.flows.model.rates import Rates, rates_by_draw
from bayes_sdc.flows.model.truncated import log_table
from bayes_sdc.flows.release.synthetic.synthesis import spread_draws
from bayes_sdc.flows.release.totals.chances import chances
from bayes_sdc.flows.release.totals.kept import TELLS, KeptTotals, kept_by_name
from bayes_sdc.flows.release.totals.margins import finest_of
from bayes_sdc.flows.table.cells import SmallCells, fitted_cells
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.progress import say
from bayes_sdc.seeds import generator, seed_or_fresh

LIMIT = 0.9  # probability of a true count above which a cell is as good as known
DRAWS = 20  # of the posterior, with some tables each
SWEEPS = 16  # cycles for each cell before the first of these tables: at the plateau
FEWEST, MOST, LOOKED_AT = 20, 200, 50_000  # tables of a draw, and counts in all of them
TRIALS = 5  # of totals that were merged for probable cells, by themselves again
ERRORS = 3.0  # Monte Carlo errors by which totals must make a count more probable


@checked
def keep_totals(
    table: FlowTable,
    posterior: xr.DataTree,
    *,
    totals: str | Sequence[str] = "auto",
    base: int = 1,
    limit: float = LIMIT,
    seed: int | None = None,
    cores: int | None = None,
) -> KeptTotals:
    """Choose totals that a release can keep, so that no small count follows from them.

    Parameters
    ----------
    table : FlowTable
        The table that was fitted.
    posterior : xarray.DataTree
        From :func:`bayes_sdc.fit_flows`.
    totals : str or sequence of str
        ``"auto"``: those by area and partner group, or by area in a table without groups, merged
        as far as needed; or margins as for :func:`bayes_sdc.synthesize`, all kept as they are.
    base : int
        Each data set's totals, safe counts included, round to the same multiple of it as the true
        ones; with 1 they are exact.
    limit : float
        With ``"auto"``: no cell's true count may be more probable than this, given all totals that
        are kept and the posterior, before any release. Between 0 and 1.
    seed : int, optional
        Of the draws behind the probabilities; by default a fresh one.
    cores : int, optional
        Threads; by default all. The choice does not depend on it.

    Returns
    -------
    KeptTotals
        For ``totals`` of :func:`bayes_sdc.synthesize`; ``not_to_publish`` lists the totals that
        must not be published: those in ``merged``, and coarser ones that tell them apart.

    Raises
    ------
    InputError
        If the posterior belongs to another table, or an argument cannot be used.

    See Also
    --------
    bayes_sdc.synthesize, bayes_sdc.audit_totals

    Notes
    -----
    A pinned cell has one count in all tables with these totals, and is found exactly. Around all
    of them at once, the smaller of their totals is merged: with the totals of the same area and
    other partner groups first, then with those of other areas. What was merged without need is
    then kept by itself again, by halves.

    The same is done around cells whose true count is too probable, by more than the error of the
    computation. Where the rates alone make it so, no total is to blame, and none is merged. If all
    totals around a cell are merged and that does not help yet, more and more of the smallest ones
    join them, twice as many each time. What was too much is tried by itself again, by halves, as
    far as five trials go. Which totals are merged depends on the true counts, like every choice of
    what is suppressed.

    References
    ----------
    D. Gusfield, "A graph theoretic approach to statistical data security", SIAM Journal on
    Computing 17, 1988, doi:10.1137/0217034, for what is pinned.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, keep_totals, read_flows
    >>> frame = pd.DataFrame(
    ...     {"o": list("aaabbbc"), "d": list("xyzxyzx"), "n": [1, 4, 2, 5, 3, 3, 2]}
    ... )
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, draws=50, tune=50, chains=2, seed=1)
    >>> keep_totals(table, posterior, seed=1).merged["area"].sort_values().tolist()
    ['a', 'c']
    """
    known = beside(table, published_families(table, ()))
    return keep_beside(
        table, posterior, known, totals=totals, base=base, limit=limit, seed=seed, cores=cores
    )


def keep_beside(
    table: FlowTable,
    posterior: xr.DataTree,
    known: Beside,
    *,
    totals: str | Sequence[str],
    base: int,
    limit: float,
    seed: int | None,
    cores: int | None,
) -> KeptTotals:
    """As :func:`keep_totals`, so that nothing follows from kept and published totals together.

    Parameters
    ----------
    table, posterior, totals, base, limit, seed, cores
        As for :func:`keep_totals`.
    known : Beside
        What is published.
    """
    if not 0.0 < limit <= 1.0:
        raise InputError(f"limit must be above 0 and at most 1; it is {limit}")
    if table.n_small == 0:
        return KeptTotals((), ())
    if totals != "auto":
        return kept_by_name(table, totals, base=base)
    check_posterior(table, posterior)
    names: tuple[str, ...] = ("origin", "destination")
    if table.groups:
        names = ("origin-by-group", "destination-by-group")
    if base > 1:  # a coarser one would not be kept to the base by a finer one
        names = tuple(finest_of(table, names))
    y = table.cells["y"].to_numpy(np.int64)
    kept = marked(kept_by_name(table, names, base=base), known)
    seed = seed_or_fresh(seed)
    if known.families:
        kept = without_pinned(
            kept, y, table.k, pinned=known.pinned,
            fits=lambda kept: not known.pinned(kept, quick=True).any(),
        )  # fmt: skip
    else:
        kept = without_pinned(kept, y, table.k)
    if not kept.sides:
        return kept
    return _without_told(table, posterior, kept, known, limit=limit, seed=seed, cores=cores)


def _without_told(
    table: FlowTable,
    posterior: xr.DataTree,
    kept: KeptTotals,
    known: Beside,
    *,
    limit: float,
    seed: int,
    cores: int | None,
) -> KeptTotals:
    """Merge totals until they make no true count more probable than the limit."""
    published = with_published(KeptTotals((), ()), known)
    before = np.zeros(table.n_small, dtype=bool)  # so probable that no kept total is to blame
    if published.sides:
        chance = chance_of_truth(table, posterior, published, seed=seed, cores=cores)
        before = chance.told(limit)

    def told(kept: KeptTotals) -> npt.NDArray[np.bool_]:
        both = with_published(kept, known)
        chance = chance_of_truth(table, posterior, both, seed=seed, cores=cores)
        found = chance.told(limit) & ~before
        say(f"{kept}; {int(found.sum()):,} cells above {limit:.0%}")
        return found

    wanted, more, above = kept, 1, told(kept)
    if not above.any():
        return kept
    while above.any():
        kept = merged_near(kept, above, TELLS, more=more)
        if not kept.sides:
            return kept
        more, above = 2 * more, told(kept)
    y = table.cells["y"].to_numpy(np.int64)

    def fits(kept: KeptTotals) -> bool:
        pinned = pinned_cells(kept.margins(y), y, table.k, kept.band(y)) & ~known.alone
        return (
            not pinned.any()
            and not (known.families and known.pinned(kept, quick=True).any())
            and not told(kept).any()
        )

    return taken_out(kept, wanted, fits, trials=TRIALS)


class ChanceOfTruth(NamedTuple):
    """How probable the true count of each cell is before any release."""

    given: np.ndarray  # (cell,) given totals and posterior
    alone: np.ndarray  # (cell,) given the posterior alone
    tables: int  # from which the first was tallied

    def told(self, limit: float) -> npt.NDArray[np.bool_]:
        """Whether totals make the true count more probable than a limit: (cell,).

        By more than the error of the computation, and where the rates alone do not: else no total
        is to blame.
        """
        error = np.sqrt(limit * (1.0 - limit) / self.tables)
        more = self.given > self.alone + ERRORS * error
        certain = self.given > min(limit + error, (1.0 + limit) / 2.0)
        return np.asarray(certain & (self.alone <= limit) & more)


def chance_of_truth(
    table: FlowTable,
    posterior: xr.DataTree,
    kept: KeptTotals,
    *,
    seed: int,
    cores: int | None = None,
) -> ChanceOfTruth:
    """Probability of the true count of each cell given totals and posterior, and posterior alone.

    The posterior is fitted to the true counts, so this is the knowledge of an intruder who knows
    the rates as well as the agency does: no less than anybody has without a release.
    """
    cells, rates = fitted_cells(table, posterior), rates_by_draw(posterior)
    if not kept.sides:
        raise InputError("no totals are kept")
    rng = generator(seed, "draws for the probabilities given totals")
    draws = spread_draws(rng, rates.n_draws, min(DRAWS, rates.n_draws))
    tables = int(np.clip(LOOKED_AT // len(cells.y), FEWEST, MOST))
    found = chances(
        cells, rates, kept.mixing(cells.y), draws, seed=seed, tables=tables, sweeps=SWEEPS,
        cores=cores,
    )  # fmt: skip
    given = np.asarray(found.mean(axis=0)[np.arange(len(cells.y)), cells.y])
    return ChanceOfTruth(given, _alone(cells, rates, draws), tables * len(draws))


def _alone(cells: SmallCells, rates: Rates, draws: np.ndarray) -> np.ndarray:
    """Mean probability of the true count over some draws: (cell,)."""
    total = np.zeros(len(cells.y))
    for at in draws.tolist():
        log_rate, rungs = rates.at(cells, at)
        log_weight = log_table(log_rate, cells.group, rungs)
        total += np.exp(log_weight[np.arange(len(total)), cells.y])
    return total / len(draws)


def pinned_by(table: FlowTable, kept: KeptTotals) -> npt.NDArray[np.bool_]:
    """Tell which small cells have one possible count given totals: (cell,).

    A release that keeps these totals shows the true count there.
    """
    y = table.cells["y"].to_numpy(np.int64)
    if not kept.sides:
        return np.zeros(len(y), dtype=bool)
    return pinned_cells(kept.margins(y), y, table.k, kept.band(y))
