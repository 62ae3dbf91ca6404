"""The first page of a flow report: findings in sentences made from the results, and figures.

A board reads it alone. The sections after it hold the reasons.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from bayes_sdc.checks import Check
from bayes_sdc.flows.guarantee import factor
from bayes_sdc.flows.intruder.probabilities.gain import (
    LIMITS,
    PRIORS,
    Gain,
    earlier_in_words,
    headline,
)
from bayes_sdc.flows.protection import Measured, Protection
from bayes_sdc.flows.release.synthetic.released import released_counts
from bayes_sdc.flows.release.totals.kept import PINS
from bayes_sdc.flows.release.use.uses import VERDICTS
from bayes_sdc.policy import LimitCheck
from bayes_sdc.report.contents import NOT_HELD
from bayes_sdc.report.figures import Figure, listed
from bayes_sdc.report.flows.gain import knows
from bayes_sdc.report.flows.intruder import not_trusted
from bayes_sdc.report.flows.page_one_figures import page_one_figures
from bayes_sdc.report.flows.public_shares import PUBLIC_CELLS
from bayes_sdc.results import or_undefined

ONE_SIDED = 0.9  # share of the largest errors with one sign, from which the page says so
PER_MILLE = 0.001  # error of all totals together, from which the page gives it
LARGEST = 20  # number of errors of totals considered
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
    figures = page_one_figures(result, measured)
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


def external_page_one(
    result: Protection, adds: str, rows: str, use: Mapping[str, Any]
) -> dict[str, Any]:
    """First page for the public: what was released, and how much it reveals.

    Parameters
    ----------
    result : Protection
        With small cells.
    adds : str
        The public's sentence on what the release adds; empty where it is withheld.
    rows : str
        Number of small cells, in words for the public.
    use : mapping
        What the public reads of the use: ``uses``, by verdict, empty where they are withheld, and
        ``uses_why``, why they are.
    """
    table, measured = result.table, result.measured
    if measured is None:
        return {"page_one": [], "figures": []}
    answers = [
        (
            "What was released",
            f"A table of flows with {rows} small counts ({table.low} to {table.high}). They were "
            f"replaced by draws from a statistical model{_pinned(result)}. "
            f"{_kept(result, measured, internal=False)}{_others(result)}{_earlier(measured)}",
        ),
        (
            "What it reveals about single counts",
            adds or (FEW if table.n_small < PUBLIC_CELLS else UNRELIABLE),
        ),
        *_promised(result),
        (
            "What it is for",
            f"{_public_uses(use['uses']) or use['uses_why']} A single small count that was "
            "replaced is a draw, not a count of persons.",
        ),
    ]
    return {"page_one": answers, "figures": []}


def _public_uses(uses: Mapping[str, list[str]]) -> str:
    """Say what the public reads of the uses: what was judged, and nothing else."""
    return " ".join(
        f"{verdict.capitalize()}: {listed([_lower(use) for use in named], len(named))}."
        for verdict, named in uses.items()
    )


def _earlier(measured: Measured) -> str:
    """Name the releases that are out already: who has them knows more."""
    number = measured.worst.already_released.sizes["dataset"]
    counts = "is out already and counts" if number == 1 else "are out already and count"
    return f" {earlier_in_words(number)} of this table {counts} in the risk." if number else ""


def _left(low: int) -> str:
    """Say what is released as it is below the small counts."""
    if low <= 0:
        return "Pairs that are not in the table"
    return "Empty pairs" if low == 1 else "Empty pairs and smaller counts"


def _changed(result: Protection, measured: Measured) -> str:
    table, risk = result.table, measured.risk
    equal = (released_counts(table, result.release) == table.cells["y"].to_numpy()).mean()
    several = " on average over these" if risk.datasets > 1 else ""
    by_chance = "" if _keeps(measured) else " by chance"  # kept totals leave less to it
    kept = f"; {equal:.0%} of all equal the true ones{several}{by_chance}"
    sets = "" if risk.datasets == 1 else f", in {risk.datasets} data sets"
    return (
        f"{table.n_small:,} of {table.n_read:,} rows hold a small count ({table.low} to "
        f"{table.high}). They were replaced by draws from a model of the whole table{sets}"
        f"{_pinned(result)}{kept}. {_kept(result, measured, internal=True)}{_others(result)}"
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


def _keeps(measured: Measured) -> bool:
    return measured.kept is not None and bool(measured.kept.sides)


def _kept(result: Protection, measured: Measured, *, internal: bool) -> str:
    """Say which totals the release has in common with the table; empty where none is kept."""
    kept = measured.kept
    if kept is None:
        return ""
    if not kept.sides:
        tells = "follow" if kept.why == PINS else "nearly certain"
        return f"No totals of the table are kept, because they would make small counts {tells}. "
    aside = _aside(result, rounded=kept.base > 1)
    left_aside = f", {aside} left aside," if aside else ""
    how = (
        "the true ones"
        if kept.base == 1
        else f"kept to a base: they round to the same multiples of {kept.base} as the true ones"
    )
    names, merged = " and ".join(kept.names), len(kept.merged)
    if internal and merged:
        return (
            f"{kept.number:,} of {kept.number + merged:,} totals of the release by "
            f"{names}{left_aside} are {how}; {merged:,} are so only in sum. "
        )
    # how many are merged, single cells decide
    in_sum = ", each by itself or only in sum with others" if merged else ""
    return f"Totals of the release by {names}{left_aside} are {how}{in_sum}. "


def _aside(result: Protection, *, rounded: bool) -> str:
    """Rows that are not in a kept total: those not released as they are, or any own area.

    Exact totals stay the true ones with counts that are released as they are; rounding does not.
    """
    table = result.table
    stayed = result.stayed > 0 or (rounded and len(table.own_areas) > 0)
    few = bool(table.withheld)
    return " and ".join(["people who stayed"] * stayed + ["what rests on too few people"] * few)


def _others(result: Protection) -> str:
    """Say how the other counts were treated."""
    how = "left blank" if result.own_area == "withhold" else "synthetic"
    stayed = f"Small counts of people who stayed in their area are {how}. "
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
    earlier = risk.already_released.sizes["dataset"]
    by = f"{'counts of the ' * gain.totals}release{'s' * (earlier > 0)}"
    text = (
        f"{headline(gain, earlier)}. {_knows(risk.knowledge, bounds)} "
        f"The true count of {pushed:,} of {gain.cells:,} cells gets a probability above 80 % by "
        f"the {by}; {certain:,} had one "
        f"{'by the totals that it keeps' if gain.totals else 'before'}. "
        f"{_weaker(risk.gains.values(), gain)}"
    )
    if doubtful := not_trusted(measured.scenarios):
        text += (
            f' Do not rely on {doubtful} of section "Intruder risk": more than one cell in a '
            "hundred rests on unreliable weights or too few draws."
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
    others = knows(knowledge)
    return f"This intruder knows {others}{', ' * bool(others)}{known}."


def _weaker(gains: Iterable[Gain], strongest: Gain) -> str:
    """Say what intruders gain and find who expected something else, where it is more."""
    others = [one for one in gains if one is not strongest and one.guessed.gain is not None]
    if not others:
        return ""
    gains_most = max(others, key=lambda one: one.guessed.gain or 0.0)
    finds_most = max(others, key=lambda one: one.guessed.after or 0.0)
    gains_more = (gains_most.guessed.gain or 0.0) > (strongest.guessed.gain or 0.0)
    finds_more = (finds_most.guessed.after or 0.0) > (strongest.guessed.after or 0.0)
    said = [("gains", gains_most)] * gains_more
    if finds_more and not (gains_more and finds_most is gains_most):
        said.append(("finds", finds_most))
    return " ".join(
        f"One who {PRIORS[one.prior]} (prior {one.prior}) {does} more: from "
        f"{or_undefined(one.guessed.before, '.1%')} to {or_undefined(one.guessed.after, '.1%')}."
        for does, one in said
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
    error, true = margins["synthetic"] - margins["true"], margins["true"]
    relative = error / true.where(true > 0)
    worst = relative.dropna().sort_values(key=abs, ascending=False, kind="stable")[:LARGEST]
    worst = worst[worst != 0.0]
    if len(worst) < LARGEST // 2:
        return ""
    above = float((worst > 0.0).mean())
    share, sign, side = (above, 1.0, "large") if above > 0.5 else (1.0 - above, -1.0, "small")
    if share < ONE_SIDED:
        return ""
    which = (
        "All the worst totals" if share == 1.0 else f"Of the {len(worst)} worst totals {share:.0%}"
    )
    large = true > true.median()
    of_all = float(error.sum() / true.sum())
    why = ""
    if side == "large" and (~large[worst.index]).mean() >= ONE_SIDED and error[large].sum() < 0.0:
        why = ": small areas are drawn towards the mean"
    elif sign * of_all >= PER_MILLE:
        why = f": totals are {abs(of_all):.1%} too {side} in all"
    return f"{which} are too {side}{why}."


def _to_decide(checks: list[Check], figures: list[Figure]) -> str:
    failed = [check.name for check in checks if check.verdict == "fail"]
    look = [check.name for check in checks if check.verdict == "look"]
    look += [one.short for one in figures if one.short and one.verdict == "look"]
    sentences = []
    if failed:
        sentences.append(
            f"Failed: {', '.join(failed)}. The release is held until somebody answers for it."
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
        f"{_left(result.table.low)} are released as they "
        "are. Another intruder, with other knowledge, finds other numbers."
    )
    return " ".join(sentences)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
