"""Report of a protected origin-destination table, for the agency or for the public.

The two audiences get two contexts that are built apart. That of the external report holds words
and rounded numbers only, and the template refuses a name that is not in its context, so no true
count can slip from one report into the other.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bayes_sdc.diagnostics import Check
from bayes_sdc.errors import InputError
from bayes_sdc.flows.importance import best_guess
from bayes_sdc.flows.intruder import IntruderRisk, Share
from bayes_sdc.flows.job import Protection
from bayes_sdc.flows.table import FlowTable
from bayes_sdc.report import plots

ROWS_SHOWN = 50
PUBLIC_CELLS = 500  # a share of fewer cells, rounded to a per cent, would still tell single cells
PUBLIC_AREAS = 100  # the median over fewer areas may be the error of one that can be recognised
PUBLIC_ARGUMENTS = (
    "prior",
    "sampler",
    "draws",
    "tune",
    "chains",
    "datasets",
    "releases",
    "unique",
)
VERDICTS = ("pass", "look", "fail")  # from good to bad

SECTIONS = {  # id: title, names of its checks
    "input": ("Input and rules", ()),
    "convergence": ("Convergence", ("convergence", "divergences", "small groups")),
    "fit": ("Fit to the counts", ("fit to the counts",)),
    "margins": ("Totals by area", ()),
    "intruder": ("Intruder risk", ("importance weights",)),
    "other": ("Other checks", ()),
    "run": ("How it was made", ()),
    "glossary": ("Glossary and limits", ()),
}

# What the public may read of a check: its reason holds exact numbers.
PUBLIC_REASONS = {
    ("convergence", "pass"): "The chains of every group agree.",
    ("convergence", "look"): "The chains of some groups do not agree as well as they should.",
    ("convergence", "fail"): "The chains of some groups disagree: do not rely on the results.",
    ("divergences", "pass"): "The sampler met no difficulty.",
    ("divergences", "look"): "The sampler met difficult spots in some groups.",
    ("small groups", "pass"): "Every group has enough cells for its rates to be learnt from them.",
    ("small groups", "look"): "Some groups are so small that the prior decides their rates.",
    ("fit to the counts", "pass"): "The model reproduces how common each small count is.",
    ("fit to the counts", "look"): "The model misses how common some small counts are.",
    ("importance weights", "pass"): "The weights behind the intruder's probabilities are reliable.",
    ("importance weights", "look"): "Some weights behind the intruder's probabilities are not "
    "reliable.",
}
PUBLIC_REASON = {
    "pass": "Nothing to report.",
    "look": "The agency should read the reason in its own report.",
    "fail": "Do not rely on the results.",
}


@dataclass(frozen=True)
class Grid:
    """A table of texts; the first ``words`` columns are text, the others numbers."""

    caption: str
    columns: tuple[str, ...]
    rows: list[list[str]]
    words: int = 0
    shown: str = ""


class Entry(NamedTuple):
    """A line of the table of contents; the verdict is empty where nothing is judged."""

    id: str
    title: str
    verdict: str
    reason: str


def render_flows(
    result: Protection, *, audience: Literal["internal", "external"], call: Mapping[str, Any]
) -> str:
    """Return the report of a protected table as one HTML document that needs no other file.

    Parameters
    ----------
    result : Protection
        From :func:`bayes_sdc.flows.job.protect_flows`.
    audience : {"internal", "external"}
        The internal report holds true counts and is confidential. The external one holds verdicts,
        words and rounded numbers.
    call : mapping
        What was run: ``command`` (text), ``created`` (ISO date), ``seed`` (int), ``arguments``
        (mapping) and ``versions`` (mapping).

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
        context = _internal(result, call)
    elif audience == "external":
        context = _external(result, call)
    else:
        raise InputError(f"audience {audience!r} is unknown; choose internal or external")
    environment = Environment(
        loader=PackageLoader("bayes_sdc", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, _, _ = PackageLoader("bayes_sdc", "report").get_source(environment, "style.css")
    page = environment.get_template("flows.html")
    return page.render(audience=audience, style=Markup(style), **context) + "\n"  # noqa: S704


def _internal(result: Protection, call: Mapping[str, Any]) -> dict[str, Any]:
    table = result.table
    context = {
        "contents": _contents(result, {check.name: check.reason for check in result.checks}),
        "checks": result.checks,
        "protected": result.posterior is not None,
        "table": table,
        "source": table.source,
        "rows": _row_classes(table, lambda n: f"{n:,}"),
        "call": call,
        "stages": Grid(
            "Time of each stage",
            ("stage", "seconds"),
            [[stage, f"{seconds:,.1f}"] for stage, seconds in result.seconds.items()],
            1,
        ),
        "settings": {} if result.posterior is None else result.posterior.attrs,
    }
    if (
        result.posterior is None
        or result.groups is None
        or result.predictive is None
        or result.margins is None
        or result.risk is None
        or result.repeats is None
    ):
        return context
    return context | {
        "groups": _groups(result.groups),
        "groups_plot": plots.convergence(result.groups),
        "predictive": _predictive(result.predictive),
        "predictive_plot": plots.predictive(result.predictive),
        "dispersion": result.dispersion,
        "errors": _margin_errors(result.margins),
        "margins": _margins(result.margins),
        "margins_plot": plots.margins(result.margins),
        **_risk(table, result.risk, result.repeats),
    }


def _external(result: Protection, call: Mapping[str, Any]) -> dict[str, Any]:
    table = result.table
    reasons = {
        check.name: PUBLIC_REASONS.get((check.name, check.verdict), PUBLIC_REASON[check.verdict])
        for check in result.checks
    }
    arguments = {
        name: _base_name(str(call["arguments"][name]))
        for name in PUBLIC_ARGUMENTS
        if name in call["arguments"]
    }
    context = {
        "contents": _contents(result, reasons),
        "checks": [Check(c.name, c.verdict, reasons[c.name]) for c in result.checks],
        "protected": result.posterior is not None,
        "source": _base_name(table.source),
        "low": table.low,
        "high": table.high,
        "rows": _row_classes(table, _rounded),
        "created": call["created"],
        "arguments": arguments,
        "versions": call["versions"],
    }
    if result.groups is None or result.margins is None or result.risk is None:
        return context
    risk, worst = result.risk, float(result.groups["rhat"].max())
    errors = _margin_errors(result.margins)["relative"]
    many = table.n_small >= PUBLIC_CELLS and len(errors) >= PUBLIC_AREAS
    return context | {
        "worst_rhat": f"{worst:.2f}" if math.isfinite(worst) else "",
        "margin_error": f"{np.median(errors):.0%}" if many else "",
        "r_all": _public_share(risk.r_all),
        "r_unq": _public_share(risk.r_unq),
        "trusted": risk.r_all.trusted and risk.r_unq.trusted,
        "flagged": _in_words(risk.unreliable_cells / risk.rho.sizes["cell"]),
        "datasets": risk.datasets,
        "public_cells": PUBLIC_CELLS,
        "public_areas": PUBLIC_AREAS,
    }


def _contents(result: Protection, reasons: Mapping[str, str]) -> list[Entry]:
    """Sections of the report, each with the worst verdict of its checks and their reasons."""
    claimed = {name for _, names in SECTIONS.values() for name in names}
    entries = []
    for section, (title, names) in SECTIONS.items():
        if section == "other":
            checks = [check for check in result.checks if check.name not in claimed]
        else:
            checks = [check for check in result.checks if check.name in names]
        if result.posterior is None and section not in ("input", "run", "glossary"):
            continue
        if section == "other" and not checks:
            continue
        verdict = max((check.verdict for check in checks), key=VERDICTS.index, default="")
        told = [check for check in checks if check.verdict == verdict]
        text = "; ".join(f"{check.name}: {reasons[check.name]}" for check in told)
        entries.append(Entry(section, title, verdict, text))
    return entries


def _row_classes(table: FlowTable, number: Any) -> Grid:
    rows = [
        ["rows read", table.n_read],
        [f"small ({table.low} <= count <= {table.high}): protected", table.n_small],
        [f"safe (count above {table.high}): unchanged", table.n_safe],
        ["own area (origin is destination): set aside, unchanged", table.n_set_aside],
        [f"below {table.low}: unchanged", table.n_below],
        ["groups with small cells", table.cells["group"].nunique()],
    ]
    return Grid(
        "Rows of the table by class", ("class", "rows"), [[w, number(n)] for w, n in rows], 1
    )


def _groups(groups: pd.DataFrame) -> Grid:
    rows = [
        [
            str(label),
            str(g["verdict"]),
            _decimals(g["rhat"], 3),
            f"{g['ess']:,.0f}",
            str(g["worst"]),
            *(
                f"{g[name]:,}"
                for name in (
                    "rhat_above",
                    "ess_below",
                    "divergences",
                    "parameters",
                    "cells",
                    "origins",
                    "destinations",
                )
            ),
            "yes" if g["by_prior"] else "no",
        ]
        for label, g in groups.head(ROWS_SHOWN).iterrows()
    ]
    columns = (
        "group",
        "verdict",
        "R-hat",
        "ESS",
        "worst parameter",
        "R-hat > 1.01",
        "ESS < 400",
        "divergences",
        "parameters",
        "small cells",
        "origins",
        "destinations",
        "decided by the prior",
    )
    return Grid(
        "Convergence by group, worst first", columns, rows, 1, _shown(len(groups), "groups")
    )


def _predictive(counts: pd.DataFrame) -> Grid:
    worst = counts["relative_error"].abs().sort_values(ascending=False, kind="stable")
    chosen = counts.loc[worst.index[:ROWS_SHOWN].sort_values()]
    rows = [
        [
            f"{count}",
            f"{c['observed']:,.0f}",
            f"{c['expected']:,.1f}",
            f"{c['lower']:,.0f} to {c['upper']:,.0f}",
            "none observed" if pd.isna(c["relative_error"]) else f"{c['relative_error']:+.1%}",
        ]
        for count, c in chosen.iterrows()
    ]
    columns = ("count", "observed", "expected", "95 % interval", "relative error")
    caption = "Small cells by count, observed and expected"
    return Grid(caption, columns, rows, 0, _shown(len(counts), "counts"))


def _margin_errors(margins: pd.DataFrame) -> dict[str, Any]:
    """Relative errors of the totals, and how many areas have a total of 0 and so none."""
    positive = margins[margins["true"] > 0]
    relative = (positive["synthetic"] - positive["true"]).abs() / positive["true"]
    sides = []
    for side in ("origin", "destination"):
        errors = relative[positive["side"] == side].to_numpy(float)
        if len(errors):
            middle, high = np.quantile(errors, [0.5, 0.95])
            sides.append([f"by {side}", f"{len(errors):,}", f"{middle:.1%}", f"{high:.1%}"])
    columns = ("totals", "areas", "median", "95 % quantile")
    return {
        "relative": relative.to_numpy(float),
        "grid": Grid("Relative errors of the totals, without sign", columns, sides, 1),
        "without": len(margins) - len(positive),
    }


def _margins(margins: pd.DataFrame) -> Grid:
    difference = margins["synthetic"] - margins["true"]
    relative = (difference / margins["true"]).where(margins["true"] > 0)
    frame = margins.assign(difference=difference, relative=relative)
    order = relative.abs().sort_values(ascending=False, kind="stable").index[:ROWS_SHOWN]
    rows = [
        [
            str(m["area"]),
            str(m["side"]),
            f"{m['cells']:,}",
            f"{m['true']:,}",
            f"{m['synthetic']:,.1f}",
            f"{m['difference']:+,.1f}",
            "undefined" if pd.isna(m["relative"]) else f"{m['relative']:+.1%}",
        ]
        for _, m in frame.loc[order].iterrows()
    ]
    columns = ("area", "side", "small cells", "true", "synthetic", "difference", "relative error")
    caption = "Totals of the small cells, largest relative error first"
    return Grid(caption, columns, rows, 2, _shown(len(margins), "areas and sides"))


def _risk(table: FlowTable, risk: IntruderRisk, repeats: pd.DataFrame) -> dict[str, Any]:
    true = table.cells["y"].to_numpy()
    found = best_guess(risk.rho.to_numpy()) == true
    frame = pd.DataFrame(
        {"found": found, "probability": risk.true_count_probability.to_numpy(), "true": true}
    )
    by_count = frame.groupby("true").agg(
        cells=("found", "size"), found=("found", "mean"), probability=("probability", "mean")
    )
    by_count.index = by_count.index + table.low

    away = np.abs(np.arange(table.k + 1) - true[:, None])
    above = risk.khat.to_numpy() > risk.khat_threshold
    pairs = pd.DataFrame({"distance": away.ravel(), "above": above.ravel()})
    pairs = pairs[pairs["distance"] > 0]  # the weights of the true count are all equal
    by_distance = pairs.groupby("distance")["above"].agg(pairs="size", above="sum", share="mean")

    distances = risk.distance_distribution()
    baseline = risk.r_all.baseline
    return {
        "risk": risk,
        "trusted": risk.r_all.trusted and risk.r_unq.trusted,
        "shares": Grid(
            "Share of cells found",
            ("measure", "cells", "share", "95 % interval", "Monte Carlo error", "without release"),
            [_share_row("R_all", risk.r_all), _share_row("R_unq", risk.r_unq)],
            1,
        ),
        "true_probability": float(risk.true_count_probability.mean()),
        "mean_distance": float(risk.distance.mean()),
        "distances": _by_whole_number(
            "Distance d_t between the true count and the most probable one",
            ("distance", "squared", "share of cells"),
            [[f"{d}", f"{d * d:,}", f"{share:.1%}"] for d, share in distances.items()],
        ),
        "distances_plot": plots.distances(distances),
        "cells_flagged": risk.unreliable_cells,
        "pairs": len(pairs),
        "pairs_flagged": int(pairs["above"].sum()),
        "weights": _by_whole_number(
            "Pairs of cell and candidate count by distance of the candidate from the true count",
            ("distance", "pairs", "k-hat too high", "share"),
            [
                [f"{d}", f"{int(p['pairs']):,}", f"{int(p['above']):,}", f"{p['share']:.1%}"]
                for d, p in by_distance.iterrows()
            ],
        ),
        "weights_plot": plots.weights(by_distance),
        "by_count": _by_whole_number(
            "Risk by true count",
            ("true count", "cells", "share found", "mean probability of the true count"),
            [
                [f"{c}", f"{int(r['cells']):,}", f"{r['found']:.1%}", f"{r['probability']:.1%}"]
                for c, r in by_count.iterrows()
            ],
        ),
        "by_count_plot": plots.by_count(by_count, 0.0 if baseline is None else baseline),
        "repeats": _repeats(repeats),
        "releases": len(repeats),
    }


def _by_whole_number(caption: str, columns: tuple[str, ...], rows: list[list[str]]) -> Grid:
    """A table in rising order, of which the first rows are shown."""
    return Grid(caption, columns, rows[:ROWS_SHOWN], 0, _shown(len(rows), "rows", "the lowest"))


def _share_row(name: str, share: Share) -> list[str]:
    if share.value is None or share.interval is None or share.baseline is None:
        return [
            name,
            f"{share.cells:,}",
            "undefined: there is no such cell",
            "none",
            "none",
            "none",
        ]
    error = share.monte_carlo_error
    return [
        name,
        f"{share.cells:,}",
        f"{share.value:.1%}",
        f"{share.interval[0]:.1%} to {share.interval[1]:.1%}",
        "unknown (one chain)" if error is None else f"{error:.2%}",
        f"{share.baseline:.1%}",
    ]


def _repeats(repeats: pd.DataFrame) -> Grid:
    names = {
        "r_all": ("R_all", "{:.1%}"),
        "r_unq": ("R_unq", "{:.1%}"),
        "mean_distance": ("mean distance", "{:.2f}"),
        "true_count_probability": ("mean probability of the true count", "{:.1%}"),
    }
    rows = []
    for column, (name, form) in names.items():
        values = repeats[column].dropna()
        if values.empty:
            rows.append([name, "undefined: there is no such cell", "none", "none", "none"])
            continue
        spread = form.format(values.std()) if len(values) > 1 else "none (one release)"
        parts = (values.mean(), values.min(), values.max())
        rows.append([name, *(form.format(part) for part in parts), spread])
    columns = ("measure", "mean", "smallest", "largest", "standard deviation")
    return Grid("Spread over independent releases", columns, rows, 1)


def _shown(total: int, what: str, which: str = "the worst") -> str:
    return f"{ROWS_SHOWN} of {total:,} {what} shown, {which}." if total > ROWS_SHOWN else ""


def _decimals(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "none (never moved)"


def _base_name(path: str) -> str:
    return re.split(r"[\\/]", path)[-1]


def _rounded(n: int) -> str:
    """Return a number in words exact to two figures, coarser below a hundred."""
    if n == 0:
        return "none"
    if n < 10:
        return "fewer than 10"
    step = 10 ** max(1, len(str(n)) - 2)
    return f"about {(n + step // 2) // step * step:,}"


def _public_share(share: Share) -> str:
    """Return a share in whole per cent, or nothing where it could tell of single cells.

    Undefined is nothing as well: "there is no such cell" would speak of every cell.
    """
    if share.value is None or share.cells < PUBLIC_CELLS:
        return ""
    return f"{share.value:.0%}"


def _in_words(share: float) -> str:
    if share == 0.0:
        return "none"
    bounds = ((0.01, "fewer than 1 in 100"), (0.1, "fewer than 1 in 10"), (0.5, "fewer than half"))
    return next((words for bound, words in bounds if share < bound), "half or more")
