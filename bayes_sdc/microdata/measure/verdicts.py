"""Verdicts on a measurement: parameters, models, missing values, population."""

from collections.abc import Mapping

from bayes_sdc.checks import Check
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.individual.record_risk import RecordRisk
from bayes_sdc.microdata.individual.superpopulation import SuperpopulationRisk
from bayes_sdc.microdata.measure.population import people_of
from bayes_sdc.microdata.measure.result import Unstructured

OVERLAP = 0.02  # share by which overlapping combinations may exceed the file without a remark
AGREEMENT = 0.05  # relative difference of weight sum and population size that is remarked on


def verdicts(
    data: Microdata,
    risk: RecordRisk,
    models: Mapping[str, SuperpopulationRisk],
    unstructured: Unstructured | None,
    N: int,
    given: int | None,
) -> list[Check]:
    """Return a check for each question that can be asked of this file."""
    learned = [(name, model.converged) for name, model in models.items() if name != "known"]
    if unstructured is not None:
        learned.append(("learned concentration", unstructured.learned.trusted))
    return [
        # a question that was not asked must not be passed
        *([_convergence_check([n for n, trusted in learned if not trusted])] if learned else []),
        *([_models_check(data, models)] if len(models) > 1 else []),
        *_missing_check(data, risk),
        *_population_check(data, risk, N, given),
    ]


def _convergence_check(bad: list[str]) -> Check:
    return Check(
        "convergence",
        "look" if bad else "pass",
        f"parameters are not known to the required digits in: {', '.join(bad)}"
        if bad
        else "the parameters of every model are integrated to eight digits",
        key="convergence",
    )


def _models_check(data: Microdata, models: Mapping[str, SuperpopulationRisk]) -> Check:
    thin = [name for name, model in models.items() if model.converged and not model.trusted]
    shares = [model.expected.value / data.n for model in models.values()]
    alone = [model.tau1.value for model in models.values()]
    apart = any(max(totals) > 1.5 * min(totals) for totals in (shares, alone))
    return Check(
        "models",
        "look" if apart or thin else "pass",
        f"expected share of re-identified records from {min(shares):.2%} to {max(shares):.2%}, "
        f"population uniques among the sample's from {min(alone):,.1f} to {max(alone):,.1f}, "
        "by model"
        + (
            "; model known, which goes by the weights alone, is too low for rare combinations"
            * apart
        )
        + (f"; not trusted for this file: {', '.join(thin)}" if thin else ""),
        key="models",
    )


def _missing_check(data: Microdata, risk: RecordRisk) -> list[Check]:
    if data.missing == "own" or not bool((data.codes < 0).any()):
        return []
    times = float(risk.combinations["f"].sum() / data.n)
    return [
        Check(
            "missing values",
            "look" if times > 1.0 + OVERLAP else "pass",
            f"by the rule {data.missing!r} combinations overlap: their frequencies add up to "
            f"{times:,.2f} times the file. The models take combinations for separate, so their "
            "totals are the worse the more that is above 1: compare those of the rule 'own'",
            key="missing_values",
        )
    ]


def _population_check(data: Microdata, risk: RecordRisk, N: int, given: int | None) -> list[Check]:
    if data.weights is None and risk.sampling_fraction is None:
        return [
            Check(
                "population",
                "look",
                "no weights, population size or sampling fraction: the file counts as the whole "
                "population, and every risk is 1/f",
                key="population",
            )
        ]
    if given is None or data.weights is None:
        return []
    total = people_of(data, None)
    differs = abs(total / N - 1.0) > AGREEMENT
    return [
        Check(
            "population",
            "look" if differs else "pass",
            f"the weights sum to {total:,.0f}, the population has {N:,}",
            key="population",
        )
    ]
