# The public names, for type checkers, editors and for loading at first use.

from .agency_limits import FlowLimits as FlowLimits
from .agency_limits import MicrodataLimits as MicrodataLimits
from .checks import Check as Check
from .errors import InputError as InputError
from .flows import diagnostics as diagnostics
from .flows.audit.audit import audit_totals as audit_totals
from .flows.audit.result import Audit as Audit
from .flows.audit.settle import settle_totals as settle_totals
from .flows.cross_validation import loo_flows as loo_flows
from .flows.diagnostics import Dispersion as Dispersion
from .flows.fit.inference_groups import extend_posterior as extend_posterior
from .flows.fit.interrupted import posterior_so_far as posterior_so_far
from .flows.fit.pymc_model import as_posterior as as_posterior
from .flows.fit.pymc_model import migration_model as migration_model
from .flows.fitting import fit_flows as fit_flows
from .flows.guarantee import Guarantee as Guarantee
from .flows.guarantee import guarantee as guarantee
from .flows.intruder.comparing.choosing import Choice as Choice
from .flows.intruder.comparing.choosing import choose_release as choose_release
from .flows.intruder.comparing.promises import compare_promises as compare_promises
from .flows.intruder.comparing.protections import compare_protections as compare_protections
from .flows.intruder.comparing.repeats import repeat_risk as repeat_risk
from .flows.intruder.comparing.repeats import risk_by as risk_by
from .flows.intruder.comparing.repeats import risk_by_datasets as risk_by_datasets
from .flows.intruder.comparing.tradeoff import risk_utility as risk_utility
from .flows.intruder.log_ratios import LogRatios as LogRatios
from .flows.intruder.log_ratios import log_ratios as log_ratios
from .flows.intruder.measure import intruder_risk as intruder_risk
from .flows.intruder.probabilities.change import Change as Change
from .flows.intruder.probabilities.gain import Gain as Gain
from .flows.intruder.result import IntruderRisk as IntruderRisk
from .flows.intruder.result import intruder_gain as intruder_gain
from .flows.intruder.share import Share as Share
from .flows.intruder.totals.given_totals import GivenTotals as GivenTotals
from .flows.intruder.totals.given_totals import given_totals as given_totals
from .flows.intruder.totals.keeping import keep_totals as keep_totals
from .flows.intruder.weighting import risk_weights as risk_weights
from .flows.intruder.with_totals import WithTotals as WithTotals
from .flows.job.protect import protect_flows as protect_flows
from .flows.kept_columns.selection import LeftOut as LeftOut
from .flows.kept_columns.selection import Selection as Selection
from .flows.protection import Measured as Measured
from .flows.protection import Protection as Protection
from .flows.release.synthetic.synthesis import synthesize as synthesize
from .flows.release.totals.kept import KeptSide as KeptSide
from .flows.release.totals.kept import KeptTotals as KeptTotals
from .flows.release.use.combining import CombinedTotals as CombinedTotals
from .flows.release.use.combining import combined_totals as combined_totals
from .flows.release.use.distinguishing import Distinguished as Distinguished
from .flows.release.use.propensity import Propensity as Propensity
from .flows.release.use.uses import FlowUses as FlowUses
from .flows.release.use.uses import flow_uses as flow_uses
from .flows.release.use.utility import Utility as Utility
from .flows.release.use.utility import utility as utility
from .flows.table.covariates import gravity_covariates as gravity_covariates
from .flows.table.covariates import with_covariates as with_covariates
from .flows.table.read import FlowTable as FlowTable
from .flows.table.read import read_flows as read_flows
from .flows.table.simulate import example_flows_path as example_flows_path
from .flows.table.simulate import simulate_areas as simulate_areas
from .flows.table.simulate import simulate_flows as simulate_flows
from .io.form import FileForm as FileForm
from .io.tables import Dialect as Dialect
from .irs.hidden import hidden_flows as hidden_flows
from .irs.hidden import hidden_margins as hidden_margins
from .irs.read import IrsFlows as IrsFlows
from .irs.read import read_irs_flows as read_irs_flows
from .irs.simulate import example_irs_path as example_irs_path
from .irs.simulate import simulate_irs_flows as simulate_irs_flows
from .irs.thresholds import Threshold as Threshold
from .microdata.comparison.compare import compare_risks as compare_risks
from .microdata.comparison.result import RiskComparison as RiskComparison
from .microdata.file.microdata import Microdata as Microdata
from .microdata.file.microdata import Tally as Tally
from .microdata.file.read import read_microdata as read_microdata
from .microdata.file.simulate import example_persons_path as example_persons_path
from .microdata.file.simulate import simulate_persons as simulate_persons
from .microdata.individual.closed_form import household_risk as household_risk
from .microdata.individual.closed_form import individual_risk as individual_risk
from .microdata.individual.closed_form import terms_for_error as terms_for_error
from .microdata.individual.inclusion import weight_spread as weight_spread
from .microdata.individual.pymc_model import individual_risk_model as individual_risk_model
from .microdata.individual.record_risk import RecordRisk as RecordRisk
from .microdata.individual.record_risk import compare_key_sets as compare_key_sets
from .microdata.individual.record_risk import record_risk as record_risk
from .microdata.individual.superpopulation import SuperpopulationRisk as SuperpopulationRisk
from .microdata.individual.superpopulation import superpopulation_risk as superpopulation_risk
from .microdata.lancaster.additive import Lancaster as Lancaster
from .microdata.lancaster.additive import lancaster as lancaster
from .microdata.lancaster.forecast import LancasterForecast as LancasterForecast
from .microdata.lancaster.forecast import lancaster_forecast as lancaster_forecast
from .microdata.lancaster.structural_zeros import allowed_cells as allowed_cells
from .microdata.latent_classes.pymc_model import latent_class_model as latent_class_model
from .microdata.latent_classes.risk import Estimate90 as Estimate90
from .microdata.latent_classes.risk import LatentClassRisk as LatentClassRisk
from .microdata.latent_classes.risk import latent_class_risk as latent_class_risk
from .microdata.loglinear.pymc_model import loglinear_model as loglinear_model
from .microdata.loglinear.risk import LoglinearRisk as LoglinearRisk
from .microdata.loglinear.risk import loglinear_risk as loglinear_risk
from .microdata.measure.drivers import Drivers as Drivers
from .microdata.measure.measure import measure_microdata as measure_microdata
from .microdata.measure.result import Measurement as Measurement
from .microdata.measure.result import Truth as Truth
from .microdata.measure.result import Unstructured as Unstructured
from .microdata.posterior.sampling import Estimate as Estimate
from .microdata.size_models.ewens_pitman import ewens as ewens
from .microdata.size_models.ewens_pitman import pitman as pitman
from .microdata.size_models.poisson_gamma import poisson_gamma as poisson_gamma
from .microdata.size_models.poisson_gamma import zayatz as zayatz
from .microdata.size_models.size_table import SizeModel as SizeModel
from .microdata.special_uniques.dis import Dis as Dis
from .microdata.special_uniques.dis import dis as dis
from .microdata.special_uniques.dis_special import DisSimulation as DisSimulation
from .microdata.special_uniques.dis_special import dis_special as dis_special
from .microdata.special_uniques.dis_suda import DisSuda as DisSuda
from .microdata.special_uniques.dis_suda import dis_suda as dis_suda
from .microdata.special_uniques.forecast import SudaForecast as SudaForecast
from .microdata.special_uniques.suda import Suda as Suda
from .microdata.special_uniques.suda import suda as suda
from .microdata.special_uniques.suda import suda_forecast as suda_forecast
from .microdata.treatment.attributes import AttributeRisk as AttributeRisk
from .microdata.treatment.attributes import attribute_risk as attribute_risk
from .microdata.treatment.intruder import MatchRisk as MatchRisk
from .microdata.treatment.result import Treatment as Treatment
from .microdata.treatment.setting import Intruder as Intruder
from .microdata.treatment.tradeoff import compare_treatments as compare_treatments
from .microdata.treatment.treat import treat as treat
from .microdata.treatment.utility import TreatedUtility as TreatedUtility
from .microdata.treatment.utility import UseVerdict as UseVerdict
from .microdata.treatment.utility import treated_utility as treated_utility
from .microdata.uniques.decisions import largest_sample as largest_sample
from .microdata.uniques.decisions import smallest_sample as smallest_sample
from .microdata.uniques.decisions import unique_test as unique_test
from .microdata.uniques.learned import LearnedUniques as LearnedUniques
from .microdata.uniques.learned import learn_uniques as learn_uniques
from .microdata.uniques.mixture import Mixture as Mixture
from .microdata.uniques.mixture import mixture_of_priors as mixture_of_priors
from .microdata.uniques.pymc_model import uniques_model as uniques_model
from .microdata.uniques.unstructured import expected_uniques as expected_uniques
from .microdata.uniques.unstructured import unique_probability as unique_probability
from .microdata.uniques.unstructured import uniques_deviation as uniques_deviation
from .plots import plot_chains as plot_chains
from .plots import plot_convergence as plot_convergence
from .plots import plot_effects as plot_effects
from .plots import plot_flows as plot_flows
from .plots import plot_gain as plot_gain
from .plots import plot_intruder_risk as plot_intruder_risk
from .plots import plot_key_sets as plot_key_sets
from .plots import plot_map as plot_map
from .plots import plot_margins as plot_margins
from .plots import plot_predictive as plot_predictive
from .plots import plot_predictive_by_size as plot_predictive_by_size
from .plots import plot_prior_posterior as plot_prior_posterior
from .plots import plot_promises as plot_promises
from .plots import plot_record_risk as plot_record_risk
from .plots import plot_risk_by_count as plot_risk_by_count
from .plots import plot_risk_by_datasets as plot_risk_by_datasets
from .plots import plot_risk_comparison as plot_risk_comparison
from .plots import plot_ru_map as plot_ru_map
from .plots import plot_sizes as plot_sizes
from .plots import plot_treatments as plot_treatments
from .policy import Policy as Policy
from .policy import read_policy as read_policy
from .shapes import Shapes as Shapes
from .shapes import read_shapes as read_shapes

