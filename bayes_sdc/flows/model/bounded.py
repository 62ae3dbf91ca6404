r"""Counts with bounded steps: what one person can change has a limit chosen beforehand.

A draw from a posterior is an exponential mechanism. One person more in a small cell turns its count
y, from the lowest, into y + 1, and multiplies the unnormalised posterior by
:math:`P(y + 1 \mid \theta) / P(y \mid \theta)`. Where the logarithm of that ratio lies, for every
:math:`\theta` and y, in an interval whose width is :math:`\varepsilon` and whose place does not
depend on :math:`\theta`, the posterior density changes by a factor within
:math:`\exp(\pm \varepsilon)`, and so does the probability of every release made from one draw.

Both families of :mod:`bayes_sdc.flows.model.truncated` are products of steps,
:math:`P(y) \propto \exp(\sum_{k < y} s_k)` with

.. math:: s_k = \log \frac{(1 + \kappa k) \lambda}{(1 + \kappa \lambda)(k + 1)},

and their normalising sum is the same for y and y + 1. So a step is bounded by

.. math:: t_k = c_k + \frac{\varepsilon}{2} \tanh \frac{2 (s_k - c_k)}{\varepsilon},

with centres :math:`c_k` that do not come from the small counts of the table. It has slope 1 at its
centre; as :math:`\varepsilon` grows it becomes the step itself, and as it vanishes the counts have
the shares that the centres stand for.

References
----------
C. Dimitrakakis, B. Nelson, Z. Zhang, A. Mitrokotsa, B. Rubinstein, "Differential privacy for
Bayesian inference through posterior sampling", Journal of Machine Learning Research 18(11), 2017.
Y.-X. Wang, S. Fienberg, A. Smola, "Privacy for free", ICML 2015, arXiv:1502.07645.
"""

import numpy as np

from bayes_sdc.flows.table.bound import Bound


def row_of(bound: Bound | None, upper: int) -> np.ndarray:
    """Centres and half the width for compiled code; all 0 where steps have no bound.

    Examples
    --------
    >>> row_of(Bound(1.0, (-0.5, -0.25)), 2), row_of(None, 2)
    (array([-0.5 , -0.25,  0.5 ]), array([0., 0., 0.]))
    """
    return np.zeros(upper + 1) if bound is None else np.array([*bound.centres, bound.epsilon / 2.0])


def steps(log_rate: np.ndarray, kappa: np.ndarray | float, upper: int) -> np.ndarray:
    """Log of P(k + 1) / P(k) without a bound.

    Parameters
    ----------
    log_rate : array of float, shape (...,)
        Log of the untruncated mean.
    kappa : array of float or float, shape (...,)
        Inverse size of the negative binomial, 0 or more; 0 is Poisson.
    upper : int
        Largest count K.

    Returns
    -------
    array of float, shape (..., K)

    Examples
    --------
    >>> np.exp(steps(np.array(0.0), 0.0, 2)).round(6)
    array([1. , 0.5])
    """
    log_rate, kappa = np.broadcast_arrays(np.asarray(log_rate, float), np.asarray(kappa, float))
    k = np.arange(upper, dtype=np.float64)
    with np.errstate(divide="ignore"):
        rise = log_rate - np.logaddexp(0.0, log_rate + np.log(kappa))
    return np.asarray(rise[..., None] + np.log1p(kappa[..., None] * k) - np.log(k + 1.0))


def bounded(steps: np.ndarray, bound: Bound) -> np.ndarray:
    """Steps within half of epsilon about their centres, smoothly.

    Parameters
    ----------
    steps : array of float, shape (..., K)
        From :func:`steps`.
    bound : Bound
        Width and centres.

    Returns
    -------
    array of float, shape (..., K)

    Examples
    --------
    >>> bounded(np.array([-9.0, -0.5, 9.0]), Bound(1.0, (-0.5, -0.5, -0.5))).round(6)
    array([-1. , -0.5,  0. ])
    """
    centres = np.asarray(bound.centres)
    half = bound.epsilon / 2.0
    return np.asarray(centres + half * np.tanh((steps - centres) / half))


def clipped(steps: np.ndarray, bound: Bound) -> np.ndarray:
    """Steps cut at half of epsilon about their centres: the same guarantee, with corners.

    Examples
    --------
    >>> clipped(np.array([-9.0, -0.4, 9.0]), Bound(1.0, (-0.5, -0.5, -0.5)))
    array([-1. , -0.4,  0. ])
    """
    centres = np.asarray(bound.centres)
    half = bound.epsilon / 2.0
    return np.asarray(np.clip(steps, centres - half, centres + half))


def log_table(steps: np.ndarray) -> np.ndarray:
    """Log-probability of every count from its steps.

    Parameters
    ----------
    steps : array of float, shape (..., K)
        Logs of P(k + 1) / P(k).

    Returns
    -------
    array of float, shape (..., K + 1)

    Examples
    --------
    >>> np.exp(log_table(np.log([1.0, 0.5]))).round(6)
    array([0.4, 0.4, 0.2])
    """
    sums = np.cumsum(steps, axis=-1)
    sums = np.concatenate([np.zeros((*steps.shape[:-1], 1)), sums], axis=-1)
    highest = sums.max(axis=-1, keepdims=True)
    return np.asarray(sums - highest - np.log(np.exp(sums - highest).sum(axis=-1, keepdims=True)))
