"""Bayesian statistical disclosure control: the public names."""

from bayes_sdc.errors import InputError
from bayes_sdc.flows.covariates import gravity_covariates, with_covariates
from bayes_sdc.flows.fit import fit_flows
from bayes_sdc.flows.intruder import intruder_risk, repeat_risk
from bayes_sdc.flows.job import Protection, protect_flows
from bayes_sdc.flows.risk import IntruderRisk
from bayes_sdc.flows.synthesis import synthesize
from bayes_sdc.flows.table import FlowTable, read_flows
from bayes_sdc.microdata.individual import household_risk, individual_risk
from bayes_sdc.microdata.job import Measurement, measure_microdata
from bayes_sdc.microdata.keys import Microdata, read_microdata
from bayes_sdc.microdata.risk import RecordRisk, compare_key_sets, record_risk
from bayes_sdc.microdata.superpopulation import SuperpopulationRisk, superpopulation_risk
from bayes_sdc.microdata.uniques import (
    expected_uniques,
    largest_sample,
    smallest_sample,
    unique_probability,
    unique_test,
)

__all__ = [
    "FlowTable",
    "InputError",
    "IntruderRisk",
    "Measurement",
    "Microdata",
    "Protection",
    "RecordRisk",
    "SuperpopulationRisk",
    "compare_key_sets",
    "expected_uniques",
    "fit_flows",
    "gravity_covariates",
    "household_risk",
    "individual_risk",
    "intruder_risk",
    "largest_sample",
    "measure_microdata",
    "protect_flows",
    "read_flows",
    "read_microdata",
    "record_risk",
    "repeat_risk",
    "smallest_sample",
    "superpopulation_risk",
    "synthesize",
    "with_covariates",
    "unique_probability",
    "unique_test",
]
