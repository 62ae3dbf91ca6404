"""Priors of what a group has besides its effects, as numbers for compiled code.

A group has a row of parameters ``theta``: its level alpha, the logs of the standard deviations of
its origin and destination effects, the log of the coefficient of variation cv of the cells, and one
coefficient for each covariate. The densities here are those of the logs, change of variable
included. With the pooled prior the mean of the level may depend on properties of the group: it is
the national mean plus their values times the national slopes.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numba
import numpy as np

LEVEL, SD_ORIGIN, SD_DESTINATION, CV = 0, 1, 2, 3  # columns of theta; coefficients follow
PARAMETERS = ("alpha", "log_sd_beta", "log_sd_gamma", "log_cv")
NORMAL, HALF_NORMAL, GAMMA = 0, 1, 2  # prior of the value, of its exp, of its exp to the power -2

# numpy's error model: a division need not check its divisor
compiled = numba.njit(cache=True, nogil=True, error_model="numpy")
# copied into its caller before compilation, so that it is not compiled once more by itself
inlined = numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")


class Priors(NamedTuple):
    """Prior of each column of theta: its kind and two numbers; and how levels depend on groups."""

    kind: np.ndarray  # (parameter,)
    first: np.ndarray  # (parameter,) mean, scale or shape
    second: np.ndarray  # (parameter,) standard deviation, nothing or rate
    slope: np.ndarray  # (group covariate,) what the mean of the level gains with each


class BasePrior(NamedTuple):
    """Normal prior of the log of a base measure's standard deviation."""

    mean: float
    sd: float


def base_prior(settings: Mapping[str, float]) -> BasePrior:
    """Prior of the base measure's scale, of a pooled prior.

    Examples
    --------
    >>> base_prior({"base_spread": 1.0, "base_log_sd_sd": 0.5})
    BasePrior(mean=0.0, sd=0.5)
    """
    return BasePrior(math.log(settings["base_spread"]), settings["base_log_sd_sd"])


def priors(settings: Mapping[str, float], covariates: int, group_covariates: int = 0) -> Priors:
    """Translate the numbers of a prior; the pooled one starts from the middle of its hyperprior.

    Parameters
    ----------
    settings : mapping
        As in :data:`bayes_sdc.models.migration.PRIORS`.
    covariates : int
        Number of covariates.
    group_covariates : int
        Number of properties of groups.

    Examples
    --------
    >>> priors({"mu_sd": 0.5, "sd_scale": 2.0, "cv_scale": 3.0}, 0).first
    array([0., 2., 2., 3.])
    """
    slope = np.zeros(group_covariates)
    if is_pooled(settings):
        hyper = nation(settings, covariates)
        kinds = np.zeros(len(hyper), np.int64)
        return Priors(kinds, hyper[:, 0].copy(), np.exp(hyper[:, 2]), slope)
    level = (NORMAL, 0.0, math.sqrt(2.0) * settings["mu_sd"])
    if "sd_scale" in settings:
        sd = (HALF_NORMAL, settings["sd_scale"], 0.0)
    else:
        sd = (GAMMA, settings["phi_shape"], settings["phi_rate"])
    cv = (HALF_NORMAL, settings.get("cv_scale", 1.0), 0.0)
    coefficient = (NORMAL, 0.0, settings.get("coefficient_sd", 1.0))
    rows = [level, sd, sd, cv, *[coefficient] * covariates]
    kind, first, second = (list(column) for column in zip(*rows, strict=True))
    return Priors(np.array(kind), np.array(first), np.array(second), slope)


def is_pooled(settings: Mapping[str, float]) -> bool:
    """Tell whether the groups share a national distribution.

    Examples
    --------
    >>> is_pooled({"mu_sd": 1.5, "sd_scale": 1.0})
    False
    """
    return "national_log_sd_sd" in settings


def nation(settings: Mapping[str, float], covariates: int) -> np.ndarray:
    """Hyperprior of the pooled prior.

    Returns
    -------
    array of float, shape (parameter, 4)
        Mean and sd of the normal prior of the national mean; mean and sd of the normal prior of
        the log of the national sd.

    Examples
    --------
    >>> from bayes_sdc.models.migration import PRIORS
    >>> nation(PRIORS["pooled"], 2).shape
    (6, 4)
    """
    names = ("alpha", "log_sd", "log_sd", "log_cv", *["coefficient"] * covariates)
    return np.array(
        [
            [
                settings[f"{name}_mean"],
                settings[f"{name}_mean_sd"],
                math.log(settings[f"{name}_spread"]),
                settings["national_log_sd_sd"],
            ]
            for name in names
        ]
    )


def slope_prior(settings: Mapping[str, float]) -> np.ndarray:
    """Mean and sd of the normal prior of a national slope: that of a coefficient's national mean.

    Examples
    --------
    >>> from bayes_sdc.models.migration import PRIORS
    >>> slope_prior(PRIORS["pooled"])
    array([0., 1.])
    """
    return np.array([settings["coefficient_mean"], settings["coefficient_mean_sd"]])


def level_means(now: Priors, z: np.ndarray) -> np.ndarray:
    """Prior mean of every group's level; ``z`` holds the properties of the groups.

    Examples
    --------
    >>> now = priors({"mu_sd": 0.5, "sd_scale": 2.0}, 0, 1)._replace(slope=np.array([0.5]))
    >>> level_means(now, np.array([[-1.0], [1.0]]))
    array([-0.5,  0.5])
    """
    return np.asarray(now.first[LEVEL] + z @ now.slope)


@compiled
def log_prior(x: float, kind: int, first: float, second: float) -> float:
    """Log-density up to a constant.

    Examples
    --------
    >>> log_prior(0.0, NORMAL, 2.0, 1.0)
    -2.0
    """
    if kind == NORMAL:
        return -0.5 * ((x - first) / second) ** 2
    if kind == HALF_NORMAL:
        return x - 0.5 * (math.exp(x) / first) ** 2
    return -2.0 * first * x - second * math.exp(-2.0 * x)


@compiled
def log_priors(x: np.ndarray, now: Priors, column: int) -> np.ndarray:
    """Log-density of one column of theta for every group, up to a constant.

    Examples
    --------
    >>> log_priors(np.array([2.0]), priors({"mu_sd": 2**0.5, "sd_scale": 1.0}, 0), LEVEL)
    array([-0.5])
    """
    kind, first, second = now.kind[column], now.first[column], now.second[column]
    result = np.empty(len(x))
    for g in range(len(x)):
        result[g] = log_prior(x[g], kind, first, second)
    return result
