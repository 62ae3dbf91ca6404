r"""Truncated Poisson and negative binomial as PyMC distributions.

Both are ladders: from one count to the next the probability changes by the factor

.. math:: P(y + 1) / P(y) = s \, c_y, \qquad s = \frac{\lambda}{1 + \kappa \lambda},
    \quad c_y = \frac{1 + \kappa y}{y + 1}, \qquad y = 0, \dots, K - 1,

with :math:`\kappa = 1 / r` the inverse of the negative binomial's size; :math:`\kappa = 0` is the
Poisson distribution. The log-sum-exp over the support starts at the end that dominates, so that one
exponential of a negative number serves all terms. The derivatives are sums over the same ladder, of
differences from the value: they keep their relative accuracy where value and mean nearly agree.

One pass gives the log-probability with both derivatives, as an operation of its own: NUTS spends
most of its time here, and takes 1.7 times as long with the ladder written out in elementary
operations (measured, 2,040 cells).
"""

from typing import Any
from zlib import crc32

import numba
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, grad_undefined
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

CACHE_VERSION = 4  # raise it with each change of the code below: PyTensor caches compiled code
UPPER_LIMIT = 150  # beyond it K! leaves double precision when the ladder is climbed down


# Without fastmath, by name: PyTensor compiles with it, numba passes it on to every called function,
# and _log1p would lose the digits that it is there for. The cache is for the package alone: this
# file can also be imported by its path (doctests do), and code compiled under that name would make
# the package look for a module that does not exist.
@numba.njit(cache=__name__.startswith("bayes_sdc."), fastmath=False)
def _log1p(x: float) -> float:
    """Log of 1 + x for x >= 0, in less than half the time of the library function."""
    whole = 1.0 + x
    logarithm: float = np.log(whole) + (x - (whole - 1.0)) / whole  # what the sum rounded away
    return logarithm


