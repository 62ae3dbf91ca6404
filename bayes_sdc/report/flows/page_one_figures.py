"""Figures on the first page of the internal flow report, each with a verdict.

A number and the verdict beside it are of one measure: what a limit of the policy judges has a
figure of its own.
"""

from collections.abc import Iterable

import numpy as np

from bayes_sdc.convergence import RHAT_LIMIT
from bayes_sdc.flows.intruder.probabilities.gain import LIMITS, PRIORS
from bayes_sdc.flows.protection import Measured, Protection
from bayes_sdc.policy import LimitCheck
from bayes_sdc.report.contents import NOT_JUDGED
from bayes_sdc.report.figures import Figure
from bayes_sdc.report.flows.gain import before_words
from bayes_sdc.report.flows.utility import CLOSE
from bayes_sdc.report.policy_limits import Told
from bayes_sdc.results import or_undefined

ALIKE = 3.0  # pMSE ratio up to which it passes; at 1 to 2 nobody can tell the rows apart

USES = {"use_totals_error": "error of totals", "use_pmse_ratio": "pMSE ratio"}


def page_one_figures(result: Protection, measured: Measured) -> list[Figure]:
    """Return the figures for those who may see everything: each with a verdict, or not judged.

    Parameters
    ----------
    result : Protection
        With small cells.
    measured : Measured
        Of it.
    """
    gain = measured.worst.strongest
    limits = {check.key: check for check in result.checks if isinstance(check, LimitCheck)}

    def judged(key: str) -> tuple[str, str]:
        check = limits.get(f"limit_{key}")
        if check is None:
            return NOT_JUDGED, "no limit"
        return check.verdict, _limit(check)

    found, bits, use = gain.guessed, gain.bits, measured.utility
    interval = (
        "" if bits.interval is None else " (gain, 95 %: {:+.3f} to {:+.3f})".format(*bits.interval)
    )
    rhat = float(measured.groups["rhat"].max())
    convergence = next((c for c in result.checks if c.key == "convergence"), None)
    return [
        Figure(
            f"{or_undefined(found.before, '.1%')} → {or_undefined(found.after, '.1%')}",
            f"of the small counts found, {before_words(gain)}",
            NOT_JUDGED,
            _other_intruder(limits),
        ),
        *_shares(measured, limits),
        Figure(
            f"{or_undefined(None if bits.gain is None else abs(bits.gain), '.3f')} bits",
            f"{'less' if (bits.gain or 0.0) < 0.0 else 'more'} known about a true count on "
            f"average{interval}",
            *judged("gain_bits"),
        ),
        Figure(
            f"{gain.pushed[LIMITS[1]]:,}",
            f"of {gain.cells:,} cells pushed past 80 %",
            *judged("pushed_over_80"),
        ),
        Figure(
            f"{use.totals_error:.1%}",
            "error of the totals of small cells by area",
            *(
                judged("totals_error")
                if "limit_totals_error" in limits
                else (_graded(use.totals_error, CLOSE), f"pass up to {CLOSE:.0%}")
            ),
            short="" if "limit_totals_error" in limits else "error of totals",
            key="use_totals_error",
        ),
        Figure(
            or_undefined(use.pmse_ratio, ".2f"),
            "pMSE ratio: how well released rows are told from true ones, 1 or less if not at all",
            *(judged("pmse_ratio") if "limit_pmse_ratio" in limits else _told_apart(measured)),
            short="" if "limit_pmse_ratio" in limits else "pMSE ratio",
            key="use_pmse_ratio",
        ),
        Figure(
            f"{rhat:.3f}" if np.isfinite(rhat) else "none",
            "largest R-hat of the chains",
            NOT_JUDGED if convergence is None else convergence.verdict,
            f"at most {RHAT_LIMIT} is wanted",
        ),
    ]


def _told_apart(measured: Measured) -> tuple[str, str]:
    """Judge how well rows are told apart; by means alone, which kept totals make the true ones."""
    if measured.keeps_totals:
        return NOT_JUDGED, "blind where totals are kept; section on use"
    return _graded(measured.utility.pmse_ratio, ALIKE), f"pass up to {ALIKE:g}"


def _other_intruder(limits: dict[str, LimitCheck]) -> str:
    """Say where the limits on shares that are found are judged: of the intruder asked for."""
    return "policy: see R_all" if {"limit_r_all", "limit_r_unq"} & limits.keys() else "no limit"


def _shares(measured: Measured, limits: dict[str, LimitCheck]) -> list[Figure]:
    """Return what a policy limits of the intruder asked for, who may not be the strongest."""
    asked = f"found by an intruder who {PRIORS[measured.risk.prior]}"
    of = {
        "r_all": f"R_all: small counts {asked}",
        "r_unq": f"R_unq: cells of the riskiest kind {asked}"
        if "limit_r_all" not in limits
        else "R_unq: the same of cells of the riskiest kind",
        "true_count_probability": "largest probability of the true count of a cell",
    }
    return [
        Figure(or_undefined(check.value, ".1%"), words, check.verdict, _limit(check))
        for key, words in of.items()
        if (check := limits.get(f"limit_{key}")) is not None
    ]


def _limit(check: LimitCheck) -> str:
    """Say in short what a limit judged: the figure beside it is rounded."""
    unknown = "" if check.known else ", not known to be kept"
    return f"policy: {check.compared}{unknown}"


def _graded(value: float | None, limit: float) -> str:
    """Judge a measure of use; never as a fail, because use alone does not hold a release."""
    if value is None or not np.isfinite(value):
        return NOT_JUDGED
    return "pass" if value <= limit else "look"


def use_checks(figures: Iterable[Figure]) -> list[Told]:
    """Return what the figures of page one say on the use, for the section on it.

    Parameters
    ----------
    figures : iterable of Figure
        Of page one.

    Returns
    -------
    list of Told
        The same verdicts: a section cannot call facts what page one judges.
    """
    return [
        Told(USES[one.key], one.verdict, f"{one.number}{one.why and f', {one.why}'}", one.key)
        for one in figures
        if one.key in USES and one.verdict != NOT_JUDGED
    ]
