"""Report of a protected origin-destination table, for the agency or for the public.

The two audiences get two contexts that are built separately. That of the external report holds only
words and rounded numbers, and the template refuses a name that is not in its context, so no true
count can slip from one report into the other.
"""

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bayes_sdc.checks import Check
from bayes_sdc.convergence import ESS_LIMIT, RHAT_LIMIT
from bayes_sdc.errors import InputError
from bayes_sdc.flows.job.protect import protect_flows
from bayes_sdc.flows.protection import Measured, Protection
from bayes_sdc.flows.release.synthetic.own_areas import own_area_rows
from bayes_sdc.policy import LimitCheck
from bayes_sdc.report import plots
from bayes_sdc.report.contents import NOT_JUDGED, Entry, checks_by_section, contents_of
from bayes_sdc.report.flows.gain import internal_gain, trust_check
from bayes_sdc.report.flows.guarantee import guarantee_section
from bayes_sdc.report.flows.intruder import external_intruder, internal_intruder
from bayes_sdc.report.flows.page_one import external_page_one, internal_page_one
from bayes_sdc.report.flows.page_one_figures import use_checks
from bayes_sdc.report.flows.posterior import internal_posterior
from bayes_sdc.report.flows.public_reasons import has_divergences, tell_check
from bayes_sdc.report.flows.public_shares import PUBLIC_CELLS, PublicShares
from bayes_sdc.report.flows.published import internal_published
from bayes_sdc.report.flows.release import internal_release
from bayes_sdc.report.flows.tables import (
    group_rows,
    margin_tables,
    predictive_rows,
    rounded,
    row_classes,
)
from bayes_sdc.report.flows.utility import (
    PUBLIC_AREAS,
    external_utility,
    internal_uses,
    internal_utility,
)
from bayes_sdc.report.page import render_page
from bayes_sdc.report.policy_limits import WITHHELD, Told, limit_section
from bayes_sdc.report.words import covariate_in_words, values_explained
from bayes_sdc.shapes import Shapes

SECTIONS = {  # id: title, keys of its checks
    "gain": ("What the release adds", ("gain_trust",)),
    "input": (
        "Input and rules",
        (
            "release_differs",
            "row_order",
            "other_columns",
            "small_counts_left",
            "released_before",
            "published_totals",
            "totals_kept",
            "kept_totals_error",
            "mixing_given_totals",
            "weights",
        ),
    ),
    "guarantee": ("What the release promises", ("guarantee",)),
    "policy": (
        "Limits of the policy",
        (
            "limit_r_all",
            "limit_r_unq",
            "limit_true_count_probability",
            "limit_gain_bits",
            "limit_pushed_over_80",
            "limit_totals_error",
            "limit_pmse_ratio",
        ),
    ),
    "convergence": ("Convergence", ("convergence", "divergences", "small_groups")),
    "parameters": ("What the model learned", ()),
    "fit": ("Fit to the counts", ("fit", "fit_by_size", "dispersion")),
    "margins": ("Totals by area", ()),
    "intruder": ("Intruder risk", ("importance_weights",)),
    "utility": ("Utility and other protections", ("use_totals_error", "use_pmse_ratio")),
    "other": ("Other checks", ()),
    "run": ("How it was made", ()),
    "glossary": ("Glossary and limits", ()),
}
NO_LIMITS = "how high the risk is was not judged, because no policy with limits was given"
PUBLIC_OPTIONS = (
    "family",
    "prior",
    "covariates",
    "sampler",
    "draws",
    "tune",
    "chains",
    "datasets",
    "releases",
    "unique",
)


