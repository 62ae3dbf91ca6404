"""The first page of a report on records: the findings in sentences made from the results.

A board reads it alone. The sections after it hold the reasons.
"""

from typing import Any

from bayes_sdc.microdata.comparison.result import UNIQUES
from bayes_sdc.microdata.latent_classes.risk import Estimate90
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.microdata.posterior.sampling import Estimate
from bayes_sdc.policy import LimitCheck
from bayes_sdc.report.contents import NOT_HELD
from bayes_sdc.report.figures import grouped, listed
from bayes_sdc.report.microdata.drivers import tell_drivers
from bayes_sdc.report.microdata.method_names import named
from bayes_sdc.report.microdata.numbers import count, part, wide
from bayes_sdc.report.microdata.page_one_figures import figures_of
from bayes_sdc.report.microdata.treated_words import Treated, measured_of, tell_treated
from bayes_sdc.report.microdata.trust import why_not

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
    return {
        "page_one": [
            ("What the file is", _file(result)),
            (f"What an intruder could do{done}", _could(result)),
            ("What drives the risk", tell_drivers(result)),
            ("The estimate, and why this one", _estimate(result)),
            ("What was treated", tell_treated(treated)),
            ("What is to be decided", _to_decide(result, treated)),
            ("What was not judged", f"{OTHER_KNOWLEDGE} {HARM}"),
        ],
        "figures": figures_of(result, treated),
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
            f"every {result.data.n:,} guesses, one per record, {wide(result.worst.expected)} are "
            "right by the worst model."
        )
    doubt = "" if found.trusted else f"This estimate is not to be relied on: {why_not(found)}. "
    share = found.tau2.value / found.uniques
    return (
        f"{doubt}They know the key values of a person, find a single record with them, and believe "
        f"that it is theirs. That is right for {wide(found.tau2)} of the {found.uniques:,} sample "
        f"uniques, {part(share)}. {wide(found.tau1)} of them are alone in the population too: "
        "there the intruder is never wrong, if the values are recorded rightly. An intruder who "
        "knows that the person is in the file is then never wrong for any of the "
        f"{found.uniques:,}."
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
        else f"Do not rely on it here: {why_not(found)}. Then the range over all methods is what "
        "is known."
    )
    truth = ""
    if result.truth is not None:
        truth = (
            f" The truth is known here: {result.truth.tau1:,} are. The interval "
            f"{holds(found.tau1, result.truth.tau1)}."
        )
    return (
        f"Latent classes: {wide(found.tau1)} sample uniques are alone in the population (90 % "
        f"interval). {trust} Over all methods {_range(result)}.{truth}"
    )


def _range(result: Measurement) -> str:
    """Say the range over all methods, and what the two at its ends are."""
    if result.comparison is not None:
        methods = result.comparison.methods
        expected = methods.loc[methods["about"] == UNIQUES, "expected"]
        low, high = str(expected.idxmin()), str(expected.idxmax())
        return (
            f"it is {count(expected.min())} ({named(low)}) to {count(expected.max())} "
            f"({named(high)})"
        )
    by_model = {name: model.expected.value for name, model in result.models.items()}
    low, high = min(by_model, key=by_model.__getitem__), max(by_model, key=by_model.__getitem__)
    return (
        f"{count(by_model[low])} ({low}) to {count(by_model[high])} ({high}) of {result.data.n:,} "
        "records are re-identified"
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
