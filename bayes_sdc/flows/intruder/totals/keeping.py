"""Which totals a release can keep without giving a small count away."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from bayes_sdc.arguments import checked
from bayes_sdc.checks import Check, Verdict
from bayes_sdc.errors import InputError
from bayes_sdc.flows.audit.kept_totals import (
    merge_around,
    pinned_cells,
    taken_out,
    without_pinned,
)
from bayes_sdc.flows.fit.fitted_to import check_posterior
from bayes_sdc.flows.model.rates import Rates, rates_by_draw
from bayes_sdc.flows.model.truncated import log_table
from bayes_sdc.flows.release.synthetic.plateau import share_at_plateau
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.synthetic.synthesis import spread_draws
from bayes_sdc.flows.release.totals.chances import chances
from bayes_sdc.flows.release.totals.kept import TELLS, KeptTotals, kept_by_name
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
        For ``totals`` of :func:`bayes_sdc.synthesize`; ``merged`` lists the totals that must not
        be published.

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
    if not 0.0 < limit <= 1.0:
        raise InputError(f"limit must be above 0 and at most 1; it is {limit}")
    if table.n_small == 0:
        return KeptTotals((), ())
    if totals != "auto":
        return kept_by_name(table, totals, base=base)
    check_posterior(table, posterior)
    names = ("origin", "destination")
    if table.groups:
        names = ("origin-by-group", "destination-by-group")
    y = table.cells["y"].to_numpy(np.int64)
    kept = kept_by_name(table, names, base=base)
    seed = seed_or_fresh(seed)
    kept = without_pinned(kept, y, table.k)
    if not kept.sides:
        return kept
    return _without_told(table, posterior, kept, limit=limit, seed=seed, cores=cores)


def _without_told(
    table: FlowTable,
    posterior: xr.DataTree,
    kept: KeptTotals,
    *,
    limit: float,
    seed: int,
    cores: int | None,
) -> KeptTotals:
    """Merge totals until they make no true count more probable than the limit."""

    def told(kept: KeptTotals) -> npt.NDArray[np.bool_]:
        chance = chance_of_truth(table, posterior, kept, seed=seed, cores=cores)
        found = chance.told(limit)
        say(f"{kept}; {int(found.sum()):,} cells above {limit:.0%}")
        return found

    wanted, more, above = kept, 1, told(kept)
    if not above.any():
        return kept
    while above.any():
        kept = merge_around(kept, above, TELLS, more=more)
        if not kept.sides:
            return kept
        more, above = 2 * more, told(kept)
    y = table.cells["y"].to_numpy(np.int64)

    def fits(kept: KeptTotals) -> bool:
        pinned = pinned_cells(kept.margins(y), y, table.k, kept.band(y))
        return not pinned.any() and not told(kept).any()

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


def check_kept(
    table: FlowTable,
    kept: KeptTotals,
    chance: ChanceOfTruth,
    *,
    limit: float = LIMIT,
    pinned_allowed: bool = False,
) -> Check:
    """Judge the totals that a release keeps: a cell that they pin is released as it is.

    Parameters
    ----------
    table : FlowTable
        The true table.
    kept : KeptTotals
        The totals.
    chance : ChanceOfTruth
        From :func:`chance_of_truth`.
    limit : float
        Above it a cell is as good as known.
    pinned_allowed : bool
        Whether somebody decided that pinned cells may be released.
    """
    pinned = pinned_by(table, kept)
    near = chance.told(limit) & ~pinned
    known = int((chance.alone > limit).sum())
    number, n = int(pinned.sum()), len(pinned)
    verdict: Verdict = "look" if number or near.any() or len(kept.merged) else "pass"
    if number and not pinned_allowed:
        verdict = "fail"
    words = f"{kept}; they pin {number:,} of {n:,} small counts ({number / n:.1%})"
    if number:
        words += ", which are released as they are"
        words += " because that was allowed" if pinned_allowed else (
            "; merge totals (auto), keep fewer, or allow it"
        )  # fmt: skip
    if near.any():
        words += (
            f"; of {int(near.sum()):,} more the true count has a probability above {limit:.0%} "
            "before any release"
        )
    if known:
        words += (
            f"; of {known:,} the rates alone make the true count more probable than {limit:.0%}, "
            "whatever totals are kept"
        )
    if len(kept.merged):
        words += "; those kept in sum only must not be published by themselves"
    return Check("totals kept", verdict, words, key="totals_kept")


def check_totals(table: FlowTable, release: pd.DataFrame, kept: KeptTotals) -> Check:
    """Check on the released table that every kept total is the true one, in every data set."""
    y = table.cells["y"].to_numpy(np.int64)
    wanted, band = kept.margins(y), kept.band(y)
    bounds = [np.stack([sums, sums], axis=1) for sums in wanted[2:]]
    if band is not None:
        bounds = [band.left, band.right]
    wrong = 0
    for data in released_counts(table, release):
        for sums, within in zip(kept.margins(data)[2:], bounds, strict=True):
            wrong += int(((sums < within[:, 0]) | (sums > within[:, 1])).sum())
    number = sum(int(side.block.max()) + 1 for side in kept.sides)
    return Check(
        "error of kept totals",
        "fail" if wrong else "pass",
        f"{wrong:,} of {number:,} totals differ from the true ones in a data set",
        key="kept_totals_error",
    )


def kept_checks(
    table: FlowTable,
    posterior: xr.DataTree,
    release: pd.DataFrame,
    kept: KeptTotals,
    *,
    limit: float,
    pinned_allowed: bool,
    seed: int,
    cores: int | None = None,
) -> list[Check]:
    """Judge what the totals of a release reveal, whether it has them, and how well it is mixed.

    Parameters
    ----------
    table, posterior, release
        The true table, its posterior and what is released.
    kept : KeptTotals
        What the release keeps; without totals there is nothing to judge.
    limit, pinned_allowed
        As for :func:`check_kept`.
    seed : int
        Of the release.
    cores : int, optional
        Threads; by default all.
    """
    if not kept.sides:
        return []
    chance = chance_of_truth(table, posterior, kept, seed=seed, cores=cores)
    cells, rates = fitted_cells(table, posterior), rates_by_draw(posterior)
    prepared, released = kept.mixing(cells.y), released_counts(table, release)
    return [
        check_kept(table, kept, chance, limit=limit, pinned_allowed=pinned_allowed),
        check_totals(table, release, kept),
        share_at_plateau(cells, prepared, rates, released, seed=seed, cores=cores),
    ]