__version__: str

__all__ = [
    "AttributeRisk",
    "Audit",
    "Change",
    "Check",
    "Choice",
    "CombinedTotals",
    "Dialect",
    "Dis",
    "DisSimulation",
    "DisSuda",
    "Dispersion",
    "Distinguished",
    "Drivers",
    "Estimate",
    "Estimate90",
    "FlowLimits",
    "FlowTable",
    "FlowUses",
    "Gain",
    "GivenTotals",
    "Guarantee",
    "InputError",
    "Intruder",
    "IntruderRisk",
    "IrsFlows",
    "KeptSide",
    "KeptTotals",
    "Lancaster",
    "LancasterForecast",
    "LatentClassRisk",
    "LearnedUniques",
    "LeftOut",
    "LogRatios",
    "LoglinearRisk",
    "MatchRisk",
    "Measured",
    "Measurement",
    "Microdata",
    "MicrodataLimits",
    "Mixture",
    "Policy",
    "Propensity",
    "Protection",
    "RecordRisk",
    "RiskComparison",
    "Selection",
    "Shapes",
    "Share",
    "SizeModel",
    "Suda",
    "SudaForecast",
    "SuperpopulationRisk",
    "Tally",
    "Threshold",
    "TreatedUtility",
    "Treatment",
    "Truth",
    "Unstructured",
    "UseVerdict",
    "Utility",
    "WithTotals",
    "allowed_cells",
    "as_posterior",
    "attribute_risk",
    "audit_totals",
    "choose_release",
    "combined_totals",
    "compare_key_sets",
    "compare_promises",
    "compare_protections",
    "compare_risks",
    "compare_treatments",
    "diagnostics",
    "dis",
    "dis_special",
    "dis_suda",
    "ewens",
    "example_flows_path",
    "example_irs_path",
    "example_persons_path",
    "expected_uniques",
    "extend_posterior",
    "fit_flows",
    "flow_uses",
    "given_totals",
    "gravity_covariates",
    "guarantee",
    "hidden_flows",
    "hidden_margins",
    "household_risk",
    "individual_risk",
    "individual_risk_model",
    "intruder_gain",
    "intruder_risk",
    "keep_totals",
    "lancaster",
    "lancaster_forecast",
    "largest_sample",
    "latent_class_model",
    "latent_class_risk",
    "learn_uniques",
    "log_ratios",
    "loglinear_model",
    "loglinear_risk",
    "loo_flows",
    "measure_microdata",
    "migration_model",
    "mixture_of_priors",
    "pitman",
    "plot_chains",
    "plot_convergence",
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
    "risk_weights",
    "settle_totals",
    "simulate_areas",
    "simulate_flows",
    "simulate_irs_flows",
    "simulate_persons",
    "smallest_sample",
    "suda",
    "suda_forecast",
    "superpopulation_risk",
    "synthesize",
    "terms_for_error",
    "treat",
    "treated_utility",
    "unique_probability",
    "unique_test",
    "uniques_deviation",
    "uniques_model",
    "utility",
    "weight_spread",
    "with_covariates",
    "zayatz",
]
