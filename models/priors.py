"""Priors of the microdata models as numbers, for code that works without PyMC.

The model files import them, so that a model and the computations outside it agree.
"""

import numpy as np
import numpy.typing as npt

#: Rates that share a distribution: what alpha is above, and the normal prior of the log of how far.
RATES: dict[str, dict[str, float]] = {
    "gamma": {"lowest": 0.0, "log_shape_mean": -1.0, "log_shape_sd": 2.0},
    "extended": {"lowest": -1.0, "log_shape_mean": 0.0, "log_shape_sd": 1.0},
}
LOG_SCALE_SD = 2.5  # of the normal prior of log(1 / beta) about the log of the mean of f / p
MOST_CERTAIN = 1.0 - 1e-12  # PyMC's negative binomial needs p below 1
#: Uniques without structure: normal prior of log c, where c is learned.
CONCENTRATION: dict[str, dict[str, float]] = {"log_concentration": {"mean": -1.0, "sd": 2.5}}


def beta_concentration(
    p: npt.NDArray[np.float64], spread: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Sum of the two parameters of a Beta distribution of mean p and relative deviation spread.

    It is kept from 1 / (1 - p), the widest without a pile of mass at 1, to 1e12 (p is known).
    Otherwise a spread too large for a p near 1 would mean that p is either 0 or 1. Near 0 it may
    pile up: then the risk lies in the upper tail of p, and can be beyond the interval over p.
    """
    with np.errstate(divide="ignore", over="ignore"):
        concentration = (1.0 - p) / (p * spread**2) - 1.0
    return np.clip(concentration, 1.0 / (1.0 - p), 1e12)


def log_typical(
    f: npt.NDArray[np.float64], p: npt.NDArray[np.float64], copies: npt.NDArray[np.float64]
) -> float:
    """Log of the mean of f / p over combinations, where the prior of the scale is centred."""
    return float(np.log(np.average(f / p, weights=copies)))
