"""Draws of the hyperparameters beside their priors.

With the pooled prior these are the means and standard deviations of the national distribution. With
the others every group stands alone, and the draws of all groups are taken together: averaged over
many groups that the prior describes well, their posteriors reproduce the prior.
"""

import json
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import xarray as xr

from bayes_sdc.flows.model.hyperpriors import base_prior, is_pooled, nation, slope_prior
from bayes_sdc.flows.model.parameters import CI_PROB

NAMES = {
    "alpha": "level",
    "log_sd_beta": "log sd of origins",
    "log_sd_gamma": "log sd of destinations",
    "log_cv": "log cv of cells",
}

Density = Callable[[np.ndarray], np.ndarray]


class Hyperparameter(NamedTuple):
    """One of them, on the scale on which it is shown."""

    name: str
    draws: np.ndarray  # (draw,) of all chains, and of all groups where these stand alone
    density: Density  # of the prior, integrates to 1

    def quantiles(self, ci_prob: float = CI_PROB) -> tuple[float, float, float]:
        """Median, and lower and upper end of the equal-tailed interval of the posterior."""
        tail = (1.0 - ci_prob) / 2.0
        median, lower, upper = np.quantile(self.draws, [0.5, tail, 1.0 - tail])
        return float(median), float(lower), float(upper)


def hyperparameters(posterior: xr.DataTree) -> list[Hyperparameter]:
    """Take the hyperparameters and their priors from a posterior.

    Parameters
    ----------
    posterior : xarray.DataTree
        From :func:`bayes_sdc.fit_flows`.

    Returns
    -------
    list of Hyperparameter
        Pooled prior: national mean and sd of each parameter of the groups.
        Other priors: level, log sd of the effects, log cv and coefficients of all groups.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import fit_flows, read_flows
    >>> frame = pd.DataFrame({"o": ["a", "a", "b"], "d": ["x", "y", "x"], "n": [1, 4, 2]})
    >>> table = read_flows(frame, origin="o", destination="d", count="n")
    >>> posterior = fit_flows(table, prior="weak", draws=10, tune=10, chains=2, seed=1)
    >>> [found.name for found in hyperparameters(posterior)][:2]
    ['level', 'log sd of origins']
    """
    settings = json.loads(posterior.attrs["prior_settings"])
    draws = posterior["posterior"].to_dataset()
    return _national(settings, draws) if is_pooled(settings) else _of_groups(settings, draws)


def _national(settings: Mapping[str, float], draws: xr.Dataset) -> list[Hyperparameter]:
    """Means and sds of the national distribution, parameter by parameter."""
    labels = [str(label) for label in draws["parameter"].to_numpy()]
    covariates = draws.sizes.get("covariate", 0)
    # the prior has a row for log cv also where the family has none
    named = [*NAMES, *labels[len(labels) - covariates :]]
    priors = dict(zip(named, nation(settings, covariates), strict=True))
    found = []
    for label in labels:
        mean, mean_sd, log_sd, log_sd_sd = priors[label]
        pairs = {
            "mean": partial(_normal, mean=mean, sd=mean_sd),
            "sd": partial(_log_normal, mean=log_sd, sd=log_sd_sd),
        }
        for what, prior in pairs.items():
            values = draws[f"national_{what}"].sel(parameter=label).to_numpy().ravel()
            name = f"national {what} of {NAMES.get(label, label)}"
            found.append(Hyperparameter(name, values, prior))
    for label in draws["group_covariate"].to_numpy() if "national_slope" in draws else ():
        values = draws["national_slope"].sel(group_covariate=label).to_numpy().ravel()
        name = f"national slope of level by {label}"
        mean, sd = slope_prior(settings)
        found.append(Hyperparameter(name, values, partial(_normal, mean=mean, sd=sd)))
    if "base_sd" in draws:
        log_sd, log_sd_sd = base_prior(settings)
        density = partial(_log_normal, mean=log_sd, sd=log_sd_sd)
        values = draws["base_sd"].to_numpy().ravel()
        found.append(Hyperparameter("sd of the base measure", values, density))
    return found


