r"""Truncated counts with bounded steps, as a PyMC distribution.

The counts of :mod:`bayes_sdc.models.truncated` climb a ladder,
:math:`P(y) \propto \exp(\sum_{k<y} s_k)`, with steps
:math:`s_k = \log [ (1 + \kappa k) \lambda / ((1 + \kappa \lambda)(k + 1)) ]`. Here every step is
kept within half of :math:`\varepsilon` about a known centre,

.. math:: t_k = c_k + \frac{\varepsilon}{2} \tanh \frac{2 (s_k - c_k)}{\varepsilon},

so that one person more or less in a cell changes the log-likelihood, up to a constant, by at most
:math:`\varepsilon`, whatever the parameters are: a draw from the posterior is then an exponential
mechanism whose :math:`\varepsilon` is a number chosen beforehand.

References
----------
C. Dimitrakakis, B. Nelson, Z. Zhang, A. Mitrokotsa, B. Rubinstein, "Differential privacy for
Bayesian inference through posterior sampling", Journal of Machine Learning Research 18(11), 2017.
Y.-X. Wang, S. Fienberg, A. Smola, "Privacy for free", ICML 2015, arXiv:1502.07645.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayes_sdc.models.truncated import UPPER_LIMIT


def bounded_log_table(
    log_rate: Any, kappa: Any, *, upper: int, epsilon: float, centres: Sequence[float]
) -> Any:
    """Log-probabilities of the counts ``0..upper``, on a new last axis.

    Parameters
    ----------
    log_rate : tensor_like of float, shape (...,)
        Log of the untruncated mean.
    kappa : tensor_like of float, shape (...,)
        Inverse size of the negative binomial; None for Poisson.
    upper : int
        Largest count.
    epsilon : float
        Width of the interval of every step, above 0.
    centres : sequence of float, shape (upper,)
        Of the steps.

    Examples
    --------
    >>> table = bounded_log_table(0.0, None, upper=2, epsilon=100.0, centres=[0.0, 0.0])
    >>> np.exp(table.eval()).round(3).tolist()
    [0.4, 0.4, 0.2]
    """
    k, middle, half = np.arange(upper, dtype=np.float64), np.asarray(centres), epsilon / 2.0
    rate = pt.as_tensor(log_rate).astype("float64")
    if kappa is None:
        steps = rate[..., None] - np.log(k + 1.0)
    else:
        rate, kappa = pt.broadcast_arrays(rate, pt.as_tensor(kappa).astype("float64"))
        rise = rate - pt.softplus(rate + pt.log(kappa))
        steps = rise[..., None] + pt.log1p(kappa[..., None] * k) - np.log(k + 1.0)
    steps = middle + half * pt.tanh((steps - middle) / half)
    sums = pt.cumsum(steps, axis=-1)
    sums = pt.concatenate([pt.zeros_like(rate)[..., None], sums], axis=-1)
    return sums - pt.logsumexp(sums, axis=-1, keepdims=True)


class BoundedCounts:
    """Poisson or negative binomial counts on ``0..upper`` with bounded steps.

    Parameters
    ----------
    name : str
        Name of the variable in the model.
    log_rate : tensor_like of float
        Log of the untruncated mean.
    kappa : tensor_like of float, optional
        Inverse size of the negative binomial, broadcast against ``log_rate``; None for Poisson.
    upper : int
        Largest value of the support, 1 to 150.
    epsilon : float
        Width of the interval of every step, above 0.
    centres : sequence of float, shape (upper,)
        Of the steps: logs of P(k + 1) / P(k) that do not come from the counts.
    **kwargs
        ``observed``, ``dims``, ``shape`` and other arguments of every PyMC distribution.

    Examples
    --------
    >>> dist = BoundedCounts.dist(log_rate=9.0, upper=2, epsilon=0.5, centres=[-0.5, -0.5])
    >>> np.diff(pm.logp(dist, np.arange(3)).eval()).round(6).tolist()
    [-0.25, -0.25]
    """

    def __new__(
        cls, name: str, *, log_rate: Any, upper: int, epsilon: float, centres: Sequence[float],
        kappa: Any = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Add the variable to the model on the context stack."""
        parts = _pieces(upper, epsilon, centres)
        return pm.CustomDist(name, *_parameters(log_rate, kappa), **parts, **kwargs)

    @classmethod
    def dist(
        cls, *, log_rate: Any, upper: int, epsilon: float, centres: Sequence[float],
        kappa: Any = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Create the distribution outside a model, for ``pm.logp`` and ``pm.draw``."""
        parts = _pieces(upper, epsilon, centres)
        return pm.CustomDist.dist(*_parameters(log_rate, kappa), **parts, **kwargs)


def _parameters(log_rate: Any, kappa: Any) -> list[Any]:
    return [pt.as_tensor(part).astype("float64") for part in (log_rate, kappa) if part is not None]


def _pieces(upper: int, epsilon: float, centres: Sequence[float]) -> dict[str, Any]:
    """Arguments of CustomDist: forward draws, log-probability, a starting point."""
    if not 1 <= upper <= UPPER_LIMIT:
        raise ValueError(f"upper must be a whole number from 1 to {UPPER_LIMIT}; it is {upper}")
    if not epsilon > 0.0 or not np.isfinite(epsilon):
        raise ValueError(f"epsilon must be a number above 0; it is {epsilon}")
    if len(centres) != upper or not np.isfinite(centres).all():
        raise ValueError(f"centres must be {upper} finite numbers; they are {list(centres)}")

    def table(log_rate: Any, *kappa: Any) -> Any:
        return bounded_log_table(
            log_rate, kappa[0] if kappa else None, upper=upper, epsilon=epsilon, centres=centres
        )

    def draw(log_rate: Any, *kappa_and_size: Any) -> Any:
        *kappa, size = kappa_and_size
        return pm.Categorical.dist(logit_p=table(log_rate, *kappa), size=size)

    def logp(value: Any, log_rate: Any, *kappa: Any) -> Any:
        value = pt.as_tensor(value)
        within = (value >= 0) & (value <= upper) & pt.eq(value, pt.floor(value))
        at = pt.clip(value, 0, upper).astype("int64")
        chosen = pt.eq(at[..., None], np.arange(upper + 1))
        log_p = pt.switch(chosen, table(log_rate, *kappa), 0.0).sum(axis=-1)
        return pt.switch(within, log_p, -np.inf)

    def start(rv: Any, size: Any, log_rate: Any, *kappa: Any) -> Any:
        mean = (pt.exp(table(log_rate, *kappa)) * np.arange(upper + 1)).sum(axis=-1)
        return pt.round(pt.broadcast_to(mean, rv.shape))

    return {
        "dist": draw,
        "logp": logp,
        "support_point": start,
        "class_name": "BoundedCounts",
        "dtype": "int64",
    }
