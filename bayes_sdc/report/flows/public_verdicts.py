"""Verdicts on fit and use as the public reads them: of measures with noise.

A verdict changes where a measure crosses a limit, and where it stands close to one a single true
count can decide. Anyone who knows all other counts could then tell this one. So the public reads a
verdict on the measure moved by noise that outweighs what one count does to it. Whether a check
failed is told without noise, because the release is held then, and anyone sees that.
"""

import math

import numpy as np
import pandas as pd

from bayes_sdc.checks import Check, Verdict
from bayes_sdc.flows.diagnostics.verdicts import MISFIT_FAIL, dispersed, misfits
from bayes_sdc.flows.protection import Measured
from bayes_sdc.flows.release.use.uses import NOT_GOOD, UNDEFINED, Z, by_error, by_overlap
from bayes_sdc.report.flows.public_shares import ODDS, PUBLIC_CELLS, PublicShares

OF_FIT = ("fit", "fit_by_size", "dispersion")
CELLS = 2.5  # units of noise for each cell of a count: log odds of a quarter for one cell
TWICE = 2.0 * math.sqrt(2.0) / (ODDS * CELLS)  # two standard deviations of it
# of the logarithm of an error: at 800 cells one person moves it by 1 to 13 per cent
RELATIVE = 50.0


def public_fit(check: Check, measured: Measured, shares: PublicShares) -> Verdict | None:
    """Judge the fit to counts that are moved by noise; None where they are too few for that.

    Parameters
    ----------
    check : Check
        One of ``OF_FIT``.
    measured : Measured
        What it was made from.
    shares : PublicShares
        The noise of this report.
    """
    if check.verdict == "fail":
        return "fail"
    if check.key == "dispersion":
        cells = float(measured.predictive["observed"].sum())
        scatter = pd.Series([measured.dispersion.value])
        value = float(shares.moved_all(scatter, cells, check.key).iloc[0])
        told = dispersed(measured.dispersion._replace(value=value)).verdict
        return "look" if told == "fail" else told
    whole = _fitted(measured.predictive, "fit", shares)
    if check.key == "fit":
        return whole
    counts = measured.predictive_by_size
    size = counts["observed"].groupby(level="size").transform("sum")
    counts = counts[size >= PUBLIC_CELLS]
    if counts.empty:
        return None
    # the groups add up to the whole: what it misses, groups of some size miss as well
    if whole == "look" or _missed_by_far(measured.predictive):
        return "look"
    return _fitted(counts, check.key, shares)


def relied_on(measured: Measured) -> bool:
    """Whether the public may read what rests on the weights: all of it, or nothing."""
    return all(
        risk.strongest.trusted and risk.r_all.trusted and risk.r_unq.trusted
        for risk in measured.scenarios
    )


def _fitted(counts: pd.DataFrame, name: str, shares: PublicShares) -> Verdict:
    return "look" if len(misfits(_moved(counts, name, shares))) else "pass"


def _missed_by_far(counts: pd.DataFrame) -> bool:
    """Whether the check of these counts fails, which is told without noise."""
    missed = misfits(counts)
    return bool((missed[np.isfinite(missed)].abs() > MISFIT_FAIL).any())


def _moved(counts: pd.DataFrame, name: str, shares: PublicShares) -> pd.DataFrame:
    """Return numbers of cells by count with noise of their own, and the errors that go with it."""
    rows = zip(counts.index, counts["observed"], strict=True)
    observed = np.array(
        [
            float(shares.moved_all(pd.Series([float(n)]), CELLS, f"{name}, {place}").iloc[0])
            for place, n in rows
        ]
    )
    error = (counts["expected"] - observed) / np.where(observed > 0, observed, np.nan)
    lower, upper = counts["lower"] - TWICE, counts["upper"] + TWICE
    return counts.assign(observed=observed, lower=lower, upper=upper, relative_error=error)


def public_uses(uses: pd.DataFrame, shares: PublicShares) -> list[list[str]]:
    """Judge each use by an error with noise: verdict and use.

    Parameters
    ----------
    uses : DataFrame
        As in :class:`bayes_sdc.flows.release.use.uses.FlowUses`.
    shares : PublicShares
        The noise of this report.
    """
    rows = []
    for _, row in uses.iterrows():
        factor = float(np.exp(shares.noise(RELATIVE, f"use, {row['use']}")))
        overlaps = row["measure"] == Z
        verdict = (
            by_overlap(1.0 - (1.0 - row["value"]) * factor)
            if overlaps
            else by_error(row["value"] * factor)
        )
        # that a measure is undefined is a fact of the true counts
        rows.append([NOT_GOOD if verdict == UNDEFINED else verdict, str(row["use"])])
    return rows