def render_flows(
    result: Protection,
    *,
    audience: Literal["internal", "external"],
    call: Mapping[str, Any],
    shapes: Shapes | None = None,
) -> str:
    """Return the report of a protected table as one HTML document that needs no other file.

    Parameters
    ----------
    result : Protection
        From :func:`bayes_sdc.protect_flows`.
    audience : {"internal", "external"}
        The internal report holds true counts and is confidential. The external one holds verdicts,
        words and rounded numbers.
    call : mapping
        What was run: ``command`` (text), ``created`` (ISO date), ``seed`` (int), ``arguments``
        (mapping) and ``versions`` (mapping).
    shapes : Shapes, optional
        Outlines of the areas, for maps in the internal report.

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
    >>> from bayes_sdc import protect_flows, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a"], "d": ["x", "y"], "n": [12, 40]})
    >>> result = protect_flows(read_flows(frame, origin="o", destination="d", count="n"), seed=1)
    >>> call = {"command": "", "created": "2026-01-01", "seed": 1, "arguments": {}, "versions": {}}
    >>> "Nothing needed protection" in render_flows(result, audience="external", call=call)
    True
    """
    if audience == "internal":
        context = _internal(result, call, shapes)
    elif audience == "external":
        context = _external(result, call)
    else:
        raise InputError(f"audience {audience!r} is unknown; choose internal or external")
    limits = {"rhat_limit": RHAT_LIMIT, "ess_limit": f"{ESS_LIMIT:.0f}"}
    return render_page("flows.html", {**context, **limits, "audience": audience})


def _internal(result: Protection, call: Mapping[str, Any], shapes: Shapes | None) -> dict[str, Any]:
    table, measured = result.table, result.measured
    diverges = measured is not None and has_divergences(measured)
    first = internal_page_one(result)
    checks: list[Check | Told] = [
        *(check for check in result.checks if diverges or check.key != "divergences"),
        *trust_check(measured),
        *use_checks(first["figures"]),
    ]
    contents = _contents(result, checks)
    arguments = _chosen_arguments(call["arguments"], measured)
    context = {
        "contents": contents,
        "of_section": checks_by_section(SECTIONS, checks),
        "diverges": diverges,
        "published": internal_published(result),
        "guarantee": guarantee_section(result, audience="internal"),
        "limits": limit_section(result.checks, result.checks, audience="internal"),
        "protected": measured is not None,
        **_besides(result),
        "pinned": result.pinned,
        "table": table,
        "notes": [*table.notes, *result.columns.notes()],
        "source": table.source,
        "created": call["created"],
        "rows": row_classes(table, lambda n: f"{n:,}"),
        "call": call,
        "stages": [[stage, f"{s:,.1f}"] for stage, s in result.seconds.items()],
        "arguments": arguments,
        "argument_words": values_explained(arguments),
    }
    if measured is None:
        return context
    return context | {
        "groups": group_rows(measured.groups, diverges=diverges),
        "groups_plot": plots.convergence(measured.groups),
        "predictive": predictive_rows(measured.predictive),
        "predictive_plot": plots.predictive(measured.predictive),
        "dispersion": measured.dispersion,
        **internal_posterior(measured.posterior, measured.groups, measured.predictive_by_size),
        **margin_tables(measured.margins),
        **first,
        **internal_release(result, measured, shapes),
        **internal_gain(table, measured.worst),
        "intruder_section": 1 + [entry.id for entry in contents].index("intruder"),
        **internal_intruder(table, measured),
        **internal_utility(measured.utility, measured.tradeoff, measured.combined),
        **internal_uses(measured),
    }


