"""Verdicts on the totals that a release keeps: what they tell, and whether it has them."""

import numpy as np
import pandas as pd
import xarray as xr

from bayes_sdc.checks import Check, Verdict
from bayes_sdc.flows.audit.beside import Beside, with_published
from bayes_sdc.flows.intruder.totals.keeping import (
    LIMIT,
    ChanceOfTruth,
    chance_of_truth,
    pinned_by,
)
from bayes_sdc.flows.model.rates import rates_by_draw
from bayes_sdc.flows.release.synthetic.plateau import share_at_plateau
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.totals.kept import PINS, KeptTotals
from bayes_sdc.flows.table.cells import fitted_cells
from bayes_sdc.flows.table.read import FlowTable


def check_none_kept(kept: KeptTotals, limit: float) -> Check:
    """Say that no totals are kept although as many as possible were asked for, and why."""
    tells = (
        "make small counts follow"
        if kept.why == PINS
        else f"make true counts more probable than {limit:.0%} before any release"
    )
    return Check(
        "totals kept",
        "look",
        f"no totals are kept: however they are merged, they {tells}; name a coarser margin "
        "(totals_kept), keep totals to a base, or release without",
        key="totals_kept",
    )


def check_kept(
    table: FlowTable,
    kept: KeptTotals,
    chance: ChanceOfTruth,
    known: Beside,
    *,
    limit: float = LIMIT,
    pinned_allowed: bool = False,
) -> Check:
    """Judge the totals that a release keeps: a cell that they pin is released as it is.

    One that they pin together with published totals is not, but anyone can work it out.

    Parameters
    ----------
    table : FlowTable
        The true table.
    kept : KeptTotals
        The totals.
    chance : ChanceOfTruth
        From :func:`chance_of_truth`.
    known : Beside
        What is published whatever is kept.
    limit : float
        Above it a cell is as good as known.
    pinned_allowed : bool
        Whether somebody decided that pinned cells may be released.
    """
    pinned = pinned_by(table, kept)
    together = known.pinned(kept) & ~pinned if known.families else np.zeros_like(pinned)
    near = chance.told(limit) & ~pinned & ~together
    by_rates = int((chance.alone > limit).sum())
    number, n = int(pinned.sum()), len(pinned)
    verdict: Verdict = "look" if number or near.any() or len(kept.merged) else "pass"
    if together.any() or (number and not pinned_allowed):
        verdict = "fail"
    words = f"{kept}; they pin {number:,} of {n:,} small counts ({number / n:.1%})"
    if number:
        words += ", which are released as they are"
        words += " because that was allowed" if pinned_allowed else (
            "; merge totals (auto), keep fewer, or allow it"
        )  # fmt: skip
    if together.any():
        published = ", ".join(dict.fromkeys(family.name for family in known.families))
        words += (
            f"; together with published totals by {published} they pin {int(together.sum()):,} "
            "more: keep fewer (auto), or publish fewer"
        )
    if near.any():
        words += (
            f"; of {int(near.sum()):,} more the true count has a probability above {limit:.0%} "
            "before any release"
        )
    if by_rates:
        words += (
            f"; of {by_rates:,} the rates alone make the true count more probable than "
            f"{limit:.0%}, whatever totals are kept"
        )
    if len(kept.merged):
        words += (
            "; those kept in sum only must not be published by themselves, nor coarser ones that "
            "tell them apart (totals_not_to_publish)"
        )
    return Check("totals kept", verdict, words, key="totals_kept")


def check_totals(table: FlowTable, release: pd.DataFrame, kept: KeptTotals) -> Check:
    """Check on the released table that every kept total is the true one, in every data set."""
    y = table.cells["y"].to_numpy(np.int64)
    wrong, bounds = 0, kept.bounds(y)
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
    known: Beside,
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
        What the release keeps; without totals there is nothing to judge, unless some were wanted.
    known : Beside
        What is published whatever is kept.
    limit, pinned_allowed
        As for :func:`check_kept`.
    seed : int
        Of the release.
    cores : int, optional
        Threads; by default all.
    """
    if not kept.sides:
        return [check_none_kept(kept, limit)] if kept.why else []
    told = with_published(kept, known)
    chance = chance_of_truth(table, posterior, told, seed=seed, cores=cores)
    cells, rates = fitted_cells(table, posterior), rates_by_draw(posterior)
    prepared, released = kept.mixing(cells.y), released_counts(table, release)
    return [
        check_kept(table, kept, chance, known, limit=limit, pinned_allowed=pinned_allowed),
        check_totals(table, release, kept),
        share_at_plateau(cells, prepared, rates, released, seed=seed, cores=cores),
    ]
