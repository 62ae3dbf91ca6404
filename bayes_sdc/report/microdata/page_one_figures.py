"""Figures of the first page on records: every number with the verdict on that number.

A limit of a policy has a figure of its own number, so that a limit that is exceeded can be seen,
and no other number seems to be what was judged.
"""

from typing import Any

from bayes_sdc.checks import Check
from bayes_sdc.microdata.comparison.result import UNIQUES
from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.microdata.treatment.result import Treatment
from bayes_sdc.microdata.treatment.utility import SMALL_RATIO, SMALL_TABLE, TreatedUtility
from bayes_sdc.policy import LimitCheck
from bayes_sdc.report.contents import NOT_JUDGED, VERDICTS
from bayes_sdc.report.figures import Figure
from bayes_sdc.report.microdata.numbers import count, wide
from bayes_sdc.report.microdata.treated_words import before_and_after
from bayes_sdc.report.microdata.trust import why_not
from bayes_sdc.results import or_undefined

LEVEL = 0.2  # risk of a record that is counted on page one where no limit is set
FORMS = {"k": ",.0f", "record_risk": ".3f", "file_risk": ".1%"}
NOT_MEASURED = "the detail lost by recoding is not measured here"


def figures_of(
    result: Measurement, treated: tuple[Treatment, TreatedUtility] | None
) -> list[Figure]:
    """Return the figures for those who may see everything.

    Parameters
    ----------
    result : Measurement
        With the checks that apply: those of the treated file where there is one.
    treated : Treatment and TreatedUtility, or None
        What was done to the file.

    Returns
    -------
    list of Figure
        Among them the number of every limit of the policy with its verdict.
    """
    limits = {one.key: one for one in result.checks if isinstance(one, LimitCheck)}
    if treated is None:
        figures, shown = _measured(result, limits)
    else:
        figures, shown = _treated(result, limits, *treated)
    return figures + [_of_limit(one) for key, one in limits.items() if key not in shown]


def _of_limit(limit: LimitCheck) -> Figure:
    """The number of a limit with its verdict."""
    form = FORMS.get(limit.key.removeprefix("limit_"), ".6g")
    words = limit.definition + ", f being the records with its key values" * (
        limit.key == "limit_k"
    )
    return Figure(or_undefined(limit.value, form), words, limit.verdict, _why(limit))


def _why(limit: LimitCheck) -> str:
    """Say why a limit is kept or not, without what is limited."""
    return f"{limit.name}: {limit.reason.removeprefix(f'{limit.definition}: ')}"


def _measured(result: Measurement, limits: dict[str, LimitCheck]) -> tuple[list[Figure], set[str]]:
    """Figures of a file that leaves as it is, and the limits that these show."""
    found, data = result.latent_classes, result.data
    figures = []
    if "limit_k" in limits:
        k = limits["limit_k"]
        below = data.k_violations(int(k.limit)).records
        words = (
            f"of {data.n:,} records share their key values with fewer than {k.limit - 1:g} others"
        )
        figures.append(Figure(f"{below:,}", words, k.verdict, _why(k)))
    else:
        words = f"of {data.n:,} records are alone in the file with their key values"
        figures.append(Figure(f"{data.sample_uniques:,}", words, NOT_JUDGED, ""))
    if found is not None:
        words = f"of {found.uniques:,} sample uniques are alone in the population, 90 % interval"
        figures.append(Figure(wide(found.tau1), words, *_trust(found)))
    if "limit_file_risk" in limits:
        figures.append(_of_limit(limits["limit_file_risk"]))
    elif found is not None:
        judged = (NOT_JUDGED, "") if found.trusted else _trust(found)
        words = "right matches of sample uniques, 90 % interval"
        figures.append(Figure(wide(found.tau2), words, *judged))
    if "limit_record_risk" in limits:
        figures.append(_of_limit(limits["limit_record_risk"]))
    else:
        above = int((result.recommended_risk > LEVEL).sum())
        words = f"records that are matched rightly with a probability above {LEVEL:g}"
        words += ", sample uniques by latent classes" * (found is not None)
        figures.append(Figure(f"{above:,}", words, NOT_JUDGED, ""))
    if not result.whole_population:
        figures.append(_models(result))
    return figures, set(limits) & {"limit_k", "limit_file_risk", "limit_record_risk"}


