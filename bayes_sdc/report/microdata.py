"""Report of the record-level risk of a file, for the agency or for the public.

The two audiences get two contexts that are built apart: the internal one here, the other in
:mod:`bayes_sdc.report.microdata_public`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from bayes_sdc.checks import Check
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.file.keys import VIOLATIONS, Microdata
from bayes_sdc.microdata.individual.record_risk import BULK, RecordRisk
from bayes_sdc.microdata.individual.superpopulation import MODELS, SuperpopulationRisk
from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk
from bayes_sdc.microdata.measure import Measurement
from bayes_sdc.microdata.posterior.sampling import Estimate
from bayes_sdc.microdata.treatment.result import Treatment
from bayes_sdc.microdata.treatment.utility import TreatedUtility
from bayes_sdc.report import plots
from bayes_sdc.report.contents import checks_by_section, contents_of
from bayes_sdc.report.microdata_page_one import external_page_one, internal_page_one
from bayes_sdc.report.microdata_public import LEVELS, missing_rule, public_check, public_context
from bayes_sdc.report.page import render_page
from bayes_sdc.report.policy_limits import Told, limit_section
from bayes_sdc.report.risk_comparison import tell_comparison, tell_truth
from bayes_sdc.report.treatment import tell_treatment, tell_treatments

RISKIEST = 10

SECTIONS = {  # id: title, keys of its checks
    "treatment": (
        "The treatment, and what is left of the risk",
        ("treatment_target", "treatment_chains", "treatment_columns", "treatment_order"),
    ),
    "treatments": ("What every treatment would leave and cost", ()),
    "policy": ("Limits of the policy", ("limit_k", "limit_record_risk", "limit_file_risk")),
    "classes": (
        "Recommended estimate: latent classes",
        ("classes_chains", "classes_width", "classes_fraction", "classes_kappa", "classes_scatter"),
    ),
    "comparison": ("All measures side by side", ()),
    "keys": ("Frequencies of combinations", ()),
    "risk": ("Individual risk", ()),
    "models": ("Totals of the file by models of frequencies", ("models", "convergence")),
    "truth": ("Truth beside the estimates", ()),
    "unstructured": ("Population uniques without structure", ()),
    "households": ("Households", ()),
    "input": ("Input and rules", ("population", "missing_values")),
    "other": ("Other checks", ()),
    "run": ("How it was made", ()),
    "glossary": ("Glossary and limits", ()),
}


def render_microdata(
    result: Measurement,
    *,
    audience: Literal["internal", "external"],
    call: Mapping[str, Any],
    key_sets: pd.DataFrame | None = None,
    treatment: tuple[Treatment, TreatedUtility] | None = None,
    treatments: pd.DataFrame | None = None,
) -> str:
    """Return the report of a file as one HTML document that needs no other file.

    Parameters
    ----------
    result : Measurement
        From :func:`bayes_sdc.measure_microdata`.
    audience : {"internal", "external"}
        The internal report holds values of rare combinations and is confidential.
    call : mapping
        What was run: ``command`` (text), ``created`` (ISO date), ``seed`` (int), ``arguments``
        (mapping) and ``versions`` (mapping); ``input`` with ``bytes``, the size of the file, if it
        is one.
    key_sets : DataFrame, optional
        From :func:`bayes_sdc.compare_key_sets`, for the internal report.
    treatment : Treatment and TreatedUtility, optional
        From :func:`bayes_sdc.treat` and :func:`bayes_sdc.treated_utility`; the checks of
        ``result`` are then those of the treated file.
    treatments : DataFrame, optional
        From :func:`bayes_sdc.compare_treatments`, for the internal report.

    Returns
    -------
    str
        HTML. The same result and call give the same text.

    Raises
    ------
    InputError
        If the audience is unknown.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.measure import measure_microdata
    >>> from bayes_sdc.microdata.file.keys import VIOLATIONS, read_microdata
    >>> people = pd.DataFrame({"sex": list("mmf"), "w": [10, 30, 5]})
    >>> result = measure_microdata(read_microdata(people, keys=["sex"], weight="w"), seed=1)
    >>> call = {"command": "", "created": "2026-01-01", "seed": 1, "arguments": {}, "versions": {}}
    >>> "must not leave the agency" in render_microdata(result, audience="internal", call=call)
    True
    """
    checks: Sequence[Check | Told] = result.checks
    if audience == "internal":
        context = {
            **_internal(result, call),
            **_key_sets(key_sets),
            "treatments": None if treatments is None else tell_treatments(treatments),
        }
    elif audience == "external":
        context = public_context(result)
        checks = [public_check(check) for check in result.checks]
    else:
        raise InputError(f"audience {audience!r} is unknown; choose internal or external")
    measured = {
        "households": result.risk.household is not None,
        "classes": result.latent_classes is not None,
        "comparison": result.comparison is not None and audience == "internal",
        "treatment": treatment is not None,
        "treatments": treatments is not None and audience == "internal",
        "models": not result.whole_population,
        "truth": result.truth is not None and audience == "internal",
        "unstructured": result.unstructured is not None and audience == "internal",
    }
    first = internal_page_one if audience == "internal" else external_page_one
    context |= {
        **_shared(result),
        **first(result, treatment),
        "treatment": None if treatment is None else tell_treatment(*treatment, audience=audience),
        "audience": audience,
        "created": call["created"],
        "versions": call["versions"],
        "contents": contents_of(
            SECTIONS, checks, without=[section for section, there in measured.items() if not there]
        ),
        "of_section": checks_by_section(SECTIONS, checks),
        "limits": limit_section(result.checks, checks, audience=audience),
    }
    return render_page("microdata.html", context)


def _shared(result: Measurement) -> dict[str, Any]:
    """What both audiences may read of the file and the models."""
    fraction = result.risk.sampling_fraction
    basis = "the sampling fraction" if fraction is not None else "the weights"
    if result.data.weights is None and fraction is None:
        basis = "nothing but the file, which counts as the whole population"
    return {
        "source": re.split(r"[\\/]", result.data.source)[-1],
        "basis": basis,
        "bulk_definition": BULK[0].upper() + BULK[1:],
        "model_words": {name: words for name, words in MODELS.items() if name in result.models},
        "whole": result.whole_population,
    }


def _file_facts(result: Measurement, call: Mapping[str, Any]) -> dict[str, str]:
    """What was read."""
    data = result.data
    return {
        "file": data.source,
        "SHA-256": data.sha256 or "none (a data frame)",
        "size": f"{call['input']['bytes']:,} bytes" if "input" in call else "none (a data frame)",
        "records": f"{data.n:,}",
        "number of key variables": f"{len(data.keys)}",
        "key variables": ", ".join(data.keys),
        "weight": data.weight_name or "none",
        "household": data.household_name or "none",
        "population size": f"{result.population_size:,}",
        "missing values": missing_rule(data),
        "combinations with F raised to f": f"{data.raised:,}",
    }


def _given(argument: Any) -> bool:
    """Tell whether an argument was given: neither left out nor empty."""
    return argument is not None and argument != "" and argument not in ([], {}, ())


def _plain(argument: Any) -> str:
    """Write an argument in words, without the marks of a program."""
    if isinstance(argument, bool):
        return "yes" if argument else "no"
    if isinstance(argument, Mapping):
        return "; ".join(f"{name}: {_plain(one)}" for name, one in argument.items() if _given(one))
    if isinstance(argument, list | tuple):
        return ", ".join(map(_plain, argument))
    return str(argument)


def _violations(data: Microdata) -> list[list[str]]:
    """Records and combinations that are rarer than each k."""
    violations = []
    for k in VIOLATIONS:
        low = data.k_violations(k)
        share = f"{low.records / data.n:.2%}"
        violations.append([f"f < {k}", f"{low.records:,}", share, f"{low.combinations:,}"])
    return violations


def _measures(risk: RecordRisk) -> list[list[str]]:
    """Totals of the closed form, and how many records are beyond each level."""
    above = [(f"with risk > {level:g}", risk.above(level)) for level in LEVELS]
    above.append((f"above the bulk (risk > {risk.bulk_limit:.4g})", risk.above_bulk()))
    return [
        ["expected re-identifications", f"{risk.expected:,.2f}"],
        ["global risk (mean)", f"{risk.global_risk:.3%}"],
        ["sample uniques that are population uniques (tau1)", f"{risk.tau1:,.2f}"],
        ["right matches among sample uniques (tau2)", f"{risk.tau2:,.2f}"],
        *(
            [f"records, combinations {what}", f"{t.records:,}, {t.combinations:,}"]
            for what, t in above
        ),
    ]


def _internal(result: Measurement, call: Mapping[str, Any]) -> dict[str, Any]:
    data, risk = result.data, result.risk
    of_truth, truth = tell_truth(result)
    return {
        "classes": [] if result.latent_classes is None else _classes(result.latent_classes),
        "chains_of_classes": []
        if result.latent_classes is None
        else [
            [str(name), f"{row['rhat']:.3f}", f"{row['ess']:,.0f}"]
            for name, row in result.latent_classes.diagnostics.iterrows()
        ],
        "input": _file_facts(result, call),
        "notes": data.notes,
        "left_out": result.notes,
        "model_notes": result.model_notes,
        "violation_columns": ["violation", "records", "share of records", "combinations"],
        "violations": _violations(data),
        "sizes_plot": plots.sizes(data),
        "measures": _measures(risk),
        "risk_plot": plots.record_risk(risk),
        "bulk": f"{risk.bulk_limit:.4g}",
        "risky_columns": _risky_columns(result),
        "risky": _riskiest(result),
        "key_count": len(data.keys),
        "model_columns": ["model", "expected re-identifications", "share", "tau1", "tau2"],
        "models": [
            [
                name,
                _interval(model.expected),
                f"{model.expected.value / data.n:.2%}",
                _interval(model.tau1),
                _interval(model.tau2),
            ]
            for name, model in result.models.items()
        ],
        "truth_columns": of_truth,
        "truth": truth,
        "unstructured": _unstructured(result),
        "cells": "" if result.unstructured is None else f"{result.unstructured.cells:,}",
        "comparison": None
        if result.comparison is None
        else tell_comparison(result.comparison, result),
        "households": _households(result),
        "call": call,
        "arguments": {name: _plain(one) for name, one in call["arguments"].items() if _given(one)},
        "stages": [[stage, f"{s:,.1f}"] for stage, s in result.seconds.items()],
    }


def _classes(found: LatentClassRisk) -> list[list[str]]:
    """Estimates by latent classes with 90 % intervals."""
    totals = [
        ("tau1, sample uniques that are population uniques", found.tau1),
        ("tau2, expected correct matches of sample uniques", found.tau2),
        ("population uniques, in the file or not", found.population_uniques),
        ("kappa, how scatter goes with size (0: not at all, 1: in proportion)", found.kappa),
        ("log R, 0 for strong scatter, 5 for none", found.log_R),
    ]
    rows = [
        [what, f"{total.value:,.2f}", f"{total.interval[0]:,.2f} to {total.interval[1]:,.2f}"]
        for what, total in totals
    ]
    for level in LEVELS:
        above = int((found.records["P_unique"] > level).sum())
        rows.append([f"sample uniques with P(F = 1) > {level:g}", f"{above:,}", ""])
    return rows


def _key_sets(table: pd.DataFrame | None) -> dict[str, Any]:
    if table is None:
        return {"key_sets": [], "key_sets_plot": ""}
    counts = [f"records_below_{k}" for k in VIOLATIONS]
    rows = [
        [
            str(name),
            *(f"{row[column]:,.0f}" for column in ("keys", "combinations", *counts)),
            f"{row['expected']:,.2f}",
            f"{row['global_risk']:.3%}",
            f"{row['tau1']:,.2f}",
            f"{row['tau2']:,.2f}",
        ]
        for name, row in table.iterrows()
    ]
    return {"key_sets": rows, "key_sets_plot": plots.key_sets(table)}


def _beside(result: Measurement) -> SuperpopulationRisk | None:
    """Return the model to stand beside the closed form: where most are re-identified."""
    others = (model for name, model in result.models.items() if name != "known")
    return max(others, key=lambda model: model.expected.value, default=None)


def _risky_columns(result: Measurement) -> list[str]:
    columns = [*result.data.keys, "records", "f", "F", "risk"]
    beside = _beside(result)
    if beside is None:
        return columns
    of_model = ("risk", "95 % of risk", "95 % of 1/F")
    return [*columns, "95 % of 1/F", *(f"{beside.model}: {what}" for what in of_model)]


def _riskiest(result: Measurement) -> list[list[str]]:
    data, frame, worst = result.data, result.risk.combinations, _beside(result)
    order = np.argsort(-frame["risk"].to_numpy(), kind="stable")[:RISKIEST]
    top = frame.iloc[order]
    labels = top.index.to_frame().to_numpy(dtype=object)
    return [
        [
            *(
                "(missing)" if pd.isna(value) else data.shown(key, str(value))
                for key, value in zip(data.keys, values, strict=True)
            ),
            f"{row.records:,}",
            f"{row.f:,}",
            f"{row.F:,.1f}",
            f"{row.risk:.4f}",
            *(
                []
                if worst is None
                else [
                    _ends(result.models["known"].inverse_interval[place]),
                    f"{worst.risk[place]:.4f}",
                    _ends(worst.risk_interval[place]),
                    _ends(worst.inverse_interval[place]),
                ]
            ),
        ]
        for place, values, row in zip(order, labels, top.itertuples(index=False), strict=True)
    ]


def _ends(interval: np.ndarray) -> str:
    return f"{interval[0]:.4f} to {interval[1]:.4f}"


def _interval(estimate: Estimate) -> str:
    low, high = estimate.interval
    return f"{estimate.value:,.1f} ({low:,.1f} to {high:,.1f})"


def _unstructured(result: Measurement) -> list[list[str]]:
    found = result.unstructured
    if found is None:
        return []
    c, uniques = found.learned.concentration, found.learned.uniques
    return [
        [
            "uniform on all tables (c = 1)",
            f"{found.uniform:,.2f}",
            f"standard deviation {found.uniform_deviation:,.2f}",
        ],
        [
            f"concentration learned (c = {c.value:.3g})",
            f"{uniques.value:,.2f}",
            f"95 % interval {uniques.interval[0]:,.0f} to {uniques.interval[1]:,.0f}",
        ],
    ]


def _households(result: Measurement) -> list[list[str]]:
    household = result.risk.household
    if household is None or result.households is None:
        return []
    number = len(result.households)
    return [
        ["households", f"{number:,}"],
        ["expected re-identified households", f"{result.risk.expected_households:,.2f}"],
        *(
            [f"expected re-identified households, model {name}", f"{value:,.2f}"]
            for name, value in result.expected_households.items()
        ),
        *(
            [f"households with risk > {level:g}", f"{(result.households['risk'] > level).sum():,}"]
            for level in LEVELS
        ),
        ["expected persons in re-identified households", f"{np.sort(household).sum():,.2f}"],
        ["mean household risk of a person", f"{np.sort(household).sum() / result.data.n:.3%}"],
        *(
            [f"persons with household risk > {level:g}", f"{np.sum(household > level):,}"]
            for level in LEVELS
        ),
    ]
