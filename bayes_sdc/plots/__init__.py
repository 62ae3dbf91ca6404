"""Plots of results, for a notebook or a report.

They take results of other functions of the package and compute nothing new. Plots of one panel take
``ax`` and return it, those of several take ``figure`` and return an array of axes; without it they
make a pyplot figure. ``ci_prob`` and the like mean what they mean in ``arviz_plots``, which draws
everything else about a posterior, because that is an ArviZ DataTree.
"""

from bayes_sdc.plots.combinations import plot_key_sets, plot_sizes
from bayes_sdc.plots.convergence import plot_chains, plot_convergence
from bayes_sdc.plots.gain import plot_gain
from bayes_sdc.plots.intruder import (
    plot_distances,
    plot_intruder_risk,
    plot_risk_by_count,
    plot_risk_by_datasets,
    plot_ru_map,
    plot_weights,
)
from bayes_sdc.plots.posterior import (
    plot_effects,
    plot_predictive,
    plot_predictive_by_size,
    plot_prior_posterior,
)
from bayes_sdc.plots.promises import plot_promises
from bayes_sdc.plots.records import plot_record_risk, plot_risk_comparison
from bayes_sdc.plots.release import plot_flows, plot_map, plot_margins
from bayes_sdc.plots.treatments import plot_treatments

__all__ = [
    "plot_chains",
    "plot_convergence",
    "plot_distances",
    "plot_effects",
    "plot_flows",
    "plot_gain",
    "plot_intruder_risk",
    "plot_key_sets",
    "plot_map",
    "plot_margins",
    "plot_predictive",
    "plot_predictive_by_size",
    "plot_prior_posterior",
    "plot_promises",
    "plot_record_risk",
    "plot_risk_by_count",
    "plot_risk_by_datasets",
    "plot_risk_comparison",
    "plot_ru_map",
    "plot_sizes",
    "plot_treatments",
    "plot_weights",
]
