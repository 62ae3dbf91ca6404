"""Bayesian statistical disclosure control: the public names.

Plots are imported with their first use, because matplotlib takes its time.
"""

from typing import TYPE_CHECKING, Any

from bayes_sdc.errors import InputError
from bayes_sdc.flows.choosing import Choice, choose_release
from bayes_sdc.flows.combining import CombinedTotals, combined_totals
from bayes_sdc.flows.covariates import gravity_covariates, with_covariates
from bayes_sdc.flows.fit import fit_flows
from bayes_sdc.flows.interrupted import posterior_so_far
from bayes_sdc.flows.intruder import intruder_risk
from bayes_sdc.flows.irs import IrsFlows, read_irs_flows
from bayes_sdc.flows.job import Protection, protect_flows
from bayes_sdc.flows.repeats import repeat_risk, risk_by, risk_by_datasets
from bayes_sdc.flows.risk import IntruderRisk
from bayes_sdc.flows.synthesis import synthesize
from bayes_sdc.flows.table import FlowTable, read_flows
from bayes_sdc.flows.tradeoff import risk_utility
from bayes_sdc.flows.utility import Utility, utility
from bayes_sdc.microdata.additive import Lancaster, lancaster
from bayes_sdc.microdata.additive_forecast import lancaster_forecast
from bayes_sdc.microdata.comparison import RiskComparison, compare_risks
from bayes_sdc.microdata.dis import Dis, dis
from bayes_sdc.microdata.dis_special import DisSimulation, dis_special
from bayes_sdc.microdata.dis_suda import DisSuda, dis_suda
from bayes_sdc.microdata.inclusion import weight_spread
from bayes_sdc.microdata.individual import household_risk, individual_risk, terms_for_error
from bayes_sdc.microdata.job import Measurement, measure_microdata
from bayes_sdc.microdata.keys import Microdata, read_microdata
from bayes_sdc.microdata.learned_uniques import LearnedUniques, learn_uniques
from bayes_sdc.microdata.poisson_gamma import poisson_gamma, zayatz
from bayes_sdc.microdata.risk import RecordRisk, compare_key_sets, record_risk
from bayes_sdc.microdata.size_indices import ewens, pitman
from bayes_sdc.microdata.size_table import SizeModel
from bayes_sdc.microdata.structural_zeros import allowed_cells
from bayes_sdc.microdata.suda import Suda, suda, suda_forecast
from bayes_sdc.microdata.superpopulation import SuperpopulationRisk, superpopulation_risk
from bayes_sdc.microdata.uniques import (
    expected_uniques,
    largest_sample,
    mixture_of_priors,
    smallest_sample,
    unique_probability,
    unique_test,
    uniques_deviation,
)
from bayes_sdc.policy import FlowLimits, MicrodataLimits, Policy, read_policy
from bayes_sdc.shapes import Shapes, read_shapes

if TYPE_CHECKING:
    from bayes_sdc.plots import (
        plot_chains,
        plot_convergence,
        plot_effects,
        plot_flows,
        plot_intruder_risk,
        plot_map,
        plot_margins,
        plot_predictive,
        plot_predictive_by_size,
        plot_prior_posterior,
        plot_record_risk,
        plot_risk_by_count,
        plot_risk_by_datasets,
        plot_risk_comparison,
        plot_ru_map,
    )

__all__ = [
    "Choice",
    "CombinedTotals",
    "Dis",
    "DisSimulation",
    "DisSuda",
    "FlowLimits",
    "FlowTable",
    "InputError",
    "IntruderRisk",
    "IrsFlows",
    "Lancaster",
    "LearnedUniques",
    "Measurement",
    "Microdata",
    "MicrodataLimits",
    "Policy",
    "Protection",
    "RecordRisk",
    "RiskComparison",
    "Shapes",
    "SizeModel",
    "Suda",
    "SuperpopulationRisk",
    "Utility",
    "allowed_cells",
    "choose_release",
    "combined_totals",
    "compare_key_sets",
    "compare_risks",
    "dis",
    "dis_special",
    "dis_suda",
    "ewens",
    "expected_uniques",
    "fit_flows",
    "gravity_covariates",
    "household_risk",
    "individual_risk",
    "intruder_risk",
    "lancaster",
    "lancaster_forecast",
    "largest_sample",
    "learn_uniques",
    "measure_microdata",
    "mixture_of_priors",
    "pitman",
    "plot_chains",
    "plot_convergence",
    "plot_effects",
    "plot_flows",
    "plot_intruder_risk",
    "plot_map",
    "plot_margins",
    "plot_predictive",
    "plot_predictive_by_size",
    "plot_prior_posterior",
    "plot_record_risk",
    "plot_risk_by_count",
    "plot_risk_by_datasets",
    "plot_risk_comparison",
    "plot_ru_map",
    "poisson_gamma",
    "posterior_so_far",
    "protect_flows",
    "read_flows",
    "read_irs_flows",
    "read_microdata",
    "read_policy",
    "read_shapes",
    "record_risk",
    "repeat_risk",
    "risk_by",
    "risk_by_datasets",
    "risk_utility",
    "smallest_sample",
    "suda",
    "suda_forecast",
    "superpopulation_risk",
    "synthesize",
    "terms_for_error",
    "unique_probability",
    "unique_test",
    "uniques_deviation",
    "utility",
    "weight_spread",
    "with_covariates",
    "zayatz",
]


def __getattr__(name: str) -> Any:
    """Import a plot when it is asked for."""
    if name in __all__ and name.startswith("plot_"):
        from bayes_sdc import plots

        return getattr(plots, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names to complete, those of the plots among them."""
    return sorted({*globals(), *__all__})
