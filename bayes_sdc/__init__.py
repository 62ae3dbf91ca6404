"""Bayesian statistical disclosure control: the public names."""

from bayes_sdc.errors import InputError
from bayes_sdc.flows.covariates import gravity_covariates, with_covariates
from bayes_sdc.flows.fit import fit_flows
from bayes_sdc.flows.intruder import intruder_risk, repeat_risk
from bayes_sdc.flows.job import Protection, protect_flows
from bayes_sdc.flows.risk import IntruderRisk
from bayes_sdc.flows.synthesis import synthesize
from bayes_sdc.flows.table import FlowTable, read_flows

__all__ = [
    "FlowTable",
    "InputError",
    "IntruderRisk",
    "Protection",
    "fit_flows",
    "gravity_covariates",
    "intruder_risk",
    "protect_flows",
    "read_flows",
    "repeat_risk",
    "synthesize",
    "with_covariates",
]
