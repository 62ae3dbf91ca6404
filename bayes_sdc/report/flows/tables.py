"""Numbers of a protected table as rows of text: classes of rows, groups, fit and totals."""

import math
from collections.abc import Callable
from typing import Any

import pandas as pd

from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.report import plots
from bayes_sdc.report.flows.page_one import one_sided
from bayes_sdc.report.rounding import two_figures

ROWS_SHOWN = 50


def row_classes(table: FlowTable, number: Callable[[int], str]) -> list[list[str]]:
    """Classes of rows, with ``number`` to write how many rows each has."""
    few = ", or left blank where it rests on too few people" if table.withheld else ""
    classes = {
        "rows read": table.n_read,
        f"small (count from {table.low} to {table.high}): protected": table.n_small,
        f"safe (count above {table.high}): unchanged{few}": table.n_safe,
        "own area (origin is destination), or total: not in the model": table.n_set_aside,
        f"below {table.low}: unchanged": table.n_below,
        "groups with small cells": int(table.cells["group"].nunique()),
    }
    return [[name, number(n)] for name, n in classes.items()]


def group_rows(groups: pd.DataFrame, *, diverges: bool) -> list[list[str]]:
    """Diagnostics of each group."""
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


def predictive_rows(counts: pd.DataFrame) -> list[list[str]]:
    """Observed and expected number of each count, or of the worst ones."""
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


def margin_tables(margins: pd.DataFrame) -> dict[str, Any]:
    """True and synthetic totals by area, the worst first, and a picture of them."""
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


def rounded(n: int) -> str:
    """Return a number in words exact to two figures, coarser below a hundred."""
    if n == 0:
        return "none"
    if n < 10:
        return "fewer than 10"
    return f"about {(n + 5) // 10 * 10 if n < 100 else two_figures(n):,}"
