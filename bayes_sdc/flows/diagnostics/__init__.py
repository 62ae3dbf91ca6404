"""Diagnostics of a posterior, and verdicts on them."""

from bayes_sdc.flows.diagnostics.fit import Dispersion, dispersion, predictive_counts
from bayes_sdc.flows.diagnostics.groups import group_diagnostics, small_by_size
from bayes_sdc.flows.diagnostics.verdicts import checks

__all__ = [
    "Dispersion",
    "checks",
    "dispersion",
    "group_diagnostics",
    "predictive_counts",
    "small_by_size",
]
