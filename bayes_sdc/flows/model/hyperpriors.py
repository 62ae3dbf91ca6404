"""Priors of what a group has besides its effects, as numbers for compiled code.

A group has a row of parameters ``theta``: its level alpha, the logs of the standard deviations of
its origin and destination effects, the log of the coefficient of variation cv of the cells, and one
coefficient for each covariate. The densities here are those of the logs, change of variable
included.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numba
import numpy as np

LEVEL, SD_ORIGIN, SD_DESTINATION, CV = 0, 1, 2, 3  # columns of theta; coefficients follow
PARAMETERS = ("alpha", "log_sd_beta", "log_sd_gamma", "log_cv")
NORMAL, HALF_NORMAL, GAMMA = 0, 1, 2  # of the value, of its exp, of its exp to the power -2

# numpy's error model: a division need not check its divisor
compiled = numba.njit(cache=True, nogil=True, error_model="numpy")


class Priors(NamedTuple):
    """Prior of each column of theta: its kind and two numbers."""

    kind: np.ndarray  # (parameter,)
    first: np.ndarray  # (parameter,) mean, scale or shape
    second: np.ndarray  # (parameter,) standard deviation, nothing or rate


def priors(settings: Mapping[str, float], covariates: int) -> Priors:
    """Translate the numbers of a prior; the pooled one starts from the middle of its hyperprior.

    Parameters
    ----------
    settings : mapping
        As in :data:`bayes_sdc.models.migration.PRIORS`.
    covariates : int
        Number of covariates.

    Examples
    --------
    >>> priors({"mu_sd": 0.5, "sd_scale": 2.0, "cv_scale": 3.0}, 0).first
    array([0., 2., 2., 3.])
    """
    if is_pooled(settings):
        hyper = nation(settings, covariates)
        return Priors(np.zeros(len(hyper), np.int64), hyper[:, 0].copy(), np.exp(hyper[:, 2]))
    level = (NORMAL, 0.0, math.sqrt(2.0) * settings["mu_sd"])
    if "sd_scale" in settings:
        sd = (HALF_NORMAL, settings["sd_scale"], 0.0)
    else:
        sd = (GAMMA, settings["phi_shape"], settings["phi_rate"])
    cv = (HALF_NORMAL, settings.get("cv_scale", 1.0), 0.0)
    coefficient = (NORMAL, 0.0, settings.get("coefficient_sd", 1.0))
    rows = [level, sd, sd, cv, *[coefficient] * covariates]
    kind, first, second = (list(column) for column in zip(*rows, strict=True))
    return Priors(np.array(kind), np.array(first), np.array(second))


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
