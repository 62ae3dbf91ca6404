"""Bayesian statistical disclosure control: the public names."""

from bayes_sdc.errors import InputError
from bayes_sdc.flows.choosing import Choice, choose_release
from bayes_sdc.flows.combining import CombinedTotals, combined_totals
from bayes_sdc.flows.covariates import gravity_covariates, with_covariates
from bayes_sdc.flows.fit import fit_flows
from bayes_sdc.flows.intruder import intruder_risk
from bayes_sdc.flows.job import Protection, protect_flows
from bayes_sdc.flows.repeats import repeat_risk, risk_by, risk_by_datasets
from bayes_sdc.flows.risk import IntruderRisk
from bayes_sdc.flows.synthesis import synthesize
from bayes_sdc.flows.table import FlowTable, read_flows
from bayes_sdc.flows.tradeoff import risk_utility
from bayes_sdc.flows.utility import Utility, utility
from bayes_sdc.microdata.additive import Lancaster, lancaster
from bayes_sdc.microdata.comparison import RiskComparison, compare_risks
from bayes_sdc.microdata.dis import Dis, dis
from bayes_sdc.microdata.dis_special import DisSimulation, dis_special
from bayes_sdc.microdata.dis_suda import DisSuda, dis_suda
from bayes_sdc.microdata.individual import household_risk, individual_risk
from bayes_sdc.microdata.job import Measurement, measure_microdata
from bayes_sdc.microdata.keys import Microdata, read_microdata
from bayes_sdc.microdata.poisson_gamma import poisson_gamma, zayatz
from bayes_sdc.microdata.risk import RecordRisk, compare_key_sets, record_risk
from bayes_sdc.microdata.size_indices import ewens, pitman
from bayes_sdc.microdata.size_table import SizeModel
from bayes_sdc.microdata.suda import Suda, suda, suda_forecast
from bayes_sdc.microdata.superpopulation import SuperpopulationRisk, superpopulation_risk
from bayes_sdc.microdata.uniques import (
    expected_uniques,
    largest_sample,
    smallest_sample,
    unique_probability,
    unique_test,
)
from bayes_sdc.policy import FlowLimits, MicrodataLimits, Policy, read_policy

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
    "Lancaster",
    "Measurement",
    "Microdata",
    "MicrodataLimits",
    "Policy",
    "Protection",
    "RecordRisk",
    "RiskComparison",
    "SizeModel",
    "Suda",
    "SuperpopulationRisk",
    "Utility",
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
    "largest_sample",
    "measure_microdata",
    "pitman",
    "poisson_gamma",
    "protect_flows",
    "read_flows",
    "read_microdata",
    "read_policy",
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
    "unique_probability",
    "unique_test",
    "utility",
    "with_covariates",
    "zayatz",
]
