"""The first page of a report on records: the findings in sentences made from the results.

A board reads it alone. The sections after it hold the reasons.
"""

from typing import Any

from bayes_sdc.microdata.comparison.result import UNIQUES
from bayes_sdc.microdata.latent_classes.risk import Estimate90, LatentClassRisk
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.microdata.posterior.sampling import Estimate
from bayes_sdc.microdata.treatment.result import METHODS, Treatment
from bayes_sdc.microdata.treatment.utility import SMALL_RATIO, SMALL_TABLE, TreatedUtility
from bayes_sdc.policy import LimitCheck
from bayes_sdc.report.contents import NOT_HELD, NOT_JUDGED
from bayes_sdc.report.figures import Figure, grouped, listed
from bayes_sdc.report.microdata.drivers import tell_drivers
from bayes_sdc.results import or_undefined

Treated = tuple[Treatment, TreatedUtility]
FEW = 10.0  # smaller numbers get a decimal
LEVEL = 0.2  # risk of a record that is counted on page one

WHY = (
    "It is recommended because it alone learns both from the file: how the key variables depend on "
    "each other, and how far combinations scatter about that. The others assume the one or the "
    "other."
)
OTHER_KNOWLEDGE = "Somebody who knows other things about a person than the key variables."
HARM = "What the file reveals about people who are not identified, and what harm that does."


def internal_page_one(result: Measurement, treated: Treated | None) -> dict[str, Any]:
    """Paragraphs and figures for those who may see everything.

    Parameters
    ----------
    result : Measurement
        With the checks that apply: those of the treated file where there is one.
    treated : Treatment and TreatedUtility, or None
        What was done to the file.

    Returns
    -------
    dict
        ``page_one``: pairs of a question and its answer; ``figures``: :class:`Figure`.
    """
    done = measured_of(treated) if treated else " if it leaves as it is"
    figures = _measured_figures(result) if treated is None else _treated_figures(result, treated)
    return {
        "page_one": [
            ("What the file is", _file(result)),
            (f"What an intruder could do{done}", _could(result)),
            ("What drives the risk", tell_drivers(result)),
            ("The estimate, and why this one", _estimate(result)),
            ("What was treated", _treated(treated)),
            ("What is to be decided", _to_decide(result, treated)),
            ("What was not judged", f"{OTHER_KNOWLEDGE} {HARM}"),
        ],
        "figures": figures,
    }


def _file(result: Measurement) -> str:
    data, N = result.data, result.population_size
    weights = data.weights
    summed = weights is not None and abs(float(weights.sum()) - N) < 1.0
    by = ", by the sum of the weights" * summed
    homes = "" if result.households is None else f" in {len(result.households):,} households"
    size = (
        "It counts as the whole population. "
        if result.whole_population
        else f"It is a sample of {data.n / N:.1%} of {N:,} people{by}. "
    )
    return (
        f"{data.n:,} records of persons{homes}. {size}The key variables, which somebody could know "
        f"of a person and find in the file, are {', '.join(data.keys)}. "
        f"{data.sample_uniques:,} records ({data.sample_uniques / data.n:.0%}) are sample uniques: "
        "alone in the file with their values."
    )


def _could(result: Measurement) -> str:
    found, uniques = result.latent_classes, result.data.sample_uniques
    if result.whole_population:
        return (
            f"They are sure of the {uniques:,} records that are alone, for nobody else has these "
            f"values. Of every {result.data.n:,} guesses, one per record, "
            f"{result.risk.expected:,.0f} are right."
        )
    if found is None:
        return (
            "No record is alone in the file with its values, so they cannot be sure of one. Of "
            f"every {result.data.n:,} guesses, one per record, {_wide(result.worst.expected)} are "
            "right by the worst model."
        )
    share = found.tau2.value / found.uniques
    return (
        f"They know the key values of a person, find a single record with them, and believe that "
        f"it is theirs. That is right for {_wide(found.tau2)} of the {found.uniques:,} sample "
        f"uniques, {share:.0%}. {_wide(found.tau1)} of them are alone in the population too: there "
        "the intruder is never wrong, if the values are recorded rightly. An intruder who knows "
        f"that the person is in the file is then never wrong for any of the {found.uniques:,}."
    )


