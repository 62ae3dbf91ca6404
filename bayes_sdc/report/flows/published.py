"""Totals published beside the release, in the internal report."""

from typing import Any

import pandas as pd

from bayes_sdc.flows.protection import Protection


def internal_published(result: Protection) -> dict[str, Any] | None:
    """Return what was published, how many cells it pins and narrows, and which; None if nothing."""
    audit = result.audit
    if audit is None:
        return None
    bounds = pd.concat([audit.bounds, audit.besides])
    pinned = bounds[bounds["pinned"].astype(bool)]
    return {
        "kinds": ", ".join(audit.published) or "nothing",
        "together": "" if result.with_totals is None else result.with_totals.words,
        "numbers": [
            ["totals", f"{audit.totals:,}"],
            ["small cells", f"{audit.cells:,}"],
            ["pinned: the count follows", f"{audit.pinned:,}"],
            ["two values left", f"{audit.two_left:,}"],
            ["fewer values left, not pinned", f"{audit.narrowed:,}"],
            ["bounds that may not be the tightest", f"{audit.inexact:,}"],
            ["other rows that are not released", f"{len(bounds) - audit.cells:,}"],
            ["of them pinned", f"{audit.pinned_besides:,}"],
        ],
        "pinned": [
            [str(cell), str(row["why"]), f"{row['lower']:,}"] for cell, row in pinned.iterrows()
        ],
    }
