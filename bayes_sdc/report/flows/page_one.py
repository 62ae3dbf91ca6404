"""The first page of a flow report: findings in sentences made from the results, and figures.

A board reads it alone. The sections after it hold the reasons.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from bayes_sdc.checks import Check
from bayes_sdc.convergence import RHAT_LIMIT
from bayes_sdc.flows.guarantee import factor
from bayes_sdc.flows.intruder.probabilities.gain import LIMITS, Gain, headline
from bayes_sdc.flows.protection import Measured, Protection
from bayes_sdc.flows.release.use.uses import VERDICTS
from bayes_sdc.policy import LimitCheck
from bayes_sdc.report.contents import NOT_HELD, NOT_JUDGED
from bayes_sdc.report.figures import Figure, listed
from bayes_sdc.report.flows.intruder import not_trusted
from bayes_sdc.report.flows.public_shares import PUBLIC_CELLS
from bayes_sdc.report.flows.utility import CLOSE
from bayes_sdc.report.policy_limits import Told
from bayes_sdc.results import or_undefined

ONE_SIDED = 0.9  # share of the largest errors with one sign, from which the page says so
LARGEST = 20  # number of errors of totals considered
ALIKE = 3.0  # pMSE ratio up to which it passes; at 1 to 2 nobody can tell the rows apart

USES = {"use_totals_error": "error of totals", "use_pmse_ratio": "pMSE ratio"}

FEW = "Not shown: with few small counts it could reveal them."
UNRELIABLE = "Not shown: it rests on unreliable weights, or on too few draws."


def internal_page_one(result: Protection) -> dict[str, Any]:
    """Paragraphs and figures for those who may see everything.

    Parameters
    ----------
    result : Protection
        With small cells.

    Returns
    -------
    dict
        ``page_one``: pairs of a question and its answer; ``figures``: :class:`Figure`.
    """
    measured = result.measured
    if measured is None:
        return {"page_one": [], "figures": []}
    figures = _figures(result, measured, measured.worst.strongest)
    bounds = f"{result.table.low} to {result.table.high}"
    return {
        "page_one": [
            ("What was changed", _changed(result, measured)),
            ("What the release tells an intruder", _told_by(measured, bounds)),
            *_promised(result),
            ("What users of the table keep and lose", _lost(measured)),
            ("What is to be decided", _to_decide(result.checks, figures)),
            ("What was not judged", _not_judged(result)),
        ],
        "figures": figures,
    }


def external_page_one(result: Protection, adds: str, rows: str) -> dict[str, Any]:
    """First page for the public: what was released, and how much it reveals.

    Parameters
    ----------
    result : Protection
        With small cells.
    adds : str
        The public's sentence on what the release adds; empty where it is withheld.
    rows : str
        Number of small cells, in words for the public.
    """
    table, measured = result.table, result.measured
    if measured is None:
        return {"page_one": [], "figures": []}
    answers = [
        (
            "What was released",
            f"A table of flows with {rows} small counts ({table.low} to {table.high}). They were "
            f"replaced by draws from a statistical model{_pinned(result)}. {_kept(measured)}"
            f"{_others(result)}",
        ),
        (
            "What it reveals about single counts",
            adds or (FEW if table.n_small < PUBLIC_CELLS else UNRELIABLE),
        ),
        *_promised(result),
        (
            "What it is for",
            "Sums and patterns over many areas. A single small count that was replaced is a draw, "
            "not a count of persons.",
        ),
    ]
    return {"page_one": answers, "figures": []}


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


def _changed(result: Protection, measured: Measured) -> str:
    table, risk = result.table, measured.risk
    by_chance = "" if result.pinned else " by chance"
    kept = f"; {risk.believes_release:.0%} of these equal the true ones{by_chance}"
    sets = "" if risk.datasets == 1 else f", in {risk.datasets} data sets"
    return (
        f"{table.n_small:,} of {table.n_read:,} rows hold a small count ({table.low} to "
        f"{table.high}). They were replaced by draws from a model of the whole table{sets}"
        f"{_pinned(result)}{kept}. {_kept(measured)}{_others(result)}"
    )


def _promised(result: Protection) -> list[tuple[str, str]]:
    """Say in a sentence what is promised; nothing where no promise was asked for."""
    found = result.guarantee
    if found is None:
        return []
    answer = (
        "To every person in a cell that would be small without them too: by the release, the odds "
        f"that they are counted there change by at most the factor {factor(found.total)}. Its "
        "section says what that rests on."
        if found.holds
        else f"Nothing. {found.promise()[0]}"
    )
    return [("What is promised", answer)]


def _pinned(result: Protection) -> str:
    """Say which small counts are not draws: that follows from the release and is not secret."""
    if not result.pinned:
        return ""
    return (
        ", but for those with one possible count given the totals that the release keeps: these "
        "are released as they are"
    )


def _kept(measured: Measured) -> str:
    """Say which totals the release has in common with the table; empty where none is kept."""
    kept = measured.kept
    if kept is None or not kept.sides:
        return ""
    how = (
        "the true ones"
        if kept.base == 1
        else f"kept to a base: they round to the same multiples of {kept.base} as the true ones"
    )
    merged = ", some of them in sum only" if len(kept.merged) else ""
    return f"Totals of the release by {' and '.join(kept.names)} are {how}{merged}. "


def _others(result: Protection) -> str:
    """Say how the other counts were treated."""
    stayed = "Small counts of people who stayed in their area are synthetic or left blank. "
    few = "What rests on too few people is left blank. "
    return (
        stayed * (result.stayed > 0)
        + few * bool(result.table.withheld)
        + "Every other released count is as in the input."
    )


def _told_by(measured: Measured, bounds: str) -> str:
    risk = measured.worst
    gain = risk.strongest
    pushed, certain = gain.pushed[LIMITS[1]], int((gain.by_cell["before"] > LIMITS[1]).sum())
    text = (
        f"{headline(gain)}. {_knows(risk.knowledge, bounds)} "
        f"The true count of {pushed:,} of {gain.cells:,} cells gets a probability above 80 % by "
        f"the release; {certain:,} had one before. {_weaker(risk.gains.values(), gain)}"
    )
    if doubtful := not_trusted(measured.scenarios):
        text += (
            f' Do not rely on {doubtful} of section "Intruder risk": more than one in a hundred '
            "of the cells behind it rests on unreliable weights or too few draws."
        )
    if not gain.trusted:
        text += (
            f" Do not rely on these numbers: {gain.unreliable:,} cells rest on unreliable weights "
            "or too few draws."
        )
    return text


def _knows(knowledge: str, bounds: str) -> str:
    """Say who the strongest intruder is."""
    known = f"the model, and that a small count is {bounds}"
    others = "every small count but those of one cycle of totals, "
    if knowledge.startswith("all-others"):
        others = "every other small count, "
    elif knowledge != "all-but-cycle":
        others = ""
    return f"This intruder knows {others}{known}."


def _weaker(gains: Iterable[Gain], strongest: Gain) -> str:
    """Say what intruders gain who knew less, where one of them gains more."""
    more = [
        one
        for one in gains
        if one.guessed.gain is not None and one.guessed.gain > (strongest.guessed.gain or 0.0)
    ]
    if not more:
        return ""
    most = max(more, key=lambda one: one.guessed.gain or 0.0)
    return (
        f"An intruder who knew less (prior: {most.prior}) gains more, from "
        f"{or_undefined(most.guessed.before, '.1%')} to {or_undefined(most.guessed.after, '.1%')}."
    )


def _lost(measured: Measured) -> str:
    sentences = []
    if measured.uses is not None:
        by_verdict = measured.uses.table.groupby("verdict", sort=False)["use"].agg(list)
        for verdict in VERDICTS:
            if verdict in by_verdict:
                uses = by_verdict[verdict]
                sentences.append(
                    f"{verdict.capitalize()} {listed([_lower(u) for u in uses], len(uses))}."
                )
    sentences.append(
        f"Totals of the small cells by area are off by {measured.utility.totals_error:.1%} in all."
    )
    if to_one_side := one_sided(measured.margins):
        sentences.append(to_one_side)
    return " ".join(sentences)


def one_sided(margins: pd.DataFrame) -> str:
    """Say when the worst totals err to one side; empty when they do not.

    Parameters
    ----------
    margins : DataFrame
        From :func:`bayes_sdc.flows.release.use.utility.margins`.
    """
    relative = (margins["synthetic"] - margins["true"]) / margins["true"].where(margins["true"] > 0)
    worst = relative.dropna().sort_values(key=abs, ascending=False, kind="stable")[:LARGEST]
    worst = worst[worst != 0.0]
    if len(worst) < LARGEST // 2:
        return ""
    above = float((worst > 0.0).mean())
    if above == 1.0:
        return "All the worst totals are too large: small areas are drawn towards the mean."
    if above >= ONE_SIDED:
        return (
            f"Of the {len(worst)} worst totals {above:.0%} are too large: small areas are drawn "
            "towards the mean."
        )
    if above == 0.0:
        return "All the worst totals are too small."
    if above <= 1.0 - ONE_SIDED:
        return f"Of the {len(worst)} worst totals {1.0 - above:.0%} are too small."
    return ""


def _to_decide(checks: list[Check], figures: list[Figure]) -> str:
    failed = [check.name for check in checks if check.verdict == "fail"]
    look = [check.name for check in checks if check.verdict == "look"]
    look += [one.short for one in figures if one.short and one.verdict == "look"]
    sentences = []
    if failed:
        sentences.append(
            f"Failed: {listed(failed)}. The release is held until somebody answers for it."
        )
    if look:
        sentences.append(f"Read before a release: {listed(look, len(look))}. {NOT_HELD}")
    if not any(isinstance(check, LimitCheck) for check in checks):
        sentences.append(
            "How much risk is too much: no policy with limits was given, so no risk was judged."
        )
    return " ".join(sentences) or "Nothing stands out: every limit of the policy is kept."


def _not_judged(result: Protection) -> str:
    sentences = []
    if result.audit is None:
        sentences.append(
            "Totals that are published elsewhere: none were named, and small counts may follow "
            "from them."
        )
    sentences.append(
        f"Empty pairs{'' if result.table.low <= 1 else ' and smaller counts'} are released as they "
        "are. Another intruder, with other knowledge, finds other numbers."
    )
    return " ".join(sentences)


def _figures(result: Protection, measured: Measured, gain: Gain) -> list[Figure]:
    limits = {check.key: check for check in result.checks if isinstance(check, LimitCheck)}

    def judged(key: str) -> tuple[str, str]:
        check = limits.get(f"limit_{key}")
        if check is None:
            return NOT_JUDGED, "no limit"
        asked = f" by an intruder whose prior is {measured.risk.prior}" if key == "r_all" else ""
        return check.verdict, _limit(check, asked)

    found, bits, use = gain.guessed, gain.bits, measured.utility
    interval = "" if bits.interval is None else " (95 %: {:+.3f} to {:+.3f})".format(*bits.interval)
    rhat = float(measured.groups["rhat"].max())
    convergence = next((c for c in result.checks if c.key == "convergence"), None)
    return [
        Figure(
            f"{or_undefined(found.before, '.1%')} → {or_undefined(found.after, '.1%')}",
            "of the small counts found, before any release and after it",
            *judged("r_all"),
        ),
        Figure(
            f"{or_undefined(bits.gain, '+.3f')} bits",
            f"more known about a true count on average{interval}",
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
            "pMSE ratio: how well released rows are told from true ones, 1 if not at all",
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
    if measured.kept is not None and measured.kept.sides:
        return NOT_JUDGED, "blind where totals are kept; section on use"
    return _graded(measured.utility.pmse_ratio, ALIKE), f"pass up to {ALIKE:g}"


def _limit(check: LimitCheck, asked: str) -> str:
    """Say in short what a limit judged: it may be another number than that of the figure."""
    value = "undefined" if check.value is None else f"{check.value:.3g}"
    unknown = "" if check.known else ", not known to be kept"
    return f"policy, {check.definition}{asked}: {value}, fails when {check.exceeded_when}{unknown}"


def _graded(value: float | None, limit: float) -> str:
    """Judge a measure of use; never as a fail, because use alone does not hold a release."""
    if value is None or not np.isfinite(value):
        return NOT_JUDGED
    return "pass" if value <= limit else "look"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