@numba.njit(cache=__name__.startswith("bayes_sdc."), fastmath=False)
def _log_probability(
    value: np.ndarray, log_rate: np.ndarray, kappas: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-probability and its derivatives by log rate and by kappa, cell by cell."""
    n, highest = len(value), upper.max() if len(upper) else 0
    factor, inverse = np.empty(highest), np.empty(highest)
    log_product, slopes = np.zeros(highest + 1), np.zeros(highest + 1)
    logp, by_log_rate, by_kappa = np.empty(n), np.zeros(n), np.zeros(n)
    log_kappa = 0.0
    for cell in range(n):
        last, kappa = upper[cell], kappas[cell]
        if cell == 0 or kappa != kappas[cell - 1]:  # cells of a group share their ladder
            log_kappa = np.log(kappa) if kappa > 0.0 else 0.0
            for y in range(highest):
                factor[y] = (1.0 + kappa * y) / (y + 1.0)
                inverse[y] = 1.0 / factor[y]
                log_product[y + 1] = log_product[y] + np.log(factor[y])
                slopes[y + 1] = slopes[y] + y / (1.0 + kappa * y)  # of log_product by kappa
        if not kappa >= 0.0:
            logp[cell] = np.nan
            continue
        if not 0 <= value[cell] <= last or value[cell] != np.floor(value[cell]):
            logp[cell] = -np.inf
            continue
        y = int(value[cell])
        # log s, its derivative by log rate, and minus its derivative by kappa, which is s itself
        if abs(log_rate[cell]) < 700.0:
            rate = np.exp(log_rate[cell])
            growth = kappa * rate
            by_rate = 1.0 / (1.0 + growth)
            shrink = rate * by_rate
            ratio = shrink if shrink < 1.0 else (1.0 + growth) / rate
            if growth < 1.0:
                step = log_rate[cell] - _log1p(growth)
            else:  # log rate and log(1 + growth) nearly cancel
                step = -log_kappa - _log1p(1.0 / growth)
        else:  # the rate leaves double precision, its product with kappa need not
            step, by_rate, shrink = log_rate[cell], 1.0, np.exp(min(log_rate[cell], 700.0))
            if kappa > 0.0:
                excess = log_rate[cell] + log_kappa
                small = np.exp(-abs(excess))
                if excess < 0.0:
                    step = log_rate[cell] - _log1p(small)
                    by_rate, shrink = 1.0 / (1.0 + small), small / (1.0 + small) / kappa
                else:
                    step = -log_kappa - _log1p(small)
                    by_rate, shrink = small / (1.0 + small), 1.0 / (1.0 + small) / kappa
            ratio = np.exp(-abs(step))
        term, rest = 1.0, 0.0
        if step < 0.0:
            deviation, slope_deviation = y * 1.0, slopes[y]
            for k in range(1, last + 1):
                term *= factor[k - 1] * ratio
                rest += term
                deviation += (y - k) * term
                slope_deviation += (slopes[y] - slopes[k]) * term
            logp[cell] = y * step + log_product[y] - _log1p(rest)
        else:
            deviation, slope_deviation = (y - last) * 1.0, slopes[y] - slopes[last]
            for k in range(last - 1, -1, -1):
                term *= inverse[k] * ratio
                rest += term
                deviation += (y - k) * term
                slope_deviation += (slopes[y] - slopes[k]) * term
            logp[cell] = (y - last) * step + log_product[y] - log_product[last] - _log1p(rest)
        deviation /= 1.0 + rest
        by_log_rate[cell] = deviation * by_rate
        by_kappa[cell] = slope_deviation / (1.0 + rest) - deviation * shrink
    return logp, by_log_rate, by_kappa


class LogProbability(Op):  # type: ignore[misc]  # PyTensor has no types
    """Log-probability of truncated counts, with its derivatives by log rate and by kappa.

    Inputs are the counts and the log rates of all cells, kappa (0 for Poisson), and the upper
    bounds. Only the first output is for use; the others serve its gradient, which has none itself.
    """

    __props__ = ()

    def make_node(self, value: Any, log_rate: Any, kappa: Any, upper: Any) -> Apply:
        """Accept vectors of cells."""
        inputs = [pt.as_tensor(x) for x in (value, log_rate, kappa, upper)]
        wanted = [(1, "float64"), (1, "float64"), (1, "float64"), (1, "int64")]
        if [(x.type.ndim, x.type.dtype) for x in inputs] != wanted:
            raise TypeError(f"expected inputs of (dimensions, type) {wanted}")
        return Apply(self, inputs, [inputs[1].type() for _ in range(3)])

    def perform(self, node: Apply, inputs: list[Any], outputs: list[Any]) -> None:
        """Evaluate outside compiled graphs."""
        value, log_rate, kappa, upper = inputs
        results = _log_probability(value, log_rate, kappa, upper)
        for storage, result in zip(outputs, results, strict=True):
            storage[0] = result

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """The upper bounds are constants to differentiate about."""
        return [[True] * 3, [True] * 3, [True] * 3, [False] * 3]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Derivatives of the first output, from the two others."""
        by_output, *others = cotangents
        if not all(isinstance(other.type, DisconnectedType) for other in others):
            raise NotImplementedError("second derivatives of the truncated log-probability")
        return [
            grad_undefined(self, 0, inputs[0], "counts are whole numbers"),
            by_output * outputs[1],
            by_output * outputs[2],
            DisconnectedType()(),
        ]


@register_funcify_default_op_cache_key(LogProbability)
def _compile_log_probability(op: LogProbability, node: Apply, **kwargs: Any) -> Any:
    @numba_njit
    def log_probability(
        value: np.ndarray, log_rate: np.ndarray, kappa: np.ndarray, upper: np.ndarray
    ) -> Any:
        return _log_probability(value, log_rate, kappa, upper)

    # under another name of this module another function is called, see above
    return log_probability, CACHE_VERSION + crc32(__name__.encode())


def _as_double(number: Any) -> Any:
    # a plain 0.0 or 3 becomes a tensor of the shortest type, which makes the rest single precision
    return pt.as_tensor(number).astype("float64")


def truncated_logp(value: Any, log_rate: Any, upper: Any, kappa: Any = 0.0) -> Any:
    """Log-probability of the Poisson or negative binomial truncated to ``0..upper``, as a tensor.

    Parameters
    ----------
    value : tensor_like of int
        Count from the lower bound.
    log_rate : tensor_like of float
        Log of the untruncated mean; any finite value.
    upper : int or array of int
        Largest value, 1 to 150; constant.
    kappa : tensor_like of float
        Inverse size 1 / r of the negative binomial; 0 is Poisson. Neighbouring cells that share a
        value share the work for it.

    Returns
    -------
    TensorVariable
        Log-probability; minus infinity outside the support.

    Examples
    --------
    >>> round(float(truncated_logp(8, 0.0, 8).exp().eval()) * 1e6, 6)
    9.124004
    """
    bounds = pt.as_tensor(np.asarray(upper, dtype=np.int64))
    doubles = (_as_double(part) for part in (value, log_rate, kappa))
    cells = pt.broadcast_arrays(*doubles, bounds)
    logp = LogProbability()(*(part.ravel() for part in cells))[0]
    return logp.reshape(cells[1].shape, ndim=cells[1].ndim)


def truncated_log_table(log_rate: Any, upper: Any, kappa: Any = 0.0) -> Any:
    """Unnormalised log-probabilities of the values ``0..max(upper)``, on a new last axis."""
    upper = np.asarray(upper)
    rate, kappa = pt.broadcast_arrays(_as_double(log_rate), _as_double(kappa))
    values = np.arange(int(upper.max()) + 1)
    factor = (1.0 + kappa[..., None] * values[:-1]) / (values[:-1] + 1.0)
    log_product = pt.cumsum(pt.log(factor), axis=-1)
    log_product = pt.concatenate([pt.zeros_like(rate)[..., None], log_product], axis=-1)
    # log(1 + kappa lambda); written so that kappa = 0 gives 0 and a large rate does not overflow
    step = rate - pt.softplus(rate + pt.log(kappa))
    return pt.switch(values <= upper[..., None], values * step[..., None] + log_product, -np.inf)


def truncated_mean(log_rate: Any, upper: Any, kappa: Any = 0.0) -> Any:
    """Mean of the Poisson or negative binomial truncated to ``0..upper``, as a tensor.

    Examples
    --------
    >>> round(float(truncated_mean(50.0, 8).eval()), 12)
    8.0
    """
    probabilities = pm.math.softmax(truncated_log_table(log_rate, upper, kappa), axis=-1)
    return (probabilities * np.arange(int(np.max(upper)) + 1)).sum(axis=-1)


class TruncatedPoisson:
    """Poisson distribution truncated to ``0..upper``, a PyMC distribution.

    Parameters
    ----------
    name : str
        Name of the variable in the model.
    log_rate : tensor_like of float
        Log of the untruncated rate.
    upper : int or array of int
        Largest value of the support, 1 to 150; a constant that broadcasts against ``log_rate``.
    **kwargs
        ``observed``, ``dims``, ``shape`` and other arguments of every PyMC distribution.

    Notes
    -----
    Forward draws come from the table of ``upper + 1`` probabilities, never by rejection.

    References
    ----------
    Hawala, Reiter and Wang, eq. (1).

    Examples
    --------
    >>> dist = TruncatedPoisson.dist(log_rate=np.log(5.0), upper=8)
    >>> round(float(np.exp(pm.logp(dist, 3).eval())), 10)
    0.1506309014
    """

    def __new__(cls, name: str, *, log_rate: Any, upper: Any, **kwargs: Any) -> Any:
        """Add the variable to the model on the context stack."""
        return pm.CustomDist(name, _as_double(log_rate), **_pieces("Poisson", upper), **kwargs)

    @staticmethod
    def mean(*, log_rate: Any, upper: Any) -> Any:
        """Mean of the distribution, as a tensor."""
        return truncated_mean(log_rate, upper)

    @classmethod
    def dist(cls, *, log_rate: Any, upper: Any, **kwargs: Any) -> Any:
        """Create the distribution outside a model, for ``pm.logp`` and ``pm.draw``."""
        return pm.CustomDist.dist(_as_double(log_rate), **_pieces("Poisson", upper), **kwargs)


class TruncatedNegativeBinomial:
    """Negative binomial distribution truncated to ``0..upper``, a PyMC distribution.

    Parameters
    ----------
    name : str
        Name of the variable in the model.
    log_rate : tensor_like of float
        Log of the untruncated mean.
    kappa : tensor_like of float
        Inverse of the size r, above 0; the variance of a gamma-distributed effect on the rate.
        Broadcasts against ``log_rate``.
    upper : int or array of int
        Largest value of the support, 1 to 150; a constant that broadcasts against ``log_rate``.
    **kwargs
        ``observed``, ``dims``, ``shape`` and other arguments of every PyMC distribution.

    Examples
    --------
    >>> dist = TruncatedNegativeBinomial.dist(log_rate=0.0, kappa=1.0, upper=2)
    >>> np.exp(pm.logp(dist, np.arange(3)).eval()).round(6).tolist()
    [0.571429, 0.285714, 0.142857]
    """

    def __new__(cls, name: str, *, log_rate: Any, kappa: Any, upper: Any, **kwargs: Any) -> Any:
        """Add the variable to the model on the context stack."""
        pieces = _pieces("NegativeBinomial", upper)
        return pm.CustomDist(name, _as_double(log_rate), _as_double(kappa), **pieces, **kwargs)

    @staticmethod
    def mean(*, log_rate: Any, kappa: Any, upper: Any) -> Any:
        """Mean of the distribution, as a tensor."""
        return truncated_mean(log_rate, upper, kappa)

    @classmethod
    def dist(cls, *, log_rate: Any, kappa: Any, upper: Any, **kwargs: Any) -> Any:
        """Create the distribution outside a model, for ``pm.logp`` and ``pm.draw``."""
        pieces = _pieces("NegativeBinomial", upper)
        return pm.CustomDist.dist(_as_double(log_rate), _as_double(kappa), **pieces, **kwargs)


def _pieces(family: str, upper: Any) -> dict[str, Any]:
    """Arguments of CustomDist: forward draws, log-probability, a starting point."""
    bound = np.asarray(upper)
    if bound.dtype.kind not in "iu" or bound.min() < 1 or bound.max() > UPPER_LIMIT:
        raise ValueError(f"upper must be whole numbers from 1 to {UPPER_LIMIT}; it is {upper}")

    def draw(log_rate: Any, *kappa_and_size: Any) -> Any:
        *kappa, size = kappa_and_size
        logits = truncated_log_table(log_rate, bound, *kappa)
        return pm.Categorical.dist(logit_p=logits, size=size)

    def start(rv: Any, size: Any, log_rate: Any, *kappa: Any) -> Any:
        return pt.round(truncated_mean(pt.broadcast_to(log_rate, rv.shape), bound, *kappa))

    return {
        "dist": draw,
        "logp": lambda value, log_rate, *kappa: truncated_logp(value, log_rate, bound, *kappa),
        "support_point": start,
        "class_name": f"Truncated{family}",
        "dtype": "int64",
    }