def _estimate(result: Measurement) -> str:
    found = result.latent_classes
    if found is None:
        return (
            "No model was needed: how many people share the values of a record counts as known."
            if result.whole_population
            else "Latent classes, which are recommended, estimate the risk of sample uniques; this "
            f"file has none. By the models of frequencies {_range(result)}."
        )
    trust = (
        WHY
        if found.trusted
        else "Do not rely on it here: the chains disagree, or it is too uncertain to be of use; "
        "its checks say which. Then the range over all methods is what is known."
    )
    truth = ""
    if result.truth is not None:
        truth = (
            f" The truth is known here: {result.truth.tau1:,} are. The interval "
            f"{holds(found.tau1, result.truth.tau1)}."
        )
    return (
        f"Latent classes: {_wide(found.tau1)} sample uniques are alone in the population (90 % "
        f"interval). {trust} Over all methods {_range(result)}.{truth}"
    )


def _range(result: Measurement) -> str:
    """Say the range over all methods."""
    if result.comparison is not None:
        methods = result.comparison.methods
        expected = methods.loc[methods["about"] == UNIQUES, "expected"]
        return (
            f"it is {expected.min():,.0f} ({expected.idxmin()}) to {expected.max():,.0f} "
            f"({expected.idxmax()})"
        )
    by_model = {name: model.expected.value for name, model in result.models.items()}
    low, high = min(by_model, key=by_model.__getitem__), max(by_model, key=by_model.__getitem__)
    return (
        f"{by_model[low]:,.1f} ({low}) to {by_model[high]:,.1f} ({high}) of {result.data.n:,} "
        "records are re-identified"
    )


def measured_of(treated: Treated | None) -> str:
    """Say what was measured of a file that was treated: what it was before.

    Recoding comes before the measurement.
    """
    if treated is None:
        return ""
    done = treated[0]
    if done.recoded is None:
        return " before the treatment"
    return " with the recoded file" + ", before the treatment" * (done.method != "recoding")


def before_in(done: Treatment) -> str:
    """Say of which file the risk before is."""
    if done.before_recoded:
        return "in the recoded file (the file as it came was not measured)"
    return "before it"


def before_and_after(done: Treatment) -> str:
    """Say the same of two numbers."""
    if done.recoded is None:
        return "before and after the treatment"
    if done.before_recoded:
        return "in the recoded file and after the treatment"
    return f"before the recoding and after {'it' if done.method == 'recoding' else 'the treatment'}"


def _treated(treated: Treated | None) -> str:
    if treated is None:
        return "Nothing: this run measures the file and changes nothing in it."
    done, use = treated
    before, after, strongest = done.before, done.after, done.strongest
    good = [one.use for one in use.good_for if one.good]
    bad = [one.use for one in use.good_for if one.good is False]
    done_to = (
        f"{int(done.treated.sum()):,} of {done.data.n:,} records, in "
        f"{listed(list(done.treated_keys), 8) or 'no key'}: {METHODS[done.method]}."
    )
    if done.recoded is not None:
        recoded = (
            f"{int(done.recoded.any(axis=1).sum()):,} of {done.data.n:,} records have coarser "
            f"levels of {listed(list(done.recoded_keys), 8)}."
        )
        done_to = recoded if done.method == "recoding" else f"{recoded} Then {done_to}"
    return (
        f"{done_to} Right matches were {before.expected.value:,.0f} {before_in(done)}, and are "
        f"{_wide(after.expected)} after it, and "
        f"{strongest.expected.value:,.0f} for an intruder who knows which records were treated. "
        f"The file stays good for {listed(good, len(good)) or 'nothing that was measured'}; it is "
        f"not good for {listed(bad, len(bad)) or 'nothing that was measured'}. "
        + " ".join(f"{note[0].upper()}{note[1:]}." for note in done.notes)
    )


def _to_decide(result: Measurement, treated: Treated | None) -> str:
    failed = [check.name for check in result.checks if check.verdict == "fail"]
    look = [check.name for check in result.checks if check.verdict == "look"]
    sentences = []
    if failed:
        sentences.append(
            f"Failed: {listed(failed, len(failed))}. The release is held until somebody answers "
            "for it."
        )
    if look:
        sentences.append(f"Read before a release: {grouped(look)}. {NOT_HELD}")
    if treated is None and result.drivers is not None:
        sentences.append("Whether the file leaves as it is, or with fewer or coarser keys.")
    target = None if treated is None else treated[0].target_risk
    if not any(isinstance(check, LimitCheck) for check in result.checks):
        sentences.append(
            "How much risk is too much: no policy with limits was given, so no risk was judged."
            if target is None
            else f"Whether the target, a risk of {target:g} of a record, is low enough: no policy "
            "with limits was given."
        )
    return " ".join(sentences) or "Nothing stands out: every limit of the policy is kept."