def _models(result: Measurement) -> Figure:
    """The range over all methods, which nothing judges, or over the models, which a check does."""
    if result.comparison is not None:
        methods = result.comparison.methods
        expected = methods.loc[methods["about"] == UNIQUES, "expected"]
        return Figure(
            f"{count(expected.min())} to {count(expected.max())}",
            "sample uniques alone in the population, over all methods",
            NOT_JUDGED,
            "",
        )
    apart = next((check for check in result.checks if check.key == "models"), None)
    values = [model.expected.value for model in result.models.values()]
    return Figure(
        f"{count(min(values))} to {count(max(values))}",
        "expected re-identifications, over all models of frequencies",
        *((NOT_JUDGED, "") if apart is None else (apart.verdict, apart.reason)),
    )


def _trust(found: LatentClassRisk) -> tuple[str, str]:
    """Verdict on the estimate, never better than that of its own checks, and why."""
    if not found.trusted:
        return "look", f"not to be relied on: {why_not(found)}"
    chains = next(check for check in found.checks if check.key == "classes_chains")
    if chains.verdict != "pass":
        return "look", "the chains agree about this number, and not about everything"
    return "pass", "chains agree, spread small enough"


def _treated(
    result: Measurement, limits: dict[str, LimitCheck], done: Treatment, use: TreatedUtility
) -> tuple[list[Figure], set[str]]:
    """Figures of a treated file, and the limits that these show."""
    file_risk = limits.get("limit_file_risk")
    both = before_and_after(done)
    changed = f"of {done.data.n:,} records "
    changed += (
        f"have coarser levels; {NOT_MEASURED}"
        if done.only_recoded
        else "were treated"
        if done.recoded is None
        else "were changed"
    )
    figures = [
        Figure(
            f"{count(done.before.expected.value)} → {wide(done.after.expected)}",
            f"expected right matches, {both}, 90 % interval",
            *((NOT_JUDGED, "") if file_risk is None else (file_risk.verdict, _why(file_risk))),
        ),
        Figure(
            f"{done.before.highest:.3f} → {done.after.highest:.3f}",
            f"highest risk of a record, {both}",
            *_highest(result, limits, done),
        ),
        Figure(f"{done.changed.mean():.0%}", changed, NOT_JUDGED, ""),
    ]
    # what was only recoded is compared with itself, and no record is known to be treated
    if not done.only_recoded:
        words = "expected right matches if the treated records are known"
        known = Figure(wide(done.strongest.expected), words, NOT_JUDGED, "")
        figures = [*figures[:2], known, figures[2], *_cost(done, use)]
    return figures, {"limit_file_risk", "limit_record_risk"}


def _highest(
    result: Measurement, limits: dict[str, LimitCheck], done: Treatment
) -> tuple[str, str]:
    """The worse of the verdicts on the highest risk of a record, and what decides it."""
    told: list[tuple[str, str]] = []
    target: Check | None = next(
        (check for check in result.checks if check.key == "treatment_target"), None
    )
    if target is not None:
        missed = "kept, but not if the treated records are known"
        why = {"pass": "kept", "look": missed, "fail": "missed"}[target.verdict]
        told.append((target.verdict, f"target {done.target_risk:g}: {why}"))
    if "limit_record_risk" in limits:
        limit = limits["limit_record_risk"]
        told.append((limit.verdict, _why(limit)))
    if not told:
        return NOT_JUDGED, "no target"
    worst = max((verdict for verdict, _ in told), key=VERDICTS.index)
    return worst, "; ".join(why for verdict, why in told if verdict == worst)


def _cost(done: Treatment, use: TreatedUtility) -> list[Figure]:
    """What the treatment took from the file."""
    moved, ratio = use.distance(2), use.pmse_ratio
    beside = "" if done.recoded is None else ", beside the recoded file"

    def judged(value: float | None, limit: float, told: str) -> dict[str, Any]:
        verdict = NOT_JUDGED if value is None else "pass" if value <= limit else "look"
        return {"verdict": verdict, "why": f"pass up to {told}"}

    return [
        Figure(
            or_undefined(moved, ".1%"),
            f"of the records moved between the cells of tables of two keys, a mean{beside}",
            **judged(moved, SMALL_TABLE, f"{SMALL_TABLE:.0%}"),
        ),
        Figure(
            or_undefined(ratio, ".1f"),
            "pMSE ratio: how well released records are told from true ones, 1 or less if not at all"
            f"{beside}",
            **judged(ratio, SMALL_RATIO, f"{SMALL_RATIO:g}"),
        ),
    ]
