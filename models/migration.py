r"""Truncated count models of migration: Hawala, Reiter and Wang, and an over-dispersed extension.

Small counts of an origin-destination table, counted from their lower bound, ``y = n - low``,
follow a Poisson distribution truncated to ``0..upper``,

.. math::
    P(Y_{ij} = y) = \frac{\lambda_{ij}^{y} / y!}{\sum_{r=0}^{upper} \lambda_{ij}^{r} / r!},
    \qquad \log \lambda_{ij} = \beta_i + \gamma_j,

with :math:`\beta_i \sim N(\mu_\beta, 1/\phi_\beta)`, :math:`\gamma_j \sim N(\mu_\gamma,
1/\phi_\gamma)` and independent :math:`\mu_\beta, \mu_\gamma \sim N(0, \sigma_\mu^2)`.
One model serves one pair of an origin state and a destination state.

Families. ``poisson`` is the paper's. Real tables are over-dispersed given the effects, so
``negative-binomial`` puts a gamma-distributed effect of mean 1 on each cell: the negative binomial
with mean :math:`\lambda` and size :math:`r`, truncated to the same support,

.. math::
    P(Y_{ij} = y) \propto \frac{\Gamma(y + r)}{y!\, \Gamma(r)}
    \left( \frac{\lambda_{ij}}{\lambda_{ij} + r} \right)^{y}.

Its free parameter is the coefficient of variation of the cell effects, :math:`cv = r^{-1/2}`,
one a group, with a half-normal prior: 0 is the Poisson model.

Identified form. The data see only :math:`\beta_i + \gamma_j`, so the model is written with
:math:`\alpha = \mu_\beta + \mu_\gamma`, :math:`\delta = \mu_\beta - \mu_\gamma`, which are
independent :math:`N(0, 2 \sigma_\mu^2)`, and deviations from the two means.
:math:`\delta` never meets the data. The prior is the same one; only the coordinates differ.
``mu_beta``, ``mu_gamma``, ``beta``, ``gamma``, ``phi_beta`` and ``phi_gamma`` are recorded under
the paper's names.

Priors (:data:`PRIORS`):

``paper``
    :math:`\phi \sim Gamma(0.01, rate\ 0.01)`, :math:`\sigma_\mu = 5`, to the letter. With one
    origin or one destination the deviations are then Student t with 0.02 degrees of freedom and no
    sampler explores them: such groups are flagged by the diagnostics.
``weak``
    :math:`\phi^{-1/2} \sim HalfNormal(1)`, :math:`\sigma_\mu = 1.5`: usable at every size.

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

from bayes_sdc.models.truncated import TruncatedNegativeBinomial, TruncatedPoisson

NAME = "migration"
VERSION = "1"

FAMILIES = ("poisson", "negative-binomial")

#: Hyperpriors by name. ``mu_sd``: standard deviation of mu_beta and mu_gamma. Then either
#: ``phi_shape`` and ``phi_rate`` (gamma prior of the precision) or ``sd_scale`` (half-normal
#: prior of the standard deviation). ``cv_scale``: half-normal prior of cv, which the paper's
#: Poisson model does not have.
PRIORS: dict[str, dict[str, float]] = {
    "paper": {"mu_sd": 5.0, "phi_shape": 0.01, "phi_rate": 0.01, "cv_scale": 1.0},
    "weak": {"mu_sd": 1.5, "sd_scale": 1.0, "cv_scale": 1.0},
}
DEFAULT_PRIOR = "weak"
DEFAULT_FAMILY = "poisson"


def _log_precision(name: str, prior: Mapping[str, float]) -> Any:
    """Log of the precision of one set of effects, under the gamma or the half-normal prior."""
    if "sd_scale" in prior:
        sd = pm.HalfNormal(f"sd_{name}", prior["sd_scale"])
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
    )


def _effects(name: str, dim: str, sd: Any, centering: Any) -> Any:
    """Deviations ~ N(0, sd^2), sampled on a scale between centred (1) and not centred (0)."""
    weight = pm.Data(f"{dim}_centering", centering, dims=dim)
    raw = pm.Normal(f"{name}_raw", 0.0, sd**weight, dims=dim)
    return raw * sd ** (1.0 - weight)


def centering(cells_per_area: np.ndarray) -> np.ndarray:
    """Choose the centering of each effect from the number of its cells, in [0, 1).

    An effect with many cells is known by the data and is sampled as it is; one with few is known
    by the prior and is sampled in units of its standard deviation (Papaspiliopoulos, Roberts and
    Skold 2007, doi:10.1214/088342307000000014). The constant errs on the side of the prior: a
    scale near zero makes divergences when effects of ten cells are sampled as they are.

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
    family: str = "default",
    prior: str | Mapping[str, float] = "default",
    offset: np.ndarray | None = None,
) -> pm.Model:
    """Build the model of one group of small cells.

    Parameters
    ----------
    y : array of int, shape (cell,)
        Small counts minus their lower bound, 0 to ``upper``.
    origin_index, destination_index : array of int, shape (cell,)
        Position of each cell's areas in ``origins`` and ``destinations``.
    upper : int
        Largest value of ``y``.
    origins, destinations : sequence of str
        Codes of the areas.
    family : {"default", "poisson", "negative-binomial"}
        Distribution of the counts.
    prior : str or mapping
        ``"paper"``, ``"weak"``, ``"default"`` (weak), or a mapping like those in :data:`PRIORS`.
    offset : array of float, shape (cell,), optional
        Known addition to the log rate of each cell.

    Returns
    -------
    pymc.Model
        Free variables alpha, delta, a scale for each side, the raw deviations, and cv for the
        negative binomial; deterministics mu_beta, mu_gamma, phi_beta, phi_gamma, beta, gamma, r;
        observed y.

    Raises
    ------
    ValueError
        If the name of the family or of the prior is unknown.

    References
    ----------
    Hawala, Reiter and Wang, section 2.1, eq. (1) and (2).

    Examples
    --------
    >>> model = build(
    ...     np.array([0, 2, 1]), np.array([0, 0, 1]), np.array([0, 1, 1]), upper=8,
    ...     origins=["01001", "01003"], destinations=["02013", "02016"],
    ... )
    >>> sorted(v.name for v in model.free_RVs)
    ['alpha', 'beta_raw', 'delta', 'gamma_raw', 'sd_beta', 'sd_gamma']
    """
    settings = resolve_prior(prior)
    family = resolve_family(family)
    y = np.asarray(y, dtype=np.int64)
    coords = {"origin": list(origins), "destination": list(destinations), "cell": range(len(y))}
    with pm.Model(coords=coords) as model:
        counts = pm.Data("y_data", y, dims="cell")
        at_origin = pm.Data("origin_index", np.asarray(origin_index, np.int64), dims="cell")
        at_destination = pm.Data(
            "destination_index", np.asarray(destination_index, np.int64), dims="cell"
        )
        shift = pm.Data("offset", np.zeros(len(y)) if offset is None else offset, dims="cell")

        alpha = pm.Normal("alpha", 0.0, np.sqrt(2.0) * settings["mu_sd"])
        delta = pm.Normal("delta", 0.0, np.sqrt(2.0) * settings["mu_sd"])
        mu_beta = pm.Deterministic("mu_beta", (alpha + delta) / 2.0)
        mu_gamma = pm.Deterministic("mu_gamma", (alpha - delta) / 2.0)
        log_phi_beta = _log_precision("beta", settings)
        log_phi_gamma = _log_precision("gamma", settings)
        pm.Deterministic("phi_beta", pt.exp(log_phi_beta))
        pm.Deterministic("phi_gamma", pt.exp(log_phi_gamma))

        cells_of_origin = np.bincount(origin_index, minlength=len(origins))
        cells_of_destination = np.bincount(destination_index, minlength=len(destinations))
        b = _effects("beta", "origin", pt.exp(-log_phi_beta / 2.0), centering(cells_of_origin))
        g = _effects(
            "gamma", "destination", pt.exp(-log_phi_gamma / 2.0), centering(cells_of_destination)
        )
        pm.Deterministic("beta", mu_beta + b, dims="origin")
        pm.Deterministic("gamma", mu_gamma + g, dims="destination")
        log_rate = alpha + b[at_origin] + g[at_destination] + shift
        likelihood = {"log_rate": log_rate, "upper": upper, "observed": counts, "dims": "cell"}
        if family == "poisson":
            TruncatedPoisson("y", **likelihood)
        else:
            cv = pm.HalfNormal("cv", settings["cv_scale"])
            pm.Deterministic("r", cv**-2.0)
            TruncatedNegativeBinomial("y", kappa=cv**2.0, **likelihood)
    return model


def resolve_family(family: str) -> str:
    """Return the name of a family, that of the default for "default".

    Examples
    --------
    >>> resolve_family("default") == DEFAULT_FAMILY
    True
    """
    name = DEFAULT_FAMILY if family == "default" else family
    if name not in FAMILIES:
        raise ValueError(f"family {family!r} is unknown; choose from {['default', *FAMILIES]}")
    return name


def resolve_prior(prior: str | Mapping[str, float]) -> dict[str, float]:
    """Return the numbers of a prior given by name, or those given.

    Examples
    --------
    >>> resolve_prior("default") == PRIORS["weak"]
    True
    """
    if not isinstance(prior, str):
        return dict(prior)
    name = DEFAULT_PRIOR if prior == "default" else prior
    if name not in PRIORS:
        raise ValueError(f"prior {prior!r} is unknown; choose from {['default', *PRIORS]}")
    return PRIORS[name]
