"""What both reports say about the guarantee: promise, public knowledge, and convergence.

Here the external report holds nothing measured with true counts except the verdict on the chains.
"""

import math
from dataclasses import replace
from typing import Any, Literal

from bayes_sdc.convergence import ESS_LIMIT, RHAT_LIMIT
from bayes_sdc.flows.guarantee import ENDING, Guarantee
from bayes_sdc.flows.intruder.log_ratios import log_ratios
from bayes_sdc.flows.protection import Measured, Protection
from bayes_sdc.report.flows.public_reasons import OF_TRUE_COUNTS
from bayes_sdc.report.flows.public_shares import PUBLIC_CELLS

WHY_NOT = "the reason is not shown, because a verdict on few cells could reveal single cells"


def guarantee_section(
    result: Protection, *, audience: Literal["internal", "external"]
) -> dict[str, Any] | None:
    """Context of the section; None without epsilon.

    Parameters
    ----------
    result : Protection
        With or without a guarantee.
    audience : {"internal", "external"}
        Of the report.
    """
    found, measured = result.guarantee, result.measured
    if found is None or measured is None:
        return None
    internal = audience == "internal"
    told = found if internal else _for_the_public(found, result)
    return {
        "promise": told.promise(),
        "holds": found.holds,
        "public": found.public,
        "numbers": _beside(found, measured) if internal else {},
    }


def _for_the_public(found: Guarantee, result: Protection) -> Guarantee:
    """The same without reasons that tell a verdict which few cells withhold."""
    if not 0 < result.table.n_small < PUBLIC_CELLS:
        return found
    withheld = [ENDING[key][1] for key in OF_TRUE_COUNTS if key in ENDING]
    told = [WHY_NOT if reason in withheld else reason for reason in found.ended]
    return replace(found, ended=tuple(dict.fromkeys(told)))


def _beside(found: Guarantee, measured: Measured) -> dict[str, str]:
    """How near the released draws are to exact ones, and what one count changes in this table."""
    draws = measured.posterior["posterior"].sizes
    kept = draws["chain"] * draws["draw"]
    rhat = float(measured.groups["rhat"].max())
    ratios = log_ratios(measured.worst)
    largest = ratios.distribution.iloc[-1]
    return {
        "largest R-hat": f"{rhat:.3f}, wanted {RHAT_LIMIT} or less"
        if math.isfinite(rhat)
        else "none (never moved)",
        "smallest effective sample size": (
            f"{float(measured.groups['ess'].min()):,.0f}, wanted {ESS_LIMIT:.0f} or more"
        ),
        "kept draws from one released data set to the next": (
            f"{kept // found.datasets:,} of {kept:,}" if found.datasets > 1 else "one data set"
        ),
        "largest log ratio of one cell's release between neighbouring counts": (
            f"{largest['neighbours']:.3f} (at least {largest['neighbours_at_least']:.3f}), "
            f"of {ratios.datasets} data set{'s' * (ratios.datasets > 1)}"
        ),
        "median over cells": f"{float(ratios.by_cell['neighbours'].median()):.3f}",
    }
