r"""Negative binomial counts times a national base measure, as a PyMC distribution.

:math:`P(y) \propto h(y) p(y)` on 0, ..., K, with :math:`p` the truncated negative binomial of
:mod:`bayes_sdc.models.canonical`, in its canonical parameter, and :math:`h` the measure of
:mod:`bayes_sdc.models.base_measure`, which all cells share.
"""

from functools import partial
from typing import Any

import pymc as pm
import pytensor.tensor as pt

from bayes_sdc.models.canonical import canonical_log_table
from bayes_sdc.models.tabulated import doubles, pieces


def base_log_table(log_rate: Any, kappa: Any, log_measure: Any, *, upper: int) -> Any:
    """Log-probabilities of the counts ``0..upper``, on a new last axis.

    Parameters
    ----------
    log_rate : tensor_like of float, shape (...,)
        Log of the argument s of its power series: any number.
    kappa : tensor_like of float, shape (...,)
        Inverse of its size, above 0.
    log_measure : tensor_like of float, shape (upper + 1,)
        Log h, up to a constant.
    upper : int
        Largest count.

    Examples
    --------
    >>> import numpy as np
    >>> table = base_log_table(0.0, 1.0, np.log([1.0, 2.0, 4.0]), upper=2)
    >>> np.exp(table.eval()).round(3).tolist()
    [0.143, 0.286, 0.571]
    """
    table = canonical_log_table(log_rate, kappa, upper=upper) + log_measure
    return table - pt.logsumexp(table, axis=-1, keepdims=True)


class BaseCounts:
    """Negative binomial counts on ``0..upper`` times a base measure.

    Parameters
    ----------
    name : str
        Name of the variable in the model.
    log_rate : tensor_like of float
        Log of the argument s of its power series.
    kappa : tensor_like of float
        Inverse of its size r, above 0; broadcast against ``log_rate``.
    log_measure : tensor_like of float, shape (upper + 1,)
        Log h, up to a constant.
    upper : int
        Largest value of the support, 1 to 150.
    **kwargs
        ``observed``, ``dims``, ``shape`` and other arguments of every PyMC distribution.

    Examples
    --------
    >>> import numpy as np
    >>> dist = BaseCounts.dist(log_rate=0.0, kappa=1.0, log_measure=np.log([1, 2, 4]), upper=2)
    >>> np.exp(pm.logp(dist, np.arange(3)).eval()).round(3).tolist()
    [0.143, 0.286, 0.571]
    """

    def __new__(
        cls, name: str, *, log_rate: Any, kappa: Any, log_measure: Any, upper: int, **kwargs: Any
    ) -> Any:
        """Add the variable to the model on the context stack."""
        given = doubles(log_rate, kappa, log_measure)
        return pm.CustomDist(name, *given, **_pieces(upper), **kwargs)

    @classmethod
    def dist(cls, *, log_rate: Any, kappa: Any, log_measure: Any, upper: int, **kwargs: Any) -> Any:
        """Create the distribution outside a model, for ``pm.logp`` and ``pm.draw``."""
        given = doubles(log_rate, kappa, log_measure)
        return pm.CustomDist.dist(*given, **_pieces(upper), **kwargs)


def _pieces(upper: int) -> dict[str, Any]:
    found: dict[str, Any] = pieces(
        partial(base_log_table, upper=upper), upper,
        class_name="BaseCounts", signature="(),(),(k)->()",
    )  # fmt: skip
    return found
