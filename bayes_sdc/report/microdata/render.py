"""Report of the record-level risk of a file, for the agency or for the public.

The two audiences get two contexts that are built separately: the internal one here, the other in
:mod:`bayes_sdc.report.microdata.public`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from bayes_sdc.checks import Check
from bayes_sdc.errors import InputError
from bayes_sdc.microdata.individual.record_risk import BULK
from bayes_sdc.microdata.latent_classes.risk import misfit
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.microdata.treatment.attributes import AttributeRisk
from bayes_sdc.microdata.treatment.release import ReleasedFile
from bayes_sdc.microdata.treatment.result import Treatment
from bayes_sdc.microdata.treatment.utility import TreatedUtility
from bayes_sdc.report import plots
from bayes_sdc.report.contents import checks_by_section, contents_of
from bayes_sdc.report.microdata.drivers import driver_tables
from bayes_sdc.report.microdata.page_one import internal_page_one
from bayes_sdc.report.microdata.public import (
    ASSUMPTIONS,
    missing_rule,
    public_check,
    public_context,
)
from bayes_sdc.report.microdata.public_page_one import external_page_one
from bayes_sdc.report.microdata.risk_comparison import tell_comparison, tell_truth
from bayes_sdc.report.microdata.tables import (
    class_rows,
    household_rows,
    interval,
    key_set_rows,
    measure_rows,
    riskiest_columns,
    riskiest_rows,
    unstructured_rows,
    violation_rows,
)
from bayes_sdc.report.microdata.treatment import (
    tell_attributes,
    tell_proposals,
    tell_treatment,
    tell_treatments,
)
from bayes_sdc.report.page import render_page
from bayes_sdc.report.policy_limits import Told, limit_section

SECTIONS = {  # id: title, keys of its checks
    "treatment": (
        "The treatment, and what is left of the risk",
        ("treatment_target", "treatment_chains", "treatment_columns", "treatment_order"),
    ),
    "treatments": ("What every treatment would leave and cost", ()),
    "policy": ("Limits of the policy", ("limit_k", "limit_record_risk", "limit_file_risk")),
    "classes": (
        "Recommended estimate: latent classes",
        (
            "classes_chains",
            "classes_width",
            "classes_fraction",
            "classes_kappa",
            "classes_scatter",
            "classes_households",
            "classes_divergences",
        ),
    ),
    "drivers": ("What drives the risk", ()),
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

#: Sections on the file as it was read, whatever was done to it afterwards.
OF_THE_INPUT = (
    "classes", "drivers", "comparison", "keys", "risk", "models", "truth", "unstructured",
    "households",
)  # fmt: skip


def render_microdata(
    result: Measurement,
    *,
    audience: Literal["internal", "external"],
    call: Mapping[str, Any],
    key_sets: pd.DataFrame | None = None,
    treatment: tuple[Treatment, TreatedUtility, ReleasedFile] | None = None,
    treatments: pd.DataFrame | None = None,
    attributes: AttributeRisk | None = None,
    proposals: pd.DataFrame | None = None,
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
    treatment : Treatment, TreatedUtility and ReleasedFile, optional
        From :func:`bayes_sdc.treat`, :func:`bayes_sdc.treated_utility` and
        :func:`bayes_sdc.microdata.treatment.release.released_file`; the checks of ``result`` are
        then those of the treated file.
    treatments : DataFrame, optional
        From :func:`bayes_sdc.compare_treatments`, for the internal report.
    attributes : AttributeRisk, optional
        From :func:`bayes_sdc.attribute_risk` of the treated file, for the internal report.
    proposals : DataFrame, optional
        Ranked recodings, for the internal report.

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
    >>> from bayes_sdc.microdata.measure.measure import measure_microdata
    >>> from bayes_sdc.microdata.file.read import read_microdata
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
            **key_set_rows(key_sets),
            "treatments": None if treatments is None else tell_treatments(treatments),
            "attributes": None if attributes is None else tell_attributes(attributes),
            "proposals": None if proposals is None else tell_proposals(proposals),
        }
    elif audience == "external":
        context = public_context(result)
        checks = [public_check(check) for check in result.checks]
    else:
        raise InputError(f"audience {audience!r} is unknown; choose internal or external")
    measured = {
        "households": result.risk.household is not None,
        "classes": result.latent_classes is not None,
        "drivers": result.drivers is not None and audience == "internal",
        "comparison": result.comparison is not None and audience == "internal",
        "treatment": treatment is not None,
        "treatments": treatments is not None and audience == "internal",
        "models": not result.whole_population,
        "truth": result.truth is not None and audience == "internal",
        "unstructured": result.unstructured is not None and audience == "internal",
    }
    recoded = treatment is not None and treatment[0].recoded is not None
    of_file = "of the recoded file" if recoded else "before the treatment"
    first = internal_page_one if audience == "internal" else external_page_one
    context |= {
        **_shared(result),
        **first(result, None if treatment is None else treatment[:2]),
        "treatment": None if treatment is None else tell_treatment(*treatment, audience=audience),
        "audience": audience,
        "created": call["created"],
        "versions": call["versions"],
        "contents": [
            entry._replace(title=f"{entry.title}, {of_file}")
            if treatment is not None and entry.id in OF_THE_INPUT
            else entry
            for entry in contents_of(
                SECTIONS, checks, without=[one for one, there in measured.items() if not there]
            )
        ],
        "of_section": checks_by_section(SECTIONS, checks),
        "limits": limit_section(result.checks, checks, audience=audience),
    }
    return render_page("microdata.html", context)


def _shared(result: Measurement) -> dict[str, Any]:
    """What both audiences may read of the file and the models."""
    fraction = result.risk.sampling_fraction
    basis = "the sampling fraction" if fraction is not None else "the weights"
    if result.data.weights is None and fraction is None:
        basis = ""  # the file counts as the whole population
    return {
        "source": re.split(r"[\\/]", result.data.source)[-1],
        "basis": basis,
        "bulk_definition": BULK[0].upper() + BULK[1:],
        "whole": result.whole_population,
        "misfit": f"{misfit(result.data.n):.0%}",
        "by_classes": result.latent_classes is not None,
        "trusted_classes": result.latent_classes is not None and result.latent_classes.trusted,
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
    """Write an argument in words, without the syntax of Python."""
    if isinstance(argument, bool):
        return "yes" if argument else "no"
    if isinstance(argument, Mapping):
        return "; ".join(f"{name}: {_plain(one)}" for name, one in argument.items() if _given(one))
    if isinstance(argument, list | tuple):
        return ", ".join(map(_plain, argument))
    return str(argument)


def _internal(result: Measurement, call: Mapping[str, Any]) -> dict[str, Any]:
    data, risk = result.data, result.risk
    of_truth, truth = tell_truth(result)
    return {
        "classes": [] if result.latent_classes is None else class_rows(result.latent_classes),
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
        "violations": violation_rows(data),
        "sizes_plot": plots.sizes(data),
        **driver_tables(result),
        "measures": measure_rows(result),
        "risk_plot": plots.record_risk(result),
        "bulk": f"{risk.bulk_limit:.4g}",
        "risky_columns": riskiest_columns(result),
        "risky": riskiest_rows(result),
        "key_count": len(data.keys),
        "model_columns": [
            "model",
            "expected re-identifications",
            "share",
            "tau1",
            "tau2",
            "assumption",
        ],
        "models": [
            [
                name,
                interval(model.expected),
                f"{model.expected.value / data.n:.2%}",
                interval(model.tau1),
                interval(model.tau2),
                ASSUMPTIONS[name],
            ]
            for name, model in result.models.items()
        ],
        "truth_columns": of_truth,
        "truth": truth,
        "unstructured": unstructured_rows(result),
        "cells": "" if result.unstructured is None else f"{result.unstructured.cells:,}",
        "comparison": None
        if result.comparison is None
        else tell_comparison(result.comparison, result),
        "households": household_rows(result),
        "call": call,
        "arguments": {name: _plain(one) for name, one in call["arguments"].items() if _given(one)},
        "stages": [[stage, f"{s:,.1f}"] for stage, s in result.seconds.items()],
    }
