"""The posterior in the internal report: chains, hyperparameters, effects, fit by size.

None of it is public: it holds names of groups and areas, and numbers of few cells.
"""

from typing import Any

import pandas as pd
import xarray as xr

from bayes_sdc.flows.model.hyperparameters import hyperparameters
from bayes_sdc.flows.model.parameters import CI_PROB, effects, extreme
from bayes_sdc.report import plots

GROUPS_SHOWN = 4  # with the chains of their worst parameter
EFFECTS_SHOWN = 10  # of origins, and of destinations


def internal_posterior(
    posterior: xr.DataTree, groups: pd.DataFrame, by_size: pd.DataFrame
) -> dict[str, Any]:
    """Context of the posterior for the sections on convergence, parameters and fit."""
    found = hyperparameters(posterior)
    extremes = extreme(effects(posterior), number=EFFECTS_SHOWN)
    return {
        "chains_plot": plots.chains(posterior, groups, GROUPS_SHOWN),
        "chains_shown": min(GROUPS_SHOWN, len(groups)),
        "interval_words": f"{100 * CI_PROB:.0f} % interval (eti)",
        "pooled": "national_mean" in posterior["posterior"],
        "hyperparameters": [
            [one.name, f"{median:.2f}", f"{lower:.2f} to {upper:.2f}"]
            for one in found
            for median, lower, upper in [one.quantiles()]
        ],
        "hyperparameters_plots": plots.prior_posterior(found),
        "effects": [
            [
                row["side"],
                row["group"],
                row["area"],
                signed(row["median"]),
                f"{signed(row['lower'])} to {signed(row['upper'])}",
            ]
            for _, row in extremes.iterrows()
        ],
        "effects_shown": EFFECTS_SHOWN,
        "effects_answer": _unlike(extremes),
        "effects_plot": plots.effects(posterior, EFFECTS_SHOWN),
        "counts_by_size_plot": plots.predictive_by_size(by_size),
    }


def _unlike(extremes: pd.DataFrame) -> str:
    """Answer in words which areas are unlike the others: those whose interval leaves out 0."""
    apart = (extremes["lower"] > 0.0) | (extremes["upper"] < 0.0)
    if not apart.any():
        return "None for certain: every interval holds 0, the mean of the group."
    if apart.all():
        return "All that are shown: no interval holds 0, the mean of the group."
    number = int(apart.sum())
    return f"{number} of the {len(apart)} shown: the other intervals hold 0, the mean of the group."


def signed(value: float) -> str:
    """Return a deviation with two decimals; the paper's prior allows enormous ones."""
    return f"{value:+.2f}" if abs(value) < 1000.0 else f"{value:+.1e}"
