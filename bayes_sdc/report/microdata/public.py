"""What the public may read of the risk of a file: nothing that reveals a single record.

Shares are whole per cents and numbers have two figures; no value of a record and no small count
appears.
"""

import math
from typing import Any

import numpy as np

from bayes_sdc.checks import Check
from bayes_sdc.microdata.file.combinations import RULES
from bayes_sdc.microdata.file.microdata import VIOLATIONS, Microdata
from bayes_sdc.microdata.individual.superpopulation import MODELS
from bayes_sdc.microdata.latent_classes.risk import Estimate90
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.microdata.posterior.sampling import Estimate
from bayes_sdc.policy import LimitCheck
from bayes_sdc.report.policy_limits import PUBLIC_REASON, Told, tell_limit
from bayes_sdc.report.rounding import two_figures

ASSUMPTIONS = {str(name): words for name, words in MODELS.items()}
LEVELS = (0.05, 0.1, 0.2, 0.5)
FEW = 10  # a smaller expected number of households is not shown
PUBLIC_RECORDS = 500  # a share of fewer records, rounded to a per cent, could reveal single ones
PUBLIC_REASONS = {
    (
        "convergence",
        "pass",
    ): "The parameters of every model were computed to the accuracy asked for.",
    (
        "convergence",
        "look",
    ): "The parameters of some models were not computed to the accuracy asked for.",
    ("models", "pass"): "The models agree.",
    ("models", "look"): "The models differ: the risk depends on the assumption.",
    ("classes_chains", "pass"): "The chains agree.",
    ("classes_chains", "look"): "The chains mix slowly, or do not agree about everything.",
    ("classes_width", "pass"): "The estimate is not too uncertain to be of use.",
    ("classes_width", "look"): "The estimate may be wrong by a third or more.",
    ("classes_fraction", "pass"): "The sampling fraction is large enough for estimates of uniques.",
    (
        "classes_fraction",
        "look",
    ): "The estimate rests on how the key variables depend on each other.",
    (
        "classes_kappa",
        "pass",
    ): "The file tells by how much combinations differ from what the key variables "
    "lead one to expect.",
    ("classes_kappa", "look"): "The file does not tell by how much combinations differ from what "
    "the key variables lead one to expect.",
    ("classes_households", "look"): "People of a household were sampled together: the estimate "
    "can be too low by a third.",
    (
        "classes_scatter",
        "pass",
    ): "Combinations are about as frequent as the key variables lead one to expect.",
    (
        "classes_scatter",
        "look",
    ): "Some combinations are far more frequent than the key variables lead one to expect, others "
    "far less.",
    ("classes_divergences", "look"): "The sampler went astray in some steps: do not rely on the "
    "estimate.",
    ("population", "pass"): "Weights and population agree.",
    ("population", "look"): "Weights and population do not agree, or one is missing.",
    ("missing_values", "pass"): "Missing values hardly change how many records share key values.",
    ("missing_values", "look"): "Missing values lower the totals by the rule about them.",
    ("treatment_target", "pass"): "The target for the risk of a record is kept.",
    ("treatment_target", "look"): "The target for the risk of a record is kept, "
    "but not for an intruder who knows which records were treated.",
    ("treatment_target", "fail"): "The target for the risk of a record is missed.",
    ("treatment_chains", "pass"): "The chains agree.",
    ("treatment_chains", "look"): "The chains mix slowly.",
    ("treatment_order", "pass"): "Records are in random order.",
    ("treatment_order", "look"): "Records are in the order of the agency's file.",
    ("treatment_columns", "pass"): "What is kept tells by itself no treated value for certain.",
    ("treatment_columns", "look"): "The agency should read what is told by what is kept.",
    ("treatment_columns", "fail"): "What is kept tells too much.",
}