def _external(result: Protection, call: Mapping[str, Any]) -> dict[str, Any]:
    table, measured = result.table, result.measured
    shares = PublicShares(call["seed"])
    diverges = measured is not None and has_divergences(measured)
    use = {} if measured is None else external_utility(table, measured, shares)
    told = [
        tell_check(check, result, shares)
        for check in result.checks
        if diverges or check.key != "divergences"
    ]
    checks = [*told, *_told_use(use["use_checks"] if use else (), told)]
    arguments = {
        name: _base_name(
            ", ".join(covariate_in_words(str(one)) for one in value)
            if isinstance(value, list)
            else str(value)
        )
        for name, value in call["arguments"].items()
        if name in PUBLIC_OPTIONS and measured is not None and value not in (None, "", [], ())
    }
    if measured is not None:  # what "default" stood for
        arguments |= {name: measured.posterior.attrs[name] for name in ("family", "prior", "tune")}
    context = {
        "contents": _contents(result, checks, without=("parameters", "gain", "margins")),
        "of_section": checks_by_section(SECTIONS, checks),
        "limits": limit_section(result.checks, checks, audience="external"),
        "guarantee": guarantee_section(result, audience="external"),
        "protected": measured is not None,
        **_besides(result),
        "pinned": bool(result.pinned),
        "diverges": diverges,
        "source": _base_name(table.source),
        "columns_left_out": bool(result.columns.left_out),
        "low": table.low,
        "high": table.high,
        "rows": row_classes(table, rounded),
        "created": call["created"],
        "arguments": arguments,
        "argument_words": values_explained(arguments),
        "versions": call["versions"],
    }
    if measured is None:
        return context
    worst = float(measured.groups["rhat"].max())
    intruder = external_intruder(table, measured, shares)
    return context | {
        **external_page_one(result, intruder["adds"], rounded(table.n_small), use),
        "worst_rhat": f"{math.ceil(100.0 * worst) / 100.0:.2f}" if math.isfinite(worst) else "",
        **intruder,
        **use,
        "public_cells": PUBLIC_CELLS,
        "public_areas": PUBLIC_AREAS,
    }


def _told_use(use: Sequence[Told], told: Sequence[Told]) -> list[Told]:
    """Judge the use as the policy does, where it limits it; what is withheld stays so."""
    limit = next((one for one in told if one.key == "limit_totals_error"), None)
    if limit is None:
        return list(use)
    words = "The limit of the policy: "
    return [
        one
        if one.verdict == WITHHELD
        else one._replace(verdict=limit.verdict, reason=words + limit.reason)
        for one in use
    ]


def _besides(result: Protection) -> dict[str, bool]:
    """Which rows there are beside the small cells, and how they were treated."""
    return {
        "stayed": result.stayed > 0,
        "stayed_blank": result.own_area == "withhold",
        "few": len(result.table.withheld) > 0,
        "stayed_as_they_are": result.own_area == "publish" and len(own_area_rows(result.table)) > 0,
    }


def _chosen_arguments(arguments: Mapping[str, Any], measured: Measured | None) -> dict[str, Any]:
    """Arguments other than their defaults, and what "default" stood for in the fit."""
    default = {
        name: parameter.default
        for name, parameter in inspect.signature(protect_flows).parameters.items()
    }
    chosen = {
        name: value
        for name, value in arguments.items()
        if value is not None and value not in ({}, [], (), "") and value != default.get(name)
    }
    fitted = {} if measured is None else measured.posterior.attrs
    return chosen | {name: fitted[name] for name in ("family", "prior", "tune") if name in fitted}


def _contents(
    result: Protection, told: Sequence[Check | Told], *, without: Sequence[str] = ()
) -> list[Entry]:
    measured = ("gain", "convergence", "parameters", "fit", "margins", "intruder", "utility")
    promised = () if result.guarantee is not None else ("guarantee",)
    empty = (*without, *promised, *(measured if result.measured is None else ()))
    entries = contents_of(SECTIONS, told, without=empty)
    if any(isinstance(check, LimitCheck) for check in result.checks):
        return entries
    # without limits a pass judges the computation, and must not be read as one of the risk
    return [
        entry._replace(
            verdict=NOT_JUDGED if entry.verdict == "pass" else entry.verdict,
            reason=f"{entry.reason}; {NO_LIMITS}",
        )
        if entry.id == "intruder"
        else entry
        for entry in entries
    ]


def _base_name(path: str) -> str:
    return re.split(r"[\\/]", path)[-1]
