"""Report of a protected origin-destination table, for the agency or for the public.

The two audiences get two contexts that are built apart. That of the external report holds words
and rounded numbers only, and the template refuses a name that is not in its context, so no true
count can slip from one report into the other.
"""

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from bayes_sdc.checks import Check, Verdict
from bayes_sdc.convergence import ESS_LIMIT, RHAT_LIMIT
from bayes_sdc.errors import InputError
from bayes_sdc.flows.diagnostics import small_by_size
from bayes_sdc.flows.model.parameters import NATION
from bayes_sdc.flows.protect import protect_flows
from bayes_sdc.flows.protection import Measured, Protection
from bayes_sdc.flows.release.synthetic.own_areas import own_area_rows
from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.policy import LimitCheck
from bayes_sdc.report import plots
from bayes_sdc.report.contents import NOT_JUDGED, Entry, checks_by_section, contents_of
from bayes_sdc.report.gain import internal_gain
from bayes_sdc.report.guarantee import guarantee_section
from bayes_sdc.report.intruder import BELIEVED, external_intruder, internal_intruder
from bayes_sdc.report.page import render_page
from bayes_sdc.report.page_one import external_page_one, internal_page_one, one_sided
from bayes_sdc.report.policy_limits import (
    PUBLIC_REASON,
    PUBLIC_WORDS,
    WITHHELD,
    Told,
    limit_section,
    tell_limit,
)
from bayes_sdc.report.posterior import internal_posterior
from bayes_sdc.report.public_shares import PUBLIC_CELLS, PublicShares
from bayes_sdc.report.published import internal_published
from bayes_sdc.report.release import internal_release
from bayes_sdc.report.rounding import two_figures
from bayes_sdc.report.utility import (
    PUBLIC_AREAS,
    external_utility,
    internal_uses,
    internal_utility,
)
from bayes_sdc.shapes import Shapes

ROWS_SHOWN = 50
OF_TRUE_COUNTS = (
    "release_differs",
    "row_order",
    "other_columns",
    "fit",
    "fit_by_size",
    "dispersion",
    "importance_weights",
    "mixing_given_totals",
)
PINNED = "The totals that the release keeps pin small counts: these are released as they are."
OF_FEW_CELLS = "Not shown, because a verdict on few cells could tell of single cells."
NO_DIVERGENCES = "The sampler that was used has no steps that can diverge."
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
SECTIONS = {  # id: title, keys of its checks
    "gain": ("What the release adds", ()),
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
    "utility": ("Utility and other protections", ()),
    "other": ("Other checks", ()),
    "run": ("How it was made", ()),
    "glossary": ("Glossary and limits", ()),
}

