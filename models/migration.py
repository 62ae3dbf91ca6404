r"""Truncated count models of migration: Hawala, Reiter and Wang, and an over-dispersed extension.

Small counts of an origin-destination table, counted from their lower bound, ``y = n - low``,
follow a Poisson distribution truncated to ``0..upper``,

.. math::
    P(Y_{ij} = y) = \frac{\lambda_{ij}^{y} / y!}{\sum_{r=0}^{upper} \lambda_{ij}^{r} / r!},
    \qquad \log \lambda_{ij} = \beta_i + \gamma_j,

with :math:`\beta_i \sim N(\mu_\beta, 1/\phi_\beta)`, :math:`\gamma_j \sim N(\mu_\gamma,
1/\phi_\gamma)` and independent :math:`\mu_\beta, \mu_\gamma \sim N(0, \sigma_\mu^2)`.
One model serves one pair of an origin state and a destination state, called a group; with the
``pooled`` prior all groups make one model.

Families. ``poisson`` is the paper's. Real tables are over-dispersed given the effects, so
``negative-binomial`` puts a gamma-distributed effect of mean 1 on each cell: the negative binomial
with mean :math:`\lambda` and size :math:`r`, truncated to the same support,

.. math::
    P(Y_{ij} = y) \propto \frac{\Gamma(y + r)}{y!\, \Gamma(r)}
    \left( \frac{\lambda_{ij}}{\lambda_{ij} + r} \right)^{y}.

Its free parameter is the coefficient of variation of the cell effects, :math:`cv = r^{-1/2}`, one
per group: 0 is the Poisson model.

``canonical`` is the same distribution with the canonical link: not the log of the mean, but the
log of the argument of its power series is :math:`\beta_i + \gamma_j`. So counts of large areas may
be as large as they are: :mod:`bayes_sdc.models.canonical`.

``base`` multiplies the probabilities of ``canonical`` by a measure :math:`h(y)` that all cells of a
nation share: :mod:`bayes_sdc.models.base_measure`. It needs the pooled prior.

Bound. With ``epsilon`` the log ratio of neighbouring counts of either family is kept, smoothly,
within half of it about given ``centres``: :mod:`bayes_sdc.models.bounded`. Parameters and priors
are the same.

Covariates. Known standardised properties of the pairs may enter the log rate, :math:`\log
\lambda_{ij} = \beta_i + \gamma_j + x_{ij}' \omega`, with coefficients of each group: distance,
populations, contiguity, as in gravity models of migration.

Identified form. The data see only :math:`\beta_i + \gamma_j`, so the model is written with
:math:`\alpha = \mu_\beta + \mu_\gamma`, :math:`\delta = \mu_\beta - \mu_\gamma`, which are
independent :math:`N(0, 2 \sigma_\mu^2)`, and deviations from the two means. :math:`\delta` never
meets the data. The prior is the same; only the coordinates differ. ``mu_beta``, ``mu_gamma``,
``beta``, ``gamma``, ``phi_beta`` and ``phi_gamma`` are recorded under the paper's names.

Priors (:data:`PRIORS`):

``paper``
    :math:`\phi \sim Gamma(0.01, rate\ 0.01)`, :math:`\sigma_\mu = 5`, to the letter. With one
    origin or one destination the deviations are then Student t with 0.02 degrees of freedom and no
    sampler explores them: such groups are flagged by the diagnostics. With the negative binomial it
    is worse: the truncated likelihood does not vanish for an infinite rate, and this prior gives
    infinite scales so much mass that the posterior diverges in groups of any size.
``weak``
    :math:`\phi^{-1/2}, cv \sim HalfNormal(1)`, :math:`\sigma_\mu = 1.5`: usable at every size.
``pooled``
    :math:`(\alpha, \log \phi_\beta^{-1/2}, \log \phi_\gamma^{-1/2}, \log cv, \omega)` of the groups
    are normal about national means, with national standard deviations, all with weak priors of
    their own. A group with many cells keeps its own values; a tiny one borrows those of the nation.
    The prior of the log of each national standard deviation is normal, which keeps it away from
    zero: no two groups are taken to be exactly alike. Known standardised properties of the groups
    may enter the mean of their levels: :math:`\alpha_k \sim N(m + z_k' \zeta, s^2)`, with the prior
    of a national mean of :math:`\omega` for :math:`\zeta`.

Printed formulas that are wrong, and corrected here and in the reference sampler: in eq. (1)
:math:`F_8^{-1}` belongs in the numerator; in steps 1-2 the exponent is :math:`y_{ij}`; step 4 draws
:math:`\mu_\gamma`; steps 5-6 need the sum of squares about :math:`\mu`, not about the mean.

References
----------
S. Hawala, J. Reiter, Q. Wang, "Synthesizing Truncated Count Data for Confidentiality",
eq. (1) and (2).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayes_sdc.models.base_counts import BaseCounts
from bayes_sdc.models.base_measure import IMPOSSIBLE, basis, possible
from bayes_sdc.models.bounded import BoundedCounts
from bayes_sdc.models.canonical import CanonicalNegativeBinomial
from bayes_sdc.models.truncated import TruncatedNegativeBinomial, TruncatedPoisson

NAME = "migration"
VERSION = "5"

FAMILIES = ("poisson", "negative-binomial", "canonical", "base")

#: Hyperpriors by name. ``mu_sd``: standard deviation of mu_beta and mu_gamma, or of the free
#: direction delta alone where the prior is pooled. Then either ``phi_shape`` and ``phi_rate``
#: (gamma prior of the precision) or ``sd_scale`` (half-normal prior of the standard deviation).
#: ``cv_scale``: half-normal prior of cv, which the paper's Poisson model does not have.
#: ``coefficient_sd``: normal prior of a covariate's coefficient. Of a pooled prior: mean and
#: standard deviation of each national mean, median of each national standard deviation
#: (``_spread``), and the standard deviation of the log of the latter; of the base measure, the
#: median of its standard deviation tau (``base_spread``), the standard deviation of its log, and
#: that of the national mean of log cv beside it.
PRIORS: dict[str, dict[str, float]] = {
    "paper": {
        "mu_sd": 5.0, "phi_shape": 0.01, "phi_rate": 0.01, "cv_scale": 1.0, "coefficient_sd": 1.0,
    },
    "weak": {"mu_sd": 1.5, "sd_scale": 1.0, "cv_scale": 1.0, "coefficient_sd": 1.0},
    "pooled": {
        "mu_sd": 1.5,
        "alpha_mean": 0.0, "alpha_mean_sd": 2.0, "alpha_spread": 1.0,
        "log_sd_mean": -0.7, "log_sd_mean_sd": 1.0, "log_sd_spread": 0.3,
        "log_cv_mean": -0.35, "log_cv_mean_sd": 1.0, "log_cv_spread": 0.3,
        "coefficient_mean": 0.0, "coefficient_mean_sd": 1.0, "coefficient_spread": 0.3,
        "national_log_sd_sd": 0.5,
        "base_spread": 0.2, "base_log_sd_sd": 1.0, "base_log_cv_mean_sd": 0.05,
    },
}  # fmt: skip
# chosen by held-out scores and calibration on four real tables: tests/validation/default_study.md
DEFAULT_PRIOR = "pooled"
DEFAULT_FAMILY = "negative-binomial"


def _log_precision(name: str, prior: Mapping[str, float]) -> Any:
    """Log of the precisions of one set of effects, under the gamma or the half-normal prior."""
    if "sd_scale" in prior:
        sd = pm.HalfNormal(f"sd_{name}", prior["sd_scale"], dims="group")
        return -2.0 * pt.log(sd)
    shape, rate = prior["phi_shape"], prior["phi_rate"]
    # Gamma(0.01) draws underflow; log Gamma(a) = log Gamma(a + 1) + log(uniform) / a does not
    return pm.CustomDist(
        f"log_phi_{name}",
        shape,
        rate,
        dist=lambda a, b, size: (
            pt.log(pm.Gamma.dist(a + 1.0, b, size=size)) - pm.Exponential.dist(1.0, size=size) / a
        ),
        logp=lambda x, a, b: a * (x + pt.log(b)) - b * pt.exp(x) - pt.gammaln(a),
        support_point=lambda rv, size, a, b: pt.zeros_like(rv),
        class_name="LogGamma",
        dims="group",
    )


def _partly_centred(name: str, dim: str, sd: Any, weight: Any) -> Any:
    """Draws from N(0, sd^2), sampled on a scale between centred (1) and not centred (0)."""
    raw = pm.Normal(f"{name}_raw", 0.0, sd**weight, dims=dim)
    return raw * sd ** (1.0 - weight)


def _group_parameters(
    prior: Mapping[str, float],
    family: str,
    covariates: Sequence[str],
    cells_of_group: np.ndarray,
    level_shift: Any,
) -> dict[str, Any]:
    """Level, log sds, log cv and coefficients of every group, under any of the priors."""
    if "national_log_sd_sd" not in prior:
        parameters = {
            "alpha": pm.Normal("alpha", 0.0, np.sqrt(2.0) * prior["mu_sd"], dims="group"),
            "log_sd_beta": _log_precision("beta", prior) / -2.0,
            "log_sd_gamma": _log_precision("gamma", prior) / -2.0,
        }
        if family != "poisson":
            parameters["log_cv"] = pt.log(pm.HalfNormal("cv", prior["cv_scale"], dims="group"))
        for name in covariates:
            parameters[f"coefficient of {name}"] = pm.Normal(
                f"coefficient of {name}", 0.0, prior["coefficient_sd"], dims="group"
            )
        return parameters
    kinds = {"alpha": "alpha", "log_sd_beta": "log_sd", "log_sd_gamma": "log_sd"}
    if family != "poisson":
        kinds["log_cv"] = "log_cv"
    kinds |= {f"coefficient of {name}": "coefficient" for name in covariates}

    def settings(of: str) -> list[float]:
        return [prior[f"{kind}_{of}"] for kind in kinds.values()]

    pm.modelcontext(None).add_coord("parameter", list(kinds))
    mean = pm.Normal("national_mean", settings("mean"), settings("mean_sd"), dims="parameter")
    spread = np.log(settings("spread"))
    sd = pm.LogNormal("national_sd", spread, prior["national_log_sd_sd"], dims="parameter")
    weight = centering(cells_of_group)
    parameters = {
        name: mean[k] + _partly_centred(name, "group", sd[k], weight)
        for k, name in enumerate(kinds)
    }
    return parameters | {"alpha": parameters["alpha"] + level_shift}


def _level_shift(prior: Mapping[str, float], group_covariates: np.ndarray | None) -> Any:
    """Contribution of the properties of the groups to the prior means of their levels."""
    if group_covariates is None or not group_covariates.shape[1]:
        return 0.0
    if "national_log_sd_sd" not in prior:
        raise ValueError("properties of groups need a pooled prior")
    slope = pm.Normal(
        "national_slope",
        prior["coefficient_mean"],
        prior["coefficient_mean_sd"],
        dims="group_covariate",
    )
    return pt.dot(group_covariates, slope)


def _base_measure(
    prior: Mapping[str, float], cells: int, upper: int, impossible: Sequence[int]
) -> Any:
    """Log h of every value; recorded for the possible ones."""
    if "national_log_sd_sd" not in prior:
        raise ValueError("family 'base' needs a pooled prior")
    columns, values = basis(upper, impossible), possible(upper, impossible)
    model = pm.modelcontext(None)
    model.add_coord("value", values)
    model.add_coord("degree", np.arange(2, columns.shape[1] + 2))
    sd = pm.LogNormal("base_sd", np.log(prior["base_spread"]), prior["base_log_sd_sd"])
    along = _partly_centred("base", "degree", sd, float(centering(np.array(cells))))
    measure = pt.dot(columns, along)
    pm.Deterministic("base", measure[values], dims="value")
    rule = np.zeros(upper + 1)
    rule[np.asarray(impossible, np.int64)] = IMPOSSIBLE
    return measure + rule


def centering(cells_per_area: np.ndarray) -> np.ndarray:
    """Choose the centering of each effect from the number of its cells, in [0, 1).

    An effect with many cells is known by the data and is sampled as it is; one with few is known by
    the prior and is sampled in units of its standard deviation (Papaspiliopoulos, Roberts and Skold
    2007, doi:10.1214/088342307000000014). The constant errs on the side of the prior: a scale near
    zero causes divergences when effects of ten cells are sampled as they are.

    Examples
    --------
    >>> centering(np.array([0, 30, 270]))
    array([0. , 0.5, 0.9])
    """
    return cells_per_area / (cells_per_area + 30.0)


def build(
    y: np.ndarray,
    origin_index: np.ndarray,
    destination_index: np.ndarray,
    *,
    upper: int,
    origins: Sequence[str],
    destinations: Sequence[str],
    groups: Sequence[str] = ("all",),
    group_of_origin: np.ndarray | None = None,
    group_of_destination: np.ndarray | None = None,
    family: str = "default",
    prior: str | Mapping[str, float] = "default",
    covariates: np.ndarray | None = None,
    covariate_names: Sequence[str] = (),
    group_covariates: np.ndarray | None = None,
    group_covariate_names: Sequence[str] = (),
    offset: np.ndarray | None = None,
    epsilon: float | None = None,
    centres: Sequence[float] = (),
    impossible: Sequence[int] = (),
    weights: np.ndarray | None = None,
) -> pm.Model:
    """Build the model of the small cells of one group, or of several.

    Parameters
    ----------
    y : array of int, shape (cell,)
        Small counts minus their lower bound, 0 to ``upper``.
    origin_index, destination_index : array of int, shape (cell,)
        Position of each cell's areas in ``origins`` and ``destinations``.
    upper : int
        Largest value of ``y``.
    origins, destinations : sequence of str
        Labels of the effects. An area that occurs in several groups has an effect in each.
    groups : sequence of str
        Labels of the groups.
    group_of_origin, group_of_destination : array of int, optional
        Position of each effect's group in ``groups``; not needed for one group.
    family : {"default", "poisson", "negative-binomial", "canonical", "base"}
        Distribution of the counts.
    prior : str or mapping
        ``"paper"``, ``"weak"``, ``"pooled"``, ``"default"``, or a mapping like those in
        :data:`PRIORS`.
    covariates : array of float, shape (cell, covariate), optional
        Standardised.
    covariate_names : sequence of str
        One for each column of ``covariates``.
    group_covariates : array of float, shape (group, covariate), optional
        Standardised properties of the groups, for the mean of the level; with the pooled prior.
    group_covariate_names : sequence of str
        One for each column of ``group_covariates``.
    offset : array of float, shape (cell,), optional
        Known addition to the log rate of each cell.
    epsilon : float, optional
        Width of the interval in which each step from a count to the next is kept; no bound by
        default.
    centres : sequence of float, shape (upper,)
        Of these intervals, with ``epsilon``; they must not come from ``y``.
    impossible : sequence of int
        Values of ``y`` with probability 0, with family "base".
    weights : array of float, shape (cell,), optional
        From 0 to 1: the log-likelihood of each cell is multiplied by its weight, which makes a
        pseudo-posterior. By default all are 1.

    Returns
    -------
    pymc.Model
        Deterministics alpha, mu_beta, mu_gamma, phi_beta, phi_gamma and r (group,), beta
        (origin,), gamma (destination,), coefficient (group, covariate); base (value,), the log of
        h, and base_sd with family "base"; national_mean and
        national_sd (parameter,) and national_slope (group_covariate,) under the pooled prior;
        observed y, or with weights a potential of that name.

    Raises
    ------
    ValueError
        If the name of the family or of the prior is unknown, a prior that is not pooled is given
        properties of groups or family "base", this one fewer than three possible values, or it or
        "canonical" an ``epsilon``.

    References
    ----------
    Hawala, Reiter and Wang, section 2.1, eq. (1) and (2). Weights: T. Savitsky, M. Williams, J. Hu,
    "Bayesian pseudo posterior mechanism under asymptotic differential privacy", Journal of Machine
    Learning Research 23, 2022, arXiv:1909.11796.

    Examples
    --------
    >>> model = build(
    ...     np.array([0, 2, 1]), np.array([0, 0, 1]), np.array([0, 1, 1]), upper=8,
    ...     origins=["01001", "01003"], destinations=["02013", "02016"],
    ...     family="poisson", prior="weak",
    ... )
    >>> sorted(v.name for v in model.free_RVs)
    ['alpha', 'beta_raw', 'delta', 'gamma_raw', 'sd_beta', 'sd_gamma']
    """
    family = resolve_family(family, prior)
    settings = resolve_prior(prior, family)
    y = np.asarray(y, dtype=np.int64)
    if group_of_origin is None or group_of_destination is None:
        group_of_origin = np.zeros(len(origins), np.int64)
        group_of_destination = np.zeros(len(destinations), np.int64)
    if family in ("base", "canonical") and epsilon is not None:
        raise ValueError(f"family {family!r} has no bounded steps")
    x = np.empty((len(y), 0)) if covariates is None else np.asarray(covariates, np.float64)
    cells_of_origin = np.bincount(origin_index, minlength=len(origins))
    cells_of_destination = np.bincount(destination_index, minlength=len(destinations))
    cells_of_group = np.bincount(group_of_origin, cells_of_origin, len(groups))
    coords = {
        "group": list(groups), "origin": list(origins), "destination": list(destinations),
        "cell": range(len(y)), "covariate": list(covariate_names),
        "group_covariate": list(group_covariate_names),
    }  # fmt: skip
    with pm.Model(coords=coords) as model:
        counts = pm.Data("y_data", y, dims="cell")
        at_origin = pm.Data("origin_index", np.asarray(origin_index, np.int64), dims="cell")
        destination_index = np.asarray(destination_index, np.int64)
        at_destination = pm.Data("destination_index", destination_index, dims="cell")
        shift = pm.Data("offset", np.zeros(len(y)) if offset is None else offset, dims="cell")
        of_origin = pm.Data("origin_centering", centering(cells_of_origin), dims="origin")
        of_destination = pm.Data(
            "destination_centering", centering(cells_of_destination), dims="destination"
        )
        parameters = _group_parameters(
            settings, family, covariate_names, cells_of_group,
            _level_shift(settings, group_covariates),
        )  # fmt: skip
        alpha = parameters["alpha"]
        if "national_log_sd_sd" in settings:
            pm.Deterministic("alpha", alpha, dims="group")
        delta = pm.Normal("delta", 0.0, np.sqrt(2.0) * settings["mu_sd"], dims="group")
        mu_beta = pm.Deterministic("mu_beta", (alpha + delta) / 2.0, dims="group")
        mu_gamma = pm.Deterministic("mu_gamma", (alpha - delta) / 2.0, dims="group")
        pm.Deterministic("phi_beta", pt.exp(-2.0 * parameters["log_sd_beta"]), dims="group")
        pm.Deterministic("phi_gamma", pt.exp(-2.0 * parameters["log_sd_gamma"]), dims="group")

        sd_b = pt.exp(parameters["log_sd_beta"])[group_of_origin]
        sd_g = pt.exp(parameters["log_sd_gamma"])[group_of_destination]
        b = _partly_centred("beta", "origin", sd_b, of_origin)
        g = _partly_centred("gamma", "destination", sd_g, of_destination)
        pm.Deterministic("beta", mu_beta[group_of_origin] + b, dims="origin")
        pm.Deterministic("gamma", mu_gamma[group_of_destination] + g, dims="destination")
        of_cell = pt.as_tensor(group_of_origin)[at_origin]
        log_rate = alpha[of_cell] + b[at_origin] + g[at_destination] + shift
        if covariate_names:
            coefficient = pm.Deterministic(
                "coefficient",
                pt.stack(
                    [parameters[f"coefficient of {name}"] for name in covariate_names], axis=1
                ),
                dims=("group", "covariate"),
            )
            values = pm.Data("x", x, dims=("cell", "covariate"))
            log_rate += (values * coefficient[of_cell]).sum(axis=1)
        likelihood = {"log_rate": log_rate, "upper": upper}
        distribution = TruncatedPoisson
        if family != "poisson":
            kappa = pt.exp(2.0 * parameters["log_cv"])
            pm.Deterministic("r", 1.0 / kappa, dims="group")
            distribution = TruncatedNegativeBinomial
            likelihood["kappa"] = kappa[of_cell]
        if family == "canonical":
            distribution = CanonicalNegativeBinomial
        if family == "base":
            distribution = BaseCounts
            likelihood["log_measure"] = _base_measure(settings, len(y), upper, impossible)
        if epsilon is not None:
            distribution = BoundedCounts
            likelihood |= {"epsilon": epsilon, "centres": centres}
        if weights is None:
            distribution("y", **likelihood, observed=counts, dims="cell")
        else:
            weight = pm.Data("weight", np.asarray(weights, np.float64), dims="cell")
            log_p = pm.logp(distribution.dist(**likelihood), counts)
            pm.Potential("y", weight * log_p, dims="cell")
    return model


def resolve_family(family: str, prior: str | Mapping[str, float] = "default") -> str:
    """Return the name of a family; "default" is the paper's with the paper's prior.

    Examples
    --------
    >>> resolve_family("default") == DEFAULT_FAMILY
    True
    >>> resolve_family("default", "paper")
    'poisson'
    """
    default = "poisson" if prior == "paper" else DEFAULT_FAMILY
    name = default if family == "default" else family
    if name not in FAMILIES:
        raise ValueError(f"family {family!r} is unknown; choose from {['default', *FAMILIES]}")
    return name


def resolve_prior(
    prior: str | Mapping[str, float], family: str = DEFAULT_FAMILY
) -> dict[str, float]:
    """Return the numbers of a prior given by name, or those given, for a family.

    With family "base" the national mean of log cv is held near its prior mean: the measure has the
    shape that all groups share, and the log cv of a group what is its own.

    Examples
    --------
    >>> resolve_prior("default") == PRIORS[DEFAULT_PRIOR]
    True
    """
    if isinstance(prior, str):
        name = DEFAULT_PRIOR if prior == "default" else prior
        if name not in PRIORS:
            raise ValueError(f"prior {prior!r} is unknown; choose from {['default', *PRIORS]}")
        prior = PRIORS[name]
    if family == "base" and "base_log_cv_mean_sd" in prior:
        return {**prior, "log_cv_mean_sd": prior["base_log_cv_mean_sd"]}
    return dict(prior)
