"""What both reports say about the guarantee: promise, public knowledge, and convergence.

Here the external report holds nothing measured with true counts except the verdict on the chains.
"""

import math
from typing import Any, Literal

from bayes_sdc.convergence import ESS_LIMIT, RHAT_LIMIT
from bayes_sdc.flows.guarantee import Guarantee
from bayes_sdc.flows.intruder.log_ratios import log_ratios
from bayes_sdc.flows.protection import Measured, Protection


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
    return {
        "promise": found.promise(),
        "holds": found.holds,
        "public": found.public,
        "numbers": _beside(found, measured) if internal else {},
    }


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