def public_context(result: Measurement) -> dict[str, Any]:
    """Return what the public may read of the numbers."""
    data = result.data
    enough = data.n >= PUBLIC_RECORDS
    inside = result.expected_by_household
    by_record = result.recommended_risk
    return {
        "input": {
            "records": f"about {two_figures(data.n):,}"
            if enough
            else f"fewer than {PUBLIC_RECORDS}",
            "key variables": ", ".join(data.keys),
            "weights": "yes" if data.weights is not None else "no",
            "households": "yes" if data.household is not None else "no",
            "missing values": missing_rule(data),
        },
        "violation_columns": ["violation", "share of records"],
        "violations": [
            [f"f < {k}", _public(data.k_violations(k).records / data.n, enough)] for k in VIOLATIONS
        ],
        "measures": [
            ["mean risk", _public(float(np.mean(by_record)), enough)],
            *(
                [f"share of records with risk > {level:g}", _public(share, enough)]
                for level in LEVELS
                for share in [float(np.mean(by_record > level))]
            ),
        ],
        "classes": _classes(result),
        "model_columns": [
            "model",
            "expected share of re-identified records",
            "relied on",
            "assumption",
        ],
        "models": [
            [
                name,
                public_interval(model.expected, data.n),
                "yes" if model.trusted else "no",
                ASSUMPTIONS[name],
            ]
            for name, model in result.models.items()
        ],
        "households": []
        if inside is None
        else [
            ["mean household risk of a person", _public(inside / data.n, enough)],
            [
                "expected re-identified households",
                _about(result.expected_households["recommended"], enough),
            ],
        ],
    }


def _classes(result: Measurement) -> list[list[str]]:
    """Shares by latent classes; none where they were not fitted."""
    found, n = result.latent_classes, result.data.n
    if found is None:
        return []
    matched = "records that are alone in the file and expected to be matched correctly"
    return [
        ["records alone in file and population", public_interval(found.tau1, n)],
        [matched, public_interval(found.tau2, n)],
    ]


def public_check(check: Check) -> Told:
    """Return what the public may read of a check; with few records no limit is shown."""
    if isinstance(check, LimitCheck):
        return tell_limit(check, at_least=PUBLIC_RECORDS)
    words = PUBLIC_REASONS.get((check.key, check.verdict), PUBLIC_REASON[check.verdict])
    return Told(check.name, check.verdict, words, check.key)


def _public(share: float, enough: bool) -> str:
    """Return a share in whole per cent; 0 and 100 % in words: they would hold for every record."""
    if not enough:
        return "not shown (few records)"
    if share < 0.01:
        return "less than 1 %"
    if share > 0.99:
        return "more than 99 %"
    return f"{share:.0%}"


def _about(number: float, enough: bool) -> str:
    """Return an expected number of households to two figures; a small one in words."""
    if not enough:
        return "not shown (few records)"
    if number < FEW:
        return f"fewer than {FEW}"
    return f"about {two_figures(round(number)):,}"


def public_share(share: float, records: int) -> str:
    """Return a share of the records of a file as the public may read it."""
    return _public(share, records >= PUBLIC_RECORDS)


def public_interval(estimate: Estimate | Estimate90, records: int) -> str:
    """Return an expected number as a share of the records, with its interval, for the public.

    The ends are rounded outwards: an interval that got shorter would hold less than is said.
    """
    if records < PUBLIC_RECORDS:
        return public_share(0.0, records)
    value = public_share(estimate.value / records, records)
    if estimate.interval[0] == estimate.interval[1]:
        return value
    below, above = (round(100.0 * end / records, 6) for end in estimate.interval)
    low, high = (
        public_share(end / 100.0, records) for end in (math.floor(below), math.ceil(above))
    )
    if above < 1.0:
        return low  # below 1 % at both ends
    if below < 1.0:
        return f"{value} (at most {high})"
    return f"{value} ({low} to {high})" if low != high else value


def missing_rule(data: Microdata) -> str:
    """Return the rule about missing values with its meaning."""
    return f"{data.missing}: {RULES[data.missing]}"