# What the public may read of a check: its reason holds exact numbers.
PUBLIC_REASONS = {
    ("convergence", "pass"): "The chains of every group agree.",
    (
        "convergence",
        "look",
    ): "The chains of some groups do not agree as well as they should, or hold "
    "too few independent draws.",
    ("convergence", "fail"): "The chains of some groups disagree, or hold far too few independent "
    "draws: do not rely on the results.",
    ("divergences", "pass"): "No step of the sampler went astray.",
    ("divergences", "look"): "Some steps of the sampler diverged in some groups.",
    ("small_groups", "pass"): "No group has fewer than ten small cells, or one area on a side.",
    ("small_groups", "look"): "Some groups have fewer than ten small cells, or one area on a side: "
    "the prior decides their rates.",
    ("fit", "pass"): "The model reproduces how common each small count is.",
    ("fit", "look"): "The model misses how common some small counts are.",
    ("fit", "fail"): "The model misses how common some small counts are by far.",
    ("fit_by_size", "pass"): "It does so in groups with few and with many small counts.",
    ("fit_by_size", "look"): "In groups of some size the model misses how common some "
    "small counts are.",
    ("dispersion", "pass"): "The small counts scatter as the model says.",
    ("dispersion", "look"): "The small counts scatter more or less than the model says.",
    ("dispersion", "fail"): "The small counts scatter much more or less than the model says.",
    ("importance_weights", "pass"): "The weights behind the probabilities are reliable.",
    ("release_differs", "pass"): "Not all released small counts are the true ones.",
    ("release_differs", "fail"): "Too few released small counts differ from the true ones: do not "
    "release.",
    ("guarantee", "pass"): "The promise below holds for exact draws from the posterior.",
    ("guarantee", "look"): "The promise below holds for exact draws from the posterior, and while "
    "the seed of the run stays secret.",
    ("guarantee", "fail"): "No promise is made: the section says why.",
    ("row_order", "pass"): "The order of the rows was not found to follow the small counts.",
    ("row_order", "look"): "The order of the rows may tell something about the small counts.",
    ("row_order", "fail"): "The order of the rows tells the small counts: do not release.",
    ("other_columns", "pass"): "No other column was found to go with the small counts.",
    ("other_columns", "look"): "Other columns may tell something about the small counts.",
    ("other_columns", "fail"): "Other columns tell of the small counts: do not release.",
    ("small_counts_left", "pass"): "Small counts are replaced by synthetic ones, or left out.",
    ("small_counts_left", "look"): "Some small counts are released as they are: of people who "
    "stayed, or with one possible value given the totals that the release keeps.",
    ("small_counts_left", "fail"): "Counts below the smallest one protected are released.",
    ("released_before", "pass"): "An earlier release of this table counts in the risk.",
    ("released_before", "look"): "This table was protected before; the risk is that of the present "
    "release alone.",
    ("totals_kept", "look"): "Some totals are kept in sum only.",
    ("totals_kept", "fail"): "The totals that the release keeps pin small counts.",
    ("kept_totals_error", "pass"): "Every total that the release keeps is the true one, or rounds "
    "to the same.",
    ("kept_totals_error", "fail"): "Some totals that the release was to keep are not the true "
    "ones.",
    ("mixing_given_totals", "pass"): "Longer mixing would not leave fewer true counts.",
    ("mixing_given_totals", "look"): "Longer mixing would change the share of true counts.",
    ("mixing_given_totals", "fail"): "The release is not mixed: true counts are left in it.",
    ("published_totals", "pass"): "The totals that are published beside, and the counts that "
    "are released as they are, leave every small count more than two possible "
    "values.",
    ("published_totals", "look"): "The totals that are published beside leave some small counts "
    "two possible values, or it could not be found out exactly.",
    ("published_totals", "fail"): "Some small counts follow from the totals that are published "
    "beside.",
    ("importance_weights", "look"): "Some weights behind these probabilities are not reliable.",
}


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
    diverges = measured is not None and _has_divergences(measured)
    checks = [check for check in result.checks if diverges or check.key != "divergences"]
    contents = _contents(result, checks)
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
        "rows": _row_classes(table, lambda n: f"{n:,}"),
        "call": call,
        "stages": [[stage, f"{s:,.1f}"] for stage, s in result.seconds.items()],
        "arguments": _chosen_arguments(call["arguments"], measured),
    }
    if measured is None:
        return context
    return context | {
        "groups": _groups(measured.groups, diverges=diverges),
        "groups_plot": plots.convergence(measured.groups),
        "predictive": _predictive(measured.predictive),
        "predictive_plot": plots.predictive(measured.predictive),
        "dispersion": measured.dispersion,
        **internal_posterior(measured.posterior, measured.groups, measured.predictive_by_size),
        **_margins(measured.margins),
        **internal_page_one(result),
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
    checks = [_told(check, result, shares) for check in result.checks]
    arguments = {
        name: _base_name(", ".join(map(str, value)) if isinstance(value, list) else str(value))
        for name, value in call["arguments"].items()
        if name in PUBLIC_OPTIONS
    }
    if measured is not None:  # what "default" stood for
        arguments |= {name: measured.posterior.attrs[name] for name in ("family", "prior", "tune")}
    context = {
        "contents": _contents(result, checks, without=("parameters", "gain")),
        "of_section": checks_by_section(SECTIONS, checks),
        "limits": limit_section(result.checks, checks, audience="external"),
        "guarantee": guarantee_section(result, audience="external"),
        "protected": measured is not None,
        **_besides(result),
        "pinned": bool(result.pinned),
        "diverges": measured is not None and _has_divergences(measured),
        "source": _base_name(table.source),
        "columns_left_out": bool(result.columns.left_out),
        "low": table.low,
        "high": table.high,
        "rows": _row_classes(table, _rounded),
        "created": call["created"],
        "arguments": arguments,
        "versions": call["versions"],
    }
    if measured is None:
        return context
    worst = float(measured.groups["rhat"].max())
    intruder = external_intruder(table, measured, shares)
    return context | {
        **external_page_one(result, intruder["adds"], _rounded(table.n_small)),
        "worst_rhat": f"{worst:.2f}" if math.isfinite(worst) else "",
        **intruder,
        **external_utility(table, measured, shares),
        "public_cells": PUBLIC_CELLS,
        "public_areas": PUBLIC_AREAS,
    }


def _besides(result: Protection) -> dict[str, bool]:
    """Which rows beside the small cells there are, and what became of them."""
    return {
        "stayed": result.stayed > 0,
        "few": len(result.table.withheld) > 0,
        "stayed_as_they_are": result.own_area == "publish" and len(own_area_rows(result.table)) > 0,
    }


def _told(check: Check, result: Protection, shares: PublicShares) -> Told:
    """What the public may read of a check; of few cells no verdict that rests on true counts."""
    measured = result.measured
    if check.key in OF_TRUE_COUNTS and 0 < result.table.n_small < PUBLIC_CELLS:
        return Told(check.name, WITHHELD, OF_FEW_CELLS, check.key)
    if (check.key, check.verdict) == ("totals_kept", "look") and result.pinned:
        return Told(check.name, "look", PINNED, check.key)
    if check.key == "totals_kept" and check.verdict != "fail" and not result.totals_merged:
        return Told(check.name, WITHHELD, PUBLIC_WORDS[WITHHELD], check.key)  # one cell decides
    if check.key == "small_groups" and measured is not None:
        # the check itself would tell that all counts of a large group are at one bound
        small = small_by_size(measured.groups.drop(index=NATION, errors="ignore")).any()
        verdict: Verdict = "look" if small else "pass"
        return Told(check.name, verdict, PUBLIC_REASONS[check.key, verdict], check.key)
    if isinstance(check, LimitCheck):
        return tell_limit(check, at_least=PUBLIC_CELLS)
    if check.key == "divergences" and measured is not None and not _has_divergences(measured):
        return Told(check.name, NOT_JUDGED, NO_DIVERGENCES, check.key)
    words = PUBLIC_REASONS.get((check.key, check.verdict), PUBLIC_REASON[check.verdict])
    if (check.key, check.verdict) == ("release_differs", "pass") and measured is not None:
        risk = measured.risk
        # printed once more with the risk: the same noise, or it could be averaged away
        equal = shares.percent(risk.believes_release, risk.rho.sizes["cell"], BELIEVED)
        first = " of the first data set" if risk.datasets > 1 else ""
        by = (
            "some because the kept totals leave them one value, some by chance"
            if result.pinned
            else "by chance"
        )
        words = (
            f"{equal or 'Some'} of the released small counts{first} equal the true ones, up to a "
            f"little noise: {by}. The others differ; this report does not say which."
        )
    return Told(check.name, check.verdict, words, check.key)


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


def _has_divergences(measured: Measured) -> bool:
    """Whether the sampler has steps that can go astray."""
    return "diverging" in measured.posterior["sample_stats"]


def _contents(
    result: Protection, told: Sequence[Check | Told], *, without: Sequence[str] = ()
) -> list[Entry]:
    measured = ("gain", "convergence", "parameters", "fit", "margins", "intruder", "utility")
    promised = () if result.guarantee is not None else ("guarantee",)
    empty = (*without, *promised, *(measured if result.measured is None else ()))
    entries = contents_of(SECTIONS, told, without=empty)
    if any(isinstance(check, LimitCheck) for check in result.checks):
        return entries
    # without limits a pass is one of the computation, and must not be read as one of the risk
    return [
        entry._replace(
            verdict=NOT_JUDGED if entry.verdict == "pass" else entry.verdict,
            reason=f"{entry.reason}; {NO_LIMITS}",
        )
        if entry.id == "intruder"
        else entry
        for entry in entries
    ]


def _row_classes(table: FlowTable, number: Callable[[int], str]) -> list[list[str]]:
    few = ", or left blank where it rests on too few people" if table.withheld else ""
    classes = {
        "rows read": table.n_read,
        f"small (count from {table.low} to {table.high}): protected": table.n_small,
        f"safe (count above {table.high}): unchanged{few}": table.n_safe,
        "own area (origin is destination), or total: set aside": table.n_set_aside,
        f"below {table.low}: unchanged": table.n_below,
        "groups with small cells": int(table.cells["group"].nunique()),
    }
    return [[name, number(n)] for name, n in classes.items()]


def _groups(groups: pd.DataFrame, *, diverges: bool) -> list[list[str]]:
    counted = ("rhat_above", "ess_below", *(["divergences"] if diverges else []), "parameters")
    sizes = ("cells", "origins", "destinations", "blocks", "at_bound")
    return [
        [
            str(label),
            str(g["verdict"]),
            str(g["worst"]),
            f"{g['rhat']:.3f}" if math.isfinite(g["rhat"]) else "none (never moved)",
            f"{g['ess']:,.0f}",
            *(f"{g[name]:,}" for name in (*counted, *sizes)),
            "yes" if g["by_prior"] else "no",
        ]
        for label, g in groups.iterrows()
    ]


def _predictive(counts: pd.DataFrame) -> list[list[str]]:
    if len(counts) > ROWS_SHOWN:
        counts = counts.sort_values("relative_error", key=abs, ascending=False)
    return [
        [
            f"{count}",
            f"{c['observed']:,.0f}",
            f"{c['expected']:,.1f}",
            f"{c['lower']:,.0f} to {c['upper']:,.0f}",
            "none observed" if pd.isna(c["relative_error"]) else f"{c['relative_error']:+.1%}",
        ]
        for count, c in counts.iterrows()
    ]


def _relative_errors(margins: pd.DataFrame) -> pd.Series:
    """Relative errors of the totals; missing where the true total is 0."""
    return (margins["synthetic"] - margins["true"]) / margins["true"].where(margins["true"] > 0)


def _margins(margins: pd.DataFrame) -> dict[str, Any]:
    relative = _relative_errors(margins)
    summary = []
    for side in ("origin", "destination"):
        errors = relative[margins["side"] == side].abs().dropna()
        if len(errors):
            parts = [f"{errors.quantile(q):.1%}" for q in (0.5, 0.95)]
            summary.append([f"by {side}", f"{len(errors):,}", *parts])
    worst = margins.assign(relative=relative).sort_values(
        "relative", key=abs, ascending=False, kind="stable"
    )
    rows = [
        [
            str(m["area"]),
            str(m["side"]),
            f"{m['cells']:,}",
            f"{m['true']:,}",
            f"{m['synthetic']:,.1f}",
            f"{m['synthetic'] - m['true']:+,.1f}",
            "undefined" if pd.isna(m["relative"]) else f"{m['relative']:+.1%}",
        ]
        for _, m in worst.iterrows()
    ]
    return {
        "margins": rows,
        "margin_errors": summary,
        "without_error": int(relative.isna().sum()),
        "margins_plot": plots.margins(margins),
        "one_sided": one_sided(margins),
    }


def _base_name(path: str) -> str:
    return re.split(r"[\\/]", path)[-1]


def _rounded(n: int) -> str:
    """Return a number in words exact to two figures, coarser below a hundred."""
    if n == 0:
        return "none"
    if n < 10:
        return "fewer than 10"
    return f"about {(n + 5) // 10 * 10 if n < 100 else two_figures(n):,}"