def _of_groups(settings: Mapping[str, float], draws: xr.Dataset) -> list[Hyperparameter]:
    """Level, scales and coefficients of all groups."""
    level = partial(_normal, mean=0.0, sd=math.sqrt(2.0) * settings["mu_sd"])
    if "sd_scale" in settings:
        log_sd = partial(_log_half_normal, scale=settings["sd_scale"])
    else:
        log_sd = partial(_log_sd_of_gamma, shape=settings["phi_shape"], rate=settings["phi_rate"])
    found = [
        Hyperparameter(NAMES["alpha"], draws["alpha"].to_numpy().ravel(), level),
        *(
            Hyperparameter(NAMES[name], _log_sd(draws[phi]), log_sd)
            for name, phi in (("log_sd_beta", "phi_beta"), ("log_sd_gamma", "phi_gamma"))
        ),
    ]
    if "r" in draws:
        cv = partial(_log_half_normal, scale=settings.get("cv_scale", 1.0))
        found.append(Hyperparameter(NAMES["log_cv"], _log_sd(draws["r"]), cv))
    if "coefficient" in draws:
        prior = partial(_normal, mean=0.0, sd=settings.get("coefficient_sd", 1.0))
        for name in draws["covariate"].to_numpy():
            values = draws["coefficient"].sel(covariate=name).to_numpy().ravel()
            found.append(Hyperparameter(f"coefficient of {name}", values, prior))
    return found


def _log_sd(precision: xr.DataArray) -> np.ndarray:
    """Log of precision^-1/2; under the paper's prior a precision can be too small for a float."""
    ends = np.finfo(float)
    return np.asarray(-0.5 * np.log(np.clip(precision.to_numpy().ravel(), ends.tiny, ends.max)))


def _normal(x: np.ndarray, *, mean: float, sd: float) -> np.ndarray:
    """Density of a normal variable; written out, because scipy.stats takes long to import.

    Examples
    --------
    >>> round(float(_normal(np.array(0.0), mean=0.0, sd=1.0)), 4)
    0.3989
    """
    with np.errstate(under="ignore"):
        height = np.exp(-0.5 * ((np.asarray(x) - mean) / sd) ** 2)
    return np.asarray(height / (sd * math.sqrt(2.0 * math.pi)))


def _log_normal(x: np.ndarray, *, mean: float, sd: float) -> np.ndarray:
    """Density of the exponential of a normal variable: 0 up to 0.

    Examples
    --------
    >>> _log_normal(np.array([-1.0, 1.0]), mean=0.0, sd=1.0).round(4)
    array([0.    , 0.3989])
    """
    above = np.where(np.asarray(x) > 0.0, x, np.inf)
    return _normal(np.log(above), mean=mean, sd=sd) / above


def _log_half_normal(x: np.ndarray, *, scale: float) -> np.ndarray:
    """Density of the log of a half-normal variable.

    Examples
    --------
    >>> round(float(_log_half_normal(np.array(0.0), scale=1.0)), 4)
    0.4839
    """
    with np.errstate(over="ignore", under="ignore"):
        log_density = x - 0.5 * (np.exp(x) / scale) ** 2 - math.log(scale)
        return np.asarray(np.exp(log_density + 0.5 * math.log(2.0 / math.pi)))


def _log_sd_of_gamma(x: np.ndarray, *, shape: float, rate: float) -> np.ndarray:
    """Density of log sd where the precision sd^-2 has a gamma distribution."""
    log_phi = -2.0 * np.asarray(x)
    with np.errstate(over="ignore", under="ignore"):
        log_density = (
            shape * (log_phi + math.log(rate)) - rate * np.exp(log_phi) - math.lgamma(shape)
        )
        return np.asarray(2.0 * np.exp(log_density))