def _measured_figures(result: Measurement) -> list[Figure]:
    found, data = result.latent_classes, result.data
    figures = [
        Figure(
            f"{data.sample_uniques:,}",
            f"of {data.n:,} records are alone in the file with their key values",
            *_judged(result, "k"),
        )
    ]
    if found is not None:
        trust, why = _trust(found)
        figures += [
            Figure(
                _wide(found.tau1),
                f"of {found.uniques:,} sample uniques are alone in the population, 90 % interval",
                trust,
                why,
            ),
            Figure(
                _wide(found.tau2),
                "right matches of sample uniques, 90 % interval",
                *_judged(result, "file_risk"),
            ),
        ]
    figures.append(
        Figure(
            f"{int((result.recommended_risk > LEVEL).sum()):,}",
            f"records that are matched rightly with a probability above {LEVEL:g}"
            + (", sample uniques by latent classes" if found is not None else ""),
            *_judged(result, "record_risk"),
        )
    )
    if not result.whole_population:
        low, high = _span(result)
        apart = next((check for check in result.checks if check.key == "models"), None)
        figures.append(
            Figure(
                f"{low:,.0f} to {high:,.0f}",
                "sample uniques alone in the population, by method"
                if result.comparison is not None
                else "expected re-identifications, over all models",
                NOT_JUDGED if apart is None else apart.verdict,
                "pass where models differ by less than a half",
            )
        )
    return figures


def _trust(found: LatentClassRisk) -> tuple[str, str]:
    """Verdict on the estimate, never better than that of its own checks, and why."""
    if not found.trusted:
        return "look", "not trusted"
    chains = next(check for check in found.checks if check.key == "classes_chains")
    if chains.verdict != "pass":
        return "look", "the chains agree about this number, and not about everything"
    return "pass", "chains agree, spread small enough"


def _treated_figures(result: Measurement, treated: Treated) -> list[Figure]:
    done, use = treated
    target = next((check for check in result.checks if check.key == "treatment_target"), None)
    on_target = (NOT_JUDGED, "no target") if target is None else (
        target.verdict, f"target {done.target_risk:g}"
    )  # fmt: skip
    moved = use.distance(2)
    return [
        Figure(
            f"{done.before.expected.value:,.0f} → {_wide(done.after.expected)}",
            f"expected right matches, {before_and_after(done)}, 90 % interval",
            *_judged(result, "file_risk"),
        ),
        Figure(
            f"{done.before.highest:.3f} → {done.after.highest:.3f}",
            f"highest risk of a record, {before_and_after(done)}",
            *on_target,
        ),
        Figure(
            _wide(done.strongest.expected),
            "expected right matches if the treated records are known",
            NOT_JUDGED,
            "",
        ),
        Figure(
            f"{done.changed.mean():.0%}",
            f"of {done.data.n:,} records were {'treated' if done.recoded is None else 'changed'}",
            NOT_JUDGED,
            "",
        ),
        Figure(
            or_undefined(moved, ".1%"),
            "of the records moved between the cells of tables of two keys, a mean",
            NOT_JUDGED if moved is None else "pass" if moved <= SMALL_TABLE else "look",
            f"pass up to {SMALL_TABLE:.0%}",
        ),
        Figure(
            or_undefined(use.pmse_ratio, ".1f"),
            "pMSE ratio: how well released records are told from true ones, 1 if not at all",
            NOT_JUDGED
            if use.pmse_ratio is None
            else "pass"
            if use.pmse_ratio <= SMALL_RATIO
            else "look",
            f"pass up to {SMALL_RATIO:g}",
        ),
    ]


def _judged(result: Measurement, limit: str) -> tuple[str, str]:
    check = next((one for one in result.checks if one.key == f"limit_{limit}"), None)
    return (NOT_JUDGED, "") if check is None else (check.verdict, check.reason)


def _span(result: Measurement) -> tuple[float, float]:
    if result.comparison is None:
        expected = [model.expected.value for model in result.models.values()]
        return min(expected), max(expected)
    methods = result.comparison.methods
    of_uniques = methods.loc[methods["about"] == UNIQUES, "expected"]
    return float(of_uniques.min()), float(of_uniques.max())


def holds(estimate: Estimate | Estimate90, truth: float) -> str:
    """Say whether an interval holds the truth.

    Examples
    --------
    >>> holds(Estimate(2.0, (1.0, 3.0), 0.0), 3.5)
    'misses it: the estimate is too low'
    """
    low, high = estimate.interval
    if low <= truth <= high:
        return "holds it"
    return f"misses it: the estimate is too {'low' if truth > high else 'high'}"


def _wide(estimate: Estimate | Estimate90) -> str:
    low, high = estimate.interval
    form = ",.1f" if 0.0 < high < FEW else ",.0f"
    return f"{estimate.value:{form}} ({low:{form}} to {high:{form}})"
