r"""Truncated negative binomial counts in their canonical parameter, as a PyMC distribution.

The negative binomial of size r is a power series in its success probability p. Truncated to
``0..upper`` it stays a distribution when the argument of the series is any positive number,

.. math::
    P(y) \propto s^y \, \frac{\Gamma(y + r)}{r^y \, y! \, \Gamma(r)}, \qquad y = 0, \dots, K.

Where :math:`s < r` this is the truncated negative binomial with :math:`p = s / r`. The models take
:math:`\log s` as linear in effects and covariates. This is the canonical link: an exponential
family, in which sums of counts times covariates are fitted as they are. Through the log of the
mean of the untruncated counts, as in :mod:`bayes_sdc.models.truncated`, :math:`s` cannot exceed
:math:`r`, however large an area is: counts of large areas at the top of the small ones are then
too rare.

References
----------
J. M. Hilbe, Negative Binomial Regression, 2nd ed. 2011, chapter 8 (the canonical link).
G. P. Patil, "On certain properties of the generalized power series distribution", Annals of the
Institute of Statistical Mathematics 14, 1962.
"""

from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayes_sdc.models.tabulated import doubles, pieces


def canonical_log_table(log_rate: Any, kappa: Any, *, upper: int) -> Any:
    """Log-probabilities of the counts ``0..upper``, on a new last axis.

    Parameters
    ----------
    log_rate : tensor_like of float, shape (...,)
        Log of s: any number.
    kappa : tensor_like of float, shape (...,)
        Inverse of the size r, 0 or more; 0 is Poisson.
    upper : int
        Largest count.

    Examples
    --------
    >>> np.exp(canonical_log_table(0.0, 1.0, upper=2).eval()).round(3).tolist()
    [0.333, 0.333, 0.333]
    """
    rate, kappa = pt.broadcast_arrays(pt.as_tensor(log_rate), pt.as_tensor(kappa))
    values = np.arange(upper + 1)
    rises = pt.log((1.0 + kappa[..., None] * values[:-1]) / (values[:-1] + 1.0)) + rate[..., None]
    table = pt.concatenate([pt.zeros_like(rate)[..., None], pt.cumsum(rises, axis=-1)], axis=-1)
    return table - pt.logsumexp(table, axis=-1, keepdims=True)


class CanonicalNegativeBinomial:
    """Truncated negative binomial on ``0..upper`` in its canonical parameter.

    Parameters
    ----------
    name : str
        Name of the variable in the model.
    log_rate : tensor_like of float
        Log of s.
    kappa : tensor_like of float
        Inverse of the size r, above 0; broadcast against ``log_rate``.
    upper : int
        Largest value of the support, 1 to 150.
    **kwargs
        ``observed``, ``dims``, ``shape`` and other arguments of every PyMC distribution.

    Examples
    --------
    >>> dist = CanonicalNegativeBinomial.dist(log_rate=np.log(2.0), kappa=1.0, upper=2)
    >>> np.exp(pm.logp(dist, np.arange(3)).eval()).round(3).tolist()
    [0.143, 0.286, 0.571]
    """

    def __new__(cls, name: str, *, log_rate: Any, kappa: Any, upper: int, **kwargs: Any) -> Any:
        """Add the variable to the model on the context stack."""
        return pm.CustomDist(name, *doubles(log_rate, kappa), **_pieces(upper), **kwargs)

    @classmethod
    def dist(cls, *, log_rate: Any, kappa: Any, upper: int, **kwargs: Any) -> Any:
        """Create the distribution outside a model, for ``pm.logp`` and ``pm.draw``."""
        return pm.CustomDist.dist(*doubles(log_rate, kappa), **_pieces(upper), **kwargs)


def _pieces(upper: int) -> dict[str, Any]:
    found: dict[str, Any] = pieces(
        partial(canonical_log_table, upper=upper), upper,
        class_name="CanonicalNegativeBinomial", signature="(),()->()",
    )  # fmt: skip
    return found
