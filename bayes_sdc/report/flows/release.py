"""The release beside the true table in the internal report: heat maps, and maps."""

from typing import Any

import pandas as pd

from bayes_sdc.flows.protection import Measured, Protection
from bayes_sdc.flows.release.use.utility import between
from bayes_sdc.report import plots
from bayes_sdc.shapes import Shapes

MATRIX_SHOWN = 50  # rows, and columns
NAMED = 20  # areas without outlines


def internal_release(
    result: Protection, measured: Measured, shapes: Shapes | None
) -> dict[str, Any]:
    """Context of the pictures of flows and areas."""
    table = result.table
    sums = between(table, result.release)
    ends = [sums.index.unique(level) for level in (0, 1)]
    return {
        "flows_plot": plots.flows(table, result.release, MATRIX_SHOWN),
        "flows_between": "groups" if len(table.groups) == 2 else "areas",
        "flows_cut": [
            f"{MATRIX_SHOWN} of {len(names):,} {what}"
            for names, what in zip(ends, ("origins", "destinations"), strict=True)
            if len(names) > MATRIX_SHOWN
        ],
        **({"maps": [], "areas": []} if shapes is None else _maps(measured, shapes)),
        "unmapped": _unmapped(shapes),
    }


def _maps(measured: Measured, shapes: Shapes) -> dict[str, Any]:
    """Two maps, and the table of what they show."""
    totals = measured.margins.groupby("area")[["true", "synthetic"]].sum()
    errors = (totals["synthetic"] - totals["true"]) / totals["true"].where(totals["true"] > 0)
    risk = measured.classes["area"]
    found = risk["r_all"]
    maps = [
        {
            "plot": plots.area_map("map-errors", errors, shapes, "relative error", True),
            "caption": "Which areas have totals that are off? Relative error of an area's total: "
            "small counts in and out together, synthetic against true.",
        },
        {
            "plot": plots.area_map("map-risk", found, shapes, "share of cells found", False),
            "caption": "Where does the intruder find most? Share of the small cells in and out of "
            "an area whose true count the intruder finds. An area with few small cells has a "
            "share of few.",
        },
    ]
    areas = [
        [
            str(area),
            f"{risk['cells'][area]:,}",
            f"{totals['true'][area]:,.0f}",
            f"{totals['synthetic'][area]:,.0f}",
            "" if pd.isna(errors[area]) else f"{errors[area]:+.1%}",
            f"{found[area]:.1%}",
        ]
        for area in errors.abs().sort_values(ascending=False, kind="stable").index
    ]
    return {"maps": maps, "areas": areas}


def _unmapped(shapes: Shapes | None) -> str:
    if shapes is None or not shapes.missing:
        return ""
    more = ", ..." if len(shapes.missing) > NAMED else ""
    names = ", ".join(shapes.missing[:NAMED]) + more
    return f"{len(shapes.missing):,} areas of the table have no outline in the file: {names}."
